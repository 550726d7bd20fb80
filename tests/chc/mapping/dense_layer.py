"""A dense layer on hardware that adds up its products in its own way, perhaps more of them than there are.

``y = x w``: x has ``m`` rows of ``k`` features, w has ``k`` rows and ``n`` columns.  A device may hold each row in
whole vectors of 16; then a program puts zeros beyond the features that there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ila_lang import BOOL, Expr, Fragment, Function, Ila, Kernel, bv, compile_terms, const, ite, mem, true, var
from ila_lang.mapping import Lemma, Reduction, TensorMapping

from .library_gemm import PARAMETERS, K, M, N, multiply

HOST_X, HOST_W, HOST_Y = var("x", mem(32, 8)), var("w", mem(32, 8)), var("y", mem(32, 32))
LANES = const(16, 5)
ZERO = const(0, 8)
VECTORS = (K + 15) >> 4
"""Vectors of 16 features in a row."""
WIDE = VECTORS << 4
"""Features in a row of the device."""

GO = 3
"""The operation of the first instruction that computes."""
SHAPES = (
    *((1, 1, 1), (2, 3, 5), (3, 2, 16), (2, 2, 17), (3, 1, 31), (1, 4, 33), (2, 3, 40), (4, 2, 48)),
    *((1, 2, 2), (2, 1, 4), (2, 3, 6), (3, 2, 8), (2, 2, 12)),
)

Accumulate = Callable[[Expr, Expr, Expr], Expr]
Body = Callable[[Kernel, Ila], None]
Program = Callable[["Host"], None]


def adds(total: Expr, x: Expr, w: Expr) -> Expr:
    """Adds a product up, modulo 2^32."""
    return total + multiply(x, w)


def saturating(name: str = "mac") -> Function:
    """Adds a product up, and stops at the limits of signed numbers: the order matters."""
    mac = Function(name, {"acc": bv(32), "x": bv(8), "w": bv(8)}, bv(32), None)
    acc, x, w = mac.params
    exact = acc.sext(34) + (x.sext(34) * w.sext(34))
    most, least = const((1 << 31) - 1, 34), const((1 << 34) - (1 << 31), 34)
    mac.body = ite(most.slt(exact), most, ite(exact.slt(least), least, exact))[31:0]
    return mac


def dense(accumulate: Accumulate, *, lanes_first: bool = False) -> Body:
    """Row after row, column after column; a sum goes over vectors and the lanes of each, or over lanes first."""

    def body(kernel: Kernel, ila: Ila) -> None:
        s = ila.states
        ranges = [("v", s["length"]), ("lane", LANES)]
        with kernel.loop("r", s["m"]) as r, kernel.loop("c", s["n"]) as c:
            total = kernel.let("total", const(0, 32))
            outer, inner = reversed(ranges) if lanes_first else ranges
            with kernel.loop(*outer) as x, kernel.loop(*inner) as y:
                v, lane = (y, x) if lanes_first else (x, y)
                i = (v << 4) + lane.zext(32)
                left = kernel.load("left", s["features"], r * (s["length"] << 4) + i)
                right = kernel.load("right", s["weights"], i * s["n"] + c)
                kernel.assign(total, accumulate(total, left, right))
            kernel.store(s["results"], r * s["n"] + c, total)

    return body


def device(bodies: Sequence[Body], memories: Mapping[str, int]) -> Ila:
    """The accelerator: words of both operands are written one at a time, and results read.

    Each body is an instruction, which gets the next operation; ``memories`` are further ones, with their widths.
    """
    ila = Ila("vectors")
    run, op = ila.input("run", BOOL), ila.input("op", 3)
    at, data = ila.input("at", 32), ila.input("data", 8)
    features, weights = ila.memory("features", 32, 8), ila.memory("weights", 32, 8)
    results = ila.memory("results", 32, 32)
    for name, width in memories.items():
        ila.memory(name, 32, width)
    out = ila.state("out", 32)
    extents = {name: (ila.state(name, 32), ila.input(f"{name}_in", 32)) for name in ("m", "n", "length")}
    ila.set_valid(run)
    ila.instruction("feature").set_decode(op == 0).update(features, features.store(at, data))
    ila.instruction("weight").set_decode(op == 1).update(weights, weights.store(at, data))
    ila.instruction("read").set_decode(op == 2).update(out, results.load(at))
    for number, body in enumerate(bodies):
        go = ila.instruction(f"go{number}").set_decode(op == GO + number)
        for register, value in extents.values():
            go.update(register, value)
        kernel = Kernel(f"dense{number}_kernel")
        body(kernel, ila)
        go.start(kernel)
    other = ila.instruction("other").set_decode(op >= GO + len(bodies))
    other.reserved = "there are no other operations"
    return ila


class Host:
    """Writes the host's program."""

    def __init__(self, ila: Ila) -> None:
        self.kernel, self.ila = Kernel("host"), ila

    def feature(self, at: Expr, data: Expr) -> None:
        """One feature."""
        self.kernel.command("feature", run=true, op=const(0, 3), at=at, data=data)

    def weights(self, rows: Expr = K, first: Expr | int = 0) -> None:
        """So many rows of the weights, from a row of the device on; in others the device has what it had."""
        with self.kernel.loop("wi", rows) as i, self.kernel.loop("wj", N) as j:
            data = HOST_W.load(i * N + j)
            self.kernel.command("weight", run=true, op=const(1, 3), at=(i + first) * N + j, data=data)

    def finish(self, length: Expr = VECTORS, instructions: int = 1) -> None:
        """Starts the device's instructions one after the other, and reads the results."""
        for number in range(instructions):
            self.go(number, length)
        self.read()

    def go(self, number: int, length: Expr) -> None:
        """Starts an instruction."""
        self.kernel.command(f"go{number}", run=true, op=const(GO + number, 3), m_in=M, n_in=N, length_in=length)

    def read(self) -> None:
        """Reads the results."""
        with self.kernel.loop("yr", M) as r, self.kernel.loop("yc", N) as c:
            self.kernel.command("read", run=true, op=const(2, 3), at=r * N + c)
            self.kernel.store(HOST_Y, r * N + c, self.ila.states["out"])


