"""Operators of the graph IR and the mappings that execute them: proved to be one, and not where they are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from accel_models.flexasr.functions import adpfloat_mul
from ila_lang import Expr, Function, Kernel, bv, const, ite, mem, primitive, var
from ilaverify.catalogue import joint_entries
from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly, Operator, register
from ir_semantics.graph.types import TensorType
from ir_semantics.graph.words import transpose
from ir_semantics.tensors.elements import Element
from ir_semantics.tensors.index import Names, size
from ir_semantics.tensors.operators import fill, pad, reshape
from ir_semantics.tensors.terms import Tensor, input_
from ir_semantics.tensors.terms import element_of as element_of_tensor
from reports.binding import binding_problems
from reports.certificate import certificate_of
from rewrites.bounds.kernel.readings import ANY, Term
from rewrites.claims.joints import kernel as reading
from rewrites.claims.joints.expansion import expanded
from rewrites.claims.joints.instruction import Called, Unread
from rewrites.claims.joints.joint import Joint
from rewrites.claims.joints.kernel import KernelReading
from rewrites.claims.joints.runs import difference
from rewrites.claims.subjects.joint import JointSubject
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.flexasr import claims as flexasr_claims
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS
from rewrites.mappings.vta import claims as vta_claims
from rewrites.mappings.vta.gemm import requantise_rounded
from rewrites.targets.flexasr import operators as flexasr
from rewrites.targets.hlscnn import operators as hlscnn
from rewrites.targets.vta import operators as vta
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.rewrites.claims.joints.test_repeated_steps import FLEXASR as RECURRENT

Expand = Callable[[Assembly, Sequence[int], Attributes], int]


LONG = (
    "joint-flexasr-gru-flexasr-gru",
    "joint-flexasr-gru-from-flexasr-gru-from",
    "joint-flexasr-linear-flexasr-linear-relu",
    "joint-flexasr-linear-flexasr-linear-sigmoid",
    "joint-flexasr-linear-flexasr-linear-tanh",
    "joint-flexasr-max-pool-x3-flexasr-float-maxpool-x3",
    "joint-flexasr-lstm-flexasr-lstm",
    "joint-flexasr-max-pool-x2-flexasr-float-maxpool-x2",
    "joint-flexasr-rnn-from-flexasr-rnn-from",
    "joint-hlscnn-conv2d-hlscnn-conv2d-8bit",
    "joint-flexasr-lstm-from-flexasr-lstm-from",
    "joint-flexasr-max-pool-x4-flexasr-float-maxpool-x4",
    "joint-flexasr-mean-pool-flexasr-float-meanpool",
    "joint-flexasr-mean-pool-x2-flexasr-float-meanpool-x2",
    "joint-vta-dense-vta-gemm",
    "joint-vta-linear-vta-gemm-relu",
    "conv2d_8bit: lanes not moved",
)
"""Others like them take less time."""


def marked(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.slow) if name in LONG else name


def decided(joint: Joint, operator: Operator) -> Verdict:
    return JointSubject("the-joint", joint, operator).prove(Discharger(timeout=8.0))


def meaning(operator: Operator, expand: Expand) -> Operator:
    """An operator of the same form that stands for something else."""
    return Operator(
        operator.name, "", operator.arity, operator.kinds, operator.dtype, expand=expand, attributes=operator.attributes
    )


def of(operator: Any, claim: MappingClaim) -> Joint:
    subject = operator.joint(claim)
    assert subject is not None
    joint: Joint = subject.joint
    return joint


@pytest.mark.parametrize("name", [marked(name) for name in joint_entries()])
def test_ours_are_proved(name: str) -> None:
    subject = joint_entries()[name].build()
    assert isinstance(subject, JointSubject)
    verdict = subject.prove(Discharger(timeout=20.0))
    assert verdict.status is Status.PROVED, verdict.reason
    assert verdict.runs is not None and verdict.runs.count
    assert all(o.discharged for o in verdict.obligations)
    assert binding_problems(certificate_of(subject.semantics(), verdict, {}, "a test"), subject) == []


# -- twins of which something is wrong ------------------------------------------------------------------------------


def product(
    activation: str = "", *, turned: bool = True, bias: int | None = None, first: bool = False, times: int = 1
) -> Expand:
    """The layer; its activation comes ``first`` or last, and its bias is added so many ``times``."""

    def expand(b: Assembly, given: Sequence[int], a: Attributes) -> int:
        found = b.add("matmul", given[0], transpose(b, given[1], [1, 0]) if turned else given[1])
        found = b.add(activation, found) if first else found
        for _ in range(times if bias is not None else 0):
            found = b.add("add", found, b.add("broadcast", given[bias], axes=(1,), shape=b.shape(found)))
        return b.add(activation, found) if activation and not first else found

    return expand


def halves(operator: str) -> Expand:
    """Row t with row t + T/2, where it should be 2 t and 2 t + 1."""

    def expand(b: Assembly, given: Sequence[int], a: Attributes) -> int:
        rows, features = b.shape(given[0])
        return b.add(operator, b.add("reshape", given[0], shape=(2, rows // 2, features)), axes=(0,))

    return expand


def ends(operator: str, steps: int) -> Expand:
    """Rows t, t + T/n, ... are reduced at once."""

    def expand(b: Assembly, given: Sequence[int], a: Attributes) -> int:
        rows, features = b.shape(given[0])
        n = 1 << steps
        return b.add(operator, b.add("reshape", given[0], shape=(n, rows // n, features)), axes=(0,))

    return expand


def summed(b: Assembly, given: Sequence[int], a: Attributes) -> int:
    rows, features = b.shape(given[0])
    return b.add("reduce_sum", b.add("reshape", given[0], shape=(rows // 2, 2, features)), axes=(1,))


def strides_exchanged(b: Assembly, given: Sequence[int], a: Attributes) -> int:
    strides = (a["stride_w"], a["stride_h"])
    return b.add("conv", *given, strides=strides, pads=((0, 0), (0, 0)), dilations=(1, 1), groups=1)


def rectified(b: Assembly, given: Sequence[int], a: Attributes) -> int:
    strides = (a["stride_h"], a["stride_w"])
    return b.add("relu", b.add("conv", *given, strides=strides, pads=((0, 0), (0, 0)), dilations=(1, 1), groups=1))


CONV = {bits: of(hlscnn.CONV2D, claim) for bits, claim in CONVOLUTIONS.items()}
GEMM = of(vta.DENSE, vta_claims.GEMM)
BIASED, RELU = (of(vta.LINEAR, claim) for claim in vta_claims.GEMMS.values())
LINEAR = {a: of(flexasr.LINEAR, claim) for a, claim in flexasr_claims.LINEAR.items()}
POOL = {kind: of(flexasr.POOLS[kind], flexasr_claims.FLOAT_POOLS[kind, 1]) for kind in ("max", "mean")}
NORM = of(flexasr.LAYER_NORM, flexasr_claims.LAYER_NORM)
CHAIN = of(flexasr.POOL_CHAINS["max", 2], flexasr_claims.FLOAT_POOLS["max", 2])
C, F, KH, KW = (size(n) for n in ("channels", "filters", "kernel_rows", "kernel_columns"))
UNMOVED = reshape(pad(hlscnn.FILTERS, [0] * 4, hlscnn.PADS), F, hlscnn.BLOCKS, KH, KW, 8)
OUTPUTS = size("features_out")

TWINS: dict[str, tuple[Joint, Operator]] = {
    "vta: relu in the operator alone": (GEMM, meaning(vta.DENSE, product("relu"))),
    "vta_dense: relu in the operator alone": (
        of(vta.DENSE, vta_claims.DENSE),
        meaning(vta.DENSE, product("relu")),
    ),
    "vta: a bias that the operator has not": (
        replace(GEMM, tensors={**GEMM.tensors, "host_b": fill(1, OUTPUTS)}),
        vta.DENSE,
    ),
    "vta: the layer without its bias": (BIASED, meaning(vta.LINEAR, product())),
    "vta: relu in front of the bias": (RELU, meaning(vta.LINEAR, product("relu", bias=2, first=True))),
    "vta: relu in hardware alone": (RELU, meaning(vta.LINEAR, product(bias=2))),
    "vta: relu in the layer alone": (BIASED, meaning(vta.LINEAR, product("relu", bias=2))),
    "vta: a bias in the place of zeros": (
        replace(BIASED, tensors={**BIASED.tensors, "host_b": fill(0, OUTPUTS)}),
        vta.LINEAR,
    ),
    "vta: the bias twice": (BIASED, meaning(vta.LINEAR, product(bias=2, times=2))),
    "vta: operands exchanged": (
        replace(GEMM, tensors={**GEMM.tensors, "host_x": GEMM.operands[1], "host_w": GEMM.operands[0]}),
        vta.DENSE,
    ),
    **{
        f"linear {a}: of another activation": (
            replace(joint, attributes={"activation": "none" if a != "none" else "relu"}),
            flexasr.LINEAR,
        )
        for a, joint in LINEAR.items()
    },
    "linear: another format of the weights": (
        replace(LINEAR["none"], exponents={**LINEAR["none"].exponents, "host_w": size("bias_x")}),
        flexasr.LINEAR,
    ),
    "linear: another format of the result": (
        replace(LINEAR["relu"], exponents={**LINEAR["relu"].exponents, "host_y": size("bias_x")}),
        flexasr.LINEAR,
    ),
    "linear: without its bias": (LINEAR["none"], meaning(flexasr.LINEAR, product())),
    "max: halves": (POOL["max"], meaning(flexasr.POOLS["max"], halves("reduce_max"))),
    "max: read in another format": (
        replace(POOL["max"], given={**POOL["max"].given, "exponent_3": size("exponent") + 1}),
        flexasr.POOLS["max"],
    ),
    "mean: the sum": (POOL["mean"], meaning(flexasr.POOLS["mean"], summed)),
    "mean: the maximum": (POOL["mean"], flexasr.POOLS["max"]),
    **{
        f"{kind}, {steps} times: another reduction": (
            of(operator, flexasr_claims.FLOAT_POOLS[kind, steps]),
            meaning(operator, ends({"max": "mean", "mean": "reduce_max"}[kind], steps)),
        )
        for (kind, steps), operator in flexasr.POOL_CHAINS.items()
    },
    "max, twice: halves the second time": (
        replace(
            CHAIN,
            given={**CHAIN.given, "height_3": size("rounded_rows") // 4, "rounded_rows_4": size("rounded_rows") // 8},
        ),
        flexasr.POOL_CHAINS["max", 2],
    ),
    "layer norm: gamma and beta exchanged": (
        replace(NORM, tensors={**NORM.tensors, "host_gamma": NORM.operands[2], "host_beta": NORM.operands[1]}),
        flexasr.LAYER_NORM,
    ),
    "conv2d: strides exchanged": (CONV[16], meaning(hlscnn.CONV2D, strides_exchanged)),
    "conv2d: relu": (CONV[16], meaning(hlscnn.CONV2D, rectified)),
    "conv2d_8bit: lanes not moved": (
        replace(CONV[8], tensors={**CONV[8].tensors, "host_w": UNMOVED}),
        hlscnn.CONV2D,
    ),
    "conv2d: with relu in hardware": (replace(CONV[16], given={**CONV[16].given, "relu": 1}), hlscnn.CONV2D),
}


@pytest.mark.parametrize("name", [marked(name) for name in TWINS])
def test_a_twin_is_not_proved(name: str) -> None:
    verdict = decided(*TWINS[name])
    unread = "another format" in name or name in ("conv2d: with relu in hardware", "vta: operands exchanged")
    assert verdict.status is (Status.UNKNOWN if unread else Status.REFUTED), verdict.reason


def test_every_joint_has_a_twin() -> None:
    twins = {joint.mapping.name for joint, _ in (*TWINS.values(), *RECURRENT.values())}
    assert twins == {s.joint.mapping.name for e in joint_entries().values() if isinstance(s := e.build(), JointSubject)}


# -- what is not read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "term",
    [
        ("rectify", ("+", ANY, ANY)), ANY, *(pytest.param((n, ANY, ANY), marks=pytest.mark.slow) for n in ("max", "*")),
    ],
)  # fmt: skip
def test_a_false_reading_of_a_primitive_is_no_proof(term: Term) -> None:
    verdict = decided(replace(GEMM, readings={requantise_rounded: term}), meaning(vta.DENSE, product("relu")))
    assert verdict.status is Status.UNKNOWN and "requantise" in verdict.reason, verdict.reason
    assert term == ANY or verdict.reason.endswith(
        "; a reading is an operation on integers, in units rounded down or up: a primitive that is further off, or "
        "saturates where the result fits, has none, and what it computes is declared (leave the joint out)"
    )


def test_a_reading_of_no_function_is_refused() -> None:
    verdict = decided(replace(GEMM, readings={"requantise": ANY}), vta.DENSE)  # type: ignore[dict-item]
    reason = "readings must be of functions, not of 'requantise'; take what @primitive makes"
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, reason)


def test_a_primitive_without_a_reading_is_refused() -> None:
    verdict = decided(replace(GEMM, readings={}), vta.DENSE)
    assert verdict.status is Status.UNKNOWN and verdict.reason.endswith("is no condition on indices"), verdict.reason


def test_what_depends_on_a_size_is_refused() -> None:
    for test in (lambda n: n == 7, lambda n: n > 7, lambda n: n in {7}, lambda n: bool(n)):

        def by_size(b: Assembly, given: Sequence[int], a: Attributes, test: Callable[[int], bool] = test) -> int:
            return product("relu" if test(b.shape(given[0])[0]) else "")(b, given, a)

        verdict = decided(GEMM, meaning(vta.DENSE, by_size))
        assert verdict.status is Status.UNKNOWN, verdict
        with pytest.raises(Unread):
            expanded(meaning(vta.DENSE, by_size), GEMM.operands, {})


def caught(n: Any) -> bool:
    try:
        return bool(n > 7)
    except ValueError:
        return False


@pytest.mark.parametrize(
    "test",
    [
        lambda n: n == 100.0,
        lambda n: n in (100.0, 200.0),
        lambda n: n == 100 + 0j,
        lambda n: str(n) == "100",
        lambda n: f"{n}".startswith("1"),
        lambda n: repr(n) == "100",
        caught,
    ],
)
def test_no_size_is_another_number_a_text_or_caught(test: Callable[[Any], bool]) -> None:
    """They were PROVED: False for a symbol, and true at 100."""

    def by_size(b: Assembly, given: Sequence[int], a: Attributes) -> int:
        return product("relu" if test(b.shape(given[0])[0]) else "")(b, given, a)

    assert decided(GEMM, meaning(vta.DENSE, by_size)).status is Status.UNKNOWN


def test_the_graph_of_each_node_is_the_one_that_was_read() -> None:
    """A function can see whether a size is a number; what it does then is no part of the proof."""

    def by_number(b: Assembly, given: Sequence[int], a: Attributes) -> int:
        large = isinstance(b.shape(given[0])[0], int) and b.shape(given[0])[0] > 100
        return product("relu" if large else "")(b, given, a)

    operator = Operator(
        "test.by_number",
        "",
        vta.DENSE.arity,
        vta.DENSE.kinds,
        vta.DENSE.dtype,
        expand=by_number,
        attributes=frozenset(),
    )
    register(operator)
    rule = GEMM.rule("j", operator)
    for rows, told in ((2, ""), (101, "what test.by_number stands for at float32[101, 16], float32[32, 16] is not")):
        types = (TensorType("float32", (rows, 16)), TensorType("float32", (32, 16)))
        sizes = GEMM.mapping.mapping.sizes_of(rows, 16, 32, rows, 16, 32)
        assert GEMM.covers(operator, rule, types, {}, sizes).startswith(told)
        assert bool(GEMM.covers(operator, rule, types, {}, sizes)) == bool(told)


def test_an_operator_of_other_shapes_is_refused() -> None:
    verdict = decided(GEMM, meaning(vta.DENSE, product(turned=False)))
    assert verdict.status is not Status.PROVED


def test_memories_and_operands_must_be_those_of_the_instruction() -> None:
    for wrong in (
        replace(GEMM, given={"columns": 3}),
        replace(GEMM, tensors={**GEMM.tensors, "host_y": GEMM.operands[0]}),
        replace(GEMM, tensors={**GEMM.tensors, "rows": GEMM.operands[0]}),
        replace(GEMM, tensors={"host_x": GEMM.operands[0], "host_w": GEMM.operands[1]}),
    ):
        assert decided(wrong, vta.DENSE).status is Status.UNKNOWN


N = var("n", bv(32))
X8, Y8, Y32 = (var(name, mem(32, width)) for name, width in (("x", 8), ("y", 8), ("y", 32)))


def element_of(
    body: Callable[[Kernel, Expr], None],
    of: Tensor = input_("x", size("n")),  # noqa: B008
    readings: Mapping[Function, Term] = MappingProxyType({}),
) -> Element:
    """What a kernel stores that has one loop around ``body``, where the term ``of`` lies in its memory x."""
    tensor = reading_of(body, readings).tensor([of], (size("n"),))
    return element_of_tensor(tensor, [size("i")], Names())


def reading_of(
    body: Callable[[Kernel, Expr], None], readings: Mapping[Function, Term] = MappingProxyType({})
) -> KernelReading:
    kernel = Kernel("tried")
    with kernel.loop("i", N) as i:
        body(kernel, i)
    return KernelReading(called(kernel), {"x": (size("n"),)}, readings=readings)


def called(kernel: Kernel) -> Called:
    return Called("TRIED", kernel, {"x": X8, "y": Y8}, {N: N}, {N: "n"})


def folded(step: Callable[[Kernel, Expr, Expr, Expr], Expr]) -> Callable[[Kernel, Expr], None]:
    """One register, and what a loop makes of it and an element."""

    def body(k: Kernel, i: Expr) -> None:
        acc = k.let("acc", const(0, 32))
        with k.loop("j", N) as j:
            x = k.load("word", X8, j)
            k.assign(acc, step(k, acc, x, j))
        k.store(Y32, i, acc)

    return body


def test_a_fold_is_a_sum() -> None:
    assert str(element_of(folded(lambda k, acc, x, j: acc + x.sext(32)))) == "sum(k.2 < n: x[k.2])"
    guarded = folded(lambda k, acc, x, j: ite(j < 3, acc + x.sext(32) * x.sext(32), acc))
    assert str(element_of(guarded)) == "sum(k.2 < n: (if k.2 <= 2 then mul(x[k.2], x[k.2]) else 0))"


def unequal(k: Kernel, i: Expr) -> None:
    k.store(Y8, i, const(0, 8))
    k.store(Y8, i, k.load("word", X8, i))


def kept(k: Kernel, i: Expr) -> None:
    k.store(Y8, i + 1, k.load("word", X8, i))


def own_result(k: Kernel, i: Expr) -> None:
    k.store(Y8, i, k.load("word", Y8, i))


def larger(k: Kernel, i: Expr) -> None:
    one, other = k.load("one", X8, i), k.load("other", X8, N - 1 - i)
    k.store(Y8, i, ite(one.slt(other), other, one))


def larger_product(k: Kernel, i: Expr) -> None:
    x = k.load("word", X8, i)
    k.store(Y8, i, x * x)


UNREAD: dict[str, tuple[Callable[[Kernel, Expr], None], str]] = {
    "two stores": (unequal, "the kernel must store once"),
    "a store at another place": (kept, "not so: the result is stored row-major, at o.1, which o.1 + 1 is"),
    "its own result": (own_result, "what lies in y must be said"),
    "a comparison of data": (larger, "'bvslt' is no condition on indices"),
    "a product as a fold": (folded(lambda k, acc, x, j: adpfloat_mul(x, acc[7:0])), "on data has no real number"),
    "what is kept, twice": (folded(lambda k, acc, x, j: acc + acc), "a fold must add to what it keeps"),
    "a choice by data": (folded(lambda k, acc, x, j: ite(x == 0, acc, acc + x.sext(32))), "is no index"),
    "bits": (folded(lambda k, acc, x, j: acc + (x.sext(32) ^ 1)), "on data has no real number"),
    "a literal": (folded(lambda k, acc, x, j: acc + 1), "on data has no real number"),
    "a product that wraps": (larger_product, "must not be combined by bvmul"),
    "numbers without a sign": (folded(lambda k, acc, x, j: acc + x.zext(32)), "on data has no real number"),
    "a code as an integer": (
        folded(lambda k, acc, x, j: acc + adpfloat_mul(x, x) + x.sext(32)),
        "a word of the form code must not be used as integer",
    ),
    "products and integers": (
        folded(lambda k, acc, x, j: ite(j < 3, acc + adpfloat_mul(x, x), acc * adpfloat_mul(x, x))),
        "must not be combined by bvmul",
    ),
}


def test_a_condition_on_a_part_of_an_address_is_read() -> None:
    def body(k: Kernel, i: Expr) -> None:
        acc = k.let("acc", const(0, 32))
        with k.loop("j", N) as j:
            at = (j << 1) + 1
            word = k.load("word", X8, at).sext(32)
            k.assign(acc, ite(at < N, acc + word, acc))
        k.store(Y32, i, acc)

    assert "x[2*k.2 + 1]" in str(element_of(body))


@primitive(a=bv(32), b=bv(32), shift=bv(5))
def moved(a: Expr, b: Expr, shift: Expr) -> Expr:
    return (a + b).ashr(shift.zext(32))[7:0]


@pytest.mark.parametrize(
    "shift",
    [
        lambda k, i, n: i[4:0],
        lambda k, i, n: k.load("element", X8, i)[4:0],
        lambda k, i, n: ite(i == 0, const(1, 5), const(0, 5)),
    ],
    ids=["place", "data", "choice"],
)
def test_a_result_is_shifted_by_one_number_of_bits(shift: Callable[[Kernel, Expr, Expr], Expr]) -> None:
    """It was dropped: row c divided by 2^c was PROVED to be the row."""

    def body(k: Kernel, i: Expr) -> None:
        word = k.load("word", X8, i).sext(32)
        k.store(Y8, i, moved(word, const(0, 32), shift(k, i, N)))

    with pytest.raises(Unread, match=r"is no index|must shift all results by the same number of bits"):
        element_of(body, readings={moved: ("+", ANY, ANY)})


def test_integers_have_no_exponents() -> None:
    """2^e x times 2^e w is not 2^e x w; only codes have biases, which products add up."""
    wrong = replace(GEMM, exponents={"host_x": size("e"), "host_w": size("e"), "host_y": size("e")})
    verdict = decided(wrong, vta.DENSE)
    assert verdict.status is Status.UNKNOWN and "must have the exponent 0, not e" in verdict.reason, verdict.reason


def test_words_lie_inside_wherever_they_are_part_of_a_number() -> None:
    """Not where they are read: a word beyond the tensor may be read, and dropped."""

    def body(k: Kernel, i: Expr) -> None:
        word = k.load("word", X8, i + (N >> 6))
        k.store(Y8, i, ite(i.zext(33) + (N >> 6).zext(33) < N.zext(33), word, const(0, 8)))

    (asked,) = (o for o in reading_of(body).run.obligations if "is one of the tensor in it" in o.meaning)
    inside, used = asked.hypotheses
    assert str(inside) == "0 <= o.1 and o.1 + 1 <= n" and str(used) == "((n) // (64)) + o.1 + 1 <= n"


@pytest.mark.parametrize("name", UNREAD)
def test_a_kernel_that_is_not_read(name: str) -> None:
    body, message = UNREAD[name]
    with pytest.raises(Unread, match=re.escape(message)):
        element_of(body)


# -- runs find faults of the readings --------------------------------------------------------------------------------


def test_runs_find_a_kernel_that_is_read_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = LINEAR["relu"]
    assert difference(joint, flexasr.LINEAR, joint.rule("j", flexasr.LINEAR)) == ""
    with monkeypatch.context() as patch:
        patch.setattr(reading, "_added", lambda element, register: ("sum", reading.ZERO))
        wrong = replace(joint).rule("j", flexasr.LINEAR)
        assert difference(joint, flexasr.LINEAR, wrong).startswith("the kernel is not what is read of it where")


def test_runs_find_an_operator_that_is_read_wrongly() -> None:
    wrong = LINEAR["relu"].rule("j", meaning(flexasr.LINEAR, product("tanh", bias=2)))
    told = difference(LINEAR["relu"], flexasr.LINEAR, wrong)
    assert told.startswith("the operator's graph is not what is read of it where")


# -- calls ------------------------------------------------------------------------------------------------------------


def test_a_call_must_be_one_of_the_joint() -> None:
    joint = CONV[16]
    rule = joint.rule("j", hlscnn.CONV2D)
    mapping = joint.mapping.mapping
    sizes = mapping.sizes_of(2, 3, 5, 6, 3, 2, 1, 2)
    strides = {"stride_h": 1, "stride_w": 2}
    images = (TensorType("float32", (1, 2, 5, 6)), TensorType("float32", (3, 2, 3, 2)))

    def told(attributes: dict[str, Any], parameters: dict[str, int], types: Any = images) -> str:
        return joint.covers(hlscnn.CONV2D, rule, types, attributes, parameters)

    assert told(strides, sizes) == ""
    assert told({**strides, "stride_h": 2}, sizes) == "stride_h must be 1, not 2"
    assert told(strides, {**sizes, "relu": 1}) == "relu must be 0, not 1"
    assert told(strides, {**sizes, "oh": sizes["oh"] - 1}) == "rows must be 3, not 2"
    for types in (images[:1], (*images, images[0]), (images[0], TensorType("float64", (3, 2, 3, 2)))):
        assert told(strides, sizes, types).startswith("operands must be such as float32[")
    linear = LINEAR["relu"]
    sizes = linear.mapping.mapping.sizes_of(2, 16, 64)
    types = tuple(TensorType("float32", s) for s in ((2, 16), (64, 16), (64,)))
    rule = linear.rule("j", flexasr.LINEAR)
    assert linear.covers(flexasr.LINEAR, rule, types, {"activation": "relu"}, sizes) == ""
    other = linear.covers(flexasr.LINEAR, rule, types, {"activation": "none"}, sizes)
    assert other == "activation must be relu, not none"
