"""The arithmetic of VTA, each operation written once.

Inputs, weights and outputs are signed bytes, accumulators are signed words of 32 bits.  Everything wraps: nothing
saturates and nothing rounds.
"""

from __future__ import annotations

from ila_lang import Expr, bv, ite, primitive

BYTE, ACC = bv(8), bv(32)


@primitive(a=BYTE, b=BYTE)
def multiply(a: Expr, b: Expr) -> Expr:
    """The product of two signed bytes, 32 bits: exact.

    Hardware adds 16 of them in 21 bits, which is exact, too: each is at most 2^14 in magnitude.
    """
    return a.sext(32) * b.sext(32)


@primitive(a=ACC)
def narrow(a: Expr) -> Expr:
    """The output byte of an accumulator: its low 8 bits."""
    return a[7:0]


@primitive(a=bv(16))
def widen_imm(a: Expr) -> Expr:
    """The immediate as an accumulator: sign-extended."""
    return a.sext(32)


@primitive(a=ACC, b=ACC)
def alu_min(a: Expr, b: Expr) -> Expr:
    """The smaller of two signed numbers."""
    return ite(a.slt(b), a, b)


@primitive(a=ACC, b=ACC)
def alu_max(a: Expr, b: Expr) -> Expr:
    """The larger of two signed numbers."""
    return ite(a.slt(b), b, a)


@primitive(a=ACC, b=ACC)
def alu_add(a: Expr, b: Expr) -> Expr:
    """The sum modulo 2^32."""
    return a + b


@primitive(a=ACC, b=ACC)
def alu_mul(a: Expr, b: Expr) -> Expr:
    """The product modulo 2^32."""
    return a * b


@primitive(a=ACC, b=ACC)
def alu_shr(a: Expr, b: Expr) -> Expr:
    """Arithmetic shift right by b, left by -b where b is negative.

    Shifts by 32 or more, which C++ leaves undefined, push all bits out.
    """
    return ite(b[31] == 1, a << -b, a.ashr(b))


@primitive(a=ACC, b=ACC)
def alu_shr_signed5(a: Expr, b: Expr) -> Expr:
    """Arithmetic shift right by the low five bits of b as a signed number (-16 .. 15), left where that is negative."""
    left = (-b)[4:0].zext(32)  # 1 .. 16 where it is used
    return ite(b[4] == 1, a << left, a.ashr(b[4:0].zext(32)))


@primitive(a=ACC, b=ACC, imm=bv(16))
def alu_shr_chisel(a: Expr, b: Expr, imm: Expr) -> Expr:
    """Arithmetic shift right by b modulo 32; left by -b modulo 32 if bit 15 of the immediate field is set."""
    return ite(imm[15] == 1, a << (-b)[4:0].zext(32), a.ashr(b[4:0].zext(32)))
