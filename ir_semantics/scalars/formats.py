"""Number formats: sets of values with their rounding and overflow."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A set of values with its rounding and overflow: a family and the family's parameters.

    Families: ``number`` (any one format), ``boolean``, ``real``, ``int`` (all integers), ``integer`` and ``fixed``
    (machine numbers), ``float`` (IEEE 754 binary), ``code`` (words whose operators are named primitives).
    """

    family: str
    parameters: tuple[int | str, ...] = ()

    def __str__(self) -> str:
        match self.family, self.parameters:
            case "float", (e, s) if (e, s) in ((5, 11), (8, 24), (11, 53)):
                return f"binary{int(e) + int(s)}"
            case "float", (e, s):
                return f"float({e},{s})"
            case "integer", (width, sign, overflow):
                return f"{'' if sign == 'signed' else 'u'}int{width}{'' if overflow == 'wrap' else ' saturating'}"
            case "fixed", (width, fraction, sign, rounding, overflow):
                usual = ("signed", "down", "wrap")
                special = [m for m, u in zip((sign, rounding, overflow), usual, strict=True) if m != u]
                return " ".join([f"fixed({width},{fraction})", *map(str, special)])
            case "code", (name, *_):
                return str(name)
        return {"real": "the reals", "int": "the integers"}.get(self.family, self.family)


NUMBER = Format("number")
"""Any one format, the same one wherever it stands in a claim."""
BOOLEAN = Format("boolean")
REALS = Format("real")
INTEGERS = Format("int")
"""All integers, without bound."""

_ROUNDINGS = ("down", "nearest_up", "nearest_even", "toward_zero")
_OVERFLOWS = ("wrap", "saturate")


def float_format(exponent_bits: int, significand_bits: int) -> Format:
    """An IEEE 754 binary format; ``significand_bits`` counts the hidden bit, as in SMT-LIB.  Rounds to nearest even.

    Raises ValueError unless 2..11 bits of exponent and 2..53 of significand: Python's floats hold all its values.

    >>> float_format(3, 4)
    Format(family='float', parameters=(3, 4))
    """
    if not (2 <= exponent_bits <= 11 and 2 <= significand_bits <= 53):
        raise ValueError(
            "a float format must have 2..11 bits of exponent and 2..53 bits of significand, "
            f"not {exponent_bits} and {significand_bits}; choose one within binary64"
        )
    return Format("float", (exponent_bits, significand_bits))


BINARY16 = float_format(5, 11)
BINARY32 = float_format(8, 24)
BINARY64 = float_format(11, 53)


def integer(width: int, *, signed: bool = True, overflow: str = "wrap") -> Format:
    """Machine integers of ``width`` bits (1..62) that wrap or saturate.

    >>> print(integer(8), integer(16, signed=False, overflow="saturate"))
    int8 uint16 saturating
    """
    _check("overflow", overflow, _OVERFLOWS)
    _check_width(width)
    return Format("integer", (width, "signed" if signed else "unsigned", overflow))


def fixed_point(
    width: int, fraction: int, *, signed: bool = True, rounding: str = "down", overflow: str = "wrap"
) -> Format:
    """Fixed point: codes of ``width`` bits that stand for code / 2^fraction; ``fraction`` may exceed ``width``.

    ``rounding`` is "down" (toward minus infinity: bits are cut), "nearest_up" (ties toward plus infinity),
    "nearest_even" or "toward_zero"; it applies wherever a result has more fraction bits than the format.
    """
    _check("rounding", rounding, _ROUNDINGS)
    _check("overflow", overflow, _OVERFLOWS)
    _check_width(width)
    if not 0 <= fraction <= 62:
        raise ValueError(f"the fraction bits of a fixed-point format must be in 0..62, not {fraction}")
    return Format("fixed", (width, fraction, "signed" if signed else "unsigned", rounding, overflow))


def code_format(name: str, width: int) -> Format:
    """Words of ``width`` bits whose operators an interpretation takes from named primitives."""
    _check_width(width)
    return Format("code", (name, width))


def _check(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"the {what} of a format must be one of {', '.join(allowed)}, not {value!r}")


def _check_width(width: int) -> None:
    if not 1 <= width <= 62:
        raise ValueError(f"the width of a machine format must be in 1..62 bits, not {width}")


Value = Fraction | float | int | bool
"""A concrete value: bool for BOOLEAN, int for integers and codes, Fraction for reals and fixed point, float for IEEE
formats (every value of a float format is a Python float)."""

Literal = Fraction | float
"""The value of a constant: an exact number, or one of the floats -0.0, inf, -inf and nan."""
