"""The verbs of the command line as functions, with typed results.

Names are those of ``ilaverify list``: claims, models and campaigns of all packages that are installed, and of modules
that :func:`use_module` was given.  All raise UsageError where a name is not known.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ila_lang.extensions import use_module
from ila_lang.mapping import TensorMapping

from .catalogue import all_entries, find_campaign, find_mapping, find_simulator, find_subject, mappings
from .checking import SOLVERS, Checked, check_file, check_model, files_in
from .errors import UsageError

if TYPE_CHECKING:
    from ir_semantics.graph.types import Array
    from rewrites.campaigns.campaign import CampaignResult
    from rewrites.compiler.artefact.model import Compiled
    from rewrites.compiler.codegen import Options
    from rewrites.targets.target import Simulated
    from smt_encodings.claims import Verdict

    from .comparison import Comparison

__all__ = ["campaign", "check", "compile", "load", "prove", "run", "simulate", "use_module"]


def prove(claim: str | TensorMapping, method: str = "auto", *, timeout: float = 60.0, **parameters: Any) -> Verdict:
    """The verdict on a claim: a mapping, or the name of a mapping, rule, lemma or theorem.

    ``method`` and ``parameters`` are for mappings, as ``--method`` and its options: ``shape=(2, 64)``.  ``timeout`` is
    in seconds for each question to a solver.  A verdict has no truth value: compare its ``status``.  Raises ValueError
    on an unknown method or parameter and on a timeout that is no positive number, and SizeError on a shape outside of
    the mapping's domain.

    >>> prove("transposed-twice").status.value
    'PROVED'
    """
    from rewrites.claims.verify import verify
    from smt_encodings.discharge import Discharger

    _require("the claim to prove", claim, (str, TensorMapping), "a TensorMapping, or a claim's name")
    _require("timeout", timeout, Real, "a number of seconds")
    timeout, parameters = float(timeout), {name: _plain(value) for name, value in parameters.items()}
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout}")
    if isinstance(claim, TensorMapping) or claim in mappings():
        mapping = claim if isinstance(claim, TensorMapping) else find_mapping(claim)
        return verify(mapping, method, timeout=timeout, **parameters)
    if method != "auto" or parameters:
        raise ValueError(f"{claim} is no mapping, and has one method of proof without parameters; leave them out")
    return find_subject(claim).prove(Discharger(timeout=timeout))


def check(path: Path | str, *, proofs: Path | str = "proofs", solvers: Sequence[str] = SOLVERS) -> list[Checked]:
    """Checks a certificate, a counterexample's data, every such file in a directory, or a compiled model.

    Of a compiled model, the certificates in ``proofs`` that it rests on are checked likewise.  ``solvers`` are one or
    more of "cvc5" and "z3".  That a file is in the list does not mean that it was accepted: see
    :attr:`Checked.verdict`.
    """
    path, results = _path("what is checked", path), []
    files = [path]
    if (path / "model.json").exists():
        model, files = check_model(path, _path("proofs", proofs))
        results.append(model)
    elif path.is_dir():
        files = files_in(path)
    answered: dict[str, str] = {}
    return results + [check_file(file, solvers, answered=answered) for file in files]


def simulate(model: str, program: str, reading: str | None = None) -> Simulated:
    """What the text of a program file does on a model, in a reading of its specification, by default the first.

    Raises ProgramError where the text is no program, or the model does not define its result.
    """
    _require("the text of a program", program, str, "a text")
    return find_simulator(model, reading)(program)


def campaign(name: str, *, examples: int = 100, seed: int = 0) -> CampaignResult:
    """Compares an accelerator's program with the tensor IR on random inputs; sampling is no proof."""
    from rewrites.campaigns.campaign import run_campaign

    _require("examples", examples, Integral, "a number of them")
    _require("seed", seed, Integral, "an integer")
    return run_campaign(find_campaign(name), examples=int(examples), seed=int(seed))


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
    the compiled model is written there, for :func:`load`.  Raises GraphError where the model cannot be imported.
    """
    import numpy as np

    from rewrites.compiler.artefact.model import write_compiled
    from rewrites.compiler.artefact.summary import summary_text
    from rewrites.compiler.codegen import Options

    from .compilation import Request, compile_model

    chosen = Options() if options is None else options
    _require("options", chosen, Options, "of the class Options")
    _require("targets", targets, (list, tuple), "a list of names")
    _require("dimensions", {} if dimensions is None else dimensions, Mapping, "extents by name")
    _require("calibration data", {} if calibration is None else calibration, Mapping, "arrays by the names of inputs")
    for name, array in (calibration or {}).items():
        _require(f"calibration data of {name}", array, np.ndarray, "an array")
    extents = {name: _plain(extent) for name, extent in (dimensions or {}).items()}
    paths = _path("the model", model), _path("proofs", proofs)
    target = None if directory is None else _path("directory", directory)
    request = Request(paths[0], tuple(targets), paths[1], extents, calibration, exact, options=chosen)
    compiled = compile_model(request, all_entries())
    if target is not None:
        write_compiled(target, compiled, summary_text(compiled))
    return compiled


def load(directory: Path | str) -> Compiled:
    """A compiled model, read from its directory; raises UsageError where it is damaged.

    Whether its certificates are live is checked by :func:`check`, not here.
    """
    from .loading import load_compiled

    return load_compiled(_path("directory", directory))


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
    are the right answers of each.  Raises UsageError where inputs or labels do not fit, and MachinesError where a
    process ends without an answer, again and again.
    """
    from rewrites.compiler.artefact.model import Compiled

    from .datasets import dataset_of
    from .proving.dataset_runs import Work, parts, whole

    _require("what is run", compiled, Compiled, "a compiled model, of compile() or load()")
    _require("inputs", inputs, Mapping, "arrays by the names of the model's inputs")
    _require("jobs", jobs, Integral, "a number of processes")
    if jobs < 1 or reference not in ("host", "onnxruntime"):
        raise UsageError(f"jobs must be 1 or more, and reference host or onnxruntime; not {jobs} and {reference!r:.60}")
    work = Work(compiled, dataset_of(compiled.graph, inputs, labels), reference)
    return whole(work, dict(parts(work, int(jobs), results=True)))


def _require(what: str, value: object, kind: type | tuple[type, ...], text: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{what} must be {text}, not {value!r:.60}")


def _path(what: str, value: object) -> Path:
    _require(what, value, (str, os.PathLike), "a path")
    return Path(value)  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    """The value with numbers and arrays of NumPy as those of Python."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value.tolist() if hasattr(value, "tolist") else value
