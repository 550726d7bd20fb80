"""MLIR's floating-point formats: bit patterns from decimal text and back, as ``mlir-opt`` reads and prints them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A sign bit, ``exponent`` bits with a bias, and ``significand`` bits, of which the first is not stored.

    ``specials`` says what its largest patterns are: infinities and NaNs (ieee), one NaN of each sign and no infinity
    (fn), the NaN in place of -0 and no infinity (fnuz), or neither (finite).
    """

    exponent: int
    significand: int
    specials: Literal["ieee", "fn", "fnuz", "finite"] = "ieee"
    more_bias: int = 0

    @property
    def width(self) -> int:
        """Bits of a pattern."""
        return self.exponent + self.significand

    @property
    def least_exponent(self) -> int:
        """The power of two that a subnormal significand's last bit counts."""
        bias = (1 << (self.exponent - 1)) - 1 + self.more_bias
        return 1 - bias - (self.significand - 1)


FORMATS = {
    "f16": FloatFormat(5, 11),
    "bf16": FloatFormat(8, 8),
    "tf32": FloatFormat(8, 11),
    "f32": FloatFormat(8, 24),
    "f64": FloatFormat(11, 53),
    "f8E5M2": FloatFormat(5, 3),
    "f8E4M3": FloatFormat(4, 4),
    "f8E3M4": FloatFormat(3, 5),
    "f8E4M3FN": FloatFormat(4, 4, "fn"),
    "f8E5M2FNUZ": FloatFormat(5, 3, "fnuz", 1),
    "f8E4M3FNUZ": FloatFormat(4, 4, "fnuz", 1),
    "f8E4M3B11FNUZ": FloatFormat(4, 4, "fnuz", 4),
    "f6E3M2FN": FloatFormat(3, 3, "finite"),
    "f6E2M3FN": FloatFormat(2, 4, "finite"),
    "f4E2M1FN": FloatFormat(2, 2, "finite"),
}
"""Formats whose constants may be written in decimal.

With f80 and f128 ``mlir-opt`` prints decimals that are no doubles, and reads them as doubles; here they are refused."""
WIDTHS = {name: form.width for name, form in FORMATS.items()} | {"f80": 80, "f128": 128, "f8E8M0FNU": 8}
"""Bits of a pattern, for all floating-point types of MLIR."""

_DECIMAL = re.compile(r"(-?)(\d+)\.(\d*)(?:[eE]([-+]?\d+))?\Z")


def bits_of_decimal(text: str, name: str) -> int:
    """The pattern of a decimal number, such as ``1.0`` or ``-3.5e2``, in the format ``name``.

    As ``mlir-opt`` does it: to the nearest double first, then to the nearest number of the format.  Beyond the largest
    number is infinity, or NaN where there is no infinity.  Raises ValueError for numbers beyond the largest double, and
    KeyError for formats that have no decimal numbers here.
    """
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} must not be larger than the largest f64; write infinity as a hexadecimal pattern")
    return _encode(text.startswith("-"), *abs(value).as_integer_ratio(), FORMATS[name])


def _encode(negative: bool, numerator: int, denominator: int, form: FloatFormat) -> int:
    """The number of the format that is nearest to a ratio, of two such the even one."""
    magnitude = 0
    if numerator:
        power = numerator.bit_length() - denominator.bit_length()
        power -= numerator < denominator << power if power >= 0 else numerator << -power < denominator
        last = max(power + 1 - form.significand, form.least_exponent)
        if last >= 0:
            denominator <<= last
        else:
            numerator <<= -last
        quotient, rest = divmod(numerator, denominator)
        quotient += 2 * rest > denominator or (2 * rest == denominator and quotient % 2)
        magnitude = (last - form.least_exponent << (form.significand - 1)) + quotient
    sign = 1 << (form.width - 1)
    every = sign - 1
    match form.specials:
        case "ieee":
            magnitude = min(magnitude, every ^ (1 << (form.significand - 1)) - 1)
        case "finite" | "fn":
            magnitude = min(magnitude, every)
        case "fnuz" if magnitude > every or not magnitude:
            return sign if magnitude else 0
    return magnitude | sign * negative


def _decode(bits: int, form: FloatFormat) -> tuple[int, int] | None:
    """``n, e``, of which the magnitude is ``n * 2**e``; None if the pattern is an infinity or NaN."""
    sign = 1 << (form.width - 1)
    exponent, fraction = divmod(bits & (sign - 1), 1 << (form.significand - 1))
    every = (1 << form.exponent) - 1
    match form.specials:
        case "ieee" if exponent == every:
            return None
        case "fn" if bits & (sign - 1) == sign - 1:
            return None
        case "fnuz" if bits == sign:
            return None
    if exponent:
        return fraction | 1 << (form.significand - 1), form.least_exponent + exponent - 1
    return fraction, form.least_exponent


def text_of_bits(bits: int, name: str) -> str:
    """The text that ``mlir-opt`` prints for a pattern: seven digits if they say it all, else more, else hexadecimal."""
    form = FORMATS.get(name)
    number = _decode(bits, form) if form else None
    if form is None or number is None:
        return f"0x{bits:X}"
    sign = "-" if bits >> (form.width - 1) else ""
    short = sign + _scientific(*_digits(*number, 6))
    if _bits_of_short(short, form) == bits:
        return short
    precision = 2 + form.significand * 59 // 196
    long = sign + _shortest_layout(*_digits(*number, precision), precision)
    return long if "." in long else f"0x{bits:X}"


def _bits_of_short(text: str, form: FloatFormat) -> int:
    match = _DECIMAL.match(text)
    assert match, text
    sign, whole, fraction, exponent = match.groups()
    numerator, power = int(whole + fraction), int(exponent) - len(fraction)
    return _encode(bool(sign), numerator * 10 ** max(power, 0), 10 ** max(-power, 0), form)


def _digits(n: int, power: int, precision: int) -> tuple[str, int]:
    """``digits, e`` of ``n * 2**power``, which is about ``digits * 10**e``; no digit zero at the end.

    LLVM's steps: all but about ``precision`` digits are cut off first, then the rest is rounded, half up.
    """
    if not n:
        return "0", 0
    zeros = (n & -n).bit_length() - 1
    n, power = n >> zeros, power + zeros
    n, exponent = (n << power, 0) if power >= 0 else (n * 5**-power, power)
    surplus = n.bit_length() - (precision * 196 + 58) // 59
    if surplus > 0 and (cut := surplus * 59 // 196):
        n, exponent = n // 10**cut, exponent + cut
    if (more := len(str(n)) - precision) > 0:
        n, exponent = (n + 5 * 10 ** (more - 1)) // 10**more, exponent + more
    digits = str(n).rstrip("0")
    return digits, exponent + len(str(n)) - len(digits)


def _scientific(digits: str, exponent: int) -> str:
    power = exponent + len(digits) - 1
    return f"{digits[0]}.{digits[1:]:0<6}e{'-' if power < 0 else '+'}{abs(power):02}"


def _shortest_layout(digits: str, exponent: int, precision: int) -> str:
    """Without an exponent where at most three zeros stand for one."""
    power = exponent + len(digits) - 1
    if exponent > 3 or (exponent >= 0 and len(digits) + exponent > precision) or power < -3:
        return f"{digits[0]}.{digits[1:] or '0'}E{'-' if power < 0 else '+'}{abs(power)}"
    if exponent >= 0:
        return digits + "0" * exponent
    return f"{digits[: power + 1]}.{digits[power + 1 :]}" if power >= 0 else f"0.{'0' * (-power - 1)}{digits}"
