"""From an ONNX model to a compiled one that runs, is compared and checked; and what happens when it is damaged."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import CommandStream, Simulator, canonical_text
from ilaverify import cli
from ilaverify.catalogue import all_entries, backends, find_backends
from ilaverify.cli.outcomes import chosen_entries
from ilaverify.cli.run import lines_of
from ilaverify.errors import UsageError
from ilaverify.identity import prover_identity
from ilaverify.models.comparison import Comparison, Samples, compare, distance, outputs_beside
from ilaverify.models.compilation import Request, claims_for, compile_model
from ilaverify.models.datasets import dataset_of
from ilaverify.models.loading import load_compiled
from ilaverify.proving import dataset_runs
from ir_semantics.graph.ir import digest_of
from ir_semantics.graph.types import GraphError
from reports.store import CERTIFICATE, ProofStore, key_of
from rewrites.compiler.artefact.arrays import arrays_of, npz_bytes
from rewrites.compiler.artefact.checking import check_compiled
from rewrites.compiler.artefact.contents import check_contents
from rewrites.compiler.artefact.directory import MODEL
from rewrites.compiler.artefact.errors import ArtefactError
from rewrites.compiler.artefact.model import read_compiled, write_compiled
from rewrites.compiler.artefact.running import commands, run_compiled
from rewrites.compiler.artefact.summary import calibration_text, caveats, summary_text
from rewrites.compiler.codegen import Bounds, Devices, Options, programs
from rewrites.compiler.codegen.calibration import calibrate
from rewrites.mappings import programs as programs_of_mappings
from rewrites.mappings.flexasr.claims import LINEAR as DENSE_LAYERS
from rewrites.mappings.flexasr.linear import linear_mapping
from rewrites.targets.flexasr.code.linear import Linear as LinearCode
from rewrites.targets.hlscnn.code import Convolution
from tests.ilaverify.compiled_models import BOUNDS, RESTS_ON, TARGETS, compiled_with, entries, image

ROOT = Path(__file__).parents[3]


@pytest.fixture
def made(place: Path, tmp_path: Path) -> Path:
    """A copy of the compiled model."""
    shutil.copytree(place / "made", tmp_path / "made")
    return tmp_path / "made"


# -- what comes out -----------------------------------------------------------------------------------


def test_what_is_compiled_rests_on_its_certificates(place: Path) -> None:
    compiled = read_compiled(place / "made", backends())
    assert set(compiled.proof.certificates) == {*RESTS_ON, *BOUNDS}
    operators = {compiled.graph.nodes[i].operator for i in compiled.implementations}
    assert operators == {"hlscnn.conv2d", "flexasr.linear"}
    for name, certified in compiled.proof.certificates.items():
        (file,) = (place / "proofs").glob(f"{name}.*.cert.json")
        assert certified.digest == json.loads(file.read_text())["digest"]
    assert [c.what for c in check_compiled(compiled, entries(), place / "proofs") if c.problems] == []


def test_what_is_read_is_what_was_written(place: Path, tmp_path: Path) -> None:
    """Written again it is the same, byte for byte; and so is compiling it again."""
    again = read_compiled(place / "made", backends())
    assert write_compiled(tmp_path / "again", again, again.summary) == again.digest
    fresh = compiled_with(place / "proofs", place / "small.onnx")
    assert write_compiled(tmp_path / "fresh", fresh, summary_text(fresh)) == again.digest
    for path in sorted((place / "made").rglob("*.*")):
        assert (tmp_path / "again" / path.relative_to(place / "made")).read_bytes() == path.read_bytes()


def test_the_summary_says_whose_code_is_around_programs(place: Path) -> None:
    compiled = read_compiled(place / "made", backends())
    assert len(re.findall(r"^\| \d+ \|.*\| proved \| [^|]*\|$", compiled.summary, re.MULTILINE)) == 2
    what = (
        "What the host does for a node's programs (to round and pad operands, to cut them, to put results together) is "
    )
    proved = f"{what}proved programs."
    assert f"\n* {proved}\n" in compiled.summary
    assert [text for text in caveats(compiled) if text.startswith(what)] == [proved]
    first, second = compiled.implementations
    authors: Any = object()  # an implementation that is no FloatImplementation
    mixed = replace(compiled, implementations={**compiled.implementations, second: authors})
    assert [text for text in caveats(mixed) if text.startswith(what)] == [
        f"{what}proved programs, for other nodes than the next line names.",
        f"{what}code of the target's author for node {second}: nothing is proved of it.",
    ]
    alone = replace(compiled, implementations={first: authors, second: authors})
    assert [text for text in caveats(alone) if text.startswith(what)] == [
        f"{what}code of the target's author for nodes {first}, {second}: nothing is proved of it."
    ]
    assert not [text for text in caveats(replace(compiled, implementations={})) if text.startswith(what)]


@pytest.mark.parametrize(("samples", "told"), [(1, "1 given input"), (3, "3 given inputs")])
def test_the_inputs_of_ranges_are_counted(samples: int, told: str, place: Path) -> None:
    compiled = read_compiled(place / "made", backends())
    choices = replace(compiled.choices, calibration={"given": True, "samples": samples})
    assert calibration_text(replace(compiled, choices=choices)) == f"ranges are those of {told}"


def test_a_run_without_accelerator_operators_has_no_table(place: Path) -> None:
    from ilaverify.cli.run import _lines, _Summary

    options = argparse.Namespace(reference="host", directory=place / "made")
    idle = replace(read_compiled(place / "made", backends()), implementations={})
    lines = list(_lines(_Summary(options, idle, Comparison({}, (), (), (), 0.0, 0.0, 0.0, 1, ()), 1, 0.0, 0.0)))
    assert lines[1:5] == ["", "nothing ran on an accelerator", "", "outputs beside host"]
    assert lines[-1] == "nothing ran on an accelerator, so that there are no bounds"


def test_a_run_stays_within_its_bounds(place: Path) -> None:
    compiled = read_compiled(place / "made", backends())
    found = compare(compiled.graph, compiled.implementations, Samples.one(image()))[0]
    assert found.first_outside is None and [n.inside for n in found.nodes] == [True, True]
    for node in found.nodes:
        assert node.own_bound is not None and node.given_bound is not None
        assert 0 < node.own <= node.own_bound <= node.given_bound and not node.cuts
    proved = ["proved by bound-hlscnn-conv2d-weights-of-8-bits", "proved by bound-flexasr-linear"]
    assert [node.known for node in found.nodes] == proved
    assert [node.as_json()["bound_on_quantised_operands_is"] for node in found.nodes] == proved
    assert {node.as_json()["bound_on_given_operands_is"] for node in found.nodes} == {"declared"}
    shown = lines_of(found.nodes)
    assert [line.rpartition("; bound ")[2] for line in shown[1:3]] == proved
    (output,) = found.outputs
    assert 0 < output.error < 0.1 * output.scale


@pytest.mark.parametrize("theorem", ["", "FlexASR GRU step", "nothing"])
def test_a_bound_without_a_theorem_of_its_operator_is_declared(
    theorem: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = read_compiled(place / "made", backends())
    for implementation in compiled.implementations.values():
        monkeypatch.setattr(type(implementation), "bounds", lambda *_: Bounds(1e9, None, theorem=theorem))
    found = compare(compiled.graph, compiled.implementations, Samples.one(image()))[0]
    assert [(node.known, node.inside) for node in found.nodes] == [("declared", True)] * 2
    assert found.nodes[0].as_json()["bound_on_given_operands_is"] is None


@pytest.mark.parametrize("kind", ["hlscnn", "flexasr"])
def test_a_faulty_device_leaves_the_bound(kind: str, place: Path) -> None:
    """A device that reads its results wrongly: the operator is named, not those after it."""

    class Faulty(Devices):
        def of(self, ila: Any) -> Any:
            return _Flipped(ila) if ila.name == kind else super().of(ila)

    compiled = read_compiled(place / "made", backends())
    found = compare(compiled.graph, compiled.implementations, Samples.one(image()), devices=Faulty())[0]
    outside = found.first_outside
    assert outside is not None and outside.operator.startswith(kind)
    assert outside.own > (outside.own_bound or 0.0)


class _Flipped(Simulator):
    """A simulator that returns words with two bits of every byte flipped."""

    def run_words(self, fragment: Any, sizes: Any, words: Any, commands: int) -> None:
        super().run_words(fragment, sizes, words, commands)
        words["host_y"].view(np.uint8)[:] ^= 0x30


def test_the_commands_of_a_run_are_written_out(place: Path) -> None:
    """A device that is sent them ends as one on which the model has run."""
    compiled = read_compiled(place / "made", backends())
    devices, sent = Devices(), dict[str, Simulator]()
    list(run_compiled(compiled.graph, compiled.implementations, image(), devices))
    for name, columns in commands(compiled.graph, compiled.implementations, image()):
        number, call = map(int, name.split("-"))
        implementation = compiled.implementations[number]
        assert len(CommandStream(columns)) == compiled.programs[number][call]["commands"]
        ila = implementation.calls[call].mapping.mapping.device.ila
        sent[name] = Simulator(ila)
        sent[name].execute(CommandStream(columns))
        ran = devices.of(ila)
        assert sent[name].values == ran.values
        assert all(np.array_equal(m.words, ran.memories[n].words) for n, m in sent[name].memories.items())
    assert sent.keys() == {f"{number}-0" for number in compiled.implementations}


def test_run_writes_the_commands_out(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", **image())
    told = [place / "made", "--inputs", tmp_path / "x.npz", "--commands", tmp_path / "sent"]
    code, out, err = run(capsys, "run", *told)
    assert (code, err) == (0, "") and f"\nwritten   {tmp_path / 'sent'}\n" in out
    compiled = read_compiled(place / "made", backends())
    expected = dict(commands(compiled.graph, compiled.implementations, image()))
    assert {path.stem for path in (tmp_path / "sent").iterdir()} == expected.keys()
    for name, columns in expected.items():
        with np.load(tmp_path / "sent" / f"{name}.npz") as stored:
            assert {n: a.tolist() for n, a in stored.items()} == {n: a.tolist() for n, a in columns.items()}
    code, _, err = run(capsys, "run", *told)
    assert code == 64 and "must be a new directory" in err


def test_distance() -> None:
    one = np.array([0.0, np.nan, np.inf])
    assert distance(one, one) == 0.0 and np.isnan(distance(one, np.array([0.0, 1.0, np.inf])))
    assert distance(one, np.array([0.5, np.nan, np.inf])) == 0.5 and distance(np.zeros(0), np.zeros(0)) == 0.0


# -- certificates ------------------------------------------------------------------------------------


def damaged(proofs: Path, name: str, attack: str) -> None:
    (file,) = proofs.glob(f"{name}.*.cert.json")
    content = json.loads(file.read_text())
    if attack == "deleted":
        file.unlink()
    elif attack == "a byte":
        file.write_text(file.read_text().replace('"pretended"', '"pretendee"', 1))
    else:
        from reports.certificate import certificate_text, content_digest

        if attack == "another prover":
            content["tool"] = "ilaverify 0.1.0, method 0123456789abcdef"
        else:
            content["semantics"] = dict.fromkeys(content["semantics"], "0" * 64)
        file.write_text(certificate_text({**content, "digest": content_digest(content)}))


REASONS = {
    "deleted": "there is no certificate",
    "a byte": "the digest must match the content",
    "stale": "its semantics must be that of the claim as it is now",
    "another prover": "it is of another prover (ilaverify 0.1.0, method 0123456789abcdef, not ilaverify ",
}


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        pytest.param(attack, name, marks=pytest.mark.slow if i != j % len(REASONS) else ())
        for i, attack in enumerate(REASONS)
        for j, name in enumerate(RESTS_ON)
    ],
)
def test_without_any_one_certificate_the_compiled_model_is_another_and_says_so(
    attack: str, name: str, place: Path, tmp_path: Path
) -> None:
    shutil.copytree(place / "proofs", tmp_path / "proofs")
    damaged(tmp_path / "proofs", name, attack)
    before = read_compiled(place / "made", backends())
    after = compiled_with(tmp_path / "proofs", place / "small.onnx")
    assert REASONS[attack] in after.proof.left_out[name]
    assert name not in after.proof.certificates and set(after.proof.certificates) < set(before.proof.certificates)
    calls = [[call.as_json() for i in c.implementations.values() for call in i.calls] for c in (before, after)]
    assert len(calls[1]) < len(calls[0])
    assert f"* {name}: " in summary_text(after)
    # what had been compiled is no longer accepted
    problems = [p for c in check_compiled(before, entries(), tmp_path / "proofs") for p in c.problems]
    assert any(p.startswith(f"{name}: ") for p in problems), problems


def test_without_the_certificate_of_a_lemma_no_bound_is_stated(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "proofs", tmp_path / "proofs")
    damaged(tmp_path / "proofs", "lemma-hlscnn-requantise", "deleted")
    compiled = compiled_with(tmp_path / "proofs", place / "small.onnx")
    assert "there is no certificate" in compiled.proof.left_out["lemma-hlscnn-requantise"]
    found = compare(
        compiled.graph, compiled.implementations, Samples.one(image()), certified=compiled.proof.certificates
    )[0]
    convolution, dense = found.nodes
    assert convolution.inside is None and dense.inside is True
    assert convolution.reason == "it would rest on lemma-hlscnn-requantise, which holds no certificate"


def test_without_the_certificate_of_a_conversions_lemma_bounds_are_declared(place: Path) -> None:
    compiled = read_compiled(place / "made", backends())
    certified = set(compiled.proof.certificates) - {"lemma-16-bits-to-float32"}
    found = compare(compiled.graph, compiled.implementations, Samples.one(image()), certified=certified)[0]
    assert [node.known for node in found.nodes] == ["declared", "proved by bound-flexasr-linear"]


@pytest.fixture
def other_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Code for dense layers is generated from a mapping of the same name, on another reading of the hardware."""

    def forget() -> None:
        for cached in (programs._semantics, programs.fragment_digest, programs_of_mappings._program):
            cached.cache_clear()

    older = linear_mapping(options=FlexAsrOptions(saturation="pre2022"))
    forget()
    with monkeypatch.context() as patch:
        patch.setitem(vars(DENSE_LAYERS["none"]), "mapping", older)
        yield
    forget()


