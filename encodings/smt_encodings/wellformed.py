"""Well-formedness of models, by SMT: decodes exclusive and complete, kernels bounded.

ILAng leaves overlapping and incomplete decodes to the user (facts on ILAng, pain points); here they are obligations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pysmt.shortcuts as smt

from ila_lang import (
    CommandError,
    Expr,
    ExtentError,
    For,
    Ila,
    Instruction,
    Kernel,
    Let,
    Load,
    Machine,
    MemSort,
    Statement,
    Store,
    any_of,
    free_variables,
    inline,
    postorder,
    resize,
    substitute,
    walk,
)

from .claims import Obligation, Status, conclude
from .discharge import Discharger, NotDischarged
from .environment import fresh, fresh_symbols
from .expressions.bits import BitEncoding, variable_text
from .printer import script

MOST_ITERATIONS = 1 << 16
"""Iterations of all loops together of a run that is to confirm that an extent is too large."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: PROVED, REFUTED (``witness`` shows inputs and state) or UNKNOWN."""

    check: str
    status: Status
    witness: dict[str, int]


def check_ila(ila: Ila) -> list[Finding]:
    """Checks a model, for up to 20 seconds per solver and question.

    * no valid command in any state is decoded by two instructions;
    * every valid command in every state is decoded by one;
    * every loop of every kernel ends, from any state in which an instruction starts it: its extent is read once, and
      its counter is wide enough to count it.  REFUTED is said of a loop only where the interpreter refuses its extent.
    """
    with fresh_symbols():
        return _check(ila, Discharger(timeout=20.0))


def _check(ila: Ila, discharger: Discharger) -> list[Finding]:
    encoding = BitEncoding()
    instructions = list(ila.instructions.values())
    findings = []
    for position, instruction in enumerate(instructions):
        others = any_of([i.decode for i in instructions[position + 1 :]])
        both = ila.valid & instruction.decode & others
        findings.append(_ask(discharger, encoding, f"{instruction.name} is decoded alone", both))
    uncovered = ila.valid & ~any_of([i.decode for i in instructions])
    findings.append(_ask(discharger, encoding, "every valid command is decoded", uncovered))
    for kernel in dict.fromkeys(i.kernel for i in instructions if i.kernel is not None):
        starts = [list(_too_long(ila, i)) for i in instructions if i.kernel is kernel and not i.reserved]
        for number, loop in enumerate(s for s in walk(kernel.body) if isinstance(s, For)):
            name = f"loop {loop.counter.name} of {kernel.name} is bounded by its counter"
            finding = _ask(discharger, encoding, name, any_of([start[number] for start in starts]))
            if finding.status is Status.REFUTED and not _replays(ila, kernel, loop, finding.witness):
                finding = Finding(name, Status.UNKNOWN, {})
            findings.append(finding)
    return findings


def _too_long(ila: Ila, instruction: Instruction) -> Iterator[Expr]:
    """For each loop of the kernel that an instruction starts, in the order of :func:`walk`: a condition on command and
    state that holds wherever the loop is reached with too large an extent, for some values of made-up variables.

    What a loop assigns, before it and after it, a word that is loaded and a memory that is stored to are made up.
    """
    kernel = instruction.kernel
    assert kernel is not None
    values = {ila.states[name]: term for name, term in instruction.updates.items()}
    started = ila.valid & instruction.decode & substitute(instruction.kernel_guard, values)

    def block(body: Iterable[Statement], values: dict[Expr, Expr], reached: Expr) -> Iterator[Expr]:
        for statement in body:
            match statement:
                case For(counter=counter, extent=extent, body=inner):
                    changed = _changed(inner)
                    width = max(extent.width, counter.width) + 1
                    count = resize(substitute(extent, values), width)
                    yield reached & (count > (1 << counter.width))
                    within = values | {v: fresh(v.name, v.sort) for v in (*changed, counter)}
                    yield from block(inner, within, reached & (resize(within[counter], width) < count))
                    values |= {v: fresh(v.name, v.sort) for v in changed}
                case Let(target=target, value=value):
                    values[target] = substitute(value, values)
                case Load(target=target):
                    values[target] = fresh(target.name, target.sort)
                case _:
                    values |= {v: fresh(v.name, v.sort) for v in _changed([statement])}

    yield from block(kernel.body, values, started)


def _changed(body: Sequence[Statement]) -> list[Expr]:
    """The registers that statements assign and the memories that they store to."""
    targets: list[Expr] = []
    for statement in walk(list(body)):
        match statement:
            case Let(target=target, update=True):
                targets.append(target)
            case Store(memory=memory):
                targets += [v for v in free_variables(memory).values() if isinstance(v.sort, MemSort)]
            case _:
                pass
    return list(dict.fromkeys(targets))


def _replays(ila: Ila, kernel: Kernel, loop: For, witness: Mapping[str, int]) -> bool:
    """Whether the interpreter, from a state of ``witness`` (memories hold one word everywhere: 0, or all ones), comes
    to the loop with too large an extent."""
    left = MOST_ITERATIONS

    def steps(count: int) -> range:
        nonlocal left
        left -= count
        if left < 0:
            raise TimeoutError
        return range(count)

    for word in (0, -1):
        machine = Machine(ila)
        machine.steps = steps
        for name, state in ila.states.items():
            if isinstance(state.sort, MemSort):
                machine.memories[name].default = word % (1 << state.sort.data_width)
            else:
                machine.values[name] = witness.get(variable_text(state), 0)
        try:
            machine.step({name: witness.get(variable_text(i), 0) for name, i in ila.inputs.items()})
        except ExtentError as error:
            if (error.counter, error.kernel) == (loop.counter.name, kernel.name):
                return True
        except (CommandError, ValueError, TimeoutError):
            pass
    return False


def _ask(discharger: Discharger, encoding: BitEncoding, name: str, bad: Expr) -> Finding:
    bad = inline(bad)
    if bad.is_const:
        return Finding(name, Status.REFUTED if bad.value else conclude((), "simplification")[0], {})
    text = script([smt.And(encoding.term(bad))], comment=name)
    try:
        asked = discharger.ask_text(Obligation(name, "well-formed", text, "unsat", name))
    except NotDischarged as error:
        answer = error.obligation.answers[0]
        exact = all(node.op != "apply" for node in postorder([bad]))  # else a function without a body is made up
        status = Status.REFUTED if answer.status == "sat" and exact else Status.UNKNOWN
        return Finding(name, status, dict(answer.model))
    return Finding(name, conclude([asked])[0], {})
