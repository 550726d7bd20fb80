"""What the documents point to exists: files behind relative links, and command lines of `ilaverify`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

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


def test_the_page_of_commands_quotes_all() -> None:
    verbs = {c[0] for c in commands((ROOT / "docs/reference/commands.md").read_text(encoding="utf-8"))}
    named = "list show mapping check simulate campaign prove report rule compile run new"
    assert verbs == set(named.split())
