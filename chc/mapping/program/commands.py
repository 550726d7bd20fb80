"""Commands decoded by partial evaluation, and word-by-word data movement rolled back into loops.

The inputs of a command are substituted into every decode condition, and exactly one of them must become true while
all others become false.

Data movement that a command spells out word by word (16 stores with literal offsets) is rolled back into one loop;
each of the 16 stores is checked to be an instance of the rolled one, so nothing is assumed.  The same holds for a
command whose instruction depends on the counter of a short loop, such as the number of a processing element: it is
decoded for each value, and the results must be the instances of one form.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ila_lang import (
    BOOL,
    Command,
    Expr,
    Fragment,
    Ila,
    Instruction,
    Kernel,
    MemSort,
    Store,
    all_of,
    any_of,
    bv,
    compile_terms,
    const,
    free_variables,
    ite,
    postorder,
    substitute,
    substitute_all,
    true,
)
from ila_lang.interpreter.machine import store_plan
from ila_lang.language.build import coerce
from ila_lang.language.expr import bv_const, variables_of
from smt_encodings.claims import Unsupported
from smt_encodings.environment import fresh

from .patterns import chosen_at, generalise
from .writes import Loops, Write


@dataclass(frozen=True)
class Decoded:
    """What a command does: stores, scalar updates, and the kernel it starts under a condition (None if none).

    ``selected`` is the condition under which it does that: true, or what has to be proved.  Where iterations of loops
    choose the instruction, it does that in those in which ``condition`` holds.
    """

    stores: list[Store]
    updates: dict[Expr, Expr]
    kernel: Kernel | None = None
    guard: Expr = true
    selected: Expr = true
    condition: Expr = true


def start_values(fragment: Fragment) -> dict[Expr, Expr]:
    """The device's scalar state before a fragment: fresh variables, but for what ``fragment.idle`` gives."""
    initial: dict[Expr, Expr] = {}
    for name, state in fragment.ila.states.items():
        if not isinstance(state.sort, MemSort):
            known = fragment.idle.get(name)
            initial[state] = (
                fresh(f"initial.{name}", state.sort)
                if known is None
                else coerce(bool(known) if state.sort == BOOL else known, state.sort, name)
            )
    return initial


