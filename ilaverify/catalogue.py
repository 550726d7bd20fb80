"""What the command line knows by name: models, mappings and campaigns of all targets, and every other claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from ila_lang.extensions import built

from .errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ila_lang import Ila
    from ila_lang.mapping import TensorMapping
    from reports.subjects import Entry, Subject
    from rewrites.campaigns.definition import Campaign
    from rewrites.compiler.offload.backend import Backend
    from rewrites.mappings.claim import MappingClaim
    from rewrites.targets.target import Model, Simulated, Target

OWN_CLAIM = "a claim of your own is known with --module, or checked from Python (docs/tutorials/row_pairs.md)"
"""What helps where a file names a claim that nobody knows."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def targets() -> Mapping[str, Target]:
    """All targets that are installed, or were given by --module."""
    from rewrites.targets.target import TARGETS

    return TARGETS.all()


def models() -> dict[str, Model]:
    """The models of all targets by name."""
    return _by_name("models", ((t, t.models) for t in targets().values()))


def mappings() -> dict[str, MappingClaim]:
    """The mappings of all targets by name."""
    return _by_name("mappings", ((t, t.mappings) for t in targets().values()))


def campaigns() -> dict[str, Campaign]:
    """The campaigns of all targets by name."""
    return _by_name("campaigns", ((t, built(f"campaigns of target {t.name}", t.campaigns)) for t in targets().values()))


def backends() -> dict[str, Callable[[], Backend]]:
    """How the compiler's knowledge of each target is loaded, by the target's name, as far as there is any."""
    return {name: partial(_backend, target) for name, target in targets().items() if target.backend is not None}


def _backend(target: Target) -> Backend:
    assert target.backend is not None, "of others there is none"
    backend = built(f"backend of target {target.name}", target.backend)
    if backend.name != target.name:
        raise UsageError(
            f"the backend of target {target.name} must have its name, not {backend.name}; give it one name"
        )
    return backend


def _by_name(what: str, of: Iterable[tuple[Target, Iterable[N]]]) -> dict[str, N]:
    owners: dict[str, tuple[Target, N]] = {}
    for target, things in of:
        for thing in things:
            if thing.name in owners:
                other = owners[thing.name][0].name
                raise UsageError(f"two {what} have the name {thing.name}, of {other} and of {target.name}; rename one")
            owners[thing.name] = target, thing
    return {name: thing for name, (_, thing) in owners.items()}


def mapping_entries(names: Iterable[str] | None = None) -> dict[str, Entry]:
    """Mappings as claims that can be proved, checked and kept: those of these names, or all."""
    known = mappings()
    chosen = [*known] if names is None else [*names]
    _require_names_of_their_own(chosen)
    return {name: _entry(known[name]) for name in chosen}


def _require_names_of_their_own(names: Sequence[str]) -> None:
    """Raises UsageError where a mapping of another package has the name of another claim, which it would hide."""
    from rewrites.targets.target import TARGETS

    guests = {m.name for name, t in targets().items() if TARGETS.guest(name) for m in t.mappings if m.name in names}
    if guests:  # of ours no two have one name
        from rewrites.claims.registry import entries

        for name, entry in {**joint_entries(), **entries()}.items():
            if name in guests:
                raise UsageError(f"a mapping and a {entry.kind} have the name {name}; rename one")


def _entry(claim: MappingClaim) -> Entry:
    from reports.subjects import Entry
    from rewrites.claims.subjects.mapping import MappingSubject
    from smt_encodings.claims import Status

    expected = Status.REFUTED if claim.false else Status.PROVED
    return Entry(claim.summary, partial(MappingSubject.built, claim.instantiate, claim.shape), "mapping", expected)


def joint_entries() -> dict[str, Entry]:
    """Joints of all operators that the compiler knows, by name; the others are declared."""
    from reports.subjects import Entry

    known: dict[str, Entry] = {}
    for backend in backends().values():
        for operator in backend().operators:
            for subject in filter(None, map(operator.joint, operator.mappings)):
                summary = f"{operator.name} is what {subject.joint.mapping.name} computes"
                known[subject.name] = Entry(summary, partial(_itself, subject), "joint")
    return known


