"""Doors: what packages offer by entry points, and modules that the user names, loaded on first use.

An extension is trusted as its package is; :meth:`Door.origin` names that.
"""

from __future__ import annotations

import dis
import os
import shlex
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import CodeType, FrameType, ModuleType
from typing import Any, Generic, Protocol, TypeVar

from .errors import InputError
from .packages import NAMES


class ExtensionError(InputError):
    """What a package or module offers cannot be used; the message names it, what must hold and what holds instead."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def require_builder(what: str, value: object) -> None:
    """Raises ExtensionError unless a value is a function: what a package offers is built when it is asked for."""
    if not callable(value):
        raise ExtensionError(f"{what} must be a function, such as lambda: VALUE, not {value!r:.60}")


R = TypeVar("R")


def built(what: str, build: Callable[..., R], *arguments: object, passed: tuple[type[Exception], ...] = ()) -> R:
    """What a function of a package gives for its arguments; errors that are ``passed`` are its answers.

    Raises ExtensionError, which names ``what``, file and line, where the package's author is at :func:`fault`.
    """
    try:
        return build(*arguments)
    except ExtensionError:
        raise
    except passed:
        raise
    except Exception as error:
        package = str(getattr(build, "__module__", "")).partition(".")[0]
        place = fault(error, package)
        trace = error.__traceback__
        if place is None and trace is not None and trace.tb_next is None and package not in _OURS:
            place = place_of(build)  # it takes other arguments
        if place is None:
            raise
        words = str(error) if _by_us(error) else f"{type(error).__name__}: {error}"
        raise ExtensionError(f"{what} cannot be built: {words} ({place}); correct it there") from error


def place_of(function: Callable[..., object]) -> str:
    """File and line where a function is defined, or the package of what is none of Python's."""
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        return f"{code.co_filename}:{code.co_firstlineno}"
    return str(getattr(function, "__module__", "")).partition(".")[0]


_OURS = frozenset({"ila_lang", *NAMES})
_LIBRARIES = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def fault(error: BaseException, package: str = "") -> str | None:
    """The file and line of an author's code that is at fault for an error, and of what called it; None for ours.

    It is at fault where it fails itself, or gives our code what that refuses: by a ``raise`` of TypeError, ValueError
    or LookupError.  Any other error in our code is a fault of ours, whoever called it.  Authors' code is neither ours
    nor of a library; ``package`` is an author's, too.
    """
    lines = author_lines(error, package)
    after = _steps(error)[lines[-1][0] + 1 :] if lines else []
    if not lines or (any(map(_is_ours, (frame for frame, *_ in after))) and not _by_us(error)):
        return None
    first, last = (f"{frame.f_code.co_filename}:{line}" for frame, line in (lines[0][1:], lines[-1][1:]))
    return last if first == last else f"{last}, called at {first}"


def author_lines(error: BaseException, package: str = "") -> list[tuple[int, FrameType, int]]:
    """Where an error came through code of authors, the outermost first: number of the call, frame, line."""
    return [(k, frame, line) for k, (frame, line, _) in enumerate(_steps(error)) if _is_authors(frame, package)]


