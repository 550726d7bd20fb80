"""What is said of attempts that do not end PROVED: where an obligation fails, and which conditions contradict."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pysmt.shortcuts as smt

from ila_lang import Expr, all_of
from ila_lang.conditions import size_text
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Obligation
from smt_encodings.discharge import decide
from smt_encodings.expressions.bits import BitEncoding
from smt_encodings.expressions.integers import IntegerEncoding, NotLinearizable

from .operators import Operator
from .proof import Proof


def sizes_in_model(proof: Proof, failed: Obligation) -> dict[str, int] | None:
    """Sizes inside the domain at which a solver says that an obligation fails; those left open are of a sample."""
    model = next((a.model for a in failed.answers if a.status == "sat" and a.model), None)
    if model is None or failed.group == "lemmas":  # lemmas are not of sizes
        return None
    sizes, bits = proof.mapping.sample_sizes(Random(0))[0], BitEncoding(proof.mapping.abstract)
    for name, variable in proof.mapping.parameters.items():
        for symbol in (proof.base.symbol(variable), bits.term(variable)):  # of indices, and among data
            sizes[name] = model.get(symbol.symbol_name(), sizes[name])
    return sizes if proof.mapping.holds(sizes) else None


def contradiction(mapping: TensorMapping) -> str:
    """Which parts of an unsatisfiable precondition contradict each other: without any one of them, none is shown."""
    rows, columns = size_text(mapping.rows), size_text(mapping.columns)
    parts = list(zip(mapping.conditions, (c for _, c in mapping.domain), strict=True))
    parts.append((f"an output of {rows} x {columns} has a cell", all_of(mapping.cell_conditions)))
    for part in parts[::-1]:
        fewer = [p for p in parts if p is not part]
        if _unsatisfiable([condition for _, condition in fewer]):
            parts = fewer
    texts = [f"'{text}'" for text, _ in parts]
    so = "never holds" if len(texts) == 1 else "contradict each other"
    return f"no size satisfies the precondition: {' and '.join(texts)} {so}"


def different_operators(device: tuple[Operator | None, Expr], ir: tuple[Operator | None, Expr]) -> str:
    """By what two sums, of which the operators are known or not, combine their summands."""
    texts = list[str]()
    for side, (operator, root) in (("the device", device), ("the IR", ir)):
        if operator is None:
            return f"{side} folds by no operator whose order is free"
        texts.append(f"{side}{' folds' if not texts else ''} by {operator.reduction.operator.name} to {root.sort}")
    return ", and ".join(texts)


def _unsatisfiable(conditions: Sequence[Expr]) -> bool:
    encoding = IntegerEncoding(decide, "size")  # what the other conditions imply is not known here
    try:
        for condition in conditions:
            encoding.assume(condition)
    except NotLinearizable:
        return False
    return decide(encoding.hypotheses, smt.FALSE(), 2.0)
