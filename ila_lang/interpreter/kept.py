"""What is made of an object that may change, for as long as it has not."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_not
from threading import RLock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Made = TypeVar("Made")


class Kept(Generic[Owner, Made]):
    """What was made of objects, each with the parts that it had then; threads may share it.

    Objects are not kept in memory, if what is made of them does not refer to them.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Owner, tuple[list[object], Made]] = WeakKeyDictionary()
        self._lock = RLock()

    def of(self, owner: Owner, parts: list[object], make: Callable[[], Made]) -> Made:
        """What was made of an object; made now where there is nothing yet, or the parts are others than then."""
        with self._lock:
            known = self._known.get(owner)
            if known is None or len(known[0]) != len(parts) or any(map(is_not, known[0], parts)):
                self._known[owner] = known = parts, make()
            return known[1]
