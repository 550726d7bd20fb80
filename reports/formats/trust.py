"""What each theorem rests on besides the solvers: domain, assumptions, initial state, lemmas, uninterpreted symbols.

The text has no times and no digests, so that it can stand in a repository: a new assumption then shows in review as a
changed line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ila_lang.mapping import TensorMapping
from ila_lang.text.portable import functions_of

_HEADING = """\
What the theorems rest on, one by one.
assumption: a sentence that no solver checks.  start: state that is taken as known before the program.
lemma: an equality of data functions, proved bit by bit with each proof.
abstract: a data function of which the structural proof uses nothing but the lemmas.
uninterpreted: a function without a body in either side's model; the theorem holds whatever it is.
shape, sum: the one shape of a proof up to the order of sums; an operator that adds, whose laws each proof proves.
"""


def trust_entry(mapping: TensorMapping) -> str:
    """The entry of one mapping."""
    return "\n".join(_lines(mapping)) + "\n"


def trust_report(entries: Mapping[str, str]) -> str:
    """The report over entries by name of claim, in the order of names."""
    return "\n".join([_HEADING, *(entries[name] for name in sorted(entries))])


def _lines(mapping: TensorMapping) -> Iterator[str]:
    yield f"{mapping.name}"
    yield f"  claim          {mapping.statement}"
    yield from (f"  domain         {text}" for text in mapping.conditions)
    yield f"  compared       {mapping.compared}"
    yield from _listed("assumption", mapping.assumptions)
    sides = (("device", mapping.device), ("ir", mapping.ir))
    yield from _listed("start", (f"{side}: {n} = {v:#x}" for side, f in sides for n, v in sorted(f.idle.items())))
    yield from _listed("lemma", (f"{lemma.name}: {lemma.left!r} = {lemma.right!r}" for lemma in mapping.lemmas))
    yield from _listed("abstract", sorted(mapping.abstract))
    yield from _listed("uninterpreted", sorted(_without_body(mapping)))


def _listed(what: str, texts: Iterable[str]) -> Iterator[str]:
    """One line for each item, so that an addition is one added line in a diff; "none" where there are none."""
    yield from (f"  {what:<14} {text}" for text in list(texts) or ["none"])


def _without_body(mapping: TensorMapping) -> set[str]:
    """Names of the uninterpreted functions that occur anywhere in the two fragments or their models."""
    used = (*functions_of(mapping.device), *functions_of(mapping.ir))
    return {function.name for function in used if function.body is None}
