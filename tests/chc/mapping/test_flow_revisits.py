"""A write that comes back to a cell from other rows and taps, as a fold: what is proved, and attacks that may not be.

The device scatters each input word to all sums that it belongs to, as convolution engines do; the IR gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Fragment, Function, Kernel, bv, const, ite, true, var
from ila_lang.mapping import Lemma, TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.toy import DOMAIN, M, N, differs, go, mapping, scaled, with_abstract
from tests.marks import slow_but

States = Mapping[str, Expr]
Body = Callable[[Kernel, States], None]
S = var("s", bv(16))
STRIDE = ("1 <= s <= 7", (const(1, 16) <= S) & (S <= 7))
CELL = (var("cell_row", bv(32)), var("cell_column", bv(32)))
step = Function("step", {"acc": bv(8), "x": bv(8)}, bv(8), None)
step.body = (step.params[0] << 1) + (step.params[1] ^ step.params[0])  # in another order, another result
last = scaled("last", lambda x: x + 1)


def gather(k: Kernel, s: States) -> None:
    """dst[o] = last(fold over t < m of src[o*s + t]), from 0."""
    with k.loop("o", s["n"]) as o:
        acc = k.let("acc", const(0, 8))
        with k.loop("x", s["m"]) as x:
            value = step(acc, k.load("word", s["src"], o * s["s"] + x))
            k.assign(acc, ite(x == s["m"] - 1, last(value), value))
        k.store(s["dst"], o, acc)


def scatter(
    *,
    first: Callable[[Expr, Expr], Expr] = lambda tap, m: tap == 0,
    end: Callable[[Expr, Expr], Expr] = lambda tap, m: tap == m - 1,
    rows: Callable[[States], Expr] = lambda s: (s["n"] - 1) * s["s"] + s["m"],
    taps: Callable[[Expr, Expr, States], Expr] = lambda count, begin, s: count,
    tap: Callable[[Expr, States], Expr] = lambda tap, s: tap,
    target: Callable[[Expr], Expr] = lambda o: o,
    inside: Callable[[Expr, Expr], Expr] = lambda o, n: o < n,
    word: Callable[[Expr, Expr], Expr] = lambda row, tap: row,
    clear: bool = False,
) -> Callable[[Kernel, States], None]:
    """The same with the sums in dst: row r belongs to the sums o with r = o*s + tap."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("r", rows(s)) as r:
            begin = r % s["s"]
            count = (s["m"] + (s["s"] - 1) - begin) // s["s"]
            with k.loop("t", taps(count, begin, s)) as t:
                at = tap(begin + t * s["s"], s)
                o = (r - at) // s["s"]
                with k.when("inside", (at <= r) & inside(o, s["n"])):
                    old = k.load("old", s["dst"], target(o))
                    value = step(ite(first(at, s["m"]), const(0, 8), old), k.load("in", s["src"], word(r, at)))
                    k.store(s["dst"], target(o), ite(end(at, s["m"]), last(value), value))
            if clear:
                with k.when("again", r == s["m"]):
                    k.store(s["dst"], const(0, 32), const(0, 8))

    return body


def claim(body: Body, ir: Body = gather) -> TensorMapping:
    def program(p: Kernel, s: States) -> None:
        p.command("set", run=true, op=const(3, 4), s_in=S.zext(32))
        go(p)

    made = mapping(
        body,
        ir,
        program=program,
        ir_program=program,
        domain=(*DOMAIN, STRIDE),
        rows=N.zext(32),
        columns=const(1, 32),
        parameters={"n": N, "m": M, "s": S},
        extra=[("s", 32)],
    )
    return replace(
        with_abstract(made, step, last),
        cell=((CELL[0], made.rows), (CELL[1], made.columns)),
        cell_column=CELL[1],
        sizes_of=lambda n, m, s: {"n": n, "m": m, "s": s},
        shape_names=("n", "m", "s"),
        sample_shapes=((1, 1, 1), (1, 4, 2), (3, 5, 2), (4, 2, 3), (5, 4, 1), (6, 7, 3)),
        shape_parameters=frozenset({"n", "m", "s"}),
    )


