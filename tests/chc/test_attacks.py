"""Programs that break the method's assumptions one at a time: none of them may be PROVED.

Each attack is a mapping that does *not* hold, which two concrete runs show; all of them look provable to a method that
forgets about order, registers or names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

import bmc.prove
from chc.prove import prove
from ila_lang import Expr, Function, Kernel, bv, const, ite, true, var
from ila_lang.mapping import Lemma, TensorMapping
from smt_encodings.claims import Status
from tests.chc.toy import DOMAIN, PARAMETERS, M, N, copy_body, differs, go, mapping, scaled

States = Mapping[str, Expr]
ATTACKS: dict[str, Callable[[], TensorMapping]] = {}


def attack(build: Callable[[], TensorMapping]) -> Callable[[], TensorMapping]:
    ATTACKS[build.__name__] = build
    return build


def index(u: Expr, v: Expr) -> Expr:
    return u.zext(32) * M.zext(32) + v.zext(32)


def constant_ir(value: Expr | None, target: str) -> Callable[[Kernel, States], None]:
    """An IR that fills ``target`` with a literal, or with the first element of src."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], const(0, 32)) if value is None else value
            k.store(s[target], i * s["m"] + j, word)

    return body


def host_copy_of(what: str) -> Callable[[Kernel, States], None]:
    """After the kernel ran, tmp is filled with a device register."""

    def program(p: Kernel, s: States) -> None:
        with p.loop("u", N) as u, p.loop("v", M) as v:
            p.store(s["tmp"], index(u, v), s[what])

    return program


@attack
def two_loops_that_run_in_turns() -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            with k.loop("a", s["m"]) as a:
                k.store(s["dst"], i * s["m"] + a, k.load("old", s["tmp"], i * s["m"] + a))
            with k.loop("b", s["m"]) as b:
                k.store(s["tmp"], (i + 1) * s["m"] + b, k.load("new", s["src"], i * s["m"] + b))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("old", s["tmp"], i * s["m"] + j))

    return replace(mapping(device, ir), inputs=(("src", "isrc"), ("tmp", "itmp")))


@attack
def output_register_read_before_the_kernel() -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        p.command("read", run=const(1, 1) == 1, op=const(2, 4), address=const(0, 32))
        go(p)
        host_copy_of("out")(p, s)

    return replace(mapping(copy_body, constant_ir(None, "tmp"), program=program), output=("tmp", "itmp"))


@attack
def host_register_read_before_the_kernel() -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        x = p.let("x", s["dst"].load(const(0, 32)))
        go(p)
        with p.loop("u", N) as u, p.loop("v", M) as v:
            p.store(s["tmp"], index(u, v), x)

    return replace(mapping(copy_body, constant_ir(None, "tmp"), program=program), output=("tmp", "itmp"))


@attack
def output_register_changed_by_an_inner_loop() -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        def read(address: int) -> None:
            p.command("read", run=const(1, 1) == 1, op=const(2, 4), address=const(address, 32))

        with p.loop("u", N) as u:
            read(0)
            with p.loop("v", M) as v:
                p.store(s["tmp"], index(u, v), s["out"])
                read(1)

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["tmp"], i * s["m"] + j, k.load("word", s["dst"], const(0, 32)))

    claim = mapping(None, ir, program=program)
    return replace(claim, inputs=(("dst", "idst"),), output=("tmp", "itmp"))


@attack
def register_carried_by_the_outermost_loop() -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        x = p.let("x", const(0, 8))
        with p.loop("u", N) as u:
            p.store(s["tmp"], u.zext(32), x)
            p.assign(x, x + 1)

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            k.store(s["tmp"], i, const(0, 8))

    claim = mapping(copy_body, ir, program=program, columns=const(1, 32))
    return replace(claim, output=("tmp", "itmp"))


@attack
def registers_of_one_name_on_both_sides() -> TensorMapping:
    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + s["gain"])

    return mapping(body, body, extra=(("gain", 8),))


@attack
def registers_exchanged_at_the_end_of_a_kernel() -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        copy_body(k, s)
        k.done(s["p"], s["q"])
        k.done(s["q"], s["p"])

    def program(p: Kernel, s: States) -> None:
        p.command("p", run=const(1, 1) == 1, op=const(3, 4), p_in=const(1, 8))
        p.command("q", run=const(1, 1) == 1, op=const(4, 4), q_in=const(2, 8))
        go(p)
        host_copy_of("q")(p, s)

    claim = mapping(device, constant_ir(const(2, 8), "tmp"), program=program, extra=(("p", 8), ("q", 8)))
    return replace(claim, output=("tmp", "itmp"))


