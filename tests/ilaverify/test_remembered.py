"""Runs under the same files: what is remembered of a run, and what keeps it from being remembered or believed."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import pytest

from ilaverify import remembered
from ilaverify.remembered import Files, files_before_claims, files_now, recall, remember, steady
from reports.outcomes import ProofOutcome
from reports.store import CERTIFICATE, COUNTEREXAMPLE, ProofStore

TIMESTAMP, CHECKED, UNCHECKED = (PycInvalidationMode[name] for name in ("TIMESTAMP", "CHECKED_HASH", "UNCHECKED_HASH"))
ROOT = Path(__file__).parents[2]
PACKAGES = ("ila_lang", "ir_semantics", "accel_models", "encodings", "bmc", "chc", "reports", "rewrites", "ilaverify")

MAIN = """
import sys
from pathlib import Path
from ilaverify import catalogue, remembered
remembered.MARGIN = 0.0  # the copy of the packages is new
known = catalogue.all_entries
def some():
    {meanwhile}
    return {{name: entry for name, entry in known().items() if name in ("lemma-decode", "f1")}}
catalogue.all_entries = some
from ilaverify.cli import main
sys.exit(main(["prove", "--all", "--json", "--jobs", "1", "--store", *sys.argv[1:]]))
"""


def slow(*values: str) -> Any:
    """Parameters of a test that is one of many alike."""
    return pytest.param(*values, marks=pytest.mark.slow)


LOOKS_UP = "raise SystemExit('claims are looked up')"


def run(tree: Path, store: Path, meanwhile: str = "pass", first: str = "") -> subprocess.CompletedProcess[str]:
    """``prove --all`` with two claims, from a copy of the packages; it does something before it loads the claims."""
    paths = os.pathsep.join((str(tree), str(tree / "encodings")))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", first + MAIN.format(meanwhile=meanwhile), str(store)],
        capture_output=True, text=True, env=environment, cwd=tree, check=False,
    )  # fmt: skip


def recalled(tree: Path, store: Path) -> bool:
    """Whether a run takes all answers from the store without loading what claims are made of."""
    done = run(tree, store, LOOKS_UP)
    if "claims are looked up" in done.stderr:
        return False
    assert done.returncode == 0, done.stderr
    return True


def copied(source: Path, tree: Path) -> None:
    """Copies the packages, and waits until a process that begins is younger than the files for certain."""
    for name in PACKAGES:
        shutil.copytree(source / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    time.sleep(0.2)


def forget(store: Path) -> None:
    """Leaves the proofs, and nothing of runs."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("DELETE FROM runs")
        connection.commit()


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A copy of the packages, and a store after a run from it."""
    directory = tmp_path_factory.mktemp("remembered")
    tree, store = directory / "tree", directory / "store"
    copied(ROOT, tree)
    done = run(tree, store)
    assert done.returncode == 0, done.stderr
    return tree, store


@pytest.fixture
def store(proved: tuple[Path, Path], tmp_path: Path) -> Path:
    """A store of one's own."""
    return Path(shutil.copy(proved[1], tmp_path / "store"))


def test_an_unchanged_run_says_what_looking_everything_up_says(proved: tuple[Path, Path], store: Path) -> None:
    again = run(proved[0], store, LOOKS_UP)
    assert again.returncode == 0, again.stderr
    assert [(c["name"], c["status"], c["origin"]) for c in json.loads(again.stdout)["claims"]] == [
        ("f1", "REFUTED", "from store"),
        ("lemma-decode", "PROVED", "from store"),
    ]
    forget(store)
    assert run(proved[0], store).stdout == again.stdout
    assert recalled(proved[0], store)  # and remembers it again


