"""Programs: a fragment at concrete sizes is what the interpreter issues, command by command."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ila_lang import (
    BOOL,
    Expr,
    Fragment,
    Ila,
    Kernel,
    Machine,
    Memory,
    Simulator,
    bv,
    concat,
    const,
    false,
    ite,
    mem,
    run_fragment,
    true,
    var,
)
from ila_lang.mapping import TensorMapping
from ila_lang.streams.programs import InstanceError, Program
from ilaverify.catalogue import find_mapping, mappings

Tensors = dict[str, NDArray[Any]]
SIMULATORS: dict[Ila, Simulator] = {}


def random_tensors(program: Program, seed: int) -> Tensors:
    rng = np.random.default_rng(seed)
    widths = {name: program.fragment.tensors[name].sort.data_width for name in program.reads}  # type: ignore[union-attr]
    return {
        name: rng.integers(0, 1 << widths[name], count, np.uint64).astype(f"u{-(-widths[name] // 8)}")
        for name, count in program.reads.items()
    }


def interpreted(fragment: Fragment, sizes: dict[str, int], tensors: Tensors) -> tuple[list[dict[str, int]], Any]:
    """The commands that the scalar interpreter issues, all inputs given, and the host tensors that it leaves."""
    commands: list[dict[str, int]] = []
    machine = Machine(fragment.ila)
    machine.values.update(fragment.idle)
    host = {name: Memory(0, dict(enumerate(tensors.get(name, np.zeros(0)).tolist()))) for name in fragment.tensors}
    run_fragment(
        fragment,
        sizes,
        host,
        machine,
        lambda inputs, _: commands.append({name: int(inputs.get(name, 0)) for name in fragment.ila.inputs}),
    )
    return commands, host


def same_natively(fragment: Fragment, sizes: dict[str, int], tensors: Tensors, host: Any, simulator: Simulator) -> None:
    """Runs the fragment as native code on arrays that are just long enough; ``host`` is what is expected of them."""
    simulator.values.update(fragment.idle)
    arrays: Tensors = {}
    for name, memory in host.items():
        given = tensors.get(name, np.zeros(0, np.uint8))
        arrays[name] = np.zeros(max([len(given), *(address + 1 for address in memory)]), np.int64)
        arrays[name][: len(given)] = given
    simulator.run_fragment(fragment, sizes, arrays)
    for name, memory in host.items():
        assert arrays[name].tolist() == [memory[address] for address in range(len(arrays[name]))]


def computed_by_ir(mapping: TensorMapping, sizes: dict[str, int], tensors: Tensors) -> list[int]:
    machine = Machine(mapping.ir.ila)
    for device, ir in mapping.inputs:
        if device in tensors:  # else the program reads nothing of it at these sizes
            machine.memories[ir].update(enumerate(tensors[device].tolist()))
    run_fragment(mapping.ir, sizes, {}, machine)
    rows, columns = mapping.output_extents(sizes)
    return [machine.memories[mapping.output[1]][i] for i in range(rows * columns)]


def same_stream(program: Program, tensors: Tensors, commands: list[dict[str, int]], host: Any) -> None:
    """The commands of a program, recorded in both ways, and its extents, beside what the interpreter has done."""
    with pytest.MonkeyPatch.context() as patch:
        for natively in (True, False):
            if not natively:
                patch.setattr(Simulator, "sent_natively", lambda *_: None)
            stream = program.stream(tensors)
            assert len(program) == len(stream) == len(commands)
            assert [stream.command(number) for number in range(len(stream))] == commands
            assert stream.columns.keys() == program.fragment.ila.inputs.keys()
    assert {name: extent for name, extent in program.writes.items() if name not in program.reads} == {
        name: max(memory) + 1 for name, memory in host.items() if memory and name not in program.reads
    }


def same_on_samples(program: Program, device: Simulator, outputs: Tensors, tensors: Tensors, others: Tensors) -> None:
    """Samples one after the other are as each alone; one tensor is that of all samples."""
    shared = min(tensors, default="")
    others = {name: tensors[name] if name == shared else other for name, other in others.items()}
    samples = {name: np.stack([tensor, others[name], tensor]) for name, tensor in tensors.items()}
    together = program.run_samples(device, {n: t[:1] if n == shared else t for n, t in samples.items()})
    for name, words in together.items():
        for sample, alone in zip(words, (outputs, program.run(device, others), outputs), strict=False):
            assert sample.tolist() == alone[name].tolist()


def check(mapping: TensorMapping, sizes: dict[str, int], seed: int) -> None:
    program = Program.of(mapping.device, sizes)
    tensors = random_tensors(program, seed)
    commands, host = interpreted(mapping.device, sizes, tensors)
    if sends_what_it_read(mapping.name):
        with pytest.raises(InstanceError, match="must be known before the program runs"):
            program.stream(tensors)
    else:
        same_stream(program, tensors, commands, host)
    # one device for all programs: they start from whatever the one before has left
    true_claim = not mappings()[mapping.name].false
    simulator = Simulator(mapping.device.ila)
    if true_claim:
        simulator = SIMULATORS.setdefault(mapping.device.ila, simulator)
    outputs = program.run(simulator, tensors)
    same_on_samples(program, simulator, outputs, tensors, random_tensors(program, seed + 1))
    same_natively(mapping.device, sizes, tensors, host, Simulator(mapping.device.ila))
    written = mapping.output[0]
    assert outputs.keys() == program.writes.keys()
    assert outputs[written].tolist() == [host[written][i] for i in range(len(outputs[written]))]
    rows, columns = mapping.output_extents(sizes)
    result = outputs[written].tolist()[: rows * columns]
    if written in dict(mapping.inputs) and written not in tensors:  # what is not written there stays: zeros, in a run
        tensors[written] = np.zeros(rows * columns, np.int64)
        result += [0] * (rows * columns - len(result))
    assert len(result) == rows * columns
    if true_claim:
        assert result == computed_by_ir(mapping, sizes, tensors)


def shapes_of(name: str) -> list[tuple[int, ...]]:
    mapping = find_mapping(name)
    odd = int(name.endswith("_odd"))
    return list(mapping.sample_shapes) or [(rows + odd, columns) for rows, columns in ((2, 16), (4, 48), (18, 32))]


QUICK = (
    ("flexasr_maxpool", (4, 48)),
    ("flexasr_linear_relu", (3, 32, 64)),
    ("vta_gemm", (4, 64, 64, 2, 32, 32)),
    ("vta_bias_add", (3, 32)),
    ("hlscnn_conv2d", (3, 9, 5, 4, 2, 3, 2, 1)),
)


@pytest.mark.parametrize(("name", "shape"), QUICK)
def test_a_program_is_the_fragment_of_a_mapping(name: str, shape: tuple[int, ...]) -> None:
    mapping = find_mapping(name)
    check(mapping, mapping.sizes_for(shape), 1)


def sends_what_it_read(name: str) -> bool:
    """Whether a mapping's program stores on the device again what it has read from it."""
    return "reload" in name


