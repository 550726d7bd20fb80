"""Expressions: typed, width-checked when they are built, and hash-consed; and the functions that they apply.

Two structurally equal expressions are the same object, so ``is`` decides syntactic equality and a
dictionary may be keyed by expressions.  Operators are **unsigned by default** (``<``, ``>>``, ``/``);
signed ones have names (``slt``, ``ashr``, ...).  ``==`` builds an equation; it does not compare.

The meaning of every operator is the SMT-LIB 2.6 meaning of the operator of the same name in the
theories Core, FixedSizeBitVectors and ArraysEx; division by zero gives all ones, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, KeysView, Mapping, Sequence
from numbers import Integral
from operator import is_
from typing import Any, ClassVar, NoReturn
from weakref import WeakValueDictionary

from .sorts import BOOL, BoolSort, BvSort, MemSort, Sort, bv

Param = int | str
_Key = tuple[object, ...]


class Algebra:
    """What operators on expressions build with.

    The constructors stand above this module (:mod:`ila_lang.language.build`) and register themselves here, so that
    expressions can have Python operators without this module importing what imports it.
    """

    binary: Callable[[str, Expr, Operand], Expr]
    coerce: Callable[[Operand, Sort, str], Expr]
    invert: Callable[[Expr], Expr]
    negate: Callable[[Expr], Expr]
    extract: Callable[[Expr, int, int], Expr]
    extend: Callable[[str, Expr, int], Expr]
    load: Callable[[Expr, Operand], Expr]
    store: Callable[[Expr, Operand, Operand], Expr]
    apply_op: Callable[[str, tuple[Expr, ...], tuple[Param, ...], Sort, Function | None], Expr]
    show: Callable[[Expr], str]

    def register(self, **constructors: Callable[..., Any]) -> None:
        """Sets constructors by name."""
        for name, constructor in constructors.items():
            setattr(self, name, constructor)


_algebra = Algebra()


class Expr:
    """One node of an expression DAG.

    ``op`` names the operator, ``args`` are the operands, ``params`` the literal parameters
    (a constant's value, a variable's name, the bounds of an extract), ``sort`` the type.
    Build expressions with operators and with the functions of :mod:`ila_lang`, not with this class.
    """

    __slots__ = ("__weakref__", "_variables", "args", "func", "op", "params", "sort")
    op: str
    args: tuple[Expr, ...]
    params: tuple[Param, ...]
    sort: Sort
    func: Function | None
    # of an operator the variables in it, by first occurrence (or MANY); None until it is first needed
    _variables: tuple[Expr, ...] | None

    _interned: ClassVar[WeakValueDictionary[_Key, Expr]] = WeakValueDictionary()

    @staticmethod
    def _make(
        op: str,
        args: tuple[Expr, ...],
        params: tuple[Param, ...],
        sort: Sort,
        func: Function | None = None,
    ) -> Expr:
        key: _Key = (op, tuple(map(id, args)), params, sort, id(func) if func else None)
        node_of_key = Expr._interned.get(key)
        if node_of_key is not None:
            return node_of_key
        node = object.__new__(Expr)
        node.op, node.args, node.params, node.sort, node.func = op, args, params, sort, func
        node._variables = None
        Expr._interned[key] = node
        return node

    # -- inspection ---------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Width in bits; raises TypeError on a Boolean or a memory."""
        if not isinstance(self.sort, BvSort):
            raise TypeError(f"Only a bit-vector has a width, not {self.describe()} of sort {self.sort}")
        return self.sort.width

    @property
    def name(self) -> str:
        """Name of a variable; raises TypeError on any other expression."""
        if self.op != "var":
            raise TypeError(f"Only a variable has a name, not {self.describe()}")
        return str(self.params[0])

    @property
    def is_const(self) -> bool:
        """Whether this is a literal."""
        return self.op == "const"

    @property
    def value(self) -> int:
        """Value of a literal (Booleans as 0 and 1); raises TypeError on any other expression."""
        if self.op != "const":
            raise TypeError(f"Only a literal has a value, not {self.describe()}")
        return int(self.params[0])

    def describe(self) -> str:
        """A short name for messages: the variable's name, the literal, or the operator."""
        if self.op == "var":
            return str(self.params[0])
        if self.op == "const":
            return hex(self.value) if self.sort != BOOL else str(bool(self.value)).lower()
        return f"'{self.op}'"

    def __repr__(self) -> str:
        return _algebra.show(self)

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"The truth of {self.describe()} is not known while a model is built; "
            "use ite(...), & and | instead of if, and, or"
        )

    def __iter__(self) -> Iterator[Expr]:
        raise TypeError(f"{self.describe()} is not iterable; use x[hi:lo] for bits and memory.load(address)")

    # -- operators (built in ila_lang.language.build) -----------------------------------------------------

    def _bin(self, op: str, other: Operand) -> Expr:
        return _algebra.binary(op, self, other)

    def _rbin(self, op: str, other: Operand) -> Expr:
        return _algebra.binary(op, _algebra.coerce(other, self.sort, op), self)

    def __add__(self, other: Operand) -> Expr:
        return self._bin("bvadd", other)

    def __radd__(self, other: Operand) -> Expr:
        return self._rbin("bvadd", other)

    def __sub__(self, other: Operand) -> Expr:
        return self._bin("bvsub", other)

    def __rsub__(self, other: Operand) -> Expr:
        return self._rbin("bvsub", other)

    def __mul__(self, other: Operand) -> Expr:
        return self._bin("bvmul", other)

    def __rmul__(self, other: Operand) -> Expr:
        return self._rbin("bvmul", other)

    def __floordiv__(self, other: Operand) -> Expr:
        return self._bin("bvudiv", other)

    def __mod__(self, other: Operand) -> Expr:
        return self._bin("bvurem", other)

    def __and__(self, other: Operand) -> Expr:
        return self._bin("and" if self.sort == BOOL else "bvand", other)

    def __or__(self, other: Operand) -> Expr:
        return self._bin("or" if self.sort == BOOL else "bvor", other)

    def __xor__(self, other: Operand) -> Expr:
        return self._bin("xor" if self.sort == BOOL else "bvxor", other)

    def __invert__(self) -> Expr:
        return _algebra.invert(self)

    def __neg__(self) -> Expr:
        return _algebra.negate(self)

    def __lshift__(self, other: Operand) -> Expr:
        return self._bin("bvshl", other)

    def __rshift__(self, other: Operand) -> Expr:
        return self._bin("bvlshr", other)

    def ashr(self, other: Operand) -> Expr:
        """Arithmetic (sign-preserving) shift right."""
        return self._bin("bvashr", other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._bin("eq", other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: Operand) -> Expr:
        return self._bin("bvult", other)

    def __le__(self, other: Operand) -> Expr:
        return self._bin("bvule", other)

    def __gt__(self, other: Operand) -> Expr:
        return ~self._bin("bvule", other)

    def __ge__(self, other: Operand) -> Expr:
        return ~self._bin("bvult", other)

    def slt(self, other: Operand) -> Expr:
        """Signed (two's complement) less-than."""
        return self._bin("bvslt", other)

    def sle(self, other: Operand) -> Expr:
        """Signed (two's complement) at-most."""
        return self._bin("bvsle", other)

    def implies(self, other: Operand) -> Expr:
        """Boolean implication."""
        return ~self | other

    def __getitem__(self, index: slice | int) -> Expr:
        """``x[hi:lo]`` selects bits *hi* down to *lo*, both included; ``x[i]`` selects one bit."""
        if isinstance(self.sort, MemSort):
            raise TypeError(f"A word of memory {self!r:.60} must be read as x.load(address), not x[address]")
        if isinstance(index, slice):
            if index.step is not None or not isinstance(index.start, int) or not isinstance(index.stop, int):
                raise TypeError(f"Bits must be selected as x[hi:lo] with two integers, not {index!r}")
            return _algebra.extract(self, index.start, index.stop)
        if not isinstance(index, int):
            raise TypeError(f"A bit must be selected as x[i] with an integer, not {index!r:.60}; (x >> i)[0] has any")
        return _algebra.extract(self, index, index)

    def zext(self, width: int) -> Expr:
        """This bit-vector with zeros put before it, up to ``width`` bits in all."""
        return _algebra.extend("zext", self, width)

    def sext(self, width: int) -> Expr:
        """This bit-vector with copies of its sign bit put before it, up to ``width`` bits in all."""
        return _algebra.extend("sext", self, width)

    def load(self, address: Operand) -> Expr:
        """The word of this memory at ``address``."""
        return _algebra.load(self, address)

    def store(self, address: Operand, data: Operand) -> Expr:
        """This memory with the word at ``address`` replaced by ``data``."""
        return _algebra.store(self, address, data)


Operand = Expr | int | bool


class Function:
    """A named function from sorted parameters to one result.

    ``body`` is an expression over :attr:`params`, or None for an uninterpreted function.
    """

    def __init__(self, name: str, params: Mapping[str, Sort], result: Sort, body: Expr | None, doc: str = "") -> None:
        self.name = name
        self.params = tuple(var(f"{name}.{p}", sort) for p, sort in params.items())
        self.result = result
        self._body: Expr | None = None
        self.body = body
        self.doc = doc

    @property
    def body(self) -> Expr | None:
        """What the function is, or None; it can be set once, for what was run or proved of a function stays so.

        ValueError or TypeError for a term that is no function of the parameters, and for a second body.
        """
        return self._body

    @body.setter
    def body(self, body: Expr | None) -> None:
        if self._body is not None and body is not self._body:
            raise ValueError(f"Body of {self.name} must be set once; make a new function for another body")
        if body is not None:
            if not isinstance(body, Expr):
                raise TypeError(f"Body of {self.name} must be an expression, not {body!r:.60}")
            if body.sort != self.result:
                raise TypeError(f"Body of {self.name} must have sort {self.result}, not {body.sort}")
            params = set(self.params)
            stray = [v.name for v in variables_of(body) if v not in params]
            if stray:
                raise ValueError(f"Body of {self.name} must use only its parameters, not {', '.join(stray)}")
            if self in _applied(body):
                raise ValueError(f"Body of {self.name} must not apply {self.name} itself")
        self._body = body

    def __call__(self, *args: Operand) -> Expr:
        """The application of this function; raises TypeError on a wrong number or sort of arguments."""
        if len(args) != len(self.params):
            raise TypeError(f"{self.name} must be given {len(self.params)} arguments, not {len(args)}")
        checked = []
        for param, arg in zip(self.params, args, strict=True):
            value = _algebra.coerce(arg, param.sort, self.name)
            if value.sort != param.sort:
                raise TypeError(
                    f"Argument {param.name} must have sort {param.sort}, not {value.sort} ({value.describe()})"
                )
            checked.append(value)
        return _algebra.apply_op("apply", tuple(checked), (self.name,), self.result, self)

    def unfold(self, args: tuple[Expr, ...]) -> Expr:
        """The body with ``args`` in place of the parameters; raises ValueError where there is no body."""
        if self.body is None:
            raise ValueError(f"Function {self.name} is uninterpreted: it has no body to unfold")
        return substitute(self.body, dict(zip(self.params, args, strict=True)))

    def __repr__(self) -> str:
        return f"<Function {self.name}/{len(self.params)}>"


def _applied(body: Expr) -> set[Function]:
    """The functions that a term applies, by way of other functions, too."""
    functions: set[Function] = set()
    terms = [body]
    while terms:
        for function in {n.func for n in postorder([terms.pop()]) if n.func is not None} - functions:
            functions.add(function)
            terms += [function.body] if function.body is not None else []
    return functions


def var(name: str, sort: Sort) -> Expr:
    """A variable of the given name and sort.

    Raises ValueError if the name is not an identifier (letters, digits, ``_`` and ``.``).
    """
    if not isinstance(name, str) or not name or not name.replace(".", "_").isidentifier():
        raise ValueError(f"Name of a variable must be an identifier, not {name!r}")
    return private_var(name, sort)


def private_var(name: str, sort: Sort) -> Expr:
    """A variable whose name may have characters that no user's name has: for proofs, which name what they make up."""
    if not isinstance(sort, BoolSort | BvSort | MemSort):
        raise TypeError(f"Sort of variable {name} must be a sort, not {sort!r}")
    return Expr._make("var", (), (name,), sort)


def postorder(roots: Iterable[Expr], known: Container[Expr] = ()) -> list[Expr]:
    """Every node reachable from ``roots``, operands before users, each once; ``known`` nodes are not entered."""
    seen: set[Expr] = set()
    order: list[Expr] = []
    for root in roots:
        stack: list[Expr | None] = [root]
        while stack:
            node = stack.pop()
            if node is None:  # the operands of the next one are done
                order.append(stack.pop())  # type: ignore[arg-type]
            elif node not in seen and node not in known:
                seen.add(node)
                if node.args:
                    stack += (node, None)
                    stack += node.args[::-1]
                else:
                    order.append(node)
    return order


MOST_VARIABLES = 64
"""Nodes with more variables do not keep them, for in long sums they would take memory in its square."""
MANY: tuple[Expr, ...] = (object.__new__(Expr),)
"""Stands for the variables of such a node."""


class _Analysed:
    """The nodes whose variables are known."""

    def __contains__(self, node: object) -> bool:
        return node._variables is not None  # type: ignore[attr-defined]


_ANALYSED = _Analysed()


def _variables(root: Expr) -> tuple[Expr, ...]:
    """The variables in a term, in order of first occurrence, or MANY; each node keeps its own."""
    if root.op == "var":
        return (root,)
    if root._variables is None:
        for node in postorder([root], _ANALYSED):
            if node.op == "var":
                continue
            variables: tuple[Expr, ...] = ()
            for arg in node.args:
                more = arg._variables if arg._variables is not None else (arg,)
                if more is MANY:
                    variables = MANY
                    break
                if more is not variables:
                    joined = dict.fromkeys((*variables, *more))
                    # nodes share what is the same
                    variables = more if len(joined) == len(more) and not variables else variables
                    variables = variables if len(joined) == len(variables) else tuple(joined)
            node._variables = variables if len(variables) <= MOST_VARIABLES else MANY
    kept = root._variables
    assert kept is not None
    return kept


def free_variables(*roots: Expr) -> dict[str, Expr]:
    """The variables that occur in ``roots``, by name, in order of first occurrence."""
    return {v.name: v for v in variables_of(*roots)}


def variables_of(*roots: Expr) -> tuple[Expr, ...]:
    """The variables that occur in ``roots``, in order of first occurrence."""
    by_root = [_variables(root) for root in roots]
    if any(variables is MANY for variables in by_root):
        return tuple(n for n in postorder(roots) if n.op == "var")
    return by_root[0] if len(by_root) == 1 else tuple(dict.fromkeys(v for vs in by_root for v in vs))


def rebuild(node: Expr, args: tuple[Expr, ...]) -> Expr:
    """The same operator applied to other operands, simplified again."""
    if len(args) == len(node.args) and all(map(is_, args, node.args)):
        return node
    return _algebra.apply_op(node.op, args, node.params, node.sort, node.func)


class _Untouched:
    """The nodes that have a replacement, or none of the variables of what is replaced: these stay as they are."""

    def __init__(self, done: Mapping[Expr, Expr], moving: set[Expr] | KeysView[Expr]) -> None:
        self.done, self.moving = done, moving

    def __contains__(self, node: object) -> bool:
        if node in self.done:
            return True
        variables = _variables(node)  # type: ignore[arg-type]
        return variables is not MANY and self.moving.isdisjoint(variables)


def substitute(root: Expr, mapping: Mapping[Expr, Expr]) -> Expr:
    """``root`` with every occurrence of a key replaced by its value, simplified.

    Raises TypeError if a replacement has another sort than what it replaces.
    """
    return substitute_all([root], mapping)[0]


def substitute_all(roots: Sequence[Expr], mapping: Mapping[Expr, Expr]) -> list[Expr]:
    """What :func:`substitute` makes of each of several terms; parts that they share are visited once."""
    for old, new in mapping.items():
        if old.sort is not new.sort and old.sort != new.sort:
            raise TypeError(f"{old.describe()} of sort {old.sort} cannot be replaced by a term of sort {new.sort}")
    done: dict[Expr, Expr] = dict(mapping)
    known: Container[Expr] = done
    if all(old.op == "var" for old in mapping):  # as nearly always, and of hundreds of variables few occur
        known = _Untouched(done, mapping.keys())
    else:
        variables_of_keys = [_variables(old) for old in mapping]
        if all(variables and variables is not MANY for variables in variables_of_keys):  # else a key may stand anywhere
            known = _Untouched(done, {v for variables in variables_of_keys for v in variables})
    for node in postorder(roots, known):
        done[node] = rebuild(node, tuple([done.get(a, a) for a in node.args])) if node.args else node
    return [done.get(root, root) for root in roots]


def resize(value: Expr, width: int) -> Expr:
    """``value`` zero-extended or truncated to ``width`` bits."""
    if value.width == width:
        return value
    return value.zext(width) if value.width < width else value[width - 1 : 0]


def bv_const(value: int, width: int) -> Expr:
    """The bit-vector literal ``value``; raises TypeError if it is no integer, ValueError if it does not fit."""
    if type(value) is not int:
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise TypeError(f"Constant of {width} bits must be an integer, not {value!r}")
        value = int(value)
    if not 0 <= value < 1 << width:
        fits = -(1 << width) <= 2 * value < 0
        signed = f"; its bits as a signed number are {value} & {(1 << width) - 1:#x}" if fits else ""
        raise ValueError(f"Constant must fit in {width} bits unsigned, not {value}{signed}")
    return Expr._make("const", (), (value,), bv(width))


def bool_const(value: bool) -> Expr:
    """The Boolean literal ``value``."""
    return Expr._make("const", (), (int(value),), BOOL)
