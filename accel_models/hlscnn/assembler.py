"""From a convolution of tensors to HLSCNN's commands, and from what they read back to the output tensor.

Padding is done on the host; so is the filling of the last channel block with zeros.  In "same" coordinates the
hardware also computes outputs at the borders that no tap (0, 0) or no last tap reaches.  They are not read: inside
them lies exactly the convolution without padding, at every stride.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .config import INPUT_SIZE, KERNEL_SIZE, OUTPUT_SIZE, channel_word
from .layout import ENTRY_BYTES, HOST_BASE, LANES, SOC_BASE, SPAD0_BASE, SPAD1_BASE, Register, register_address
from .options import HlscnnOptions
from .program import Program, ProgramCommand
from .tiling import Shape, tile

__all__ = ["Convolution", "conv2d", "pack_activations", "pack_weights"]

Codes = NDArray[np.int16]
_Pair = int | tuple[int, int]
_Padding = int | tuple[int, int] | tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class _Start:
    """One start of the convolution: its filters and output rows."""

    filters: range
    rows: range


@dataclass(frozen=True, eq=False)
class Convolution:
    """An assembled convolution: the program, and where in its reads the outputs are.

    ``shape`` is (filters, output rows, output columns).
    """

    program: Program
    shape: tuple[int, int, int]
    options: HlscnnOptions
    starts: tuple[_Start, ...]

    def outputs(self, reads: Iterable[tuple[int, int]]) -> Codes:
        """The output tensor (int16 codes) from the reads of a run of :attr:`program`.

        Raises ValueError if there are more or fewer reads than the program makes.
        """
        words = [word for _, word in reads]
        expected = sum(command.mode == "R" for command in self.program.commands)
        if len(words) != expected:
            raise ValueError(
                f"Reads of a convolution must be the {expected} of its program, not {len(words)}; pass what run returns"
            )
        data = np.frombuffer(b"".join(w.to_bytes(ENTRY_BYTES, "little") for w in words), dtype="<i2")
        lanes = data.reshape(-1, LANES)
        result = np.zeros(self.shape, dtype=np.int16)
        at = 0
        for start in self.starts:
            filters, rows = start.filters, start.rows
            planes, width = len(_planes(filters, self.options)), len(rows) * self.shape[2]
            part = lanes[at : at + planes * width].reshape(planes, len(rows), self.shape[2], LANES)
            at += planes * width
            if self.options.outputs == "blocked":
                tensor = part.transpose(0, 3, 1, 2).reshape(-1, len(rows), self.shape[2])[: len(filters)]
            else:
                tensor = part[..., (len(filters) - 1) % LANES]
            result[filters.start : filters.stop, rows.start : rows.stop] = tensor
        return result


def conv2d(
    activations: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    stride: _Pair = 1,
    padding: _Padding = 0,
    relu: bool = False,
    options: HlscnnOptions | None = None,
    dma_entries: int | None = None,
) -> Convolution:
    """The program of a convolution, in one start or in as many as the memories need.

    ``activations`` are codes of shape (channels, rows, columns), ``weights`` of (filters, channels, kernel rows,
    kernel columns), both in the formats of ``options`` (:mod:`accel_models.hlscnn.quantise`); ``bias`` are codes per
    filter, or None.  ``stride`` and ``padding`` are one number, or one for rows and one for columns; padding also
    ((top, bottom), (left, right)).  A start has one bias: where they differ, each filter gets a start of its own,
    which uses one lane of eight in SPAD1.  ``dma_entries`` limits a transfer; the published driver's notes say that
    only transfers of one entry may work in hardware.

    Raises TypeError or ValueError where operands do not match, do not fit their formats, or do not fit the registers
    and memories.
    """
    o = options or HlscnnOptions()
    x = _codes("activations", activations, 3, 16)
    w = _codes("weights", weights, 4, o.weight_bits)
    if x.shape[0] != w.shape[1]:
        raise ValueError(f"weights must have as many channels as activations, {x.shape[0]}, not {w.shape[1]}")
    b = np.zeros(w.shape[0], np.int64) if bias is None else _codes("bias", bias, 1, 16)
    if b.shape != w.shape[:1]:
        raise ValueError(f"bias must have one code per filter, {w.shape[0]}, not {b.shape[0]}")
    if dma_entries is not None and dma_entries < 1:
        raise ValueError(f"dma_entries must be at least 1, not {dma_entries}")
    (top, bottom), (left, right) = _padding(padding)
    x = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    stride = (stride, stride) if isinstance(stride, int) else stride
    shape = Shape(w.shape[0], x.shape[0], x.shape[1], x.shape[2], (w.shape[2], w.shape[3]), stride)
    if min(shape.rows - w.shape[2], shape.columns - w.shape[3]) < 0:
        raise ValueError(
            f"Kernel must be at most as large as the padded input, {shape.rows} x {shape.columns}, "
            f"not {w.shape[2]} x {w.shape[3]}; add padding"
        )
    tiling = tile(shape, o, one_by_one=len(set(b.tolist())) > 1)
    writer = _Writer(shape, o, relu, bias is not None, dma_entries)
    starts: list[_Start] = []
    for rows in _ranges(range(shape.outputs[0]), tiling.rows):
        first = rows.start * stride[0]
        writer.load_activations(x[:, first : first + shape.input_rows(len(rows))])
        for group in _ranges(range(shape.filters), tiling.group):
            writer.load_weights(w[group.start : group.stop])
            for filters in _ranges(group, tiling.start):
                writer.start(filters, group.start, len(rows), int(b[filters.start]))
                starts.append(_Start(filters, rows))
    return Convolution(Program(tuple(writer.commands), waits=False), (shape.filters, *shape.outputs), o, tuple(starts))


def pack_activations(activations: NDArray[np.integer]) -> list[int]:
    """The entries (128 bits) of activations of shape (channels, rows, columns): blocks of 8 channels, then pixels."""
    return _entries(_blocked(activations, axis=0).transpose(0, 2, 3, 1), 16)


def pack_weights(weights: NDArray[np.integer], bits: int) -> list[int]:
    """The entries of weights of shape (filters, channels, kernel rows, kernel columns) of 8 or 16 bits."""
    return _entries(_blocked(weights, axis=1).transpose(0, 1, 3, 4, 2), bits)


class _Writer:
    """Collects the commands."""

    def __init__(self, shape: Shape, options: HlscnnOptions, relu: bool, biased: bool, dma_entries: int | None) -> None:
        self.shape, self.options, self.relu, self.biased = shape, options, relu, biased
        self.dma_entries = dma_entries
        self.commands: list[ProgramCommand] = []
        self.registers: dict[Register, int] = {}
        self.inputs = 0  # entries of the activations in SoC memory
        self.outputs = SPAD1_BASE

    def load_activations(self, activations: NDArray[np.integer]) -> None:
        entries = pack_activations(activations)
        self._host(0, entries)
        self.inputs = len(entries)
        sizes = {"rows": activations.shape[1], "cols": activations.shape[2]}
        self._set(Register.CONV_INPUT_SIZE_CFG, INPUT_SIZE.pack(channels=self.shape.channels, **sizes))
        if self.options.activations == "spad1":
            self._copy(0, SPAD1_BASE, len(entries))
            self.outputs = SPAD1_BASE + len(entries) * ENTRY_BYTES
            self._set(Register.CONV_ACT_BASE_ADDR, SPAD1_BASE)
        else:
            self._set(Register.CONV_ACT_BASE_ADDR, 0)

    def load_weights(self, weights: NDArray[np.integer]) -> None:
        entries = pack_weights(weights, self.options.weight_bits)
        self._host(self.inputs, entries)
        self._copy(self.inputs, SPAD0_BASE, len(entries))

    def start(self, filters: range, first: int, output_rows: int, bias: int) -> None:
        shape, o = self.shape, self.options
        vectors = (filters.start - first) * shape.blocks * shape.kernel[0] * shape.kernel[1]
        self._set(Register.CONV_WEIGHT_BASE_ADDR, SPAD0_BASE + vectors * LANES * o.weight_bits // 8)
        self._set(Register.CONV_OUTPUT_BASE_ADDR, self.outputs)
        outputs = {"rows": output_rows, "cols": shape.outputs[1]}
        self._set(Register.CONV_OUTPUT_SIZE_CFG, OUTPUT_SIZE.pack(channels=len(filters), **outputs))
        kernel = {"rows": shape.kernel[0], "cols": shape.kernel[1]}
        strides = {"row_stride": shape.stride[0], "col_stride": shape.stride[1]}
        self._set(Register.CONV_KERNEL_SIZE_CFG, KERNEL_SIZE.pack(**kernel, **strides))
        switches = {"enable_bias": int(self.biased), "enable_relu": int(self.relu), "bias": bias & 0xFFFF}
        self._set(Register.CONV_CHANNEL_CFG, channel_word(o).pack(filters=len(filters), **switches))
        self._write(register_address(Register.CONV_TRIGGER), 0)
        rows, columns = shape.plane(output_rows, o)
        # in "same" coordinates output p of the convolution without padding lies at row K/2 + stride * p
        step, offset = ((1, 1), (0, 0))
        if o.coordinates == "same":
            step, offset = shape.stride, (shape.kernel[0] // 2, shape.kernel[1] // 2)
        for plane in _planes(filters, o):
            for p in range(output_rows):
                line = (plane * rows + offset[0] + p * step[0]) * columns + offset[1]
                for q in range(shape.outputs[1]):
                    address = self.outputs + (line + q * step[1]) * ENTRY_BYTES
                    self.commands.append(ProgramCommand("R", HOST_BASE + address))

    def _host(self, entry: int, entries: list[int]) -> None:
        for i, word in enumerate(entries, entry):
            self._write(HOST_BASE + SOC_BASE + ENTRY_BYTES * i, word)

    def _copy(self, entry: int, target: int, count: int) -> None:
        for part in _ranges(range(count), self.dma_entries or count):
            self._set(Register.SOC_MEM_BASE_ADDR, (entry + part.start) * ENTRY_BYTES)
            self._set(Register.SOC_MEM_RD_WR_LENGTH, len(part))
            self._write(HOST_BASE + target + part.start * ENTRY_BYTES, 0)

    def _set(self, register: Register, value: int) -> None:
        """Writes a register unless it holds the value."""
        if self.registers.get(register) != value:
            self.registers[register] = value
            address = register_address(register)
            self._write(address, value << 8 * (address % ENTRY_BYTES))

    def _write(self, address: int, data: int) -> None:
        self.commands.append(ProgramCommand("W", address, data))


def _planes(filters: range, options: HlscnnOptions) -> range:
    """Numbers of the planes that a start's outputs lie in."""
    return range(-(-len(filters) // LANES) if options.outputs == "blocked" else len(filters))


def _ranges(whole: range, most: int) -> Iterator[range]:
    """Consecutive parts of a range, none longer than ``most``."""
    for begin in range(whole.start, whole.stop, most):
        yield range(begin, min(begin + most, whole.stop))


def _blocked(tensor: NDArray[np.integer], axis: int) -> NDArray[np.integer]:
    """The tensor with its channel axis split into blocks of 8 and lanes, the last block filled with zeros."""
    pad = [(0, 0)] * tensor.ndim
    pad[axis] = (0, -tensor.shape[axis] % LANES)
    full = np.pad(tensor, pad)
    return full.reshape(*full.shape[:axis], -1, LANES, *full.shape[axis + 1 :])


def _entries(codes: NDArray[np.integer], bits: int) -> list[int]:
    """Codes in memory order as words of 128 bits, the last one filled with zeros."""
    raw = codes.astype("<i2" if bits == 16 else "i1").tobytes()
    raw += bytes(-len(raw) % ENTRY_BYTES)
    return [int.from_bytes(raw[i : i + ENTRY_BYTES], "little") for i in range(0, len(raw), ENTRY_BYTES)]


def _codes(name: str, codes: ArrayLike, dimensions: int, bits: int) -> NDArray[np.int64]:
    array = np.asarray(codes)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integer codes, not {array.dtype}; quantise real numbers first")
    if array.ndim != dimensions or 0 in array.shape:
        raise ValueError(f"{name} must have {dimensions} dimensions, none of them empty, not shape {array.shape}")
    half = 1 << (bits - 1)
    if array.min() < -half or array.max() >= half:
        raise ValueError(f"{name} must be codes of {bits} bits, {-half} .. {half - 1}; quantise them to that format")
    return array.astype(np.int64)


def _padding(padding: _Padding) -> tuple[tuple[int, int], tuple[int, int]]:
    rows, columns = (padding, padding) if isinstance(padding, int) else padding
    pairs = [(side, side) if isinstance(side, int) else side for side in (rows, columns)]
    if min(*pairs[0], *pairs[1]) < 0:
        raise ValueError(f"padding must not be negative, not {padding}")
    return pairs[0], pairs[1]