@pytest.mark.parametrize(
    "name",
    [
        "rewrites/rules/scalar/floats.py",
        slow("reports/html/templates/style.css"),
        slow("encodings/smt_encodings/new.py"),
    ],
)
def test_any_other_byte_in_the_packages_is_another_run(
    name: str, proved: tuple[Path, Path], store: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    for package in PACKAGES:  # links to the files' folders: other paths, the same bytes
        shutil.copytree(proved[0] / package, tree / package, copy_function=os.link)
    assert recalled(tree, store)
    path = tree / name
    text = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    path.write_text(text + "\n")
    assert not recalled(tree, store)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE proofs SET text = text || ' ' WHERE kind = 'certificate'",
        slow("UPDATE proofs SET text = text || ' ' WHERE kind = 'counterexample'"),
        slow("UPDATE proofs SET kind = 'counterexample'"),
        "DELETE FROM proofs WHERE subject = 'f1'",
        slow("UPDATE runs SET text = 'x'"),
        slow("UPDATE runs SET text = '[]'"),
        "UPDATE runs SET text = '[[1, 2, 3]]'",
        slow("UPDATE runs SET digest = 'x'"),
        slow("DROP TABLE runs"),
    ],
)
def test_a_changed_store_is_looked_up(change: str, proved: tuple[Path, Path], store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute(change).rowcount or "DROP" in change
        connection.commit()
    assert not recalled(proved[0], store)


@pytest.mark.parametrize(
    ("meanwhile", "first"),
    [
        ("path = Path('chc/scalar_rules/rule.py'); path.write_text(path.read_text() + '# later')", ""),
        slow("Path('chc/scalar_rules/rule.py').touch()", ""),
        ("pass", "import rewrites\n"),  # it may be older than the files
    ],
)
def test_a_run_whose_code_may_differ_from_the_files_is_not_remembered(
    meanwhile: str, first: str, proved: tuple[Path, Path], store: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    copied(proved[0], tree)
    forget(store)
    assert run(tree, store, meanwhile, first).returncode == 0
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)


def test_this_process_has_loaded_claims() -> None:
    import_module("rewrites")
    assert files_before_claims() is None


# -- in this process, on packages that are not there ------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the one package that is looked at."""
    folder = tmp_path / "a_package_of_a_test"
    (folder / "part").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "part" / "x.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(remembered, "_PACKAGES", ("a_package_of_a_test",))
    return folder


def digest() -> str:
    found = files_now()
    assert found is not None
    return found.digest


def test_the_digest_is_of_names_bytes_and_versions(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = digest()
    assert first == digest()
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert first == digest()
    (package / "part" / "x.py").write_text("x = 2\n")
    changed = digest()
    (package / "part" / "x.py").rename(package / "x.py")
    moved = digest()
    (package / "data").write_text("")
    more = digest()
    monkeypatch.setattr(remembered, "version", lambda name: f"{name} of another version")
    assert len({first, changed, moved, more, digest()}) == 5


def test_without_files_or_what_they_use_there_is_no_digest(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_USED", ("no distribution of this name",))
    assert files_now() is None
    monkeypatch.setattr(remembered, "_USED", ())
    (package / "__init__.py").unlink()
    monkeypatch.setattr(remembered, "_PACKAGES", ("a_package_that_is_missing",))
    assert files_now() is None


def test_files_that_changed_late_are_not_steady(package: Path) -> None:
    found, now = files_now(), time.time()
    assert found is not None
    assert steady(found, now + 60) and not steady(found, now - 60) and not steady(found, now)


def test_what_python_may_have_compiled_from_another_text_is_not_steady(package: Path) -> None:
    source = package / "part" / "x.py"
    compiled = Path(importlib.util.cache_from_source(str(source)))

    def steady_with(made: float, mode: PycInvalidationMode = TIMESTAMP) -> bool:
        py_compile.compile(str(source), invalidation_mode=mode)
        os.utime(compiled, (made, made))
        found = files_now()
        assert found is not None
        return steady(found, time.time() + 60)

    second = int(source.stat().st_mtime)
    assert not steady_with(second + 0.9) and not steady_with(second - 60) and steady_with(second + 1)
    assert steady_with(second, CHECKED) and not steady_with(second + 1, UNCHECKED)
    assert not steady_with(second)
    compiled.write_bytes(compiled.read_bytes()[:8] + bytes(8))  # of another second and size: Python does not load it
    found = files_now()
    assert found is not None and steady(found, time.time() + 60)
    steady_with(second)
    compiled.write_bytes(bytes(4) + compiled.read_bytes()[4:])  # of another version of Python
    assert steady(found, time.time() + 60)
    os.truncate(compiled, 10)
    assert steady(found, time.time() + 60)


def test_a_time_set_back_does_not_hide_a_change(package: Path) -> None:
    os.utime(package / "part" / "x.py", (0, 0))
    found = files_now()
    assert found is not None and not steady(found, time.time())


ANSWERED = [
    ProofOutcome("a", "PROVED", from_store=True, key="k1", document="certificate", solvers=("z3",), notes=("n",)),
    ProofOutcome("b", "REFUTED", "REFUTED", from_store=True, key="k2", document="values", counterexample="x = 1"),
]


def filled(path: Path) -> ProofStore:
    store = ProofStore(path / "s")
    store.put("k1", CERTIFICATE, "a", "certificate")
    store.put("k2", COUNTEREXAMPLE, "b", "values")
    return store


def test_outcomes_come_back_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, files = filled(tmp_path), Files("d", ())
    monkeypatch.setattr(remembered, "unchanged", lambda files: True)
    assert recall(store, files) is None
    assert remember(store, files, ANSWERED)
    assert recall(store, files) == ANSWERED and recall(store, Files("e", ())) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda o: ProofOutcome("a", "UNKNOWN", from_store=True, key="k1", document="certificate"),
        lambda o: ProofOutcome("a", "PROVED", from_store=False, key="k1", document="certificate"),
        lambda o: ProofOutcome("a", "PROVED", from_store=True, document="certificate"),
        lambda o: ProofOutcome("a", "PROVED", from_store=True, key="k1"),
    ],
)
def test_only_a_run_with_all_answers_from_the_store_is_remembered(
    spoil: Callable[[ProofOutcome], ProofOutcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, files = filled(tmp_path), Files("d", ())
    monkeypatch.setattr(remembered, "unchanged", lambda files: True)
    assert not remember(store, files, [spoil(ANSWERED[0]), ANSWERED[1]]) and not remember(store, files, [])
    assert recall(store, files) is None


def test_files_that_are_others_by_now_are_not_remembered(tmp_path: Path, package: Path) -> None:
    store = filled(tmp_path)
    assert not remember(store, Files("d", ()), ANSWERED) and recall(store, Files("d", ())) is None
