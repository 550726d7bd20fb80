"""The published description of HLSCNN's convolution on Python integers, and a machine set up through its port.

Written from the description alone: loops, addresses and conversions are not those of the model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import floor

import numpy as np
from numpy.typing import NDArray

from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import HlscnnOptions
from ila_lang import Machine

SPAD0, SPAD1, SOC = 0x4000, 0x24000, 0x50000
ACTIVATIONS = 0x100  # their SoC address
BASE = SPAD1 + 0x100  # of the outputs
CHANNEL_BITS = {"implemented": (19, 27), "wide": (19, 31), "documented": (19, 22)}  # filters, enable_wb

Word = Callable[[int, int, int], int]


@dataclass(frozen=True)
class Layer:
    """One start of the convolution: sizes, switches, and operands as signed codes."""

    filters: int
    channels: int
    rows: int
    cols: int
    kernel_rows: int
    kernel_cols: int
    row_stride: int = 1
    col_stride: int = 1
    out_rows: int | None = None
    out_cols: int | None = None
    bias: int | None = None
    relu: bool = False
    accum: bool = False
    activations: tuple[int, ...] = field(default=(), repr=False)
    weights: tuple[int, ...] = field(default=(), repr=False)

    @property
    def blocks(self) -> int:
        return -(-self.channels // 8)

    @property
    def out_size(self) -> tuple[int, int]:
        """What OutputSize holds: by default what the convolution gives."""
        natural = (
            max((self.rows - self.kernel_rows) // self.row_stride + 1, 1),
            max((self.cols - self.kernel_cols) // self.col_stride + 1, 1),
        )
        return self.out_rows or natural[0], self.out_cols or natural[1]

    def activation(self, c: int, r: int, q: int) -> int:
        return self.activations[(c * self.rows + r) * self.cols + q] if c < self.channels else 0

    def weight(self, f: int, c: int, kr: int, kc: int) -> int:
        at = ((f * self.channels + c) * self.kernel_rows + kr) * self.kernel_cols + kc
        return self.weights[at] if c < self.channels else 0

    def with_data(self, seed: int, act: int = 1 << 15, wgt: int = 1 << 15) -> Layer:
        """The layer with random codes in -act .. act - 1 and -wgt .. wgt - 1."""
        rng = random.Random(seed)
        count = self.channels * self.rows * self.cols
        weights = self.filters * self.channels * self.kernel_rows * self.kernel_cols
        return replace(
            self,
            activations=tuple(rng.randrange(-act, act) for _ in range(count)),
            weights=tuple(rng.randrange(-wgt, wgt) for _ in range(weights)),
        )


def to_word(value: Fraction, fraction: int, rounding: str, saturate: bool) -> int:
    """A real number as a 16-bit word with so many fraction bits."""
    scaled = value * 2**fraction
    if rounding == "truncate":
        code = floor(scaled)
    elif rounding == "toward_zero":
        code = int(scaled)
    elif rounding == "half_up":
        code = floor(scaled + Fraction(1, 2))
    else:
        code = round(scaled)
    if saturate:
        return min(max(code, -(2**15)), 2**15 - 1)
    return (code + 2**15) % 2**16 - 2**15


def psum_of(layer: Layer, o: HlscnnOptions, f: int, blk: int, at: tuple[int, int], tap: tuple[int, int]) -> Fraction:
    """The sum over eight channels; each product is cut to the partial sum's fraction bits."""
    total = Fraction(0)
    shift = 8 if o.weight_bits == 8 else 0
    for lane in range(8):
        w = layer.weight(f, 8 * blk + lane, *tap) << shift
        product = Fraction(w * layer.activation(8 * blk + lane, *at), 2 ** (o.weight_fraction + o.activation_fraction))
        total += Fraction(floor(product * 2**o.psum_fraction), 2**o.psum_fraction)
    return total


def events(layer: Layer, o: HlscnnOptions) -> Iterator[tuple[int, int, int, int, int, int, int, int]]:
    """(filter, block, input row, input column, kernel row, kernel column, output row, output column), in order."""
    same = o.coordinates == "same"
    height, width = (layer.rows, layer.cols) if same else layer.out_size

    def target(i: int, k: int, size: int, stride: int, limit: int) -> int | None:
        where = i - k + size // 2 if same else (i - k) // stride if i >= k else -1
        return where if 0 <= where < limit else None

    for f in range(layer.filters):
        for blk in range(layer.blocks):
            for r in range(layer.rows):
                for c in range(layer.cols):
                    for kr in range(r % layer.row_stride, layer.kernel_rows, layer.row_stride):
                        for kc in range(c % layer.col_stride, layer.kernel_cols, layer.col_stride):
                            orow = target(r, kr, layer.kernel_rows, layer.row_stride, height)
                            ocol = target(c, kc, layer.kernel_cols, layer.col_stride, width)
                            if orow is not None and ocol is not None:
                                yield f, blk, r, c, kr, kc, orow, ocol


