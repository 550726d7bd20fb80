"""Layer normalisation: its operator, for every epsilon, is the real number that its bound is about; no other one is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from accel_models.flexasr.functions import eadd, emul, inv_sqrt, norm_divide
from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat
from ila_lang import Expr, Fragment, Function, bv, const, primitive
from ila_lang.language.kernel import For, Load, Statement
from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly, Operator, register
from ir_semantics.graph.types import TensorType
from ir_semantics.graph.words import literal
from ir_semantics.layers.layer import call
from ir_semantics.layers.normalisation import NORM_CODE, layer_norm_ir
from ir_semantics.tensors.index import size
from ir_semantics.tensors.operators import reverse
from rewrites.bounds.derivations.calculus import Operator as Bounded
from rewrites.claims.gate import Gate
from rewrites.claims.joints import theorem
from rewrites.claims.joints.joint import Joint
from rewrites.claims.joints.runs import difference
from rewrites.claims.subjects.bounds import BoundSubject
from rewrites.claims.subjects.joint import JointSubject
from rewrites.claims.theorems import flexasr as bounds
from rewrites.claims.theorems.derived import derived
from rewrites.compiler.codegen import joint_problem
from rewrites.mappings.flexasr import claims
from rewrites.mappings.flexasr import layer_norm as mapping
from rewrites.targets.flexasr.operators import LAYER_NORM
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger

SUBJECT = LAYER_NORM.joint(claims.LAYER_NORM)
assert SUBJECT is not None
JOINT = SUBJECT.joint


def decided(joint: Joint, operator: Operator = LAYER_NORM) -> Verdict:
    return JointSubject("the-joint", joint, operator).prove(Discharger(timeout=20.0))


def refuted(joint: Joint, operator: Operator = LAYER_NORM) -> bool:
    """Whether it is refuted, with data that show it again."""
    subject = JointSubject("the-joint", joint, operator)
    verdict = subject.prove(Discharger(timeout=20.0))
    if verdict.status is not Status.REFUTED:
        return False
    refutation = subject.shown(verdict.details["counterexample"])  # type: ignore[arg-type]
    return subject.replayed(refutation.document) is not None


# -- operators ---------------------------------------------------------------------------------------------------------


def meaning(expand: Callable[[Assembly, Sequence[int], Attributes], int]) -> Operator:
    return Operator(
        LAYER_NORM.name,
        "",
        range(3, 4),
        LAYER_NORM.kinds,
        LAYER_NORM.dtype,
        expand=expand,
        attributes=LAYER_NORM.attributes,
    )


def normalisation(
    *,
    centred: bool = True,
    spread: bool = True,
    less: int = 0,
    inside: bool = True,
    epsilon: Callable[[float], float] = lambda e: e,
    affine: tuple[int, ...] = (1, 2),
    scaled: bool = True,
    by_row: bool = False,
) -> Operator:
    """(x - mean) / sqrt(variance + epsilon) gamma + beta, written anew, with what may be wrong in it."""

    def expand(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        (rows, features), shape = b.shape(of[0]), b.shape(of[0])

        def over(x: int, axis: int) -> int:
            return b.add("broadcast", x, axes=(axis,), shape=shape)

        def mean(x: int, less: int = 0) -> int:
            ones = b.add("broadcast", literal(b, 1, "float32"), axes=(), shape=(rows, features - less))
            count = b.add("reduce_sum", ones, axes=(1,))
            return b.add("div", b.add("reduce_sum", x, axes=(1,)), count)

        from_mean = b.add("sub", of[0], over(mean(of[0]), 0))
        deviating = from_mean if spread else of[0]
        variance = mean(b.add("mul", deviating, deviating), less)
        value = a["epsilon"]
        assert isinstance(value, float)
        more = b.add("broadcast", literal(b, epsilon(value), "float32"), axes=(), shape=(rows,))
        if inside:
            deviation = b.add("sqrt", b.add("add", variance, more))
        else:
            deviation = b.add("add", b.add("sqrt", variance), more)
        result = b.add("div", from_mean if centred else of[0], over(deviation, 0))
        factor, offset = (of[n] for n in affine)
        if by_row:
            factor = b.add("slice", factor, start=(0,), stop=(rows,), stride=(1,))
        result = b.add("mul", result, over(factor, 0 if by_row else 1)) if scaled else result
        return b.add("add", result, over(offset, 1))

    return meaning(expand)


def test_it_is_written_anew() -> None:
    assert decided(JOINT, normalisation()).status is Status.PROVED


WRONG_OPERATORS: Mapping[str, Operator] = {
    "epsilon outside of the root": normalisation(inside=False),
    "a variance with one less": normalisation(less=1),
    "the mean is not subtracted": normalisation(centred=False),
    "the mean is not subtracted in the variance": normalisation(spread=False),
    "gamma and beta exchanged": normalisation(affine=(2, 1)),
    "gamma twice": normalisation(affine=(1, 1)),
    "no gamma": normalisation(scaled=False),
    "gamma of another axis": normalisation(by_row=True),
    "twice epsilon": normalisation(epsilon=lambda e: 2 * e),
    "an epsilon of its own": normalisation(epsilon=lambda e: 1e-5),
    "no epsilon": normalisation(epsilon=lambda e: 0.0),
}


@pytest.mark.parametrize("name", WRONG_OPERATORS)
def test_a_wrong_operator_is_refuted(name: str) -> None:
    assert refuted(JOINT, WRONG_OPERATORS[name])


def node(operator: Operator, epsilon: float, rows: int = 2, features: int = 32) -> str:
    """Why a program is none of a node with an epsilon."""
    types = tuple(TensorType("float32", s) for s in ((rows, features), (features,), (features,)))
    return JOINT.covers(
        operator, JOINT.rule("j", operator), types, {"epsilon": epsilon}, mapping.sizes_of(rows, features)
    )


def test_a_node_has_the_graph_that_was_read_with_its_own_epsilon() -> None:
    for epsilon in (0.0, 1e-12, 1e-5, 0.5):
        assert node(LAYER_NORM, epsilon) == ""


SEEN: Mapping[str, Callable[[float], float]] = {
    "small ones are doubled": lambda e: 2 * e if e < 1e-4 else e,
    "0 is another one": lambda e: e or 1e-5,
    "it is not used": lambda e: 1 + 2.0**-20,
}


@pytest.mark.parametrize("name", SEEN)
def test_an_operator_that_sees_its_epsilon_has_nodes_that_are_not_covered(name: str) -> None:
    """One that is not used is a number like the one that stands for all while the graph is read."""

    def expand(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        return b.add("layer_norm", *of, axes=(1,), epsilon=SEEN[name](float(a["epsilon"])))  # type: ignore[arg-type]

    operator = register(replace(meaning(expand), name=f"tried.layer_norm_{len(name)}"))
    told = [node(operator, e) for e in (0.0, 1e-5)]
    assert any("is not what was read for all sizes" in why for why in told), told


# -- kernels and bounds -----------------------------------------------------------------------------------------------


@primitive(bv(20), total=bv(24), total_squares=bv(24), count=bv(24))
def without_the_square(total: Expr, total_squares: Expr, count: Expr) -> Expr:
    return inv_sqrt(norm_divide(total_squares, count))


def _of_the_name_alone() -> Function:
    @primitive(bv(20), of=bv(20))
    def inv_sqrt(of: Expr) -> Expr:
        return const(1 << 14, 20)

    return inv_sqrt


_NO_ROOT = _of_the_name_alone()


@primitive(bv(20), total=bv(24), total_squares=bv(24), count=bv(24))
def always_the_same(total: Expr, total_squares: Expr, count: Expr) -> Expr:
    mean = norm_divide(total, count)
    return _NO_ROOT(norm_divide(total_squares, count) - emul(mean, mean))


@primitive(bv(20), total=bv(24), total_squares=bv(24), count=bv(24))
def one_less(total: Expr, total_squares: Expr, count: Expr) -> Expr:
    mean = norm_divide(total, count)
    return inv_sqrt(norm_divide(total_squares, count - 1) - emul(mean, mean))


FINISH = {
    **dict.fromkeys(("x", "mean", "inverse"), bv(20)),
    **dict.fromkeys(("gamma", "beta"), bv(8)),
    **dict.fromkeys(("bias_x", "bias_gamma", "bias_beta"), bv(3)),
}


@primitive(bv(8), **FINISH)
def not_centred(
    x: Expr, mean: Expr, inverse: Expr, gamma: Expr, beta: Expr, bias_x: Expr, bias_gamma: Expr, bias_beta: Expr
) -> Expr:
    scaled = emul(emul(x, inverse), adpfloat_to_fixed(gamma, bias_gamma))
    return fixed_to_adpfloat(eadd(scaled, adpfloat_to_fixed(beta, bias_beta)), bias_x)


@primitive(bv(8), **FINISH)
def exchanged(
    x: Expr, mean: Expr, inverse: Expr, gamma: Expr, beta: Expr, bias_x: Expr, bias_gamma: Expr, bias_beta: Expr
) -> Expr:
    return mapping.norm_finish(x, mean, inverse, beta, gamma, bias_x, bias_beta, bias_gamma)


@primitive(bv(8), **FINISH)
def one_bias(
    x: Expr, mean: Expr, inverse: Expr, gamma: Expr, beta: Expr, bias_x: Expr, bias_gamma: Expr, bias_beta: Expr
) -> Expr:
    return mapping.norm_finish(x, mean, inverse, gamma, beta, bias_x, bias_beta, bias_beta)


def fragment(*, at: Callable[[Expr, Expr], Expr] | None = None, **changed: Any) -> Fragment:
    """The IR side with another arithmetic, or with gamma at another place of the feature and their number."""
    ila = layer_norm_ir(replace(mapping.OPERATOR, **changed))
    (instruction,) = ila.instructions.values()
    if at is not None:
        assert instruction.kernel is not None
        instruction.kernel.body[:] = [_moved(s, at) for s in instruction.kernel.body]
    operands = {"rows": mapping.T, "blocks": mapping.NV, **{n: v[2:0] for n, v in mapping.BIASES.items()}}
    return call("ir_layer_norm", "", NORM_CODE, ila, mapping.PARAMETERS, operands)


def _moved(statement: Statement, at: Callable[[Expr, Expr], Expr]) -> Statement:
    if isinstance(statement, For):
        moved = tuple(_moved(s, at) for s in statement.body)
        if statement.counter.name == "feature":
            moved = tuple(
                replace(s, address=at(s.address, statement.extent))
                if isinstance(s, Load) and s.memory.name == "tensor_gamma"
                else s
                for s in moved
            )
        return replace(statement, body=moved)
    return statement


def joined(ir: Fragment, of_bound: Fragment | None = None, **names: Any) -> Joint:
    """The joint of a mapping with this IR side and the bound that is derived from one, with these names."""
    real, own = JOINT.mapping.mapping, bounds.LAYER_NORM
    assert own.written.source is not None
    attributes = {n: getattr(real, n) for n in ("output", "inputs", "lemmas", "parameters", "compared")}
    claim: Any = SimpleNamespace(name="tried", mapping=SimpleNamespace(ir=ir, **attributes))
    known = replace(own.written.source.names, **names)
    bound = Bounded(own.name, "", own.symbols, derived(lambda: of_bound or ir, known), own.example)
    return replace(JOINT, mapping=claim, bound=bound)


def test_names_of_leaves_say_nothing() -> None:
    names = bounds.LAYER_NORM.written.source.names.leaves  # type: ignore[union-attr]
    other = {**names, "factor": replace(names["factor"], name="beta"), "offset": replace(names["offset"], name="gamma")}
    verdict = decided(joined(fragment(), leaves=other))
    assert verdict.status is Status.PROVED, verdict.reason


WRONG_KERNELS: Mapping[str, Callable[[], Joint]] = {
    "the square of the mean is missing": lambda: joined(fragment(scale=without_the_square)),
    "the mean is not subtracted": lambda: joined(fragment(finish=not_centred)),
    "gamma and beta exchanged": lambda: joined(fragment(finish=exchanged)),
    "gamma from its end": lambda: joined(fragment(at=lambda feature, features: features - 1 - feature)),
    "a bound without epsilon": lambda: joined(fragment(), omitted={}),
    "beta reversed by the host": lambda: replace(
        JOINT, tensors={**JOINT.tensors, "host_beta": reverse(JOINT.operands[2], 0)}
    ),
}


@pytest.mark.parametrize("name", WRONG_KERNELS)
def test_a_wrong_kernel_is_refuted(name: str) -> None:
    assert refuted(WRONG_KERNELS[name]())


UNREAD: Mapping[str, tuple[Callable[[], Joint], str]] = {
    "a variance with one less": (lambda: joined(fragment(scale=one_less)), "layer_norm has no bound: an average must"),
    "gamma of another bias": (
        lambda: joined(fragment(finish=one_bias)),
        "layer_norm has no bound: adpfloat_to_fixed must be of the biases b_gamma, not b_beta",
    ),
    "gamma of another axis": (
        lambda: joined(fragment(at=lambda feature, features: feature * features)),
        "the word 16*blocks*o.2 of tensor_gamma is one of the tensor in it",
    ),
    "gamma beyond its end": (
        lambda: joined(fragment(at=lambda feature, features: feature + 1)),
        "is one of the tensor",
    ),
    "a bound of another kernel": (
        lambda: joined(fragment(), fragment(scale=without_the_square)),
        "the bound of FlexASR layer norm must be of the kernel layer_norm, which has other steps",
    ),
    "a primitive that has only a name": (
        lambda: replace(joined(fragment(scale=always_the_same)), bound=bounds.LAYER_NORM),
        "the bound of FlexASR layer norm must be of the kernel layer_norm, which has other functions",
    ),
    "a bound of another operator": (
        lambda: replace(JOINT, bound=bounds.LINEAR["none"]),
        "layer_norm has no bound: ",
    ),
    "another number that is left out": (
        lambda: joined(fragment(), omitted={"inverse root": ("delta", "1/99999")}),
        "delta of the bound must be a word of a memory, as it lies there",
    ),
    "a bound for as many rows": (
        lambda: joined(fragment(), given={"rows": 2}),
        "rows must be 2, as in the bound of FlexASR layer norm",
    ),
    "gamma in another format": (
        lambda: replace(JOINT, exponents={**JOINT.exponents, "host_gamma": size("bias_x")}),
        "a number with the exponent bias_x must not be used as one with bias_gamma",
    ),
    "a result in another format": (
        lambda: replace(JOINT, exponents={**JOINT.exponents, "host_y": size("bias_beta")}),
        "must not be used as one with bias_",
    ),
    "an epsilon that is no attribute": (
        lambda: replace(JOINT, numbers=frozenset({"delta"})),
        "epsilon of the bound must be a word of a memory, as it lies there",
    ),
    "without a bound": (lambda: replace(JOINT, bound=None), "a word of the form fixed must not be used as integer"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_not_read_says_why(name: str) -> None:
    joint, told = UNREAD[name]
    verdict = decided(joint())
    assert verdict.status is Status.UNKNOWN and told in verdict.reason, verdict.reason


# -- runs, certificates and the gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{"+": "sub"}, {"*": "maximum"}])
def test_runs_find_a_bound_that_is_read_wrongly(changed: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert difference(JOINT, LAYER_NORM, JOINT.rule("j", LAYER_NORM)) == ""
    monkeypatch.setattr(theorem, "_SCALAR", {**theorem._SCALAR, **changed})
    wrong = replace(JOINT)
    told = difference(wrong, LAYER_NORM, wrong.rule("j", LAYER_NORM))
    assert told.startswith("the kernel is not what is read of it where")


def test_a_certificate_is_of_the_operator_the_kernel_and_the_bound() -> None:
    own = JointSubject("the-joint", JOINT, LAYER_NORM).semantics()
    others = {
        "left": JointSubject("the-joint", JOINT, normalisation(inside=False)),
        "right": JointSubject("the-joint", joined(fragment(scale=without_the_square)), LAYER_NORM),
        "bound, kernel": JointSubject("the-joint", joined(fragment(scale=without_the_square)), LAYER_NORM),
        "bound, theorem": JointSubject(
            "the-joint", joined(fragment(), omitted={"inverse root": ("epsilon", "1/9999")}), LAYER_NORM
        ),
    }
    for part, other in others.items():
        assert own[part] != other.semantics()[part], part


def test_the_operator_has_the_bound_that_its_joint_is_about() -> None:
    told = "tried.norm must have for flexasr_layernorm the one bound that its joint is about, FlexASR layer norm"
    for others in ({}, {claims.LAYER_NORM: (bounds.LINEAR["none"],)}):
        with pytest.raises(ValueError, match=f"^{told}$"):
            replace(LAYER_NORM, name="tried.norm", bounds=others)


def test_without_its_bound_the_operator_is_not_executed() -> None:
    needed = LAYER_NORM.rests(claims.LAYER_NORM)
    assert needed[0] == "bound-flexasr-layer-norm" and "lemma-inverse-root" in needed
    admitted: dict[str, Any] = {name: SimpleNamespace(subject=None) for name in needed}
    admitted[needed[0]] = SimpleNamespace(subject=BoundSubject(needed[0], bounds.LAYER_NORM))
    admitted[SUBJECT.name] = SimpleNamespace(subject=SUBJECT)

    def problem(**changed: Any) -> tuple[str, str] | None:
        return joint_problem(LAYER_NORM, claims.LAYER_NORM, Gate({**admitted, **changed}, {}))

    assert problem() is None
    for name in (*needed, SUBJECT.name):
        without = {n: a for n, a in admitted.items() if n != name}
        assert joint_problem(LAYER_NORM, claims.LAYER_NORM, Gate(without, {name: "why"})) == (name, "why")
    for name, other, told in (
        (needed[0], BoundSubject(needed[0], joined(fragment(), omitted={}).bound), "bound"),  # type: ignore[arg-type]
        (SUBJECT.name, JointSubject(SUBJECT.name, replace(JOINT), LAYER_NORM), "joint"),
    ):
        assert problem(**{name: SimpleNamespace(subject=other)}) == (
            name,
            f"the certificate of this name is of another {told}",
        )
