"""A compiled model: what the compiler decided, and what its decisions rest on; written to a directory and read back.

* ``model.json``: the compiled graph; calls of proved mappings, with the program of each: its fragment by digest, sizes,
  host tensors, and the codes of constants in them by digest; certificates by digest; what was left out; all digests
* ``chain.json``: why the compiled graph equals the model: the rewritten graph and every output's explanation
* ``constants.npz``: data of constants by digest, each once: those of the rewritten graph, and of the model's tensors
* ``plan.json``: places of the host's tensors in one memory
* ``source.*``: the model that was compiled, as its front end keeps it; large tensors of ONNX are in ``constants.npz``
* ``SUMMARY.md``: for people
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ila_lang import canonical_text
from ir_semantics.graph.ir import Graph, digest_of
from rewrites.compiler.codegen import Implementation, Options, constants_of, implement
from rewrites.compiler.memory.problem import MemoryPlan, MemoryProblem
from rewrites.compiler.offload.backend import Backend, chosen
from rewrites.compiler.offload.folding import folded
from smt_encodings.claims import Equality

from .arrays import Data, arrays_of, npz_bytes
from .directory import read_directory, write_directory
from .errors import ArtefactError, NotInstalled, items, natural, record, text
from .errors import field as typed
from .graphs import graph_json, graph_value
from .plan import plan_json, plan_value
from .shared import shared_json, shared_value
from .sources.front_end import CONSTANTS, FRONT_ENDS, Source

if TYPE_CHECKING:
    from rewrites.egraph import Explanation


@dataclass(frozen=True)
class Certified:
    """A claim that a compiled model rests on, as in its certificate; ``uses`` counts applications or programs."""

    kind: str
    digest: str
    statement: str
    size_domain: str
    equality: str
    uses: int


@dataclass(frozen=True)
class OnHost:
    """An operator that stays on the host, how many nodes of it, and why."""

    operator: str
    count: int
    reason: str


@dataclass(frozen=True)
class Imported:
    """The model that was compiled: as its front end keeps it, its file's name, and its extents that were bound.

    ``front_end`` is the name of what read it, ``package`` the distribution or module that this one is from, empty for
    ours.
    """

    source: Source = field(repr=False)
    name: str
    dimensions: Mapping[str, int]
    front_end: str
    package: str


@dataclass(frozen=True)
class Choices:
    """How a model was compiled: for which accelerators, by which settings, and for which ranges of numbers."""

    backends: tuple[Backend, ...]
    settings: Mapping[str, Any]
    options: Options
    calibration: Mapping[str, Any]


@dataclass(frozen=True)
class Proof:
    """Why a compiled graph equals the model.

    ``rewritten`` is the graph that ``explanations`` lead to from the imported model, in the sense of ``equality``.
    ``certificates`` are those of all claims that the compiled model rests on, ``left_out`` says which claims did not
    pass the gate and why.
    """

    rewritten: Graph
    explanations: Mapping[str, Explanation] = field(repr=False)
    equality: Equality
    certificates: Mapping[str, Certified]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class HostMemory:
    """The places of the host's tensors in one memory, and the problem that they solve."""

    problem: MemoryProblem
    plan: MemoryPlan


