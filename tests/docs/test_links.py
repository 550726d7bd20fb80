"""What the documents point to exists: files behind relative links, names of code, command lines of `ilaverify`."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import ilaverify
from ilaverify.cli.commands import parser_of_commands

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"^\s*ilaverify (?P<line>.*)$|`ilaverify (?P<code>[^`]*)`", re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The arguments of every quoted command line; a lone verb in running text is only named, not quoted."""
    found = [shlex.split(m["line"] or m["code"], comments=True) for m in COMMAND.finditer(text)]
    return [arguments for arguments in found if len(arguments) > 1 or arguments == ["list"]]


def test_the_documents_are_found() -> None:
    names = {d.name for d in DOCUMENTS}
    assert {"README.md", "ARCHITECTURE.md", "LIMITATIONS.md", "row_pairs.md", "concepts.md"} <= names


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.stem)
def test_relative_links_resolve(document: Path) -> None:
    targets = [t.split("#")[0] for t in LINK.findall(document.read_text(encoding="utf-8")) if ":" not in t]
    assert [t for t in targets if t and not (document.parent / t).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.stem)
def test_quoted_commands_parse(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilaverify.cli.commands.use_module", lambda name: None)  # tutorials name modules of examples
    for arguments in commands(document.read_text(encoding="utf-8")):
        parser_of_commands().parse_args(arguments)


ROOMS = ("ila_lang", "ir_semantics", "accel_models", "smt_encodings", "chc", "bmc", "reports", "rewrites", "ilaverify")
NAME = re.compile(rf"(?<![\w.])(?:{'|'.join(ROOMS)})(?:\.\w+)+\b(?!/)")
FENCED = re.compile(r"```.*?```", re.DOTALL)


def named(name: str) -> object:
    """What a dotted name is of, as Python finds it after an import of the modules in it that code would import."""
    module, *rest = name.split(".")
    thing: object = importlib.import_module(module)
    for part in rest:
        module = f"{module}.{part}"
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module(module)
    return thing


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.stem != "CHANGELOG"], ids=lambda d: d.stem)
def test_paths_in_running_text_are_there(document: Path) -> None:
    """Paths below `ilaverify/` are those of a user's cache."""
    path = re.compile(rf"`((?:{'|'.join(room for room in ROOMS if room != 'ilaverify')})/[\w/.*-]+)`")
    paths = path.findall(document.read_text(encoding="utf-8"))
    assert [p for p in paths if not any((*ROOT.glob(p), *ROOT.glob(f"{p}.py"), *ROOT.glob(f"encodings/{p}")))] == []


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.stem != "CHANGELOG"], ids=lambda d: d.stem)
def test_names_in_running_text_are_those_of_code(document: Path) -> None:
    """A changelog speaks of names as they were; blocks of code are run by other tests; calls in running text bind."""
    doors, texts = entry_points().groups, re.findall(r"`([^`]+)`", FENCED.sub("", document.read_text(encoding="utf-8")))
    for text in texts:
        for name in NAME.findall(text):
            if name not in doors and not name.endswith(".py"):
                named(name)
        if not re.search(r"\bilaverify\.\w[\w.]*\(", text):
            continue
        for call in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)):
            package, _, verb = ast.unparse(call.func).partition(".")
            if package == "ilaverify":
                assert verb in ilaverify.__all__, text  # another name is none of the package until it is imported
                words = {keyword.arg: None for keyword in call.keywords if keyword.arg}
                inspect.signature(getattr(ilaverify, verb)).bind(*call.args, **words)


def test_the_page_of_commands_quotes_all() -> None:
    verbs = {c[0] for c in commands((ROOT / "docs/reference/commands.md").read_text(encoding="utf-8"))}
    named = "list show mapping check simulate campaign prove report rule tv compile run new"
    assert verbs == set(named.split())
