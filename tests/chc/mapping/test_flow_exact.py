"""Nothing wraps, is cut or left out on the way to a proof: counters, coordinates, decodes, extents, statements.

Each attack is a claim that does not hold, and has a twin beside it that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.program.multiples import with_multiples
from chc.mapping.prove import prove
from ila_lang import Expr, ExtentError, Kernel, bv, concat, const, ite, mem, true, var
from ila_lang.language.kernel import For, Let, Load, Store
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_flow import CELL, flow
from tests.chc.mapping.toy import DOMAIN, PARAMETERS, Body, M, N, Program, copy_body, differs, go, mapping

States = Mapping[str, Expr]
SMALL = (("1 <= n <= 16", (const(1, 16) <= N) & (N <= 16)), DOMAIN[1])


def proved(claim: TensorMapping) -> Verdict:
    return prove(claim, discharger=Discharger(timeout=5.0), horn_timeout=3.0)


# -- counters -----------------------------------------------------------------------------------------


def numbers(width: int | None = None, value: Callable[[Expr], Expr] = lambda i: i) -> Body:
    """dst[i, j] = value(i), with a counter of so many bits."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"], width) as i:
            wide = i.zext(32) if i.width < 32 else i
            with k.loop("j", s["m"]) as j:
                k.store(s["dst"], wide * s["m"] + j, value(wide)[7:0])

    return body


def sums(width: int | None = None, often: bool = False) -> Body:
    """dst[i, j] = sum over t < n of t, or of t modulo 16, whose counter may have fewer bits; perhaps m times."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(0, 8))
            with k.loop("again", s["m"] if often else const(1, 32)), k.loop("t", s["n"], width) as t:
                k.assign(acc, (acc << 1) + (t.zext(8) if t.width < 8 else t[3:0].zext(8)))
            k.store(s["dst"], i * s["m"] + j, acc)

    return body


NARROW: dict[str, tuple[Body, Body]] = {
    "a loop around writes": (numbers(width=4), numbers(value=lambda i: i & 15)),
    "the IR's loop": (numbers(value=lambda i: i & 15), numbers(width=4)),
    "a fold": (sums(4), sums()),
    "a fold of the IR": (sums(), sums(4)),
    "an inner loop of a fold": (sums(4, often=True), sums(often=True)),
}


@pytest.mark.parametrize("name", NARROW)
def test_a_loop_whose_counter_starts_over_is_not_proved(name: str) -> None:
    claim = flow(mapping(*NARROW[name]))
    with pytest.raises(ExtentError, match=r"^Extent 17 must fit the counter \w+ of "):
        differs(claim, {"n": 17, "m": 1})
    verdict = proved(claim)
    assert verdict.status is Status.UNKNOWN
    assert "is wide enough' (" in verdict.reason and "loop facts)" in verdict.reason


@pytest.mark.parametrize("name", NARROW)
def test_the_same_is_proved_where_the_counter_suffices(name: str) -> None:
    verdict = proved(flow(mapping(*NARROW[name], domain=SMALL)))
    assert verdict.status is Status.PROVED, verdict.reason
    assert [o.name for o in verdict.obligations if o.group.endswith("loop facts")]


def test_a_counter_suffices_where_its_loop_is_reached() -> None:
    def body(most: int) -> Body:
        def copy_and_count(k: Kernel, s: States) -> None:
            copy_body(k, s)
            with k.when("few", s["n"] <= most), k.loop("u", s["n"], width=4) as u:
                k.store(s["tmp"], u.zext(32), const(0, 8))

        return copy_and_count

    assert proved(flow(mapping(body(16), copy_body))).status is Status.PROVED
    assert proved(flow(mapping(body(17), copy_body))).status is Status.UNKNOWN


def test_a_loop_with_a_literal_extent_that_its_counter_cannot_count_is_refused() -> None:
    def body(k: Kernel, s: States) -> None:
        copy_body(k, s)
        with k.loop("u", const(5, 3), width=2) as u:
            k.store(s["tmp"], u.zext(32), const(0, 8))

    verdict = proved(flow(mapping(body)))
    assert (verdict.status, verdict.reason) == (
        Status.UNKNOWN,
        "loop u has more iterations than its 2 bits can count",
    )


# -- coordinates --------------------------------------------------------------------------------------


def quarters(domain: Expr, width: int = 32) -> TensorMapping:
    """Columns are copied in fours; the coordinates are the row, the number of four columns, and one of these."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("q", s["m"] >> 2) as q, k.loop("l", const(4, 3)) as lane:
            j = q * 4 + lane.zext(32)
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    row, four, lane = (var(f"cell_{x}", bv(32)) for x in ("row", "four", "lane"))
    return replace(
        mapping(device, domain=(*DOMAIN, ("of m", domain))),
        cell=((row, N.zext(32)), (four, (M >> 2).zext(width)), (lane, const(4, 32))),
        cell_column=four * 4 + lane,
        sample_shapes=((1, 4), (2, 8), (3, 12), (4, 4)),
        shape_parameters=frozenset({"n", "m"}),
    )


