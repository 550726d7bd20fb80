"""The hash method on a toy: row sums that both sides add up in different orders, and what it must not prove."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

import bmc.prove
import bmc.sums
from bmc.counterexample import Counterexample, replays
from ila_lang import Expr, Function, Kernel, bv, const, ite, primitive
from ila_lang.mapping import Reduction, SizeError, TensorMapping
from reports.binding import binding_problems
from reports.certificate import certificate_of, semantics_of
from rewrites.claims.subjects.mapping import MappingSubject
from smt_encodings.claims import Equality, Interpretation, Runs, Status
from smt_encodings.discharge import Requirements
from smt_encodings.solvers import z3 as solver_z3
from tests.chc.mapping.toy import Body, mapping

BYTE = bv(8)


@primitive(BYTE, a=BYTE, b=BYTE)
def add(a: Expr, b: Expr) -> Expr:
    """Wraps."""
    return a + b


@primitive(BYTE, a=BYTE, b=BYTE)
def clamp(a: Expr, b: Expr) -> Expr:
    """The signed sum, saturated."""
    wide = a.sext(9) + b.sext(9)
    low, high = const(512 - 128, 9), const(127, 9)
    return ite(wide.slt(low), low, ite(high.slt(wide), high, wide))[7:0]


@primitive(BYTE, x=BYTE)
def halved(x: Expr) -> Expr:
    """Half."""
    return x >> 1


@primitive(BYTE, a=BYTE, b=BYTE)
def halve(a: Expr, b: Expr) -> Expr:
    """Half of the sum: a rounding between additions."""
    return halved(a + b)


@primitive(BYTE, x=BYTE)
def weigh(x: Expr) -> Expr:
    """What is added up."""
    return x * x + 3


@primitive(BYTE, x=BYTE)
def finish(x: Expr) -> Expr:
    """What is done with a sum."""
    return (x >> 1) ^ x


Index = Callable[[Expr, Expr], Expr]


def backward(j: Expr, m: Expr) -> Expr:
    return m - 1 - j


def row_sums(step: Function, index: Index = lambda j, m: j, taken: Index | None = None) -> Body:
    """dst[i] := finish of the sum over j of weigh(src[i, index(j)])."""

    def body(kernel: Kernel, s: Mapping[str, Expr]) -> None:
        with kernel.loop("i", s["n"]) as i:
            acc = kernel.let("acc", const(0, 8))
            with kernel.loop("j", s["m"]) as j:
                word = kernel.load("word", s["src"], i * s["m"] + index(j, s["m"]))
                kernel.assign(acc, step(acc, weigh(word)))
            kernel.store(s["dst"], i, finish(acc))

    return body


def claim(device: Body, ir: Body, *sums: Reduction, abstract: str = "weigh finish") -> TensorMapping:
    toy = mapping(device, ir, columns=const(1, 32), abstract=frozenset(abstract.split()))
    return replace(toy, sums=sums)


ADD = Reduction(add, 0)
RIGHT = claim(row_sums(add), row_sums(add, backward), ADD)
SHAPE = (3, 5)


@pytest.mark.proof
def test_another_order_is_proved_bit_by_bit() -> None:
    verdict = bmc.sums.prove(RIGHT, SHAPE)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.method == "hash"
    assert verdict.claim.equality is Equality.BIT_EXACT
    assert verdict.claim.interpretations == (Interpretation.UNINTERPRETED,)
    assert verdict.claim.size_domain == "input 3x5 only (n = 3, m = 5)"
    assert verdict.claim.statement == (
        "the toy device computes what the toy IR computes; "
        "sums by add may be added up in any order, which changes no bit (proved: sum laws)"
    )
    assert [(o.group, o.name, o.expected) for o in verdict.obligations] == [
        ("sum laws", "add is commutative", "unsat"),
        ("sum laws", "add is associative", "unsat"),
        ("sum laws", "add is unchanged by 0x0", "unsat"),
        ("elements", "class 0 of 1", "unsat"),
        ("elements", "all elements", "unsat"),
        ("health", "conclusion falsifiable", "sat"),
        ("health", "sums are told apart", "sat"),
    ]
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)
    assert verdict.details["classes"] == [(0, 3)]


@pytest.mark.proof
def test_congruence_alone_does_not_prove_it() -> None:
    """With the operator as a symbol, as BMC has functions, only sums in one order are equal."""
    symbolic = replace(RIGHT, abstract=frozenset({"weigh", "finish", "add"}))
    verdict = bmc.prove.prove(symbolic, SHAPE, data="uninterpreted", search_seconds=0)
    assert verdict.status is Status.UNKNOWN
    assert "class 0 of 1" in verdict.reason and "z3 5.4.0: sat" in verdict.reason
    assert bmc.sums.prove(symbolic, SHAPE, search_seconds=0).status is Status.PROVED


def repeated_first(j: Expr, m: Expr) -> Expr:
    return ite(j == 0, const(1, 32), m - 1 - j)


WRONG = {
    "an element twice, another left out": claim(row_sums(add), row_sums(add, repeated_first), ADD),
    "the first element left out": claim(row_sums(add), row_sums(add, lambda j, m: ite(j == 0, j + 1, j)), ADD),
    "another row": claim(row_sums(add), row_sums(add, lambda j, m: j + m), ADD),
    "rounding between additions": claim(row_sums(halve), row_sums(halve, backward), ADD, abstract="weigh"),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", WRONG)
def test_wrong_sums_are_refuted_by_runs_that_replay(name: str) -> None:
    verdict = bmc.sums.prove(WRONG[name], SHAPE)
    assert verdict.status is Status.REFUTED, verdict.reason
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample) and replays(WRONG[name], found)


@pytest.mark.proof
@pytest.mark.parametrize("name", WRONG)
def test_the_encoding_itself_does_not_prove_wrong_sums(name: str) -> None:
    verdict = bmc.sums.prove(WRONG[name], SHAPE, search_seconds=0)
    assert verdict.status is Status.UNKNOWN
    assert "z3 5.4.0: sat" in verdict.reason


@pytest.mark.proof
def test_what_stands_between_additions_is_named() -> None:
    rounded = claim(row_sums(halve), row_sums(halve, backward), ADD, abstract="weigh finish halved")
    verdict = bmc.sums.prove(rounded, SHAPE, search_seconds=0)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.endswith(
        "; halved stands between additions of one sum, and no summand can be moved past it: "
        "use --method bmc or chc, which keep the order"
    )


@pytest.mark.proof
def test_a_saturating_sum_is_refused() -> None:
    saturating = claim(row_sums(clamp), row_sums(clamp, backward), Reduction(clamp, 0))
    verdict = bmc.sums.prove(saturating, SHAPE)
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("the sum clamp is not associative: for a = 0x")
    assert verdict.reason.endswith("so use --method bmc or chc, which keep it")
    assert "counterexample" not in verdict.details
    # the other method does find that the order matters
    assert bmc.prove.prove(saturating, SHAPE).status is Status.REFUTED


@pytest.mark.proof
def test_a_saturating_sum_in_one_order_is_not_refused_as_false() -> None:
    """It is refused, because the method would say nothing else of it than BMC."""
    same = claim(row_sums(clamp), row_sums(clamp), Reduction(clamp, 0))
    assert bmc.sums.prove(same, SHAPE).status is Status.UNKNOWN
    assert bmc.prove.prove(same, SHAPE).status is Status.PROVED


def test_refusals_in_words() -> None:
    none = bmc.sums.prove(claim(row_sums(add), row_sums(add)), SHAPE)
    assert none.status is Status.UNKNOWN and not none.obligations
    assert none.reason == (
        "Mapping toy must declare by which operators it adds up; it declares none, so method hash has nothing to "
        "reorder; use --method bmc or chc"
    )
    unused = bmc.sums.prove(claim(row_sums(add), row_sums(add), Reduction(clamp16, 0)), SHAPE, search_seconds=0)
    assert unused.status is Status.UNKNOWN
    assert unused.reason == (
        "A sum by clamp16 must occur at this shape for method hash; none does, so use --method bmc or chc"
    )
    with pytest.raises(SizeError):
        bmc.sums.prove(RIGHT, (0, 5))


@primitive(bv(16), a=bv(16), b=bv(16))
def clamp16(a: Expr, b: Expr) -> Expr:
    """A sum that no toy has: 16 bits."""
    return a + b


@pytest.mark.proof
def test_no_time_is_no_proof() -> None:
    verdict = bmc.sums.prove(RIGHT, SHAPE, discharger=bmc.sums.Discharger(timeout=0.0), search_seconds=0)
    assert verdict.status is Status.UNKNOWN


# -- certificates ------------------------------------------------------------------------------------------------


SUBJECT = MappingSubject(RIGHT)


@pytest.mark.proof
def test_a_certificate_is_bound_to_its_claim() -> None:
    verdict = replace(bmc.sums.prove(RIGHT, SHAPE), runs=Runs(1, ()))
    content = json.loads(json.dumps(certificate_of(semantics_of(RIGHT), verdict, {"shape": list(SHAPE)}, "a test")))
    assert binding_problems(content, SUBJECT) == []
    for left_out in content["obligations"]:
        without = content | {"obligations": [o for o in content["obligations"] if o is not left_out]}
        where = f"{left_out['group']}: {left_out['name']}"
        assert binding_problems(without, SUBJECT) == [f"{where}: this obligation is missing"]
    (law,) = [o for o in content["obligations"] if o["name"] == "add is associative"]
    weaker = law | {"smtlib": content["obligations"][0]["smtlib"]}
    changed = content | {"obligations": [weaker if o is law else o for o in content["obligations"]]}
    assert binding_problems(changed, SUBJECT) == [
        "sum laws: add is associative: this is not the obligation that the claim needs"
    ]
    assert binding_problems(content | {"parameters": {"shape": [3, 6]}}, SUBJECT)
    assert binding_problems(content | {"parameters": {"shape": [3, 5], "data": "bits"}}, SUBJECT) == [
        "the obligations of the claim cannot be generated: a proof by hash must have the parameters shape"
    ]
    for shape in (["3", "5"], [3.9, 5.9], [True, 5], "35"):
        assert binding_problems(content | {"parameters": {"shape": shape}}, SUBJECT) == [
            "the obligations of the claim cannot be generated: its parameters are malformed: "
            f"a shape must be a list of integers, not {shape!r}"
        ]
    bmc_of_it = content | {"method": "bmc", "parameters": {"shape": [3, 5], "data": "bits"}}
    for parameters in (bmc_of_it["parameters"], {"shape": [3, 5], "data": "bits", "memory": "arrays", "for": "all"}):
        assert binding_problems(bmc_of_it | {"parameters": parameters}, SUBJECT) == [
            "the obligations of the claim cannot be generated: "
            "a proof by bmc must have the parameters shape, data, memory"
        ]
    without_sums = replace(RIGHT, sums=())
    (other,) = binding_problems(content, MappingSubject(without_sums))
    assert other == "the relation side of toy is not the one that was proved (its digest differs)"
    undeclared = binding_problems(content | {"semantics": semantics_of(without_sums)}, MappingSubject(without_sums))
    assert undeclared[0].startswith("the obligations of the claim cannot be generated: Mapping toy must declare")


@pytest.mark.proof
def test_a_certificate_of_a_saturating_sum_needs_a_law_that_is_false() -> None:
    """Obligations are generated without asking; what makes the claim false is one of them."""
    requirements = Requirements(second=False)
    saturating = claim(row_sums(clamp), row_sums(clamp, backward), Reduction(clamp, 0))
    bmc.sums.prove(saturating, SHAPE, discharger=requirements, search_seconds=0)
    answers = {r.name: solver_z3.check(r.smtlib, 10).status for r in requirements.required if r.expected == "unsat"}
    assert [name for name, answer in answers.items() if answer != "unsat"] == ["clamp is associative"]
