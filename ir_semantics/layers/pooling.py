"""Two-dimensional pooling over row-major tensors, as instructions of the tensor-IR ILA.

The meaning of a pooling operator is one kernel: for every output position, the elements under the window are
widened, folded from left to right and top to bottom, and narrowed once at the end.  What widening, folding and
narrowing are is the element type's business (:class:`PoolOperator`); the kernel is the same for all of them, for
every window and every stride.  There is no padding: a window that leaves the tensor is not visited (ONNX
``auto_pad = VALID``, ``ceil_mode = 0``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ila_lang import BOOL, Expr, Function, Ila, Kernel, const, ite, mem, resize

ELEMENT_WIDTH = 8
"""Width in bits of a tensor element."""

POOL_CODES: Mapping[str, int] = {"maxpool2d": 1, "meanpool2d": 2, "addpool2d": 3}
"""``func_id`` of each pooling instruction of the IR-ILA."""


@dataclass(frozen=True)
class PoolOperator:
    """How elements of one type are pooled.

    ``first`` widens an element to the accumulator, ``step`` folds a widened element into the accumulator, and
    ``finish`` narrows the accumulator, given the number of elements under the window (16 bits).
    """

    first: Function
    step: Function
    finish: Function

    def pair(self, left: Expr, right: Expr) -> Expr:
        """The operator on a window of two elements."""
        return self.finish(self.step(self.first(left), self.first(right)), const(2, 16))


def pool2d_kernel(name: str, operator: PoolOperator, source: Expr, target: Expr, states: Mapping[str, Expr]) -> Kernel:
    """The kernel of one pooling instruction.

    ``states`` holds height and width (32 bits), pool_y, pool_x, stride_y, stride_x (8 bits) of the running instruction.
    """
    height, width = states["height"], states["width"]
    pool_y, pool_x, stride_y, stride_x = (states[n].zext(32) for n in ("pool_y", "pool_x", "stride_y", "stride_x"))
    rows = ite(height < pool_y, const(0, 32), (height - pool_y) // stride_y + 1)
    columns = ite(width < pool_x, const(0, 32), (width - pool_x) // stride_x + 1)
    kernel = Kernel(name, f"{name} over a row-major tensor of {ELEMENT_WIDTH}-bit elements")
    with kernel.loop("oy", rows) as oy, kernel.loop("ox", columns) as ox:
        acc = kernel.let("acc", const(0, operator.first.result.width))  # type: ignore[union-attr]
        with kernel.loop("ky", pool_y) as ky, kernel.loop("kx", pool_x) as kx:
            element = kernel.load("element", source, (oy * stride_y + ky) * width + (ox * stride_x + kx))
            widened = operator.first(element)
            is_first = (ky == 0) & (kx == 0)
            kernel.assign(acc, ite(is_first, widened, operator.step(acc, widened)))
        count = resize(states["pool_y"], 16) * resize(states["pool_x"], 16)
        kernel.store(target, oy * columns + ox, operator.finish(acc, count))
    return kernel


def tensor_ir(operators: Mapping[str, PoolOperator], tensors: Sequence[str] = ("tensor_in", "tensor_out")) -> Ila:
    """The tensor IR as an ILA, with one instruction per pooling operator in ``operators`` (keys of POOL_CODES).

    Inputs: ``func_run``, ``func_id``, the tensor's ``height`` and ``width``, window and stride.  An instruction
    latches its operands and runs its kernel from ``tensor_in`` to ``tensor_out``.  A command is valid only if
    windows and strides are at least 1.

    With more than two ``tensors`` there is one instruction per operator and pair of neighbours in this list: the input
    ``source_in`` (8 bits) is the place in the list of the tensor that is read, and the next one is written.
    """
    ila = Ila("ir", "Tensor IR: one instruction per operator (D2A, section 2.1.2)")
    run, func = ila.input("func_run", BOOL), ila.input("func_id", 8)
    chosen = ila.input("source_in", 8) if len(tensors) > 2 else None
    sizes = {"height": 32, "width": 32, "pool_y": 8, "pool_x": 8, "stride_y": 8, "stride_x": 8}
    inputs = {n: ila.input(f"{n}_in", w) for n, w in sizes.items()}
    states = {n: ila.state(n, w, 0, doc="operand of the running instruction") for n, w in sizes.items()}
    memories = [ila.state(n, mem(32, ELEMENT_WIDTH), doc=f"{_role(n)} tensor, row-major") for n in tensors]
    positive = [inputs[n] != 0 for n in ("pool_y", "pool_x", "stride_y", "stride_x")]
    known = const(0, 1) == const(1, 1)
    for name in operators:
        known = known | (func == POOL_CODES[name])
    if chosen is not None:
        known = known & (chosen < len(tensors) - 1)
    ila.set_valid(run & known & positive[0] & positive[1] & positive[2] & positive[3])
    for number, (source, target) in enumerate(pairwise(memories)):
        for name, operator in operators.items():
            label = name if chosen is None else f"{name}_{number}"
            decode = run & (func == POOL_CODES[name])
            instruction = ila.instruction(label)
            instruction.set_decode(decode if chosen is None else decode & (chosen == number))
            for size, value in inputs.items():
                instruction.update(states[size], value)
            instruction.start(pool2d_kernel(label, operator, source, target, states))
    return ila


def _role(tensor: str) -> str:
    return {"tensor_in": "input", "tensor_out": "output"}.get(tensor, "intermediate")
