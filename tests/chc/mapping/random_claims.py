"""Random claims: mappings of a few starts whose sides do the same in different ways, half of them changed in one place.

Names of sizes, registers, memories, tensors, functions, counters and coordinates come from a small pool, so that they
clash.  ``python -m tests.chc.mapping.random_campaign`` runs them; the oracle is :mod:`tests.chc.mapping.evaluator`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from bmc.mutants import Mutant, mutants
from ila_lang import BOOL, Expr, Fragment, Function, Ila, Kernel, Statement, bv, const, ite, mem, true, var
from ila_lang.mapping import TensorMapping
from ila_lang.text.portable import functions_of
from tests.chc.mapping.random_trees import Tree

POOL = ["row", "column", "ir", "n", "m", "i", "j", "k", "x", "acc", "word", "src", "dst", "lane", "toy", "out"]
MEMORY = mem(32, 8)


@dataclass
class Claim:
    """A mapping, what it was made of, what was changed in it, and whether it is known to hold without the change."""

    mapping: TensorMapping
    parts: tuple[str, ...]
    change: str = ""
    known: bool = True

    @property
    def holds(self) -> bool:
        """Whether the claim is true by the way it was made."""
        return self.known and not self.change


@dataclass
class Names:
    """Names for one place: from the pool, or each one new."""

    random: Random
    clash: bool
    count: Iterator[int]
    used: set[str] = field(default_factory=set)

    def new(self) -> str:
        """A name that this place does not have yet."""
        left = [n for n in POOL if n not in self.used]
        name = self.random.choice(left) if self.clash and left else f"name{next(self.count)}"
        self.used.add(name)
        return name

    def place(self, *used: str) -> Names:
        """Names for another place, where some names are taken."""
        return Names(self.random, self.clash, self.count, set(used))


@dataclass
class Side:
    """One side under construction: an ILA's state and inputs, kernels, a program, and the commands that start them."""

    ila: str
    rows: Expr
    columns: Expr
    gain: Expr
    line: Expr
    """Registers that latch the sizes (32 bits), a byte, and the number of a row."""
    tensors: list[Expr]
    scratch: list[Expr]
    kernels: list[list[Statement]] = field(default_factory=list)
    program: list[Statement] = field(default_factory=list)
    decodes: dict[int, Expr] = field(default_factory=dict)


RUN, OP, SIZES = var("run", BOOL), var("op", bv(4)), (var("n_in", bv(32)), var("m_in", bv(32)))
BYTE, NUMBER = var("byte_in", bv(8)), var("number_in", bv(32))


def _built(side: Side, parameters: dict[str, Expr]) -> Fragment:
    ila = Ila(side.ila)
    for name, sort in (("run", BOOL), ("op", bv(4)), ("n_in", bv(32)), ("m_in", bv(32)), ("byte_in", bv(8))):
        ila.input(name, sort)
    ila.input("number_in", 32)
    for state in (side.rows, side.columns, side.gain, side.line, *side.tensors, *side.scratch):
        ila.state(state.name, state.sort)
    for number, body in enumerate(side.kernels):
        start = ila.instruction(f"start_{number}").set_decode(side.decodes[number])
        for register, value in zip((side.rows, side.columns), SIZES, strict=True):
            start.update(register, value)
        start.start(Kernel(f"{side.ila}_kernel_{number}", body=body))
    for number, register, value in ((8, side.gain, BYTE), (9, side.line, NUMBER)):
        ila.instruction(f"set_{number}").set_decode(side.decodes[number]).update(register, value)
    for number, memory in ((10, side.scratch[0]), (11, side.tensors[-1])):
        new = memory.store(NUMBER, BYTE)
        ila.instruction(f"poke_{number}").set_decode(side.decodes[number]).update(memory, new)
    ila.set_valid(RUN)
    return Fragment(f"{side.ila}_fragment", ila, dict(parameters), {}, Kernel(f"{side.ila}_program", body=side.program))


# -- what a start does --------------------------------------------------------------------------------


@dataclass
class Stage:
    """One step from a tensor to the next, with the functions and literals that it uses."""

    kind: str
    step: Function
    last: Function
    literal: int
    uses_gain: bool
    seed: int
    between: bool
    """Whether the host does something of its own after it."""

    def value(self, side: Side, word: Expr) -> Expr:
        """What becomes of a word."""
        return self.last(word ^ side.gain if self.uses_gain else word)


