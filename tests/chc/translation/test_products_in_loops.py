"""Products of matrices in buffers of any size, by one operator, by loops, and by loops over tiles."""

from __future__ import annotations

import pytest

from chc.translation.refine import Options
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.program import Reading
from smt_encodings.claims import Status
from tests.ir_semantics.mlir.mlir_text import constant, function, op

from .verdicts import verdict

T, M = "tensor<?x?xf32>", "memref<?x?xf32>"
NUMBERS = [f"%{name} = {constant(n, 'index')}" for name, n in (("zero", "0"), ("one", "1"), ("two", "2"))]
SIZES = [
    f"%{size} = {op('memref.dim', f'%{buffer}, %{place}', f'({M}, index) -> index')}"
    for size, buffer, place in (("m", "x", "zero"), ("n", "y", "one"), ("l", "x", "one"))
]
ALLOCATED = f"%o = {op('memref.alloc', '%m, %n', f'(index, index) -> {M}', 'operandSegmentSizes = array<i32: 2, 0>')}"
REGION = """({
  ^bb0(%p: f32, %q: f32, %r: f32):
    %u = "arith.mulf"(%p, %q) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    %v = "arith.addf"(%r, %u) <{fastmath = #arith.fastmath<none>}> : (f32, f32) -> f32
    "linalg.yield"(%v) : (f32) -> ()
  })"""
MAPS = ", ".join(f"affine_map<(d0, d1, d2) -> {at}>" for at in ("(d0, d2)", "(d2, d1)", "(d0, d1)"))
STATED = {19: "", 22: f"indexing_maps = [{MAPS}], "}


def by_operator(release: int = 22) -> str:
    """``linalg.matmul``, which states its maps since release 20."""
    attributes = f"{STATED[release]}operandSegmentSizes = array<i32: 2, 1>"
    return f'"linalg.matmul"(%x, %y, %o) <{{{attributes}}}> {REGION} : ({M}, {M}, {M}) -> ()'


def loop(variable: str, high: str, *lines: str, step: str = "%one", low: str = "%zero") -> str:
    body = "\n".join([f"^bb0({variable}: index):", *lines, '"scf.yield"() : () -> ()'])
    return op("scf.for", f"{low}, {high}, {step}", "(index, index, index) -> ()", "", body)


def load(name: str, buffer: str, at: str) -> str:
    return f"{name} = {op('memref.load', f'{buffer}, {at}', f'({M}, index, index) -> f32')}"


SUM = [
    load("%p", "%x", "%i, %k"),
    load("%q", "%y", "%k, %j"),
    load("%r", "%o", "%i, %j"),
    f"%u = {op('arith.mulf', '%p, %q', '(f32, f32) -> f32')}",
    f"%v = {op('arith.addf', '%r, %u', '(f32, f32) -> f32')}",
    op("memref.store", "%v, %o, %i, %j", f"(f32, {M}, index, index) -> ()"),
]
LESS = f"%less = {op('arith.subi', '%l, %one', '(index, index) -> index')}"


def nest(*lines: str, rows: str = "%m", summed: str = "%l") -> str:
    return loop("%i", rows, loop("%j", "%n", loop("%k", summed, *lines)))


def tiles(size: str = "d0 + 2", start: str = "%kk") -> str:
    """The same sums in tiles of two, of which the last ones end where the loop ends."""
    loops, lines = (("k", "%l"), ("j", "%n"), ("i", "%m")), list(SUM)
    for name, high in loops:
        map_ = f"map = affine_map<(d0)[s0] -> ({size}, s0)>"
        low = start if name == "k" else f"%{name}{name}"
        end = f"%e{name} = {op('affine.min', f'%{name}{name}, {high}', '(index, index) -> index', map_)}"
        lines = [end, loop(f"%{name}", f"%e{name}", *lines, low=low)]
    for name, high in loops:
        lines = [loop(f"%{name}{name}", high, *lines, step="%two")]
    return lines[0]


