"""Dense layers that the IR sums in another order than FlexASR's processing elements, and wrong twins of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

import bmc.prove
import bmc.sums
import chc.mapping.prove
from accel_models.flexasr.functions import adpfloat_mul
from bmc.counterexample import Counterexample, replays
from ila_lang import Expr, Function, Kernel, Machine, bv, const, ite, primitive, walk
from ila_lang.language.kernel import Load, Statement
from ila_lang.mapping import TensorMapping
from ilaverify.catalogue import find_mapping, mappings
from ir_semantics.layers import dense
from ir_semantics.layers.dense import DenseOperator, Order, dense_ir
from reports.binding import binding_problems
from reports.certificate import certificate_of
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.flexasr.linear import accumulate, finish_of, linear_mapping, operator_of
from smt_encodings.claims import Equality, Status
from smt_encodings.discharge import Discharger
from tests.bmc.mutation import mutate_statements

SHAPE = (1, 16, 64)
TWO_BLOCKS = (1, 32, 64)
LARGER = (2, 48, 64)
OTHER_ORDERS = ("flexasr_linear_backward", "flexasr_linear_blocked", "vta_dense_backward")


@pytest.mark.proof
@pytest.mark.parametrize("order", [Order.BACKWARD, Order.BLOCKED], ids=lambda o: o.value)
@pytest.mark.parametrize("shape", [TWO_BLOCKS, pytest.param(LARGER, marks=pytest.mark.slow)], ids=str)
def test_another_order_is_proved(order: Order, shape: tuple[int, int, int]) -> None:
    mapping = linear_mapping("relu", order=order)
    verdict = bmc.sums.prove(mapping, shape)
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.claim.equality is Equality.BIT_EXACT
    assert verdict.details["classes"] == [(0, 64 * shape[0])]
    # two sums of all features, by the hash and not because both sides are one term
    elements = [o for o in verdict.obligations if o.name == "class 0 of 1"]
    assert elements[0].smtlib.count("(!hash0 ") == 2 * shape[1] + 1
    # nothing rests on the grouping of elements
    assert verdict.details["all_elements_in_one_script"] is True
    assert all(len(o.answers) == 2 and o.discharged for o in verdict.obligations)


@pytest.mark.slow
def test_bmc_does_not_prove_another_order() -> None:
    """cvc5 gives up on chains of additions in two orders."""
    mapping = linear_mapping(order=Order.BACKWARD)
    unrolled = bmc.prove.prove(mapping, SHAPE, discharger=Discharger(timeout=10.0), search_seconds=0)
    assert unrolled.status is Status.UNKNOWN and "cvc5 1.4.2: unknown" in unrolled.reason


@pytest.mark.proof
@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER_ORDERS)
def test_another_order_is_proved_for_every_size(name: str) -> None:
    verdict = chc.mapping.prove.prove(find_mapping(name))
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.claim.equality is Equality.BIT_EXACT
    groups = {o.group for o in verdict.obligations}
    assert {"sum laws", "any order"} <= groups
    # loops of blocks may run in lock-step, those inside of them do not
    in_step = {o.group for o in verdict.obligations if "lock-step" in o.meaning and "fold" in o.group}
    assert len(in_step) <= (name == "flexasr_linear_blocked")


# -- wrong twins ------------------------------------------------------------------------------------------------


def with_loads(change: Callable[[Load], Load], name: str, order: Order = Order.BACKWARD) -> TensorMapping:
    """The mapping with the IR's load to this register changed."""
    mapping = linear_mapping(order=order)
    ila = dense_ir(operator_of(None), order)
    (kernel,) = ila.kernels.values()

    def new(statement: Statement) -> list[Statement]:
        assert isinstance(statement, Load)
        return [change(statement)]

    mutate_statements(kernel, lambda s: isinstance(s, Load) and s.target.name == name, new)
    return replace(mapping, ir=replace(mapping.ir, ila=ila))


def forward(load: Load) -> Load:
    """The address of the register in an IR that sums forward."""
    ila = dense_ir(operator_of(None))
    (kernel,) = ila.kernels.values()
    address = next(s.address for s in walk_loads(kernel) if s.target.name == load.target.name)
    return replace(load, address=address)


def walk_loads(kernel: Kernel) -> list[Load]:
    return [s for s in walk(kernel.body) if isinstance(s, Load)]


def first_for_last(load: Load) -> Load:
    """Feature 0 in place of feature 1."""
    row, column = load.address.args
    return replace(load, address=row + ite(column == 1, const(0, 32), column))


def weights_twice() -> TensorMapping:
    """The sum of w * w."""
    square = operator_of(None)
    step = dense_step("weights_twice", lambda acc, w, x: acc + adpfloat_mul(w, w))
    mapping = linear_mapping(order=Order.BACKWARD)
    ila = dense_ir(replace(square, step=step), Order.BACKWARD)
    return replace(mapping, ir=replace(mapping.ir, ila=ila))