def place(layer: Layer, o: HlscnnOptions, f: int, orow: int, ocol: int) -> tuple[int, int]:
    """Entry from the output base on, and lane, of an output."""
    height, width = (layer.rows, layer.cols) if o.coordinates == "same" else layer.out_size
    plane, lane = (f // 8, f % 8) if o.outputs == "blocked" else (f, (layer.filters - 1) % 8)
    return plane * height * width + orow * width + ocol, lane


def convolve(
    layer: Layer, o: HlscnnOptions, old: dict[tuple[int, int], int] | None = None
) -> dict[tuple[int, int], int]:
    """SPAD1 after the start, from the output base on: signed words by (entry, lane); ``old`` is what it held."""
    spad = dict(old or {})
    saturate = o.overflow == "saturate"
    unit = Fraction(1, 2**o.output_fraction)
    for f, blk, r, c, kr, kc, orow, ocol in events(layer, o):
        tap = to_word(psum_of(layer, o, f, blk, (r, c), (kr, kc)), o.output_fraction, o.tap_rounding, saturate)
        where = place(layer, o, f, orow, ocol)
        first = kr == 0 and kc == 0 and blk == 0 and not layer.accum
        last = kr == layer.kernel_rows - 1 and kc == layer.kernel_cols - 1 and blk == layer.blocks - 1
        value = tap * unit + (0 if first else spad.get(where, 0) * unit)
        if last and layer.bias is not None:
            value += Fraction(layer.bias, 2**o.weight_fraction)
        if last and layer.relu:
            value = max(value, Fraction(0))
        if o.other_lanes == "cleared":
            spad.update({(where[0], lane): 0 for lane in range(8)})
        spad[where] = to_word(value, o.output_fraction, o.store_rounding, saturate)
    return spad


def convolution(
    x: NDArray[np.integer], w: NDArray[np.integer], o: HlscnnOptions, bias: int | None = None,
    stride: tuple[int, int] = (1, 1), relu: bool = False,
) -> NDArray[np.int16]:  # fmt: skip
    """What the loop makes of x [C, H, W] and w [F, C, KH, KW], a filter at a time: the outputs that all taps reach."""
    result = []
    for weights in w:
        layer = Layer(
            1, *x.shape, *w.shape[2:], *stride, bias=bias, relu=relu,
            activations=tuple(x.ravel().tolist()), weights=tuple(weights.ravel().tolist()),
        )  # fmt: skip
        spad, (rows, cols) = convolve(layer, o), layer.out_size
        same = o.coordinates == "same"
        inner = [
            (p * stride[0] + w.shape[2] // 2, q * stride[1] + w.shape[3] // 2) if same else (p, q)
            for p, q in product(range(rows), range(cols))
        ]
        result.append(np.reshape([spad[place(layer, o, 0, *at)] for at in inner], (rows, cols)))
    return np.array(result, np.int16)


# -- the model, driven through its port --------------------------------------------------------------------


def write(machine: Machine, addr: int, data: int = 0) -> str:
    return machine.step({"top_slave_if_wr": 1, "top_slave_addr_in": addr, "top_slave_data_in": data}).name


def read(machine: Machine, addr: int) -> int:
    machine.step({"top_slave_if_rd": 1, "top_slave_addr_in": addr})
    return machine.values["data_out"]


def set_register(machine: Machine, number: int, value: int) -> None:
    """Writes a register at its host address; its four bytes lie where the address points in the data word."""
    write(machine, 0x32000000 + 4 * number, value << 8 * (4 * number % 16))


def entries(codes: list[int], bits: int = 16) -> list[int]:
    """Codes of so many bits as words of 128 bits."""
    each = 128 // bits
    padded = codes + [0] * (-len(codes) % each)
    return [
        sum((code % 2**bits) << bits * i for i, code in enumerate(padded[at : at + each]))
        for at in range(0, len(padded), each)
    ]


def packed_activations(layer: Layer) -> list[int]:
    return [
        layer.activation(8 * blk + lane, r, c)
        for blk in range(layer.blocks)
        for r in range(layer.rows)
        for c in range(layer.cols)
        for lane in range(8)
    ]


def packed_weights(layer: Layer) -> list[int]:
    return [
        layer.weight(f, 8 * blk + lane, kr, kc)
        for f in range(layer.filters)
        for blk in range(layer.blocks)
        for kr in range(layer.kernel_rows)
        for kc in range(layer.kernel_cols)
        for lane in range(8)
    ]


@cache
def _machine(o: HlscnnOptions) -> Machine:
    return Machine(hlscnn(o))


def reset(o: HlscnnOptions) -> Machine:
    """A machine in its reset state; one object for each reading, since building one takes longer than a small layer."""
    machine = _machine(o)
    for memory in machine.memories.values():
        memory.clear()
    machine.values.update({name: machine.ila.inits[name] for name in machine.values})
    return machine


def start(
    layer: Layer,
    o: HlscnnOptions,
    old: dict[tuple[int, int], int] | None = None,
    driver: HlscnnOptions | None = None,
    *,
    port: bool = True,
) -> Machine:
    """A machine after the layer; ``driver`` packs ChannelCfg as another reading has it.

    Without ``port`` memories and registers are set directly, which is faster.
    """
    machine = reset(o)
    old_words = [0] * (max((entry for entry, _ in old or {}), default=-1) + 1)
    for (entry, lane), value in (old or {}).items():
        old_words[entry] |= (value % 2**16) << 16 * lane
    act_base = ACTIVATIONS if o.activations == "soc" else SPAD1 + 0x10000
    contents = {
        BASE: old_words,
        SPAD0 + 0x40: entries(packed_weights(layer), o.weight_bits),
        act_base if o.activations == "spad1" else SOC + act_base: entries(packed_activations(layer)),
    }
    for base, words in contents.items():
        (fill if port else poke)(machine, base, words)
    out_rows, out_cols = layer.out_size
    filters, wb = CHANNEL_BITS[(driver or o).channel_word]
    channel = (layer.bias or 0) % 2**16 | (layer.bias is not None) << 16 | layer.relu << 17 | layer.accum << 18
    registers = {
        18: ("act_base_addr", act_base),
        19: ("weight_base_addr", SPAD0 + 0x40),
        20: ("output_base_addr", BASE),
        21: ("input_size_cfg", layer.channels << 20 | layer.rows << 10 | layer.cols),
        22: ("output_size_cfg", layer.filters << 20 | out_rows << 10 | out_cols),
        23: (
            "kernel_size_cfg",
            layer.row_stride << 19 | layer.col_stride << 16 | layer.kernel_rows << 8 | layer.kernel_cols,
        ),
        24: ("channel_cfg", channel | layer.filters << filters | 1 << wb),
    }
    for number, (name, value) in registers.items():
        if port:
            set_register(machine, number, value)
        else:
            machine.values[f"cfg_reg_conv_{name}"] = value
    assert write(machine, 0x32000044) == "ACCEL_CONV_TRIGGER"
    return machine


def fill(machine: Machine, base: int, words: list[int]) -> None:
    """Writes entries to SoC memory, and through it to a scratchpad."""
    if base >= SOC:
        for i, word in enumerate(words):
            write(machine, base + 16 * i, word)
    elif words:
        fill(machine, SOC + 0x20000, words)
        set_register(machine, 4, 0x20000)
        set_register(machine, 5, len(words))
        write(machine, base)


def poke(machine: Machine, base: int, words: list[int]) -> None:
    """Puts entries into the memory at an address."""
    name, first = memory_at(base)
    for i, word in enumerate(words):
        for lane in range(8):
            machine.memories[name][(base - first) // 2 + 8 * i + lane] = word >> 16 * lane & 0xFFFF


def memory_at(base: int) -> tuple[str, int]:
    """The memory that an address lies in, and its first address."""
    if base >= SOC:
        return "virtual_soc_memory", SOC
    return ("scratch_pad_1", SPAD1) if base >= SPAD1 else ("scratch_pad_0", SPAD0)


def outputs(machine: Machine, count: int, *, port: bool = True) -> dict[tuple[int, int], int]:
    """Signed words of the first entries from the output base on that are not 0."""
    found = {}
    for entry in range(count):
        at = (BASE - SPAD1) // 2 + 8 * entry
        word = read(machine, BASE + 16 * entry) if port else 0
        for lane in range(8):
            code = word >> 16 * lane & 0xFFFF if port else machine.memories["scratch_pad_1"][at + lane]
            if code:
                found[entry, lane] = code - (code >> 15 << 16)
    return found


def without_zeros(words: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    return {where: value for where, value in words.items() if value}


def size_of(layer: Layer, o: HlscnnOptions) -> int:
    """Entries that hold the outputs."""
    height, width = (layer.rows, layer.cols) if o.coordinates == "same" else layer.out_size
    return (-(-layer.filters // 8) if o.outputs == "blocked" else layer.filters) * height * width


def run_layer(
    layer: Layer,
    o: HlscnnOptions,
    old: dict[tuple[int, int], int] | None = None,
    driver: HlscnnOptions | None = None,
    *,
    port: bool = False,
) -> dict[tuple[int, int], int]:
    """What the model leaves in SPAD1 from the output base on: signed words that are not 0, by (entry, lane)."""
    return outputs(start(layer, o, old, driver, port=port), size_of(layer, o), port=port)
