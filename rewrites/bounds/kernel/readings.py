"""What lemmas on primitives say in real numbers: the form in which derivations use them.

``v(.)`` is the number that a word stands for.  A lemma is about the number that an operation on the operands' numbers
has, its *operation*: the result is that number exactly, or rounded, cut or converted, as the reading says.  A test runs
the compiled primitives and compares, in exact fractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from .constants import EXP_ERROR, SIGMOID_ERROR, TANH_ERROR

Term: TypeAlias = "str | tuple[Term, ...]"
"""A number: a leaf, or an operation with its operands."""

ANY = "?"
"""An operand in an operation."""
LARGEST_AT_0 = Fraction(31, 128)
"""The largest number of a code at bias 0, 31/16 2^(0 - 3); a bias b multiplies it by 2^b."""
TINY_AT_0 = Fraction(33, 32 << 10)
"""33/32 2^(0 - 10): up to this, a conversion is off by no more than the number."""
UNIT = Fraction(1, 1 << 14)
LARGEST_FIXED = 32 - UNIT

WIDTHS = {"code": 8, "word": 16, "weight": 16, "byte weight": 16, "bias": 16, "byte": 8, "accumulator": 32,
          "fixed": 20}  # fmt: skip
"""The bits of leaves' words by their form."""


@dataclass(frozen=True)
class Reading:
    """A lemma: the primitive's name, its operation, and how the result differs from that operation's number.

    ``takes`` and ``gives`` are the forms of the words: code (AdaptivFloat), fixed (20 bits, 14 of fraction), and so on;
    ``biases`` is how many biases of its codes the primitive takes, too.  ``kind`` is exact, down (rounded down by less
    than ``amount``), nearest (off by at most ``amount``), cut (at +-``amount``), code (converted) or the name of a
    function of slope at most ``slope`` and magnitude at most 1, of which the result is within ``amount``.  The operand
    must stay below ``below`` in magnitude, and where the result does not stay below ``limit`` it wraps (``reason``).
    """

    primitive: str
    operation: Term
    takes: tuple[str, ...]
    gives: str
    kind: str = "exact"
    amount: Fraction = Fraction(0)
    biases: int = 0
    limit: Fraction | None = None
    below: Fraction | None = None
    reason: str = ""
    slope: Fraction = Fraction(1)


_ADD: Term = ("+", ANY, ANY)
_MULTIPLY: Term = ("*", ANY, ANY)
_FIXED = "a number of 20 bits wraps"
_ONE, _TWO, _CODES = ("fixed",), ("fixed", "fixed"), ("code", "code")

READINGS: Mapping[str, Reading] = {
    "decode": Reading("adpfloat_to_fixed", ANY, ("code",), "fixed", biases=1),
    "multiply codes": Reading("adpfloat_mul", _MULTIPLY, _CODES, "products"),
    "encode": Reading("fixed_to_adpfloat", ANY, _ONE, "code", "code"),
    "compress": Reading(
        "attention_compress", ANY, ("score",), "code", "code", below=Fraction(32), reason="the result's 26 bits wrap"
    ),
    "compress weights": Reading("attention_compress", ANY, ("quotient",), "code", "code"),
    "maximum": Reading("adpfloat_max", ("max", ANY, ANY), _CODES, "code"),
    "mean": Reading("adpfloat_mean", ("half", _ADD), _CODES, "code", "code"),
    "add": Reading("adpfloat_add", _ADD, _CODES, "code", "code"),
    "relu": Reading("relu", ("rectify", ANY), _ONE, "fixed"),
    "sigmoid": Reading("sigmoid", ANY, _ONE, "fixed", "sigmoid", SIGMOID_ERROR, slope=Fraction(1, 4)),
    "tanh": Reading("tanh", ANY, _ONE, "fixed", "tanh", TANH_ERROR),
    "exponential": Reading("exp", ANY, ("score",), "score", "exp", EXP_ERROR),
    "shift of a sum": Reading("pe_shift", ANY, ("products",), "sum", "down", UNIT, 2),
    "add bias": Reading(
        "pe_add_bias", _ADD, ("sum", "code"), "sum", "exact", biases=1, limit=Fraction(1 << 17),
        reason="the accumulator of 32 bits wraps",
    ),
    "saturate": Reading("pe_saturate", ANY, ("sum",), "fixed", "cut", LARGEST_FIXED),
    "sum": Reading("eadd", _ADD, _TWO, "fixed", limit=Fraction(32), reason=_FIXED),
    "product": Reading("emul", _MULTIPLY, _TWO, "fixed", "down", UNIT, limit=Fraction(32), reason=_FIXED),
    "one less": Reading("onex", ("complement", ANY), _ONE, "fixed", limit=Fraction(32), reason=_FIXED),
    "shift in attention": Reading(
        "attention_shift", ANY, ("products",), "score", "down", Fraction(1, 1 << 20), 2, Fraction(1 << 11),
        reason="a sum of products wraps (Q12.20)",
    ),
    "HLSCNN product": Reading("hlscnn_product", _MULTIPLY, ("weight", "word"), "partial", "down", Fraction(1, 1 << 16)),
    "HLSCNN product of a byte": Reading("hlscnn_product", _MULTIPLY, ("byte weight", "word"), "partial"),
    "HLSCNN requantise": Reading(
        "hlscnn_requantise_half_up", ANY, ("partial",), "word", "nearest", Fraction(1, 1 << 8), limit=Fraction(256),
        reason="a stored word of 16 bits wraps",
    ),
    "HLSCNN total": Reading("hlscnn_total", _ADD, ("word", "bias"), "total"),
    "HLSCNN store": Reading(
        "hlscnn_stored", ANY, ("total",), "word", "down", Fraction(1, 1 << 7), limit=Fraction(256),
        reason="a stored word of 16 bits wraps",
    ),
    "VTA product": Reading("multiply", _MULTIPLY, ("byte", "byte"), "accumulator"),
    "VTA sum": Reading(
        "alu_add", _ADD, ("accumulator", "accumulator"), "accumulator", limit=Fraction(1 << 31),
        reason="the accumulator wraps",
    ),
    "VTA minimum": Reading("alu_min", ("min", ANY, ANY), ("accumulator", "accumulator"), "accumulator"),
    "VTA maximum": Reading("alu_max", ("max", ANY, ANY), ("accumulator", "accumulator"), "accumulator"),
    "VTA shift": Reading("alu_shr_signed5", ("shift", ANY, ANY), ("accumulator", "accumulator"), "accumulator"),
    "VTA narrow": Reading(
        "narrow", ANY, ("accumulator",), "byte", limit=Fraction(128), reason="a byte wraps"
    ),
}  # fmt: skip
"""By the lemma's name.  Lemmas on division, roots and tails of exponentials are used by laws of their own."""
