"""Samples of a model's inputs, with labels: arrays that have a further first axis, from files and from a generator."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ila_lang.text.files import FileRefused, read_at_most
from ilaverify.errors import UsageError
from ir_semantics.graph.ir import Graph
from ir_semantics.graph.types import Array, TensorType
from rewrites.compiler.artefact.arrays import array_of, arrays_of
from rewrites.compiler.artefact.errors import ArtefactError
from rewrites.compiler.codegen.calibration import drawn_inputs

from .comparison import answers_of

MOST_BYTES = (1 << 31) - 1
"""Bytes of a file of arrays: as many as a model may have."""
LABELS = "labels"
"""The array of labels in a file of inputs, and what messages call labels."""
_NPY = b"\x93NUMPY"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Arrays by input with ``count`` samples along the first axis, and the right answers of each sample, if known.

    With ``single`` the one sample was given without that axis.
    """

    arrays: Mapping[str, Array]
    count: int
    single: bool
    labels: Array | None = None

    def sample(self, number: int) -> dict[str, Array]:
        """The inputs of a sample."""
        return {name: array[number] for name, array in self.arrays.items()}


def read_arrays(path: Path, what: str) -> tuple[dict[str, Array], str]:
    """The arrays in a file, and its digest; the array of a .npy file has the name "".

    Raises UsageError where the file is none of arrays.
    """
    try:
        data = read_at_most(path, what, MOST_BYTES)
        arrays = {"": array_of(str(path), data)} if data.startswith(_NPY) else arrays_of(str(path), data, MOST_BYTES)
    except FileRefused as error:
        raise UsageError(str(error)) from error
    except ArtefactError as error:
        raise UsageError(f"{error}; write it with numpy.savez, or an array alone with numpy.save") from error
    return arrays, hashlib.sha256(data).hexdigest()


def drawn(graph: Graph, count: int, seed: int) -> dict[str, Array]:
    """Random inputs, as :func:`dataset_of` takes them."""
    samples = drawn_inputs(graph, seed, count)
    return {name: np.stack([sample[name] for sample in samples]) for name in graph.inputs}


def dataset_of(
    graph: Graph,
    arrays: Mapping[str, Array],
    labels: Array | None = None,
    *,
    what: str = "the input",
    finite: bool = False,
) -> Dataset:
    """Inputs of a graph from arrays by name, each of the input's type, or with samples along a further first axis.

    The axis may also take the place of one of extent 1.  An array with the name "" is that of the only input; one that
    is called ``labels``, and is no input, holds labels.  Messages call an input ``what`` with its name.  Raises
    UsageError where an input is missing, has another type, no sample or NaN (or an infinity, if all must be
    ``finite``), where numbers of samples differ, and where labels are not those of one output.
    """
    samples = dict(arrays)
    if "" in samples and len(graph.inputs) == 1:
        samples[next(iter(graph.inputs))] = samples.pop("")
    if LABELS in samples and LABELS not in graph.inputs:
        if labels is not None:
            raise UsageError(f"{LABELS} must come once, and are an array of that name, too; leave one of them out")
        labels = samples.pop(LABELS)
    single = True
    for name, number in graph.inputs.items():
        of = graph.nodes[number].type
        if name not in samples:
            raise UsageError(f"{what} {name} must be given, as {of} or several of these; give an array of that name")
        array = np.asarray(samples[name])
        whole = array
        if array.shape == of.shape:
            array = array[None]
        else:
            single = False
            if array.ndim == of.rank and of.shape[:1] == (1,):
                array = array[:, None]
        if array.shape[1:] == of.shape and not len(array):
            raise UsageError(f"{what} {name} must have a sample or more, not none; give some")
        if array.shape[1:] != of.shape or str(array.dtype) != of.dtype:
            raise UsageError(
                f"{what} {name} must be {of} or several of these, not {whole.dtype}{list(whole.shape)}; convert it"
            )
        wrong = ~np.isfinite(array) if finite else array != array
        if wrong.any():
            must, are = ("finite numbers", "NaN or infinite") if finite else ("numbers", "NaN")
            first = wrong.reshape(len(array), -1).any(1).argmax()
            raise UsageError(
                f"{what} {name} must be {must}, and {wrong.sum()} of {array.size} are {are}, the first in sample "
                f"{first}; leave these samples out"
            )
        samples[name] = array
    unknown = sorted(set(samples) - set(graph.inputs))
    if unknown:
        named = ", ".join(unknown) or "none"
        raise UsageError(
            f"arrays must be of inputs ({', '.join(graph.inputs)}), or {LABELS} with the right answers, not of {named}"
        )
    counts = {name: len(array) for name, array in samples.items()}
    count = next(iter(counts.values()), 1)
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"{name}: {n}" for name, n in counts.items())
        raise UsageError(f"every input must have as many samples as the others; they have {numbers}")
    return Dataset(samples, count, single, None if labels is None else _labels(graph, np.asarray(labels), count))


def _labels(graph: Graph, labels: Array, count: int) -> Array:
    judged = {name: of for name, i in graph.outputs.items() if answers_of(of := graph.nodes[i].type)}
    if len(judged) != 1:
        raise UsageError(
            f"{LABELS} must be of one output that has scores or integers, and the model has {len(judged)} of them"
            f"{': ' if judged else ''}{', '.join(judged)}; leave the labels out"
        )
    ((name, of),) = judged.items()
    each = answers_of(of)
    if labels.dtype.kind not in "iu" or labels.size != count * each or labels.shape[:1] not in ((count,), ()):
        raise UsageError(
            f"{LABELS} must be integers, {each} for each of {count} samples, as {name} has answers, not "
            f"{labels.dtype}{list(labels.shape)}"
        )
    classes = of.shape[-1] if of.kind == "float" else None
    if classes is not None and not 0 <= labels.min() <= labels.max() < classes:
        raise UsageError(
            f"{LABELS} must be 0 to {classes - 1}, for {name} is {of}, not {labels.min()} to {labels.max()}"
        )
    return labels.reshape(count, each)


def stacked(of: TensorType, parts: list[Array], single: bool) -> Array:
    """Results of samples as one array, as :func:`dataset_of` takes inputs; each part has samples along an axis."""
    whole = np.concatenate(parts)
    if single:
        return np.asarray(whole[0])
    return whole.reshape(len(whole), *of.shape[1:]) if of.shape[:1] == (1,) else whole
