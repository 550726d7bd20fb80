"""A matrix accelerator that works in tiles, and the loop nests that libraries of such accelerators have.

The device multiplies tiles of 4 x 4 elements: it has scratchpads for tiles of A and of B, a tile of weights inside its
array, and accumulators.  ``a``, ``b`` and ``c`` are row-major matrices of the host: c = a b, where a has 4*m rows and
4*k columns, b has 4*k and 4*n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from random import Random

from chc.mapping.prove import prove
from ila_lang import (
    BOOL,
    Expr,
    Fragment,
    Function,
    Ila,
    Kernel,
    Machine,
    Memory,
    MemSort,
    bv,
    concat,
    const,
    ite,
    mem,
    run_fragment,
    true,
    var,
)
from ila_lang.mapping import Reduction, TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

M, N, K = (var(name, bv(32)) for name in ("m", "n", "k"))
PARAMETERS = {"m": M, "n": N, "k": K}
HOST_A, HOST_B, HOST_C = var("a", mem(32, 8)), var("b", mem(32, 8)), var("c", mem(32, 32))
HOST_D = var("d", mem(32, 32))
"""A bias, which few programs have."""
TILES = 1 << 10
"""Tiles of each scratchpad, and of accumulators."""
TILE = 4
"""Rows and columns of a tile."""
MVIN_A, MVIN_B, PRELOAD, COMPUTE, COMPUTE_PRELOADED, COMPUTE_OVER, READ = range(7)
FILL = 15
four = const(TILE, 3)

multiply = Function("multiply", {"x": bv(8), "w": bv(8)}, bv(32), None)
multiply.body = multiply.params[0].sext(32) * multiply.params[1].sext(32)


def element(tile: Expr, row: Expr, column: Expr) -> Expr:
    """The address of an element of a tile."""
    return concat(tile[9:0], row[1:0], column[1:0])


Add = Callable[[Expr, Expr], Expr]
Part = Callable[[Kernel], None]
Parts = Callable[[Ila], Part]
"""What an instruction does, for a device with its states."""


def device(
    *,
    ignores_accumulate: bool = False,
    others: Mapping[str, Parts] | None = None,
    add: Add | None = None,
    fills: bool = False,
) -> Ila:
    """The accelerator; ``others`` are further instructions, which get the next operations, ``add`` its adder.

    With ``fills`` the last operation writes a word of an accumulator.
    """
    ila = Ila("tiles")
    run, op = ila.input("run", BOOL), ila.input("op", 4)
    at, data = ila.input("at", 14), ila.input("data", 8)
    tile_a, tile_b, tile_c = (ila.input(f"tile_{x}_in", 10) for x in "abc")
    accumulate = ila.input("accumulate_in", BOOL)
    spad_a, spad_b = ila.memory("spad_a", 14, 8), ila.memory("spad_b", 14, 8)
    weights, acc = ila.memory("weights", 4, 8), ila.memory("acc", 14, 32)
    regs = {x: ila.state(f"tile_{x}", 10) for x in "abc"}
    adds = ila.state("adds", BOOL)
    out = ila.state("out", 32)
    ila.set_valid(run)

    def latch(kernel: Kernel) -> None:
        with kernel.loop("wi", four) as i, kernel.loop("wc", four) as c:
            word = kernel.load("w_word", spad_b, element(regs["b"], i, c))
            kernel.store(weights, concat(i[1:0], c[1:0]), word)

    def multiply_tiles(kernel: Kernel, *, over: bool = False) -> None:
        with kernel.loop("r", four) as r, kernel.loop("c", four) as c:
            old = kernel.load("old", acc, element(regs["c"], r, c))
            zero = const(0, 32)
            total = kernel.let("total", zero if over else old if ignores_accumulate else ite(adds, old, zero))
            with kernel.loop("x", four) as x:
                left = kernel.load("left", spad_a, element(regs["a"], r, x))
                right = kernel.load("right", weights, concat(x[1:0], c[1:0]))
                kernel.assign(total, (add or plus)(total, multiply(left, right)))
            kernel.store(acc, element(regs["c"], r, c), total)

    ila.instruction("mvin_a").set_decode(op == MVIN_A).update(spad_a, spad_a.store(at, data))
    ila.instruction("mvin_b").set_decode(op == MVIN_B).update(spad_b, spad_b.store(at, data))
    ila.instruction("read").set_decode(op == READ).update(out, acc.load(at))
    further = others or {}
    added = [(name, READ + 1 + k, (parts(ila),)) for k, (name, parts) in enumerate(further.items())]
    for name, code, parts in (
        *added,
        ("preload", PRELOAD, (latch,)),
        ("compute", COMPUTE, (multiply_tiles,)),
        ("compute_preloaded", COMPUTE_PRELOADED, (latch, multiply_tiles)),
        ("compute_over", COMPUTE_OVER, (partial(multiply_tiles, over=True),)),
    ):
        kernel = Kernel(f"{name}_kernel")
        for part in parts:
            part(kernel)
        instruction = ila.instruction(name).set_decode(op == code)
        for register, value in zip((*regs.values(), adds), (tile_a, tile_b, tile_c, accumulate), strict=True):
            instruction.update(register, value)
        instruction.start(kernel)
    if fills:
        word = ila.input("word", 32)
        ila.instruction("fill").set_decode(op == FILL).update(acc, acc.store(at, word))
    last = op > READ + len(further)
    other = ila.instruction("other").set_decode(last & ~(op == FILL) if fills else last)
    other.reserved = "there are no other operations"
    return ila


class Host:
    """Writes a host's program: loops, and commands to the device."""

    def __init__(self, ila: Ila) -> None:
        self.kernel, self.ila = Kernel("host"), ila
        self.names = 0

    def loop(self, extent: Expr, name: str = "t") -> AbstractContextManager[Expr]:
        """A loop with a counter of its own."""
        self.names += 1
        return self.kernel.loop(f"{name}{self.names}", extent)

    def when(self, condition: Expr) -> AbstractContextManager[None]:
        """A block with a condition."""
        self.names += 1
        return self.kernel.when(f"when{self.names}", condition)

    def command(self, note: str, op: Expr | int, **inputs: Expr) -> None:
        """A command."""
        code = const(op, 4) if isinstance(op, int) else op
        self.kernel.command(note, run=true, op=code, **inputs)

    def mvin(self, op: int, tensor: Expr, tile: Expr, row: Expr, column: Expr, columns: Expr) -> None:
        """A tile of a matrix that has ``columns`` tiles in a row: the one at ``row`` and ``column``."""
        with self.loop(four, "r") as r, self.loop(four, "c") as c:
            at = ((row << 2) + r.zext(32)) * (columns << 2) + ((column << 2) + c.zext(32))
            self.command(f"mvin {tensor.name}", op, at=element(tile, r, c), data=tensor.load(at))

    def mvin_a(self, tile: Expr, row: Expr, column: Expr) -> None:
        """A tile of A."""
        self.mvin(MVIN_A, HOST_A, tile, row, column, K)

    def mvin_b(self, tile: Expr, row: Expr, column: Expr) -> None:
        """A tile of B."""
        self.mvin(MVIN_B, HOST_B, tile, row, column, N)

    def all_inputs(self) -> None:
        """All tiles of A and of B, row after row."""
        with self.loop(M, "ai") as i, self.loop(K, "ak") as k:
            self.mvin_a(i * K + k, i, k)
        with self.loop(K, "bk") as k, self.loop(N, "bj") as j:
            self.mvin_b(k * N + j, k, j)

    def preload(self, tile_b: Expr) -> None:
        """Weights into the array."""
        self.command("preload", PRELOAD, tile_b_in=tile_b[9:0])

    def compute(self, a: Expr, c: Expr, accumulate: Expr, *, op: Expr | int = COMPUTE, b: Expr | None = None) -> None:
        """A product of tiles."""
        self.command(
            "compute",
            op,
            tile_a_in=a[9:0],
            tile_c_in=c[9:0],
            accumulate_in=accumulate,
            **({"tile_b_in": b[9:0]} if b is not None else {}),
        )

    def read(self, tile: Expr, row: Expr, column: Expr) -> None:
        """A tile of accumulators becomes the one of C at ``row`` and ``column``."""
        with self.loop(four, "r") as r, self.loop(four, "c") as c:
            at = ((row << 2) + r.zext(32)) * (N << 2) + ((column << 2) + c.zext(32))
            self.command("read", READ, at=element(tile, r, c))
            self.kernel.store(HOST_C, at, self.ila.states["out"])

    def read_all(self) -> None:
        """All accumulators become C."""
        with self.loop(M, "ci") as i, self.loop(N, "cj") as j:
            self.read(i * N + j, i, j)


