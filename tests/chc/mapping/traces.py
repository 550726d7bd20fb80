"""What a proof takes the device's output for, run beside the interpreter: random programs, at small sizes.

The terms that :mod:`chc.mapping.contents.values` traces back from a cell are meant to be its value after every run.
Here they are evaluated with what a run's memories hold before it, so that a fault shows without a wrong claim that
makes use of it.  ``python -m tests.chc.mapping.traces --programs 500 --seed 1`` prints counts.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from chc.mapping.contents.folds import FoldUse
from chc.mapping.contents.indirect_addressing import IndirectAddressing
from chc.mapping.contents.values import Values
from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Layout
from chc.mapping.memory.reaching_definitions import ReachingDefinitions
from chc.mapping.program.schedule import schedule_of
from chc.mapping.proof import Proof
from chc.mapping.prove import _precondition
from chc.mapping.sampling.samples import Sampler, Samples, samples_of
from chc.mapping.sampling.sizes import Tried
from ila_lang import Expr, Kernel, Machine, compile_terms, const, free_variables, ite, run_fragment
from ila_lang.language.expr import resize
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh, fresh_symbols
from smt_encodings.naming import distinct
from tests.chc.mapping.toy import TABLES, Body, mapping, with_tables

SIZES = ({"n": 1, "m": 1}, {"n": 2, "m": 3}, {"n": 3, "m": 2}, {"n": 2, "m": 2})
NotTraced = (Unsupported, NotDischarged)


# -- traced terms as functions of a run's memories ------------------------------------------------------


@dataclass
class Trace:
    """The term of one side's output cell, to be evaluated at sizes, coordinates and contents of memories."""

    values: Values
    context: Context
    term: Expr
    steps: dict[FoldUse, tuple[tuple[Expr, ...], tuple[Expr, ...], tuple[Expr, ...]]] = field(default_factory=dict)

    def at(self, term: Expr, known: Mapping[Expr, int], memories: Mapping[str, Mapping[int, int]]) -> int:
        """The value of a term; ``known`` gives sizes, coordinates, counters and registers."""
        inputs: dict[Expr, int] = {}
        for variable in free_variables(term).values():
            if variable in known:
                inputs[variable] = known[variable]
            elif variable in self.values.sources:
                source = self.values.sources[variable]
                address = self.at(source.reader.cell(), known, memories)
                inputs[variable] = memories[source.memory.name][address]
            elif variable in self.values.folds:
                use = self.values.folds[variable]
                results = dict(zip(use.symbols, self.fold(use, known, memories), strict=True))
                inputs[variable] = results[variable]
            elif variable.name.startswith("register."):
                raise AssertionError(f"{variable.name} of a fold is left in a term")
            else:
                raise Unsupported(f"{variable.name} is not known")
        found: int = compile_terms(list(inputs), [term])(*inputs.values())[0]
        return found

    def fold(self, use: FoldUse, known: Mapping[Expr, int], memories: Mapping[str, Mapping[int, int]]) -> list[int]:
        """The results of a fold, iteration by iteration; its step is traced at an arbitrary one."""
        if use not in self.steps:
            counters = tuple(fresh(f"at.{c.name}", c.sort) for c, _ in use.loops)
            inside = use.context.inside(tuple(zip(counters, (e for _, e in use.loops), strict=True)), counters[0].name)
            registers = tuple(fresh(f"held.{r.name}", r.sort) for r in use.fold.registers)
            at = {c: resize(own, 32) for (c, _), own in zip(use.loops, counters, strict=True)}
            self.steps[use] = counters, registers, self.values.step(use, inside, registers, at)
        counters, registers, steps = self.steps[use]
        held = [self.at(t, known, memories) for t in use.initial]
        extents = [range(self.at(e, known, memories)) for _, e in use.loops]
        for iteration in itertools.product(*extents):
            now = {**known, **dict(zip(counters, iteration, strict=True)), **dict(zip(registers, held, strict=True))}
            held = [self.at(t, now, memories) for t in steps]
        return held


