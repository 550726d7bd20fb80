"""What FlexASR's programs for the units of the global buffer have in common, with sizes left open.

A matrix of T timesteps and nv vectors of 16 features lies in the large buffer, at any entry of its manager; rows of nv
vectors lie in the small buffer.  Layouts and register contents are those of the published drivers.
"""

from __future__ import annotations

from dataclasses import dataclass

from accel_models.flexasr.config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD
from accel_models.flexasr.layout import (
    LANES,
    Region,
    Start,
    large_axi_address,
    register_address,
    small_axi_address,
    vector_address,
)
from ila_lang import Expr, Ila, Kernel, bv, const, false, ite, load_bytes, mem, true, var
from ila_lang.mapping import SizeError

T, NV, BASE = var("T", bv(32)), var("nv", bv(32)), var("base", bv(32))
"""Timesteps and vectors of the matrix, and where it begins in the large buffer."""
ENTRY = var("entry", bv(32))
"""The entry of the large buffer's manager that holds the matrix; units know it as a memory index."""
FIRST_ENTRY = const(0, 32)
ENTRY_TEXT = "entry of the large buffer's manager for the data"
HOST_X, HOST_Y = var("host_x", mem(32, 8)), var("host_y", mem(32, 8))
VECTOR, LANE = var("cell_vector", bv(32)), var("cell_lane", bv(32))
"""Coordinates of an output element's column: vector and lane."""


@dataclass
class UnitProgram:
    """Appends the commands of a host program to ``program``; the matrix is that of an entry of the manager."""

    program: Kernel
    ila: Ila
    entry: Expr = FIRST_ENTRY

    def write(self, note: str, address: Expr | int, data: Expr | int) -> None:
        """One command that writes a word of 128 bits."""
        address = const(address, 32) if isinstance(address, int) else address
        data = const(data, 128) if isinstance(data, int) else data
        self.program.command(note, if_axi_wr=true, if_axi_rd=false, addr_in=address, data_in=data)

    def large_manager(self, others: Expr | None = None) -> None:
        """The large buffer's manager: the matrix at its entry; the others have no vectors, or so many, at address 0."""
        none = const(0, 8) if others is None else others[7:0]
        word = LARGE_MANAGER_WORD.pack_expr(
            **{f"num_vector_{i}": ite(self.entry == i, NV[7:0], none) for i in range(4)},
            **{f"base_large_{i}": ite(self.entry == i, BASE[15:0], const(0, 16)) for i in range(4)},
        )
        self.write("configure manager", register_address(Region.MANAGERS, 1), word)

    def small_manager(self, bases: dict[int, Expr]) -> None:
        """Entries of the small buffer's manager: where rows begin."""
        word = SMALL_MANAGER_WORD.pack_expr(**{f"base_small_{i}": b[15:0] for i, b in bases.items()})
        self.write("configure manager of the small buffer", register_address(Region.MANAGERS, 2), word)

    def unit(self, name: str, region: int, **fields: Expr | int) -> None:
        """The configuration word of a unit."""
        self.write(f"configure {name}", register_address(region), UNIT_WORD.pack_expr(is_valid=1, **fields))

    def start(self, name: str, number: int) -> None:
        """Starts a unit; ``number`` is one of :class:`~accel_models.flexasr.layout.Start`."""
        self.write(f"start {name}", register_address(Region.START, number), 1)

    def pool(self, mode: int, rows: Expr) -> None:
        """Configures LayerReduce for the first ``rows`` timesteps of the matrix, and starts it."""
        fields: dict[str, Expr | int] = {
            "mode": mode,
            "memory_index_1": self.entry[2:0],
            "num_vector_1": NV[7:0],
            "num_timestep_1": rows[15:0],
        }
        self.unit("LayerReduce", Region.LAYER_REDUCE, **fields)
        self.start("LayerReduce", Start.LAYER_REDUCE)

    def store_matrix(self, rows: Expr, host: Expr = HOST_X, name: str = "x", valid: Expr | None = None) -> None:
        """The rows of a host tensor, called ``name`` in notes, to the matrix in the large buffer.

        Those from ``valid`` on are zeros.
        """
        before = "store" if name == "x" else f"store_{name}"
        with self.program.loop(f"{before}_t", rows) as t, self.program.loop(f"{before}_vector", NV) as v:
            data = load_bytes(host, t * (NV << 4) + (v << 4), LANES)
            if valid is not None:
                data = ite(t < valid, data, const(0, 128))
            self.write(f"store {name}", large_axi_address(vector_address(BASE, NV, t, v)), data)

    def store_vector(self, place: Expr) -> None:
        """The 16 elements of ``host_x`` to one vector of the large buffer."""
        with self.program.loop("store_vector", const(1, 32)) as v:
            self.write("store x", large_axi_address((place + v)[15:0]), load_bytes(HOST_X, v << 4, LANES))

    def load_vector(self, place: Expr) -> None:
        """One vector of the large buffer to ``host_y``."""
        with self.program.loop("load_vector", const(1, 32)) as v:
            self.read("load y", large_axi_address((place + v)[15:0]), HOST_Y, v << 4)

    def store_row(self, name: str, host: Expr, base: Expr, row: Expr | None = None) -> None:
        """A host tensor of one row, or one of its rows, to the small buffer, from vector ``base`` on."""
        with self.program.loop(f"store_{name}", NV) as v:
            data = load_bytes(host, _in_row(row, v), LANES)
            self.write(f"store {name}", small_axi_address((base + v)[9:0]), data)

    def load_matrix(self, rows: Expr, host: Expr = HOST_Y, name: str = "y") -> None:
        """The first rows of the matrix in the large buffer to a host tensor, called ``name`` in notes."""
        before = "load" if name == "y" else f"load_{name}"
        with self.program.loop(f"{before}_t", rows) as t, self.program.loop(f"{before}_vector", NV) as v:
            address = large_axi_address(vector_address(BASE, NV, t, v))
            self.read(f"load {name}", address, host, t * (NV << 4) + (v << 4))

    def load_row(self, base: Expr, row: Expr | None = None) -> None:
        """A row of the small buffer to ``HOST_Y``, or to one of its rows."""
        with self.program.loop("load_vector", NV) as v:
            self.read("load y", small_axi_address((base + v)[9:0]), HOST_Y, _in_row(row, v))

    def read(self, note: str, address: Expr, host: Expr, index: Expr) -> None:
        """One command that reads a word of 128 bits, whose bytes go to a host tensor from ``index`` on."""
        for lane, word in enumerate(self.load(note, address)):
            self.program.store(host, index + lane, word)

    def load(self, note: str, address: Expr) -> list[Expr]:
        """One command that reads a word of 128 bits; its bytes."""
        self.program.command(note, if_axi_wr=false, if_axi_rd=true, addr_in=address, data_in=const(0, 128))
        return [self.ila.states["data_out"][8 * lane + 7 : 8 * lane] for lane in range(LANES)]


