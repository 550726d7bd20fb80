"""The one module that touches cvc5: SMT-LIB text in, answers out, through cvc5's own parser."""

from __future__ import annotations

import time

import cvc5

from .claims import Answer

__all__ = ["check", "version"]


def version() -> str:
    """Name and version of the solver."""
    return f"cvc5 {cvc5.__version__}"


def check(smtlib: str, timeout: float) -> Answer:
    """Answers one SMT-LIB script with a single ``(check-sat)``; ``timeout`` in seconds.

    Raises ValueError where cvc5's parser rejects the text.
    """
    start = time.perf_counter()
    solver = cvc5.Solver()
    solver.setOption("tlimit-per", str(max(1, int(timeout * 1000))))
    if "(set-logic QF_BV)" in smtlib:
        # lazy bit-blasting does not finish on 16-bit equivalences that the eager one answers in seconds
        solver.setOption("bitblast", "eager")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, smtlib, "obligation")
    symbols = parser.getSymbolManager()
    output = ""
    try:
        while True:
            command = parser.nextCommand()
            if command.isNull():
                break
            output += command.invoke(solver, symbols) or ""
    except RuntimeError as error:
        raise ValueError(f"cvc5 must be given well-formed SMT-LIB; it says: {error}") from error
    words = output.split()
    status = words[-1] if words and words[-1] in ("sat", "unsat") else "unknown"
    reason = "" if status != "unknown" else output.strip()
    return Answer(status, time.perf_counter() - start, version(), reason)
