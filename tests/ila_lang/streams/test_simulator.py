"""The fast simulator does what the scalar interpreter does, command by command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ila_lang as il
from ila_lang import BOOL, CommandError, CommandStream, Ila, Kernel, Machine, Simulator, bv, concat, const
from ila_lang.errors import InputError
from tests.ila_lang.oracle import COUNT, DST, SCALE, SRC, kernels, words


def bus() -> Ila:
    """Stores and loads of words of 72 bits in rows of nine bytes, a counter, a conditional store, a sum."""
    ila = Ila("bus")
    kind, at, data = ila.input("kind", 3), ila.input("at", 4), ila.input("data", 72)
    flag = ila.input("flag", BOOL)
    memory = ila.memory("memory", 8, 8, 0)
    out, last, steps = ila.state("out", bv(72), 0), ila.state("last", 4, 0), ila.state("steps", 8, 0)
    lanes = [concat(at, const(lane, 4)) for lane in range(9)]
    stored = memory
    for lane, address in enumerate(lanes):
        stored = stored.store(address, data[8 * lane + 7 : 8 * lane])
    ila.instruction("store").set_decode(kind == 0).update(memory, stored).update(last, at)
    word = concat(*(memory.load(address) for address in reversed(lanes)))
    ila.instruction("load").set_decode(kind == 1).update(out, word)
    ila.instruction("count").set_decode(kind == 2).update(steps, steps + 1)
    guarded = il.ite(flag, memory.store(lanes[0], data[7:0]), memory)
    ila.instruction("guarded").set_decode(kind == 3).update(memory, guarded)
    turn = ila.instruction("turn").set_decode((kind == 4) & (last == 0))
    turn.update(out, data)
    total = Kernel("total")
    acc = total.let("acc", const(0, 8))
    with total.loop("i", const(16, 5)) as i:
        total.assign(acc, acc + total.load("word", memory, concat(i[3:0], const(0, 4))))
    total.store(memory, const(255, 8), acc)
    ila.instruction("sum").set_decode(kind == 5).start(total, when=last != 1)
    never = ila.instruction("never").set_decode((kind == 4) & (last != 0))
    never.reserved = "nobody knows"
    return ila


BUS = bus()
commands = st.lists(
    st.builds(
        lambda kind, at, data, flag, times: [
            {"kind": kind, "at": (at + i) % 16, "data": data + i, "flag": flag} for i in range(times)
        ],
        st.sampled_from([0, 0, 1, 1, 2, 3, 4, 5]),
        st.integers(0, 15),
        st.integers(0, (1 << 72) - 21),
        st.booleans(),
        st.sampled_from([1, 2, 7, 20]),
    ),
    max_size=12,
).map(lambda runs: [c for run in runs for c in run])


def stream(listed: list[dict[str, Any]]) -> CommandStream:
    rows = [np.frombuffer(int(c["data"]).to_bytes(9, "little"), np.uint8) for c in listed]
    return CommandStream(
        {
            "kind": np.array([c["kind"] for c in listed], np.int64),
            "at": np.array([c["at"] for c in listed], np.uint8),
            "flag": np.array([c["flag"] for c in listed], bool),
            "data": np.array(rows, np.uint8).reshape(-1, 9),
        }
    )


@given(commands)
@settings(max_examples=200)
def test_streams(listed: list[dict[str, Any]]) -> None:
    slow, fast = Machine(BUS), Simulator(BUS)
    outs, error = [], None
    for number, inputs in enumerate(listed):
        try:
            instruction = slow.step(inputs)
        except CommandError as refused:
            error = str(refused)
            break
        if "out" in instruction.updates:
            outs.append((number, slow.values["out"]))
    if error is None:
        seen = fast.execute(stream(listed), ("out",))["out"]
        assert [(n, int.from_bytes(row.tobytes(), "little")) for n, row in seen] == outs
    else:
        with pytest.raises(CommandError) as caught:
            fast.execute(stream(listed), ("out",))
        assert sorted(str(caught.value)) == sorted(error)  # inputs are listed in another order
    assert fast.values == slow.values
    for name, memory in slow.memories.items():
        assert {a: w for a, w in memory.items() if w} == dict(fast.memories[name])


@given(
    kernels(),
    words,
    words,
    st.lists(st.tuples(st.booleans(), st.integers(0, 15), st.integers(0, 15)), max_size=8),
)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60, deadline=None)
def test_kernels_started_by_commands(kernel: Kernel, src: Any, dst: Any, turns: list[tuple[bool, int, int]]) -> None:
    """Starts of one kernel again and again, with memories changed between them."""
    ila = Ila("device")
    go, more = ila.input("go", BOOL), ila.input("more", bv(4))
    for variable in (COUNT, SCALE, SRC, DST):
        ila.state(variable.name, variable.sort)
    at = ila.input("at", bv(4))
    ila.instruction("run").set_decode(go).start(kernel)
    ila.instruction("set").set_decode(~go).update(SRC, SRC.store(at, more)).update(COUNT, more & 3)
    machines = Machine(ila), Simulator(ila)
    for machine in machines:
        machine.memories["src"].update(src)
        machine.memories["dst"].update(dst)
    for start, where, what in turns:
        for machine in machines:
            machine.step({"go": start, "at": where, "more": what})
        slow, fast = machines
        assert {a: w for a, w in slow.memories["dst"].items() if w} == dict(fast.memories["dst"]), il.show_kernel(
            kernel
        )


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one length, not \{'a': 1, 'b': 2\}"):
        CommandStream({"a": np.zeros(1, np.int64), "b": np.zeros(2, np.int64)})


FORM = "must be an array of NumPy with a number, or a row of bytes, for each command, not"
MISFITS: dict[str, tuple[Any, str]] = {
    "a list": ([1, 0], f"Column kind {FORM} [1, 0]"),
    "a number": (np.array(1), f"Column kind {FORM} array(1)"),
    "durations": (
        np.array([1], "m8[s]"),
        "Column kind must have integers that fit in 1 bits unsigned, all of them, not array([1], "
        "dtype='timedelta64[s]')",
    ),
}


@pytest.mark.parametrize(("column", "message"), MISFITS.values(), ids=MISFITS)
def test_columns_that_are_none_are_refused(column: Any, message: str) -> None:
    assert refusal(lambda: Simulator(counter()).execute(CommandStream({"kind": column}))) == message


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("kind", 2, "2"), ("kind", 1.0, "1.0"), ("kind", -1, "-1"), ("kind", 1 << 70, f"{1 << 70}"), ("row", -1, "-1")],
)
def test_values_that_an_input_cannot_have_are_refused(name: str, value: Any, shown: str) -> None:
    bits = {"kind": 1, "row": 100}[name]
    assert refusal(lambda: CommandStream.of(counter(), [{}, {name: value}])) == (
        f"{name} of command 1 must be an integer of {bits} bits without sign, not {shown}"
    )
    commands: Any = [{"kind": np.True_}, 3]
    assert CommandStream.of(counter(), commands[:1]).command(0) == {"kind": 1, "row": 0}
    assert refusal(lambda: CommandStream.of(counter(), commands)) == ("Command 1 must have numbers by input, not be 3")


def test_what_is_no_state_cannot_be_watched() -> None:
    stream = CommandStream.of(counter(), [{"kind": 0}])
    assert Simulator(counter()).execute(stream, ["n"]) == {"n": [(0, 1)]}
    for name in ("m", "words"):
        assert refusal(lambda name=name: Simulator(counter()).execute(stream, [name])) == (
            f"watch must name states of counter that are no memories, not '{name}'"
        )
    commands: Any = [{"kind": 0}]
    assert refusal(lambda: Simulator(counter()).execute(commands)) == (
        "Commands must be a CommandStream, as CommandStream.of makes, not [{'kind': 0}]"
    )


def counter() -> Ila:
    ila = Ila("counter")
    kind, n, words = ila.input("kind", 1), ila.state("n", 8, 0), ila.memory("words", 4, 8, 0)
    row = ila.input("row", 100)
    ila.instruction("one").set_decode(kind == 0).update(n, n + 1)
    ila.instruction("two").set_decode(kind == 1).update(words, words.store(row[3:0], n))
    return ila


def refusal(attempt: Callable[[], object]) -> str:
    with pytest.raises(InputError) as error:
        attempt()
    return str(error.value)


def test_a_model_that_changes_is_compiled_again() -> None:
    ila = Ila("growing")
    kind, n = ila.input("kind", 1), ila.state("n", 8, 0)
    ila.instruction("one").set_decode(kind == 0).update(n, n + 1)
    first = Simulator(ila)
    first.step({"kind": 0})
    ila.instruction("two").set_decode(kind == 1).update(n, n + 2)
    second = Simulator(ila)
    second.execute(CommandStream({"kind": np.array([1, 1, 0, 1, 1, 1, 1])}))
    assert (first.values["n"], second.values["n"]) == (1, 13)


def test_machines_of_one_model_do_not_mix_up_their_memories() -> None:
    ila = Ila("adder")
    go, word = ila.input("go", BOOL), ila.input("word", 4)
    source, target = ila.memory("source", 4, 4, 0), ila.memory("target", 4, 4, 0)
    copy = Kernel("copy")
    with copy.loop("i", const(16, 5)) as i:
        copy.store(target, i[3:0], copy.load("found", source, i[3:0]) + 1)
    ila.instruction("set").set_decode(~go).update(source, source.store(3, word))
    ila.instruction("run").set_decode(go).start(copy)
    found = []
    for word_given in (1, 2, 1, 3):
        machine = Simulator(ila)
        machine.step({"word": word_given})
        for _ in range(3):
            machine.step({"go": 1})
        found.append(machine.memories["target"][3])
    assert found == [2, 3, 2, 4]
