"""Where the published ILA of FlexASR departs from the hardware source: smallest programs that show it.

A search draws configurations and contents of the large buffer, runs each on the interpreter in both readings and
compares the whole buffer.  The result is written as a program file that reads the vectors which differ; this
program is then run again, from its text, on new machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from hypothesis import strategies as st

from accel_models.flexasr.driver import program_file, setup_commands
from accel_models.flexasr.layout import LANES, LARGE_BASE, PE_COUNT, Region, Start, register_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from accel_models.flexasr.program import PORT, parse_program, run
from accel_models.flexasr.units.gb_control import Mode
from accel_models.mmio_program import ProgramCommand, ProgramError
from ila_lang import Machine
from reports.outcomes import counted

from .finding import Finding, NotFound, require, table
from .search import simplest

RTL = FlexAsrOptions()
_BUFFER = "gb_core_large_buffer"


@dataclass(frozen=True)
class Setup:
    """A start of a unit: configuration registers, and codes in lane 0 of vectors of the large buffer."""

    start: int
    registers: Mapping[str, int]
    codes: Mapping[int, int]
    weights: Mapping[int, int]

    def commands(self) -> list[Mapping[str, int]]:
        """The writes at the port, the start last."""
        memories = {
            _BUFFER: {LANES * vector: code for vector, code in self.codes.items()},
            "pe_core_weight_buffer": dict(self.weights),
        }
        return [
            *setup_commands(self.registers, memories),
            PORT.inputs(ProgramCommand("W", register_address(Region.START, self.start), 1)),
        ]


@cache
def _machine(options: FlexAsrOptions) -> Machine:
    return Machine(flexasr(options))


def final_buffer(setup: Setup, options: FlexAsrOptions) -> dict[int, int]:
    """The large buffer after the start, by vector, without zeros; the machine was reset before."""
    machine = _machine(options)
    for memory in machine.memories.values():
        memory.clear()
    machine.values.update({name: machine.ila.inits.get(name, 0) for name in machine.values})
    for command in setup.commands():
        machine.step(command)
    vectors: dict[int, int] = {}
    for address, code in machine.memories[_BUFFER].items():
        if code:
            vectors[address // LANES] = vectors.get(address // LANES, 0) | code << 8 * (address % LANES)
    return vectors


def differing(setup: Setup, other: FlexAsrOptions) -> list[int]:
    """The vectors that differ after the start, in the hardware reading and in another one."""
    left, right = final_buffer(setup, RTL), final_buffer(setup, other)
    return sorted(v for v in left.keys() | right.keys() if left.get(v, 0) != right.get(v, 0))


def smallest(
    within: Callable[[int], st.SearchStrategy[Setup]], size: str, sizes: range, other: FlexAsrOptions
) -> Setup:
    """A shrunk setup after which the hardware reading and another one leave different buffers.

    ``within`` gives the setups in which the register ``size`` has at most the given value; ``sizes`` are its values.
    Shrinking changes one thing at a time, and a smaller size may need codes in other places: so a smaller one is looked
    for again until none is found.  Raises NotFound where there is no setup at all.
    """
    setup = _find(within(sizes[-1]), other, EXAMPLES)
    if setup is None:
        raise NotFound(f"no program among {EXAMPLES} tells the readings apart")
    while (limit := setup.registers[size]) > sizes[0]:
        smaller = _find(within(limit - sizes.step), other, SMALLER)
        if smaller is None:
            break
        setup = smaller
    return setup


EXAMPLES, SMALLER = 3000, 200
"""Examples among which a difference is looked for, and one of a smaller size, or between readings that should agree."""


def _find(strategy: st.SearchStrategy[Setup], other: FlexAsrOptions, examples: int) -> Setup | None:
    return simplest(strategy, lambda setup: bool(differing(setup, other)), examples=examples)


def program_text(setup: Setup, other: FlexAsrOptions) -> str:
    """The program file of a setup, which reads the vectors that differ in the end."""
    reads = (ProgramCommand("R", LARGE_BASE + LANES * vector) for vector in differing(setup, other))
    return program_file([*setup.commands(), *map(PORT.inputs, reads)])


def replayed(setup: Setup, other: FlexAsrOptions) -> list[tuple[int, int, int]]:
    """What the program file reads on new machines: (address, hardware's word, the other one), at least one differs.

    It reads the same with all departures of the recorded simulator as with the one of ``other``.
    """
    program = parse_program(program_text(setup, other))
    runs = [run(program, Machine(flexasr(options))) for options in (RTL, other, RECORDED_SIMULATOR)]
    words = [(address, left, right) for (address, left), (_, right) in zip(*runs[:2], strict=True)]
    require(runs[1] == runs[2], "the recorded simulator's other departures change what the program found reads")
    require(any(left != right for _, left, right in words), "the program found does not replay on new machines")
    return words


def _evidence(setup: Setup, other: FlexAsrOptions, reading: str) -> tuple[str, ...]:
    lines = program_text(setup, other).strip()
    words = "\n".join(
        f"0x{address:08x}   {left:#06x}   {right:#06x}" for address, left, right in replayed(setup, other)
    )
    return (
        "The program, for `ilaverify simulate flexasr FILE`, also with `--reading recorded`:",
        f"```json\n{lines}\n```",
        f"What it reads in the hardware reading, and in that of the published ILA (`{reading}`):",
        f"```text\naddress      hardware published\n{words}\n```",
    )


def _finding(name: str, title: str, claim: str, drawn: str, more: str, then: str = "", **parts: Any) -> Finding:
    """A difference of the two readings, with what all of them have in common."""
    return Finding(
        name=name,
        title=title,
        claim=claim,
        method=f"Hypothesis draws {drawn}, runs both readings on the interpreter, compares the large buffer, and "
        f"shrinks.{then}",
        status="REFUTED: the program was run again from its text on new interpreters",
        limits="both sides are readings of this model (`FlexAsrOptions`), taken from published sources; neither "
        f"hardware nor the published simulator ran here. {more}",
        **parts,
    )


def _codes(vectors: int) -> st.SearchStrategy[dict[int, int]]:
    return st.dictionaries(st.integers(0, vectors), st.integers(1, 127), min_size=1, max_size=3)


# -- the four differences ---------------------------------------------------------------------------------


_TIMESTEPS = "gb_layer_reduce_num_timestep_1"


def even(most: int) -> st.SearchStrategy[int]:
    """Even numbers from 2 on."""
    return st.integers(1, most // 2).map(lambda n: 2 * n)


def reductions(
    timesteps: st.SearchStrategy[int], vectors: st.SearchStrategy[tuple[int, int]]
) -> st.SearchStrategy[Setup]:
    """LayerReduce over ``timesteps`` timesteps, with (the unit's, the manager's) number of vectors."""

    def setup(count: int, sizes: tuple[int, int], codes: dict[int, int]) -> Setup:
        registers = {
            "gb_layer_reduce_is_valid": 1,
            "gb_layer_reduce_num_vector_1": sizes[0],
            _TIMESTEPS: count,
            "gb_core_mem_mngr_large_num_vector_0": sizes[1],
        }
        return Setup(Start.LAYER_REDUCE, registers, codes, {})

    return st.builds(setup, timesteps, vectors, _codes(47))


@cache
def stride() -> Finding:
    """Difference 1: which register holds the distance between groups of 16 timesteps."""
    other = FlexAsrOptions(reduce_stride="unit")
    sizes = st.tuples(st.integers(1, 2), st.integers(1, 2))
    setup = smallest(lambda most: reductions(even(most), sizes), _TIMESTEPS, range(2, 25, 2), other)
    registers = setup.registers
    count, unit = registers[_TIMESTEPS], registers["gb_layer_reduce_num_vector_1"]
    manager = registers["gb_core_mem_mngr_large_num_vector_0"]
    _agree(reductions(even(24), st.integers(1, 2).map(lambda n: (n, n))), other)
    return _finding(
        name="flexasr_stride",
        title="FlexASR: whose number of vectors is the stride",
        claim="LayerReduce leaves the same buffer whether it strides by the manager's num_vector or by its own",
        drawn="timesteps, both numbers of vectors and codes",
        counterexample=(
            f"{count} timesteps, num_vector {unit} in the unit and {manager} in the manager, {_count(setup)}"
        ),
        holds="no difference in 200 random programs that set both numbers alike, as published drivers do (no proof)",
        more="Up to 16 timesteps both strides give the same addresses. LayerNorm, ZeroPadding, GBControl and "
        "Attention have the same two readings.",
        evidence=_evidence(setup, other, 'reduce_stride="unit"'),
    )


@cache
def odd_timesteps() -> Finding:
    """Difference 2: what LayerReduce does with the last timestep of an odd number."""
    other = FlexAsrOptions(reduce_odd="recorded")
    one = st.just((1, 1))
    setup = smallest(lambda most: reductions(st.integers(2, most), one), _TIMESTEPS, range(2, 10), other)
    count = setup.registers[_TIMESTEPS]
    _agree(reductions(even(10), one), other)
    single = smallest(lambda _: reductions(st.just(1), one), _TIMESTEPS, range(1, 2), other)
    try:
        run(parse_program(program_text(single, other)), Machine(flexasr(other)))
    except ProgramError as error:
        hangs = str(error)
    else:
        raise NotFound("a single timestep ends in the published ILA, too")
    return _finding(
        name="flexasr_odd",
        title="FlexASR: an odd number of timesteps",
        claim="LayerReduce gives the same result in hardware and in the published ILA for every number of timesteps",
        drawn="2 to 9 timesteps and codes",
        then=" Then the same for 1 timestep.",
        counterexample=f"{count} timesteps, {_count(setup)}; and 1 timestep, which never ends in the published ILA",
        holds="no difference in 200 random programs with even numbers of timesteps (no proof)",
        more="Hardware's last pair reads a row beyond the matrix, so neither result is the pooling of an odd "
        "number of rows. The pooling mappings leave the last row out.",
        evidence=(
            *_evidence(setup, other, 'reduce_odd="recorded"'),
            "With 1 timestep the program for the published ILA ends with the message:",
            f"```text\n{hangs}\n```",
        ),
    )


def backward_layers(most: int) -> st.SearchStrategy[Setup]:
    """Backward passes of up to ``most`` timesteps."""
    return st.builds(_pass_setup, st.integers(1, most), _codes(11))


def _pass_setup(count: int, codes: dict[int, int], mode: int = Mode.BACKWARD) -> Setup:
    """A pass of a layer that copies lane 0: its only weight is 1.0, and all biases are 3."""
    registers = {
        "gb_control_is_valid": 1,
        "gb_control_mode": mode,
        "gb_control_memory_index_2": 1,
        "gb_control_num_timestep_1": count,
        "gb_core_mem_mngr_large_num_vector_1": PE_COUNT,
        "gb_core_mem_mngr_large_base_large_1": LANES,
    }
    for pe in range(PE_COUNT):
        registers |= {
            f"pe{pe}_rnn_layer_sizing_is_valid": 1,
            f"pe{pe}_act_mngr_is_valid": 1,
            f"pe{pe}_act_mngr_adpfloat_bias": 3,
            f"pe{pe}_act_mngr_num_inst": 2,
            f"pe{pe}_act_mngr_output_addr_base": pe,
            f"pe{pe}_act_vector_Inst0": 0x30,  # INPE
            f"pe{pe}_act_vector_Inst1": 0x40,  # OUTGB
            f"pe{pe}_mem_mngr_first_adpfloat_bias_w": 3,
            f"pe{pe}_mem_mngr_first_adpfloat_bias_i": 3,
        }
    return Setup(Start.CONTROL, registers, codes, {0: 0x70})


@cache
def backward() -> Finding:
    """Difference 3: the timesteps that the passes of a bidirectional layer read and write."""
    other = FlexAsrOptions(control_passes="recorded")
    setup = smallest(backward_layers, "gb_control_num_timestep_1", range(1, 5), other)
    count = setup.registers["gb_control_num_timestep_1"]
    return _finding(
        name="flexasr_backward",
        title="FlexASR: the timesteps of a bidirectional layer",
        claim=(
            "a backward pass of GBControl (mode 2) reads and writes the same timesteps in hardware and the published "
            "ILA"
        ),
        drawn="1 to 4 timesteps and codes for a layer that copies its input",
        counterexample=f"{counted(count, 'timestep')}, {_count(setup)}",
        holds=(
            "nothing for mode 2: of N timesteps, hardware writes 2 (N - t) - 1 in step t from input N - 1 - t, the "
            "published ILA writes 2 (N - t) + 1 from the input of that number. In mode 1, the forward pass, both write "
            "2 t, hardware from input t, the published ILA from input 2 t (checked for N = 1 .. 4, tables below)"
        ),
        more="This option does not change unidirectional layers.",
        evidence=(
            *_evidence(setup, other, 'control_passes="recorded"'),
            "Timesteps of the result of a backward pass, each with the timestep of the input that it was made from:",
            _passes(
                other,
                Mode.BACKWARD,
                lambda n: {2 * (n - t) - 1: n - 1 - t for t in range(n)},
                lambda n: {2 * (n - t) + 1: 2 * (n - t) + 1 for t in range(n)},
            ),
            "The same of a forward pass:",
            _passes(
                other, Mode.FORWARD, lambda n: {2 * t: t for t in range(n)}, lambda n: {2 * t: 2 * t for t in range(n)}
            ),
        ),
    )


def copied(count: int, mode: int, options: FlexAsrOptions) -> dict[int, int]:
    """For each timestep that a pass over ``count`` timesteps writes, the input's timestep that it shows."""
    setup = _pass_setup(count, {row: row + 1 for row in range(12)}, mode)
    buffer = final_buffer(setup, options)
    return {vector - LANES: (word & 0xFF) - 1 for vector, word in sorted(buffer.items()) if vector >= LANES}


Pass: TypeAlias = Callable[[int], dict[int, int]]
"""For each timestep that a pass over so many timesteps writes, the input's timestep."""


def _passes(other: FlexAsrOptions, mode: int, hardware: Pass, published: Pass) -> str:
    """The table of passes over 1 .. 4 timesteps; raises NotFound where they are not as they are said to be."""
    rows: list[list[object]] = []
    for count in range(1, 5):
        shown = [copied(count, mode, reading) for reading in (RTL, other)]
        require(shown == [hardware(count), published(count)], f"the timesteps of {count} in mode {mode}")
        rows.append([count, *(", ".join(f"{to} from {of}" for to, of in each.items()) for each in shown)])
    return table(["N", "hardware", "published"], rows)


def paddings(most: int) -> st.SearchStrategy[Setup]:
    """ZeroPadding of up to ``most`` vectors per timestep."""

    def setup(size: int, first: int, count: int, codes: dict[int, int]) -> Setup:
        registers = {
            "gb_zero_padding_is_valid": 1,
            "gb_zero_padding_num_vector_1": size,
            "gb_zero_padding_num_timestep_1": first,
            "gb_zero_padding_num_timestep_2": first + count,
            "gb_core_mem_mngr_large_num_vector_0": size,
        }
        return Setup(Start.ZERO_PADDING, registers, codes, {})

    return st.builds(setup, st.integers(1, most), st.integers(0, 3), st.integers(1, 3), _codes(79))


@cache
def padding_vectors() -> Finding:
    """Difference 4: where the vectors of a timestep lie for ZeroPadding."""
    other = FlexAsrOptions(padding_vectors="accumulated")
    setup = smallest(paddings, "gb_zero_padding_num_vector_1", range(1, 6), other)
    registers = setup.registers
    first, end = (registers[f"gb_zero_padding_num_timestep_{i}"] for i in (1, 2))
    _agree(paddings(2), other)
    return _finding(
        name="flexasr_padding",
        title="FlexASR: ZeroPadding from the third vector on",
        claim="ZeroPadding clears the same vectors in hardware and in the published ILA",
        drawn="1 to 5 vectors, timesteps and codes",
        counterexample=(
            f"{registers['gb_zero_padding_num_vector_1']} vectors, timesteps {first} .. {end - 1}, {_count(setup)}"
        ),
        holds="no difference in 200 random programs with one or two vectors per timestep (no proof)",
        more="The published ILA also takes 0 for the base of every matrix (`padding_base`), which is a "
        "difference of its own and does not play a part here.",
        evidence=_evidence(setup, other, 'padding_vectors="accumulated"'),
    )


def _agree(strategy: st.SearchStrategy[Setup], other: FlexAsrOptions) -> None:
    """Raises NotFound where a program of a strategy distinguishes the readings."""
    setup = _find(strategy, other, SMALLER)
    require(setup is None, f"readings differ where they should agree: {setup}")


def _count(setup: Setup) -> str:
    """The codes of a setup in words."""
    return ", ".join(f"code 0x{code:02x} in vector {vector}" for vector, code in sorted(setup.codes.items()))
