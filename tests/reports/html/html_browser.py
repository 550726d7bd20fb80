"""A headless Chromium, driven through its DevTools protocol over two pipes; nothing but the standard library.

The browser is asked to render a page as a screen of some size would show it, in light or dark mode or on paper, and
says what it requested, what it complained about, and what scripts find in the page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REQUIRED = "ILAVERIFY_REQUIRE_BROWSER"
"""The environment variable that makes a missing browser a failure."""

ANSWER_SECONDS = 60.0
OPTIONS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
    "--disable-dev-shm-usage", "--no-proxy-server", "--remote-debugging-pipe",
)  # fmt: skip

_START = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for pipe, number in zip(pipes, (3, 4)):
    os.dup2(pipe, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Gives the browser its pipes as descriptors 3 (commands) and 4 (answers), where it looks for them."""


def find_browser() -> str | None:
    """The path of a Chromium, None where there is none."""
    return next((found for found in map(shutil.which, COMMANDS) if found), None)


class Browser:
    """One tab of a running browser."""

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of one command; raises RuntimeError where the browser refuses it or does not answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._send, data) :]
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _next(self, deadline: float) -> dict[str, Any]:
        """The next message; events are kept as well."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._receive, 1 << 16) if ready else b""
            if not data:
                raise RuntimeError("the browser does not answer" if not ready else "the browser has ended")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, address: str) -> None:
        """Opens an address and waits until it is loaded."""
        self.events.clear()
        failure = self.call("Page.navigate", url=address).get("errorText")
        if failure:
            raise RuntimeError(f"{address}: {failure}")
        deadline = time.monotonic() + ANSWER_SECONDS
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self._next(deadline)

    def screen(self, width: int, height: int, *, dark: bool, media: str = "", phone: bool = False) -> None:
        """What the page is shown on; ``media`` may be ``print``."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page; raises RuntimeError where it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression[:200]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Writes what is seen (or the ``whole`` page) as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    @property
    def requested(self) -> list[str]:
        """Every address that the page asked for since it was opened, itself first."""
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    @property
    def complaints(self) -> list[str]:
        """Errors, warnings and console output since the page was opened."""
        found = [e["params"] for e in self.events if e["method"] == "Log.entryAdded"]
        texts = [str(entry["entry"]["text"]) for entry in found]
        loud = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return texts + [json.dumps(e["params"]) for e in self.events if e["method"] in loud]


@contextmanager
def browser(command: str, profile: Path) -> Iterator[Browser]:
    """A browser with the new, empty ``profile``; it ends with the block."""
    arguments = [command, *OPTIONS, f"--user-data-dir={profile}"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium's sandbox refuses root
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()

    start = [sys.executable, "-I", "-S", "-c", _START, str(to_browser), str(to_us), *arguments, "about:blank"]
    with (profile.parent / f"{profile.name}.log").open("wb") as log:
        process = subprocess.Popen(
            start, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(to_browser, to_us),
            start_new_session=True,
        )  # fmt: skip
    os.close(to_browser)
    os.close(to_us)
    try:
        yield Browser(from_us, from_browser)
    finally:
        os.close(from_us)
        os.close(from_browser)
        try:
            process.wait(timeout=10)  # it ends when its pipe is closed
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
