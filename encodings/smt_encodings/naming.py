"""The entry of a proof: a mapping in which no two things have one name.

A variable of the language is its name and sort, and programs, models and claims are written apart: a size may be called
like a register, a counter of a kernel like one of the host, a memory of the device like one of the IR.  Here each of
them becomes a variable of its own, by the scopes that the language has: a program's own names hide the device's, a
kernel's own names hide the states.  A word of a memory that a term chooses or writes to is that of its parts: what
remains are loads from memories themselves.  Whatever is proved of the result is proved of the mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from ila_lang import Expr, For, Fragment, Ila, Instruction, Kernel, Let, Load, Statement, substitute
from ila_lang.interpreter.compile import loads_resolved
from ila_lang.language.kernel import map_statement
from ila_lang.mapping import TensorMapping

from .environment import entering

Renaming = Mapping[Expr, Expr]


def distinct(mapping: TensorMapping) -> TensorMapping:
    """The mapping with a variable of its own for everything that it speaks of.

    Sizes come first and keep their names.  Functions are distinguished by what they are, and each lemma has variables
    of its own.
    """
    for size in mapping.parameters.values():
        entering(size)
    at = {coordinate: entering(coordinate) for coordinate, _ in mapping.coordinates}
    cell = tuple((at[coordinate], _entering(extent, at)) for coordinate, extent in mapping.coordinates)
    column = _entering(mapping.column_at, at)
    device, device_names = _fragment(mapping.device)
    ir, ir_names = _fragment(mapping.ir)
    inputs = tuple((device_names[a], ir_names[b]) for a, b in mapping.inputs)
    output = device_names[mapping.output[0]], ir_names[mapping.output[1]]
    return replace(mapping, device=device, ir=ir, inputs=inputs, output=output, cell=cell, cell_column=column)


def _entering(term: Expr, known: Renaming) -> Expr:
    """The term with its variables renamed, and with loads from memories themselves."""
    return loads_resolved(substitute(term, known))


def _fragment(fragment: Fragment) -> tuple[Fragment, dict[str, str]]:
    """The fragment, and the names of what the mapping calls tensors."""
    states = {state: entering(state) for state in fragment.ila.states.values()}
    tensors = {tensor: entering(tensor) for tensor in fragment.tensors.values()}
    outputs = {state: states[state] for state in fragment.outputs.values()}
    renamed = Fragment(
        fragment.name,
        _ila(fragment.ila, states),
        fragment.parameters,
        {tensor.name: tensor for tensor in tensors.values()},
        _kernel(fragment.program, {**outputs, **tensors}, {}),
        fragment.doc,
        {states[fragment.ila.states[name]].name: value for name, value in fragment.idle.items()},
    )
    return renamed, {old.name: new.name for old, new in {**states, **tensors}.items()}


def _ila(ila: Ila, states: Renaming) -> Ila:
    new = Ila(ila.name, ila.doc)
    names = {old.name: state.name for old, state in states.items()}
    new.inputs = ila.inputs
    new.states = {state.name: state for state in states.values()}
    new.inits = {names[name]: value for name, value in ila.inits.items()}
    new.state_docs = {names[name]: text for name, text in ila.state_docs.items()}
    new.valid = _entering(ila.valid, states)
    for old in ila.instructions.values():
        new.instructions[old.name] = instruction = Instruction(new, old.name, old.doc)
        instruction.reserved = old.reserved
        instruction.decode = _entering(old.decode, states)
        instruction.updates = {names[name]: _entering(term, states) for name, term in old.updates.items()}
        instruction.kernel_guard = _entering(old.kernel_guard, states)
        instruction.kernel = None if old.kernel is None else _kernel(old.kernel, states, names)
    return new


def _kernel(kernel: Kernel, known: Renaming, names: Mapping[str, str]) -> Kernel:
    done = {names[name]: _entering(term, known) for name, term in kernel.on_done.items()}
    return Kernel(kernel.name, kernel.doc, list(_block(kernel.body, known)), done)


def _block(body: Iterable[Statement], around: Renaming) -> Iterable[Statement]:
    """The statements, with counters and registers of their own, which hide what is ``around``."""
    known = dict(around)
    for statement in body:
        match statement:
            case For(counter=counter, extent=extent, body=inner):
                own = entering(counter)
                yield For(own, _entering(extent, known), tuple(_block(inner, {**known, counter: own})))
            case Let(target=target, update=False) | Load(target=target):
                known[target] = entering(target)
                yield map_statement(statement, partial(_entering, known=known))
            case _:
                yield map_statement(statement, partial(_entering, known=known))