def plus(a: Expr, b: Expr) -> Expr:
    """The sum, which wraps around."""
    return a + b


def ir(add: Add = plus, begins: str = "", *, column_major: bool = False) -> Fragment:
    """c = a b, row by row, or the sum begins with a tensor; the operands may lie column after column.

    ``add`` is what adds products up.
    """
    ila = Ila("ir_gemm")
    run = ila.input("run", BOOL)
    extents = {name: ila.state(f"{name}_reg", 32) for name in PARAMETERS}
    tensors = {x: ila.memory(f"tensor_{x}", 32, 8 if x in "ab" else 32) for x in ("abcd" if begins else "abc")}
    kernel = Kernel("gemm")
    rows, columns, depth = (extents[name] << 2 for name in ("m", "n", "k"))
    with kernel.loop("row", rows) as row, kernel.loop("column", columns) as column:
        first = kernel.load("begin", tensors[begins], row * columns + column) if begins else const(0, 32)
        total = kernel.let("sum", first)
        with kernel.loop("l", depth) as x:
            places = (x * rows + row, column * depth + x) if column_major else (row * depth + x, x * columns + column)
            left, right = (kernel.load(f"word_{t}", tensors[t], at) for t, at in zip("ab", places, strict=True))
            kernel.assign(total, add(total, multiply(left, right)))
        kernel.store(tensors["c"], row * columns + column, total)
    instruction = ila.instruction("go").set_decode(run)
    for name, register in extents.items():
        instruction.update(register, ila.input(f"{name}_in", 32))
    instruction.start(kernel)
    ila.set_valid(run)
    program = Kernel("ir_program")
    program.command("go", run=true, **{f"{name}_in": size for name, size in PARAMETERS.items()})
    return Fragment("ir_gemm", ila, PARAMETERS, {}, program)


