"""The static check of accumulators that are read soon after they were written.

In a pipelined design an iteration of GEMM or ALU reads its accumulators before the results of the last few have
arrived (``back_to_back`` in :mod:`~accel_models.vta.options`).  A program in which no iteration reads what one of the
last ``latency`` iterations of its instruction has written means the same in every such reading, whatever the latency up
to that one.

Whether iteration (y, x, u) meets an earlier one depends on the difference of their indices, and that only on u and on
which of the counters turned over in between.  So it suffices to look at y and x up to the latency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from accel_models.mmio_program import ProgramError
from accel_models.vta.isa import ENCODINGS, Alu, Gemm, Loops, MemoryId, Uop
from accel_models.vta.options import HLS, VtaOptions
from accel_models.vta.scratchpads import SCRATCHPADS
from accel_models.vta.transfers import scratchpad

from .footprint import known_uops
from .hazards import Problem
from .schedule import decode_program, describe

DEPTH = SCRATCHPADS[MemoryId.ACC].depth
Iteration = tuple[int, int, int]  # y, x, and the micro-op's number


def check_revisits(
    words: Sequence[int],
    dram: Iterable[tuple[int, bytes]] = (),
    options: VtaOptions = HLS,
    *,
    latency: int = 4,
) -> list[Problem]:
    """The instructions in which an iteration reads what one of the last ``latency`` iterations has written.

    ``dram`` is what DRAM holds at the start, with the micro-ops.  Where these are not known, as a STORE of the same
    program may have written them, that is a problem, too.
    """
    try:
        instructions = decode_program(words, ENCODINGS[options.encoding])
    except ProgramError as error:
        return [Problem("program", str(error))]
    problems = []
    for number, (instruction, uops) in enumerate(
        zip(instructions, known_uops(instructions, dram, options), strict=True), 1
    ):
        if not isinstance(instruction, Loops):
            continue
        what = describe(instructions, number)
        try:
            revisit = first_revisit(instruction, uops, options, latency)
        except LookupError:
            message = f"{what} uses micro-ops that a STORE of the program may have written; load others"
            problems.append(Problem("revisit", message, number, number))
            continue
        if revisit is not None:
            reading, writing, element = revisit
            message = (
                f"{what} reads accumulator {element} in iteration {_text(reading)}, which iteration {_text(writing)} "
                "has written shortly before; let more iterations pass between them, or split the instruction"
            )
            problems.append(Problem("revisit", message, number, number))
    return problems


def first_revisit(
    loops: Loops, uops: Mapping[int, Uop | None], options: VtaOptions, latency: int
) -> tuple[Iteration, Iteration, int] | None:
    """The first iteration that reads what one of the last ``latency`` has written, that one, and the accumulator.

    ``uops`` are those that are loaded, by number; others are 0, and None is unknown.  Raises LookupError where an
    unknown one is used.
    """
    once = options.zero_iterations == "do_while"
    outer, inner = (max(n, 1) if once else n for n in (loops.iter_out, loops.iter_in))
    end = max(loops.uop_end, loops.uop_bgn + 1) if once else loops.uop_end
    depth = scratchpad(MemoryId.UOP, options).depth
    used: list[Uop] = []
    for number in range(loops.uop_bgn, end):
        uop = uops.get(number % depth, Uop())
        if uop is None:
            raise LookupError(number)
        used.append(uop)
    reads = _reads(loops, options)
    count = len(used)
    if not count or not reads:
        return None

    def element(name: str, at: Iteration) -> int:
        y, x, u = at
        factors = (getattr(loops, f"{name}_factor_{side}") for side in ("out", "in"))
        return int(getattr(used[u], name) + sum(n * f for n, f in zip((y, x), factors, strict=True))) % DEPTH

    for y in range(min(outer, latency + 1)):
        for x in range(min(inner, latency + 1)):
            for u in range(count):
                number = (y * inner + x) * count + u
                for earlier in range(number - 1, max(number - latency, 0) - 1, -1):
                    rest, before_u = divmod(earlier, count)
                    before = (*divmod(rest, inner), before_u)
                    written = element("dst", before)
                    if any(element(name, (y, x, u)) == written for name in reads):
                        first = loops.uop_bgn
                        return (y, x, first + u), (before[0], before[1], first + before_u), written
    return None


def _reads(loops: Loops, options: VtaOptions) -> tuple[str, ...]:
    """Which indices of a micro-op select accumulators whose contents matter."""
    outputs = options.store_source == "out"
    match loops:
        case Gemm(reset_reg=True) if not (outputs and options.gemm_reset == "zero_out_dot"):
            return ()
        case Gemm():
            return ("dst",)
        case Alu(use_imm=True):
            return ("src",) if options.immediate_operand == "source" else ("dst",)
        case _:
            return ("dst", "src")


def _text(at: Iteration) -> str:
    return f"(y={at[0]}, x={at[1]}, micro-op {at[2]})"
