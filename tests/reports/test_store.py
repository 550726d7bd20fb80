"""The proof store: keys, round trips, damage, killed writers, two processes at once."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reports.certificate import SCHEMA, CertificateError, certificate_text, content_digest, parse_certificate
from reports.store import (
    CERTIFICATE,
    COUNTEREXAMPLE,
    ProofStore,
    StoreError,
    certificate_problems,
    default_store,
    proof_key,
)

FORK = multiprocessing.get_context("fork")
SEMANTICS = {"device": "d", "ir": "i", "relation": "r"}
CLAIM = {
    "subject": "toy", "statement": "a is a", "size_domain": "all", "compared": "", "equality": "bit_exact",
    "interpretations": ["bits"], "assumptions": [],
}  # fmt: skip
PROVER = {"tool": "1", "sources": "s", "solvers": "z"}


def certificate(**changes: Any) -> dict[str, Any]:
    answers = [{"solver": s, "status": "unsat", "seconds": 0.1} for s in ("z3 1", "cvc5 1")]
    obligation = {
        "group": "g", "name": "n", "meaning": "m", "expected": "unsat", "smtlib": "(check-sat)\n", "answers": answers,
    }  # fmt: skip
    content: dict[str, Any] = {
        "schema": SCHEMA, "tool": "ilaverify 1, method 0", "method": "chc", "parameters": {}, "claim": CLAIM,
        "semantics": SEMANTICS, "obligations": [obligation], "enumerations": [], "invariants": {},
        "derivation": {}, "runs": {"count": 3, "at": ["T = 2"], "notes": []}, "seconds": 1.5,
    }  # fmt: skip
    content |= changes
    content["digest"] = content_digest(content)
    return content


@pytest.fixture
def store(tmp_path: Path) -> ProofStore:
    return ProofStore(tmp_path / "deep" / "proofs.sqlite3")


# -- keys ---------------------------------------------------------------------------------------------


def test_the_key_depends_on_everything() -> None:
    parts: list[Any] = [SEMANTICS, CLAIM, "chc", {}, PROVER]
    keys = {proof_key(*parts)}
    assert keys == {proof_key(*parts)}
    changed: list[tuple[int, Any]] = [(2, "bmc"), (3, {"shape": [2, 16]})]
    changed += [(0, {**SEMANTICS, name: "x"}) for name in SEMANTICS]
    changed += [(1, {**CLAIM, name: "x"}) for name in CLAIM]
    changed += [(4, {**PROVER, name: "x"}) for name in PROVER]
    for position, value in changed:
        keys.add(proof_key(*parts[:position], value, *parts[position + 1 :]))
    assert len(keys) == 1 + len(changed)


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_store() == tmp_path / "ilaverify" / "proofs.sqlite3"
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for value in ("", "relative/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert default_store() == tmp_path / "me" / ".cache" / "ilaverify" / "proofs.sqlite3"


# -- entries ------------------------------------------------------------------------------------------


def test_round_trip(store: ProofStore) -> None:
    assert store.get("k") is None and store.entries() == []
    assert not store.path.exists()  # looking makes no file
    store.put("k", CERTIFICATE, "toy", "text é\n")
    store.put("j", COUNTEREXAMPLE, "other", "")
    assert store.get("k") == (CERTIFICATE, "text é\n")
    store.put("k", CERTIFICATE, "toy", "new")
    assert store.get("k") == (CERTIFICATE, "new") and store.get("missing") is None
    assert store.entries() == [("j", COUNTEREXAMPLE, "other"), ("k", CERTIFICATE, "toy")]
    store.check()


def test_texts_of_several_entries(store: ProofStore) -> None:
    assert store.texts(["k"]) == {}
    store.put("k", CERTIFICATE, "s", "text")
    store.put("l", COUNTEREXAMPLE, "s", "values")
    assert store.texts(["l", "k", "m"]) == {"k": (CERTIFICATE, "text"), "l": (COUNTEREXAMPLE, "values")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello, this is a text file that is long enough to be read as a header" * 20, "is damaged or no store"),
        (b"SQLite format 3\x00" + bytes(range(256)) * 20, "is damaged or no store"),
    ],
)
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for use in (lambda s: s.get("k"), lambda s: s.put("k", CERTIFICATE, "toy", "x"), lambda s: s.check()):
        with pytest.raises(StoreError, match=message) as caught:
            use(ProofStore(path))
        assert str(caught.value).startswith(f"{path}: ")
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "photos.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="this database is no proof store of this version; name another file"):
        ProofStore(path).put("k", CERTIFICATE, "toy", "x")
    assert path.read_bytes() == before


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="must be readable and writable"):
        ProofStore(tmp_path).get("k")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="its directory must be writable"):
        ProofStore(tmp_path / "file" / "proofs").put("k", CERTIFICATE, "toy", "x")


def test_overwritten_pages_are_noticed(store: ProofStore) -> None:
    for number in range(30):
        store.put(f"k{number}", CERTIFICATE, "toy", f"{number}" * 5000)
    data = bytearray(store.path.read_bytes())
    data[4096:8192] = os.urandom(4096)
    store.path.write_bytes(data)
    with pytest.raises(StoreError):
        store.check()
        pytest.fail("the damage was not noticed")


@pytest.mark.parametrize("change", [("kind", "opinion"), ("text", b"\xff\xfe")])
def test_an_entry_of_another_form_is_refused(store: ProofStore, change: tuple[str, Any]) -> None:
    store.put("k", CERTIFICATE, "toy", "x")
    with sqlite3.connect(store.path) as connection:
        connection.execute(f"UPDATE proofs SET {change[0]} = ?", (change[1],))
    with pytest.raises(StoreError, match="entry k must be a certificate or a counterexample"):
        store.get("k")


# -- several processes --------------------------------------------------------------------------------


def sealed(number: int) -> str:
    """A text of which half would be noticed."""
    body = f"{number} " * 20_000
    return hashlib.sha256(body.encode()).hexdigest() + body


def write_for_ever(path: Path, seed: int, writes: Event) -> None:
    random = Random(seed)
    while True:
        number = random.randrange(40)
        ProofStore(path).put(f"k{number}", CERTIFICATE, "toy", sealed(number))
        writes.set()


def whole(store: ProofStore) -> int:
    """How many entries there are, all of them whole."""
    store.check()
    for key, _, _ in store.entries():
        entry = store.get(key)
        assert entry == (CERTIFICATE, sealed(int(key[1:])))
    return len(store.entries())


def test_killed_writers_leave_a_whole_store(store: ProofStore) -> None:
    random = Random(1)
    store.put("k1", CERTIFICATE, "toy", sealed(1))
    midway = 0
    for seed in range(500):
        writes = FORK.Event()
        process = FORK.Process(target=write_for_ever, args=(store.path, seed, writes))
        process.start()
        assert writes.wait(60)
        time.sleep(random.uniform(0, 0.02))
        assert process.pid is not None and process.is_alive()
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        midway += store.path.with_name(store.path.name + "-journal").exists()
        assert whole(store) >= 1
        if seed > 10 and midway > 1:
            break
    assert whole(store) > 5
    assert midway > 0, "no writer was killed within a transaction; the test shows nothing"


def write_many(path: Path, numbers: list[int]) -> None:
    for number in numbers:
        ProofStore(path).put(f"k{number}", CERTIFICATE, "toy", sealed(number))


def test_two_writers_at_once(store: ProofStore) -> None:
    """Both make the file, and both write some of the keys."""
    processes = [FORK.Process(target=write_many, args=(store.path, list(range(n, n + 20)))) for n in (0, 10)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [p.exitcode for p in processes] == [0, 0]
    assert whole(store) == 30


def test_a_store_that_stays_locked_is_reported(store: ProofStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("k", CERTIFICATE, "toy", "x")
    monkeypatch.setattr("reports.store.BUSY_SECONDS", 0.05)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="SQLite: database is locked"):
        store.put("k", CERTIFICATE, "toy", "y")
    other.execute("ROLLBACK")
    other.close()
    assert store.get("k") == (CERTIFICATE, "x")


def test_questions_of_all_proofs_under_a_key_are_kept(store: ProofStore) -> None:
    assert store.questions("k") == frozenset()
    store.put("k", CERTIFICATE, "s", "text")
    assert store.questions("k") == frozenset()
    for digest in ("one", "two", "one"):
        store.put("k", CERTIFICATE, "s", "text", digest)
    store.put("other", COUNTEREXAMPLE, "s", "text")
    assert store.questions("k") == {"one", "two"} and store.questions("other") == frozenset()


# -- certificates in it -------------------------------------------------------------------------------


def test_a_certificate_is_parsed() -> None:
    assert parse_certificate(certificate_text(certificate()), Path("s")) == certificate()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: "", "a certificate must be JSON text"),
        (lambda t: t[:-20], "a certificate must be JSON text"),
        (lambda t: t + "\n", "must be in canonical form"),
        (lambda t: t.replace("a is a", "a is b"), "the digest must match the content"),
        (lambda t: t.replace('"seconds":1.5', '"seconds":NaN'), "numbers of a certificate must be finite"),
        (lambda t: t.replace('"group":"g",', ""), "obligation 0: group must be present"),
        (lambda t: "[" * 100_000, "a certificate must be JSON text"),
    ],
)
def test_a_spoiled_certificate_is_refused(spoil: Callable[[str], str], message: str) -> None:
    with pytest.raises(CertificateError, match=message) as caught:
        parse_certificate(spoil(certificate_text(certificate())), Path("s"))
    assert str(caught.value).startswith("s: ")


def problems(content: dict[str, Any]) -> list[str]:
    return certificate_problems(content, SEMANTICS, CLAIM, "chc", {})


def test_the_right_certificate_has_no_problems() -> None:
    assert problems(certificate()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("semantics", {**SEMANTICS, "ir": "x"}), ("claim", {**CLAIM, "size_domain": "some"}), ("method", "bmc"),
     ("parameters", {"shape": [2, 16]})],
)  # fmt: skip
def test_a_certificate_of_something_else_has_problems(name: str, value: Any) -> None:
    assert problems(certificate(**{name: value})) == [f"its {name} must be that of the claim as it is now"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": []}, "g: n: 2 solvers must have answered"),
        ({"answers": [{"solver": "z3 1", "status": "unsat", "seconds": 0}] * 2}, "g: n: 2 solvers must have answered"),
        ({"expected": "sat"}, "g: n: an answer is not the expected one"),
        ({"smtlib": ""}, "g: n: the script must ask exactly one question"),
    ],
)
def test_a_certificate_with_a_bad_obligation_has_problems(change: dict[str, Any], message: str) -> None:
    obligation = certificate()["obligations"][0] | change
    assert problems(certificate(obligations=[obligation])) == [message]
