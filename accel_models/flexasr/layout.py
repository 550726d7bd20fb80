"""FlexASR's address map and the tiled layout of matrices in the global buffer's large memory.

A *vector* is 16 lanes of 8 bits; lane 0 is the lowest byte, at the lowest address.  Memories are
addressed by vector, and a command's data word is one vector.  A matrix of T timesteps by 16*nv features
is stored in tiles: 16 consecutive timesteps of one vector column are 16 consecutive vectors; the nv tiles
of a group of 16 timesteps follow each other, and so do the groups.

Four processing elements (PEs) have partitions of their own, with buffers for weights, for inputs (and layer biases),
and for values that their activation units keep.

Sources: the FlexASR SystemC design (AXI splitter, ``GBModule``, ``GBCore``, ``PEModule``) for the map and the tiling;
the published ILA model uses the same addresses.
"""

from __future__ import annotations

from ila_lang import Expr, concat, const

LANES = 16  # bytes in a vector
LARGE_VECTORS = 65536  # 16 banks of 4096 vectors: 1 MiB
SMALL_VECTORS = 1024  # one bank: 16 KiB
ADDRESS_BITS = 16  # width of a vector address; sums are taken modulo 2^16

GB_PARTITION = 0x33  # addr[31:24] of the global buffer; the processing elements have 0x34 .. 0x37
GB_BASE = 0x33000000
LARGE_BASE = 0x33500000
SMALL_BASE = 0x33600000

PE_COUNT = 4
PE_PARTITION = 0x34  # of PE 0; the others follow
PE_BASE = 0x34000000
WEIGHT_VECTORS = 65536  # 16 banks of 4096 vectors: 1 MiB per PE
INPUT_VECTORS = 256  # 4 KiB per PE
ACT_VECTORS = 32  # 512 bytes per PE


class Region:
    """Values of ``addr[23:20]`` in the global buffer's partition."""

    START = 0x0
    SRAM = 0x3
    MANAGERS = 0x4  # index 1: large-buffer manager, index 2: small-buffer manager
    LARGE = 0x5
    SMALL = 0x6
    CONTROL = 0x7
    LAYER_REDUCE = 0x8
    LAYER_NORM = 0x9
    ZERO_PADDING = 0xA
    ATTENTION = 0xB


class PeRegion:
    """Values of ``addr[23:20]`` in the partition of a processing element."""

    START = 0x0
    SRAM = 0x3
    CORE = 0x4  # index 1: core, 2 and 4: managers, 3 and 5: their tables of clustered weights
    WEIGHT = 0x5
    INPUT = 0x6
    ACT = 0x8  # index 1: activation unit, 2 and 3: its micro-instructions 0 to 15 and 16 to 31
    ACT_BUFFER = 0x9


class Start:
    """Local indices of the start registers in :attr:`Region.START`."""

    CONTROL = 1
    LAYER_REDUCE = 2
    LAYER_NORM = 3
    ZERO_PADDING = 4
    ATTENTION = 5


def register_address(region: int, index: int = 1) -> int:
    """The AXI address (32 bits) of a configuration or start register.

    >>> hex(register_address(Region.LAYER_REDUCE)), hex(register_address(Region.START, Start.LAYER_REDUCE))
    ('0x33800010', '0x33000020')
    """
    return GB_BASE | region << 20 | index << 4


def pe_register_address(pe: int, region: int, index: int = 1) -> int:
    """The AXI address (32 bits) of a register of processing element ``pe``, 0 .. 3.

    >>> hex(pe_register_address(1, PeRegion.CORE, 2))
    '0x35400020'
    """
    return PE_BASE + (pe << 24) | region << 20 | index << 4


def vector_address(base: Expr, stride: Expr, t: Expr, v: Expr) -> Expr:
    """The vector address (16 bits) of timestep ``t``, vector ``v`` of a matrix in the large buffer.

    It is ``base + t mod 16 + (t div 16 * stride + v) * 16``, modulo 2^16.  ``base`` (at most 32 bits) and
    ``stride`` (vectors per timestep) are the memory manager's base and num_vector.  All terms are taken
    on 32 bits: with t and stride of 16 and 8 bits nothing is lost before the final truncation.

    Raises ValueError if an operand is wider than 32 bits.
    """
    base, stride, v = base.zext(32), stride.zext(32), v.zext(32)
    group, position = (t >> 4).zext(32), t[3:0].zext(32)
    return (base + position + (group * stride + v) * 16)[ADDRESS_BITS - 1 : 0]


def byte_address(vector: Expr, lane: Expr) -> Expr:
    """The byte address (20 bits) of a lane of a vector of the large buffer; ``lane`` has at least 4 bits."""
    return concat(vector, lane[3:0])


def large_axi_address(vector: Expr) -> Expr:
    """The AXI address (32 bits) of a vector of the large buffer (16-bit address).

    It is a concatenation of literals with the vector, so that partition and region fold when it is decoded.
    """
    return concat(const(LARGE_BASE >> 20, 12), vector, const(0, 4))


def small_axi_address(vector: Expr) -> Expr:
    """The AXI address (32 bits) of a vector of the small buffer (10-bit address)."""
    return concat(const(SMALL_BASE >> 14, 18), vector, const(0, 4))
