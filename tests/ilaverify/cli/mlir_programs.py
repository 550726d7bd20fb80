"""Small programs in MLIR's generic form, and a program that stands for ``mlir-opt``."""

from __future__ import annotations

import sys
from pathlib import Path


def function(name: str, body: str, types: str = "(i32, i32) -> i32", attributes: str = "") -> str:
    """A function of two numbers in the generic form; ``body`` gives %r."""
    inputs, result = types.split(" -> ")
    first, second = inputs.strip("()").split(", ")
    return (
        f'"func.func"() <{{function_type = {types}, sym_name = "{name}"{attributes}}}> ({{\n'
        f"^bb0(%x: {first}, %y: {second}):\n{body}\n"
        f'  "func.return"(%r) : ({result}) -> ()\n}}) : () -> ()\n'
    )


ADD = '  %r = "arith.addi"(%x, %y) : (i32, i32) -> i32'
SWAPPED = '  %r = "arith.addi"(%y, %x) : (i32, i32) -> i32'
SUBTRACT = '  %r = "arith.subi"(%x, %y) : (i32, i32) -> i32'
UNKNOWN = '  %r = "any.thing"(%x, %y) : (i32, i32) -> i32'
FLOATS = "(f32, f32) -> f32"
ADD_FLOATS = '  %r = "arith.addf"(%x, %y) : (f32, f32) -> f32'

FAKE = """#!{python}
import re, sys
if "--version" in sys.argv:
    print("LLVM version 99.0.0")
    sys.exit()
text = sys.stdin.read()
pipeline = " ".join(a for a in sys.argv if a.startswith("--pass-pipeline="))
if "absent" in pipeline:
    sys.exit("<unknown>:0: error: 'absent' does not refer to a registered pass")
if "fails" in pipeline:
    sys.exit("<stdin>:2:1: error: this pass fails")
if "swap" in pipeline:
    text = text.replace("%x, %y", "%y, %x")
if "data" in pipeline:
    text = text.replace("0x0400000001000000", "0x0400000002000000")
if "double" in pipeline:
    text += text
if "narrow" in pipeline:
    text = text.rpartition("}})")[0] + "}}) {{dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}} : () -> ()"
if "colours" in pipeline:
    sys.exit("<stdin>:2:1: error: here is red\x1b[31m")
if "break" in pipeline:
    text = text.replace("addi", "subi")
print(text, end="")
"""


def fake_mlir_opt(path: Path) -> str:
    """Writes an mlir-opt with passes: swap, nothing, data, double, narrow, break (which is wrong), fails, colours."""
    path.write_text(FAKE.format(python=sys.executable), encoding="utf-8")
    path.chmod(0o755)
    return str(path)
