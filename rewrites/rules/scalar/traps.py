"""Wrong rules with their repairs, where both sides are written once: a repair says what it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from chc.scalar_rules.rule import RuleRow, ScalarRule, row, rules_on
from ir_semantics.scalars.formats import Format, Value
from ir_semantics.scalars.terms import TRUE, Scalar

Parts: TypeAlias = Mapping[str, Any]
"""Parts of a rule by name."""


def wrong(left: Scalar, right: Scalar | int, *examples: Mapping[str, Value], **more: Any) -> Parts:
    """A rule that ``examples`` refute."""
    return {"left": left, "right": right, "examples": examples, **more}


def but(condition: Scalar = TRUE, *examples: Mapping[str, Value], **changes: Any) -> Parts:
    """The same rule where a condition holds, or with other sides, numbers of another format, or zeros of one sign."""
    return {"condition": condition, "examples": examples, **changes}


def trap(
    name: str, rule: Parts, *repaired: Parts | ScalarRule, usual: Format, still_wrong: Sequence[Parts] = (), **more: Any
) -> RuleRow:
    """A wrong rule, on numbers of the ``usual`` format unless it says another one, its repairs, and what is none.

    Repairs have the sides and the format of the wrong rule, unless they change them, and nothing else of it.
    """

    def made(change: Parts | ScalarRule) -> ScalarRule:
        if isinstance(change, ScalarRule):
            return change
        parts = {"number": usual, **{key: rule[key] for key in ("left", "right", "number") if key in rule}, **change}
        sides, examples = [parts.pop(part) for part in ("left", "right", "number")], parts.pop("examples")
        return rules_on(usual)(name, *sides, *examples, **parts)

    return row(name, made(rule), *map(made, repaired), still_wrong=tuple(map(made, still_wrong)), **more)
