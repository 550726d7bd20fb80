"""Products that are peeled off a sum which may have no others: proved for every size, and their faults are not.

The IR multiplies a matrix of n rows and m columns with a vector; the device adds up one column after the other.  Each
fault differs from the right program in one place, and concrete runs show that it is wrong; some do with one product
alone, or with none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest

from chc.mapping.prove import prove
from ila_lang import Expr, Kernel, const, false, ite, resize, true
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.chc.mapping.test_scatter_add import NOTHING, ONE, claim, clear, multiply, status
from tests.chc.mapping.toy import M, N, differs
from tests.marks import slow_but

States = Mapping[str, Expr]
NOTHING_TIMES = "0 times something"
Pattern = Callable[[str, Kernel, States], None]


def product(k: Kernel, s: States) -> None:
    """dst[i] = sum over p < m of src[i, p] * tmp[p]."""
    with k.loop("i", s["n"]) as i:
        acc = k.let("acc", NOTHING)
        with k.loop("p", s["m"]) as p:
            left = k.load("left", s["src"], i * s["m"] + p)
            k.assign(acc, acc + multiply(left, k.load("right", s["tmp"], p)))
        k.store(s["dst"], i, acc)


def column(k: Kernel, s: States, p: Expr, *, over: bool = False, rows: Expr | None = None, name: str = "") -> None:
    """Adds one product to each sum, or overwrites it with that."""
    with k.loop(f"i{name}", s["n"] if rows is None else rows) as i:
        left = k.load(f"left{name}", s["src"], i * s["m"] + p)
        value = multiply(left, k.load(f"right{name}", s["tmp"], p))
        k.store(s["dst"], i, value if over else k.load(f"old{name}", s["dst"], i) + value)


def first(fault: str, k: Kernel, s: States) -> None:
    """The first product overwrites, the others add."""
    n, m, zero = s["n"], s["m"], const(0, 32)
    if fault == "cleared instead if there is one":
        with k.when("others", ~(m == 1)):
            column(k, s, zero, over=True, name="0")
        with k.when("alone", m == 1):
            clear(k, s, n)
    else:
        begin = {
            "the second one, where there is one": ite(m == 1, zero, ONE),
            "the last one": m - 1,
        }.get(fault, zero)
        rows = {"in all rows but the last": n - 1}.get(fault)
        column(k, s, begin, over=fault != "adds to what was there", rows=rows, name="0")
    if fault == "twice if there is one":
        with k.when("again", m == 1):
            column(k, s, zero, name="2")
    rest = {"one more": m, "one less": ite(m == 1, zero, m - 2)}.get(fault, m - 1)
    with k.loop("p", rest) as p:
        column(k, s, p if fault == "the one before" else p + 1, over=fault == "all overwrite")


def first_or_none(fault: str, k: Kernel, s: States) -> None:
    """The same where there may be no products, of which the sum is 0."""
    m = s["m"]
    with k.when("none", {"not cleared": false, "cleared if there is one": m == 1}.get(fault, m == 0)):
        clear(k, s, s["n"])
    with k.when("some", {"always": true, "from two on": const(2, 32) <= m}.get(fault, ~(m == 0))):
        column(k, s, const(0, 32), over=True, name="0")
    with k.loop("p", m if fault == "one more" else ite(m == 0, m, m - 1)) as p:
        column(k, s, p + 1)


def first_two(fault: str, k: Kernel, s: States) -> None:
    """The first product overwrites, the second one has a statement of its own."""
    m = s["m"]
    column(k, s, const(0, 32), over=True, name="0")
    with k.when("second", {"always": true, "from three on": const(3, 32) <= m}.get(fault, const(2, 32) <= m)):
        column(k, s, const(0 if fault == "the first one again" else 1, 32), over=fault == "overwrites", name="1")
    others = m - 1 if fault == "one more" else m - 2
    with k.loop("p", ite(m == 1, const(0, 32), others)) as p:
        column(k, s, p + 2)


def last(fault: str, k: Kernel, s: States) -> None:
    """All but the last product in a loop, the last one after it."""
    m, zero = s["m"], const(0, 32)
    if fault != "not cleared":
        clear(k, s, s["n"] - 1 if fault == "the last is not cleared" else s["n"])
    with k.loop("p", m if fault == "one more" else m - 1) as p:
        column(k, s, p)
    with k.when("last", {"not if it is alone": ~(m == 1), "only if it is alone": m == 1}.get(fault, true)):
        column(k, s, zero if fault == "the first one" else m - 1, name="1")


def nothing(fault: str, k: Kernel, s: States) -> None:
    """Each sum begins with the product of 0 and an element that happens to be there."""
    n, m = s["n"], s["m"]
    with k.loop("z", n - 1 if fault == "in all rows but the last" else n) as i:
        word = k.load("word", s["src"], i * m + m - 1)
        factor = {"times 1": const(1, 8), "times its number": resize(i, 8)}.get(fault, const(0, 8))
        begin = multiply(factor, word)
        k.store(s["dst"], i, begin + word if fault == "and the element itself" else begin)
    with k.loop("p", {"one more": m + 1, "one less": m - 1}.get(fault, m)) as p:
        column(k, s, p, over=fault == "all overwrite")


PATTERNS: dict[str, tuple[Pattern, int, tuple[str, ...]]] = {
    "the first one": (
        first,
        1,
        (
            "cleared instead if there is one",
            "twice if there is one",
            "the second one, where there is one",
            "the last one",
            "in all rows but the last",
            "adds to what was there",
            "one more",
            "one less",
            "the one before",
            "all overwrite",
        ),
    ),
    "the first one, if there is one": (
        first_or_none,
        0,
        ("not cleared", "cleared if there is one", "always", "from two on", "one more"),
    ),
    "the first two": (
        first_two,
        1,
        ("always", "from three on", "the first one again", "overwrites", "one more"),
    ),
    NOTHING_TIMES: (
        nothing,
        1,
        (
            "times 1",
            "times its number",
            "and the element itself",
            "in all rows but the last",
            "one more",
            "one less",
            "all overwrite",
        ),
    ),
    "the last one": (
        last,
        1,
        (
            "not cleared",
            "the last is not cleared",
            "one more",
            "not if it is alone",
            "only if it is alone",
            "the first one",
        ),
    ),
}


def of(name: str, fault: str = "") -> TensorMapping:
    pattern, least, _ = PATTERNS[name]
    made = claim(partial(pattern, fault), product, N.zext(32), least=least)
    return replace(made, abstract=frozenset()) if name == NOTHING_TIMES else made


SIZES = [{"n": n, "m": m} for n, m in ((1, 0), (1, 1), (3, 1), (2, 2), (2, 3), (3, 5))]


@pytest.mark.parametrize("name", slow_but({"the first one"}, PATTERNS))
def test_peeled_products_are_proved_for_every_size(name: str) -> None:
    made = of(name)
    assert not any(differs(made, at, 4) for at in SIZES if made.holds(at))
    assert status(made) is Status.PROVED


CASES = [(name, fault) for name, (_, _, faults) in PATTERNS.items() for fault in faults]


@pytest.mark.parametrize(
    ("name", "fault"), [c if k < 2 else pytest.param(*c, marks=pytest.mark.slow) for k, c in enumerate(CASES)]
)
def test_a_fault_of_a_peeled_product_is_not_proved(name: str, fault: str) -> None:
    wrong = of(name, fault)
    assert any(differs(wrong, at) for at in SIZES if wrong.holds(at))
    assert status(wrong) is not Status.PROVED


def two_sums(k: Kernel, s: States, *, backwards: bool, first: str = "") -> None:
    """The sum of a row of src and one of tmp; ``first`` is added beside its loop, which goes backwards."""
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i:
        a, b = k.let("a", NOTHING), k.let("b", NOTHING)
        with k.loop("j", m) as j:
            k.assign(a, a + k.load("x", s["src"], i * m + (m - 1 - j if backwards else j)))
        with k.loop("j2", m - 1 if first else m) as j:
            k.assign(b, b + k.load("y", s["tmp"], i * m + (m - 1 - j if backwards else j)))
        k.store(s["dst"], i, a + b + k.load(first, s["tmp"], i * m) if first else a + b)


def folds_of_one(k: Kernel, s: States) -> None:
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i:
        a, b = k.let("a", NOTHING), k.let("b", NOTHING)
        with k.loop("j", m) as j:
            k.assign(a, multiply(a, k.load("x", s["src"], i * m + j)))
        with k.loop("j2", m) as j:
            k.assign(b, multiply(k.load("y", s["tmp"], i * m + j), b))
        k.store(s["dst"], i, a ^ b)


def products_of_one(k: Kernel, s: States) -> None:
    n, m = s["n"], s["m"]
    with k.loop("i", n) as i:
        one = multiply(NOTHING, k.load("x", s["src"], i * m))
        k.store(s["dst"], i, one ^ multiply(k.load("y", s["tmp"], i * m), NOTHING))


@pytest.mark.parametrize("way", ["sums and what stands beside them", "two folds are written out"])
def test_each_obligation_has_a_name_of_its_own(way: str) -> None:
    if way.startswith("sums"):
        backwards = partial(two_sums, backwards=True, first="first")
        made = claim(backwards, partial(two_sums, backwards=False), N.zext(32), ONE)
    else:
        made = claim(products_of_one, folds_of_one, N.zext(32), ONE)
        made = replace(made, domain=(*made.domain, ("m = 1", M == 1)), sample_shapes=((3, 1),))
    verdict = prove(made, discharger=Discharger(timeout=5.0, second=False))
    assert verdict.status is Status.PROVED, verdict.reason
    names = [(o.group, o.name) for o in verdict.obligations]
    assert len(set(names)) == len(names)


def test_an_extent_of_two_bits_is_none_of_the_numbers_that_it_cannot_be() -> None:
    def narrow(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            a = k.let("a", NOTHING)
            with k.loop("j", s["m"][1:0]) as j:
                k.assign(a, a + k.load("x", s["src"], i * s["m"] + j.zext(32)))
            k.store(s["dst"], i, a)

    def first_alone(k: Kernel, s: States) -> None:
        with k.loop("i", s["n"]) as i:
            k.store(s["dst"], i, k.load("x", s["src"], i * s["m"]))

    assert status(claim(first_alone, narrow, N.zext(32), ONE)) is Status.UNKNOWN
