"""The checks of a compiled model that need no certificates: its content is generated again and compared.

Runs do this before they execute anything, so it uses neither solvers nor rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ila_lang import canonical_text
from rewrites.compiler.codegen import host_problem
from rewrites.compiler.memory.plan_checker import PlanError, check_memory_plan

from .model import Compiled
from .summary import summary_text


@dataclass(frozen=True)
class Check:
    """The check of one part: ``what`` it is, a ``summary`` of its content, and its ``problems`` (none if it passes)."""

    what: str
    summary: str
    problems: tuple[str, ...] = ()


def check_contents(compiled: Compiled) -> Iterator[Check]:
    """The checks that need no certificates: programs, memory plan, summary."""
    yield _programs(compiled)
    yield _plan(compiled)
    yield _summary(compiled)


def _programs(compiled: Compiled) -> Check:
    """Every program, described again from the fragment of its mapping, its sizes, and the model's constants."""
    problems = []
    count = commands = 0
    for number, implementation in compiled.implementations.items():
        node = compiled.graph.nodes[number]
        for k, stored in enumerate(compiled.programs[number]):
            expected = implementation.described(k)
            count, commands = count + 1, commands + expected["commands"]
            wrong = [k for k, value in expected.items() if canonical_text(stored.get(k)) != canonical_text(value)]
            if wrong or len(stored) != len(expected):
                problems.append(
                    f"node {number} ({node.operator}): program {k} must be the proved fragment of "
                    f"{implementation.calls[k].mapping.name} at its sizes, with the model's constants; it is another "
                    f"({', '.join(wrong)})"
                )
    return Check("programs", f"{count} programs of {commands:,} commands are those of proved mappings", tuple(problems))


def _plan(compiled: Compiled) -> Check:
    problem, plan = compiled.memory.problem, compiled.memory.plan
    summary = f"{len(plan.addresses)} host tensors have places in {plan.peak:,} bytes, and none overlap"
    if host_problem(compiled.graph) != problem:
        return Check("memory plan", summary, ("the plan must be one for the tensors of this graph; it is for others",))
    try:
        check_memory_plan(problem, plan)
    except PlanError as error:
        return Check("memory plan", summary, (str(error),))
    return Check("memory plan", summary)


def _summary(compiled: Compiled) -> Check:
    """SUMMARY.md, and the operators that stay on the host; why they do is what the compiler said."""
    nodes = enumerate(compiled.graph.nodes)
    left = Counter(
        node.operator
        for number, node in nodes
        if node.operator not in ("input", "constant") and number not in compiled.implementations
    )
    named = Counter[str]()
    for entry in compiled.host:
        named[entry.operator] += entry.count
    problems = [] if summary_text(compiled) == compiled.summary else ["SUMMARY.md must be of this model"]
    if dict(named) != left:
        expected = ", ".join(f"{count} {operator}" for operator, count in sorted(left.items())) or "none"
        problems.append(f"the operators on the host must be those that no program computes: {expected}")
    return Check("summary", "SUMMARY.md says what the model says", tuple(problems))
