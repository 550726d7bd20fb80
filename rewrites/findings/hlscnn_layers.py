"""Single starts of HLSCNN's convolution, drawn and shrunk by Hypothesis, and run on the interpreter.

A :class:`Layer` says what the registers and memories hold before the start, also what no driver would write: output
sizes that do not fit, kernels larger than the input, old contents of the output's memory.  It runs as a program at the
port, so a finding replays in the form in which it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from accel_models.hlscnn.config import INPUT_SIZE, KERNEL_SIZE, OUTPUT_SIZE, channel_word
from accel_models.hlscnn.layout import (
    ENTRY_BYTES,
    HOST_BASE,
    LANES,
    SOC_BASE,
    SPAD0_BASE,
    SPAD1_BASE,
    Register,
    register_address,
)
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.options import HlscnnOptions
from accel_models.hlscnn.program import PORT
from accel_models.mmio_program import ProgramCommand
from ila_lang import Machine
from rewrites.mappings.hlscnn.operations import packed

from .finding import require

Words = dict[tuple[int, int], int]
"""Signed words of SPAD1 that are not 0, by (entry from the output's base on, lane)."""

CODES = st.integers(-(1 << 15), (1 << 15) - 1)
BYTES = st.integers(-128, 127)

# Places of operands: SoC entries of activations, weights and old outputs; all fit for what layers() draws.
_ACTIVATIONS, _WEIGHTS, _OLD = 0x10, 0x800, 0x1000
_ACTIVATIONS_IN_SPAD1 = SPAD1_BASE + 0x10000
_OUTPUTS = SPAD1_BASE + 0x100


@dataclass(frozen=True)
class Layer:
    """One start of the convolution: sizes, switches, and operands as signed codes.

    ``activations`` are in the order (channel, row, column), ``weights`` (filter, channel, kernel row, kernel column);
    ``out_rows`` and ``out_cols`` are what OutputSize holds, by default what the convolution gives.
    """

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
        """How many blocks of 8 channels there are."""
        return -(-self.channels // LANES)

    @property
    def out_size(self) -> tuple[int, int]:
        """The rows and columns that OutputSize holds."""
        natural = (
            max((self.rows - self.kernel_rows) // self.row_stride + 1, 1),
            max((self.cols - self.kernel_cols) // self.col_stride + 1, 1),
        )
        return self.out_rows or natural[0], self.out_cols or natural[1]

    @property
    def fits(self) -> bool:
        """Whether the kernel is not larger than the input."""
        return self.kernel_rows <= self.rows and self.kernel_cols <= self.cols

    def activation(self, c: int, r: int, q: int) -> int:
        """The activation of channel ``c`` at row ``r``, column ``q``; 0 where there is no such channel."""
        return self.activations[(c * self.rows + r) * self.cols + q] if c < self.channels else 0

    def weight(self, f: int, c: int, kr: int, kc: int) -> int:
        """The weight of filter ``f``, channel ``c`` and tap (``kr``, ``kc``); 0 where there is no such channel."""
        at = ((f * self.channels + c) * self.kernel_rows + kr) * self.kernel_cols + kc
        return self.weights[at] if c < self.channels else 0

    def __str__(self) -> str:
        """Sizes and switches in words, without operands."""
        size = f"input {self.channels} × {self.rows} × {self.cols}, kernel {self.kernel_rows} × {self.kernel_cols}"
        parts = [f"{self.filters} filter{'s' if self.filters > 1 else ''}", size]
        if (self.row_stride, self.col_stride) != (1, 1):
            parts.append(f"stride {self.row_stride} × {self.col_stride}")
        if self.out_rows or self.out_cols:
            parts.append("OutputSize {} × {}".format(*self.out_size))
        if self.bias is not None:
            parts.append(f"bias {self.bias}")
        return ", ".join(parts + ["ReLU"] * self.relu + ["accumulating"] * self.accum)


# -- running --------------------------------------------------------------------------------------------------


def program_of(
    layer: Layer, options: HlscnnOptions, old: Words | None = None, driver: HlscnnOptions | None = None
) -> list[ProgramCommand]:
    """The commands up to the start; ``old`` is what SPAD1 holds, ``driver`` how ChannelCfg is packed."""
    shape = (layer.channels, layer.rows, layer.cols)
    taps = (layer.filters, layer.channels, layer.kernel_rows, layer.kernel_cols)
    commands: list[ProgramCommand] = []

    def put(register: Register, value: int) -> None:
        address = register_address(register)
        commands.append(ProgramCommand("W", address, value << 8 * (address % ENTRY_BYTES)))

    def host(entry: int, words: list[int]) -> None:
        for i, word in enumerate(words, entry):
            commands.append(ProgramCommand("W", HOST_BASE + SOC_BASE + ENTRY_BYTES * i, word))

    def copy(entry: int, words: list[int], target: int) -> None:
        if words:
            host(entry, words)
            put(Register.SOC_MEM_BASE_ADDR, ENTRY_BYTES * entry)
            put(Register.SOC_MEM_RD_WR_LENGTH, len(words))
            commands.append(ProgramCommand("W", HOST_BASE + target))

    activations = _memory(packed(np.array(layer.activations).reshape(1, *shape)), 16)
    base = ENTRY_BYTES * _ACTIVATIONS
    if options.activations == "soc":
        host(_ACTIVATIONS, activations)
    else:
        base = _ACTIVATIONS_IN_SPAD1
        copy(_ACTIVATIONS, activations, base)
    copy(_WEIGHTS, _memory(packed(np.array(layer.weights).reshape(taps)), options.weight_bits), SPAD0_BASE)
    copy(_OLD, _entries(old or {}), _OUTPUTS)
    put(Register.CONV_ACT_BASE_ADDR, base)
    put(Register.CONV_WEIGHT_BASE_ADDR, SPAD0_BASE)
    put(Register.CONV_OUTPUT_BASE_ADDR, _OUTPUTS)
    put(Register.CONV_INPUT_SIZE_CFG, INPUT_SIZE.pack(channels=layer.channels, rows=layer.rows, cols=layer.cols))
    out_rows, out_cols = layer.out_size
    put(Register.CONV_OUTPUT_SIZE_CFG, OUTPUT_SIZE.pack(channels=layer.filters, rows=out_rows, cols=out_cols))
    kernel = {"rows": layer.kernel_rows, "cols": layer.kernel_cols}
    strides = {"row_stride": layer.row_stride, "col_stride": layer.col_stride}
    put(Register.CONV_KERNEL_SIZE_CFG, KERNEL_SIZE.pack(**kernel, **strides))
    # a field that is too narrow for the filters loses their high bits, as a driver's shift would
    channel = channel_word(driver or options)
    switches = {
        "enable_bias": int(layer.bias is not None),
        "enable_relu": int(layer.relu),
        "enable_accum": int(layer.accum),
        "bias": (layer.bias or 0) & 0xFFFF,
    }
    put(
        Register.CONV_CHANNEL_CFG, channel.pack(**switches, enable_wb=1) | layer.filters << channel.fields["filters"][1]
    )
    put(Register.CONV_TRIGGER, 0)
    return commands


def _memory(codes: NDArray[np.integer], bits: int) -> list[int]:
    """Codes in memory order as entries, the last one filled with zeros."""
    raw = codes.astype(f"<i{bits // 8}").tobytes()
    raw += bytes(-len(raw) % ENTRY_BYTES)
    return [int.from_bytes(raw[i : i + ENTRY_BYTES], "little") for i in range(0, len(raw), ENTRY_BYTES)]


def _entries(words: Words) -> list[int]:
    entries = [0] * (max((entry for entry, _ in words), default=-1) + 1)
    for (entry, lane), value in words.items():
        entries[entry] |= (value & 0xFFFF) << 16 * lane
    return entries


@cache
def _machine(options: HlscnnOptions) -> Machine:
    """One machine per reading, since building one takes longer than running a small layer."""
    return Machine(hlscnn(options))


def run_layer(
    layer: Layer, options: HlscnnOptions, old: Words | None = None, driver: HlscnnOptions | None = None
) -> Words:
    """What the model leaves in SPAD1 from the output's base on, in the entries that the layer's outputs take."""
    machine = _machine(options)
    for memory in machine.memories.values():
        memory.clear()
    machine.values.update({name: machine.ila.inits.get(name, 0) for name in machine.values})
    for command in program_of(layer, options, old, driver):
        machine.step(PORT.inputs(command))
    first = (_OUTPUTS - SPAD1_BASE) // 2
    count = LANES * _size(layer, options)
    words = ((address - first, word) for address, word in machine.memories["scratch_pad_1"].items() if word)
    return {(at // LANES, at % LANES): _signed(word) for at, word in words if 0 <= at < count}


def replayed(
    layer: Layer, options: HlscnnOptions, old: Words | None = None, driver: HlscnnOptions | None = None
) -> Words:
    """:func:`run_layer` on a new machine, with the outputs read at the port.

    Raises NotFound where the result differs.
    """
    machine = Machine(hlscnn(options))
    commands = program_of(layer, options, old, driver)
    words = []
    for entry in range(_size(layer, options)):
        commands.append(ProgramCommand("R", HOST_BASE + _OUTPUTS + ENTRY_BYTES * entry))
    for command in commands:
        machine.step(PORT.inputs(command))
        if command.mode == "R":
            words.append(machine.values["data_out"])
    lanes = {
        (entry, lane): _signed(word >> 16 * lane & 0xFFFF) for entry, word in enumerate(words) for lane in range(LANES)
    }
    outputs = {where: value for where, value in lanes.items() if value}
    require(outputs == run_layer(layer, options, old, driver), f"layer ({layer}) does not replay on a new machine")
    return outputs


def _size(layer: Layer, options: HlscnnOptions) -> int:
    """Entries that hold the outputs."""
    height, width = (layer.rows, layer.cols) if options.coordinates == "same" else layer.out_size
    return (-(-layer.filters // LANES) if options.outputs == "blocked" else layer.filters) * height * width


def _signed(word: int) -> int:
    return word - (word >> 15 << 16)


# -- searching ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Most:
    """The largest sizes of layers that are drawn; with ``out_rows`` OutputSize need not be what it should."""

    filters: int = 2
    channels: int = 2
    rows: int = 3
    kernel: int = 3
    stride: int = 2
    out_rows: int = 0


SMALL = Most()


@st.composite
def layers(
    draw: st.DrawFn,
    most: Most = SMALL,
    *,
    codes: st.SearchStrategy[int] = CODES,
    weights: st.SearchStrategy[int] = BYTES,
) -> Layer:
    """Layers up to the given sizes with any operands.

    Activations and the bias are drawn from ``codes``, weights from ``weights``: bytes are codes of either width.
    """
    f, c = draw(st.integers(1, most.filters)), draw(st.integers(1, most.channels))
    h, w = draw(st.integers(1, most.rows)), draw(st.integers(1, min(most.rows, 3)))
    kr, kc = draw(st.integers(1, most.kernel)), draw(st.integers(1, min(most.kernel, 3)))
    sr, sc = draw(st.integers(1, most.stride)), draw(st.integers(1, min(most.stride, 2)))
    out = draw(st.integers(1, most.out_rows)) if most.out_rows else None
    bias = draw(st.none() | codes)
    layer = Layer(f, c, h, w, kr, kc, sr, sc, out_rows=out, bias=bias, relu=draw(st.booleans()))
    # the operands are a few codes, repeated: shrinking has little to do
    acts = draw(st.lists(codes, min_size=1, max_size=6))
    wgts = draw(st.lists(weights, min_size=1, max_size=6))
    return replace(layer, activations=_repeat(acts, c * h * w), weights=_repeat(wgts, f * c * kr * kc))


def _repeat(codes: list[int], count: int) -> tuple[int, ...]:
    return tuple(codes[i % len(codes)] for i in range(count))


def differs(left: HlscnnOptions, right: HlscnnOptions, driver: HlscnnOptions | None = None) -> Callable[[Layer], bool]:
    """Whether two readings leave different words in SPAD1 after a layer; ``driver`` packs ChannelCfg its way."""
    return lambda layer: run_layer(layer, left, driver=driver) != run_layer(layer, right, driver=driver)


def operands(layer: Layer) -> str:
    """The codes of activations and weights, as text."""
    return f"{list(layer.activations)} and {list(layer.weights)}"


def shown(words: Mapping[tuple[int, int], int]) -> str:
    """Words as text: those of each entry from lane 0 on, up to the last that is not 0.

    >>> shown({(0, 1): 7, (2, 0): -1})
    'entry 0: 0, 7; entry 2: -1'
    """
    entries = sorted({entry for entry, _ in words})
    lanes = {entry: max(lane for e, lane in words if e == entry) + 1 for entry in entries}
    listed = (f"entry {e}: " + ", ".join(str(words.get((e, lane), 0)) for lane in range(lanes[e])) for e in entries)
    return "; ".join(listed) or "all 0"
