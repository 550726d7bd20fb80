"""Seeding a fault: one place of a model or program is replaced, and it is an error if the place is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bmc.mutants import term_places
from ila_lang import Expr, For, Fragment, Instruction, Kernel, Statement, postorder
from ila_lang.language.expr import rebuild

Target = Kernel | Instruction | Fragment
OnExpr = Callable[[Expr], bool]
OnStatement = Callable[[Statement], bool]


class NotSeeded(AssertionError):
    """The fault changed another number of places than it says: the model is not what the fault was written for."""


def mutate(target: Target, old: OnExpr, new: Callable[[Expr], Expr], count: int = 1) -> None:
    """Replaces the expressions that satisfy ``old``, in place; each distinct one counts once per statement or term.

    Raises NotSeeded unless exactly ``count`` places changed.
    """
    changed = 0

    def go(root: Expr) -> Expr:
        nonlocal changed
        done: dict[Expr, Expr] = {}
        for node in postorder([root]):
            if old(node):
                changed += 1
                done[node] = new(node)
            else:
                done[node] = rebuild(node, tuple(done[a] for a in node.args)) if node.args else node
        return done[root]

    if isinstance(target, Instruction):
        target.decode = go(target.decode)
        target.updates = {name: go(term) for name, term in target.updates.items()}
    else:
        kernel = target.program if isinstance(target, Fragment) else target
        kernel.body[:] = [_map(s, go) for s in kernel.body]
    _check(changed, count)


def mutate_statements(
    target: Kernel | Fragment,
    old: OnStatement,
    new: Callable[[Statement], Sequence[Statement]],
    count: int = 1,
) -> None:
    """Replaces the statements that satisfy ``old`` by any number of statements, in place.

    Raises NotSeeded unless exactly ``count`` statements were replaced.
    """
    changed = 0

    def block(body: Sequence[Statement]) -> list[Statement]:
        nonlocal changed
        result: list[Statement] = []
        for statement in body:
            if old(statement):
                changed += 1
                result += new(statement)
            elif isinstance(statement, For):
                result.append(replace(statement, body=tuple(block(statement.body))))
            else:
                result.append(statement)
        return result

    kernel = target.program if isinstance(target, Fragment) else target
    body = block(kernel.body)
    _check(changed, count)
    kernel.body[:] = body


def _check(changed: int, count: int) -> None:
    if changed != count:
        raise NotSeeded(f"the fault must change {count} places, not {changed}")


def _map(statement: Statement, go: Callable[[Expr], Expr]) -> Statement:
    for number in range(len(list(term_places(statement)))):
        _, term, put = list(term_places(statement))[number]
        statement = put(go(term))
    return (
        replace(statement, body=tuple(_map(s, go) for s in statement.body)) if isinstance(statement, For) else statement
    )
