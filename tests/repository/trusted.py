"""What a PROVED rests on, method by method: modules, of which the lines are counted.

A module of a method's packages is trusted unless it is named here as one that only guesses.
"""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

GUESSES = {
    "chc/mapping": {
        "arithmetic": {
            *(
                "correspondence",
                "equalities",
                "injectivity",
                "products",
                "ranges",
                "search",
            ),  # steps, which are replayed
        },
        "contents": {"chains", "hits", "numberings", "turns"},
        "horn": {"invariants", "names"},  # names are texts
        "memory": {"distinctions", "meetings", "quotient_facts", "witnesses"},
        "program": {"patterns"},
        "relate": {"beginnings", "block_lengths", "elements", "extremes", "hints", "run_ups"},
        "sampling": {"candidates", "samples", "sizes"},
        "": {"cells", "diagnosis"},  # diagnosis says why something is not proved
    },
}
"""By package and folder: modules that hand over data, of which obligations are made that fail if the data are wrong."""

METHODS = {
    "chc": ["chc/mapping/**", "chc/bijections/matching.py", "chc/bijections/theorem.py"],
    "bmc": ["bmc/unroll.py", "bmc/terms.py", "bmc/prove.py"],
    "hash": ["bmc/unroll.py", "bmc/terms.py", "bmc/prove.py", "bmc/sums.py"],
    "tensor rules": ["chc/tensor_rules/kernel/*", "chc/tensor_rules/obligations.py"],
    "joints": ["rewrites/claims/joints/*", "-rewrites/claims/joints/runs.py"],
    "bounds": ["rewrites/bounds/kernel/*", "rewrites/bounds/lemmas/real_rules.py"],
    "bounds of networks in ranges": [f"rewrites/compiler/composition/{m}.py" for m in ("replay", "steps", "upward")],
    "scalar rules": ["chc/scalar_rules/*"],
    "token order": ["chc/token_order/*"],
    "sums that cancel": ["benchmarks/sums/replay.py"],
    "encodings, for chc": [
        "encodings/smt_encodings/**",
        "-encodings/smt_encodings/interpretations/*",
        "-encodings/smt_encodings/wellformed.py",
    ],
}
"""By method: files, folders (``*``) and trees (``**``); those with a minus are left out."""

_BETWEEN = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


@cache
def code_lines(path: Path) -> int:
    """Lines of a module without comments, docstrings and blank lines."""
    text = path.read_text(encoding="utf-8")
    strings = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    left_out = {line for n in strings for line in range(n.lineno, (n.end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = (t for t in tokens if t.type not in _BETWEEN)
    return len({line for t in kept for line in range(t.start[0], t.end[0] + 1)} - left_out)


def guessing() -> set[Path]:
    """The modules that only guess."""
    of = ((package, folder, m) for package, folders in GUESSES.items() for folder, ms in folders.items() for m in ms)
    return {ROOT / package / folder / f"{module}.py" for package, folder, module in of}


def trusted(method: str) -> set[Path]:
    """The modules that a PROVED of a method rests on, beside the models, the language and the solvers."""
    files: set[Path] = set()
    for pattern in METHODS[method]:
        found = {p for p in ROOT.glob(pattern.lstrip("-").replace("**", "**/*")) if p.suffix == ".py"}
        files = files - found if pattern.startswith("-") else files | found
    return files - guessing()


def counts() -> dict[str, str]:
    """The counts of ARCHITECTURE.md, by the names of its rows."""
    lines = {method: f"{sum(map(code_lines, trusted(method))):,}" for method in METHODS}
    return {"bmc / hash": f"{lines.pop('bmc')} / {lines.pop('hash')}", **lines}


if __name__ == "__main__":
    for row, count in counts().items():
        print(f"{row}: {count}")
