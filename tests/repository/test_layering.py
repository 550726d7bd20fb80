"""Packages import each other only downwards, nothing is in a circle, and solvers stay in their modules.

Every import counts, wherever it stands: in a function or under TYPE_CHECKING, too.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile, zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BELOW_PROVERS = {"ila_lang", "ir_semantics", "accel_models", "smt_encodings"}
MAY_IMPORT: dict[str, set[str]] = {
    "ila_lang": set(),
    "ir_semantics": {"ila_lang"},
    "accel_models": {"ila_lang"},
    "smt_encodings": {"ila_lang"},
    "bmc": BELOW_PROVERS,
    "chc": BELOW_PROVERS,
    "reports": BELOW_PROVERS,
    "rewrites": BELOW_PROVERS | {"bmc", "chc", "reports"},
    "ilaverify": BELOW_PROVERS | {"bmc", "chc", "reports", "rewrites"},
    # packages beside each other in one of these
    "accel_models.flexasr": set(),
    "accel_models.hlscnn": set(),
    "accel_models.vta": set(),
    "ilaverify.models": set(),
    "ilaverify.proving": {"ilaverify.models"},
    "ilaverify.mlir": {"ilaverify.proving"},
    "ilaverify.cli": {"ilaverify.mlir", "ilaverify.models", "ilaverify.proving"},
    "ir_semantics.tensors": {"ir_semantics.scalars"},
    "ir_semantics.graph": {"ir_semantics.scalars", "ir_semantics.tensors"},
    "ir_semantics.onnx": {"ir_semantics.graph", "ir_semantics.scalars"},
    "chc.mapping": {"chc.bijections"},
    "chc.tensor_rules": {"chc.bijections"},
    "chc.mapping.arithmetic": set(),
    "chc.mapping.program": set(),
    "chc.mapping.horn": {"chc.mapping.arithmetic", "chc.mapping.program"},
    "chc.mapping.sampling": {"chc.mapping.program"},
    "chc.mapping.memory": {
        "chc.mapping.arithmetic",
        "chc.mapping.horn",
        "chc.mapping.program",
        "chc.mapping.sampling",
    },
    "chc.mapping.contents": {
        "chc.mapping.arithmetic",
        "chc.mapping.memory",
        "chc.mapping.program",
        "chc.mapping.sampling",
    },
    "chc.mapping.relate": {
        "chc.mapping.arithmetic",
        "chc.mapping.contents",
        "chc.mapping.horn",
        "chc.mapping.memory",
        "chc.mapping.program",
        "chc.mapping.sampling",
    },
    "chc.tensor_rules.kernel": set(),
    "chc.tensor_rules.normal_forms": {"chc.tensor_rules.kernel"},
    "chc.scalar_rules": set(),
    "chc.bijections": set(),
    "chc.translation": {"chc.bijections", "chc.scalar_rules"},
    "chc.token_order": set(),
    "ila_lang.language": set(),
    "ila_lang.text": {"ila_lang.language"},
    "ila_lang.interpreter": {"ila_lang.language"},
    "ila_lang.native": {"ila_lang.interpreter", "ila_lang.language"},
    "ila_lang.streams": {"ila_lang.interpreter", "ila_lang.language", "ila_lang.native"},
    "ir_semantics.scalars": set(),
    "ir_semantics.layers": set(),
    "ir_semantics.elements": {"ir_semantics.scalars", "ir_semantics.tensors"},
    "ir_semantics.mlir": {"ir_semantics.elements", "ir_semantics.scalars"},
    "ir_semantics.mlir.semantics.control": set(),
    "ir_semantics.mlir.semantics.tosa": set(),
    "rewrites.bounds": set(),
    "rewrites.egraph": set(),
    "rewrites.findings": {"rewrites.mappings"},
    "rewrites.mappings": set(),
    "rewrites.rules": set(),
    "rewrites.campaigns.mlir": set(),
    "rewrites.campaigns.accelerators": set(),
    "rewrites.campaigns": {"rewrites.bounds", "rewrites.claims", "rewrites.mappings"},
    "rewrites.claims": {"rewrites.bounds", "rewrites.mappings", "rewrites.rules"},
    "rewrites.compiler": {
        "rewrites.bounds",
        "rewrites.claims",
        "rewrites.egraph",
        "rewrites.mappings",
        "rewrites.rules",
    },
    "rewrites.targets": {
        "rewrites.bounds",
        "rewrites.campaigns",
        "rewrites.claims",
        "rewrites.compiler",
        "rewrites.egraph",
        "rewrites.mappings",
        "rewrites.rules",
    },
    "rewrites.bounds.kernel": set(),
    "rewrites.bounds.derivations": {"rewrites.bounds.kernel"},
    "rewrites.bounds.lemmas": {"rewrites.bounds.kernel"},
    "rewrites.compiler.graph_rules": set(),
    "rewrites.compiler.memory": set(),
    "rewrites.compiler.codegen": {"rewrites.compiler.memory"},
    "rewrites.compiler.composition": {"rewrites.compiler.codegen"},
    "rewrites.compiler.offload": {"rewrites.compiler.codegen", "rewrites.compiler.graph_rules"},
    "rewrites.compiler.artefact": {
        "rewrites.compiler.codegen",
        "rewrites.compiler.graph_rules",
        "rewrites.compiler.memory",
        "rewrites.compiler.offload",
    },
    "rewrites.mappings.flexasr": set(),
    "rewrites.mappings.hlscnn": set(),
    "rewrites.mappings.vta": set(),
    "rewrites.claims.joints": set(),
    "rewrites.claims.methods": set(),
    "rewrites.claims.theorems": {"rewrites.claims.joints"},
    "rewrites.claims.subjects": {"rewrites.claims.joints", "rewrites.claims.theorems"},
    "rewrites.targets.flexasr": set(),
    "rewrites.targets.hlscnn": set(),
    "rewrites.targets.vta": set(),
    "rewrites.rules.mlir": set(),
    "rewrites.rules.scalar": set(),
    "rewrites.rules.tensor": set(),
    "smt_encodings.solvers": set(),
    "smt_encodings.expressions": set(),
    "smt_encodings.interpretations": {"smt_encodings.expressions"},
    "reports.formats": set(),
    "reports.html": set(),
}
"""What each package may import of those beside it."""
FOLDERS = [name for name in MAY_IMPORT if "." not in name]
NO_PART_OF_THE_PRODUCT = {"benchmarks", "docs", "encodings", "examples", "tests"}
SOLVERS = ("cvc5", "z3")
WITHOUT_SOLVER = ("accel_models", "ila_lang", "ir_semantics")
MOST_LINES = 500


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name, whether it is a package's ``__init__``, what it imports, its length."""

    name: str
    is_package: bool
    imports: frozenset[str]
    lines: int

    @property
    def folder(self) -> str:
        return top(self.name)


