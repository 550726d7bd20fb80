"""From tensor operations to FlexASR's MMIO programs.

Each function takes quantised tensors (:class:`accel_models.flexasr.quantise.Quantised`) and returns an
:class:`Assembled`: the commands that fill the buffers, configure and start the units and read the result, and what
these reads mean.  Nothing is proved here.  What a program computes is what the model makes of it.
"""

from .activation import assemble, disassemble
from .buffers import add_pool, attention, layer_norm, max_pool, mean_pool, zero_padding
from .clusters import cluster_table
from .commands import Assembled, Commands
from .layers import gru, linear, lstm, rnn
from .tiling import AssemblyError

__all__ = [
    "Assembled",
    "AssemblyError",
    "Commands",
    "add_pool",
    "assemble",
    "attention",
    "cluster_table",
    "disassemble",
    "gru",
    "layer_norm",
    "linear",
    "lstm",
    "max_pool",
    "mean_pool",
    "rnn",
    "zero_padding",
]
