"""The folders import each other only downwards, and solvers stay in their modules.

Between folders every import counts, wherever it stands in a module.  Cycles are sought among the imports
that run while a module loads: not those in a function or under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BELOW_PROVERS = {"ila_lang", "ir_semantics", "accel_models", "smt_encodings"}
MAY_IMPORT = {
    "ila_lang": set(),
    "ir_semantics": {"ila_lang"},
    "accel_models": {"ila_lang"},
    "smt_encodings": {"ila_lang"},
    "bmc": BELOW_PROVERS,
    "chc": BELOW_PROVERS,
    "reports": BELOW_PROVERS,
    "rewrites": BELOW_PROVERS | {"bmc", "chc", "reports"},
    "ilaverify": BELOW_PROVERS | {"bmc", "chc", "reports", "rewrites"},
}
NO_PART_OF_THE_PRODUCT = {"benchmarks", "docs", "encodings", "examples", "tests"}
SOLVERS = ("cvc5", "z3")
WITHOUT_SOLVER = ("accel_models", "ila_lang", "ir_semantics")
MOST_LINES = 500


@dataclass(frozen=True)
class Module:
    """One source file of a package: its dotted name, all it imports, what it imports to load, its length."""

    name: str
    imports: frozenset[str]
    imports_to_load: frozenset[str]
    lines: int

    @property
    def package(self) -> str:
        return top(self.name)


def top(name: str) -> str:
    return name.partition(".")[0]


def read_modules(root: Path) -> list[Module]:
    """Every module of the product under ``root``; imports of its own modules are named in full."""
    paths = {}
    for package in MAY_IMPORT:
        source_root = root / "encodings" if package == "smt_encodings" else root
        for path in sorted((source_root / package).rglob("*.py")):
            parts = path.relative_to(source_root).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    modules = []
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(text)
        imports = frozenset(imported_names(ast.walk(tree), package, paths.keys()))
        imports_to_load = frozenset(imported_names(run_to_load([tree]), package, paths.keys()))
        modules.append(Module(name, imports, imports_to_load, len(text.splitlines())))
    return modules


def run_to_load(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """``nodes`` and all below them, outside functions and TYPE_CHECKING blocks."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                below: Iterable[ast.AST] = node.orelse
            case _:
                below = ast.iter_child_nodes(node)
        yield node
        yield from run_to_load(below)


def imported_names(nodes: Iterable[ast.AST], package: str, known: Collection[str]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                parents = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                origin = ".".join([*parents, *([module] if module else [])])
                for alias in names:
                    submodule = f"{origin}.{alias.name}"
                    yield submodule if submodule in known or top(origin) == "encodings" else origin
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield name


def wrong_directions(modules: list[Module]) -> list[str]:
    forbidden = MAY_IMPORT.keys() | NO_PART_OF_THE_PRODUCT
    return [
        f"{module.name} imports {name}"
        for module in modules
        for name in sorted(module.imports)
        if top(name) in forbidden - MAY_IMPORT[module.package] - {module.package}
    ]


def import_cycle(modules: list[Module]) -> list[str]:
    """The modules along one cycle of imports that run while modules load, or nothing."""
    names = {module.name for module in modules}
    try:
        TopologicalSorter({module.name: module.imports_to_load & names for module in modules}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def importers(modules: list[Module], library: str) -> list[str]:
    return [module.name for module in modules if library in map(top, module.imports)]


def solvers_too_low(modules: list[Module]) -> list[str]:
    low = [module for module in modules if module.package in WITHOUT_SOLVER]
    return [f"{name} imports {library}" for library in (*SOLVERS, "pysmt") for name in importers(low, library)]


def too_long(modules: list[Module]) -> list[str]:
    return [f"{module.name}: {module.lines} lines" for module in modules if module.lines > MOST_LINES]


@pytest.fixture(scope="module")
def product() -> list[Module]:
    return read_modules(ROOT)


def test_every_package_is_read(product: list[Module]) -> None:
    found = {path.parent.name for root in (ROOT, ROOT / "encodings") for path in root.glob("*/__init__.py")}
    assert {module.package for module in product} == found - NO_PART_OF_THE_PRODUCT


def test_folders_import_only_what_stands_below_them(product: list[Module]) -> None:
    assert wrong_directions(product) == []


def test_no_import_cycles(product: list[Module]) -> None:
    assert import_cycle(product) == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_is_imported_in_one_module(product: list[Module], solver: str) -> None:
    assert len(importers(product, solver)) <= 1, importers(product, solver)


def test_languages_and_models_import_no_solver(product: list[Module]) -> None:
    assert solvers_too_low(product) == []


def test_modules_stay_readable(product: list[Module]) -> None:
    assert too_long(product) == []


def test_the_second_source_root_is_no_package() -> None:
    assert not (ROOT / "encodings" / "__init__.py").exists()


def tree(root: Path, files: dict[str, str]) -> list[Module]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_modules(root)


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("ila_lang/a.py", "import ir_semantics", "ila_lang.a imports ir_semantics"),
        ("ir_semantics/a.py", "from accel_models.vta import x", "ir_semantics.a imports accel_models.vta"),
        ("accel_models/vta/a.py", "import smt_encodings.b", "accel_models.vta.a imports smt_encodings.b"),
        ("encodings/smt_encodings/a.py", "import bmc", "smt_encodings.a imports bmc"),
        ("bmc/a.py", "def f():\n    import chc", "bmc.a imports chc"),
        ("chc/a.py", "if TYPE_CHECKING:\n    from reports import x", "chc.a imports reports"),
        ("reports/a.py", "importlib.import_module('rewrites.b')", "reports.a imports rewrites.b"),
        ("rewrites/a.py", "from ilaverify import cli", "rewrites.a imports ilaverify"),
        ("ilaverify/a.py", "import tests.conftest", "ilaverify.a imports tests.conftest"),
        ("bmc/b.py", "from encodings import smt_encodings", "bmc.b imports encodings.smt_encodings"),
    ],
)
def test_a_wrong_direction_is_found(tmp_path: Path, path: str, text: str, complaint: str) -> None:
    assert wrong_directions(tree(tmp_path, {path: text})) == [complaint]


