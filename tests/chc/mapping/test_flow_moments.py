"""A fold has one moment, its registers one value, and a counter is replaced once.

Each attack is a claim that does not hold, and has a twin beside it that does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from chc.mapping.memory.contexts import Context
from chc.mapping.program.schedule import schedule_of
from chc.mapping.proof import Proof
from chc.mapping.prove import prove
from chc.mapping.sampling.samples import Samples
from ila_lang import BOOL, Expr, Fragment, Ila, Kernel, bv, const, ite, mem, primitive, true, var
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status, Unsupported
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_flow import flow
from tests.chc.mapping.toy import PARAMETERS, Body, M, N, differs, mapping, with_tables

States = Mapping[str, Expr]
ZERO = const(0, 32)
SIZES = ({"n": 1, "m": 1}, {"n": 2, "m": 3}, {"n": 1, "m": 8})


def status(claim: TensorMapping) -> Status:
    return prove(flow(claim), discharger=Discharger(timeout=5.0), horn_timeout=3.0).status


def total(k: Kernel, s: States, address: Callable[[Expr], Expr], memory: str = "src", start: int | Expr = 0) -> Expr:
    """A register with the sum of a row of m words, from ``start`` on."""
    acc = k.let("acc", const(start, 8) if isinstance(start, int) else start)
    with k.loop("t", s["m"]) as t:
        k.assign(acc, acc + k.load("x", s[memory], address(t)))
    return acc


def everywhere(k: Kernel, s: States, value: Callable[[Expr], Expr]) -> None:
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        k.store(s["dst"], i * s["m"] + j, value(j))


def nothing(k: Kernel, s: States) -> None:
    """dst := 0."""
    everywhere(k, s, lambda j: const(0, 8))


# -- registers of a loop around a fold ------------------------------------------------------------------


def differences(step: int) -> Body:
    """Two sums, which begin with 0 and with ``step``, combined so that equal ones cancel."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            both, start = k.let("both", const(0, 8)), k.let("start", const(0, 8))
            with k.loop("twice", const(2, 32)):
                k.assign(both, both ^ total(k, s, lambda u: u, start=start))
                k.assign(start, start + step)
            k.store(s["dst"], i * s["m"] + j, both)

    return body


def test_a_fold_is_another_one_for_each_value_of_the_registers_it_depends_on() -> None:
    assert differs(mapping(differences(1), nothing), {"n": 1, "m": 1})
    assert status(mapping(differences(1), nothing)) is not Status.PROVED
    assert status(mapping(differences(0), nothing)) is Status.PROVED


