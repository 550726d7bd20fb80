"""Functions as named numeric primitives, with or without a body, and expressions without applications.

A function with a body is written once, as an expression over its parameters.  Interpreters inline it,
bit-exact encodings inline it, and structural encodings treat its name as an uninterpreted symbol.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from .expr import Expr, Function, postorder, rebuild, substitute
from .sorts import Sort


def primitive(result: Sort | None = None, *, name: str | None = None, **params: Sort) -> Callable[..., Function]:
    """Decorator: a Python function over expressions becomes a :class:`Function` of the same name.

    >>> from ila_lang import bv, ite
    >>> @primitive(a=bv(8), b=bv(8))
    ... def larger(a, b):
    ...     return ite(a < b, b, a)
    >>> larger
    <Function larger/2>

    Raises TypeError if the parameters differ from the decorated function's or the body's sort from ``result``.
    """

    def wrap(python: Callable[..., Expr]) -> Function:
        names = tuple(inspect.signature(python).parameters)
        if names != tuple(params):
            raise TypeError(f"Parameters of {python.__name__} must be {tuple(params)}, not {names}")
        label = name or python.__name__
        shell = Function(label, params, result or next(iter(params.values())), None, inspect.getdoc(python) or "")
        body = python(*shell.params)
        if result is None and isinstance(body, Expr):
            shell.result = body.sort
        shell.body = body
        return shell

    return wrap


def uninterpreted(name: str, result: Sort, **params: Sort) -> Function:
    """A function of which nothing is known but its sorts."""
    return Function(name, params, result, None)


def inline(root: Expr, keep: frozenset[str] = frozenset()) -> Expr:
    """``root`` with every application unfolded whose function has a body and is not named in ``keep``."""
    return inline_all([root], keep)[0]


def inline_all(roots: Sequence[Expr], keep: frozenset[str] = frozenset()) -> list[Expr]:
    """As :func:`inline`, for many terms; what they share is unfolded once."""
    return _inline(roots, keep, {})


def _inline(roots: Sequence[Expr], keep: frozenset[str], bodies: dict[Function, Expr]) -> list[Expr]:
    done: dict[Expr, Expr] = {}
    for node in postorder(roots):
        new = rebuild(node, tuple(done[a] for a in node.args)) if node.args else node
        function = new.func
        if new.op == "apply" and function is not None and function.body is not None and function.name not in keep:
            if function not in bodies:
                (bodies[function],) = _inline([function.body], keep, bodies)
            new = substitute(bodies[function], dict(zip(function.params, new.args, strict=True)))
        done[node] = new
    return [done[root] for root in roots]
