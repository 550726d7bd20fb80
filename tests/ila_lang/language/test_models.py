"""Models: what building one refuses, what a machine does, how a model is listed, how fragments run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ila_lang as il
from ila_lang import BOOL, CommandError, Fragment, Ila, Kernel, Machine, Memory, Simulator, bv, const, mem, var


def small() -> Ila:
    """A device that counts, swaps and copies."""
    ila = Ila("small", "A device for tests.")
    op, arg = ila.input("op", 4), ila.input("arg", 8)
    a, b = ila.state("a", 8, init=1, doc="first"), ila.state("b", 8, doc="second")
    buffer = ila.memory("buffer", 8, 8, init=0, doc="words")
    ila.set_valid(op != 15)
    ila.instruction("swap", "exchange").set_decode(op == 1).update(a, b).update(b, a)
    ila.instruction("write").set_decode(op == 2).update(buffer, buffer.store(arg, a)).update(a, buffer.load(arg))
    ila.instruction("low").set_decode(op < 1)
    ila.instruction("low_too").set_decode((op == 0) & (arg == 7))
    kernel = Kernel("fill", "fills the buffer")
    with kernel.loop("i", b) as i:
        kernel.store(buffer, i, kernel.load("old", buffer, i + 1) + a)
    kernel.done(b, 0)
    ila.instruction("run").set_decode(op == 3).update(a, arg).start(kernel, b < 16)
    return ila


TWICE = (
    "Name r must be introduced once in kernel k, not twice; a function that is called twice takes the name as an "
    "argument, or numbers it"
)


def error(kind: type[Exception], make: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        make()
    return str(caught.value)


def test_messages_of_a_model_under_construction() -> None:
    ila = small()
    a = ila.states["a"]
    new = ila.instruction("new")
    stranger = var("stranger", bv(8))
    assert error(ValueError, lambda: new.update(stranger, 1)) == (
        "State stranger must be declared in small before new updates it"
    )
    assert error(TypeError, lambda: new.update(a, const(1, 9))) == "Update of a in new must have sort bv8, not bv9"
    assert error(ValueError, lambda: new.update(a, stranger)) == (
        "Update of a in new must use only inputs and states of small, not stranger"
    )
    new.update(a, 1)
    assert error(ValueError, lambda: new.update(a, 2)) == "State a must be updated at most once in new, not twice"
    assert error(TypeError, lambda: new.set_decode(a)) == "Decode of new must have sort bool, not bv8"
    assert error(TypeError, lambda: ila.set_valid(a)) == "Valid condition of small must have sort bool, not bv8"
    assert error(ValueError, lambda: ila.state("op", 8)) == "Name op must be declared once in small, not twice"
    assert error(ValueError, lambda: ila.input("a", 8)) == "Name a must be declared once in small, not twice"
    assert error(ValueError, lambda: ila.instruction("new")) == (
        "Instruction new must be declared once in small, not twice"
    )
    assert error(ValueError, lambda: ila.state("c", 4, init=16)) == "Constant must fit in 4 bits unsigned, not 16"
    assert error(TypeError, lambda: ila.input("d", il.mem(4, 4))) == "Input d of small must not be a memory"


def test_messages_of_a_kernel_under_construction() -> None:
    ila = small()
    a, b = ila.states["a"], ila.states["b"]
    kernel = Kernel("k")
    register = kernel.let("r", const(0, 8))
    with kernel.loop("i", b) as i:
        not_introduced = "Register i must be introduced with let before kernel k assigns it"
        assert error(ValueError, lambda: kernel.assign(i, 3)) == not_introduced
    assert error(ValueError, lambda: kernel.let("r", a)) == TWICE
    assert error(TypeError, lambda: kernel.assign(register, const(0, 9))) == (
        "Value of register r must have sort bv8, not bv9"
    )
    assert error(ValueError, lambda: kernel.done(a, register)) == (
        "State a at the end of k must be set (done) to a term over states; r is a register or counter of the kernel, "
        "which has ended: store it in a memory of one word"
    )
    kernel.done(a, b)
    assert error(ValueError, lambda: kernel.done(a, 1)) == "State a must be set at most once at the end of k"
    start = ila.instruction("start")
    outside = Kernel("k")
    outside.let("r", var("elsewhere", bv(8)))
    assert error(ValueError, lambda: start.start(outside)) == ("Kernel k must use only states of small, not elsewhere")
    commanding = Kernel("k")
    commanding.command(data=b)
    assert error(ValueError, lambda: start.start(commanding)) == (
        "Kernel k must issue no commands; put them in a program fragment"
    )
    wrong = Kernel("k", on_done={"a": const(0, 9)})
    assert error(TypeError, lambda: start.start(wrong)) == "State a at the end of k must have sort bv8, not bv9"
    assert error(ValueError, lambda: ila.instructions["run"].start(wrong)) == (
        "Instruction run must start at most one kernel, not two"
    )
    again = Kernel("k", body=list(kernel.body))
    assert error(ValueError, lambda: again.let("r", a)) == TWICE


def test_messages_of_functions() -> None:
    assert error(TypeError, lambda: il.primitive(b=bv(8))(lambda a: a)) == (
        "Parameters of <lambda> must be ('b',), not ('a',)"
    )
    assert error(TypeError, lambda: il.primitive(bv(9), a=bv(8), name="f")(lambda a: a)) == (
        "Body of f must have sort bv9, not bv8"
    )
    assert error(ValueError, lambda: il.primitive(a=bv(8), name="f")(lambda a: a + var("z", bv(8)))) == (
        "Body of f must use only its parameters, not z"
    )
    shell = il.Function("shell", {"a": bv(8)}, bv(8), None)
    other = il.Function("other", {"a": bv(8)}, bv(8), shell(const(1, 8)))
    for wrong, message in (
        (var("a", bv(8)), "Body of shell must use only its parameters, not a"),
        (const(1, 9), "Body of shell must have sort bv8, not bv9"),
        (other(shell.params[0]), "Body of shell must not apply shell itself"),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            shell.body = wrong
        assert str(caught.value) == message and shell.body is None
    unknown = il.uninterpreted("g", bv(8), a=bv(8))
    assert error(ValueError, lambda: il.compile_function(unknown)) == (
        "Function g must have a body to be run; give it one or run another model"
    )


def test_messages_of_a_machine() -> None:
    machine = Machine(small())
    assert error(CommandError, lambda: machine.step({"op": 15})) == "{op=0xf} is not a valid command of small"
    assert error(CommandError, lambda: machine.step({"op": 9, "arg": 2})) == (
        "{op=0x9, arg=0x2} must select exactly one instruction of small; it selects none"
    )
    assert error(CommandError, lambda: machine.step({"op": 0, "arg": 7})) == (
        "{op=0x0, arg=0x7} must select exactly one instruction of small; it selects low, low_too"
    )
    assert error(CommandError, lambda: machine.step({"operation": 0})) == (
        "small has no input operation; it has op, arg"
    )
    assert machine.values == {"a": 1, "b": 0}


def test_updates_are_simultaneous_and_leave_the_rest_alone() -> None:
    machine = Machine(small())
    machine.memories["buffer"][9] = 77
    machine.values["b"] = 5
    assert machine.step({"op": 1}).name == "swap"
    assert machine.values == {"a": 5, "b": 1}
    assert machine.memories["buffer"] == {9: 77}
    machine.step({"op": 2, "arg": 9})
    assert machine.values == {"a": 77, "b": 1}
    assert machine.memories["buffer"] == {9: 5}


def test_a_kernel_runs_after_the_updates() -> None:
    machine = Machine(small())
    machine.memories["buffer"].update({1: 10, 2: 20, 3: 30})
    machine.values["b"] = 3
    machine.step({"op": 3, "arg": 4})
    assert machine.memories["buffer"] == {0: 14, 1: 24, 2: 34, 3: 30}
    assert machine.values == {"a": 4, "b": 0}
    machine.values["b"] = 16
    machine.step({"op": 3, "arg": 0})
    assert machine.values == {"a": 0, "b": 16}


def test_a_memory_can_take_the_contents_of_another() -> None:
    ila = Ila("pair")
    go = ila.input("go", BOOL)
    left, right = ila.memory("left", 4, 8, init=1), ila.memory("right", 4, 8, init=2)
    ila.instruction("swap").set_decode(go).update(left, right.store(0, 9)).update(right, left)
    machine = Machine(ila)
    machine.memories["left"][5] = 55
    machine.memories["right"][6] = 66
    machine.step({"go": 1})
    left_words, right_words = ([machine.memories[n][i] for i in range(7)] for n in ("left", "right"))
    assert left_words == [9, 2, 2, 2, 2, 2, 66]
    assert right_words == [1, 1, 1, 1, 1, 55, 1]


def test_conditional_stores_happen_in_order() -> None:
    ila = Ila("cond")
    go, which = ila.input("go", BOOL), ila.input("which", BOOL)
    memory = ila.memory("m", 4, 8)
    updated = il.ite(which, memory.store(1, 10), memory.store(1, 20).store(2, 30)).store(3, memory.load(1))
    ila.instruction("put").set_decode(go).update(memory, updated)
    machine = Machine(ila)
    machine.step({"go": 1, "which": 1})
    assert machine.memories["m"] == {1: 10, 3: 0}
    machine.step({"go": 1, "which": 0})
    assert machine.memories["m"] == {1: 20, 2: 30, 3: 10}


def test_the_listing_of_a_small_model() -> None:
    assert (
        il.show_ila(small())
        == """\
