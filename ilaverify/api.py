"""The verbs of the command line as functions, with typed results.

Names are those of ``ilaverify list``: claims, models and campaigns of all packages that are installed, and of modules
that :func:`use_module` was given.

Bad input is an :class:`InputError`, a ValueError, whatever is wrong: a name that is not known, an argument of another
type, a file that cannot be read.  Other errors are no fault of the input, or a file that cannot be written (OSError).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.errors import InputError
from ila_lang.mapping import TensorMapping

from .catalogue import all_entries, find_campaign, find_entry, find_mapping, find_simulator, mappings
from .checking import SOLVERS, Checked, check_file, check_model, files_in, require_readable
from .errors import UsageError
from .modules import use_module as use_named
from .parameters import Kind, checked, instance
from .places import require_apart

if TYPE_CHECKING:
    from ir_semantics.graph.types import Array
    from ir_semantics.mlir.semantics.program import Reading
    from rewrites.campaigns.campaign import CampaignResult
    from rewrites.compiler.artefact.model import Compiled
    from rewrites.compiler.codegen import Options
    from rewrites.targets.target import Simulated
    from smt_encodings.claims import Verdict

    from .models.comparison import Comparison

__all__ = ["InputError", "campaign", "check", "compile", "load", "prove", "run", "simulate", "tv", "use_module"]


@checked(**{"str | TensorMapping": instance("a TensorMapping, or a claim's name", str, TensorMapping)})
def prove(claim: str | TensorMapping, method: str = "auto", *, timeout: float = 60.0, **parameters: Any) -> Verdict:
    """The verdict on a claim: a mapping, or the name of a mapping, rule, lemma or theorem.

    ``method`` and ``parameters`` are for mappings, as ``--method`` and its options: ``shape=(2, 64)``.  ``timeout`` is
    in seconds for each question to a solver.  A verdict has no truth value: compare its ``status``.

    >>> prove("transposed-twice").status.value
    'PROVED'
    """
    from rewrites.claims.verify import verify
    from smt_encodings.discharge import Discharger

    if not 0 < timeout < math.inf:
        raise UsageError(f"timeout must be a positive number of seconds, not {timeout}")
    if isinstance(claim, TensorMapping) or claim in mappings():
        mapping = claim if isinstance(claim, TensorMapping) else find_mapping(claim)
        return verify(mapping, method, timeout=timeout, **parameters)
    entry = find_entry(claim)
    if method != "auto" or parameters:
        raise UsageError(f"{claim} is no mapping, and has one method of proof without parameters; leave them out")
    return entry.build().prove(Discharger(timeout=timeout))


def _reading(value: object) -> object:
    from ir_semantics.mlir.semantics.program import Reading

    return instance("", Reading).read(value)


@checked(Reading=Kind("of the class Reading", _reading))
def tv(
    source: Path | str,
    target: Path | str,
    *,
    function: str | None = None,
    reading: Reading | None = None,
    mlir_opt: str | None = None,
    timeout: float = 60.0,
) -> dict[str, Verdict]:
    """For each function of an MLIR file, or for one: does the function of that name in another file refine it?

    Files in other than the generic form are converted by ``mlir_opt``, a program, by default the first that is found.
    ``reading`` says how MLIR is read where it leaves something open.  ``timeout`` is in seconds for each question to a
    solver.
    """
    from chc.translation.refine import Options
    from ir_semantics.mlir.semantics.program import Reading
    from smt_encodings.discharge import Discharger

    from .mlir.translation import Claims, Step, add_pairs, read_program

    if not 0 < timeout < math.inf:
        raise UsageError(f"timeout must be a positive number of seconds, not {timeout}")
    before, after = (read_program(Path(file), mlir_opt) for file in (source, target))
    claims = Claims()
    step = Step("", str(source), before, after, str(target))
    add_pairs(claims, step, Options(reading or Reading()), function)
    return {name: entry.build().prove(Discharger(timeout=timeout)) for name, entry in claims.entries.items()}


@checked()
def check(path: Path | str, *, proofs: Path | str = "proofs", solvers: Sequence[str] = SOLVERS) -> list[Checked]:
    """Checks a certificate, a counterexample's data, every such file in a directory, or a compiled model.

    Of a compiled model, the certificates in ``proofs`` that it rests on are checked likewise.  ``solvers`` are one or
    more of "cvc5" and "z3".  That a file is in the list does not mean that it was accepted: see
    :attr:`Checked.verdict`.
    """
    path, results = Path(path), []
    files = [path]
    if (path / "model.json").exists():
        model, files = check_model(path, Path(proofs))
        results.append(model)
    elif path.is_dir():
        files = files_in(path)
    else:
        require_readable(path)
    answered: dict[str, str] = {}
    return results + [check_file(file, solvers, answered=answered) for file in files]


@checked()
def simulate(model: str, program: str, reading: str | None = None) -> Simulated:
    """What the text of a program file does on a model, in a reading of its specification, by default the first."""
    return find_simulator(model, reading)(program)


@checked()
def campaign(name: str, *, examples: int = 100, seed: int = 0) -> CampaignResult:
    """Compares an accelerator's program with the tensor IR on random inputs; sampling is no proof.

    Raises CampaignError where a side of an example fails.
    """
    from rewrites.campaigns.campaign import run_campaign

    return run_campaign(find_campaign(name), examples=examples, seed=seed)


def _options(value: object) -> object:
    from rewrites.compiler.codegen import Options

    return instance("", Options).read(value)


@checked(Options=Kind("of the class Options", _options))
def compile(
    model: Path | str,
    targets: Sequence[str],
    *,
    proofs: Path | str = "proofs",
    dimensions: Mapping[str, int] | None = None,
    calibration: Mapping[str, Array] | None = None,
    exact: bool = False,
    options: Options | None = None,
    directory: Path | str | None = None,
) -> Compiled:
    """A model compiled for targets, the preferred one first, by rules that hold a live certificate in ``proofs``.

    ``dimensions`` are values of the model's symbolic extents, ``calibration`` has inputs by name.  With ``directory``
    the compiled model is written there, for :func:`load`.
    """
    from rewrites.compiler.artefact.model import write_compiled
    from rewrites.compiler.artefact.summary import summary_text
    from rewrites.compiler.codegen import Options

    from .models.compilation import Request, compile_model

    chosen = Options() if options is None else options
    source, certificates = Path(model), Path(proofs)
    if directory is not None:
        require_apart({"model": source, "proofs": certificates}, {}, {"directory": Path(directory)})
    request = Request(source, tuple(targets), certificates, dimensions or {}, calibration, exact, options=chosen)
    compiled = compile_model(request, all_entries())
    if directory is not None:
        write_compiled(Path(directory), compiled, summary_text(compiled))
    return compiled


@checked()
def load(directory: Path | str) -> Compiled:
    """A compiled model, read from its directory.

    Whether its certificates are live is checked by :func:`check`, not here.
    """
    from .models.loading import load_compiled

    return load_compiled(Path(directory))


def _compiled(value: object) -> object:
    from rewrites.compiler.artefact.model import Compiled

    return instance("", Compiled).read(value)


@checked(Compiled=Kind("a compiled model, of compile() or load()", _compiled))
def run(
    compiled: Compiled,
    inputs: Mapping[str, Array],
    *,
    labels: Array | None = None,
    reference: str = "host",
    jobs: int = 1,
) -> Comparison:
    """A compiled model on the simulators, beside a reference ("host" or "onnxruntime"), with errors and proved bounds.

    ``inputs`` are one sample, or several along a further first axis, which are run in ``jobs`` processes; ``labels``
    are the right answers of each.  Raises MachinesError where a process ends without an answer, again and again.
    """
    from .models.datasets import dataset_of
    from .proving.dataset_runs import Work, parts, whole

    if jobs < 1 or reference not in ("host", "onnxruntime"):
        raise UsageError(f"jobs must be 1 or more, and reference host or onnxruntime; not {jobs} and {reference!r:.60}")
    work = Work(compiled, dataset_of(compiled.graph, inputs, labels), reference)
    return whole(work, dict(parts(work, jobs, results=True)))


@checked()
def use_module(name: str) -> None:
    """Makes all functions know what a module, or a file of rules in MLIR, offers; the current folder is searched for
    modules after all others.
    """
    use_named(name)
