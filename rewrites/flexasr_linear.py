"""The mapping of a dense layer to FlexASR's processing elements.

IR side: one dense instruction on x [T, 16*ni], weights [64*no, 16*ni] and a bias [64*no].  Device side: the program of
the published drivers.  Cores, activation units and managers of all four PEs are configured, weights and biases go to
the PEs' buffers, x to the large buffer, GBControl runs over all timesteps, and the result is read.

PE p computes the vectors p*no .. p*no + no - 1 of the output.
"""

from __future__ import annotations

from accel_models.flexasr.assembler import activation as programs
from accel_models.flexasr.config import (
    ACT_MNGR_WORD,
    ACT_VECTOR_WORDS,
    LARGE_MANAGER_WORD,
    MEM_MNGR_WORD,
    RNN_LAYER_SIZING_WORD,
    UNIT_WORD,
)
from accel_models.flexasr.driver import program_file, setup_commands
from accel_models.flexasr.functions import adpfloat_mul, pe_add_bias, pe_saturate, pe_shift, relu, sigmoid, tanh
from accel_models.flexasr.layout import (
    LANES,
    PE_COUNT,
    PE_PARTITION,
    PeRegion,
    Region,
    Start,
    large_axi_address,
    pe_register_address,
    register_address,
    vector_address,
)
from accel_models.flexasr.model import FlexAsrOptions, flexasr
from accel_models.flexasr.numerics import describe_code, fixed_to_adpfloat
from ila_lang import (
    Expr,
    Fragment,
    Function,
    Ila,
    Kernel,
    bv,
    concat,
    const,
    false,
    load_bytes,
    mem,
    primitive,
    true,
    var,
)
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.dense import DENSE_CODE, DenseOperator, dense_ir

__all__ = ["ACTIVATIONS", "linear_fragment", "linear_mapping", "sizes_of"]

T, NI, NO, BASE = var("T", bv(32)), var("ni", bv(32)), var("no", bv(32)), var("base", bv(32))
BIASES = {name: var(name, bv(32)) for name in ("bias_w", "bias_b", "bias_x", "bias_y")}
PARAMETERS = {"T": T, "ni": NI, "no": NO, "base": BASE, **BIASES}
DOMAIN: tuple[tuple[str, Expr], ...] = (
    ("1 <= T <= 65535", (const(1, 32) <= T) & (T <= 65535)),
    ("1 <= ni <= 255", (const(1, 32) <= NI) & (NI <= 255)),
    ("1 <= no <= 63", (const(1, 32) <= NO) & (NO <= 63)),
    ("ni + no <= 256 vectors of a PE's input buffer", NI + NO <= 256),
    ("16*no*ni <= 65536 vectors of a PE's weight buffer", NO * NI * 16 <= 65536),
    ("base <= 65535", BASE <= 65535),
    ("16*ni*ceil(T/16) <= base", ((T + 15) >> 4) * NI * 16 <= BASE),
    ("base + 64*no*ceil(T/16) <= 65536 vectors", BASE + (((T + 15) >> 4) * NO) * 64 <= 65536),
    *((f"{n} <= 7", v <= 7) for n, v in BIASES.items()),
)
HOST_X, HOST_W, HOST_B, HOST_Y = (var(n, mem(32, 8)) for n in ("host_x", "host_w", "host_b", "host_y"))
CELL = (
    (var("cell_t", bv(32)), T),
    (var("cell_pe", bv(32)), const(PE_COUNT, 32)),
    (var("cell_vector", bv(32)), NO),
    (var("cell_lane", bv(32)), const(LANES, 32)),
)
"""Coordinates of an output element: timestep, PE, vector within the PE's share, lane."""
ACTIVATIONS: dict[str | None, Function | None] = {None: None, "relu": relu, "sigmoid": sigmoid, "tanh": tanh}


@primitive(bv(32), acc=bv(32), w=bv(8), x=bv(8))
def multiply_add(acc: Expr, w: Expr, x: Expr) -> Expr:
    """The accumulator plus the exact product of two codes; wraps at 32 bits."""
    return acc + adpfloat_mul(w, x)


