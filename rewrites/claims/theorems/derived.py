"""An operator with a bound from the IR's side of a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from ila_lang import Fragment
from ila_lang.mapping import Lemma
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Names, Written
from rewrites.bounds.derivations.writer import derivation_of
from rewrites.claims.joints.instruction import called


def derived(
    name: str,
    summary: str,
    symbols: Mapping[str, str],
    example: Mapping[str, Fraction | int],
    fragment: Callable[[], Fragment],
    names: Names,
    *,
    result: str = "tensor_out",
    lemmas: Sequence[Lemma] = (),
    growth: Sequence[str] = (),
    note: str = "",
) -> Operator:
    """The operator that a fragment of one instruction computes, with the bound of the words in ``result``.

    ``lemmas`` are the mapping's.  With ``growth``, the names of law 'growth', it is the bound after many timesteps.
    """

    def derivation() -> Written:
        (run,) = called(fragment())
        return derivation_of(run.kernel, run.operands, result, names, lemmas=lemmas, growth=growth)

    return Operator(name, summary, symbols, derivation, example, note)