def top(name: str) -> str:
    return name.partition(".")[0]


def apart(one: str, other: str) -> tuple[str, str]:
    """The names that stand beside each other where two dotted names part."""
    pairs = zip_longest(one.split("."), other.split("."), fillvalue="")
    common = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return ".".join(one.split(".")[: common + 1]), ".".join(other.split(".")[: common + 1])


def read_modules(root: Path) -> list[Module]:
    """Every module of the product under ``root``; imports of its own modules are named in full."""
    paths = {}
    for package in FOLDERS:
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
        modules.append(Module(name, path.name == "__init__.py", imports, len(text.splitlines())))
    return modules


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
    packages = MAY_IMPORT.keys() | NO_PART_OF_THE_PRODUCT | {module.name for module in modules if module.is_package}
    complaints = []
    for module in modules:
        for name in sorted(module.imports):
            importer, imported = apart(module.name, name)
            beside = importer != imported and importer.count(".") == imported.count(".")
            known = {importer, imported} <= packages
            if beside and known and imported not in MAY_IMPORT.get(importer, set()):
                complaints.append(f"{module.name} imports {name}")
    return complaints


def unstated(modules: list[Module]) -> set[str]:
    """Packages that stand beside others, for which MAY_IMPORT has no row, and rows of packages that are not there."""
    packages = {module.name for module in modules if module.is_package}
    parents = Counter(name.rpartition(".")[0] for name in packages)
    return {name for name in packages if parents[name.rpartition(".")[0]] > 1} ^ MAY_IMPORT.keys()