def dense_step(name: str, body: Callable[[Expr, Expr, Expr], Expr]) -> Function:
    def step(acc: Expr, w: Expr, x: Expr) -> Expr:
        """An accumulation."""
        return body(acc, w, x)

    return primitive(bv(32), name=name, acc=bv(32), w=bv(8), x=bv(8))(step)


TWINS: dict[str, Callable[[], TensorMapping]] = {
    "one element changed": lambda: with_loads(first_for_last, "element"),
    "one operand reversed": lambda: with_loads(forward, "element"),
    "the other operand reversed": lambda: with_loads(forward, "weight"),
    "an operand used twice": weights_twice,
}


@pytest.mark.proof
@pytest.mark.parametrize(
    "name", [n if "the other" not in n else pytest.param(n, marks=pytest.mark.slow) for n in TWINS]
)
def test_a_wrong_twin_is_refuted_by_a_run_that_replays(name: str) -> None:
    mapping = TWINS[name]()
    verdict = bmc.sums.prove(mapping, SHAPE)
    assert verdict.status is Status.REFUTED, verdict.reason
    found = verdict.details["counterexample"]
    assert isinstance(found, Counterexample) and replays(mapping, found)


@pytest.mark.proof
@pytest.mark.parametrize("name", [n if "used" in n else pytest.param(n, marks=pytest.mark.slow) for n in TWINS])
def test_a_wrong_twin_is_not_proved_for_every_size(name: str) -> None:
    verdict = chc.mapping.prove.prove(TWINS[name](), discharger=Discharger(timeout=5.0), horn_timeout=3.0)
    assert verdict.status is Status.UNKNOWN
    assert "in any order" in verdict.reason


@pytest.mark.proof
@pytest.mark.parametrize("name", TWINS)
def test_the_encoding_itself_does_not_prove_a_wrong_twin(name: str) -> None:
    verdict = bmc.sums.prove(TWINS[name](), SHAPE, search_seconds=0)
    assert verdict.status is Status.UNKNOWN
    assert "z3 5.4.0: sat" in verdict.reason


# -- the IR's orders --------------------------------------------------------------------------------------------


def test_all_orders_have_one_result_on_codes() -> None:
    """17 features: the last block has one."""
    results = []
    for order in Order:
        ila = dense_ir(operator_of(None), order)
        machine = Machine(ila)
        for number, name in enumerate(("tensor_in", "tensor_weights", "tensor_bias")):
            machine.memories[name].update({i: (i * 73 + number * 31) % 48 | (i % 3 == 0) << 7 for i in range(100)})
        sizes = {"rows_in": 2, "features_in_in": 17, "features_out_in": 3}
        machine.step({"func_run": 1, "func_id": dense.DENSE_CODE, **sizes})
        results.append([machine.memories["tensor_out"][i] for i in range(6)])
    assert results[0] == results[1] == results[2]
    assert len(set(results[0])) > 3


def test_blocks_need_an_addition() -> None:
    with pytest.raises(ValueError) as missing:
        dense_ir(DenseOperator(operator_of(None).step, finish_of(None)), Order.BLOCKED)
    assert str(missing.value) == "An operator whose sums are blocked must have an 'add' for the sums of blocks"


# -- the catalogue ----------------------------------------------------------------------------------------------


def test_the_catalogue_has_all_orders_for_every_size() -> None:
    claims = mappings()
    assert all(claims[name].shape is None for name in OTHER_ORDERS)
    assert find_mapping("flexasr_linear").sums[0].operator is accumulate


OF_ONE_SHAPE = MappingClaim(
    "flexasr_linear_blocked", "one shape", partial(linear_mapping, order=Order.BLOCKED), shape=(2, 32, 64)
)
"""As a claim that no method proves for every size."""


def test_a_claim_that_is_kept_may_be_of_one_shape() -> None:
    subject = MappingSubject.built(OF_ONE_SHAPE.instantiate, OF_ONE_SHAPE.shape)
    assert subject.method == "hash" and subject.place()[0] == "rewrites/mappings/flexasr/linear.py"
    words = subject.words()
    assert words.size_domain.startswith("rows 2, features_in 32, features_out 64 only (T = 2, ni = 2, ")
    assert subject.trust(words).splitlines()[-2:] == [
        f"  shape          {words.size_domain}",
        "  sum            accumulate, unit 0x0",
    ]
    with pytest.raises(ValueError) as other:
        subject.claim({"shape": [1, 16, 64]})
    assert (
        str(other.value)
        == "a proof of flexasr_linear_blocked that is kept must have the parameters {'shape': [2, 32, 64]}"
    )


@pytest.mark.slow
def test_its_proof_is_bound_to_the_claim() -> None:
    subject = MappingSubject.built(OF_ONE_SHAPE.instantiate, OF_ONE_SHAPE.shape)
    verdict = subject.prove(Discharger())
    assert verdict.status is Status.PROVED and verdict.claim == subject.words()
    content = certificate_of(subject.semantics(), verdict, subject.parameters(verdict), "a test")
    content = json.loads(json.dumps(content))
    assert binding_problems(content, subject) == []
    of_one = json.loads(json.dumps(content | {"parameters": {"shape": [3, 32, 64]}}))
    assert binding_problems(of_one, subject)
