"""Writes the derivation of a bound from the kernel of a tensor operator: an interpretation of the kernel.

A kernel is walked once.  A word that it loads is a leaf; a primitive is the operation that its lemma is about, and then
the lemma; a loop that adds up words in a register is a sum over an index.  What has no meaning here raises
:class:`~.names.Unread`.  Beside the kernel only names are given (:mod:`.names`): of leaves, of indices, and of the
ranges whose magnitudes a theorem may use.  What is written is replayed by :mod:`rewrites.bounds.kernel`, which does not
know where it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from operator import is_

from ila_lang import Expr, Kernel, const, substitute
from ila_lang.language.expr import private_var, variables_of
from ila_lang.language.function import inline
from ila_lang.language.kernel import For, Let, Load, Statement, Store, walk
from ila_lang.mapping import Lemma
from rewrites.bounds.kernel.judgements import indices_of
from rewrites.bounds.kernel.replay import MASKED

from .loops import conjuncts, reached, require_memory, row_major, updated
from .names import Layout, Leaf, Names, Source, Unread, Written
from .words import CONSTANTS, KEPT, Words, signed

MOST_WRITTEN_OUT, MOST_READ = 8, 10_000
"""Loops of at most so many iterations that are no sums are written out, as so many statements in all."""
_KEPT = "kept"
_PLAIN = {"accumulator": ("VTA sum",), "partial": ()}
"""The lemmas of plain additions of words, by their form."""


def derivation_of(
    kernel: Kernel,
    operands: Mapping[Expr, Expr],
    result: str,
    names: Names,
    *,
    lemmas: Sequence[Lemma] = (),
    growth: Sequence[str] = (),
) -> Written:
    """The derivation of the words that a kernel stores to the memory ``result``; ``operands`` are the instruction's.

    With ``growth``, the names of law 'growth', it is that of the words after many timesteps: the first is the error of
    the words of the timestep before.  The bound of one must not depend on the magnitudes of words before conversions
    and cuts then: what is cut becomes a condition.  Raises Unread where a part of the kernel is none that laws are
    about, and Rejected where names do not fit.
    """
    writer = _Writer(result, names, operands, lemmas, bool(growth))
    writer.loops = frozenset(s.counter for s in walk(kernel.body) if isinstance(s, For))
    try:
        if {leaf.name for leaf in names.leaves.values()} & {*CONSTANTS}:
            raise Unread(f"leaves must not be called {' or '.join(CONSTANTS)}, which are names of constants")
        writer.block(kernel.body, writer.begin())
        layout = writer.end(kernel)
        if growth:
            writer.require_state(growth[0])
            writer.add("growth", len(writer.steps), names=growth)
    except (TypeError, KeyError, IndexError, RecursionError) as error:  # of terms that nobody has read before
        raise Unread(f"{kernel.name} cannot be read: {error}") from error
    functions, used = tuple(writer.functions), tuple(writer.used.values())
    source = Source(operands, result, names, tuple(lemmas), tuple(growth))
    return Written(tuple(writer.steps), kernel, functions, used, tuple(writer.assumptions()), layout, source)


@dataclass
class _Writer(Words):
    """A walk over a kernel.

    ``indices`` are what variables count, and ``around`` counters and extents of the loops around a statement.  What was
    ``stored`` is its address, its value and the loops around it.
    """

    numbered: dict[str, list[tuple[Expr, ...]]] = field(default_factory=dict)
    indices: dict[Expr, str] = field(default_factory=dict)
    counters: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    counts: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    elements: dict[Expr, Expr] = field(default_factory=dict)
    shown: dict[Expr, Expr] = field(default_factory=dict)
    given: dict[Expr, Expr] = field(default_factory=dict)
    around: tuple[tuple[Expr, Expr], ...] = ()
    active: frozenset[str] = frozenset()
    """Indices of the loops around."""
    stored: dict[str, tuple[Expr, Expr, tuple[tuple[Expr, Expr], ...]]] = field(default_factory=dict)
    last: frozenset[Expr] = frozenset()
    """What holds in the last iteration of a nest of loops."""
    final: int = 0
    """The step of the result."""
    read: int = 0
    """How many statements were read."""
    loops: frozenset[Expr] = frozenset()
    """The counters of the kernel's loops."""
    fits: dict[str, None] = field(default_factory=dict)
    """What numbers are taken not to wrap."""

    def end(self, kernel: Kernel) -> Layout:
        """Where things are, once the kernel is read to its end."""
        if not self.final:
            raise Unread(f"{kernel.name} must store to {self.result}")
        if self.final != len(self.steps):
            raise Unread("the last step must be the result's")
        self.require_signs()
        for name, place in self.places.items():
            if len(place) == 2 and place[0].name in self.stored and not self.before(*place):
                raise Unread(f"{name} must not be loaded from where the kernel stores, but for what it stored before")
        for name, (memory, *_) in self.others.items():
            if memory.name in self.stored:
                raise Unread(
                    f"{name} must be loaded from where the kernel does not store, but where {self.guards[name]}"
                )
        address, _, around = self.stored[self.result]
        leaves = {name: leaf for leaf, (name, _) in self.leaves.items()}
        return Layout(
            self.places,
            {name: (leaf, self.ways.get(leaf, leaf)) for name, leaf in leaves.items()},
            {name: guard for name, guard in self.guards.items() if guard is not None},
            self.others,
            {n: tuple(zip(self.counters[n], extents, strict=True)) for n, extents in self.extents.items()},
            tuple((counter, extent) for counter, extent in around if counter in self.elements),
            (
                next(s.memory for s in walk(kernel.body) if isinstance(s, Store) and s.memory.name == self.result),
                address,
            ),
            self.given,
            self.biases,
        )

    def require_state(self, error: str) -> None:
        """The words with this error, and no others, are those that an earlier timestep stored as its result."""
        states = {name for name, leaf in self.leaves.values() if leaf.error == error}
        loaded = {name for name, _ in self.leaves.values() if self.places[name][0].name in self.stored}
        if len(states) != 1 or states != loaded or any(self.places[s][0].name != self.result for s in states):
            raise Unread(f"{error} must be the error of the words that are loaded from {self.result}, and of no others")

    def assumptions(self) -> Iterator[str]:
        """What words and operands are taken for."""
        yield "every tensor lies in its memory"
        yield from (f"what is stored to {memory} lies in it" for memory in self.stored if memory != self.result)
        yield from self.fits
        for operand, value in self.given.items():
            if not self.operands[operand].is_const:
                yield f"{operand.name} is {value.value}"
        for name, guard in self.guards.items():
            if guard is not None:
                elsewhere = f"is a word of {self.others[name][0].name}" if name in self.others else "counts as 0"
                yield f"{name} {elsewhere} but where {substitute(guard, self.shown)}"
        for lemma in self.used.values():
            yield f"{lemma.name}: {lemma.left} is {lemma.right}, which is asked, too"

    def before(self, memory: Expr, address: Expr) -> bool:
        """Whether words are those that an earlier iteration of the first loop around a store has stored."""
        (first, _), *inner = self.stored[memory.name][2] or [(address, address)]
        choices = [
            [c, *(v for v, n in self.indices.items() if len(self.extents.get(n, ())) == 1 and self.extents[n][0] is e)]
            for c, e in inner
        ]
        return any(
            row_major([first - 1, *chosen], [e for _, e in self.stored[memory.name][2]]) is address
            for chosen in product(*choices)
        )

    # -- statements --------------------------------------------------------------------------------------------

    def begin(self) -> dict[Expr, Expr]:
        """The operands of the instruction."""
        env: dict[Expr, Expr] = {}
        for state, value in self.operands.items():
            number = self.names.given.get(state.name)
            if value.is_const and number not in (None, value.value):
                raise Unread(f"{state.name} is {value.value}, not {number}")
            if number is not None and not 0 <= number < 1 << state.width:
                raise Unread(f"{state.name} must be a number of {state.width} bits, not {number}")
            if value.is_const or number is not None:
                env[state] = self.given[state] = const(value.value if number is None else number, state.width)
            elif state.name in self.names.leaves:
                env[state] = self.leaf(self.names.leaves[state.name], (state,), state.width)
        return env

    def leaf(self, leaf: Leaf, place: tuple[Expr, ...], width: int) -> Expr:
        """A variable for words at a place: in the order of the loops, the indices that they depend on.

        These are the indices of the address, and of the condition under which the words count.
        """
        if not leaf.name.rstrip("#").isidentifier():
            raise Unread(f"a leaf must be named without its indices, not {leaf.name!r:.60}")
        used = {*variables_of(*place), *(() if self.guard is None else variables_of(self.guard))}
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
        if self.guards.setdefault(name, self.guard) is not self.guard:
            raise Unread(f"{name} must be read under one condition")
        variable = self.variable(f"leaf {name}", width)
        if self.leaves.setdefault(variable, (name, leaf)) != (name, leaf):
            raise Unread(f"{name} must be the name of one thing")
        return variable

    def block(self, body: Iterable[Statement], env: dict[Expr, Expr]) -> None:
        """Statements, which change the registers of ``env``."""
        for statement in body:
            self.read += 1
            if self.read > MOST_READ:
                raise Unread(f"loops that are written out must be of at most {MOST_READ:,} statements")
            match statement:
                case Let(target=target, value=value):
                    env[target] = self.term(value, env)
                case Load(target=target, memory=memory, address=address):
                    env[target] = self.load(target, memory, self.data_free(self.term(address, env), "an address"))
                case Store(memory=memory, address=address, value=value):
                    self.store(memory, self.data_free(self.term(address, env), "an address"), self.term(value, env))
                case For():
                    self.loop(statement, env)
                case _:
                    raise Unread(f"a kernel must issue no commands, such as {statement}")

    def term(self, term: Expr, env: Mapping[Expr, Expr]) -> Expr:
        return inline(substitute(term, env), KEPT)

    def load(self, register: Expr, memory: Expr, address: Expr) -> Expr:
        require_memory(memory)
        if memory.name not in self.stored:
            if register.name not in self.names.leaves:
                raise Unread(f"what lies in {memory.name} must have a name")
            return self.leaf(self.names.leaves[register.name], (memory, address), register.width)
        place, value, _ = self.stored[memory.name]
        if place is not address:
            raise Unread(f"{memory.name} must be loaded where it was stored, not at {address}")
        return value

    def store(self, memory: Expr, address: Expr, value: Expr) -> None:
        """The result, or words that are loaded again: one for each iteration of the loops around, row-major."""
        require_memory(memory)
        last, name = memory.name == self.result, self.names.ranges.get(memory.name)
        counters, extents = ([pair[k] for pair in self.around] for k in (0, 1))
        if self.guard is not None or (counters and row_major(counters, extents) is not address):
            raise Unread(
                f"{memory.name} must be stored to once for each of the loops around, row-major, not at {address}"
            )
        if memory.name in self.stored:
            raise Unread(f"{memory.name} must be stored to in one place")
        if any(v.name.startswith(_KEPT) for v in variables_of(value)):
            raise Unread(f"what is stored to {memory.name} must not be kept from one iteration to the next")
        if last or name:
            step = self.step(value, name, converted=last)
            self.final = step if last else self.final
        self.stored[memory.name] = address, value, self.around

    # -- loops -------------------------------------------------------------------------------------------------

    def loop(self, loop: For, env: dict[Expr, Expr]) -> None:
        counter = loop.counter
        extent = self.data_free(self.term(loop.extent, env), f"the number of iterations of {counter.name}")
        if counter.width > 1:
            self.require_size(extent, counter)
        indexed, stores = self.names.loops.get(counter.name), any(isinstance(s, Store) for s in walk(loop.body))
        if indexed is None and extent.is_const and extent.value <= MOST_WRITTEN_OUT and not stores:
            for iteration in range(extent.value):
                self.block(loop.body, self.inside(loop, env, const(iteration, counter.width)))
            env.pop(counter, None)
        elif indexed is None and counter.width == 1 and (test := reached(extent)) is not None:
            self.guarded(loop, test, env)
        elif indexed is None:
            if updated(loop.body, env):
                raise Unread(f"registers must not be kept from one iteration of {counter.name} to the next")
            element = private_var(f"element {counter.name} {len(self.elements)}", counter.sort)
            self.elements[element] = extent
            self.shown[element] = counter
            with self.within((element, extent)):
                self.block(loop.body, self.inside(loop, env, element))
        else:
            self.fold(loop, indexed, env)

    def require_size(self, extent: Expr, counter: Expr) -> None:
        """A loop has as many iterations wherever it is reached."""
        if any(v in self.loops or v in self.indices or v in self.elements for v in variables_of(extent)):
            raise Unread(f"the number of iterations of {counter.name} must not depend on counters, as {extent} does")

    @contextmanager
    def within(self, *loops: tuple[Expr, Expr]) -> Iterator[None]:
        """Inside of loops."""
        before, self.around = self.around, (*self.around, *loops)
        yield
        self.around = before

    def guarded(self, loop: For, test: Expr, env: dict[Expr, Expr]) -> None:
        """What is done under a condition: words that are not read are others, or 0, and so is what is made of them."""
        if self.guard is not None or any(isinstance(s, Store) for s in walk(loop.body)):
            raise Unread(f"what {loop.counter.name} guards must be no part of another condition, and store nothing")
        self.guard = self.test(test, loop.counter.name)
        before = {register: env[register] for register in updated(loop.body, env)}
        self.block(loop.body, self.inside(loop, env, const(0, 1)))
        for register, value in before.items():
            if self.replaces(value, env[register]):
                continue
            if value is not const(0, register.width) or not self.vanishes(env[register]):
                raise Unread(f"{register.name} must be 0 where {loop.counter.name} is not reached, and for words of 0")
        self.guard = None

    def test(self, test: Expr, what: str) -> Expr:
        """A test of counters and sizes."""
        if not any(v in self.indices or v in self.elements for v in variables_of(test)):
            raise Unread(f"the condition of {what} must be one on counters, not {test}")
        return self.data_free(test, f"the condition of {what}")

    def inside(self, loop: For, env: dict[Expr, Expr], value: Expr) -> dict[Expr, Expr]:
        env[loop.counter] = value
        return env

    def index(self, name: str, counter: Expr, depth: int) -> Expr:
        """The variable of an index, one for each name and depth in a nest of loops."""
        variable = private_var(f"index {name} {depth}", counter.sort)
        self.indices[variable] = name
        self.shown[variable] = counter
        return variable

    def fold(self, loop: For, names: tuple[str, ...], env: dict[Expr, Expr]) -> None:
        """A loop over an index: sums in registers, or words that are stored for each of its values."""
        index, count = names[0], names[-1]
        nest, inner, extents = [loop], dict(env), list[Expr]()
        while len(nest[-1].body) == 1 and isinstance(only := nest[-1].body[0], For):
            if only.counter.name in self.names.loops or only.counter.width == 1:
                break
            nest.append(only)
        if loop.counter.width == 1:
            raise Unread(f"{loop.counter.name} must count the values of {index}, and be no condition")
        if {*names[:-1]} & self.active:
            raise Unread(f"loops over {index} must not be inside of each other")
        for each in nest:
            counter = each.counter
            inner[counter] = self.index(index, counter, len(extents))
            extent = self.data_free(self.term(each.extent, inner), f"the number of iterations of {counter.name}")
            self.require_size(extent, counter)
            extents.append(extent)
        if len(names) == 3:
            first, second = (self.index(name, loop.counter, 0) for name in names[:2])
            inner[loop.counter] = first * int(count) + second
            whole = extents.pop(0)
            self.counted(names[1], count, [const(int(count), whole.width)], (second,))
            extents = [*self.extents[index]]
            if nest[1:] or len(extents) > 1 or extents[0] * int(count) is not whole:
                raise Unread(f"{loop.counter.name} must count the values of {index} and {names[1]}")
            self.fits[f"{substitute(whole, self.shown)} is less than 2^{whole.width}"] = None
            around = [(inner[loop.counter], whole)]
        else:
            around = [(inner[each.counter], extent) for each, extent in zip(nest, extents, strict=True)]
            self.counted(index, count, extents, [counter for counter, _ in around])
        kept = {r: self.variable(f"{_KEPT} {r.name} {len(self.data)}", r.width) for r in updated(nest[-1].body, env)}
        if kept and len(names) == 3:
            raise Unread(f"{loop.counter.name} must count what is stored, and not what is summed")
        inner |= kept
        outside = self.last, self.active
        self.last, self.active = (
            frozenset(counter == extent - 1 for counter, extent in around),
            self.active | {*names[:-1]},
        )
        with self.within(*around):
            self.block(nest[-1].body, inner)
        for register, before in kept.items():
            env[register] = self.summed(register, before, inner[register], env[register], index, count)
        self.last, self.active = outside

    def counted(self, index: str, count: str, extents: Sequence[Expr], counters: Sequence[Expr]) -> None:
        """Loops over one index have one extent, which is the number of its values, whatever has that number."""
        self.counters.setdefault(index, tuple(counters))
        number = extents[0].value if len(extents) == 1 and extents[0].is_const else None
        for known, name in ((self.extents, index), (self.counts, count)):
            before = known.setdefault(name, tuple(extents))
            if len(before) != len(extents) or not all(map(is_, before, extents)):
                raise Unread(f"all loops over {name} must have one extent")
        if count.isdecimal() and number != int(count):
            raise Unread(f"{index} must have {count} values, not {extents[0]}")
        if any(v in self.indices and self.indices[v] == index for v in variables_of(*extents)):
            raise Unread(f"the number of values of {index} must be one for all of them")

    def summed(self, register: Expr, before: Expr, after: Expr, start: Expr, index: str, count: str) -> Expr:
        """What a register holds after a loop that makes ``after`` of it, in which it is ``before``.

        It begins with 0, the largest of scores with less than each that is not masked.
        """
        width, name = register.width, self.names.ranges.get(register.name)
        match after.op, after.args:
            case "ite", (test, larger, other) if other is before and test is before.slt(larger):
                if width != 32 or not start.is_const or signed(start) > MASKED << 20:
                    raise Unread(f"{register.name} must begin with less than all scores, not {start}")
                return self.waiting("largest", self.score(larger), index, count, width)
        if start is not const(0, width):
            raise Unread(f"{register.name} must begin with 0, not {start}")
        last, partly = None, None
        if after.op == "ite":
            test, yes, no = after.args
            if no is before:
                after, partly = yes, self.test(test, f"terms of {register.name}")
            elif conjuncts(test) == self.last and no.func is not None and no.func.name == "hlscnn_stored":
                last, after = yes, no
            else:
                raise Unread(f"what {register.name} keeps must not depend on {test}")
        repeated = partial(self.add, "repeated sum", names=[index, count])
        if partly is not None:
            return self.word(self.named(self.partly(before, after, partly, repeated), name), width)
        match after.op, after.args, after.func and after.func.name:
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
                if form not in _PLAIN or width != 32:
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

    def partly(self, before: Expr, after: Expr, test: Expr, repeated: Callable[..., int]) -> int:
        """A sum of products of which some do not count: their words are 0, and are used nowhere else."""
        products = [a for a in after.args if a.func is not None and a.func.name == "hlscnn_product"]
        if after.op != "bvadd" or before not in after.args or len(products) != 1:
            raise Unread(f"terms must be products where some do not count, not {after}")
        known, leaves = {*self.known}, [v for v in variables_of(*products) if v in self.leaves]
        step = self.step(products[0])
        counted = {self.indices[v] for v in variables_of(test) if v in self.indices}
        for leaf in leaves:
            name, _ = self.leaves[leaf]
            if not counted <= {*indices_of(name)}:
                raise Unread(f"{name} must depend on all indices in {substitute(test, self.shown)}, where it counts")
            if self.ways[leaf] in known or self.guards[name] is not None:
                raise Unread(f"{name}, which does not always count, must be used in one place")
            self.guards[name] = test
        for term in {*self.known} - known:
            del self.known[term]
        self.closed |= {*leaves}
        return repeated(step, lemmas=_PLAIN["partial"])

    def biased(self, step: int, last: Expr, other: Expr) -> int:
        """A stored sum of words with a bias, which the last iteration adds: words have no more bits of fraction."""
        (total,), (plain,) = last.args, other.args
        *words, bias = total.args
        *others, none = plain.args
        alike = last.func is other.func and total.func is plain.func and all(map(is_, words, others))
        if not alike or none is not const(0, bias.width):
            raise Unread("the last iteration must do what the others do, and add a bias")
        biased = self.add("sum", step, self.step(bias))
        return self.lemma("HLSCNN store", self.lemma("HLSCNN total", biased))

    def waiting(self, law: str, step: int, index: str, count: str, width: int) -> Expr:
        variable = self.variable(f"{law} of {step} over {index}", width)
        self.pending[variable] = law, step, index, count
        return variable

    def weighted(self, register: str, part: Expr, index: str, count: str) -> int:
        """A sum of products of codes: the first factor is a row of exact weights."""
        assert part.func is not None
        self.functions[part.func] = None
        row, factor = part.args
        if row not in self.leaves:
            raise Unread(f"weights must be words of a memory, not {row}")
        name, leaf = self.leaves[row][0], self.use(row, row)
        if (leaf.form, leaf.error) != ("code", "0"):
            raise Unread(f"weights must be exact codes, not words of the form {leaf.form} with the error {leaf.error}")
        norm = self.names.norms.get(register, "")
        names = [index, name, leaf.bias, norm, count, leaf.magnitude]
        step = self.add("weighted sum", self.step(factor), names=names, lemmas=["multiply codes"])
        if self.judgement(self.step(factor)).real[0] == "/":
            step = self.add("mean by shares", step, self.step(row))
        return step
