"""The CHC method: a mapping proved for every size of its domain, without unrolling and without given invariants.

The theorem is about one arbitrary output cell: after both programs ran, the cells are equal.  Its parts, each an
obligation that z3 and cvc5 answer (:mod:`chc.mapping.dataflow`, :mod:`chc.mapping.horn.levels` say why they suffice):

1. the precondition is satisfiable, and the cell's coordinates reach every element of the output;
2. index arithmetic stays within its bit widths;
3. which write gave each cell its value, and in which iteration;
4. per loop level, the invariants that Spacer inferred hold at the start, are kept, and exclude the bad states;
5. both sides read the same cells of the same input tensor;
6. the values are equal for every choice of the data functions that satisfies the lemmas.  The lemmas are proved for
   the functions' closed forms, bit by bit, so the closed forms are such a choice and the claim is bit-exact.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pysmt.exceptions import PysmtException

from ila_lang.mapping import SizeError, TensorMapping
from smt_encodings.claims import Claim, Equality, Interpretation, Status, Unsupported, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols, plain
from smt_encodings.naming import distinct
from smt_encodings.values import prove_lemmas

from .dataflow import prove_by_dataflow
from .diagnosis import contradiction, sizes_in_model
from .horn.invariants import about_state, given_or_inferred, shown
from .horn.systems import Level
from .proof import Proof


def claim_of(mapping: TensorMapping) -> Claim:
    """What a PROVED of this method says."""
    return Claim(
        subject=mapping.name,
        statement=mapping.statement,
        size_domain=mapping.size_domain,
        equality=Equality.BIT_EXACT,
        interpretations=(Interpretation.UNINTERPRETED, Interpretation.BITS),
        assumptions=mapping.assumptions,
        compared=plain(mapping.compared),
    )


def prove(
    mapping: TensorMapping,
    *,
    discharger: Discharger | None = None,
    horn_timeout: float = 10.0,
    invariants: Mapping[str, Sequence[str]] | None = None,
) -> Verdict:
    """Proves a mapping for every size of its domain.

    The answer is PROVED, VACUOUS or UNKNOWN; this method does not search for counterexamples.  Where a solver has a
    model of an obligation that fails, ``details["suspects"]`` has its sizes.  With ``invariants`` (SMT-LIB conjuncts by
    level) Spacer is not asked; what is given is checked like what is inferred.
    """
    with fresh_symbols():
        return _prove(Proof(distinct(mapping), discharger or Discharger(), horn_timeout, invariants))


def _prove(proof: Proof) -> Verdict:
    start = time.perf_counter()
    suspects: list[dict[str, int]] = []
    try:
        if _precondition(proof):
            _run(proof)
            status, reason = proof.discharger.conclude()
        else:
            status, reason = Status.VACUOUS, plain(contradiction(proof.mapping))
    except (NotDischarged, Unsupported, SizeError) as error:
        status, reason = Status.UNKNOWN, plain(str(error))
        if isinstance(error, NotDischarged) and (sizes := sizes_in_model(proof, error.obligation)):
            suspects.append(sizes)
            reason += f", at {', '.join(f'{name} = {value}' for name, value in sizes.items())}"
    except (PysmtException, ValueError) as error:
        status, reason = Status.ERROR, str(error)
    finally:
        proof.discharger.abandon()
    return Verdict(
        status,
        claim_of(proof.mapping),
        "chc",
        time.perf_counter() - start,
        reason,
        proof.discharger.obligations,
        proof.invariants,
        {"levels": proof.shown, "in_addition": ["health"], "takes": proof.takes, "suspects": suspects},
    )


def _precondition(proof: Proof) -> bool:
    encoding = proof.base
    for _, condition in proof.mapping.domain:
        encoding.assume(condition)
    for _, extent in proof.mapping.coordinates:
        encoding.term(extent)  # first, so that its quotients are the same symbols in both
    proof.domain = encoding.fork("domain")
    for condition in proof.mapping.cell_conditions:
        encoding.assume(condition)
    meaning = "some size satisfies the precondition and has an output cell"
    try:
        proof.discharger.ask("health", "precondition satisfiable", encoding.hypotheses, meaning, expected="sat")
    except NotDischarged as error:
        if any(a.status == "unsat" for a in error.obligation.answers):
            return False
        raise
    return True


def _run(proof: Proof) -> None:
    mapping = proof.mapping
    prove_lemmas(proof.discharger, mapping.lemmas, background=True)
    prove_by_dataflow(proof)
    with fresh_symbols():  # a level speaks of nothing but its own counters and parameters
        for level in proof.levels:
            _level(proof, level)


def _level(proof: Proof, level: Level) -> None:
    """A loop level's invariant, which is inferred, holds at the start, is kept, and excludes the bad states."""
    system, key = level.system, level.key
    invariant = given_or_inferred(system, key, proof.given, proof.horn_timeout, proof.inferred)
    kind = "lock-step" if level.relational else "single loop"
    use = f"the theorem takes from it that {' and that '.join(level.takes)}"
    proof.takes[key] = level.takes
    for name, assertions in system.conditions(invariant.term).items():
        proof.discharger.ask(f"invariant {key}", name, assertions, f"{kind}: the inferred invariant {name}; {use}")
    texts = proof.levels.names.texts
    proof.invariants[key] = about_state(invariant, system, texts)
    proof.shown[key] = shown(invariant, system, texts)