def test_sizes_at_which_there_are_no_coordinates_are_not_left_out() -> None:
    verdict = proved(quarters(M[1:0] == 0))
    assert verdict.status is Status.PROVED, verdict.reason
    false = quarters((M == 2) | (M[1:0] == 0))
    assert differs(false, {"n": 2, "m": 2})
    verdict = proved(false)
    assert verdict.status is Status.UNKNOWN
    assert "as many columns as coordinates" in verdict.reason


def test_an_output_without_elements_needs_no_coordinates() -> None:
    empty = (("n <= 255", N <= 255), DOMAIN[1])
    verdict = proved(flow(mapping(domain=empty)))
    assert verdict.status is Status.PROVED, verdict.reason


def test_the_extents_of_the_output_do_not_wrap() -> None:
    """n * n rows in 16 bits: the claim would be about no row at all where n is 256."""

    def squares(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"] * s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    def claim(most: int) -> TensorMapping:
        few = ((f"1 <= n <= {most}", (const(1, 16) <= N) & (const(most, 16) >= N)), DOMAIN[1])
        return flow(mapping(squares, squares, domain=few, rows=(N * N).zext(32)))

    assert proved(claim(15)).status is Status.PROVED
    verdict = proved(claim(300))
    assert verdict.status is Status.UNKNOWN and "may leave its 16 bits" in verdict.reason


def test_the_index_of_an_element_does_not_wrap() -> None:
    def fives(k: Kernel, s: States) -> None:
        with k.loop("i", const(2, 32)) as i, k.loop("j", s["m"] * s["m"]) as j:
            k.store(s["dst"], i * (s["m"] * s["m"]) + j, const(5, 8))

    def claim(most: int) -> TensorMapping:
        few = (DOMAIN[0], (f"1 <= m <= {most}", (const(1, 16) <= M) & (const(most, 16) >= M)))
        return flow(mapping(fives, fives, rows=const(2, 32), columns=M.zext(32) * M.zext(32), domain=few))

    assert proved(claim(40000)).status is Status.PROVED
    verdict = proved(claim(60000))
    assert verdict.status is Status.UNKNOWN and "may leave its 32 bits" in verdict.reason


def test_coordinates_have_32_bits() -> None:
    with pytest.raises(TypeError, match="Coordinate cell_four of toy and its extent must have 32 bits, not 32 and 48"):
        quarters(M[1:0] == 0, 48)


# -- decodes ------------------------------------------------------------------------------------------


def decoded(reserved_from: int) -> TensorMapping:
    """The command's size selects among three instructions, one of them reserved; n is at most 100."""
    claim = mapping(domain=(("1 <= n <= 100", (const(1, 16) <= N) & (N <= 100)), DOMAIN[1]))
    ila = claim.device.ila
    wanted = ila.inputs["run"] & (ila.inputs["op"] == 0)
    size = ila.inputs["n_in"]
    ila.instructions["go"].set_decode(wanted & (size <= 100))
    ila.instruction("refused").set_decode(wanted & (size >= reserved_from)).reserved = "too many rows"
    out = ila.states["out"]
    ila.instruction("third").set_decode(wanted & (size > 60000)).update(out, out + 1)
    return flow(claim)


def test_other_instructions_do_not_decode_the_command_reserved_ones_included() -> None:
    right = decoded(101)
    assert not differs(right, {"n": 3, "m": 2})
    assert proved(right).status is Status.PROVED
    wrong = decoded(1)
    with pytest.raises(Exception, match="go, refused"):
        differs(wrong, {"n": 3, "m": 2})
    verdict = proved(wrong)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.endswith("must select exactly one instruction for all sizes; candidates: go, refused")


# -- extents ------------------------------------------------------------------------------------------

X = var("x", bv(48))


def every_other(most: int) -> TensorMapping:
    """A copy of n words, up to so many, by every other one of 255 iterations, a number of 8 bits."""

    def device(k: Kernel, s: States) -> None:
        with k.loop("t", const(255, 8), width=32) as t, k.when("even", t[0] == 0):
            k.store(s["dst"], t >> 1, k.load("word", s["src"], t >> 1))

    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            k.store(s["dst"], i, k.load("word", s["src"], i))

    few = (f"1 <= n <= {most}", (const(1, 16) <= N) & (const(most, 16) >= N))
    return flow(mapping(device, ir, columns=const(1, 32), domain=(few, DOMAIN[1])))


def test_an_iteration_is_not_cut_to_the_bits_of_its_extent() -> None:
    assert proved(every_other(128)).status is Status.PROVED
    wrong = every_other(129)
    assert differs(wrong, {"n": 129, "m": 1})
    assert proved(wrong).status is Status.UNKNOWN


def cleared(begin: int) -> TensorMapping:
    """After the copy as many words are cleared as 8 bits can count."""

    def device(k: Kernel, s: States) -> None:
        copy_body(k, s)
        with k.loop("t", const(256, 9), width=8) as t:
            k.store(s["dst"], t.zext(32) + begin, const(0, 8))

    return flow(mapping(device))


def test_an_extent_is_not_cut_to_the_bits_of_its_counter() -> None:
    assert proved(cleared(255 * 255)).status is Status.PROVED
    wrong = cleared(200)
    assert differs(wrong, {"n": 20, "m": 20})
    assert proved(wrong).status is Status.UNKNOWN


def counted(more: int, longer: str) -> TensorMapping:
    """A fold of m iterations, a number of 8 bits, against one of perhaps more."""

    def side(extent: Callable[[Expr], Expr]) -> Body:
        def body(k: Kernel, s: States) -> None:
            acc = k.let("acc", const(0, 8))
            with k.loop("t", extent(s["m"])) as t:
                k.assign(acc, (acc << 1) + t[7:0])
            k.store(s["dst"], const(0, 32), acc)

        return body

    few, many = side(lambda m: m[7:0]), side(lambda m: m + more)
    sides = (many, few) if longer == "device" else (few, many)
    return flow(mapping(*sides, rows=const(1, 32), columns=const(1, 32)))


@pytest.mark.parametrize("longer", ["device", "ir"])
def test_extents_of_different_widths_are_compared_as_numbers(longer: str) -> None:
    assert proved(counted(0, longer)).status is Status.PROVED
    wrong = counted(256, longer)
    assert differs(wrong, {"n": 1, "m": 3})
    assert proved(wrong).status is Status.UNKNOWN


def wide_folds(ir_extent: Callable[[Expr], Expr]) -> TensorMapping:
    """The device counts to a size of 48 bits, up to 200; the IR to another one."""

    def body(extent: Expr) -> Program:
        def program(p: Kernel, s: States) -> None:
            acc = p.let("acc", const(0, 8))
            with p.loop("t", extent):
                p.assign(acc, ite(acc == 200, acc, acc + 1))
            with p.loop("i", N.zext(32)) as i, p.loop("j", M.zext(32)) as j:
                p.store(s[next(n for n in ("dst", "idst") if n in s)], i * M.zext(32) + j, acc)

        return program

    either = ("x = 3 or x = 2^40 + 3", (X == 3) | (X == (1 << 40) + 3))
    claim = mapping(
        None,
        copy_body,
        program=body(X),
        ir_program=body(ir_extent(X)),
        domain=(*DOMAIN, either),
        parameters={**PARAMETERS, "x": X},
    )
    return flow(replace(claim, sizes_of=lambda rows, columns: {"n": rows, "m": columns, "x": 3}))


def test_extents_are_not_cut() -> None:
    verdict = proved(wide_folds(lambda x: x[31:0]))
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, "loop t is counted with more than 32 bits")


