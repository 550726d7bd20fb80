"""Weights of 8 bits as HLSCNN's program gets them: rounded, and the channels of a block beside each other.

Host loops alone.  x has the filters that the graph has, as float32 numbers; y those of one program, from ``first`` on.
"""

from __future__ import annotations

from collections.abc import Mapping

from accel_models.fixed_point import EXPONENT_AT_0, exponents, float_to_fixed
from accel_models.hlscnn.layout import LANES
from ila_lang import Expr, Fragment, Kernel, bv, const, ite, mem, var
from ila_lang.mapping import TensorMapping
from ir_semantics.layers.layer import call
from ir_semantics.layers.packing import PACKING_CODE, packing_ir
from rewrites.mappings.conversions import ASSUMPTION, SOURCE, TARGET, Box, ConversionClaim, host
from rewrites.mappings.domain import between

BITS = 8
ROUND = float_to_fixed(BITS)
K, FIRST, C, P, EXPONENT = (var(n, bv(32)) for n in ("k", "first", "c", "taps", "exponent"))
PARAMETERS = {v.name: v for v in (K, FIRST, C, P, EXPONENT)}
PARAMETER_TEXTS = {
    "k": "filters of y",
    "first": "the first of them in x",
    "c": "channels",
    "taps": "taps of a filter",
    "exponent": "float32 exponent field of the number of code 1",
}
BLOCKS = (C + (LANES - 1)) >> 3
HOST_X, HOST_Y = var(SOURCE, mem(32, 32)), var(TARGET, mem(32, BITS))


class PackingClaim(ConversionClaim):
    """The conversion of :func:`packing_mapping`: x [.., channels, taps] to y [filters, blocks, taps, lanes]."""

    def of(self, kind: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The extents of x as far as it is read ("X"), and of y ("Y")."""
        channels, taps = sizes["c"], sizes["taps"]
        if kind == "X":
            return sizes["first"] + sizes["k"], channels, taps
        return sizes["k"], -(-channels // LANES), taps, LANES

    def moved(self, sizes: Mapping[str, int]) -> tuple[Box, tuple[int, ...]]:
        """Whole filters, and the beginning of y."""
        end = self.of("X", sizes)
        return Box((sizes["first"], *(0 for _ in end[1:])), end), self.box(sizes).first

    def box(self, sizes: Mapping[str, int]) -> Box:
        """All of y."""
        whole = self.of("Y", sizes)
        return Box((0,) * len(whole), whole)


DOMAIN: tuple[tuple[str, Expr], ...] = (
    between(K, 1, 255),
    between(FIRST, 0, 1 << 26),
    between(C, 1, 4095),
    between(P, 1, 65025),
    ("(first + k)*c*taps < 2^32", (FIRST.zext(64) + K.zext(64)) * C.zext(64) * P.zext(64) < 1 << 32),
    ("k*ceil(c/8)*taps <= 16384", K.zext(40) * BLOCKS.zext(40) * P.zext(40) <= 16384),
    between(EXPONENT, exponents(BITS)[0], exponents(BITS)[-1]),
)


def ir_fragment() -> Fragment:
    """One packing instruction."""
    operands = {"rows": K, "first": FIRST, "channels": C, "places": P, "exponent": EXPONENT[7:0]}
    ila = packing_ir(ROUND, ("exponent",), LANES)
    return call("ir_pack", "round and pack w", PACKING_CODE, ila, PARAMETERS, operands)


def packing_fragment() -> Fragment:
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
        ir=ir_fragment(),
        device=packing_fragment(),
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