def joined(step: int) -> Body:
    """A loop whose inner one goes on from its registers, and takes one of them as it was before: y, less y."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc, p = k.let("acc", const(0, 8)), k.let("p", const(0, 8))
            with k.loop("t", const(2, 32)) as t:
                k.store(s["tmp"], t, k.load("z", s["src"], t))
                y = k.let("y", p)
                with k.loop("u", const(2, 32)) as u:
                    k.load("w", s["src"], u)
                    k.assign(acc, ite(t == 0, y, ite(u == 0, acc - y, acc)))
                    k.assign(p, p + step)
            k.store(s["dst"], i * s["m"] + j, acc)

    return body


def test_loops_are_no_single_one_where_the_inner_takes_what_the_outer_had() -> None:
    assert differs(mapping(joined(1), nothing), {"n": 1, "m": 1})
    assert status(mapping(joined(1), nothing)) is Status.UNKNOWN
    assert not differs(mapping(joined(0), nothing), {"n": 2, "m": 3})


# -- a fold's own place -----------------------------------------------------------------------------------


def indirect(k: Kernel, s: States) -> None:
    """The sum is over src[0..m], where a word of memory says; the word changes after the sum."""
    k.store(s["tmp"], ZERO, const(0, 8))
    acc = total(k, s, lambda t: s["tmp"].load(ZERO).zext(32) + t)
    with k.when("c", ~(s["n"] == 0)):
        k.store(s["tmp"], ZERO, const(1, 8))
    everywhere(k, s, lambda j: acc)


def copied(k: Kernel, s: States) -> None:
    """The sum is over a copy of src[0..m]; the copy changes after the sum, by a condition from memory."""
    k.store(s["dst"], ZERO, const(0, 8))
    with k.loop("t0", s["m"]) as t:
        k.store(s["tmp"], t, k.load("x0", s["src"], t))
    acc = total(k, s, lambda t: t, "tmp")
    flag = k.load("flag", s["dst"], ZERO)
    with k.when("c", flag == 0), k.loop("u", s["m"]) as u:
        k.store(s["tmp"], u, k.load("x2", s["src"], u + 1))
    everywhere(k, s, lambda j: acc)


def sum_from(start: int) -> Body:
    def body(k: Kernel, s: States) -> None:
        acc = total(k, s, lambda t: t + start)
        everywhere(k, s, lambda j: acc)

    return body


@pytest.mark.parametrize("device", [indirect, copied])
def test_a_sum_is_over_what_stood_there_when_it_was_computed(device: Body) -> None:
    assert differs(mapping(device, sum_from(1)), {"n": 2, "m": 3})
    assert status(mapping(device, sum_from(1))) is not Status.PROVED
    assert not any(differs(mapping(device, sum_from(0)), sizes) for sizes in SIZES)
    assert status(mapping(device, sum_from(0))) is Status.PROVED


@pytest.mark.parametrize("value,wanted", [(None, Status.PROVED), (7, Status.UNKNOWN)])
def test_a_word_is_read_between_stores_that_are_alike(value: int | None, wanted: Status) -> None:
    """Three words become 7, one after the other; the last one is read after the first store."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("t", const(3, 32)) as t:
            k.store(s["tmp"], t, k.load("x", s["src"], t))
        k.store(s["tmp"], ZERO, const(7, 8))
        word = k.load("word", s["tmp"], ZERO + 2)
        k.store(s["tmp"], ZERO + 1, const(7, 8))
        k.store(s["tmp"], ZERO + 2, const(7, 8))
        everywhere(k, s, lambda j: word)

    def ir(k: Kernel, s: States) -> None:
        everywhere(k, s, lambda j: s["src"].load(ZERO + 2) if value is None else const(value, 8))

    assert differs(mapping(body, ir), {"n": 2, "m": 3}) is (value is not None)
    assert status(mapping(body, ir)) is wanted


def added(*, late: bool) -> Body:
    """To dst[i, j] a sum over tmp is added again and again; tmp is overwritten before the sum, or after it."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("t0", s["m"]) as t:
            k.store(s["tmp"], t, k.load("x0", s["src"], t))
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            k.store(s["dst"], i * s["m"] + j, const(0, 8))
            with k.loop("again", s["m"]):
                if not late:
                    k.store(s["tmp"], ZERO, const(1, 8))
                acc = total(k, s, lambda t: t, "tmp")
                if late:
                    k.store(s["tmp"], ZERO, const(1, 8))
                k.store(s["dst"], i * s["m"] + j, s["dst"].load(i * s["m"] + j) + acc)

    return body


def test_a_sum_that_is_added_to_a_cell_is_the_one_from_before_the_change() -> None:
    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(0, 8))
            with k.loop("again", s["m"]), k.loop("t", s["m"]) as t:
                k.assign(acc, acc + ite(t == 0, const(1, 8), s["src"].load(t)))
            k.store(s["dst"], i * s["m"] + j, acc)

    assert differs(mapping(added(late=True), ir), {"n": 2, "m": 3})
    assert status(mapping(added(late=True), ir)) is not Status.PROVED


def started(late: int | None) -> Body:
    """A sum that begins with tmp[0], less tmp[0], is added to dst[i, j]; the word is overwritten in between, or not."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            cell = i * s["m"] + j
            k.store(s["dst"], cell, const(0, 8))
            with k.loop("again", s["m"]):
                k.store(s["tmp"], ZERO, const(5, 8))
                acc = total(k, s, lambda u: u, start=s["tmp"].load(ZERO))
                if late is not None:
                    k.store(s["tmp"], ZERO, const(late, 8))
                k.store(s["dst"], cell, s["dst"].load(cell) + (acc - s["tmp"].load(ZERO)))

    return body


