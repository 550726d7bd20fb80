"""The operators of memref and bufferization.

Source: the MLIR documentation of the dialects; where it leaves open what a program may do, the readings of mlir-tv:
``bufferization.to_tensor`` ends all writing to its block, and what ``to_memref`` gives must not be written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ir_semantics.elements.binders import every
from ir_semantics.elements.operators import at_most, both, either, equal, negation, plus, times
from ir_semantics.elements.terms import Term, is_true, number
from ir_semantics.mlir import ir

from .memory import Buffer, apart, row_major, same_block, same_view
from .program import DYNAMIC, Call, MeaningOfValue, Operator, Proviso
from .tensor import Slice, digits, extent_at, groups_of, inferred_sizes, linear, new_subscripts, product_of, sizes_of
from .values import Element, Tensor, undefined


def _plain_result(call: Call, *, of_any_layout: bool = False) -> ir.MemRefType:
    """The type of a new buffer; ``of_any_layout`` where one that leaves all strides open will do."""
    type_ = call.operation.results[0].type
    if isinstance(type_, ir.MemRefType) and (type_.layout is None or (of_any_layout and _is_open(type_))):
        return type_
    raise call.fail("a new buffer must have elements one after the other", "allocate it without a layout")


def _is_open(type_: ir.MemRefType) -> bool:
    """Whether a type says nothing of where elements are."""
    return isinstance(type_.layout, ir.StridedLayout) and {*type_.layout.strides, type_.layout.offset} == {None}


def _alloc(freeable: bool) -> Operator:
    def meaning(call: Call) -> Sequence[MeaningOfValue]:
        type_ = _plain_result(call)
        shape = sizes_of(call, type_.shape, call.operands)
        call.scope.memory, buffer = call.scope.memory.allocated(call.format(type_), shape, freeable=freeable)
        return [buffer]

    return meaning


def _dealloc(call: Call) -> Sequence[MeaningOfValue]:
    buffer, memory = call.buffer(0), call.scope.memory
    is_block = both(negation(buffer.is_view), equal(buffer.offset, number(0)))
    allowed = both(is_block, memory.alive(buffer.block), memory.freeable(buffer.block))
    call.require(allowed, "what is freed must be a block that was allocated, not a view, and alive")
    is_read = [same_block(buffer.block, block) for block in memory.of_tensors]
    if not is_true(negation(either(*is_read))):
        why = call.fail("a buffer of which a tensor was made cannot be freed here: the tensor may still be read")
        call.scope.provisos.append(Proviso(negation(either(*is_read)), why, tuple(call.scope.requirements)))
    call.scope.memory = memory.freed(buffer.block)
    return []


def _subscripts(call: Call, first: int) -> list[Term]:
    return [call.size(i) for i in range(first, len(call.operands))]


def loaded(call: Call, buffer: Buffer, at: Sequence[Term]) -> Element:
    """An element of a buffer."""
    call.require(call.memory.accessible(buffer, at), "what is read must be inside of a block that is alive")
    element = call.memory.at(buffer, at)
    if not call.scope.reading.unwritten_reads:
        call.require(element.defined, "what is read must be written before", at)
    return element


def stored(call: Call, value: Element, buffer: Buffer, at: Sequence[Term]) -> Sequence[MeaningOfValue]:
    """Writes an element of a buffer; there is no result."""
    memory = call.scope.memory
    call.require(memory.accessible(buffer, at), "what is written must be inside of a block that is alive")
    call.require(memory.writable(buffer.block), "what is written must be in a block that may be")
    call.scope.memory = memory.storing(buffer, at, value)
    return []


def view(call: Call, buffer: Buffer, *, used: bool = True) -> Tensor:
    """The elements of a buffer now; all must be there, and be written if they are ``used`` and the reading says so."""
    memory = call.scope.memory
    require_nested(call, buffer)
    call.require(memory.whole(buffer), "what is read must be inside of a block that is alive")
    if used and not call.scope.reading.unwritten_reads:
        at = new_subscripts(len(buffer.shape))
        written = every(at, buffer.shape, memory.at(buffer, at).defined)
        call.require(written, "what is read must be written before")
    return Tensor(buffer.kind, buffer.shape, lambda at: memory.at(buffer, at))


def require_nested(call: Call, buffer: Buffer) -> None:
    """Raises for layouts of which it is not seen that elements have places of their own."""
    if not buffer.is_nested:
        raise call.fail("a buffer with this layout has no meaning here")


def write(call: Call, buffer: Buffer, tensor: Tensor) -> None:
    """Writes all elements of a buffer."""
    memory = call.scope.memory
    require_nested(call, buffer)
    call.require(memory.whole(buffer), "what is written must be inside of a block that is alive")
    allowed = either(buffer.is_empty, memory.writable(buffer.block))
    call.require(allowed, "what is written must be in a block that may be")
    call.scope.memory = memory.filled(buffer, tensor.at)


def _copy(call: Call) -> Sequence[MeaningOfValue]:
    source, target = call.buffer(0), call.buffer(1)
    call.require_equal(source.shape, target.shape, "operands must have one shape")
    tensor = view(call, source)
    require_nested(call, target)
    call.require(either(apart(source, target), same_view(source, target)), "buffers must not overlap in part")
    write(call, target, tensor)
    return []


def _to_tensor(call: Call) -> Sequence[MeaningOfValue]:
    buffer = call.buffer(0)
    tensor = view(call, buffer)
    _note_sealing(call)
    call.scope.memory = call.scope.memory.sealed(buffer.block).read_by_tensor(buffer.block)
    return [tensor]


def _note_sealing(call: Call) -> None:
    call.scope.notes["to write a buffer that was made of a tensor, or that a tensor was made of, is undefined"] = None


def _to_memref(call: Call) -> Sequence[MeaningOfValue]:
    tensor = call.tensor(0)
    _plain_result(call, of_any_layout=True)  # no operator with a meaning tells where in a block elements are
    _note_sealing(call)
    memory, buffer = call.scope.memory.allocated(tensor.kind, tensor.shape, freeable=False)
    call.scope.memory = memory.filled(buffer, tensor.at).sealed(buffer.block)
    return [buffer]


def _clone(call: Call) -> Sequence[MeaningOfValue]:
    source = call.buffer(0)
    tensor = view(call, source)
    _plain_result(call)
    call.scope.notes["to write a buffer that was cloned, or its clone, is undefined"] = None
    memory, buffer = call.scope.memory.allocated(source.kind, source.shape, freeable=True)
    call.scope.memory = memory.filled(buffer, tensor.at).sealed(buffer.block).sealed(source.block)
    return [buffer]


def _alloc_tensor(call: Call) -> Sequence[MeaningOfValue]:
    """A tensor without defined elements, or a copy."""
    sizes, copy, _ = call.segments()  # the last is a hint of how many elements there will be
    if copy:
        return copy
    return [
        Tensor(
            call.result_format(), sizes_of(call, call.result_shape(), sizes), lambda _: undefined(call.result_format())
        )
    ]


def _cast(call: Call) -> Sequence[MeaningOfValue]:
    """The same buffer; sizes that its type states must be those it has."""
    buffer, before, after = call.buffer(0), call.operation.operands[0].type, call.operation.results[0].type
    if not (isinstance(before, ir.MemRefType) and isinstance(after, ir.MemRefType)):
        raise call.fail("a buffer of any rank has no meaning here")
    if len(before.shape) != len(after.shape) or before.element != after.element:
        raise call.wrong("both types must have one rank and one type of elements")
    if before.memory_space != after.memory_space or (before.layout != after.layout and not _is_open(after)):
        raise call.fail("a cast that states more of the layout has no meaning here", "keep the layout")
    for size, stated in zip(buffer.shape, after.shape, strict=True):
        if stated is not None:
            call.require(equal(size, number(stated)), "sizes must be those of the type")
    return [buffer]


def _dim(call: Call) -> Sequence[MeaningOfValue]:
    return extent_at(call, call.buffer(0).shape, "buffer")


def _subview(call: Call) -> Sequence[MeaningOfValue]:
    source, groups = call.buffer(0), call.segments()
    type_ = call.operation.results[0].type
    assert isinstance(type_, ir.MemRefType)
    part = Slice(call, groups[1:], type_.shape)
    part.require_inside(call, source.shape)
    parent = source, part.place
    offset = plus(source.offset, *(times(o, s) for o, s in zip(part.offsets, source.strides, strict=True)))
    strides = [times(a, b) for a, b in zip(part.strides, source.strides, strict=True)]
    shape = tuple(part.sizes[k] for k in part.kept)
    return [Buffer(source.kind, source.block, offset, shape, tuple(strides[k] for k in part.kept), parent)]


def _collapse(call: Call) -> Sequence[MeaningOfValue]:
    source, groups = call.buffer(0), groups_of(call)
    if not source.is_row_major:
        raise call.fail("a buffer with this layout has no meaning here")
    shape = tuple(product_of([source.shape[k] for k in group]) for group in groups)
    return [_reshaped(source, shape)]


def _expand(call: Call) -> Sequence[MeaningOfValue]:
    source, groups = call.buffer(0), groups_of(call)
    if not source.is_row_major:
        raise call.fail("a buffer with this layout has no meaning here")
    type_ = call.operation.results[0].type
    assert isinstance(type_, ir.MemRefType)
    stated = [DYNAMIC if n is None else n for n in type_.shape]
    if call.attribute("static_output_shape") is not None:
        shape = tuple(call.mixed(call.wholes("static_output_shape"), call.operands[1:]))
    else:
        shape = tuple(inferred_sizes(call, source.shape, groups, stated))
    for size in shape:
        call.require(at_most(number(0), size), "a size must not be negative")
    for k, group in enumerate(groups):
        whole = product_of([shape[d] for d in group])
        call.require(equal(whole, source.shape[k]), "the product of sizes must be the size that they expand")
    return [_reshaped(source, shape)]


def _reshaped(source: Buffer, shape: tuple[Term, ...]) -> Buffer:
    """A view with as many elements in the same order."""

    def place(at: Sequence[Term]) -> Sequence[Term]:
        return digits(linear(at, shape), source.shape)

    return Buffer(source.kind, source.block, source.offset, shape, row_major(shape), (source, place))


def _get_global(call: Call) -> Sequence[MeaningOfValue]:
    name = call.attribute("name")
    own = name.root if isinstance(name, ir.SymbolReference) and not name.nested else ""
    known = call.environment.globals.get(own)
    if known is None:
        why = "the global must be one of the module, with a type that has a meaning here"
        raise call.fail(why, "take its buffer as an argument")
    shape = tuple(map(number, known.shape))
    return [Buffer(known.kind, number(known.block), number(0), shape, row_major(shape))]


OPERATORS: Mapping[str, Operator] = {
    "memref.alloc": _alloc(True),
    "memref.alloca": _alloc(False),
    "memref.dealloc": _dealloc,
    "memref.load": lambda call: [loaded(call, call.buffer(0), _subscripts(call, 1))],
    "memref.store": lambda call: stored(call, call.element(0), call.buffer(1), _subscripts(call, 2)),
    "memref.copy": _copy,
    "memref.dim": _dim,
    "memref.cast": _cast,
    "memref.subview": _subview,
    "memref.collapse_shape": _collapse,
    "memref.expand_shape": _expand,
    "memref.get_global": _get_global,
    "bufferization.to_tensor": _to_tensor,
    "bufferization.to_memref": _to_memref,
    "bufferization.to_buffer": _to_memref,
    "bufferization.clone": _clone,
    "bufferization.alloc_tensor": _alloc_tensor,
}
"""By name."""
