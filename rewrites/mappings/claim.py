"""A mapping as a claim: the name under which it is known, a line about it, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from random import Random

from ila_lang.extensions import ExtensionError, built, require_builder
from ila_lang.mapping import SizeError, TensorMapping

__all__ = ["MappingClaim"]


@dataclass(frozen=True, eq=False)
class MappingClaim:
    """A mapping that can be proved, by name.  Raises ExtensionError where ``build`` is no function.

    ``shape`` is given where no method proves it for every size: then it is proved at this shape alone.  ``false`` says
    why a claim is false that is kept as an example; such a claim is as expected if and only if it is REFUTED.
    """

    name: str
    summary: str
    build: Callable[[], TensorMapping]
    shape: tuple[int, ...] | None = None
    false: str = ""

    def __post_init__(self) -> None:
        require_builder(f"build of mapping {self.name}", self.build)

    def instantiate(self) -> TensorMapping:
        """A new instance of the mapping.

        Raises ExtensionError where it cannot be built, has another name, or has no sizes for its own sample shapes.
        """
        mapping = built(f"mapping {self.name}", self.build)
        if not isinstance(mapping, TensorMapping):
            raise ExtensionError(
                f"mapping {self.name} must be built as a TensorMapping; its build gives {mapping!r:.60}"
            )
        if mapping.name != self.name:
            raise ExtensionError(
                f"mapping {self.name} must be built with this name, not {mapping.name}; give it one name"
            )
        with suppress(SizeError):  # whether a shape lies in the domain is a question of the claim
            mapping.sample_sizes(Random(0))
        return mapping

    @cached_property
    def mapping(self) -> TensorMapping:
        """The mapping itself, built once."""
        return self.instantiate()

    def require(self, sizes: Mapping[str, int]) -> None:
        """Raises SizeError where the claim says nothing about ``sizes``: outside the domain, or of another shape."""
        self.mapping.require(sizes)
        if self.shape is not None and dict(sizes) != self.mapping.sizes_for(self.shape):
            shown = ", ".join(f"{name} = {sizes[name]}" for name in self.mapping.parameters)
            raise SizeError(
                f"Sizes of mapping {self.name} must be those of {self.mapping.shape_text(self.shape)}, at which alone "
                f"it is proved; given {shown}"
            )