def claim(
    program: Callable[[Host], None],
    *,
    least: int = 1,
    ila: Ila | None = None,
    within: tuple[tuple[str, Expr], ...] = (),
    abstract: bool = True,
    add: Add = plus,
    sums: tuple[Reduction, ...] = (),
) -> TensorMapping:
    """The claim that a program computes c = a b, for every number of tiles from ``least`` on ``within`` a domain.

    Unless ``abstract``, products of elements are not left open.  The IR adds up by ``add``.
    """
    host = Host(device() if ila is None else ila)
    program(host)
    tensors = {tensor.name: tensor for tensor in (HOST_A, HOST_B, HOST_C, HOST_D)}
    row, in_row, column, in_column = (var(f"cell_{x}", bv(32)) for x in ("row", "r", "column", "c"))
    return TensorMapping(
        name="library_gemm",
        ir=ir(add),
        device=Fragment("library_gemm", host.ila, PARAMETERS, tensors, host.kernel),
        parameters=PARAMETERS,
        domain=(
            *((f"{least} <= {n} <= 1024", (const(least, 32) <= v) & (v <= TILES)) for n, v in PARAMETERS.items()),
            ("m*k <= 1024 tiles", M * K <= TILES),
            ("k*n <= 1024 tiles", K * N <= TILES),
            ("m*n <= 1024 tiles", M * N <= TILES),
            *within,
        ),
        rows=M << 2,
        columns=N << 2,
        inputs=(("a", "tensor_a"), ("b", "tensor_b")),
        output=("c", "tensor_c"),
        lemmas=(),
        abstract=frozenset({multiply.name} if abstract else ()),
        sizes_of=lambda m, n, k: {"m": m, "n": n, "k": k},
        sums=sums,
        statement="the library's loops compute the product of two matrices",
        shape_names=("m", "n", "k"),
        sample_shapes=((1, 1, 4 if within else 1),),  # cases that it does not show are found all the same
        shape_parameters=frozenset(PARAMETERS),
        cell=((row, M), (in_row, const(TILE, 32)), (column, N), (in_column, const(TILE, 32))),
        cell_column=(column << 2) + in_column,
        row_coordinates=2,
    )


