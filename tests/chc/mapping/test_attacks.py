"""Programs that break the method's assumptions one at a time: none of them may be PROVED.

Each attack is a mapping that does *not* hold, which two concrete runs show; all of them look provable to a method that
forgets about order, registers or names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Function, Kernel, bv, const, var
from ila_lang.mapping import Lemma, TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping.toy import DOMAIN, M, N, copy_body, differs, go, mapping, scaled

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
def abstract_functions_on_both_sides() -> TensorMapping:
    def using(f: Function) -> Callable[[Kernel, States], None]:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, f(k.load("word", s["src"], i * s["m"] + j)))

        return body

    one, two = scaled("one", lambda x: x + 1), scaled("two", lambda x: x + 2)
    return mapping(using(one), using(two), abstract=frozenset({"one", "two"}))


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


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("output_register_read_before_the_kernel", "a cell of isrc that the other side does not read"),
        ("output_register_changed_by_an_inner_loop", "out after a loop that changes it"),
        ("registers_of_one_name_on_both_sides", "gain as it was before the program"),
    ],
)
def test_what_a_result_depends_on_is_told_in_words_of_the_program(name: str, what: str) -> None:
    assert prove(ATTACKS[name]()).reason == f"the result depends on {what}, which the program does not determine"


def test_a_lemma_must_not_repeat_a_variable() -> None:
    first = Function("first", {"x": bv(8), "y": bv(8)}, bv(8), None)
    first.body = first.params[0]
    a = var("a", bv(8))
    with pytest.raises(ValueError, match="each variable once"):
        Lemma("first of two equal ones", first(a, a), a)


def test_a_domain_without_an_output_cell_is_vacuous() -> None:
    verdict = prove(mapping(rows=N.zext(32) - N.zext(32)))
    assert verdict.status is Status.VACUOUS
    assert verdict.reason.endswith("precondition: 'an output of 0 x m has a cell' never holds")


@pytest.mark.parametrize(
    ("more", "which"),
    [
        ((("", N < 9), ("", N > 99), ("", N > 3)), "'n < 9' and '99 < n' contradict each other"),
        ((("", N < M), ("", N > 99), ("", M < 50)), "'n < m' and '99 < n' and 'm < 50' contradict each other"),
    ],
)
def test_of_a_domain_without_sizes_those_conditions_are_named_that_contradict_each_other(
    more: tuple[tuple[str, Expr], ...], which: str
) -> None:
    verdict = prove(mapping(domain=(*DOMAIN, *more)))
    assert verdict.status is Status.VACUOUS and verdict.reason == f"no size satisfies the precondition: {which}"
