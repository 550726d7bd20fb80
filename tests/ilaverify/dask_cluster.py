"""A scheduler and workers of Dask as processes on this machine, for tests and measurements that kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "encodings"), os.environ.get("PYTHONPATH", "")]),
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}


class DaskCluster:
    """``workers`` workers of one thread each; what they write goes to files in a folder, where they also run."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self._started = 0
        self._scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.address = self._said(self._scheduler, "Scheduler at:").split()[-1]
        self.workers = [self.add() for _ in range(workers)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self.workers, self._scheduler):
            process.kill()
            process.wait()

    def add(self, **environment: str) -> subprocess.Popen[bytes]:
        """Starts a worker, which is there a moment later."""
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny", **environment)

    def kill(self, number: int) -> None:
        """Kills a worker, as the lack of memory does."""
        self.workers[number].kill()
        self.workers[number].wait()

    def replace(self, number: int) -> None:
        """Kills a worker and starts another one."""
        self.kill(number)
        self.workers[number] = self.add()

    def end_scheduler(self) -> None:
        """Kills the scheduler."""
        self._scheduler.send_signal(signal.SIGKILL)
        self._scheduler.wait()

    def processes(self) -> list[psutil.Process]:
        """The scheduler, workers, and their servers."""
        started = [psutil.Process(process.pid) for process in (self._scheduler, *self.workers)]
        return [*started, *(server for process in started for server in process.children())]

    def tasks(self) -> list[psutil.Process]:
        """The processes of tasks: children of the servers, which are children of workers."""
        servers = [server for w in self.workers if w.poll() is None for server in psutil.Process(w.pid).children()]
        return [task for server in servers for task in server.children()]

    def _start(self, what: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        self._started += 1
        with open(self.folder / f"{self._started}.log", "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *options],
                cwd=self.folder, env=os.environ | ENVIRONMENT | environment, stdout=log, stderr=log,
            )  # fmt: skip

    def _said(self, process: subprocess.Popen[bytes], words: str) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            for line in (self.folder / "1.log").read_text().splitlines():
                if words in line:
                    return line
            time.sleep(0.05)
        raise TimeoutError((self.folder / "1.log").read_text())
