"""How findings are shown, and the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewrites.findings import Finding, NotFound, section, updated
from rewrites.findings import __main__ as command
from rewrites.findings.finding import BEGIN, END, require

FINDING = Finding("one", "Title: of it", "a claim", "a way.", "1 | 2", "this", "REFUTED", "that", ("evidence",))
SECTION = """\
## Title: of it

**Claim** (refuted): a claim

**How it was found**: a way. Command: `python -m rewrites.findings one`.

**Smallest counterexample**: 1 | 2

evidence

**What holds**: this

**Status**: REFUTED

**What it does not mean**: that"""


def test_a_section() -> None:
    assert section(FINDING) == SECTION


def test_only_the_part_between_the_marks_changes() -> None:
    text = updated(f"before\n{BEGIN}\nold\n{END}\nafter\n", [FINDING])
    assert text.startswith(f"before\n{BEGIN}\n\n| finding |")
    assert text.endswith(f"{SECTION}\n\n{END}\nafter\n")
    assert "| [`one`](#title-of-it) | a claim | a way. | 1 \\| 2 | this | REFUTED |" in text
    assert "\nold\n" not in text
    assert updated(text, [FINDING]) == text


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}\n{BEGIN}"])
def test_a_document_without_marks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Document must contain the lines"):
        updated(text, [FINDING])


def test_require() -> None:
    require(True, "it")
    with pytest.raises(NotFound, match="it"):
        require(False, "it")


@pytest.fixture
def finders(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> Finding:
        raise NotFound("nothing was there")

    monkeypatch.setattr(command, "FINDERS", {"one": lambda: FINDING, "two": lost})


@pytest.mark.usefixtures("finders")
def test_what_is_found_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["one"]) == 0
    assert capsys.readouterr().out == SECTION + "\n\n"


@pytest.mark.usefixtures("finders")
def test_a_missing_finding_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main([]) == 1
    printed = capsys.readouterr()
    assert SECTION in printed.out
    assert printed.err == "two: NOT FOUND: nothing was there\n1 of 2 findings were not found\n"
    document = tmp_path / "findings.md"
    document.write_text(f"{BEGIN}\n{END}\n")
    assert command.main(["--write", str(document)]) == 1
    assert document.read_text() == f"{BEGIN}\n{END}\n"


def test_a_document_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "FINDERS", {"one": lambda: FINDING})
    document = tmp_path / "findings.md"
    document.write_text(f"{BEGIN}\n{END}\n")
    assert command.main(["--write", str(document)]) == 0
    assert SECTION in document.read_text()


@pytest.mark.usefixtures("finders")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["three"], "error: NAME must be one of one, two, not 'three'\n"),
        (["one", "--write", "x"], "error: --write takes all findings; leave out the names\n"),
        (["--write", "no/such"], "error: --write must name a document with the marks of this command, not no/such\n"),
        (["--read"], "error: unrecognized arguments: --read\n"),
    ],
)
def test_bad_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(arguments)
    assert stop.value.code == 64
    assert capsys.readouterr().err == message + "       see python -m rewrites.findings --help\n"


def test_a_document_without_marks_is_bad_usage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "FINDERS", {"one": lambda: FINDING})
    document = tmp_path / "findings.md"
    document.write_text("nothing")
    with pytest.raises(SystemExit) as stop:
        command.main(["--write", str(document)])
    assert stop.value.code == 64


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> Finding:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "FINDERS", {"one": lambda: FINDING, "two": interrupted})
    assert command.main([]) == 130
    assert capsys.readouterr() == (SECTION + "\n\n", "two: interrupted\n")
