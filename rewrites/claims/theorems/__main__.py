"""``python -m rewrites.claims.theorems``: renews the tables of docs/reference/numerics.md."""

from __future__ import annotations

from .document import DOCUMENT, updated

if __name__ == "__main__":
    DOCUMENT.write_text(updated(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
