"""What the instructions of a blocked matrix product touch, for every size.

Each kind of instruction that :mod:`~accel_models.vta.products` emits for a round or a block is given by fields of
its word, over the sizes of the block and of the tensors.  From its kernel's text follows, for every size in the domain
and every iteration: its accesses to INP and WGT stay in the round's half, those to OUT in the block's half, those to
DRAM in the tensor's region; and no iteration is undefined.  So instructions of different modules meet only in one half
of a scratchpad, which is what the rules of tokens order (:mod:`chc.token_order.family`).

Index arithmetic is over the integers, with the conditions under which that is exact as obligations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pysmt.shortcuts as smt
from pysmt.fnode import FNode
from pysmt.typing import INT

from accel_models.vta.isa import ENCODINGS, AluOp, MemoryId, Opcode, Unit
from accel_models.vta.model import vta
from accel_models.vta.options import HLS, VtaOptions
from ila_lang import Expr, bv, concat, const, false, inline, substitute, true, var
from smt_encodings.claims import Unsupported
from smt_encodings.discharge import Discharger, decide
from smt_encodings.expressions.integers import IntegerEncoding

from .accesses import Access, Accesses, accesses_of

# The block: rows, vectors of output channels, and of input channels in this round; which half of ACC and OUT it uses,
# and which half of INP and WGT the round does.
ROWS, COLUMNS, LENGTH = (var(n, bv(16)) for n in ("rows", "columns", "length"))
HALF, PART = var("half", bv(1)), var("part", bv(1))
# Where it begins in the tensors (in rows and vectors), and the tensors' sizes and places in DRAM (in their elements).
ROW, COLUMN, INPUT = (var(n, bv(32)) for n in ("first_row", "first_column", "first_input"))
ALL_ROWS, ALL_COLUMNS, DEPTH = (var(n, bv(32)) for n in ("all_rows", "all_columns", "all_inputs"))
BASES = {name: var(f"{name}_base", bv(32)) for name in ("input", "weights", "bias", "output")}
# A micro-op of the round: which vector of output channels, and, in small blocks, of input channels.
CHANNEL, STEP = var("channel", bv(16)), var("step", bv(16))
FIRST_UOP = var("first_uop", bv(14))


def _product(*factors: Expr) -> Expr:
    product = const(1, 48)
    for factor in factors:
        product = product * factor.zext(48)
    return product


def _within(low: Expr, length: Expr, whole: Expr) -> Expr:
    return low.zext(48) + length.zext(48) <= whole.zext(48)


DOMAIN: tuple[tuple[str, Expr], ...] = (
    ("a block has at least one row, one vector of output channels and one of input channels",
     (ROWS >= 1) & (COLUMNS >= 1) & (LENGTH >= 1)),
    ("its accumulators fit a half (rows * columns <= 1024)",
     (ROWS <= 1024) & (COLUMNS <= 1024) & (_product(ROWS, COLUMNS) <= 1024)),
    ("its inputs fit a half (rows * length <= 1024)", (LENGTH <= 1024) & (_product(ROWS, LENGTH) <= 1024)),
    ("its weights fit a half (columns * length <= 512)", _product(COLUMNS, LENGTH) <= 512),
    ("it lies in the tensors", _within(ROW, ROWS, ALL_ROWS) & _within(COLUMN, COLUMNS, ALL_COLUMNS)
     & _within(INPUT, LENGTH, DEPTH)),
    ("rows of tensors have at most 65535 vectors", (DEPTH <= 65535) & (ALL_COLUMNS <= 65535)),
    ("its micro-ops fit their memory", FIRST_UOP.zext(48) + COLUMNS.zext(48) <= 2048),
    ("the tensors lie in DRAM (16 MiB)",
     (ALL_ROWS < 1 << 20)
     & (BASES["input"] < 1 << 20) & (BASES["input"].zext(48) + _product(ALL_ROWS, DEPTH) <= 1 << 20)
     & (BASES["weights"] < 1 << 16) & (BASES["weights"].zext(48) + _product(ALL_COLUMNS, DEPTH) <= 1 << 16)
     & (BASES["bias"] < 1 << 18) & (BASES["bias"].zext(48) + ALL_COLUMNS.zext(48) <= 1 << 18)
     & (BASES["output"] < 1 << 20) & (BASES["output"].zext(48) + _product(ALL_ROWS, ALL_COLUMNS) <= 1 << 20)),
)  # fmt: skip
"""Conditions on sizes, with a text each; that the tensors do not overlap in DRAM comes in addition."""


@dataclass(frozen=True)
class Kind:
    """A kind of instruction.

    ``unit`` is its module, ``instruction`` its name in the ILA, ``fields`` what its word says; ``uop`` its micro-op, if
    it has one, and ``known`` what is known of that.  ``radix`` lists where its indices have two digits, each with its
    radix.  ``region`` is the part of DRAM that it accesses: name, rows of vectors, vectors in a row, bytes of a vector.
    """

    name: str
    unit: Unit
    instruction: str
    fields: Mapping[str, Expr]
    uop: Mapping[str, Expr] | None = None
    known: Expr | None = None
    radix: tuple[tuple[Expr, Expr, Expr, Expr], ...] = ()
    region: tuple[str, Expr, Expr, int] | None = None


def _half(bit: Expr, size: int, width: int) -> Expr:
    """Where a half begins."""
    return bit.zext(width) * size


def kinds() -> list[Kind]:
    """Every kind of instruction of a round or a block; fields that are not named are 0."""
    accumulators = _half(HALF, 1024, 16)
    cells = _product(ROWS, COLUMNS)
    inputs, tiles = _half(PART, 1024, 16), _half(PART, 512, 16)
    first = {"dst": accumulators, "src": inputs, "wgt": tiles}
    channel = {
        "dst": accumulators + CHANNEL,
        "src": inputs + STEP,
        "wgt": tiles + STEP + CHANNEL * LENGTH,
    }
    in_block = CHANNEL < COLUMNS
    y14, x14, y16, x16 = (var(f"at.{n}", bv(w)) for n, w in (("y", 14), ("x", 14), ("y", 16), ("x", 16)))
    micro_ops = {"uop_bgn": FIRST_UOP, "uop_end": FIRST_UOP.zext(16) + COLUMNS}
    transfer = {"y_size": ROWS, "x_size": LENGTH, "x_stride": DEPTH}
    result = [
        Kind("load of inputs", Unit.LOAD, "LOAD_INP",
             transfer | {"sram_base": inputs, "dram_base": BASES["input"] + ROW * DEPTH + INPUT},
             radix=((y16, ROWS, x16, LENGTH), (ROW + y16.zext(32), ALL_ROWS, INPUT + x16.zext(32), DEPTH),
                    (ROW + ROWS.zext(32) - 1, ALL_ROWS, INPUT + LENGTH.zext(32) - 1, DEPTH)),
             region=("input", ALL_ROWS, DEPTH, 16)),
        Kind("load of weights", Unit.LOAD, "LOAD_WGT",
             transfer | {"sram_base": tiles, "y_size": COLUMNS,
                         "dram_base": BASES["weights"] + COLUMN * DEPTH + INPUT},
             radix=((y16, COLUMNS, x16, LENGTH), (COLUMN + y16.zext(32), ALL_COLUMNS, INPUT + x16.zext(32), DEPTH),
                    (COLUMN + COLUMNS.zext(32) - 1, ALL_COLUMNS, INPUT + LENGTH.zext(32) - 1, DEPTH)),
             region=("weights", ALL_COLUMNS, DEPTH, 256)),
        Kind("load of the bias", Unit.COMPUTE, "LOAD_ACC",
             {"sram_base": accumulators, "dram_base": BASES["bias"] + COLUMN, "y_size": ROWS, "x_size": COLUMNS},
             radix=((y16, ROWS, x16, COLUMNS),),
             region=("bias", const(1, 32), ALL_COLUMNS, 64)),
        Kind("clear", Unit.COMPUTE, "GEMM_RESET",
             {"uop_bgn": FIRST_UOP, "uop_end": FIRST_UOP + 1, "iter_out": const(1, 14), "iter_in": cells,
              "dst_factor_in": const(1, 11)},
             first),
        Kind("products", Unit.COMPUTE, "GEMM",
             micro_ops | {"iter_out": LENGTH, "iter_in": ROWS, "dst_factor_in": COLUMNS,
              "src_factor_out": const(1, 11), "src_factor_in": LENGTH, "wgt_factor_out": const(1, 10)},
             channel, in_block & (STEP == 0),
             ((x14, ROWS, CHANNEL, COLUMNS), (x14, ROWS, y14, LENGTH), (CHANNEL, COLUMNS, y14, LENGTH),
              (ROWS - 1, ROWS, CHANNEL, COLUMNS), (ROWS - 1, ROWS, LENGTH - 1, LENGTH),
              (CHANNEL, COLUMNS, LENGTH - 1, LENGTH))),
        Kind("products of a small block", Unit.COMPUTE, "GEMM",
             micro_ops | {"iter_out": const(1, 14), "iter_in": ROWS, "dst_factor_in": COLUMNS,
              "src_factor_in": LENGTH},
             channel, in_block & (STEP < LENGTH),
             ((x14, ROWS, CHANNEL, COLUMNS), (x14, ROWS, STEP, LENGTH), (CHANNEL, COLUMNS, STEP, LENGTH),
              (ROWS - 1, ROWS, CHANNEL, COLUMNS), (ROWS - 1, ROWS, STEP, LENGTH))),
    ]  # fmt: skip
    step = {"uop_bgn": FIRST_UOP, "uop_end": FIRST_UOP + 1, "iter_out": const(1, 14), "iter_in": cells,
            "dst_factor_in": const(1, 11), "src_factor_in": const(1, 11)}  # fmt: skip
    result += [
        Kind(f"step {name}", Unit.COMPUTE, f"ALU_{name}_IMM", step, {"dst": accumulators, "src": accumulators})
        for name in ("MIN", "MAX", "ADD", "SHR")
    ]
    result.append(
        Kind(
            "store",
            Unit.STORE,
            "STORE",
            {
                "sram_base": accumulators,
                "dram_base": BASES["output"] + ROW * ALL_COLUMNS + COLUMN,
                "y_size": ROWS,
                "x_size": COLUMNS,
                "x_stride": ALL_COLUMNS,
            },
            radix=(
                (y16, ROWS, x16, COLUMNS),
                (ROW + y16.zext(32), ALL_ROWS, COLUMN + x16.zext(32), ALL_COLUMNS),
                (ROW + ROWS.zext(32) - 1, ALL_ROWS, COLUMN + COLUMNS.zext(32) - 1, ALL_COLUMNS),
            ),
            region=("output", ALL_ROWS, ALL_COLUMNS, 16),
        )
    )
    return result


def accesses(kind: Kind, options: VtaOptions = HLS) -> Accesses:
    """The accesses of a kind of instruction, over the sizes and the counters of its loops."""
    ila = vta(options)
    instruction = ila.instructions[kind.instruction]
    latched = {}
    for name in instruction.updates:
        state = ila.states[name]
        field = name.partition("_")[2]
        if name.startswith(("transfer_", "loops_")):
            latched[state] = _fit(kind.fields.get(field, const(0, state.width)), state.width)
    words = []
    if kind.uop is not None:
        parts = [
            kind.uop.get(name, const(0, 16))[width - 1 : 0] for name, width in (("wgt", 10), ("src", 11), ("dst", 11))
        ]
        words = [concat(*parts)]
    return accesses_of(instruction, latched, words, "at")


def accepted(kind: Kind, options: VtaOptions = HLS) -> Expr:
    """The decode of the kind's word, which moves no tokens, on a machine that has neither finished nor a fault."""
    ila = vta(options)
    opcodes = {"LOAD": Opcode.LOAD, "STOR": Opcode.STORE, "GEMM": Opcode.GEMM, "ALU_": Opcode.ALU}
    opcode = opcodes[kind.instruction[:4]]
    fixed = {"opcode": const(opcode, 3)}
    if opcode in (Opcode.LOAD, Opcode.STORE):
        fixed["memory"] = const(MemoryId[kind.instruction.partition("_")[2] or "OUT"], 3)
    elif opcode == Opcode.GEMM:
        fixed["reset_reg"] = const(int(kind.instruction == "GEMM_RESET"), 1)
    else:
        fixed |= {"alu_opcode": const(AluOp[kind.instruction.split("_")[1]], 3), "use_imm": const(1, 1)}
    parts: list[Expr] = []
    position = 0
    for name, field in sorted(ENCODINGS[options.encoding].of(opcode).items(), key=lambda item: item[1].low):
        if field.low > position:
            parts.append(const(0, field.low - position))
        parts.append(_fit(fixed.get(name, kind.fields.get(name, const(0, field.width))), field.width))
        position = field.low + field.width
    if position < 128:
        parts.append(const(0, 128 - position))
    fault = ila.states["fault"]
    present = {
        ila.inputs["insn"]: concat(*reversed(parts)),
        ila.inputs["command"]: const(0, 2),
        ila.states["finished"]: false,
        fault.load(const(0, 1)): const(0, 1),
        fault.load(const(1, 1)): const(0, 1),
    }
    return substitute(inline(ila.instructions[kind.instruction].decode), present)


