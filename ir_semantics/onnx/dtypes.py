"""Element types of ONNX by number, and those of them that the IR has."""

from __future__ import annotations

from ir_semantics.scalars.arrays import DTYPES

# The enumeration TensorProto.DataType of the ONNX specification.
_NAMES = (
    *("undefined", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16"),
    *("float64", "uint32", "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz"),
    *("float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2"),
)


def name_of(number: int) -> str:
    """The name of an element type for people."""
    return _NAMES[number] if 0 <= number < len(_NAMES) else f"number {number}"


def dtype_of(number: int) -> str | None:
    """The IR's element type; None where the IR does not have it."""
    name = name_of(number)
    return name if name in DTYPES else None
