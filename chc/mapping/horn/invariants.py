"""Inferring, re-checking and printing the invariant of one loop level.

Spacer answers first; its invariant is re-checked clause by clause (never skipped) and thinned to an irredundant set
of conjuncts.  Where Spacer gives up, the candidates read off the loop are filtered to their largest inductive subset
(Houdini); the result goes through the same re-check.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pysmt.shortcuts as smt
from pysmt.exceptions import PysmtException
from pysmt.fnode import FNode
from pysmt.smtlib.parser import SmtLibParser

from smt_encodings.answers import ask
from smt_encodings.claims import Unsupported
from smt_encodings.expressions.integers import is_linear
from smt_encodings.printer import declarations, script, term_text
from smt_encodings.solvers import z3 as solver_z3

from .levels import System


@dataclass(frozen=True)
class Inferred:
    """An invariant that passed the re-check: its conjuncts, how it was found, and the time it took."""

    conjuncts: tuple[FNode, ...]
    found_by: str
    seconds: float

    @property
    def term(self) -> FNode:
        """The conjunction."""
        return smt.And(self.conjuncts)


def infer(system: System, timeout: float, known: dict[str, Inferred] | None = None) -> Inferred | str:
    """The invariant of a level, or the reason why none was found; ``timeout`` in seconds for Spacer.

    Loops that differ in nothing but names have the same invariant: ``known`` keeps those found before, by the Horn
    clauses of the system without its names, and takes the new one.
    """
    known = {} if known is None else known
    shape = system.anonymous()
    text = shape.horn()
    inferred = known.get(text) or _infer(shape, timeout)
    if isinstance(inferred, str):
        return f"level {system.name}: {inferred}"
    known[text] = inferred
    names = dict(zip(shape.arguments.values(), system.arguments.values(), strict=True))
    return replace(inferred, conjuncts=tuple(c.substitute(names) for c in inferred.conjuncts))


def given_or_inferred(
    system: System, key: str, given: Mapping[str, Sequence[str]] | None, timeout: float, known: dict[str, Inferred]
) -> Inferred:
    """The invariant of the level ``key``: of those given, if any are, or inferred; raises Unsupported without one."""
    if given is None:
        inferred = infer(system, timeout, known)
        if isinstance(inferred, str):
            raise Unsupported(inferred)
        return inferred
    if key not in given:
        raise Unsupported(f"no invariant is given for {key}")
    try:
        conjuncts = tuple(parse_term(t, system.arguments) for t in given[key])
    except (PysmtException, KeyError) as error:
        raise Unsupported(f"the invariant given for {key} cannot be read: {error}") from error
    return Inferred(conjuncts, "given", 0.0)


def about_state(invariant: Inferred, system: System, texts: Mapping[str, str]) -> list[str]:
    """What an invariant says of more than parameters, as readable lines."""
    parameters = set(system.parameters.values())
    conjuncts = tuple(c for c in invariant.conjuncts if not c.get_free_variables() <= parameters)
    return show_invariant(conjuncts, texts)


def shown(invariant: Inferred, system: System, texts: Mapping[str, str]) -> dict[str, object]:
    """What certificates show of a level."""
    return {
        "found_by": invariant.found_by,
        "seconds": invariant.seconds,
        "horn": system.horn(),
        "invariant": [term_text(c) for c in invariant.conjuncts],
        "names": {n: texts[n] for n in system.parameters},
    }


_Solve = Callable[[str, dict[str, list[str]], float], solver_z3.HornAnswer]


@lru_cache(maxsize=1000)
def _spacer(solve: _Solve, text: str, name: str, arguments: tuple[str, ...], timeout: float) -> solver_z3.HornAnswer:
    """What Spacer says of a system, which claims that are alike ask again; it is re-checked each time."""
    return solve(text, {name: list(arguments)}, timeout)


def _infer(system: System, timeout: float) -> Inferred | str:
    answer = solver_z3.HornAnswer("unknown", 0.0, {}, "products of symbols are beyond it")
    if is_linear(system.init):
        answer = _spacer(solver_z3.solve_horn, system.horn(), system.PREDICATE, tuple(system.arguments), timeout)
    if answer.status == "unsat":
        return "Spacer: the bad states are reachable"
    if answer.status == "sat":
        try:
            conjuncts = [parse_term(t, system.arguments) for t in answer.invariants[system.PREDICATE]]
        except (PysmtException, KeyError):
            conjuncts = []
        if conjuncts and _proves(system, conjuncts):
            return Inferred(tuple(_thin(system, conjuncts)), "Spacer", answer.seconds)
    kept = _houdini(system, system.seeds())
    if _proves(system, kept):
        return Inferred(tuple(_thin(system, kept)), "candidates read off the loop", answer.seconds)
    return f"no invariant found (Spacer: {answer.status} {answer.reason})"


def parse_term(text: str, symbols: Mapping[str, FNode]) -> FNode:
    """A quantifier-free SMT-LIB term over the given symbols; raises PysmtException where the text is not one."""
    declared = declarations(symbols.values())
    source = "\n".join([*declared, f"(assert {text})"])
    try:
        commands = SmtLibParser().get_script(io.StringIO(source)).commands
    except Exception as error:  # pySMT's parser fails in many ways on text that is no term
        smt.get_env().stc.stack.clear()  # else the next term is checked with what is left of this one
        raise PysmtException(f"not an SMT-LIB term: {text[:80]} ({error})") from error
    term = commands[-1].args[0] if len(commands) == len(declared) + 1 else None
    # a counter inside a quantifier would not be replaced by its next value
    if not isinstance(term, FNode) or not smt.get_type(term).is_bool_type() or not smt.get_env().qfo.is_qf(term):
        raise PysmtException(f"not one quantifier-free condition: {text[:80]}")
    if not term.get_free_variables() <= set(symbols.values()):
        raise PysmtException(f"not a condition over {', '.join(symbols)}: {text[:80]}")
    return term


def _unsat(assertions: list[FNode]) -> bool:
    return ask(solver_z3.check, script(assertions), 10).status == "unsat"


def _proves(system: System, conjuncts: list[FNode]) -> bool:
    return all(_unsat(condition) for condition in system.conditions(smt.And(conjuncts)).values())


def _thin(system: System, conjuncts: list[FNode]) -> list[FNode]:
    """An irredundant subset that still proves the system."""
    kept = list(conjuncts)
    for conjunct in sorted(conjuncts, key=lambda c: -len(str(c))):
        rest = [c for c in kept if c is not conjunct]
        if len(rest) < len(kept) and rest:
            _, *others = system.conditions(smt.And(rest)).values()  # what is weaker holds at the start, too
            if all(_unsat(condition) for condition in others):
                kept = rest
    return kept


def _houdini(system: System, candidates: list[FNode]) -> list[FNode]:
    """The candidates that hold at the start and are kept by every iteration, together."""
    kept = [c for c in candidates if _unsat([system.init, smt.Not(c)])]
    while True:
        together = smt.And(kept)
        stable = [c for c in kept if _unsat([together, system.guard, smt.Not(c.substitute(system.next))])]
        if len(stable) == len(kept):
            return kept
        kept = stable


# -- printing ---------------------------------------------------------------------------------------


def show_invariant(conjuncts: tuple[FNode, ...], names: Mapping[str, str]) -> list[str]:
    """The conjuncts as readable lines; ``names`` gives the text of parameters.

    Linear atoms are written with positive coefficients on both sides; a pair of opposite inequalities becomes one
    equation; clauses become implications.
    """
    lines = list(dict.fromkeys(_show(c, names) for c in conjuncts))
    merged: list[str] = []
    for line in lines:
        left, op, right = _split(line)
        if op == "<=" and f"{right} <= {left}" in lines:
            merged.append(f"{max(left, right)} = {min(left, right)}")
        elif op == "<=" and left == "0" and f"{right} < 2" in lines:
            merged.append(f"{right} is 0 or 1")
        elif not (line.endswith(" < 2") and f"0 <= {line.removesuffix(' < 2')}" in lines):
            merged.append(line)
    return sorted(dict.fromkeys(merged), key=_rank)


def _rank(line: str) -> tuple[int, str]:
    """Equations between counters first, then bounds, then implications."""
    if "=>" in line or " or " in line.replace(" is 0 or 1", ""):
        return 3, line
    if " = " in line:
        return 0, line
    return (1 if "writes" in line else 2), line


def _split(line: str) -> tuple[str, str, str]:
    if line.count(" <= ") == 1 and "=>" not in line and " or " not in line:
        left, right = line.split(" <= ")
        return left, "<=", right
    return line, "", ""


def _show(term: FNode, names: Mapping[str, str], negated: bool = False) -> str:
    if term.is_not():
        return _show(term.arg(0), names, not negated)
    if term.is_symbol():
        text = _name(term, names)
        return f"not {text}" if negated else text
    if term.is_bool_constant():
        return str(term.constant_value() != negated).lower()
    if term.is_and() or term.is_or():
        if term.is_or() != negated:
            return _clause(term.args(), names, negated)
        return " and ".join(_atom(a, names, negated) for a in term.args())
    if term.is_implies() and not negated:
        return f"{_atom(term.arg(0), names, False)} => {_atom(term.arg(1), names, False)}"
    if term.is_iff():
        return f"{_atom(term.arg(0), names, negated)} <=> {_atom(term.arg(1), names, False)}"
    if term.is_le() or term.is_lt() or term.is_equals():
        return _linear(term, names, negated)
    if term.is_ite():
        a, b, c = (_atom(x, names, False) for x in term.args())
        return f"(if {a} then {b} else {c})"
    return str(term)


def _name(symbol: FNode, names: Mapping[str, str]) -> str:
    """A parameter's text, or the name of what the system counts, such as ``device!writes``."""
    name = str(symbol.symbol_name())
    return names.get(name, name.replace("!", "."))


