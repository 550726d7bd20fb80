"""What is said of pairs of functions."""

from __future__ import annotations

from chc.translation.refine import Options, refines
from ir_semantics.mlir import ir
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger


def verdict(source: ir.Operation, target: ir.Operation, options: Options | None = None) -> Verdict:
    """What is said of a pair."""
    return refines(source, target, options, Discharger(timeout=20))


def status(source: ir.Operation, target: ir.Operation, options: Options | None = None) -> Status:
    """As :func:`verdict`, the status alone."""
    return verdict(source, target, options).status
