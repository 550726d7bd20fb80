"""Weights of 8 bits as HLSCNN's program gets them: rounded, and the channels of a block beside each other.

Host loops alone.  x has the filters that the graph has, as float32 numbers; y those of one program, from ``first`` on.
"""

from __future__ import annotations

from accel_models.fixed_point import EXPONENT_AT_0, exponents, float_to_fixed
from accel_models.hlscnn.layout import LANES
from ila_lang import Expr, Fragment, Kernel, bv, const, ite, mem, var
from ila_lang.mapping import TensorMapping
from rewrites.mappings.conversions import ASSUMPTION, SOURCE, TARGET, host
from rewrites.mappings.domain import between
from rewrites.mappings.packing import FIRST, SIZES, C, K, P, blocks, packing_fragment

BITS = 8
ROUND = float_to_fixed(BITS)
EXPONENT = var("exponent", bv(32))
PARAMETERS = {**SIZES, "exponent": EXPONENT}
PARAMETER_TEXTS = {
    "k": "filters of y",
    "first": "the first of them in x",
    "c": "channels",
    "taps": "taps of a filter",
    "exponent": "float32 exponent field of the number of code 1",
}
BLOCKS = blocks(LANES)
HOST_X, HOST_Y = var(SOURCE, mem(32, 32)), var(TARGET, mem(32, BITS))


DOMAIN: tuple[tuple[str, Expr], ...] = (
    between(K, 1, 255),
    between(FIRST, 0, 1 << 26),
    between(C, 1, 4095),
    between(P, 1, 65025),
    ("(first + k)*c*taps < 2^32", (FIRST.zext(64) + K.zext(64)) * C.zext(64) * P.zext(64) < 1 << 32),
    ("k*ceil(c/8)*taps <= 16384", K.zext(40) * BLOCKS.zext(40) * P.zext(40) <= 16384),
    between(EXPONENT, exponents(BITS)[0], exponents(BITS)[-1]),
)


def device_fragment() -> Fragment:
    """For each tap of a block of channels: round the weights of eight channels, 0 where there are none."""
    program = Kernel("hlscnn_pack")
    with (
        program.loop("filter", K) as f,
        program.loop("block", BLOCKS) as b,
        program.loop("tap", P) as t,
        program.loop("lane", const(LANES, 32)) as lane,
    ):
        channel = (b << 3) + lane
        number = HOST_X.load(((FIRST + f) * C + channel) * P + t)
        code = ite(channel < C, ROUND(number, EXPONENT[7:0]), const(0, BITS))
        program.store(HOST_Y, (((f * BLOCKS + b) * P + t) << 3) + lane, code)
    return Fragment(program.name, host(), PARAMETERS, {t.name: t for t in (HOST_X, HOST_Y)}, program)


def packing_mapping() -> TensorMapping:
    """The mapping ``hlscnn_pack``."""
    cell = tuple(
        (var(f"cell_{n}", bv(32)), e)
        for n, e in (("filter", K), ("block", BLOCKS), ("tap", P), ("lane", const(LANES, 32)))
    )
    return TensorMapping(
        name="hlscnn_pack",
        ir=packing_fragment("hlscnn_pack", ROUND, ("exponent",), LANES),
        device=device_fragment(),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=DOMAIN,
        rows=K,
        columns=BLOCKS * P << 3,
        cell=cell,
        inputs=((SOURCE, "tensor_in"),),
        output=(TARGET, "tensor_out"),
        lemmas=(),
        abstract=frozenset({ROUND.name}),
        sizes_of=sizes_of,
        statement="the host's loops round weights to codes and put eight channels beside each other, missing ones as 0",
        doc="Loops over filters, blocks, taps and lanes, on the host alone",
        assumptions=(ASSUMPTION,),
        shape_names=("filters", "first", "channels", "taps"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset(PARAMETERS) - {"exponent"},
        show_element=lambda code: str(code - (code >> 7 << 8)),
    )


SAMPLES = ((1, 0, 1, 1), (2, 1, 3, 4), (4, 0, 9, 3), (2, 3, 8, 2), (1, 1, 18, 6))


def sizes_of(filters: int, first: int, channels: int, taps: int) -> dict[str, int]:
    """Sizes for so many filters of x, from the first one on; codes stand for integers."""
    return {"k": filters, "first": first, "c": channels, "taps": taps, "exponent": EXPONENT_AT_0}
