"""``--module``: the verbs on a target that is not installed, from a folder outside of the repository."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ila_lang import extensions
from ila_lang.extensions import ExtensionError
from ilaverify.cli import main
from rewrites.mappings.claim import MappingClaim
from rewrites.targets.target import Model, Target

ROOT = Path(__file__).parents[3]
MODULES = ("my_rows", "my_rules", "faulty", "hides")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "examples/row_pairs.py", tmp_path / "my_rows.py")
    return tmp_path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command from the test's folder; no call knows the modules of the one before."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        importlib.invalidate_caches()
        with monkeypatch.context() as own:
            own.setattr(extensions, "_modules", [])
            own.setattr(sys, "path", list(sys.path))
            try:
                code = main(arguments)
            finally:
                for name in MODULES:
                    sys.modules.pop(name, None)
        return code, *capsys.readouterr()

    return call


def test_a_process_knows_a_module_of_its_folder(folder: Path) -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings")])}
    command = [sys.executable, "-m", "ilaverify", "show", "row_pairs", "--module", "my_rows"]
    out = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=folder).stdout
    assert out.startswith("ILA row_pairs")


def test_verbs_on_a_target_that_is_not_installed(folder: Path, run: Run) -> None:
    code, out, _ = run("list", "--json", "--module", "my_rows")
    listed = json.loads(out)
    assert code == 0 and listed["mappings"]["row_pairs"] == "saturating sums of pairs of rows on RowPairs"
    assert "row_pairs" in listed["models"] and "flexasr_maxpool" in listed["mappings"]
    code, out, err = run("prove", "row_pairs", "row_pairs_wraps", "--no-store", "-o", "proofs", "--module", "my_rows")
    assert code == 0, err
    assert out.endswith("1 PROVED, 1 REFUTED; all as expected\n")
    code, out, err = run("check", "proofs", "--module", "my_rows")
    assert code == 0, out + err
    code, out, err = run("check", "proofs/row_pairs.chc.cert.json")
    unknown = "  there is no claim named 'row_pairs' (see ilaverify list); a claim of your own is known with --module"
    assert code == 2 and unknown in out and out.endswith("0 accepted, 0 rejected, 1 undecided\n"), out + err
    store = {"write": 1, "address": "0x0", "data": "0xc8"}
    (folder / "program.json").write_text(json.dumps({"show": ["data_out"], "commands": [store, {"read": True}]}))
    assert run("simulate", "row_pairs", "program.json", "--module", "my_rows") == (
        0,
        "2 LOAD data_out=0x000000c8\n",
        "",
    )


def test_a_refutation_says_how_it_is_replayed(folder: Path, run: Run) -> None:
    code, out, _ = run("mapping", "row_pairs_wraps", "-o", "out", "--module", "my_rows")
    path = "out/row_pairs_wraps.counterexample-data.json"
    assert code == 1 and out.startswith("REFUTED  row_pairs_wraps  (chc, ")
    assert "\n  all other state is as at reset, or 0 where no reset value is given\n" in out
    assert f"replay    ilaverify check --module my_rows {path}\n" in out
    assert run("check", "--module", "my_rows", path)[0] == 0
    code, out, _ = run("check", path)
    assert (
        code == 2
        and out.startswith("UNDECIDED")
        and "a claim of your own is known with --module, or checked from Python" in out
    )


FAULTY = """
from rewrites.mappings.claim import MappingClaim
from rewrites.targets.target import Model, Target

