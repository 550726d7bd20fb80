"""From IR text to functions in memory, by LLVM at O2; llvmlite is imported when the first one is made."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from . import cache as store
from .terms import NotNative

SPEED = 2
"""The level of optimisation; 3 is never faster on the models here, and slower on VTA's products."""


class Code:
    """Functions in memory; they exist as long as this object does."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def function(self, name: str, *arguments: Any, result: Any = ctypes.c_int32) -> Callable[..., int]:
        """A function that other threads may run beside; it holds the code."""
        function: Any = ctypes.CFUNCTYPE(result, *arguments)(self.address(name))
        function.code = self
        return function  # type: ignore[no-any-return]

    def address(self, name: str) -> int:
        """Where a function lies."""
        return int(self._engine.get_function_address(name))


class Lazy:
    """Code that is looked for in the cache once, and made when it is worth it; for one thread at a time.

    ``text`` writes its module, and ``is_native`` turns false where it raises NotNative.
    """

    def __init__(self, text: Callable[[], str], vectors: bool = True) -> None:
        self.is_native = available()
        self.code: Code | None = None
        self._text, self._vectors = text, vectors
        self._is_missing = False

    def get(self, is_worth: bool) -> Code | None:
        """The code; None where there is none, or where it is not known and not worth to be made."""
        if self.code is None and self.is_native and (is_worth or not self._is_missing):
            try:
                self.code = compiled(self._text(), not is_worth, self._vectors)
            except NotNative:
                self.is_native = False
            self._is_missing = self.code is None
        return self.code


@cache
def available() -> bool:
    """Whether there is a compiler; says once, on the error output, if there is none."""
    try:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _machine()
    except (ImportError, OSError, RuntimeError) as error:
        print(
            f"note: simulators run on the interpreter, which is slower, because llvmlite cannot be used ({error}); "
            "pip install 'ilaverify[native]' installs it",
            file=sys.stderr,
        )
        return False
    return True


@cache
def _target() -> tuple[str, str, str, str]:
    """What to compile for: platform, processor and its features; and all that tells it from others."""
    import llvmlite.binding as llvm

    triple, cpu, features = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return triple, cpu, features, f"LLVM {llvm.llvm_version_info} {triple} {cpu} {features} O{SPEED}"


def compiled(text: str, known_only: bool = False, vectors: bool = True) -> Code | None:
    """The functions of a module's text, from the cache where it has them.

    None where it has not, and ``known_only`` forbids to compile.  Without ``vectors`` straight code is not searched for
    operations that can be joined, which takes long and finds little in commands.
    """
    key = store.key(f"{_target()[3]} {vectors}", text)
    code = store.find(key)
    if code is None:
        if known_only:
            return None
        code = object_of(text, SPEED, vectors)
        store.keep(key, code)
    return loaded(code)


def loaded(code: bytes) -> Code:
    """The functions of object code."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Code(engine)


def _machine(speed: int = SPEED) -> Any:
    """A new machine, for an engine takes over the one that it is given."""
    import llvmlite.binding as llvm

    triple, cpu, features, _ = _target()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=speed, codemodel="jitdefault", jit=True
    )


def object_of(text: str, speed: int, vectors: bool = True) -> bytes:
    """The object code of a module's text, optimised at this level."""
    import llvmlite.binding as llvm

    machine = _machine(speed)
    module = llvm.parse_assembly(text)
    module.verify()
    if speed:
        options = llvm.create_pipeline_tuning_options(speed_level=speed)
        options.loop_vectorization = options.slp_vectorization = vectors
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))
