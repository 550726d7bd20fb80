"""Files of rules in MLIR as rule sets, and proved pairs of functions as such a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ila_lang.extensions import ExtensionError
from ila_lang.text.files import FileRefused
from ir_semantics.mlir import ir
from ir_semantics.mlir.convert import ConverterError, load
from ir_semantics.mlir.printer import text_of
from ir_semantics.mlir.scanner import MlirError
from ir_semantics.mlir.semantics.values import NotCovered
from rewrites.rules.rule_set import RuleSet

from .builder import NOWHERE
from .reading import rules_of


def rule_set_of(path: Path) -> RuleSet:
    """The rules of a file, which compilers apply where they hold a certificate; raises ExtensionError.

    A rule on real numbers that may hold in one direction only comes with its converse, which is a claim of its own.
    """
    try:
        rules = rules_of(load(path).module, path.stem)
    except NotCovered as error:
        raise ExtensionError(f"{path}:{error.position}: {error.operator}: {error.why}") from error
    except MlirError as error:
        raise ExtensionError(f"{path}:{error}") from error
    except (ConverterError, FileRefused) as error:
        raise ExtensionError(str(error)) from error
    if not rules:
        raise ExtensionError(f"{path} must have a module with the functions @left and @right; it has none")
    converses = [rule.converse for rule in rules if rule.needs_converse]
    return RuleSet(str(path), tensor=(*rules, *converses), applied=True)


def text_of_pairs(pairs: Mapping[str, tuple[ir.Operation, ir.Operation]]) -> str:
    """A file that has pairs of functions as rules, by their names."""
    modules = []
    for name, functions in pairs.items():
        sides = [
            replace(f, attributes={**f.attributes, "sym_name": ir.StringAttribute(side)})
            for f, side in zip(functions, ("left", "right"), strict=True)
        ]
        named: dict[str, ir.Attribute] = {"sym_name": ir.StringAttribute(name)}
        inside = ir.Region([ir.Block([], sides)])
        module = ir.Operation("builtin.module", (), (), named, (inside,), (), NOWHERE, frozenset(named))
        modules.append(module)
    return text_of(ir.Module(tuple(modules)))
