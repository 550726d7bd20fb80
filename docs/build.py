"""The hooks of mkdocs: files outside of docs/ that documents link to become pages, and tables are made from the code.

A link means the same in the repository and on the site: it is resolved between files of the repository, and a target
that does not exist is an error of the build.
"""

from __future__ import annotations

import argparse
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parents[1]
START = "README.md"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
FENCE = re.compile(r"^( *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- generated on the site: (\w+) -->")
ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):(?=<code>)")


class Doctests(Extension):
    """Sessions in docstrings are blocks of code; Markdown by itself takes ``>>>`` for a quotation in a quotation."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Puts fences around sessions before fences are looked for."""
        md.preprocessors.register(_Fences(md), "doctests", 28)


class _Fences(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        fenced_lines, fenced, session = list[str](), False, False
        for line in [*lines, ""]:
            fenced ^= line.lstrip().startswith("```")
            if session != (not fenced and (line.startswith(">>>") or (session and line != ""))):
                session = not session
                fenced_lines.append("```pycon" if session else "```")
            fenced_lines.append(line)
        return fenced_lines


def on_config(config: Any) -> Any:
    """Adds the sessions in docstrings."""
    config.markdown_extensions.append(Doctests())
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Adds a page for each file outside of docs/ that a document links to, from README.md on."""
    waiting, known = [START, "ARCHITECTURE.md", "CHANGELOG.md", "LIMITATIONS.md"], set[str]()
    waiting += [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    while waiting:
        path = waiting.pop()
        if path in known:
            continue
        known.add(path)
        if path.endswith(".svg"):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".md"):
            waiting += [target for target in links(path, text) if not target.startswith("docs/")]
        if not path.startswith("docs/"):
            files.append(outside(path, text, config))
    return files


def outside(path: str, text: str, config: Any) -> File:
    """The page of a file outside of docs/."""
    if not path.endswith(".md"):
        text = f"# {path}\n\n```{'python' if path.endswith('.py') else 'text'}\n{text}```\n"
    page = File.generated(config, page_of(path), content=text)
    if "/" in path or not path.endswith(".md"):
        page.inclusion = InclusionLevel.NOT_IN_NAV
    return page


def page_of(path: str) -> str:
    """The page that shows a file of the repository."""
    if path == START:
        return "index.md"
    inside = path.removeprefix("docs/")
    return inside if inside != path or path.endswith((".md", ".svg")) else f"{path}.md"


def prose(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a document; whether each is prose, not a block of code."""
    return ((i % 2 == 0, part) for i, part in enumerate(FENCE.split(text)))


def links(path: str, text: str) -> list[str]:
    """The files that a document links to; raises PluginError where one does not exist."""
    files = []
    for is_prose, part in prose(text):
        for target in LINK.findall(part) if is_prose else ():
            file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not (ROOT / file).is_file():
                raise PluginError(f"{path} links to {target}, which is no file")
            files.append(file)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Links between files of the repository become links between pages; what is generated is filled in."""
    here = page.file.src_uri
    path = START if here == "index.md" else here if page.file.generated_by else f"docs/{here}"

    def between_pages(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
        return posixpath.relpath(page_of(target), posixpath.dirname(here) or ".")

    def highlighted(block: str) -> str:
        return re.sub(r"```python(\n *>>>)", r"```pycon\1", block)

    parts = (LINK.sub(between_pages, part) if is_prose else highlighted(part) for is_prose, part in prose(markdown))
    return GENERATED.sub(lambda match: TABLES[match[1]](), "".join(parts))


def on_page_content(html: str, **_: Any) -> str:
    """Docstrings are written for pydoc; here a name's role is seen by its type face."""
    return ROLE.sub("", html)


def plain(words: str) -> str:
    """Words that Markdown takes as they are."""
    return re.sub(r"[&<>\[\]*_`|\\]", lambda match: f"&#{ord(match[0])};", words)


def commands() -> str:
    """The help of every verb."""
    from ilaverify.cli.commands import parser_of_commands

    parser = parser_of_commands()
    verbs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
    lines = []
    for name, verb in verbs.items():
        if getattr(verb, "late", None):
            verb.late()
        lines += [f"### {name}", "", "```text", verb.format_help().rstrip(), "```", ""]
    return "\n".join(lines)


def claims() -> str:
    """A table of the claims of each kind, and what every mapping says."""
    from ilaverify.catalogue import all_entries
    from reports.subjects import KINDS

    entries, lines = all_entries(), []
    for kind, what in KINDS.items():
        lines += [f"## {what[0].upper()}{what[1:]}", "", "| name | what it says | expected |", "|---|---|---|"]
        of_kind = {name: entry for name, entry in entries.items() if entry.kind == kind}
        lines += [f"| `{n}` | {plain(e.summary)} | {e.expected.value} |" for n, e in of_kind.items()]
        lines.append("")
    return "\n".join(lines)


def mappings() -> str:
    """What every mapping claims, for which sizes, and under which assumptions."""
    from ilaverify.catalogue import mappings

    lines = []
    for name, claim in mappings().items():
        mapping = claim.instantiate()
        lines += [f"### {name}", "", f"{plain(mapping.statement)}.", ""]
        lines += [f"* sizes: {', '.join(f'`{words}`' for words, _ in mapping.domain)}"]
        lines += [f"* assumed: {plain(words)}" for words in mapping.assumptions]
        lines.append("")
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {"claims": claims, "commands": commands, "mappings": mappings}
