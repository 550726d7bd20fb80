"""The proof store: what was proved once is not proved again while nothing that the proof depends on has changed.

A SQLite file maps a key to the text of a certificate (or of a counterexample).  The key is a digest of both sides'
semantics, the claim, the method with its parameters, and the prover with its solvers (:func:`proof_key`).  So a changed
model, claim or prover never meets an old proof.

An entry of the store is not trusted: :func:`certificate_problems` compares it with the claim as it is now.  That does
not ask solvers again; a deliberate forgery by one who may write the file is found by ``prove --recheck`` and by
``check``, which do.

Writes are single transactions with SQLite's rollback journal, so that a killed writer leaves the old or the new entry.
Two processes may use one file: each waits for the other's transaction, up to BUSY_SECONDS.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ila_lang import canonical_text

from .certificate import MOST_BYTES, questions_digest
from .subjects import Subject

CERTIFICATE, COUNTEREXAMPLE = "certificate", "counterexample"
"""The two kinds of entries."""

BUSY_SECONDS = 30.0
"""The time that a process waits for another one's transaction."""

_APPLICATION = 0x494C5650  # "ILVP": SQLite's application_id, which distinguishes our files from other databases
_FORMAT = 1
_LEAST_SOLVERS = 2


class StoreError(Exception):
    """A store that cannot be used; the message names the file and the next step."""


def default_store() -> Path:
    """The user's store: ``ilaverify/proofs.sqlite3`` in ``XDG_CACHE_HOME``, or in ``.cache`` of the home directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"  # the XDG rules ignore relative paths
    return root / "ilaverify" / "proofs.sqlite3"


def proof_key(
    semantics: Mapping[str, str],
    claim: Mapping[str, Any],
    method: str,
    parameters: Mapping[str, Any],
    prover: Mapping[str, str],
) -> str:
    """SHA-256 of everything that a proof depends on."""
    content = {
        "semantics": dict(semantics),
        "claim": dict(claim),
        "method": method,
        "parameters": dict(parameters),
        "prover": dict(prover),
    }
    return hashlib.sha256(canonical_text(content).encode()).hexdigest()


def key_of(subject: Subject, prover: Mapping[str, str], semantics: Mapping[str, str] | None = None) -> str:
    """The key of the answer to a subject; ``semantics`` are the subject's, where they are known already."""
    return proof_key(semantics or subject.semantics(), subject.question(), subject.method, {}, prover)