@pytest.mark.usefixtures("other_programs")
def test_a_certificate_is_not_of_another_program_of_the_same_name(place: Path) -> None:
    compiled = compiled_with(place / "proofs", place / "small.onnx")
    assert {compiled.graph.nodes[i].operator for i in compiled.implementations} == {"hlscnn.conv2d"}
    (left,) = (host for host in compiled.host if host.operator == "flexasr.linear")
    assert left.reason.endswith(": its program is not the one that the certificate of flexasr_linear is of")
    # and what had been compiled is no longer accepted
    found = {
        c.what: c.problems
        for c in check_compiled(read_compiled(place / "made", backends()), entries(), place / "proofs")
    }
    assert found["certificates"] == (
        "flexasr_linear: its programs must be those that the certificate is of; they are others",
    )


def test_another_certificate_of_the_same_claim_is_not_the_one_that_the_model_names(place: Path, tmp_path: Path) -> None:
    from reports.certificate import certificate_text, content_digest

    shutil.copytree(place / "proofs", tmp_path / "proofs")
    (file,) = (tmp_path / "proofs").glob("transposed-twice.*")
    content = {**json.loads(file.read_text()), "seconds": 7}
    file.write_text(certificate_text({**content, "digest": content_digest(content)}))
    compiled = read_compiled(place / "made", backends())
    problems = [p for c in check_compiled(compiled, entries(), tmp_path / "proofs") for p in c.problems]
    assert problems[0].startswith("transposed-twice: the model rests on the certificate ")


