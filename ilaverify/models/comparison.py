"""A compiled model's run compared with a reference: errors by operator and output, and the first beyond its bound.

Three errors are distinguished.  *Own* is an accelerator operator's distance from the exact operator on what the
accelerator was given: this is what proved bounds are about, and what a faulty device breaks.  *On given* takes the
operands before they were quantised.  *Against the reference* is the distance from the same node of a run on the host,
which adds up everything that happened before the node.

Nothing is added to a bound before it is compared.  Exact operators are evaluated in binary64, so that an error is known
up to rounding of relative size 2^-53 for each operation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

import numpy as np

from ir_semantics.graph.ir import Graph
from ir_semantics.graph.samples import steps_on_samples
from ir_semantics.graph.types import Array, TensorType
from rewrites.claims.names import bound_name
from rewrites.compiler.artefact.origins import origin_text
from rewrites.compiler.artefact.running import Ran, run_samples
from rewrites.compiler.codegen import Bounds, Devices, Implementation
from rewrites.compiler.composition.of_ranges import InRanges, outside, ranges_of
from rewrites.compiler.composition.of_runs import Composed, RunBound

from .bounds import bounds_of_run
from .nodes import RESULT, Cut, Furthest, NodeComparison, finite
from .references import in_double


@dataclass(frozen=True)
class OutputComparison:
    """An output beside that of the reference: the largest distance, and the largest magnitude of the reference.

    ``differing`` of ``elements`` are others, and ``undefined`` are NaN on both sides, which are counted as alike but
    say nothing.  With ``discrete`` they are integers or Booleans, such as indices, of which distances mean nothing.
    """

    name: str
    error: float
    scale: float
    differing: int
    elements: int
    discrete: bool
    undefined: int = 0

    def joined(self, later: OutputComparison) -> OutputComparison:
        """The output in these samples and in later ones."""
        return replace(
            self,
            error=float(np.maximum(self.error, later.error)),  # NaN, where either is
            scale=float(np.maximum(self.scale, later.scale)),
            differing=self.differing + later.differing,
            elements=self.elements + later.elements,
            undefined=self.undefined + later.undefined,
        )

    @property
    def unrelated(self) -> bool:
        """Whether the output is as far off as the reference is large, no number, or discrete and other everywhere."""
        if self.discrete:
            return self.differing == self.elements > 0
        if self.undefined == self.elements > 0:
            return True
        return self.error != 0 and not self.error < self.scale  # NaN is neither

    @property
    def text(self) -> str:
        """How far it is off, in words."""
        if self.discrete:
            return f"{self.differing} of {self.elements} elements differ"
        undefined = f"; {self.undefined} of {self.elements} elements are NaN on both sides" if self.undefined else ""
        return f"largest error {self.error:.3g}, of values up to {self.scale:.3g}{undefined}"

    def as_json(self) -> dict[str, Any]:
        """The output's line for machines."""
        return {
            "output": self.name,
            "error": finite(self.error),
            "largest_of_reference": finite(self.scale),
            "differing": self.differing,
            "elements": self.elements,
            "nan_on_both_sides": self.undefined,
            "discrete": self.discrete,
            "unrelated": self.unrelated,
        }


@dataclass(frozen=True)
class Answers:
    """Answers that an output gives: where the scores along its last axis are highest, or its integers themselves.

    Of all of them, those ``as_reference`` are the reference's; those ``as_labelled`` are right, as
    ``reference_as_labelled`` of the reference's are.  Without labels both are None.  Scores with NaN are no answer.
    """

    output: str
    count: int
    as_reference: int
    as_labelled: int | None
    reference_as_labelled: int | None

    def joined(self, later: Answers) -> Answers:
        """The answers in these samples and in later ones."""
        pairs = zip(astuple(self)[1:], astuple(later)[1:], strict=True)
        sums: list[Any] = [None if a is None else a + b for a, b in pairs]
        return Answers(self.output, *sums)

    def text(self, reference: str) -> str:
        """How many there are of which, in words."""

        def part(count: int) -> str:
            return f"{count} of {self.count} ({100 * count / self.count:.1f} %)"

        if self.as_labelled is None or self.reference_as_labelled is None:
            return f"answers as {reference}: {part(self.as_reference)}"
        return (
            f"answers as labelled: {part(self.as_labelled)}; {reference}: {part(self.reference_as_labelled)}; "
            f"both alike: {part(self.as_reference)}"
        )


