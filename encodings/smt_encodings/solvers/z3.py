"""The one module that touches z3: SMT-LIB text in, answers out; Horn clauses in, invariants out."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import z3

from smt_encodings.claims import Answer

FIRST_ATTEMPT = 0.5
"""Seconds of the first attempt at a question."""

STEPS = 1_000_000
"""Units of z3's own resource counter in a second: 1 to 3 million are measured, for integers and for bit-vectors."""


def version() -> str:
    """Name and version of the solver."""
    return "z3 " + ".".join(map(str, z3.get_version()[:3]))


def check(smtlib: str, timeout: float, patience: float = 1.0, *, alone: float | None = None) -> Answer:
    """Answers one SMT-LIB script (its commands after ``(check-sat)`` are ignored); ``timeout`` in seconds.

    Nonlinear questions are answered at once or not at all, depending on the engine and the random seed; so the time is
    spent on attempts of growing length: the plain SMT core first (it answers index arithmetic 15 times faster than the
    tactics that z3 picks; bit-vectors need those), then z3's choice with different seeds.
    With ``patience`` above 1 the solver's own counter limits each attempt, to what fits in the time on an idle machine,
    so that the answer is the same on a busy one; the clock ends it only after ``patience`` times as long.
    With ``alone``, the seconds of the first attempt, all are z3's choice in contexts of their own: then the answer, and
    the model, do not depend on what was asked before.
    Raises ValueError where z3's parser rejects the text.
    """
    start = time.perf_counter()
    plain = "(set-logic QF_BV)" not in smtlib
    share = min(alone or (FIRST_ATTEMPT if plain else 10 * FIRST_ATTEMPT), timeout)
    answer, counted = Answer("unknown", 0.0, version()), 0.0
    if alone is None:
        answer, counted = _attempt(smtlib, share, patience, 0, None, plain=plain), share
    seed = 1
    while answer.status == "unknown":
        left = timeout - (counted if patience > 1 else time.perf_counter() - start)
        if left <= 0.01:
            break
        share = min(share if seed == 1 else share * 1.5, left)
        answer = _attempt(smtlib, share, patience, seed, z3.Context())
        seed, counted = seed + 1, counted + share
    return replace(answer, seconds=time.perf_counter() - start)


def _limit(solver: z3.Solver, seconds: float, patience: float = 1.0) -> None:
    solver.set("ctrl_c", False)  # else z3 handles Ctrl-C itself, and where it has an answer the interrupt is lost
    solver.set("timeout", max(1, int(seconds * patience * 1000)))
    if patience > 1:
        solver.set("rlimit", max(1, int(seconds * STEPS)))


def _attempt(
    smtlib: str, seconds: float, patience: float, seed: int, context: z3.Context | None, plain: bool = False
) -> Answer:
    solver = z3.SimpleSolver(ctx=context) if plain else z3.Solver(ctx=context)
    _limit(solver, seconds, patience)
    if seed:
        solver.set("random_seed", seed)
    try:
        solver.from_string(smtlib)
    except z3.Z3Exception as error:
        raise ValueError(f"z3 must be given well-formed SMT-LIB; it says: {error}") from error
    result = str(solver.check())
    model: dict[str, int] = {}
    if result == "sat":
        assignment = solver.model()
        for declaration in assignment.decls():
            value = assignment[declaration]
            if declaration.arity() == 0 and (z3.is_bv_value(value) or z3.is_int_value(value)):
                model[declaration.name()] = value.as_long()
            elif declaration.arity() == 0 and z3.is_bool(value):
                model[declaration.name()] = int(z3.is_true(value))
    reason = solver.reason_unknown() if result == "unknown" else ""
    return Answer(result, 0.0, version(), reason, model)


def core(smtlib: str, timeout: float, patience: float = 1.0) -> list[int] | None:
    """Positions of assertions of a script that are unsatisfiable together; None unless z3 answers unsat.

    ``timeout`` and ``patience`` are those of :func:`check`.
    """
    solver = z3.Solver()
    _limit(solver, timeout, patience)
    labels = {}
    for position, assertion in enumerate(z3.parse_smt2_string(smtlib)):
        label = z3.Bool(f"assertion!{position}")
        labels[label.get_id()] = position
        solver.assert_and_track(assertion, label)
    if str(solver.check()) != "unsat":
        return None
    return sorted(labels[label.get_id()] for label in solver.unsat_core())


@dataclass(frozen=True)
class HornAnswer:
    """Spacer's answer: "sat" with one invariant per predicate, "unsat" (the bad state is reachable) or "unknown".

    An invariant is SMT-LIB text over the argument names given to :func:`solve_horn`.
    """

    status: str
    seconds: float
    invariants: dict[str, list[str]]
    reason: str = ""


def solve_horn(smtlib: str, arguments: dict[str, list[str]], timeout: float) -> HornAnswer:
    """Asks Spacer for a model of a system of Horn clauses.

    ``arguments`` names each predicate's arguments; the invariants, one SMT-LIB term per conjunct, use these names.
    They do not depend on what was asked before.
    """
    start = time.perf_counter()
    solver = z3.SolverFor("HORN", ctx=z3.Context())
    _limit(solver, timeout)
    solver.from_string(smtlib)
    result = str(solver.check())
    invariants: dict[str, list[str]] = {}
    if result == "sat":
        model = solver.model()
        for declaration in model.decls():
            if declaration.name() not in arguments:
                continue
            names = arguments[declaration.name()]
            interpretation = model[declaration]
            if declaration.arity() == 0:
                body = interpretation
            else:
                # a universal interpretation: its else branch over de Bruijn variables
                sorts = [declaration.domain(i) for i in range(declaration.arity())]
                constants = [z3.Const(n, s) for n, s in zip(names, sorts, strict=True)]
                body = z3.substitute_vars(interpretation.else_value(), *constants)
            body = z3.simplify(body, arith_lhs=False)
            conjuncts = body.children() if z3.is_and(body) else [body]
            invariants[declaration.name()] = [_text(c) for c in conjuncts]
    reason = solver.reason_unknown() if result == "unknown" else ""
    return HornAnswer(result, time.perf_counter() - start, invariants, reason)


def _text(term: z3.ExprRef) -> str:
    """SMT-LIB text on one line, without ``let``."""
    if z3.is_int_value(term):
        value = term.as_long()
        return str(value) if value >= 0 else f"(- {-value})"
    if not term.children():
        return str(term.decl().name())
    return f"({term.decl().name()} {' '.join(_text(c) for c in term.children())})"
