"""Names that stand for two things: whatever things are called, a claim is proved if it is right, and refuted if not.

Every claim here has a name that is used twice: a size like a register, a counter of a kernel like a register of the
host, a memory like a tensor, a function like a size.  It comes in pairs, of which one is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import xor
from random import Random
from typing import Any

import pytest

import bmc.prove
from bmc.counterexample import replays
from bmc.search import search
from bmc.sizes import SizeSampler
from chc.mapping.prove import prove
from ila_lang import BOOL, Expr, Fragment, Function, Ila, Kernel, bv, const, ite, mem, true, var
from ila_lang.mapping import Lemma, TensorMapping
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.bmc.test_search import rows_of_a_size, sent, with_a_tensor
from tests.chc.mapping.toy import PARAMETERS, M, N, copy_body, differs, fragment, go, mapping, model, scaled
from tests.marks import slow_but

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
PAIRS: dict[str, Callable[[bool], TensorMapping]] = {}
SHAPE = (3, 2)


def pair(build: Callable[[bool], TensorMapping]) -> Callable[[bool], TensorMapping]:
    """Notes a pair of claims, of which the one for True is right."""
    PAIRS[build.__name__] = build
    return build


def plus(what: Callable[[States], Expr | int], name: str = "z") -> Body:
    """A copy with something added: a state, or (by 0) the counter of a loop with one iteration."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j, k.loop(name, const(1, 8)) as once:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + once + what(s))

    return body


def setting(value: Callable[[States], Expr], *, kept: str = "", before: Expr | None = None) -> Body:
    """Sets the register off to a value, perhaps from a register of the host that is called ``kept``."""

    def program(p: Kernel, s: States) -> None:
        if before is not None:
            p.command("set row", run=true, op=const(4, 4), row_in=before)
        term = p.let(kept, value(s)) if kept else value(s)
        p.command("set off", run=true, op=const(3, 4), off_in=term)
        go(p)

    return program


def row_of_the_input(k: Kernel, s: States) -> None:
    """dst[i, j] := src[off, j]."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], s["off"] * s["m"] + j))


def row_number(number: int) -> Body:
    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], const(number, 32) * s["m"] + j))

    return body


@pytest.mark.parametrize(("ila", "counter"), [("str", "len"), ("re", "all"), ("fp", "add")])
def test_a_counter_may_have_the_name_of_a_function_of_the_solvers(ila: str, counter: str) -> None:
    def body(k: Kernel, s: States) -> None:
        with k.loop(counter, s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    claim = replace(mapping(body, body), device=fragment(model(ila, "", body), ""))
    assert prove(claim, discharger=Discharger(timeout=5.0), horn_timeout=3.0).status is Status.PROVED


@pair
def a_counter_of_the_kernel_and_a_register_of_the_host(right: bool) -> TensorMapping:
    def program(p: Kernel, _: States) -> None:
        p.let("z", const(5, 8))
        go(p)

    return mapping(plus(lambda s: 0), plus(lambda s: 0 if right else 5), program=program)


@pair
def a_register_of_the_host_and_a_coordinate(right: bool) -> TensorMapping:
    program = setting(lambda s: const(0, 32), kept="row")
    return mapping(row_of_the_input, row_number(0) if right else copy_body, program=program, extra=[("off", 32)])


@pair
def a_register_of_the_device_and_a_coordinate(right: bool) -> TensorMapping:
    """Where the claim is right, the program sets that register; otherwise it reads what was there before."""
    program = setting(lambda s: s["row"], kept="x", before=const(1, 32) if right else None)
    ir = row_number(1) if right else copy_body
    return mapping(row_of_the_input, ir, program=program, extra=[("off", 32), ("row", 32)])


@pair
def counters_of_a_fold_and_of_the_host(right: bool) -> TensorMapping:
    """For each row t the host starts a sum over t: of src times the row plus 1, not plus the number of the summand."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(0, 8))
            with k.loop("t", s["n"]) as t:
                k.assign(acc, acc + s["g"] * k.load("w", s["src"], t))
            k.store(s["dst"], s["r"] * s["m"] + j, acc)

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(0, 8))
            with k.loop("t", s["n"]) as t:
                k.assign(acc, acc + ((i if right else t)[7:0] + 1) * k.load("w", s["src"], t))
            k.store(s["dst"], i * s["m"] + j, acc)

    def program(p: Kernel, _: States) -> None:
        with p.loop("t", N.zext(32)) as t:
            p.command("set r", run=true, op=const(3, 4), r_in=t)
            p.command("set g", run=true, op=const(4, 4), g_in=t[7:0] + 1)
            go(p)

    return mapping(device, ir, program=program, extra=[("r", 32), ("g", 8)])


