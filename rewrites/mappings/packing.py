"""Conversions of filters by which channels lie beside each other: host loops alone, as those of boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ila_lang import Expr, Fragment, Function, bv, const, var
from ir_semantics.layers.layer import bits, call
from ir_semantics.layers.packing import PACKING_CODE, packing_ir
from ir_semantics.tensors.index import index
from ir_semantics.tensors.operators import pad, reshape, transpose
from ir_semantics.tensors.terms import Tensor

from .conversions import SOURCE, Box, ConversionClaim

K, FIRST, C, P = (var(n, bv(32)) for n in ("k", "first", "c", "taps"))
SIZES = {v.name: v for v in (K, FIRST, C, P)}
"""Filters of y, the first of them in x, channels, and taps of a filter."""


def blocks(lanes: int) -> Expr:
    """How many blocks of so many channels, a power of two, there are."""
    return (C + (lanes - 1)) >> (lanes.bit_length() - 1)


def packing_fragment(name: str, function: Function, formats: Sequence[str], lanes: int) -> Fragment:
    """One packing instruction, of a function of elements and ``formats``."""
    formed = {n: var(n, bv(32)) for n in formats}
    operands = {"rows": K, "first": FIRST, "channels": C, "places": P}
    for (format_name, value), parameter in zip(formed.items(), function.params[1:], strict=True):
        operands[format_name] = value[bits(parameter.sort) - 1 : 0]
    ila = packing_ir(function, tuple(formats), lanes)
    return call(f"ir_{name}", "round and pack filters", PACKING_CODE, ila, SIZES | formed, operands)


def packed(x: Tensor, lanes: int) -> Tensor:
    """Filters [f, c, ...] as [f, blocks, ..., lanes], with zeros behind the channels."""
    filters, channels, *taps = x.shape
    count = (channels + (lanes - 1)) // lanes
    filled = pad(x, [0] * x.rank, [0, count * lanes - channels, *(0 for _ in taps)])
    apart = reshape(filled, filters, count, index(lanes), *taps)
    return transpose(apart, [0, 1, *range(3, apart.rank), 2])


@dataclass(frozen=True, eq=False)
class PackingClaim(ConversionClaim):
    """The conversion of whole filters x [.., channels, taps] to y [filters, blocks, taps, lanes]."""

    lanes: int = 8

    def of(self, kind: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The extents of x as far as it is read ("X"), and of y ("Y")."""
        channels, taps = sizes["c"], sizes["taps"]
        if kind == "X":
            return sizes["first"] + sizes["k"], channels, taps
        return sizes["k"], -(-channels // self.lanes), taps, self.lanes

    def moved(self, sizes: Mapping[str, int]) -> tuple[Box, tuple[int, ...]]:
        """Whole filters, and the beginning of y."""
        end = self.of("X", sizes)
        return Box((sizes["first"], *(0 for _ in end[1:])), end), self.box(sizes).first

    def box(self, sizes: Mapping[str, int]) -> Box:
        """All of y."""
        whole = self.of("Y", sizes)
        return Box((0,) * len(whole), whole)

    def _fragment(self, function: Function) -> Fragment:
        return packing_fragment(self.name, function, self.formats, self.lanes)

    def _whole(self) -> list[Expr]:
        return [K, blocks(self.lanes), P, const(self.lanes, 32)]

    @property
    def _inputs(self) -> tuple[tuple[str, str], ...]:
        return ((SOURCE, "tensor_in"),)
