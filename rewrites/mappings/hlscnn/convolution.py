"""The mapping of a two-dimensional convolution to HLSCNN with weights of 16 bits.

IR side: one conv2d instruction on x [channels, height, width] and w [filters, channels, kernel rows, kernel columns].
Device side: one start of the convolution, with the layouts of the published drivers.  The host writes activations and
weights in blocks of 8 channels to SoC memory, lets the accelerator copy the weights to SPAD0, configures and starts the
convolution, and reads the outputs from SPAD1, 8 filters in an entry.  The hardware is that of the published branch
wgt_16bits; for the recorded one, with weights of 8 bits, there is :mod:`rewrites.mappings.hlscnn.convolution_8bit`.

Both sides compute the quantised convolution: eight channels of a tap are added exactly and their sum is converted to 16
bits before it joins the element.  How far that is from real numbers is a theorem of :mod:`rewrites.bounds`.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from accel_models.hlscnn.config import INPUT_SIZE, KERNEL_SIZE, OUTPUT_SIZE, channel_word
from accel_models.hlscnn.driver import program_file, setup_commands
from accel_models.hlscnn.layout import (
    ENTRY_BYTES,
    HOST_BASE,
    LANES,
    SOC_BASE,
    SOC_ENTRIES,
    SPAD0_BASE,
    SPAD1_BASE,
    SPAD_ENTRIES,
    Register,
    register_address,
)
from accel_models.hlscnn.model import hlscnn
from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import BY_WEIGHT_BITS, WGT_16BITS, HlscnnOptions
from ila_lang import Expr, Fragment, Function, Ila, Kernel, bv, concat, const, false, ite, mem, primitive, true, var
from ila_lang.mapping import Lemma, SizeError, TensorMapping
from ir_semantics.layers.convolution import CONVOLUTION_CODE, ConvolutionOperator, convolution_ir
from ir_semantics.layers.layer import call
from rewrites.mappings.domain import between

_NAMES = ("k", "c", "h", "w", "oh", "ow", "kh", "kw", "sh", "sw")
PARAMETERS = {n: var(n, bv(32)) for n in _NAMES} | {"bias": var("bias", bv(32)), "relu": var("relu", bv(32))}
K, C, H, W, OH, OW, KH, KW, SH, SW, BIAS, RELU = PARAMETERS.values()
"""Filters, channels; height and width of input, output and kernel; strides, bias, and whether there is a relu."""

BLOCKS = (C + (LANES - 1)) >> 3
GROUPS = (K + (LANES - 1)) >> 3
PIXELS = BLOCKS * H * W
WEIGHTS = K * BLOCKS * KH * KW
WIDE_WEIGHTS = K.zext(40) * BLOCKS.zext(40) * KH.zext(40) * KW.zext(40)  # 32 bits would wrap before they are bounded
HOST_X, HOST_W, HOST_Y = (var(n, mem(32, 16)) for n in ("host_x", "host_w", "host_y"))
HOST_FILL = var("host_fill", mem(32, 16))


DOMAIN: tuple[tuple[str, Expr], ...] = (
    between(K, 1, 255),
    between(C, 1, 4095),
    *(between(PARAMETERS[n], 1, 1023) for n in ("h", "w", "oh", "ow")),
    *(between(PARAMETERS[n], 1, 255) for n in ("kh", "kw")),
    *(between(PARAMETERS[n], 1, 7) for n in ("sh", "sw")),
    ("(oh - 1)*sh + kh <= h", (OH - 1) * SH + KH <= H),
    ("(ow - 1)*sw + kw <= w", (OW - 1) * SW + KW <= W),
    ("k*ceil(c/8)*kh*kw <= 8192 entries of SPAD0", WIDE_WEIGHTS <= 8192),
    ("ceil(c/8)*h*w + k*ceil(c/8)*kh*kw <= 12288 entries of SoC memory", PIXELS + WEIGHTS <= 12288),
    ("ceil(k/8)*oh*ow <= 8192 entries of SPAD1", GROUPS * OH * OW <= 8192),
    ("bias <= 65535", BIAS <= 65535),
    ("relu <= 1", RELU <= 1),
)
CELL = tuple((var(f"cell_{n}", bv(32)), PARAMETERS[n]) for n in ("k", "oh", "ow"))
"""Coordinates of an output element: filter, row, column."""


def operator_of(options: HlscnnOptions) -> ConvolutionOperator:
    """The IR's element type: 16-bit fixed point with the accelerator's conversion after every tap."""
    ops = arithmetic(options)
    wide = bv(options.psum_bits)

    def join(element: Expr, psum: Expr) -> Expr:
        """An element and the sum of eight channels at a tap, as 16 bits."""
        return ops.stored(ops.total(ops.requantise(psum), element, const(0, 16)))

    def finish(element: Expr, psum: Expr, bias: Expr, relu: Expr) -> Expr:
        """The same with the bias and, where ``relu`` is 1, the larger of this and 0."""
        total = ops.total(ops.requantise(psum), element, bias)
        return ops.stored(ite(relu == 1, ops.rectify(total), total))

    word = bv(16)
    return ConvolutionOperator(
        ops.product,
        primitive(word, name="hlscnn_join", element=word, psum=wide)(join),
        primitive(word, name="hlscnn_finish", element=word, psum=wide, bias=word, relu=bv(1))(finish),
        LANES,
        {"bias": 16, "relu": 1},
    )


def ir_fragment(options: HlscnnOptions) -> Fragment:
    """One conv2d instruction."""
    extents = dict(zip(_IR_OPERANDS, (K, C, H, W, OH, OW, KH, KW, SH, SW), strict=True))
    operands = {**extents, "bias": BIAS[15:0], "relu": RELU[0:0]}
    return call("ir_conv2d", "conv2d", CONVOLUTION_CODE, convolution_ir(operator_of(options)), PARAMETERS, operands)


_IR_OPERANDS = (
    "filters",
    "channels",
    "height",
    "width",
    "rows",
    "columns",
    "kernel_rows",
    "kernel_columns",
    "row_stride",
    "column_stride",
)


def convolution_fragment(ila: Ila, options: HlscnnOptions) -> Fragment:
    """The HLSCNN program of one start of a convolution."""
    program = Kernel("hlscnn_conv2d")
    emit_convolution(program, ila, options)
    tensors = {t.name: t for t in (HOST_X, HOST_W, HOST_FILL, HOST_Y)}
    return Fragment("hlscnn_conv2d", ila, PARAMETERS, tensors, program)


def emit_convolution(program: Kernel, ila: Ila, options: HlscnnOptions) -> None:
    """Appends the whole program: data, configuration, start, and the loads of the result to ``HOST_Y``."""
    p = program
    _store_activations(p)
    _store_weights(p)
    write_register(p, Register.SOC_MEM_BASE_ADDR, PIXELS << 4)
    write_register(p, Register.SOC_MEM_RD_WR_LENGTH, WEIGHTS)
    emit_command(p, "copy weights to SPAD0", true, const(SPAD0_BASE, 24), const(0, 128))
    configure_start(p, options)
    emit_command(p, "start", true, const(register_address(Register.CONV_TRIGGER) & 0xFFFFFF, 24), const(0, 128))
    load_result(p, ila, options)


def configure_start(program: Kernel, options: HlscnnOptions) -> None:
    """Appends the writes of the convolution's registers."""
    words = {
        Register.CONV_ACT_BASE_ADDR: const(0, 32),
        Register.CONV_WEIGHT_BASE_ADDR: const(SPAD0_BASE, 32),
        Register.CONV_OUTPUT_BASE_ADDR: const(SPAD1_BASE, 32),
        Register.CONV_INPUT_SIZE_CFG: INPUT_SIZE.pack_expr(channels=C[11:0], rows=H[9:0], cols=W[9:0]),
        Register.CONV_OUTPUT_SIZE_CFG: OUTPUT_SIZE.pack_expr(channels=K[11:0], rows=OH[9:0], cols=OW[9:0]),
        Register.CONV_KERNEL_SIZE_CFG: KERNEL_SIZE.pack_expr(
            rows=KH[7:0], cols=KW[7:0], row_stride=SH[2:0], col_stride=SW[2:0]
        ),
        Register.CONV_CHANNEL_CFG: channel_word(options).pack_expr(
            filters=K[7:0], enable_bias=const(1, 1), enable_relu=RELU[0:0], bias=BIAS[15:0]
        ),
    }
    for register, word in words.items():
        write_register(program, register, word)