def _atom(term: FNode, names: Mapping[str, str], negated: bool) -> str:
    text = _show(term, names, negated)
    return f"({text})" if " and " in text or " or " in text or "=>" in text else text


def _clause(args: tuple[FNode, ...], names: Mapping[str, str], negated: bool) -> str:
    """A disjunction as an implication from its negated-looking atoms to the last one."""
    if len(args) == 2:
        return f"{_atom(args[0], names, not negated)} => {_atom(args[1], names, negated)}"
    return " or ".join(_atom(a, names, negated) for a in args)


def _linear(term: FNode, names: Mapping[str, str], negated: bool) -> str:
    coefficients: dict[str, int] = {}
    constant = _collect(term.arg(0), 1, coefficients, names) + _collect(term.arg(1), -1, coefficients, names)
    op = "=" if term.is_equals() else "<=" if term.is_le() else "<"
    if negated:
        op = {"=": "!=", "<=": ">", "<": ">="}[op]
    if op == "<" or (op == ">" and constant == 1):
        op, constant = ("<=", constant + 1) if op == "<" else (">=", constant - 1)
    left = [_product(c, n) for n, c in sorted(coefficients.items()) if c > 0]
    right = [_product(-c, n) for n, c in sorted(coefficients.items()) if c < 0]
    if constant > 0:
        left.append(str(constant))
    elif constant < 0:
        right.append(str(-constant))
    if op == ">=" or op == ">":
        flip = {">=": "<=", ">": "<"}
        left, right, op = right, left, flip[op]
    text_left, text_right = " + ".join(left) or "0", " + ".join(right) or "0"
    if op == "<=" and left and left[-1] == "1" and len(left) > 1:
        text_left, op = " + ".join(left[:-1]), "<"
    return f"{text_left} {op} {text_right}"


def _product(coefficient: int, name: str) -> str:
    return name if coefficient == 1 else f"{coefficient}*{name}"


def _collect(term: FNode, factor: int, into: dict[str, int], names: Mapping[str, str]) -> int:
    """Adds ``factor * term`` to the coefficients; returns the constant part."""
    if term.is_int_constant():
        return factor * int(term.constant_value())
    if term.is_plus():
        return sum(_collect(a, factor, into, names) for a in term.args())
    if term.is_minus():
        return _collect(term.arg(0), factor, into, names) + _collect(term.arg(1), -factor, into, names)
    if term.is_times() and term.arg(0).is_int_constant():
        return _collect(term.arg(1), factor * int(term.arg(0).constant_value()), into, names)
    name = _name(term, names) if term.is_symbol() else _atom(term, names, False)
    into[name] = into.get(name, 0) + factor
    return 0
