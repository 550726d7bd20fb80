"""The mappings of pooling with window and stride (2, 1) to FlexASR's LayerReduce unit.

IR side: one pooling instruction on a row-major tensor of T rows and 16*nv columns.  Device side: the tensor is stored
into the large buffer's tiles, manager and unit are configured, the unit is started, and the first T/2 rows are loaded.

The layout and the configuration words are the ones the published drivers use (facts: manager 0 holds base and
num_vector; the unit's num_vector and num_timestep repeat nv and T).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from accel_models.flexasr.config import LARGE_MANAGER_WORD, SMALL_MANAGER_WORD, UNIT_WORD
from accel_models.flexasr.layout import (
    LANES,
    LARGE_BASE,
    SMALL_BASE,
    Region,
    Start,
    large_axi_address,
    register_address,
    vector_address,
)
from accel_models.flexasr.model import FlexAsrOptions, flexasr
from accel_models.flexasr.numerics import (
    adpfloat_add,
    adpfloat_max,
    adpfloat_mean,
    adpfloat_pool_add_step,
    adpfloat_pool_finish,
    adpfloat_pool_first,
    adpfloat_pool_max_step,
    adpfloat_pool_mean_finish,
    describe_code,
)
from accel_models.flexasr.program import Program, ProgramCommand, write_program
from ila_lang import Expr, Fragment, Function, Ila, Kernel, bv, const, false, load_bytes, mem, true, var
from ila_lang.mapping import Lemma, SizeError, TensorMapping
from ir_semantics.pooling import POOL_CODES, PoolOperator, tensor_ir

__all__ = ["KINDS", "ir_model", "pooling_fragment", "pooling_mapping"]

T, NV, BASE = var("T", bv(32)), var("nv", bv(32)), var("base", bv(32))
PARAMETERS = {"T": T, "nv": NV, "base": BASE}
DOMAIN: tuple[tuple[str, Expr], ...] = (
    ("T even", T[0] == 0),
    ("2 <= T <= 65534", (const(2, 32) <= T) & (T <= 65534)),
    ("1 <= nv <= 255", (const(1, 32) <= NV) & (NV <= 255)),
    ("0 <= base <= 65535", BASE <= 65535),
    ("base + 16*nv*ceil(T/16) <= 65536 vectors", BASE + (((T + 15) >> 4) * NV) * 16 <= 65536),
)
HOST_IN, HOST_OUT = var("host_in", mem(32, 8)), var("host_out", mem(32, 8))

KINDS: dict[str, tuple[str, int, Function, PoolOperator]] = {
    "max": (
        "maxpool2d",
        0,
        adpfloat_max,
        PoolOperator(adpfloat_pool_first, adpfloat_pool_max_step, adpfloat_pool_finish),
    ),
    "mean": (
        "meanpool2d",
        1,
        adpfloat_mean,
        PoolOperator(adpfloat_pool_first, adpfloat_pool_add_step, adpfloat_pool_mean_finish),
    ),
    "add": (
        "addpool2d",
        2,
        adpfloat_add,
        PoolOperator(adpfloat_pool_first, adpfloat_pool_add_step, adpfloat_pool_finish),
    ),
}
"""IR instruction, LayerReduce mode, LayerReduce operator and IR element operator of each kind of pooling."""


@cache
def ir_model() -> Ila:
    """The IR-ILA with pooling over AdaptivFloat<8,3> codes."""
    return tensor_ir({instruction: operator for instruction, _, _, operator in KINDS.values()})


def ir_fragment(kind: str) -> Fragment:
    """One pooling instruction with window and stride (2, 1) on the whole tensor."""
    program = Kernel(f"ir_{kind}pool")
    program.command(
        f"{kind} pooling, window (2, 1), stride (2, 1)",
        func_run=true,
        func_id=const(POOL_CODES[KINDS[kind][0]], 8),
        height_in=T,
        width_in=NV << 4,
        pool_y_in=const(2, 8),
        pool_x_in=const(1, 8),
        stride_y_in=const(2, 8),
        stride_x_in=const(1, 8),
    )
    return Fragment(f"ir_{kind}pool", ir_model(), PARAMETERS, {}, program)


def pooling_fragment(kind: str, ila: Ila) -> Fragment:
    """The FlexASR program: store, configure, start, load.  ``kind`` is "max", "mean" or "add"."""
    program = Kernel(f"flexasr_{kind}pool")
    mode = KINDS[kind][1]

    def write(note: str, address: Expr, data: Expr) -> None:
        program.command(note, if_axi_wr=true, if_axi_rd=false, addr_in=address, data_in=data)

    width = NV << 4
    with program.loop("t", T) as t, program.loop("v", NV) as v:
        vector = vector_address(BASE, NV, t, v)
        write("store tensor", large_axi_address(vector), load_bytes(HOST_IN, t * width + (v << 4), LANES))
    manager = LARGE_MANAGER_WORD.pack_expr(num_vector_0=NV[7:0], base_large_0=BASE[15:0])
    write("configure manager", const(register_address(Region.MANAGERS, 1), 32), manager)
    unit = UNIT_WORD.pack_expr(is_valid=1, mode=mode, num_vector_1=NV[7:0], num_timestep_1=T[15:0])
    write("configure LayerReduce", const(register_address(Region.LAYER_REDUCE), 32), unit)
    write("start LayerReduce", const(register_address(Region.START, Start.LAYER_REDUCE), 32), const(1, 128))
    with program.loop("u", T >> 1) as u, program.loop("w", NV) as w:
        vector = vector_address(BASE, NV, u, w)
        program.command(
            "load result",
            if_axi_wr=false,
            if_axi_rd=true,
            addr_in=large_axi_address(vector),
            data_in=const(0, 128),
        )
        for lane in range(LANES):
            word = ila.states["data_out"][8 * lane + 7 : 8 * lane]
            program.store(HOST_OUT, u * width + (w << 4) + lane, word)
    tensors = {"host_in": HOST_IN, "host_out": HOST_OUT}
    return Fragment(f"flexasr_{kind}pool", ila, PARAMETERS, tensors, program)


def pooling_mapping(kind: str, options: FlexAsrOptions | None = None) -> TensorMapping:
    """The mapping ``flexasr_{kind}pool``; ``options`` select another reading of the hardware."""
    _, _, reduce, operator = KINDS[kind]
    a, b = var("a", bv(8)), var("b", bv(8))
    lemma = Lemma(
        f"{reduce.name} is {kind} pooling of two elements",
        reduce(a, b),
        operator.pair(a, b),
        f"LayerReduce's {kind} of two codes is the IR's {kind} pooling of a window of two: widen both exactly, "
        f"{'take the larger' if kind == 'max' else 'add'}, narrow once",
    )
    return TensorMapping(
        name=f"flexasr_{kind}pool",
        ir=ir_fragment(kind),
        device=pooling_fragment(kind, flexasr(options)),
        parameters=PARAMETERS,
        domain=DOMAIN,
        rows=T >> 1,
        columns=NV << 4,
        inputs=(("host_in", "tensor_in"),),
        output=("host_out", "tensor_out"),
        lemmas=(lemma,),
        abstract=frozenset({reduce.name, operator.first.name, operator.step.name, operator.finish.name}),
        sizes_of=sizes_of,
        statement=f"FlexASR's LayerReduce program computes {kind} pooling with window (2, 1) and stride (2, 1)",
        doc="Store to the tiled buffer, configure manager and unit, start, load (D2A figure 7a)",
        assumptions=(
            "commands arrive one at a time, and the host waits for the interrupt after the start",
            "the buffer, registers and host memory hold arbitrary values before the program",
        ),
        show_element=describe_code,
        program_file=program_file,
        setup_commands=setup_commands,
    )


def sizes_of(rows: int, columns: int) -> dict[str, int]:
    """Sizes for an input tensor of ``rows`` x ``columns``, stored at base 0.

    Raises SizeError where FlexASR cannot hold the shape.
    """
    where = f"shape {rows}x{columns} of a FlexASR pooling mapping"
    if rows % 2:
        raise SizeError(f"Rows of {where} must be even, not {rows}; pad or split the tensor")
    if columns % LANES or columns < LANES:
        raise SizeError(f"Columns of {where} must be a positive multiple of {LANES}, not {columns}; pad the tensor")
    if not 2 <= rows <= 65534:
        raise SizeError(f"Rows of {where} must be 2 to 65534 (a 16-bit register), not {rows}")
    if columns // LANES > 255:
        raise SizeError(f"Columns of {where} must be at most 4080 (255 vectors, an 8-bit register), not {columns}")
    vectors = -(-rows // 16) * 16 * (columns // LANES)
    if vectors > 65536:
        raise SizeError(f"Tiles of {where} must fit 65536 vectors, not {vectors}; split the tensor")
    return {"T": rows, "nv": columns // LANES, "base": 0}


def program_file(commands: list[Mapping[str, int]]) -> str:
    """Commands at FlexASR's port as a program file of the newer JSON form, with a wait after each start."""
    listed = (
        ProgramCommand("W" if c["if_axi_wr"] else "R", c["addr_in"], c["data_in"] if c["if_axi_wr"] else 0)
        for c in commands
    )
    return write_program(Program(tuple(listed), waits=False))