def _itself(subject: Subject) -> Subject:
    return subject


def all_entries() -> dict[str, Entry]:
    """Every claim: mappings, joints, rules, lemmas, theorems."""
    from rewrites.claims.registry import entries

    known: dict[str, Entry] = {}
    for part in (mapping_entries(), joint_entries(), entries()):
        for name in known.keys() & part.keys():
            raise UsageError(f"a {known[name].kind} and a {part[name].kind} have the name {name}; rename one")
        known.update(part)
    return known


def find_entry(name: str) -> Entry:
    """The claim of that name, not built yet; raises UsageError with close names otherwise."""
    known = mapping_entries([name]) if name in mappings() else all_entries()
    if name not in known:
        raise no_claim(name, known)
    return known[name]


def no_claim(name: str, known: Iterable[str]) -> UsageError:
    """What is wrong with a name that no claim has."""
    hint = did_you_mean(name, known, " (see ilaverify list)")
    return UsageError(f"there is no claim named {name!r:.100}{hint}")


def find_subject(name: str) -> Subject:
    """The claim of that name; raises UsageError with close names otherwise."""
    return find_entry(name).build()


def find_model(name: str) -> Ila:
    """The model of that name; raises UsageError with the known names otherwise."""
    return _find("model", name, models()).built()


def find_simulator(name: str, reading: str | None = None) -> Callable[[str], Simulated]:
    """What runs program files on the model of that name, in a reading of its specification, by default the first.

    Raises UsageError with the known names otherwise.
    """
    known = models()
    if name not in known:
        raise UsageError(f"model to simulate must be one of {', '.join(known)}, not '{name}'")
    readings = known[name].readings
    chosen = next(iter(readings), "") if reading is None else reading
    if chosen not in (readings or ("",)):
        if not readings:
            raise UsageError(f"{name} has one reading, not '{reading}' besides; leave the reading out")
        raise UsageError(f"the reading of {name} must be one of {', '.join(readings)}, not '{reading}'")
    return partial(known[name].simulated, reading=chosen)


def find_mapping(name: str) -> TensorMapping:
    """The mapping of that name; raises UsageError with the known names otherwise."""
    found = _find("mapping", name, mappings())
    _require_names_of_their_own([name])
    return found.instantiate()


def find_backends(names: Sequence[str]) -> tuple[Backend, ...]:
    """What the compiler knows of targets; raises UsageError unless there are some, all known, and each named once."""
    known = backends()
    if not names or len(set(names)) < len(names) or not known.keys() >= set(names):
        shown = f"{', '.join(names) or 'none'}{not_compiled_to(names)}"
        raise UsageError(f"targets must be different names of {', '.join(known)}, not {shown}")
    return tuple(known[name]() for name in names)


def not_compiled_to(names: Sequence[str]) -> str:
    """What is said of names that are of no target that is compiled to: close names, and targets without a backend."""
    known = targets()
    close = "".join(did_you_mean(name, backends()) for name in names if name not in known)
    return close + "".join(
        f"; target {name} has no backend, so nothing is compiled for it"
        for name in names
        if name in known and known[name].backend is None
    )


def find_campaign(name: str) -> Campaign:
    """The campaign of that name; raises UsageError with the known names otherwise."""
    return _find("campaign", name, campaigns())


FEW = 12
"""Up to this number of names a message has all of them."""


def _find(what: str, name: str, known: Mapping[str, N]) -> N:
    if name not in known:
        hint = did_you_mean(name, known)
        if len(known) > FEW:
            listed = "campaign --list" if what == "campaign" else f"list {what}"
            raise UsageError(f"there is no {what} named '{name}'{hint}; ilaverify {listed} shows all {len(known)}")
        raise UsageError(f"{what} must be one of {', '.join(known)}, not '{name}'{hint}")
    return known[name]