def _fit(value: Expr, width: int) -> Expr:
    """A term extended or cut to ``width`` bits; the domain says that none are lost."""
    return value[width - 1 : 0] if value.width > width else value.zext(width)


def _claim(kind: Kind, access: Access, options: VtaOptions) -> tuple[str, Expr] | None:
    """What an access must satisfy, if instructions of another module may access the memory."""
    address = access.address.zext(48)

    def inside(low: Expr, size: Expr | int) -> Expr:
        return (low <= address) & (address < low + size)

    match access.memory:
        case "inp":
            return "the round's half of INP", inside(_half(PART, 1024 * 16, 48), 1024 * 16)
        case "wgt":
            return "the round's half of WGT", inside(_half(PART, 512 * 256, 48), 512 * 256)
        case "out" | "acc" if access.memory == options.store_source:
            return f"the block's half of {access.memory.upper()}", inside(_half(HALF, 1024 * 16, 48), 1024 * 16)
        case "dram" if kind.region is not None:
            name, rows, vectors, unit = kind.region
            low = BASES[name].zext(48) * unit
            return f"the region of {name} in DRAM", inside(low, _product(rows, vectors) * unit)
        case "acc" | "uop":
            return None  # only the compute module's
    raise Unsupported(f"{kind.name}: an access to {access.memory} that is not described")