def _in_row(row: Expr | None, vector: Expr) -> Expr:
    """The first element of a vector of a host tensor's row, or of its only one."""
    return vector << 4 if row is None else row * (NV << 4) + (vector << 4)


def matrix_domain(rows: Expr, name: str, least: int = 1) -> tuple[tuple[str, Expr], ...]:
    """The sizes of a matrix with ``rows`` rows, called ``name``, that registers and the large buffer admit."""
    return (
        (f"{least} <= {name} <= 65535", (const(least, 32) <= rows) & (rows <= 65535)),
        ("1 <= nv <= 255", (const(1, 32) <= NV) & (NV <= 255)),
        ("base <= 65535", BASE <= 65535),
        ("entry <= 3", ENTRY <= 3),
        (f"base + 16*ceil({name}/16)*nv <= 65536 vectors", BASE + (((rows + 15) >> 4) * NV) * 16 <= 65536),
    )


def matrix_within(where: str, rows: int, columns: int) -> int:
    """The vectors of a row; raises SizeError where FlexASR's large buffer cannot hold a matrix, stored at base 0."""
    if columns % LANES or columns < LANES:
        raise SizeError(f"Columns of {where} must be a positive multiple of {LANES}, not {columns}; pad the tensor")
    if columns // LANES > 255:
        raise SizeError(f"Columns of {where} must be at most 4080 (255 vectors, an 8-bit register), not {columns}")
    if not 1 <= rows <= 65535:
        raise SizeError(f"Rows of {where} must be 1 to 65535 (a 16-bit register), not {rows}")
    vectors = -(-rows // 16) * 16 * (columns // LANES)
    if vectors > 65536:
        raise SizeError(f"Tiles of {where} must fit 65536 vectors, not {vectors}; split the tensor")
    return columns // LANES
