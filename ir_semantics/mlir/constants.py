"""Numbers and dense constants: from what is written to bit patterns, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from math import prod

from .floats import FORMATS, WIDTHS, bits_of_decimal, text_of_bits
from .ir import (
    ComplexType,
    DenseElements,
    DenseStrings,
    FloatType,
    IndexType,
    IntegerType,
    Signedness,
    SparseElements,
    TensorType,
    Type,
    VectorType,
    as_integer,
    element_bytes,
)
from .scanner import LONGEST_NUMBER, escaped, unescaped

SIGNS: dict[Signedness, str] = {"signless": "", "signed": "s", "unsigned": "u"}
BIT = IntegerType(1)
MOST_BYTES = 1 << 28
"""Bytes of the data of one constant; larger ones are refused."""
LARGEST_PRINTED = 100
"""Constants with more elements are printed in hexadecimal, as ``mlir-opt`` does."""


@dataclass(frozen=True, slots=True)
class Literal:
    """What stands between ``dense<`` and ``>``, before its type is known.

    ``elements`` are tokens, two for each complex number; ``shape`` is that of the brackets around them, None for a
    single element that stands for all.  ``data`` are bytes written in hexadecimal instead.
    """

    elements: Sequence[str]
    shape: tuple[int, ...] | None
    data: bytes | None = None


def bits_of(text: str, type: Type) -> int:
    """The bit pattern of a number's text in a type; raises ValueError if it has none there."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number must have at most {LONGEST_NUMBER} characters, not {len(text)}")
    is_decimal = "." in text
    match type:
        case FloatType(name=name) if is_decimal and name in FORMATS:
            return bits_of_decimal(text, name)
        case FloatType(name=name) if is_decimal:
            raise ValueError(f"a number of {name} must be hexadecimal, not {text}")
        case FloatType(name=name):
            if not text.startswith("0x"):
                raise ValueError(f"a number of {name} must have a decimal point or be hexadecimal, not {text}")
            return _in_range(int(text, 16), WIDTHS[name], text, name)
        case IntegerType() | IndexType() if is_decimal:
            raise ValueError(f"a number of an integer type must be an integer, not {text}")
        case IntegerType(width=1, signedness="signless") if text in ("true", "false"):
            return int(text == "true")
        case IntegerType() | IndexType() if text in ("true", "false"):
            raise ValueError(f"{text} must be of type i1")
        case IntegerType(width=width, signedness=signedness):
            return _integer_bits(text, width, signedness)
        case IndexType():
            return _integer_bits(text, 64, "signless", "index")
    raise ValueError(f"a number must have an integer, index or float type, not {text}")


def _integer_bits(text: str, width: int, signedness: Signedness, name: str = "") -> int:
    value = int(text, 16 if "x" in text else 10)
    least = 0 if signedness == "unsigned" or not width else -(1 << (width - 1))
    most = (1 << width) - 1 if signedness != "signed" or not width else (1 << (width - 1)) - 1
    if not least <= value <= most:
        shown = text if len(text) <= 40 else f"one of {len(text)} characters"
        name = name or f"{SIGNS[signedness]}i{width}"
        raise ValueError(f"a number of {name} must be in {_range(least, most)}, not {shown}")
    return value & ((1 << width) - 1)


def _range(least: int, most: int) -> str:
    return f"{least} .. {most}" if most.bit_length() <= 128 else "its range"


def _in_range(bits: int, width: int, text: str, name: str) -> int:
    if bits >> width:
        raise ValueError(f"a pattern of {name} must have at most {width} bits, not {text}")
    return bits


def elements(literal: Literal, type: TensorType | VectorType) -> DenseElements | DenseStrings:
    """The constant that a literal is in a type; raises ValueError if it does not fit."""
    shape = tuple(size for size in type.shape if size is not None)
    if len(shape) != len(type.shape):
        raise ValueError("a dense constant must have static sizes")
    if literal.shape not in (None, shape) and not (literal.shape == (0,) and 0 in shape):
        raise ValueError(f"{_listed(literal.shape)} elements must be listed as the type says, {_listed(shape)}")
    if literal.data is not None:
        return _of_bytes(literal.data, type, prod(shape))
    if any(text.startswith('"') for text in literal.elements):
        strings = [unescaped(text) for text in literal.elements]
        return DenseStrings(type, *_splat(strings))
    step = element_bytes(type.element)
    if step * len(literal.elements) > MOST_BYTES:
        raise ValueError(f"a constant must have at most {MOST_BYTES} bytes")
    part = type.element
    if isinstance(part, ComplexType):
        part = part.element
    if literal.shape is not None and len(literal.elements) != prod(literal.shape) * per_element(type.element):
        raise ValueError("elements must be pairs in parentheses exactly if their type is complex")
    data = b"".join(bits_of(text, part).to_bytes(step, "little") for text in literal.elements)
    return dense(type, data)