@pair
def a_loop_that_only_sets_a_register_and_a_coordinate(right: bool) -> TensorMapping:
    """The device takes values up to 254; a loop over twice the rows has larger ones at n = 200."""

    def program(p: Kernel, _: States) -> None:
        with p.loop("row", N if right else N * 2) as row:
            p.command("set r", run=true, op=const(3, 4), r_in=row)
        go(p)

    claim = mapping(program=program, extra=[("r", 16)])
    instruction = claim.device.ila.instructions["set_r"]
    instruction.set_decode(instruction.decode & (claim.device.ila.inputs["r_in"] <= 254))
    return claim


@pair
def a_size_and_a_register_of_another_width(right: bool) -> TensorMapping:
    return rows_of_a_size(16, lambda s: s["n" if right else "k"])


@pair
def a_size_and_a_register_of_its_width(right: bool) -> TensorMapping:
    return rows_of_a_size(8, lambda s: s["n" if right else "k"])


@pair
def a_host_tensor_and_a_memory(right: bool) -> TensorMapping:
    return sent(True, 0 if right else 1)


@pair
def a_host_tensor_on_either_side(right: bool) -> TensorMapping:
    return with_a_tensor(paired=right)


@pair
def a_register_of_the_host_and_one_of_the_device(right: bool) -> TensorMapping:
    """The device's r is 5, the host's 7."""

    def program(p: Kernel, _: States) -> None:
        p.command("set r", run=true, op=const(3, 4), r_in=const(5, 8))
        p.let("r", const(7, 8))
        go(p)

    return mapping(plus(lambda s: s["r"]), plus(lambda s: 5 if right else 7), program=program, extra=[("r", 8)])


@pair
def a_counter_of_the_kernel_and_a_register_of_its_device(right: bool) -> TensorMapping:
    """The counter r is 0, the register 5."""

    def program(p: Kernel, _: States) -> None:
        p.command("set r", run=true, op=const(3, 4), r_in=const(5, 8))
        go(p)

    return mapping(plus(lambda s: 0, "r"), plus(lambda s: 0 if right else 5), program=program, extra=[("r", 8)])


def applied(function: Function) -> Body:
    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, function(k.load("word", s["src"], i * s["m"] + j)))

    return body


def two_functions(right: bool, *names: str) -> TensorMapping:
    """Abstract functions of these names; where the claim is right, a lemma says that they are equal."""
    one, two = scaled(names[0], lambda x: x + 1), scaled(names[1], lambda x: x + (1 if right else 2))
    a = var("a", bv(8))
    lemmas = (Lemma("one is two", one(a), two(a)),) if right else ()
    return mapping(applied(one), applied(two), abstract=frozenset(names), lemmas=lemmas)


@pair
def functions_called_like_a_solvers_own(right: bool) -> TensorMapping:
    return two_functions(right, "exp", "exp.data")


@pair
def a_function_a_size_and_a_variable_of_a_lemma(right: bool) -> TensorMapping:
    return two_functions(right, "n", "a")


