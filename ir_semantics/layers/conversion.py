"""Tensors of numbers as a graph has them around an instruction on codes: instructions that round, and that read codes.

An element of the graph's tensors is a word, the bits of a float32 number; *quantise* and *dequantise*, functions of an
element and an exponent that says in which format, are the element type's business.  The instruction in between is any
of the tensor IR's, and its meaning is its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from ila_lang import Expr, Function, Ila, Kernel, const, mem, true

from .layer import bits

WORD = 32
"""Bits of an element of the graph's tensors."""
QUANTISE_CODE, DEQUANTISE_CODE = 64, 127
"""``func_id`` of the instruction that rounds the first tensor (others follow), and of the one that reads codes."""


def float_tensor(name: str) -> str:
    """The memory of numbers whose codes are in the memory ``tensor_...`` of that name."""
    return name.replace("tensor", "float", 1)


def with_conversions(ila: Ila, operands: Sequence[str], result: str, quantise: Function, dequantise: Function) -> Ila:
    """Adds to a new tensor-IR ILA the instructions around those that it has.

    Each of the memories ``operands`` gets its codes from a memory of numbers (:func:`float_tensor`), and numbers are
    read from the codes in ``result``.  Inputs: ``rounded_rows_in`` and ``rounded_columns_in``, the extents (32 bits
    each), and ``exponent_in``, of as many bits as both functions take.
    """
    run, func = ila.inputs["func_run"], ila.inputs["func_id"]
    widths = {"rounded_rows": 32, "rounded_columns": 32, "exponent": bits(quantise.params[1].sort)}
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
        with kernel.loop("row", states["rounded_rows"]) as row, kernel.loop("column", columns) as column:
            element = kernel.load("element", ila.states[source], row * columns + column)
            kernel.store(ila.states[target], row * columns + column, function(element, exponent))
        decode = run & (func == code)
        instruction = ila.instruction(kernel.name).set_decode(decode)
        for name, value in inputs.items():
            instruction.update(states[name], value)
        instruction.start(kernel)
        valid = valid | decode
    ila.set_valid(valid)
    return ila


def convert(program: Kernel, note: str, code: int, rows: Expr, columns: Expr, exponent: Expr) -> None:
    """Appends one of these instructions to a program."""
    operands = {"rounded_rows_in": rows, "rounded_columns_in": columns, "exponent_in": exponent}
    program.command(note, func_run=true, func_id=const(code, 8), **operands)