# -- attacks on the files, with all digests made right again -------------------------------------------


def resealed(directory: Path, change: Callable[[dict[str, Any]], object] | None = None, **files: bytes) -> None:
    """Changes the model or files, and makes every digest right again: what a forger would do."""
    content = json.loads((directory / MODEL).read_text())
    for name, data in files.items():
        path = name.replace("__", "/").replace("_DOT_", ".")
        (directory / path).write_bytes(data)
        content["files"][path] = hashlib.sha256(data).hexdigest()
    if change is not None:
        change(content)
    body = {k: v for k, v in content.items() if k != "digest"}
    content["digest"] = hashlib.sha256(canonical_text(body).encode()).hexdigest()
    (directory / MODEL).write_text(canonical_text(content) + "\n")


def changed_file(directory: Path, name: str, change: Callable[[Any], object]) -> None:
    content = json.loads((directory / name).read_text())
    change(content)
    data = (canonical_text(content) + "\n").encode()
    resealed(directory, **{name.replace(".", "_DOT_"): data})


def changed_arrays(directory: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    arrays = {n: a.copy() for n, a in arrays_of("it", (directory / name).read_bytes()).items()}
    change(arrays)
    resealed(directory, **{name.replace("/", "__").replace(".", "_DOT_"): npz_bytes(arrays)})


def first_buffer(directory: Path, **changes: Any) -> None:
    changed_file(directory, "plan.json", lambda content: content["host"]["buffers"][0].update(changes))


def change_programs(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """What every program is said to be, changed."""

    def changed(content: dict[str, Any]) -> None:
        for node in content["accelerated"]:
            for call in node["calls"]:
                change(call["program"])

    return lambda directory: resealed(directory, changed)


def change_weights(directory: Path) -> None:
    """Another weight in the place of one that goes to an accelerator, under the digest that it has."""
    arrays = {n: a.copy() for n, a in arrays_of("it", (directory / "constants.npz").read_bytes()).items()}
    old = next(name for name, array in arrays.items() if array.ndim == 4)
    array = arrays.pop(old)
    array.reshape(-1)[0] += 1
    arrays[digest_of(array)] = array
    resealed(directory, constants_DOT_npz=npz_bytes(arrays))
    for name in (MODEL, "chain.json"):
        text = (directory / name).read_text().replace(old, digest_of(array))
        if name == MODEL:
            (directory / name).write_text(text)
            resealed(directory)
        else:
            changed_file(directory, name, lambda content, text=text: content.update(json.loads(text)))


def use_another_rule(content: dict[str, Any]) -> None:
    content["explanations"]["rules"][0][0] = "a rule that nobody proved"


def with_a_key_twice(directory: Path, name: str) -> None:
    data = (directory / name).read_bytes()
    key = next(iter(json.loads(data)))
    resealed(directory, **{name.replace(".", "_DOT_"): data.replace(b"{", f'{{"{key}":0,'.encode(), 1)})


def swap_operator(content: dict[str, Any]) -> None:
    node = next(n for n in content["graph"]["nodes"] if n["operator"] == "relu")
    node["operator"] = "sigmoid"


def other_program(content: dict[str, Any]) -> None:
    one, other = content["accelerated"]
    one["calls"][0]["program"] = other["calls"][0]["program"]


FORGERIES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "a fragment": (change_programs(lambda p: p.update(fragment="0" * 64)), "programs", "is another (fragment)"),
    "a number of commands": (change_programs(lambda p: p.update(commands=1)), "programs", "is another (commands)"),
    "an extent that is no integer": (
        change_programs(lambda p: p["reads"].update(host_x=float(p["reads"]["host_x"]))), "programs", "another (reads)",
    ),
    "a tensor's extent": (change_programs(lambda p: p["reads"].update(host_x=1)), "programs", "is another (reads)"),
    "a result's extent": (change_programs(lambda p: p["writes"].clear()), "programs", "is another (writes)"),
    "codes": (
        change_programs(lambda p: p["constants"].update(host_w="0" * 64)), "programs", "is another (constants)",
    ),
    "no codes": (change_programs(lambda p: p.pop("constants")), "programs", "is another (constants)"),
    "more of a program": (change_programs(lambda p: p.update(more=1)), "programs", "must be the proved fragment"),
    "another program": (lambda d: resealed(d, other_program), "programs", "is another (fragment, commands, reads"),
    "an operator less": (lambda d: resealed(d, lambda c: c["accelerated"].pop()), "summary", "must be of this model"),
    "a weight": (change_weights, "programs", "is another (constants)"),
    "a rule": (lambda d: changed_file(d, "chain.json", use_another_rule), "chain of rules", "there is no rule"),
    "an address": (
        lambda d: changed_file(d, "plan.json", lambda c: [b.update(address=0) for b in c["host"]["buffers"]]),
        "memory plan", "must not share a cell",
    ),
    "a live interval": (lambda d: first_buffer(d, end=9), "memory plan", "is for others"),
    "a claim": (
        lambda d: resealed(d, lambda c: c["certificates"]["transposed-twice"].update(size_domain="more")),
        "certificates", "must quote the claim as it is",
    ),
    "a certificate": (
        lambda d: resealed(d, lambda c: c["certificates"].pop(RESTS_ON[1])), "certificates", "does not name its",
    ),
    "a claim that there is not": (
        lambda d: resealed(d, lambda c: c["certificates"].update(x=c["certificates"]["transposed-twice"])),
        "certificates", "x: there is no claim of this name",
    ),
    "a stronger equality": (
        lambda d: resealed(d, lambda c: c.update(equality="bit_exact")), "chain of rules", "the weakest rule,",
    ),
    "the summary": (lambda d: resealed(d, SUMMARY_DOT_md=b"All is proved.\n"), "summary", "must be of this model"),
    "an operator on the host less": (
        lambda d: resealed(d, lambda c: c["host"].pop()), "summary",
        "the operators on the host must be those that no program computes: 1 pad, 1 relu, 1 reshape",
    ),
    "an operator on the host twice": (
        lambda d: resealed(d, lambda c: c["host"][0].update(count=2)), "summary", "the operators on the host must be",
    ),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_found_by_making_everything_again(forgery: str, place: Path, made: Path) -> None:
    change, what, reason = FORGERIES[forgery]
    change(made)
    found = {
        c.what: c.problems
        for c in check_compiled(read_compiled(made, backends()), entries(), place / "proofs")
        if c.problems
    }
    assert what in found and any(reason in p for p in found[what]), found


def test_another_source_is_found(place: Path, made: Path) -> None:
    """The model that was compiled is the one that the chain starts from."""
    import onnx

    model = onnx.load(made / "source.onnx")
    model.graph.node[0].attribute[0].ints[0] = 0
    resealed(made, source_DOT_onnx=model.SerializeToString(deterministic=True))
    found = [c for c in check_compiled(read_compiled(made, backends()), entries(), place / "proofs") if c.problems]
    assert "chain of rules" in [c.what for c in found]


def test_arrays_are_stored_once(place: Path) -> None:
    """The model's weights are among the constants, and nowhere else."""
    compiled = read_compiled(place / "made", backends())
    stored = arrays_of("it", (place / "made" / "constants.npz").read_bytes())
    assert {a.shape for a in stored.values() if a.ndim == 2} == {(5, 144)}
    constants = compiled.proof.rewritten.constants
    assert {constants[d].shape for d in set(constants) - set(stored)} == {(144, 5)}
    weights = next(a for a in stored.values() if a.ndim == 2).tobytes()
    holders = [p.name for p in (place / "made").rglob("*.*") if weights in p.read_bytes()]
    assert holders == ["constants.npz"]


def test_other_tools_read_the_source_where_it_lies(place: Path) -> None:
    import onnx

    compiled = read_compiled(place / "made", backends())
    original, source = onnx.load(place / "small.onnx"), onnx.load(place / "made" / "source.onnx")
    pairs = list(zip(original.graph.initializer, source.graph.initializer, strict=True))
    assert [t.raw_data for t, _ in pairs] == [t.raw_data for _, t in pairs]
    assert onnx.load_from_string(compiled.model.source.as_onnx()).graph.node == original.graph.node


def tensor_elsewhere(directory: Path, **told: str) -> None:
    """The source with another place of its large tensor."""
    import onnx

    model = onnx.load(directory / "source.onnx", load_external_data=False)
    (tensor,) = (t for t in model.graph.initializer if t.external_data)
    for entry in tensor.external_data:
        entry.value = told.get(entry.key, entry.value)
    resealed(directory, source_DOT_onnx=model.SerializeToString(deterministic=True))


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"location": "/etc/passwd"}, "must lie in the model's folder"),
        ({"location": "../constants.npz"}, "must lie in the model's folder"),
        ({"location": "none.npz"}, "must be"),
        ({"offset": "1000000"}, "must"),
        ({"length": "4"}, "must have 2880 bytes"),
    ],
    ids=str,
)
def test_a_source_with_data_elsewhere_is_refused(told: dict[str, str], reason: str, place: Path, made: Path) -> None:
    tensor_elsewhere(made, **told)
    compiled = read_compiled(made, backends())
    with pytest.raises(GraphError, match=reason):
        compiled.model.source.as_onnx()
    (chain,) = [c for c in check_compiled(compiled, entries(), place / "proofs") if c.what == "chain of rules"]
    assert chain.problems and reason in chain.problems[0]


