"""Sequences of proved programs: what follows from their claims together, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from accel_models.flexasr.floats import EXPONENT_AT_0
from accel_models.flexasr.quantise import Quantised, quantise
from ila_lang.mapping import SizeError
from ila_lang.streams.programs import InstanceError
from ila_lang.streams.simulator import Simulator
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.conversions import axis_sizes
from rewrites.mappings.flexasr.claims import CLAIMS, LINEAR, READ, ROUND
from rewrites.mappings.hlscnn.claims import CONVOLUTIONS, PACK
from rewrites.mappings.packing import PackingClaim, packing_fragment
from rewrites.mappings.sequence import HostTensor, ProgramSequence, SequenceError, Step
from rewrites.mappings.vta.claims import READ as OF_BYTES
from tests.accel_models.flexasr import tensor_oracle

ROWS, INPUTS, OUTPUTS = 3, 20, 70
DENSE, RELOADED = LINEAR["none"], next(c for c in CLAIMS if c.name == "flexasr_maxpool_x2_reloaded")
SIZES = DENSE.mapping.sizes_for((ROWS, 32, 128))
FORMAT = {"exponent": EXPONENT_AT_0}
TENSORS = {
    **{n: HostTensor(s, 32) for n, s in {"x": (ROWS, INPUTS), "w": (OUTPUTS, INPUTS), "b": (OUTPUTS, 1)}.items()},
    **{n: HostTensor(s, 8) for n, s in {"x codes": (ROWS, 32), "w codes": (128, 32), "b codes": (128, 1)}.items()},
    "y codes": HostTensor((ROWS, 128), 8),
    "y": HostTensor((ROWS, OUTPUTS), 32),
}
HOST = {"host_x": "x codes", "host_w": "w codes", "host_b": "b codes", "host_y": "y codes"}


def rounding(name: str, **changes: int) -> Step:
    """An operand to codes, padded."""
    (rows, columns), (high, wide) = TENSORS[name].shape, TENSORS[f"{name} codes"].shape
    sizes = axis_sizes(1, x=rows, first=0, count=high, place=0, y=high)
    sizes |= axis_sizes(2, x=columns, first=0, count=wide, place=0, y=wide) | FORMAT | changes
    return Step(ROUND, sizes, {"host_x": name, "host_y": f"{name} codes"})


def reading(**changes: int) -> Step:
    """The result of codes, without padding."""
    sizes = axis_sizes(1, x=ROWS, first=0, count=ROWS, place=0, y=ROWS)
    sizes |= axis_sizes(2, x=128, first=0, count=OUTPUTS, place=0, y=OUTPUTS) | FORMAT | changes
    return Step(READ, sizes, {"host_x": "y codes", "host_y": "y"})


def layer(claim: MappingClaim = DENSE, **tensors: str) -> Step:
    return Step(claim, SIZES, HOST | tensors)


ROUNDED = [rounding(name) for name in "xwb"]


def sequence(steps: list[Step], given: str = "xwb", **tensors: HostTensor) -> ProgramSequence:
    return ProgramSequence(TENSORS | {n.replace("_", " "): t for n, t in tensors.items()}, set(given), steps)


def test_a_sequence_computes_the_layer_of_rounded_numbers() -> None:
    draw = np.random.default_rng(4)
    arrays = {n: (draw.normal(size=TENSORS[n].shape) / 8).astype(np.float32) for n in "xwb"}
    contents: dict[str, Any] = {n: a.view(np.uint32).reshape(1, -1) for n, a in arrays.items()}
    both = sequence([*ROUNDED, layer(), reading()])
    device = Simulator(DENSE.mapping.device.ila), Simulator(ROUND.mapping.device.ila)
    both.run(both.steps, contents, lambda ila: next(d for d in device if d.ila is ila))
    x, w, b = (quantise(a if n != "b" else a[:, 0], 0) for n, a in arrays.items())
    expected = Quantised(tensor_oracle.linear(x, w, b, 0, None), 0).values
    assert np.array_equal(contents["y"].view(np.float32).reshape(ROWS, OUTPUTS), expected)


def test_a_claim_that_says_it_converts_a_box_must_do_so() -> None:
    """What is written is known of the IR side alone, so that must be the one of the function that the claim names."""
    own = READ.mapping
    other = replace(OF_BYTES.mapping, name=READ.name)
    forged = {
        "its IR side is another": (replace(READ, function=ROUND.function), replace(READ, build=lambda: other)),
        "it names no function": (replace(READ, function=None),),
        "its mapping does not compare all of y": (
            replace(READ, build=lambda: replace(own, cell=(), rows=own.parameters["Y1"])),
            replace(READ, build=lambda: replace(own, cell=tuple((c, own.parameters["count1"]) for c, _ in own.cell))),
        ),
        "its mapping compares other tensors": (replace(READ, build=lambda: replace(own, inputs=own.inputs[:1])),),
    }
    assert READ.problem == ROUND.problem == ""
    for why, claims in forged.items():
        for claim in claims:
            with pytest.raises(SequenceError, match=f"flexasr_read must convert a box, as it says; {why}"):
                sequence([*ROUNDED, layer(), replace(reading(), claim=claim)])


class Believed(PackingClaim):
    """What it writes its methods say."""


def test_how_filters_are_packed_follows_from_the_ir_side() -> None:
    """Not from what a class says of it."""
    own, fields = PACK.mapping, ("name", "summary", "build", "formats", "function", "lanes")
    assert PACK.function is not None
    other = replace(own, ir=packing_fragment(PACK.name, PACK.function, PACK.formats, 4))
    turned = replace(own, cell=(*own.cell[:2], *own.cell[:1:-1]))
    forged = {
        "its IR side is another": (replace(PACK, lanes=4), replace(PACK, build=lambda: other)),
        "its mapping does not compare all of y": (replace(PACK, build=lambda: turned),),
        "must be a conversion of a known kind, not Believed": (Believed(**{n: getattr(PACK, n) for n in fields}),),
    }
    tensors = {"w": HostTensor((3, 2, 1), 32), "codes": HostTensor((3, 1, 1, 8), 8)}
    step = Step(PACK, own.sizes_for((3, 0, 2, 1)), {"host_x": "w", "host_y": "codes"})
    assert PACK.problem == "" and ProgramSequence(tensors, {"w"}, [step])
    for why, claims in forged.items():
        for claim in claims:
            with pytest.raises(SequenceError, match=why):
                ProgramSequence(tensors, {"w"}, [replace(step, claim=claim)])


def test_parts_may_be_joined_in_any_order() -> None:
    halves = [reading(count2=30), reading(first2=30, count2=40, place2=30)]
    for some in (halves, halves[::-1]):
        assert len(sequence([*ROUNDED, layer(), *some]).steps) == 6


def _device(**changes: Any) -> MappingClaim:
    """The layer with another device program."""
    mapping = replace(DENSE.mapping, device=replace(DENSE.mapping.device, **changes))
    return MappingClaim(DENSE.name, DENSE.summary, lambda: mapping)


def test_a_device_that_is_not_idle_as_the_program_demands_runs_nothing() -> None:
    """Nor does a tensor that is too short for what the program reads."""
    demanding = sequence([*ROUNDED, layer(_device(idle={"data_out": 1})), reading()])
    contents: dict[str, Any] = {n: np.zeros((1, t.elements), f"u{t.bits // 8}") for n, t in TENSORS.items()}
    device = Simulator(DENSE.mapping.device.ila)
    with pytest.raises(InstanceError, match="data_out"):
        demanding.run(demanding.steps[3:4], contents, lambda _: device)
    contents["w codes"] = contents["w codes"][:, :-1].copy()
    with pytest.raises(InstanceError, match="at least 4096 words"):
        demanding.run([layer()], contents, lambda _: device)
    assert not contents["y codes"].any()


def test_an_output_does_not_go_on_from_what_it_held() -> None:
    mapping = replace(DENSE.mapping, inputs=(*DENSE.mapping.inputs, ("host_y", "tensor_out")))
    adding = MappingClaim(DENSE.name, DENSE.summary, lambda: mapping)
    with pytest.raises(SequenceError, match="must not go on from what its output host_y held before"):
        sequence([*ROUNDED, layer(adding), reading()])


def test_words_behind_a_tensor_are_zeros_that_a_program_may_read() -> None:
    """A part of 15 filters of one tap, packed for HLSCNN, which reads two taps at a time."""
    packing = PACK.mapping.sizes_for((3, 1, 2, 1))
    sizes = CONVOLUTIONS[8].mapping.sizes_for((3, 2, 2, 2, 1, 1, 1, 1))
    tensors = {"w": HostTensor((4, 2, 1), 32), "x": HostTensor((8, 4), 16), "y": HostTensor((3, 4), 16)}
    steps = [
        Step(PACK, packing, {"host_x": "w", "host_y": "codes"}),
        Step(CONVOLUTIONS[8], sizes, {"host_x": "x", "host_w": "codes", "host_y": "y"}),
    ]
    right = ProgramSequence(tensors | {"codes": HostTensor((3, 1, 1, 8), 8, behind=8)}, {"w", "x"}, steps)
    contents: dict[str, Any] = {"w": np.zeros((1, 8), np.uint32)}
    right.run(steps[:1], contents, lambda ila: Simulator(ila))
    assert contents["codes"].shape == (1, 32)
    with pytest.raises(SequenceError, match="host_w of hlscnn_conv2d_8bit must be 32 elements; codes has 24"):
        ProgramSequence(tensors | {"codes": HostTensor((3, 1, 1, 8), 8)}, {"w", "x"}, steps)
    with pytest.raises(SequenceError, match=r"must read rows of w \(4, 1, 2\), not of \(4, 2, 1\)"):
        ProgramSequence(right.tensors | {"w": HostTensor((4, 1, 2), 32)}, {"w", "x"}, steps)
    with pytest.raises(SequenceError, match="must read rows of w"):
        ProgramSequence(right.tensors | {"w": HostTensor((3, 2, 1), 32)}, {"w", "x"}, steps)


WRONG: Mapping[str, tuple[Callable[[], ProgramSequence], str]] = {
    "two steps write one element": (
        lambda: sequence([*ROUNDED, layer(), reading(count2=40), reading(first2=39, count2=31, place2=39)]),
        "elements of y that no other step writes",
    ),
    "two steps write one tensor": (lambda: sequence([*ROUNDED, layer(), layer(), reading()]), "no other step writes"),
    "a part of the result is missing": (
        lambda: sequence([*ROUNDED, layer(), reading(count2=69)]),
        "All 210 elements of y must have been written at the end, not 207",
    ),
    "a part of an operand is missing": (
        lambda: sequence([*ROUNDED[:2], rounding("b", count1=64), layer(), reading()]),
        "All 128 elements of b codes must have been written when flexasr_linear reads it, not 64",
    ),
    "an operand is written later": (
        lambda: sequence([*ROUNDED[:2], layer(), ROUNDED[2], reading()]),
        "when flexasr_linear reads it, not 0",
    ),
    "a result is read before it is computed": (
        lambda: sequence([*ROUNDED, reading(), layer()]),
        "y codes must have been written when flexasr_read reads it",
    ),
    "a given tensor is written": (lambda: sequence([*ROUNDED, layer(), reading()], given="xwby"), "y is given"),
    "one tensor for two": (lambda: sequence([*ROUNDED, layer(host_y="x codes"), reading()]), "be different tensors"),
    "rows of another length": (lambda: sequence([rounding("x", X2=19)]), "must read rows of x"),
    "rows that x has not": (lambda: sequence([rounding("x", X1=4)]), "must read rows of x"),
    "a box of another tensor": (lambda: sequence([rounding("x", Y2=33)]), r"must write a tensor \(3, 33\)"),
    "codes of another tensor": (
        lambda: sequence([*ROUNDED, layer(host_w="x codes", host_x="w codes"), reading()]),
        "host_x of flexasr_linear must be 96 elements; w codes has 4096",
    ),
    "a result of another shape": (
        lambda: sequence([*ROUNDED, layer()], y_codes=HostTensor((128, ROWS), 8)),
        r"must write a tensor \(3, 128\); y codes is \(128, 3\)",
    ),
    "elements of another width": (
        lambda: sequence(ROUNDED, x_codes=HostTensor((ROWS, 32), 16)),
        "x codes has 16 bits",
    ),
    "parts of one operand in two formats": (
        lambda: sequence([rounding("b", count1=64), rounding("b", first1=64, count1=64, place1=64, exponent=118)]),
        "must take b codes in the format",
    ),
    "a tensor that is not there": (lambda: sequence([*ROUNDED, layer(host_x="z")]), "not z"),
    "a program that writes what it does not claim": (
        lambda: sequence([Step(RELOADED, RELOADED.mapping.sizes_for((4, 16)), {})]),
        "must store to its output host_y alone",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_says_nothing_together_is_refused(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(SequenceError, match=message):
        make()


@pytest.mark.parametrize("step", [rounding("x", place1=1), rounding("x", first1=(1 << 32) - 1), reading(count2=71)])
def test_sizes_outside_of_a_domain_are_refused(step: Step) -> None:
    with pytest.raises(SizeError, match="must satisfy"):
        sequence([step])