def status(wrong: TensorMapping, *, second: bool = True) -> Status:
    return prove(wrong, discharger=Discharger(timeout=5.0, second=second), horn_timeout=3.0).status


def test_a_scattered_sum_is_the_gathered_one() -> None:
    verdict = prove(claim(scatter()))
    assert verdict.status is Status.PROVED, verdict.reason
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(names) == len(set(names)) and "toy: accumulation" in {group for group, _ in names}
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    assert {name for group, name in names if group == "toy: accumulation"} >= {
        "fold 1: cases",
        "fold 1: some iteration",
        *(f"fold 1: happens, {number}" for number in range(1, 5)),
    }
    for facts in ("toy: cells", "toy: cells in fold 1, x goes on"):
        asked = {name.rpartition(", ")[2] for group, name in names if group == facts and ": fact " in name}
        assert asked >= {"equal numbers have equal quotients", "equal parts times a divisor"}
        assert any(group == facts and name.endswith("does not come in between") for group, name in names)
    assert {name.rpartition(": ")[2] for group, name in names if group == "toy: layout"} >= {
        "the address, digit by digit",
        "a counter below a quotient",
        "a counter times a divisor",
        "a quotient times its divisor",
        "an exact quotient times its divisor",
    }


WRONG: dict[str, Callable[[Kernel, States], None]] = {
    "sums begin with what the memory held": scatter(first=lambda tap, m: tap == m),
    "long sums begin with what the memory held": scatter(first=lambda tap, m: (tap == 0) & (m <= 3)),
    "sums begin anew at the last tap": scatter(first=lambda tap, m: tap == m - 1),
    "the end comes at another tap": scatter(end=lambda tap, m: tap == 0),
    "the last row is left out": scatter(rows=lambda s: (s["n"] - 1) * s["s"] + s["m"] - 1),
    "one tap too many": scatter(taps=lambda count, begin, s: count + 1),
    "taps from the last one on": scatter(tap=lambda tap, s: s["m"] - 1 - tap),
    "all sums in one cell": scatter(target=lambda o: o * 0),
    "the last sum is left out": scatter(inside=lambda o, n: o < n - 1),
    "another word is added": scatter(word=lambda row, tap: row + tap),
    "another write clears a sum": scatter(clear=True),
}


QUICK = (
    "sums begin with what the memory held",
    "long sums begin with what the memory held",
    "another write clears a sum",
)


@pytest.mark.parametrize("name", slow_but(QUICK, WRONG))
def test_a_wrong_scatter_is_not_proved(name: str) -> None:
    wrong = claim(WRONG[name])
    assert differs(wrong, {"n": 4, "m": 4, "s": 2})
    assert status(wrong, second=False) is Status.UNKNOWN


@pytest.mark.parametrize("anew,wanted", [(False, Status.PROVED), (True, Status.UNKNOWN)])
def test_a_scattered_sum_goes_on_in_a_second_round(anew: bool, wanted: Status) -> None:
    """Every word is added twice; or sums begin anew with each word of the first round, and the first of the second."""

    def device(k: Kernel, s: States) -> None:
        rows = (s["n"] - 1) * s["s"] + s["m"]
        with k.loop("a", const(2, 32)) as a, k.loop("r", rows) as r, k.loop("t", s["m"]) as t:
            o = (r - t) // s["s"]
            with k.when("inside", (t <= r) & ((r - t) % s["s"] == 0) & (o < s["n"])):
                first = (a == 0) | (t == 0) if anew else (a == 0) & (t == 0)
                old = ite(first, const(0, 8), k.load("old", s["dst"], o))
                k.store(s["dst"], o, step(old, k.load("in", s["src"], r)))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("o", s["n"]) as o:
            acc = k.let("acc", const(0, 8))
            with k.loop("a", const(2, 32)), k.loop("x", s["m"]) as x:
                k.assign(acc, step(acc, k.load("word", s["src"], o * s["s"] + x)))
            k.store(s["dst"], o, acc)

    made = replace(claim(device, ir), sample_shapes=((1, 2, 1), (1, 4, 2), (3, 5, 2), (4, 2, 3), (5, 4, 1)))
    assert differs(made, {"n": 2, "m": 3, "s": 1}) is anew
    assert status(made) is wanted