def finish_of(activation: str | None) -> Function:
    """The end of a dense layer: shift to Q6.14, add the bias, saturate, activation, encode."""
    function = ACTIVATIONS[activation]

    def finish(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
        """The code of the activation of a sum of products plus the layer's bias."""
        total = pe_saturate(pe_add_bias(pe_shift(acc, bias_w, bias_x), b, bias_b))
        return fixed_to_adpfloat(total if function is None else function(total), bias_y)

    name = f"dense_finish_{activation}" if activation else "dense_finish"
    biases = {n: bv(3) for n in ("bias_w", "bias_x", "bias_b", "bias_y")}
    return primitive(bv(8), name=name, acc=bv(32), b=bv(8), **biases)(finish)


def operator_of(activation: str | None) -> DenseOperator:
    """The IR's element type: AdaptivFloat codes with the accelerator's rounding."""
    return DenseOperator(
        multiply_add, finish_of(activation), dict.fromkeys(("bias_w", "bias_x", "bias_b", "bias_y"), 3)
    )


def ir_fragment(activation: str | None) -> Fragment:
    """One dense instruction."""
    program = Kernel("ir_dense")
    program.command(
        "dense layer",
        func_run=true,
        func_id=const(DENSE_CODE, 8),
        rows_in=T,
        features_in_in=NI << 4,
        features_out_in=NO << 6,
        **{f"{n}_in": v[2:0] for n, v in BIASES.items()},
    )
    return Fragment("ir_dense", dense_ir(operator_of(activation)), PARAMETERS, {}, program)


def linear_fragment(activation: str | None, ila: Ila) -> Fragment:
    """The FlexASR program of a dense layer."""
    program = Kernel("flexasr_linear")

    def write(note: str, address: Expr | int, data: Expr | int) -> None:
        address = const(address, 32) if isinstance(address, int) else address
        data = const(data, 128) if isinstance(data, int) else data
        program.command(note, if_axi_wr=true, if_axi_rd=false, addr_in=address, data_in=data)

    code = programs.assemble(programs.linear_program(activation))
    sizing = RNN_LAYER_SIZING_WORD.pack_expr(is_valid=1, is_bias=1, num_manager=1, num_output=NO[7:0])
    manager = MEM_MNGR_WORD.pack_expr(
        adpfloat_bias_w=BIASES["bias_w"][2:0],
        adpfloat_bias_b=BIASES["bias_b"][2:0],
        adpfloat_bias_i=BIASES["bias_x"][2:0],
        num_input=NI[7:0],
        base_bias=NI[15:0],
    )
    micro_program = ACT_VECTOR_WORDS[0].pack(**dict(zip(ACT_VECTOR_WORDS[0].fields, code, strict=False)))
    for number in range(PE_COUNT):
        act = ACT_MNGR_WORD.pack_expr(
            is_valid=1,
            adpfloat_bias=BIASES["bias_y"][2:0],
            num_inst=len(code),
            num_output=NO[7:0],
            output_addr_base=(NO * number)[7:0],
        )
        write(f"configure core {number}", pe_register_address(number, PeRegion.CORE), sizing)
        write(f"configure manager of core {number}", pe_register_address(number, PeRegion.CORE, 2), manager)
        write(f"configure activation unit {number}", pe_register_address(number, PeRegion.ACT), act)
        write(f"micro-program {number}", pe_register_address(number, PeRegion.ACT, 2), micro_program)
    depth = NI << 4
    with (
        program.loop("weight_pe", const(PE_COUNT, 3)) as pe,
        program.loop("weight_output", NO) as o,
        program.loop("weight_input", NI) as i,
        program.loop("weight_row", const(LANES, 5)) as row,
    ):
        feature = ((pe.zext(32) * NO + o) << 4) + row.zext(32)
        vector = ((o * NI + i) << 4) + row.zext(32)
        data = load_bytes(HOST_W, feature * depth + (i << 4), LANES)
        write("store weights", pe_axi_address(pe, PeRegion.WEIGHT, vector[15:0]), data)
    with program.loop("bias_pe", const(PE_COUNT, 3)) as pe, program.loop("bias_output", NO) as o:
        data = load_bytes(HOST_B, (pe.zext(32) * NO + o) << 4, LANES)
        write("store biases", pe_axi_address(pe, PeRegion.INPUT, (NI + o)[7:0]), data)
    managers = LARGE_MANAGER_WORD.pack_expr(num_vector_0=NI[7:0], num_vector_1=(NO << 2)[7:0], base_large_1=BASE[15:0])
    write("configure managers", register_address(Region.MANAGERS), managers)
    unit = UNIT_WORD.pack_expr(
        is_valid=1,
        memory_index_2=1,
        num_vector_1=NI[7:0],
        num_vector_2=(NO << 2)[7:0],
        num_timestep_1=T[15:0],
    )
    write("configure GBControl", register_address(Region.CONTROL), unit)
    with program.loop("store_t", T) as t, program.loop("store_vector", NI) as v:
        vector = vector_address(const(0, 32), NI, t, v)
        write("store x", large_axi_address(vector), load_bytes(HOST_X, t * depth + (v << 4), LANES))
    write("start GBControl", register_address(Region.START, Start.CONTROL), 1)
    with (
        program.loop("load_t", T) as t,
        program.loop("load_pe", const(PE_COUNT, 3)) as pe,
        program.loop("load_vector", NO) as v,
    ):
        column = pe.zext(32) * NO + v
        program.command(
            "load y",
            if_axi_wr=false,
            if_axi_rd=true,
            addr_in=large_axi_address(vector_address(BASE, NO << 2, t, column)),
            data_in=const(0, 128),
        )
        for lane in range(LANES):
            word = ila.states["data_out"][8 * lane + 7 : 8 * lane]
            program.store(HOST_Y, t * (NO << 6) + (column << 4) + lane, word)
    tensors = {t.name: t for t in (HOST_X, HOST_W, HOST_B, HOST_Y)}
    return Fragment("flexasr_linear", ila, PARAMETERS, tensors, program)


def pe_axi_address(pe: Expr, region: int, vector: Expr) -> Expr:
    """The AXI address (32 bits) of a vector of a PE's buffer; the PE is the low two bits of the partition."""
    return concat(const(PE_PARTITION >> 2, 6), pe[1:0], const(region, 4), vector.zext(16), const(0, 4))


def linear_mapping(activation: str | None = None, options: FlexAsrOptions | None = None) -> TensorMapping:
    """The mapping ``flexasr_linear``, with ``activation`` None, "relu", "sigmoid" or "tanh" after it.

    ``options`` select another reading of the hardware.
    """
    function = ACTIVATIONS[activation]
    functions = [adpfloat_mul, pe_shift, pe_add_bias, pe_saturate, fixed_to_adpfloat, *([function] if function else [])]
    suffix = f"_{activation}" if activation else ""
    after = f", then {activation}" if activation else ""
    return TensorMapping(
        name=f"flexasr_linear{suffix}",
        ir=ir_fragment(activation),
        device=linear_fragment(activation, flexasr(options)),
        parameters=PARAMETERS,
        domain=DOMAIN,
        rows=T,
        columns=NO << 6,
        inputs=(("host_x", "tensor_in"), ("host_w", "tensor_weights"), ("host_b", "tensor_bias")),
        output=("host_y", "tensor_out"),
        lemmas=(),
        abstract=frozenset(f.name for f in functions),
        sizes_of=sizes_of,
        statement=f"FlexASR's linear program computes the quantised dense layer x w^T + b{after}",
        doc="Configure all PEs, store weights, biases and input, run GBControl, load",
        assumptions=(
            "commands arrive one at a time, and the host waits for the interrupt after the start",
            "buffers, registers and host memory hold arbitrary values before the program",
            "inputs are padded to 16 features and outputs to 64; weights of padding may be anything",
        ),
        show_element=describe_code,
        program_file=program_file,
        setup_commands=setup_commands,
        shape_names=("rows", "features_in", "features_out"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset({"T", "ni", "no"}),
        cell=CELL,
        cell_column=((CELL[1][0] * NO + CELL[2][0]) << 4) + CELL[3][0],
    )


SAMPLES = ((1, 16, 64), (2, 32, 64), (3, 16, 128), (17, 48, 128), (18, 32, 192), (2, 48, 64))


def sizes_of(rows: int, features_in: int, features_out: int) -> dict[str, int]:
    """Sizes for x [rows, features_in] and ``features_out`` outputs; the result follows the input in the large buffer.

    Raises SizeError where FlexASR cannot hold the shape.
    """
    where = f"shape {rows}x{features_in}x{features_out} of a FlexASR linear mapping"
    if features_in % LANES or not LANES <= features_in <= 255 * LANES:
        raise SizeError(f"Input features of {where} must be a multiple of 16 up to 4080, not {features_in}; pad them")
    if features_out % 64 or not 64 <= features_out <= 63 * 64:
        raise SizeError(f"Output features of {where} must be a multiple of 64 up to 4032, not {features_out}; pad them")
    if not 1 <= rows <= 65535:
        raise SizeError(f"Rows of {where} must be 1 to 65535 (a 16-bit register), not {rows}")
    groups, ni, no = -(-rows // 16), features_in // LANES, features_out // 64
    for what, used, room in (
        ("Input and bias vectors", ni + no, 256),
        ("Weight vectors of a PE", 16 * ni * no, 65536),
        ("Vectors of input and output", 16 * groups * (ni + 4 * no), 65536),
    ):
        if used > room:
            raise SizeError(f"{what} of {where} must be at most {room}, not {used}; split the layer")
    return {"T": rows, "ni": ni, "no": no, "base": 16 * groups * ni, **dict.fromkeys(BIASES, 0)}
