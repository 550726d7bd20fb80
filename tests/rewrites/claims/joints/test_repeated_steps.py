"""Joints of operators that repeat a step: proved by induction over rows, and not where something breaks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_models.flexasr.functions import eadd, emul, onex, sigmoid, tanh
from accel_models.flexasr.numerics import adpfloat_to_fixed
from chc.tensor_rules.refute import Counterexample
from ila_lang import Expr, Kernel, bv, const, primitive
from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly, Operator
from ir_semantics.graph.types import TensorType
from ir_semantics.layers.layer import call
from ir_semantics.layers.recurrent import RECURRENT_CODE, recurrent_ir
from ir_semantics.tensors.conditions import both, le
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import fill, transpose
from ir_semantics.tensors.terms import Tensor, input_
from rewrites.claims.joints.joint import Joint
from rewrites.claims.subjects.joint import JointSubject
from rewrites.mappings.flexasr import claims, recurrent
from rewrites.targets.flexasr import operators as flexasr
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger
from tests.marks import slow_but
from tests.rewrites.claims.joints.test_false_joints import decided, mapping, operator

M, N = size("m"), size("n")
X = input_("x", M, N)
OUT, STATE = input_("s", M, N), input_("c", M, N)

Body = Callable[[Kernel, Any, Any], None]
Step = Callable[[Assembly, int, int], int]


def element(k: Kernel, t: Any, s: Any, row: Expr, column: Expr, name: str = "x") -> Expr:
    return k.load(name, t.tensor_in, row * s.n + column).sext(32)


def summed(
    *,
    before: Callable[[Expr], Expr] = lambda row: row - 1,
    begins: Callable[[Expr], Expr] = lambda row: row != 0,
    column: Callable[[Expr], Expr] = lambda column: column,
    rows: Callable[[Expr], Expr] = lambda m: m,
    columns: Callable[[Expr], Expr] = lambda n: n,
    twice: bool = False,
    last: bool = True,
) -> Body:
    """Each row is that of the input, added to the row before; what is said is what is wrong."""

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("row", rows(s.m)) as row, k.loop("column", columns(s.n)) as at:
            kept = k.let("kept", const(0, 32))
            with k.when("later", begins(row)):
                k.assign(kept, k.load("before", t.tensor_out, before(row) * s.n + column(at)))
            value = kept + element(k, t, s, row, at)
            if twice:
                k.store(t.tensor_out, row * s.n + at, value)
            if last:
                k.store(t.tensor_out, row * s.n + at, value)
            else:
                with k.when("not_last", row + 1 != s.m):
                    k.store(t.tensor_out, row * s.n + at, value)

    return write


def joint(body: Body, **changes: Any) -> Joint:
    of = mapping({"m": 32, "n": 32}, {"in": 8, "out": 32}, body)
    of.mapping.output_extents = lambda parameters: (parameters["p_m"], parameters["p_n"])
    return replace(Joint(of, (X,), {"tensor_in": X}, states={"tensor_out": OUT}), **changes)


def two_states(body: Body, **changes: Any) -> Joint:
    of = mapping({"m": 32, "n": 32}, {"in": 8, "state": 32, "out": 32}, body)
    states = {"tensor_out": OUT, "tensor_state": STATE}
    return replace(Joint(of, (X,), {"tensor_in": X}, states=states), **changes)


def repeated(step: Step, begins: float = 0.0, **changes: Any) -> Operator:
    """A step on rows [1, n] of the input and of the state."""

    def expand(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        rows, columns = b.shape(of[0])
        zero = b.add("broadcast", b.constant(np.asarray(begins, np.float32)), axes=(), shape=(1, columns))

        def one(t: int, states: list[int]) -> tuple[int, list[int]]:
            x = b.add("slice", of[0], start=(t, 0), stop=(t + 1, columns), stride=(1, 1))
            new = step(b, x, states[0])
            return new, [new]

        outputs, _ = b.repeat(rows, [zero], one, **changes)
        return b.add("reshape", outputs, shape=(rows, columns))

    return operator(expand)


def plus(b: Assembly, x: int, state: int) -> int:
    return b.add("add", x, state)


def test_a_sum_of_rows_is_proved_for_every_number_of_them() -> None:
    verdict = decided(joint(summed()), repeated(plus))
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.runs is not None and verdict.runs.count
    assert "tensor_out is in its row before" in " ".join(o.meaning for o in verdict.obligations)


def both_states(swapped: bool = False, early: bool = False, apart: bool = False) -> Body:
    """out[t] = c[t], c[t] = out[t - 1] + x[t]."""

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("row", s.m) as row:
            with k.loop("column", s.n) as at:
                before, state = k.let("h", const(0, 32)), k.let("c", const(0, 32))
                with k.when("later", row != 0):
                    place = (row - 1) * s.n + at
                    one, other = (t.tensor_state, t.tensor_out) if swapped else (t.tensor_out, t.tensor_state)
                    k.assign(before, k.load("before", one, place))
                    k.assign(state, k.load("state", other, place))
                new = before + element(k, t, s, row, at)
                k.store(t.tensor_state, row * s.n + at, new)
                if not apart:
                    k.store(t.tensor_out, row * s.n + at, new if early else new + state)
            if apart:
                with k.loop("again", s.n) as at:
                    k.store(t.tensor_out, row * s.n + at, element(k, t, s, row, at, "y"))

    return write


def two(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    rows, columns = b.shape(of[0])
    zero = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(1, columns))

    def one(t: int, states: list[int]) -> tuple[int, list[int]]:
        x = b.add("slice", of[0], start=(t, 0), stop=(t + 1, columns), stride=(1, 1))
        new = b.add("add", x, states[0])
        output = b.add("add", new, states[1])
        return output, [output, new]

    outputs, _ = b.repeat(rows, [zero, zero], one)
    return b.add("reshape", outputs, shape=(rows, columns))


def test_two_states_are_proved_together() -> None:
    verdict = decided(two_states(both_states()), operator(two))
    assert verdict.status is Status.PROVED, verdict.reason


@pytest.mark.parametrize("changes", [{"swapped": True}, {"early": True}])
def test_states_that_are_exchanged_are_refuted(changes: dict[str, bool]) -> None:
    verdict = decided(two_states(both_states(**changes)), operator(two))
    assert verdict.status is Status.REFUTED, verdict.reason


ONE_SHAPE = "results and rows of states must have one shape, not "
BROKEN: dict[str, tuple[Body, str]] = {
    "the row before that one": (summed(before=lambda row: row - 2), "is in its row before"),
    "its own row": (summed(before=lambda row: row), "is in its row before"),
    "the row after it": (summed(before=lambda row: row + 1), "is in its row before"),
    "the row before the first": (summed(begins=lambda row: row == row), "is in its row before"),
    "the first row, from the one before": (summed(begins=lambda row: row != 1), "is in its row before"),
    "the element after": (summed(column=lambda c: c + 1), "is in its row before"),
    "one row less": (summed(rows=lambda m: m - 1), ONE_SHAPE),
    "one row more": (summed(rows=lambda m: m + 1), ONE_SHAPE),
    "one column less": (summed(columns=lambda n: n - 1), ONE_SHAPE),
    "one column more": (summed(columns=lambda n: n + 1), ONE_SHAPE),
    "stored twice": (summed(twice=True), "the kernel must store once, to tensor_out"),
    "the last row not stored": (summed(last=False), "is no index"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_the_induction_is_not_proved(name: str) -> None:
    body, reason = BROKEN[name]
    verdict = decided(joint(body, domain=both(le(1, M), le(1, N), le(M, 999), le(N, 999))), repeated(plus))
    assert verdict.status is Status.UNKNOWN and reason in verdict.reason, (verdict.status, verdict.reason)


def test_rows_that_are_stored_by_loops_of_their_own_are_not_proved() -> None:
    verdict = decided(two_states(both_states(apart=True)), operator(two))
    assert verdict.status is Status.UNKNOWN and "the kernel must store once" in verdict.reason, verdict.reason


FALSE: dict[str, tuple[Body, Operator]] = {
    "a state of ones at first": (summed(), repeated(plus, begins=1.0)),
    "a state that is forgotten": (summed(begins=lambda row: row != row), repeated(plus)),
    "a state that is read one row late": (summed(begins=lambda row: row > 1), repeated(plus)),
    "another step": (summed(), repeated(lambda b, x, s: b.add("sub", x, s))),
    "a step without a state": (summed(), repeated(lambda b, x, s: b.add("add", x, x))),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_joint_is_refuted_by_a_run(name: str) -> None:
    body, of = FALSE[name]
    subject = JointSubject("the-joint", joint(body), of)
    verdict = subject.prove(Discharger(timeout=8.0))
    assert verdict.status is Status.REFUTED, verdict.reason
    counterexample = verdict.details["counterexample"]
    assert isinstance(counterexample, Counterexample) and set(counterexample.inputs) == {"x"}
    shown = subject.shown(counterexample)
    assert subject.replayed(shown.document) == shown
    assert JointSubject("the-joint", joint(summed()), repeated(plus)).replayed(shown.document) is None
    with pytest.raises(ValueError, match="must have its operands, of fractions"):
        subject.replayed(shown.document.replace('"x"', '"y"'))


def test_a_step_that_differs_between_states_that_are_none_is_not_refuted() -> None:
    """A state of zeros stays one, and is its own magnitude; that of another state is another number."""

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("row", s.m) as row, k.loop("column", s.n) as at:
            kept = k.let("kept", const(0, 32))
            with k.when("later", row != 0):
                k.assign(kept, k.load("before", t.tensor_out, (row - 1) * s.n + at))
            k.store(t.tensor_out, row * s.n + at, kept)

    verdict = decided(joint(write), repeated(lambda b, x, s: b.add("abs", b.add("add", b.add("sub", x, x), s))))
    assert verdict.status is Status.UNKNOWN, verdict.reason
    assert verdict.reason.startswith("a step differs, but no run was found in which it does: ")
    assert "counterexample" not in verdict.details
    verdict = decided(joint(write), repeated(lambda b, x, s: b.add("abs", s)))  # of which the first state is computed
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.endswith(" must have no constants of several elements to be run")


# -- operators ------------------------------------------------------------------------------------------------------


def kept_node(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    """A node of a step, used after it."""
    rows, columns = b.shape(of[0])
    nodes: list[int] = []
    zero = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(1, columns))

    def one(t: int, states: list[int]) -> tuple[int, list[int]]:
        nodes.append(b.add("neg", states[0]))
        return states[0], states

    outputs, _ = b.repeat(rows, [zero], one)
    last = b.add("broadcast", b.add("reshape", nodes[-1], shape=(columns,)), axes=(1,), shape=(rows, columns))
    return b.add("add", b.add("reshape", outputs, shape=(rows, columns)), last)


def another_result(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    rows, columns = b.shape(of[0])
    zero = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(1, columns))
    outputs, _ = b.repeat(rows, [zero], lambda t, states: (b.add("neg", states[0]), states))
    return b.add("reshape", outputs, shape=(rows, columns))


def negated(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    rows, columns = b.shape(of[0])
    zero = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(1, columns))

    def one(t: int, states: list[int]) -> tuple[int, list[int]]:
        x = b.add("slice", of[0], start=(t, 0), stop=(t + 1, columns), stride=(1, 1))
        new = plus(b, x, states[0])
        return new, [new]

    return b.add("neg", b.add("reshape", b.repeat(rows, [zero], one)[0], shape=(rows, columns)))


def last_states(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    rows, columns = b.shape(of[0])
    zero = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(1, columns))
    _, last = b.repeat(rows, [zero], lambda t, states: (states[0], states))
    return b.add("broadcast", b.add("reshape", last[0], shape=(columns,)), axes=(1,), shape=(rows, columns))


def by_iteration(question: Callable[[Any], Any]) -> Operator:
    def expand(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        rows, columns = b.shape(of[0])
        zero = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(1, columns))

        def one(t: int, states: list[int]) -> tuple[int, list[int]]:
            x = b.add("slice", of[0], start=(t, 0), stop=(t + 1, columns), stride=(1, 1))
            new = b.add("sub" if question(t) else "add", x, states[0])
            return new, [new]

        return b.add("reshape", b.repeat(rows, [zero], one)[0], shape=(rows, columns))

    return operator(expand)


def nested(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    rows, columns = b.shape(of[0])
    zero = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(1, columns))

    def one(t: int, states: list[int]) -> tuple[int, list[int]]:
        inner, _ = b.repeat(rows, states, lambda t, states: (states[0], states))
        return states[0], [states[0], inner][:1]

    return b.add("reshape", b.repeat(rows, [zero], one)[0], shape=(rows, columns))


UNREAD: dict[str, tuple[Operator, str]] = {
    "backwards": (repeated(plus, reverse=True), "from the first to the last"),
    "no step": (operator(lambda b, of, a: b.add("neg", of[0])), "must repeat a step"),
    "a node of the step": (operator(kept_node), "must be a node of the graph"),
    "another result than a state": (operator(another_result), "must give the first of its new states"),
    "last states": (operator(last_states), "cannot be read: list index out of range"),
    "two states for one": (operator(two), "with 1 states"),
    "a repetition in a step": (operator(nested), "must be repeated once"),
    "a decision by the iteration": (by_iteration(lambda t: t == 3), "whether t.0 is 3 must not decide"),
    "a decision by the first one": (by_iteration(lambda t: t == 0), "whether t.0 is 0 must not decide"),
    "a comparison of iterations": (by_iteration(lambda t: t > 3), "must not be decided by the number t.0"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_an_operator_that_is_not_read_is_not_proved(name: str) -> None:
    of, reason = UNREAD[name]
    verdict = decided(joint(summed()), of)
    assert verdict.status is Status.UNKNOWN and reason in verdict.reason, (verdict.status, verdict.reason)


def test_a_step_is_read_as_the_kernel() -> None:
    for changes in ({"bound": object()}, {"numbers": frozenset({"epsilon"})}):
        verdict = decided(joint(summed(), **changes), repeated(plus))
        assert verdict.status is Status.UNKNOWN and "must be read as the kernel" in verdict.reason, verdict.reason


def test_what_is_done_after_the_steps_is_part_of_the_claim() -> None:
    verdict = decided(joint(summed()), operator(negated))
    assert verdict.status is Status.REFUTED, verdict.reason


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        ({"tensor_out": OUT, "tensor_in": STATE}, "tensor_out, tensor_in: tensor_out first"),
        ({"tensor_out": X}, "operands must be inputs of names of their own"),
        ({"tensor_out": transpose(input_("s", N, M), [1, 0])}, "operands must be inputs of names of their own"),
        ({"tensor_out": input_("s", N, M)}, "must be those of s"),
        ({"tensor_out": input_("s", M + 1, N)}, "must be those of s"),
        ({"elsewhere": OUT}, "one command must store to the memories of states, elsewhere: tensor_out first"),
    ],
)
def test_states_are_what_the_kernel_stores(states: dict[str, Tensor], reason: str) -> None:
    verdict = decided(joint(summed(), states=states), repeated(plus))
    assert verdict.status is Status.UNKNOWN and reason in verdict.reason, (verdict.status, verdict.reason)


def test_a_node_is_executed_where_its_graph_is_the_step_repeated() -> None:
    of = repeated(plus)
    subject = JointSubject("the-joint", joint(summed()), of)
    for rows, columns in ((1, 1), (1, 4), (2, 1), (7, 3)):
        sizes = {"p_m": rows, "p_n": columns}
        assert subject.covers((TensorType("float32", (rows, columns)),), {}, sizes) == ""
    problem = subject.covers((TensorType("float32", (6, 3)),), {}, {"p_m": 7, "p_n": 3})
    assert problem == "a program of 7 steps is none of 6"
    assert "cannot be looked at" in subject.covers((TensorType("float32", (0, 3)),), {}, {"p_m": 0, "p_n": 3})


@pytest.mark.parametrize("wrong", [0, 2, 4])
def test_a_node_of_which_one_iteration_is_another_is_not_executed(wrong: int) -> None:
    """It was read as a step for all iterations; at numbers, one of them is something else."""
    of = by_iteration(lambda t: isinstance(t, int) and t == wrong)
    subject = JointSubject("the-joint", joint(summed()), of)
    for rows in (1, 2, 3, 5):
        problem = subject.covers((TensorType("float32", (rows, 3)),), {}, {"p_m": rows, "p_n": 3})
        assert bool(problem) == (rows > wrong), problem


# -- FlexASR's -------------------------------------------------------------------------------------------------------


LAYERS = {**flexasr.RECURRENT, **{f"{kind} from": o for kind, o in flexasr.RECURRENT_FROM.items()}}


def of_kind(kind: str) -> Joint:
    return LAYERS[kind].joints[0]


def with_state(kind: str, **tensors: Tensor) -> Joint:
    """The layer from given states with other ones."""
    joint = of_kind(kind)
    return replace(joint, tensors={**joint.tensors, **tensors})


def as_the_operator(kind: str, name: str) -> Tensor:
    """An operand whose gates are not put in the core's order."""
    places = {"host_w": 1, "host_u": 2, "host_b": 3, "host_c": 4}
    return of_kind(kind).operands[places[name]]