def test_a_source_with_other_data_is_found(place: Path, made: Path) -> None:
    """The header of an array taken for elements: another model."""
    tensor_elsewhere(made, offset="64")
    found = [c for c in check_compiled(read_compiled(made, backends()), entries(), place / "proofs") if c.problems]
    assert "chain of rules" in [c.what for c in found]


def test_a_run_needs_no_solvers(place: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **image())
    script = (
        "import sys; from ilaverify.cli import main; "
        f"main(['run', {str(place / 'made')!r}, '--input', {str(tmp_path / 'x.npz')!r}]); "
        "sys.exit(','.join(sorted({'z3', 'cvc5', 'pysmt', 'onnx'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_chain_is_read_when_it_is_looked_at(place: Path, made: Path) -> None:
    changed_file(made, "chain.json", lambda content: content["explanations"].pop("rules"))
    compiled = read_compiled(made, backends())
    assert compare(compiled.graph, compiled.implementations, Samples.one(image()))[0].first_outside is None
    with pytest.raises(ArtefactError, match="must have exactly the keys"):
        dict(compiled.proof.explanations)
    (chain,) = [c for c in check_compiled(compiled, entries(), place / "proofs") if c.what == "chain of rules"]
    assert "must have exactly the keys" in chain.problems[0]


def test_a_forged_weight_is_found(made: Path) -> None:
    """A constant under another digest is refused when read; under its own one, programs are no longer its."""

    def add_one(arrays: dict[str, Any]) -> None:
        name, array = next((n, a) for n, a in sorted(arrays.items()) if a.ndim == 4)
        arrays[name] = array + 1

    changed_arrays(made, "constants.npz", add_one)
    with pytest.raises(ArtefactError, match="must have that digest"):
        read_compiled(made, backends())


def accelerated(number: int, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """A change to what the model says of an accelerator operator."""
    return lambda directory: resealed(directory, lambda content: change(content["accelerated"][number]))


def shared(directory: Path, change: Callable[[list[Any]], object]) -> None:
    """A change to how the one constant that is not stored is made."""
    resealed(directory, lambda content: change(*content["shared"].values()))


def ranges(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """A change to the ranges that calibration saw, by node."""
    resealed(directory, lambda content: change(content["calibration"]["ranges"]))


def first(content: dict[str, Any]) -> dict[str, Any]:
    """What stands first in an object."""
    found: dict[str, Any] = next(iter(content.values()))
    return found


READING: dict[str, tuple[Callable[[Path], None], str]] = {
    "other calls": (accelerated(0, lambda a: a["calls"][0]["sizes"].update(h=5)), "must be those that follow"),
    "other formats": (accelerated(1, lambda a: a["quantisation"].update(bias_x=900)), "must be one that mappings"),
    "a parameter less": (accelerated(1, lambda a: a["quantisation"].pop("bias_x")), "must be one that mappings"),
    "an absurd scale": (accelerated(0, lambda a: a["quantisation"].update(scale_x=10**12)), "in -4096 .. 4096"),
    "another target": (lambda d: resealed(d, lambda c: c["targets"].append("tpu")), "must be among flexasr, hlscnn"),
    "a node twice": (
        lambda d: resealed(d, lambda c: c["accelerated"].append(c["accelerated"][0])), "must be there once",
    ),
    "a node of the host": (accelerated(0, lambda a: a.update(node=0)), "must be one that mappings"),
    "a program elsewhere": (
        accelerated(0, lambda a: a["calls"][0].update(program="constants.npz")), "program must be an object, not",
    ),
    "no number of commands": (
        accelerated(0, lambda a: a["calls"][0]["program"].pop("commands")), "commands must be a natural number, not No",
    ),
    "no program": (accelerated(0, lambda a: a["calls"][0].pop("program")), "program must be an object, not None"),
    "a file more": (
        lambda d: resealed(d, programs_DOT_npz=npz_bytes({})), "files must be those that compile writes; programs.npz",
    ),
    "another equality": (lambda d: resealed(d, lambda c: c.update(equality="exactly")), "equality must be one of"),
    "a key more": (lambda d: resealed(d, lambda c: c.update(more=1)), "must have exactly the keys"),
    "a plan of another form": (
        lambda d: changed_file(d, "plan.json", lambda c: c["host"].pop("peak")), "must have exactly the keys",
    ),
    "no peak": (
        lambda d: changed_file(d, "plan.json", lambda c: c["host"].update(peak={})), "peak must be",
    ),
    "a chain with a key twice": (
        lambda d: with_a_key_twice(d, "chain.json"), "chain.json: the text must be in canonical form",
    ),
    "a plan with a key twice": (
        lambda d: with_a_key_twice(d, "plan.json"), "plan.json: the text must be in canonical form",
    ),
    "no ranges of a node": (lambda d: ranges(d, lambda c: c.popitem()), "must be an object of numbers, not None"),
    "a range less": (lambda d: ranges(d, lambda c: first(c).popitem()), "must have exactly the keys"),
    "a range below 0": (lambda d: ranges(d, lambda c: first(c).update(x=-1.0)), "x must be a magnitude, not -1.0"),
    "a fixed tensor": (lambda d: first_buffer(d, fixed=0), "must have exactly the keys"),
    "a plan of something else": (
        lambda d: changed_file(d, "plan.json", lambda c: c.update(devices=[])), "must have exactly the keys",
    ),
    "no name": (lambda d: first_buffer(d, name=[]), "must be a text"),
    "another operator": (lambda d: resealed(d, swap_operator), "graph must be the rewritten one of chain.json"),
    "an array for another": (
        lambda d: shared(d, lambda told: told.__setitem__(2, False) or told[1].reverse()), "it is another array",
    ),
    "an array from nowhere": (lambda d: shared(d, lambda told: told.__setitem__(0, "0" * 64)), "that is stored, in a"),
    "an array of another size": (lambda d: shared(d, lambda told: told[1].append(2)), "in a shape of as many elements"),
    "an array that is no matrix": (lambda d: shared(d, lambda told: told[1].__setitem__(0, -5)), "a natural number"),
    "an array in no form": (lambda d: shared(d, lambda told: told.pop()), "digest, shape, transposed"),
    "9 bits": (lambda d: resealed(d, lambda c: c["options"].update(weight_bits=9)), "weight_bits must be 8 or 16"),
    "bits in words": (
        lambda d: resealed(d, lambda c: c["options"].update(weight_bits="8")), "weight_bits must be 8 or 16, not '8'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", READING)
def test_what_compile_would_not_write_is_not_read(attack: str, made: Path) -> None:
    change, reason = READING[attack]
    change(made)
    with pytest.raises(ArtefactError, match=reason):
        read_compiled(made, backends())


def test_codes_that_would_be_others_now_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs has the codes that were compiled, also where constants would be other numbers by now."""
    right = LinearCode._codes

    def other(self: Any, name: str, operand: Any) -> Any:
        return right(self, name, operand) ^ np.uint32((name == "w") << 31)

    load_compiled(place / "made")
    monkeypatch.setattr(LinearCode, "_codes", other)
    compiled = read_compiled(place / "made", backends())
    assert [c.what for c in check_contents(compiled) if c.problems] == ["programs"]
    with pytest.raises(UsageError, match=r"flexasr_linear at its sizes, with the model's constants; .* \(constants\)"):
        load_compiled(place / "made")


# -- the command line ----------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = cli.main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_run_and_check_as_commands(place: Path, tmp_path: Path) -> None:
    """In processes of their own."""
    np.savez(tmp_path / "x.npz", **image())
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings")])}
    command = [sys.executable, "-m", "ilaverify"]

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *map(str, arguments)], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    done = call("run", place / "made", "--inputs", "x.npz", "--output", "y.npz")
    assert (done.returncode, done.stderr) == (0, "")
    bounds = "2 of 2 operators are within their bounds, computed here; that bounds are proved rests on the certificates"
    assert (
        f"{bounds} above, and on calls that ilaverify check looks at\n" in done.stdout
        and "written   y.npz" in done.stdout
    )
    unchecked = f"\nas the directory says, not checked here; ilaverify check {place / 'made'} does\n  equality  "
    assert (
        unchecked in done.stdout
        and f"\n  rests on  {len(RESTS_ON) + len(BOUNDS)} certificates, by digest\n" in done.stdout
    )
    for name in (*RESTS_ON, *BOUNDS):
        assert name in done.stdout
    with np.load(tmp_path / "y.npz") as results:
        assert results["scores"].shape == (1, 5)
    (tmp_path / "none").mkdir()
    done = call("check", place / "made", "--proofs", tmp_path / "none")
    assert done.returncode == 1 and done.stdout.startswith(f"REJECTED  {place / 'made'}\n")
    assert (
        "  certificates: hlscnn_conv2d_8bit: there is no certificate (hlscnn_conv2d_8bit.chc.cert.json); prove it"
        in done.stdout
    )
    assert "  programs: 2 programs of" in done.stdout and done.stdout.endswith("0 accepted, 1 rejected\n")


@pytest.mark.parametrize("model", ["made", "without certificates"])
def test_proofs_that_are_no_directory(
    model: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place / "made"
    if model != "made":
        path, empty = tmp_path / "m", tmp_path / "empty"
        empty.mkdir()
        request = ("--target", "vta", "-o", path, "--proofs", empty, "--no-store")
        assert run(capsys, "compile", place / "small.onnx", *request)[0] == 0
    for proofs in (tmp_path / "nosuch", path / "model.json"):
        assert run(capsys, "check", path, "--proofs", proofs) == (
            64,
            "",
            f"ilaverify: proofs must be a directory of certificates, and {proofs} is none; ilaverify prove -o DIR "
            "makes one\n",
        )


@pytest.mark.slow
def test_pretended_proofs_are_found_when_solvers_are_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", place / "made", "--proofs", place / "proofs", "--solver", "cvc5", "--json")
    found = json.loads(out)
    assert code == 1 and found[0]["accepted"] and not any(f["accepted"] for f in found[1:])
    assert len(found) == 1 + len(RESTS_ON) + len(BOUNDS)


def test_run_as_json_with_onnxruntime(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    np.savez(tmp_path / "x.npz", **image())
    more = ("--reference", "onnxruntime", "--json")
    code, out, _ = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npz", *more)
    told = json.loads(out)
    assert told["samples"] == {"done": 1, "number": 1} and told["fastest_seconds"] == told["seconds"] > 0
    assert code == 0 and told["schema"] == "ilaverify-run-3" and told["first_outside"] is None
    assert [o["operator"] for o in told["operators"]] == ["hlscnn.conv2d", "flexasr.linear"]
    compiled = read_compiled(place / "made", backends())
    (host,) = compare(compiled.graph, compiled.implementations, Samples.one(image()))[0].outputs
    # the two references differ by binary32 roundings of sums of 144 products of numbers below 4
    assert abs(told["outputs"][0]["error"] - host.error) < 144 * 16 * 2.0**-23


def test_the_bound_of_the_network_stands_beside_its_error(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = run(capsys, "run", place / "made", "--random", "3")
    assert (
        code == 0
        and "\nbounds of the network on these inputs, beside the reference in float64\n  scores: largest " in out
    )
    declared = out.partition("\n    declared, in at least one sample: ")[2].partition("\n")[0]
    assert declared == "which roundings an element of hlscnn.conv2d has" and "(hlscnn.conv2d)" in out
    always = "  scores, for all inputs in the calibrated ranges: "
    whole = json.loads(run(capsys, "run", place / "made", "--random", "3", "--json")[1])
    (told,), (ranges,) = whole["network_bounds"], whole["bounds_in_ranges"]["outputs"]
    if whole["bounds_in_ranges"]["outside"]:
        left = f"; {whole['bounds_in_ranges']['outside']} of 3 samples left them\n"
        assert re.search(f"\n{always}bound {ranges['bound']:.3g}.*{left}", out)
    else:
        factor = ranges["bound"] / told["error"]
        assert f"{always}bound {ranges['bound']:.3g}, {factor:.3g} times the error" in out
    assert ranges["bound"] > told["bound"]
    assert told["inside"] and told["bound"] > told["error"] > 0 and told["factor"] == told["bound"] / told["error"]
    assert sum(part["most"] for part in told["own"]) + abs(told["known"]) == pytest.approx(told["bound"], rel=1e-5)
    monkeypatch.setattr(Convolution, "bounds", lambda self, executed: Bounds(None, None, "nothing is stated"))
    assert "conv2d has no bound: nothing is stated\n" in run(capsys, "run", place / "made", "--random", "3")[1]


def test_samples_that_leave_the_ranges_have_no_bound_by_them(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", image=np.stack([image()["image"] * scale for scale in (0.1, 100, 0.1)]))
    _, out, _ = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npz")
    told = (
        r"  scores, for all inputs in the calibrated ranges: bound [0-9.]+(, which says nothing: .*)?; 1 of 3 samples "
    )
    assert re.search(f"\n{told}left them\n", out)
    np.savez(tmp_path / "x.npz", image=np.stack([image()["image"] * 0.1] * 2))
    _, out, _ = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npz")
    assert re.search(r"\n  scores, for all inputs in the calibrated ranges: bound [0-9.]+", out)


def test_a_run_beyond_a_bound_says_which(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ilaverify.models import comparison

    monkeypatch.setattr(comparison, "distance", lambda one, other: 1e3)
    code, out, _ = run(capsys, "run", place / "made", "--random", "3")
    assert (
        code == 1 and "BEYOND ITS BOUND: node" in out and "(hlscnn.conv2d) is the first operator that leaves it" in out
    )


def test_a_run_beyond_the_bound_in_ranges_says_so(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ilaverify.models import bounds

    plain = bounds.in_ranges
    monkeypatch.setattr(bounds, "in_ranges", lambda *of: [replace(bound, bound=1e-9) for bound in plain(*of)])
    for scale, expected in ((0.1, 1), (100, 2)):  # one whose numbers leave the ranges says nothing of the bound
        np.savez(tmp_path / "x.npz", **{name: array * scale for name, array in image().items()})
        code, out, _ = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npz")
        assert code == expected
        said = "BEYOND ITS BOUND: output scores is further off than the bound for all inputs in the calibrated ranges"
        assert (said in out) is (expected == 1)


def test_indices_have_no_distance() -> None:
    """One of two indices that flips between 0 and 5 is one that differs, and not 5 off of values up to 5."""
    (one,) = outputs_beside({"top": np.array([3, 0])}, {"top": np.array([3, 5])})
    assert not one.unrelated and one.text == "1 of 2 elements differ"
    (both,) = outputs_beside({"top": np.array([2, 0])}, {"top": np.array([3, 5])})
    assert both.unrelated and both.as_json()["differing"] == 2
    (same,) = outputs_beside({"y": np.array([np.nan, 1.0])}, {"y": np.array([np.nan, 1.0])})
    assert same.differing == 0 and not same.unrelated


@pytest.mark.parametrize("value", [1e-3, np.nan])
def test_outputs_as_far_off_as_the_reference_is_large_are_no_success(
    value: float, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "x.npz", **image())
    other = {"scores": np.full((1, 5), value, "float32")}
    monkeypatch.setattr(dataset_runs, "run_onnx", lambda model, inputs: other)
    command = ("run", place / "made", "--inputs", tmp_path / "x.npz", "--reference", "onnxruntime")
    code, out, _ = run(capsys, *command)
    assert code == 2 and "\nUNRELATED TO THE REFERENCE onnxruntime: output scores: largest error " in out
    assert f", of values up to {np.float32(value):.3g}; calibrate with real inputs" in out
    code, out, _ = run(capsys, *command, "--json")
    told = json.loads(out)
    assert code == 2 and told["outputs"][0]["unrelated"] is True
    assert told["as_the_directory_says"]["note"] == "as the directory says, not checked here"
    assert set(told["as_the_directory_says"]) == {"note", "equality", "certificates"}


@pytest.mark.parametrize("error", [50.0, np.nan])
def test_an_operator_without_a_bound_that_is_far_off_is_no_success(
    error: float,
    place: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where sums wrap: nothing is proved of them, and the result has nothing to do with the operator's."""
    from ilaverify.models import comparison

    np.savez(tmp_path / "x.npz", **image())
    plain, asked = comparison.distance, []
    monkeypatch.setattr(comparison, "bounds_of_run", lambda *_: Bounds(None, None, "a sum may wrap"))
    command = ("run", place / "made", "--inputs", tmp_path / "x.npz")
    code, out, _ = run(capsys, *command)
    assert code == 0 and "FAR OFF" not in out and ": no bound: a sum may wrap" in out

    def first_is_off(one: Any, other: Any) -> float:
        asked.append(one)
        return error if len(asked) == 1 else plain(one, other)

    monkeypatch.setattr(comparison, "distance", first_is_off)
    code, out, _ = run(capsys, *command)
    assert code == 2 and "\nFAR OFF WITHOUT A BOUND: node " in out
    assert f" (hlscnn.conv2d) is {error:.3g} off on what it got, where values are up to " in out
    assert ", and no bound holds: a sum may wrap; its sums have wrapped, as a rule; calibrate with inputs like" in out
    asked.clear()
    code, out, _ = run(capsys, *command, "--json")
    assert code == 2 and [o["unrelated"] for o in json.loads(out)["operators"]] == [True, False]


def test_inputs_beyond_calibration_are_no_success(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All 72 numbers are cut, so that bounds of the table are about other inputs than the user's."""
    np.savez(tmp_path / "x.npz", image=np.full((1, 2, 6, 6), 1e6, "float32"))
    code, out, _ = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npz")
    assert code == 2
    (node,) = re.findall(r"^ +(\d+)  hlscnn.conv2d", out, re.MULTILINE)
    # the pad of zeros around each image is the host's, so that the accelerator's operand has 2 * 8 * 8 numbers
    cut = "\n       72 of 128 numbers of x were cut to the range of their format\n"
    assert f"{cut}       on the operands as they were given, the error is " in out
    assert "\nerror and bound are on the operands as the accelerator got them, rounded and cut to its formats\n" in out
    assert (
        f"\nINPUTS BEYOND CALIBRATION: 2 of 2 operators got or computed numbers that were cut, the first is "
        f"node {node}; bounds in the table are about what was left of operands, and include "
        "the cut of results; compile with inputs like these (compile --calibrate)\n"
    ) in out
    assert "\n0 of 2 operators are within their bounds, computed here" in out
    code, out, _ = run(capsys, "run", place / "made", "--inputs", tmp_path / "x.npz", "--json")
    first = json.loads(out)["operators"][0]
    assert code == 2 and first["saturated"] == {"x": 72} and first["beyond_calibration"] is True
    assert first["error_on_given_operands"] > 1e4 * first["error_on_quantised_operands"]


def test_a_bound_beside_numbers_that_were_cut_is_that_on_the_inputs_as_given(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = np.zeros((1, 2, 6, 6), "float32")
    given[0, 0, 3, 3] = 8.0
    np.savez(tmp_path / "x.npz", image=given)
    command = ("run", place / "made", "--inputs", tmp_path / "x.npz")
    code, out, _ = run(capsys, *command)
    first, second = json.loads(run(capsys, *command, "--json")[1])["operators"]
    assert code == 2 and first["inside"] is second["inside"] is True and first["saturated"] == {}
    assert second["saturated"] == {"x": 1} and second["beyond_calibration"] is True
    error, bound = second["error_on_given_operands"], second["bound_on_given_operands"]
    assert bound >= error > 10 * second["bound_on_quantised_operands"]
    assert (
        "       1 of 144 numbers of x were cut to the range of their format\n"
        "       on the operands as they were given, "
        f"the error is {error:.3g}, and there is the bound {bound:.3g}, declared\n"
    ) in out
    assert "\n1 of 2 operators is within its bound, computed here" in out


def test_numbers_that_were_cut_when_the_model_was_compiled_are_told(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Published formats have no scales, so that weights of 100 leave the 8 bits of HLSCNN: compile's choice."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(place / "small.onnx")
    (filters,) = (t for t in model.graph.initializer if t.name == "filters")
    filters.CopyFrom(numpy_helper.from_array(np.full((4, 2, 3, 3), 100, "float32"), "filters"))
    onnx.save(model, tmp_path / "m.onnx")
    made = compiled_with(place / "proofs", tmp_path / "m.onnx", options=Options(as_published=True))
    write_compiled(tmp_path / "made", made, summary_text(made))
    np.savez(tmp_path / "x.npz", image=image()["image"] / 100)
    code, out, _ = run(capsys, "run", tmp_path / "made", "--inputs", tmp_path / "x.npz")
    assert "\n       72 of 72 numbers of w were cut to the range of their format, when the model was compiled\n" in out
    assert code == 2 and "UNRELATED TO THE REFERENCE" in out and "INPUTS BEYOND CALIBRATION" not in out


def test_seeds_of_random_inputs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {run(capsys, "run", place / "made", "--random", "1", *s)[1].splitlines()[3] for s in ((), ("--seed", "1"))}
    assert len(shown) == 2
    for option, message in (
        (("--random", "0"), "argument --random: must be a positive integer, not '0'\n"),
        (("--random", "1", "--seed", "one"), "argument --seed: must be a seed, an integer of 0 or more, not 'one'\n"),
        (("--seed", "1", "--inputs", "x"), "--seed draws inputs; give --random N as well, or leave --seed out\n"),
    ):
        code, out, err = run(capsys, "run", place / "made", *option)
        assert (code, out) == (64, "") and err.startswith(f"ilaverify: {message}")


def test_what_stays_on_the_host_is_counted_as_listed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ilaverify.cli.compile import _show

    compiled = read_compiled(place / "made", backends())
    _show(compiled, compiled.digest, place / "made")
    out = capsys.readouterr().out
    on_host = [
        n.operator for i, n in enumerate(compiled.graph.nodes)
        if n.operator not in ("input", "constant") and i not in compiled.implementations
    ]  # fmt: skip
    head = r"\n  host          (\d+) operators?, (\d+) of them data movement, (\d+) others?:\n"
    said = re.search(head + r"((?: {16}.*\n)*)", out)
    assert said is not None
    total, moved, others = map(int, said.groups()[:3])
    assert total == len(on_host) == moved + others
    assert sum(int(line.split()[0]) for line in said[4].splitlines()) == others == on_host.count("relu")
    nothing = "\n  NOTHING       runs on an accelerator; the compiled model is the host's alone, for these reasons:\n"
    assert nothing not in out
    _show(replace(compiled, implementations={}), compiled.digest, place / "made")
    assert nothing in capsys.readouterr().out
    _show(replace(compiled, host=()), compiled.digest, place / "made")
    assert "\n  host          0 operators\n  equality      " in capsys.readouterr().out


def test_a_link_in_a_compiled_model_is_refused(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (made / "plan.json").rename(made.parent / "plan.json")
    (made / "plan.json").symlink_to(made.parent / "plan.json")
    code, out, err = run(capsys, "run", made, "--random", "1")
    assert (code, out) == (64, "")
    assert err == (
        f"ilaverify: {made / 'plan.json'}: a compiled model's file must be a file of its own, not a symbolic link, for "
        "links are not followed; put the file itself there\n"
    )


def test_bad_usage_of_run(place: Path, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (made / "plan.json").write_bytes(b"")
    np.savez(tmp_path / "wrong.npz", image=np.zeros((1, 2, 6, 5), "float32"))
    np.savez(tmp_path / "nan.npz", image=np.full((1, 2, 6, 6), np.nan, "float32"))
    np.savez(tmp_path / "infinite.npz", image=np.full((1, 2, 6, 6), np.inf, "float32"))
    np.savez(tmp_path / "other.npz", picture=np.zeros((1, 2, 6, 6), "float32"))
    (tmp_path / "text.npz").write_text("text")
    for arguments, message in (
        ((place / "made",), "run must be given either --inputs X.npz or --random N"),
        ((made, "--random", "1"), "plan.json: the file must have the digest that the model names; it was changed"),
        ((tmp_path / "none", "--random", "1"), "there is none; make one with ilaverify compile"),
        ((place / "made", "--inputs", tmp_path / "none"), "inputs must be a readable file: No such file or directory"),
        ((place / "made", "--inputs", tmp_path / "text.npz"), "must be a zip file of arrays"),
        (
            (place / "made", "--inputs", tmp_path / "wrong.npz"),
            "the input image must be float32[1, 2, 6, 6] or several of these, not float32[1, 2, 6, 5]; convert it",
        ),
        (
            (place / "made", "--inputs", tmp_path / "nan.npz"),
            "the input image must be numbers, and 72 of 72 are NaN, the first in sample 0; leave these samples out",
        ),
        (
            (place / "made", "--inputs", tmp_path / "infinite.npz"),
            "(hlscnn.conv2d) must be finite numbers, for an accelerator has no others; NaN or infinity reached it",
        ),
        ((place / "made", "--inputs", tmp_path / "other.npz"), "the input image must be given, as float32[1, 2, 6, 6]"),
    ):
        code, out, err = run(capsys, "run", *arguments)
        assert code == 64 and out == "" and message in err, err


def test_bad_usage_of_compile(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, proofs, out = place / "small.onnx", place / "proofs", tmp_path / "out"
    np.savez(tmp_path / "x.npz", picture=np.zeros((1, 2, 6, 6), "float32"))
    (tmp_path / "cut.onnx").write_bytes(model.read_bytes()[:200])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    for arguments, message in (
        (
            (model, "--target", "tpu", "-o", out),
            "--target must be different names of flexasr, hlscnn, vta, separated by commas, not 'tpu'",
        ),
        ((model, "--target", "vta,vta", "-o", out), "--target must be different names of"),
        (
            (model, "--target", "vta", "-o", out, "--proofs", proofs, "--store", model),
            "or use --no-store",
        ),
        (
            (model, "--target", "vta", "-o", out, "--proofs", proofs, "--store", tmp_path / "s", "--no-store"),
            "--store and --no-store exclude each other",
        ),
        (
            (model, "--target", "vta", "-o", out, "--dimension", "batch"),
            "--dimension must be NAME=N with a natural number N",
        ),
        (
            (model, "--target", "vta", "-o", out, "--proofs", proofs, "--dimension", "foo=3"),
            f"{model}: dimensions must be symbolic extents of the model's inputs (there are none), not foo; correct "
            "the names, or leave them out\n",
        ),
        (
            (model, "--target", "vta", "-o", out, "--proofs", tmp_path / "none"),
            f"proofs must be a directory of certificates, and {tmp_path / 'none'} is none; ilaverify prove -o DIR",
        ),
        (
            (model, "--target", "vta", "-o", tmp_path / "mine", "--proofs", proofs),
            "it holds other files; name another place",
        ),
        (
            (tmp_path / "none.onnx", "--target", "vta", "-o", out, "--proofs", proofs),
            f"ilaverify: the model {tmp_path / 'none.onnx'} must be a readable file: No such file or directory",
        ),
        ((tmp_path / "cut.onnx", "--target", "vta", "-o", out, "--proofs", proofs), "cut.onnx"),
        (
            (model, "--target", "vta", "-o", out, "--proofs", proofs, "--calibrate", tmp_path / "x.npz"),
            "calibration data of image must be given, as float32[1, 2, 6, 6] or several of these; give an array of",
        ),
    ):
        code, told, err = run(capsys, "compile", *arguments)
        assert code == 64 and told == "" and message in err, err
        assert not out.exists()
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_a_certificate_that_asks_what_no_proof_asked_is_left_out(place: Path, tmp_path: Path) -> None:
    name = next(iter(RESTS_ON))
    subject, store = all_entries()[name].build(), ProofStore(tmp_path / "proofs.sqlite3")
    key = key_of(subject, prover_identity(subject))
    request = Request(place / "small.onnx", TARGETS, place / "proofs", {}, store=store)
    store.put("another key", CERTIFICATE, name, "", "a digest")
    assert name not in compile_model(request, all_entries()).proof.left_out
    store.put(key, CERTIFICATE, name, "", "a digest")
    left_out = compile_model(request, all_entries()).proof.left_out
    assert "must be those of a proof that the store knows" in left_out[name]


@pytest.mark.slow
def test_compile_as_a_command(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--target", ",".join(TARGETS), "--proofs", place / "proofs", "--store", tmp_path / "proofs.sqlite3")
    code, out, err = run(capsys, "compile", place / "small.onnx", *arguments, "-o", tmp_path / "out")
    count = len(RESTS_ON) + len(BOUNDS)
    assert code == 0 and f"rests on      {count} certificates" in out and "generating programs" in err
    assert "left out      a-bias-of-zeros: there is no certificate" in out
    prove = f"ilaverify prove --target {','.join(TARGETS)} -o {place / 'proofs'} --store {tmp_path / 'proofs.sqlite3'}"
    assert f"\nnext      {prove} proves all that was left out; then compile again\n" in out
    assert "NO CALIBRATION DATA WERE GIVEN" in out
    np.savez(tmp_path / "x.npz", image=np.stack([image(k)["image"] for k in range(3)]))
    more = ("--calibrate", tmp_path / "x.npz", "--exact", "--weights", "16", "--json")
    code, out, err = run(capsys, "compile", place / "small.onnx", *arguments, "-o", tmp_path / "out", *more)
    assert code == 0, err
    told = json.loads(out)
    # weights of 16 bits rest on hlscnn_conv2d, which has no certificate here
    assert code == 0 and told["calibrated"] is True
    assert [a["operator"] for a in told["accelerated"]] == ["flexasr.linear"]
    assert "hlscnn_conv2d: there is no certificate" in " ".join(h["reason"] for h in told["host"])
    assert read_compiled(tmp_path / "out", backends()).digest == told["digest"]
    other = ("--target", "flexasr", "--proofs", place / "proofs", "-o", tmp_path / "other", "--weights", "8")
    code, _, err = run(capsys, "compile", place / "small.onnx", *other)
    assert code == 64 and "--weights is about hlscnn, which is not among the targets; leave it out" in err


def test_calibration_data_must_fit(place: Path) -> None:
    graph = read_compiled(place / "made", backends()).graph
    samples_of = partial(dataset_of, what="calibration data of", finite=True)
    one = image()["image"]
    assert samples_of(graph, {"image": one}).count == 1
    samples = samples_of(graph, {"image": np.stack([one, one + 1])})
    assert samples.count == 2 and np.array_equal(samples.sample(1)["image"], one + 1)
    for arrays in (
        {"image": one.astype("float64")},
        {"image": one[:, :1]},
    ):
        with pytest.raises(UsageError, match="must be float32\\[1, 2, 6, 6\\] or several of these, not"):
            samples_of(graph, arrays)
    with pytest.raises(UsageError, match="calibration data of image must have a sample or more, not none; give some"):
        samples_of(graph, {"image": np.zeros((0, *one.shape), "float32")})
    with pytest.raises(
        UsageError, match="must be of inputs \\(image\\), or labels with the right answers, not of more"
    ):
        samples_of(graph, {"image": one, "more": one})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_calibration_data_must_be_numbers(
    value: float, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, out = image()["image"], tmp_path / "out"
    one[0, 1, 2, 3] = value
    np.savez(tmp_path / "x.npz", image=np.stack([image()["image"], one]))
    request = ("--target", "hlscnn", "-o", out, "--proofs", place / "proofs", "--calibrate", tmp_path / "x.npz")
    code, _, err = run(capsys, "compile", place / "small.onnx", *request)
    says = (
        "\nilaverify: calibration data of image must be finite numbers, and 1 of 144 are NaN or infinite, the first in "
        "sample 1; leave these samples out\n"
    )
    assert code == 64 and err.endswith(says) and not out.exists()


def test_a_range_that_is_no_number_in_one_sample_is_none(place: Path) -> None:
    graph = read_compiled(place / "made", backends()).graph
    huge = {"image": np.full((1, 2, 6, 6), np.nan, "float32")}  # as infinities within the network give
    for samples in ([huge, image()], [image(), huge]):
        with np.errstate(all="ignore"):
            ranges = calibrate(graph, samples).ranges
        assert all(np.isnan(r["x"]) for r in ranges.values())


def test_ranges_that_are_not_finite_stay_on_the_host_and_are_told(place: Path) -> None:
    huge = {"image": np.full((1, 2, 6, 6), 3e38, "float32")}
    compiled = compiled_with(place / "proofs", place / "small.onnx", calibration=huge)
    assert not compiled.implementations or len(compiled.implementations) == 1
    assert any("its calibrated range of" in h.reason for h in compiled.host)
    assert "inf" in json.dumps(compiled.choices.calibration, allow_nan=False)


def test_claims_for_targets() -> None:
    assert {"flexasr_linear", "flexasr_lstm", "transposed-twice"} <= set(claims_for(find_backends(["flexasr"])))
    assert "vta_gemm" not in claims_for(find_backends(["flexasr"])) and "vta_gemm" in claims_for(find_backends(["vta"]))
    assert set(claims_for(find_backends(["hlscnn"]), exact=True)) < set(claims_for(find_backends(["hlscnn"])))
    known = all_entries()
    chosen = chosen_entries([], every=False, targets=["hlscnn"])
    assert set(chosen) == set(claims_for(find_backends(["hlscnn"]))) and "hlscnn_conv2d_8bit" in chosen
    with pytest.raises(UsageError, match="either the names of claims, or --kind, or --target, or --all"):
        chosen_entries(["hlscnn_conv2d_8bit"], every=False, targets=["hlscnn"])
    assert [n for n in claims_for(find_backends(["flexasr", "hlscnn", "vta"])) if n not in known] == []
