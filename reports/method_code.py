"""The code of a proof: the modules of its method, and a digest of their content.

A proof begins with a few functions (:meth:`~reports.subjects.Subject.provers`).  Its method's modules are theirs, and
all that these import in our packages, transitively: imports inside functions count, those under TYPE_CHECKING do not,
for they never run.  Around the functions there are subjects, which pass verdicts on; of what these import only other
modules of the same packages (GLUE) are followed, so that one method does not depend on others in its package.

A function may be of another package, as those of a plug-in's method are.  Then all that the package's modules import of
it, and of ours, counts likewise; what they import of third packages does not, for these have versions of their own.

What counts of a module is its parsed text, without comments, docstrings and blanks (:func:`parsed_text`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = (
    "ila_lang", "ir_semantics", "accel_models", "smt_encodings", "bmc", "chc", "reports", "rewrites", "ilaverify",
)  # fmt: skip
"""Our packages: other imports have versions of their own."""

GLUE = ("ilaverify", "reports", "rewrites.claims")
"""Packages whose modules pass on the results of provers; none of them proves anything."""


class Code:
    """The modules below source folders, each found and read once: ``roots`` are the folders of packages by name."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self._roots = dict(roots)
        self._paths: dict[str, Path | None] = {}
        self._parsed: dict[str, tuple[str, frozenset[str]]] = {}
        self._imports: dict[tuple[tuple[str, ...], tuple[str, ...]], frozenset[str]] = {}

    def of_method(self, functions: Iterable[Callable[..., Any]], subject: type) -> frozenset[str]:
        """The modules of proofs that begin with ``functions``, as subjects of a class call them."""
        modules = [f.__module__ for f in functions]
        guests = {name.partition(".")[0] for name in modules} - self._roots.keys()
        found = {name: root for name in guests if (root := _root(name))}
        if found:
            self._roots |= found
            self._imports.clear()
        for name in modules:
            if self.path(name) is None:
                raise ValueError(f"the code of a method must be in files of modules; {name} is in none that is found")
        provers = self.modules(*modules, within=(*PACKAGES, *guests))
        classes = (c.__module__ for c in subject.__mro__)
        return provers | self.modules(*(name for name in classes if self.path(name)), within=GLUE)

    def modules(self, *names: str, within: Iterable[str] = PACKAGES) -> frozenset[str]:
        """These modules and what they import, transitively, as far as it lies in packages of ``within``.

        The packages around a module are loaded with it, and count as what it imports.
        """
        inside = tuple(within)
        if (names, inside) not in self._imports:
            self._imports[names, inside] = self._found(names, inside)
        return self._imports[names, inside]

    def _found(self, names: tuple[str, ...], inside: tuple[str, ...]) -> frozenset[str]:
        modules: set[str] = set()
        left = list(names)
        while left:
            parts = left.pop().split(".")
            for name in (".".join(parts[: k + 1]) for k in range(len(parts))):
                if name not in modules and _lies_in(name, inside) and self.path(name) is not None:
                    modules.add(name)
                    left += self._read(name)[1]
        return frozenset(modules)

    def digest(self, names: Iterable[str]) -> str:
        """SHA-256 of modules' names and content."""
        digest = hashlib.sha256()
        for name in sorted(names):
            digest.update(f"{name} {self._read(name)[0]}\n".encode())
        return digest.hexdigest()

    def path(self, name: str) -> Path | None:
        """The file of a module; None where it is no module of the packages."""
        if name not in self._paths:
            package, *rest = name.split(".")
            paths: tuple[Path, ...] = ()
            if package in self._roots:
                place = self._roots[package].joinpath(*rest)
                paths = (place / "__init__.py", place.with_name(f"{place.name}.py"))
            self._paths[name] = next((path for path in paths if path.is_file()), None)
        return self._paths[name]

    def _read(self, name: str) -> tuple[str, frozenset[str]]:
        """The digest of a module's text, and the names of modules that it imports."""
        if name not in self._parsed:
            path = self.path(name)
            assert path is not None, name
            tree = ast.parse(path.read_bytes())
            package = name if path.stem == "__init__" else name.rpartition(".")[0]
            imports = frozenset(self._imported(tree, package))
            self._parsed[name] = hashlib.sha256(parsed_text(tree).encode()).hexdigest(), imports
        return self._parsed[name]

    def _imported(self, tree: ast.AST, package: str) -> Iterator[str]:
        for node in _that_runs(tree):
            match node:
                case ast.Import(names=names):
                    yield from (alias.name for alias in names)
                case ast.ImportFrom(module=module, names=names, level=level):
                    parents = package.split(".")[: package.count(".") + 2 - level] if level else []
                    origin = ".".join([*parents, *([module] if module else [])])
                    for alias in names:
                        part = f"{origin}.{alias.name}"
                        yield origin if self.path(part) is None else part
                case ast.Call(
                    func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                    args=[ast.Constant(value=str(name)), *_],
                ):
                    yield name


def _lies_in(name: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is in one of the packages, or a package around one."""
    return any(f"{name}.".startswith(f"{p}.") or p.startswith(f"{name}.") for p in packages)


def _that_runs(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, without what is only for type checkers."""
    left = [tree]
    while left:
        node = left.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                left += node.orelse
            case _:
                yield node
                left += ast.iter_child_nodes(node)


def parsed_text(node: object) -> str:
    """A syntax tree as text, without places, docstrings and other statements that are a text alone.

    Two trees have one text only where they are one program.  Fields that are missing, or are empty lists, are left
    out, so that a version of Python that adds such a field to its trees changes no text.
    """
    if isinstance(node, ast.AST):
        parts = []
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name != "ctx":  # which follows from the place
                parts.append(f"{name}={parsed_text(value)}")
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        return f"[{','.join([parsed_text(part) for part in node if not _text_alone(part)])}]"
    return repr(node)


def _text_alone(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def installed() -> Code:
    """The code of the packages that this process uses, as the files were when they were first asked for."""
    return Code({name: root for name in PACKAGES if (root := _root(name))})


def _root(name: str) -> Path | None:
    """The folder of a package, or the folder of a single-file module; without loading it."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        return Path(folder)
    return Path(spec.origin).with_suffix("") if spec.origin else None
