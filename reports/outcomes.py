"""The outcome of each claim of a run: the one record that all reports are written from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

NOT_RUN = "NOT RUN"
"""The status of a claim that an interrupted run did not reach or finish; other statuses are those of verdicts."""


@dataclass(frozen=True)
class ProofOutcome:
    """The outcome of one claim.

    ``status`` is a verdict's word (``PROVED``, ``REFUTED``, ``UNKNOWN``, ``VACUOUS``, ``ERROR``) or NOT_RUN;
    ``expected`` is ``PROVED``, or ``REFUTED`` for a false claim that is kept as an example.  ``claim`` is the claim as
    in certificates, None where the attempt ended before there was one.  ``counterexample`` is the summary of a replayed
    counterexample, or (of an ERROR) of the run that a proof did not survive; ``runs`` counts the concrete runs.
    ``document`` is the text of the certificate or of the counterexample; ``program`` that of a device program that
    shows the counterexample, where there is one; ``shown`` is what ``counterexample`` says, as data.  ``file``
    (relative to the source root) and ``line`` say where the claim is written down; ``kind`` is one of
    :data:`reports.subjects.KINDS`.  ``notes`` are what went wrong besides the proof itself; ``key`` is that of the
    document in the store it came from.  A claim is ``refused`` where its author's code does not build it.
    """

    name: str
    status: str
    expected: str = "PROVED"
    summary: str = ""
    reason: str = ""
    seconds: float = 0.0
    method: str = "chc"
    kind: str = "mapping"
    from_store: bool = False
    claim: Mapping[str, Any] | None = None
    obligations: int = 0
    runs: int = 0
    solvers: tuple[str, ...] = ()
    counterexample: str = ""
    document: str = ""
    program: str = ""
    trust: str = ""
    file: str = ""
    line: int = 0
    notes: tuple[str, ...] = field(default=())
    shown: Mapping[str, Any] | None = None
    key: str = ""
    refused: bool = False

    @property
    def as_expected(self) -> bool:
        """Whether a claim that should hold is PROVED with a certificate, a false one REFUTED with a counterexample."""
        if self.status != self.expected or not self.document:
            return False
        return self.status == "PROVED" or (self.status == "REFUTED" and bool(self.counterexample))

    @property
    def origin(self) -> str:
        """Where the answer comes from, for people."""
        return "from store" if self.from_store else "this run"

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON."""
        return asdict(self)

    def to_text(self) -> str:
        """The outcome as the text of its JSON."""
        return json.dumps(self.to_json(), sort_keys=True)

    @staticmethod
    def from_json(content: object) -> ProofOutcome:
        """The outcome in what :meth:`to_json` gave; raises TypeError or KeyError on anything else."""
        if not isinstance(content, dict):
            raise TypeError(f"an outcome must be a JSON object, not {type(content).__name__}")
        return ProofOutcome(**(content | {name: tuple(content[name]) for name in ("solvers", "notes")}))

    @staticmethod
    def from_text(text: str) -> ProofOutcome:
        """The outcome in a text of :meth:`to_text`; raises ValueError, TypeError or KeyError on anything else."""
        return ProofOutcome.from_json(json.loads(text))


def counted(count: int, what: str) -> str:
    """A number of things, in the singular where there is one.

    >>> counted(1, "point"), counted(2, "point")
    ('1 point', '2 points')
    """
    return f"{count} {what}{'' if count == 1 else 's'}"


def tally(outcomes: list[ProofOutcome]) -> str:
    """One line that counts outcomes by status, and last those of claims that ran and are not as expected."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.status] = counts.get(outcome.status, 0) + 1
    shown = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    ran = [o for o in outcomes if o.status != NOT_RUN]
    if outcomes and not ran:
        return shown
    wrong = sum(not o.as_expected for o in ran)
    others = " that ran" if len(ran) < len(outcomes) else ""
    return f"{shown or 'nothing to prove'}; {f'{wrong} not as expected' if wrong else f'all{others} as expected'}"
