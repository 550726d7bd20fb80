"""Programs as sequences of loop nests: what is left of a fragment once its commands are decoded.

A fragment with symbolic sizes issues commands inside host loops, and some commands start kernels.  Decoding is by
partial evaluation: the inputs of a command are substituted into every decode condition, and exactly one of them must
become true while all others become false.  What remains is a sequence of nests, each a list of loops around stores
whose values contain the loads they depend on.

Data movement that a command spells out word by word (16 stores with literal offsets) is rolled back into one loop;
each of the 16 stores is checked to be an instance of the rolled one, so nothing is assumed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ila_lang import (
    Command,
    Expr,
    For,
    Fragment,
    Kernel,
    Let,
    Load,
    Statement,
    Store,
    postorder,
    substitute,
    var,
)
from ila_lang.expr import bv_const
from ila_lang.kernel import map_statement, walk

from .commands import Unsupported, decode, rolled, start_values
from .statements import carries

__all__ = ["Nest", "Unsupported", "decode_command", "nests_of"]

MAX_UNROLL = 64
"""Largest constant extent of a reduction loop that is unrolled into the value of a store."""


@dataclass(frozen=True)
class Nest:
    """``for c1 < e1: ... for cn < en: stores`` with the loads inside the stored values.

    Every load reads the memory as it is just before the stores of the same iteration.
    """

    label: str
    loops: tuple[tuple[Expr, Expr], ...]
    stores: tuple[Store, ...]

    @property
    def counters(self) -> tuple[Expr, ...]:
        """The loop counters, outermost first."""
        return tuple(c for c, _ in self.loops)

    def writes(self, memory: Expr) -> list[Store]:
        """The stores to one memory."""
        return [s for s in self.stores if s.memory is memory]


@dataclass
class _State:
    """What is known while walking a fragment: scalar state as terms, and the nests so far."""

    fragment: Fragment
    scalars: dict[Expr, Expr]
    nests: list[Nest] = field(default_factory=list)
    havocs: Iterator[int] = field(default_factory=lambda: itertools.count(1))


def nests_of(fragment: Fragment) -> list[Nest]:
    """The loop nests of a fragment, run from any idle state of its device.

    Scalar state has unknown initial values (fresh variables) but for what ``fragment.idle`` gives.
    Raises Unsupported where a command cannot be decoded or a loop has another shape than described above.
    """
    walked = _State(fragment, start_values(fragment))
    _top(walked, fragment.program.body)
    return _told_apart(walked.nests)


def _told_apart(nests: Sequence[Nest]) -> list[Nest]:
    """The nests with labels of their own: what is proved of one must not bear the name of another."""
    taken: set[str] = set()
    found = []
    for nest in nests:
        number = 1
        label = nest.label
        while label in taken:
            number += 1
            label = f"{nest.label} ({number})"
        taken.add(label)
        found.append(replace(nest, label=label))
    return found


def _unknown(name: str, like: Expr) -> Expr:
    return var(name, like.sort)


def _top(state: _State, body: Iterable[Statement]) -> None:
    """Statements outside loops, and whole loops."""
    for statement in body:
        match statement:
            case Command():
                stores, updates, kernel = decode_command(state.fragment, statement, state.scalars)
                if stores:
                    state.nests.append(_nest(state, statement.note or "command", (), stores))
                _set(state, updates)
                if kernel is not None:
                    _kernel(state, kernel)
            case For():
                label = next((s.note for s in walk(statement.body) if isinstance(s, Command) and s.note), "host loop")
                _loop(state, statement, (), {}, label)
            case Let(target=target, value=value):
                _set(state, {target: substitute(value, state.scalars)})
            case _:
                raise Unsupported(f"a {type(statement).__name__.lower()} outside loops in {state.fragment.name}")


def _kernel(state: _State, kernel: Kernel) -> None:
    for statement in kernel.body:
        if not isinstance(statement, For):
            raise Unsupported(f"kernel {kernel.name} must be made of loops")
        _loop(state, statement, (), {}, f"{state.fragment.ila.name} {kernel.name}")
    states = state.fragment.ila.states
    _set(state, {states[name]: substitute(term, state.scalars) for name, term in kernel.on_done.items()})


def _set(state: _State, updates: Mapping[Expr, Expr]) -> None:
    """Sets scalars outside loops; what was read from a memory is forgotten: the memory may change before its use."""
    for target, value in updates.items():
        if any(node.op == "load" for node in postorder([value])):
            value = _unknown(f"havoc{next(state.havocs)}.{target.name}", target)
        state.scalars[target] = value


def _havoc(state: _State, loop: For, local: Mapping[Expr, Expr]) -> None:
    """Forgets the scalar state that commands inside a loop change; it may differ between iterations."""
    local = dict(local)
    for statement in walk(loop.body):
        if isinstance(statement, Let):
            local[statement.target] = substitute(statement.value, local)
        if not isinstance(statement, Command):
            continue
        command = map_statement(statement, local)
        assert isinstance(command, Command)
        _, updates, kernel = decode_command(state.fragment, command, state.scalars)
        if kernel is not None:
            raise Unsupported(f"a start command inside a host loop of {state.fragment.name}")
        for target in updates:
            state.scalars[target] = _unknown(f"havoc{next(state.havocs)}.{target.name}", target)


def _loop(
    state: _State,
    loop: For,
    outer: tuple[tuple[Expr, Expr], ...],
    local: dict[Expr, Expr],
    label: str,
) -> None:
    if carries(loop):
        raise Unsupported(f"loop {loop.counter.name} carries a register from one iteration to the next")
    known = state.scalars | local
    _havoc(state, loop, local)
    loops = (*outer, (loop.counter, substitute(loop.extent, known)))
    if loops[-1][1].width > 32 or loop.counter.width > 32:
        raise Unsupported(f"loop {loop.counter.name} is counted with more than 32 bits")
    stores: list[Store] = []
    scalars, local = dict(state.scalars), dict(local)
    inner_loops = 0
    for statement in loop.body:
        inner_state = replace(state, scalars=scalars)
        match statement:
            case For() if carries(statement):
                _straight([statement], inner_state, scalars, local, stores)
            case For():
                inner_loops += 1
                if inner_loops > 1:
                    raise Unsupported(f"two loops stand side by side in {loop.counter.name}: they run in turns")
                if stores:
                    raise Unsupported(f"loop {statement.counter.name} stands beside stores in {loop.counter.name}")
                _loop(inner_state, statement, loops, local, label)
            case _:
                _straight([statement], inner_state, scalars, local, stores)
    if stores and inner_loops:
        raise Unsupported(f"stores stand beside a loop in {loop.counter.name}")
    if stores:
        state.nests.append(_nest(state, label, loops, stores))


def _straight(
    body: Sequence[Statement],
    state: _State,
    scalars: dict[Expr, Expr],
    local: dict[Expr, Expr],
    stores: list[Store],
) -> None:
    """Executes straight-line code symbolically; reduction loops of literal extent are unrolled."""
    for statement in body:
        known = scalars | local
        match statement:
            case Let(target=target, value=value):
                local[target] = _reading(substitute(value, known), stores)
            case Load(target=target, memory=memory, address=address):
                local[target] = _reading(memory.load(substitute(address, known)), stores)
            case Store(memory=memory, address=address, value=value):
                if memory.op != "var":
                    raise Unsupported(f"a store to {memory.describe()}, which is not a memory of its own")
                term = _reading(substitute(value, known), stores)
                stores.append(Store(memory, substitute(address, known), term))
            case Command():
                mapped = map_statement(statement, local)
                assert isinstance(mapped, Command)
                moved, updates, kernel = decode_command(state.fragment, mapped, scalars)
                if kernel is not None:
                    raise Unsupported(f"a start command inside a host loop of {state.fragment.name}")
                for store in moved:
                    _reading(store.value, stores)
                stores += moved
                for target, value in updates.items():
                    scalars[target] = _reading(value, stores)
            case For(counter=counter, extent=extent, body=inner):
                limit = substitute(extent, known)
                if not limit.is_const or limit.value > MAX_UNROLL:
                    raise Unsupported(f"reduction loop {counter.name} must have a literal extent up to {MAX_UNROLL}")
                for k in range(limit.value):
                    local[counter] = bv_const(k, counter.width)
                    _straight(inner, state, scalars, local, stores)


def _reading(value: Expr, stores: list[Store]) -> Expr:
    """``value``, checked to load only from memories that the iteration has not written yet."""
    written = {s.memory for s in stores}
    for node in postorder([value]):
        if node.op == "load" and node.args[0] in written:
            raise Unsupported(f"{node.args[0].name} is read after it is written in one iteration")
    return value


def decode_command(
    fragment: Fragment, command: Command, scalars: dict[Expr, Expr]
) -> tuple[list[Store], dict[Expr, Expr], Kernel | None]:
    """The stores and scalar updates of one command, and the kernel it starts (None if none).

    Raises Unsupported unless exactly one instruction decodes it by partial evaluation.
    """
    decoded = decode(fragment, command, scalars)
    kernel = None
    if decoded.kernel is not None:
        guard = decoded.guard
        if not guard.is_const:
            what = command.note or "a command"
            raise Unsupported(f"{what} of {fragment.name} starts {decoded.kernel.name} only if {guard!r}")
        kernel = decoded.kernel if guard.value else None
    return decoded.stores, decoded.updates, kernel


def _nest(state: _State, label: str, loops: tuple[tuple[Expr, Expr], ...], stores: list[Store]) -> Nest:
    targets = {s.memory for s in stores}
    if len(stores) > 1:
        form = rolled(stores)
        reads = {n.args[0] for s in stores for n in postorder([s.value]) if n.op == "load"}
        if form is not None and not (reads & targets):
            lane, store = form
            return Nest(label, (*loops, (lane, bv_const(len(stores), 8))), (store,))
    return Nest(label, loops, tuple(stores))
