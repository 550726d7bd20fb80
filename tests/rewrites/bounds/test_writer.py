"""Derivations are those of their kernels: what is changed in a kernel changes them, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from accel_models.flexasr.functions import adpfloat_mul, pe_add_bias, pe_saturate, pe_shift, relu, sigmoid
from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat
from ila_lang import Expr, Kernel, bv, const, ite, mem, primitive, var
from ila_lang.language.kernel import For, Let, Statement, Store
from ila_lang.text.portable import digest
from ir_semantics.layers.dense import Order, dense_ir
from ir_semantics.layers.recurrent import recurrent_ir
from rewrites.bounds.derivations.names import Leaf, Names, Unread, Written
from rewrites.bounds.derivations.writer import derivation_of
from rewrites.bounds.kernel.judgements import Rejected
from rewrites.claims.joints.instruction import called
from rewrites.claims.subjects.bounds import BoundSubject
from rewrites.claims.theorems import flexasr
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.mappings.flexasr import claims as flexasr_claims
from rewrites.mappings.flexasr import linear, recurrent
from rewrites.mappings.hlscnn import claims as hlscnn_claims
from rewrites.mappings.vta import claims as vta_claims
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

NAMES = flexasr._LAYER_NAMES
BIASES = {n: bv(3) for n in ("bias_w", "bias_x", "bias_b", "bias_y")}


def written(
    finish: Callable[..., Expr] | None = None, names: Names = NAMES, order: Order = Order.FORWARD, **changes: Any
) -> Written:
    """The derivation of a dense layer that ends or is otherwise different."""
    operator = replace(linear.operator_of(None), **changes)
    if finish is not None:
        operator = replace(operator, finish=primitive(bv(8), name="ended", acc=bv(32), b=bv(8), **BIASES)(finish))
    ila = dense_ir(operator, order)
    (instruction,) = ila.instructions.values()
    assert instruction.kernel is not None
    return derivation_of(instruction.kernel, {s: s for n, s in ila.states.items() if n in BIASES}, "tensor_out", names)


def test_the_kernel_is_the_one_that_a_mapping_is_about() -> None:
    for name, claim in {
        "FlexASR linear": flexasr_claims.LINEAR["none"],
        "FlexASR mean pooling": flexasr_claims.POOLS["mean"],
        "FlexASR GRU step": flexasr_claims.RECURRENT["gru"],
        "FlexASR LSTM step, cell state": flexasr_claims.RECURRENT["lstm"],
        "FlexASR layer norm": flexasr_claims.LAYER_NORM,
        "FlexASR attention": flexasr_claims.ATTENTION,
        "HLSCNN conv2d, weights of 16 bits": hlscnn_claims.CONVOLUTIONS[16],
        "HLSCNN conv2d, weights of 8 bits, bias": hlscnn_claims.CONVOLUTIONS[8],
        "VTA dense": vta_claims.GEMMS["none"],
        "VTA dense and relu": vta_claims.GEMMS["relu"],
        "VTA minimum": vta_claims.ELEMENTWISE["min"],
    }.items():
        kernel = OPERATORS[name].written.kernel
        assert kernel is not None
        assert digest(kernel) == digest(called(claim.mapping.ir)[0].kernel)
        assert BoundSubject("bound", OPERATORS[name]).semantics()["kernel"] == digest(kernel)


def test_what_the_kernel_does_is_what_is_derived() -> None:
    def rectified(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
        total = pe_saturate(pe_add_bias(pe_shift(acc, bias_w, bias_x), b, bias_b))
        return fixed_to_adpfloat(relu(relu(total)), bias_y)

    assert written().steps == OPERATORS["FlexASR linear"].steps
    assert [s.law for s in written(rectified).steps].count("rectify") == 2


def swapped(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
    return fixed_to_adpfloat(pe_saturate(pe_add_bias(pe_shift(acc, bias_x, bias_w), b, bias_b)), bias_y)


def another_bias(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
    return fixed_to_adpfloat(pe_saturate(pe_add_bias(pe_shift(acc, bias_w, bias_x), b, bias_y)), bias_y)


def not_shifted(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
    return fixed_to_adpfloat(pe_saturate(pe_add_bias(acc, b, bias_b)), bias_y)


def one_more(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
    return fixed_to_adpfloat(pe_saturate(pe_add_bias(pe_shift(acc + 1, bias_w, bias_x), b, bias_b)), bias_y)


def chosen(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
    total = pe_saturate(pe_add_bias(pe_shift(acc, bias_w, bias_x), b, bias_b))
    return fixed_to_adpfloat(ite(b == 0, const(0, 20), total), bias_y)


@pytest.mark.parametrize("finish", [swapped, another_bias, not_shifted, one_more, chosen], ids=lambda f: f.__name__)
def test_another_end_of_a_layer_is_refused(finish: Callable[..., Expr]) -> None:
    with pytest.raises(Unread):
        written(finish)


SORTS = {"acc": bv(32), "w": bv(8), "x": bv(8)}
STEPS: dict[str, Callable[[Expr, Expr, Expr], Expr]] = {
    "twice": lambda acc, w, x: acc + acc + adpfloat_mul(w, x),
    "where data are 0": lambda acc, w, x: ite(x == 0, acc + 1, acc + adpfloat_mul(w, x)),
    "where data are not 0": lambda acc, w, x: ite(x == 0, acc, acc + adpfloat_mul(w, x)),
    "the weight alone": lambda acc, w, x: acc + w.sext(32),
    "less": lambda acc, w, x: acc - adpfloat_mul(w, x),
}


@pytest.mark.parametrize("name", STEPS)
def test_another_sum_is_refused(name: str) -> None:
    with pytest.raises((Unread, Rejected)):
        written(step=primitive(bv(32), name="step", **SORTS)(lambda acc, w, x: STEPS[name](acc, w, x)))


def test_a_sum_in_blocks_has_no_name_for_its_loops() -> None:
    with pytest.raises(Unread):
        written(order=Order.BLOCKED)


def body_of(kernel: Kernel, change: Callable[[Statement], list[Statement]]) -> Kernel:
    def changed(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        inner = [replace(s, body=changed(s.body)) if isinstance(s, For) else s for s in body]
        return tuple(new for s in inner for new in change(s))

    first = [Let(var("acc", bv(32)), const(0, 32))] if change is keep_over_rows else []
    return Kernel(kernel.name, body=[*first, *changed(tuple(kernel.body))])


def begin_with_1(s: Statement) -> list[Statement]:
    return [replace(s, value=const(1, 32))] if isinstance(s, Let) and not s.update and s.target.name == "acc" else [s]


def store_elsewhere(s: Statement) -> list[Statement]:
    return [replace(s, memory=var("tensor_other", mem(32, 8)))] if isinstance(s, Store) else [s]


def keep_over_rows(s: Statement) -> list[Statement]:
    return [] if isinstance(s, Let) and not s.update and s.target.name == "acc" else [s]


def store_at_times(s: Statement) -> list[Statement]:
    often = ite(var("rows", bv(32)) == 1, const(1, 1), const(0, 1))
    return [For(var("when", bv(1)), often, (s,))] if isinstance(s, Store) else [s]


@pytest.mark.parametrize("change", [begin_with_1, store_elsewhere, keep_over_rows, store_at_times])
def test_another_kernel_is_refused(change: Callable[[Statement], list[Statement]]) -> None:
    (run,) = called(linear.ir_fragment(None))
    kernel = body_of(run.kernel, change)
    with pytest.raises(Unread):
        derivation_of(kernel, run.operands, "tensor_out", NAMES)


def test_a_state_that_is_not_0_at_first_is_refused() -> None:
    """The first timestep has no state: its register is 0, and so must be what a word of 0 gives."""
    operands = {name: bv(3) for name in ("bias",)}
    started = primitive(bv(20), name="started", code=bv(8), **operands)(
        lambda code, bias: sigmoid(adpfloat_to_fixed(code, bias))
    )
    for widen in (adpfloat_to_fixed, started):
        ila = recurrent_ir(replace(recurrent.cell_of("gru"), widen=widen))
        (instruction,) = ila.instructions.values()
        assert instruction.kernel is not None
        states = {s: s for n, s in ila.states.items() if n.startswith("bias")}
        names = flexasr._recurrent_names("gru")
        if widen is started:
            with pytest.raises(Unread, match=r"^state must be 0 where state_later is not reached"):
                derivation_of(instruction.kernel, states, "tensor_out", names)
        else:
            steps = derivation_of(instruction.kernel, states, "tensor_out", names).steps
            assert steps == OPERATORS["FlexASR GRU step"].steps


@pytest.mark.parametrize(
    "names",
    [
        replace(NAMES, loops={}),
        replace(NAMES, loops={"depth": ("i", "16")}),
        replace(NAMES, leaves={**NAMES.leaves, "weight": Leaf("x", "code", "w", "b_w")}),
        replace(NAMES, leaves={**NAMES.leaves, "element": Leaf("x", "code", "X", "b_w")}),
        replace(NAMES, leaves={**NAMES.leaves, "bias": Leaf("b", "fixed", "B")}),
        replace(NAMES, biases={}),
    ],
    ids=["no index", "16 values", "two leaves of one name", "another bias", "another form", "biases without names"],
)
def test_names_that_do_not_fit_are_refused(names: Names) -> None:
    with pytest.raises((Unread, Rejected)):
        written(names=names)


def test_a_primitive_of_the_same_name_is_not_the_lemmas() -> None:
    other = primitive(bv(20), name="pe_saturate", acc=bv(32))(lambda acc: acc[19:0])

    def finish(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
        return fixed_to_adpfloat(other(pe_add_bias(pe_shift(acc, bias_w, bias_x), b, bias_b)), bias_y)

    right = OPERATORS["FlexASR linear"]
    found = written(finish)
    assert found.steps == right.steps
    verdict = BoundSubject("bound-wrong", replace(right, derivation=lambda: found)).prove(Discharger())
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "lemmas are about other primitives than pe_saturate of the kernel"
