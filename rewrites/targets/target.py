"""The door for accelerators: what a package says of one, under the entry-point group ``ilaverify.targets``.

The accelerators of this repository come in by the same door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from accel_models.command_program import run_commands
from accel_models.mmio_program import ProgramError
from ila_lang import Ila
from ila_lang.extensions import Door, ExtensionError, built, require_builder
from rewrites.mappings.claim import MappingClaim

if TYPE_CHECKING:
    from rewrites.campaigns.definition import Campaign
    from rewrites.compiler.offload.backend import Backend

__all__ = ["TARGETS", "Model", "Simulated", "Target"]


@dataclass(frozen=True)
class Simulated:
    """What a program file does on a model: the words that it reads, as text, and what is worth a note."""

    reads: str
    notes: tuple[str, ...] = ()


class Simulate(Protocol):
    """What runs the text of a program file, in a reading of the specification."""

    def __call__(self, text: str, reading: str) -> Simulated: ...


@dataclass(frozen=True, eq=False)
class Model:
    """An ILA by name, and its program files.

    ``readings`` are readings of its specification by name, each with a line about it; the first is the default.
    ``simulate(text, reading)`` runs a program file of the model's own form.  It raises
    :class:`~accel_models.mmio_program.ProgramError` where the text is no program, or the model does not define its
    result.  Without it program files have the form of :mod:`accel_models.command_program`.

    Raises ValueError where there are readings, and nothing that runs a program in them, and ExtensionError where
    ``build`` is no function.
    """

    name: str
    summary: str
    build: Callable[[], Ila]
    readings: Mapping[str, str] = field(default_factory=dict)
    simulate: Simulate | None = None

    def __post_init__(self) -> None:
        require_builder(f"build of model {self.name}", self.build)
        if self.readings and self.simulate is None:
            raise ValueError(f"Model {self.name} must have simulate, which takes a reading, to have readings")

    def simulated(self, text: str, reading: str) -> Simulated:
        """What a program file does; raises ProgramError as ``simulate`` does."""
        if self.simulate is not None:
            return built(f"result of model {self.name}", self.simulate, text, reading, passed=(ProgramError,))
        return Simulated(run_commands(self.built(), text))

    def built(self) -> Ila:
        """The ILA; raises ExtensionError where it cannot be built."""
        ila = built(f"model {self.name}", self.build)
        if not isinstance(ila, Ila):
            raise ExtensionError(f"model {self.name} must be built as an Ila; its build gives {ila!r:.60}")
        return ila


@dataclass(frozen=True, eq=False)
class Target:
    """An accelerator.

    ``name`` is that of the target on the command line.  The names of models, mappings and campaigns are unique over
    all targets.  Campaigns are built when they are asked for, and so is ``backend``, what the compiler knows of it;
    what is no function raises ExtensionError.
    """

    name: str
    models: tuple[Model, ...]
    mappings: tuple[MappingClaim, ...] = ()
    campaigns: Callable[[], tuple[Campaign, ...]] = tuple
    backend: Callable[[], Backend] | None = None

    def __post_init__(self) -> None:
        require_builder(f"campaigns of target {self.name}", self.campaigns)
        if self.backend is not None:
            require_builder(f"backend of target {self.name}", self.backend)


TARGETS: Final = Door("ilaverify.targets", Target)
"""All accelerators that are installed."""
