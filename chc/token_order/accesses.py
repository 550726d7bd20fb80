"""What a VTA instruction reads and writes, taken from its kernel's text, and when two instructions cannot meet.

Every load and store of a kernel gives an :class:`Access`: an address over the kernel's loop counters, and the condition
that the counters are in range.  Registers that a loop carries, and words that are loaded, may be anything; words of
micro-ops are among those that the instruction can find.  So the accesses cover whatever the instruction does, for all
data.  Two instructions whose accesses to one memory never have the same address, unless both are loads, do not depend
on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from accel_models.vta.options import VtaOptions
from ila_lang import Expr, For, Ila, Let, Load, Store, any_of, const, free_variables, substitute, true, var, walk
from ila_lang import Instruction as IlaInstruction
from ila_lang.language.kernel import Statement
from smt_encodings.claims import Unsupported

TOKENS = ("l2g", "g2l", "g2s", "s2g")
# Registers that count why an instruction is undefined, and the memory that says so.
COUNTS = ("overflows", "revisits")
FAULT = "fault"


@dataclass(frozen=True)
class Access:
    """A load or store of a kernel, at ``address`` for values of the free variables that satisfy ``where``."""

    memory: str
    store: bool
    address: Expr
    where: Expr


@dataclass(frozen=True)
class Accesses:
    """All accesses of an instruction, and the conditions under which it is undefined in its reading."""

    accesses: tuple[Access, ...]
    undefined: tuple[Expr, ...]


@dataclass
class _Walk:
    """Goes through a kernel's text; names of counters and registers get a prefix."""

    prefix: str
    words: Sequence[Expr]
    carried: set[Expr]
    known: dict[Expr, Expr]
    accesses: list[Access] = field(default_factory=list)
    undefined: list[Expr] = field(default_factory=list)

    def fresh(self, target: Expr) -> Expr:
        """A variable that may be anything in place of a counter or register."""
        self.known[target] = var(f"{self.prefix}.{target.name}", target.sort)
        return self.known[target]

    def block(self, body: Iterable[Statement], where: Expr) -> None:
        """All statements of a block that is reached where ``where`` holds."""
        for statement in body:
            where = where & self.statement(statement, where)

    def statement(self, statement: Statement, where: Expr) -> Expr:
        """One statement; returns what is known after it."""
        match statement:
            case For(counter=counter, extent=extent, body=body):
                times = substitute(extent, self.known)
                width = max(counter.width, times.width)
                here = self.fresh(counter).zext(width) < times.zext(width)
                self.block(body, where & here)
            case Let(target=target, value=value, update=update):
                if update and target.name in COUNTS:
                    self.count(target, value, where)
                elif target in self.carried:
                    self.fresh(target)
                else:
                    self.known[target] = substitute(value, self.known)
            case Load(target=target, memory=memory, address=address):
                self.accesses.append(Access(memory.name, False, substitute(address, self.known), where))
                if memory.name == "uop" and len(self.words) == 1:
                    self.known[target] = self.words[0]
                else:
                    word = self.fresh(target)
                    if memory.name == "uop":
                        return any_of([word == w for w in self.words])
            case Store(memory=memory, address=address):
                if memory.name != FAULT:
                    self.accesses.append(Access(memory.name, True, substitute(address, self.known), where))
            case _:
                raise Unsupported("a kernel with commands to another device")
        return true

    def count(self, target: Expr, value: Expr, where: Expr) -> None:
        """Takes note of the condition under which a count of undefined iterations grows."""
        addends = [a for a in value.args if a is not target and a.op == "ite" and all(x.is_const for x in a.args[1:])]
        if value.op != "bvadd" or target not in value.args or len(addends) != 1:
            raise Unsupported(f"a count of undefined iterations of another form: {target.name} := {value!r}")
        condition, then, otherwise = addends[0].args
        grows = (condition & ~(then == 0)) | (~condition & ~(otherwise == 0))
        self.undefined.append(where & substitute(grows, self.known))


def accesses_of(
    instruction: IlaInstruction, latched: Mapping[Expr, Expr], words: Sequence[Expr], prefix: str
) -> Accesses:
    """The accesses of an instruction whose latched fields have the values ``latched``.

    ``words`` are the micro-ops that it can find; ``prefix`` makes the names of its variables its own.  Raises
    Unsupported where addresses, or whether they are reached, depend on what the kernel carries from one iteration to
    the next.
    """
    kernel = instruction.kernel
    if kernel is None:
        return Accesses((), ())
    carried = {s.target for s in walk(kernel.body) if isinstance(s, Let) and s.update}
    run = _Walk(prefix, words, carried, dict(latched))
    run.block(kernel.body, substitute(instruction.kernel_guard, latched))
    moving = {run.known[t].name for t in carried if t in run.known}
    # one variable stands for a carried register everywhere, though its value changes
    terms = [*run.undefined, *(t for access in run.accesses for t in (access.address, access.where))]
    if any(moving & free_variables(term).keys() for term in terms):
        raise Unsupported(f"{instruction.name} has addresses that depend on earlier iterations in this reading")
    return Accesses(tuple(run.accesses), tuple(run.undefined))


def self_contained(ila: Ila) -> list[str]:
    """Which instructions depend on more than their word and the memories; none where the argument applies.

    An instruction must latch every field that its kernel reads, from its own word.  Whether it executes may depend on
    tokens, on ``finished`` and on ``fault`` besides.
    """
    word, command = ila.inputs["insn"], ila.inputs["command"]
    control = {*TOKENS, "finished", FAULT}
    problems = []
    for instruction in ila.instructions.values():
        if instruction.reserved or instruction.name.startswith("HOST_"):
            continue
        if not free_variables(instruction.decode).keys() <= {word.name, command.name} | control:
            problems.append(f"{instruction.name}: whether it executes depends on other state")
        for name, value in instruction.updates.items():
            allowed = {word.name} | ({name} if name in TOKENS else set())
            if not free_variables(value).keys() <= allowed:
                problems.append(f"{instruction.name}: {name} depends on other state")
        kernel = instruction.kernel
        if kernel is None:
            continue
        read = {*kernel.external_variables(), *free_variables(instruction.kernel_guard)}
        memories = {n for n, s in ila.states.items() if hasattr(s.sort, "addr_width")}
        problems += [
            f"{instruction.name}: its kernel reads {name}, which it does not latch"
            for name in sorted(read - memories - set(instruction.updates))
        ]
        if kernel.on_done or set(instruction.updates) & control - {*TOKENS}:
            problems.append(f"{instruction.name}: its kernel sets states")
    return problems


def require_tokens(options: VtaOptions) -> None:
    """Raises Unsupported for a reading that ignores tokens."""
    if options.tokens == "none":
        raise Unsupported("a reading without tokens has one schedule only")


def meetings(left: Accesses, right: Accesses) -> dict[str, Expr]:
    """By memory, the condition that the two instructions meet there: one address, and not two loads.

    Memories where they cannot meet because of the text alone are missing.
    """
    conditions_of: dict[str, list[Expr]] = {}
    for a in left.accesses:
        for b in right.accesses:
            if a.memory == b.memory and (a.store or b.store):
                condition = a.where & b.where & (a.address == b.address)
                if not (condition.is_const and condition.value == 0):
                    conditions_of.setdefault(a.memory, []).append(condition)
    return {memory: any_of(conditions) for memory, conditions in sorted(conditions_of.items())}


def words_of(table: Iterable[int]) -> list[Expr]:
    """Micro-ops as constants."""
    return [const(word, 32) for word in sorted(set(table))]
