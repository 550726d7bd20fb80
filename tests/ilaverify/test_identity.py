"""A certificate names the code that its method consists of: all that runs, and nothing of what stands beside."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ilaverify.catalogue import all_entries
from ilaverify.identity import method_files, prover_identity
from reports.certificate import certificate_of
from reports.method_code import PACKAGES, installed
from reports.subjects import Subject
from rewrites.claims.method import METHODS as BY_NAME
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.claims.verify import verify_with
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from tests.bmc.test_sums import RIGHT, SHAPE
from tests.chc.mapping.toy import copy_body, mapping

CODE = installed()
assert BY_NAME.all()  # loads all methods, of which one then proves


@dataclass(frozen=True)
class Case:
    """A claim, its proof, and modules that the digests of the claim itself are of."""

    subject: Subject
    prove: Callable[[], Verdict]
    parameters: dict[str, Any] | None = None
    bound: tuple[str, ...] = ()


def by_name(name: str, *bound: str) -> Case:
    subject = all_entries()[name].build()
    return Case(subject, lambda: subject.prove(Discharger()), None, bound)


def toy(method: str) -> Case:
    claim = RIGHT if method == "hash" else mapping(copy_body, copy_body)
    shape = {"chc": None, "bmc": (2, 3), "hash": SHAPE}[method]
    parameters: dict[str, Any] = {} if shape is None else {"shape": list(shape)}
    if method == "bmc":
        parameters |= {"data": "uninterpreted", "memory": "resolved"}

    def prove() -> Verdict:
        return verify_with(claim, method, Discharger(), shape=shape)

    return Case(MappingSubject(claim), prove, parameters)


CASES: dict[str, Callable[[], Case]] = {
    "chc": partial(toy, "chc"),
    "bmc": partial(toy, "bmc"),
    "hash": partial(toy, "hash"),
    "rule on tensors": partial(by_name, "sum-of-a-flattened-matrix", "ir_semantics.tensors.reductions"),
    "rule on scalars": partial(by_name, "f3-repaired"),
    "token order": partial(by_name, "vta_token_order_single"),
    "lemma on every argument": partial(by_name, "lemma-decode"),
    "lemma by solvers": partial(by_name, "lemma-vta-maximum"),
    "rule of errors": partial(by_name, "error-sum"),
}


def modules_by_file() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        top = CODE.path(package)
        assert top is not None
        for path in top.parent.rglob("*.py"):
            parts = (package, *path.relative_to(top.parent).with_suffix("").parts)
            found[str(path)] = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return found


def modules_that_run(run: Callable[[], Any]) -> tuple[Any, set[str]]:
    """What a function returns, and those of our modules of which any code runs for it, importing included.

    What earlier tests left is collected before: a collection meanwhile would run the code that removes it from caches.
    """
    files: set[str] = set()

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        result = run()
    finally:
        sys.setprofile(None)
        gc.enable()
    known = modules_by_file()
    return result, {known[file] for file in files if file in known}


@pytest.mark.proof
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "token order" else ()) for name in CASES]
)
def test_all_code_that_runs_in_a_proof_and_its_check_is_the_methods_or_the_claims(name: str) -> None:
    case = CASES[name]()
    verdict, proving = modules_that_run(case.prove)
    assert verdict.status is Status.PROVED, verdict.reason
    parameters = case.subject.parameters(verdict) if case.parameters is None else case.parameters
    content = certificate_of(case.subject.semantics(), verdict, parameters, "test")
    required, checking = modules_that_run(lambda: case.subject.required(content))
    assert not isinstance(required, str), required
    code = CODE.of_method(case.subject.provers(verdict.method), type(case.subject))
    assert len(proving) > 5 and proving | checking <= code | set(case.bound)


BESIDE = (
    "ilaverify.cli", "ilaverify.models.compilation", "ilaverify.proving.prove_all", "rewrites.campaigns",
    "ilaverify.catalogue", "rewrites.findings", "rewrites.compiler", "rewrites.egraph",
    "rewrites.claims.gate", "rewrites.rules", "rewrites.mappings",
    "rewrites.claims.registry", "reports.html.page", "reports.formats.sarif", "ir_semantics.onnx", "ir_semantics.graph",
)  # fmt: skip
"""What no proof consists of: modules whose names begin so."""

METHODS = {
    "chc": "chc.mapping", "bmc": "bmc.", "hash": "bmc.sums", "rule on tensors": "chc.tensor_rules",
    "rule on scalars": "chc.scalar_rules", "token order": "chc.token_order",
}  # fmt: skip
SECOND_OPINION = "bmc."
"""What a PROVED of CHC survives: runs, and BMC at one small shape."""


@pytest.mark.parametrize("name", CASES)
def test_nothing_beside_the_method_is_part_of_it(name: str) -> None:
    subject = CASES[name]().subject
    code = CODE.of_method(subject.provers(name if name in ("chc", "bmc", "hash") else subject.method), type(subject))
    own = METHODS.get(name, "")
    others = tuple(p for p in METHODS.values() if not own.startswith(p) and (name, p) != ("chc", SECOND_OPINION))
    assert not [module for module in code if module.startswith((*BESIDE, *others))]
    if name in METHODS:
        assert [module for module in code if module.startswith(METHODS[name])]


def test_identities_differ_by_method_and_name_versions() -> None:
    toy_claim, rule = toy("chc").subject, by_name("f3-repaired").subject
    found = [prover_identity(toy_claim, method) for method in ("chc", "bmc", "hash")] + [prover_identity(rule)]
    assert len({identity["method"] for identity in found}) == 4
    assert prover_identity(toy_claim) == found[0]
    assert found[0]["solvers"].startswith("z3 ") and "cvc5 " in found[0]["solvers"]
    assert named(method_files(rule), "enclosures.py") and not named(method_files(rule), "levels.py")


def named(paths: Iterable[Path], name: str) -> list[Path]:
    return [path for path in paths if path.name == name]
