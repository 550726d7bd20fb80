"""Trees of lanes with what else nests have: windows, two buffers, a depth in two parts; proved, and faults are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from chc.bijections import matching
from chc.mapping.prove import prove
from ila_lang import Expr, Fragment, Ila, Kernel, bv, const, ite, mem, primitive, var
from ila_lang.mapping import Reduction, TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.library_gemm import assert_false_and_not_proved, assert_proved
from tests.marks import slow_but

C, F, W = (var(name, bv(32)) for name in ("c", "f", "w"))
"""Channels, filters, and the width of the window."""
PARAMETERS = {"c": C, "f": F, "w": W}
X, G, Y = var("host_x", mem(32, 8)), var("host_g", mem(32, 8)), var("host_y", mem(32, 32))
LEFT, RIGHT, DOT, ADD, READ = range(5)
HALF = 64
"""Where the second half of a scratchpad begins."""
ZERO = const(0, 32)


@primitive(x=bv(8), g=bv(8))
def multiply(x: Expr, g: Expr) -> Expr:
    return x.sext(32) * g.sext(32)


@primitive(a=bv(32), b=bv(32))
def plus(a: Expr, b: Expr) -> Expr:
    return a + b


def device(lanes: int, fault: str) -> Ila:
    """Products of lanes, added up in a tree, for as many sums as there are filters."""
    ila = Ila("lanes", "products of lanes, added up in a tree")
    op, at, data = ila.input("op", 3), ila.input("at", 12), ila.input("data", 8)
    keep, begin, target, filters = (ila.input(n, b) for n, b in (("keep", 1), ("begin", 12), ("target", 12), ("n", 12)))
    state = {n: ila.state(n, b) for n, b in (("keeps", 1), ("begins", 12), ("to", 12), ("filters", 12))}
    left, right, acc = ila.memory("left", 12, 8), ila.memory("right", 12, 8), ila.memory("acc", 12, 32)
    out = ila.state("out", 32)
    ila.instruction("LEFT").set_decode(op == LEFT).update(left, left.store(at, data))
    ila.instruction("RIGHT").set_decode(op == RIGHT).update(right, right.store(at, data))
    dot = Kernel("dot")
    with dot.loop("column", state["filters"]) as column:
        old = dot.load("old", acc, state["to"] + column)
        terms = []
        for lane in range(lanes):
            of = lane - 1 if fault == "a lane is taken twice" and lane == lanes - 1 else lane
            x = dot.load(f"x{lane}", left, state["begins"] + of)
            terms.append(multiply(x, dot.load(f"g{lane}", right, (state["begins"] << 3) + column * lanes + of)))
        if fault == "a lane is left out":
            terms[1] = ZERO
        while len(terms) > 1:
            terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=True)]
        dot.store(acc, state["to"] + column, ite(state["keeps"] == 1, old, ZERO) + terms[0])
    start = ila.instruction("DOT").set_decode(op == DOT)
    for name, value in (("keeps", keep), ("begins", begin), ("to", target), ("filters", filters)):
        start.update(state[name], value)
    start.start(dot)
    add = Kernel("add")
    with add.loop("i", state["filters"]) as i:
        one, other = add.load("one", acc, i), add.load("other", acc, i + HALF)
        add.store(acc, i, one + other)
    ila.instruction("ADD").set_decode(op == ADD).update(state["filters"], filters).start(add)
    ila.instruction("READ").set_decode(op == READ).update(out, acc.load(at))
    return ila


def ir() -> Fragment:
    """A convolution at one place, with a loop over the window and one over channels."""
    ila = Ila("conv_ir", "sums over a window and over channels")
    sizes = {n: ila.state(n, 32) for n in PARAMETERS}
    inputs = {n: ila.input(f"{n}_in", 32) for n in PARAMETERS}
    x, g, y = ila.memory("x", 32, 8), ila.memory("g", 32, 8), ila.memory("y", 32, 32)
    channels = sizes["c"]
    kernel = Kernel("conv")
    with kernel.loop("o", sizes["f"]) as o:
        total = kernel.let("total", ZERO)
        with kernel.loop("kx", sizes["w"]) as kx, kernel.loop("ch", channels) as ch:
            one, other = (
                kernel.load("one", x, kx * channels + ch),
                kernel.load("two", g, (o * sizes["w"] + kx) * channels + ch),
            )
            kernel.assign(total, plus(total, multiply(one, other)))
        kernel.store(y, o, total)
    conv = ila.instruction("CONV")
    for name, size in sizes.items():
        conv.update(size, inputs[name])
    conv.start(kernel)
    program = Kernel("ir_conv")
    program.command("conv", **{f"{n}_in": size for n, size in PARAMETERS.items()})
    return Fragment("ir_conv", ila, PARAMETERS, {}, program)


@dataclass
class Host:
    """Writes a driver, with a fault."""

    ila: Ila
    lanes: int
    fault: str
    kernel: Kernel

    def send(self, op: int, at: Expr, data: Expr = ZERO) -> None:
        """Writes a byte, or reads a sum."""
        self.kernel.command(f"op{op}", op=const(op, 3), at=at[11:0], data=data[7:0])

    def load(self, name: str, kx: Expr, block: Expr, half: Expr) -> None:
        """A block of channels at one place of the window, and the weights of all filters."""
        channels = block * self.lanes
        with self.kernel.loop(f"{name}x", const(self.lanes, 32)) as lane:
            self.send(LEFT, half + lane, X.load(kx * C + channels + lane).zext(32))
        if self.fault == "weights are of the next place":
            kx = ite(kx + 1 == W, ZERO, kx + 1)
        with self.kernel.loop(f"{name}o", F) as o, self.kernel.loop(f"{name}g", const(self.lanes, 32)) as lane:
            self.send(RIGHT, (half << 3) + o * self.lanes + lane, G.load((o * W + kx) * C + channels + lane).zext(32))

    def dot(self, keep: Expr, half: Expr = ZERO, target: int = 0) -> None:
        """Adds the block to sums that begin at ``target``."""
        self.kernel.command("dot", op=const(DOT, 3), keep=keep, begin=half[11:0], target=const(target, 12), n=F[11:0])

    @property
    def blocks(self) -> Expr:
        """The number of blocks of channels."""
        short = self.fault == "the last blocks are left out"
        return (C >> (self.lanes.bit_length() - 1)) - (2 if short else 0)

    def keeps(self, first: Expr) -> Expr:
        """Whether sums go on from what is stored: not in the first iteration."""
        return const(1, 1) if self.fault == "sums go on from memory" else ite(first, const(0, 1), const(1, 1))

    def read_all(self) -> None:
        with self.kernel.loop("read", F) as o:
            self.send(READ, o)
            self.kernel.store(Y, o, self.ila.states["out"])


def window(h: Host) -> None:
    """Blocks of channels at one place of the window after the other."""
    with h.kernel.loop("kx", W) as kx, h.kernel.loop("b", h.blocks) as b:
        h.load("block", kx, b, ZERO)
        h.dot(h.keeps((kx == 0) & (b == 0)))
    h.read_all()


def two_buffers(h: Host) -> None:
    """The next block is loaded into one half of the scratchpads before the one in the other half is used."""
    with h.kernel.loop("kx", W) as kx:
        h.load("first", kx, ZERO, ZERO)
        with h.kernel.loop("b", h.blocks) as b:
            with h.kernel.when("next", b + 1 < h.blocks):
                h.load("block", kx, b + 1, (b + 1)[0:0].zext(32) * HALF)
            h.dot(h.keeps((kx == 0) & (b == 0)), b[0:0].zext(32) * HALF)
    h.read_all()


def two_parts(h: Host) -> None:
    """Sums of both halves of the channels, which the device adds up."""
    half = h.blocks >> 1
    for part in range(2):
        with h.kernel.loop(f"kx{part}", W) as kx, h.kernel.loop(f"b{part}", half) as b:
            h.load(f"block{part}", kx, b + half * part, ZERO)
            h.dot(h.keeps((kx == 0) & (b == 0)), target=part * HALF)
    h.kernel.command("add", op=const(ADD, 3), n=F[11:0])
    h.read_all()


NESTS: dict[str, Callable[[Host], None]] = {n.__name__: n for n in (window, two_buffers, two_parts)}
FAULTS = (
    "a lane is taken twice",
    "a lane is left out",
    "weights are of the next place",
    "the last blocks are left out",
    "sums go on from memory",
)
SIZES = ({"c": 2, "f": 2, "w": 2}, {"c": 3, "f": 1, "w": 1})
"""Channels are twice as many as the lanes, times c."""


def claim(name: str, lanes: int, fault: str = "") -> TensorMapping:
    """That a nest is the convolution, for channels that are a multiple of twice the lanes."""
    host = Host(device(lanes, fault), lanes, fault, Kernel(name))
    NESTS[name](host)
    return TensorMapping(
        name=f"conv_{name}",
        ir=ir(),
        device=Fragment(name, host.ila, PARAMETERS, {t.name: t for t in (X, G, Y)}, host.kernel),
        parameters=PARAMETERS,
        domain=(
            (f"{2 * lanes} <= c <= 4096", (const(2 * lanes, 32) <= C) & (C <= 4096)),
            (f"c mod {2 * lanes} = 0", C[lanes.bit_length() - 1 : 0] == 0),
            ("1 <= f <= 32", (const(1, 32) <= F) & (F <= 32)),
            ("1 <= w <= 64", (const(1, 32) <= W) & (W <= 64)),
        ),
        rows=const(1, 32),
        columns=F,
        inputs=(("host_x", "x"), ("host_g", "g")),
        output=("host_y", "y"),
        lemmas=(),
        abstract=frozenset({multiply.name}),
        sizes_of=lambda c, f, w: {"c": c, "f": f, "w": w},
        sums=(Reduction(plus, 0),),
        statement="the device's sums are those of the convolution",
        shape_names=("c", "f", "w"),
        sample_shapes=((2 * lanes, 1, 1), (4 * lanes, 2, 2), (6 * lanes, 1, 3)),
        shape_parameters=frozenset(PARAMETERS),
    )


def sizes(lanes: int) -> list[dict[str, int]]:
    """Sizes for runs."""
    return [at | {"c": at["c"] * 2 * lanes} for at in SIZES]


LANES = [pytest.param(n, marks=pytest.mark.slow) if n == 16 else n for n in (2, 16)]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", NESTS)
def test_the_nest_is_proved_for_every_size(name: str, lanes: int) -> None:
    assert_proved(claim(name, lanes), sizes(lanes))


@pytest.mark.parametrize("fault", slow_but({"weights are of the next place"}, FAULTS))
@pytest.mark.parametrize("name", NESTS)
def test_a_fault_of_a_nest_is_not_proved(name: str, fault: str) -> None:
    assert_false_and_not_proved(claim(name, 2, fault), sizes(2), second=True)


def test_a_sum_of_too_many_families_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_FAMILIES", 1)
    verdict = prove(claim("window", 2))
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.endswith("at most 1 families of summands are matched, not 2 and 1"), verdict.reason