def setup_commands(registers: Mapping[str, int], memories: Mapping[str, Mapping[int, int]]) -> list[Mapping[str, int]]:
    """Writes that put configuration registers and buffer bytes of a reset FlexASR in the given contents.

    Registers of a configuration word that are not named get their reset values, bytes of a written vector 0.
    Raises ValueError on state that no command can set.
    """
    left = set(registers)
    commands: list[Mapping[str, int]] = []

    def write(address: int, data: int) -> None:
        commands.append({"if_axi_wr": 1, "if_axi_rd": 0, "addr_in": address, "data_in": data})

    for prefix, word, region, index in _CONFIGURATION:
        names = {name for name in left if name.startswith(prefix) and name[len(prefix) :] in word.fields}
        if names:
            left -= names
            fields = {name: registers.get(prefix + name, field.reset) for name, field in word.fields.items()}
            write(register_address(region, index), word.pack(**fields))
    buffers = {"gb_core_large_buffer": LARGE_BASE, "gb_core_small_buffer": SMALL_BASE}
    for name, cells in memories.items():
        if name not in buffers:
            raise ValueError(f"Memory {name} of FlexASR must be one of {', '.join(buffers)} to be set by commands")
        vectors: dict[int, int] = {}
        for address, value in cells.items():
            vectors[address >> 4] = vectors.get(address >> 4, 0) | value << 8 * (address & 15)
        for vector, data in sorted(vectors.items()):
            write(buffers[name] | vector << 4, data)
    if left:
        raise ValueError(f"No command of FlexASR sets {', '.join(sorted(left))}")
    return commands


_CONFIGURATION = (
    ("gb_core_mem_mngr_large_", LARGE_MANAGER_WORD, Region.MANAGERS, 1),
    ("gb_core_mem_mngr_small_", SMALL_MANAGER_WORD, Region.MANAGERS, 2),
    ("gb_control_", UNIT_WORD, Region.CONTROL, 1),
    ("gb_layer_reduce_", UNIT_WORD, Region.LAYER_REDUCE, 1),
    ("gb_layer_norm_", UNIT_WORD, Region.LAYER_NORM, 1),
    ("gb_zero_padding_", UNIT_WORD, Region.ZERO_PADDING, 1),
    ("gb_attention_", UNIT_WORD, Region.ATTENTION, 1),
)
"""Prefix of the registers, layout and place of every configuration word."""
