"""What is said of accelerators' units is what their models have: every operation of a unit, and no other."""

from __future__ import annotations

from accel_models.flexasr.functions import divide_q24, exp
from accel_models.flexasr.units.pe_act import MicroOp
from accel_models.vta.isa import AluOp
from rewrites.targets.flexasr.backend import HARDWARE as FLEXASR
from rewrites.targets.vta.backend import HARDWARE as VTA
from tests.accel_models.flexasr.test_functions import call

MOVING = {"NOP", "LOAD", "STORE", "INPE", "OUTGB", "COPY"}
"""Micro-instructions that compute nothing."""


def test_flexasr_has_the_operations_of_its_micro_instructions() -> None:
    computing = {"EADD": "add", "EMUL": "mul", "SIGM": "sigmoid", "TANH": "tanh", "RELU": "relu", "ONEX": "sub"}
    assert {name for name in vars(MicroOp) if name.isupper()} == MOVING | computing.keys()
    assert FLEXASR.functions == {*computing.values()} - {"mul"}
    assert "inside its layers" in FLEXASR.elsewhere["mul"]


def test_vta_has_the_operations_of_its_alu() -> None:
    computing = {AluOp.MIN: "minimum", AluOp.MAX: "maximum", AluOp.ADD: "add"}
    assert set(AluOp) == {*computing, AluOp.SHR, AluOp.MUL} and "mul" in VTA.elsewhere
    assert VTA.functions == {*computing.values(), "sub"}  # a sum with what the host negated


def test_softmax_of_four_equal_elements_is_beyond_flexasrs_divider() -> None:
    """A sum of 4 or more is taken modulo 4; of up to three elements weights are right.

    Operands lose less than 1/16, of a divisor of at least 15/16, in opposite directions, and the quotient 1/256.
    """
    one, unit = call(exp, 0), 1 << 20
    for count in range(1, 4):
        weight = call(divide_q24, one, count * one) / unit
        assert abs(weight - 1 / count) <= 1 / 15 + 1 / 256
    exact = unit  # the hardware's exp(0) is 1022/1024: of exactly 1
    assert call(divide_q24, exact, 4 * exact) == 1023 << 12
    assert call(divide_q24, exact, 5 * exact) == unit
    assert "modulo 4" in FLEXASR.elsewhere["div"]
