"""Which elements of input tensors both sides read, and which make no difference: guesses for :mod:`.equivalence`."""

from __future__ import annotations

from collections.abc import Sequence

import pysmt.shortcuts as smt

from chc.mapping.contents.values import Source
from ila_lang import Expr, substitute
from ila_lang.mapping import TensorMapping
from smt_encodings.discharge import decide
from smt_encodings.environment import fresh
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.values import differ, differing_values, lemma_instances


def makes_no_difference(mapping: TensorMapping, value: Expr, symbol: Expr) -> bool:
    """Whether a value is the same for whatever stands for a symbol."""
    other = substitute(value, {symbol: fresh("any.word", symbol.sort)})
    if differing_values(value, other) is not None:
        return False
    encoding = BitEncoding(mapping.abstract)
    lemmas = lemma_instances(mapping.lemmas, [value, other], encoding)
    return decide(lemmas, smt.Not(differ(encoding, value, other)))


def same_cell(source: Source, others: Sequence[Source]) -> int | None:
    """Which of other cells is at the same index at all samples; None for none of them."""
    for number, other in enumerate(others):
        values = source.context.samples.evaluate([source.reader.cell(), other.reader.cell()])
        if all(a == b for a, b in values):
            return number
    return None
