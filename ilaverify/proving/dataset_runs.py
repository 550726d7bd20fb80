"""A compiled model on many samples: the first of them here, the others in processes of this machine or on a cluster.

A sample's results depend on nothing but the sample, so that it does not matter where it ran, or beside which others.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Collection, Generator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np

from ila_lang import CommandError
from ilaverify.errors import UsageError
from ilaverify.models.bounds import bounds_in_ranges
from ilaverify.models.comparison import Comparison, Samples, compare
from ilaverify.models.datasets import LABELS, Dataset, dataset_of, drawn, read_arrays, stacked
from ilaverify.models.loading import load_compiled
from ilaverify.models.references import run_onnx
from ir_semantics.graph.types import Array, GraphError
from rewrites.compiler.artefact.arrays import arrays_of, npz_bytes
from rewrites.compiler.artefact.errors import ArtefactError
from rewrites.compiler.artefact.model import Compiled
from rewrites.compiler.codegen import Devices
from rewrites.compiler.composition.of_ranges import InRanges

from .workers import Limits, Machines, MachinesError, Task, run_within

ALONE_SECONDS = 1.0
"""Samples run here, one after another, for this time: a few are not worth a process, and code is loaded for all."""
TASK_SECONDS = 5.0
"""How long the samples of a task should take."""
MOST_TOGETHER = 64
ELEMENTS_TOGETHER = 1 << 21
"""So many samples are run at a time, with so many elements of values in all."""
TOGETHER_SECONDS = 1.0
"""How long those should take of which nothing is told before they are done."""
ATTEMPTS = 2
"""How often a task is tried whose process ends without an answer."""


_SECONDS = 1e6
"""The time that a task has: networks may take long, and nothing here runs for ever."""


@dataclass(frozen=True)
class Source:
    """Files of a compiled model, ``inputs`` and ``labels``; without inputs, ``random`` samples are drawn from ``seed``.

    ``digests`` are those of these files, if they are known: what another machine finds there must have them.
    """

    directory: str
    inputs: str | None
    labels: str | None
    random: int = 1
    seed: int = 0
    reference: str = "host"
    digests: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Work:
    """A compiled model, samples, and what outputs are compared with: ``host`` or ``onnxruntime``.

    Only what was read from a ``source`` can run on other machines.
    """

    compiled: Compiled
    dataset: Dataset
    reference: str = "host"
    source: Source | None = None
    devices: Devices = field(default_factory=Devices)

    @cached_property
    def _onnx(self) -> bytes:
        return self.compiled.model.source.as_onnx()

    def measure(self, first: int, last: int, results: bool) -> str:
        """The comparison of samples ``first`` to ``last - 1`` as text, with ``results``, or the problem with one."""
        comparisons: list[Comparison] = []
        try:
            for start in range(first, last, self.together):
                numbers = range(start, min(start + self.together, last))
                try:
                    comparisons += self._compare(numbers)
                except (CommandError, UsageError, ValueError):
                    for number in numbers:  # the first one with a problem is the one that is told
                        comparisons += self._compare(range(number, number + 1))
        except (ArtefactError, GraphError, UsageError) as error:
            return json.dumps({"problem": f"sample {number}: {error}" if self.dataset.count > 1 else str(error)})
        names = list(comparisons[0].results) if results else []  # which need not be names of files
        kept = {str(k): np.stack([one.results[name] for one in comparisons]) for k, name in enumerate(names)}
        outputs, joined = base64.b64encode(npz_bytes(kept)).decode(), reduce(Comparison.joined, comparisons)
        return json.dumps({"comparison": joined.as_json(), "names": names, "results": outputs})

    @cached_property
    def together(self) -> int:
        """How many samples are run at a time: so many that their values are small beside the memory."""
        nodes = self.compiled.graph.nodes
        elements = sum(node.type.elements for node in nodes if node.operator not in ("constant", "broadcast"))
        return max(1, min(MOST_TOGETHER, ELEMENTS_TOGETHER // max(elements, 1)))

    def _compare(self, numbers: range) -> list[Comparison]:
        compiled, data, part = self.compiled, self.dataset, slice(numbers.start, numbers.stop)
        samples = Samples(
            {name: array[part] for name, array in data.arrays.items()},
            None if self.reference == "host" else [run_onnx(self._onnx, data.sample(number)) for number in numbers],
            None if data.labels is None else data.labels[part],
            numbers.start,
        )
        certified, calibration = compiled.proof.certificates, compiled.calibrated
        compared = compare(
            *(compiled.graph, compiled.implementations, samples, self.devices),
            certified=certified,
            calibration=calibration,
        )
        return [replace(one, in_ranges=self._in_ranges) for one in compared]

    @cached_property
    def _in_ranges(self) -> tuple[InRanges, ...]:
        """The bounds for all inputs, which are those of no sample.

        To look at calls takes the solvers' modules (0.4 s of processor) and milliseconds a node: that is for ``check``.
        """
        compiled = self.compiled
        of = compiled.graph, compiled.implementations, compiled.calibrated, compiled.proof.certificates
        return tuple(bounds_in_ranges(*of, look=False))


_loaded: dict[str, Work] = {}
"""What this process was prepared for: one work by its source."""


def load(source: Source) -> Work:
    """The work at a source; raises UsageError where a file is damaged, or is another one than the source says."""
    compiled = load_compiled(Path(source.directory))
    digests = [compiled.digest]

    def arrays(path: str, what: str) -> dict[str, Array]:
        read, digest = read_arrays(Path(path), what)
        digests.append(digest)
        return read

    if source.inputs is None:
        inputs = drawn(compiled.graph, source.random, source.seed)
    else:
        inputs = arrays(source.inputs, "inputs")
    labels = {} if source.labels is None else arrays(source.labels, LABELS)
    if len(labels) > 1:
        raise UsageError(f"{source.labels}: labels must be one array, not {', '.join(labels)}")
    names = [name for name in (source.directory, source.inputs, source.labels) if name is not None]
    for name, digest, expected in zip(names, digests, source.digests, strict=False):
        if digest != expected:
            raise UsageError(f"{name} must have the digest {expected[:12]}, as where the run began, not {digest[:12]}")
    dataset = dataset_of(compiled.graph, inputs, next(iter(labels.values()), None))
    return Work(compiled, dataset, source.reference, replace(source, digests=tuple(digests)))


def prepare(source: dict[str, Any]) -> None:
    """Loads what tasks of a source need, and the code of a sample, for the processes that are forked for them."""
    key = json.dumps(source)
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = load(Source(**source | {"digests": tuple(source["digests"])}))
        _loaded[key].measure(0, 1, False)


def measure(source: dict[str, Any], first: int, last: int, results: bool) -> str:
    """As :meth:`Work.measure`, of the work at a source."""
    prepare(source)
    return _loaded[json.dumps(source)].measure(first, last, results)


def parts(
    work: Work, jobs: int = 1, cluster: Machines | None = None, *, results: bool = False
) -> Generator[tuple[int, Comparison]]:
    """Comparisons of consecutive samples, each with the number of its first one, as they come.

    Those with ``results`` have them along a first axis.  Raises UsageError where the model cannot run on a sample, and
    MachinesError where the cluster cannot be used any more, or the process of a task ended again and again.
    """
    began, done, count, seconds = time.monotonic(), 0, work.dataset.count, 0.0
    work.devices.threads = min(work.devices.threads, jobs)
    here = cluster is None and jobs == 1
    while done < count and (here or time.monotonic() < began + ALONE_SECONDS or (done < 2 and seconds < TASK_SECONDS)):
        start = time.monotonic()
        size = min(work.together, int(TOGETHER_SECONDS / max(seconds, 1e-6)), count - done) if done else 1
        yield _part(done, work.measure(done, done + max(size, 1), results))
        seconds, done = (time.monotonic() - start) / max(size, 1), done + max(size, 1)
    most = -(-(count - done) // jobs) if cluster is None else count
    together = max(1, min(most, int(TASK_SECONDS / max(seconds, 1e-6))))
    ranges = [(first, min(first + together, count), results) for first in range(done, count, together)]
    if cluster is None:
        tasks = [Task(str(part[0]), partial(work.measure, *part)) for part in ranges]
    else:
        assert work.source is not None, "what runs on a cluster is in files"
        source = asdict(work.source)
        tasks = [Task(str(part[0]), partial(measure, source, *part), partial(prepare, source)) for part in ranges]
    limits = Limits(jobs, _SECONDS, 0, cluster)
    failure = ""
    for _ in range(ATTEMPTS):
        failed = []
        with closing(run_within(limits, tasks)) as ends:
            for end in ends:
                if end.text is not None:
                    yield _part(int(end.name), end.text)
                else:
                    failure = failure or f"those from {end.name} on: {end.failure}"
                    failed.append(end.name)
        tasks = [task for task in tasks if task.name in failed]
        if not tasks:
            return
    raise MachinesError(f"samples were tried {ATTEMPTS} times, and have no result; {failure}")


def _part(first: int, text: str) -> tuple[int, Comparison]:
    answer = json.loads(text)
    if "problem" in answer:
        raise UsageError(answer["problem"])
    arrays = arrays_of("results", base64.b64decode(answer["results"]))
    results = {name: arrays[str(k)] for k, name in enumerate(answer["names"])}
    return first, replace(Comparison.from_json(answer["comparison"]), results=results)


def whole(work: Work, comparisons: Mapping[int, Comparison]) -> Comparison:
    """One comparison from those of parts, by their first sample.

    Results are of samples in their order; where some are missing, :func:`numbers_name` has the numbers of those that
    are there.
    """
    firsts = sorted(comparisons)
    ordered = [comparisons[first] for first in firsts]
    graph = work.compiled.graph
    results = {
        name: stacked(
            graph.nodes[graph.outputs[name]].type, [one.results[name] for one in ordered], work.dataset.single
        )
        for name in ordered[0].results
    }
    joined = reduce(Comparison.joined, ordered)
    if results and joined.samples < work.dataset.count:
        numbers = np.concatenate([first + np.arange(comparisons[first].samples) for first in firsts])
        results[numbers_name(results)] = numbers
    return replace(joined, results=results)


def numbers_name(outputs: Collection[str]) -> str:
    """``samples``, with as many ``_`` after it as it takes to be the name of no output."""
    name = "samples"
    while name in outputs:
        name += "_"
    return name
