"""Tables in Markdown, and their places in documents."""

from __future__ import annotations

from collections.abc import Iterable


def row(*cells: object) -> str:
    """A line of a table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def head(*names: str) -> list[str]:
    """The first two lines of a table."""
    return [row(*names), "|---" * len(names) + "|"]


def with_table(document: str, name: str, lines: Iterable[str]) -> str:
    """The document with the table of that name replaced; raises ValueError where it has no place for it."""
    first, last = f"<!-- {name}: written by python -m docs.tables -->", f"<!-- end of {name} -->"
    before, begin, rest = document.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the document must have the lines {first!r} and {last!r} around its table")
    return "\n".join([before + begin, *lines, end + after])