@pytest.mark.parametrize(
    "name", [name for name, claim in mappings().items() if claim.shape is None and sends_what_it_read(name)]
)
def test_programs_that_send_what_they_read(name: str) -> None:
    mapping = find_mapping(name)
    check(mapping, mapping.sizes_for(shapes_of(name)[0]), 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, claim in mappings().items() if claim.shape is None])
def test_programs_are_the_fragments_of_all_mappings(name: str) -> None:
    mapping = find_mapping(name)
    shapes = shapes_of(name)
    sampled = mapping.sample_sizes(Random(name))  # other parameters than the shape varied
    if mapping.recurrent:
        shapes, sampled = shapes[:3], sampled[1:3]
    for seed, sizes in enumerate([*map(mapping.sizes_for, shapes), *sampled]):
        check(mapping, sizes, seed)


# -- a small device, and fragments of all forms ----------------------------------------------------------------


@cache
def echo() -> Ila:
    """A memory of 256 words of 128 bits, written and read one by one; a read adds 1 to its lowest byte."""
    ila = Ila("echo")
    write, address, data = ila.input("write", BOOL), ila.input("address", 8), ila.input("data", 128)
    ila.input("tag", 24)
    memory, out = ila.memory("words", 8, 128), ila.state("out", bv(128), 0)
    ila.state("busy", bv(1), 0)
    ila.state("count", bv(8), 0)
    ila.instruction("put").set_decode(write).update(memory, memory.store(address, data))
    word = memory.load(address)
    ila.instruction("get").set_decode(~write).update(out, concat(word[127:8], word[7:0] + 1))
    return ila