def _steps(error: BaseException) -> list[tuple[FrameType, int, int]]:
    steps, trace = [], error.__traceback__
    while trace is not None:
        steps.append((trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return steps


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _is_ours(frame: FrameType) -> bool:
    return _package(frame) in _OURS


def _is_authors(frame: FrameType, package: str) -> bool:
    library = frame.f_code.co_filename.startswith((*_LIBRARIES, "<"))
    return not _is_ours(frame) and (not library or _package(frame) == package)


def _by_us(error: BaseException) -> bool:
    """Whether our code refuses an argument: it raises the error itself, and Python does not raise it there."""
    frame, _, at = _steps(error)[-1]
    raised = frame.f_code.co_code[at] == dis.opmap["RAISE_VARARGS"]
    return raised and _is_ours(frame) and isinstance(error, (TypeError, ValueError, LookupError))


OWN = "ilaverify"
"""The distribution that has the doors."""

T = TypeVar("T", bound=_Named)
_doors: list[Door[Any]] = []
_modules: list[ModuleType] = []


class Door(Generic[T]):
    """Objects of one type, by name: those of an entry-point group, and the module-level values of modules in use.

    A door is defined in the module of its type, so code with an object for it has loaded it.
    """

    def __init__(self, group: str, kind: type[T]) -> None:
        self._group, self._kind = group, kind
        _doors.append(self)

    def all(self) -> Mapping[str, T]:
        """The objects, in the order of the entry points' names; raises ExtensionError."""
        return {name: thing for name, (thing, _) in self._offers().items()}

    def origin(self, name: str) -> str:
        """The distribution with its version, or the module, that offers the object of this name."""
        return self._offers()[name][1]

    def guest(self, name: str) -> str:
        """Likewise; empty for objects of ilaverify itself."""
        origin = self.origin(name)
        return "" if origin.startswith(f"{OWN} ") else origin

    def values_of(self, module: ModuleType) -> list[T]:
        """A module's values that this door takes."""
        return [value for value in vars(module).values() if isinstance(value, self._kind)]

    def _offers(self) -> dict[str, tuple[T, str]]:
        named = [(thing, f"module {module.__name__}") for module in _modules for thing in self.values_of(module)]
        offers: dict[str, tuple[T, str]] = {}
        for thing, origin in [*self._installed, *named]:
            first, other = offers.setdefault(thing.name, (thing, origin))
            if first is not thing:
                raise ExtensionError(f"{self._group}: both {other} and {origin} offer {thing.name!r}; remove one")
        return offers

    @cached_property
    def _installed(self) -> list[tuple[T, str]]:
        return [(self._loaded(point), _origin(point)) for point in _points(self._group)]

    def _loaded(self, point: EntryPoint) -> T:
        entry = f"{self._group}: {point.name} = {point.value} of {_origin(point)}"
        try:
            thing = point.load()
        except Exception as error:
            raise ExtensionError(f"{entry} cannot be loaded: {type(error).__name__}: {error}") from error
        if not isinstance(thing, self._kind):
            raise ExtensionError(f"{entry} must be a {self._kind.__name__}, not {thing!r:.60}")
        return thing


def use_module(name: str) -> None:
    """Makes doors take what a module offers; the current folder is searched for it, after all others.

    Raises ExtensionError where it cannot be imported, or offers nothing.
    """
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = import_module(name)
    except Exception as error:
        package = str(name).partition(".")[0]
        place = fault(error, package)
        if place is None and author_lines(error, package):
            raise
        message = f"module {name!r} cannot be imported: {type(error).__name__}: {error}{f' ({place})' if place else ''}"
        if isinstance(error, ModuleNotFoundError) and str(name).startswith(str(error.name)):
            message += f"; it must be installed, on PYTHONPATH, or in the folder {os.getcwd()}"
        raise ExtensionError(message) from error
    if not any(door.values_of(module) for door in _doors):
        raise ExtensionError(f"module {name!r} must have a value such as a Target, a Method or a FrontEnd; it has none")
    offer(module)


def offer(module: ModuleType) -> None:
    """Makes doors take what a module offers that is loaded, or made; one of its name that was there before goes."""
    _modules[:] = [known for known in _modules if known.__name__ != module.__name__]
    _modules.append(module)


def modules_in_use() -> tuple[str, ...]:
    """The names of modules in use besides those that are installed."""
    return tuple(module.__name__ for module in _modules)


def command_line(verb: str, *arguments: str | os.PathLike[str]) -> str:
    """How a verb is called with the modules in use, as a shell takes it; more arguments may follow.

    >>> command_line("check", "proofs", "other proofs")
    "ilaverify check proofs 'other proofs'"
    """
    modules = (word for name in modules_in_use() for word in ("--module", name))
    return shlex.join(["ilaverify", verb, *modules, *(os.fspath(word) for word in arguments)])


def guest_modules() -> list[ModuleType]:
    """All loaded modules of packages, other than ilaverify's own, that offer something."""
    groups = {door._group for door in _doors}
    points = [point for group in groups for point in _points(group) if point.dist is None or point.dist.name != OWN]
    names = [*(point.module for point in points), *modules_in_use()]
    packages = {name.partition(".")[0] for name in names}
    return [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in packages]


def _points(group: str) -> Iterator[EntryPoint]:
    points = sorted(entry_points(group=group), key=lambda point: (point.name, _origin(point)))
    if not any(point.dist is not None and point.dist.name == OWN for point in points):
        raise ExtensionError(f"{group}: ilaverify's own entry points are missing; install it (pip install -e .)")
    yield from points


def _origin(point: EntryPoint) -> str:
    return "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