def test_right_directions_are_accepted(tmp_path: Path) -> None:
    files = {
        "ila_lang/__init__.py": "from ila_lang import sorts",
        "ila_lang/sorts.py": "import math",
        "encodings/smt_encodings/__init__.py": "import ila_lang",
        "chc/a.py": "import accel_models.flexasr, ir_semantics, smt_encodings, ila_lang, z3",
        "rewrites/a.py": "import bmc, chc, reports",
        "ilaverify/cli.py": "import rewrites, bmc",
    }
    modules = tree(tmp_path, files)
    assert wrong_directions(modules) == []
    assert import_cycle(modules) == []
    assert solvers_too_low(modules) == []


def test_a_cycle_is_found(tmp_path: Path) -> None:
    files = {
        "bmc/__init__.py": "from .a import f",
        "bmc/a.py": "from bmc.parts import b",
        "bmc/parts/__init__.py": "",
        "bmc/parts/b.py": "from .. import g",
    }
    assert set(import_cycle(tree(tmp_path, files))) == {"bmc", "bmc.a", "bmc.parts.b"}


def test_late_imports_make_no_cycle(tmp_path: Path) -> None:
    files = {
        "bmc/a.py": "from bmc import b",
        "bmc/b.py": "if TYPE_CHECKING:\n    from bmc import a\ndef f():\n    import bmc.a",
        "chc/a.py": "try:\n    import chc.b\nexcept ImportError:\n    pass",
        "chc/b.py": "if not TYPE_CHECKING:\n    import chc.a",
    }
    modules = tree(tmp_path, files)
    assert set(import_cycle(modules)) == {"chc.a", "chc.b"}
    assert import_cycle([module for module in modules if module.package == "bmc"]) == []


def test_solver_imports_are_found(tmp_path: Path) -> None:
    files = {
        "chc/a.py": "import z3",
        "bmc/a.py": "def f():\n    from z3.z3util import x",
        "ila_lang/a.py": "from pysmt.shortcuts import And",
        "ir_semantics/a.py": "import cvc5.pythonic",
    }
    modules = tree(tmp_path, files)
    assert importers(modules, "z3") == ["bmc.a", "chc.a"]
    assert solvers_too_low(modules) == ["ir_semantics.a imports cvc5", "ila_lang.a imports pysmt"]


def test_a_long_module_is_found(tmp_path: Path) -> None:
    modules = tree(tmp_path, {"bmc/a.py": "x = 1\n" * 500, "bmc/b.py": "x = 1\n" * 501})
    assert too_long(modules) == ["bmc.b: 501 lines"]
