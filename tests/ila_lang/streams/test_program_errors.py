"""What is no program, and what does not fit one, is refused with what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_models.hlscnn.model import hlscnn
from ila_lang import BOOL, Expr, Ila, Kernel, Machine, Simulator, bv, concat, const, false, ite, mem, true, var
from ila_lang.language.fragment import Fragment
from ila_lang.streams.programs import InstanceError, Program
from tests.ila_lang.streams.test_programs import SHORT, WIDE, N, X, Y, echo, fragment, get, put, same_as_interpreter

ZERO = const(0, 8)


def word(*low: Expr) -> Expr:
    return concat(const(0, 128 - sum(part.width for part in low)), *low)


def result(k: Kernel) -> None:
    k.store(Y, const(0, 16), get(k, ZERO)[7:0])


def data_dependent_loop(k: Kernel) -> None:
    with k.loop("i", X.load(const(0, 16))) as i:
        put(k, i, word(i))
    result(k)


def loop_of_an_output(k: Kernel) -> None:
    with k.loop("i", get(k, ZERO)[7:0]) as i:
        put(k, i, word(i))
    result(k)


def sends(*low: Expr, address: Expr = ZERO) -> Callable[[Kernel], None]:
    def write(k: Kernel) -> None:
        put(k, address, word(*low))
        result(k)

    return write


def stores(value: Callable[[Expr], Expr], place: Expr | None = None) -> Callable[[Kernel], None]:
    def write(k: Kernel) -> None:
        k.store(Y, const(0, 16) if place is None else place, value(get(k, ZERO)))

    return write


def after_its_store(k: Kernel) -> None:
    result(k)
    put(k, ZERO, word(Y.load(const(3, 16))))


def data_dependent_address(k: Kernel) -> None:
    k.store(Y, concat(ZERO, x0), get(k, ZERO)[7:0])


def loaded_address(k: Kernel) -> None:
    place = k.load("place", SHORT, const(0, 16))
    put(k, ZERO, word(X.load(place)))


def computed_address(k: Kernel) -> None:
    place = k.let("place", get(k, ZERO)[15:0] + 1)
    put(k, ZERO, word(X.load(place)))


x0, x1 = X.load(const(0, 16)), X.load(const(1, 16))
REFUSED: list[tuple[Callable[[Kernel], None], str, str]] = [
    (data_dependent_loop, "Extent of loop i", "x"),
    (loop_of_an_output, "Extent of loop i", "out"),
    (sends(X.load(concat(x0, x1))), "Address of x", "x"),
    (data_dependent_address, "Address of y", "x"),
    (loaded_address, "Address of x", "place"),
    (computed_address, "Address of x", "place"),
]


@pytest.mark.parametrize(("write", "where", "found"), REFUSED, ids=[write.__name__ for write, *_ in REFUSED])
def test_what_is_no_program(write: Callable[[Kernel], None], where: str, found: str) -> None:
    with pytest.raises(InstanceError) as error:
        Program.of(fragment(write), {"n": 5})
    expected = f"{where} of fragment toy must follow from its sizes, not from {found}; run it with run_fragment, or"
    assert str(error.value) == f"{expected} compute this on the host"


def register_of_an_output(k: Kernel) -> None:
    out = k.let("out_now", get(k, ZERO)[7:0])
    k.store(Y, const(0, 16), out)
    put(k, ZERO, word(out))


def register_of_an_iteration_before(k: Kernel) -> None:
    last = k.let("last", ZERO)
    with k.loop("i", N) as i:
        put(k, i, word(last))
        k.assign(last, get(k, i)[7:0])


def in_place(k: Kernel) -> None:
    with k.loop("i", N) as i:
        put(k, i, word(Y.load(i.zext(16))))
        k.store(Y, i.zext(16), get(k, i)[7:0])


LATE = {
    "an output": sends(echo().states["out"][7:0]),
    "a register": register_of_an_output,
    "a register of an iteration before": register_of_an_iteration_before,
    "after its store": after_its_store,
    "in place": in_place,
    "a choice by an output": sends(ite(echo().states["out"][0] == 1, x1, ZERO)),
}


@pytest.mark.parametrize("what", LATE)
def test_commands_that_are_not_known_beforehand_have_no_stream(what: str) -> None:
    """Such programs run, but what they send is known only then."""
    toy = fragment(LATE[what])
    program = Program.of(toy, {"n": 5})
    given = {name: np.arange(1, count + 1) for name, count in program.reads.items()}
    with pytest.raises(InstanceError) as error:
        program.stream(given)
    assert str(error.value) == (
        "Inputs of command 'put' of fragment toy must be known before the program runs; run it, or compute this on "
        "the host"
    )
    one, other = program.run(Simulator(echo()), given), program.run(Machine(echo()), given)
    assert {name: codes.tolist() for name, codes in one.items()} == {n: c.tolist() for n, c in other.items()}


def running_register(k: Kernel) -> None:
    place = k.let("place", ZERO)
    with k.loop("i", N) as i:
        put(k, place, word(X.load(place.zext(16)), i))
        k.assign(place, place + 2)
    result(k)


def loaded_before_the_store(k: Kernel) -> None:
    put(k, ZERO, word(Y.load(const(3, 16))))
    result(k)


def computed(k: Kernel) -> None:
    with k.loop("i", N) as i:
        put(k, i, concat(const(0, 64), i.zext(64) * 3))
        put(k, i, word(concat(x0 + x1, const(1, 4)), x0[3:0], ite(x0 == 0, x1, ZERO)))
    k.store(Y, const(2, 16), get(k, ZERO)[11:4])
    k.store(SHORT, const(0, 16), echo().states["count"].zext(16))


def a_flag_of_data(k: Kernel) -> None:
    k.command("put", write=ite(x0 == 0, true, false), address=ZERO, data=const(0, 128))


@pytest.mark.parametrize("write", [running_register, loaded_before_the_store, computed, a_flag_of_data])
def test_what_is_computed_from_given_tensors_is_sent(write: Callable[[Kernel], None]) -> None:
    same_as_interpreter(fragment(write), {"n": 5})


def test_an_extent_that_does_not_fit_its_counter() -> None:
    def write(k: Kernel) -> None:
        with k.loop("i", N, 2) as i:
            put(k, ZERO, word(i))

    with pytest.raises(ValueError, match="Extent 5 must fit the counter i of toy"):
        Program.of(fragment(write), {"n": 5})


def test_addresses_of_64_bits() -> None:
    far = var("far", mem(64, 8))
    kernel = Kernel("toy")
    kernel.command("put", write=true, address=ZERO, data=word(far.load(const(0, 64))))
    with pytest.raises(InstanceError, match="Addresses of far must have less than 64 bits, not 64"):
        Program.of(Fragment("toy", echo(), {}, {"far": far}, kernel), {})


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, "Fragment toy must be given n"),
        ({"n": 256}, "Size n of fragment toy must fit in 8 bits unsigned, not 256"),
        ({"n": 1, "m": 2}, "Size m of fragment toy must be one of its sizes (n)"),
    ],
)
def test_sizes(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Program.of(fragment(sends(x0)), sizes)
    assert str(error.value) == message


def test_a_program_that_changes_is_counted_anew() -> None:
    toy = fragment(sends(x0))
    assert len(Program.of(toy, {"n": 1})) == 2
    put(toy.program, ZERO, word(x1))
    program = Program.of(toy, {"n": 1})
    assert len(program) == 3 and program.reads == {"x": 2}


def test_a_size_hides_the_output_of_its_name() -> None:
    ila = Ila("small")
    size, tensor = ila.state("size", 8, 0), var("tensor", mem(8, 8))
    ila.input("none", 1)
    kernel = Kernel("toy")
    kernel.store(tensor, ZERO, size)
    toy = Fragment("toy", ila, {"size": size}, {"tensor": tensor}, kernel)
    assert Program.of(toy, {"size": 7}).run(Simulator(ila), {})["tensor"].tolist() == [7]


# -- tensors and devices ---------------------------------------------------------------------------------------


def toy_program() -> Program:
    def write(k: Kernel) -> None:
        with k.loop("i", N) as i:
            put(k, i, word(WIDE.load(i.zext(16)), SHORT.load(i.zext(16)), X.load(i.zext(16)), ZERO))
        result(k)

    return Program.of(fragment(write, busy=0), {"n": 3})


def tensors() -> dict[str, Any]:
    return {"wide": np.arange(3) << 28, "short": np.arange(3), "x": np.array([1, 2, 255], np.uint8)}


def test_codes_may_be_signed_or_other_integers() -> None:
    plain = toy_program().stream(tensors())
    signed = toy_program().stream(
        {"wide": (np.arange(3) << 28).astype(np.int32), "short": np.arange(3, dtype=">i2"), "x": np.int8([1, 2, -1])}
    )
    assert {n: c.tolist() for n, c in plain.columns.items()} == {n: c.tolist() for n, c in signed.columns.items()}


def test_signed_numbers_are_words_in_twos_complement_of_any_width() -> None:
    """Where there is no type of so many bits, that of the memory's arrays is the one for signed numbers."""
    bias, kernel = var("bias", mem(16, 20)), Kernel("toy")
    with kernel.loop("i", N) as i:
        put(kernel, i, bias.load(i.zext(16)).zext(128))
    program = Program.of(Fragment("toy", echo(), {"n": N}, {"bias": bias}, kernel), {"n": 4})
    signed = np.array([-7, 4, -(1 << 19), (1 << 19) - 1], np.int32)
    sent = [program.stream({"bias": codes}).columns["data"].tolist() for codes in (signed, signed & 0xFFFFF)]
    assert sent[0] == sent[1]
    for codes, advice in (
        (signed.astype(np.int64), "give signed numbers as int32"),
        (np.array([-1, 0, 0, 1 << 19], np.int32), "quantise it"),
        (np.array([-(1 << 19) - 1, 0, 0, 0], np.int32), "quantise it"),
    ):
        with pytest.raises(InstanceError) as error:
            program.stream({"bias": codes})
        assert str(error.value) == (
            f"Tensor bias of program toy must hold codes of 20 bits, not {codes.min()} to {codes.max()}; {advice}"
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "Program toy must be given tensor x of 3 elements; it sends wide, short, x"),
        ({"z": np.arange(3)}, "Tensor of program toy must be one of x, y, wide, short, not z; leave it out"),
        (
            {"x": np.arange(4)},
            "Tensor x of program toy must have 3 elements in one dimension, not shape (4,); "
            "give its elements in row-major order",
        ),
        (
            {"short": np.ones(3)},
            "Tensor short of program toy must hold codes of 16 bits as integers, not float64; quantise it",
        ),
        ({"x": np.arange(254, 257)}, "Tensor x of program toy must hold codes of 8 bits, not 254 to 256; quantise it"),
        (
            {"short": np.arange(-1, 2)},
            "Tensor short of program toy must hold codes of 16 bits, not -1 to 1; give signed numbers as int16",
        ),
        (
            {"x": np.ma.MaskedArray(np.arange(3, dtype=np.uint8), [True, False, False])},
            "Tensor x of program toy must be an array without a mask; fill in what is masked",
        ),
    ],
)
def test_tensors_of_another_form(change: dict[str, Any], message: str) -> None:
    given = {name: tensor for name, tensor in (tensors() | change).items() if tensor is not None}
    with pytest.raises(InstanceError) as error:
        toy_program().stream(given)
    assert str(error.value) == message
    device = Simulator(echo())
    with pytest.raises(InstanceError, match=f"^{re.escape(message)}$"):
        toy_program().run(device, given)
    assert not device.memories["words"]  # nothing is done