# -- long runs of stores ------------------------------------------------------------------------------

MANY = 300


def many(change: int | None = None, *, at_once: bool = False) -> TensorMapping:
    """So many stores of the host, or of one command, that copy a row; one of them may be wrong."""

    def values(s: States) -> list[tuple[Expr, Expr]]:
        return [(const(k, 32), s["src"].load(const(k + (k == change), 32))) for k in range(MANY)]

    def program(p: Kernel, s: States) -> None:
        if at_once:
            p.command("move", run=true, op=const(9, 4))
        else:
            for address, value in values(s):
                p.store(s["dst"], address, value)

    claim = mapping(None, ir_row, program=program, rows=const(1, 32), columns=const(MANY, 32))
    if at_once:
        ila = claim.device.ila
        new = ila.states["dst"]
        for address, value in values({"src": ila.states["src"]}):
            new = new.store(address, value)
        ila.instruction("move").set_decode(ila.inputs["run"] & (ila.inputs["op"] == 9)).update(ila.states["dst"], new)
    return flow(claim)


def ir_row(k: Kernel, s: States) -> None:
    with k.loop("j", const(MANY, 32)) as j:
        k.store(s["dst"], j, k.load("word", s["src"], j))


@pytest.mark.parametrize("at_once", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_more_alike_stores_than_eight_bits_can_number(at_once: bool) -> None:
    verdict = proved(many(at_once=at_once))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("at_once", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_wrong_one_of_more_alike_stores_than_eight_bits_can_number_is_not_proved(at_once: bool) -> None:
    wrong = many(270, at_once=at_once)
    assert differs(wrong, {"n": 1, "m": 1})
    assert proved(wrong).status is Status.UNKNOWN


# -- statements ---------------------------------------------------------------------------------------


def overwritten(last: int) -> TensorMapping:
    """After the copy, commands in a loop write to dst; a block beside them is run by an outer, short loop's counter."""

    def program(p: Kernel, s: States) -> None:
        go(p)
        with p.loop("u", const(2, 8)) as u, p.loop("v", M) as v:
            with p.when("last", u == 1):
                p.store(s["tmp"], v.zext(32), const(1, 8))
            p.command("write", run=true, op=const(1, 4), address=v.zext(32) + last, data=const(99, 8))

    return flow(mapping(copy_body, program=program))


def test_commands_in_a_loop_that_is_written_out_late_are_not_dropped() -> None:
    claim = overwritten(0)
    assert differs(claim, {"n": 2, "m": 3})
    assert proved(claim).status is Status.UNKNOWN
    beyond = overwritten(255 * 255)
    assert not differs(beyond, {"n": 2, "m": 3})
    assert proved(beyond).status is Status.PROVED


@pytest.mark.parametrize("value,wanted", [(9, Status.PROVED), (5, Status.UNKNOWN)])
def test_a_loop_that_is_written_out_late_does_nothing_twice(value: int, wanted: Status) -> None:
    """Words 0 and 1 become 5, one after the other; word 1, which was 9, is read before."""
    word = [const(x, 32) for x in range(3)]

    def device(k: Kernel, s: States) -> None:
        k.store(s["tmp"], word[1], const(9, 8))
        with k.loop("u", const(2, 32)) as u:
            k.store(s["tmp"], u, const(5, 8))
            with k.when("first", u == 0):
                k.store(s["tmp"], word[2], k.load("next", s["tmp"], word[1]))
        constant(k.load("word", s["tmp"], word[2]))(k, s)

    def constant(of: Expr) -> Body:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, of)

        return body

    claim = flow(mapping(device, constant(const(value, 8))))
    assert differs(claim, {"n": 2, "m": 3}) is (wanted is Status.UNKNOWN)
    assert proved(claim).status is wanted


def pair(*, of: str) -> TensorMapping:
    """A sum over a row of some memory, written to two cells of dst by one command."""

    def program(p: Kernel, s: States) -> None:
        go(p)
        acc = p.let("acc", const(0, 8))
        with p.loop("t", M.zext(32)) as t:
            p.assign(acc, (acc << 1) + s[of].load(t))
        p.command("pair", run=true, op=const(9, 4), data=acc)

    def ir(k: Kernel, s: States) -> None:
        copy_body(k, s)
        acc = k.let("acc", const(0, 8))
        with k.loop("t", s["m"]) as t:
            k.assign(acc, (acc << 1) + k.load("w", s["dst"], t))
        k.store(s["dst"], const(0, 32), acc)
        with k.loop("t2", s["m"]) as t:
            k.assign(acc, (acc << 1) + k.load("w2", s["dst"], t))
        k.store(s["dst"], const(1, 32), acc)

    claim = mapping(copy_body, ir, program=program, domain=(DOMAIN[0], ("2 <= m", (const(2, 16) <= M) & (M <= 255))))
    ila = claim.device.ila
    dst, data = ila.states["dst"], ila.inputs["data"]
    both = dst.store(const(0, 32), data).store(const(1, 32), data)
    ila.instruction("pair").set_decode(ila.inputs["run"] & (ila.inputs["op"] == 9)).update(dst, both)
    return flow(claim)


def test_a_command_that_writes_what_its_sum_reads_writes_everything_at_once() -> None:
    claim = pair(of="dst")
    assert differs(claim, {"n": 1, "m": 3})
    assert proved(claim).status is Status.UNKNOWN


def tables(third: int) -> TensorMapping:
    """Rows are copied in fours, with two tables of bases by one counter: rows of n, and columns of 4*n."""

    def program(p: Kernel, s: States) -> None:
        def base(u: Expr, step: Expr, last: int) -> Expr:
            return ite(u == 0, const(0, 32), ite(u == 1, step, ite(u == 2, step + step, step + step + step * last)))

        with p.loop("u", const(4, 8)) as u, p.loop("v", M.zext(32)) as v:
            row, word = base(u, M.zext(32), 1), base(u, M.zext(32) + M.zext(32), third)
            p.store(s["dst"], row + v, s["src"].load(word + v))

    def ir(p: Kernel, s: States) -> None:
        with p.loop("i", const(4, 32)) as i, p.loop("j", s["m"]) as j:
            p.store(s["dst"], i * s["m"] + j, p.load("word", s["src"], i * 2 * s["m"] + j))

    return flow(mapping(None, ir, program=program, rows=const(4, 32)))


def test_two_tables_by_one_counter_are_both_of_multiples() -> None:
    right, wrong = tables(1), tables(2)
    assert not differs(right, {"n": 1, "m": 3}) and differs(wrong, {"n": 1, "m": 3})
    verdict = proved(right)
    assert verdict.status is Status.PROVED, verdict.reason
    assert proved(wrong).status is Status.UNKNOWN
    assert CELL[0].width == 32


def test_a_choice_between_data_is_no_table() -> None:
    u, requires = var("u", bv(8)), list[tuple[str, Expr]]()
    word = var("words", mem(8, 8)).load(const(3, 8))
    for choice in (ite(u == 0, const(0, 8), ite(u == 1, word, word + 1)), ite(u == 0, const(0, 16), M)):
        assert with_multiples(choice, {u: 4}, requires) is choice
    assert not requires


def test_rows_from_the_last_to_the_first() -> None:
    def reversed_rows(right: bool) -> Body:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                row = s["n"] - 1 - i
                word = k.load("word", s["src"], (row if right else i) * s["m"] + j)
                k.store(s["dst"], row * s["m"] + j, word)

        return body

    right, wrong = (flow(mapping(reversed_rows(r))) for r in (True, False))
    assert not differs(right, {"n": 3, "m": 2}) and differs(wrong, {"n": 3, "m": 2})
    verdict = proved(right)
    assert verdict.status is Status.PROVED, verdict.reason
    assert proved(wrong).status is not Status.PROVED


TILES: Mapping[str, Callable[[Expr, Expr, Expr], tuple[Expr, Expr]]] = {
    "": lambda t, r, tiles: ((tiles - 1 - t << 2) + r,) * 2,
    "reads tiles in order": lambda t, r, tiles: ((tiles - 1 - t << 2) + r, (t << 2) + r),
    "reads rows of a tile backwards": lambda t, r, tiles: ((tiles - 1 - t << 2) + r, (tiles - 1 - t << 2) + 3 - r),
    "writes the last tile twice": lambda t, r, tiles: ((ite(t == 0, tiles - 1, tiles - t) << 2) + r,) * 2,
    "tiles overlap": lambda t, r, tiles: ((tiles - 1 - t) * 3 + r,) * 2,
    "reads one tile further": lambda t, r, tiles: ((tiles - 1 - t << 2) + r, (tiles - t << 2) + r),
}


@pytest.mark.parametrize("fault", TILES)
def test_tiles_of_rows_from_the_last_to_the_first(fault: str) -> None:
    def body(k: Kernel, s: States) -> None:
        with k.loop("t", s["n"] >> 2) as t, k.loop("r", const(4, 32)) as r, k.loop("j", s["m"]) as j:
            to, of = TILES[fault](t, r, s["n"] >> 2)
            k.store(s["dst"], to * s["m"] + j, k.load("word", s["src"], of * s["m"] + j))

    claim = mapping(body, domain=(*DOMAIN, ("n mod 4 = 0", N[1:0] == 0)))
    claim = flow(replace(claim, sample_shapes=((4, 1), (8, 2))))
    assert any(differs(claim, {"n": n, "m": 2}) for n in (4, 8, 12)) is bool(fault)
    assert (proved(claim).status is Status.PROVED) is not bool(fault)


TURNED: Mapping[str, tuple[Callable[[Expr, Expr], Expr], Callable[[Expr, Expr], Expr]]] = {
    "": (lambda i, n: n - 1 - i, lambda i, n: n - 1 - i),
    "reads rows in order": (lambda i, n: n - 1 - i, lambda i, n: i),
    "writes the last row twice": (lambda i, n: ite(i == 0, n - 1, n - i), lambda i, n: ite(i == 0, n - 1, n - i)),
    "reads one row further": (lambda i, n: n - 1 - i, lambda i, n: n - i),
}


@pytest.mark.parametrize("fault", TURNED)
def test_sums_that_are_written_from_the_last_row_to_the_first(fault: str) -> None:
    """The writes of both sides are no pair in lock-step: each is written once by itself."""

    def sums(writes: Callable[[Expr, Expr], Expr], reads: Callable[[Expr, Expr], Expr]) -> Body:
        def body(k: Kernel, s: States) -> None:
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                acc = k.let("acc", const(0, 8))
                with k.loop("x", s["m"]) as x:
                    k.assign(acc, (acc << 1) + k.load("word", s["src"], reads(i, s["n"]) * s["m"] + x))
                k.store(s["dst"], writes(i, s["n"]) * s["m"] + j, acc)

        return body

    claim = mapping(sums(*TURNED[fault]), sums(lambda i, n: i, lambda i, n: i))
    assert differs(claim, {"n": 3, "m": 2}) == bool(fault)
    verdict = proved(flow(claim))
    assert (verdict.status is Status.PROVED) == (not fault), verdict.reason


def one_name(name: str) -> Body:
    """dst[i, j] = a fold over n elements src[x mod 16]; its counter may have the name of the storing loop's."""

    def body(k: Kernel, s: States) -> None:
        i, j, x, acc, word = (var(n, bv(w)) for n, w in (("i", 32), ("j", 32), (name, 32), ("acc", 8), ("word", 8)))
        fold = For(x, s["n"], (Load(word, s["src"], x[3:0].zext(32)), Let(acc, (acc << 1) + word, True)))
        store = For(j, s["m"], (Store(s["dst"], i * s["m"] + j, acc),))
        k.body.append(For(i, s["n"], (Let(acc, const(0, 8)), fold, store)))

    return body


def whole(k: Kernel, s: States) -> None:
    """The same of src[x]."""
    with k.loop("i", s["n"]) as i:
        acc = k.let("acc", const(0, 8))
        with k.loop("x", s["n"]) as x:
            k.assign(acc, (acc << 1) + k.load("word", s["src"], x))
        with k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, acc)


@pytest.mark.parametrize("name", ["x", "j"])
def test_a_counter_has_the_range_of_its_own_loop_whatever_others_are_called(name: str) -> None:
    """What holds of the storing loop's counter, which is below 16, says nothing about the fold's."""
    narrow = (DOMAIN[0], ("1 <= m <= 16", (const(1, 16) <= M) & (const(16, 16) >= M)))
    claim = flow(mapping(one_name(name), whole, domain=narrow))
    assert differs(claim, {"n": 20, "m": 2})
    assert proved(claim).status is Status.UNKNOWN
    verdict = proved(flow(mapping(one_name(name), whole, domain=(SMALL[0], narrow[1]))))
    assert verdict.status is Status.PROVED, verdict.reason


def test_an_extent_in_a_wide_word_is_tried_like_any_other() -> None:
    def body(k: Kernel, s: States) -> None:
        word = concat(s["m"], s["m"], s["n"]) & ~const(1 << 80, 96)
        with k.loop("i", word[31:0]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j))

    verdict = proved(flow(mapping(body, copy_body)))
    assert verdict.status is not Status.ERROR, verdict.reason