ILA small
  A device for tests.

inputs
  op                           bv4
  arg                          bv8

states
  a                            bv8        reset 0x1       first
  b                            bv8        no reset value  second
  buffer                       mem8x8     reset 0x0       words

valid  op != 0xf

instructions
  swap  -- exchange
    decode  op == 0x1
    a' = b
    b' = a
  write
    decode  op == 0x2
    buffer' = store(buffer, arg, a)
    a' = buffer[arg]
  low
    decode  op < 0x1
  low_too
    decode  (op == 0x0) and (arg == 0x7)
  run
    decode  op == 0x3
    a' = arg
    starts kernel fill when b < 0x10

kernel fill  -- fills the buffer
  for i in 0 .. b - 1:
    old := buffer[i + 0x1]
    buffer[i] := old + a
  at the end b := 0x0"""
    )


def test_shown_terms() -> None:
    a, m, t = var("a", bv(8)), var("m", il.mem(16, 8)), var("t", BOOL)
    assert repr(m.load(a.zext(16))) == "m[zext(a, 16)]"
    assert repr(m.load(a.zext(16) + 1)) == "m[zext(a, 16) + 0x1]"
    assert repr(m.load(il.concat(a, a * 3))) == "m[a ++ (a * 0x3)]"
    assert repr(il.ite(t, a, -a)) == "(a if t else (-a))"
    assert repr(~(a.slt(3))) == "not (a <s 0x3)"
    assert repr(a[3:1]) == "a[3:1]" and repr(a[3]) == "a[3]"
    assert il.show_expr(a + a + a + a, limit=5) == "((a + ... (12 more characters)"


# -- fragments --------------------------------------------------------------------------------------------


def store_and_load() -> Fragment:
    """Writes ``source`` to the device word by word, runs it, and reads a register and the buffer back."""
    ila = small()
    size = var("size", bv(8))
    source, target = var("source", il.mem(8, 8)), var("target", il.mem(8, 8))
    program = Kernel("program")
    with program.loop("i", size) as i:
        word = program.load("word", source, i)
        program.command("set a", op=const(3, 4), arg=word)
        program.command(op=const(2, 4), arg=i)
        program.store(target, i, ila.states["a"])
        program.store(target, i + 100, ila.states["buffer"].load(i))
    return Fragment("fragment", ila, {"size": size}, {"source": source, "target": target}, program)


def test_a_fragment_runs_and_reads_the_device() -> None:
    fragment = store_and_load()
    machine = Machine(fragment.ila)
    machine.memories["buffer"].update({0: 50, 1: 51})
    target, seen = Memory(), []
    source = Memory(0, {0: 7, 1: 8})
    result = il.run_fragment(
        fragment,
        {"size": 2},
        {"source": source, "target": target},
        machine,
        lambda c, n: seen.append((dict(c), n)),
    )
    assert result is machine
    assert target == {0: 50, 100: 7, 1: 51, 101: 8}
    assert seen[:2] == [({"op": 3, "arg": 7}, "set a"), ({"op": 2, "arg": 0}, "")]
    assert machine.values == {"a": 51, "b": 0}
    assert source == {0: 7, 1: 8}


def test_messages_of_fragments() -> None:
    fragment = store_and_load()
    assert (
        error(ValueError, lambda: il.run_fragment(fragment, {}, {}))
        == "Fragment fragment must be given size, source, target"
    )
    ila, program = small(), Kernel("p")
    program.command(op=const(0, 5))
    assert error(TypeError, lambda: Fragment("f", ila, {}, {}, program)) == (
        "Input op of small must have sort bv4, not bv5"
    )
    unknown = Kernel("p")
    unknown.command(power=const(0, 5))
    assert error(TypeError, lambda: Fragment("f", ila, {}, {}, unknown)) == (
        "Input of small must be one of op, arg, not power"
    )
    size = var("size", bv(8))
    assert error(TypeError, lambda: Fragment("f", ila, {}, {"x": size}, Kernel("p"))) == (
        "Tensor x of fragment f must be a memory, not bv8"
    )


@pytest.mark.parametrize(
    ("sizes", "tensors", "kind", "message"),
    [
        ({"size": 1 << 8}, {}, ValueError, "Size size of fragment fragment must fit in 8 bits unsigned, not 256"),
        ({"size": -1}, {}, ValueError, "Size size of fragment fragment must fit in 8 bits unsigned, not -1"),
        ({"size": 1.5}, {}, TypeError, "Size size of fragment fragment must be an integer, not 1.5"),
        ({"q": 3}, {}, ValueError, "Size q of fragment fragment must be one of its sizes (size)"),
        (
            {},
            {"source": Memory(0, {0: 300})},
            ValueError,
            "Word of tensor source of fragment fragment must fit in 8 bits unsigned, not 300",
        ),
        (
            {},
            {"source": Memory(-3)},
            ValueError,
            "Word of tensor source of fragment fragment must fit in 8 bits unsigned, not -3",
        ),
        (
            {},
            {"source": Memory(0, {256: 1})},
            ValueError,
            "Address of tensor source of fragment fragment must fit in 8 bits unsigned, not 256",
        ),
        ({}, {"source": [1, 2]}, TypeError, "Tensor source of fragment fragment must be a Memory, not a list"),
        (
            {},
            {"other": Memory()},
            ValueError,
            "Tensor other of fragment fragment must be one of its tensors (source, target)",
        ),
    ],
)
def test_a_run_is_given_sizes_and_words_that_fit_and_nothing_else(
    sizes: Any, tensors: Any, kind: type[Exception], message: str
) -> None:
    given = {"source": Memory(), "target": Memory()} | tensors
    assert error(kind, lambda: il.run_fragment(store_and_load(), {"size": 2} | sizes, given)) == message


def test_a_function_has_one_body() -> None:
    f = il.Function("f", {"x": bv(8)}, bv(8), None)
    f.body = f.params[0] + 1
    f.body = f.params[0] + 1
    assert il.compile_function(f)(4) == 5
    for other in (f.params[0] + 7, None):
        with pytest.raises(ValueError) as caught:
            f.body = other
        assert str(caught.value) == "Body of f must be set once; make a new function for another body"
    assert f.body is f.params[0] + 1


CHANGES: dict[str, Callable[[Ila], object]] = {
    "kernel": lambda ila: ila.kernels["fill"].store(ila.states["buffer"], 0, 77),
    "end of the kernel": lambda ila: ila.kernels["fill"].done(ila.states["a"], 9),
    "states that are updated": lambda ila: ila.instructions["run"].updates.update(
        b=ila.instructions["run"].updates.pop("a")
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("kind", [Machine, Simulator])
def test_a_new_machine_runs_the_model_as_it_is_now(kind: type[Machine], change: Callable[[Ila], object]) -> None:
    def ran(ila: Ila) -> object:
        machine = kind(ila)
        machine.values["b"] = 3
        machine.step({"op": 3, "arg": 4})
        return machine.values, [machine.memories["buffer"][i] for i in range(256)]

    ila, other = small(), small()
    before = ran(ila)
    change(ila)
    change(other)
    assert ran(ila) == ran(other) != before


@pytest.mark.parametrize("kind", [Machine, Simulator])
def test_a_machine_of_a_model_that_changed_does_not_begin_to_mix_both(kind: type[Machine]) -> None:
    ila = small()
    machine = kind(ila)
    ila.kernels["fill"].store(ila.states["buffer"], 0, 77)
    assert error(ValueError, lambda: machine.step({"op": 3})) == (
        "Model small must not change while a machine of it runs; make a new machine"
    )
    ila.kernels["fill"].body.pop()
    kind(ila).step({"op": 3, "arg": 4})


def test_a_run_on_arrays_is_of_the_kernel_as_it_is_now() -> None:
    kernel, memory = Kernel("k"), var("m", mem(2, 8))
    kernel.store(memory, 0, 1)
    words = np.zeros(4, np.int64)
    il.run_on_arrays(kernel, {}, {"m": words})
    kernel.store(memory, 1, 2)
    il.run_on_arrays(kernel, {}, {"m": words})
    assert words.tolist() == [1, 2, 0, 0]
