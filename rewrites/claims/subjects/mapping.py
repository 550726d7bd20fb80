"""Mappings as subjects: what a certificate of one must contain, whatever the method of its proof."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Self

from bmc.counterexample import Counterexample, foreign, placed, replays
from bmc.mutants import mutants
from bmc.programs import write_program_file
from bmc.runs import survey
from bmc.search import search
from ila_lang.mapping import TensorMapping
from reports.certificate import semantics_of
from reports.formats.trust import trust_entry
from reports.subjects import Mutant, Refutation, Required, Subject
from rewrites.claims.counterexamples import counterexample_from_text, counterexample_text
from rewrites.claims.method import METHODS
from rewrites.claims.verify import counterexample_of, regenerate, verify_with
from smt_encodings.claims import Claim, Status, Verdict
from smt_encodings.discharge import Discharger, Requirements


class MappingSubject(Subject):
    """A mapping, proved for every size; or, where no method does that, at one ``shape``, with sums in any order."""

    kind = "mapping"

    def __init__(
        self, mapping: TensorMapping, shape: tuple[int, ...] | None = None, place: tuple[str, int] = ("", 0)
    ) -> None:
        self.name, self.mapping = mapping.name, mapping
        self.method = "chc" if shape is None else "hash"
        self._parameters: dict[str, Any] = {} if shape is None else {"shape": list(shape)}
        self._place = place

    def place(self) -> tuple[str, int]:
        """Where the mapping is built."""
        return self._place

    @classmethod
    def built(cls, build: Callable[[], TensorMapping], shape: tuple[int, ...] | None = None) -> Self:
        """The subject of the mapping that ``build`` makes, with the source line of the call that makes it.

        It replaces a method meanwhile, so that it belongs into a process of its own.
        """
        with _noting_places() as places:
            mapping = build()
        file, line = places.get(id(mapping), ("", 0))
        if not file:
            code = getattr(build, "__code__", None)
            file, line = (_source_name(build.__module__, code.co_filename), code.co_firstlineno) if code else ("", 0)
        return cls(mapping, shape, (file, line))

    @property
    def methods(self) -> tuple[str, ...]:
        """All that are installed: other proofs than those that are kept have certificates, too."""
        return tuple(METHODS.all())

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The method's functions, and the runs that a PROVED survives."""
        return (*METHODS.all()[method].functions, survey)

    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """The claim of a proof that is kept."""
        if parameters != self._parameters:
            raise ValueError(f"a proof of {self.name} that is kept must have the parameters {self._parameters}")
        return METHODS.all()[self.method].claim(self.mapping, parameters)

    def words(self) -> Claim:
        """The claim of that proof."""
        return self.claim(self._parameters)

    def parameters(self, verdict: Verdict) -> dict[str, Any]:
        """The shape, if it is proved at one."""
        return self._parameters

    def semantics(self) -> dict[str, str]:
        """Digests of both fragments with their models, and of the relation between them."""
        return semantics_of(self.mapping)

    def trust(self, claim: Claim) -> str:
        """Domain, assumptions, lemmas and uninterpreted functions; at one shape, operators that may be reordered."""
        if not self._parameters:
            return self._trust
        sums = [f"{r.operator.name}{'' if r.unit is None else f', unit {r.unit:#x}'}" for r in self.mapping.sums]
        lines = [("shape", claim.size_domain), *(("sum", text) for text in sums)]
        return self._trust + "".join(f"  {what:<14} {text}\n" for what, text in lines)

    @cached_property
    def _trust(self) -> str:
        return trust_entry(self.mapping)

    def prove(self, discharger: Discharger) -> Verdict:
        """As :func:`~rewrites.claims.verify.verify` with that method."""
        return verify_with(self.mapping, self.method, discharger, **self._parameters)

    def mutants(self, draw: Random) -> Iterator[Mutant]:
        """Mappings with one place of a program or model changed."""
        for changed in mutants(self.mapping, draw):
            yield Mutant(changed.what, partial(_differs, changed.mapping), partial(self._proof_of, changed.mapping))

    def _proof_of(self, mapping: TensorMapping, discharger: Discharger) -> tuple[Status, str]:
        verdict = METHODS.all()[self.method].regenerate(mapping, self._parameters, None, discharger)
        return verdict.status, verdict.reason

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """The obligations by the certificate's method and parameters, with its invariants as untrusted hints."""
        requirements = Requirements(second=False)
        verdict = regenerate(certificate, self.mapping, requirements)
        if isinstance(verdict, str):
            return verdict
        levels: Any = verdict.details.get("levels", {})
        return Required(verdict.claim, requirements.required, levels)

    def refutation(self, verdict: Verdict) -> Refutation | None:
        """The replayed run of both sides, with the device's program."""
        counterexample = counterexample_of(verdict)
        return None if counterexample is None else self._shown(counterexample)

    def replayed(self, document: str) -> Refutation | None:
        """Both sides run again on the document's data, which must show the same elements."""
        counterexample = counterexample_from_text(document)
        mapping = self.mapping
        stray = foreign(mapping, counterexample.initial)
        if stray is not None:
            what = f"{stray.side} {stray.owner}" + ("" if stray.address is None else f"[{stray.address}]")
            raise ValueError(f"initial of a counterexample to {mapping.name} must be of its own cells, not {what}")
        if set(counterexample.sizes) != set(mapping.parameters) or not mapping.holds(counterexample.sizes):
            return None
        codes = mapping.show_element(counterexample.device), mapping.show_element(counterexample.ir)
        if not replays(mapping, counterexample) or not (counterexample.error or counterexample.shown == codes):
            return None
        sizes = {name: counterexample.sizes[name] for name in mapping.parameters}  # in the order of words
        return self._shown(placed(mapping, replace(counterexample, sizes=sizes)))

    def _shown(self, counterexample: Counterexample) -> Refutation:
        program, notes = "", tuple[str, ...]()
        try:
            program = write_program_file(self.mapping, counterexample)
        except ValueError as error:
            notes = (f"no program file: {error}",)
        return Refutation(counterexample.summary(), counterexample_text(counterexample), program, notes)


def _differs(mapping: TensorMapping, seconds: float) -> str | None:
    counterexample = search(mapping, budget_seconds=seconds)
    return None if counterexample is None or not replays(mapping, counterexample) else counterexample.summary()


# -- where a mapping is built -------------------------------------------------------------------------


@contextmanager
def _noting_places() -> Iterator[dict[int, tuple[str, int]]]:
    """Notes, by identity, where mappings are constructed meanwhile.  It replaces a method: for a process of its own."""

    places: dict[int, tuple[str, int]] = {}
    original = TensorMapping.__post_init__

    def noted(self: TensorMapping) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in ("dataclasses", TensorMapping.__module__):
            frame = frame.f_back
        if frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            places[id(self)] = (_source_name(module, frame.f_code.co_filename), frame.f_lineno)
        original(self)

    TensorMapping.__post_init__ = noted  # type: ignore[method-assign]
    try:
        yield places
    finally:
        TensorMapping.__post_init__ = original  # type: ignore[method-assign]


def _source_name(module: str, filename: str) -> str:
    """A module's file relative to its source root, with ``/``; the bare file name where the module's is another."""
    path = Path(filename)
    parts = module.split(".")
    if path.stem == "__init__":
        parts.append("__init__")
    matching = path.with_suffix("").parts[-len(parts) :] == tuple(parts)
    return "/".join(path.parts[-len(parts) :]) if matching else path.name