def _store_activations(p: Kernel) -> None:
    """A pixel of eight channels an entry; lanes beyond the last channel may hold anything."""
    with p.loop("x_block", BLOCKS) as b, p.loop("x_row", H) as r, p.loop("x_column", W) as c:
        lanes = []
        for lane in range(LANES):
            channel = (b << 3) + lane
            value = HOST_X.load((channel * H + r) * W + c)
            lanes.append(ite(channel < C, value, HOST_FILL.load((channel * H + r) * W + c)))
        store_entry(p, "store activations", (b * H + r) * W + c, lanes)


def _store_weights(p: Kernel) -> None:
    """A tap of eight channels an entry; lanes beyond the last channel must be 0."""
    with (
        p.loop("w_filter", K) as f,
        p.loop("w_block", BLOCKS) as b,
        p.loop("w_row", KH) as r,
        p.loop("w_column", KW) as c,
    ):
        lanes = []
        for lane in range(LANES):
            channel = (b << 3) + lane
            value = HOST_W.load(((f * C + channel) * KH + r) * KW + c)
            lanes.append(ite(channel < C, value, const(0, 16)))
        store_entry(p, "store weights", PIXELS + ((f * BLOCKS + b) * KH + r) * KW + c, lanes)


def load_result(p: Kernel, ila: Ila, options: HlscnnOptions) -> None:
    """Appends the reads of the outputs to ``HOST_Y``.

    In "same" coordinates a plane has the input's size, and what all taps reach are the elements from K/2 on, a stride
    apart: the convolution without padding.
    """
    with p.loop("y_group", GROUPS) as g, p.loop("y_row", OH) as r, p.loop("y_column", OW) as c:
        if options.coordinates == "same":
            entry = (g * H + r * SH + (KH >> 1)) * W + c * SW + (KW >> 1)
        else:
            entry = (g * OH + r) * OW + c
        emit_command(p, "load y", false, entry_address(SPAD1_BASE, entry), const(0, 128))
        for lane in range(LANES):
            filter_ = (g << 3) + lane
            with p.when(f"filter_{lane}", filter_ < K):
                p.store(HOST_Y, (filter_ * OH + r) * OW + c, ila.states["data_out"][16 * lane + 15 : 16 * lane])


