"""The operators of scf, and loops of affine.  Source: the MLIR documentation of the dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ir_semantics.elements.operators import at_most, choose, either, minus, negation, plus, quotient, times
from ir_semantics.elements.terms import Term, fresh, is_true, number
from ir_semantics.mlir import ir
from ir_semantics.mlir.affine import AffineMap
from ir_semantics.mlir.semantics.affine import extreme_of, results_of
from ir_semantics.mlir.semantics.integers import note_index
from ir_semantics.mlir.semantics.memory import Buffer, Memory, OfBlock, selected_buffer
from ir_semantics.mlir.semantics.program import Call, MeaningOfValue, Operator, Scope
from ir_semantics.mlir.semantics.tensor import inserted
from ir_semantics.mlir.semantics.values import Element, Tensor, chosen, defined
from ir_semantics.scalars.formats import INTEGERS

from .iteration import Iteration


def count_of(low: Term, high: Term, step: Term) -> Term:
    """How many numbers there are from ``low`` to below ``high`` in steps, which are positive."""
    distance = minus(high, low)
    count = quotient(plus(distance, step, number(-1)), step)
    return choose(at_most(number(0), distance), count, number(0))


def _variables(call: Call, bounds: Sequence[tuple[Term, Term, Term]]) -> tuple[list[Term], list[Term], list[Term]]:
    """Counters, how many values each has, and the loop's variables, of lower and upper bounds and steps."""
    note_index(call)
    for *_, step in bounds:
        call.require(at_most(number(1), step), "the step of a loop must be positive")
    counters = [fresh(f"k{i}", INTEGERS) for i in range(len(bounds))]
    counts = [count_of(*each) for each in bounds]
    values = [plus(low, times(k, step)) for k, (low, _, step) in zip(counters, bounds, strict=True)]
    return counters, counts, values


def _for(call: Call) -> Sequence[MeaningOfValue]:
    if call.body.arguments[:1] and call.body.arguments[0].type != ir.IndexType():
        raise call.fail("a loop over words has no meaning here", "compute its bounds as index")
    if call.has("unsignedCmp"):
        raise call.fail("a loop whose bounds are compared without sign has no meaning here")
    low, high, step = (_bound(call, call.element(k)) for k in range(3))
    return _loop(call, [(low, high, step)], call.operands[3:])


def _bound(call: Call, value: MeaningOfValue) -> Term:
    if not isinstance(value, Element) or value.kind != INTEGERS:
        raise call.wrong("the bounds of a loop must be of type index")
    return call.settled(value, "a bound of a loop may be undefined")


def _loop(
    call: Call, bounds: Sequence[tuple[Term, Term, Term]], starts: Sequence[MeaningOfValue]
) -> Sequence[MeaningOfValue]:
    counters, counts, values = _variables(call, bounds)

    def body(carried: Sequence[MeaningOfValue], scope: Scope) -> Sequence[MeaningOfValue]:
        return call.run_region(call.body, [*map(defined, values), *carried], scope)

    return Iteration(call, counters, counts, starts).results(body)


def _affine_for(call: Call) -> Sequence[MeaningOfValue]:
    lower, upper, starts = call.segments()
    maps = call.attribute("lowerBoundMap"), call.attribute("upperBoundMap")
    if not all(isinstance(m, AffineMap) for m in maps):
        raise call.wrong("the bounds must be affine maps")
    ends = []
    for map_, operands, is_smallest in zip(maps, (lower, upper), (False, True), strict=True):
        assert isinstance(map_, AffineMap)
        ends.append(_bound(call, extreme_of(results_of(call, map_, operands), is_smallest)))
    return _loop(call, [(ends[0], ends[1], number(call.whole("step")))], starts)


def _parallel(call: Call) -> Sequence[MeaningOfValue]:
    lower, upper, steps, starts = call.segments()
    if starts:
        raise call.fail("a parallel reduction has no meaning here")
    numbers = [[_bound(call, each) for each in group] for group in (lower, upper, steps)]
    counters, counts, values = _variables(call, list(zip(*numbers, strict=True)))

    def body(carried: Sequence[MeaningOfValue], scope: Scope) -> Sequence[MeaningOfValue]:
        return call.run_region(call.body, list(map(defined, values)), scope)

    return Iteration(call, counters, counts, (), parallel=True).results(body)