@dataclass
class Writer:
    """A kernel being written: its builder, names and side."""

    k: Kernel
    names: Names
    side: Side

    @property
    def fresh(self) -> Callable[[], str]:
        """Gives a name that the kernel does not have yet."""
        return self.names.new

    def loop(self, extent: Expr):  # type: ignore[no-untyped-def]
        return self.k.loop(self.names.new(), extent)

    def at(self, i: Expr, j: Expr) -> Expr:
        return i * self.side.columns + j

    def word(self, memory: Expr, address: Expr) -> Expr:
        """A word, in some cases of a memory that a term chooses or writes beside it."""
        form = self.names.random.random()
        if form < 0.06:
            memory = memory.store(address + ite(self.side.rows >= 1, const(1, 32), const(2, 32)), const(5, 8))
        elif form < 0.12:
            memory = ite(self.side.rows >= 1, memory, self.side.scratch[0])
        else:
            return self.k.load(self.names.new(), memory, address)
        return self.k.let(self.names.new(), memory.load(address))


def _plain(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """The step as the IR does it."""
    n, m = w.side.rows, w.side.columns
    with w.loop(n) as i, w.loop(m) as j:
        if stage.kind == "fold":
            acc = w.k.let(w.names.new(), const(stage.literal, 8))
            with w.loop(m) as x:
                w.k.assign(acc, stage.step(acc, w.word(source, w.at(i, x))))
            w.k.store(target, w.at(i, j), stage.value(w.side, acc))
        elif stage.kind == "running":
            acc = w.k.let(w.names.new(), const(stage.literal, 8))
            with w.k.when(w.names.new(), i != 0):
                w.k.assign(acc, w.word(target, w.at(i - 1, j)))
            w.k.store(target, w.at(i, j), stage.step(acc, w.word(source, w.at(i, j))))
        elif stage.kind == "causal":
            acc = w.k.let(w.names.new(), const(stage.literal, 8))
            with w.loop(i + 1) as x:
                w.k.assign(acc, stage.step(acc, w.word(source, w.at(x, j))))
            w.k.store(target, w.at(i, j), stage.value(w.side, acc))
        elif stage.kind == "lookup":
            w.k.store(target, w.at(i, j), w.word(source, w.word(source, w.at(i, j)).zext(32)))
        elif stage.kind == "triangle":
            inside = stage.value(w.side, w.word(source, w.at(i, j)))
            w.k.store(target, w.at(i, j), ite(j <= i, inside, const(stage.literal, 8)))
        elif stage.kind == "shift":
            word = w.k.let(w.names.new(), const(stage.literal, 8))
            with w.k.when(w.names.new(), i + 1 < n):
                w.k.assign(word, w.word(source, w.at(i + 1, j)))
            w.k.store(target, w.at(i, j), stage.value(w.side, word))
        elif stage.kind == "gather":
            w.k.store(target, w.at(i, j), stage.value(w.side, w.word(source, w.at(i, m - 1 - j))))
        elif stage.kind == "choose":
            word = w.word(source, w.at(i, j))
            w.k.store(target, w.at(i, j), ite(j == stage.literal, word, stage.value(w.side, word)))
        else:
            w.k.store(target, w.at(i, j), stage.value(w.side, w.word(source, w.at(i, j))))


def _rows_turned(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """Columns outside and, where the literal is even, rows from the last to the first."""
    n, m = w.side.rows, w.side.columns
    with w.loop(m) as j, w.loop(n) as i:
        row = i if stage.literal % 2 else n - 1 - i
        w.k.store(target, w.at(row, j), stage.value(w.side, w.word(source, w.at(row, j))))


def _in_place(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    n, m = w.side.rows, w.side.columns
    for to, value in ((source, stage.value), (target, None)):
        with w.loop(n) as i, w.loop(m) as j:
            word = w.word(source, w.at(i, j))
            w.k.store(to, w.at(i, j), value(w.side, word) if value else word)


def _one_row(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """The row whose number is in a register; the host goes through them."""
    with w.loop(w.side.columns) as j:
        word = w.word(source, w.at(w.side.line, j))
        w.k.store(target, w.at(w.side.line, j), stage.value(w.side, word))


def _row_by_row(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """A fold from a buffer that has one row."""
    n, m, (buffer, *_) = w.side.rows, w.side.columns, w.side.scratch
    with w.loop(n) as i:
        with w.loop(m) as c:
            w.k.store(buffer, c, w.word(source, w.at(i, c)))
        with w.loop(m) as j:
            acc = w.k.let(w.names.new(), const(stage.literal, 8))
            with w.loop(m) as x:
                w.k.assign(acc, stage.step(acc, w.word(buffer, x)))
            w.k.store(target, w.at(i, j), stage.value(w.side, acc))


def _in_memory(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """A fold that is accumulated in the cells of a buffer."""
    n, m, (_, sums) = w.side.rows, w.side.columns, w.side.scratch
    _filled(w, stage, sums)
    with w.loop(n) as i, w.loop(m) as j, w.loop(m) as x:
        old = w.word(sums, w.at(i, j))
        w.k.store(sums, w.at(i, j), stage.step(old, w.word(source, w.at(i, x))))
    with w.loop(n) as i, w.loop(m) as j:
        w.k.store(target, w.at(i, j), stage.value(w.side, w.word(sums, w.at(i, j))))


def _state(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """A running value in a buffer of one row."""
    n, m, (buffer, *_) = w.side.rows, w.side.columns, w.side.scratch
    with w.loop(m) as c:
        w.k.store(buffer, c, const(stage.literal, 8))
    with w.loop(n) as i, w.loop(m) as j:
        value = stage.step(w.word(buffer, j), w.word(source, w.at(i, j)))
        w.k.store(buffer, j, value)
        w.k.store(target, w.at(i, j), value)


def _moved(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """The rows but the last one, and then that one."""
    n, m = w.side.rows, w.side.columns
    with w.loop(n - 1) as i, w.loop(m) as j:
        w.k.store(target, w.at(i, j), stage.value(w.side, w.word(source, w.at(i + 1, j))))
    with w.loop(m) as j:
        w.k.store(target, w.at(n - 1, j), stage.value(w.side, const(stage.literal, 8)))


def _filled(w: Writer, stage: Stage, memory: Expr) -> None:
    with w.loop(w.side.rows) as i, w.loop(w.side.columns) as j:
        w.k.store(memory, w.at(i, j), const(stage.literal, 8))


def _triangle(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """The lower triangle after all is filled: a row, or where the literal is odd a column, after the other."""
    n, m = w.side.rows, w.side.columns
    _filled(w, stage, target)
    if stage.literal % 2:
        with w.loop(m) as j, w.loop(ite(j < n, n - j, const(0, 32))) as k:
            w.k.store(target, w.at(j + k, j), stage.value(w.side, w.word(source, w.at(j + k, j))))
    else:
        with w.loop(n) as i, w.loop(ite(i < m, i + 1, m)) as j:
            w.k.store(target, w.at(i, j), stage.value(w.side, w.word(source, w.at(i, j))))


def _lookup(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """Addresses that are data, from a buffer."""
    table = w.side.scratch[1]
    with w.loop(w.side.rows) as i, w.loop(w.side.columns) as j:
        w.k.store(table, w.at(i, j), w.word(source, w.at(i, j)))
    with w.loop(w.side.columns) as j, w.loop(w.side.rows) as i:
        w.k.store(target, w.at(i, j), w.word(source, w.word(table, w.at(i, j)).zext(32)))


def _rows_in_two(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """The row of a triangle, and then the rest of the row."""
    n, m = w.side.rows, w.side.columns
    with w.loop(n) as i:
        with w.loop(ite(i < m, i + 1, m)) as j:
            w.k.store(target, w.at(i, j), stage.value(w.side, w.word(source, w.at(i, j))))
        with w.loop(ite(i + 1 < m, m - i - 1, const(0, 32))) as k:
            w.k.store(target, w.at(i, i + 1 + k), const(stage.literal, 8))


def _causal(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """A fold over the rows up to this one in the cells of a buffer: all at once, or a row after the other."""
    n, m, (buffer, sums) = w.side.rows, w.side.columns, w.side.scratch
    if stage.literal % 2:
        _filled(w, stage, sums)
        with w.loop(n) as i, w.loop(i + 1) as x, w.loop(m) as j:
            w.k.store(sums, w.at(i, j), stage.step(w.word(sums, w.at(i, j)), w.word(source, w.at(x, j))))
    with w.loop(n) as i:
        if stage.literal % 2 == 0:
            with w.loop(m) as j:
                w.k.store(buffer, j, const(stage.literal, 8))
            with w.loop(i + 1) as x, w.loop(m) as j:
                w.k.store(buffer, j, stage.step(w.word(buffer, j), w.word(source, w.at(x, j))))
        with w.loop(m) as j:
            word = w.word(sums, w.at(i, j)) if stage.literal % 2 else w.word(buffer, j)
            w.k.store(target, w.at(i, j), stage.value(w.side, word))


def _by_table(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """Columns whose numbers are read from a table that is written before."""
    n, m, (table, *_) = w.side.rows, w.side.columns, w.side.scratch
    with w.loop(m) as c:
        w.k.store(table, c, (m - 1 - c)[7:0])
    with w.loop(n) as i, w.loop(m) as j:
        column = w.word(table, j)
        w.k.store(target, w.at(i, j), stage.value(w.side, w.word(source, w.at(i, column.zext(32)))))


def _blocks(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """A choice as a block that runs or does not."""
    n, m = w.side.rows, w.side.columns
    with w.loop(n) as i, w.loop(m) as j:
        word = w.word(source, w.at(i, j))
        value = w.k.let(w.names.new(), stage.value(w.side, word))
        with w.k.when(w.names.new(), j == stage.literal):
            w.k.assign(value, word)
        w.k.store(target, w.at(i, j), value)


def _tree(w: Writer, stage: Stage, source: Expr, target: Expr) -> None:
    """A random tree, and then every element of the target."""
    draws, side = Random(stage.seed), w.side
    tree = Tree(w, draws, (side.rows, side.columns), [source, target, *side.scratch], [side.gain])
    if draws.random() < 0.6:
        for memory in side.scratch:
            with w.loop(side.rows) as i, w.loop(side.columns) as j:
                w.k.store(memory, w.at(i, j), const(draws.randrange(256), 8))
    tree.block(draws.randint(1, 3), draws.randint(1, 3))
    with w.loop(side.rows) as i, w.loop(side.columns) as j:
        tree.counters = [i, j]
        tree.known += [w.word(source, w.at(i, j)), w.word(draws.choice(tree.memories), tree.address())]
        w.k.store(target, w.at(i, j), stage.value(side, tree.value()))


Form = Callable[[Writer, Stage, Expr, Expr], None]
FORMS: dict[str, list[Form]] = {
    "map": [_plain, _rows_turned, _in_place, _one_row],
    "fold": [_plain, _row_by_row, _in_memory],
    "running": [_plain, _state],
    "shift": [_plain, _moved],
    "gather": [_plain, _by_table],
    "choose": [_plain, _blocks],
    "triangle": [_plain, _triangle, _rows_in_two],
    "causal": [_plain, _causal],
    "lookup": [_plain, _lookup],
    "tree": [_tree],
}


# -- sides --------------------------------------------------------------------------------------------


def _side(anywhere: Names, name: str, parameters: list[Expr], stages: list[Stage], plain: bool) -> Side:
    random = anywhere.random
    names = anywhere.place("run", "op", "n_in", "m_in", "byte_in", "number_in")
    bits = [var(names.new(), bv(32)) for _ in range(2)] + [var(names.new(), bv(8)), var(names.new(), bv(32))]
    words = [var(names.new(), MEMORY) for _ in range(len(stages) + 3)]
    side = Side(name, *bits, words[: len(stages) + 1], words[len(stages) + 1 :])
    side.decodes = {n: RUN & (const(n, 4) == OP) for n in (*range(len(stages)), 8, 9, 10, 11)}
    host = Kernel("host")
    own = anywhere.place(*(p.name for p in parameters))
    n, m = (p.zext(32) for p in parameters)

    def go(number: int) -> None:
        host.command(f"start {number}", run=true, op=const(number, 4), n_in=n, m_in=m)

    def put(number: int, what: str, value: Expr) -> None:
        host.command(f"set {number}", **{"run": true, "op": const(number, 4), what: value})

    for number, stage in enumerate(stages):
        if stage.uses_gain:
            put(8, "byte_in", const(stage.literal * 7 % 256, 8))
        kernel = Kernel(f"{name}_kernel_{number}")
        form = _plain if plain and stage.kind != "tree" else random.choice(FORMS[stage.kind])
        inside = anywhere.place(*(s.name for s in (*bits, *words)))
        form(Writer(kernel, inside, side), stage, side.tensors[number], side.tensors[number + 1])
        side.kernels.append(kernel.body)
        if form is _one_row:
            with host.loop(own.new(), n) as row:
                put(9, "number_in", row)
                go(number)
        else:
            go(number)
        if stage.between:
            _host(host, own, Random(stage.seed), side, (n, m))
    side.program = host.body
    return side


def _host(host: Kernel, names: Names, draws: Random, side: Side, sizes: tuple[Expr, Expr]) -> None:
    """Loops of the host with commands and stores in them, some of which run at some iterations only."""
    n, m = sizes

    def poke(counters: list[Expr]) -> None:
        number = draws.choice([10, 11])
        address = draws.choice([*counters, counters[0] * m + counters[-1], counters[-1] + 1])
        byte = draws.choice([counters[-1][7:0], const(draws.randrange(256), 8)])
        host.command(f"poke {number}", run=true, op=const(number, 4), number_in=address, byte_in=byte)

    def body(counters: list[Expr]) -> None:
        if draws.random() < 0.4:
            with host.when(names.new(), draws.choice(counters) == draws.randrange(3)):
                draws.choice([poke, lambda c: host.store(side.scratch[1], c[-1], side.gain)])(counters)
        if draws.random() < 0.7:
            poke(counters)
        if draws.random() < 0.2:
            host.command("set 8", run=true, op=const(8, 4), byte_in=counters[-1][7:0])

    extents = [n, m, m, const(2, 32), const(3, 32)]
    with host.loop(names.new(), draws.choice(extents)) as outer:
        if draws.random() < 0.6:
            with host.loop(names.new(), draws.choice(extents)) as inner:
                body([outer, inner])
        else:
            body([outer])


def _function(name: str, params: list[str], body: Callable[..., Expr]) -> Function:
    function = Function(name, {p: bv(8) for p in params}, bv(8), None)
    function.body = body(*function.params)
    return function


STEPS: list[Callable[[Expr, Expr], Expr]] = [
    lambda a, b: (a << 1) + (b ^ a),
    lambda a, b: a + b,
    lambda a, b: a * 3 ^ b,
    lambda a, b: ite(a < b, b, a),
]


def random_claim(random: Random, *, clash: bool = True, mutate: bool | None = None) -> Claim:
    """A random claim; changed in one place in half of the cases."""
    while True:
        try:
            return _random_claim(random, clash, random.random() < 0.5 if mutate is None else mutate)
        except (ValueError, TypeError):
            continue  # names that are refused when a kernel, a fragment or a mapping is made


def _random_claim(random: Random, clash: bool, mutate: bool) -> Claim:
    names = Names(random, clash, itertools.count(1))
    parameters = [var(names.new(), bv(16)) for _ in range(2)]
    stages: list[Stage] = []
    functions = names.place()
    abstract: set[str] = set()
    for _ in range(random.choice([1, 1, 2, 2, 3, 4])):
        body = random.choice(STEPS)
        step = _function(functions.new(), ["a", "b"], body)
        factor = random.choice([1, 3])
        last = _function(functions.new(), ["a"], lambda a, f=factor: a * f + 1)
        abstract |= {f.name for f in (step, last) if random.random() < 0.8}
        kind, literal, gain = random.choice([*FORMS, "tree", "tree"]), random.randrange(6), random.random() < 0.3
        stages.append(Stage(kind, step, last, literal, gain, random.randrange(1 << 30), random.random() < 0.25))
    titles = names.place()
    device = _side(names, titles.new(), parameters, stages, plain=False)
    ir = _side(names, titles.new(), parameters, stages, plain=random.random() < 0.8)
    built = _built(device, sizes := {p.name: p for p in parameters}), _built(ir, sizes)
    most = random.choice([3, 4, 255])
    least = random.choice([0, 1, 1, 1])
    n, m = parameters
    domain = tuple((f"{least} <= {p.name} <= {most}", (const(least, 16) <= p) & (p <= most)) for p in parameters)
    mapping = TensorMapping(
        name="random",
        ir=built[1],
        device=built[0],
        parameters=sizes,
        domain=domain,
        rows=n.zext(32),
        columns=m.zext(32),
        inputs=((device.tensors[0].name, ir.tensors[0].name),),
        output=(device.tensors[-1].name, ir.tensors[-1].name),
        lemmas=(),
        abstract=frozenset(abstract & {f.name for side in built for f in functions_of(side)}),
        sizes_of=lambda rows, columns: {n.name: rows, m.name: columns},
        statement="both sides leave the same",
        sample_shapes=((1, 1), (1, 3), (2, 3), (3, 2), (3, 3), *(((4, 5), (5, 3), (6, 4)) if most > 5 else ())),
        shape_parameters=frozenset(sizes),
        recurrent=any(s.kind == "running" for s in stages) and random.random() < 0.7,
    )
    if clash and random.random() < 0.5:
        coordinates = names.place(*sizes)
        row, column = (var(coordinates.new(), bv(32)) for _ in range(2))
        mapping = replace(mapping, cell=((row, n.zext(32)), (column, m.zext(32))), cell_column=column)
    change = next(mutants(mapping, random)) if mutate else Mutant("", mapping)
    # what is looked up may lie where nothing was written
    known = all(s.kind not in ("tree", "lookup") and not s.between for s in stages)
    return Claim(change.mapping, tuple(s.kind for s in stages), change.what, known)