def store_entry(p: Kernel, note: str, entry: Expr, lanes: list[Expr]) -> None:
    """Appends a write of an entry of SoC memory, of eight words."""
    emit_command(p, note, true, entry_address(SOC_BASE, entry), concat(*reversed(lanes)))


def entry_address(base: int, entry: Expr) -> Expr:
    """The address (24 bits) of an entry of the memory that begins at ``base``."""
    return concat(const(base // ENTRY_BYTES, 20) + entry[19:0], const(0, 4))


def write_register(p: Kernel, register: Register, word: Expr) -> None:
    """A write of a register, which takes the four bytes of the bus word that its address points to."""
    address = register_address(register) & 0xFFFFFF
    low = 8 * (address % ENTRY_BYTES)
    data = concat(*([const(0, 96 - low)] if low < 96 else []), word, *([const(0, low)] if low else []))
    emit_command(p, f"set {register.name}", true, const(address, 24), data)


def emit_command(p: Kernel, note: str, write: Expr, offset: Expr, data: Expr) -> None:
    """Appends a write, or a read, at an offset (24 bits) in HLSCNN."""
    p.command(
        note,
        top_slave_if_wr=write,
        top_slave_if_rd=~write,
        top_slave_addr_in=concat(const(HOST_BASE >> 24, 8), offset),
        top_slave_data_in=data,
    )


def convolution_mapping(options: HlscnnOptions | None = None) -> TensorMapping:
    """The mapping ``hlscnn_conv2d``; ``options`` select another reading of the hardware, on the device only."""
    reading = options or WGT_16BITS
    ops = arithmetic(reading)
    sides = (ops, arithmetic(WGT_16BITS))
    functions = [f for o in sides for f in (o.product, o.requantise, o.total, o.rectify, o.stored)]
    return TensorMapping(
        name="hlscnn_conv2d",
        ir=ir_fragment(WGT_16BITS),
        device=convolution_fragment(hlscnn(reading), WGT_16BITS),
        parameters=PARAMETERS,
        domain=DOMAIN,
        rows=K,
        columns=OH * OW,
        inputs=(("host_x", "tensor_in"), ("host_w", "tensor_weights")),
        output=("host_y", "tensor_out"),
        lemmas=(_zero_weight(ops.product),),
        abstract=frozenset((*(f.name for f in functions), f"{ops.product.name}_not_0")),
        sizes_of=sizes_of,
        statement="HLSCNN's program computes the quantised convolution of x and w (16 bits), plus a bias, with or "
        "without relu",
        doc="Store input and weights, copy weights to SPAD0, configure, run the convolution, load",
        assumptions=(
            f"HLSCNN in the reading: {reading.reading}",
            "commands arrive one at a time, and each has ended when the next one arrives",
            "scratchpads, registers and SoC memory hold arbitrary values before the program",
            "the host writes zeros as weights of channels beyond the last one; activations there may be anything",
            "the input is padded by the host, and one bias serves all filters",
        ),
        show_element=lambda code: str(code - (code >> 15 << 16)),
        program_file=program_file,
        setup_commands=setup_commands,
        shape_names=("filters", "channels", "height", "width", "kernel_h", "kernel_w", "stride_h", "stride_w"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset(_NAMES),
        cell=CELL,
        cell_column=CELL[1][0] * OW + CELL[2][0],
    )


def _zero_weight(product: Function) -> Lemma:
    """A product with a weight of 0 is 0; other products stay an uninterpreted symbol."""
    weight, activation = product.params
    other = _other_product(product)(weight, activation)
    right = ite(weight == 0, const(0, other.width), other)
    return Lemma("a weight of 0 adds nothing", product(weight, activation), right)


def _other_product(product: Function) -> Function:
    """The same product under another name."""

    def same(weight: Expr, activation: Expr) -> Expr:
        """The product with a weight that is not 0."""
        return product.unfold((weight, activation))

    sorts = dict(zip(("weight", "activation"), (p.sort for p in product.params), strict=True))
    return primitive(product.result, name=f"{product.name}_not_0", **sorts)(same)


SAMPLES = (
    (1, 1, 1, 1, 1, 1, 1, 1),
    (2, 3, 5, 6, 3, 2, 1, 1),
    (19, 9, 7, 5, 3, 4, 2, 1),
    (3, 17, 8, 5, 2, 3, 3, 2),
    (12, 8, 5, 9, 1, 2, 2, 3),
    (26, 18, 4, 6, 2, 3, 1, 2),
)


@dataclass(frozen=True)
class Shape:
    """Extents of x [channels, height, width] and w [filters, channels, kernel_h, kernel_w], and strides.

    Raises SizeError where one is beyond HLSCNN's registers.
    """

    filters: int
    channels: int
    height: int
    width: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int

    def __post_init__(self) -> None:
        limits: tuple[tuple[str, int, int, int], ...] = (
            ("Filters", self.filters, 1, 255),
            ("Channels", self.channels, 1, 4095),
            ("Height", self.height, 1, 1023),
            ("Width", self.width, 1, 1023),
            ("Kernel height", self.kernel_h, 1, min(255, self.height)),
            ("Kernel width", self.kernel_w, 1, min(255, self.width)),
            ("Vertical stride", self.stride_h, 1, 7),
            ("Horizontal stride", self.stride_w, 1, 7),
        )
        for name, value, low, high in limits:
            if not low <= value <= high:
                raise SizeError(f"{name} of {self} must be {low} to {high}, not {value}; {_ADVICE}")

    def __str__(self) -> str:
        return f"shape {'x'.join(map(str, astuple(self)))} of an HLSCNN conv2d mapping"


def sizes_of(*extents: int, weight_bits: int = 16) -> dict[str, int]:
    """Sizes for a :class:`Shape`; no bias, no relu.

    Raises SizeError where one start of HLSCNN cannot hold the shape.
    """
    of = Shape(*extents)
    rows, columns = (of.height - of.kernel_h) // of.stride_h + 1, (of.width - of.kernel_w) // of.stride_w + 1
    blocks, same = -(-of.channels // LANES), BY_WEIGHT_BITS[weight_bits].coordinates == "same"
    pixels = blocks * of.height * of.width
    weights = -(-of.filters * blocks * of.kernel_h * of.kernel_w * weight_bits // 16)
    for name, used, room in (
        ("Weights", weights, SPAD_ENTRIES),
        ("Outputs", -(-of.filters // LANES) * (of.height * of.width if same else rows * columns), SPAD_ENTRIES),
        ("Activations and weights", pixels + weights, SOC_ENTRIES),
    ):
        if used > room:
            raise SizeError(f"{name} of {of} must fill at most {room} entries of 8 words, not {used}; {_ADVICE}")
    filters, channels, height, width, *window = astuple(of)
    return dict(zip(_NAMES, (filters, channels, height, width, rows, columns, *window), strict=True)) | {
        "bias": 0, "relu": 0,
    }  # fmt: skip


_ADVICE = "split the layer"
