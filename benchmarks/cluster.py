"""Proofs by three workers of a Dask cluster on this machine, beside the pool of processes; and the sizes of tasks.

``python -m benchmarks.cluster`` proves every EVERYth claim in pairs, by the pool and by the cluster, each time into a
new store, and then runs tasks that do nothing.  Seconds are those of whole commands; processor seconds are those of all
processes that take part, so that they say something on a machine that has other things to do, too.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.record import takes_nothing, write
from ilaverify.catalogue import all_entries
from ilaverify.identity import read_provers
from ilaverify.proving.cluster import Cluster
from ilaverify.proving.prove_all import prove_named
from ilaverify.proving.workers import Ended, Task, run_tasks
from tests.ilaverify.dask_cluster import DaskCluster

WORKERS, PAIRS, EVERY, EMPTY = 3, 3, 13, 480


def main() -> int:
    """Measures, and writes JSON and Markdown to ``benchmarks/results``."""
    names = list(all_entries())[::EVERY]
    read_provers()  # processes that are forked here have as much loaded as those of a server
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, DaskCluster(Path(folder), WORKERS) as cluster:
        proved(names[-3:], Path(folder) / "first.sqlite3", "--cluster", cluster.address)  # servers are ready then
        for pair in range(PAIRS):
            for how, options in (("pool", ["--jobs", str(WORKERS)]), ("cluster", ["--cluster", cluster.address])):
                store = Path(folder) / f"{how}{pair}.sqlite3"
                before = processor_seconds(cluster)
                seconds, own, claims = proved(names, store, *options)
                cpu = own + processor_seconds(cluster) - before
                runs.append({"how": how, "seconds": round(seconds, 2), "cpu": round(cpu, 2), "claims": claims})
                print(f"{how:<8} {seconds:7.1f} s  {cpu:7.1f} s of processors  {len(claims)} claims", flush=True)
        sizes = sizes_of(runs[-1]["claims"], store)
        empty = empty_tasks(cluster)
    content = {
        "claims": names,
        "runs": [run | {"claims": None} for run in runs],
        "empty": empty,
        "sizes": sizes,
    }
    write("cluster", content, markdown(content))
    return 0


def proved(names: Sequence[str], store: Path, *options: str) -> tuple[float, float, list[dict[str, Any]]]:
    """Seconds and processor seconds of one command, and what it says of each claim."""
    command = [sys.executable, "-m", "ilaverify", "prove", *names, "--json", "--store", str(store), *options]
    before, start = own_seconds(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    claims = json.loads(done.stdout)["claims"]
    assert all(claim["as_expected"] for claim in claims), done.stdout
    return seconds, own_seconds() - before, claims


def own_seconds() -> float:
    """Processor seconds of this process and of its children that have ended."""
    return sum(psutil.Process().cpu_times()[:4])


def processor_seconds(cluster: DaskCluster) -> float:
    """Those of the scheduler, of workers, of their servers, and of tasks that have ended."""
    return sum(sum(process.cpu_times()[:4]) for process in cluster.processes())


def sizes_of(claims: Sequence[dict[str, Any]], store: Path) -> dict[str, Any]:
    """Processor seconds of a claim and bytes of its certificate or counterexample, by kind; and the store's growth."""
    with sqlite3.connect(store) as connection:
        documents = dict(connection.execute("SELECT subject, LENGTH(text) FROM proofs").fetchall())
    tasks = [Task(claim["name"], partial(seconds_of, claim["name"])) for claim in claims]
    used = {end.name: float(end.text or "nan") for end in run_tasks(tasks, jobs=WORKERS, timeout=600, memory=4096)}
    kinds = {}
    for kind in dict.fromkeys(claim["kind"] for claim in claims):
        those = [claim for claim in claims if claim["kind"] == kind]
        seconds = [used[claim["name"]] for claim in those]
        lengths = [documents[claim["name"]] for claim in those]
        kinds[kind] = {
            "claims": len(those),
            "seconds": [round(x, 3) for x in (statistics.median(seconds), statistics.mean(seconds), max(seconds))],
            "bytes": [round(x) for x in (statistics.median(lengths), statistics.mean(lengths), max(lengths))],
        }
    return {"kinds": kinds, "store": store.stat().st_size, "documents": sum(documents.values())}