def ir(accumulate: Accumulate) -> Fragment:
    """y = x w, with as many features as there are."""
    ila = Ila("ir_dense")
    run = ila.input("run", BOOL)
    m, n, k = (ila.state(f"{name}_reg", 32) for name in PARAMETERS)
    x, w, y = ila.memory("tensor_x", 32, 8), ila.memory("tensor_w", 32, 8), ila.memory("tensor_y", 32, 32)
    kernel = Kernel("dense")
    with kernel.loop("row", m) as r, kernel.loop("column", n) as c:
        total = kernel.let("sum", const(0, 32))
        with kernel.loop("i", k) as i:
            left, right = kernel.load("left", x, r * k + i), kernel.load("right", w, i * n + c)
            kernel.assign(total, accumulate(total, left, right))
        kernel.store(y, r * n + c, total)
    instruction = ila.instruction("go").set_decode(run)
    for register, name in zip((m, n, k), PARAMETERS, strict=True):
        instruction.update(register, ila.input(f"{name}_in", 32))
    instruction.start(kernel)
    ila.set_valid(run)
    program = Kernel("ir_program")
    program.command("go", run=true, **{f"{name}_in": size for name, size in PARAMETERS.items()})
    return Fragment("ir_dense", ila, PARAMETERS, {}, program)


def claim(
    program: Program,
    bodies: Sequence[Body],
    accumulate: Accumulate,
    *,
    memories: Mapping[str, int] | None = None,
    within: tuple[tuple[str, Expr], ...] = (),
    lemmas: tuple[Lemma, ...] = (),
    abstract: frozenset[str] = frozenset(),
    sums: tuple[Reduction, ...] = (),
) -> TensorMapping:
    """The claim that a program computes y = x w, for every number of features ``within`` a domain.

    The IR adds up by ``accumulate``.
    """
    run = compile_terms(list(PARAMETERS.values()), [c for _, c in within] or [true])
    host = Host(device(bodies, memories or {}))
    program(host)
    tensors = {tensor.name: tensor for tensor in (HOST_X, HOST_W, HOST_Y)}
    return TensorMapping(
        name="dense_layer",
        ir=ir(accumulate),
        device=Fragment("dense_layer", host.ila, PARAMETERS, tensors, host.kernel),
        parameters=PARAMETERS,
        domain=(*((f"1 <= {n} <= 1024", (const(1, 32) <= v) & (v <= 1024)) for n, v in PARAMETERS.items()), *within),
        rows=M,
        columns=N,
        inputs=(("x", "tensor_x"), ("w", "tensor_w")),
        output=("y", "tensor_y"),
        lemmas=lemmas,
        abstract=abstract,
        sizes_of=lambda m, n, k: {"m": m, "n": n, "k": k},
        sums=sums,
        statement="the program computes a dense layer",
        shape_names=("m", "n", "k"),
        sample_shapes=tuple(s for s in SHAPES if all(run(*s))),
        shape_parameters=frozenset(PARAMETERS),
    )
