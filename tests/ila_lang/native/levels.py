"""Kernels in native code at several levels of optimisation, to tell a wrong one from a wrong translation."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

from ila_lang import Kernel, MemSort
from ila_lang.native import build
from ila_lang.native.arrays import call, new_words
from ila_lang.native.code import KernelCode
from ila_lang.native.kernels import kernel_text
from ila_lang.native.layout import Layout
from ila_lang.native.terms import scalars_and_memories

LEVELS = (0, 1, 2)


@cache
def _code(text: str, level: int) -> Any:
    return build.loaded(build.object_of(text, level)).function("run", ctypes.c_void_p)


def run(kernel: Kernel, values: Mapping[str, int], contents: Mapping[str, Mapping[int, int]], level: int) -> Any:
    """The memories after a run on whole memories, as lists of numbers by name."""
    scalars, known = scalars_and_memories(kernel.external_variables())
    layout = Layout(scalars.values())
    own = {}
    for name, memory in known.items():
        assert isinstance(memory.sort, MemSort)
        own[name] = new_words(memory.sort, 1 << memory.sort.addr_width)
        for address, word in contents.get(name, {}).items():
            own[name][address] = list(word.to_bytes(own[name].shape[1], "little")) if own[name].ndim > 1 else word
    code = KernelCode(kernel, layout, list(known.values()))
    assert build.available()
    call(_code(kernel_text(kernel, layout, code.memories), level), code, values, own)
    return {
        n: w.tolist() if w.ndim == 1 else [int.from_bytes(row.tobytes(), "little") for row in w] for n, w in own.items()
    }


def wrong_levels(
    kernel: Kernel, values: Mapping[str, int], contents: Mapping[str, Mapping[int, int]], expected: Any
) -> list[str]:
    """Which levels give something else than what is expected; at all of them the translation is wrong, else LLVM."""
    found = []
    for level in LEVELS:
        memories = run(kernel, values, contents, level)
        for name, words in expected.items():
            at = next((a for a, (x, y) in enumerate(zip(memories[name], words, strict=True)) if x != y), None)
            if at is not None:
                found.append(f"O{level}: {name}[{at:#x}] = {memories[name][at]}, not {words[at]}")
    return found


def check(kernel: Kernel, values: Mapping[str, int], contents: Mapping[str, Mapping[int, int]], expected: Any) -> None:
    """Fails unless the level that is used gives what is expected, and says which levels do not."""
    memories = run(kernel, values, contents, build.SPEED)
    if any(memories[name] != words for name, words in expected.items()):
        raise AssertionError("\n".join(wrong_levels(kernel, values, contents, expected)) or "O2 differs between runs")
