"""A slip in the code of a mapping's author is bad input, with file and line; a fault of ours behind it stays ours."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ilaverify
from ila_lang import Kernel, extensions
from ilaverify.cli import main
from ilaverify.errors import InputError
from rewrites.claims.advice import advice_for

MODULE = """
from ila_lang import Fragment, Ila, Kernel, bv, const, mem, primitive, var
from rewrites.mappings.claim import MappingClaim
from rewrites.targets.target import Model, Target

def device():
    ila = Ila("chip")
    op, at = ila.input("op", 4), ila.input("at", 8)
    ila.memory("words", 8, 8)
    ila.instruction("GO").set_decode(op == 1)
    return ila

ILA, K = device(), Kernel("slip")
N, X = var("n", bv(8)), var("x", mem(8, 8))

@primitive(a=bv(8))
def same(a):
    return a

def program():
    return Fragment("slip", ILA, {"n": N}, {"x": X}, K)

def build():
    SLIP
    program()

TARGET = Target(
    "chip", (Model("chip", "", build),), (MappingClaim("slip", "", build),), campaigns=build
)
"""

SLIPS = {
    "a mistyped input": (
        "K.command(op=const(1, 4), att=const(0, 8))",
        "Input of chip must be one of op, at, not att (FILE:21, called at FILE:25)",
    ),
    "a wrong width": (
        "K.command(op=const(1, 5))", "Input op of chip must have sort bv4, not bv5 (FILE:21, called at FILE:25)",
    ),
    "a literal too wide": ("const(16, 4)", "Constant must fit in 4 bits unsigned, not 16 (FILE:24)"),
    "mixed sorts": (
        "N + const(1, 4)",
        "Operands of 'bvadd' must have the same sort, not bv8 (n) and bv4 (0x1) (FILE:24)",
    ),
    "a name twice": (
        "K.load('a', X, N); K.load('a', X, N)",
        "Name a must be introduced once in kernel slip, not twice; a function that is called twice takes the name as "
        "an argument, or numbers it (FILE:24)",
    ),
    "a foreign variable": (
        "K.store(X, N, var('z', bv(8)))",
        "Fragment slip must use only its parameters, tensors and device outputs, not z (FILE:21, called at FILE:25)",
    ),
    "a wrong type": (
        "K.command(op=1)",
        "Input op of a command in kernel slip must be an expression, such as const(4, 8) or true, not 1 (FILE:24)",
    ),
    "too many arguments": ("same(N, N)", "same must be given 1 arguments, not 2 (FILE:24)"),
    "too many arguments of ours": (
        "K.store(X, N, N, N)", "TypeError: Kernel.store() takes 4 positional arguments but 5 were given (FILE:24)",
    ),
    "bits beyond a word": ("N[8:0]", "Bits [8:0] must satisfy 0 <= lo <= hi < 8, the width of n (FILE:24)"),
    "a name of Python": ("M", "NameError: name 'M' is not defined (FILE:24)"),
}  # fmt: skip
"""A line of a build function, and what is said of it."""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(extensions, "_modules", [])

    def written(slip: str) -> Path:
        sys.modules.pop("slips", None)
        path = tmp_path.resolve() / "slips.py"
        path.write_text(MODULE.replace("SLIP", slip))
        importlib.invalidate_caches()
        return path

    return written


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_named_with_its_line(
    slip: str, write: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    line, words = SLIPS[slip]
    path = write(line)
    code = main(["mapping", "slip", "--module", "slips"])
    message = f"cannot be built: {words.replace('FILE', str(path))}; correct it there"
    assert (code, capsys.readouterr().err) == (64, f"ilaverify: mapping slip {message}\n")
    with pytest.raises(InputError) as refused:
        ilaverify.prove("slip")
    assert str(refused.value) == f"mapping slip {message}"


def test_every_verb_says_so(write: Callable[[str], Path], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write("N[8:0]")
    message = (
        f"cannot be built: Bits [8:0] must satisfy 0 <= lo <= hi < 8, the width of n ({path}:24); correct it there"
    )
    (tmp_path / "p.json").write_text(json.dumps({"show": [], "commands": []}))
    for command, what in {
        "show chip": "model chip",
        "simulate chip p.json": "model chip",
        "campaign any": "campaigns of target chip",
        "prove slip --store s": "mapping slip",
        "prove slip --no-store": "mapping slip",
    }.items():
        code = main([*command.split(), "--module", "slips"])
        said = capsys.readouterr()
        assert (code, f"{what} {message}\n" in said.out + said.err) == (64, True), said


@pytest.mark.parametrize("verb", ["mapping relu", "prove relu --no-store"])
def test_a_slip_in_sizes_of(verb: str, write: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    relu = (Path(__file__).parents[3] / "examples" / "relu.py").read_text()
    path = write("pass")
    path.write_text(relu.replace('{"n": columns}', '{"m": columns}'))
    line = relu[: relu.index("sizes_of=")].count("\n") + 1
    assert main([*verb.split(), "--module", "slips"]) == 64
    said = capsys.readouterr()
    assert (
        "sizes_of of mapping relu must give n for input 1x1, or raise SizeError; it gives {'m': 1} "
        f"({path}:{line}); correct it there\n" in said.out + said.err
    )


@pytest.mark.parametrize("error", [AttributeError, AssertionError, RuntimeError])
def test_a_fault_of_ours_behind_an_author_is_ours(
    error: type[Exception], write: Callable[[str], Path], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = write("K.let('a', N)")
    broken = compile(f"def let(*_):\n    raise {error.__name__}('of ours')", "kernel.py", "exec")
    names = dict(vars(sys.modules[Kernel.__module__]))
    exec(broken, names)
    monkeypatch.setattr(Kernel, "let", names["let"])
    assert main(["mapping", "slip", "--module", "slips"]) == 2
    said = capsys.readouterr().err
    assert (
        f"failed by {error.__name__}: of ours, called at {path}:24 (kernel.py:2); this is a fault of ilaverify" in said
    )


def test_what_python_refuses_in_our_code_is_ours(
    write: Callable[[str], Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TypeError, as of a slip, but none that our code raises."""
    write("K.let('a', N)")
    monkeypatch.setattr(Kernel, "_fresh", None)
    assert main(["mapping", "slip", "--module", "slips"]) == 2
    assert "this is a fault of ilaverify" in capsys.readouterr().err


def test_a_list_of_verdicts_has_the_advice_that_one_verdict_has() -> None:
    from ilaverify.cli.outcomes import show_outcome
    from reports.outcomes import ProofOutcome

    reason = "the device folds 0 loops where the IR folds 1"
    shown = show_outcome(ProofOutcome("a", "UNKNOWN", reason=reason), 1)
    assert shown.splitlines()[2] == f"         advice: {advice_for(reason)}"
    assert "advice" not in show_outcome(ProofOutcome("a", "ERROR", reason=reason), 1)