def with_cell(kind: str, **changes: Any) -> Joint:
    """The joint of a mapping whose IR has another cell."""
    cell = replace(recurrent.cell_of(kind), **changes)
    own = recurrent.ir_fragment(kind)
    ((_, (command,)),) = [("body", own.program.body)]
    operands = {name.removesuffix("_in"): value for name, value in command.inputs if name.endswith("_in")}
    ir = call(own.name, "", RECURRENT_CODE, recurrent_ir(cell), own.parameters, operands)
    of = of_kind(kind)
    return replace(of, mapping=SimpleNamespace(name=of.mapping.name, mapping=replace(of.mapping.mapping, ir=ir)))


def exchanged(pairs: recurrent.Pairs, state: Expr) -> tuple[Expr, Expr]:
    """h' = z * n + (1 - z) * h."""
    (r_x, r_h), (n_x, n_h), (z_x, z_h) = pairs
    n, z = tanh(eadd(n_x, emul(n_h, sigmoid(eadd(r_h, r_x))))), sigmoid(eadd(z_h, z_x))
    h = eadd(emul(onex(z), state), emul(z, n))
    return h, h


def reset_outside(pairs: recurrent.Pairs, state: Expr) -> tuple[Expr, Expr]:
    """r multiplies the input's part, too."""
    (r_x, r_h), (n_x, n_h), (z_x, z_h) = pairs
    n, z = tanh(emul(eadd(n_x, n_h), sigmoid(eadd(r_h, r_x)))), sigmoid(eadd(z_h, z_x))
    h = eadd(emul(z, state), emul(onex(z), n))
    return h, h


