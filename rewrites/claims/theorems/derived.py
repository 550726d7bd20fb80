"""Derivations of bounds from the IR's side of mappings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ila_lang import Fragment
from ila_lang.mapping import Lemma
from rewrites.bounds.derivations.names import Names, Written
from rewrites.bounds.derivations.writer import derivation_of
from rewrites.claims.joints.instruction import called


def derived(
    fragment: Callable[[], Fragment],
    names: Names,
    *,
    result: str = "tensor_out",
    lemmas: Sequence[Lemma] = (),
    growth: Sequence[str] = (),
) -> Callable[[], Written]:
    """What derives the bound of the words in ``result`` from a fragment of one instruction.

    ``lemmas`` are the mapping's.  With ``growth``, the names of law 'growth', it is the bound after many timesteps.
    """

    def derivation() -> Written:
        (run,) = called(fragment())
        return derivation_of(run.kernel, run.operands, result, names, lemmas=lemmas, growth=growth)

    return derivation
