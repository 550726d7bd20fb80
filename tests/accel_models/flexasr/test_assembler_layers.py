"""Assembled layers: recorded programs are assembled again from their tensors, limits, clustering, and speed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_models.flexasr import assembler as asm
from accel_models.flexasr.assembler.clusters import clustered_rows
from accel_models.flexasr.assembler.commands import READ, WAIT, WRITE
from accel_models.flexasr.assembler.tiling import bias_rows, weight_rows
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.quantise import Quantised
from tests.accel_models.flexasr.port import recorded_programs

# Those of other kinds have another AdaptivFloat bias in each PE, run backward, or overflow on purpose.
KINDS = re.compile(r"linear_\d+|linear_act_\d+|rnn_.*|gru_.*|lstm_.*")
PROGRAMS = {p["id"]: p for unit in ("linear", "recurrent") for p in recorded_programs(unit) if KINDS.fullmatch(p["id"])}
START = 0x33000010


class Decoded:
    """The tensors that a program writes, found cell by cell from the description of the hardware."""

    def __init__(self, writes: dict[int, int]) -> None:
        self.writes = writes
        core, control, large = writes[0x34400010], writes[0x33700010], writes[0x33400010]
        self.clustered, self.biased = bits(core, 16), bits(core, 24)
        self.managers, self.in_pe = bits(core, 32, 4), bits(core, 40, 8)
        self.inputs, self.outputs = bits(control, 48, 8), bits(control, 56, 8)
        self.timesteps, self.output_base = bits(control, 64, 16), bits(large, 48, 16)
        self.gates = self.in_pe // (self.outputs // 4)
        self.output_bias = bits(writes[0x34800010], 16, 3)

    def manager(self, m: int, low: int, width: int) -> int:
        return bits(self.writes[0x34400020 + 0x20 * m], low, width)

    def byte(self, base: int, vector: int, lane: int) -> int:
        return self.writes[base + 16 * vector] >> 8 * lane & 255

    def x(self) -> Quantised:
        rows = [
            [self.byte(0x33500000, t % 16 + (t // 16 * self.inputs + v) * 16, lane) for v in range(self.inputs)
             for lane in range(16)]
            for t in range(self.timesteps)
        ]  # fmt: skip
        return Quantised(np.array(rows, np.uint8), self.manager(0, 24, 3))

    def weights(self, m: int) -> Quantised:
        """[gates * outputs, inputs] in the order of the core's gates."""
        inputs, base = self.manager(m, 32, 8), self.manager(m, 48, 16)
        w = np.zeros((self.gates, 16 * self.outputs, 16 * inputs), np.uint8)
        for gate, row, column in np.ndindex(w.shape):
            pe, vector = divmod(row // 16, self.outputs // 4)
            tile = (vector * self.gates + gate) * inputs + column // 16
            memory, r, c = 0x34500000 + (pe << 24), row % 16, column % 16
            if self.clustered:
                cell = self.byte(memory, base + tile * 8 + r // 2, r % 2 * 8 + c // 2)
                table = self.writes[0x34400030 + 0x20 * m + (pe << 24)]
                w[gate, row, column] = table >> 8 * (cell >> 4 * (c % 2) & 15) & 255
            else:
                w[gate, row, column] = self.byte(memory, base + tile * 16 + r, c)
        return Quantised(w.reshape(-1, 16 * inputs), self.manager(m, 8, 3))

    def biases(self, m: int) -> Quantised | None:
        if not self.biased:
            return None
        b = np.zeros((self.gates, 16 * self.outputs), np.uint8)
        for gate, row in np.ndindex(b.shape):
            pe, vector = divmod(row // 16, self.outputs // 4)
            memory = 0x34600000 + (pe << 24)
            b[gate, row] = self.byte(memory, self.manager(m, 64, 16) + vector * self.gates + gate, row % 16)
        return Quantised(b.reshape(-1), self.manager(m, 16, 3))

    def hidden(self) -> Quantised:
        base = self.manager(1, 80, 16)
        row = [self.byte(0x34600000, base + v, lane) for v in range(self.outputs) for lane in range(16)]
        return Quantised(np.array(row, np.uint8), self.output_bias)

    def kept(self) -> Quantised:
        row = [self.byte(0x34900000 + (v // (self.outputs // 4) << 24), v % (self.outputs // 4), lane)
               for v in range(self.outputs) for lane in range(16)]  # fmt: skip
        return Quantised(np.array(row, np.uint8), self.output_bias)


def bits(word: int, low: int, width: int = 1) -> int:
    return word >> low & ((1 << width) - 1)


def split(program: dict[str, Any]) -> tuple[dict[int, int], list[int]]:
    """The data that a recorded program writes, by address, without the start, and the addresses it reads."""
    parts = [(c[0], int(c[1:9], 16), int(c[10:] or "0", 16)) for c in program["cmds"]]
    writes = {address: data for mode, address, data in parts if mode == "W" and address != START}
    return writes, [address for mode, address, _ in parts if mode == "R"]


def reassemble(program: dict[str, Any]) -> asm.Assembled:
    d = Decoded(split(program)[0])
    common: dict[str, Any] = {"output_base": d.output_base, "clustered": bool(d.clustered)}
    kind = program["id"].split("_")[0]
    if kind == "linear":
        activation = {0x30: None, 0xC0: "relu", 0xA0: "sigmoid"}
        second = d.writes[0x34800020] >> 8 & 255
        return asm.linear(
            d.x(), d.weights(0), d.biases(0), output_bias=d.output_bias, activation=activation.get(second), **common
        )
    weights = (d.weights(0), d.weights(1), d.biases(0), d.biases(1))
    if kind == "rnn":
        return asm.rnn(d.x(), *weights, state_bias=d.output_bias, initial=d.hidden(), **common)
    if kind == "gru":
        return asm.gru(d.x(), *weights, state_bias=d.output_bias, initial=d.hidden(), gates="rnz", **common)
    return asm.lstm(d.x(), *weights, state_bias=d.output_bias, initial=(d.hidden(), d.kept()), gates="igfo", **common)


def choices(name: str, writes: dict[int, int]) -> set[int]:
    """Addresses whose contents are another choice, or data that no layer has or uses, in a recorded program."""
    d, free = Decoded(writes), set()

    def add(region: int, *vectors: int, pes: range = range(4)) -> None:
        free.update(0x34000000 + (pe << 24) | region << 20 | v << 4 for pe in pes for v in vectors)

    if d.clustered:  # the order of the tables, and thereby the indices
        add(4, 3, 5)
        add(5, *range(d.in_pe * (d.inputs + d.outputs) * 8))
    if not d.biased:  # written, but not used
        add(6, *range(d.inputs, d.inputs + d.in_pe))
    if d.managers == 2:  # another initial state in each PE
        first = d.manager(1, 80, 16)
        add(6, *range(first, first + d.outputs), pes=range(1, 4))
    if name[:3] in ("rnn", "gru"):  # an RNN keeps nothing there, a GRU the hidden state
        add(9, *range(d.outputs // 4))
    return free


def test_there_are_recorded_programs_of_every_kind() -> None:
    kinds = {kind: sum(name.startswith(kind) for name in PROGRAMS) for kind in ("linear", "rnn", "gru", "lstm")}
    assert kinds == {"linear": 28, "rnn": 5, "gru": 5, "lstm": 6}


@pytest.mark.parametrize("name", PROGRAMS)
def test_recorded_programs_are_assembled_again(name: str) -> None:
    wanted, reads = split(PROGRAMS[name])
    assembled = reassemble(PROGRAMS[name])
    commands = assembled.program.commands
    again = {c.addr: c.data for c in commands if c.mode == "W" and c.addr != START}
    free = choices(name, wanted)
    if not Decoded(wanted).biased:  # the AdaptivFloat bias of layer biases that are not added
        wanted.update({0x34400020 + (pe << 24): wanted[0x34400020 + (pe << 24)] & ~(7 << 16) for pe in range(4)})
    assert {a: d for a, d in again.items() if a not in free} == {a: d for a, d in wanted.items() if a not in free}
    one, other = Decoded(wanted), Decoded(again)
    for m in range(one.managers):
        assert np.array_equal(one.weights(m).codes, other.weights(m).codes)
    assert [c.addr for c in commands if c.mode == "R"] == reads
    start = [c.addr for c in commands].index(START)
    assert [c.mode for c in commands] == [*"W" * (start + 1), "Q", *"R" * len(reads)]


# -- layouts ------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.data())
def test_weights_cell_by_cell(gates: int, inputs: int, in_pe: int, data: st.DataObject) -> None:
    features, columns = data.draw(st.integers(1, 64 * in_pe)), data.draw(st.integers(1, 16 * inputs))
    rng = np.random.default_rng(features)
    weights = rng.integers(1, 256, (gates, features, columns)).astype(np.uint8)
    biases = rng.integers(1, 256, (gates, features)).astype(np.uint8)
    rows, vectors = weight_rows(weights, inputs, 4 * in_pe), bias_rows(biases, 4 * in_pe)
    assert rows.shape == (4, gates * in_pe * inputs * 16, 16)
    for _ in range(20):
        gate, row, column = (int(rng.integers(n)) for n in (gates, 64 * in_pe, 16 * inputs))
        pe, vector = divmod(row // 16, in_pe)
        inside = row < features and column < columns
        place = ((vector * gates + gate) * inputs + column // 16) * 16 + row % 16
        assert rows[pe, place, column % 16] == (weights[gate, row, column] if inside else 0)
        assert vectors[pe, vector * gates + gate, row % 16] == (biases[gate, row] if row < features else 0)


@settings(max_examples=30)
@given(st.integers(1, 16), st.booleans(), st.integers(0, 99))
def test_clustered_weights_cell_by_cell(values: int, padding: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    entries = rng.choice(np.arange(1, 256), values, replace=False).astype(np.uint8)
    rows = rng.choice(entries, (4, 32, 16))
    used = np.ones(rows.shape, bool)
    if padding:
        used[:, 20:] = used[3] = False
        rows[~used] = 0
    tables, packed = clustered_rows(rows, used)
    assert (tables.shape, packed.shape) == ((4, 16), (4, 16, 16))
    for pe, row, column in zip(*np.nonzero(used), strict=True):
        cell = packed[pe, row // 2, row % 2 * 8 + column // 2]
        assert tables[pe, cell >> column % 2 * 4 & 15] == rows[pe, row, column]
    assert set(tables[0].tolist()) <= set(entries.tolist())


def test_cluster_tables() -> None:
    assert asm.cluster_table(np.array([7, 3, 7], np.uint8)).tolist() == [3] + [7] * 15
    assert asm.cluster_table(np.array([], np.uint8)).tolist() == [0] * 16
    with pytest.raises(asm.AssemblyError) as error:
        asm.cluster_table(np.arange(17, dtype=np.uint8))
    assert str(error.value) == (
        "Clustered weights must have at most 16 different codes, the entries of a PE's table, not 17; cluster them, "
        "or assemble without clustered=True"
    )


def test_padding_takes_an_entry_only_where_it_has_an_effect() -> None:
    sixteen = Quantised(np.resize(np.arange(1, 17, dtype=np.uint8), (20, 20)), 2)
    x = Quantised(np.zeros((2, 20), np.uint8), 2)
    asm.linear(x, sixteen, output_bias=2, clustered=True)
    with pytest.raises(asm.AssemblyError) as error:
        asm.rnn(x, sixteen, sixteen, state_bias=2, clustered=True)
    assert str(error.value) == (
        "w_hidden, of which a PE holds a quarter, must have at most 16 different codes, the entries of a PE's table, "
        "not 17; cluster them, or assemble without clustered=True"
    )


@pytest.mark.parametrize(("layer", "standard", "other"), [("lstm", "ifgo", "iofg"), ("gru", "rzn", "zrn")])
def test_gates_in_another_order(layer: str, standard: str, other: str) -> None:
    rng, gates = np.random.default_rng(1), len(standard)
    shapes = [(gates, 20, 5), (gates, 20, 20), (gates, 20), (gates, 20)]
    tensors = [rng.integers(0, 256, shape).astype(np.uint8) for shape in shapes]
    order = [standard.index(gate) for gate in other]

    def flat(codes: np.ndarray[Any, Any]) -> Quantised:
        return Quantised(codes.reshape(gates * 20, *codes.shape[2:]), 1)

    x, assemble = Quantised(rng.integers(0, 256, (3, 5)).astype(np.uint8), 1), getattr(asm, layer)
    one = assemble(x, *map(flat, tensors), state_bias=2)
    two = assemble(x, *(flat(t[order]) for t in tensors), state_bias=2, gates=other)
    assert one.program == two.program


# -- beginnings ---------------------------------------------------------------------------------------


def q(*shape: int, bias: int = 2) -> Quantised:
    return Quantised(np.zeros(shape, np.uint8), bias)


def words(assembled: asm.Assembled) -> dict[int, int]:
    return {c.addr: c.data for c in assembled.program.commands if c.mode == "W"}


def test_a_layer_begins_with_zeros_unless_told() -> None:
    zero = words(asm.lstm(q(2, 5), q(80, 5), q(80, 20), state_bias=2))
    assert [bits(zero[a], low) for a, low in ((0x34400010, 8), (0x34400020, 0), (0x34400040, 0), (0x34800010, 8))] == [
        1, 0, 1, 1,
    ]  # fmt: skip
    given_ = words(asm.lstm(q(2, 5), q(80, 5), q(80, 20), state_bias=2, initial=(q(20), q(20))))
    assert [bits(given_[a], low) for a, low in ((0x34400010, 8), (0x34400040, 0), (0x34800010, 8))] == [0, 0, 0]
    assert 0x34900000 in given_
    assert 0x34900000 not in zero


def test_biases_are_added_where_one_is_given() -> None:
    without = words(asm.rnn(q(2, 5), q(20, 5), q(20, 20), state_bias=2))
    one = words(asm.rnn(q(2, 5), q(20, 5), q(20, 20), None, q(20, bias=6), state_bias=2))
    assert [bits(w[0x34400010], 24) for w in (without, one)] == [0, 1]
    assert bits(one[0x34400040], 16, 3) == 6
    # x | biases | h | biases, and without any x | h
    assert [bits(w[0x34400040], 80, 16) for w in (without, one)] == [1, 2]


def test_arrays_and_objects_are_the_same_commands() -> None:
    assembled = asm.linear(q(2, 5), q(20, 5), output_bias=2)
    arrays = assembled.commands
    assert (arrays.modes.dtype, arrays.addresses.dtype, arrays.data.dtype) == (np.uint8, np.uint32, np.uint8)
    assert arrays.data.shape == (len(arrays), 16)
    codes = {"W": WRITE, "R": READ, "Q": WAIT}
    listed = assembled.program.commands
    assert assembled.program.waits
    assert [codes[c.mode] for c in listed] == arrays.modes.tolist()
    assert [c.addr for c in listed] == arrays.addresses.tolist()
    assert b"".join(c.data.to_bytes(16, "little") for c in listed) == arrays.data.tobytes()
    columns, sent = arrays.columns(), [c for c in listed if c.mode != "Q"]
    assert columns["if_axi_wr"].tolist() == [c.mode == "W" for c in sent]
    assert columns["if_axi_rd"].tolist() == [c.mode == "R" for c in sent]
    assert columns["addr_in"].tolist() == [c.addr for c in sent]
    assert columns["data_in"].tobytes() == b"".join(c.data.to_bytes(16, "little") for c in sent)
    assert set(columns) == set(flexasr().inputs)


def test_assembling_is_fast() -> None:
    tensors = [np.resize(np.arange(256, dtype=np.uint8), s) for s in ((35, 256), (1024, 256), (1024, 256), (1024,))]
    x, w, u, b = (Quantised(t, 2) for t in tensors)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        assembled = asm.lstm(x, w, u, b, b, state_bias=2)
        times.append(time.perf_counter() - begin)
    assert len(assembled.commands) == 4 * (1 + 2 + 2 + 1 + 8192 + 32) + 2 + 35 * 16 + 2 + 35 * 16
    assert min(times) < 0.05


# -- messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: asm.linear(q(2, 5), q(7, 6), output_bias=0),
            "w must have shape [7, 5], not [7, 6]; reshape or transpose it",
        ),
        (
            lambda: asm.linear(q(2, 5), q(7, 5), q(6), output_bias=0),
            "b must have shape [7], not [6]; reshape or transpose it",
        ),
        (lambda: asm.linear(q(2, 5), q(7, 5), output_bias=9), "output_bias must be in 0 .. 7, not 9"),
        (
            lambda: asm.linear(q(0, 5), q(7, 5), output_bias=0),
            "x must have shape [T, I] without an empty axis, not [0, 5]; reshape it",
        ),
        (
            lambda: asm.linear(q(2, 4080), q(128, 4080), q(128), output_bias=0),
            "Input, state and bias vectors of a PE must be at most 256 (its input buffer of 4 KiB), not 257; "
            "split the layer",
        ),
        (
            lambda: asm.linear(q(2, 2096), q(2048, 2096), output_bias=0),
            "Weight vectors of a PE must be at most 65536 (its weight buffer of 1 MiB), not 67072; split the outputs",
        ),
        (
            lambda: asm.linear(q(2, 16), q(4081, 16), output_bias=0),
            "Features of the output must be at most 4080 (num_vector has 8 bits, 16 features each), not 4081; "
            "split the tensor",
        ),
        (
            lambda: asm.linear(q(32768, 16), q(16, 16), output_bias=0),
            "Vectors of input and output must be at most 65536 (the large buffer, in groups of 16 timesteps), not "
            "163840; split the sequence",
        ),
        (
            lambda: asm.linear(q(17, 20), q(7, 20), output_bias=0, output_base=63),
            "output_base must be at least 64, the end of the input in vectors, not 63; raise it",
        ),
        (
            lambda: asm.rnn(q(1, 16), q(2112, 16), q(2112, 2112), state_bias=1),
            "State vectors of a PE must be at most 32 (its activation buffer), not 33; split the layer",
        ),
        (
            lambda: asm.lstm(q(1, 16), q(5440, 16), q(5440, 1360), q(5440), state_bias=1),
            "Input, state and bias vectors of a PE must be at most 256 (its input buffer of 4 KiB), not 265; "
            "split the layer",
        ),
        (
            lambda: asm.lstm(q(1, 16), q(64, 16), q(64, 17), state_bias=1),
            "w_hidden must have shape [68, 17], not [64, 17]; reshape or transpose it",
        ),
        (
            lambda: asm.lstm(q(1, 16), q(64, 16), q(64), state_bias=1),
            "w_hidden must have shape [4H, H] without an empty axis, not [64]; reshape it",
        ),
        (
            lambda: asm.gru(q(1, 16), q(48, 15), q(48, 16), state_bias=1),
            "w_input must have shape [48, 16], not [48, 15]; reshape or transpose it",
        ),
        (
            lambda: asm.gru(q(1, 16), q(48, 16), q(48, 16), None, q(47), state_bias=1),
            "b_hidden must have shape [48], not [47]; reshape or transpose it",
        ),
        (
            lambda: asm.gru(q(1, 16), q(48, 16), q(48, 16), state_bias=1, gates="zrh"),
            "gates must be an order of r, z, n, not 'zrh'",
        ),
        (
            lambda: asm.rnn(q(1, 16), q(16, 16), q(16, 16), state_bias=1, initial=q(16)),
            "initial must have the AdaptivFloat bias of the layer's states, 1, not 2; quantise it with bias=1",
        ),
        (
            lambda: asm.lstm(q(1, 16), q(64, 16), q(64, 16), state_bias=2, initial=(q(16), q(17))),
            "The initial cell state must have shape [16], not [17]; reshape or transpose it",
        ),
    ],
)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
