"""That two readers read one cell is asked under a name of its own each time."""

from __future__ import annotations

from dataclasses import dataclass, field

import pysmt.shortcuts as smt
import pytest
from pysmt.fnode import FNode
from pysmt.typing import INT

from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Reader
from chc.mapping.proof import Proof
from chc.mapping.sampling.samples import Samples
from ila_lang import bv, const, var
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.naming import distinct
from tests.chc.mapping.toy import mapping


@dataclass(frozen=True)
class At(Reader):
    """A reader of a cell whose address is a given integer."""

    integer: FNode = field(default_factory=lambda: smt.Int(0))

    def term(self, context: Context) -> FNode:
        return self.integer


def reader(integer: FNode, number: int) -> Reader:
    return At(const(0, 8), None, {var("i", bv(8)): const(number, 8)}, integer)


def test_two_readers_of_one_cell_twice_in_one_context() -> None:
    x = smt.Symbol("x", INT)
    proof = Proof(distinct(mapping()), Discharger(), 1.0, None)
    context = Context(proof, proof.base, (), Samples((), (), ()))
    one, two, three = (reader(t, k) for k, t in enumerate((x, smt.Plus(x, smt.Int(0)), smt.Minus(smt.Plus(x, x), x))))
    one.require_same(context, two)
    one.require_same(context, three)
    assert [(o.group, o.name) for o in proof.discharger.obligations] == [
        ("cells", "the cell"),
        ("cells", "the cell (2)"),
    ]
    assert proof.discharger.conclude() == (Status.PROVED, "")
    with pytest.raises(NotDischarged, match=r"obligation 'the cell \(3\)' \(cells\)"):
        one.require_same(context, reader(smt.Plus(x, smt.Int(1)), 3))