def traced(proof: Proof) -> Trace:
    """The output cell of the device, at arbitrary coordinates; raises one of ``NotTraced`` where that is not proved."""
    claim = proof.mapping
    assert _precondition(proof)
    tried = Tried.of(claim)
    schedule = schedule_of(claim.device, tried.points)
    tried.samplers = [Sampler(schedule)]
    proof.samples = tried.quick()
    samples = samples_of(proof.parameters, claim.coordinates, proof.samples)
    context = Context(proof, proof.base, claim.coordinates, samples)
    sizes = Context(proof, proof.domain, (), Samples(proof.parameters, (), tuple(proof.samples)), "domain")
    for text, condition in schedule.requires:
        sizes.theorem("decoding", text, condition, "holds for all sizes")
    values = Values(ReachingDefinitions(Layout(proof, "toy", schedule), tried.samplers[0]))
    IndirectAddressing(values).resolve()
    index = claim.output_index(claim.row_at, claim.column_at)
    return Trace(values, context, values.after(context, claim.device.tensor(claim.output[0]), index))


def difference(claim: TensorMapping, seed: int = 0) -> str | None:
    """Where the traced value of the device's output is not what a run leaves; raises where there is no trace."""
    random = Random(seed)
    with fresh_symbols():
        proof = Proof(distinct(claim), Discharger(timeout=2.0, second=False), 2.0, None)
        trace = traced(proof)
        claim = proof.mapping
        for sizes in SIZES:
            machine = Machine(claim.device.ila)
            for name in machine.values:
                machine.values[name] = 0
            before = {name: {a: random.randrange(256) for a in range(600)} for name in machine.memories}
            for name, words in before.items():
                machine.memories[name].update(words)
            run_fragment(claim.device, sizes, {}, machine)
            after = machine.memories[claim.output[0]]
            rows, columns = claim.output_extents(sizes)
            own = {claim.parameters[name]: value for name, value in sizes.items()}
            for cell in itertools.product(range(rows), range(columns)):
                here = {**own, **dict(zip((c for c, _ in claim.coordinates), cell, strict=True))}
                got = trace.at(trace.term, here, before)
                if got != after[cell[0] * columns + cell[1]]:
                    return f"{sizes}, cell {cell}: traced {got}, run {after[cell[0] * columns + cell[1]]}"
    return None


# -- random programs --------------------------------------------------------------------------------------


REGISTERS = ("r0", "r1", "r2")


