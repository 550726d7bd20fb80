"""Writes the derivation of a bound from the kernel of a tensor operator: an interpretation of the kernel.

A kernel is walked once.  A word that it loads is a leaf; a primitive is the operation that its lemma is about, and then
the lemma; a loop that adds up words in a register is a sum over an index.  What has no meaning here raises
:class:`~.names.Unread`.  Beside the kernel only names are given (:mod:`.names`): of leaves, of indices, and of the
ranges whose magnitudes a theorem may use.  What is written is replayed by :mod:`rewrites.bounds.kernel`, which does not
know where it is from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import is_

from ila_lang import Expr, Kernel, bv, const, substitute
from ila_lang.language.expr import private_var, variables_of
from ila_lang.language.function import inline
from ila_lang.language.kernel import For, Let, Load, Statement, Store, walk
from ila_lang.mapping import Lemma
from rewrites.bounds.kernel.replay import MASKED

from .names import Leaf, Names, Unread, Written
from .words import KEPT, Words, signed

MOST_WRITTEN_OUT = 8
"""Loops of at most so many iterations that are no sums are written out."""
_PLAIN = {"accumulator": ("VTA sum",), "partial": ()}
"""The lemmas of plain additions of words, by their form."""


def derivation_of(
    kernel: Kernel,
    operands: Mapping[Expr, Expr],
    result: str,
    names: Names,
    *,
    lemmas: Sequence[Lemma] = (),
    alike: bool = False,
) -> Written:
    """The derivation of the words that a kernel stores to the memory ``result``; ``operands`` are the instruction's.

    With ``alike`` the bound must not depend on the magnitudes of words before conversions and cuts: what is cut becomes
    a condition.  Raises Unread where a part of the kernel is none that laws are about, and Rejected where names do not
    fit.
    """
    writer = _Writer(result, names, lemmas, alike)
    env = writer.operands(operands)
    writer.block(kernel.body, env)
    if not writer.ended:
        raise Unread(f"{kernel.name} must store to {result}")
    return Written(tuple(writer.steps), kernel, tuple(writer.functions))


@dataclass
class _Writer(Words):
    """A walk over a kernel.  ``places`` are where the words of leaves lie, and ``indices`` what variables count."""

    places: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    numbered: dict[str, list[tuple[Expr, ...]]] = field(default_factory=dict)
    indices: dict[Expr, str] = field(default_factory=dict)
    stored: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)
    last: frozenset[Expr] = frozenset()
    """What holds in the last iteration of a nest of loops."""
    ended: bool = False

    # -- statements --------------------------------------------------------------------------------------------

    def operands(self, operands: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
        """The operands of the instruction."""
        env: dict[Expr, Expr] = {}
        for state, value in operands.items():
            if state.name in self.names.given or value.is_const:
                number = self.names.given.get(state.name, value.value if value.is_const else 0)
                env[state] = const(number, state.width)
            elif state.name in self.names.leaves:
                env[state] = self.leaf(self.names.leaves[state.name], (state,), state.width)
        return env

    def leaf(self, leaf: Leaf, place: tuple[Expr, ...], width: int) -> Expr:
        """A variable for words at a place: in the order of the loops, the indices that its address depends on."""
        used = set(variables_of(*place))
        own = dict.fromkeys(index for counter, index in self.indices.items() if counter in used)
        number = ""
        if leaf.name.endswith("#"):
            apart = self.numbered.setdefault(leaf.name, [])
            if not any(all(map(is_, place, p)) for p in apart):
                apart.append(place)
            number = str(next(n for n, p in enumerate(apart) if all(map(is_, place, p))))
        name = leaf.name.rstrip("#") + number + (f"[{','.join(own)}]" if own else "")
        if not all(map(is_, self.places.setdefault(name, place), place)):
            raise Unread(f"{name} must be words of one place, not of {self.places[name]} and {place}")
        variable = private_var(f"leaf {name}", bv(width))
        self.leaves[variable] = name, leaf
        return variable

    def block(self, body: Iterable[Statement], env: dict[Expr, Expr]) -> None:
        """Statements, which change the registers of ``env``."""
        for statement in body:
            if self.ended:
                return
            match statement:
                case Let(target=target, value=value):
                    env[target] = self.term(value, env)
                case Load(target=target, memory=memory, address=address):
                    env[target] = self.load(target, memory, self.term(address, env))
                case Store(memory=memory, address=address, value=value):
                    self.store(memory.name, self.term(address, env), self.term(value, env))
                case For():
                    self.loop(statement, env)
                case _:
                    raise Unread(f"a kernel must issue no commands, such as {statement}")

    def term(self, term: Expr, env: Mapping[Expr, Expr]) -> Expr:
        return inline(substitute(term, env), KEPT)

    def load(self, register: Expr, memory: Expr, address: Expr) -> Expr:
        if memory.name not in self.stored:
            if register.name not in self.names.leaves:
                raise Unread(f"what lies in {memory.name} must have a name")
            return self.leaf(self.names.leaves[register.name], (memory, address), register.width)
        place, value = self.stored[memory.name]
        if place is not address:
            raise Unread(f"{memory.name} must be loaded where it was stored, not at {address}")
        return value

    def store(self, memory: str, address: Expr, value: Expr) -> None:
        """The result, which ends the derivation, or words that are loaded again."""
        last, name = memory == self.result, self.names.ranges.get(memory)
        if last or name:
            step = self.step(value, name, converted=last)
            self.ended = last
            if last and step != len(self.steps):
                raise Unread("the last step must be the result's")
        if memory in self.stored:
            raise Unread(f"{memory} must be stored to in one place")
        self.stored[memory] = address, value

    # -- loops -------------------------------------------------------------------------------------------------

    def loop(self, loop: For, env: dict[Expr, Expr]) -> None:
        extent, counter = self.term(loop.extent, env), loop.counter
        indexed = self.names.loops.get(counter.name)
        if indexed is None and extent.is_const and extent.value <= MOST_WRITTEN_OUT:
            for iteration in range(extent.value):
                self.block(loop.body, self.inside(loop, env, const(iteration, counter.width)))
        elif indexed is None and extent.op == "ite" and counter.width == 1:
            # of a condition, which is taken to hold: registers are 0 otherwise, and so they are for words of zeros
            if any(isinstance(s, Store) for s in walk(loop.body)):
                raise Unread(f"what is stored must not depend on {counter.name}")
            registers = _updated(loop.body, env)
            before = [env[register] for register in registers]
            self.block(loop.body, self.inside(loop, env, const(0, 1)))
            for register, value in zip(registers, before, strict=True):
                if not (self.vanishes(value) and self.vanishes(env[register])):
                    raise Unread(f"{register.name} must be 0 where {counter.name} is not reached, and for words of 0")
        elif indexed is None:
            if _updated(loop.body, env):
                raise Unread(f"registers must not be kept from one iteration of {counter.name} to the next")
            self.block(loop.body, self.inside(loop, env, private_var(f"element {counter.name}", counter.sort)))
        else:
            self.fold(loop, indexed, env)

    def vanishes(self, term: Expr) -> bool:
        """Whether a word is 0 where all words of leaves are: a sum of products is."""
        if term in self.known:
            real = self.judgement(self.known[term]).real
            return real[0] == "sum" and real[2][0] == "*"
        word = inline(substitute(term, {leaf: const(0, leaf.width) for leaf in self.leaves}))
        return word.is_const and word.value == 0

    def inside(self, loop: For, env: dict[Expr, Expr], value: Expr) -> dict[Expr, Expr]:
        env[loop.counter] = value
        return env

    def index(self, name: str, counter: Expr, depth: int) -> Expr:
        """The variable of an index, one for each name and depth in a nest of loops."""
        variable = private_var(f"index {name} {depth}", counter.sort)
        self.indices[variable] = name
        return variable

    def fold(self, loop: For, names: tuple[str, ...], env: dict[Expr, Expr]) -> None:
        """A loop over an index: sums in registers, or words that are stored for each of its values."""
        index, count = names[0], names[-1]
        nest, inner, extents = [loop], dict(env), list[Expr]()
        while len(nest[-1].body) == 1 and isinstance(only := nest[-1].body[0], For):
            if only.counter.name in self.names.loops:
                break
            nest.append(only)
        for each in nest:
            inner[each.counter] = self.index(index, each.counter, len(extents))
            extents.append(self.term(each.extent, env))
        if len(names) == 3:
            digits = [self.index(name, loop.counter, 0) for name in names[:2]]
            inner[loop.counter] = digits[0] * int(count) + digits[1]
            extents = [*self.extents[index]]
            if extents[0] * int(count) is not self.term(loop.extent, env) or len(extents) > 1:
                raise Unread(f"{loop.counter.name} must count the values of {index} and {names[1]}")
        self.counted(index, count if len(names) == 2 else "", extents)
        kept = {r: private_var(f"kept {r.name}", r.sort) for r in _updated(nest[-1].body, env)}
        inner |= kept
        outside, self.last = (
            self.last,
            frozenset(inner[each.counter] == extent - 1 for each, extent in zip(nest, extents, strict=True)),
        )
        self.block(nest[-1].body, inner)
        for register, before in kept.items():
            self.begun(register, env[register])
            name = self.names.ranges.get(register.name)
            env[register] = self.summed(register, before, inner[register], index, count, name)
        self.last = outside

    def counted(self, index: str, count: str, extents: list[Expr]) -> None:
        """Loops over one index have one extent, which is the number of its values where that is a number."""
        if not all(map(is_, self.extents.setdefault(index, tuple(extents)), extents)):
            raise Unread(f"all loops over {index} must have one extent")
        (extent, *_) = extents
        if count.isdecimal() and not (extent.is_const and extent.value == int(count)):
            raise Unread(f"{index} must have {count} values, not {extent}")

    def begun(self, register: Expr, start: Expr) -> None:
        """What a register of a fold begins with: 0, or less than every score that is not masked."""
        number = signed(start) if start.is_const else None
        if number != 0 and (number is None or register.name != "largest" or number > MASKED << 20):
            raise Unread(f"{register.name} must begin with 0, not {start}")

    def summed(self, register: Expr, before: Expr, after: Expr, index: str, count: str, name: str | None) -> Expr:
        """What a register holds after a loop that makes ``after`` of it, in which it is ``before``."""
        width = register.width
        last, partly = None, False
        while after.op == "ite" and not {before, *self.leaves, *self.known} & set(variables_of(after.args[0])):
            test, yes, no = after.args
            if no is before:  # terms that do not count are products of zeros
                after, partly = yes, True
            elif _conjuncts(test) == self.last:
                last, after = yes, no
            else:
                raise Unread(f"what {register.name} keeps must not depend on {test}")
        repeated = partial(self.add, "repeated sum", names=[index, count])
        if partly and not (after.op == "bvadd" and any(a.func and a.func.name == "hlscnn_product" for a in after.args)):
            raise Unread(f"terms of {register.name} must be products where some do not count")
        match after.op, after.args, after.func and after.func.name:
            case "ite", (test, larger, other), _ if other is before and test is before.slt(larger):
                return self.waiting("largest", self.step(larger), index, count, width)
            case "bvadd", (first, second), _ if before is first or before is second:
                part = second if first is before else first
                if part.op == "apply" and part.func is not None and part.func.name == "adpfloat_mul":
                    return self.word(self.named(self.weighted(register.name, part, index, count), name), width)
                if part.op == "sext" and self.judgement(self.step(part.args[0])).forms == ("fixed",):
                    return self.waiting("average", self.step(part.args[0]), index, count, width)
                step = self.step(part)
                (form,) = self.judgement(step).forms
                if form == "score":
                    most, least = self.names.bounds["sum of exponentials"]
                    return self.word(self.add("sum of exponentials", step, names=[index, count, most, least]), width)
                if form not in _PLAIN:
                    raise Unread(f"words of the form {form} are not added as they are")
                return self.word(self.named(repeated(step, lemmas=_PLAIN[form]), name), width)
            case "apply", (first, second), "eadd" if before is first or before is second:
                self.functions |= {f: None for f in (after.func,) if f is not None}
                step = self.step(second if first is before else first)
                return self.word(self.named(repeated(step, lemmas=["sum"]), name), width)
            case "apply", (total,), "hlscnn_stored" if total.op == "apply" and total.args[1] is before:
                word, _, bias = total.args
                self.functions |= {f: None for f in (after.func, total.func) if f is not None}
                if not bias.is_const or bias.value:
                    raise Unread("the sum of words must have no bias but in the end")
                step = self.named(repeated(self.step(word), lemmas=["HLSCNN total", "HLSCNN store"]), name)
                return self.word(step if last is None else self.biased(step, last, after), width)
        raise Unread(f"{register.name} must be a sum, not {after}")

    def biased(self, step: int, last: Expr, other: Expr) -> int:
        """A stored sum of words with a bias, which the last iteration adds: words have no more bits of fraction."""
        total = last.args[0]
        bias = total.args[2]
        if substitute(last, {bias: const(0, bias.width)}) is not other:
            raise Unread("the last iteration must do what the others do, and add a bias")
        biased = self.add("sum", step, self.step(bias))
        return self.lemma("HLSCNN store", self.lemma("HLSCNN total", biased))

    def waiting(self, law: str, step: int, index: str, count: str, width: int) -> Expr:
        variable = private_var(f"{law} of {step}", bv(width))
        self.pending[variable] = law, step, index, count
        return variable

    def weighted(self, register: str, part: Expr, index: str, count: str) -> int:
        """A sum of products of codes: the first factor is a row of exact weights."""
        assert part.func is not None
        self.functions[part.func] = None
        row, factor = part.args
        if row not in self.leaves:
            raise Unread(f"weights must be words of a memory, not {row}")
        name, leaf = self.leaves[row]
        norm = self.names.norms.get(register, "")
        names = [index, name, leaf.bias, norm, count, leaf.magnitude]
        step = self.add("weighted sum", self.step(factor), names=names, lemmas=["multiply codes"])
        if self.judgement(self.step(factor)).real[0] == "/":
            step = self.add("mean by shares", step, self.step(row))
        return step


def _updated(body: tuple[Statement, ...], env: Mapping[Expr, Expr]) -> list[Expr]:
    """The registers that statements change."""
    return [*dict.fromkeys(s.target for s in walk(body) if isinstance(s, Let) and s.update and s.target in env)]


def _conjuncts(test: Expr) -> frozenset[Expr]:
    return frozenset().union(*map(_conjuncts, test.args)) if test.op == "and" else frozenset([test])
