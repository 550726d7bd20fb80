"""The mapping of a two-dimensional convolution to HLSCNN as it was recorded, with weights of 8 bits.

As :mod:`rewrites.mappings.hlscnn.convolution`, for the default reading of the hardware: a byte is the high half of a
weight of 16 bits, and an entry of SPAD0 holds two taps of eight channels.  The host gives weights packed, a tap's eight
channels beside each other, and both tensors for whole blocks of channels.  A plane of outputs is as large as the input;
the host reads those that all taps reach.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from accel_models.hlscnn.layout import LANES, SOC_BASE, SPAD0_BASE, Register, register_address
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import HlscnnOptions
from ila_lang import Expr, Fragment, Ila, Kernel, bv, concat, const, load_bytes, mem, primitive, true, var
from ila_lang.mapping import TensorMapping
from ir_semantics.layers.convolution import ConvolutionOperator, convolution_ir

from . import convolution as wide
from .convolution import BLOCKS, GROUPS, HOST_X, HOST_Y, PARAMETERS, PIXELS, WEIGHTS, H, W

OPTIONS = HlscnnOptions()
HOST_W = var("host_w", mem(32, 8))
ENTRIES = (WEIGHTS + 1) >> 1
"""Entries of SPAD0 and of SoC memory that hold the weights."""


def operator_of() -> ConvolutionOperator:
    """The IR's element type: products with a byte that is the high half of a weight."""
    right = wide.operator_of(OPTIONS)

    def product(weight: Expr, activation: Expr) -> Expr:
        """The product of a weight of 16 bits with this high byte, and an activation."""
        return right.product(concat(weight, const(0, 8)), activation)

    narrow = primitive(right.product.result, name="hlscnn_product_8bit", weight=bv(8), activation=bv(16))(product)
    return replace(right, product=narrow)


def ir_fragment() -> Fragment:
    """One conv2d instruction on packed weights."""
    fragment = wide.ir_fragment(OPTIONS)
    return Fragment("ir_conv2d", convolution_ir(operator_of(), packed=True), PARAMETERS, {}, fragment.program)


def narrow_fragment(ila: Ila) -> Fragment:
    """The HLSCNN program of one start of a convolution."""
    p = Kernel("hlscnn_conv2d_8bit")
    with p.loop("x_block", BLOCKS) as b, p.loop("x_row", H) as r, p.loop("x_column", W) as c:
        lanes = [HOST_X.load((((b << 3) + lane) * H + r) * W + c) for lane in range(LANES)]
        wide.store_entry(p, "store activations", (b * H + r) * W + c, lanes)
    with p.loop("w_entry", ENTRIES) as e:
        data = load_bytes(HOST_W, e << 4, 16)
        wide.emit_command(p, "store weights", true, wide.entry_address(SOC_BASE, PIXELS + e), data)
    wide.write_register(p, Register.SOC_MEM_BASE_ADDR, PIXELS << 4)
    wide.write_register(p, Register.SOC_MEM_RD_WR_LENGTH, ENTRIES)
    wide.emit_command(p, "copy weights to SPAD0", true, const(SPAD0_BASE, 24), const(0, 128))
    wide.configure_start(p, OPTIONS)
    wide.emit_command(p, "start", true, const(register_address(Register.CONV_TRIGGER) & 0xFFFFFF, 24), const(0, 128))
    wide.load_result(p, ila, OPTIONS)
    tensors = {t.name: t for t in (HOST_X, HOST_W, HOST_Y)}
    return Fragment("hlscnn_conv2d_8bit", ila, PARAMETERS, tensors, p)


def narrow_mapping(options: HlscnnOptions | None = None) -> TensorMapping:
    """The mapping ``hlscnn_conv2d_8bit``; ``options`` select another reading of the hardware, on the device only."""
    reading = options or OPTIONS
    ops = arithmetic(reading)
    functions = (ops.product, ops.requantise, ops.total, ops.rectify, ops.stored)
    domain = []
    for text, condition in wide.DOMAIN:
        if "SPAD0" in text:
            text, condition = "k*ceil(c/8)*kh*kw <= 16384 taps of SPAD0", wide.WIDE_WEIGHTS <= 16384
        elif "SoC" in text:
            text = "ceil(c/8)*h*w + ceil(k*ceil(c/8)*kh*kw/2) <= 12288 entries of SoC memory"
            condition = PIXELS + ENTRIES <= 12288
        elif "SPAD1" in text:
            text, condition = "ceil(k/8)*h*w <= 8192 entries of SPAD1", GROUPS * H * W <= 8192
        domain.append((text, condition))
    return replace(
        wide.convolution_mapping(),
        name="hlscnn_conv2d_8bit",
        ir=ir_fragment(),
        device=narrow_fragment(hlscnn(reading)),
        domain=tuple(domain),
        lemmas=(),
        abstract=frozenset(f.name for f in functions),
        sizes_of=partial(wide.sizes_of, weight_bits=8),
        statement="HLSCNN's program computes the quantised convolution of x and w (8 bits), plus a bias, with or "
        "without relu",
        assumptions=(
            f"HLSCNN in the reading: {reading.reading}",
            "commands arrive one at a time, and each has ended when the next one arrives",
            "scratchpads, registers and SoC memory hold arbitrary values before the program",
            "the host gives whole blocks of 8 channels (weights of channels beyond the last one must be 0), and the "
            "weights of a tap of a block beside each other",
            "the input is padded by the host, and one bias serves all filters",
        ),
    )
