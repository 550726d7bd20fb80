"""Outcomes of every kind, hostile names among them, for the tests of the reports."""

from __future__ import annotations

from typing import Any

from reports.outcomes import NOT_RUN, ProofOutcome

HOSTILE = "a<b>&\"'|`*_[x](y) ]]> \x00\x1b[31m\ud800\ufffe é \u202e # $x$ \\ --> ${{ a }}\r\nnew | line"


def claim(subject: str, **changes: Any) -> dict[str, Any]:
    return {
        "subject": subject, "statement": f"{subject} is right", "size_domain": "1 <= n <= 9", "compared": "",
        "equality": "bit_exact",
        "interpretations": ["bits"], "assumptions": ["the host waits"],
    } | changes  # fmt: skip


PROVED = ProofOutcome(
    "good", "PROVED", summary="a mapping", seconds=1.25, claim=claim("good"), obligations=93,
    solvers=("cvc5 1", "z3 1"), document="certificate", file="rewrites/a.py", line=12,
)  # fmt: skip
STORED = ProofOutcome(
    "kept",
    "PROVED",
    seconds=0.5,
    claim=claim("kept"),
    obligations=7,
    document="c",
    from_store=True,
    file="b c.py",
    line=3,
)
FALSE = ProofOutcome(
    "false", "REFUTED", "REFUTED", reason="input 2x16", claim=claim("false"), counterexample="input 2x16", document="d"
)
WRONG = ProofOutcome(
    "wrong", "REFUTED", reason="input 4x16", claim=claim("wrong"), counterexample="input 4x16", document="d"
)
UNSOUND = ProofOutcome("unsound", "PROVED", "REFUTED", claim=claim("unsound"), document="c")
UNKNOWN = ProofOutcome("unknown", "UNKNOWN", reason="no invariant", claim=claim("unknown"))
VACUOUS = ProofOutcome("vacuous", "VACUOUS", reason="no size", claim=claim("vacuous"))
BROKEN = ProofOutcome("broken", "ERROR", reason="its process was ended by SIGSEGV", seconds=2.0)
LEFT = ProofOutcome("left", NOT_RUN, reason="the run was interrupted")
NASTY = ProofOutcome(
    HOSTILE, "REFUTED", summary=HOSTILE, reason=HOSTILE, claim=claim(HOSTILE, assumptions=[HOSTILE]), document="d",
    counterexample=HOSTILE, file=HOSTILE, line=1, notes=(HOSTILE,),
)  # fmt: skip

ALL = [PROVED, STORED, FALSE, WRONG, UNSOUND, UNKNOWN, VACUOUS, BROKEN, LEFT, NASTY]
