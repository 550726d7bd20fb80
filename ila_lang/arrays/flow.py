"""What a kernel's registers, addresses and memories may depend on: the facts that decide how its loops can run.

All answers are on the safe side: "may depend" can be wrong, "does not depend" cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ila_lang.interpreter.compile import loads_resolved
from ila_lang.language.expr import Expr, free_variables, postorder
from ila_lang.language.function import inline
from ila_lang.language.kernel import Command, For, Kernel, Let, Load, Statement, Store, walk
from ila_lang.language.sorts import MemSort


@dataclass(frozen=True, eq=False)
class Access:
    """One place where a kernel reads or writes a memory."""

    memory: str
    address: Expr
    store: bool


class Flow:
    """Dependences of one kernel.

    ``reach`` maps each register, loop counter and memory to all names that its value (for a memory: its contents while
    the kernel runs) may depend on.  ``stored`` are the memories that the kernel stores to, ``updated`` the registers
    that it assigns more than once.  Raises ValueError if the kernel issues commands, stores to a conditional memory, or
    uses a register outside the loop that sets it.  ``steering`` are the memories that decide where it stores to.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._names: dict[Expr, frozenset[str]] = {}
        self._terms: dict[int, list[Expr]] = {}
        self._accesses: dict[int, list[Access]] = {}
        self.loops = {s.counter.name: s for s in walk(kernel.body) if isinstance(s, For)}
        self.stored: set[str] = set()
        self.updated: set[str] = set()
        self.memories = {a.memory for a in self.accesses(kernel.body)}
        self._direct: dict[str, set[str]] = {name: set(self.names(loop.extent)) for name, loop in self.loops.items()}
        self._scan(kernel.body, [], {})
        self.reach = _closure(self._direct)
        self.serial = {name for name, loop in self.loops.items() if self._carries(loop)}
        self.private = {name: self._private(loop) for name, loop in self.loops.items()}
        self.steering = self._steering()
        self.ragged = dict(self._ragged(kernel.body, []))

    def reached(self, terms: Iterable[Expr]) -> frozenset[str]:
        """All names that the values of ``terms`` may depend on."""
        direct = set[str]().union(*(self.names(t) for t in terms))
        return frozenset(direct).union(*(self.reach.get(n, ()) for n in direct))

    def _scan(self, body: Iterable[Statement], loops: list[For], scope: dict[str, int]) -> None:
        """``scope`` maps the registers that are set to the number of loops open where they were introduced."""
        scope = dict(scope)
        for statement in body:
            for term in self.terms(statement):
                for name in self.names(term):
                    if name in self._direct and name not in scope and name not in self._open(loops):
                        raise ValueError(
                            f"Register {name} of {self.kernel.name} must be set in the loop that uses it, or outside"
                        )
            match statement:
                case For(body=inner):
                    self._scan(inner, [*loops, statement], scope)
                case Let(target=target, value=value, update=update):
                    found = self._direct.setdefault(target.name, set())
                    found |= self.names(value)
                    if update and target.name not in scope:
                        raise ValueError(
                            f"Register {target.name} of {self.kernel.name} must be set in the loop that assigns it, "
                            "or outside"
                        )
                    if update:
                        self.updated.add(target.name)
                        for loop in loops[scope[target.name] :]:
                            found |= {loop.counter.name, *self.names(loop.extent)}
                    else:
                        scope[target.name] = len(loops)
                case Load(target=target, memory=memory, address=address):
                    self._direct.setdefault(target.name, set()).update(self.names(memory.load(address)))
                    scope[target.name] = len(loops)
                case Store(memory=memory, address=address, value=value):
                    if memory.op != "var":
                        raise ValueError(f"Kernel {self.kernel.name} must store to memory variables only")
                    self.stored.add(memory.name)
                    found = self._direct.setdefault(memory.name, set())
                    found |= self.names(address) | self.names(value)
                    for loop in loops:
                        found |= {loop.counter.name, *self.names(loop.extent)}
                case Command():
                    raise ValueError(f"Kernel {self.kernel.name} must not issue commands to be vectorised")

    def _open(self, loops: list[For]) -> set[str]:
        return {loop.counter.name for loop in loops} | self.stored

    def names(self, term: Expr) -> frozenset[str]:
        """Names of the variables in ``term``, memories included."""
        if term not in self._names:
            self._names[term] = frozenset(free_variables(term))
        return self._names[term]

    def terms(self, statement: Statement) -> list[Expr]:
        """The values that a statement uses, a load's word included."""
        found = self._terms.get(id(statement))
        if found is None:
            match statement:
                case For(extent=extent):
                    found = [extent]
                case Let(value=value):
                    found = [value]
                case Load(memory=memory, address=address):
                    found = [memory.load(address)]
                case Store(address=address, value=value):
                    found = [address, value]
                case Command(inputs=inputs):
                    found = [value for _, value in inputs]
            self._terms[id(statement)] = found = [with_loads(term) for term in found]
        return found

    def accesses(self, body: Iterable[Statement]) -> Iterator[Access]:
        """Every access in ``body``, loads within terms included."""
        for statement in walk(tuple(body)):
            found = self._accesses.get(id(statement))
            if found is None:
                loads = [n for t in self.terms(statement) for n in postorder([t]) if n.op == "load"]
                found = [Access(n.args[0].name, n.args[1], False) for n in loads]
                if isinstance(statement, Store):
                    found.append(Access(statement.memory.name, self.terms(statement)[0], True))
                self._accesses[id(statement)] = found
            yield from found

    def additive(self, loop: For) -> set[str]:
        """Registers from outside ``loop`` to which its body only adds, and which it does not use otherwise."""
        found: set[str] = set()
        spoilt: set[str] = set()
        inside = _introduced(loop.body)
        for statement in walk(loop.body):
            used = set[str]().union(*(self.names(t) for t in self.terms(statement)))
            if isinstance(statement, Let) and statement.update and statement.target.name not in inside:
                name = statement.target.name
                found.add(name)
                added = addend(statement)
                if added is None or name in self.names(added):
                    spoilt.add(name)
                used -= {name}
            spoilt |= used
        return found - spoilt

    def carried(self, loop: For) -> set[str]:
        """Registers from outside ``loop`` that its body assigns."""
        assigned = {s.target.name for s in walk(loop.body) if isinstance(s, Let) and s.update}
        return assigned - _introduced(loop.body)

    def _carries(self, loop: For) -> bool:
        return bool(self.carried(loop) - self.additive(loop))

    def _private(self, loop: For) -> set[str]:
        """Memories stored in ``loop`` whose addresses there do not depend on its counter."""
        stored: set[str] = set()
        dependent: set[str] = set()
        for access in self.accesses(loop.body):
            if access.store:
                stored.add(access.memory)
            if loop.counter.name in self.reached([access.address]):
                dependent.add(access.memory)
        return stored - dependent

    def _ragged(self, body: Iterable[Statement], around: list[str]) -> Iterator[tuple[str, str]]:
        """For loops, the outermost loop in each of which the extent depends on its counter, if iterations are alike.

        That is, they use no registers and no copies of memories that iterations have for themselves.
        """
        for statement in body:
            if isinstance(statement, For):
                own = statement.counter.name
                known = self.reached([statement.extent])
                apart = bool(self.carried(statement))
                found = [c for c in around if c in known]
                yield from ((c, own) for c in found if not apart and not self.private[c])
                yield from self._ragged(statement.body, [*(c for c in around if c not in found), own])

    def _steering(self) -> frozenset[str]:
        """Memories whose contents addresses of stored memories, or extents, may depend on."""
        terms = [loop.extent for loop in self.loops.values()]
        terms += [a.address for a in self.accesses(self.kernel.body) if a.memory in self.stored]
        return self.reached(terms) & self.memories


def with_loads(term: Expr) -> Expr:
    """``term`` with every load in sight, on memory variables: functions that see a memory are unfolded."""
    functions = [n.func for n in postorder([term]) if n.func is not None]
    with_memory = {f.name for f in functions if any(isinstance(p.sort, MemSort) for p in f.params)}
    return loads_resolved(inline(term, frozenset(f.name for f in functions) - with_memory))


def addend(statement: Let) -> Expr | None:
    """``e`` if the statement is ``register := register + e``."""
    value, target = statement.value, statement.target
    if value.op == "bvadd":
        left, right = value.args
        if left is target:
            return right
        if right is target:
            return left
    return None


def _introduced(body: tuple[Statement, ...]) -> set[str]:
    """Counters and registers that are introduced in ``body``."""
    found = set()
    for statement in walk(body):
        match statement:
            case For(counter=t) | Let(target=t, update=False) | Load(target=t):
                found.add(t.name)
    return found


def _closure(direct: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    reach = {name: set(found) for name, found in direct.items()}
    changed = True
    while changed:
        changed = False
        for found in reach.values():
            more = set[str]().union(*(reach.get(n, ()) for n in found)) - found
            if more:
                found |= more
                changed = True
    return {name: frozenset(found) for name, found in reach.items()}
