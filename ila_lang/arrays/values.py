"""Terms of a kernel, compiled for runs on arrays, with their loads taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from ila_lang.interpreter.compile import compile_terms
from ila_lang.language.expr import Expr, Function, free_variables, postorder, substitute, var
from ila_lang.language.kernel import For, Kernel, Let, Load, terms, walk
from ila_lang.language.sorts import BvSort, MemSort

from .flow import Flow, with_loads

#: Widest bit-vector whose operators stay exact in int64.
WIDEST = 62


class Value:
    """A compiled term.

    ``loads`` come first (each address may use the words of the ones before), then ``root`` over all of them, on
    integers or on arrays.  ``counters`` and ``memories`` are what it depends on beside the run's scalars; it may be
    ``kept`` as long as these are the same.
    """

    def __init__(self, root: Expr, flow: Flow, reach: frozenset[str]) -> None:
        self.variables = list(free_variables(root).values())
        self.root = root
        self.names = [v.name for v in self.variables]
        self.name = root.name if root.op == "var" else None
        self.constant = root.value if root.op == "const" else None
        self.loads: list[tuple[str, str, Value]] = []
        self.counters = tuple(sorted(reach & flow.loops.keys()))
        self.memories: tuple[str, ...] = ()
        self.kept = False

    def all_names(self) -> set[str]:
        """Names that the term uses, those of the addresses that it loads from included."""
        return set(self.names).union(*(address.all_names() for _, _, address in self.loads))

    @cached_property
    def on_integers(self) -> Callable[..., Any]:
        """The term as a function of numbers, in a tuple."""
        return compile_terms(self.variables, [self.root])

    @cached_property
    def on_arrays(self) -> Callable[..., Any]:
        """The term as a function of numbers and arrays, in a tuple."""
        return compile_terms(self.variables, [self.root], vector=True)

    def evaluate(self, *arguments: Any) -> Any:
        """The term's value where an argument is an array: an array, or a number."""
        found = self.on_arrays(*arguments)[0]
        if isinstance(found, np.ndarray) and found.ndim:
            return found
        return found.item() if hasattr(found, "item") else found

    def evaluate_numbers(self, *arguments: int) -> int:
        """The term's value where all arguments are numbers."""
        found: int = self.on_integers(*arguments)[0]
        return found


def value(term: Expr, flow: Flow) -> Value:
    """Compiles ``term``, a term of the kernel that ``flow`` describes."""
    root = with_loads(term)
    reach = flow.reached([root])
    memories = {n.args[0].name for n in postorder([root]) if n.op == "load"} | reach & flow.memories
    replaced: dict[Expr, Expr] = {}
    loads: list[tuple[str, str, Value]] = []
    for node in postorder([root]):
        if node.op == "load":
            memory, address = node.args
            target = var(f"loaded.{len(loads)}", node.sort)
            simple = all(n.op != "load" for n in postorder([address]))
            where = value(address, flow) if simple else Value(substitute(address, replaced), flow, reach)
            loads.append((target.name, memory.name, where))
            replaced[node] = target
    result = Value(substitute(root, replaced), flow, reach)
    result.loads = loads
    result.memories = tuple(sorted(memories))
    if loads:
        result.name = None
    changing = reach & flow.updated or memories & flow.stored
    result.kept = not changing and root.op not in ("var", "const")
    return result


def check_widths(kernel: Kernel) -> None:
    """Raises ValueError if a term of ``kernel`` is too wide for exact arithmetic on arrays."""
    seen: set[Function] = set()

    def check(roots: Iterable[Expr]) -> None:
        for node in postorder(roots):
            width = 0
            match node.sort:
                case BvSort(width=width):
                    pass
                case MemSort(addr_width=a, data_width=d):
                    width = max(a, d)
            if width > WIDEST:
                raise ValueError(
                    f"Terms of {kernel.name} must have at most {WIDEST} bits to be vectorised, "
                    f"not {width} ({node.describe()})"
                )
            if node.func is not None and node.func not in seen:
                seen.add(node.func)
                check([*node.func.params, *([node.func.body] if node.func.body is not None else [])])

    for statement in walk(kernel.body):
        check(terms(statement))
        match statement:
            case For(counter=c):
                check([c])
            case Let(target=t) | Load(target=t):
                check([t])
            case _:
                pass