@dataclass(frozen=True)
class Comparison:
    """A run: results, accelerator operators in order, outputs beside the reference, their answers, and seconds.

    ``network`` are the bounds of outputs that operators' bounds come to, on the same inputs, and ``in_ranges`` those
    for all inputs in the calibrated ranges, which ``outside`` of the samples leave.

    ``seconds`` is the time of the compiled model alone on all ``samples``, ``device_seconds`` that of accelerator
    operators in it, ``fastest`` that of the fastest sample (of samples that run together, their mean).  Results of
    several samples have them along a first axis, in place of one of extent 1.
    """

    results: Mapping[str, Array]
    nodes: tuple[NodeComparison, ...]
    outputs: tuple[OutputComparison, ...]
    answers: tuple[Answers, ...]
    seconds: float
    device_seconds: float
    fastest: float
    samples: int = 1
    network: tuple[Composed, ...] = ()
    in_ranges: tuple[InRanges, ...] = ()
    outside: int = 0

    def joined(self, later: Comparison) -> Comparison:
        """The run of these samples and of later ones, without their results."""
        return Comparison(
            {},
            tuple(a.joined(b) for a, b in zip(self.nodes, later.nodes, strict=True)),
            tuple(a.joined(b) for a, b in zip(self.outputs, later.outputs, strict=True)),
            tuple(a.joined(b) for a, b in zip(self.answers, later.answers, strict=True)),
            self.seconds + later.seconds,
            self.device_seconds + later.device_seconds,
            min(self.fastest, later.fastest),
            self.samples + later.samples,
            tuple(a.joined(b) for a, b in zip(self.network, later.network, strict=True)),
            self.in_ranges,
            self.outside + later.outside,
        )

    def as_json(self) -> dict[str, Any]:
        """All but results, for :meth:`from_json`."""
        return asdict(replace(self, results={}))

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> Comparison:
        """The comparison without results; raises TypeError, KeyError or ValueError where it is none."""
        nodes = (
            NodeComparison(
                **n
                | {"mappings": tuple(n["mappings"]), "cuts": tuple(Cut(**c) for c in n["cuts"])}
                | {"furthest": Furthest.from_json(n["furthest"])}
            )
            for n in entries["nodes"]
        )
        outputs = (OutputComparison(**o) for o in entries["outputs"])
        answers = (Answers(**a) for a in entries["answers"])
        network = tuple(Composed.from_json(c) for c in entries["network"])
        ranges = tuple(InRanges(**r | {"declared": tuple(r["declared"])}) for r in entries["in_ranges"])
        joined = {"nodes": tuple(nodes), "outputs": tuple(outputs), "answers": tuple(answers), "network": network}
        return cls(**entries | joined | {"in_ranges": ranges})

    @property
    def unrelated(self) -> tuple[OutputComparison, ...]:
        """The outputs that are as far off as the reference is large."""
        return tuple(output for output in self.outputs if output.unrelated)

    @property
    def wrapped(self) -> tuple[NodeComparison, ...]:
        """The operators without a bound that are as far off as their values are large."""
        return tuple(n for n in self.nodes if n.unrelated)

    @property
    def cut(self) -> tuple[NodeComparison, ...]:
        """The operators that got or computed numbers beyond those that calibration foresaw."""
        return tuple(n for n in self.nodes if n.cut)

    @property
    def beyond(self) -> tuple[Composed, ...]:
        """The outputs that are beyond the network's bound."""
        return tuple(output for output in self.network if output.inside is False)

    @property
    def beyond_in_ranges(self) -> tuple[InRanges, ...]:
        """The bounds for all inputs in the ranges that an error exceeds though no sample left these."""
        errors = {output.output: output.error for output in self.network}
        of = ((bound, errors.get(bound.output)) for bound in self.in_ranges if not self.outside)
        return tuple(b for b, error in of if b.bound is not None and error is not None and not error <= b.bound)

    @property
    def first_outside(self) -> NodeComparison | None:
        """The first operator beyond its bound."""
        return next((n for n in self.nodes if n.inside is False), None)


