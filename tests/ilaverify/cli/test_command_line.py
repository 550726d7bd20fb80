"""The command line, end to end: what it prints, its exit codes, and that bad input writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ilaverify.cli import main

from .command import run

ROOT = Path(__file__).parents[3]
VARIABLES = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings")])}
MAPPINGS = ["flexasr_maxpool", "flexasr_meanpool", "flexasr_addpool"]


def test_list(tmp_path: Path) -> None:
    done = run("list", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mappings\n  flexasr_maxpool ")
    listed = json.loads(run("list", "--json", cwd=tmp_path).stdout)
    assert set(MAPPINGS) <= set(listed["mappings"]) and {"flexasr", "ir"} <= set(listed["models"])
    for name, summary in (listed["mappings"] | listed["models"]).items():
        assert any(line.split() == [name, *summary.split()] for line in done.stdout.splitlines())


@pytest.mark.parametrize("model", ["flexasr", "ir"])
def test_show(model: str, tmp_path: Path) -> None:
    done = run("show", model, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and len(done.stdout.splitlines()) > 20
    document = json.loads(run("show", model, "--json", cwd=tmp_path).stdout)
    from ila_lang import digest, ila_from_json
    from ilaverify.catalogue import find_model

    assert digest(ila_from_json(document)) == digest(find_model(model))


def test_help_and_no_command(tmp_path: Path) -> None:
    said = " ".join(run("--help", cwd=tmp_path).stdout.split())
    assert said.endswith(
        "exit codes: 0 all proved, accepted or done, 1 something refuted or rejected, 2 something unproved, undecided "
        "or broken, 64 bad usage (a file that is named and cannot be read, too), 130 interrupted, 141 the reader of "
        "the output went away before its end"
    )
    done = run(cwd=tmp_path)
    assert done.returncode == 64 and "COMMAND" in done.stderr
    done = run("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ilaverify 0.1.0\n", "")


def test_columns_of_lists(tmp_path: Path) -> None:
    """Names of 36 letters and more do not push their line's text to the right."""
    from rewrites.claims.registry import entries

    long = max(
        (name for name, entry in entries().items() if entry.kind == "rule"), key=lambda n: len(entries()[n].summary)
    )
    (line,) = (line for line in run("list", "rule", cwd=tmp_path).stdout.splitlines() if line.startswith(f"  {long} "))
    assert len(entries()[long].summary) > 1000 and line.endswith(" ...") and 200 < len(line) < 250
    lines = run("list", "lemma", cwd=tmp_path).stdout.splitlines()[1:]
    named = {name: entry.summary for name, entry in entries().items() if entry.kind == "lemma"}
    assert len({line.index(named[line.split()[0]][:20]) for line in lines}) == 1 and len(lines) == len(named)


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a certificate written by the command line."""
    directory = tmp_path_factory.mktemp("proved")
    done = run("mapping", "flexasr_reload_apart", "--method", "chc", "-o", directory / "certificates", cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("PROVED  flexasr_reload_apart  (chc, ")
    assert f"written   {directory}/certificates/flexasr_reload_apart.chc.cert.json\n" in done.stdout
    assert "1 <= T <= 65535, 1 <= nv <= 255" in done.stdout
    assert "NOT DISCHARGED" not in done.stdout and "not claimed" in done.stdout
    return directory / "certificates"


@pytest.mark.proof
@pytest.mark.parametrize(
    "solver", [pytest.param("cvc5", marks=pytest.mark.slow), pytest.param("z3", marks=pytest.mark.slow), "both"]
)
def test_a_certificate_is_accepted(proved: Path, solver: str) -> None:
    assert os.listdir(proved) == ["flexasr_reload_apart.chc.cert.json"]
    done = run("check", proved / "flexasr_reload_apart.chc.cert.json", "--solver", solver, cwd=proved)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("ACCEPTED") and done.stdout.endswith("1 accepted, 0 rejected\n")
    assert done.stdout.count("obligations hold") == (2 if solver == "both" else 1)


@pytest.mark.proof
def test_a_tampered_certificate_is_rejected(proved: Path, tmp_path: Path) -> None:
    text = (proved / "flexasr_reload_apart.chc.cert.json").read_text()
    (tmp_path / "good.json").write_text(text)
    (tmp_path / "bad.json").write_text(text.replace("65535", "65536", 1))
    (tmp_path / "cut.json").write_text(text[:-100])
    (tmp_path / "empty.json").write_text("")
    for name, message in (
        ("bad.json", "the digest must match the content"),
        ("cut.json", "must be JSON text"),
        ("empty.json", "must be JSON text"),
    ):
        done = run("check", name, cwd=tmp_path)
        assert done.returncode == 1 and done.stdout.startswith("REJECTED"), name
        assert message in done.stdout and done.stdout.endswith("0 accepted, 1 rejected\n")
    done = run("check", "good.json", "bad.json", "--json", "--solver", "z3", cwd=tmp_path)
    assert done.returncode == 1
    assert [r["accepted"] for r in json.loads(done.stdout)] == [True, False]


@pytest.mark.proof
def test_a_forged_subject_or_claim_is_rejected(proved: Path, tmp_path: Path) -> None:
    from reports.certificate import certificate_text, content_digest

    content = json.loads((proved / "flexasr_reload_apart.chc.cert.json").read_text())
    for change, message in (
        ({"subject": "flexasr_meanpool"}, "its digest differs"),
        ({"subject": "hope"}, "there is no claim named 'hope'"),
        ({"size_domain": "all sizes"}, "the claim's words are not those of the proof"),
        ({"statement": "\ud800"}, "the claim's words are not those of the proof"),
    ):
        forged = {**content, "claim": {**content["claim"], **change}}
        forged["digest"] = content_digest(forged)
        (tmp_path / "forged.json").write_text(certificate_text(forged))
        done = run("check", "forged.json", cwd=tmp_path)
        unknown = change == {"subject": "hope"}
        assert done.returncode == 1 + unknown and message in done.stdout
        assert done.stdout.startswith("UNDECIDED" if unknown else "REJECTED")


@pytest.mark.proof
def test_json_of_a_proof(tmp_path: Path) -> None:
    done = run("mapping", "flexasr_maxpool", "--shape", "2x16", "--json", "-o", "out", cwd=tmp_path)
    verdict = json.loads(done.stdout)
    assert (done.returncode, done.stderr, verdict["status"]) == (0, "", "PROVED")
    assert all(o["discharged"] for o in verdict["obligations"]) and verdict["counterexample"] is None
    (written,) = verdict["written"]
    assert run("check", written, cwd=tmp_path).returncode == 0


@pytest.mark.slow
def test_a_proof_without_time_is_not_proved(tmp_path: Path) -> None:
    done = run("mapping", "flexasr_meanpool", "--method", "chc", "--timeout", "0.001", "-o", "out", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout.startswith("UNKNOWN")
    assert "reason" in done.stdout
    assert not (tmp_path / "out").exists()


# -- simulate ---------------------------------------------------------------------------------------

PROGRAM = {
    "program fragment": [
        {"addr": "0x33500000", "data": "0x1f2f3f4f5f6f7f8f00112233445566ff", "mode": "W"},
        {"addr": "0x33500010", "data": "0x20304050607080901122334455667700", "mode": "W"},
        {"addr": "0x33400010", "data": "0x00000000000000000000000000000001", "mode": "W"},
        {"addr": "0x33800010", "data": "0x00000000000000000000000200010001", "mode": "W"},
        {"addr": "0x33500000", "mode": "R"},
    ]
}
READ = "0x33500000,0x1f2f3f4f5f6f7f8f00112233445566ff\n"


NO_UNIT = "ilaverify: p.json: note: the program starts no unit\n"


def test_simulate(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(PROGRAM))
    done = run("simulate", "flexasr", "p.json", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, READ, NO_UNIT)
    done = run("simulate", "flexasr", "p.json", "-o", "deep/reads.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "written   deep/reads.csv\n", NO_UNIT)
    assert (tmp_path / "deep" / "reads.csv").read_text() == READ


def test_simulate_names_the_form_that_it_recognises(tmp_path: Path) -> None:
    commands = [(e["mode"], e["addr"], e.get("data", "0x0")) for e in PROGRAM["program fragment"]]
    (tmp_path / "p.json").write_text("".join(f"2,{','.join(c)}\n" for c in commands))
    done = run("simulate", "flexasr", "p.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, READ)
    assert done.stderr == (
        "ilaverify: p.json: note: read as a command list of a test bench: every command ends before the next; waits "
        f"left out: 0, writes to the test bench left out: 0\n{NO_UNIT}"
    )


def test_simulate_pools(tmp_path: Path) -> None:
    """A generated program of a max-pooling mapping, run as a file."""
    from ila_lang import run_fragment
    from ila_lang.interpreter.compile import Memory
    from rewrites.mappings.flexasr.pooling import pooling_mapping

    mapping, commands = pooling_mapping("max"), []
    host = Memory(0, {i: i for i in range(32)})
    run_fragment(
        mapping.device, mapping.sizes_of(2, 16), {"host_in": host, "host_out": Memory()},
        observe=lambda inputs, note: commands.append(dict(inputs)),
    )  # fmt: skip
    assert mapping.program_file is not None
    (tmp_path / "p.json").write_text(mapping.program_file(commands))
    done = run("simulate", "flexasr", "p.json", cwd=tmp_path)
    assert done.stdout == "0x33500000,0x1f1e1d1c1b1a19181716151413121110\n"


# -- bad input --------------------------------------------------------------------------------------

FILES = {
    "cut.json": json.dumps(PROGRAM)[:-30],
    "text.json": "hello",
    "key.json": '{"program": []}',
    "list.json": "[1, 2]",
    "outside.json": '{"program fragment": [{"addr": "0x44000000", "data": "0x0", "mode": "W"}]}',
    "nothing.json": '{"program fragment": [{"addr": "0x33900020", "data": "0x0", "mode": "W"}]}',
    "running.json": json.dumps(
        {
            "program fragment": [
                PROGRAM["program fragment"][3],
                {"addr": "0x33000020", "data": "0x1", "mode": "W"},
                {"addr": "0x33500000", "mode": "R"},
            ]
        }
    ),
    "mode.json": '{"program fragment": [{"addr": "0x33500000", "mode": "X"}]}',
    "bytes.json": None,
}  # fmt: skip
BAD: list[tuple[str, str]] = [
    ("mapping flexasr_maxpol", "there is no mapping named 'flexasr_maxpol' (did you mean flexasr_maxpool?); ilav"),
    ("mapping nothing", "ilaverify: there is no mapping named 'nothing'; ilaverify list mapping shows all "),
    ("mapping flexasr_maxpool --method hope", "ilaverify: --method must be one of auto, bmc, chc, hash, not 'hope'\n"),
    ("show vta9", "ilaverify: model must be one of flexasr, ir, hlscnn, vta, not 'vta9' (did you mean vta?)\n"),
    ("mapping flexasr_maxpool --module", "expected one argument"),
    (
        "mapping flexasr_maxpool --shape 3x16 -o out",
        "ilaverify: Rows of shape 3x16 of a FlexASR pooling mapping must be even, not 3; pad or split the tensor\n",
    ),
    ("mapping flexasr_maxpool --shape 4x20 -o out", "must be a positive multiple of 16, not 20; pad the tensor\n"),
    ("mapping flexasr_maxpool --shape 70000x16 -o out", "must be 2 to 65534 (a 16-bit register), not 70000\n"),
    ("mapping flexasr_maxpool --shape 2x8000 -o out", "must be at most 4080 (255 vectors, an 8-bit register)"),
    ("mapping flexasr_maxpool --shape 0x16 -o out", "must be 2 to 65534 (a 16-bit register), not 0\n"),
    ("mapping flexasr_maxpool --shape 4x0 -o out", "must be a positive multiple of 16, not 0; pad the tensor\n"),
    (
        "mapping flexasr_maxpool --shape abc",
        "ilaverify: --shape must be extents with x in between, e.g. 16, 16x64 or 1x32x16, not 'abc'\n",
    ),
    (
        "mapping flexasr_maxpool --shape 2x16x3",
        "ilaverify: Shape of mapping flexasr_maxpool must be ROWSxCOLUMNS, not 2x16x3; give one number for each\n",
    ),
    (
        "mapping flexasr_maxpool --shape -2x16",
        "argument --shape: expected one argument, and one that begins with - after an equals sign (OPTION=VALUE)\n",
    ),
    (
        "mapping flexasr_maxpool --shape 99999999999999999999999x16",
        "--shape must have extents of at most 9 digits, not '99999999999999999999999x16'\n",
    ),
    ("mapping flexasr_maxpool --timeout 1e300", "must be fewer than 1000000 seconds, not '1e300'"),
    ("mapping flexasr_maxpool --shape 2x16 -o=", "must name a place to write to, not ''; the working directory is ."),
    ("check x --jobs 999999999", "argument --jobs: must be at most 9999999, not '999999999'"),
    ("check x --memory 99999999999999999999", "must be at most 9999999, not '99999999999999999999'"),
    ("prove --all --mutants 3 --seed " + 41 * "1", f"must be a seed of at most 40 digits, not '{41 * '1'}'"),
    ("check x --jobs " + 5000 * "9", f"must be at most 9999999, not '{57 * '9'}...'"),
    ("mapping flexasr_maxpool --method bmc", "ilaverify: --method bmc must be given a shape, e.g. 16x64\n"),
    ("mapping flexasr_linear --method hash", "ilaverify: --method hash must be given a shape, e.g. 16x16x64\n"),
    (
        "mapping flexasr_linear --method hash --shape 1x16x64 --data bits",
        "ilaverify: --method hash has no parameter data; leave it out, or use method bmc\n",
    ),
    (
        "mapping flexasr_maxpool --method chc --data bits",
        "ilaverify: --method chc has no parameter data; leave it out, or use method bmc\n",
    ),
    (
        "mapping flexasr_maxpool --memory resolved",
        "ilaverify: --method chc has no parameter memory; leave it out, or use method bmc\n",
    ),
    (
        "mapping flexasr_maxpool --shape 2x16 --data some",
        "ilaverify: --data must be one of auto, uninterpreted, bits, not 'some'\n",
    ),
    ("mapping f1", "ilaverify: f1 is a rule; use ilaverify rule f1\n"),
    ("show f1", "ilaverify: f1 is a rule, no model; use ilaverify rule f1, or --mlir for its functions\n"),
    ("show vta_relu", "ilaverify: vta_relu is a mapping, no model; use ilaverify mapping vta_relu\n"),
    ("mapping lemma-vta-sum", "ilaverify: lemma-vta-sum is a lemma; use ilaverify rule lemma-vta-sum\n"),
    ("mapping flexasr_maxpool --method chc --shape 2x16", "--method chc has no parameter shape; leave it out, or use"),
    ("mapping flexasr_maxpool --timeout -1", "must be a positive number of seconds, not '-1'"),
    ("mapping flexasr_maxpool --timeout nan", "must be a positive number of seconds, not 'nan'"),
    ("mapping flexasr_maxpool --timeout 0", "must be a positive number of seconds, not '0'"),
    ("mapping flexasr_maxpool --timeout soon", "must be a positive number of seconds, not 'soon'"),
    ("mapping flexasr_maxpool --fast", "unrecognized arguments: --fast"),
    ("mapping flexasr_maxpool --shape 2x16 -o text.json", "-o must name a directory, not the file text.json\n"),
    ("mapping", "the following arguments are required: NAME"),
    ("check", "the following arguments are required: CERT"),
    ("check x --solver yices", "invalid choice: 'yices'"),
    ("prove everything", "there is no claim named 'everything' (see ilaverify list)"),
    (
        "check proofs/proofs.intoto.json",
        "proofs/proofs.intoto.json is a statement about certificates, which proves nothing; check their directory",
    ),
    (
        "check .",
        "ilaverify: . must hold certificates (*.cert.json) or data of counterexamples (*.counterexample-data.json), "
        "and it holds none\n",
    ),
    (
        "check text.json missing.json",
        "ilaverify: missing.json: a certificate must be a readable file: No such file or directory\n",
    ),
    ("check missing.counterexample-data.json", "data.json: a certificate must be a readable file: No such file"),
    (
        "check x/f1.counterexample.json",
        "ilaverify: x/f1.counterexample.json is the program of a counterexample, which ilaverify simulate MODEL "
        "x/f1.counterexample.json runs; to replay the counterexample: ilaverify check x/f1.counterexample-data.json\n",
    ),
    ("check text.json --memory 50", "argument --memory: must be at least 512 MB, which loading takes, not 50 MB"),
    (
        "rule vta_dense_backward",
        "ilaverify: vta_dense_backward is a mapping; use ilaverify mapping vta_dense_backward\n",
    ),
    ("rule nonsense-name", "there is no claim named 'nonsense-name'"),
    ("rule flexasr_maxpool", "flexasr_maxpool is a mapping; use ilaverify mapping flexasr_maxpool"),
    ("list rules", "'lemma', 'theorem') (did you mean rule?)\n"),
    ("list xyz", "'lemma', 'theorem')\n"),
    ("maping relu", "'new') (did you mean mapping?)\n"),
    ("new accelrator mine", "(choose from 'accelerator') (did you mean accelerator?)\n"),
    ("simulate tpu text.json", "ilaverify: model to simulate must be one of flexasr, ir, hlscnn, vta, not 'tpu'\n"),
    ("simulate vta text.json", "text.json: Program must be complete JSON"),
    ("simulate hlscnn key.json", "exactly one of the keys 'program fragment' and 'command inputs'"),
    ("simulate hlscnn nothing.json", "Program must start a convolution, which it never does"),
    ("simulate flexasr missing.json", "missing.json: a program must be a readable file: No such file or directory\n"),
    ("simulate flexasr .", ".: a program must be a readable file: Is a directory\n"),
    ("simulate flexasr cut.json -o out", "cut.json: Program must be complete JSON"),
    ("simulate flexasr text.json -o out", "text.json: Program must be complete JSON"),
    ("simulate flexasr key.json -o out", "exactly one of the keys 'program fragment' and 'command inputs'"),
    ("simulate flexasr list.json -o out", "list.json: Program must be a JSON object, not a list"),
    ("simulate flexasr outside.json -o out", "addr of command 1 must lie in FlexASR, 0x33000000 .. 0x37ffffff"),
    ("simulate flexasr nothing.json -o out", "nothing answers there"),
    ("simulate flexasr running.json -o out", "while it runs"),
    ("simulate flexasr mode.json -o out", 'mode of command 1 must be "W" (write), "R" (read) or "Q" (wait), not "X"'),
    ("simulate flexasr bytes.json -o out", "bytes.json: a program must be UTF-8 text"),
    ("simulate flexasr text.json --reading vhdl", "the reading of flexasr must be one of rtl, recorded, not 'vhdl'\n"),
]  # fmt: skip


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inputs")
    for name, text in FILES.items():
        (directory / name).write_bytes(b"\xff\xfe" if text is None else text.encode())
    return directory


@pytest.mark.parametrize("command,message", BAD, ids=[c for c, _ in BAD])
def test_bad_input(
    command: str, message: str, inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {p.name: p.read_bytes() for p in inputs.iterdir()}
    monkeypatch.chdir(inputs)
    code = main(command.split())
    out, err = capsys.readouterr()
    assert code == 64, out + err
    assert message in err and err.startswith("ilaverify: ") and "Traceback" not in err
    assert out == ""
    assert {p.name: p.read_bytes() for p in inputs.iterdir()} == before


def test_a_process_given_bad_input_ends_with_the_same_words_and_code(inputs: Path) -> None:
    command, message = BAD[0]
    done = subprocess.run(
        [sys.executable, "-m", "ilaverify", *command.split()],
        cwd=inputs, env=VARIABLES, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (64, "")
    assert message in done.stderr and done.stderr.startswith("ilaverify: ")


@pytest.mark.proof
def test_an_output_directory_that_cannot_be_made(inputs: Path) -> None:
    done = run("mapping", "flexasr_maxpool", "--shape", "2x16", "-o", "text.json/deeper", cwd=inputs)
    assert done.returncode in (2, 64) and done.stderr.startswith("ilaverify: ")
    assert (inputs / "text.json").read_text() == "hello"


# -- start ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["--help"], ["--version"], ["mapping", "--shape"]])
def test_simple_commands_start_no_solver(command: list[str], tmp_path: Path) -> None:
    code = (
        "import sys\nfrom ilaverify.cli import main\n"
        f"try:\n    main({command!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'z3', 'cvc5', 'pysmt', 'hypothesis', 'ilaverify.models.compilation'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=VARIABLES, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"
