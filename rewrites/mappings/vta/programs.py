"""What VTA's programs have in common, with sizes left open: instruction words, micro-ops, and the host's transfers.

Programs are in sequential order and move no tokens: a program whose tokens pass the check computes what its sequential
order does (:mod:`chc.token_order.theorem`).  Tensors lie in DRAM one after the other: micro-ops first,
then operands, then the output.

Matrices have columns in vectors of 16 lanes.  Places in DRAM are counted in vectors of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from accel_models.vta.isa import STANDARD, UOP_FIELDS, AluOp, Field, MemoryId, Opcode
from accel_models.vta.model import CommandKind
from accel_models.vta.numerics import multiply
from ila_lang import Expr, Ila, Kernel, bv, concat, const, load_bytes, mem, var
from ila_lang.mapping import TensorMapping

ROWS, COLUMNS = var("m", bv(32)), var("n", bv(32))
"""Rows of the output, and vectors of 16 columns in each."""
SHAPE = {"m": ROWS, "n": COLUMNS}
HOST_Y = var("host_y", mem(32, 8))
DRAM_VECTORS = 1 << 20
"""DRAM's size in vectors of 16 bytes."""
IDLE = {"fault": 0}
"""No instruction before the program was undefined."""
ASSUMPTIONS = (
    "instructions execute one after the other, as in every program whose tokens pass the check "
    "(docs/explanation/vta_tokens.md)",
    "memories and host memory hold arbitrary values before the program; no fault has occurred",
)

Word = Expr | int

vta_mapping = partial(TensorMapping, output=("host_y", "tensor_out"), lemmas=(), abstract=frozenset({multiply.name}))
"""A mapping to VTA; arguments are those of a TensorMapping."""


def cell_of(rows: Expr) -> tuple[tuple[tuple[Expr, Expr], ...], Expr]:
    """Coordinates of an output element with their extents (row, vector of 16 columns, lane), and its column."""
    vector, lane = var("cell_vector", bv(32)), var("cell_lane", bv(32))
    return ((var("cell_row", bv(32)), rows), (vector, COLUMNS), (lane, const(16, 32))), (vector << 4) + lane


def micro_op(*, dst: Word = 0, src: Word = 0, wgt: Word = 0) -> Expr:
    """A micro-op's word (32 bits)."""
    return _pack(UOP_FIELDS, 32, {"dst": dst, "src": src, "wgt": wgt})


def _pack(fields: Mapping[str, Field], width: int, values: Mapping[str, Word]) -> Expr:
    """A word with ``values`` in the named fields, cut to these; all other bits are 0."""
    parts: list[Expr] = []
    at = 0
    for name, field in sorted(fields.items(), key=lambda f: f[1].low):
        value = values.get(name, 0)
        if field.low > at:
            parts.append(const(0, field.low - at))
        if isinstance(value, int):
            parts.append(const(value & ((1 << field.width) - 1), field.width))
        else:
            parts.append(value[field.width - 1 : 0])
        at = field.low + field.width
    unknown = set(values) - set(fields)
    if unknown:
        raise ValueError(f"Fields must be among {', '.join(fields)}, not {', '.join(sorted(unknown))}")
    if at < width:
        parts.append(const(0, width - at))
    return concat(*reversed(parts))