def test_a_false_lemma_proves_nothing() -> None:
    """Lemmas are obligations where the output has coordinates of its own, too."""
    x = step.params[1]
    other = scaled("other", lambda x: x + 2)
    false = Lemma("false", last(x), other(x))

    def changed(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, last(k.load("word", s["src"], i * s["m"] + j)))

    def wanted(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, other(k.load("word", s["src"], i * s["m"] + j)))

    made = mapping(changed, wanted, lemmas=(false,), abstract=frozenset({"last", "other"}))
    made = replace(
        made,
        cell=((CELL[0], made.rows), (CELL[1], made.columns)),
        cell_column=CELL[1],
        sample_shapes=((1, 1), (2, 3), (3, 2)),
        shape_parameters=frozenset({"n", "m"}),
    )
    assert differs(made, {"n": 2, "m": 3})
    assert status(made, second=False) is Status.UNKNOWN


def test_the_sample_only_proposes_an_instruction() -> None:
    """Two instructions divide the addresses; a command whose address passes the border is not proved."""

    def windows(limit: int) -> TensorMapping:
        def ir(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

        def nothing(k: Kernel, s: States) -> None:
            pass

        base = mapping(nothing, ir)
        ila = base.device.ila
        run, address, data = ila.inputs["run"], ila.inputs["address"], ila.inputs["data"]
        here = run & (ila.inputs["op"] == 9)
        for name, decode, memory in (
            ("low", here & (address < limit), ila.states["dst"]),
            ("high", here & (const(limit, 32) <= address), ila.states["tmp"]),
        ):
            ila.instruction(name).set_decode(decode).update(memory, memory.store(address, data))
        text = Kernel("toy_program")
        with text.loop("u", N) as u, text.loop("v", M) as v:
            at = u.zext(32) * M.zext(32) + v.zext(32)
            text.command("word", run=true, op=const(9, 4), address=at, data=ila.states["src"].load(at))
        device = Fragment("toy_fragment", ila, dict(base.parameters), base.device.tensors, text)
        return replace(
            base,
            device=device,
            cell=((CELL[0], base.rows), (CELL[1], base.columns)),
            cell_column=CELL[1],
            sample_shapes=((1, 1), (1, 3), (2, 3), (3, 2), (4, 5)),
            shape_parameters=frozenset({"n", "m"}),
        )

    assert status(windows(1 << 16)) is Status.PROVED
    assert differs(windows(8), {"n": 3, "m": 4})
    assert status(windows(8)) is Status.UNKNOWN


def test_rows_of_words_under_conditions_are_one_loop() -> None:
    """A row is stored in groups of four, as far as it exists; one word too many or too few is not proved."""

    def grouped(shift: int) -> TensorMapping:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("g", (s["m"] + 3) >> 2) as g:
                for lane in range(4):
                    column = (g << 2) + lane
                    word = k.load(f"word_{lane}", s["src"], i * s["m"] + column)
                    with k.when(f"exists_{lane}", column + shift < s["m"]):
                        k.store(s["dst"], i * s["m"] + column, word)

        def ir(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

        made = mapping(body, ir)
        return replace(
            made,
            cell=((CELL[0], made.rows), (CELL[1], made.columns)),
            cell_column=CELL[1],
            sample_shapes=((1, 1), (1, 3), (2, 6), (3, 9), (2, 11)),
            shape_parameters=frozenset({"n", "m"}),
        )

    assert status(grouped(0)) is Status.PROVED
    assert differs(grouped(1), {"n": 2, "m": 6})
    assert status(grouped(1)) is Status.UNKNOWN
