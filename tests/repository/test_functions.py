"""No function has more than six parameters, beside its object: more are a dataclass, which is checked in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 6
PRODUCT = ("ila_lang", "ir_semantics", "accel_models", "encodings", "bmc", "chc", "reports", "rewrites", "ilaverify")
_DEFINES = "definitions of operators: each further parameter is a property with a keyword"
ALLOWED = {
    "ilaverify/api.py: compile": "the options of a verb, with keywords",
    "ir_semantics/graph/operator.py: tensor": _DEFINES,
    "ir_semantics/graph/operator.py: host": _DEFINES,
    "ir_semantics/tensors/reductions.py: conv": "the attributes of an operator, with the keywords that front ends use",
    "rewrites/mappings/flexasr/layer_norm.py: norm_finish": "a primitive: its parameters are the hardware's operands",
}
"""Functions that have more, and why."""


def functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every function, with the number of its parameters; those of methods are without the object."""
    methods = {f for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for f in c.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            of = node.args
            count = len(of.posonlyargs) + len(of.args) + len(of.kwonlyargs)
            static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
            yield node.name, count - (node in methods and not static)


def test_functions_have_at_most_six_parameters() -> None:
    files = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py")]
    many = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name, count in functions(ast.parse(path.read_text()))
        if count > MOST
    }
    assert len(files) > 400 and many == set(ALLOWED)


def test_parameters_of_all_kinds_count() -> None:
    code = (
        "class A:\n def f(self, a, /, b, *, c): pass\n @staticmethod\n def g(a, *b, **c): pass\nasync def h(): pass\n"
    )
    assert dict(functions(ast.parse(code))) == {"f": 3, "g": 1, "h": 0}
