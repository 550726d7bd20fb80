"""Short MLIR functions in generic form."""

from __future__ import annotations

from collections.abc import Sequence

from ir_semantics.mlir import ir
from ir_semantics.mlir.reader import read

PARALLEL, REDUCTION = "#linalg.iterator_type<parallel>", "#linalg.iterator_type<reduction>"


def function(arguments: str, results: str, *lines: str) -> ir.Operation:
    """``func.func`` @f of arguments such as ``%x: i32, %y: f32``; the last line is what it returns."""
    types = ", ".join(a.partition(":")[2].strip() for a in _apart(arguments))
    *body, returned = lines
    text = "\n".join(body)
    source = f"""
    "func.func"() <{{function_type = ({types}) -> ({results}), sym_name = "f"}}> ({{
    ^bb0({arguments}):
      {text}
      "func.return"({returned}) : ({results}) -> ()
    }}) : () -> ()
    """
    (symbol,) = read(source).symbols()
    return symbol


def _apart(arguments: str) -> list[str]:
    """The text at commas that are in no brackets."""
    parts, depth = [""], 0
    for c in arguments:
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p for p in parts if p.strip()]


def op(name: str, operands: str, types: str, attributes: str = "", region: str = "") -> str:
    """The right-hand side of an operation."""
    inner = f" ({{\n{region}\n}})" if region else ""
    properties = f" <{{{attributes}}}>" if attributes else ""
    return f'"{name}"({operands}){properties}{inner} : {types}'


def constant(value: str, type_: str) -> str:
    """``arith.constant``; of tensors the value is ``dense<..>``."""
    stated = value if value in ("true", "false") else f"{value} : {type_}"
    return f'"arith.constant"() <{{value = {stated}}}> : () -> {type_}'


def generic(operands: str, types: str, maps: Sequence[str], loops: str, segments: str, body: str) -> str:
    """``linalg.generic``; ``loops`` has p or r for each one."""
    kinds = ", ".join(PARALLEL if k == "p" else REDUCTION for k in loops)
    attributes = (
        f"indexing_maps = [{', '.join(f'affine_map<{m}>' for m in maps)}], iterator_types = [{kinds}], "
        f"operandSegmentSizes = array<i32: {segments}>"
    )
    return op("linalg.generic", operands, types, attributes, body)
