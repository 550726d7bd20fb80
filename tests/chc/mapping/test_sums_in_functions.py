"""Sums to which one side adds inside a function that it applies at the end, and the other one beforehand.

Accumulators are filled with the bias first, and the IR's ``finish`` adds it last, as dense layers of
:mod:`ir_semantics.layers.dense` do.  So a function that is not abstract is written out around a sum.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from ila_lang import Expr, Fragment, Ila, Kernel, bv, const, ite, mem, primitive, true, var
from ila_lang.mapping import TensorMapping
from ir_semantics.layers.dense import DENSE_CODE, DenseOperator, dense_ir
from smt_encodings.claims import Status
from tests.chc.mapping.library_gemm import (
    PARAMETERS,
    K,
    M,
    N,
    assert_false_and_not_proved,
    assert_proved,
    claim,
    multiply,
    prove,
)

HOST_X, HOST_W, HOST_Y = var("x", mem(32, 8)), var("w", mem(32, 8)), var("y", mem(32, 8))
HOST_B = var("b", mem(32, 32))
ZERO, SHIFT, BLOCK = const(0, 32), const(3, 32), 4


@primitive(bv(32), acc=bv(32), weight=bv(8), x=bv(8))
def step(acc: Expr, weight: Expr, x: Expr) -> Expr:
    return acc + multiply(x, weight)


@primitive(acc=bv(32), bias=bv(32))
def finish(acc: Expr, bias: Expr) -> Expr:
    return (acc + bias).ashr(SHIFT)[7:0]


@primitive(acc=bv(32), bias=bv(32))
def adds_the_bias_twice(acc: Expr, bias: Expr) -> Expr:
    return (acc + bias + bias).ashr(SHIFT)[7:0]


@primitive(acc=bv(32), bias=bv(32))
def shifts_first(acc: Expr, bias: Expr) -> Expr:
    return (acc.ashr(SHIFT) + bias)[7:0]


@primitive(acc=bv(32), bias=bv(32))
def adds_to_positive_sums(acc: Expr, bias: Expr) -> Expr:
    return ite(acc.slt(ZERO), acc, acc + bias).ashr(SHIFT)[7:0]


@primitive(acc=bv(32), bias=bv(32))
def adds_what_is_left(acc: Expr, bias: Expr) -> Expr:
    return (acc.ashr(SHIFT) + bias.ashr(SHIFT))[7:0]


IN_THE_IR = {
    f.name.replace("_", " "): f for f in (adds_the_bias_twice, shifts_first, adds_to_positive_sums, adds_what_is_left)
}
IN_THE_PROGRAM = ("bias of the row", "bias also at the end", "bias after the first block", "x is not padded", "no bias")


def accumulators() -> Ila:
    """Fills an accumulator with a word, adds a product to it, and gives its highest bits with a bias."""
    ila = Ila("accumulators")
    op, at, word = ila.input("op", 2), ila.input("at", 12), ila.input("word", 32)
    x, w = ila.input("x_in", 8), ila.input("w_in", 8)
    acc, out = ila.memory("acc", 12, 32), ila.state("out", 8)
    ila.instruction("FILL").set_decode(op == 0).update(acc, acc.store(at, word))
    ila.instruction("ADD").set_decode(op == 1).update(acc, acc.store(at, acc.load(at) + multiply(x, w)))
    ila.instruction("READ").set_decode(op == 2).update(out, finish(acc.load(at), word))
    ila.instruction("NOTHING").set_decode(op == 3)
    return ila


def of(fault: str = "", least: int = 1) -> TensorMapping:
    """The claim, with a fault; the depth is ``least`` or more, in blocks of which the last one is padded with zeros."""
    ila, kernel = accumulators(), Kernel("host")

    def command(note: str, op: int, at: Expr, word: Expr = ZERO, x: Expr = ZERO, w: Expr = ZERO) -> None:
        kernel.command(note, op=const(op, 2), at=at[11:0], word=word, x_in=x[7:0], w_in=w[7:0])

    def fill(when: Expr, name: str) -> None:
        with kernel.when(f"{name}fills", when), kernel.loop(f"{name}r", M) as r, kernel.loop(f"{name}c", N) as c:
            bias = HOST_B.load(r if fault == "bias of the row" else c)
            command("bias", 0, r * N + c, ZERO if fault == "no bias" else bias)

    late = fault == "bias after the first block"
    if not late:
        fill(true, "b")
    with kernel.loop("block", (K + (BLOCK - 1)) >> 2) as block:
        with kernel.loop("r", M) as r, kernel.loop("c", N) as c, kernel.loop("lane", const(BLOCK, 32)) as lane:
            i = (block << 2) + lane
            x = HOST_X.load(r * K + i)
            padded = x if fault == "x is not padded" else ite(i < K, x, const(0, 8))
            command("add", 1, r * N + c, ZERO, padded.zext(32), HOST_W.load(c * K + i).zext(32))
        if late:
            fill(block == 0, "l")
    with kernel.loop("yr", M) as r, kernel.loop("yc", N) as c:
        command("read", 2, r * N + c, HOST_B.load(c) if fault == "bias also at the end" else ZERO)
        kernel.store(HOST_Y, r * N + c, ila.states["out"])
    program = Kernel("ir_program")
    extents = {"rows_in": M, "features_in_in": K, "features_out_in": N}
    program.command("dense", func_run=true, func_id=const(DENSE_CODE, 8), **extents)
    layer = dense_ir(DenseOperator(step, IN_THE_IR.get(fault, finish)))
    tensors = {t.name: t for t in (HOST_X, HOST_W, HOST_B, HOST_Y)}
    sizes = ((M, "m", 1), (N, "n", 1), (K, "k", least))
    return replace(
        claim(lambda _: None),
        ir=Fragment("ir_dense", layer, PARAMETERS, {}, program),
        device=Fragment("accumulators", ila, PARAMETERS, tensors, kernel),
        domain=(
            *((f"{low} <= {name} <= 64", (const(low, 32) <= v) & (v <= 64)) for v, name, low in sizes),
            ("m*n <= 4096", M * N <= 4096),
        ),
        rows=M,
        columns=N,
        inputs=(("x", "tensor_in"), ("w", "tensor_weights"), ("b", "tensor_bias")),
        output=("y", "tensor_out"),
        sample_shapes=((1, 1, 1), (2, 3, 5), (2, 2, 4)),
        cell=(),
        cell_column=None,
        row_coordinates=1,
    )


CORNERS = [{"m": 2, "n": 3, "k": k} for k in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1)]


def test_a_bias_that_the_ir_adds_in_a_function_may_be_first() -> None:
    assert_proved(of(least=0), CORNERS)


@pytest.mark.parametrize("fault", [*IN_THE_PROGRAM, *IN_THE_IR])
def test_a_fault_is_not_proved(fault: str) -> None:
    mapping = of(fault)
    assert_false_and_not_proved(mapping, CORNERS[1:])


def test_a_function_that_is_abstract_is_not_written_out() -> None:
    mapping = of()
    verdict = prove(replace(mapping, abstract=frozenset({*mapping.abstract, finish.name})))
    assert verdict.status is Status.UNKNOWN
    assert "the device reads an element of b that the IR does not" in verdict.reason