@dataclass(frozen=True, eq=False)
class Samples:
    """What is run: ``inputs`` with samples along a first axis.

    ``references`` are outputs of each that the results are compared with; the host's without them.  ``labels`` are the
    answers that are right, along the same axis, and ``first`` is the number that the first sample is told with.
    """

    inputs: Mapping[str, Array]
    references: Sequence[Mapping[str, Array]] | None = None
    labels: Array | None = None
    first: int = 0

    @classmethod
    def one(cls, inputs: Mapping[str, Array], reference: Mapping[str, Array] | None = None) -> Samples:
        """One sample, without the axis."""
        along = {name: np.asarray(array)[None] for name, array in inputs.items()}
        return cls(along, None if reference is None else [reference])


def compare(
    graph: Graph,
    implementations: Mapping[int, Implementation],
    samples: Samples,
    devices: Devices | None = None,
    *,
    certified: Collection[str] | None = None,
    calibration: Mapping[int, Mapping[str, float]] | None = None,
) -> list[Comparison]:
    """Runs a compiled graph on samples together, and the same graph on the host; each has the same part of the time.

    ``certified`` are claims that hold a certificate: a bound that is derived from another one does not count.  Without
    it all bounds do.  With the ranges of ``calibration``, by node, samples that leave them are counted.  Raises
    GraphError for inputs that do not fit, and ValueError where a reference lacks an output or has another shape.
    """
    inputs, references, labels = samples.inputs, samples.references, samples.labels
    host = steps_on_samples(graph, inputs)
    results: dict[int, Array] = {}
    expected: dict[int, Array] = {}
    outputs = set(graph.outputs.values())
    count = max(map(len, inputs.values()), default=1)
    nodes: list[list[NodeComparison]] = [[] for _ in range(count)]
    networks = [RunBound(graph, implementations) for _ in range(count)]
    left = [False] * count
    ranges = {} if calibration is None else {i: ranges_of(calibration[i], of) for i, of in implementations.items()}
    seconds = device = 0.0
    for ran, (_, value) in zip(run_samples(graph, implementations, inputs, devices or Devices()), host, strict=True):
        value = np.broadcast_to(value, (count, *value.shape[1:]))
        seconds += ran.seconds / count
        device += 0.0 if ran.executed is None else ran.seconds / count
        for number, network in enumerate(networks):
            one, bounds = ran.sample(number, count), None
            if one.executed is not None:
                bounds = bounds_of_run(implementations[ran.number], one.executed, certified)
                node = _node(graph, implementations[ran.number], one, value[number, ...], bounds)
                if ranges:
                    beyond = outside(implementations[ran.number], one.executed, ranges[ran.number])
                    left[number] |= bool(beyond) or node.cut
                nodes[number].append(replace(node, sample=samples.first + number))
            network.take(ran.number, one.value, one.executed, bounds)
        if ran.number in outputs:
            results[ran.number], expected[ran.number] = np.broadcast_to(ran.value, value.shape), value
    comparisons = []
    for number in range(count):
        named, on_host = ({name: of[i][number, ...] for name, i in graph.outputs.items()} for of in (results, expected))
        beside = on_host if references is None else references[number]
        beside_reference = tuple(outputs_beside(named, beside))
        answers = tuple(
            _answers(name, named[name], beside[name], None if labels is None else labels[number])
            for name, i in graph.outputs.items()
            if answers_of(graph.nodes[i].type)
        )
        at = samples.first + number
        composed = tuple(replace(c, sample=at, error_sample=at) for c in networks[number].composed())
        comparisons.append(
            Comparison(
                *(named, tuple(nodes[number]), beside_reference, answers, seconds, device, seconds),
                network=composed,
                outside=int(left[number]),
            )
        )
    return comparisons