@pytest.mark.parametrize(("wide", "short", "x"), [(3, 2, 1), (0, 1, 1), (0, 0, 0)])
def test_numbers_of_samples_that_differ(wide: int, short: int, x: int) -> None:
    """Native code goes from sample to sample without looking at the end."""
    given = {n: np.stack([tensors()[n]] * 3)[:count] for n, count in (("wide", wide), ("short", short), ("x", x))}
    device = Simulator(echo())
    with pytest.raises(InstanceError) as error:
        toy_program().run_samples(device, given)
    assert str(error.value) == (
        "Program toy must be given as many samples of each tensor, or one for all of them, not "
        f"{wide} of wide, {short} of short, {x} of x"
    )
    assert not device.memories["words"]


def test_tensors_are_left_as_they_are() -> None:
    def write(k: Kernel) -> None:
        put(k, ZERO, word(Y.load(const(3, 16))))
        result(k)

    given = np.arange(4, dtype=np.uint8)
    written = Program.of(fragment(write), {"n": 1}).run(Simulator(echo()), {"y": given})
    assert written["y"].tolist() == [4] and given.tolist() == [0, 1, 2, 3]


def test_padding() -> None:
    program = toy_program()
    padded = program.padded({"x": np.arange(2, dtype=np.uint8)})
    assert {n: t.tolist() for n, t in padded.items()} == {"x": [0, 1, 0], "short": [0] * 3, "wide": [0] * 3}
    assert len(program.padded({"x": np.arange(5)})["x"]) == 5  # which the program refuses