def cell_before(pairs: recurrent.Pairs, state: Expr) -> tuple[Expr, Expr]:
    """h = o * tanh(c), with the cell state before the step."""
    new, _ = recurrent.combine_lstm(pairs, state)
    o_x, o_h = pairs[3]
    return new, emul(sigmoid(eadd(o_h, o_x)), tanh(state))


RNN, GRU, LSTM = (of_kind(kind) for kind in ("rnn", "gru", "lstm"))
FLEXASR: dict[str, tuple[Joint, str]] = {
    "rnn: weights of the state transposed": (
        replace(RNN, tensors={**RNN.tensors, "host_u": transpose(RNN.operands[2], [1, 0])}),
        "rnn",
    ),
    "rnn: without the bias of the state": (
        replace(RNN, tensors={**RNN.tensors, "host_c": fill(0, size("features"))}),
        "rnn",
    ),
    "rnn: one bias twice": (replace(RNN, tensors={**RNN.tensors, "host_c": RNN.operands[3]}), "rnn"),
    "rnn: a state that is added": (
        with_cell("rnn", keeps="output", combine=lambda pairs, state: (eadd(tanh(eadd(*pairs[0])), state),) * 2),
        "rnn",
    ),
    **{
        f"{kind}: gates of {name} in the operator's order": (
            replace(of_kind(kind), tensors={**of_kind(kind).tensors, name: as_the_operator(kind, name)}),
            kind,
        )
        for kind, names in (("gru", ("host_w", "host_u", "host_b", "host_c")), ("lstm", ("host_u",)))
        for name in names
    },
    "gru: gates exchanged": (with_cell("gru", combine=exchanged), "gru"),
    "gru: reset before": (with_cell("gru", combine=reset_outside), "gru"),
    "lstm: the cell state before": (with_cell("lstm", combine=cell_before), "lstm"),
    **{
        f"{kind}: zeros": (with_state(kind, host_h0=fill(0, 1, size("features"))), kind)
        for kind in ("rnn from", "gru from")
    },
    "lstm from: states exchanged": (
        with_state("lstm from", host_h0=of_kind("lstm from").operands[6], host_c0=of_kind("lstm from").operands[5]),
        "lstm from",
    ),
}


