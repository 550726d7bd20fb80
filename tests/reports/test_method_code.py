"""What counts as the code of a method, on packages of a few lines."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from reports.method_code import Code, parsed_text

FILES = {
    "a/__init__.py": "",
    "a/prove.py": "import os\nfrom . import laws\nfrom .deep.steps import step\n\ndef prove():\n    import b.late\n",
    "a/laws.py": '"""Laws."""\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import b.typing_only\n',
    "a/deep/__init__.py": "from .loaded import x\n",
    "a/deep/steps.py": "from ..up import thing\n",
    "a/deep/loaded.py": "x = 1\n",
    "a/up.py": "from importlib import import_module\nthing = import_module('b.by_name')\n",
    "a/compiler.py": "from . import prove\n",
    "b/__init__.py": "",
    "b/late.py": "", "b/typing_only.py": "", "b/by_name.py": "", "b/other.py": "import a.prove\n",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def code(root: Path) -> Code:
    return Code({"a": root / "a", "b": root / "b"})


def modules(root: Path) -> frozenset[str]:
    return code(root).modules("a.prove", within=("a", "b"))


def test_imports_are_followed_wherever_they_stand_unless_they_never_run(root: Path) -> None:
    assert modules(root) == {
        "a", "a.prove", "a.laws", "a.deep", "a.deep.steps", "a.deep.loaded", "a.up", "b", "b.late", "b.by_name",
    }  # fmt: skip


def test_packages_that_are_not_asked_for_are_not_followed(root: Path) -> None:
    assert code(root).modules("a.deep.steps", within=("a.deep",)) == {"a", "a.deep", "a.deep.steps", "a.deep.loaded"}


@pytest.mark.parametrize(
    ("file", "text", "stale"),
    [
        ("a/laws.py", "# a comment\n" + FILES["a/laws.py"].replace("Laws", "All the laws"), False),
        ("a/laws.py", FILES["a/laws.py"] + "\n\n\n", False),
        ("a/laws.py", FILES["a/laws.py"] + "x = 1\n", True),
        ("b/late.py", "x = 1\n", True),
        ("b/by_name.py", "x = 1\n", True),
        ("a/deep/__init__.py", "x = 2\n", True),
        ("a/compiler.py", "x = 1\n", False),
        ("b/other.py", "x = 1\n", False),
        ("b/typing_only.py", "x = 1\n", False),
    ],
)
def test_the_digest_is_of_the_methods_own_code(root: Path, file: str, text: str, stale: bool) -> None:
    before = code(root).digest(modules(root))
    (root / file).write_text(text)
    assert (code(root).digest(modules(root)) != before) is stale


def test_a_new_import_brings_its_module(root: Path) -> None:
    before = code(root).digest(modules(root))
    (root / "a" / "laws.py").write_text("import b.other\n")
    assert "b.other" in modules(root) and code(root).digest(modules(root)) != before


PROGRAM = """
def f(a, b=1, *c, d=None, **e):
    return {**e, "x": a if b else (c, ...), 'y': not d}, [x for x in c if x], f"{a!r:>3}", b"", 1.0, None
class C(D, metaclass=E):
    x: int = 0
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b=1", "b=2"), ("d=None", "d"), ("d=None", "d=0"),
        ("**e, ", ""), ("a if b", "b if a"), ("(c, ...)", "[c, ...]"),
        ("not d", "d"), ("if x]", "]"), (">3", ">4"), ("!r", "!s"), ('b""', '""'), ("1.0", "1"), (", None\n", "\n"),
        ("1.0, None", "None, 1.0"), ("x: int = 0", "x: int"), ("(D, ", "("), ("class C", "class F"), ("*c, ", "*, "),
    ],
)  # fmt: skip
def test_another_program_has_another_text(old: str, new: str) -> None:
    assert PROGRAM.count(old) >= 1
    assert parsed_text(ast.parse(PROGRAM)) != parsed_text(ast.parse(PROGRAM.replace(old, new, 1)))


def test_what_people_read_has_no_part_in_the_text() -> None:
    told = PROGRAM.replace("    return", '    """What f does."""\n    # why\n\n    return  ')
    told = f'"""A module."""\n{told}    """What x is."""\n'
    assert parsed_text(ast.parse(told)) == parsed_text(ast.parse(PROGRAM))