@dataclass
class Draws:
    """A random body: registers that loops and blocks set, sums inside sums, words that say where, copies of copies."""

    random: Random
    k: Kernel
    s: Mapping[str, Expr]
    registers: dict[str, Expr] = field(default_factory=dict)
    counters: list[Expr] = field(default_factory=list)
    cell: Expr | None = None
    """The output cell, where the body runs once for each."""
    count: int = 0

    def name(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def value(self, depth: int = 2) -> Expr:
        """A byte over registers, counters and literals."""
        kind = self.random.random()
        if depth == 0 or kind < 0.5:
            return self.registers[self.random.choice(REGISTERS)]
        if kind < 0.6:
            return const(self.random.choice([0, 1, 2, 255]), 8)
        if kind < 0.7 and self.counters:
            return self.random.choice(self.counters)[7:0]
        one, two = self.value(depth - 1), self.value(depth - 1)
        return self.random.choice([one + two, one - two, one ^ two, ite(one == two, one + 1, two)])

    def address(self) -> Expr:
        counter = self.random.choice([const(0, 32), *self.counters, *self.counters])
        return self.random.choice([counter, counter, counter + 1, counter >> 1])

    def word(self) -> Expr:
        """A word of memory, perhaps where another one says."""
        memory = self.random.choice(["src", *TABLES])
        address = self.address()
        if self.random.random() < 0.3:
            table = self.s[self.random.choice(TABLES)]
            address = self.k.load(self.name("where"), table, address).zext(32)
            address += self.random.choice([const(0, 32), self.address()])
            memory = "src"
        return self.k.load(self.name("word"), self.s[memory], address)

    def condition(self) -> Expr:
        rows, columns = self.s["n"], self.s["m"]
        forms = [
            ~(rows == 0),
            const(1, 32) <= columns,
            rows == 2,
            self.k.load(self.name("flag"), self.s["t0"], self.address()) < 2,
        ]
        return self.random.choice([*forms, *(c == self.random.choice([0, 1]) for c in self.counters)])

    def statement(self, depth: int) -> None:
        kind = self.random.random()
        if depth > 0 and kind < 0.35:
            extent = self.random.choice([const(2, 32), const(3, 32), self.s["m"], self.s["m"], self.s["n"]])
            with self.k.loop(self.name("c"), extent) as counter:
                self.counters.append(counter)
                self.block(depth - 1, self.random.randint(1, 3))
                self.counters.pop()
        elif depth > 0 and kind < 0.45:
            with self.k.when(self.name("if"), self.condition()):
                self.block(depth - 1, self.random.randint(1, 2))
        elif kind < 0.65:
            register = self.registers[self.random.choice(REGISTERS)]
            word = self.word()
            self.k.assign(register, self.random.choice([word, register + word, register ^ word]))
        elif self.cell is not None and kind < 0.75:
            self.k.store(self.s["dst"], self.cell, self.s["dst"].load(self.cell) + self.value(1))
        elif kind < 0.8:
            self.k.assign(self.registers[self.random.choice(REGISTERS)], self.value())
        else:
            own = [c[7:0] for c in self.counters[-1:]]
            value = self.random.choice([self.value(1), const(0, 8), *own, *own])
            self.k.store(self.s[self.random.choice(TABLES)], self.address(), value)

    def block(self, depth: int, statements: int) -> None:
        for _ in range(statements):
            self.statement(depth)


def random_body(seed: int) -> Body:
    """A kernel whose last loops store what it has computed, before them or in them."""

    def body(k: Kernel, s: Mapping[str, Expr]) -> None:
        random = Random(seed)
        draws = Draws(random, k, s)
        inside = random.random() < 0.4

        def start() -> None:
            draws.registers = {r: k.let(r, const(0, 8)) for r in REGISTERS}

        for number, table in enumerate(TABLES):
            with k.loop(f"w{number}", s["m"]) as w:
                before = [s["src"], *(s[t] for t in TABLES[:number])]
                read = k.load(f"copied{number}", random.choice(before[-2:]), random.choice([w, w, w >> 1]))
                k.store(s[table], w, random.choice([w[7:0], read, read, const(1, 8)]))
        if not inside:
            start()
            draws.block(2, random.randint(2, 5))
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            if inside:
                start()
                draws.counters += [i, j]
                draws.cell = i * s["m"] + j
                k.store(s["dst"], draws.cell, draws.value(1))
                draws.block(2, random.randint(1, 4))
            if not inside or random.random() < 0.5:
                k.store(s["dst"], i * s["m"] + j, draws.value(1))

    return body


def campaign(programs: int, seed: int, say: Callable[[str], None] = print) -> Counter[str]:
    """Traces so many programs; counts those with a trace that agrees, that differs, and those without."""
    counts: Counter[str] = Counter()
    for number in range(seed, seed + programs):
        try:
            found = difference(with_tables(mapping(), random_body(number)), number)
        except NotTraced as error:
            counts["not traced"] += 1
            counts[f"  {' '.join(str(error).split()[:4])}"] += 1
            continue
        counts["differs" if found else "agrees"] += 1
        if found:
            say(f"program {number}: {found}")
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for what, count in campaign(options.programs, options.seed).most_common():
        print(f"{count:6} {what}")
