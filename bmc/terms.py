"""Partial evaluation: expressions over values of which some are integers and some are symbolic.

A value is a Python integer where it is known and an expression where it is not.  For every pattern of known
and unknown operands the expression is compiled once: what depends on known values only becomes integer
arithmetic, the same source text that the interpreter runs; the rest builds simplified expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ila_lang import BOOL, BvSort, Expr, Function, MemSort, Sort, const, postorder, true
from ila_lang.interpreter.compile import compile_function, loads_resolved
from ila_lang.language.build import apply_op, false
from ila_lang.language.expr import variables_of
from ila_lang.language.ops import SCALAR, template
from smt_encodings.claims import Unsupported

Value = int | Expr


class Words(Protocol):
    """A memory that is read and written at known addresses."""

    def read(self, address: int) -> Value:
        """The word at an address."""

    def write(self, address: int, value: Value) -> None:
        """Replaces the word at an address."""


def lift(value: Value, sort: Sort) -> Expr:
    """A value as an expression."""
    if isinstance(value, Expr):
        return value
    if sort == BOOL:
        return true if value else false
    assert isinstance(sort, BvSort)
    return const(value, sort.width)


def lower(value: Value) -> Value:
    """A value as an integer where it is known."""
    if isinstance(value, Expr):
        return value.value if value.op == "const" else value
    return int(value)


def known(value: Value, what: str) -> int:
    """The integer; raises Unsupported, naming ``what`` needs it, if the value is symbolic."""
    value = lower(value)
    if isinstance(value, Expr):
        raise Unsupported(f"{what} depends on a value that is not known while unrolling: {value!r}"[:300])
    return value


class Terms:
    """Some expressions, ready to be evaluated together again and again.

    Applications of functions named in ``abstract`` stay symbolic even on known operands: nothing but their
    lemmas is known of them.
    """

    def __init__(self, roots: Iterable[Expr], abstract: frozenset[str], what: str = "an address") -> None:
        self.roots = [loads_resolved(r) for r in roots]
        self.abstract = abstract
        self.what = what
        variables = variables_of(*self.roots)
        self.scalars = [v for v in variables if not isinstance(v.sort, MemSort)]
        self.memories = [v for v in variables if isinstance(v.sort, MemSort)]
        self._codes: dict[tuple[bool, ...], Callable[..., tuple[Value, ...]]] = {}
        self._opaque: dict[Function, bool] = {}

    def __call__(self, values: Mapping[Expr, Value], memories: Mapping[Expr, Words]) -> tuple[Value, ...]:
        """The roots' values."""
        args = [values[v] for v in self.scalars]
        pattern = tuple([type(a) is Expr for a in args])
        code = self._codes.get(pattern)
        if code is None:
            unknown = {v for v, symbolic in zip(self.scalars, pattern, strict=True) if symbolic}
            code = self._codes[pattern] = _Compiler(self, unknown).compile()
        return code(*args, *[memories[m] for m in self.memories])

    def opaque(self, function: Function) -> bool:
        """Whether nothing is known of a function, or of one that it applies, but lemmas."""
        if function not in self._opaque:
            body = function.body
            applied = [] if body is None else [n.func for n in postorder([body]) if n.func is not None]
            self._opaque[function] = function.name in self.abstract or body is None or any(map(self.opaque, applied))
        return self._opaque[function]


class _Compiler:
    """Writes the Python function of one pattern of known operands."""

    def __init__(self, terms: Terms, unknown: set[Expr]) -> None:
        self.terms = terms
        self.unknown = unknown
        self.lines: list[str] = []
        self.indent = 1
        self.scopes: list[dict[Expr, tuple[str, bool]]] = [{}]
        self.count = 0
        self.namespace: dict[str, Any] = {"apply_op": apply_op, "lift": lift, "lower": lower, "known": known}
        for number, variable in enumerate([*terms.scalars, *terms.memories]):
            self.scopes[0][variable] = (f"v{number}", variable in unknown)

    def compile(self) -> Callable[..., tuple[Value, ...]]:
        results = [self.emit(r) for r in self.terms.roots]
        shown = "".join(f"lower({t}), " if symbolic else f"int({t}), " for t, symbolic in results)
        self.line(f"return ({shown})")
        header = ", ".join(f"v{i}" for i in range(len(self.terms.scalars) + len(self.terms.memories)))
        exec("\n".join([f"def compiled({header}):", *self.lines]), self.namespace)
        compiled: Callable[..., tuple[Value, ...]] = self.namespace["compiled"]
        return compiled

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def bind(self, node: Expr, source: str, symbolic: bool) -> tuple[str, bool]:
        name = f"t{self.count}"
        self.count += 1
        self.line(f"{name} = {source}")
        self.scopes[-1][node] = (name, symbolic)
        return name, symbolic

    def constant(self, value: object) -> str:
        name = f"c{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def emit(self, node: Expr) -> tuple[str, bool]:
        """Source of the node's value, and whether it may be an expression."""
        for scope in reversed(self.scopes):
            if node in scope:
                return scope[node]
        if node.op == "const":
            return str(node.value), False
        if node.op == "ite":
            condition, symbolic = self.emit(node.args[0])
            if not symbolic:
                return self._branch(node, condition)
        operands = [self.emit(a) for a in node.args]
        if node.op == "load":
            address, symbolic = operands[1]
            if symbolic:
                address = f"known({address}, {self.constant(self.terms.what)})"
            return self.bind(node, f"{operands[0][0]}.read({address})", True)
        abstract = node.func is not None and self.terms.opaque(node.func)
        if not abstract and not any(symbolic for _, symbolic in operands):
            return self.bind(node, self._integer(node, [text for text, _ in operands]), False)
        lifted = [f"lift({t}, {self.constant(a.sort)})" for (t, _), a in zip(operands, node.args, strict=True)]
        rest = ", ".join(self.constant(x) for x in (node.params, node.sort, node.func))
        return self.bind(node, f"apply_op({node.op!r}, ({', '.join(lifted)},), {rest})", True)

    def _branch(self, node: Expr, condition: str) -> tuple[str, bool]:
        """A conditional on a known condition evaluates one branch only."""
        name = f"t{self.count}"
        self.count += 1
        symbolic = False
        for keyword, branch in ((f"if {condition}:", node.args[1]), ("else:", node.args[2])):
            self.line(keyword)
            self.indent += 1
            self.scopes.append({})
            text, open_ = self.emit(branch)
            self.line(f"{name} = {text}")
            symbolic = symbolic or open_
            self.scopes.pop()
            self.indent -= 1
        self.scopes[-1][node] = (name, symbolic)
        return name, symbolic

    def _integer(self, node: Expr, operands: list[str]) -> str:
        if node.op == "apply":
            assert node.func is not None
            return f"{self.constant(compile_function(node.func))}({', '.join(operands)})"
        widths = [a.sort.width if isinstance(a.sort, BvSort) else 0 for a in node.args]
        result = node.sort.width if isinstance(node.sort, BvSort) else 0
        return template(SCALAR, node.op, operands, node.params, widths, result)
