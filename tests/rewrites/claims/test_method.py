"""The door for methods: what a method must be, and one of a module that is named, from its proof to its check."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ila_lang import extensions
from ila_lang.extensions import use_module
from ilaverify import cli
from ilaverify.identity import prover_identity
from reports.subjects import Subject
from rewrites.claims.method import METHODS, Method, Parameter
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.claims.verify import verify
from smt_encodings.claims import Status
from tests.chc.mapping.toy import copy_body, mapping

GUEST = """
from bmc.prove import claim_at, prove as unrolled
from rewrites.claims.method import Method, Parameter
from smt_encodings.claims import Status

def claim(mapping, parameters):
    return claim_at(mapping, mapping.sizes_for((2, parameters["width"])), None, ())

def prove(mapping, parameters, discharger):
    verdict = unrolled(mapping, (2, parameters["width"]), discharger=discharger, search_seconds=0)
    verdict.method, verdict.details["package"] = "chc", ""
    if parameters["width"] == 32:
        verdict.status = Status.REFUTED
    return verdict

def regenerate(mapping, parameters, invariants, discharger):
    return prove(mapping, parameters, discharger)

WIDE = Method("wide", "two rows", "of other rows", claim, prove, regenerate,
              (Parameter("width", "COLUMNS", "the columns", int),
               Parameter.choice("speed", "how fast", "slow", "fast")))
"""


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a module with a method."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extensions, "_modules", [])
    monkeypatch.delitem(sys.modules, "guest_method", raising=False)
    (tmp_path / "guest_method.py").write_text(GUEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_methods_of_this_distribution_come_in_by_the_door() -> None:
    assert list(METHODS.all()) == ["bmc", "chc", "hash"]
    assert [METHODS.guest(name) for name in METHODS.all()] == ["", "", ""]


@pytest.mark.proof
def test_a_method_of_a_module_proves_and_its_certificate_is_checked(
    guest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ["--module", "guest_method"]
    assert cli.main(["mapping", "flexasr_maxpool", *named, "--method", "wide", "--width", "16", "-o", "out"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("PROVED  flexasr_maxpool  (wide of module guest_method, ")
    path = Path("out/flexasr_maxpool.wide.16.cert.json")
    assert f"written   {path}\n" in out
    content = json.loads(path.read_text())
    assert (content["method"], content["parameters"]) == ("wide", {"width": 16, "speed": "slow"})
    assert content["tool"].endswith(" of module guest_method") and content["runs"]["count"] > 0
    extensions._modules.clear()
    assert cli.main(["check", *named, str(path)]) == 0
    out = capsys.readouterr().out
    assert out.endswith("1 accepted, 0 rejected\n")
    assert "  method wide of module guest_method says what must be proved, and is trusted for that\n" in out
    extensions._modules.clear()
    assert cli.main(["check", str(path)]) == 1
    assert "flexasr_maxpool is not proved by the method 'wide'" in capsys.readouterr().out


@pytest.mark.proof
def test_what_is_not_left_to_a_method(guest: Path) -> None:
    """What it says is under its own name, and REFUTED is not said without a counterexample."""
    use_module("guest_method")
    claim = mapping(copy_body, copy_body)
    verdict = verify(claim, "wide", width=32)
    assert (verdict.status, verdict.reason, verdict.method) == (
        Status.ERROR, "REFUTED needs a counterexample that replays; it has none", "wide",
    )  # fmt: skip
    proved = verify(claim, "wide", width=4, speed=None)
    assert proved.status is Status.PROVED and proved.runs is not None and proved.method == "wide"
    assert proved.details["package"] == "module guest_method"


def test_a_certificate_names_the_code_of_the_package(guest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_module("guest_method")
    subject: Subject = MappingSubject(mapping(copy_body, copy_body))

    def identity() -> dict[str, str]:
        from reports.method_code import installed

        installed.cache_clear()
        return prover_identity(subject, "wide")

    first = identity()
    assert first["package"] == "module guest_method" and "package" not in prover_identity(subject, "bmc")
    assert first["method"] != prover_identity(subject, "bmc")["method"]
    (guest / "guest_method.py").write_text(f"{GUEST}\n# a comment")
    assert identity() == first
    (guest / "guest_method.py").write_text(f"{GUEST}\nx = 1")
    assert identity()["method"] != first["method"]
    (guest / "guest_method.py").unlink()
    with pytest.raises(ValueError) as lost:
        identity()
    assert str(lost.value) == "the code of a method must be in files of modules; guest_method is in none that is found"


def test_help_and_messages_name_all_methods(guest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["mapping", "--module", "guest_method", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "--method auto|bmc|chc|hash|wide" in told and "wide: two rows; default: auto" in told
    assert "--width COLUMNS wide: the columns" in told and "--shape 16x64 bmc and hash: the shape;" in told
    for arguments, message in (
        ("--method wide", "--method wide must be given a width, e.g. COLUMNS"),
        ("--method wide --shape 2x16", "--method wide has no parameter shape; leave it out, or use method bmc or hash"),
        ("--method wide --width x", "--width invalid literal for int() with base 10: 'x'"),
        ("--method wide --width 8 --speed no", "--speed must be one of slow, fast, not 'no'"),
        ("--width 4", "--method chc has no parameter width; leave it out, or use method wide"),
    ):
        assert cli.main(["mapping", "flexasr_maxpool", *arguments.split()]) == 64
        assert capsys.readouterr().err == f"ilaverify: {message}\n"


FREE = "must be free, and of a-z, 0-9 and _, not"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: Method("auto", "", "", f, f, f), f"the name of a method {FREE} 'auto'"),
        (lambda f: Method("a b", "", "", f, f, f), f"the name of a method {FREE} 'a b'"),
        (
            lambda f: Method("a", "", "", f, f, print),
            "method a must consist of functions, not <built-in function print>",
        ),
        (lambda f: Parameter("json", "", ""), f"the name of a parameter {FREE} 'json'"),
    ],
)
def test_what_a_method_must_be(make: Callable[[Callable[..., Any]], object], message: str) -> None:
    with pytest.raises(ValueError) as wrong:
        make(lambda *_: None)
    assert str(wrong.value) == message
