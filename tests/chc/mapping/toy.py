"""A toy accelerator and a toy IR, one kernel each, and the mapping between them.

Both hold an N x M tensor, row-major, in memories of theirs: the device in ``src``/``dst``, the IR in ``isrc``/``idst``.
Kernels and host programs are given by the test, so that a program which the method must not prove takes five lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from ila_lang import BOOL, Expr, Fragment, Function, Ila, Kernel, Machine, bv, const, mem, run_fragment, true, var
from ila_lang.mapping import Lemma, TensorMapping
from ila_lang.text.portable import functions_of

N, M = var("n", bv(16)), var("m", bv(16))
PARAMETERS = {"n": N, "m": M}
DOMAIN: tuple[tuple[str, Expr], ...] = (
    ("1 <= n <= 255", (const(1, 16) <= N) & (N <= 255)),
    ("1 <= m <= 255", (const(1, 16) <= M) & (M <= 255)),
)
Body = Callable[[Kernel, Mapping[str, Expr]], None]
Program = Callable[[Kernel, Mapping[str, Expr]], None]


def model(name: str, prefix: str, body: Body | None, extra: Sequence[tuple[str, int]] = ()) -> Ila:
    """An ILA that latches n and m and runs ``body``; ``extra`` are further registers, each with an input of its own."""
    ila = Ila(name)
    run, address, data = ila.input("run", BOOL), ila.input("address", 32), ila.input("data", 8)
    op = ila.input("op", 4)
    states = {
        "n": ila.state("n_reg", 32),
        "m": ila.state("m_reg", 32),
        "src": ila.state(f"{prefix}src", mem(32, 8)),
        "dst": ila.state(f"{prefix}dst", mem(32, 8)),
        "tmp": ila.state(f"{prefix}tmp", mem(32, 8)),
        "out": ila.state(f"{prefix}out", bv(8)),
    }
    start = ila.instruction("go").set_decode(run & (op == 0))
    for what in ("n", "m"):
        start.update(states[what], ila.input(f"{what}_in", 32))
    for what, width in extra:
        states[what] = ila.state(what, bv(width))
    if body is not None:
        kernel = Kernel(f"{name}_kernel")
        body(kernel, states)
        start.start(kernel)
    ila.instruction("write").set_decode(run & (op == 1)).update(states["dst"], states["dst"].store(address, data))
    ila.instruction("read").set_decode(run & (op == 2)).update(states["out"], states["dst"].load(address))
    for number, (what, width) in enumerate(extra):
        ila.instruction(f"set_{what}").set_decode(run & (op == 3 + number)).update(
            states[what], ila.input(f"{what}_in", width)
        )
    ila.set_valid(run)
    return ila


def fragment(
    ila: Ila, prefix: str, program: Program | None = None, parameters: Mapping[str, Expr] = PARAMETERS
) -> Fragment:
    text = Kernel(f"{ila.name}_program")
    if program is None:
        go(text)
    else:
        program(text, ila.states)
    return Fragment(f"{ila.name}_fragment", ila, dict(parameters), {}, text)


TABLES = ("t0", "t1", "t2")


def with_tables(claim: TensorMapping, device: Body) -> TensorMapping:
    """The claim with a device that runs ``device`` and has three memories more."""
    ila = Ila("tables")
    run, op = ila.input("run", BOOL), ila.input("op", 4)
    s = {"n": ila.state("n_reg", 32), "m": ila.state("m_reg", 32)}
    s |= {name: ila.state(name, mem(32, 8)) for name in ("src", "dst", *TABLES)}
    start = ila.instruction("go").set_decode(run & (op == 0))
    for what in ("n", "m"):
        start.update(s[what], ila.input(f"{what}_in", 32))
    kernel = Kernel("tables_kernel")
    device(kernel, s)
    start.start(kernel)
    ila.set_valid(run)
    return replace(claim, device=fragment(ila, ""))


def go(program: Kernel) -> None:
    program.command("go", run=true, op=const(0, 4), n_in=N.zext(32), m_in=M.zext(32))


def copy_body(kernel: Kernel, s: Mapping[str, Expr]) -> None:
    """dst := src."""
    with kernel.loop("i", s["n"]) as i, kernel.loop("j", s["m"]) as j:
        kernel.store(s["dst"], i * s["m"] + j, kernel.load("word", s["src"], i * s["m"] + j))


def mapping(
    device: Body | None = copy_body,
    ir: Body = copy_body,
    *,
    program: Program | None = None,
    ir_program: Program | None = None,
    domain: tuple[tuple[str, Expr], ...] = DOMAIN,
    rows: Expr | None = None,
    columns: Expr | None = None,
    parameters: Mapping[str, Expr] = PARAMETERS,
    lemmas: tuple[Lemma, ...] = (),
    abstract: frozenset[str] = frozenset(),
    extra: Sequence[tuple[str, int]] = (),
) -> TensorMapping:
    """The claim that ``device`` leaves in dst what ``ir`` leaves in idst, if src equals isrc."""
    return TensorMapping(
        name="toy",
        ir=fragment(model("toyir", "i", ir, extra), "i", ir_program, parameters),
        device=fragment(model("toy", "", device, extra), "", program, parameters),
        parameters=parameters,
        domain=domain,
        rows=N.zext(32) if rows is None else rows,
        columns=M.zext(32) if columns is None else columns,
        inputs=(("src", "isrc"),),
        output=("dst", "idst"),
        lemmas=lemmas,
        abstract=abstract,
        sizes_of=lambda rows, columns: {"n": rows, "m": columns},
        statement="the toy device computes what the toy IR computes",
    )


def with_abstract(claim: TensorMapping, *functions: Function) -> TensorMapping:
    """The claim with those of the functions abstract that occur in it."""
    occur = {f.name for side in (claim.device, claim.ir) for f in functions_of(side)}
    return replace(claim, abstract=frozenset(f.name for f in functions) & occur)


def differs(claim: TensorMapping, sizes: Mapping[str, int], rounds: int = 20) -> bool:
    """Whether concrete runs with random contents and random initial state show two different results."""
    random = Random(1)
    rows, columns = claim.output_extents(sizes)
    for number in range(rounds):
        # further inputs may be tables, of which many have small entries
        most = range(256 if number % 2 else 6)
        tables = [random.choices(most, k=600) for _ in claim.inputs[1:]]
        words = [dict(enumerate(tensor)) for tensor in (random.randbytes(600), *tables)]
        contents = {tensor: c for pair, c in zip(claim.inputs, words, strict=True) for tensor in pair}
        results = []
        for side, output in ((claim.device, claim.output[0]), (claim.ir, claim.output[1])):
            machine = Machine(side.ila)
            for name, state in side.ila.states.items():
                if name in machine.values:
                    machine.values[name] = random.randrange(2 if state.sort == BOOL else 1 << state.width)
                else:
                    noise = dict(enumerate(random.randbytes(600)))
                    machine.memories[name].update(contents.get(name, noise))
            run_fragment(side, sizes, {}, machine)
            final = machine.memories[output]
            results.append([final[a] for a in range(rows * columns)])
        if results[0] != results[1]:
            return True
    return False


def scaled(name: str, body: Callable[[Expr], Expr]) -> Function:
    x = Function(name, {"x": bv(8)}, bv(8), None)
    x.body = body(x.params[0])
    return x
