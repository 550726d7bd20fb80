"""The simulators on which programs of proved mappings run, and which mapping a certificate is about."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ila_lang import Ila, Simulator, digest
from reports.certificate import semantics_of
from rewrites.mappings.claim import MappingClaim

if TYPE_CHECKING:
    from rewrites.claims.gate import Admission

Columns = Mapping[str, NDArray[Any]]
"""Commands as columns, for :class:`~ila_lang.streams.simulator.CommandStream`."""


class Devices:
    """One simulator for each device, made when it is first used.

    Programs may share them: every mapping claims its result from arbitrary contents of the device.
    """

    def __init__(self) -> None:
        self._simulators: dict[Ila, Simulator] = {}

    def of(self, ila: Ila) -> Simulator:
        """The simulator of a device."""
        if ila not in self._simulators:
            self._simulators[ila] = Simulator(ila)
        return self._simulators[ila]


@cache
def fragment_digest(claim: MappingClaim) -> str:
    """The digest of a mapping's device program with its model, as certificates have it."""
    return digest(claim.mapping.device)


@cache
def _semantics(claim: MappingClaim) -> Mapping[str, str]:
    return semantics_of(claim.mapping)


def is_program_of(claim: MappingClaim, admission: Admission) -> bool:
    """Whether a mapping is the one that a certificate is about, at the shape that the certificate is about.

    A certificate is of a claim, and code is generated from a mapping; that they have one name is not enough.
    """
    shape = None if claim.shape is None else list(claim.shape)
    return shape == admission.parameters.get("shape") and _semantics(claim) == admission.subject.semantics()