def _listed(shape: tuple[int, ...] | None) -> str:
    return "x".join(map(str, shape or ())) or "single"


def _splat(strings: list[str]) -> tuple[tuple[str, ...], bool]:
    is_splat = bool(strings) and all(string == strings[0] for string in strings)
    return tuple(strings[:1] if is_splat else strings), is_splat


def per_element(element: Type) -> int:
    """Numbers in one element: two in complex ones."""
    return 2 if isinstance(element, ComplexType) else 1


def dense(type: TensorType | VectorType, data: bytes) -> DenseElements:
    """A constant of these elements, as a splat if they are all equal, as in MLIR."""
    step = element_bytes(type.element) * per_element(type.element)
    is_splat = len(data) > 0 and data == data[:step] * (len(data) // step)
    return DenseElements(type, data[:step] if is_splat else data, is_splat)


def _of_bytes(data: bytes, type: TensorType | VectorType, count: int) -> DenseElements:
    """A constant from its bytes as MLIR lays them out: i1 are bits, the least significant first."""
    step = element_bytes(type.element)
    whole = step * per_element(type.element)
    if type.element == BIT:
        if data in (b"\x00", b"\xff"):
            return dense(type, bytes([data[0] & 1]))
        if len(data) == (count + 7) // 8:
            if count % 8 and data[-1] >> count % 8:
                raise ValueError("hexadecimal data of i1 must have zeros beyond the bits of its elements")
            return dense(type, bytes(data[i // 8] >> i % 8 & 1 for i in range(count)))
        whole, count = 1, (count + 7) // 8
    elif len(data) in (whole, whole * count):
        width = type.element.width if isinstance(type.element, IntegerType) else 8 * step
        if width % 8 and any(byte >> width % 8 for byte in data[step - 1 :: step]):
            raise ValueError(f"hexadecimal data of i{width} must have zeros beyond each element's {width} bits")
        return dense(type, data)
    raise ValueError(f"hexadecimal data must have {whole * count} bytes here, or those of one element, not {len(data)}")


def sparse(indices: Literal, values: Literal, type: TensorType | VectorType) -> SparseElements:
    """The constant that two literals are in a type; raises ValueError if they do not fit."""
    rank = len(type.shape)
    shape = ((values.shape or (1,))[0], rank) if indices.shape is None else indices.shape
    if len(shape) != 2 or (shape[1] != rank and shape != (0, 0)):
        raise ValueError(f"indices must be rows of {rank} subscripts, not of the shape {_listed(shape)}")
    rows = elements(indices, TensorType(shape, IntegerType(64)))
    listed = elements(values, TensorType(shape[:1], type.element))
    assert isinstance(rows, DenseElements)
    subscripts = rows.integers() * (rank if rows.is_splat else 1)
    for axis, subscript in zip(cycle(range(rank)), subscripts):
        size = type.shape[axis]
        if size is None or not 0 <= subscript < size:
            raise ValueError(f"a subscript of axis {axis} must be in 0 .. {size} - 1, not {subscript}")
    return SparseElements(type, rows, listed)


def text_of_number(bits: int, type: Type) -> str:
    """A bit pattern as a number of its type, as MLIR prints it."""
    if isinstance(type, FloatType):
        return text_of_bits(bits, type.name)
    if type == BIT:
        return "true" if bits else "false"
    return str(as_integer(bits, type))


def text_of_elements(constant: DenseElements | DenseStrings, allow_hexadecimal: bool = True) -> str:
    """What MLIR prints between ``dense<`` and ``>``."""
    shape = [size for size in constant.type.shape if size is not None]
    if isinstance(constant, DenseStrings):
        return _in_brackets([f'"{escaped(value)}"' for value in constant.values], [] if constant.is_splat else shape)
    if allow_hexadecimal and not constant.is_splat and prod(shape) > LARGEST_PRINTED:
        return f'"0x{_layout(constant).hex().upper()}"'
    element = constant.type.element
    if isinstance(element, ComplexType):
        numbers = iter([text_of_number(bits, element.element) for bits in constant.bit_patterns()])
        texts = [f"({real},{imaginary})" for real, imaginary in zip(numbers, numbers, strict=True)]
    else:
        texts = [text_of_number(bits, element) for bits in constant.bit_patterns()]
    return _in_brackets(texts, [] if constant.is_splat else shape)


def _layout(constant: DenseElements) -> bytes:
    data = constant.data
    if constant.type.element != BIT:
        return data
    return bytes(sum(bit << i for i, bit in enumerate(data[at : at + 8])) for at in range(0, len(data), 8))


def _in_brackets(texts: list[str], shape: list[int]) -> str:
    for size in reversed(shape if texts else []):
        texts = [f"[{', '.join(texts[i : i + size])}]" for i in range(0, len(texts), size)]
    return "".join(texts)