@dataclass(frozen=True)
class Compiled:
    """A compiled model.

    ``graph`` is the rewritten graph with its constant nodes folded, which reading does again.  ``implementations`` are
    those of its accelerator nodes, with their constant operands, and ``programs`` says what the programs of their calls
    are (:meth:`~rewrites.compiler.codegen.interface.Implementation.described`); ``host`` says what stays and why.
    ``summary`` is the text of SUMMARY.md, ``digest`` covers everything: both are empty before writing.
    """

    model: Imported
    choices: Choices
    proof: Proof
    graph: Graph
    implementations: Mapping[int, Implementation] = field(repr=False)
    programs: Mapping[int, tuple[Mapping[str, Any], ...]] = field(repr=False)
    host: tuple[OnHost, ...]
    memory: HostMemory = field(repr=False)
    tool: str
    summary: str = field(default="", repr=False)
    digest: str = ""

    @property
    def calibrated(self) -> dict[int, dict[str, float]]:
        """The ranges that calibration saw, by the number of the accelerator node."""
        ranges = self.choices.calibration["ranges"]
        return {number: {n: float(v) for n, v in ranges[str(number)].items()} for number in self.implementations}

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the accelerators."""
        return tuple(backend.name for backend in self.choices.backends)


LARGEST_PARAMETER = 4096
"""Largest magnitude of a parameter of number formats, some of which are powers of two; a bound against absurd ones."""

_KEYS = (
    "schema", "tool", "source", "targets", "settings", "options", "calibration", "equality", "certificates",
    "left_out", "host", "graph", "shared", "accelerated", "files", "digest",
)  # fmt: skip


# -- writing ----------------------------------------------------------------------------------------------


def write_compiled(directory: Path, compiled: Compiled, summary: str) -> str:
    """Writes a compiled model, and gives the digest over all of it; see :func:`.directory.write_directory`."""
    from .chain import chain_json

    accelerated = []
    files: dict[str, Data] = {}
    for number, implementation in compiled.implementations.items():
        programs = zip(implementation.calls, compiled.programs[number], strict=True)
        calls = [{**call.as_json(), "program": dict(program)} for call, program in programs]
        accelerated.append({"node": number, "quantisation": dict(implementation.quantisation), "calls": calls})
    shared = shared_json(compiled.proof.rewritten.constants, compiled.model.source.tensors)
    constants = {name: array for name, array in compiled.proof.rewritten.constants.items() if name not in shared}
    data = npz_bytes({**compiled.model.source.tensors, **constants})
    files[CONSTANTS] = data
    chain = {"rewritten": graph_json(compiled.proof.rewritten), "explanations": chain_json(compiled.proof.explanations)}
    files["chain.json"] = _json(chain)
    files["plan.json"] = _json(plan_json(compiled.memory.problem, compiled.memory.plan))
    files[FRONT_ENDS.all()[compiled.model.front_end].file_name] = compiled.model.source.placed(data)
    files["SUMMARY.md"] = summary.encode("utf-8")
    model, choices, proof = compiled.model, compiled.choices, compiled.proof
    options = choices.options
    content = {
        "tool": compiled.tool,
        "source": {
            "name": model.name, "dimensions": dict(model.dimensions),
            "front_end": model.front_end, "package": model.package,
        },
        "targets": list(compiled.targets),
        "settings": dict(choices.settings),
        "options": {
            **chosen(choices.backends, options), "as_published": options.as_published, "headroom": options.headroom,
        },
        "calibration": dict(choices.calibration),
        "equality": proof.equality.value,
        "certificates": {name: vars(c) for name, c in proof.certificates.items()},
        "left_out": dict(proof.left_out),
        "host": [vars(h) for h in compiled.host],
        "graph": graph_json(compiled.graph),
        "shared": shared,
        "accelerated": accelerated,
    }  # fmt: skip
    return write_directory(directory, content, files)


def _json(content: object) -> bytes:
    return (canonical_text(content) + "\n").encode("ascii")


# -- reading ----------------------------------------------------------------------------------------------


def read_compiled(directory: Path, known: Mapping[str, Callable[[], Backend]]) -> Compiled:
    """A compiled model from its directory, with every digest and form checked.

    ``known`` are accelerators by name; only those that the model names are loaded.  Its proofs are not checked here:
    see :mod:`.checking`.  Explanations are read on first use.  Raises ArtefactError for what
    :func:`write_compiled` would not have written.
    """
    content, files = read_directory(directory)
    where = str(directory / "model.json")
    content = record(where, content, _KEYS)
    source = record(f"{where}: source", content["source"], ("name", "dimensions", "front_end", "package"))
    front_ends = FRONT_ENDS.all()
    front_end = front_ends[_known(f"{where}: source: front_end must be one of", source["front_end"], front_ends)]
    needed = {"chain.json", CONSTANTS, "plan.json", front_end.file_name, "SUMMARY.md"}
    for name in sorted(needed - set(files)):
        raise ArtefactError(f"{where}: files must include {name}")
    targets = items(f"{where}: targets", content["targets"])
    targets = [_known(f"{where}: targets must be among", target, known) for target in targets]
    backends = tuple(known[name]() for name in targets)
    stored = arrays_of(str(directory / CONSTANTS), files[CONSTANTS])
    for digest, array in stored.items():
        if digest_of(array) != digest:
            raise ArtefactError(f"{directory / CONSTANTS}: the array {digest[:12]} must have that digest")
    constants = {**stored, **shared_value(f"{where}: shared", content["shared"], stored)}
    chain = record(
        str(directory / "chain.json"), _parsed(directory / "chain.json", files), ("rewritten", "explanations")
    )
    rewritten = graph_value(f"{directory / 'chain.json'}: rewritten", chain["rewritten"], constants)
    graph = folded(rewritten)
    if canonical_text(graph_json(graph)) != canonical_text(content["graph"]):
        raise ArtefactError(
            f"{where}: graph must be the rewritten one of chain.json with its constants computed; it is another"
        )
    dimensions = typed(f"{where}: dimensions", source["dimensions"], dict, "an object of extents")
    options = _options(f"{where}: options", content["options"], backends)
    implementations, programs = _implementations(directory, content["accelerated"], graph, options)
    for name in sorted(set(files) - needed):
        raise ArtefactError(f"{where}: files must be those that compile writes; {name} is none of them")
    problem, plan = plan_value(str(directory / "plan.json"), _parsed(directory / "plan.json", files))
    certificates = typed(f"{where}: certificates", content["certificates"], dict, "an object of claims")
    left_out = typed(f"{where}: left_out", content["left_out"], dict, "an object of reasons")
    return Compiled(
        model=Imported(
            source=front_end.kept(files[front_end.file_name], stored, files[CONSTANTS]),
            name=text(f"{where}: source", source["name"]),
            dimensions={n: natural(f"{where}: dimension {n}", extent, 1 << 31) for n, extent in dimensions.items()},
            front_end=front_end.name,
            package=text(f"{where}: source", source["package"]),
        ),
        choices=Choices(
            backends=backends,
            settings=typed(f"{where}: settings", content["settings"], dict, "an object"),
            options=options,
            calibration=_calibration(f"{where}: calibration", content["calibration"], implementations),
        ),
        proof=Proof(
            rewritten=rewritten,
            explanations=_Explained(f"{directory / 'chain.json'}: explanations", chain["explanations"]),
            equality=_equality(where, content["equality"]),
            certificates={n: _certified(f"{where}: certificate of {n}", claim) for n, claim in certificates.items()},
            left_out={n: text(f"{where}: left_out", reason) for n, reason in left_out.items()},
        ),
        graph=graph,
        implementations=implementations,
        programs=programs,
        host=tuple(_on_host(f"{where}: host", entry) for entry in items(f"{where}: host", content["host"])),
        memory=HostMemory(problem, plan),
        tool=text(f"{where}: tool", content["tool"]),
        summary=_summary(directory, files),
        digest=text(f"{where}: digest", content["digest"]),
    )


class _Explained(Mapping[str, "Explanation"]):
    """Explanations that are read on first use, as runs need none; raises ArtefactError then."""

    def __init__(self, where: str, document: object) -> None:
        self.where, self.document = where, document

    @cached_property
    def explanations(self) -> Mapping[str, Explanation]:
        """The explanations by output."""
        from .chain import chain_value

        return chain_value(self.where, self.document)

    def __getitem__(self, name: str) -> Explanation:
        return self.explanations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.explanations)

    def __len__(self) -> int:
        return len(self.explanations)


def _summary(directory: Path, files: Mapping[str, bytes]) -> str:
    try:
        return files["SUMMARY.md"].decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArtefactError(f"{directory / 'SUMMARY.md'} must be text: {error}") from error


def _parsed(path: Path, files: Mapping[str, bytes]) -> Any:
    try:
        document = json.loads(files[path.name].decode("ascii"))
        canonical = _json(document)
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{path} must be JSON text: {error}") from error
    if canonical != files[path.name]:
        raise ArtefactError(f"{path}: the text must be in canonical form; the file was edited or reformatted")
    return document


def _options(where: str, value: object, backends: Sequence[Backend]) -> Options:
    choices = [choice.name for backend in backends for choice in backend.choices]
    content = record(where, value, (*choices, "as_published", "headroom"))
    published = typed(f"{where}: as_published", content["as_published"], bool, "true or false")
    headroom = typed(f"{where}: headroom", content["headroom"], float, "a number")
    try:
        options = Options(published, headroom, {name: content[name] for name in choices})
        chosen(backends, options)
    except ValueError as error:
        raise ArtefactError(f"{where}: {error}") from error
    return options


def _calibration(where: str, value: object, implementations: Mapping[int, Implementation]) -> dict[str, Any]:
    """What is said of calibration; each accelerator node must have the ranges that its operator looks at."""
    calibration: dict[str, Any] = typed(where, value, dict, "an object")
    ranges = typed(f"{where}: ranges", calibration.get("ranges"), dict, "an object by node")
    for number, implementation in implementations.items():
        own = f"{where}: ranges of node {number}"
        given = typed(own, ranges.get(str(number)), dict, "an object of numbers")
        zeros = [np.zeros(t.shape) for t in implementation.types]
        names = implementation.observe(implementation.node, zeros, np.zeros(implementation.node.type.shape))
        record(own, given, tuple(names))
        for name in names:
            if typed(f"{own}: {name}", given[name], float, "a number") < 0:
                raise ArtefactError(f"{own}: {name} must be a magnitude, not {given[name]}")
    return calibration


def _known(where: str, value: object, known: Collection[str]) -> str:
    """A name of what packages offer; ``where`` ends with what it must be."""
    if not isinstance(value, str) or value not in known:
        raise NotInstalled(
            f"{where} {', '.join(known)}, not {value!r:.60}; install its package, or name its module by --module"
        )
    return value


def _equality(where: str, value: object) -> Equality:
    try:
        return Equality(value)
    except ValueError as error:
        raise ArtefactError(f"{where}: equality must be one of {', '.join(e.value for e in Equality)}") from error


def _certified(where: str, value: object) -> Certified:
    content = record(where, value, ("kind", "digest", "statement", "size_domain", "equality", "uses"))
    kind, digest, statement, sizes, equality = (
        text(where, content[key]) for key in ("kind", "digest", "statement", "size_domain", "equality")
    )
    return Certified(kind, digest, statement, sizes, equality, natural(f"{where}: uses", content["uses"], 1 << 31))


def _on_host(where: str, value: object) -> OnHost:
    content = record(where, value, ("operator", "count", "reason"))
    return OnHost(
        text(where, content["operator"]), natural(where, content["count"], 1 << 31), text(where, content["reason"])
    )


def _implementations(
    directory: Path, value: object, graph: Graph, options: Options
) -> tuple[dict[int, Implementation], dict[int, tuple[Mapping[str, Any], ...]]]:
    """Accelerator nodes, and what is said of their programs."""
    implementations: dict[int, Implementation] = {}
    programs: dict[int, tuple[Mapping[str, Any], ...]] = {}
    for item in items(f"{directory / 'model.json'}: accelerated", value):
        where = f"{directory / 'model.json'}: accelerated"
        content = record(where, item, ("node", "quantisation", "calls"))
        number = natural(f"{where}: node", content["node"], len(graph.nodes))
        where = f"{where}: node {number}"
        if number in implementations:
            raise ArtefactError(f"{where} must be there once")
        parameters = typed(f"{where}: quantisation", content["quantisation"], dict, "an object of integers")
        for name, parameter in parameters.items():
            if abs(typed(f"{where}: {name}", parameter, int, "an integer")) > LARGEST_PARAMETER:
                raise ArtefactError(f"{where}: {name} must be in -{LARGEST_PARAMETER} .. {LARGEST_PARAMETER}")
        node = graph.nodes[number]
        types = [graph.nodes[o].type for o in node.operands]
        try:
            implementation = implement(node, types, parameters, options)
            implementation.bind(constants_of(graph, node.operands))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ArtefactError(f"{where} must be one that mappings implement: {error}") from error
        calls = items(f"{where}: calls", content["calls"])
        plain = [{k: v for k, v in typed(where, call, dict, "a call").items() if k != "program"} for call in calls]
        if canonical_text(plain) != canonical_text([call.as_json() for call in implementation.calls]):
            raise ArtefactError(f"{where}: calls must be those that follow from shapes and quantisation")
        programs[number] = tuple(typed(f"{where}: program", call.get("program"), dict, "an object") for call in calls)
        for program in programs[number]:
            natural(f"{where}: commands", program.get("commands"), 1 << 62)
        implementations[number] = implementation
    return implementations, programs
