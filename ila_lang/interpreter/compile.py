"""Expressions and kernels as Python functions on integers.

The generated source applies the operator table of :mod:`ila_lang.language.ops` node by node, so running a model and
folding its constants are the same meaning.  Loop-invariant index arithmetic is computed once, outside the loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache, partial
from operator import getitem
from typing import Any

from ila_lang.language import build
from ila_lang.language.expr import Expr, Function, postorder, rebuild, variables_of
from ila_lang.language.kernel import Command, ExtentError, For, Kernel, Let, Load, Statement, Store, terms, walk
from ila_lang.language.ops import SCALAR, VECTOR, operator, template
from ila_lang.language.sorts import BvSort, MemSort

from .tables import table

INTERPRETED = 2
"""Terms are evaluated node by node for this number of calls, and compiled after it."""

_TEMPORARY = re.compile(r"\bt\d+\b")


class NoBodyError(ValueError):
    """A function without a body, which cannot be run."""


class Memory(dict[int, int]):
    """The contents of a memory: words by address; words never written hold ``default``."""

    def __init__(self, default: int = 0, contents: Mapping[int, int] | None = None) -> None:
        super().__init__(contents or {})
        self.default = default

    def __missing__(self, address: int) -> int:
        return self.default


def loads_resolved(root: Expr) -> Expr:
    """``root`` with loads pushed through stores and conditionals down to memory variables."""

    def resolve(memory: Expr, address: Expr) -> Expr:
        if memory.op == "store":
            base, stored_at, data = memory.args
            return build.ite(stored_at == address, data, resolve(base, address))
        if memory.op == "ite":
            condition, then, otherwise = memory.args
            return build.ite(condition, resolve(then, address), resolve(otherwise, address))
        return memory.load(address)

    done: dict[Expr, Expr] = {}
    for node in postorder([root]):
        args = tuple(done[a] for a in node.args)
        if node.op == "load":
            done[node] = resolve(*args)
        else:
            done[node] = rebuild(node, args) if args else node
    return done[root]


def resolved(root: Expr) -> Expr:
    """The term with loads from memory variables only, and functions of memories by their bodies."""
    return root if all(map(is_resolved, postorder([root]))) else _resolved(root)


def is_resolved(node: Expr) -> bool:
    """Whether a node is no load but from a variable, and no function of memories; its operands may be."""
    return node.args[0].op == "var" if node.op == "load" else not _is_of_memories(node)


def _is_of_memories(node: Expr) -> bool:
    """Whether a function is applied to a memory."""
    return node.func is not None and any(isinstance(a.sort, MemSort) for a in node.args)


def _resolved(root: Expr) -> Expr:
    done: dict[Expr, Expr] = {}
    for node in postorder([root]):
        args = tuple(done[a] for a in node.args)
        if _is_of_memories(node):
            assert node.func is not None
            require_body(node.func)
            done[node] = resolved(node.func.unfold(args))
        else:
            done[node] = rebuild(node, args) if args else node
    return loads_resolved(done[root])


def require_body(function: Function) -> Expr:
    """The body of a function; raises NoBodyError where it has none."""
    if function.body is None:
        raise NoBodyError(f"Function {function.name} must have a body to be run; give it one or run another model")
    return function.body


class _Writer:
    """Emits assignments for expression nodes; a memo per open block lets blocks reuse outer values."""

    def __init__(self, table: dict[str, str], volatile: Set[Expr] = frozenset()) -> None:
        self.table = table
        self.volatile = volatile
        self.lines: list[str] = []
        self.indent = 1
        self.scopes: list[dict[Expr, str]] = [{}]
        self.names: dict[Expr, str] = {}
        self.namespace: dict[str, Any] = {}
        self.functions: dict[Function, str] = {}
        self.uses: dict[Expr, frozenset[Expr]] = {}
        self.count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def name(self, variable: Expr) -> str:
        return self.names.setdefault(variable, f"v{len(self.names)}_{_identifier(variable.name)}")

    def find(self, node: Expr) -> str | None:
        return next((scope[node] for scope in reversed(self.scopes) if node in scope), None)

    def variables_in(self, node: Expr) -> frozenset[Expr]:
        """The variables that occur in ``node``."""
        if node not in self.uses:
            for n in postorder([node]):
                own = [n] if n.op == "var" else []
                self.uses[n] = frozenset(own).union(*(self.uses[a] for a in n.args))
        return self.uses[node]

    def forget(self, changed: Set[Expr]) -> None:
        """Drops what was computed from registers and memories that have other values from here on."""
        for scope in self.scopes:
            for node in [n for n in scope if n.args and self.variables_in(n) & changed]:
                del scope[node]

    def emit(self, root: Expr) -> str:
        """Source text of the value of ``root``; emits what is not yet computed."""
        for node in postorder([root]):
            if self.find(node) is None:
                source = self.source(node)
                if node.op in ("var", "const"):
                    self.scopes[-1][node] = source
                else:
                    self.scopes[-1][node] = name = self.fresh()
                    self.line(f"{name} = {source}")
        source_of_root = self.find(root)
        assert source_of_root is not None
        if self.volatile and any(v in self.volatile for v in variables_of(root)):
            for node in postorder([root]):
                if any(v in self.volatile for v in variables_of(node)):
                    self.scopes[-1].pop(node, None)
        return source_of_root

    def source(self, node: Expr) -> str:
        if node.op == "const":
            return str(node.value)
        if node.op == "var":
            read_again = node in self.volatile and not isinstance(node.sort, MemSort)
            return f"S[{node.name!r}]" if read_again else self.name(node)
        operands = [self.find(a) or "" for a in node.args]
        if node.op == "load":
            return f"{operands[0]}[{operands[1]}]"
        if node.op == "apply":
            assert node.func is not None
            # two functions may have one name
            name = self.functions.setdefault(node.func, f"f{len(self.functions)}_{_identifier(node.func.name)}")
            self.namespace[name] = compile_function(node.func, vector=self.table is VECTOR)
            return f"{name}({', '.join(operands)})"
        widths = [a.sort.width if isinstance(a.sort, BvSort) else 0 for a in node.args]
        result = node.sort.width if isinstance(node.sort, BvSort) else 0
        return template(self.table, node.op, operands, node.params, widths, result)

    def build(self, parameters: Sequence[str]) -> Callable[..., Any]:
        import numpy as np

        text = f"def compiled({', '.join(parameters)}):\n" + "\n".join(self.lines or ["    pass"])
        self.namespace["np"] = np
        exec(compile(text, "<compiled model>", "exec"), self.namespace)
        compiled: Callable[..., Any] = self.namespace["compiled"]
        return compiled


def _identifier(name: str) -> str:
    """The name as a part of one in Python."""
    return re.sub(r"\W", "_", name)


def compile_terms(parameters: Sequence[Expr], roots: Iterable[Expr], *, vector: bool = False) -> Callable[..., Any]:
    """A Python function of the parameters' values that returns the roots' values as a tuple.

    With ``vector`` the arguments may be NumPy int64 arrays (every width must then stay below 63 bits).
    """
    return _Terms(parameters, [resolved(root) for root in roots], vector).__call__


class _Terms:
    """Terms as a function: evaluated node by node at first, and compiled when they are called again and again.

    Both apply the same operators in the same order; to compile pays off from a few calls on.
    """

    def __init__(self, parameters: Sequence[Expr], roots: Sequence[Expr], vector: bool) -> None:
        self.parameters, self.roots, self.vector = parameters, roots, vector
        self.calls = 0
        self.compiled: Callable[..., Any] | None = None
        places = {p: i for i, p in enumerate(parameters)}
        self.constants: list[Any] = []
        steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        order = [node for node in postorder(roots) if node not in places]
        literals = [node for node in order if node.op == "const"]
        for node in literals:
            places[node] = len(places)
            self.constants.append(node.value)
        for node in order:
            if node.op == "const":
                continue
            if node.op == "var":
                raise ValueError(f"Variable {node.name} must be a parameter of the compiled terms")
            steps.append((self._function(node), tuple([places[a] for a in node.args])))
            places[node] = len(places)
        self.results = [places[root] for root in roots]
        # arrays do not live longer than needed
        last = {place: number for number, (_, arguments) in enumerate(steps) for place in arguments}
        first, kept = len(parameters) + len(literals), set(self.results)
        dead: dict[int, list[int]] = {}
        for place, number in last.items():
            if place >= first and place not in kept:
                dead.setdefault(number, []).append(place)
        self.steps = [(function, arguments, dead.get(i, ())) for i, (function, arguments) in enumerate(steps)]

    def _function(self, node: Expr) -> Callable[..., Any]:
        if node.op == "load":
            return getitem
        if node.op == "apply":
            assert node.func is not None
            return compile_function(node.func, vector=self.vector)
        widths = tuple([a.sort.width if isinstance(a.sort, BvSort) else 0 for a in node.args])
        return operator(
            self.vector, node.op, node.params, widths, node.sort.width if isinstance(node.sort, BvSort) else 0
        )

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        if self.compiled is not None:
            return self.compiled(*arguments)  # type: ignore[no-any-return]
        self.calls += 1
        if self.calls > INTERPRETED:
            self.compiled = self._compile()
            return self.compiled(*arguments)  # type: ignore[no-any-return]
        if len(arguments) != len(self.parameters):
            raise TypeError(f"terms over {len(self.parameters)} parameters must be given as many, not {len(arguments)}")
        values = [*arguments, *self.constants]
        for function, places, dead in self.steps:
            values.append(function(*[values[p] for p in places]))
            for place in dead:
                values[place] = None
        return tuple([values[p] for p in self.results])

    def _compile(self) -> Callable[..., Any]:
        writer = _Writer(VECTOR if self.vector else SCALAR)
        names = [writer.name(p) for p in self.parameters]
        values = [writer.emit(root) for root in self.roots]
        writer.line(f"return ({', '.join(values)},)" if values else "return ()")
        if self.vector:
            writer.lines = _forgetting(writer.lines)
        return writer.build(names)


def _forgetting(lines: list[str]) -> list[str]:
    """The assignments, with a ``del`` after the last use of each: arrays do not live longer than needed."""
    last: dict[str, int] = {}
    for i, line in enumerate(lines):
        for name in _TEMPORARY.findall(line):
            last[name] = i
    dead: dict[int, list[str]] = {}
    for name, i in last.items():
        dead.setdefault(i, []).append(name)
    end = len(lines) - 1
    return [f"{line}; del {', '.join(dead[i])}" if i in dead and i != end else line for i, line in enumerate(lines)]


@cache
def compile_function(function: Function, vector: bool = False) -> Callable[..., Any]:
    """A function with a body as a Python function on integers (or, with ``vector``, on NumPy arrays).

    On arrays, functions of few argument bits are looked up in a table of their values.  Raises NoBodyError on
    an uninterpreted function.
    """
    inner = compile_terms(function.params, [require_body(function)], vector=vector)
    if not vector:
        return lambda *args: inner(*args)[0]
    values = table(function, lambda *args: inner(*args)[0])
    if values is None:
        return lambda *args: inner(*args)[0]
    widths = [p.width for p in function.params]

    def look_up(*args: Any) -> Any:
        index = args[0]
        for arg, width in zip(args[1:], widths[1:], strict=True):
            index = index << width | arg
        return values[index]

    return look_up


def compile_kernel(kernel: Kernel, volatile: Set[Expr] = frozenset()) -> Callable[..., None]:
    """A Python function ``(values, memories, issue, known=values, steps=range)`` that runs the kernel on integers.

    ``known`` maps the external scalars to their values by name, but those in ``volatile``, which are read again from
    ``values`` at each use.  ``memories`` maps memories to :class:`Memory`, ``issue`` receives the inputs of commands.
    ``steps`` gives the iterations of a loop from their number; it may raise what ends the run.  The function raises
    ExtentError where an extent does not fit its counter.
    """
    writer = _Writer(SCALAR, volatile)
    writer.namespace["refused"] = partial(_refused, kernel.name)
    external = kernel.external_variables()
    writer.line("K = S if K is None else K")
    for name, variable in external.items():
        if isinstance(variable.sort, MemSort):
            writer.line(f"{writer.name(variable)} = M[{name!r}]")
        elif variable not in volatile:
            writer.line(f"{writer.name(variable)} = K[{name!r}]")
    carried = {s.target for s in walk(kernel.body) if isinstance(s, Let) and s.update}
    bound = set(external.values()) - volatile
    _block(writer, tuple(kernel.body), bound, carried)
    return writer.build(["S", "M", "issue", "K=None", "steps=range"])


def _refused(kernel: str, extent: int, counter: str) -> None:
    raise ExtentError(extent, counter, kernel)


def _block(writer: _Writer, body: tuple[Statement, ...], bound: set[Expr], carried: set[Expr]) -> None:
    """Emits the statements of one block; ``bound`` are the variables with one value throughout it."""
    bound = set(bound)
    for statement in body:
        match statement:
            case For(counter=counter, extent=extent, body=inner):
                limit = writer.emit(resolved(extent))
                if extent.width > counter.width:
                    writer.line(f"if {limit} > {1 << counter.width}: refused({limit}, {counter.name!r})")
                # from the second iteration on, these do not hold what they held before the loop
                writer.forget(_changed(inner))
                _hoist(writer, inner, bound)
                writer.line(f"for {writer.name(counter)} in steps({limit}):")
                writer.indent += 1
                writer.scopes.append({})
                mark = len(writer.lines)
                _block(writer, inner, bound | {counter}, carried)
                if len(writer.lines) == mark:
                    writer.line("pass")
                writer.scopes.pop()
                writer.indent -= 1
            case Let(target=target, value=value):
                writer.line(f"{writer.name(target)} = {writer.emit(resolved(value))}")
                _bind(writer, target, bound, carried)
            case Load(target=target, memory=memory, address=address):
                if memory.op == "var":
                    word = f"{writer.emit(memory)}[{writer.emit(resolved(address))}]"
                else:
                    word = writer.emit(resolved(memory.load(address)))
                writer.line(f"{writer.name(target)} = {word}")
                _bind(writer, target, bound, carried)
            case Store(memory=memory, address=address, value=value):
                where, what = writer.emit(resolved(address)), writer.emit(resolved(value))
                writer.line(f"{writer.emit(_target(memory))}[{where}] = {what}")
                writer.forget(writer.variables_in(memory))
            case Command(inputs=inputs, note=note):
                pairs = ", ".join(f"{n!r}: {writer.emit(resolved(v))}" for n, v in inputs)
                writer.line(f"issue({{{pairs}}}, {note!r})")


def _target(memory: Expr) -> Expr:
    """A memory that is stored to, chosen by conditions that are resolved."""
    if memory.op != "ite":
        return memory
    condition, then, otherwise = memory.args
    return build.ite(resolved(condition), _target(then), _target(otherwise))


def _bind(writer: _Writer, target: Expr, bound: set[Expr], carried: set[Expr]) -> None:
    """A register just got a value: forget what was computed from an older one."""
    if target in carried:
        writer.forget({target})
    else:
        bound.add(target)


def _changed(body: tuple[Statement, ...]) -> set[Expr]:
    """Registers that ``body`` assigns and memories that it stores to."""
    changed: set[Expr] = set()
    for statement in walk(body):
        match statement:
            case Let(target=target, update=True):
                changed.add(target)
            case Store(memory=memory):
                changed |= set(variables_of(memory))
    return changed


def _hoist(writer: _Writer, body: tuple[Statement, ...], bound: set[Expr]) -> None:
    """Computes the index arithmetic of a loop body that does not change while the loop runs."""
    for statement in walk(body):
        if isinstance(statement, Command):
            continue
        for root in terms(statement):
            for node in postorder([root]):
                if (
                    node.args
                    and not any(n.op in ("load", "store", "apply") for n in postorder([node]))
                    and set(variables_of(node)) <= bound
                ):
                    writer.emit(node)
