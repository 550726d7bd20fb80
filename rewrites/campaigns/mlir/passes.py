"""Passes of an ``mlir-opt`` on a program, one after the other: what each gives must refine what it gets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chc.translation.refine import Options, refines
from ir_semantics.mlir import ir
from ir_semantics.mlir.convert import Converter, ConverterError, Source
from ir_semantics.mlir.printer import text_of
from ir_semantics.mlir.scanner import MlirError
from smt_encodings.discharge import Discharger

PIPELINES = (
    "canonicalize",
    "cse,sccp",
    "arith-expand,canonicalize",
    "arith-unsigned-when-equivalent,int-range-optimizations",
    "arith-int-range-narrowing{int-bitwidths-supported=8,32}",
    "convert-elementwise-to-linalg,linalg-fuse-elementwise-ops,canonicalize,linalg-fold-unit-extent-dims",
    "tosa-to-linalg-named,tosa-to-linalg,tosa-to-tensor,tosa-to-arith,canonicalize,linalg-fuse-elementwise-ops,cse",
    "tosa-layerwise-constant-fold",
    "tosa-reduce-transposes,tosa-optional-decompositions",
    "tosa-make-broadcastable,tosa-to-linalg,linalg-fuse-elementwise-ops",
    "linalg-generalize-named-ops,linalg-fuse-elementwise-ops,canonicalize",
    "linalg-specialize-generic-ops,linalg-fold-into-elementwise",
    "linalg-fold-unit-extent-dims,canonicalize",
    "linalg-inline-scalar-operands,linalg-detensorize",
    "fold-tensor-subset-ops,convert-tensor-to-linalg",
    "reify-result-shapes,canonicalize",
)
"""Passes that work on operators that have a meaning here, as they are run one after the other."""
_UNKNOWN_PASS = re.compile("does not refer to a registered pass|no such pass|unknown pass", re.IGNORECASE)
_OPERATOR = re.compile(r'"([a-z_]+\.[a-z_0-9]+)"\(')
_PLUMBING = frozenset({"arith.constant", "func.func", "func.return", "tensor.dim", "tensor.empty", "linalg.yield"})


@dataclass(frozen=True)
class Outcome:
    """What became of one function, or of the whole program, at one pass.

    ``verdict`` is that of the refinement, or: *same* (the pass changed nothing), *absent* (the release has no such
    pass), *refused* (the pass ended with a message), *crashed*.  ``source`` and ``target`` are programs in the generic
    form.
    """

    release: str
    pass_name: str
    function: str
    verdict: str
    reason: str = ""
    source: str = ""
    target: str = ""

    @property
    def operators(self) -> frozenset[str]:
        """The operators of the function before the pass, without those that only hold others together."""
        return frozenset(_OPERATOR.findall(self.source)) - _PLUMBING


def is_new(release: str) -> bool:
    """Whether a release writes TOSA as since 1.0."""
    match = re.search(r"(\d+)\.", release)
    return match is not None and int(match[1]) >= 21


def outcomes(
    text: str,
    converter: Converter,
    pipelines: Sequence[Sequence[tuple[str, str]]],
    seconds: float,
    only: str | None = None,
) -> Iterator[Outcome]:
    """What each pass of each pipeline makes of a program, as far as it is run.

    ``seconds`` is the time for each question to a solver.  With ``only`` a pass, pipelines are run up to that, and
    nothing else is compared.  Raises ConverterError where the converter cannot be run.
    """
    release = converter.release
    try:
        program = converter.generic(text)
    except MlirError as error:
        yield Outcome(release, "", "", "refused", str(error), text)
        return
    for pipeline in pipelines:
        before = program
        titles = [f"{name}{{{options}}}" if options else name for name, options in pipeline]
        for title in titles if only is None else titles[: titles.index(only) + 1] if only in titles else ():
            try:
                after = converter.generic(before.text, title)
            except (MlirError, ConverterError) as error:
                yield Outcome(release, title, "", failure(error), str(error), before.text)
                break
            if only in (None, title):
                yield from _compared(Outcome(release, title, "", ""), before, after, seconds)
            before = after


def failure(error: Exception) -> str:
    """What a pass that gave no program did: the release has none of the name (*absent*), *crashed*, or *refused*."""
    if _UNKNOWN_PASS.search(str(error)):
        return "absent"
    return "crashed" if "ended with signal" in str(error) else "refused"


def _compared(of: Outcome, before: Source, after: Source, seconds: float) -> Iterator[Outcome]:
    """A verdict for each function that the pass has changed."""
    targets = {f.symbol: f for f in after.module.symbols()}
    changed = False
    for source in before.module.symbols():
        target = targets.get(source.symbol)
        if target is None or _text(source) == _text(target):
            continue
        changed = True
        try:
            verdict = refines(source, target, Options(), Discharger(timeout=seconds), (before.module, after.module))
            status, reason = verdict.status.value, verdict.reason
        except ValueError as error:
            status, reason = "UNKNOWN", str(error)
        texts = _text(source), _text(target)
        yield Outcome(of.release, of.pass_name, source.symbol or "", status, reason, *texts)
    if not changed:
        yield Outcome(of.release, of.pass_name, "", "same")


def _text(function: ir.Operation) -> str:
    return text_of(ir.Module((function,)))
