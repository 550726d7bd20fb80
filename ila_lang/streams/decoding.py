"""Which instruction decodes each command of a stream, from a table.

Decodes see the inputs mostly through comparisons with constants: of a term, the constants of all its comparisons make
*classes* of values between which no comparison tells a difference.  So the truth of all decodes is a table over the
classes of all terms (and the Boolean inputs), made once from one value of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ila_lang.interpreter.compile import compile_terms
from ila_lang.language.expr import Expr, free_variables, postorder, substitute, var
from ila_lang.language.sorts import BOOL

#: Tables over more combinations of classes are not made.
MOST_CLASSES = 1 << 17
#: The classes of terms of at most this many bits are looked up.
LOOKED_UP = 16

Columns = Mapping[str, NDArray[Any]]


def selection(results: Sequence[Any], size: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the one instruction that decodes each command, or -1.

    ``results`` say of each command whether it is valid, whether instructions that are not considered here may decode
    it, and of each instruction in ``numbers`` whether it does.
    """
    table = np.empty((len(results), size), bool)
    for row, found in zip(table, results, strict=True):
        row[:] = found  # a condition that is constant, or of an input that is not given, is a number
    valid, others, hits = table[0], table[1], table[2:]
    which = np.full(size, -1)
    if len(hits):
        chosen = hits.sum(axis=0) == 1
        which[chosen] = numbers[hits.argmax(axis=0)[chosen]]
    which[~valid | others] = -1
    return which


class DecodeTable:
    """The selection of instructions by ``terms`` over the inputs (see :func:`selection`) as a table.

    Raises ValueError where the terms do not see the inputs through comparisons alone, or through too many.
    """

    def __init__(self, terms: Sequence[Expr], numbers: NDArray[np.int64]) -> None:
        bounds: dict[Expr, set[int]] = {}
        for node in _seen(terms):
            if node.op == "var":
                bounds.setdefault(node, set()).add(1)
                continue
            left, right = node.args
            compared, constant = (left, right) if right.op == "const" else (right, left)
            value = constant.value
            # the least values of classes
            if node.op == "eq":
                least = {value, value + 1}
            else:
                least = {value + (node.op == "bvule") if constant is right else value + (node.op == "bvult")}
            bounds.setdefault(compared, set()).update(b for b in least if 0 < b < 1 << compared.width)
        self.bounds = {node: np.array([0, *sorted(found)], np.int64) for node, found in bounds.items()}
        sizes = [len(found) for found in self.bounds.values()]
        steps = list(accumulate(sizes, mul, initial=1))
        if steps[-1] > MOST_CLASSES:
            raise ValueError(f"Decodes must not tell more than {MOST_CLASSES} classes of commands, not {steps[-1]}")
        self.steps = steps[:-1]
        stand_ins = {node: var(f"class.{i}", node.sort) for i, node in enumerate(self.bounds)}
        classes = [substitute(term, stand_ins) for term in terms]
        parameters = list(stand_ins.values())
        if not free_variables(*classes).keys() <= {p.name for p in parameters}:
            raise ValueError("Decodes must see the inputs through comparisons with constants only")
        index = np.arange(steps[-1])
        values = [
            (b if p.sort != BOOL else b.astype(bool))[index // step % len(b)]
            for p, b, step in zip(parameters, self.bounds.values(), self.steps, strict=True)
        ]
        found = compile_terms(parameters, classes, vector=True)(*values)
        self.table = selection(found, steps[-1], numbers)
        self.variables = list(free_variables(*terms).values())
        self.names = [v.name for v in self.variables]
        self.numbers = numbers
        self.terms: Callable[..., Any] = compile_terms(self.variables, terms, vector=True)
        self.evaluate: Callable[..., Any] = compile_terms(self.variables, list(self.bounds), vector=True)
        self.look_ups = [
            np.searchsorted(b, np.arange(1 << node.width), side="right") * step - step
            if node.sort != BOOL and node.width <= LOOKED_UP
            else None
            for (node, b), step in zip(self.bounds.items(), self.steps, strict=True)
        ]

    def select(self, columns: Columns, size: int) -> NDArray[np.int64]:
        """The number of the one instruction that decodes each of ``size`` commands, or -1."""
        given = [columns[name] for name in self.names]
        for variable, column in zip(self.variables, given, strict=True):
            if variable.sort != BOOL and size and (column.min() < 0 or column.max() >> variable.width):
                # no value of the input has a place in the table
                return selection(self.terms(*given), size, self.numbers)
        code: Any = np.zeros(size, np.int64)
        found = self.evaluate(*given)
        for values, b, step, look_up in zip(found, self.bounds.values(), self.steps, self.look_ups, strict=True):
            if look_up is not None:
                code += look_up.take(values)
            elif len(b) == 2 and b[1] == 1:
                code += (values != 0) * step
            else:
                code += (np.searchsorted(b, values, side="right") - 1) * step
        chosen: NDArray[np.int64] = self.table.take(code)
        return chosen


def _seen(terms: Sequence[Expr]) -> list[Expr]:
    """Comparisons and Boolean inputs of which ``terms`` are made; raises ValueError where there is something else."""
    found: list[Expr] = []
    inside: set[Expr] = set()
    for node in reversed(postorder(terms)):
        if node in inside:
            continue
        if node.op in ("eq", "bvult", "bvule") and node.args[0].sort != BOOL:
            if "const" not in (node.args[0].op, node.args[1].op):
                raise ValueError("Decodes must compare with constants")
            found.append(node)
            inside.update(postorder(node.args))
        elif node.op == "var" and node.sort == BOOL:
            found.append(node)
        elif node.op not in ("and", "or", "not", "xor", "ite", "const", "eq"):
            raise ValueError(f"Decodes must be made of comparisons, not {node.describe()}")
    return found
