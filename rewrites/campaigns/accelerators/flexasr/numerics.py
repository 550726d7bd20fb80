"""FlexASR's conversion to AdaptivFloat, before and after the correction of 2022."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.numerics import fixed_to_adpfloat, fixed_to_adpfloat_pre2022
from accel_models.flexasr.quantise import dequantise
from ila_lang import Function, compile_terms
from rewrites.campaigns.definition import Arrays, Campaign, Example, Outcome, first_violation, in_range
from rewrites.campaigns.distributions import INTEGERS, draw_integers

UNIT = 2.0**-14
"""The last place of Q6.14."""

_LOW, _HIGH = -(2**19), 2**19 - 1


def _make(parameters: Mapping[str, int], distribution: str, generator: np.random.Generator) -> Arrays:
    return {"value": draw_integers(generator, distribution, (parameters["elements"],), _LOW, _HIGH)}


def encoded(function: Function, words: NDArray[np.int64], bias: int) -> NDArray[np.uint8]:
    """The codes that a conversion makes of signed numbers in Q6.14."""
    (codes,) = _compiled(function)(words & 0xFFFFF, np.full_like(words, bias))
    return codes.astype(np.uint8)


@cache
def _compiled(function: Function) -> Callable[..., list[NDArray[np.int64]]]:
    assert function.body is not None
    return compile_terms(function.params, [function.body], vector=True)


def _evaluate(function: Function) -> Callable[[Example], Outcome]:
    def evaluate(example: Example) -> Outcome:
        words, bias = in_range("value", example.arrays["value"], _LOW, _HIGH), example.parameters["bias"]
        codes = encoded(function, words, bias)
        result, value = dequantise(codes, bias), words * UNIT
        violation = first_violation(
            "sign",
            np.sign(result) * np.sign(value) < 0,
            lambda i: (
                f"{words[i]} ({float(value[i])!r}) becomes 0x{codes[i]:02x} ({float(result[i])!r}) at bias {bias}"
            ),
        )
        return Outcome(value, result, None, violation)

    return evaluate


def _campaign(name: str, when: str, function: Function, flawed: bool) -> Campaign:
    return Campaign(
        name=name,
        summary=f"FlexASR's conversion from Q6.14 to AdaptivFloat keeps the sign ({when})",
        reference="the number itself",
        property="no number other than zero becomes one of the opposite sign",
        parameters={"bias": range(8), "elements": range(1, 65)},
        distributions=INTEGERS,
        make=_make,
        evaluate=_evaluate(function),
        expects_violation=flawed,
    )


CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (
        _campaign("flexasr_encode_sign", "as it was before 2022", fixed_to_adpfloat_pre2022, True),
        _campaign("flexasr_encode_sign_2022", "as it is since 2022", fixed_to_adpfloat, False),
    )
}