def decode(
    fragment: Fragment,
    command: Command,
    scalars: Mapping[Expr, Expr],
    case: Mapping[Expr, Expr] | None = None,
    *,
    may_be_open: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Decoded:
    """The effect of one command; ``case`` fixes counters while the instruction is chosen, not in the effect.

    Raises Unsupported unless exactly one instruction decodes it by partial evaluation.  With ``may_be_open`` conditions
    may depend on sizes and memories, if only one instruction that is not reserved may decode the command, or only one
    decodes it at the sample ``sizes``: that it does, and no other, is then the condition ``selected``.
    """
    ila = fragment.ila
    known = _known(fragment, command, scalars)
    conditions, valid = _conditions(ila, known if not case else {k: substitute(v, case) for k, v in known.items()})
    possible = {name: c for name, c in conditions.items() if not (c.is_const and not c.value)}
    hits = [ila.instructions[name] for name, c in possible.items() if c.is_const]
    selected = true
    if may_be_open and not hits:
        hits = [i for name in possible if not getattr(i := ila.instructions[name], "reserved", "")]
        loads = any(n.op == "load" for n in postorder(list(possible.values())))
        sample = _Sample(list(possible.values()), sizes) if len(hits) > 1 and sizes is not None and not loads else None
        if sample is None:
            selected = all_of([c if hits and name == hits[0].name else ~c for name, c in possible.items()])
        else:
            hits = [ila.instructions[name] for name, c in possible.items() if sample.holds[c]]
            selected = all_of(list(dict.fromkeys(r for c in possible.values() for r in sample.reasons(c))))
        possible = {name: c for name, c in possible.items() if any(h.name == name for h in hits)}
    what = command.note or "a command"
    if len(possible) != 1 or len(hits) != 1:
        names = ", ".join(dict.fromkeys([*(h.name for h in hits), *possible])) or "none"
        raise Unsupported(
            f"{what} of {fragment.name} must select exactly one instruction for all sizes; candidates: {names}"
        )
    if may_be_open:
        selected = selected & valid
    elif not (valid.is_const and valid.value):
        raise Unsupported(f"{what} of {fragment.name} is not shown to be a valid command")
    if getattr(hits[0], "reserved", ""):
        raise Unsupported(f"{what} of {fragment.name} selects {hits[0].name}: {hits[0].reserved}")
    return _effect(fragment, what, hits[0], known, selected)


def choices(
    fragment: Fragment,
    command: Command,
    scalars: Mapping[Expr, Expr],
    loops: Loops,
    samples: Sequence[Mapping[str, int]],
) -> list[Decoded] | None:
    """The effects of a command by which the iterations of ``loops`` choose among several instructions.

    None where they do not do so at the samples.  Each effect has the condition of its iterations; that always one
    instruction is chosen, and no other, has to be proved.
    """
    ila = fragment.ila
    known = _known(fragment, command, scalars)
    conditions, valid = _conditions(ila, known)
    possible = {name: c for name, c in conditions.items() if not (c.is_const and not c.value)}
    variables = {*(c for c, _ in loops), *fragment.parameters.values()}
    if len(possible) < 2 or not variables.issuperset(variables_of(*possible.values())):
        return None
    if any(n.op == "load" for n in postorder(list(possible.values()))):
        return None
    happen = chosen_at(possible, list(fragment.parameters.values()), loops, samples)
    if len(happen) < 2 or any(getattr(ila.instructions[name], "reserved", "") for name in happen):
        return None
    chosen = {name: possible[name] for name in possible if name in happen}
    others = [~c for name, c in possible.items() if name not in happen]
    apart = [~(a & b) for a, b in itertools.combinations(chosen.values(), 2)]
    selected = all_of([valid, any_of(list(chosen.values())), *apart, *others])
    what = command.note or "a command"
    effects = [_effect(fragment, what, ila.instructions[name], known, true) for name in chosen]
    effects = [replace(e, condition=c) for e, c in zip(effects, chosen.values(), strict=True)]
    return [replace(effects[0], selected=selected), *effects[1:]]


def _known(fragment: Fragment, command: Command, scalars: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    """The device's state and the inputs of a command."""
    operands = dict(command.inputs)
    inputs = fragment.ila.inputs.items()
    return {
        **scalars,
        **{v: operands.get(n, const(0, v.width) if v.sort != BOOL else ~(v == v)) for n, v in inputs},
    }


def _conditions(ila: Ila, known: Mapping[Expr, Expr]) -> tuple[dict[str, Expr], Expr]:
    """When each instruction decodes a command, and when the command is valid."""
    instructions = list(ila.instructions.values())
    *decoded, valid = substitute_all([*(i.decode for i in instructions), ila.valid], known)
    return {i.name: c for i, c in zip(instructions, decoded, strict=True)}, valid


def _effect(
    fragment: Fragment, what: str, instruction: Instruction, known: Mapping[Expr, Expr], selected: Expr
) -> Decoded:
    """What an instruction does."""
    ila = fragment.ila
    stores: list[Store] = []
    updates: dict[Expr, Expr] = {}
    values = substitute_all(list(instruction.updates.values()), known)
    for name, value in zip(instruction.updates, values, strict=True):
        target = ila.states[name]
        if isinstance(target.sort, MemSort):
            base, plan = store_plan(value)
            if base is not target or any(not (g.is_const and g.value) for g, _, _ in plan):
                raise Unsupported(f"{what} of {fragment.name} writes {name} under a condition that stays open")
            stores += [Store(target, address, data) for _, address, data in plan]
        else:
            updates[target] = value
    if instruction.kernel is None:
        return Decoded(stores, updates, selected=selected)
    start = substitute(instruction.kernel_guard, {**known, **updates})
    return Decoded(stores, updates, instruction.kernel, start, selected)


class _Sample:
    """Conditions at one sample: sizes, with everything else at 0."""

    def __init__(self, conditions: Sequence[Expr], sizes: Mapping[str, int]) -> None:
        variables = list(free_variables(*conditions).values())
        nodes = [n for n in postorder(conditions) if n.sort == BOOL]
        values = compile_terms(variables, nodes)(*(sizes.get(v.name, 0) for v in variables))
        self.holds = {n: bool(v) for n, v in zip(nodes, values, strict=True)}

    def reasons(self, condition: Expr) -> list[Expr]:
        """Conditions without connectives that hold here, and wherever they do, ``condition`` is what it is here."""
        holds = self.holds[condition]
        if condition.op == "not":
            return self.reasons(condition.args[0])
        if condition.op in ("and", "or"):
            decisive = condition.op == "or"
            if holds is decisive:  # one part suffices
                return self.reasons(next(a for a in condition.args if self.holds[a] is decisive))
            return [r for a in condition.args for r in self.reasons(a)]
        return [condition if holds else ~condition] if not condition.is_const else []


def generalised(cases: Sequence[Decoded], counter: Expr, what: str) -> Decoded:
    """One effect, over ``counter``, whose instances at 0, 1, 2, ... are ``cases``.

    Raises Unsupported where there is none, and for commands that start a kernel.
    """
    problem = Unsupported(f"{what} does not do the same for every value of {counter.name}")
    if len(cases) < 2 or any(c.kernel is not None for c in cases):
        raise problem
    first = cases[0]
    for case in cases:
        if len(case.stores) != len(first.stores) or list(case.updates) != list(first.updates):
            raise problem

    def common(terms: list[Expr]) -> Expr:
        first = 1 if len(terms) > 2 else 0  # a literal 0 is often simplified away
        pattern = generalise(terms[first], terms[first + 1], counter, first)
        if pattern is None:
            raise problem
        for k, term in enumerate(terms):
            at = {counter: bv_const(k, counter.width)}
            if substitute(pattern, at) is not substitute(term, at):
                raise problem
        return pattern

    stores = []
    for group in zip(*(c.stores for c in cases), strict=True):
        if len({s.memory for s in group}) > 1:
            raise problem
        stores.append(Store(group[0].memory, common([s.address for s in group]), common([s.value for s in group])))
    return Decoded(stores, {target: common([c.updates[target] for c in cases]) for target in first.updates})


def _lane(stores: Sequence[Store]) -> Expr:
    """A counter that numbers stores; their number fits its bits, too."""
    return fresh("lane", bv(max(8, len(stores).bit_length())))


def rolled(stores: Sequence[Store]) -> tuple[Expr, Store] | None:
    """A counter and a store of which ``stores`` are the instances 0, 1, 2, ...; None if there is none."""
    if len({s.memory for s in stores}) != 1 or len(stores) < 3:
        return None
    lane = _lane(stores)
    address, value = (instances(terms, lane) for terms in ([s.address for s in stores], [s.value for s in stores]))
    if address is None or value is None:
        return None
    return lane, Store(stores[0].memory, address, value)


def rolled_up(writes: list[Write]) -> list[Write]:
    """Runs of writes that follow each other and differ by a counter, as one write in a loop.

    None reads the memory that it writes, be it for its address: a loop would read what its iterations before wrote.
    """
    result: list[Write] = []
    # terms are compared by identity: their equality is a term
    alike = lambda w: (w.place[:-1], [id(t) for loop in w.loops for t in loop], id(w.memory), w.label)  # noqa: E731
    for _, group in itertools.groupby(writes, alike):
        run = list(group)
        first = run[0]
        form = rolled([Store(w.memory, w.address, w.value) for w in run])
        guard = instances([w.guard for w in run], form[0]) if form is not None else None
        numbers = [w.place[-1] for w in run]
        terms = [t for w in run for t in (w.address, w.value, w.guard)]
        reads = any(n.op == "load" and n.args[0] is first.memory for n in postorder(terms))
        if form is None or guard is None or reads or numbers != list(range(numbers[0], numbers[0] + len(run))):
            result += run
        else:
            lane, store = form
            loops = (*first.loops, (lane, bv_const(len(run), lane.width)))
            place = (*first.place, 0)
            result.append(Write(first.label, loops, place, first.memory, store.address, store.value, guard))
    return result


def rolled_apart(stores: Sequence[Store]) -> list[tuple[Expr, Store, int]] | None:
    """Loops whose stores are the stores of one command, which happen at once; None if there are none.

    Each is a counter, a store and the number of iterations.  Stores from two rows are a loop for each row.  Stores of
    words byte by byte are a loop for each byte of a word; where only addresses are alike, the value is chosen by the
    counter.  That is another order than the stores', taken only where no two write the same address.
    """
    half = len(stores) // 2
    for parts in ([stores], [stores[:half], stores[half:]]):
        forms = [(rolled(part), len(part)) for part in parts]
        if all(form for form, _ in forms):
            return [(*form, count) for form, count in forms if form is not None]
    if len({s.memory for s in stores}) != 1 or len(stores) < 3 or not _apart([s.address for s in stores]):
        return None
    for step in (2, 4, 8):
        parts = [stores[k::step] for k in range(step)]
        loops = [rolled(part) for part in parts]
        if all(f is not None for f in loops):
            return [(*f, len(part)) for f, part in zip(loops, parts, strict=True) if f is not None]
    lane = _lane(stores)
    address = instances([s.address for s in stores], lane)
    if address is None:
        return None
    value = stores[-1].value
    for k, store in list(enumerate(stores))[-2::-1]:
        value = ite(lane == k, store.value, value)
    return [(lane, Store(stores[0].memory, address, value), len(stores))]


def _apart(addresses: Sequence[Expr]) -> bool:
    """Whether addresses differ by their text: literals, or literal low bits below the same high bits."""
    if all(a.is_const for a in addresses):
        return len({a.value for a in addresses}) == len(addresses)
    if any(a.op != "concat" or not a.args[1].is_const for a in addresses):
        return False
    forms = {(a.args[0], a.args[1].width) for a in addresses}
    return len(forms) == 1 and len({a.args[1].value for a in addresses}) == len(addresses)


def instances(terms: Sequence[Expr], counter: Expr) -> Expr | None:
    """A term of which ``terms`` are the instances at 0, 1, 2, ...; None if there is none."""
    pattern = generalise(terms[1], terms[2], counter, 1)
    if pattern is None:
        return None
    at = ({counter: bv_const(k, counter.width)} for k in range(len(terms)))
    return pattern if all(substitute(pattern, here) is term for here, term in zip(at, terms, strict=True)) else None