@attack
def functions_of_one_name_on_both_sides() -> TensorMapping:
    def using(f: Function) -> Callable[[Kernel, States], None]:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, f(k.load("word", s["src"], i * s["m"] + j)))

        return body

    one, two = scaled("step", lambda x: x + 1), scaled("step", lambda x: x + 2)
    return mapping(using(one), using(two), abstract=frozenset({"step"}))


@attack
def overwritten_before_it_is_read() -> TensorMapping:
    """A shift by one row, in place and in the wrong direction: row 0 spreads over the whole tensor."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["src"], (i + 1) * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    def program(p: Kernel, s: States) -> None:
        go(p)
        with p.loop("u", N) as u, p.loop("v", M) as v:
            p.store(s["dst"], index(u, v), s["src"].load(index(u, v) + M.zext(32)))

    return mapping(device, program=program)


@attack
def written_twice() -> TensorMapping:
    """Rows overlap: the stride is too small by one."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * (s["m"] - 1) + j, k.load("word", s["src"], i * (s["m"] - 1) + j))

    return mapping(device, domain=(*DOMAIN, ("2 <= m", const(2, 16) <= M)))


@attack
def one_row_short() -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"] - 1) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    return mapping(device)


@attack
def wrong_order_of_a_tensor() -> TensorMapping:
    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], j * s["n"] + i))

    return mapping(device)


def test_the_honest_mapping_is_proved() -> None:
    claim = mapping()
    assert not differs(claim, claim.sizes_of(20, 3))
    assert prove(claim).status is Status.PROVED


@pytest.mark.parametrize("name", ATTACKS)
def test_a_false_claim_is_not_proved(name: str) -> None:
    claim = ATTACKS[name]()
    assert differs(claim, claim.sizes_of(20, 3)), "the attack is harmless: concrete runs agree"
    verdict = prove(claim)
    assert verdict.status in (Status.UNKNOWN, Status.ERROR), verdict.reason
    assert verdict.reason