class ProofStore:
    """A store in a file, which is created by the first write.

    Every operation reopens the file, so that a store may be used on both sides of a fork.  All raise StoreError
    where the file is damaged, is not a store, or stays locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, key: str) -> tuple[str, str] | None:
        """Kind and text of the entry, None where there is none."""
        return self.texts([key]).get(key)

    def texts(self, keys: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Kind and text of those entries that are there, by key."""
        if not self.path.exists():
            return {}
        entries = {}
        with self._connection() as connection:
            for key in keys:
                row = connection.execute("SELECT kind, text FROM proofs WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    entries[key] = self._entry(key, *row)
        return entries

    def _entry(self, key: str, kind: object, text: object) -> tuple[str, str]:
        if kind not in (CERTIFICATE, COUNTEREXAMPLE) or not isinstance(text, str):
            raise StoreError(f"{self.path}: entry {key[:12]} must be a certificate or a counterexample, not {kind!r}")
        return str(kind), text

    def questions(self, key: str) -> frozenset[str]:
        """The digests of questions (:func:`~reports.certificate.questions_digest`) of all proofs under a key."""
        if not self.path.exists():
            return frozenset()
        with self._connection() as connection:
            if not self._has_table(connection, "questions"):
                return frozenset()
            rows = connection.execute("SELECT digest FROM questions WHERE key = ?", (key,)).fetchall()
        return frozenset(str(row[0]) for row in rows)

    def put(self, key: str, kind: str, subject: str, text: str, questions: str = "") -> None:
        """Adds an entry, or replaces the one of that key, in one transaction; ``questions`` are added to earlier ones.

        They distinguish certificates of this proof from ones with other obligations, wherever these are stored.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path}: its directory must be writable: {error.strerror}") from error
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "INSERT OR REPLACE INTO proofs (key, kind, subject, text) VALUES (?, ?, ?, ?)",
                (key, kind, subject, text),
            )
            if questions:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS questions (key TEXT, digest TEXT, PRIMARY KEY (key, digest))"
                )
                connection.execute("INSERT OR IGNORE INTO questions (key, digest) VALUES (?, ?)", (key, questions))
            connection.execute("COMMIT")

    def entries(self) -> list[tuple[str, str, str]]:
        """Key, kind and subject of all entries, sorted by subject and key."""
        if not self.path.exists():
            return []
        with self._connection() as connection:
            return connection.execute("SELECT key, kind, subject FROM proofs ORDER BY subject, key").fetchall()

    def check(self) -> None:
        """Has SQLite read the whole file; raises StoreError where it is damaged."""
        with self._connection() as connection:
            rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        if rows != ["ok"]:
            raise StoreError(f"{self.path}: the proof store is damaged ({rows[0][:100]}); delete it to start anew")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            # isolation_level None: transactions are begun and ended by the statements above only
            with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
                connection.execute("PRAGMA synchronous = FULL")
                self._prepare(connection)
                yield connection
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self.path}: the proof store must be readable and writable; SQLite: {error}") from error
        except sqlite3.DataError as error:
            raise StoreError(
                f"{self.path}: an entry of a proof store must have at most {MOST_BYTES:,} bytes (SQLite: {error}); "
                "delete the store, or name another one"
            ) from error
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise StoreError(
                f"{self.path}: the proof store is damaged or no store (SQLite: {error}); delete it, or name another one"
            ) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Creates the table in a new file; refuses other databases."""
        if self._marks(connection) == (_APPLICATION, _FORMAT):
            return
        connection.execute("BEGIN IMMEDIATE")
        marks = self._marks(connection)  # again: another process may have been faster
        if marks == (0, 0) and not connection.execute("SELECT name FROM sqlite_master").fetchall():
            connection.execute(
                "CREATE TABLE proofs (key TEXT PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, "
                "text TEXT NOT NULL)"
            )
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
            connection.execute("COMMIT")
        elif marks != (_APPLICATION, _FORMAT):
            connection.execute("ROLLBACK")
            raise StoreError(f"{self.path}: this database is no proof store of this version; name another file")
        else:
            connection.execute("ROLLBACK")

    @staticmethod
    def _has_table(connection: sqlite3.Connection, name: str) -> bool:
        return bool(connection.execute("SELECT name FROM sqlite_master WHERE name = ?", (name,)).fetchall())

    @staticmethod
    def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
        marks = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        return int(marks[0]), int(marks[1])


def certificate_problems(
    certificate: Mapping[str, Any],
    semantics: Mapping[str, str],
    claim: Mapping[str, Any],
    method: str,
    parameters: Mapping[str, Any],
    questions: Collection[str] = (),
) -> list[str]:
    """The reasons why a stored certificate is not one of this claim, without asking solvers; empty where it is.

    Compared are the semantics' digests, the claim's words, method and parameters; and every obligation must ask one
    question, and have its expected answer from two solvers or more.  Where ``questions`` (digests) of proofs of the
    claim are known, the certificate's must be among them.
    """
    problems = []
    for what, value in (
        ("semantics", semantics), ("claim", claim), ("method", method), ("parameters", parameters),
    ):  # fmt: skip
        if certificate[what] != value:
            problems.append(f"its {what} must be that of the claim as it is now")
    for obligation in certificate["obligations"]:
        where = f"{obligation['group']}: {obligation['name']}"
        if obligation["smtlib"].count("(check-sat)") != 1:
            problems.append(f"{where}: the script must ask exactly one question")
        if any(a["status"] != obligation["expected"] for a in obligation["answers"]):
            problems.append(f"{where}: an answer is not the expected one")
        if len({a["solver"] for a in obligation["answers"]}) < _LEAST_SOLVERS:
            problems.append(f"{where}: {_LEAST_SOLVERS} solvers must have answered")
    if questions and questions_digest(certificate) not in questions:
        problems.append("its obligations and enumerations must be those of a proof that the store knows")
    return problems
