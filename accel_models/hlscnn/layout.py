"""HLSCNN's address map, and how tensors lie in its memories.

An *entry* is 16 bytes: 8 words of 16 bits, lane 0 in the lowest bytes.  It is what a command reads or writes, and one
pixel of a block of 8 channels.  Addresses of the bus and in registers count bytes; only 24 bits of a bus address are
used.

| bytes | what |
|---|---|
| 0x00000 .. 0x03fff | configuration registers |
| 0x04000 .. 0x23fff | SPAD0: weights |
| 0x24000 .. 0x43fff | SPAD1: outputs and partial sums |
| 0x50000 .. 0x7ffff | SoC memory as the host sees it; byte 0x50000 has the SoC address 0 |

Sources: the published ILA (hlscnn-ila) and the drivers of 3la_ILA_tensor_op.
"""

from __future__ import annotations

from enum import IntEnum

from ila_lang import Expr

LANES = 8  # channels in a block; words in an entry
ENTRY_BYTES = 16

HOST_BASE = 0x32000000  # of the slave port, as the host sees it
CONFIG_BYTES = 0x4000
SPAD0_BASE = 0x4000
SPAD_ENTRIES = 4 * 2048  # banks, entries in each
SPAD_BYTES = SPAD_ENTRIES * ENTRY_BYTES
SPAD1_BASE = SPAD0_BASE + SPAD_BYTES
SOC_BASE = 0x50000
SOC_ENTRIES = 0x30000 // ENTRY_BYTES

REGISTERS = 30  # register numbers repeat after these


class Register(IntEnum):
    """Numbers of the configuration registers; 0 .. 3 are not used."""

    SOC_MEM_BASE_ADDR = 4
    SOC_MEM_RD_WR_LENGTH = 5
    SPAD_CFG = 6
    AXI_SELF_TEST_TRIGGER = 7
    AXI_SELF_TEST_BASE_ADDR = 8
    ACP_SELF_TEST_TRIGGER = 9
    ACP_SELF_TEST_BASE_ADDR = 10
    AXI_ATTR_CFG = 11
    FC_START = 12
    FC_WEIGHT_BASE = 13
    FC_ACT_BASE = 14
    FC_SIZE_CFG = 15
    BIAS_ACT_CFG = 16
    CONV_TRIGGER = 17
    CONV_ACT_BASE_ADDR = 18
    CONV_WEIGHT_BASE_ADDR = 19
    CONV_OUTPUT_BASE_ADDR = 20
    CONV_INPUT_SIZE_CFG = 21
    CONV_OUTPUT_SIZE_CFG = 22
    CONV_KERNEL_SIZE_CFG = 23
    CONV_CHANNEL_CFG = 24
    REDUCTION_TRIGGER = 25
    REDUCTION_INPUT_BASE_ADDR = 26
    REDUCTION_OUTPUT_BASE_ADDR = 27
    REDUCTION_INPUT_SIZE_CFG = 28
    REDUCTION_BIAS_CFG = 29


def register_address(register: Register) -> int:
    """The host's address (32 bits) of a configuration register.

    >>> hex(register_address(Register.CONV_TRIGGER))
    '0x32000044'
    """
    return HOST_BASE | register << 2


def blocks_of(channels: Expr) -> Expr:
    """The number of blocks of 8 that hold ``channels``; one bit wider than ``channels``."""
    return (channels.zext(channels.width + 1) + (LANES - 1)) >> 3


# Entries from a tensor's base on, in 32 bits, as the hardware computes addresses.


def activation_index(block: Expr, row: Expr, column: Expr, rows: Expr, columns: Expr) -> Expr:
    """The entry of a pixel of a channel block in an input of rows x columns; operands of at most 32 bits."""
    block, row, column, rows, columns = (x.zext(32) for x in (block, row, column, rows, columns))
    return (block * rows + row) * columns + column


def weight_index(filter_: Expr, block: Expr, k_row: Expr, k_column: Expr, sizes: tuple[Expr, Expr, Expr]) -> Expr:
    """The vector of 8 weights of a tap and channel block; ``sizes`` are channel blocks, kernel rows and columns."""
    filter_, block, k_row, k_column = (x.zext(32) for x in (filter_, block, k_row, k_column))
    blocks, rows, columns = (x.zext(32) for x in sizes)
    return ((filter_ * blocks + block) * rows + k_row) * columns + k_column


def output_index(plane: Expr, row: Expr, column: Expr, rows: Expr, columns: Expr) -> Expr:
    """The entry of an output pixel; a plane holds 8 filters ("blocked") or one ("per_filter")."""
    return activation_index(plane, row, column, rows, columns)
