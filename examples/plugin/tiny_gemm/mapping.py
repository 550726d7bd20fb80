"""The mapping: tiny_gemm's program computes a dense layer of the tensor IR, for every size that the device holds.

Two program fragments stand side by side, and :func:`mapping` says what has to be equal, and when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Literal

from accel_models.command_program import format_commands
from ila_lang import Expr, Fragment, Ila, Kernel, bv, concat, const, false, ite, mem, primitive, true, var
from ila_lang.mapping import Lemma, Reduction, TensorMapping
from ir_semantics.layers.dense import DENSE_CODE, DenseOperator, dense_ir
from rewrites.mappings.claim import MappingClaim

from . import model

Fault = Literal["", "wraps", "weights lie n apart"]

M, K, N, SHIFT = (var(name, bv(32)) for name in ("m", "k", "n", "shift"))
PARAMETERS = {"m": M, "k": K, "n": N, "shift": SHIFT}
"""The sizes, left open: x has m rows of k elements, w has n rows of k, sums are shifted right by ``shift`` bits."""


# -- the IR side: one instruction of the tensor IR, with this accelerator's element types ----------------------------


@primitive(a=bv(8), b=bv(8))
def ir_product(a: Expr, b: Expr) -> Expr:
    """The product of two signed bytes."""
    return a.sext(32) * b.sext(32)


@primitive(bv(32), acc=bv(32), weight=bv(8), x=bv(8))
def ir_step(acc: Expr, weight: Expr, x: Expr) -> Expr:
    """The sum and one more product; wraps at 32 bits."""
    return acc + ir_product(x, weight)


@primitive(acc=bv(32), bias=bv(32), shift=bv(5))
def ir_requantise(acc: Expr, bias: Expr, shift: Expr) -> Expr:
    """The sum with the bias, divided by 2^shift, rounded down, at least -128 and at most 127."""
    total = (acc + bias).ashr(shift.zext(32))
    low, high = const(-128 & 0xFFFFFFFF, 32), const(127, 32)
    bounded = ite(total.slt(low), low, ite(high.slt(total), high, total))
    return bounded[7:0]


@primitive(a=bv(32), b=bv(32))
def ir_add(a: Expr, b: Expr) -> Expr:
    """What sums are made with; wraps at 32 bits, so that their order does not matter (for the method hash)."""
    return a + b


DENSE = DenseOperator(ir_step, ir_requantise, {"shift": 5}, ir_add)


def ir_fragment() -> Fragment:
    """One dense layer: y[r, c] = requantise(sum over i of x[r, i] * w[c, i], b[c], shift)."""
    program = Kernel("ir_dense")
    program.command(
        "dense layer",
        func_run=true,
        func_id=const(DENSE_CODE, 8),
        rows_in=M,
        features_in_in=K,
        features_out_in=N,
        shift_in=SHIFT[4:0],
    )
    return Fragment("ir_dense", dense_ir(DENSE), PARAMETERS, {}, program)


# -- the device's side: the driver's program -------------------------------------------------------------------------

HOST_X, HOST_W, HOST_B = var("host_x", mem(32, 8)), var("host_w", mem(32, 8)), var("host_b", mem(32, 32))
HOST_Y = var("host_y", mem(32, 8))


def device_fragment(ila: Ila, fault: Fault = "") -> Fragment:
    """Write x, w, b and the sizes; clear, multiply, requantise; read y."""
    program = Kernel("tiny_gemm_program")

    def write(note: str, region: int, at: Expr | int, data: Expr) -> None:
        # a literal beside the part that varies: so it is plain which instruction a command is
        place = const(at, 12) if isinstance(at, int) else at[11:0]
        program.command(note, write=true, read=false, address=concat(const(region, 4), place), data=data)

    with program.loop("xr", M) as r, program.loop("xi", K) as i:
        write("write x", model.INPUT, r * K + i, HOST_X.load(r * K + i).zext(32))
    with program.loop("wr", N) as r, program.loop("wi", K) as i:
        at = r * (N if fault == "weights lie n apart" else K) + i
        write("write w", model.WEIGHT, at, HOST_W.load(r * K + i).zext(32))
    with program.loop("bc", N) as c:
        write("write b", model.BIAS, c, HOST_B.load(c))
    for register, value in ((model.ROWS, M), (model.DEPTH, K), (model.COLUMNS, N), (model.SHIFT, SHIFT)):
        write("configure", model.REGISTERS, register, value)
    for operation in (model.CLEAR, model.GEMM, model.REQUANTISE):
        write("start", model.REGISTERS, operation, const(1, 32))
    with program.loop("yr", M) as r, program.loop("yc", N) as c:
        place = concat(const(model.ACCUMULATOR, 4), (r * N + c)[11:0])
        program.command("read y", write=false, read=true, address=place, data=const(0, 32))
        program.store(HOST_Y, r * N + c, ila.states["data_out"][7:0])
    tensors = {tensor.name: tensor for tensor in (HOST_X, HOST_W, HOST_B, HOST_Y)}
    return Fragment("tiny_gemm_program", ila, PARAMETERS, tensors, program)


def setup_commands(registers: Mapping[str, int], memories: Mapping[str, Mapping[int, int]]) -> list[Mapping[str, int]]:
    """Writes that put memories and registers in given contents: with these, program files of counterexamples begin."""
    written = [
        (region << 12 | at, word)
        for region, name in enumerate(("input", "weight", "bias", "accumulator"))
        for at, word in memories.get(name, {}).items()
    ]
    written += [
        (model.REGISTERS << 12 | number, registers.get(name, 0))
        for number, name in enumerate(("rows", "depth", "columns", "shift"))
    ]
    return [{"write": 1, "read": 0, "address": address, "data": data} for address, data in written]


# -- the claim -------------------------------------------------------------------------------------------------------


def sizes_of(rows: int, features_in: int, features_out: int) -> dict[str, int]:
    """The sizes for a shape, with a shift by 7 bits; whether they lie in the domain is looked at afterwards."""
    return {"m": rows, "k": features_in, "n": features_out, "shift": 7}


def _between(name: str, low: int, high: int) -> tuple[str, Expr]:
    value = PARAMETERS[name]
    return f"{low} <= {name} <= {high}", (const(low, 32) <= value) & (value <= high)


def mapping(fault: Fault = "") -> TensorMapping:
    """The claim that both sides leave equal bytes in y; with a fault it is false."""
    a, b = var("a", bv(8)), var("b", bv(8))
    acc, bias, shift = var("acc", bv(32)), var("bias", bv(32)), var("by", bv(5))
    requantise = model.wrapping_requantise if fault == "wraps" else model.device_requantise
    return TensorMapping(
        name="tiny_gemm_dense",
        ir=ir_fragment(),
        device=device_fragment(model.device(fault == "wraps"), fault),
        parameters=PARAMETERS,
        parameter_texts={"m": "rows", "k": "input features", "n": "output features", "shift": "bits"},
        domain=(
            *(_between(name, 1, model.ELEMENTS) for name in ("m", "k", "n")),
            ("m*k <= 4096 inputs", M * K <= model.ELEMENTS),
            ("k*n <= 4096 weights", K * N <= model.ELEMENTS),
            ("m*n <= 4096 accumulators", M * N <= model.ELEMENTS),
            ("shift <= 31", SHIFT <= 31),
        ),
        rows=M,
        columns=N,
        inputs=(("host_x", "tensor_in"), ("host_w", "tensor_weights"), ("host_b", "tensor_bias")),
        output=("host_y", "tensor_out"),
        lemmas=(
            Lemma("the device's product is the IR's", model.device_product(a, b), ir_product(a, b)),
            Lemma("the device's byte is the IR's", requantise(acc, bias, shift), ir_requantise(acc, bias, shift)),
        ),
        abstract=frozenset({model.device_product.name, ir_product.name, requantise.name, ir_requantise.name}),
        sizes_of=sizes_of,
        statement="tiny_gemm's program computes the dense layer x w^T + b of bytes, shifted right and saturated",
        assumptions=("commands arrive one at a time, and the host waits for the end of an operation",),
        program_file=partial(format_commands, show=("data_out",)),
        setup_commands=setup_commands,
        shape_names=("rows", "features_in", "features_out"),
        sample_shapes=((1, 1, 1), (1, 3, 2), (2, 2, 3), (3, 4, 2), (4, 3, 5), (2, 16, 8)),
        shape_parameters=frozenset({"m", "k", "n"}),
        sums=(Reduction(ir_add, 0),),
    )


def _named(name: str, fault: Fault) -> TensorMapping:
    return replace(mapping(fault), name=name)


DENSE_LAYER: Final = MappingClaim(
    "tiny_gemm_dense", "a dense layer of bytes with bias and requantisation, on tiny_gemm", mapping
)
CLAIMS: Final = (
    DENSE_LAYER,
    MappingClaim(
        "tiny_gemm_wraps",
        "the same where bytes are the low bits of sums",
        partial(_named, "tiny_gemm_wraps", "wraps"),
        false="hardware that does not saturate",
    ),
    MappingClaim(
        "tiny_gemm_weights",
        "the same where the driver takes n for the length of a row of weights",
        partial(_named, "tiny_gemm_weights", "weights lie n apart"),
        false="a driver that no test with n = k finds out",
    ),
)
"""The claims: one that is proved, and two that are kept because they must be refuted."""
