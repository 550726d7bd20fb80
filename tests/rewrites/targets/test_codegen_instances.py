"""Calls that are no instances of the claims that they rest on are refused, whoever generates them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accel_models.fixed_point import exponents, fixed_to_float, float_to_fixed
from accel_models.flexasr.functions import adpfloat_mul
from ila_lang import Expr, Function, bv, primitive
from ir_semantics.graph import Builder
from ir_semantics.graph.build import expansion
from ir_semantics.tensors.operators import concat, fill, transpose
from rewrites.claims.joints.instruction import Unread
from rewrites.claims.joints.scaled import SCALED, not_scaled
from rewrites.compiler.codegen import Call, CannotOffload, Options, declared, joints_of, operator_of, without_lemma
from rewrites.compiler.codegen.floats import Piece
from rewrites.compiler.codegen.formats import FixedCodes
from rewrites.compiler.codegen.instances import NoInstance, _of_no_lemma, boxes_of
from rewrites.compiler.codegen.interface import Part
from rewrites.mappings.conversions import SOURCE, conversion_claim
from rewrites.mappings.hlscnn.claims import PACK, READ, ROUND
from rewrites.rules.tensor.boxes import CONVOLUTION_IN_BOXES, DENSE_IN_BOXES, PRODUCT_IN_BOXES, product
from rewrites.rules.tensor.scales import NONE, SCALED_DENSE, SCALED_PRODUCT, ScaleRule, U
from rewrites.rules.tensor.words import relu
from rewrites.targets.flexasr.code import recurrent as flexasr_recurrent
from tests.rewrites.targets.nodes import DEVICES, Case, case, normal

Change = Callable[[Call], Call]


def image(
    height: int = 4, width: int = 6, kernel: tuple[int, int] = (1, 3), images: int = 1, options: Options | None = None
) -> Case:
    arrays = normal(1, images, 3, height, width), normal(2, 2, 3, *kernel)
    return case("hlscnn.conv2d", arrays, options, stride_h=1, stride_w=1)


def flexasr(inputs: int = 32) -> Case:
    arrays = normal(1, 3, inputs), normal(2, 70, inputs), normal(3, 70)
    return case("flexasr.linear", arrays, activation="relu")


def vta() -> Case:
    return case("vta.dense", (normal(1, 3, 32), normal(2, 40, 32)))


def norm() -> Case:
    return case("flexasr.layer_norm", (normal(1, 3, 32), normal(2, 32), normal(3, 32)), epsilon=1e-5)


def recurrent() -> Case:
    return case("flexasr.rnn", (normal(1, 3, 20), normal(2, 20, 20), normal(3, 20, 20), normal(4, 20), normal(5, 20)))


def sizes(**changes: int | str) -> Change:
    """Other sizes: numbers, or those of other names."""

    def change(call: Call) -> Call:
        others = {n: call.sizes[v] if isinstance(v, str) else v for n, v in changes.items()}
        return replace(call, sizes={**call.sizes, **others})

    return change


def fewer(**changes: int) -> Change:
    """Only the first 16 of 32 inputs, and parts to match."""

    def change(call: Call) -> Call:
        cut = {n: tuple((0, 16) if axis == (0, 32) else axis for axis in part) for n, part in call.parts.items()}
        parts = {**cut, "y": call.parts["y"]}
        return replace(sizes(**changes)(call), parts=parts)

    return change


def rules(*named: Any) -> Change:
    return lambda call: replace(call, rules=named)


WIDE = Options(chosen={"weight_bits": 16})
EXCHANGED = {"h": "w", "w": "h", "kh": "kw", "kw": "kh", "oh": "ow", "ow": "oh", "sh": "sw", "sw": "sh"}
WRONG: dict[str, tuple[Callable[[], Case], Change, str]] = {
    "height and width": (image, sizes(**EXCHANGED), "takes of x along axis 2 must be 4, not 6"),
    "height and width, wide weights": (
        lambda: image(options=WIDE),
        sizes(**EXCHANGED),
        "takes of x along axis 2 must be 4, not 6",
    ),
    "sides of the kernel": (
        lambda: image(5, 5),
        sizes(kh="kw", kw="kh", oh="ow", ow="oh"),
        "takes of w along axis 2 must be 1, not 3",
    ),
    "fewer channels": (image, sizes(c=2), "takes of x along axis 1 must be 3, not 2"),
    "fewer inputs on FlexASR": (flexasr, fewer(ni=1), "0 <= zeros must hold of zeros = -16"),
    "fewer inputs on VTA": (vta, fewer(kk=1, block_k=1, blocks_k=1), "0 <= zeros must hold of zeros = -16"),
    "fewer inputs of a recurrent layer": (recurrent, fewer(ni=1), "must be given all of its operands"),
    "fewer features of a normalisation": (norm, fewer(nv=1), "must be given its operands"),
    "no rule": (flexasr, rules(), "without a rule must be given its operands"),
    "no rule of zeros": (recurrent, rules(), "without a rule must be given its operands"),
    "a rule of another operator": (flexasr, rules(CONVOLUTION_IN_BOXES), "must rest on one of its rules"),
    "a rule of another activation": (
        flexasr,
        rules(DENSE_IN_BOXES["tanh"]),
        "attributes must be {'activation': 'tanh'}, not {'activation': 'relu'}",
    ),
    "two rules": (vta, rules(PRODUCT_IN_BOXES, PRODUCT_IN_BOXES), "must rest on one of its rules"),
    "a rule of the same name": (vta, rules(replace(PRODUCT_IN_BOXES)), "must rest on one of its rules"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_call_means_is_compared_with_its_node(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, change, told = WRONG[name]
    c = build()
    right = c.implementation()
    assert set(joints_of(right).values()) == {""}
    with monkeypatch.context() as patch:
        own = type(right)._calls
        patch.setattr(type(right), "_calls", lambda of: [change(call) for call in own(of)])
        with pytest.raises(CannotOffload, match=re.escape(told)):
            c.implementation()
    # nor is it an instance of the joint, however it was made
    right.calls = tuple(change(call) for call in right.calls)
    assert told in next(iter(joints_of(right).values()))


def test_a_rule_must_be_about_what_the_operator_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an operator says that a rule is one of its own, and the rule that it is one of boxes."""
    right = vta().implementation()
    (call,), operator = right.calls, operator_of(right)
    assert boxes_of(right, call)["x"] == ((0, 3), (0, 32))
    first, *others = PRODUCT_IN_BOXES.boxes
    moved = replace(PRODUCT_IN_BOXES, boxes=(first[::-1], *others))
    for other, told in (
        (replace(DENSE_IN_BOXES["none"], operands=(), attributes={}), "is no rule of vta.dense"),
        (replace(PRODUCT_IN_BOXES, of=lambda x, w: relu(product(x, w))), "which stands for something else"),
        (moved, "must be the rule of its boxes"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(operator.__dict__, "splits", (other,))
            with pytest.raises(NoInstance, match=told):
                boxes_of(right, replace(call, rules=(other,)))


@pytest.mark.parametrize("options", [Options(), WIDE])
def test_images_are_boxes_of_all_images(options: Options) -> None:
    """A program has one image, and its joint is about one."""
    c = image(images=3, options=options)
    made = c.implementation()
    assert len(made.calls) == 3 and set(joints_of(made).values()) == {""}
    done = made.run(c.operands, DEVICES)
    assert np.abs(done.value - c.exact).max() <= (made.bounds(done).on_given or 0)
    first, *_ = made.calls
    two = replace(first, parts={**first.parts, "y": ((0, 2), *first.parts["y"][1:])})
    with pytest.raises(NoInstance, match="takes of x along axis 0 must be 2, not 1"):
        boxes_of(made, two)


# -- formats and layouts ----------------------------------------------------------------------------------------------


def coarser(own: Callable[..., Any]) -> Callable[..., Any]:
    """Of x the next exponent."""

    def sizes_of(of: Any, name: str, *more: Any) -> Any:
        found = own(of, name, *more)
        each = [{**s, "exponent": s["exponent"] + (name == "x")} for s in (found if more else [found])]
        return each if more else each[0]

    return sizes_of


@pytest.mark.parametrize("build", [flexasr, vta, image, recurrent])
def test_formats_are_those_of_the_steps_that_run(build: Callable[[], Case], monkeypatch: pytest.MonkeyPatch) -> None:
    c = build()
    made = c.implementation(**({"bias_x": 2} if "bias_x" in c.quantisation else {}))
    own = type(made)
    with monkeypatch.context() as patch:
        patch.setattr(own, "_rounding_sizes", coarser(own._rounding_sizes))
        with pytest.raises(CannotOffload, match=f"x of call 0 of {c.node.operator} must have codes of the format"):
            c.implementation()
    if "bias_x" in c.quantisation:  # a class that says otherwise, too, is not believed
        monkeypatch.setattr(own, "_format", elsewhere("x")(own._format))
        (problem,) = joints_of(c.implementation(bias_x=2)).values()
        assert f"{c.node.operator} must be scaled so: x by 2^(u)" in problem


FORMATS = {"shift": (vta, 1), "nearest": (vta, -1), "bias_w": (flexasr, 1), "bias_gamma": (norm, 1)}


@pytest.mark.parametrize("size", FORMATS)
def test_formats_in_programs_are_those_of_the_quantisation(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, change = FORMATS[size]
    c = build()
    own = type(c.implementation())._calls
    change_all = lambda of: [sizes(**{size: call.sizes[size] + change})(call) for call in own(of)]  # noqa: E731
    monkeypatch.setattr(type(c.implementation()), "_calls", change_all)
    with pytest.raises(CannotOffload, match=f"{size} of call 0 of {c.node.operator} must be "):
        c.implementation()


def test_operands_lie_and_are_read_as_the_joint_says() -> None:
    """Rows of eight are a view of packed filters, and bytes of another format are bytes."""
    made, other = image().implementation(), flexasr().implementation()
    for implementation, name, wrong, told in (
        (made, "host_w", (ROUND, replace(PACK, lanes=4)), "lays it out otherwise"),
        (made, "host_x", (PACK,), "lays it out otherwise"),
        (made, "host_x", (other.conversions_of(0)["host_x"],), "must hold words of the form word, which flexasr_round"),
        (other, "host_x", (ROUND,), "must hold words of the form code, which hlscnn_round does not make"),
        (other, "host_y", (READ,), "must hold words of the form code, which hlscnn_read does not make or read"),
    ):
        (call, *_), right = implementation.calls, implementation.conversions_of(0)
        joint, laid = operator_of(implementation).stated(call.mapping), implementation.laid_out(0)
        assert joint is not None and joint.misplaced(call.sizes, laid, right) == ""
        for claim in wrong:
            assert told in joint.misplaced(call.sizes, laid, {**right, name: claim})


def square_vta() -> Case:
    return case("vta.dense", [normal(1, 64, 64)] * 2)


def square_flexasr() -> Case:
    return case("flexasr.linear", [*[normal(1, 64, 64)] * 2, normal(3, 64)], activation="relu")


def like_norm() -> Case:
    return case("flexasr.layer_norm", [normal(1, 3, 32), *[normal(2, 32)] * 2], epsilon=1e-5)


ALIKE: dict[str, tuple[Callable[[], Case], str, str, dict[str, int]]] = {
    "vta": (square_vta, "x", "w", {}),
    "flexasr": (square_flexasr, "x", "w", {"bias_x": 3, "bias_w": 3}),
    "norm": (like_norm, "gamma", "beta", {}),
}
"""Operands of the same shape and format."""


@pytest.mark.parametrize("name", ALIKE)
def test_each_operand_lies_in_the_tensor_that_the_joint_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, one, other, formats = ALIKE[name]
    c = build()
    own = type(c.implementation())
    assert set(joints_of(c.implementation(**formats)).values()) == {""}
    right, exchanged = own._host_tensor, {one: other, other: one}
    monkeypatch.setattr(own, "_host_tensor", lambda of, operand: right(of, exchanged.get(operand, operand)))
    assert f"host_{other} must hold {other}, not {one}" in joints_of(c.implementation(**formats)).values()


LSTM_OPERANDS = normal(1, 3, 5), normal(2, 16, 5), normal(3, 16, 4), normal(4, 16), normal(5, 16)


def test_gates_lie_in_the_order_that_the_joint_says(monkeypatch: pytest.MonkeyPatch) -> None:
    c = case("flexasr.lstm", LSTM_OPERANDS)
    assert set(joints_of(c.implementation()).values()) == {""}
    monkeypatch.setattr(flexasr_recurrent, "GATES", {"lstm": (0, 1, 2, 3)})
    with pytest.raises(CannotOffload, match=r"w of call 0 of flexasr.lstm must be the box .* of its codes, w being"):
        c.implementation()


def test_gates_are_the_rows_that_the_joint_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a code class lets blocks overlap: which rows they are does not follow from what it says."""
    c, own = case("flexasr.lstm", LSTM_OPERANDS), flexasr_recurrent.Recurrent._pieces

    def overlapping(of: flexasr_recurrent.Recurrent, name: str, part: Part) -> list[Piece]:
        return [replace(p, first=max(p.first - 1, 0), end=max(p.end - 1, 4)) for p in own(of, name, part)]

    monkeypatch.setattr(
        flexasr_recurrent.Recurrent,
        "_pieces",
        lambda of, name, part: overlapping(of, name, part) if name == "w" else own(of, name, part),
    )
    with pytest.raises(CannotOffload, match=r"it is the box .*\(7, 11\), \(0, 5\)\) of w from row 64 on"):
        c.implementation()


def test_tensors_without_operands_are_zeros() -> None:
    made = square_vta().implementation()
    joint = operator_of(made).stated(made.calls[0].mapping)
    assert joint is not None and made.held_by(0) == {"host_x": "x", "host_w": "w", "host_b": None}
    places = {"host_x": 0, "host_w": 1, "host_b": None}
    assert joint.exchanged(places) == ""
    assert joint.exchanged({"host_x": 0, "host_w": 1}) == "host_b must hold zeros that the host puts there"
    ones = replace(joint, tensors={**joint.tensors, "host_b": fill(1, *joint.tensors["host_b"].shape)})
    assert ones.exchanged(places) == "host_b must hold other constants than the zeros that the host puts there"


def test_blocks_are_of_the_rows_of_one_operand() -> None:
    made = case("flexasr.lstm", LSTM_OPERANDS).implementation()
    joint = operator_of(made).stated(made.calls[0].mapping)
    assert joint is not None and joint.blocks("host_w") == (0, 2, 1, 3) and joint.blocks("host_x") == (0,)
    w = joint.tensors["host_w"]
    for parts in ([w.operands[0], joint.tensors["host_u"].operands[0]], [w.operands[0], w.operands[0], *w.operands]):
        wrong = replace(joint, tensors={**joint.tensors, "host_w": concat(0, *parts)})
        with pytest.raises(Unread, match="host_w must hold blocks of one operand's rows, not"):
            wrong.blocks("host_w")


def test_tensors_that_no_program_makes_are_operands_themselves() -> None:
    """Of a pooling's, which the accelerator's program takes as the graph has them."""
    made = case("flexasr.max_pool", [normal(1, 32, 16)]).implementation()
    (call,), joint = made.calls, operator_of(made).stated(made.calls[0].mapping)
    assert joint is not None and joint.misplaced(call.sizes, made.laid_out(0)) == ""
    turned = replace(joint, tensors={"host_x": transpose(joint.operands[0], [1, 0])})
    told = turned.misplaced(call.sizes, made.laid_out(0))
    assert told.startswith("host_x must hold transpose(") and told.endswith("which no program of the host makes")


def test_calls_are_of_mappings_that_the_options_select() -> None:
    """Hardware of another branch has weights of other widths."""
    with pytest.raises(CannotOffload) as raised:
        image(options=Options(chosen={"weight_bits": 8})).implementation(weight_bits=16)
    assert str(raised.value) == (
        "its calls must be of the mappings that the options select (hlscnn_conv2d_8bit), not of hlscnn_conv2d"
    )


def elsewhere(*names: str) -> Callable[[Any], Any]:
    """A class's formats, with scales of these tensors that are one more."""

    def of(own: Any) -> Any:
        def form(self: Any, name: str) -> Any:
            found = own(self, name)
            return replace(found, scale=found.scale + (name in names))

        return form

    return of


SCALES: dict[str, tuple[Callable[[], Case], tuple[str, ...], bool]] = {
    "a bias as it is": (flexasr, ("b",), False),
    "a result that is not scaled back": (flexasr, ("y",), False),
    "all of a sum": (flexasr, ("x", "b", "y"), True),
    "a product": (vta, ("x",), False),
    "an image": (image, ("x",), False),
    "an image and its result": (image, ("x", "y"), True),
    "inputs of a layer without weights": (recurrent, ("x",), False),
    "states": (recurrent, ("y",), False),
    "offsets without factors": (norm, ("beta",), False),
    "what is normalised": (norm, ("x",), True),
}
"""Tensors that are multiplied by half of what they are otherwise, and whether that cancels out."""


@pytest.mark.parametrize("name", SCALES)
def test_scales_must_cancel_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a class says of its scales: they are those with which the host's programs convert."""
    build, tensors, cancel = SCALES[name]
    c = build()
    own = type(c.implementation())
    monkeypatch.setattr(own, "_format", elsewhere(*tensors)(own._format))
    problems = set(joints_of(c.implementation()).values()) - {""}
    assert len(problems) == (not cancel)
    for problem in problems:
        assert problem.startswith(f"{c.node.operator} must be scaled so: "), problem


def test_a_rule_of_scales_must_be_about_the_operator_and_its_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    made = flexasr().implementation()
    assert declared([made]) == {}
    right = SCALED_DENSE["relu"]
    assert isinstance(right.rule, ScaleRule) and set(joints_of(made).values()) == {""}
    forged = replace(right.rule, exponents={**right.exponents, "b": U})
    for other, told in (
        (SCALED["rnn"], "scales of rnn layers is no rule of flexasr.linear: it must be rnn of what is moved, not have"),
        (SCALED_DENSE["none"], "is not what was read for all sizes"),
        (SCALED_PRODUCT, "it must be said of flexasr.linear how b is scaled"),
        (replace(right, rule=SCALED_PRODUCT.rule), "must be a rule of scales of x, w, b, y"),
        (replace(right, exponents=forged.exponents, rule=forged), "must be the rule of its scales"),
        (replace(right, rule=DENSE_IN_BOXES["relu"]), "must be a rule of scales"),
        (
            replace(right, rule=replace(right.rule, right=right.rule.left, positive=frozenset())),
            "must be the rule of its",
        ),
        (None, ""),
    ):
        monkeypatch.setattr(type(made), "scaling", other)
        assert not declared([made])
        assert told in next(iter(joints_of(made).values())), other


def test_scales_without_a_rule_are_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "no rule of scales is stated"
    assert declared([norm().implementation()]) == {"that scales of flexasr.layer_norm cancel out": told}
    made = flexasr().implementation()
    monkeypatch.setattr(type(made), "scaling", replace(SCALED_DENSE["relu"], rule=None))
    assert set(joints_of(made).values()) == {""}  # exponents are as the author says, whether that is right or not
    assert declared([made]) == {"that scales of flexasr.linear cancel out": told}


def test_scales_of_layers_are_of_one_layer_that_is_moved() -> None:
    c = recurrent()
    graph = expansion(c.node.operator, c.types, c.node.attributes)
    right = [U, -U, NONE, NONE, NONE]
    assert not_scaled("rnn", graph, right) == ""
    assert not_scaled("gru", graph, right) == "it must be gru of what is moved, not have rnn"
    for wrong in ([U, U, *right[2:]], [U, -U, U, *right[3:]], [*right[:4], U]):
        assert not_scaled("rnn", graph, wrong) == "the operands of rnn must be scaled by the rule of such layers"
    builder = Builder()
    of = [builder.input(name, t) for name, t in zip("xwubd", c.types, strict=True)]
    result = builder.add(c.node.operator, *of)
    inputs_alone = builder.graph({"y": builder.add("reshape", of[0], shape=(20, 3))})
    assert not_scaled("rnn", inputs_alone, right) == "it must be rnn, moved"
    doubled = builder.graph({"y": builder.add("add", result, result)})
    assert "not have flexasr.rnn" in not_scaled("rnn", doubled, right)


@primitive(bv(32), code=bv(8), exponent=bv(8))
def negated(code: Expr, exponent: Expr) -> Expr:
    return fixed_to_float(8)(-code, exponent)


@primitive(bv(32), code=bv(8), unit=bv(8))
def in_units(code: Expr, unit: Expr) -> Expr:
    return fixed_to_float(8)(code, unit)


@pytest.mark.parametrize(("function", "name"), [(negated, "exponent"), (in_units, "unit")])
def test_conversions_are_by_the_functions_of_their_lemmas(
    function: Function, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of another sign, or with a scale of another name: they are refused, or declared."""
    right = vta().implementation()
    assert without_lemma(right) == [] and declared([right]) == {}
    read, own = conversion_claim("vta_read", "bytes", function, {name: exponents(8)}, codes=SOURCE), type(right)
    formats = own._format

    class Renamed(FixedCodes):
        @property
        def sizes(self) -> Mapping[str, int]:
            return {name: super().sizes["exponent"]}

    monkeypatch.setattr(own, "conversions", (*own.conversions[:-1], read))
    monkeypatch.setattr(
        own, "_format", lambda self, of: Renamed(8, formats(self, of).scale) if of == "y" else formats(self, of)
    )
    made = vta().implementation()
    told = f"y must be converted by the function of the lemma 8 bits to float32, not by {function.name}"
    assert set(joints_of(made).values()) == {told}
    monkeypatch.setattr(own, "lemmas", {n: lemmas for n, lemmas in own.lemmas.items() if n != "y"})
    assert set(joints_of(made).values()) == {""}
    assert declared([made]) == {
        "which numbers the host makes codes of, and reads, around programs of vta.dense": "no lemma is stated on "
        "conversions of y"
    }


def test_lemmas_of_conversions_are_those_on_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not any lemma of the catalogue, nor one on the other way, nor a function whose exponent has another name."""
    right = vta().implementation()
    own = type(right)
    for lemma, function, name, told in (
        ("multiply codes", adpfloat_mul, "exponent", "the function of the lemma multiply codes, not by adpfloat_mul"),
        ("float32 to 8 bits", float_to_fixed(8, False, 8), "exponent", "the function of the lemma float32 to 8 bits"),
        ("8 bits to float32", fixed_to_float(8), "unit", "y must be converted in a format that is called exponent"),
    ):
        claim = replace(own.conversions[-1], function=function, formats=(name,))
        monkeypatch.setattr(type(right), "lemmas", {**own.lemmas, "y": (lemma,)})
        monkeypatch.setattr(right, "conversions_of", lambda number, claim=claim: {"host_y": claim})
        problem = _of_no_lemma(right, 0)
        assert told in problem, problem


def test_programs_of_poolings_are_of_the_format_that_bounds_are_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their joint is about every exponent, and codes are cut to the ends of the program's."""
    c = case("flexasr.max_pool", (normal(1, 4, 16),))
    own = type(c.implementation())
    exponent = c.implementation().calls[0].sizes["exponent"]
    other = own._calls
    monkeypatch.setattr(own, "_calls", lambda self: [sizes(exponent=exponent + 2)(call) for call in other(self)])
    told = f"exponent of call 0 of flexasr.max_pool must be {exponent}, as its quantisation says, not {exponent + 2}"
    with pytest.raises(CannotOffload, match=re.escape(told)):
        c.implementation()


def test_bounds_are_of_the_formats_of_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that makes x finer cuts it: that counts, and bounds know; codes of another function are refused."""
    c, own = vta(), type(vta().implementation())
    formats = own._format
    monkeypatch.setattr(
        own, "_format", lambda self, of: replace(f := formats(self, of), scale=f.scale - 4 * (of in ("x", "y")))
    )
    made = c.implementation()
    assert set(joints_of(made).values()) == {""}
    executed = made.run(c.operands, DEVICES)
    bounds, apart = made.bounds(executed), executed.quantised["x"] @ executed.quantised["w"].T - executed.value
    assert bounds.on_quantised is not None and 1 < np.abs(apart).max() <= bounds.on_quantised
    assert executed.saturated["x"] > 50
    monkeypatch.setattr(own, "_format", lambda self, of: replace(formats(self, of), symmetric=False))
    told = "x of call 0 of vta.dense must be rounded by float_to_int8, of which its format is"
    with pytest.raises(CannotOffload, match=told):
        c.implementation()


LAYER = normal(1, 4, 32), normal(2, 16, 32), normal(3, 16)
ROUNDED: dict[str, tuple[Callable[[], Case], str, str]] = {
    "bytes": (vta, "x", "int8"),
    "biases": (lambda: case("vta.linear", LAYER, activation="none"), "b", "int32"),
    "words": (image, "x", "int16"),
    "AdaptivFloat": (flexasr, "x", "uint8"),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_numbers_of_a_format_are_those_of_the_codes_that_programs_make(name: str) -> None:
    build, operand, dtype = ROUNDED[name]
    made, form = build().implementation(), build().implementation()._format(operand)
    unit = 2.0 ** (made.exponents_of(0)[f"host_{operand}"] - 127)
    (extent,) = {made.laid_out(0)[f"host_{operand}"]}
    shape = made.types[made.operands.index(operand)].shape
    codes = [0, 0.49, 0.5, 0.51, 1, 1.5, 2.5, 16.5, 17.5, 126.5, 127, 127.49, 127.5, 128.2, 3e4, 32767.6, 8388606.5]
    values = np.resize([s * unit * n for n in (*codes, 8388607.7, 1e9) for s in (1, -1)], shape).astype(np.float32)
    own = made._rounded_codes({operand: values.view(np.uint32)[None]}, DEVICES)
    (words,) = [own[tensor] for tensor in own if tensor.startswith(f"{operand} ")]
    integers = words.view(dtype).reshape(extent).astype(np.float64)
    if dtype == "uint8":
        sign, exponent, mantissa = 1 - 2 * (integers // 128), integers % 128 // 16, integers % 16
        integers = np.where(integers % 128, sign * (1 + mantissa / 16) * 2**exponent, 0)
    told = form.rounded(values.astype(np.float64)) / unit
    matrix = told.reshape(made._matrix(operand))
    np.testing.assert_array_equal(integers[tuple(map(slice, matrix.shape))], matrix[tuple(map(slice, extent))])