def prove_footprints(discharger: Discharger, options: VtaOptions = HLS) -> None:
    """Asks, for every kind of instruction and every size, that its accesses stay where they should.

    Raises NotDischarged or NotLinearizable where that is not proved, and Unsupported where a kernel accesses a memory
    that is not foreseen.
    """
    questions = _Questions(discharger)
    _lemma(discharger)
    meaning = "some size is in the domain"
    discharger.ask("health", "sizes satisfiable", questions.base.hypotheses, meaning, expected="sat")
    for kind in kinds():
        touched = accesses(kind, options)
        done: set[tuple[tuple[str, Expr], Expr]] = set()
        for number, access in enumerate(touched.accesses, 1):
            claim = _claim(kind, access, options)
            nowhere = access.where.is_const and access.where.value == 0
            if claim is None or nowhere or (claim, access.where) in done:
                continue
            done.add((claim, access.where))
            what = "store" if access.store else "load"
            questions.follows(kind, f"{what} {number} in {claim[0]}", access.where, claim[1])
        for condition in touched.undefined:
            questions.follows(kind, "no iteration is undefined", true, ~condition)
        questions.follows(kind, "accepted when its tokens are there", true, accepted(kind, options))


class _Questions:
    """Asks what follows from the domain, and each condition of exactness once."""

    def __init__(self, discharger: Discharger) -> None:
        self.discharger = discharger
        self.base = IntegerEncoding(decide, "size")
        for _, condition in DOMAIN:
            self.base.assume(condition)
        self.seen: set[tuple[object, ...]] = set()
        self.kinds: dict[str, IntegerEncoding] = {}

    def of(self, kind: Kind) -> IntegerEncoding:
        """The domain with what is known of a kind's micro-op, and the lemma at its digits."""
        if kind.name not in self.kinds:
            encoding = self.kinds[kind.name] = self.base.fork("kind")
            if kind.known is not None:
                encoding.assume(kind.known)
            for instance in kind.radix:
                encoding.assume(_mixed_radix(*instance))
        return self.kinds[kind.name]

    def follows(self, kind: Kind, name: str, where: Expr, goal: Expr) -> None:
        """Asks that ``goal`` holds for every size and iteration in which ``where`` does."""
        encoding = self.of(kind).fork("at")
        encoding.assume(where)
        term = encoding.term(goal)
        new: dict[tuple[FNode, ...], list[FNode]] = {}
        for assumed, condition in encoding.fits:
            # one name may have another range in another kind
            key = (kind.name, assumed, condition, encoding.meaning(condition))
            if key not in self.seen:
                self.seen.add(key)
                new.setdefault(assumed, []).append(condition)
        for number, (assumed, conditions) in enumerate(new.items(), 1):
            title, meaning = (
                f"{kind.name}: {name} ({number})",
                "results fit their bit widths, so integers are exact here",
            )
            everything = [*encoding.definitions, *assumed]
            self.discharger.follows("no overflow", title, everything, smt.And(conditions), meaning)
        meaning = f"{kind.name}: for every size and iteration"
        self.discharger.follows("footprints", f"{kind.name}: {name}", encoding.hypotheses, term, meaning)


