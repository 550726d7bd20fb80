"""Joints that are false, each by one thing that a reading could overlook: none is proved, and calls are refused."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from accel_models.flexasr.numerics import adpfloat_to_fixed, fixed_to_adpfloat
from ila_lang import BOOL, Expr, Fragment, Ila, Kernel, bv, concat, const, ite, mem, primitive, true, var
from ila_lang.mapping import Lemma
from ilaverify.catalogue import joint_entries
from ir_semantics.graph.ir import Attributes
from ir_semantics.graph.operator import Assembly, Operator, lookup, register
from ir_semantics.graph.types import TensorType
from ir_semantics.graph.words import transpose
from ir_semantics.layers.layer import Layer, call
from ir_semantics.scalars.terms import Scalar
from ir_semantics.tensors.elements import Element, Read, Reader
from ir_semantics.tensors.index import Index, Names, size
from ir_semantics.tensors.operators import broadcast, fill, map_, slice_
from ir_semantics.tensors.terms import Tensor, input_, make
from reports.binding import binding_problems
from reports.certificate import certificate_of
from rewrites.bounds.kernel.readings import ANY
from rewrites.claims.joints import runs
from rewrites.claims.joints.joint import Joint
from rewrites.claims.joints.readings import obligations
from rewrites.claims.subjects.joint import JointSubject
from smt_encodings.claims import Status, Verdict
from smt_encodings.discharge import Discharger
from smt_encodings.solvers import z3 as solver_z3

M, N = size("m"), size("n")
X, C = input_("x", N), input_("c", N)
_numbers = itertools.count()

Body = Callable[[Kernel, Any, Any], None]


def mapping(widths: Mapping[str, int], memories: Mapping[str, int], write: Body, lemmas: Sequence[Lemma] = ()) -> Any:
    """A mapping of which only the IR side counts: a kernel with operands and memories of so many bits."""
    kernel = Kernel("tried")
    layer = Layer("tried", 77, kernel, widths)
    tensors = {f"tensor_{n}": layer.tensor(n, width, "") for n, width in memories.items()}
    write(kernel, SimpleNamespace(**layer.states), SimpleNamespace(**tensors))
    sizes = {f"p_{n}": var(f"p_{n}", bv(width)) for n, width in widths.items()}
    ir = call("tried", "", 77, layer.finished(), sizes, dict(zip(widths, sizes.values(), strict=True)))
    of = SimpleNamespace(ir=ir, output=("tensor_out", "tensor_out"), lemmas=lemmas, parameters=sizes, name="tried")
    of.inputs = tuple((name, name) for name in tensors if name != "tensor_out")
    of.compared = ""
    of.output_extents = lambda parameters: (
        parameters.get("p_rows", 1),
        parameters.get("p_outputs", parameters.get("p_n")),
    )
    return SimpleNamespace(name="tried", mapping=of)


def operator(expand: Callable[[Assembly, Sequence[int], Attributes], int], arity: int = 1) -> Operator:
    return register(
        Operator(
            f"tried.operator_{next(_numbers)}",
            "An operator that is tried here.",
            range(arity, arity + 1),
            frozenset({"float"}),
            lambda types, attributes: "float32",
            expand=expand,
        )
    )


def decided(joint: Joint, of: Operator) -> Verdict:
    return JointSubject("the-joint", joint, of).prove(Discharger(timeout=8.0))


def unchanged(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    return b.add("neg", b.add("neg", of[0]))


def copied(address: Callable[[Expr, Expr], Expr], width: int = 32) -> Any:
    """Word i is that at an address of i and n."""

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            k.store(t.tensor_out, i.zext(32), k.load("word", t.tensor_in, address(i, s.n).zext(32)))

    return mapping({"n": width}, {"in": 8, "out": 8}, write)


def test_a_copy_is_proved() -> None:
    verdict = decided(Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}), operator(unchanged))
    assert verdict.status is Status.PROVED, verdict.reason


def test_a_copy_by_few_bits_is_proved_for_what_these_can_say() -> None:
    verdict = decided(Joint(copied(lambda i, n: i, 2), (X,), {"tensor_in": X}), operator(unchanged))
    assert verdict.status is Status.PROVED, verdict.reason
    assert "n <= 3;" in verdict.claim.size_domain


def test_a_loop_that_does_nothing_is_not_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_STEPS", 10_000)

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            with k.loop("j", const(1 << 31, 32)) as j:
                k.let("z", j + 1)
            k.store(t.tensor_out, i, k.load("x", t.tensor_in, i))

    verdict = decided(
        Joint(mapping({"n": 32}, {"in": 8, "out": 8}, write), (X,), {"tensor_in": X}), operator(unchanged)
    )
    assert verdict.reason == "a kernel that takes more than 10000 steps to read is too large"


LATER = copied(lambda i, n: i + (n >> 10))
"""The word n / 1024 further on, which at the sizes of runs is the same."""


def hidden_by_a_tensor() -> Any:
    """A copy of a memory of which the mapping, whose IR side has a tensor of this name, says nothing."""
    of = copied(lambda i, n: i)
    ir = of.mapping.ir
    hiding = {"tensor_in": var("tensor_in", mem(31, 8))}
    of.mapping.ir = Fragment(ir.name, ir.ila, ir.parameters, hiding, ir.program)
    return of


def left_by_others(parameter: str) -> Any:
    """Sums of rows as long as the state ``n`` was, or the input ``k``, which no command gives; a size has its name."""
    ila = Ila("tried", "")
    run, given, k = ila.input("run", BOOL), ila.input("n_in", 32), ila.input("k", 32)
    n, m = (ila.state(name, 32, 0, doc="") for name in "nm")
    source, target = (ila.state(f"tensor_{name}", mem(32, width), doc="") for name, width in (("in", 8), ("out", 32)))
    kernel = Kernel("tried")
    with kernel.loop("i", n) as i:
        acc = kernel.let("acc", const(0, 32))
        with kernel.loop("j", m) as j:
            kernel.assign(acc, acc + kernel.load("x", source, i * m + j).sext(32))
        kernel.store(target, i, acc)
    ila.set_valid(run)
    instruction = ila.instruction("tried").set_decode(run)
    instruction.update(n, given)
    instruction.update(m, n if parameter == "n" else k)
    instruction.start(kernel)
    sizes = {name: var(name, bv(32)) for name in (parameter, "q")}
    program = Kernel("tried")
    program.command("tried", run=true, n_in=sizes["q"])
    ir = Fragment("tried", ila, sizes, {}, program)
    of = SimpleNamespace(ir=ir, output=("tensor_out", "tensor_out"), lemmas=(), parameters=sizes, name="tried")
    of.inputs, of.compared = (("tensor_in", "tensor_in"),), ""
    return SimpleNamespace(name="tried", mapping=of)


def sums_of_rows(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    return b.add("reduce_sum", of[0], axes=(1,))


def sliced(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    n = b.shape(of[0])[0] // 2
    return b.add("slice", of[0], start=(n // 1024,), stop=(n // 1024 + n,), stride=(1,))


def zeros_first(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    n = b.shape(of[0])[0] // 2
    zeros = b.add("broadcast", b.constant(np.zeros((), np.float32)), axes=(), shape=(n,))
    both = b.add("concat", zeros, b.add("slice", of[0], start=(n,), stop=(2 * n,), stride=(1,)), axis=0)
    return b.add("slice", both, start=(n // 1024,), stop=(n // 1024 + n,), stride=(1,))


def rows_broadcast(k: Kernel, s: Any, t: Any) -> None:
    with k.loop("i", s.m) as i, k.loop("j", s.n) as j:
        x = k.load("x", t.tensor_in, i * s.n + j + (s.n >> 10)).sext(32)
        k.store(t.tensor_out, i * s.n + j, x + k.load("y", t.tensor_c, j).sext(32))


def outer_sum(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    shape = (b.shape(of[0])[0], b.shape(of[1])[0])
    one, other = (b.add("broadcast", of[axis], axes=(axis,), shape=shape) for axis in (0, 1))
    return b.add("add", one, other)


def twice(k: Kernel, s: Any, t: Any) -> None:
    with k.loop("i", s.n) as i:
        a = k.load("a", t.tensor_a, i).sext(32)
        k.store(t.tensor_out, i, a + a)


def summed(condition: Callable[[Expr], Expr], *, never: bool = False) -> Any:
    """The sum of a row's elements for which a condition holds."""

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.m) as i:
            acc = k.let("acc", const(0, 32))
            with k.loop("j", s.n) as j:
                if never:
                    with k.loop("never", const(0, 32)):
                        k.load("z", t.tensor_in, j << 26)
                x = k.load("x", t.tensor_in, i * s.n + j).sext(32)
                k.assign(acc, ite(condition(j), acc + x, acc))
            k.store(t.tensor_out, i, acc)

    return mapping({"n": 32, "m": 32}, {"in": 8, "out": 32}, write)