class Program:
    """Appends the host's commands to a kernel."""

    def __init__(self, kernel: Kernel, ila: Ila) -> None:
        self.kernel, self.ila = kernel, ila

    def start(self) -> None:
        """Lets a program run."""
        self._command("start a program", CommandKind.START)

    def _command(self, note: str, kind: CommandKind, **inputs: Expr) -> None:
        values = {"insn": const(0, 128), "addr": const(0, 32), "data": const(0, 128), "strobe": const(0, 16)} | inputs
        self.kernel.command(note, command=const(kind, 2), **values)

    # -- instructions ------------------------------------------------------------------------------

    def load(self, memory: MemoryId, *, sram: Word = 0, dram: Word, columns: Word, **fields: Word) -> None:
        """LOAD: ``columns`` elements a row from element ``dram`` on; one row, but for ``y_size``."""
        self._issue(f"load {memory.name}", Opcode.LOAD, memory=memory, sram_base=sram, dram_base=dram,
                    x_size=columns, **{"y_size": 1} | fields)  # fmt: skip

    def store(self, *, dram: Word, columns: Word, **fields: Word) -> None:
        """STORE, likewise."""
        self._issue("store OUT", Opcode.STORE, memory=MemoryId.OUT, sram_base=0, dram_base=dram,
                    x_size=columns, **{"y_size": 1} | fields)  # fmt: skip

    def alu(self, operation: AluOp, imm: Word | None, cells: Word, *, uop: int = 0, **fields: Word) -> None:
        """An ALU operation on ``cells`` accumulators that follow each other; with another one where ``imm`` is None."""
        default: dict[str, Word] = {"iter_out": 1, "dst_factor_in": 1, "src_factor_in": 1}
        immediate: dict[str, Word] = {} if imm is None else {"use_imm": 1, "imm": imm}
        self._issue(f"ALU {operation.name}", Opcode.ALU, alu_opcode=operation, iter_in=cells,
                    uop_bgn=uop, uop_end=uop + 1, **default | immediate | fields)  # fmt: skip

    def gemm(self, *, uop: int = 0, reset: bool = False, **fields: Word) -> None:
        """GEMM with one micro-op."""
        note = "clear accumulators" if reset else "GEMM"
        self._issue(note, Opcode.GEMM, reset_reg=int(reset), uop_bgn=uop, uop_end=uop + 1, **fields)

    def finish(self) -> None:
        """FINISH."""
        self._issue("finish", Opcode.FINISH)

    def _issue(self, note: str, opcode: Opcode, **fields: Word) -> None:
        word = _pack(STANDARD.of(opcode), 128, {"opcode": opcode, **fields})
        self._command(note, CommandKind.ISSUE, insn=word)

    # -- the host's transfers ----------------------------------------------------------------------

    def write(self, note: str, vector: Expr, data: Expr) -> None:
        """Writes a vector of 16 bytes of DRAM."""
        self._command(note, CommandKind.WRITE, addr=_address(vector), data=data, strobe=const(0xFFFF, 16))

    def write_micro_ops(self, *uops: Expr, sram: int = 0) -> None:
        """Up to four micro-ops, at the beginning of DRAM, which are then loaded, from ``sram`` on."""
        words = [*uops, *([const(0, 32)] * (4 - len(uops)))]
        self.write("write micro-ops", const(0, 32), concat(*reversed(words)))
        self.load(MemoryId.UOP, sram=sram, dram=0, columns=len(uops))

    def write_words(self, tensor: Expr, rows: Expr, columns: Expr, base: Expr) -> None:
        """A row-major matrix of 32-bit words, ``columns`` vectors of 16 words in a row, from vector ``base`` on."""
        name, k = tensor.name, self.kernel
        with (
            k.loop(f"{name}_row", rows) as row,
            k.loop(f"{name}_vector", columns) as vector,
            k.loop(f"{name}_part", const(4, 3), 2) as part,
        ):
            number = (row * columns + vector) * 4 + part.zext(32)
            words = [tensor.load(number * 4 + i) for i in range(4)]
            self.write(f"write {name}", base + number, concat(*reversed(words)))

    def write_bytes(self, tensor: Expr, rows: Expr, columns: Expr, base: Expr) -> None:
        """A row-major matrix of bytes, with ``columns`` vectors of 16 bytes in a row, from vector ``base`` on."""
        name, k = tensor.name, self.kernel
        with k.loop(f"{name}_row", rows) as row, k.loop(f"{name}_vector", columns) as vector:
            number = row * columns + vector
            self.write(f"write {name}", base + number, load_bytes(tensor, number << 4, 16))

    def write_tiles(self, tensor: Expr, rows: Expr, columns: Expr, base: Expr) -> None:
        """A row-major matrix of bytes as tiles of 16 x 16, ``columns`` of them in a row, from vector ``base`` on."""
        name, k = tensor.name, self.kernel
        with (
            k.loop(f"{name}_tile_row", rows) as row,
            k.loop(f"{name}_tile", columns) as tile,
            k.loop(f"{name}_row", const(16, 5)) as line,
        ):
            number = ((row * columns + tile) << 4) + line.zext(32)
            place = ((row << 4) + line.zext(32)) * columns + tile
            self.write(f"write {name}", base + number, load_bytes(tensor, place << 4, 16))

    def read(self, rows: Expr, columns: Expr, base: Expr) -> None:
        """The output, a row-major matrix of bytes, to ``HOST_Y``."""
        k = self.kernel
        with k.loop("read_row", rows) as row, k.loop("read_vector", columns) as vector:
            number = row * columns + vector
            self._command("read y", CommandKind.READ, addr=_address(base + number))
            for lane in range(16):
                byte = self.ila.states["data_out"][8 * lane + 7 : 8 * lane]
                k.store(HOST_Y, (number << 4) + lane, byte)


def _address(vector: Expr) -> Expr:
    """The address of a vector of DRAM."""
    return concat(const(0, 8), vector[19:0], const(0, 4))