def of_tensors(body: str, *, release: int = 22, start: str = "fill") -> ir.Operation:
    """The product of tensors in a new buffer, as bufferization leaves it: filled, copied, or not filled."""
    made = "to_buffer" if release == 22 else "to_memref"
    zero = f"%z = {constant('0.000000e+00', 'f32')}"
    yielded = '^bb0(%p: f32, %q: f32):\n"linalg.yield"(%p) : (f32) -> ()'
    segments = "operandSegmentSizes = array<i32: 1, 1>"
    starts = {
        "fill": op("linalg.fill", "%z, %o", f"(f32, {M}) -> ()", segments, yielded),
        "copy": op("memref.copy", "%w, %o", f"({M}, {M}) -> ()"),
        "none": "",
    }
    return function(
        f"%a: {T}, %b: {T}, %c: {T}", T, *NUMBERS, zero,
        *(f"%{y} = {op(f'bufferization.{made}', f'%{x}', f'({T}) -> {M}')}" for x, y in ("ax", "by", "cw")),
        *SIZES, LESS, ALLOCATED, starts[start], body,
        f"%0 = {op('bufferization.to_tensor', '%o', f'({M}) -> {T}')}", "%0",
    )  # fmt: skip


def of_buffers(body: str) -> ir.Operation:
    """The product is added to an argument."""
    return function(f"%x: {M}, %y: {M}, %o: {M}", "", *NUMBERS, *SIZES, LESS, body, "")


@pytest.mark.parametrize("release", [19, 22])
@pytest.mark.parametrize("start", ["fill", "copy"])
def test_a_product_in_a_new_buffer_is_one_by_loops(release: int, start: str) -> None:
    source = of_tensors(by_operator(release), release=release, start=start)
    outcome = verdict(source, of_tensors(nest(*SUM), release=release, start=start))
    assert outcome.status is Status.PROVED, outcome.reason


WRONG = {
    "another element is read": nest(*SUM[:1], load("%q", "%y", "%k, %zero"), *SUM[2:]),
    "one less is summed": nest(*SUM, summed="%less"),
    "one row less": nest(*SUM, rows="%less"),
    "added twice": loop("%t", "%two", nest(*SUM)),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_product_in_a_new_buffer_is_refuted(name: str) -> None:
    outcome = verdict(of_tensors(by_operator()), of_tensors(WRONG[name]))
    assert outcome.status is Status.REFUTED, outcome.reason


def test_a_sum_in_a_buffer_that_is_not_filled_is_refuted() -> None:
    outcome = verdict(of_tensors(by_operator()), of_tensors(nest(*SUM), start="none"))
    assert outcome.status is Status.REFUTED, outcome.reason


ELSEWHERE = {
    "read in another row": [*SUM[:2], load("%r", "%o", "%j, %i"), *SUM[3:]],
    "read in one column": [*SUM[:2], load("%r", "%o", "%i, %zero"), *SUM[3:]],
    "written in one column": [*SUM[:5], SUM[5].replace("%i, %j", "%i, %zero")],
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_sums_that_go_on_from_another_element_have_no_meaning(name: str) -> None:
    outcome = verdict(of_tensors(by_operator()), of_tensors(nest(*ELSEWHERE[name])))
    assert outcome.status is Status.UNKNOWN
    assert "an iteration that reads what others write has no meaning here" in outcome.reason


def test_a_product_in_tiles_is_one_for_every_size() -> None:
    outcome = verdict(of_tensors(nest(*SUM)), of_tensors(tiles()))
    assert outcome.status is Status.PROVED, outcome.reason


@pytest.mark.slow
def test_a_product_in_tiles_is_added_to_an_argument() -> None:
    apart = Options(Reading(buffers_apart=True))
    outcome = verdict(of_buffers(nest(*SUM)), of_buffers(tiles()), apart)
    assert outcome.status is Status.PROVED, outcome.reason


@pytest.mark.parametrize("change", [{"size": "d0 + 1"}, {"size": "d0 + 3"}, {"start": "%zero"}])
def test_another_product_in_tiles_is_refuted(change: dict[str, str]) -> None:
    outcome = verdict(of_tensors(nest(*SUM)), of_tensors(tiles(**change)))
    assert outcome.status is Status.REFUTED, outcome.reason