TARGET = Target(
    "faulty",
    (Model("nothing", "builds nothing", lambda: None),),
    (MappingClaim("none", "builds nothing", lambda: None), MappingClaim("broken", "fails", lambda: {}["a"])),
)
"""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show", "nothing"), 64, "model nothing must be built as an Ila; its build gives None"),
        (("mapping", "none"), 64, "mapping none must be built as a TensorMapping; its build gives None"),
        (
            ("mapping", "broken"),
            64,
            "mapping broken cannot be built: KeyError: 'a' (FOLDER/faulty.py:8); correct it there",
        ),
    ],
)
def test_a_fault_of_a_package_is_not_called_ours(
    tmp_path: Path, arguments: tuple[str, ...], code: int, message: str, run: Run
) -> None:
    (tmp_path / "faulty.py").write_text(FAULTY)
    said = run(*arguments, "--module", "faulty")
    assert said == (code, "", f"ilaverify: {message.replace('FOLDER', str(tmp_path.resolve()))}\n")


OFFERS: dict[str, Callable[[], object]] = {
    "build of mapping m": lambda: MappingClaim("m", "", ()),  # type: ignore[arg-type]
    "build of model m": lambda: Model("m", "", ()),  # type: ignore[arg-type]
    "backend of target t": lambda: Target("t", (), backend=()),  # type: ignore[arg-type]
    "campaigns of target t": lambda: Target("t", (), campaigns=()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", OFFERS)
def test_what_is_built_later_is_given_as_a_function(what: str) -> None:
    with pytest.raises(ExtensionError) as refused:
        OFFERS[what]()
    assert str(refused.value) == f"{what} must be a function, such as lambda: VALUE, not ()"


def test_a_module_that_cannot_be_imported_is_named_with_its_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    (folder / "faulty.py").write_text(FAULTY.replace("lambda: {}", "{}"))
    monkeypatch.setenv("ILAVERIFY_TRACEBACK", "1")
    code, _, err = run("list", "--module", "faulty")
    line, _, trace = err.partition("\n")
    assert code == 64 and line == (
        f"ilaverify: module 'faulty' cannot be imported: KeyError: 'a' ({folder.resolve()}/faulty.py:8)"
    )
    assert trace.startswith("Traceback (most recent call last)") and trace.count(" in import_module\n") == 1


def test_a_target_without_a_backend_is_not_compiled_to(folder: Path, run: Run) -> None:
    (folder / "faulty.py").write_text(FAULTY)
    code, _, err = run("prove", "--target", "faulty", "--module", "faulty")
    assert (code, err) == (
        64,
        "ilaverify: --target must be different names of flexasr, hlscnn, vta, separated by commas, not 'faulty'; "
        "target faulty has no backend, so nothing is compiled for it\n",
    )


def test_a_target_with_another_name_is_asked_for(folder: Path, run: Run) -> None:
    assert run("prove", "--target", "vtaa")[2] == (
        "ilaverify: --target must be different names of flexasr, hlscnn, vta, separated by commas, not 'vtaa' "
        "(did you mean vta?)\n"
    )


def test_a_module_that_is_not_there(folder: Path, run: Run) -> None:
    assert run("list", "--module", "my_row") == (
        64,
        "",
        "ilaverify: module 'my_row' cannot be imported: ModuleNotFoundError: No module named 'my_row'; "
        f"it must be installed, on PYTHONPATH, or in the folder {folder.resolve()}\n",
    )


def test_a_mapping_has_one_name(folder: Path, run: Run) -> None:
    path = folder / "my_rows.py"
    path.write_text(path.read_text().replace('name="row_pairs_wraps"', 'name="another"'))
    code, _, err = run("mapping", "row_pairs_wraps", "--module", "my_rows")
    assert (code, err) == (
        64,
        "ilaverify: mapping row_pairs_wraps must be built with this name, not another; give it one name\n",
    )


RULES = """
from chc.tensor_rules.rule import Kind, TensorRule
from ir_semantics.tensors.operators import reverse
from ir_semantics.tensors.terms import input_
from rewrites.rules.rule_set import RuleSet
from rewrites.rules.tensor.words import sizes

N, M = sizes("n m")
X = input_("x", N, M)
MINE = RuleSet("mine", tensor=(
    TensorRule("rows reversed twice", reverse(reverse(X, 0), 0), X),
    TensorRule("rows reversed once", reverse(X, 0), X, kind=Kind.WRONG),
))
"""


def test_rules_of_a_module(tmp_path: Path, run: Run) -> None:
    (tmp_path / "my_rules.py").write_text(RULES)
    code, out, err = run("prove", "rows-reversed-twice", "rows-reversed-once", "--no-store", "--module", "my_rules")
    assert code == 0, out + err
    assert out.endswith("1 PROVED, 1 REFUTED; all as expected\n")
    _, out, _ = run("rule", "rows-reversed-twice", "--module", "my_rules")
    assert out.endswith(f"source    my_rules.py:{1 + RULES[: RULES.index('rows reversed twice')].count(chr(10))}\n")


def test_rules_that_have_the_name_of_another(tmp_path: Path, run: Run) -> None:
    (tmp_path / "my_rules.py").write_text(RULES.replace("rows reversed once", "transposed twice"))
    assert run("list", "rule", "--module", "my_rules") == (
        64,
        "",
        "ilaverify: two claims have the name transposed-twice, in rewrites/rules/tensor/matching.py and in "
        f"{tmp_path / 'my_rules.py'}; rename one of them\n",
    )


def test_a_rule_that_has_the_name_of_a_joint(tmp_path: Path, run: Run) -> None:
    """One of them would hide the other: a compiler could take the proof of the rule for that of the joint."""
    (tmp_path / "my_rules.py").write_text(RULES.replace("rows reversed once", "joint vta dense vta gemm"))
    assert run("list", "rule", "--module", "my_rules") == (
        64,
        "",
        "ilaverify: a joint and a rule have the name joint-vta-dense-vta-gemm; rename one\n",
    )


@pytest.mark.parametrize("verb", [("prove", "--no-store"), ("mapping",)])
def test_a_mapping_that_has_the_name_of_a_rule(verb: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    (tmp_path / "hides.py").write_text(
        "from rewrites.mappings.claim import MappingClaim\nfrom rewrites.targets.target import Target\n"
        "TARGET = Target('hides', (), (MappingClaim('transposed-twice', '', lambda: None),))\n"
    )
    assert run(*verb, "transposed-twice", "--module", "hides") == (
        64,
        "",
        "ilaverify: a mapping and a rule have the name transposed-twice; rename one\n",
    )