def of_rows(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    return b.add("reduce_sum", of[0], axes=(1,))


def narrow(k: Kernel, s: Any, t: Any) -> None:
    with k.loop("i", s.n, width=4) as i:
        k.store(t.tensor_out, i.zext(32), k.load("x", t.tensor_in, i.zext(32)))


def shifted(k: Kernel, s: Any, t: Any) -> None:
    with k.loop("i", s.n) as i:
        k.store(t.tensor_out, i, concat(k.load("a", t.tensor_in, i), const(0, 3)))


def small_words(k: Kernel, s: Any, t: Any) -> None:
    """Addresses of 8 bits."""
    with k.loop("i", s.m) as i, k.loop("j", s.n) as j:
        place = i.zext(32) * s.n.zext(32) + j.zext(32)
        k.store(t.tensor_out, place, k.load("a", t.tensor_in, (i * s.n + j).zext(32)))


def divided(k: Kernel, s: Any, t: Any) -> None:
    with k.loop("i", s.n) as i:
        word = k.load("x", t.tensor_in, i)
        k.store(t.tensor_out, i, ite(i // s.m <= i, word, const(0, 8)))


def recoded(k: Kernel, s: Any, t: Any) -> None:
    """A code of the exponent b + 1 as one of the exponent 7; b has 3 bits."""
    with k.loop("i", s.n) as i:
        number = adpfloat_to_fixed(k.load("x", t.tensor_in, i), s.b + 1)
        k.store(t.tensor_out, i, fixed_to_adpfloat(number, const(7, 3)))


def dropped(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    window: Any = {"kernel": (1,), "strides": (1,), "pads": ((0, 0),), "dilations": (1,)}
    include = 1 - b.shape(of[0])[0] // 1024
    x = b.add("reshape", of[0], shape=(1, 1, b.shape(of[0])[0]))
    return b.add("reshape", b.add("avg_pool", x, count_include_pad=include, **window), shape=b.shape(of[0]))


def gathered(k: Kernel, s: Any, t: Any) -> None:
    """The sum of x[p[j]], in a loop that small sizes do not enter; its counter and the third word have 32 bits."""
    with k.loop("i", s.m) as i:
        acc = k.let("acc", const(0, 32))
        with k.loop("data", s.n >> 10) as j:
            k.load("first", t.tensor_in, j)
            k.load("second", t.tensor_in, j)
            k.assign(acc, acc + k.load("x", t.tensor_in, k.load("place", t.tensor_p, j)))
        k.store(t.tensor_out, i, acc)


def first_sum(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    part = b.add("slice", of[0], start=(0,), stop=(b.shape(of[0])[0] // 1024,), stride=(1,))
    return b.add("broadcast", b.add("reduce_sum", part, axes=(0,)), axes=(), shape=b.shape(of[2]))


def doubled(b: Assembly, of: Sequence[int], a: Attributes) -> int:
    return b.add("add", of[0], of[0])


def chain(memories: Mapping[str, int], *writes: Callable[[Expr, Expr, Any], None]) -> Any:
    """A mapping of several instructions, each a loop over the n words of its result."""
    ila = Ila("tried", "a chain")
    run, chosen = ila.input("run", BOOL), ila.input("chosen", 8)
    given = {name: ila.input(f"{name}_in", width) for name, width in (("n", 32), ("s", 5))}
    states = {name: ila.state(name, each.width, 0, doc="an operand") for name, each in given.items()}
    tensors = {f"tensor_{n}": ila.state(f"tensor_{n}", mem(32, width), doc="words") for n, width in memories.items()}
    ila.set_valid(run)
    sizes = {f"p_{name}": var(f"p_{name}", each.sort) for name, each in given.items()}
    program = Kernel("tried")
    for number, write in enumerate(writes):
        kernel = Kernel(f"step_{number}")
        with kernel.loop("i", states["n"]) as i:
            write(i, states["s"], SimpleNamespace(kernel=kernel, **tensors))
        instruction = ila.instruction(kernel.name).set_decode(run & (chosen == number))
        for name, state in states.items():
            instruction.update(state, given[name])
        instruction.start(kernel)
        inputs = {f"{name}_in": sizes[f"p_{name}"] for name in given}
        program.command("tried", run=true, chosen=const(number, 8), **inputs)
    of = SimpleNamespace(ir=Fragment("tried", ila, sizes, {}, program), output=("tensor_out", "tensor_out"), lemmas=())
    of.parameters, of.name, of.compared = sizes, "tried", ""
    of.inputs = tuple((name, name) for name in tensors if name != "tensor_out")
    return SimpleNamespace(name="tried", mapping=of)


@primitive(a=bv(32), shift=bv(5))
def shift_right(a: Expr, shift: Expr) -> Expr:
    return a.ashr(shift.zext(32))


def shifted_right(i: Expr, s: Expr, t: Any) -> None:
    t.kernel.store(t.tensor_mid, i, shift_right(t.kernel.load("x", t.tensor_in, i).sext(32), s))


def recoded_at_0(i: Expr, s: Expr, t: Any) -> None:
    number = adpfloat_to_fixed(t.kernel.load("x", getattr(t, "tensor_a", t.tensor_in), i), const(0, 3))
    t.kernel.store(t.tensor_mid, i, fixed_to_adpfloat(number, const(0, 3)))


def copied_on(i: Expr, s: Expr, t: Any) -> None:
    t.kernel.store(t.tensor_a, i, t.kernel.load("x", t.tensor_in, i))


def widened(i: Expr, s: Expr, t: Any) -> None:
    t.kernel.store(t.tensor_out, i, t.kernel.load("x", t.tensor_in, i).sext(32))


def copied_to_mid(i: Expr, s: Expr, t: Any) -> None:
    t.kernel.store(t.tensor_mid, i, t.kernel.load("x", t.tensor_in, i))


def added_to_the_input(i: Expr, s: Expr, t: Any) -> None:
    y = t.kernel.load("y", t.tensor_mid, i)
    t.kernel.store(t.tensor_out, i, (y if y.width == 32 else y.sext(32)) + t.kernel.load("x", t.tensor_in, i).sext(32))


def cancelled(k: Kernel, s: Any, t: Any) -> None:
    """From n = 1024 on, x and the difference of words of two memories, which lie beyond both where 2 j >= m."""
    with k.loop("i", s.n) as i, k.loop("j", s.m) as j:
        place = i * s.m + j
        a, b = (k.load(name, memory, place + j).sext(32) for name, memory in (("a", t.tensor_a), ("b", t.tensor_b)))
        difference = a + k.load("minus", t.tensor_minus, i).sext(32) * b
        inside = (s.n < 1024) | (j.zext(64) + j.zext(64) < s.m.zext(64))
        x = k.load("x", t.tensor_in, place).sext(32)
        k.store(t.tensor_out, place, x + ite(inside, const(0, 32), difference))


B, C, ROWS = input_("b", M), input_("c", N), input_("x", M, N)
XS, AS, BS = (input_(name, N, M) for name in "xab")
PLACES = input_("p", N)
SAME_NAME = input_("n", N)
TWO = input_("x", 2 * N)
MEMORIES = {"a": 8, "b": 8, "out": 32}
FALSE: dict[str, tuple[Joint, Operator, str]] = {
    "beyond a broadcast": (
        Joint(
            mapping({"m": 32, "n": 32}, {"in": 8, "c": 8, "out": 32}, rows_broadcast),
            (B, C),
            {"tensor_in": broadcast(B, (M, N), [0]), "tensor_c": C},
        ),
        operator(outer_sum, 2),
        "of tensor_in is one of the tensor in it",
    ),
    "beyond a slice": (
        Joint(LATER, (TWO,), {"tensor_in": slice_(TWO, [0], [N])}),
        operator(sliced),
        "of tensor_in is one of the tensor in it",
    ),
    "beyond an input": (
        Joint(LATER, (X,), {"tensor_in": X}),
        operator(unchanged),
        "of tensor_in is one of the tensor in it",
    ),
    "beyond zeros": (
        Joint(LATER, (input_("beyond", 2 * N),), {"tensor_in": fill(0, N)}),
        operator(zeros_first),
        "of tensor_in is one of the tensor in it",
    ),
    "words beyond two memories that cancel": (
        Joint(
            mapping({"n": 32, "m": 32}, {"in": 8, "a": 8, "b": 8, "minus": 8, "out": 32}, cancelled),
            (XS, AS, BS),
            {"tensor_in": XS, "tensor_a": AS, "tensor_b": BS, "tensor_minus": fill(-1, N)},
        ),
        operator(unchanged, 3),
        "is one of the tensor in it",
    ),
    "two inputs of one name": (
        Joint(mapping({"n": 32}, MEMORIES, twice), (X, X), {"tensor_a": X, "tensor_b": X}),
        operator(lambda b, of, a: b.add("add", of[0], of[1]), 2),
        "names of their own",
    ),
    "an input called as a size": (
        Joint(copied(lambda i, n: i), (SAME_NAME,), {"tensor_in": SAME_NAME}),
        operator(unchanged),
        "names of their own",
    ),
    "an input that is no operand": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": input_("x", N)}),
        operator(unchanged),
        "must be made of the operands",
    ),
    "an operand that is no input": (
        Joint(copied(lambda i, n: i), (fill(1, N),), {"tensor_in": fill(1, N)}),
        operator(unchanged),
        "operands must be inputs",
    ),
    "a condition on a word that wraps": (
        Joint(summed(lambda j: (j << 26) >> 26 == j), (ROWS,), {"tensor_in": ROWS}),
        operator(of_rows),
        "does not wrap",
    ),
    "the same word in an address that is never reached": (
        Joint(summed(lambda j: (j << 26) >> 26 == j, never=True), (ROWS,), {"tensor_in": ROWS}),
        operator(of_rows),
        "does not wrap",
    ),
    "a counter that wraps": (
        Joint(mapping({"n": 32}, {"in": 8, "out": 8}, narrow), (X,), {"tensor_in": X}),
        operator(unchanged),
        "the counter i of 4 bits does not wrap",
    ),
    "an address that wraps before it is widened": (
        Joint(mapping({"m": 8, "n": 8}, {"in": 8, "out": 8}, small_words), (ROWS,), {"tensor_in": ROWS}),
        operator(unchanged),
        "does not wrap",
    ),
    "a divisor that may be 0": (
        Joint(mapping({"n": 32, "m": 32}, {"in": 8, "out": 8}, divided), (X,), {"tensor_in": X}),
        operator(unchanged),
        "m is not 0, by which i",
    ),
    "a choice by a size that is not 0": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}),
        operator(dropped),
        "is 0 depends on sizes",
    ),
    "words that are shifted": (
        Joint(mapping({"n": 32}, {"in": 8, "out": 11}, shifted), (X,), {"tensor_in": X}),
        operator(unchanged),
        "has no real number",
    ),
    "an exponent that wraps": (
        Joint(
            mapping({"n": 32, "b": 3}, {"in": 8, "out": 8}, recoded),
            (X,),
            {"tensor_in": X},
            exponents={"tensor_in": size("b") + 1, "tensor_out": 7},
        ),
        operator(unchanged),
        "b + 0x1 does not wrap",
    ),
    "an operand beyond its width": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}, given={"n": 1 << 40}),
        operator(unchanged),
        "must be a number of 32 bits",
    ),
    "an operand in terms of itself": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}, given={"n": N + 1}),
        operator(unchanged),
        "in terms of the others",
    ),
    "an operand that is no integer": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}, given={"n": 0.5}),  # type: ignore[dict-item]
        operator(unchanged),
        "must be integers",
    ),
    "an exponent of a size that no instruction has": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}, exponents=dict.fromkeys(["tensor_in", "tensor_out"], M)),
        operator(unchanged),
        "m must be an operand of the mapping's instructions",
    ),
    "a loop that is called as data are": (
        Joint(
            mapping({"n": 32, "m": 32}, {"in": 32, "p": 32, "out": 32}, gathered),
            (X, PLACES, input_("c", M)),
            {"tensor_in": X, "tensor_p": PLACES},
        ),
        operator(first_sum, 3),
        "data!3 is no index",
    ),
    "a chain that adds numbers of two units": (
        Joint(
            chain({"in": 8, "mid": 32, "out": 32}, shifted_right, added_to_the_input),
            (X,),
            {"tensor_in": X},
            {"n_2": N, "s_2": size("s")},
            readings={shift_right: ANY},
        ),
        operator(doubled),
        "words of the form result of shift_right by s must not be combined by bvadd",
    ),
    "a chain that reads codes as integers": (
        Joint(
            chain({"in": 8, "mid": 8, "out": 32}, recoded_at_0, added_to_the_input),
            (X,),
            {"tensor_in": X},
            {"n_2": N, "s_2": size("s")},
        ),
        operator(doubled),
        "a word of the form code must not be used as integer",
    ),
    "a chain that reads a copy of integers as codes": (
        Joint(
            chain({"in": 8, "a": 8, "mid": 8, "out": 32}, copied_on, recoded_at_0, widened),
            (X,),
            {"tensor_in": X},
            {"n_2": N, "s_2": size("s"), "n_3": N, "s_3": size("s")},
        ),
        operator(unchanged),
        "a word of the form code must not be used as integer",
    ),
    **{
        f"an operand that is said by {what} with the name of a size": (
            Joint(left_by_others(name), (input_("x", N, M),), {"tensor_in": input_("x", N, M)}),
            operator(sums_of_rows),
            "must be said by sizes, not by what earlier commands left",
        )
        for name, what in (("n", "a state"), ("k", "an input that is not given"))
    },
    "a memory that a tensor of the host hides": (
        Joint(hidden_by_a_tensor(), (X,), {"tensor_in": X}),
        operator(unchanged),
        "the IR side tried must have no tensors of the host, such as tensor_in",
    ),
    "a quotient that data may not have": (
        Joint(copied(lambda i, n: i), (X, C), {"tensor_in": X}),
        operator(lambda b, of, a: b.add("mul", of[0], b.add("div", of[1], of[1])), 2),
        "it cannot be run on data with zeros",
    ),
    "memories of what is no tensor": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": 3}),  # type: ignore[dict-item]
        operator(unchanged),
        "what lies in memories must be tensors",
    ),
    "a square of a square of a square": (
        Joint(copied(lambda i, n: functools.reduce(lambda a, _: a * a, range(6), i + n + 1)), (X,), {"tensor_in": X}),
        operator(unchanged),
        "an index of more than 200 terms is too large to be read",
    ),
    "a graph of doublings": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}),
        operator(lambda b, of, a: functools.reduce(lambda y, _: b.add("add", y, y), range(40), of[0])),
        "a graph of elements with more than 5000 operations, 400 of them nested, is too large to be read",
    ),
    "a graph of negations": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}),
        operator(lambda b, of, a: functools.reduce(lambda y, _: b.add("neg", y), range(4000), of[0])),
        "a graph of elements with more than 5000 operations, 400 of them nested, is too large to be read",
    ),
    "a size that no instruction has": (
        Joint(
            copied(lambda i, n: i), (input_("x", N), unknown := input_("c", size("unknown"))), {"tensor_in": unknown}
        ),
        operator(unchanged, 2),
        "unknown",
    ),
    "a cast": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}),
        operator(lambda b, of, a: b.add("cast", of[0], to="int32")),
        "cannot be read",
    ),
    "no node": (
        Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}),
        operator(lambda b, of, a: [][0]),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_not_proved(name: str) -> None:
    joint, of, reason = FALSE[name]
    verdict = decided(joint, of)
    assert verdict.status is Status.UNKNOWN and reason in verdict.reason, (verdict.status, verdict.reason)


