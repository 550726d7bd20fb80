"""The operators of scf.  Source: the MLIR documentation of the dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ir_semantics.elements.operators import at_most, choose, either, minus, negation, plus, quotient, times
from ir_semantics.elements.terms import Term, fresh, is_true, number
from ir_semantics.mlir import ir
from ir_semantics.mlir.semantics.integers import note_index
from ir_semantics.mlir.semantics.memory import Buffer, Memory, OfBlock, selected_buffer
from ir_semantics.mlir.semantics.program import Call, MeaningOfValue, Operator, Proviso, Scope
from ir_semantics.mlir.semantics.tensor import inserted
from ir_semantics.mlir.semantics.values import Element, Tensor, chosen, defined
from ir_semantics.scalars.formats import INTEGERS

from .iteration import Iteration


def count_of(low: Term, high: Term, step: Term) -> Term:
    """How many numbers there are from ``low`` to below ``high`` in steps, which are positive."""
    distance = minus(high, low)
    if high.op == "select":  # the end of a tile: the smaller one of its size and of what is left
        distance = choose(high.args[0], minus(high.args[1], low), minus(high.args[2], low))
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


_OVER_WORDS = "a loop over words has no meaning here", "compute its bounds as index"


def _for(call: Call) -> Sequence[MeaningOfValue]:
    if call.body.arguments[:1] and call.body.arguments[0].type != ir.IndexType():
        raise call.fail(*_OVER_WORDS)
    if call.has("unsignedCmp"):
        raise call.fail("a loop whose bounds are compared without sign has no meaning here")
    low, high, step = (bound(call, call.element(k)) for k in range(3))
    return loop(call, [(low, high, step)], call.operands[3:])


def bound(call: Call, value: MeaningOfValue) -> Term:
    """A bound of a loop, or its step."""
    if not isinstance(value, Element) or value.kind != INTEGERS:
        raise call.wrong("the bounds of a loop must be of type index")
    return call.settled(value, "a bound of a loop may be undefined")


def loop(
    call: Call, bounds: Sequence[tuple[Term, Term, Term]], starts: Sequence[MeaningOfValue]
) -> Sequence[MeaningOfValue]:
    """A loop in order, of lower and upper bounds and steps, and what the first iteration is given."""
    counters, counts, values = _variables(call, bounds)

    def body(carried: Sequence[MeaningOfValue], scope: Scope) -> Sequence[MeaningOfValue]:
        return call.run_region(call.body, [*map(defined, values), *carried], scope)

    return Iteration(call, counters, counts, starts).results(body)


_OF_ANY_ORDER = frozenset({
    "arith.addi", "arith.muli", "arith.andi", "arith.ori", "arith.xori", "arith.maxsi", "arith.minsi", "arith.maxui",
    "arith.minui", "arith.maximumf", "arith.minimumf",
})  # fmt: skip
"""Operators that are associative and commutative, on all values, NaN and zeros with signs among them."""


def _parallel(call: Call) -> Sequence[MeaningOfValue]:
    lower, upper, steps, starts = call.segments()
    numbers = [[bound(call, each) for each in group] for group in (lower, upper, steps)]
    return parallel(call, list(zip(*numbers, strict=True)), starts)


def parallel(
    call: Call, bounds: Sequence[tuple[Term, Term, Term]], starts: Sequence[MeaningOfValue] = ()
) -> Sequence[MeaningOfValue]:
    """A loop whose iterations may run in any order, of lower and upper bounds and steps, and starts of reductions."""
    counters, counts, values = _variables(call, bounds)
    end = call.body.operations[-1]

    def body(carried: Sequence[MeaningOfValue], scope: Scope) -> Sequence[MeaningOfValue]:
        made = call.run_region(call.body, list(map(defined, values)), scope)
        last = Call(end, tuple(made), scope, call.environment)
        blocks = [region.blocks[0] for region in end.regions]
        return [
            each
            for block, old, new in zip(blocks, carried, made, strict=True)
            for each in last.run_region(block, (old, new), scope)
        ]

    return Iteration(call, counters, counts, starts, parallel=True, reduces=True).results(body)


def _reduce(call: Call) -> Sequence[MeaningOfValue]:
    """What iterations give to reductions, each by one operator that takes them in any order."""
    for region in call.operation.regions:
        if len(region.blocks) != 1 or not _is_of_any_order(region.blocks[0]):
            raise call.fail("a parallel reduction must be one operator, of which the order does not matter")
    return call.operands


def _is_of_any_order(block: ir.Block) -> bool:
    if len(block.operations) != 2:
        return False
    operation, end = block.operations
    plain = all(getattr(a, "text", "") in _WITHOUT_FLAGS for a in operation.attributes.values())
    return (
        operation.name in _OF_ANY_ORDER
        and plain
        and set(operation.operands) == set(block.arguments)
        and len(block.arguments) == len(operation.operands) == 2
        and end.operands == operation.results
    )


_WITHOUT_FLAGS = frozenset({"arith.overflow<none>", "arith.fastmath<none>"})


def _while(call: Call) -> Sequence[MeaningOfValue]:
    """A loop that counts: it ends when a number that grows by a positive step is no longer below a bound."""
    after, place, ends = _count(call)
    if call.element(place).kind != INTEGERS:
        raise call.fail(*_OVER_WORDS)
    low, high, step = (bound(call, each) for each in (call.element(place), *ends))
    grows = at_most(number(1), step)
    if not is_true(grows):
        otherwise = call.fail("a loop whose step may not be positive has no meaning here", "make it scf.for")
        call.scope.provisos.append(Proviso(grows, otherwise, tuple(call.scope.requirements)))
    counters, (count,), values = _variables(call, [(low, high, step)])

    def body(carried: Sequence[MeaningOfValue], scope: Scope) -> Sequence[MeaningOfValue]:
        made = call.run_region(after, [*carried[:place], defined(values[0]), *carried[place:]], scope)
        return [*made[:place], *made[place + 1 :]]

    starts = [*call.operands[:place], *call.operands[place + 1 :]]
    results = Iteration(call, counters, [count], starts).results(body)
    return [*results[:place], defined(plus(low, times(count, step))), *results[place:]]


def _count(call: Call) -> tuple[ir.Block, int, tuple[MeaningOfValue, MeaningOfValue]]:
    """The body of a loop that counts, which of the values that it carries is the number, its bound and its step."""
    before, after = (region.blocks[0] for region in call.operation.regions)
    known = call.environment.values
    match list(before.operations):
        case [ir.Operation(name="arith.cmpi", operands=(number_, high)) as comparison, condition]:
            stated = comparison.attributes.get("predicate")
            is_below = isinstance(stated, ir.IntegerAttribute) and stated.value == 2  # slt
            goes_on = condition.name == "scf.condition" and condition.operands == (
                *comparison.results,
                *before.arguments,
            )
            if is_below and goes_on and number_ in before.arguments and high in known:
                place = list(before.arguments).index(number_)
                step = _growth(after, place)
                if step is not None and step in known:
                    return after, place, (known[high], known[step])
    raise call.fail("a loop that does not count up to a bound has no meaning here", "make it scf.for")


def _growth(block: ir.Block, place: int) -> ir.Value | None:
    """What a block adds to the argument at a place for the next iteration, if that is all."""
    argument, result = block.arguments[place], block.operations[-1].operands[place]
    for operation in block.operations:
        if result in operation.results and operation.name == "arith.addi" and argument in operation.operands:
            flags = operation.attributes.get("overflowFlags")
            if flags is None or getattr(flags, "text", "") == "arith.overflow<none>":
                a, b = operation.operands
                return b if a == argument else a
    return None


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
    return branches(call, call.settled(call.element(0), "a branch is chosen by a condition that may be undefined"))


def branches(call: Call, condition: Term) -> Sequence[MeaningOfValue]:
    """The first region where a condition holds, and else the second one."""
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
        of_tensors=tuple(dict.fromkeys((*a.of_tensors, *b.of_tensors))),
    )


OPERATORS: Mapping[str, Operator] = {
    "scf.for": _for,
    "scf.parallel": _parallel,
    "scf.forall": _forall,
    "scf.forall.in_parallel": _in_parallel,
    "scf.if": _if,
    "scf.reduce": _reduce,
    "scf.while": _while,
}
"""By name."""