@pair
def a_kernel_that_is_started_twice(right: bool) -> TensorMapping:
    """Each start adds its register to what dst holds: 1 and then 2.  Its counters are other ones each time."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            k.store(s["tmp"], at, k.load("word", s["dst"], at))
            k.store(s["dst"], at, k.load("sum", s["tmp"], at) + k.load("new", s["src"], at) * s["r"])

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            at = i * s["m"] + j
            word = k.load("word", s["src"], at)
            k.store(s["dst"], at, (k.load("old", s["tmp"], at) + word) + word * (2 if right else 3))

    def program(p: Kernel, _: States) -> None:
        for number in (1, 2):
            p.command("set r", run=true, op=const(3, 4), r_in=const(number, 8))
            go(p)

    return replace(mapping(device, ir, program=program, extra=[("r", 8)]), inputs=(("src", "isrc"), ("dst", "itmp")))


@pytest.mark.parametrize("name", PAIRS)
def test_the_right_claim_is_proved(name: str) -> None:
    claim = PAIRS[name](True)
    for verdict in (prove(claim), bmc.prove.prove(claim, SHAPE, search_seconds=0)):
        assert verdict.status is Status.PROVED, (verdict.method, verdict.reason)
    assert search(claim, budget_seconds=0.1) is None


@pytest.mark.parametrize("name", PAIRS)
def test_the_wrong_claim_is_not_proved(name: str) -> None:
    claim = PAIRS[name](False)
    assert prove(claim).status is Status.UNKNOWN
    found = search(claim, shapes=[SHAPE, (128, 1)], budget_seconds=8.0)
    assert found is not None and replays(claim, found)
    if found.shape == SHAPE:
        at_the_shape = bmc.prove.prove(claim, SHAPE, search_seconds=4.0)
        assert at_the_shape.status is Status.REFUTED, at_the_shape.reason


# -- names that a proof makes up -------------------------------------------------------------------------


WORDS = [
    *("n.div16", "n.mod16", "size.e0", "size.e0.div16", "host.u", "toy.i", "toy.writes", "level.c0", "at.toy0.i"),
    *("row", "column", "ir", "lane", "initial.out", "source.toy.0", "sum", "unrelated", "word"),
]


def with_sizes(names: Sequence[str], right: bool) -> TensorMapping:
    """Host programs that write sizes of 8 bits, or what a register of the device held before."""
    sizes = {name: var(name, bv(8)) for name in names}
    size = reduce(xor, sizes.values())

    def program(value: Callable[[States], Expr], target: str) -> Body:
        def emit(p: Kernel, s: States) -> None:
            with p.loop("u", N.zext(32)) as u, p.loop("v", M.zext(32)) as v:
                at = u * M.zext(32) + v
                p.store(s[target], at, value(s) ^ s["src" if target == "dst" else "isrc"].load(at))

        return emit

    mine = program(lambda s: size if right else s["out"], "dst")
    claim = mapping(None, program=mine, ir_program=program(lambda _: size, "idst"), parameters={**PARAMETERS, **sizes})
    return replace(claim, sizes_of=lambda r, c: {"n": r, "m": c, **dict.fromkeys(names, 3)})


def test_no_name_of_a_size_is_one_of_the_proof() -> None:
    quick = Discharger(timeout=20.0, second=False)
    verdict = prove(with_sizes(WORDS, True), discharger=quick)
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("name", ["initial.out", "row"])
def test_a_size_does_not_stand_for_what_the_proof_gives_a_name(name: str) -> None:
    claim = with_sizes([name], False)
    assert differs(claim, claim.sizes_of(2, 3))
    assert prove(claim).status is Status.UNKNOWN


EXTENTS = [("row", "column"), ("column", "row"), ("column", "m")]  # the coordinates'
EXTENTS += [("true", "and"), ("select", "exists"), ("Inv", "bvsdivo")]  # SMT-LIB's


@pytest.mark.parametrize("names", slow_but([("column", "m"), ("true", "and")], EXTENTS))
def test_extents_may_be_called_like_default_coordinates_and_words_of_solvers(names: tuple[str, str]) -> None:
    """Copies by the host; where the claim is wrong, elements of which the row is not below the column are 0."""
    n, m = (var(name, bv(8)) for name in names)

    def copy(target: str, source: str, right: bool) -> Body:
        def program(p: Kernel, s: States) -> None:
            with p.loop("u", n.zext(32)) as u, p.loop("v", m.zext(32)) as v:
                word = s[source].load(u * m.zext(32) + v)
                p.store(s[target], u * m.zext(32) + v, word if right else ite(u < v, word, const(0, 8)))

        return program

    def claim(right: bool) -> TensorMapping:
        found = mapping(
            None,
            program=copy("dst", "src", right),
            ir_program=copy("idst", "isrc", True),
            parameters={n.name: n, m.name: m},
            domain=(("sizes are not 0", (n >= 1) & (m >= 1)),),
            rows=n.zext(32),
            columns=m.zext(32),
        )
        return replace(found, sizes_of=lambda rows, columns: {n.name: rows, m.name: columns})

    for right, wanted in ((True, Status.PROVED), (False, Status.UNKNOWN)):
        verdict = prove(claim(right))
        assert verdict.status is wanted, verdict.reason
    assert bmc.prove.prove(claim(True), SHAPE, search_seconds=0).status is Status.PROVED
    assert bmc.prove.prove(claim(False), SHAPE, search_seconds=2.0).status is Status.REFUTED
    found = search(claim(False), shapes=[SHAPE], budget_seconds=2.0)
    assert found is not None and replays(claim(False), found)
    assert search(claim(True), budget_seconds=0.3) is None
    assert SizeSampler(claim(True)).smallest() == {n.name: 1, m.name: 1}


@pytest.mark.parametrize("names", [("row", "column"), ("n", "m"), ("toy.cell0", "i"), ("writes", "exp")])
def test_counters_may_have_any_names(names: tuple[str, str]) -> None:
    def copy(change: int) -> Body:
        def device(k: Kernel, s: States) -> None:
            with k.loop(names[0], s["n"]) as i, k.loop(names[1], s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + change)

        return device

    assert prove(mapping(copy(0))).status is Status.PROVED
    assert prove(mapping(copy(1))).status is Status.UNKNOWN


def test_values_may_have_sizes_and_coordinates_in_them() -> None:
    """Sizes are integers where they are indices, and bits where they are data: two symbols."""

    def body(change: int) -> Body:
        def sides(k: Kernel, s: States) -> None:
            with k.loop("row", s["n"]) as i, k.loop("j", s["m"]) as j:
                word = k.load("word", s["src"], i * s["m"] + j)
                k.store(s["dst"], i * s["m"] + j, word + i[7:0] + s["m"][7:0] * (j[7:0] + change))

        return sides

    verdict = prove(mapping(body(0), body(0)))
    assert verdict.status is Status.PROVED, verdict.reason
    assert prove(mapping(body(0), body(1))).status is Status.UNKNOWN


@pytest.mark.parametrize("name", ["toy", "ir", "ir0", "i"])
def test_models_may_have_any_names(name: str) -> None:
    claim = mapping()
    assert prove(replace(claim, device=fragment(model(name, "", copy_body), ""))).status is Status.PROVED
    wrong = fragment(model(name, "", plus(lambda s: 1)), "")
    assert prove(replace(claim, device=wrong)).status is Status.UNKNOWN


def test_a_function_without_a_body_may_mean_anything() -> None:
    blur = Function("blur", {"x": bv(8)}, bv(8), None)
    blurred = applied(blur)

    def beside(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, blur(k.load("word", s["src"], i * s["m"] + j) + 1))

    verdict = prove(mapping(blurred, blurred, abstract=frozenset({"blur"})))
    assert verdict.status is Status.PROVED, verdict.reason
    assert prove(mapping(blurred, beside)).status is Status.UNKNOWN


# -- all names at random ---------------------------------------------------------------------------------


POOL = ("row", "column", "ir", "t", "i", "a.b", "exp", "sum", "toy", "n", "go")
"""All names of a claim are drawn from these few, as often as it takes to find names that are clear where they stand."""


def named(draw: Callable[[int], list[str]], right: bool) -> TensorMapping:
    """Sums of src times the row, started by the host for each row; ``draw`` gives so many names for one scope."""
    sizes = draw(2)
    n, m = (var(name, bv(16)) for name in sizes)
    coordinates = [var(name, bv(32)) for name in draw(2)]

    def machine(name: str, registers: int) -> tuple[Ila, list[Expr], list[str]]:
        names = draw(4 + registers + 5)  # of states, and of counters and registers of the kernel
        ila = Ila(name)
        states = [ila.state(names[0], mem(32, 8)), ila.state(names[1], mem(32, 8))]
        widths = (32, 32, 32, 8)[: 2 + registers]
        states += [ila.state(state, width) for state, width in zip(names[2:], widths, strict=False)]
        return ila, states, names[4 + registers :]

    def summed(k: Kernel, s: list[Expr], row: Expr, factor: Callable[[Expr], Expr], names: list[str]) -> None:
        with k.loop(names[0], s[3]) as j:
            acc = k.let(names[1], const(0, 8))
            with k.loop(names[2], s[2]) as t:
                k.assign(acc, acc + factor(t) * k.load(names[3], s[0], t))
            k.store(s[1], row * s[3] + j, acc)

    def starts(ila: Ila, s: list[Expr], k: Kernel) -> None:
        start = ila.instruction("go").set_decode(ila.input("go.run", BOOL))
        start.update(s[2], ila.input("go.n", 32)).update(s[3], ila.input("go.m", 32)).start(k)

    device, s, own = machine("toy", 2)
    k = Kernel("kernel")
    summed(k, s, s[4], lambda _: s[5], own)
    starts(device, s, k)
    for what, state in (("r", s[4]), ("g", s[5])):
        device.instruction(what).set_decode(device.input(f"set.{what}", BOOL)).update(
            state, device.input(f"{what}.in", state.width)
        )
    sized = {"go.run": true, "go.n": n.zext(32), "go.m": m.zext(32)}
    program = Kernel("program")
    with program.loop(draw(1)[0], n.zext(32)) as h:
        program.command("row", **{"set.r": true, "r.in": h})
        program.command("factor", **{"set.g": true, "g.in": h[7:0] + 1})
        program.command("go", **sized)

    theirs, z, own = machine("ir", 0)
    k = Kernel("kernel")
    with k.loop(own[4], z[2]) as i:
        summed(k, z, i, lambda t: (i if right else t)[7:0] + 1, own)
    starts(theirs, z, k)
    alone = Kernel("program")
    alone.command("go", **sized)
    parameters = {n.name: n, m.name: m}
    return TensorMapping(
        name="named",
        ir=Fragment("ir", theirs, parameters, {}, alone),
        device=Fragment("device", device, parameters, {}, program),
        parameters=parameters,
        domain=(("1 <= n <= 9", (const(1, 16) <= n) & (n <= 9)), ("1 <= m <= 9", (const(1, 16) <= m) & (m <= 9))),
        rows=n.zext(32),
        columns=m.zext(32),
        inputs=((s[0].name, z[0].name),),
        output=(s[1].name, z[1].name),
        lemmas=(),
        abstract=frozenset(),
        sizes_of=lambda rows, columns: {n.name: rows, m.name: columns},
        statement="",
        cell=((coordinates[0], n.zext(32)), (coordinates[1], m.zext(32))),
        cell_column=coordinates[1],
    )


def renamed(seed: int, right: bool) -> TensorMapping:
    """The claim with all names drawn from the pool; what is ambiguous to a reader is an error, and drawn again."""
    random = Random(seed)
    while True:
        try:
            return named(lambda count: random.sample(POOL, count), right)
        except ValueError as error:
            assert "name" in str(error) or "Name" in str(error)


def plainly_named(right: bool) -> TensorMapping:
    names = iter(f"v{number}" for number in range(100))
    return named(lambda count: [next(names) for _ in range(count)], right)


def forms(verdict: Verdict) -> list[str]:
    """The obligations with symbols numbered as they occur in assertions; invariants are Spacer's choice."""
    found = []
    for obligation in (o for o in verdict.obligations if not o.group.startswith("invariant")):
        declared = dict(re.findall(r"\(declare-fun (\|[^|]*\||\S+) (.*)\)", obligation.smtlib))
        numbers: dict[str, str] = {}
        tokens = re.findall(r"\|[^|]*\||[^\s()]+|[()]", "".join(re.findall(r"\(assert .*", obligation.smtlib)))
        form = [numbers.setdefault(t, f"{len(numbers)}:{declared[t]}") if t in declared else t for t in tokens]
        found.append(" ".join(form))
    return sorted(found)