def test_a_sum_that_is_added_to_a_cell_begins_with_what_stood_there() -> None:
    def ir(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            acc = k.let("acc", const(0, 8))
            with k.loop("again", s["m"]), k.loop("t", s["m"]) as t:
                k.assign(acc, acc + s["src"].load(t))
            k.store(s["dst"], i * s["m"] + j, acc)

    assert differs(mapping(started(1), ir), {"n": 2, "m": 3})
    assert status(mapping(started(1), ir)) is not Status.PROVED
    assert status(mapping(started(None), ir)) is Status.PROVED


# -- counters and coordinates -----------------------------------------------------------------------------


def half(k: Kernel, s: States) -> None:
    """dst[i, j] := src[t2[j]], where t2[b] = t1[b / 2], t1[b] = t0[b] and t0[b] = b."""
    with k.loop("b", s["m"]) as b:
        k.store(s["t0"], b, b[7:0])
        k.store(s["t1"], b, k.load("x", s["t0"], b))
        k.store(s["t2"], b, k.load("y", s["t1"], b >> 1))
    everywhere(k, s, lambda j: s["src"].load(s["t2"].load(j).zext(32)))


@pytest.mark.parametrize(("shift", "right"), [(1, True), (2, False), (3, False)])
def test_a_word_behind_a_word_is_that_of_its_own_iteration(shift: int, right: bool) -> None:
    claim = with_tables(mapping(ir=lambda k, s: everywhere(k, s, lambda j: s["src"].load(j >> shift))), half)
    assert any(differs(claim, sizes) for sizes in SIZES) is not right
    assert (status(claim) is Status.PROVED) is right


# -- values that are kept -----------------------------------------------------------------------------------


def kept_addresses(entry: Callable[[Expr], Expr]) -> Body:
    """src[entry(0)] ^ src[entry(1)], where a word of memory holds the entry for a moment."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
            both = k.let("both", const(0, 8))
            with k.loop("twice", const(2, 32)) as q:
                k.store(s["tmp"], ZERO, entry(q)[7:0])
                word = k.load("word", s["tmp"], ZERO)
                k.store(s["tmp"], ZERO, const(7, 8))
                k.assign(both, both ^ k.load("read", s["src"], word.zext(32)))
            k.store(s["dst"], i * s["m"] + j, both)

    return body


def test_an_address_that_was_kept_is_that_of_its_own_iteration() -> None:
    assert differs(mapping(kept_addresses(lambda q: q), nothing), {"n": 1, "m": 1})
    assert status(mapping(kept_addresses(lambda q: q), nothing)) is Status.UNKNOWN
    assert not differs(mapping(kept_addresses(lambda q: q * 0), nothing), {"n": 2, "m": 3})


def addresses(k: Kernel, s: States) -> None:
    """src[0] ^ src[1], at addresses that a register of the loop counts."""
    with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
        both, pointer = k.let("both", const(0, 8)), k.let("pointer", ZERO)
        with k.loop("twice", const(2, 32)):
            k.assign(both, both ^ k.load("read", s["src"], pointer))
            k.assign(pointer, pointer + 1)
        k.store(s["dst"], i * s["m"] + j, both)


def test_an_address_that_a_register_counts_is_another_one_in_each_iteration() -> None:
    assert differs(mapping(addresses, nothing), {"n": 1, "m": 1})
    assert status(mapping(addresses, nothing)) is Status.UNKNOWN


# -- state that commands change ---------------------------------------------------------------------------


def put_and_set(later: int) -> TensorMapping:
    """A host loop puts a register, 0 at first and ``later`` then, into words of tmp; the first two are combined."""

    def side(name: str, prefix: str, *, puts: bool) -> Fragment:
        ila = Ila(name)
        run, op = ila.input("run", BOOL), ila.input("op", 4)
        address, data = ila.input("a", 32), ila.input("d", 8)
        src, dst, tmp = (ila.state(prefix + x, mem(32, 8)) for x in ("src", "dst", "tmp"))
        x = ila.state(f"{prefix}x", bv(8))
        out = tmp.load(ZERO) ^ tmp.load(const(1, 32)) if puts else const(0, 8)
        for code, state, value in ((0, x, data), (1, tmp, tmp.store(address, x)), (2, dst, dst.store(address, out))):
            ila.instruction(f"op{code}").set_decode(run & (op == code)).update(state, value)
        ila.set_valid(run)
        program = Kernel(f"{name}_program")
        if puts:
            program.command("set", run=true, op=const(0, 4), d=const(0, 8))
            with program.loop("t", N.zext(32) + 1) as t:
                program.command("put", run=true, op=const(1, 4), a=t)
                program.command("set", run=true, op=const(0, 4), d=const(later, 8))
        with program.loop("i", N.zext(32)) as i, program.loop("j", M.zext(32)) as j:
            program.command("out", run=true, op=const(2, 4), a=i * M.zext(32) + j)
        assert src.sort == tmp.sort
        return Fragment(f"{name}_fragment", ila, dict(PARAMETERS), {}, program)

    return replace(mapping(), device=side("toy", "", puts=True), ir=side("toyir", "i", puts=False))


def test_state_that_is_not_followed_is_another_one_in_each_iteration() -> None:
    assert differs(put_and_set(5), {"n": 1, "m": 1})
    assert status(put_and_set(5)) is Status.UNKNOWN
    assert not differs(put_and_set(0), {"n": 2, "m": 3})


def test_values_belong_to_the_outermost_place_where_all_that_they_depend_on_has_one_value() -> None:
    claim = mapping()
    proof, samples = Proof(claim, Discharger(), 1.0, None), Samples((), (), ())
    row, i, j, one, two, anything = (var(name, bv(32)) for name in ("row", "i", "j", "one", "two", "anything"))
    cell = Context(proof, proof.base, ((row, N.zext(32)),), samples)
    middle = replace(cell, ranges=(*cell.ranges, (i, M.zext(32))), outer=cell)
    inside = replace(cell, ranges=(*middle.ranges, (j, i)), outer=middle)
    apart = replace(cell)
    symbols = {one: cell, two: middle, row: inside}
    assert inside.smallest([N.zext(32) + 1, row + one], symbols) is cell
    assert inside.smallest([i + row], symbols) is inside.smallest([two], symbols) is middle
    assert inside.smallest([one, two ^ j], symbols) is inside
    assert inside.smallest([], symbols) is cell
    for context, stray in ((inside, anything), (cell, two), (cell, i), (apart, one)):
        message = f"^the result depends on {stray.name}, which has no value here$"
        with pytest.raises(Unsupported, match=message):
            context.smallest([row, stray + 1], symbols)


def within(change: int, goes_on: bool) -> Body:
    """A sum over a row in each iteration of a fold; it depends on the outer register, or begins with it."""

    def body(k: Kernel, s: States) -> None:
        with k.loop("r", s["n"]) as r:
            acc = k.let("acc", const(0, 8))
            with k.loop("i", s["m"]) as i:
                own = k.let("own", acc * 3 + k.load("v", s["src"], r * s["m"] + i) if goes_on else const(0, 8))
                with k.loop("j", s["m"]) as j:
                    k.assign(own, own + ((k.load("w", s["src"], r * s["m"] + j) + change) ^ acc))
                k.assign(acc, own)
            with k.loop("c", s["m"]) as c:
                k.store(s["dst"], r * s["m"] + c, acc)

    return body


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_fold_inside_a_fold_belongs_to_one_iteration_of_it(goes_on: bool) -> None:
    assert status(mapping(within(0, goes_on), within(0, goes_on))) is Status.PROVED
    wrong = mapping(within(0, goes_on), within(1, goes_on))
    assert differs(wrong, {"n": 1, "m": 2})
    assert status(wrong) is Status.UNKNOWN


# -- conditions and extents ------------------------------------------------------------------------------


def guarded(value: int) -> Body:
    """dst := 0, then ``value`` by a block whose condition the block itself makes false."""

    def body(k: Kernel, s: States) -> None:
        k.store(s["tmp"], ZERO, const(0, 8))
        nothing(k, s)
        with k.when("c", k.load("flag", s["tmp"], ZERO) == 0):
            k.store(s["tmp"], ZERO, const(1, 8))
            with k.loop("v", s["n"]) as v, k.loop("w", s["m"]) as w:
                k.store(s["dst"], v * s["m"] + w, const(value, 8))

    return body


def counted(value: int) -> Body:
    """dst := 0, then ``value`` by a loop whose extent the loop itself makes 0."""

    def body(k: Kernel, s: States) -> None:
        k.store(s["tmp"], ZERO, const(200, 8))
        nothing(k, s)
        with k.loop("v", k.load("rows", s["tmp"], ZERO).zext(32)) as v:
            k.store(s["tmp"], ZERO, const(0, 8))
            k.store(s["dst"], v, const(value, 8))

    return body


@pytest.mark.parametrize("device", [guarded, counted])
def test_conditions_and_extents_are_what_they_were_before_the_body_writes(device: Callable[[int], Body]) -> None:
    claim = mapping(device(5), nothing)
    assert differs(claim, {"n": 1, "m": 1})
    assert status(claim) is not Status.PROVED
    assert not differs(mapping(device(0), nothing), {"n": 2, "m": 3})
    schedule = schedule_of(claim.device)
    assert not any(schedule.sources(w.guard, *(e for _, e in w.loops)) for w in schedule.writes)


def nested(extent: Callable[[Kernel, States, Expr], Expr]) -> Body:
    """Sums up the first words of src, in each row as many as ``extent`` says; tmp[0] is the row's number."""

    def body(k: Kernel, s: States) -> None:
        acc = k.let("acc", const(0, 8))
        with k.loop("i", s["n"]) as i:
            k.store(s["tmp"], ZERO, i[7:0])
            with k.loop("j", extent(k, s, i)) as j:
                k.assign(acc, acc + k.load("word", s["src"], j))
        k.store(s["dst"], ZERO, acc)

    return body


def counted_up(k: Kernel, _: States, i: Expr) -> Expr:
    """i, by a loop."""
    count = k.let("count", ZERO)
    with k.loop("q", i):
        k.assign(count, count + 1)
    return count


def read_before(k: Kernel, s: States, _: Expr) -> Expr:
    """What tmp[0] is before it is written again."""
    word = k.load("rows", s["tmp"], ZERO)
    k.store(s["tmp"], ZERO, const(9, 8))
    return word.zext(32)


@pytest.mark.parametrize(
    ("extent", "loops"),
    [
        (lambda k, s, i: s["m"], ["i", "j"]),
        (lambda k, s, i: i + 1, ["i"]),
        (lambda k, s, i: s["tmp"].load(ZERO).zext(32), ["i"]),
        (read_before, ["i"]),
        (counted_up, ["i"]),
    ],
)
def test_loops_are_one_fold_where_the_inner_one_always_runs_equally_often(
    extent: Callable[[Kernel, States, Expr], Expr], loops: list[str]
) -> None:
    schedule = schedule_of(mapping(nested(extent)).device)
    assert [c.name for c, _ in list(schedule.folds.values())[-1].loops] == loops


@pytest.mark.parametrize(
    ("address", "value", "rolled"),
    [
        (lambda s, k: ZERO + k, lambda s, k: const(k + 1, 8), True),
        (lambda s, k: s["src"].load(ZERO).zext(32) + k, lambda s, k: const(k + 1, 8), True),
        (lambda s, k: s["tmp"].load(ZERO).zext(32) + k, lambda s, k: const(k + 1, 8), False),
        (lambda s, k: ZERO + k, lambda s, k: s["tmp"].load(ZERO + k + 1), False),
    ],
)
def test_stores_become_a_loop_where_none_reads_what_they_write(
    address: Callable[[States, int], Expr], value: Callable[[States, int], Expr], rolled: bool
) -> None:
    def body(kernel: Kernel, s: States) -> None:
        for k in range(4):
            kernel.store(s["tmp"], address(s, k), value(s, k))

    writes = schedule_of(mapping(body).device).writes
    assert [len(w.loops) for w in writes] == ([1] if rolled else [0] * 4)


# -- memories inside terms --------------------------------------------------------------------------------


def late(word: Callable[[States], Expr]) -> Body:
    """tmp[0] is 3, ``word`` of it is taken, tmp[0] becomes 7; dst := word."""

    def body(k: Kernel, s: States) -> None:
        k.store(s["tmp"], ZERO, const(3, 8))
        x = k.let("x", word(s))
        k.store(s["tmp"], ZERO, const(7, 8))
        everywhere(k, s, lambda j: x)

    return body


def values(word: int) -> Body:
    return lambda k, s: everywhere(k, s, lambda j: const(word, 8))


def other(s: States) -> Expr:
    """The address 1, which the domain decides."""
    return ite(s["n"] >= 1, const(1, 32), ZERO)


@pytest.mark.parametrize(
    "word",
    [
        lambda s: s["tmp"].store(other(s), const(5, 8)).load(ZERO),
        lambda s: ite(s["n"] >= 1, s["tmp"], s["src"]).load(ZERO),
        lambda s: ite(
            s["n"] >= 1, s["tmp"].store(other(s), s["src"].store(ZERO, const(9, 8)).load(ZERO)), s["src"]
        ).load(ZERO),
    ],
    ids=["written to", "chosen", "both"],
)
def test_a_word_of_a_memory_that_a_term_makes_is_read_in_its_moment(word: Callable[[States], Expr]) -> None:
    assert differs(mapping(late(word), values(7)), {"n": 1, "m": 1})
    assert status(mapping(late(word), values(7))) is not Status.PROVED
    assert status(mapping(late(word), values(3))) is Status.PROVED


FIRST = primitive(bv(8), memory=mem(32, 8), name="first")(lambda memory: memory.load(ZERO))


def test_a_function_of_a_whole_memory_is_refused() -> None:
    for right in (3, 7):
        claim = flow(mapping(late(lambda s: FIRST(s["tmp"])), values(right)))
        verdict = prove(claim, discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
        assert verdict.status is Status.UNKNOWN and "takes a whole memory" in verdict.reason


# -- how much there is to look at -----------------------------------------------------------------------


def fibonacci(k: Kernel, s: States) -> None:
    """Each of 32 kept values stands for two earlier ones; dst := 0."""
    x, y = k.let("x", const(0, 8)), k.let("y", const(1, 8))
    with k.loop("q", const(32, 32)) as q:
        z = k.let("z", x + y + s["tmp"].load(q))
        k.assign(x, y)
        k.assign(y, z)
        k.store(s["tmp"], q, y)
    nothing(k, s)


def doubled(k: Kernel, s: States) -> None:
    """A term with 2^40 paths is taken apart, as it depends on a register, and reads what is written next; dst := 0."""
    acc = k.let("acc", const(0, 8))
    with k.loop("t", s["m"]) as t:
        y = acc + s["tmp"].load(t)
        for _ in range(40):
            y = y + (y ^ 1)
        k.store(s["tmp"], t, const(0, 8))
        k.assign(acc, y)
    nothing(k, s)


@pytest.mark.parametrize("body", [fibonacci, doubled])
def test_what_stands_at_many_places_is_looked_at_once(body: Body) -> None:
    assert status(mapping(body, body)) is Status.PROVED


# -- what memories say --------------------------------------------------------------------------------------


def as_often(k: Kernel, s: States) -> None:
    """A register counts how often a loop runs, as a memory says."""
    k.store(s["tmp"], ZERO, const(2, 8))
    acc = k.let("acc", const(0, 8))
    with k.loop("u", s["tmp"].load(ZERO).zext(32)):
        k.assign(acc, acc + 1)
    everywhere(k, s, lambda j: acc)


def test_a_fold_that_runs_as_often_as_a_memory_says_is_unknown() -> None:
    assert status(mapping(as_often, values(2))) is Status.UNKNOWN
    assert status(mapping(as_often, values(3))) is Status.UNKNOWN


@pytest.mark.parametrize("right", [3, 7])
def test_so_is_one_in_a_kernel_of_the_name_of_another_one(right: int) -> None:
    claim = flow(mapping(late(lambda s: FIRST(s["tmp"])), values(right)))
    ila = claim.device.ila
    ila.instruction("no").set_decode(ila.inputs["op"] == 15).start(Kernel(f"{ila.name}_kernel"))
    verdict = prove(claim, discharger=Discharger(timeout=5.0, second=False), horn_timeout=3.0)
    assert verdict.status is Status.UNKNOWN and "takes a whole memory" in verdict.reason
