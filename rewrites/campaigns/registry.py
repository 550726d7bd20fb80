"""Campaigns by name, built when they are asked for: listing them imports neither NumPy nor a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .definition import Campaign

__all__ = ["CAMPAIGNS", "Entry", "UnknownCampaign", "find_campaign"]


class UnknownCampaign(ValueError):
    """A name that no campaign has; the message lists the names."""


@dataclass(frozen=True)
class Entry:
    """A campaign's one line, and the module of ``accelerators`` that defines it."""

    summary: str
    module: str


CAMPAIGNS: Mapping[str, Entry] = {
    "flexasr_maxpool": Entry("FlexASR max pooling of pairs of timesteps, bit for bit", "flexasr.pooling"),
    "flexasr_meanpool": Entry("FlexASR mean pooling of pairs of timesteps, within half a unit", "flexasr.pooling"),
    "flexasr_addpool": Entry("FlexASR sums of pairs of timesteps, within half a unit, saturating", "flexasr.pooling"),
    "flexasr_layernorm": Entry("FlexASR layer normalisation, within a derived bound", "flexasr.layer_norm"),
    "flexasr_linear": Entry("FlexASR linear layer, within a derived bound", "flexasr.linear"),
    "flexasr_rnn": Entry("FlexASR RNN layer, within a derived bound", "flexasr.recurrent"),
    "flexasr_gru": Entry("FlexASR GRU layer, within a derived bound", "flexasr.recurrent"),
    "flexasr_lstm": Entry("FlexASR LSTM layer, within a derived bound", "flexasr.recurrent"),
    "flexasr_lstm_pre2022": Entry("the correction of 2022 changes no LSTM: must fail", "flexasr.recurrent"),
    "flexasr_attention": Entry("FlexASR attention, within a derived bound", "flexasr.attention"),
    "flexasr_attention_sum": Entry("its softmax weights sum up to 1: must fail", "flexasr.attention"),
    "flexasr_encode_sign": Entry("the conversion of before 2022 keeps the sign: must fail", "flexasr.numerics"),
    "flexasr_encode_sign_2022": Entry("the conversion since 2022 keeps the sign", "flexasr.numerics"),
    "hlscnn_conv2d": Entry("HLSCNN convolution, weights of 16 bits, within a derived bound", "hlscnn"),
    "hlscnn_conv2d_8bit": Entry("HLSCNN convolution, weights of 8 bits, within a derived bound", "hlscnn"),
    "vta_gemm": Entry("VTA matrix product with bias, shift and cut, bit for bit", "vta"),
    "vta_add": Entry("VTA sum of matrices, bit for bit", "vta"),
    "vta_min": Entry("VTA minimum of matrices, bit for bit", "vta"),
    "vta_max": Entry("VTA maximum of matrices, bit for bit", "vta"),
    "vta_relu": Entry("VTA rectifier, bit for bit", "vta"),
    "vta_shift": Entry("VTA shift right, bit for bit", "vta"),
}
"""Campaigns by name."""


def find_campaign(name: str) -> Campaign:
    """The campaign of that name; raises UnknownCampaign otherwise."""
    if name not in CAMPAIGNS:
        close = get_close_matches(name, CAMPAIGNS, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise UnknownCampaign(f"campaign must be one of {', '.join(CAMPAIGNS)}, not '{name}'{hint}")
    campaigns: Mapping[str, Campaign] = import_module(f".accelerators.{CAMPAIGNS[name].module}", __package__).CAMPAIGNS
    return campaigns[name]
