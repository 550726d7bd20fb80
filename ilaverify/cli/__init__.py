"""The command line from outside: whatever fails is one line, and never has the exit code of a refutation.

Exit codes: 0 everything proved (or done), 1 something refuted, 2 something unproved or broken, 64 bad usage,
130 interrupted, 141 the reader of the output went away before its end (as a process that SIGPIPE ends).

Nothing is loaded before :func:`main` begins, so that Ctrl-C and a lack of memory are met there, while modules load too.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # typing itself takes time to load
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["TRACEBACK", "main"]

TRACEBACK = "ILAVERIFY_TRACEBACK"
"""The environment variable with which a failure is shown with its traceback."""

KEEPING = ("prove", "campaign", "run", "tv")
"""Verbs that keep what they have found at Ctrl-C, and end themselves."""

GRACE = 0.5
"""Seconds after Ctrl-C in which temporary files may be removed."""

NEW_OBJECTS = 500_000
"""A command collects garbage each time that this number of objects is new, for terms and certificates are many objects
and leave hardly any cyclic garbage: to collect as often as Python does takes a quarter of the time of `compile`."""

EXIT_BROKEN = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
"""128 and the number of SIGPIPE: no verdict, whatever was found, for it was not shown."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; raises nothing but what ends the interpreter."""
    command = sys.argv[1:] if arguments is None else arguments
    interrupt = _Interrupt()
    if arguments is None:  # else the process is the caller's
        gc.set_threshold(NEW_OBJECTS)
    try:
        _open_streams()
        if next(iter(command), "") not in KEEPING:
            interrupt.watch()
        from .memory import require_memory

        require_memory()
        from .commands import run

        try:
            code = run(command, traceback=bool(os.environ.get(TRACEBACK)))
        except SystemExit:  # --help and --version
            sys.stdout.flush()
            raise
        if interrupt.came:
            return interrupt.end()
        sys.stdout.flush()  # here, where a full disk is still reported
        return code
    except BrokenPipeError:
        # the reader of our output has gone; point the interpreter's last flush elsewhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except KeyboardInterrupt:
        return interrupt.end()
    except Exception as error:
        if interrupt.came:  # ctypes makes an error of its own of it
            return interrupt.end()
        print(f"ilaverify: {_words(error, next(iter(command), ''))}", file=sys.stderr)
        if os.environ.get(TRACEBACK):
            import traceback

            traceback.print_exc()
        return EXIT_BROKEN
    finally:
        interrupt.unwatch()
        if arguments is None:
            import signal

            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all output is written; only shutdown remains


class _Interrupt:
    """Ctrl-C, which cannot be raised while a solver works, and is lost where it is raised while Python cleans up."""

    def __init__(self) -> None:
        self.came = False
        self._undo: list[Callable[[], object]] = []

    def watch(self) -> None:
        """From now on the process ends a moment after Ctrl-C, whatever it is doing then."""
        import signal
        import threading

        ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if not ours or threading.current_thread() is not threading.main_thread():
            return
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing)
        ended = threading.Event()

        def handle(*_: object) -> None:
            self.came = True
            sys.unraisablehook = lambda _: None  # objects that were half made then have nothing to say
            raise KeyboardInterrupt

        def wait() -> None:
            with open(reading, "rb", buffering=0) as numbers:
                while (number := numbers.read(1)) not in (b"", bytes([signal.SIGINT])):
                    pass
            if number and not ended.wait(GRACE):
                os._exit(_interrupted())

        signal.signal(signal.SIGINT, handle)
        threading.Thread(target=wait, daemon=True).start()
        self._undo = [
            ended.set,
            lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            lambda: signal.set_wakeup_fd(before),
            lambda: os.close(writing),
        ]

    def unwatch(self) -> None:
        """Lets Ctrl-C do again what it did before."""
        while self._undo:
            self._undo.pop(0)()

    def end(self) -> int:
        """The exit code of the command that Ctrl-C ended."""
        self.unwatch()
        return _interrupted()


def _interrupted() -> int:
    print("ilaverify: interrupted; nothing was written", file=sys.stderr)
    return EXIT_INTERRUPTED


def _open_streams() -> None:
    """Opens standard streams that are closed on the null device: the next file that is opened would be taken for one.

    A character that a terminal cannot show is written as an escape.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the least number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  it lasts as long as the process
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _words(error: Exception, verb: str) -> str:
    """What failed, and what to do."""
    if isinstance(error, MemoryError):
        return f"{verb}: {str(error) or 'there is not enough memory; give it more'}; this is no verdict"
    if isinstance(error, OSError) and error.strerror:
        where = error.filename or f"{verb}: writing standard output or a temporary file"
        return f"{where}: {error.strerror}"
    from ila_lang.extensions import author_lines, fault

    file, line = _place(error)
    message = " ".join(str(error).split())[:200]
    own, authors = fault(error) is None, author_lines(error)
    if authors:
        if own:
            message += f", called at {authors[-1][1].f_code.co_filename}:{authors[-1][2]}"
        else:
            file, line = authors[-1][1].f_code.co_filename, authors[-1][2]
    whose = "a fault of ilaverify" if own else f"a fault of {file}"
    then = "report what it prints" if own else "look at what it prints"
    return (
        f"{verb}: failed by {type(error).__name__}: {message} ({os.path.basename(file)}:{line}); this is {whose}, and "
        f"no verdict; run it again with {TRACEBACK}=1 and {then}"
    )


def _place(error: Exception) -> tuple[str, int]:
    """The file and line of the innermost code of the failure."""
    trace, place = error.__traceback__, ("<no place is known>", 0)
    while trace is not None:
        place = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return place
