"""The text of an MLIR file, piece by piece, with a position in every complaint."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from ila_lang.errors import InputError

from .ir import Position

DEEPEST = 100
"""Types, attributes, expressions and regions inside each other: more are refused, so that no recursion runs away."""
MOST_PARTS = 1 << 20
"""Types, attributes and elements of constants that one operation may have, with aliases written out."""
LONGEST_NUMBER = 1000
"""Characters of one number: Python refuses to convert longer ones."""

_BEFORE_TOKENS = " \t\r\n/"
_SPACE = r"(?:[ \t\r\n]++|//[^\n]*+)*+"


class MlirError(InputError):
    """A complaint about an MLIR file: what must hold at a position, and what stands there."""

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(f"{position}: {message}")
        self.position = position
        self.message = message


def token(pattern: str) -> re.Pattern[str]:
    """A pattern whose group 1 is the token, with the white space and comments that follow it."""
    return re.compile(f"({pattern}){_SPACE}", re.ASCII)


BARE_NAME = token(r"[A-Za-z_][\w$.]*+")
STRING = token(r'"(?:[^"\\\n]|\\.)*+"')
INTEGER = token(r"-?[0-9]++")
SUFFIX_NAME = r"(?:[0-9]++|[A-Za-z_$.-][\w$.-]*+)"

_LEADING = re.compile(_SPACE)
_NEXT_WORD = re.compile(r'"[^"\n]{0,30}"?|[\w$.%@#!^]{1,30}|->|\S', re.ASCII)
_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*+|->|[<>()\[\]{}]')
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|[nt\\\"])")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"\\": b"\\", b'"': b'"'}


class Scanner:
    """A place in a text.  White space and comments before it have been passed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = self.reached = self.parts = 0
        self.skip()

    def skip(self) -> None:
        """Passes white space and comments."""
        match = _LEADING.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def position(self, at: int) -> Position:
        """The line and column of an offset."""
        line = bisect_right(self._lines, at)
        return Position(line, at - self._lines[line - 1] + 1)

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def error(self, message: str, at: int | None = None) -> MlirError:
        """A complaint, about the current place if no other is named."""
        return MlirError(self.position(self.at if at is None else at), message)

    def missing(self, kind: str) -> MlirError:
        """The complaint that something else than ``kind`` stands here."""
        word = _NEXT_WORD.match(self.text, self.at)
        if word and "\udc80" <= word[0][0] <= "\udcff":  # what surrogateescape makes of a byte
            return self.error(f"here must be {kind} in UTF-8, not the byte {ord(word[0][0]) - 0xDC00:#x}")
        return self.error(f"here must be {kind}, not {repr(word[0]) if word else 'the end of the text'}")

    def sees(self, literal: str) -> bool:
        """Whether these characters stand here."""
        return self.text.startswith(literal, self.at)

    def take(self, literal: str) -> bool:
        """Passes these characters if they stand here, and says whether they did."""
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        if self.text[self.at : self.at + 1] in _BEFORE_TOKENS:
            self.skip()
        return True

    def expect(self, literal: str) -> None:
        """Passes these characters, which must stand here."""
        if not self.take(literal):
            raise self.missing(repr(literal))

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Passes a token and returns it, or None if another one stands here."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[1]

    def demand(self, pattern: re.Pattern[str], kind: str) -> str:
        """Passes a token, which must stand here."""
        text = self.match(pattern)
        if text is None:
            raise self.missing(kind)
        return text

    def enter(self) -> None:
        """Counts one more level of nesting, and a part; the caller counts the level down at its end."""
        self.count(1)
        self.depth += 1
        self.reached = max(self.reached, self.depth)
        if self.depth > DEEPEST:
            raise self.error(f"types, attributes and regions must not be nested more than {DEEPEST} deep")

    def count(self, parts: int) -> None:
        """Counts parts of what is read."""
        self.parts += parts
        if self.parts > MOST_PARTS:
            raise self.error(f"an operation must have at most {MOST_PARTS} parts, with aliases written out")

    def integer(self, kind: str) -> int:
        """Passes a decimal integer of 64 bits."""
        at = self.at
        digits = self.demand(INTEGER, kind)
        if len(digits) > 20 or not -(1 << 63) <= (value := int(digits)) < 1 << 63:
            raise self.error(f"{kind} must have at most 64 bits, not the {len(digits)} characters that stand here", at)
        return value

    def string(self, kind: str) -> str:
        """Passes a string in quotation marks and returns what it says."""
        at = self.at
        literal = self.demand(STRING, kind)
        try:
            return unescaped(literal)
        except ValueError as error:
            raise self.error(str(error), at) from None

    def balanced(self) -> None:
        """Passes everything from the opening bracket that stands here to the one that closes it."""
        start = self.at
        if self.text[start : start + 1] not in _CLOSING:
            raise self.missing("an opening bracket")
        stack: list[str] = []
        for match in _BRACKET.finditer(self.text, start):
            bracket = match[0]
            if bracket in _CLOSING:
                stack.append(_CLOSING[bracket])
            elif bracket in (">", ")", "]", "}"):
                if bracket != stack.pop():
                    raise self.error(f"{bracket!r} closes nothing", match.start())
                if not stack:
                    self.at = match.end()
                    return
        raise self.error(f"{self.text[start]!r} must be closed before the end of the text", start)


def unescaped(literal: str) -> str:
    """What a string in quotation marks says; raises ValueError if a backslash stands before anything unknown."""
    body = literal[1:-1]
    if "\\" not in body and body.isascii():
        return body
    try:
        data = body.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError("a string must have characters of Unicode only, no surrogates") from None
    rest = _ESCAPE.sub(b"", data)
    if b"\\" in rest:
        raise ValueError("in a string, a backslash must stand before n, t, a quotation mark, itself or two hex digits")
    return _ESCAPE.sub(_escaped, data).decode("utf-8", "surrogateescape")


def _escaped(match: re.Match[bytes]) -> bytes:
    return _ESCAPED.get(match[1]) or bytes.fromhex(match[1].decode("ascii"))


def escaped(text: str) -> str:
    """The text as it stands between quotation marks: other than printable ASCII as hexadecimal bytes."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    data = text.encode("utf-8", "surrogateescape")
    return "".join(_ESCAPES.get(byte) or f"\\{byte:02X}" for byte in data)


_ESCAPES = {byte: chr(byte) for byte in range(0x20, 0x7F)} | {ord("\\"): "\\\\"}
del _ESCAPES[ord('"')]
