"""What the compiler knows of one accelerator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from chc.tensor_rules.rule import TensorRule
from rewrites.compiler.codegen import AcceleratorOperator, Choice, Options
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.egraph.rewrite import Rewrite

from .chains import ChainRule
from .directed import Place
from .hardware import Hardware
from .rules import AcceleratorRule
from .takers import Taker

__all__ = ["Backend", "chosen", "require_different"]


@dataclass(frozen=True, eq=False)
class Backend:
    """An accelerator that is compiled to: its operators, the rules that lead to them, and the reasons why other
    operators stay on the host.

    ``exact`` are rules on tensors that exact matching has: they put operands into the layout that an operator takes;
    ``flexible`` are those that flexible matching has, the exact ones among them.  Each is applied at its place, or
    wherever it matches.  ``chains`` are rules between the operators, for flexible matching; ``definitions`` gives
    operators by what they stand for, for graphs with these constants, and for flexible matching or not.

    ``takers`` have the operator that could do the work of an operator of the tensor IR, by its name, and ``hardware``
    says what the accelerator lacks for others.

    Raises ValueError where a rule leads to no operator of these.
    """

    name: str
    operators: tuple[AcceleratorOperator, ...]
    rules: tuple[AcceleratorRule, ...]
    exact: Mapping[TensorRule, Place | None]
    flexible: Mapping[TensorRule, Place | None]
    definitions: Callable[[Constants, bool], Iterable[Rewrite]]
    takers: Mapping[str, Taker]
    hardware: Hardware | None = None
    chains: tuple[ChainRule, ...] = ()
    choices: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        known = {operator.name for operator in self.operators}
        for rule in self.rules:
            if rule.target not in known:
                raise ValueError(f"the rule {rule.name} must lead to an operator of {self.name}, not to {rule.target}")


def require_different(backends: Sequence[Backend]) -> None:
    """Raises ValueError unless there are backends, each once."""
    names = [backend.name for backend in backends]
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"targets must be different ones, and at least one, not {', '.join(names) or 'none'}; name each once"
        )


def chosen(backends: Sequence[Backend], options: Options) -> dict[str, int]:
    """The value of every choice of these backends.

    Raises ValueError for a value that a choice must not have, and for a name of no choice, or of several.
    """
    choices = [choice for backend in backends for choice in backend.choices]
    names = [choice.name for choice in choices]
    for name in {**dict.fromkeys(names), **options.chosen}:
        if names.count(name) != 1:
            raise ValueError(f"{name} must be a choice of one target; it is one of {names.count(name) or 'none'}")
    return {choice.name: choice.of(options) for choice in choices}