def circle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """The names along one circle, or nothing."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def circle_of_modules(modules: list[Module]) -> list[str]:
    """The modules along one circle of imports, or nothing."""
    names = {module.name for module in modules}
    return circle({module.name: module.imports & names for module in modules})


def circles_within_packages(modules: list[Module]) -> list[list[str]]:
    """A circle among the modules and packages beside each other in a package, for each package that has one."""
    beside: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in modules:
        for name in module.imports:
            importer, imported = apart(module.name, name)
            package = importer.rpartition(".")[0]
            if importer != imported and package == imported.rpartition(".")[0]:
                beside[package][importer].add(imported)
    return [found for package in sorted(beside) if (found := circle(beside[package]))]


def importers(modules: list[Module], library: str) -> list[str]:
    return [module.name for module in modules if library in map(top, module.imports)]


def solvers_too_low(modules: list[Module]) -> list[str]:
    low = [module for module in modules if module.folder in WITHOUT_SOLVER]
    return [f"{name} imports {library}" for library in (*SOLVERS, "pysmt") for name in importers(low, library)]


def too_long(modules: list[Module]) -> list[str]:
    return [f"{module.name}: {module.lines} lines" for module in modules if module.lines > MOST_LINES]


@pytest.fixture(scope="module")
def product() -> list[Module]:
    return read_modules(ROOT)


def test_every_package_is_read(product: list[Module]) -> None:
    found = {path.parent.name for root in (ROOT, ROOT / "encodings") for path in root.glob("*/__init__.py")}
    assert found - NO_PART_OF_THE_PRODUCT == set(FOLDERS)
    assert unstated(product) == set()


def test_packages_import_only_what_stands_below_them(product: list[Module]) -> None:
    assert circle(MAY_IMPORT) == []
    assert wrong_directions(product) == []


def test_no_circles(product: list[Module]) -> None:
    assert circle_of_modules(product) == []
    assert circles_within_packages(product) == []


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
        (
            "rewrites/egraph/a.py",
            "def f():\n    from rewrites.compiler import x",
            "rewrites.egraph.a imports rewrites.compiler",
        ),
        (
            "ir_semantics/graph/__init__.py",
            "if TYPE_CHECKING:\n    from ir_semantics.onnx.call import x",
            "ir_semantics.graph imports ir_semantics.onnx.call",
        ),
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
        "rewrites/a.py": "import bmc, chc, reports, rewrites.compiler",
        "rewrites/__init__.py": "from .egraph.b import x",
        "rewrites/compiler/__init__.py": "from rewrites.egraph.b import x",
        "rewrites/egraph/__init__.py": "from .b import x",
        "rewrites/egraph/b.py": "",
        "ilaverify/cli.py": "import rewrites, bmc",
    }
    modules = tree(tmp_path, files)
    assert wrong_directions(modules) == []
    assert circle_of_modules(modules) == []
    assert circles_within_packages(modules) == []
    assert solvers_too_low(modules) == []


def test_a_circle_of_modules_is_found(tmp_path: Path) -> None:
    files = {
        "bmc/__init__.py": "from .a import f",
        "bmc/a.py": "from bmc.parts import b",
        "bmc/parts/__init__.py": "",
        "bmc/parts/b.py": "from .. import g",
    }
    assert set(circle_of_modules(tree(tmp_path, files))) == {"bmc", "bmc.a", "bmc.parts.b"}


@pytest.mark.parametrize("late", ["if TYPE_CHECKING:\n    from bmc import a", "def f():\n    import bmc.a"])
def test_a_circle_of_late_imports_is_found(tmp_path: Path, late: str) -> None:
    modules = tree(tmp_path, {"bmc/a.py": "from bmc import b", "bmc/b.py": late})
    assert set(circle_of_modules(modules)) == {"bmc.a", "bmc.b"}


def test_a_circle_of_packages_is_found(tmp_path: Path) -> None:
    files = {
        "chc/a/__init__.py": "",
        "chc/a/below.py": "",
        "chc/a/above.py": "from chc.b import c",
        "chc/b/__init__.py": "",
        "chc/b/c.py": "def f():\n    from chc.a import below",
        "chc/d.py": "from chc.b import c",
    }
    modules = tree(tmp_path, files)
    assert circle_of_modules(modules) == []
    assert [set(names) for names in circles_within_packages(modules)] == [{"chc.a", "chc.b"}]
    assert {"chc.a", "chc.b"} <= unstated(modules)


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