def seconds_of(name: str) -> str:
    """Processor seconds of a claim's proof, without those of the process that is forked for it."""
    prove_named(name, 300.0)
    return str(own_seconds())


def empty_tasks(cluster: DaskCluster) -> dict[str, Any]:
    """Milliseconds for each task that does nothing, by the pool and on the cluster: of the clock, and of processors."""
    tasks = [Task(str(k), partial(textwrap.dedent, "x")) for k in range(EMPTY)]
    measurements: dict[str, Any] = {"pool": [], "cluster": []}
    with Cluster(cluster.address) as client:
        for _ in range(PAIRS):
            for how, run in (("pool", partial(run_tasks, jobs=WORKERS)), ("cluster", client.run_tasks)):
                measurements[how].append(measured(partial(run, tasks, timeout=60, memory=4096), cluster))
    return measurements


def measured(run: Callable[[], Sequence[Ended]], cluster: DaskCluster) -> list[float]:
    before, start = own_seconds() + processor_seconds(cluster), time.perf_counter()
    assert all(end.text == "x" for end in run())
    seconds = time.perf_counter() - start
    cpu = own_seconds() + processor_seconds(cluster) - before
    return [round(1000 * x / EMPTY, 2) for x in (seconds, cpu)]


def markdown(content: dict[str, Any]) -> str:
    runs = content["runs"]
    pairs = [(a, b) for a, b in zip(runs[::2], runs[1::2], strict=True)]
    lines = [
        "# Three workers on one machine, beside the process pool",
        "",
        f"`{content['command']}`; {len(content['claims'])} claims, whole commands, in pairs.  Seconds of the clock,",
        "and of processors for all processes.  Machine and versions: cluster.json.",
        "",
        "| pair | pool, s | cluster, s | times as fast | pool, processor s | cluster, processor s | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for number, (a, b) in enumerate(pairs, 1):
        lines.append(
            f"| {number} | {a['seconds']:.1f} | {b['seconds']:.1f} | {a['seconds'] / b['seconds']:.2f} | "
            f"{a['cpu']:.1f} | {b['cpu']:.1f} | {a['cpu'] / b['cpu']:.2f} |"
        )
    lines += [
        "",
        f"A task that does nothing, of {EMPTY} (milliseconds, in pairs):",
        "",
        "| pair | pool | cluster | overhead | pool, of processors | cluster, of processors | overhead |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for number, (p, c) in enumerate(zip(content["empty"]["pool"], content["empty"]["cluster"], strict=True), 1):
        lines.append(
            f"| {number} | {p[0]:.1f} | {c[0]:.1f} | {c[0] - p[0]:.1f} | {p[1]:.1f} | {c[1]:.1f} | {c[1] - p[1]:.1f} |"
        )
    sizes = content["sizes"]
    lines += [
        "",
        "| kind | claims | processor seconds: median, mean, most | bytes of the document: median, mean, most |",
        "| --- | ---: | ---: | ---: |",
    ]
    for kind, of in sizes["kinds"].items():
        seconds, lengths = of["seconds"], of["bytes"]
        shown = " | ".join([", ".join(f"{x:.2f}" for x in seconds), ", ".join(f"{x:,}" for x in lengths)])
        lines.append(f"| {kind} | {of['claims']} | {shown} |")
    lines += ["", f"The store has {sizes['store']:,} bytes for {sizes['documents']:,} bytes of documents.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    takes_nothing("benchmarks.cluster", __doc__)
    sys.exit(main())