QUICK = {name for name in FLEXASR if name.startswith("rnn:")} | {"gru: gates exchanged", "lstm: the cell state before"}


@pytest.mark.parametrize("name", slow_but(QUICK, FLEXASR))
def test_a_twin_is_refuted_by_a_run(name: str) -> None:
    changed, kind = FLEXASR[name]
    subject = JointSubject("the-joint", changed, LAYERS[kind])
    verdict = subject.prove(Discharger(timeout=8.0))
    assert verdict.status is Status.REFUTED, verdict.reason
    counterexample = verdict.details["counterexample"]
    assert isinstance(counterexample, Counterexample)
    document = subject.shown(counterexample).document
    assert subject.replayed(document) is not None
    assert JointSubject("the-joint", of_kind(kind), LAYERS[kind]).replayed(document) is None


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_a_twin_from_a_state_of_ones_is_refuted(kind: str) -> None:
    def expand(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        return flexasr.RECURRENT[kind].expand(_Ones(b), of, a)  # type: ignore[misc, arg-type]

    verdict = decided(of_kind(kind), operator(expand, 5))
    assert verdict.status is Status.REFUTED, verdict.reason


class _Ones:
    """An assembly in which the states of zeros are ones."""

    def __init__(self, b: Assembly) -> None:
        self.b = b

    def __getattr__(self, name: str) -> Any:
        return getattr(self.b, name)

    def constant(self, value: Any) -> int:
        return self.b.constant(np.ones_like(value))


@pytest.mark.parametrize(
    "changes",
    [
        {"exponents": {**GRU.exponents, "tensor_out": size("bias_x")}},
        {"exponents": {**GRU.exponents, "host_u": size("bias_w")}},
        {"given": {"rows": size("features")}},
        {"states": {}},
        {"tensors": {n: t for n, t in GRU.tensors.items() if n != "host_u"}},
    ],
)
def test_a_joint_of_other_words_is_not_proved(changes: dict[str, Any]) -> None:
    verdict = decided(replace(GRU, **changes), flexasr.RECURRENT["gru"])
    assert verdict.status is Status.UNKNOWN, verdict.reason


@primitive(bv(20), code=bv(8), bias=bv(3))
def of_another_bias(code: Expr, bias: Expr) -> Expr:
    return adpfloat_to_fixed(code, bias + 1)


@primitive(bv(8), x=bv(20), bias=bv(3))
def truncated(x: Expr, bias: Expr) -> Expr:
    return x[19:12]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"widen": of_another_bias}, "a number with the exponent"),
        ({"narrow": truncated}, "on data has no real number"),
        ({"hidden": ("bias_u", "bias_x", "bias_c")}, "a number with the exponent"),
    ],
)
def test_states_in_another_format_are_not_proved(changes: dict[str, Any], reason: str) -> None:
    verdict = decided(with_cell("lstm", **changes), flexasr.RECURRENT["lstm"])
    assert verdict.status is Status.UNKNOWN and reason in verdict.reason, (verdict.status, verdict.reason)


def test_a_layer_of_another_kind_is_not_proved() -> None:
    assert decided(GRU, flexasr.RECURRENT["lstm"]).status is Status.UNKNOWN
    one_state = replace(LSTM, states={"tensor_out": LSTM.states["tensor_out"]})
    for changed in (one_state, with_cell("lstm", keeps="output")):
        assert decided(changed, flexasr.RECURRENT["lstm"]).status is Status.UNKNOWN


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_a_layer_of_any_length_is_covered(kind: str, rows: int) -> None:
    subject, gates = flexasr.RECURRENT[kind].joint(claims.RECURRENT[kind]), len(flexasr.GATES[kind])
    assert subject is not None
    sizes = {**claims.RECURRENT[kind].mapping.sizes_for((rows, 16, 64))}
    for inputs, features in ((16, 64), (3, 5), (1, 1)):
        stacked = gates * features
        shapes = (rows, inputs), (stacked, inputs), (stacked, features), (stacked,), (stacked,)
        assert subject.covers([TensorType("float32", s) for s in shapes], {}, sizes) == ""
