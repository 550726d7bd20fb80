"""What is no template, and what does not fit one, is refused with what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from accel_models.hlscnn.model import hlscnn
from ila_lang import Expr, Ila, Kernel, Simulator, concat, const, false, ite, mem, true, var
from ila_lang.language.fragment import Fragment
from ila_lang.templates.instance import Template, run_columns, run_template
from ila_lang.templates.sites import InstanceError
from tests.ila_lang.templates.test_instance import SHORT, WIDE, N, X, Y, echo, fragment, get, put

ADVICE = "; run it with run_fragment, or compute this on the host"
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


def register_of_an_output(k: Kernel) -> None:
    out = k.let("out_now", get(k, ZERO)[7:0])
    k.store(Y, const(0, 16), out)


def running_register(k: Kernel) -> None:
    place = k.let("place", ZERO)
    with k.loop("i", N) as i:
        put(k, place, word(i))
        k.assign(place, place + 2)
    result(k)


def narrow_counter(k: Kernel) -> None:
    with k.loop("i", N, 2) as i:
        put(k, ZERO, word(i))
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


def output_first(k: Kernel) -> None:
    k.store(Y, const(0, 16), echo().states["out"][7:0])
    put(k, ZERO, word(ZERO))


def gap(k: Kernel) -> None:
    result(k)
    k.store(Y, const(2, 16), echo().states["out"][7:0])


def two_outputs(k: Kernel) -> None:
    result(k)
    k.store(Y, const(1, 16), echo().states["count"])


def state_of_the_device(k: Kernel) -> None:
    out = get(k, ZERO)
    k.store(echo().states["words"], ZERO, out)


def wide_product(k: Kernel) -> None:
    with k.loop("i", N) as i:
        put(k, i, word(i.zext(64) * 3))
    result(k)


x0, x1 = X.load(const(0, 16)), X.load(const(1, 16))
DATA = "Input data of command 'put'"
PARTS = "be made of known numbers and whole elements of host tensors, side by side or chosen by a condition"
BEFORE = "hold what is known before the program runs"
NUMBERS = "depend on sizes and counters alone"
STORED = "be of whole elements of 8, 16 or 32 bits of an output, aligned to their size"
REFUSED: list[tuple[Callable[[Kernel], None], str, str, str]] = [
    (data_dependent_loop, "Extent of loop i", NUMBERS, "on data of host tensor x"),
    (loop_of_an_output, "Extent of loop i", NUMBERS, "on device output out"),
    (register_of_an_output, "Register out_now", BEFORE, "device output out"),
    (running_register, "Register place", BEFORE, "a value that changes"),
    (narrow_counter, "Loop i", "fit its counter of 2 bits", "5 iterations"),
    (sends(x0 + x1), DATA, PARTS, "data in 'bvadd'"),
    (sends(x0[3:0]), DATA, PARTS, "data in 'extract'"),
    (sends(echo().states["out"][7:0]), DATA, PARTS, "data in 'extract'"),
    (
        sends(concat(x0, const(1, 4))),
        DATA,
        "hold whole elements of 8, 16 or 32 bits, aligned to their size",
        "8 bits of x at bit 4",
    ),
    (sends(ite(x0 == 0, x1, ZERO)), DATA, NUMBERS, "on data of host tensor x"),
    (sends(X.load(concat(x0, x1))), DATA, NUMBERS, "on data of host tensor x"),
    (wide_product, DATA, PARTS, "wide term in 'bvmul'"),
    (
        after_its_store,
        "Commands",
        "send only what is known before the program runs",
        "an element of y after a store to it",
    ),
    (output_first, "store to y", "read an output after a command", "before all of them"),
    (gap, "Tensor y", "be written as a whole", "with gaps below its element 2"),
    (stores(lambda out: out[7:0] + 1), "store to y", STORED, "'bvadd'"),
    (stores(lambda out: out[11:4]), "store to y", STORED, "'extract'"),
    (stores(lambda out: out[7:0], concat(ZERO, x0)), "Address of store to y", NUMBERS, "on data of host tensor x"),
    (state_of_the_device, "store to words", "be one to a host tensor", "words"),
    (two_outputs, "Stores", "read one output of the device", "count, out"),
    (lambda k: put(k, ZERO, word(x0)), "Stores", "read one output of the device", "none"),
]


@pytest.mark.parametrize(("write", "where", "must", "found"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_is_no_template(write: Callable[[Kernel], None], where: str, must: str, found: str) -> None:
    with pytest.raises(InstanceError) as error:
        Template.of(fragment(write), {"n": 5})
    assert str(error.value) == f"{where} of fragment toy must {must}, not {found}{ADVICE}"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({}, "Fragment toy must be given n; give a number for each of its sizes"),
        ({"n": 256}, "Size n of fragment toy must fit 8 bits, not 256; give another one"),
        ({"n": 1, "m": 2}, "Sizes of fragment toy must be among n, not m; leave these out"),
    ],
)
def test_sizes(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(InstanceError) as error:
        Template.of(fragment(sends(x0)), sizes)
    assert str(error.value) == message


def test_a_program_that_is_too_long() -> None:
    def write(k: Kernel) -> None:
        with k.loop("i", N.zext(32) << 20) as i:
            put(k, i[7:0], word(ZERO))
        result(k)

    message = "Loop i of fragment toy must have at most 4194304 iterations in all, not 5242880; split what it computes"
    with pytest.raises(InstanceError) as error:
        Template.of(fragment(write), {"n": 5})
    assert str(error.value) == message


def test_a_size_hides_the_output_of_its_name() -> None:
    ila = Ila("small")
    size, tensor = ila.state("size", 8, 0), var("tensor", mem(8, 8))
    kernel = Kernel("toy")
    kernel.store(tensor, ZERO, size)
    toy = Fragment("toy", ila, {"size": size}, {"tensor": tensor}, kernel)
    must = "be of whole elements of 8, 16 or 32 bits of an output, aligned to their size"
    message = f"store to tensor of fragment toy must {must}, not 0x1{ADVICE}"
    with pytest.raises(InstanceError) as error:
        Template.of(toy, {"size": 1})
    assert str(error.value) == message


# -- tensors and devices ---------------------------------------------------------------------------------------


def template() -> Template:
    def write(k: Kernel) -> None:
        with k.loop("i", N) as i:
            put(k, i, word(WIDE.load(i.zext(16)), SHORT.load(i.zext(16)), X.load(i.zext(16)), ZERO))
        result(k)

    return Template.of(fragment(write, busy=0), {"n": 3})


def tensors() -> dict[str, Any]:
    return {"wide": np.arange(3) << 28, "short": np.arange(3), "x": np.array([1, 2, 255], np.uint8)}


def test_codes_may_be_signed_or_other_integers() -> None:
    plain = template().columns(tensors())
    signed = template().columns(
        {"wide": (np.arange(3) << 28).astype(np.int32), "short": np.arange(3, dtype=">i2"), "x": np.int8([1, 2, -1])}
    )
    assert {name: column.tolist() for name, column in plain.items()} == {n: c.tolist() for n, c in signed.items()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "Program toy must be given tensor x of 3 elements; it sends x, short, wide"),
        ({"z": np.arange(3)}, "Tensor of program toy must be one of x, y, wide, short, not z; leave it out"),
        (
            {"x": np.arange(4)},
            "Tensor x of program toy must have 3 elements in one dimension, not shape (4,); "
            "give its elements in row-major order",
        ),
        (
            {"y": np.zeros((2, 2), int)},
            "Tensor y of program toy must have one dimension, not shape (2, 2); give its elements in row-major order",
        ),
        (
            {"short": np.ones(3)},
            "Tensor short of program toy must hold codes of 16 bits as integers, not float64; quantise it",
        ),
        ({"x": np.arange(254, 257)}, "Tensor x of program toy must hold codes of 8 bits, not 254 to 256; quantise it"),
        (
            {"short": np.arange(-1, 2)},
            "Tensor short of program toy must hold codes of 16 bits, not -1 to 1; quantise it",
        ),
    ],
)
def test_tensors_of_another_form(change: dict[str, Any], message: str) -> None:
    given = {name: tensor for name, tensor in (tensors() | change).items() if tensor is not None}
    with pytest.raises(InstanceError) as error:
        template().columns(given)
    assert str(error.value) == message


def test_a_wrong_tensor_changes_nothing() -> None:
    program = template()
    columns = program.columns(tensors())
    before = {name: column.copy() for name, column in columns.items()}
    with pytest.raises(InstanceError, match=r"^Tensor x of program toy must have 3 elements"):
        program.fill(columns, {"wide": np.arange(3), "x": np.arange(4)})
    assert all((columns[name] == before[name]).all() for name in before)


def test_fill_changes_the_elements_of_the_tensors_given() -> None:
    program, first = template(), tensors()
    columns = program.columns(first)
    second = first | {"short": np.array([7, 65535, 0])}
    program.fill(columns, {"short": second["short"]})
    wanted = program.columns(second)
    assert all((columns[name] == wanted[name]).all() for name in wanted)
    assert (columns["data"] != program.columns(first)["data"]).any()


def test_words_of_another_program() -> None:
    message = (
        "Words that program toy reads must be 1 rows of 16 bytes (uint8), not uint8 of shape (2, 16); "
        "give what a run of this very program returned"
    )
    with pytest.raises(InstanceError) as error:
        template().outputs(np.zeros((2, 16), np.uint8))
    assert str(error.value) == message


def test_another_device() -> None:
    with pytest.raises(InstanceError) as error:
        run_template(template(), Simulator(hlscnn()), tensors())
    assert str(error.value) == "Program toy must run on echo, not hlscnn; give it that device"


def test_a_device_that_is_not_idle() -> None:
    simulator = Simulator(echo())
    simulator.values["busy"] = 1
    with pytest.raises(InstanceError) as error:
        run_template(template(), simulator, tensors())
    assert str(error.value) == "State busy of echo must hold 0 when program toy starts; use a new device"


def test_an_output_from_before_the_program() -> None:
    def write(k: Kernel) -> None:
        put(k, ZERO, word(x0))
        k.store(Y, const(0, 16), echo().states["out"][7:0])

    program = Template.of(fragment(write), {"n": 1})
    with pytest.raises(InstanceError) as error:
        run_columns(program, Simulator(echo()), program.columns({"x": np.arange(1)}))
    assert str(error.value) == (
        "Command 0 of program toy must set out of echo before the host reads it; "
        "it holds what it held before the program"
    )


# -- storage ---------------------------------------------------------------------------------------------------


def test_arrays_hold_numbers_alone() -> None:
    stored = template().to_arrays()
    assert {array.dtype.kind for array in stored.values()} <= set("bui")
    assert Template.from_arrays(stored).to_arrays().keys() == stored.keys()


Stored = dict[str, Any]


def header(old: str, new: str) -> Callable[[Stored], Stored]:
    def change(stored: Stored) -> Stored:
        text = bytes(stored["header"]).decode()
        assert old in text
        return stored | {"header": np.frombuffer(text.replace(old, new).encode(), np.uint8)}

    return change


def array(name: str, change: Callable[[Any], Any]) -> Callable[[Stored], Stored]:
    return lambda stored: stored | {name: change(stored[name])}


def without(name: str) -> Callable[[Stored], Stored]:
    return lambda stored: {n: a for n, a in stored.items() if n != name}


def text(raw: bytes) -> Callable[[Stored], Stored]:
    return array("header", lambda _: np.frombuffer(raw, np.uint8))


FORM = "must have the form that to_arrays writes, not"
FIRST = '["data", "x", 8, 1]'
CHANGES: list[tuple[Callable[[Stored], Stored], str]] = [
    (without("header"), "header must be text as bytes, not missing or of another form"),
    (text(b"["), "header must be JSON, not Expecting value: line 1 column 2 (char 1)"),
    (text(b"[]"), "header must be of version 2, not []"),
    (header('"version": 2', '"version": 1'), "header must be of version 2, not 1"),
    (header('"output_bytes": 16', '"output_bytes": -1'), f"field output_bytes of the header {FORM} -1"),
    (header(FIRST, '["data", "x", 8]'), f"field gathers of the header {FORM} [["),
    (header(FIRST, '["data", "x", 16, 1]'), "gather 0 must be runs of elements in rows of 16 bytes, not 1 of 16 bits"),
    (header(FIRST, '["data", "x", 8, 3]'), "gather 0 must be runs of elements in rows of 16 bytes, not 3 of 8 bits"),
    (
        header(FIRST, '["write", "x", 8, 1]'),
        "gather into column write must name a column of numbers, not one of Booleans, or none",
    ),
    (
        array("places.0", lambda a: a.astype(float)),
        "array places.0 must be i4 of 1 dimensions, not float64 of 1 dimensions",
    ),
    (array("places.0", lambda a: a[:2]), "gather 0 must have an element for each place, not 3 for 2"),
    (array("elements.0", lambda a: a.astype("i4") - 1), "gather 0 must have an element for each place, not 3 for 3"),
    (array("places.0", lambda a: a + 64), "gather 0 must have distinct places below 64, not 65 to 97"),
    (array("places.0", lambda a: a * 0), "gather 0 must have distinct places below 64, not 0 to 0"),
    (
        array("places.0", lambda a: a.astype("i8") + (1 << 40)),
        "array places.0 must have numbers that fit i4, not 1099511627777 to 1099511627809",
    ),
    (array("words.y", lambda a: a + 16), "tensor y must come from 16 words, not 16 to 16"),
    (array("reads", lambda a: a + 1), "reads must be rising numbers of 4 commands, not 4 to 4"),
    (array("column.write", lambda a: a[:3]), "columns must have one length, not [3, 4]"),
    (without("column.tag"), "array column.tag must be i8 of 1 dimensions, not nothing"),
    (lambda s: s | {"more": s["reads"]}, "arrays must be column.address, "),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[str(i) for i in range(len(CHANGES))])
def test_stored_arrays_are_compared(change: Callable[[Stored], Stored], message: str) -> None:
    with pytest.raises(InstanceError) as error:
        Template.from_arrays(change(template().to_arrays()))
    assert str(error.value).startswith("Stored program: " + message)
    assert str(error.value).endswith("; compile it again")


def test_flags_are_known() -> None:
    ila = echo()
    kernel = Kernel("toy")
    kernel.command("put", write=ite(x0 == 0, true, false), address=ZERO, data=const(0, 128))
    toy = Fragment("toy", ila, {"n": N}, {"x": X}, kernel)
    with pytest.raises(InstanceError) as error:
        Template.of(toy, {"n": 1})
    assert str(error.value).startswith("Input write of command 'put' of fragment toy must be made of known numbers")