Pattern = Callable[[Host, str], None]
Patterns = dict[str, tuple[Pattern, tuple[str, ...]]]
"""Loop nests with their faults.  Without a fault a nest is right, and with each one runs show that it is wrong."""


def noted(patterns: Patterns, *faults: str) -> Callable[[Pattern], Pattern]:
    """Notes a pattern and its faults."""

    def note(build: Pattern) -> Pattern:
        patterns[build.__name__.replace("_", " ")] = build, faults
        return build

    return note


def whether(fault: str, name: str, wrong: Expr, right: Expr) -> Expr:
    """What the fault makes of an operand."""
    return wrong if fault == name else right


def differs(mapping: TensorMapping, sizes: dict[str, int], rounds: int = 4) -> bool:
    """Whether concrete runs from random state show two different results."""
    random = Random(1)
    rows, columns = mapping.output_extents(sizes)

    def noise(sort: MemSort) -> Memory:
        words = range(min(1200, 1 << sort.addr_width))
        return Memory(contents={x: random.randrange(1 << sort.data_width) for x in words})

    for _ in range(rounds):
        inputs = [noise(mem(32, 8)) for _ in mapping.inputs]
        results = []
        for side, tensors, output in zip(
            (mapping.device, mapping.ir), zip(*mapping.inputs, strict=True), mapping.output, strict=True
        ):
            machine = Machine(side.ila)
            for name, state in side.ila.states.items():
                if isinstance(state.sort, MemSort):
                    machine.memories[name].update(noise(state.sort))
                else:
                    machine.values[name] = random.randrange(2 if state.sort == BOOL else 1 << state.width)
            memories = {name: noise(tensor.sort) for name, tensor in side.tensors.items()}
            for name, words in zip(tensors, inputs, strict=True):
                (memories if name in memories else machine.memories)[name].update(words)
            run_fragment(side, sizes, memories, machine)
            final = (memories if output in memories else machine.memories)[output]
            results.append([final[x] for x in range(rows * columns)])
        if results[0] != results[1]:
            return True
    return False


def assert_proved(mapping: TensorMapping, sizes: Iterable[dict[str, int]]) -> None:
    """A right program: runs at these sizes agree, and it is proved for every size by both solvers."""
    assert not any(differs(mapping, at, 1) for at in sizes)
    verdict = prove(mapping)
    assert verdict.status is Status.PROVED, verdict.reason


def assert_false_and_not_proved(
    mapping: TensorMapping, sizes: Iterable[dict[str, int]], *, second: bool = False
) -> None:
    """A wrong program: runs at these sizes differ, and it is not proved; ``second`` asks the other solver, too."""
    assert any(differs(mapping, at) for at in sizes)
    verdict = prove(mapping, discharger=Discharger(timeout=5.0, second=second), horn_timeout=3.0)
    assert verdict.status is not Status.PROVED
