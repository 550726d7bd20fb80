"""Where files, memory, streams or the program itself fail, the command says so in a line, and never exits by 1."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ila_lang import PortableError, ila_from_json, ila_to_json
from ila_lang.text import files as input_files
from ilaverify import cli
from ilaverify.catalogue import find_model
from ilaverify.cli import commands
from reports import certificate
from reports.certificate import read_certificate
from reports.store import ProofStore, StoreError
from tests.ilaverify.compiled_models import TARGETS, pretended, small_model

ROOT = Path(__file__).parents[3]
VARIABLES = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings")])}
DIGITS = "9" * 5000


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Exit code and standard error of a command in this process."""
    code = cli.main([str(a) for a in arguments])
    return code, capsys.readouterr().err


def start(*arguments: str | Path, limit: Callable[[], None] | None = None, **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ilaverify", *map(str, arguments)],
        env=VARIABLES, stderr=subprocess.PIPE, text=True, preexec_fn=limit, **more,
    )  # type: ignore[call-overload, no-any-return]  # fmt: skip


# -- the program itself fails ---------------------------------------------------------------------------


def test_a_failure_is_one_line_and_no_refutation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, object] = {"__name__": commands.__name__}  # of our code; that of tests is an author's
    text = "def run(*_, **more):\n    raise TypeError(\"unhashable type:\\n 'list'\")"
    exec(compile(text, "commands.py", "exec"), names)
    monkeypatch.setattr(commands, "run", names["run"])
    code, err = run(capsys, "prove", "--all")
    assert code == 2
    head = "ilaverify: prove: failed by TypeError: unhashable type: 'list' (commands.py:"
    tail = (
        "); this is a fault of ilaverify, and no verdict; run it again with ILAVERIFY_TRACEBACK=1 and report what it "
        "prints\n"
    )
    assert err.startswith(head) and err.endswith(tail) and err.count("\n") == 1
    monkeypatch.setenv(cli.TRACEBACK, "1")
    assert "Traceback (most recent call last)" in run(capsys, "prove", "--all")[1]


def test_no_room_for_standard_output_is_named() -> None:
    with open("/dev/full", "w") as full:
        process = start("list", stdout=full)
        assert process.stderr is not None
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert err == "ilaverify: list: writing standard output or a temporary file: No space left on device\n"


@pytest.mark.parametrize("command", [["list"], ["show", "ir"], ["show", "flexasr", "--json"], ["--help"]])
def test_a_reader_that_goes_away(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*command, stdout=writing)
    os.close(writing)
    assert process.communicate(timeout=60)[1] == "" and process.returncode == 141


def test_a_reader_of_the_example_goes_away() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "row_pairs.py")],
        env=VARIABLES, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_closed_standard_streams() -> None:
    def close() -> None:
        for number in (0, 1):
            os.close(number)

    process = start("prove", "flexasr_no_such", limit=close)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 64 and err.startswith("ilaverify: there is no claim named 'flexasr_no_such'")
    process = start("prove", "transposed-twice", "--no-store", limit=close)
    err = process.communicate(timeout=120)[1]
    assert (process.returncode, err) == (0, "")


def test_too_little_memory_is_said_before_libraries_end_the_process() -> None:
    process = start(
        "check", "x.cert.json", limit=lambda: resource.setrlimit(resource.RLIMIT_AS, (180_000 << 10, 180_000 << 10))
    )
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert err == (
        "ilaverify: check: the limit of address space must be at least 512 MB, not 175 MB; raise it (ulimit -v); "
        "this is no verdict\n"
    )


def test_ctrl_c_while_modules_load() -> None:
    """The signal comes from within the import of NumPy's first module."""
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'ilaverify.cli.commands':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from ilaverify.cli import main\n"
        "sys.exit(main(['list']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=VARIABLES, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "ilaverify: interrupted; nothing was written\n"