N, X, Y = var("n", bv(8)), var("x", mem(16, 8)), var("y", mem(16, 8))
WIDE, SHORT = var("wide", mem(16, 32)), var("short", mem(16, 16))


def fragment(write: Callable[[Kernel], None], **idle: int) -> Fragment:
    kernel = Kernel("toy")
    write(kernel)
    tensors = {t.name: t for t in (X, Y, WIDE, SHORT)}
    return Fragment("toy", echo(), {"n": N}, tensors, kernel, idle=idle)


def put(k: Kernel, address: Expr, data: Expr, note: str = "put", **more: Expr) -> None:
    k.command(note, write=true, address=address, data=data, **more)


def get(k: Kernel, address: Expr) -> Expr:
    k.command("get", write=false, address=address)
    return echo().states["out"]


def same_as_interpreter(toy: Fragment, sizes: dict[str, int], seed: int = 0) -> Program:
    """The program of a fragment, compared with the interpreter on random tensors."""
    program = Program.of(toy, sizes)
    tensors = random_tensors(program, seed)
    commands, host = interpreted(toy, sizes, tensors)
    same_stream(program, tensors, commands, host)
    for device in (Simulator(toy.ila), Machine(toy.ila)):
        outputs = program.run(device, tensors)
        assert {name: codes.tolist() for name, codes in outputs.items()} == {
            name: [host[name][i] for i in range(program.writes[name])] for name in outputs
        }
    same_natively(toy, sizes, tensors, host, Simulator(toy.ila))
    return program


def test_ragged_loops_registers_and_conditions() -> None:
    def write(k: Kernel) -> None:
        with k.loop("i", N) as i:
            width = k.let("width", i + 1)
            with k.loop("j", width) as j:
                word = k.load("word", X, (i * 16 + j).zext(16))
                with k.when("odd", j[0] == 1):
                    put(k, i * 8 + j, concat(const(5, 64), word, i, j.zext(48)), tag=concat(i, word, j))
                put(k, i * 8 + j, concat(i.zext(120), ite(j < i, X.load(j.zext(16)), j)))
        with k.loop("none", N - N) as i:
            put(k, i, const(0, 128))
        with k.loop("read", N) as r:
            out = get(k, r * 9)
            k.store(Y, (N - 1 - r).zext(16), out[15:8])
            with k.when("first", r == 0):
                k.store(Y, N.zext(16), out[7:0])

    program = same_as_interpreter(fragment(write), {"n": 6})
    assert len(program) == 21 + 15 - 6 + 6
    assert (program.reads, program.writes) == ({"x": 86}, {"y": 7})


def test_the_last_store_to_an_element_counts() -> None:
    def write(k: Kernel) -> None:
        with k.loop("i", N) as i:
            put(k, i, concat(WIDE.load(i.zext(16)), const(1 << 63, 64), SHORT.load(i.zext(16)), const(7, 16)))
        with k.loop("again", const(3, 8)) as again, k.loop("r", N) as r:
            out = get(k, r + again)
            k.store(Y, r.zext(16), out[127:120])
            k.store(Y, (N - r - 1).zext(16), out[31:24])

    program = same_as_interpreter(fragment(write), {"n": 5})
    assert (program.reads, program.writes) == ({"wide": 5, "short": 5}, {"y": 5})


