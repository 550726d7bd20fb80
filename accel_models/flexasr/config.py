"""FlexASR's configuration words, bit by bit: packing as integers and as expressions, and unpacking.

One table of fields per word.  Bits that belong to no field are written as 0 and ignored when read.

Sources: the FlexASR SystemC design (``GBControlConfig`` and its siblings, ``MemoryManager``, ``PEConfig``,
``PEManager``, ``ActConfig``); the field positions and names of the published ILA model are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ila_lang import BOOL, Expr, concat, const, ite

WORD_BITS = 128


@dataclass(frozen=True, slots=True)
class Field:
    """Bits ``low + width - 1`` down to ``low`` of a configuration word, and the field's reset value."""

    low: int
    width: int
    reset: int = 0


@dataclass(frozen=True)
class ConfigWord:
    """The layout of one 128-bit configuration word: its fields by name."""

    name: str
    fields: Mapping[str, Field]

    def pack(self, **values: int) -> int:
        """The word with the given field values; fields not named are 0, as published drivers write them.

        Raises ValueError where a value does not fit its field or a field is unknown.

        >>> hex(UNIT_WORD.pack(is_valid=1, num_vector_1=2, num_timestep_1=20))
        '0x140002000000000001'
        """
        word = 0
        for name in values:
            self._field(name)
        for name, field in self.fields.items():
            value = values.get(name, 0)
            if not 0 <= value < 1 << field.width:
                raise ValueError(f"{name} must fit in {_bits(field.width)}, not {value}")
            word |= int(value) << field.low
        return word

    def pack_expr(self, **values: Expr | int) -> Expr:
        """The word (128 bits) as an expression; a one-bit field also takes a Boolean.

        Raises ValueError where an integer does not fit and TypeError where an expression has another width.
        """
        parts: list[Expr] = []
        top = WORD_BITS
        for name in values:
            self._field(name)
        for name, field in sorted(self.fields.items(), key=lambda item: -item[1].low):
            end = field.low + field.width
            if end < top:
                parts.append(const(0, top - end))
            parts.append(self._part(name, field, values.get(name, 0)))
            top = field.low
        if top:
            parts.append(const(0, top))
        return concat(*parts)

    def unpack(self, word: int) -> dict[str, int]:
        """The field values of a word."""
        return {name: word >> f.low & ((1 << f.width) - 1) for name, f in self.fields.items()}

    def select(self, word: Expr, name: str) -> Expr:
        """One field of a word (an expression of 128 bits), as a bit-vector of the field's width."""
        field = self._field(name)
        return word[field.low + field.width - 1 : field.low]

    def _field(self, name: str) -> Field:
        if name not in self.fields:
            raise ValueError(f"Field of the {self.name} must be one of {', '.join(self.fields)}, not {name}")
        return self.fields[name]

    def _part(self, name: str, field: Field, value: Expr | int) -> Expr:
        if isinstance(value, int):
            if not 0 <= value < 1 << field.width:
                raise ValueError(f"{name} must fit in {_bits(field.width)}, not {value}")
            return const(int(value), field.width)
        if value.sort == BOOL and field.width == 1:
            return ite(value, const(1, 1), const(0, 1))
        if value.width != field.width:
            raise TypeError(f"{name} must have {_bits(field.width)}, not {value.width}")
        return value


def _bits(count: int) -> str:
    return "1 bit" if count == 1 else f"{count} bits"


# Regions 7 .. B.  Each unit reads the fields that mean something to it.
UNIT_WORD = ConfigWord(
    "unit configuration word",
    {
        "is_valid": Field(0, 1),
        "mode": Field(8, 3),  # LayerReduce: 0 max, 1 mean, others add
        "is_rnn": Field(16, 1),
        "memory_index_1": Field(32, 3),  # the large buffer's port has only the low two bits
        "memory_index_2": Field(40, 3),
        "num_vector_1": Field(48, 8, 1),
        "num_vector_2": Field(56, 8, 1),
        "num_timestep_1": Field(64, 16, 1),
        "num_timestep_2": Field(80, 16, 1),
        "adpbias_1": Field(96, 3),
        "adpbias_2": Field(104, 3),
        "adpbias_3": Field(112, 3),
        "adpbias_4": Field(120, 3),
    },
)

LARGE_MANAGER_WORD = ConfigWord(
    "large-buffer manager word",
    {f"num_vector_{i}": Field(32 * i, 8, 1) for i in range(4)}
    | {f"base_large_{i}": Field(32 * i + 16, 16) for i in range(4)},
)

SMALL_MANAGER_WORD = ConfigWord("small-buffer manager word", {f"base_small_{i}": Field(16 * i, 16) for i in range(8)})

# -- processing elements: regions 4 and 8 ------------------------------------------------------------

RNN_LAYER_SIZING_WORD = ConfigWord(
    "configuration word of a PE's core",
    {
        "is_valid": Field(0, 1),
        "is_zero_first": Field(8, 1),  # the first run skips the products of managers with zero_active
        "is_cluster": Field(16, 1),  # weights are indices into a table
        "is_bias": Field(24, 1),
        "num_manager": Field(32, 4, 1),  # matrices per output vector: 1 or 2
        "num_output": Field(40, 8, 1),
    },
)

MEM_MNGR_WORD = ConfigWord(
    "manager word of a PE",
    {
        "zero_active": Field(0, 1),
        "adpfloat_bias_w": Field(8, 3),  # AdaptivFloat biases of weights, layer biases and inputs
        "adpfloat_bias_b": Field(16, 3),
        "adpfloat_bias_i": Field(24, 3),
        "num_input": Field(32, 8, 1),
        "base_weight": Field(48, 16),
        "base_bias": Field(64, 16),  # layer biases are in the input buffer
        "base_input": Field(80, 16),
    },
)

ACT_MNGR_WORD = ConfigWord(
    "configuration word of a PE's activation unit",
    {
        "is_valid": Field(0, 1),
        "is_zero_first": Field(8, 1),  # the first run loads zeros
        "adpfloat_bias": Field(16, 3),
        "num_inst": Field(24, 6, 1),
        "num_output": Field(32, 8, 1),
        "buffer_addr_base": Field(48, 16),  # hardware keeps the low five bits
        "output_addr_base": Field(64, 8),
    },
)

ACT_VECTOR_WORDS = tuple(
    ConfigWord(
        f"word of micro-instructions {first} to {first + 15}",
        {f"Inst{first + i}": Field(8 * i, 8) for i in range(16)},
    )
    for first in (0, 16)
)