LOST = {
    "half made": "class Half:\n  def __init__(self): os.kill(0, 2)\n  def __del__(self): self.owner\nHalf()",
    "cleaning up": "class Last:\n  def __del__(self): os.kill(0, 2)\nLast(); time.sleep(1000)",
    "handed to C": "try: os.kill(0, 2)\nexcept KeyboardInterrupt: raise TypeError('argument 1')",
    "at the end": "try: os.kill(0, 2)\nexcept KeyboardInterrupt: pass",
    "a solver": "from smt_encodings.solvers import z3 as solver_z3; interrupt_later(); solver_z3.check(HARD, 1000)",
    "the other solver": (
        "from smt_encodings.solvers import cvc5 as solver_cvc5; interrupt_later(); solver_cvc5.check(HARD, 1000)"
    ),
}
"""What happens in a command when Ctrl-C comes."""


@pytest.mark.parametrize("at", LOST)
def test_ctrl_c_that_is_not_raised_ends_the_command_all_the_same(at: str) -> None:
    program = (
        "import os, signal, sys, threading, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it\n"
        "from ilaverify import cli\n"
        "from ilaverify.cli import commands\n"
        "HARD = '(set-logic ALL)(declare-fun x () Int)(declare-fun y () Int)(declare-fun z () Int)'\n"
        "HARD += '(assert (> x 1))(assert (> y 1))(assert (= (+ (* x x x) (* y y y)) (* z z z)))(check-sat)'\n"
        "def interrupt_later():\n"
        "    threading.Timer(0.5, lambda: os.kill(0, 2)).start()\n"
        "def run(_, **more):\n"
        "    exec(sys.argv[1], globals())\n"
        "    return 0\n"
        "commands.run = run\n"
        "sys.exit(cli.main(['mapping']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, LOST[at]],
        env=VARIABLES, capture_output=True, text=True, timeout=100, check=False, start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "ilaverify: interrupted; nothing was written\n")


def test_ctrl_c_after_the_end_of_a_command_changes_nothing() -> None:
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it\n"
        "from ilaverify import cli\n"
        "from ilaverify.cli import commands\n"
        "commands.run = lambda _, **more: 1\n"
        "sys.argv = ['ilaverify', 'mapping']\n"
        "code = cli.main()\n"
        "os.kill(0, signal.SIGINT)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=VARIABLES, capture_output=True, text=True, timeout=60, check=False, start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")


# -- numbers and types in files ---------------------------------------------------------------------------


