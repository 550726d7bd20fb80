"""What layers of the tensor IR share: an ILA with one instruction, which keeps its operands and runs a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from ila_lang import BOOL, BvSort, Expr, Fragment, Ila, Kernel, Sort, const, mem, true


def bits(sort: Sort) -> int:
    """The width of a bit-vector."""
    assert isinstance(sort, BvSort)
    return sort.width


class Layer:
    """The tensor IR as an ILA with one instruction, of the name of the kernel that it runs.

    Inputs are ``func_run``, ``func_id`` (which must be ``code``) and every operand with the suffix ``_in``, of so many
    bits.  ``states`` are those of the running instruction, by name.
    """

    def __init__(self, doc: str, code: int, kernel: Kernel, operands: Mapping[str, int]) -> None:
        self.ila = Ila("ir", f"Tensor IR: {doc}")
        self.kernel = kernel
        self._decode = self.ila.input("func_run", BOOL) & (self.ila.input("func_id", 8) == code)
        self._inputs = {n: self.ila.input(f"{n}_in", w) for n, w in operands.items()}
        self.states = {
            n: self.ila.state(n, w, 0, doc="operand of the running instruction") for n, w in operands.items()
        }
        self.ila.set_valid(self._decode)

    def tensor(self, name: str, width: int, doc: str) -> Expr:
        """The memory ``tensor_`` with that name; elements have ``width`` bits."""
        return self.ila.state(f"tensor_{name}", mem(32, width), doc=doc)

    def finished(self) -> Ila:
        """The ILA, once the kernel is written."""
        instruction = self.ila.instruction(self.kernel.name).set_decode(self._decode)
        for name, value in self._inputs.items():
            instruction.update(self.states[name], value)
        instruction.start(self.kernel)
        return self.ila


def call(
    name: str, note: str, code: int, ila: Ila, parameters: dict[str, Expr], operands: Mapping[str, Expr]
) -> Fragment:
    """The program ``name`` of one instruction of the tensor IR, on operands by name."""
    program = Kernel(name)
    program.command(note, func_run=true, func_id=const(code, 8), **{f"{n}_in": v for n, v in operands.items()})
    return Fragment(name, ila, parameters, {}, program)