@pytest.mark.parametrize("names", [("row", "j"), ("column", "j"), ("n", "j"), ("i", "m")])
def test_a_counter_with_the_name_of_a_size_or_coordinate_is_refused(names: tuple[str, str]) -> None:
    def device(k: Kernel, s: States) -> None:
        with k.loop(names[0], s["n"]) as i, k.loop(names[1], s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    verdict = prove(mapping(device))
    assert verdict.status is not Status.PROVED
    assert "name of its own" in verdict.reason


@pytest.mark.parametrize(
    "name", ["n.div16", "n.mod16", "n.div4", "size.e0", "size.e0.div16", "host.u", "toy.i", "toy.writes"]
)
def test_no_name_of_a_parameter_captures_a_name_of_the_proof(name: str) -> None:
    """A false claim stays unproved whatever the extra parameter, of which nothing is known, is called."""
    extra = var(name, bv(16))

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"] - 1) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    odd = ("odd", (N[15:4].zext(16) + N[3:0].zext(16) <= 300) & (extra <= 3))
    claim = mapping(device, domain=(*DOMAIN, odd), parameters={**PARAMETERS, name: extra})
    claim = replace(claim, sizes_of=lambda r, c: {"n": r, "m": c, name: 3})
    assert prove(claim).status is not Status.PROVED


Value = Callable[[States, Expr, Expr], Expr]


def with_a_size(name: str, device: Value, ir: Value) -> TensorMapping:
    """Host programs that write what ``device`` and ``ir`` make of the state, an index, and a size of 8 bits."""
    size = var(name, bv(8))

    def program(side: Value, target: str) -> Callable[[Kernel, States], None]:
        def emit(p: Kernel, s: States) -> None:
            with p.loop("u", N) as u, p.loop("v", M) as v:
                p.store(s[target], index(u, v), side(s, index(u, v), size))

        return emit

    parameters = {**PARAMETERS, name: size}
    claim = mapping(program=program(device, "dst"), ir_program=program(ir, "idst"), parameters=parameters)
    return replace(claim, sizes_of=lambda r, c: {"n": r, "m": c, name: 3})


CAPTURES: dict[str, TensorMapping] = {
    "what a register held before": with_a_size("initial.out", lambda s, i, size: s["out"], lambda s, i, size: size),
    "what a cell of the input held": with_a_size(
        "toy.cell0", lambda s, i, size: ite(N == 300, s["src"].load(i), size), lambda s, i, size: s["isrc"].load(i)
    ),
}
"""Claims that a size stands for something that only the proof has a name for."""


@pytest.mark.parametrize("name", CAPTURES)
def test_a_size_does_not_stand_for_what_the_proof_gives_a_name(name: str) -> None:
    claim = CAPTURES[name]
    (size,) = set(claim.parameters) - {"n", "m"}
    assert differs(claim, claim.sizes_of(2, 3))
    verdict = prove(claim)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == f"{size} must have a name without dots: those are the proof's own"


def test_a_counter_does_not_stand_for_what_the_proof_gives_a_name() -> None:
    """A counter of 8 bits with the name of the cell that is copied, which the copy would then be of."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("toy.cell0", s["m"][7:0]) as j:
            k.store(s["dst"], i * s["m"] + j.zext(32), k.load("word", s["src"], i * s["m"] + j.zext(32)))

    def numbers(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            word = k.load("word", s["src"], i * s["m"] + j)
            k.store(s["dst"], i * s["m"] + j, (word ^ j[7:0]) ^ word)

    claim = mapping(device, numbers)
    assert differs(claim, claim.sizes_of(2, 3))
    verdict = prove(claim)
    assert verdict.status is Status.UNKNOWN and "toy.cell0" in verdict.reason and "a name of its own" in verdict.reason


def size_that_is_a_register() -> TensorMapping:
    """The program copies the first k rows of n.  It would be right if k were what the register of that name holds."""
    size = var("k", bv(16))

    def program(p: Kernel, s: States) -> None:
        p.command("set k", run=true, op=const(3, 4), k_in=N)
        with p.loop("u", size) as u, p.loop("v", M) as v:
            p.store(s["dst"], index(u, v), s["src"].load(index(u, v)))

    claim = mapping(None, program=program, parameters={**PARAMETERS, "k": size}, extra=[("k", 16)])
    return replace(claim, sizes_of=lambda r, c: {"n": r, "m": c, "k": 1})


def adding(what: Callable[[States, Expr], Expr], name: str = "once") -> Callable[[Kernel, States], None]:
    """What is copied has something added, of the state or of the counter of a loop with one iteration."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j, k.loop(name, const(1, 8)) as once:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + what(s, once))

    return body


def set_to_five(kept: str) -> Callable[[Kernel, States], None]:
    """The register r is set to 5, and the host keeps a 7 under some name."""

    def program(p: Kernel, s: States) -> None:
        p.command("set r", run=true, op=const(3, 4), r_in=const(5, 8))
        p.let(kept, const(7, 8))
        go(p)

    return program


def register_of_the_host(name: str = "r") -> TensorMapping:
    """The device adds its register, a 5; the IR adds what the host keeps under the register's name."""
    sides = adding(lambda s, once: s["r"]), adding(lambda s, once: const(7, 8))
    return mapping(*sides, program=set_to_five(name), extra=[("r", 8)])


def counter_of_a_kernel(name: str = "r") -> TensorMapping:
    """The device adds a counter that has a register's name; the IR adds what that register holds."""
    sides = adding(lambda s, once: once, name=name), adding(lambda s, once: const(5, 8))
    return mapping(*sides, program=set_to_five("kept"), extra=[("r", 8)])


AMBIGUOUS = {
    "a size": (size_that_is_a_register, "the size k is a state of toy, too; it must have a name of its own"),
    "a register of the host": (
        register_of_the_host,
        "r in toy_program is a state of toy, too; it must have a name of its own",
    ),
    "a counter": (counter_of_a_kernel, "r in toy_kernel is a state of toy, too; it must have a name of its own"),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_has_the_name_of_a_register_is_refused(name: str) -> None:
    build, reason = AMBIGUOUS[name]
    claim = build()
    cell = tuple((var(f"cell_{name}", bv(32)), e) for name, e in (("row", claim.rows), ("column", claim.columns)))
    trees = replace(claim, cell=cell, cell_column=cell[1][0], sample_shapes=((1, 1), (2, 3), (4, 5)))
    for verdict in (prove(claim), prove(trees)):
        assert (verdict.status, verdict.reason) == (Status.UNKNOWN, reason)
    assert bmc.prove.prove(claim, (3, 2), search_seconds=2.0).status is Status.REFUTED


@pytest.mark.parametrize("build", [register_of_the_host, counter_of_a_kernel])
def test_the_same_is_false_under_other_names(build: Callable[..., TensorMapping]) -> None:
    for claim in (build(), build("other")):
        assert differs(claim, {"n": 3, "m": 2})
    assert prove(build("other")).status is Status.UNKNOWN


def test_a_lemma_must_not_repeat_a_variable() -> None:
    first = Function("first", {"x": bv(8), "y": bv(8)}, bv(8), None)
    first.body = first.params[0]
    a = var("a", bv(8))
    with pytest.raises(ValueError, match="each variable once"):
        Lemma("first of two equal ones", first(a, a), a)


def test_a_domain_without_an_output_cell_is_vacuous() -> None:
    verdict = prove(mapping(rows=N.zext(32) - N.zext(32)))
    assert verdict.status is Status.VACUOUS
    contradictory = (*DOMAIN, ("n > 255", N > 255))
    assert prove(mapping(domain=contradictory)).status is Status.VACUOUS
