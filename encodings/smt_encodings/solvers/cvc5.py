"""The one module that touches cvc5: SMT-LIB text in, answers out, through cvc5's own parser."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import cvc5

from smt_encodings.claims import Answer


def version() -> str:
    """Name and version of the solver."""
    return f"cvc5 {cvc5.__version__}"


STEPS = 300_000
"""Units of cvc5's own resource counter in a second: 150 to 500 thousand are measured, for integers."""

ALONE = 1.0
"""Seconds for which cvc5 may work in a process that Ctrl-C must reach; it lets no signal through."""

_PR_SET_PDEATHSIG = 1


def check(smtlib: str, timeout: float, patience: float = 1.0) -> Answer:
    """Answers one SMT-LIB script with a single ``(check-sat)``; ``timeout`` in seconds.

    With ``patience`` above 1 the solver's own counter limits it, to what fits in the time on an idle machine, so that
    the answer is the same on a busy one; the clock ends it only after ``patience`` times as long.
    What takes longer than a moment is asked in another process, except where Ctrl-C is ignored.
    Raises ValueError where cvc5's parser rejects the text.
    """
    clock = timeout * patience
    if clock <= ALONE or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return _answer(smtlib, timeout, patience, clock)
    answer = _answer(smtlib, timeout, patience, ALONE)
    if answer.reason != "TIMEOUT":
        return answer
    begun = time.perf_counter() - answer.seconds
    return replace(start(smtlib, timeout, patience).wait(), seconds=time.perf_counter() - begun)


def _answer(smtlib: str, timeout: float, patience: float, clock: float) -> Answer:
    """The answer of cvc5 in this process, which the clock ends after ``clock`` seconds."""
    begun = time.perf_counter()
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(max(1, int(clock * 1000))))
    if patience > 1:
        solver.setOption("rlimit-per", str(max(1, int(timeout * STEPS))))
    if "(set-logic QF_BV)" in smtlib:
        # lazy bit-blasting does not finish on 16-bit equivalences that the eager one answers in seconds, and in
        # milliseconds with Boolean structure turned into bit-vectors
        solver.setOption("bitblast", "eager")
        solver.setOption("bool-to-bv", "all")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smtlib, "obligation")
    symbols = parser.getSymbolManager()
    output = ""
    try:
        while True:
            command = parser.nextCommand()
            if command.isNull():
                break
            reply = command.invoke(solver, symbols) or ""
            if reply.startswith("(error"):  # cvc5 goes on without the command, an ill-sorted assertion for one
                raise RuntimeError(reply.strip())
            if command.getCommandName() == "check-sat":
                output = reply
    except RuntimeError as error:
        raise ValueError(f"cvc5 must be given well-formed SMT-LIB; it says: {error}") from error
    words = output.split()
    status = words[-1] if words and words[-1] in ("sat", "unsat") else "unknown"
    reason = "" if status != "unknown" else output.strip().removeprefix("unknown").strip(" ()")
    return Answer(status, time.perf_counter() - begun, version(), reason)


class Pending:
    """A question that a process of its own is answering."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait(self) -> Answer:
        """The answer, once it is there; raises RuntimeError where the process failed."""
        output, errors = self._process.communicate()
        if self._process.returncode == -signal.SIGINT:
            raise KeyboardInterrupt
        if self._process.returncode != 0:
            raise RuntimeError(f"the cvc5 process ended with {self._process.returncode}: {errors.strip()[-300:]}")
        return Answer(**json.loads(output))

    def stop(self) -> None:
        """Ends the process; its answer is not wanted any more."""
        self._process.kill()
        self._process.communicate()


def start(smtlib: str, timeout: float, patience: float = 1.0) -> Pending:
    """Starts answering a script in another process; ``timeout`` and ``patience`` are those of :func:`check`."""
    command = [sys.executable, "-c", "from smt_encodings.solvers import cvc5; cvc5.serve()"]
    # the process must find this package wherever the present one found it
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # a process that died at once is reported by wait()
        process.stdin.write(json.dumps({"smtlib": smtlib, "timeout": timeout, "patience": patience}))
        process.stdin.close()
    process.stdin = None
    return Pending(process)


def serve() -> None:
    """Answers one question from standard input, as JSON on standard output (the other end of :func:`start`)."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which ends the process while cvc5 works, too
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    question = json.load(sys.stdin)
    timeout, patience = question["timeout"], question["patience"]
    answer = _answer(question["smtlib"], timeout, patience, timeout * patience)
    fields = {
        "status": answer.status,
        "seconds": answer.seconds,
        "solver": answer.solver,
        "reason": answer.reason,
    }
    json.dump(fields, sys.stdout)