def quickly(claim: TensorMapping) -> Verdict:
    return prove(claim, discharger=Discharger(timeout=20.0, second=False))


@pytest.mark.parametrize("seed", range(3))
def test_names_at_random_change_neither_verdict_nor_obligations(seed: int) -> None:
    wanted, verdict = quickly(plainly_named(True)), quickly(renamed(seed, True))
    assert wanted.status is verdict.status is Status.PROVED, verdict.reason
    assert forms(verdict) == forms(wanted)


@pytest.mark.parametrize("seed", range(3))
def test_names_at_random_make_no_wrong_claim_right(seed: int) -> None:
    claim = renamed(seed, False)
    assert quickly(claim).status is Status.UNKNOWN
    found = search(claim, budget_seconds=4.0)
    assert found is not None and replays(claim, found)


def test_a_proof_has_the_same_obligations_whenever_it_is_made() -> None:
    first = quickly(renamed(1, True))
    levels: Any = first.details["levels"]
    invariants = {key: level["invariant"] for key, level in levels.items()}
    again = Discharger(timeout=20.0, second=False)
    second = prove(renamed(1, True), discharger=again, invariants=invariants)
    assert [o.smtlib for o in first.obligations] == [o.smtlib for o in second.obligations]


def test_a_kernel_that_grew_after_it_was_started_is_checked_again() -> None:
    """An input called like a size would be taken for it."""
    claim = mapping()
    ila = claim.device.ila
    size, out = ila.input("n", 16), ila.states["out"]
    kernel = ila.instructions["go"].kernel
    assert kernel is not None
    kernel.done(out, size[7:0])
    message = "Kernel toy_kernel must use only states of toy, not n"
    with pytest.raises(ValueError, match=message):
        prove(claim)
    with pytest.raises(ValueError, match=message):
        replace(claim, statement="made again")
