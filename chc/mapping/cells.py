"""Samples of output cells, and conditions by which an output may be chosen there: guesses for :mod:`.dataflow`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ila_lang import Expr, all_of, postorder, substitute

from .contents.values import Values
from .memory.contexts import Context
from .memory.layout import Definition, narrow
from .proof import Proof
from .sampling.samples import Samples, samples_of
from .sampling.sizes import Sizes


def samples_of_cells(proof: Proof, spare: Sequence[Sizes] = ()) -> Samples:
    """Samples of output cells, with spare ones at further sizes."""
    mapping = proof.mapping
    samples = samples_of(proof.parameters, mapping.coordinates, proof.samples)
    if spare:
        others = samples_of(proof.parameters, mapping.coordinates, spare)
        rows = Random(0).sample(others.rows, len(others.rows))  # of different sizes, whichever are taken
        samples = replace(samples, spare=replace(others, rows=tuple(rows)))
    return samples.where(all_of(mapping.cell_conditions)) if mapping.cell_beyond else samples


def output_choices(context: Context, side: Values, definition: Definition) -> list[Expr]:
    """The conditions, over coordinates and sizes alone, by which the value that ``definition`` stores is chosen."""
    folds, here = side.definitions.schedule.folds, narrow(definition.at)
    terms, seen = [definition.write.value], 0
    while seen < len(terms):  # steps of folds, too
        used = (folds[n] for n in postorder([terms[seen]]) if n in folds)
        terms += [t for fold in used for t in (*fold.initial, *fold.step)]
        seen += 1
    conditions = [substitute(n.args[0], here) for n in postorder(terms) if n.op == "ite"]
    return list(dict.fromkeys(c for c in conditions if context.samples.determine(c)))
