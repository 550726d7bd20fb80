"""Tasks on a Dask cluster end as in the local pool; nothing is lost with a worker; what cannot go on says why."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilaverify.catalogue import find_entry
from ilaverify.cli import main
from ilaverify.identity import environment
from ilaverify.proving import cluster as module
from ilaverify.proving import dataset_runs
from ilaverify.proving.cluster import Cluster
from ilaverify.proving.prove_all import prove_all
from ilaverify.proving.workers import Ended, Limits, MachinesError, Task, run_tasks
from reports.store import ProofStore

from .dask_cluster import DaskCluster

RULES = ["relu-commutes-with-max-pooling", "transposed-twice", "relu-twice", "lemma-decode"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with DaskCluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def own(tmp_path: Path) -> Iterator[DaskCluster]:
    (tmp_path / "logs").mkdir()
    with DaskCluster(tmp_path / "logs") as started:
        yield started


def texts(count: int, what: Callable[[str], str] = textwrap.dedent) -> list[Task]:
    return [Task(str(k), partial(what, f"text {k} é")) for k in range(count)]


def ends(cluster: Cluster, tasks: Sequence[Task], **limits: Any) -> dict[str, Ended]:
    found = list(cluster.run_tasks(tasks, **({"timeout": 60.0, "memory": 4096} | limits)))
    assert sorted(end.name for end in found) == sorted(task.name for task in tasks)
    return {end.name: end for end in found}


def until(what: Callable[[], bool], seconds: float = 300.0) -> float:
    """The time until something is so."""
    start = time.monotonic()
    while not what():
        assert time.monotonic() < start + seconds
        time.sleep(0.02)
    return time.monotonic() - start


def test_tasks_end_as_on_this_machine(shared: DaskCluster) -> None:
    tasks = [
        *texts(40),
        Task("late", partial(time.sleep, 100)),
        Task("broken", partial(json.loads, "{")),
    ]
    with Cluster(shared.address) as cluster:
        found = ends(cluster, tasks, timeout=1.0)
    assert all(found[str(k)].text == f"text {k} é" for k in range(40))
    here = {end.name: end for end in run_tasks(tasks[40:], jobs=2, timeout=1.0, memory=4096)}
    assert {name: found[name].failure for name in here} == {name: end.failure for name, end in here.items()}
    assert found["late"].failure == "no answer within 1 s; give more time with --timeout"


def prove(*names: str, cluster: DaskCluster, store: Path) -> int:
    return main(["prove", *names, "--store", str(store), "--cluster", cluster.address])


def test_proofs_of_workers_are_in_the_store(
    shared: DaskCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store.sqlite3"
    assert prove(*RULES, cluster=shared, store=store) == 0
    assert f"{len(RULES)} PROVED; all as expected" in capsys.readouterr().out
    assert {subject for _, _, subject in ProofStore(store).entries()} == set(RULES)
    assert prove(*RULES, cluster=shared, store=store) == 0
    assert capsys.readouterr().out.count("from store") == len(RULES)


def test_samples_of_workers_are_those_of_one_process(shared: DaskCluster, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for options in ([], ["--jobs", "2"], ["--cluster", shared.address]):
        assert main(["campaign", "flexasr_encode_sign", "--examples", "20", "--json", *options]) == 1
        shown.append(capsys.readouterr().out)
    assert len(set(shown)) == 1


@pytest.fixture
def compiled(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command that runs 9 samples of the small model, of which all but one go to the cluster one by one."""
    monkeypatch.setattr(dataset_runs, "ALONE_SECONDS", 0.0)
    monkeypatch.setattr(dataset_runs, "TASK_SECONDS", 1e-9)
    drawn = np.random.default_rng(3).uniform(-1, 1, size=(9, 2, 6, 6)).astype("float32")
    np.savez(tmp_path / "x.npz", image=drawn, labels=np.arange(9) % 5)
    return ["run", str(place / "made"), "--inputs", str(tmp_path / "x.npz"), "--output", str(tmp_path / "y.npz")]