def test_numbers_of_thousands_of_digits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = tmp_path / "p.json"
    program.write_text('{"program fragment":[{"addr":' + DIGITS + ',"data":"0x0","mode":"W"}]}')
    for model in ("flexasr", "hlscnn", "vta"):
        code, err = run(capsys, "simulate", model, program)
        assert code == 64
        assert err == (
            f"ilaverify: {program}: Program must have numbers of at most 4300 digits; write the file again\n"
        )
    program.write_text(json.dumps({"program": [f"load.inp sram={DIGITS} size=1x1", "finish"]}))
    code, err = run(capsys, "simulate", "vta", program)
    assert code == 64 and "must have numbers of at most 40 digits, not 5000; correct it\n" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distribution": []}, "distribution must be one of "),
        ({"distribution": {}}, "distribution must be one of "),
        ({"seed": "DIGITS"}, "an example must have numbers of at most 4300 digits\n"),
    ],
)
def test_odd_replay_files(
    change: dict[str, object], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    content = {
        "schema": "ilaverify-example-1", "campaign": "flexasr_linear", "parameters": {}, "distribution": "normal",
        "seed": None, "arrays": {}, "violation": None, "history": None,
    }  # fmt: skip
    file = tmp_path / "v.json"
    file.write_text(json.dumps(content | change).replace('"DIGITS"', DIGITS))
    code, err = run(capsys, "campaign", "flexasr_linear", "--replay", file)
    assert code == 64 and err.startswith(f"ilaverify: {file}: {message}") and err.count("\n") == 1


@pytest.mark.parametrize("width", [10**12, 10**30])
def test_huge_widths_in_portable_models(width: int) -> None:
    def widened(value: object) -> object:
        if isinstance(value, dict):
            return {k: width if k == "w" and isinstance(v, int) else widened(v) for k, v in value.items()}
        return [widened(v) for v in value] if isinstance(value, list) else value

    with pytest.raises(PortableError, match=r"must be at most 1048576, not (1000000000000|a number of 100 bits)$"):
        ila_from_json(widened(ila_to_json(find_model("ir"))))


@pytest.mark.parametrize(
    ("number", "targets"),
    [
        (np.nan, ("vta",)), (np.inf, ("vta",)), pytest.param(np.nan, ("flexasr",), marks=pytest.mark.slow),
        pytest.param(np.inf, TARGETS, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_weights_that_are_no_numbers_stay_on_the_host(number: float, targets: tuple[str, ...], tmp_path: Path) -> None:
    from ilaverify.catalogue import all_entries, find_backends
    from ilaverify.models.compilation import Request, claims_for, compile_model

    model = onnx.load(small_model(tmp_path / "m.onnx"))
    for tensor in model.graph.initializer:
        broken = numpy_helper.to_array(tensor).copy()
        broken.flat[0] = number
        tensor.CopyFrom(numpy_helper.from_array(broken, tensor.name))
    onnx.save(model, tmp_path / "m.onnx")
    proofs = pretended(claims_for(find_backends(targets)), tmp_path / "proofs")
    compiled = compile_model(Request(tmp_path / "m.onnx", targets, proofs, {}), all_entries())
    assert not compiled.implementations
    reasons = " ".join(host.reason for host in compiled.host)
    assert "formats are for finite numbers" in reasons


# -- sizes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check /dev/zero", 64),
        ("simulate flexasr /dev/zero", 64),
        ("simulate vta /dev/zero", 64),
        ("campaign flexasr_linear --replay /dev/zero", 64),
        ("report -o page.html --scaling /dev/zero", 64),
        ("run /dev/zero --random 1", 64),
        ("compile /dev/zero --target vta -o made --proofs .", 64),
    ],
)
def test_a_device_is_not_read(
    command: str, code: int, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = cli.main(command.split())
    said = capsys.readouterr()
    assert found == code and "/dev/zero" in said.out + said.err
    assert "fault of ilaverify" not in said.err


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert input_files.read_at_most(path, "a program", 5) == b"12345"
    with pytest.raises(input_files.FileRefused) as refused:
        input_files.read_at_most(path, "a program", 4)
    assert str(refused.value) == f"{path}: a program must have at most 4 bytes, not 5 or more; name a smaller file"
    with pytest.raises(input_files.FileRefused) as refused:
        input_files.read_at_most(Path("/dev/zero"), "a program", 4)
    assert str(refused.value) == "/dev/zero: a program must be a file or a pipe, not a device; name a file"


@pytest.mark.parametrize("command", ["check", "simulate flexasr"])
def test_a_large_file_is_announced(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"{" * (17 << 20))
    code, err = run(capsys, *command.split(), path)
    assert code in (1, 64)
    assert err.startswith(f"ilaverify: reading {path}, 17 MB, which takes about a minute for each 200 MB\n")


def test_a_pipe_is_read_up_to_the_limit() -> None:
    for size, most, read in ((5, 5, True), (100_000, 100_000, True), (6, 5, False)):
        reading, writing = os.pipe()
        if not os.fork():
            os.write(writing, b"x" * size)
            os._exit(0)
        os.close(writing)
        pipe = Path(f"/proc/self/fd/{reading}")
        if read:
            assert input_files.read_at_most(pipe, "a program", most) == b"x" * size
        else:
            with pytest.raises(input_files.FileRefused, match=r"must have at most 5 bytes, not 6 or more"):
                input_files.read_at_most(pipe, "a program", most)
        os.close(reading)
        os.wait()


def test_a_store_with_an_entry_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ProofStore(tmp_path / "s")
    store.put("k", "certificate", "a", "x" * 5000)
    monkeypatch.setattr("reports.store.MOST_BYTES", 4000)
    with pytest.raises(StoreError) as refused:
        store.get("k")
    assert str(refused.value) == (
        f"{tmp_path / 's'}: an entry of a proof store must have at most 4,000 bytes (SQLite: string or blob too big); "
        "delete the store, or name another one"
    )


# -- runs that are killed -------------------------------------------------------------------------------


def test_a_run_that_is_killed_leaves_what_it_proved(tmp_path: Path) -> None:
    """Rules are proved and written while the longest claim runs, which is named first."""
    quick = ["transposed-twice", "relu-twice"]
    out = tmp_path / "out"
    process = start(
        "prove", "flexasr_lstm", *quick, "--jobs", "2", "-o", out, "--store", tmp_path / "s", stdout=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while len(list(out.glob("*.cert.json"))) < 2 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -9
    kept = [read_certificate(path)["claim"]["subject"] for path in sorted(out.glob("*.cert.json"))]
    assert sorted(kept) == sorted(quick)
    assert sorted(subject for _, _, subject in ProofStore(tmp_path / "s").entries()) == sorted(quick)


# -- outputs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "option", "place"),
    [
        ("prove flexasr_linear -o {0}/x", "-o", "{0}/x"),
        ("prove flexasr_linear --junit {0}/x.xml", "--junit", "{0}/x.xml"),
        ("prove flexasr_linear --sarif {0}/x.sarif", "--sarif", "{0}/x.sarif"),
        ("prove flexasr_linear --markdown {0}/x.md", "--markdown", "{0}/x.md"),
        ("prove flexasr_linear --trust {0}/x.txt", "--trust", "{0}/x.txt"),
        ("prove flexasr_linear --html {0}/x.html", "--html", "{0}/x.html"),
        ("prove flexasr_linear --store {0}/x", "--store", "{0}/x"),
        ("tv a.mlir b.mlir --store {0}/x", "--store", "{0}/x"),
        ("mapping flexasr_linear -o {0}/x", "-o", "{0}/x"),
        ("rule transposed-twice -o {0}/x", "-o", "{0}/x"),
        ("report -o {0}/x.html", "-o", "{0}/x.html"),
        ("campaign flexasr_linear -o {0}/x", "-o", "{0}/x"),
        ("simulate flexasr missing.json -o {0}/x", "-o", "{0}/x"),
        ("run nothing --random 1 --output {0}/x.npz", "--output", "{0}/x.npz"),
        ("compile m.onnx --target vta -o {0}/x/y --proofs .", "-o", "{0}/x/y"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_work(
    command: str, option: str, place: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The place lies below a file, where nobody may write, the superuser included."""
    file = tmp_path / "file"
    file.write_text("")
    code, err = run(capsys, *command.format(file).split())
    assert code == 64
    assert err == (
        f"ilaverify: {option}: {place.format(file)} must be a place that can be written; {file} cannot: Not a "
        "directory; name another place\n"
    )
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("command", ["prove flexasr_linear", "tv a.mlir b.mlir"])
def test_a_store_that_cannot_be_changed_is_refused_before_work(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nobody may write a program that runs, the superuser included."""
    store = Path(shutil.copy("/bin/sleep", tmp_path / "store"))
    with subprocess.Popen([store, "60"]) as process:
        try:
            code, err = run(capsys, *command.split(), "--store", str(store))
        finally:
            process.kill()
    assert (code, err) == (
        64,
        f"ilaverify: --store: {store} must be a file that can be written: Text file busy; name another one\n",
    )


def test_a_full_disk_is_found_before_work(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: a file can be made, and nothing written to it."""
    process = start(
        "prove",
        "flexasr_linear",
        "-o",
        tmp_path / "out",
        limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)),
    )
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 64
    assert err == (
        f"ilaverify: -o: {tmp_path / 'out'} must be a place that can be written; {tmp_path} cannot: File too large; "
        "name another place\n"
    )


@pytest.mark.parametrize("what", ["/dev/null", "/dev/full"])
def test_a_device_is_no_output(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, err = run(capsys, "prove", "flexasr_linear", "--junit", what)
    assert (code, err) == (64, f"ilaverify: --junit must name a file, not the device {what}\n")


def test_a_failed_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(certificate.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as failed:
        certificate.write_atomically(tmp_path / "a.json", "text")
    assert failed.value.filename == str(tmp_path / "a.json")