def _mixed_radix(high: Expr, highs: Expr, low: Expr, lows: Expr) -> Expr:
    """Two digits below their radices give a number below the product of these: a lemma, at four terms."""
    digit, radix, rest, below = (term.zext(48) for term in (high, highs, low, lows))
    return ((digit < radix) & (rest < below)).implies(digit * below + rest < radix * below)


def _lemma(discharger: Discharger) -> None:
    high, highs, low, lows = (smt.Symbol(n, INT) for n in ("high", "highs", "low", "lows"))
    number = smt.Plus(smt.Times(high, lows), low)
    digits = [smt.GE(high, smt.Int(0)), smt.LT(high, highs), smt.GE(low, smt.Int(0)), smt.LT(low, lows)]
    meaning = "two digits below their radices give a number below the product of these"
    discharger.ask("argument", "mixed radix", [*digits, smt.Not(smt.LT(number, smt.Times(highs, lows)))], meaning)


def shared_memories(options: VtaOptions = HLS) -> dict[tuple[str, str], list[str]]:
    """For kinds of instructions of different modules, the memories in which they could meet by their texts."""
    shared = {}
    touched = [(kind, accesses(kind, options)) for kind in kinds()]
    for i, (left, a) in enumerate(touched):
        for right, b in touched[i + 1 :]:
            if left.unit != right.unit:
                names = {
                    x.memory for x in a.accesses for y in b.accesses if x.memory == y.memory and (x.store or y.store)
                }
                shared[left.name, right.name] = sorted(names)
    return shared
