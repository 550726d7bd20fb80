"""The fields of HLSCNN's configuration registers: packing them, unpacking them, and selecting them in expressions.

Bits that belong to no field are written as 0 and ignored.

Source: the published ILA (hlscnn-ila), which also states where the hardware's own documentation is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ila_lang import Expr, concat, const

from .options import HlscnnOptions

WORD_BITS = 32


@dataclass(frozen=True)
class RegisterWord:
    """The layout of one register of 32 bits: the highest and the lowest bit of each field."""

    name: str
    fields: Mapping[str, tuple[int, int]]

    def pack(self, **values: int) -> int:
        """The word with the given field values; fields that are not named are 0.

        Raises ValueError where a value does not fit its field or a field is unknown.

        >>> hex(INPUT_SIZE.pack(channels=16, rows=32, cols=30))
        '0x100801e'
        """
        word = 0
        for name, value in values.items():
            high, low = self._field(name)
            if not 0 <= value < 1 << (high - low + 1):
                raise ValueError(
                    f"{name} of {self.name} must be in 0 .. {self.limit(name)}, not {value}; make the operation smaller"
                )
            word |= int(value) << low
        return word

    def pack_expr(self, **values: Expr) -> Expr:
        """The word (32 bits) as an expression; fields that are not named are 0.

        Raises ValueError where a field is unknown and TypeError where a value does not have its field's width.
        """
        parts: list[Expr] = []
        top = WORD_BITS
        for name in values:
            self._field(name)
        for name, (high, low) in sorted(self.fields.items(), key=lambda item: -item[1][0]):
            if high + 1 < top:
                parts.append(const(0, top - high - 1))
            width = high - low + 1
            part = values.get(name, const(0, width))
            if part.width != width:
                raise TypeError(f"{name} of {self.name} must have {width} bits, not {part.width}; cut or extend it")
            parts.append(part)
            top = low
        if top:
            parts.append(const(0, top))
        return concat(*parts)

    def unpack(self, word: int) -> dict[str, int]:
        """The field values of a word.

        >>> INPUT_SIZE.unpack(0x100801E)
        {'channels': 16, 'rows': 32, 'cols': 30}
        """
        return {name: word >> low & self.limit(name) for name, (_, low) in self.fields.items()}

    def select(self, word: Expr, name: str) -> Expr:
        """One field of a word (an expression of 32 bits)."""
        high, low = self._field(name)
        return word[high:low]

    def limit(self, name: str) -> int:
        """The largest value of a field."""
        high, low = self._field(name)
        return (1 << (high - low + 1)) - 1

    def _field(self, name: str) -> tuple[int, int]:
        if name not in self.fields:
            raise ValueError(f"Field of {self.name} must be one of {', '.join(self.fields)}, not {name}")
        return self.fields[name]


INPUT_SIZE = RegisterWord("InputSize", {"channels": (31, 20), "rows": (19, 10), "cols": (9, 0)})
OUTPUT_SIZE = RegisterWord("OutputSize", INPUT_SIZE.fields)
# The comment in the hardware's header claims one stride in bits 23:16.
KERNEL_SIZE = RegisterWord(
    "KernelSize", {"row_stride": (21, 19), "col_stride": (18, 16), "rows": (15, 8), "cols": (7, 0)}
)

_SWITCHES = {"enable_accum": (18, 18), "enable_relu": (17, 17), "enable_bias": (16, 16), "bias": (15, 0)}
_CHANNEL_WORDS = {
    "implemented": RegisterWord("ChannelCfg", {"enable_wb": (27, 27), "filters": (26, 19), **_SWITCHES}),
    "wide": RegisterWord("ChannelCfg", {"enable_wb": (31, 31), "filters": (30, 19), **_SWITCHES}),
    "documented": RegisterWord("ChannelCfg", {"enable_wb": (22, 22), "filters": (21, 19), **_SWITCHES}),
}


def channel_word(options: HlscnnOptions) -> RegisterWord:
    """The layout of ChannelCfg.  No effect of ``enable_wb`` is published, and it has none here."""
    return _CHANNEL_WORDS[options.channel_word]
