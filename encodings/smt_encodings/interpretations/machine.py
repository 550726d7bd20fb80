"""Machine numbers as bit-vector terms: integers, fixed point, and formats given by primitives.

The operators' expressions are those that are also run on concrete values; here they only change their notation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from pysmt.fnode import FNode

from ila_lang import Expr
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.printer import script

from .protocol import CannotInterpret, DataFormat, K, Literal, MachineDomain


@dataclass
class MachineBits(Generic[K]):
    """The encoding of machine numbers; ``machine`` has the operators' meaning."""

    machine: MachineDomain[K]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Nothing is assumed."""
        return ()

    def variable(self, name: str, kind: K) -> Expr:
        """The code as a bit-vector variable."""
        _check(kind)
        return self.machine.variable(name, kind)

    def constant(self, value: Literal, kind: K) -> Expr:
        """The code as a literal."""
        _check(kind)
        return self.machine.constant(value, kind)

    def apply(self, op: str, kind: K, kinds: Sequence[K], args: Sequence[Expr]) -> Expr:
        """The operator's expression."""
        for each in (kind, *kinds):
            _check(each)
        return self.machine.apply(op, kind, kinds, args)

    def script(self, assertions: Sequence[Expr], comment: str = "", beside: Sequence[FNode] = ()) -> str:
        """The question, over bit-vectors alone but for further assertions ``beside``."""
        encoding = BitEncoding()
        return script([*(encoding.term(a) for a in assertions), *beside], comment=comment)


def _check(kind: DataFormat) -> None:
    if kind.family not in ("boolean", "integer", "fixed", "code"):
        raise CannotInterpret(f"bit-vectors must be machine numbers, not {kind}")