def answers_of(of: TensorType) -> int:
    """How many answers an output of this type gives; 0 where it gives none."""
    if of.kind == "float":
        return of.elements // of.shape[-1] if of.shape and of.shape[-1] > 1 else 0
    return 0 if of.kind == "bool" else of.elements


def _answers(name: str, value: Array, reference: Array, labels: Array | None) -> Answers:
    def answers(of: Array) -> tuple[Array, Array]:
        scores = of.dtype.kind == "f"
        return (of.argmax(-1) if scores else of).reshape(-1), ~np.isnan(of.max(-1) if scores else of).reshape(-1)

    (own, there), (other, beside) = both = answers(value), answers(reference)
    alike = int(np.count_nonzero((own == other) & there & beside))
    right = [None if labels is None else int(np.count_nonzero((x == labels.reshape(-1)) & t)) for x, t in both]
    return Answers(name, own.size, alike, *right)


def _node(graph: Graph, implementation: Implementation, ran: Ran, host: Array, bounds: Bounds) -> NodeComparison:
    executed = ran.executed
    assert executed is not None
    node = graph.nodes[ran.number]
    names = implementation.operands
    types = [graph.nodes[o].type for o in node.operands]
    exact = [in_double(node, types, [of[name] for name in names]) for of in (executed.quantised, executed.given)]
    constant = [graph.nodes[o].operator == "constant" for o in node.operands]
    cuts = [Cut(n, count, executed.given[n].size, constant[names.index(n)]) for n, count in executed.saturated.items()]
    results = implementation.cut(executed, exact[0])
    if results:
        cuts.append(Cut(RESULT, results, exact[0].size, False))
    return NodeComparison(
        ran.number,
        node.operator,
        origin_text(graph, ran.number),
        len(implementation.calls),
        tuple(mapping.name for mapping in implementation.mappings),
        distance(executed.value, exact[0]),
        bounds.on_quantised,
        distance(executed.value, exact[1]),
        bounds.on_given,
        bounds.reason,
        distance(executed.value, host),
        _largest(host),
        tuple(cuts),
        ran.seconds,
        bound_name(bounds.theorem) if bounds.theorem else "",
    )


def outputs_beside(results: Mapping[str, Array], reference: Mapping[str, Array]) -> Iterable[OutputComparison]:
    """The outputs of a run beside those of a reference; raises ValueError where it lacks one."""
    for name, value in results.items():
        if name not in reference or reference[name].shape != value.shape:
            raise ValueError(f"the reference must have the output {name} of shape {list(value.shape)}; it has another")
        other = reference[name]
        undefined = (value != value) & (other != other)  # NaN is NaN
        differing, discrete = np.count_nonzero(~undefined & (value != other)), value.dtype.kind in "iub"
        scale, without = _largest(other[~undefined]), int(np.count_nonzero(undefined))
        yield OutputComparison(name, distance(value, other), scale, int(differing), value.size, discrete, without)


def distance(one: Array, other: Array) -> float:
    """The largest distance of two elements at one place, in binary64; NaN where only one of them is a number.

    >>> distance(np.array([1.0, np.inf]), np.array([0.5, np.inf]))
    0.5
    """
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(a - b))
    return float(np.max(apart, initial=0.0))


def _largest(values: Array) -> float:
    return float(np.max(np.abs(np.asarray(values, np.float64)), initial=0.0))