def test_another_device() -> None:
    with pytest.raises(InstanceError) as error:
        toy_program().run(Simulator(hlscnn()), tensors())
    assert str(error.value) == "Program toy must run on echo, not hlscnn; give it that device"


@pytest.mark.parametrize("kind", [Simulator, Machine])
def test_a_device_that_is_not_idle(kind: type[Machine]) -> None:
    simulator = kind(echo())
    simulator.values["busy"] = 1
    with pytest.raises(InstanceError) as error:
        toy_program().run(simulator, tensors())
    assert str(error.value) == "State busy of echo must hold 0 when program toy starts; use a new device"


def test_another_reading_of_the_device() -> None:
    """A device of the same name, inputs and outputs, which does something else."""
    other = Ila("echo")
    write, address, data = other.input("write", BOOL), other.input("address", 8), other.input("data", 128)
    other.input("tag", 24)
    out, _ = other.state("out", bv(128), 0), other.state("busy", bv(1), 0)
    other.instruction("put").set_decode(write).update(out, ~data ^ address.zext(128))
    other.instruction("get").set_decode(~write).update(out, out)
    wanted = [0xFF ^ 2]
    for device in (Simulator(other), Machine(other)):
        assert toy_program().run(device, tensors())["y"].tolist() == wanted
    narrow = Ila("echo")
    narrow.input("write", BOOL), narrow.state("busy", bv(1), 0)
    with pytest.raises(ValueError, match="must use only its parameters, tensors and device outputs, not out"):
        toy_program().run(Simulator(narrow), tensors())