def _forall(call: Call) -> Sequence[MeaningOfValue]:
    groups = call.segments()
    call.attribute("mapping")  # to which processors iterations go
    bounds = [
        call.mixed(call.wholes(f"static{name}"), group)
        for name, group in zip(("LowerBound", "UpperBound", "Step"), groups, strict=False)
    ]
    counters, counts, values = _variables(call, list(zip(*bounds, strict=True)))
    end = call.body.operations[-1]
    inserts = end.regions[0].blocks[0].operations if end.regions and end.regions[0].blocks else []

    def body(carried: Sequence[MeaningOfValue], scope: Scope) -> Sequence[MeaningOfValue]:
        written = call.run_region(call.body, [*map(defined, values), *carried], scope)
        last = dict(zip((each.operands[1] for each in inserts), written, strict=True))
        shared = call.body.arguments[len(values) :]
        return [last.get(argument, value) for argument, value in zip(shared, carried, strict=True)]

    return Iteration(call, counters, counts, groups[3], parallel=True).results(body)


def _in_parallel(call: Call) -> Sequence[MeaningOfValue]:
    """The tensors after each insertion, in the order of the operations."""
    values, written = dict(call.environment.values), []
    for operation in call.body.operations:
        if operation.name != "tensor.parallel_insert_slice":
            raise call.fail(f"{operation.name} has no meaning here")
        own = Call(operation, tuple(values[o] for o in operation.operands), call.scope, call.environment)
        values[operation.operands[1]] = inserted(own)
        own.require_all_taken()
        written.append(values[operation.operands[1]])
    return written


# -- choices -------------------------------------------------------------------------------------------------


def _if(call: Call) -> Sequence[MeaningOfValue]:
    condition = call.settled(call.element(0), "a branch is chosen by a condition that may be undefined")
    ends: list[tuple[tuple[MeaningOfValue, ...], Memory]] = []
    for region, holds in zip(call.operation.regions, (condition, negation(condition)), strict=True):
        scope = call.scope.inner(call.memory)
        yielded: tuple[MeaningOfValue, ...] = ()
        if region.blocks:
            (block,) = region.blocks
            yielded = call.run_region(block, (), scope)
        for each in scope.requirements:
            required = either(negation(holds), each.condition)
            if not is_true(required):
                call.scope.requirements.append(replace(each, condition=required))
        for proviso in scope.provisos:
            call.scope.provisos.append(replace(proviso, condition=either(negation(holds), proviso.condition)))
        ends.append((yielded, scope.memory))
    (yes, after_yes), (no, after_no) = ends
    if after_yes is not after_no:
        call.scope.memory = _memory_of(condition, after_yes, after_no)
    return [_one_of(call, condition, a, b) for a, b in zip(yes, no, strict=True)]


def _one_of(call: Call, condition: Term, a: MeaningOfValue, b: MeaningOfValue) -> MeaningOfValue:
    if isinstance(a, Element) and isinstance(b, Element):
        return chosen(condition, a, b)
    if isinstance(a, Buffer) and isinstance(b, Buffer):
        return a if a is b else selected_buffer(defined(condition), a, b)
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        shape = tuple(choose(condition, x, y) for x, y in zip(a.shape, b.shape, strict=True))
        return Tensor(a.kind, shape, lambda at: chosen(condition, a.at(at), b.at(at)))
    raise call.wrong("both branches must yield values of one type")


def _memory_of(condition: Term, a: Memory, b: Memory) -> Memory:
    """One of two memories."""

    def of(one: OfBlock, other: OfBlock) -> OfBlock:
        return lambda block: choose(condition, one(block), other(block))

    return replace(
        a,
        cells=lambda here: chosen(condition, a.cells(here), b.cells(here)),
        alive=of(a.alive, b.alive),
        writable=of(a.writable, b.writable),
        freeable=of(a.freeable, b.freeable),
        size=of(a.size, b.size),
        made=max(a.made, b.made),
        formats=tuple(dict.fromkeys((*a.formats, *b.formats))),
    )


OPERATORS: Mapping[str, Operator] = {
    "scf.for": _for,
    "scf.parallel": _parallel,
    "scf.forall": _forall,
    "scf.forall.in_parallel": _in_parallel,
    "scf.if": _if,
    "affine.for": _affine_for,
}
"""By name."""
