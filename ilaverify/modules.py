"""What ``--module`` names: a Python module, or a file of rules in MLIR."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from ila_lang import extensions

SUFFIX = ".mlir"
"""The suffix of files of rules."""


def use_module(name: str) -> None:
    """Makes all functions know what a module offers; the current folder is searched for it, after all others.

    Raises ExtensionError where it offers nothing.
    """
    if not name.endswith(SUFFIX):
        if not name.replace(".", "").isidentifier() or name.startswith("."):
            raise extensions.ExtensionError(
                f"--module must name a Python module, such as my_chip, or a file of rules, FILE{SUFFIX}, not {name!r}"
            )
        extensions.use_module(name)
        return
    from rewrites.rules.mlir.files import rule_set_of

    module = ModuleType(name)
    module.RULES = rule_set_of(Path(name))  # type: ignore[attr-defined]
    extensions.offer(module)
