"""Tensors of numbers as a graph has them around an instruction on codes: instructions that round, and that read codes.

An element of the graph's tensors is a word, the bits of a float32 number; *quantise* and *dequantise*, functions of an
element and an exponent that says in which format, are the element type's business.  The instruction in between is any
of the tensor IR's, and its meaning is its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from ila_lang import Expr, Function, Ila, Kernel, const, mem, true

from .layer import bits

WORD = 32
"""Bits of an element of the graph's tensors."""
QUANTISE_CODE, DEQUANTISE_CODE = 64, 127
"""``func_id`` of the instruction that rounds the first tensor (others follow), and of the one that reads codes."""


def float_tensor(name: str) -> str:
    """The memory of numbers whose codes are in the memory ``tensor_...`` of that name."""
    return name.replace("tensor", "float", 1)


def with_conversions(
    ila: Ila, operands: Mapping[str, bool], result: str, quantise: Function, dequantise: Function
) -> Ila:
    """Adds to a new tensor-IR ILA the instructions around those that it has.

    Each of the memories ``operands`` gets its codes from a memory of numbers (:func:`float_tensor`), and numbers are
    read from the codes in ``result``.  Inputs: ``rounded_rows_in`` and ``rounded_columns_in``, the extents (32 bits
    each), and ``exponent_in``, of as many bits as both functions take.  Rows of an operand that is marked are filled
    with codes of zeros (of bits 0) to ``filled_columns_in`` elements (32 bits), at least as many as columns.
    """
    run, func = ila.inputs["func_run"], ila.inputs["func_id"]
    widths = {"rounded_rows": 32, "rounded_columns": 32, "exponent": bits(quantise.params[1].sort)}
    widths |= {"filled_columns": 32} if any(operands.values()) else {}
    inputs = {name: ila.input(f"{name}_in", width) for name, width in widths.items()}
    states = {name: ila.state(name, w, 0, doc="operand of the running instruction") for name, w in widths.items()}
    columns, exponent = states["rounded_columns"], states["exponent"]
    moved = [(float_tensor(name), name, quantise, QUANTISE_CODE + k) for k, name in enumerate(operands)]
    moved.append((result, float_tensor(result), dequantise, DEQUANTISE_CODE))
    valid = ila.valid
    for source, target, function, code in moved:
        number = source if function is quantise else target
        ila.state(number, mem(32, WORD), doc="numbers (float32), row-major")
        kernel = Kernel(f"{function.name}_{target}", f"{function.name} of every element of {source}")
        filled = states["filled_columns"] if operands.get(target) else columns
        with kernel.loop("row", states["rounded_rows"]) as row, kernel.loop("column", filled) as column:
            if filled is columns:
                value = function(kernel.load("element", ila.states[source], row * columns + column), exponent)
            else:
                value = kernel.let("code", const(0, bits(function.result)))
                with kernel.when("given", column < columns):
                    element = kernel.load("element", ila.states[source], row * columns + column)
                    kernel.assign(value, function(element, exponent))
            kernel.store(ila.states[target], row * filled + column, value)
        decode = run & (func == code)
        instruction = ila.instruction(kernel.name).set_decode(decode)
        for name, value in inputs.items():
            if name != "filled_columns" or filled is not columns:
                instruction.update(states[name], value)
        instruction.start(kernel)
        valid = valid | decode
    ila.set_valid(valid)
    return ila


def convert(program: Kernel, note: str, code: int, *extents: Expr, exponent: Expr) -> None:
    """Appends one of these instructions to a program: rows, columns and, where rows are filled, to how many."""
    names = ("rounded_rows_in", "rounded_columns_in", "filled_columns_in")
    operands = dict(zip(names, extents, strict=False))
    program.command(note, func_run=true, func_id=const(code, 8), **operands, exponent_in=exponent)
