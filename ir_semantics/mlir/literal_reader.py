"""What stands in dense constants, read from text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .affine_reader import AffineReader
from .constants import MOST_BYTES, Literal
from .scanner import token

ELEMENT = token(r'-?(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+(?:[eE][-+]?[0-9]++)?)?)|true\b|false\b|"(?:[^"\\\n]|\\.)*+"')
_HEXADECIMAL = re.compile(r"0x(?:[0-9A-Fa-f]{2})*+\Z")


@dataclass(slots=True)
class _Lists:
    """Lists of lists while they are read: their elements, the length of those at each level, the elements' level."""

    tokens: list[str]
    sizes: dict[int, int]
    leaves: int | None


class LiteralReader(AffineReader):
    """A scanner that passes literals of dense constants."""

    def literal(self) -> Literal:
        """Passes a literal, of which only the brackets are checked here."""
        at = self.at
        if self.sees('"0x'):
            digits = self.string("hexadecimal data")
            if not _HEXADECIMAL.match(digits) or len(digits) > 2 * MOST_BYTES:
                raise self.error(f"hexadecimal data must be at most {MOST_BYTES} bytes of two digits each", at)
            return Literal((), None, bytes.fromhex(digits[2:]))
        lists = _Lists([], {}, None)
        if self.sees("["):
            self._list(lists, 0)
            if lists.leaves is not None and lists.leaves != len(lists.sizes) - 1:
                raise self.error("elements and lists must not stand side by side", at)
            return Literal(lists.tokens, tuple(lists.sizes[level] for level in range(len(lists.sizes))))
        self._element(lists.tokens)
        return Literal(lists.tokens, None)

    def _list(self, lists: _Lists, level: int) -> None:
        self.enter()
        at = self.at
        self.expect("[")
        count = 0
        if not self.take("]"):
            while True:
                if self.sees("["):
                    self._list(lists, level + 1)
                else:
                    self._element(lists.tokens)
                    if lists.leaves not in (None, level):
                        raise self.error("elements and lists must not stand side by side", at)
                    lists.leaves = level
                count += 1
                if not self.take(","):
                    break
            self.expect("]")
        if lists.sizes.setdefault(level, count) != count:
            raise self.error(f"lists side by side must have equal lengths, not {lists.sizes[level]} and {count}", at)
        self.depth -= 1

    def _element(self, tokens: list[str]) -> None:
        self.count(1)
        if self.take("("):
            tokens.append(self.demand(ELEMENT, "the real part"))
            self.expect(",")
            tokens.append(self.demand(ELEMENT, "the imaginary part"))
            self.expect(")")
        else:
            tokens.append(self.demand(ELEMENT, "an element"))