@pytest.mark.slow
def test_samples_of_workers_that_are_killed_are_those_of_this_machine(
    shared: DaskCluster, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    assert main([*compiled, "--jobs", "1"]) == 0
    alone = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  scores: ")]
    plain, found = Cluster.run_tasks, []

    def killing(self: Cluster, *arguments: Any, **limits: Any) -> Generator[Ended]:
        for end in plain(self, *arguments, **limits):
            if len(found) < 2:
                shared.replace(len(found))
            found.append(end.name)
            yield end

    monkeypatch.setattr(Cluster, "run_tasks", killing)
    before = (tmp_path / "y.npz").read_bytes()
    assert main([*compiled, "--cluster", shared.address]) == 0
    assert sorted(found) == [str(k) for k in range(1, 9)] and (tmp_path / "y.npz").read_bytes() == before
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("  scores: ")] == alone != []


def test_other_files_on_a_worker_are_refused(
    shared: DaskCluster, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    plain = Cluster.run_tasks

    def late(self: Cluster, *arguments: Any, **limits: Any) -> Generator[Ended]:
        np.savez(tmp_path / "x.npz", image=np.zeros((9, 2, 6, 6), "float32"))
        return plain(self, *arguments, **limits)

    monkeypatch.setattr(Cluster, "run_tasks", late)
    assert main([*compiled, "--cluster", shared.address]) == 2
    said = capsys.readouterr().err
    assert f"a worker of the cluster at {shared.address} cannot work for this run: UsageError: {tmp_path}/x.npz" in said
    assert "x.npz must have the digest" in said and "; 1 of 9 samples are shown\n" in said


@pytest.mark.slow
def test_a_scheduler_that_goes_away_leaves_the_samples_that_were_run(
    own: DaskCluster, compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    plain = Cluster.run_tasks

    def ending(self: Cluster, *arguments: Any, **limits: Any) -> Generator[Ended]:
        for end in plain(self, *arguments, **limits):
            yield end
            own.end_scheduler()

    monkeypatch.setattr(Cluster, "run_tasks", ending)
    assert main([*compiled, "--cluster", own.address]) == 2
    said = capsys.readouterr().err
    assert f"ilaverify: the scheduler at {own.address} has gone away; start it again" in said
    with np.load(tmp_path / "y.npz") as results:
        assert 2 <= len(results["samples"]) < 9 and len(results["scores"]) == len(results["samples"])


@pytest.mark.slow
def test_a_scheduler_that_goes_away_leaves_what_was_proved(own: DaskCluster, tmp_path: Path) -> None:
    store = ProofStore(tmp_path / "store.sqlite3")
    with command("flexasr_gru", RULES[0], "--store", str(store.path), "--cluster", own.address) as process:
        until(lambda: bool(store.entries()) and len(own.tasks()) == 1)
        (task,) = own.tasks()
        start = time.monotonic()
        own.end_scheduler()
        out, said = process.communicate()
    assert time.monotonic() - start < 60
    assert process.returncode == 2 and "PROVED   relu-commutes" in out
    assert f"the scheduler at {own.address} has gone away; start it again" in said
    assert "what was proved is kept" in said and "1 NOT RUN, 1 PROVED" in out
    assert [subject for _, _, subject in store.entries()] == [RULES[0]]
    until(lambda: not task.is_running())


def command(*arguments: str, folder: Path | None = None) -> subprocess.Popen[str]:
    """``ilaverify prove`` as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "ilaverify", "prove", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_run_that_is_closed_leaves_no_task(shared: DaskCluster) -> None:
    with Cluster(shared.address) as cluster:
        until(lambda: sum(cluster._wait(cluster._client.nthreads()).values()) == 2)  # some may be starting
        tasks = [*texts(1), *(Task(f"long {k}", partial(time.sleep, 100)) for k in range(9))]
        run = cluster.run_tasks(tasks, timeout=200, memory=4096)
        assert next(run).text == "text 0 é"
        until(lambda: len(shared.tasks()) == 1)  # the second thread gets its next task with the next result
        start = time.monotonic()
        run.close()
        assert time.monotonic() - start < 60
    until(lambda: not shared.tasks(), seconds=60)


CLIENT = """
import sys, time
from functools import partial
from ilaverify.proving.cluster import Cluster
from ilaverify.proving.workers import Task

with Cluster(sys.argv[1]) as cluster:
    list(cluster.run_tasks([Task(k, partial(time.sleep, 100)) for k in "ab"], timeout=200, memory=4096))
"""


def test_a_client_that_is_killed_leaves_no_task(shared: DaskCluster) -> None:
    with subprocess.Popen([sys.executable, "-c", CLIENT, shared.address]) as process:
        until(lambda: len(shared.tasks()) == 2)
        process.kill()
    until(lambda: not shared.tasks(), seconds=60)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_command_leaves_no_task(shared: DaskCluster, number: signal.Signals) -> None:
    with command("flexasr_lstm", "flexasr_gru", "--no-store", "--cluster", shared.address) as process:
        until(lambda: len(shared.tasks()) == 2)
        start = time.monotonic()
        process.send_signal(number)
        said = process.communicate()[1]
        took = time.monotonic() - start
    if number == signal.SIGINT:
        assert process.returncode == 130 and "ilaverify: interrupted; nothing was proved" in said
    assert took < 60  # a second on a machine that has nothing else to do
    until(lambda: not shared.tasks(), seconds=60)


def test_workers_must_have_the_same_versions(shared: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = environment()
    monkeypatch.setattr("ilaverify.identity.environment", lambda: theirs | {"solvers": "z3 9.9"})
    with Cluster(shared.address) as cluster, pytest.raises(MachinesError) as caught:
        ends(cluster, texts(1))
    assert f"solvers: {theirs['solvers']} there, z3 9.9 here" in str(caught.value)


def test_modules_that_workers_lack_are_refused(
    shared: DaskCluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "modules_in_use", lambda: ("of_the_client",))
    assert prove(RULES[0], cluster=shared, store=tmp_path / "store.sqlite3") == 2
    assert "module 'of_the_client' cannot be imported" in capsys.readouterr().err
    (shared.folder / "of_the_client.py").write_text("from rewrites.targets.flexasr import TARGET\n")
    assert prove(RULES[0], cluster=shared, store=tmp_path / "store.sqlite3") == 2
    assert "package of_the_client: code" in capsys.readouterr().err


@pytest.mark.slow
def test_modules_that_workers_have_are_used(shared: DaskCluster) -> None:
    (shared.folder / "of_both.py").write_text("from rewrites.targets.flexasr import TARGET\n")
    options = ("--module", "of_both", "--no-store", "--cluster", shared.address)
    with command(RULES[0], *options, folder=shared.folder) as process:
        out, said = process.communicate()
    assert (process.returncode, said) == (0, "") and "1 PROVED" in out


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:9", "no Dask scheduler answers at 127.0.0.1:9 within 0.5 s"),
        ("nowhere.invalid:8786", "no Dask scheduler answers at"),
        ("odd://x:1", "must be HOST:PORT"),
        ("", "must be HOST:PORT"),
        ("127.0.0.1", "must be HOST:PORT"),
    ],
)
def test_a_wrong_address_is_said_in_seconds(
    address: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    start = time.monotonic()
    assert main(["prove", RULES[0], "--cluster", address]) == 64
    assert words in capsys.readouterr().err
    assert time.monotonic() - start < 60


def test_a_cluster_needs_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["campaign", "vta_gemm", "--cluster", "127.0.0.1:9"]) == 64
    assert "pip install 'ilaverify[cluster]'" in capsys.readouterr().err


def test_a_cluster_without_workers_is_said(own: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    own.kill(0)
    own.kill(1)
    monkeypatch.setattr(module, "WORKER_SECONDS", 1.0)
    with Cluster(own.address) as cluster, pytest.raises(MachinesError, match="has had no worker for 1 s"):
        ends(cluster, texts(1))


# -- what a worker is trusted with ------------------------------------------------------------------


HONEST: list[Ended] = []


class Dishonest:
    """Runs tasks here, the first time, and changes what they answer."""

    def __init__(self, change: Callable[[dict[str, Any]], object]) -> None:
        self.change = change

    def run_tasks(self, tasks: Sequence[Task], **limits: Any) -> Generator[Ended]:
        HONEST[:] = HONEST or run_tasks(tasks, jobs=1, **limits)
        for end in HONEST:
            answer = json.loads(end.text or "")
            yield replace(end, text=json.dumps(self.change(answer) or answer))


def spoil_certificate(answer: dict[str, Any]) -> None:
    answer["outcome"]["document"] = answer["outcome"]["document"].replace("unsat", "sat", 1)


def of_another(answer: dict[str, Any]) -> None:
    answer["outcome"] |= {"document": OTHER[0]}


OTHER: list[str] = []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: a | {"key": "0" * 64}, "its key must be that of the claim"),
        (lambda a: a | {"questions": "0" * 64}, "its obligations and enumerations must be"),
        (lambda a: a["outcome"].update(expected="REFUTED"), "must be those of the claim"),
        (lambda a: a["outcome"].update(name="relu-twice"), "must be those of the claim"),
        (lambda a: a["outcome"].update(document=""), "its certificate"),
        (spoil_certificate, "its certificate"),
        (of_another, "its semantics must be that of the claim"),
        (lambda a: ["PROVED"], "its answer cannot be read"),
        (lambda a: a["outcome"].pop("notes") and a, "its answer cannot be read"),
    ],
)
def test_an_answer_that_is_no_proof_of_the_claim_is_refused(change: Any, reason: str, tmp_path: Path) -> None:
    store = ProofStore(tmp_path / "store.sqlite3")
    if not OTHER:
        (other,) = prove_all({RULES[1]: find_entry(RULES[1])}, limits=Limits(), store=None)
        OTHER.append(other.document)
    entries = {RULES[0]: find_entry(RULES[0])}
    with closing(prove_all(entries, limits=Limits(cluster=Dishonest(change)), store=store)) as outcomes:
        (outcome,) = outcomes
    assert outcome.status == "ERROR" and reason in outcome.reason
    assert store.entries() == []


# -- many kills -------------------------------------------------------------------------------------


def test_a_worker_that_is_killed_costs_nothing_but_time(shared: DaskCluster) -> None:
    """The last test of those that share a cluster, which is left without one of its workers."""
    with Cluster(shared.address) as cluster:
        run = cluster.run_tasks([Task(str(k), partial(time.sleep, 0.3)) for k in range(12)], timeout=60, memory=4096)
        found = [next(run).name]
        shared.kill(0)
        found += [end.name for end in run]
        assert sorted(found, key=int) == [str(k) for k in range(12)]


@pytest.mark.slow
def test_no_result_is_lost_over_fifty_kills(tmp_path: Path) -> None:
    draw = random.Random(1)
    with DaskCluster(tmp_path) as started, Cluster(started.address) as cluster:
        tasks = [Task(str(k), partial(time.sleep, draw.random())) for k in range(600)]
        run = cluster.run_tasks(tasks, timeout=60, memory=4096)
        names, kills = [], 0
        for end in run:
            names.append(end.name)
            assert end.failure == ""
            if kills < 50 and len(names) % 10 == 0:
                started.replace(draw.randrange(len(started.workers)))
                kills += 1
    assert kills == 50 and sorted(names, key=int) == [str(k) for k in range(600)]