@pytest.mark.parametrize(
    ("memory", "place", "extent"),
    [
        (X, lambda i, lane: i * 16 + lane, 80),
        (X, lambda i, lane: i * 16 + 2 * lane, 95),
        (X, lambda i, lane: i * 16 + 15 - lane, 80),
        (WIDE, lambda i, lane: i * 3 + lane, 16),
        (SHORT, lambda i, lane: i * 3 + lane + lane // 7, 21),
    ],
)
def test_rows_of_elements_that_follow_each_other(memory: Expr, place: Callable[[Expr, int], Expr], extent: int) -> None:
    lanes = 16 if memory is X else 4 if memory is WIDE else 8

    def write(k: Kernel) -> None:
        with k.loop("i", N) as short:
            i = short.zext(16)
            put(k, short, concat(*(memory.load(place(i, lane)) for lane in reversed(range(lanes)))))
        with k.loop("r", N) as r:
            k.store(Y, r.zext(16), get(k, r)[7:0])

    program = same_as_interpreter(fragment(write), {"n": 5})
    assert program.reads == {memory.name: extent}


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1 << 32).map(Random))
def test_random_fragments(random: Random) -> None:
    """Loop nests whose commands are made of elements, numbers and choices, in random places."""
    names = count()

    def index(counters: list[Expr]) -> Expr:
        found = const(random.randrange(40), 16)
        for counter in counters:
            found = found + counter.zext(16) * random.randrange(5)
        return found

    def parts(counters: list[Expr], width: int, low: int) -> list[Expr]:
        """Terms from bit ``low`` on, the highest one first."""
        if low == width:
            return []
        widths = [w for w in (8, 16, 32) if low % w == 0 and low + w <= width]
        kind = random.randrange(5)
        if widths and kind < 3:
            size = random.choice(widths)
            memory = {8: X, 16: SHORT, 32: WIDE}[size]
            part = memory.load(index(counters))
            if kind == 0:
                number = random.choice(counters)[0] if counters else N[0]
                test, other = number == 1, memory.load(index(counters))
                part = ite(test, part, random.choice([other, const(random.getrandbits(size), size)]))
        else:
            size = min(random.choice([1, 3, 8, 24]), width - low)
            number = index(counters) * 0x2F + const(random.getrandbits(16), 16)
            part = number[size - 1 : 0] if size <= 16 else number.zext(size)
        return [*parts(counters, width, low + part.width), part]

    def block(k: Kernel, counters: list[Expr], depth: int) -> None:
        for _ in range(random.randint(1, 2)):
            if depth and random.random() < 0.7:
                limits = [const(random.randrange(1, 5), 8), N, *(c + random.randrange(2) for c in counters)]
                with k.loop(f"c{next(names)}", random.choice(limits)) as counter:
                    block(k, [*counters, counter], depth - 1)
            else:
                address = index(counters)[7:0]
                put(k, address, concat(*parts(counters, 128, 0)), tag=concat(*parts(counters, 24, 0)))

    def write(k: Kernel) -> None:
        block(k, [], 3)
        with k.loop("read", N + 1) as r:
            out = get(k, r)
            k.store(Y, r.zext(16), out[7:0])

    same_as_interpreter(fragment(write), {"n": random.randrange(1, 5)}, random.getrandbits(32))


def test_inputs_and_outputs_of_few_bits() -> None:
    """Elements in an input that is a number, and an output that is one; some commands one by one, others in bulk."""
    ila = Ila("narrow")
    keep, value, place = ila.input("keep", BOOL), ila.input("value", 24), ila.input("place", 4)
    memory, out = ila.memory("words", 4, 24), ila.state("out", bv(48), 0)
    ila.instruction("put").set_decode(keep).update(memory, memory.store(place, value))
    ila.instruction("get").set_decode(~keep).update(out, concat(memory.load(place), const(3, 24)))
    kernel = Kernel("toy")
    with kernel.loop("i", N) as i:
        word = concat(X.load(i.zext(16) + 1), SHORT.load(i.zext(16)))
        kernel.command("put", keep=true, value=word, place=i[3:0])
        kernel.command("get", keep=false, place=i[3:0])
        kernel.store(Y, i.zext(16), out[31:24])
    with kernel.loop("r", N) as r:
        kernel.command("get", keep=false, place=r[3:0])
        kernel.store(Y, (N + r).zext(16), out[47:40])
        kernel.store(SHORT, r.zext(16), out[15:0])
    toy = Fragment("toy", ila, {"n": N}, {t.name: t for t in (X, SHORT, Y)}, kernel)
    program = same_as_interpreter(toy, {"n": 9})
    assert (program.reads, program.writes) == ({"x": 10, "short": 9}, {"y": 18, "short": 9})
    stream = program.stream(random_tensors(program, 3))
    slow, values = Machine(ila), []
    for number in range(len(stream)):
        if "out" in slow.step(stream.command(number)).updates:
            values.append((number, slow.values["out"]))
    assert values == Simulator(ila).execute(stream, ["out"])["out"]