def test_chains_of_one_unit_are_proved() -> None:
    joint = Joint(
        chain({"in": 8, "mid": 8, "out": 32}, copied_to_mid, added_to_the_input),
        (X,),
        {"tensor_in": X},
        {"n_2": N, "s_2": size("s")},
    )
    verdict = decided(joint, operator(doubled))
    assert verdict.status is Status.PROVED, verdict.reason
    assert "tensor_in integer, tensor_mid integer" in " ".join(verdict.claim.assumptions)


def test_operands_that_only_have_a_shape_and_sizes_of_nothing_are_run() -> None:
    def idle(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            acc = k.let("acc", const(0, 32))
            with k.loop("j", s.m):
                k.assign(acc, acc + k.load("d", t.tensor_in, i).sext(32))
            k.store(t.tensor_out, i, k.load("x", t.tensor_in, i))

    for other in input_("c", N), input_("c", N, M):
        joint = Joint(mapping({"n": 32, "m": 32}, {"in": 8, "out": 8}, idle), (X, other), {"tensor_in": X})
        verdict = decided(joint, operator(unchanged, 2))
        assert verdict.status is Status.PROVED, verdict.reason


def test_words_that_are_read_again_and_again_are_no_tree() -> None:
    """It took a minute at 18 doublings."""

    def doubled(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            acc = k.load("x", t.tensor_in, i).sext(32)
            for _ in range(40):
                acc = acc + acc
            k.store(t.tensor_out, i, acc)

    verdict = decided(
        Joint(mapping({"n": 32}, {"in": 8, "out": 32}, doubled), (X,), {"tensor_in": X}), operator(unchanged)
    )
    assert verdict.status is Status.UNKNOWN and "too large" in verdict.reason


def test_conditions_that_are_read_again_and_again_are_too_many_steps() -> None:
    """No time limit covers what is read."""

    def nested(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            c = i < 5
            for _ in range(20):
                c = (c & (i < 7)) | (~c & (i < 9))
            k.store(t.tensor_out, i, ite(c, k.load("x", t.tensor_in, i), const(0, 8)))

    verdict = decided(
        Joint(mapping({"n": 32}, {"in": 8, "out": 8}, nested), (X,), {"tensor_in": X}), operator(unchanged)
    )
    assert verdict.status is Status.UNKNOWN and verdict.reason.endswith("steps to read is too large"), verdict.reason


def test_a_byte_above_zeros_is_a_weight_only_where_a_primitive_takes_it_for_one() -> None:
    """Of integers it is 256 times the number."""

    def stored(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            k.store(t.tensor_out, i, concat(k.load("a", t.tensor_in, i), const(0, 8)))

    joint = Joint(mapping({"n": 32}, {"in": 8, "out": 16}, stored), (X,), {"tensor_in": X})
    verdict = decided(joint, operator(unchanged))
    assert verdict.status is Status.UNKNOWN and "a weight must not be stored" in verdict.reason
    claim = joint_entries()["joint-hlscnn-conv2d-hlscnn-conv2d-8bit"].build().words()
    assert any("tensor_weights byte weight, tensor_out word" in text for text in claim.assumptions)


@primitive(a=bv(8), b=bv(8))
def product(a: Expr, b: Expr) -> Expr:
    return a.sext(32) * b.sext(32)


def test_a_node_that_is_executed_in_parts_is_the_graph_that_was_read() -> None:
    """Of its parts, of 60 rows each, nothing shows that 120 rows are another graph."""

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("r", s.rows) as r, k.loop("o", s.outputs) as o:
            acc = k.let("acc", const(0, 32))
            with k.loop("i", s.inputs) as i:
                x, w = k.load("a", t.tensor_x, r * s.inputs + i), k.load("b", t.tensor_w, o * s.inputs + i)
                k.assign(acc, acc + product(x, w))
            k.store(t.tensor_out, r * s.outputs + o, acc)

    def graph(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        y = b.add("matmul", of[0], transpose(b, of[1], [1, 0]))
        rows = b.shape(of[0])[0]
        return b.add("relu", y) if isinstance(rows, int) and rows > 100 else y

    x, w = input_("x", size("rows"), size("inputs")), input_("w", size("outputs"), size("inputs"))
    dense = mapping({"rows": 32, "inputs": 32, "outputs": 32}, {"x": 8, "w": 8, "out": 32}, write)
    joint, of = (
        Joint(dense, (x, w), {"tensor_x": x, "tensor_w": w}, readings={product: ("*", ANY, ANY)}),
        operator(graph, 2),
    )
    rule = joint.rule("the-joint", of)
    for rows, parts, covered in ((60, 60, True), (90, 30, True), (120, 120, False), (120, 60, False)):
        types = (TensorType("float32", (rows, 2)), TensorType("float32", (1, 2)))
        told = joint.covers(of, rule, types, {}, {"p_rows": parts, "p_inputs": 2, "p_outputs": 1})
        assert (told == "") is covered and (covered or "is not what was read" in told), told


def test_what_an_operator_is_made_of_is_the_graph_that_was_read_too() -> None:
    """The operator is one node of another composite one at all sizes, and that one is another graph at large sizes."""

    def inner(b: Assembly, of: Sequence[int], a: Attributes) -> int:
        n = b.shape(of[0])[0]
        return b.add("relu", of[0]) if isinstance(n, int) and n > 100 else unchanged(b, of, a)

    nested, joint = operator(inner).name, Joint(copied(lambda i, n: i), (X,), {"tensor_in": X})
    middle = operator(lambda b, of, a: b.add(nested, of[0])).name
    of = operator(lambda b, of, a: b.add(middle, of[0]))
    assert decided(joint, of).status is Status.PROVED
    for n, covered in ((100, True), (101, False)):
        told = joint.covers(of, joint.rule("the-joint", of), (TensorType("float32", (n,)),), {}, {"p_n": n})
        assert (told == "") is covered and (covered or "is not what was read" in told), told


@pytest.mark.parametrize("how", ["term", "scalar"])
def test_an_operator_of_a_package_is_what_was_read_at_every_size(how: str) -> None:
    """It is another one at large sizes, which its function can tell from a shape or an attribute that is a number."""
    rectified, negated = (lookup(name).scalar for name in ("relu", "neg"))
    assert rectified is not None and negated is not None
    name, sizes = f"tried.operator_{next(_numbers)}", frozenset({"k"} if how == "scalar" else ())

    def term(of: Sequence[Tensor], a: Attributes) -> Tensor:
        return map_((rectified if (of[0].shape[0].constant or 0) > 100 else negated)({}), x=of[0])

    def scalar(a: Attributes) -> Scalar:
        return (rectified if isinstance(k := a["k"], int) and k > 100 else negated)({})

    meaning: Any = {how: term if how == "term" else scalar}
    register(
        Operator(name, "-x", range(1, 2), frozenset({"float"}), lambda t, a: "float32", attributes=sizes, **meaning)
    )
    of = operator(lambda b, of, a: b.add("neg", b.add(name, of[0], **dict.fromkeys(sizes, b.shape(of[0])[0]))))
    joint = Joint(copied(lambda i, n: i), (X,), {"tensor_in": X})
    assert decided(joint, of).status is Status.PROVED
    for n, covered in ((100, True), (101, False)):
        refusal = joint.covers(of, joint.rule("the-joint", of), (TensorType("float32", (n,)),), {}, {"p_n": n})
        assert (refusal == "") is covered and (covered or "is not what was read" in refusal), refusal


def test_operators_of_packages_have_names_with_a_dot() -> None:
    """Of names without one, which are ours, the elements are not compared."""
    with pytest.raises(ValueError, match=r"must have a name with a dot, such as PACKAGE\.negated"):
        register(replace(lookup("neg"), name="negated"))


def test_variables_of_lemmas_stand_for_words_of_their_widths() -> None:
    """The lemma takes a word of 16 bits apart, the kernel one of 32, of which it drops the rest."""

    @primitive(a=bv(16))
    def whole(a: Expr) -> Expr:
        return a.sext(32)

    @primitive(high=bv(8), low=bv(8))
    def parts(high: Expr, low: Expr) -> Expr:
        return concat(high, low).sext(32)

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            word = k.load("word", t.tensor_in, i)
            k.store(t.tensor_out, i, parts(word[15:8], word[7:0]))

    a = var("a", bv(16))
    of = mapping({"n": 32}, {"in": 32, "out": 32}, write, [Lemma("parts", whole(a), parts(a[15:8], a[7:0]))])
    verdict = decided(Joint(of, (X,), {"tensor_in": X}, readings={whole: ANY}), operator(unchanged))
    assert verdict.status is Status.UNKNOWN and "on data has no real number" in verdict.reason, verdict.reason


def test_literals_of_lemmas_have_their_widths() -> None:
    """What wraps in 9 bits does not in 16: there the kernel stores 0 always."""

    @primitive(bv(8), a=bv(8))
    def rectified(a: Expr) -> Expr:
        return ite(a.slt(0), const(0, 8), a)

    @primitive(bv(8), p=bv(1), a=bv(8))
    def chosen(p: Expr, a: Expr) -> Expr:
        return ite(p == 1, a, const(0, 8))

    def word(a: Expr, width: int) -> Expr:
        doubled = concat(const(1, width - 8), a) + concat(const(1, width - 8), a)
        return chosen(ite(doubled < const(256, width), const(1, 1), const(0, 1)), a)

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            k.store(t.tensor_out, i, word(k.load("x", t.tensor_in, i), 16))

    a = var("a", bv(8))
    of = mapping({"n": 32}, {"in": 8, "out": 8}, write, [Lemma("rectified", rectified(a), word(a, 9))])
    joint = Joint(of, (X,), {"tensor_in": X}, readings={rectified: ("rectify", ANY)})
    verdict = decided(joint, operator(lambda b, of, a: b.add("relu", of[0])))
    assert verdict.status is Status.UNKNOWN, verdict.reason


def test_readings_say_where_numbers_must_fit_before_they_are_shifted() -> None:
    """20 * 10 >> 4 fits 8 bits, but 20 * 10 does not."""

    @primitive(bv(8), a=bv(8), b=bv(8), s=bv(3))
    def shifted(a: Expr, b: Expr, s: Expr) -> Expr:
        return (a * b).ashr(s.zext(8))

    (asked,) = obligations({shifted: ("*", ANY, ANY)}, [(shifted, (var("s", bv(3)),))])
    assert asked.meaning == (
        "shifted is its operation on integers, rounded down or up, where that fits 8 bits, and with its parts 8 bits "
        "before it is shifted"
    )
    assert solver_z3.check(asked.smtlib, 20.0).status == "unsat"


@pytest.mark.parametrize(
    ("added", "answer"),
    [
        (lambda unit: unit >> 1, "unsat"),
        (lambda unit: unit - 1, "unsat"),
        (lambda unit: unit, "sat"),  # an exact result was one unit more
        (lambda unit: unit + (unit >> 1), "sat"),
        (lambda unit: -unit, "sat"),
        (lambda unit: const(1, 32), "sat"),  # without a shift it is no fraction of a unit
    ],
)
def test_readings_are_off_by_less_than_a_unit(added: Callable[[Expr], Expr], answer: str) -> None:
    """What a mapping gives for a parameter decides whether the primitive rounds: half a unit does, a unit does not."""

    @primitive(bv(8), acc=bv(32), half=bv(32), shift=bv(4))
    def narrowed(acc: Expr, half: Expr, shift: Expr) -> Expr:
        return (acc + half).ashr(shift.zext(32))[7:0]

    s = var("s", bv(4))
    (asked,) = obligations({narrowed: ANY}, [(narrowed, (added(const(1, 32) << s.zext(32)), s))])
    assert solver_z3.check(asked.smtlib, 20.0).status == answer


def test_operations_of_readings_do_not_wrap() -> None:
    """A product of four bytes has 32 bits, not 24."""

    @primitive(bv(8), a=bv(8), b=bv(8), c=bv(8), d=bv(8))
    def deep(a: Expr, b: Expr, c: Expr, d: Expr) -> Expr:
        of = a.sext(24) * b.sext(24) * c.sext(24) * d.sext(24)
        return ite(of.slt(0), const(0, 24), of)[7:0]

    def write(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n) as i:
            words = [k.load(f"word_{name}", getattr(t, f"tensor_{name}"), i) for name in ("in", "b", "c", "d")]
            k.store(t.tensor_out, i, deep(*words))

    inputs = {f"tensor_{name}": input_(name, N) for name in ("in", "b", "c", "d")}
    of = mapping({"n": 32}, dict.fromkeys(("in", "b", "c", "d", "out"), 8), write)
    product = ("*", ("*", ("*", ANY, ANY), ANY), ANY)
    joint = Joint(of, (*inputs.values(),), inputs, readings={deep: ("rectify", product)})
    graph = operator(lambda b, of, a: b.add("relu", functools.reduce(lambda x, y: b.add("mul", x, y), of)), 4)
    verdict = decided(joint, graph)
    assert verdict.status is Status.UNKNOWN and "deep" in verdict.reason, verdict.reason


def peeking(rectified: Scalar, negated: Scalar) -> Callable[[Sequence[Tensor], Attributes], Tensor]:
    """By what its operand is made of."""
    return lambda of, a: map_(rectified if of[0].operator == "input" else negated, x=of[0])


def capturing(rectified: Scalar, negated: Scalar) -> Callable[[Sequence[Tensor], Attributes], Tensor]:
    """What it reads under the name that its operand has where it is run, and not from its operand."""

    def rule(at: Sequence[Index], of: Sequence[Reader], names: Names) -> Element:
        return Read("x0", tuple(at))

    return lambda of, a: make("tried.captured", of, of[0].shape, rule)


@pytest.mark.parametrize("term", [peeking, capturing])
def test_definitions_of_packages_see_what_they_see_where_they_are_run(term: Any) -> None:
    """As the reading of the copy, they were one thing, and another one as nodes of the graph that is run."""
    rectified, negated = (lookup(name).scalar for name in ("relu", "neg"))
    assert rectified is not None and negated is not None
    name = f"tried.operator_{next(_numbers)}"
    meaning = term(rectified({}), negated({}))
    register(Operator(name, "Tried.", range(1, 2), frozenset({"float"}), lambda t, a: "float32", term=meaning))
    of = operator(lambda b, of, a: b.add(name, b.add("neg", of[0])))
    operand = input_("x0", N)
    assert decided(Joint(copied(lambda i, n: i), (operand,), {"tensor_in": operand}), of).status is Status.REFUTED


def test_a_joint_that_cannot_be_stated_any_more_covers_nothing() -> None:
    subject = JointSubject("the-joint", Joint(hidden_by_a_tensor(), (X,), {"tensor_in": X}), operator(unchanged))
    refusal = subject.covers((TensorType("float32", (3,)),), {}, {"p_n": 3})
    assert refusal.startswith(
        "the joint says nothing of the model as it is now: the IR side tried must have no tensors"
    )


def test_a_node_has_the_shapes_of_some_sizes() -> None:
    def transposed(k: Kernel, s: Any, t: Any) -> None:
        with k.loop("i", s.n.zext(32)) as i, k.loop("j", s.n.zext(32)) as j:
            k.store(t.tensor_out, i * s.n.zext(32) + j, k.load("x", t.tensor_in, j * s.n.zext(32) + i))

    square = input_("x", N, N)
    joint = Joint(mapping({"n": 16}, {"in": 8, "out": 8}, transposed), (square,), {"tensor_in": square})
    of = operator(lambda b, of, a: transpose(b, of[0], [1, 0]))
    joint.mapping.mapping.output_extents = lambda parameters: (parameters["p_n"], parameters["p_n"])
    for shape, covered in (((5, 5), True), ((2, 5), False)):
        told = joint.covers(of, joint.rule("the-joint", of), (TensorType("float32", shape),), {}, {"p_n": 3})
        assert (told == "") is covered and (covered or "operands must have the shapes" in told), told


def test_what_must_hold_of_words_is_part_of_what_a_certificate_is_about() -> None:
    """Both joints have the same terms; of one a word may wrap."""
    wide, narrow = (
        JointSubject("the-joint", Joint(summed(condition), (ROWS,), {"tensor_in": ROWS}), operator(of_rows))
        for condition in (lambda j: (j.zext(64) << 26) >> 26 == j.zext(64), lambda j: (j << 26) >> 26 == j)
    )
    assert wide.prove(Discharger(timeout=8.0)).status is Status.PROVED
    one, other = wide.semantics(), narrow.semantics()
    assert {name for name in one if one[name] != other[name]} == {"kernels"} and one == wide.semantics()


def test_lemmas_have_names_of_their_own() -> None:
    """Of two that are used under one name, one would be asked."""
    a, b = var("a", bv(8)), var("b", bv(8))
    lemmas = [Lemma("product", product(a, b), right) for right in (product(a, b), product(b, a))]
    joint = Joint(copied(lambda i, n: i), (X,), {"tensor_in": X})
    joint.mapping.mapping.lemmas = lemmas
    verdict = decided(joint, operator(unchanged))
    assert verdict.status is Status.UNKNOWN and "lemmas must have names of their own" in verdict.reason


def test_obligations_are_in_certificates() -> None:
    """Those of the kernel's words, and of the mapping's lemma: all of them are needed."""
    groups = {"lemmas", "kernels"}
    subject = joint_entries()["joint-flexasr-max-pool-x2-flexasr-float-maxpool-x2"].build()
    verdict = subject.prove(Discharger(timeout=20.0))
    assert groups <= {o.group for o in verdict.obligations}
    certificate = certificate_of(subject.semantics(), verdict, {}, "a test")
    needed = [o for o in certificate["obligations"] if o["group"] in groups]
    others = [o for o in certificate["obligations"] if o["group"] not in groups]
    missing = [f"{o['group']}: {o['name']}: this obligation is missing" for o in needed]
    assert binding_problems({**certificate, "obligations": others}, subject) == missing


def test_a_program_computes_all_elements() -> None:
    joint, of = Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}), operator(unchanged)
    rule = joint.rule("the-joint", of)
    assert str(joint.fits) == "n <= 4294967296"
    assert joint.covers(of, rule, (TensorType("float32", (3,)),), {}, {"p_n": 3}) == ""
    joint.mapping.mapping.output_extents = lambda parameters: (1, 1)
    told = joint.covers(of, rule, (TensorType("float32", (3,)),), {}, {"p_n": 3})
    assert told == "tried is about 1 elements, not 3"


def test_memories_must_be_the_devices_too() -> None:
    joint, of = Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}), operator(unchanged)
    joint.mapping.mapping.inputs = ()
    verdict = decided(joint, of)
    assert verdict.status is Status.UNKNOWN and "tensor_in must be a tensor that tried compares" in verdict.reason


@pytest.mark.parametrize("stored", [False, True])
def test_a_memory_is_no_expression(stored: bool) -> None:
    def write(k: Kernel, s: Any, t: Any) -> None:
        other, plain = ite(s.n < 5, t.tensor_in, t.tensor_b), (t.tensor_in, t.tensor_out)
        source, target = (plain[0], ite(s.n < 5, plain[1], t.tensor_b)) if stored else (other, plain[1])
        with k.loop("i", s.n) as i:
            k.store(target, i, k.load("x", source, i))

    tried = Joint(mapping({"n": 32}, {"in": 8, "b": 8, "out": 8}, write), (X,), {"tensor_in": X})
    verdict = decided(tried, operator(unchanged))
    assert verdict.status is Status.UNKNOWN
    assert "must be words of memories, not of expressions" in verdict.reason


def test_a_truth_value_is_no_size() -> None:
    verdict = decided(Joint(copied(lambda i, n: i), (X,), {"tensor_in": X}, given={"n": True}), operator(unchanged))
    assert verdict.status is Status.UNKNOWN
    assert "what is given, and exponents, must be integers, or indices of these" in verdict.reason
