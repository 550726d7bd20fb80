"""Kernels whose words are not what a derivation could say of them: none has a bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction

import pytest

from accel_models.flexasr import functions
from accel_models.flexasr.numerics import adpfloat_max, fixed_to_adpfloat
from accel_models.hlscnn.numerics import arithmetic
from accel_models.hlscnn.options import HlscnnOptions
from accel_models.vta import numerics as vta
from ila_lang import Expr, Function, Kernel, bv, const, ite, mem, primitive, var
from ila_lang.language.kernel import For, Load, Store
from ila_lang.mapping import Lemma
from ir_semantics.layers.attention import attention_ir
from ir_semantics.layers.dense import dense_ir
from ir_semantics.layers.recurrent import recurrent_ir
from rewrites.bounds.derivations.calculus import Operator
from rewrites.bounds.derivations.names import Leaf, Names, Unread, Written
from rewrites.bounds.derivations.writer import derivation_of
from rewrites.bounds.kernel.judgements import Rejected, amount
from rewrites.bounds.kernel.replay import replay
from rewrites.bounds.kernel_runs import differing
from rewrites.claims.joints.instruction import called
from rewrites.claims.subjects.bounds import BoundSubject, _assumptions, written_steps
from rewrites.claims.theorems import flexasr
from rewrites.claims.theorems.operators import OPERATORS
from rewrites.mappings.flexasr import attention, linear, recurrent
from smt_encodings.claims import Status
from smt_encodings.discharge import Discharger

WORDS = mem(32, 32)
X, Z, SCRATCH, OUT, N = (
    var("x", WORDS),
    var("z", WORDS),
    var("scratch", WORDS),
    var("out", mem(32, 8)),
    var("n", bv(32)),
)
M = var("m", bv(32))
A, B = Leaf("a", "accumulator", "A"), Leaf("b", "accumulator", "A")
NAMES = Names(
    {"a": A, "beside": A, "b": B},
    loops=dict.fromkeys(("t", "u"), ("t", "T")),
    ranges={"out": "Y"},
)
SYMBOLS = dict.fromkeys(
    ["x", "y", "a", "b", "w", "n", "A", "B", "I", "M", "S", "T", "W", "X", "Y", "b_w", "b_x", "b_b", "b_y"], ""
)


def relu(word: Expr) -> Expr:
    return vta.narrow(vta.alu_max(word, const(0, 32)))


def words_of(kernel: Kernel, names: Names = NAMES, **given: int) -> Written:
    operands = {var(name, bv(32)): const(value, 32) for name, value in given.items()}
    return derivation_of(kernel, operands, "out", names)


def named(operator: Operator) -> Names:
    """The names that an operator of the product is written with."""
    given = [cell.cell_contents for cell in operator.derivation.__closure__ or ()]
    (found,) = (each for each in given if isinstance(each, Names))
    return found


def operator_of(written: Written) -> Operator:
    return Operator("own", "", SYMBOLS, lambda: written, {})


def test_what_is_right_is_proved() -> None:
    k = Kernel("right")
    with k.loop("t", N) as t:
        k.store(SCRATCH, t, k.load("a", X, t))
    acc = k.let("acc", const(0, 32))
    with k.loop("u", N) as u:
        k.assign(acc, acc + k.load("again", SCRATCH, u))
    k.store(OUT, const(0, 32), relu(acc))
    verdict = BoundSubject("bound-own", operator_of(words_of(k))).prove(Discharger())
    assert verdict.status is Status.PROVED, verdict.reason


KERNELS: dict[str, tuple[str, Kernel]] = {}


def kernel(reason: str) -> Callable[[Callable[[Kernel], None]], None]:
    """A kernel that must be refused for a reason."""

    def add(build: Callable[[Kernel], None]) -> None:
        k = Kernel(build.__name__)
        build(k)
        KERNELS[build.__name__] = reason, k

    return add


@kernel("out must be stored to in one place")
def overwritten(k: Kernel) -> None:
    with k.loop("i", N) as i:
        k.store(OUT, i, relu(k.load("a", X, i)))
    with k.loop("j", N) as j:
        k.store(OUT, j, const(77, 8))


@kernel("out must be stored to once for each")
def stored_after(k: Kernel) -> None:
    with k.loop("i", N) as i:
        k.store(OUT, i, relu(k.load("a", X, i)))
        k.store(OUT, const(0, 32), const(9, 8))


ROW_37 = "must not depend on counters, as"


def short(counter: Expr) -> Expr:
    """An extent that is another one in iteration 37 alone."""
    return ite(counter == 37, const(1, 32), M)


@kernel(f"the number of iterations of j {ROW_37}")
def a_row_of_another_length(k: Kernel) -> None:
    with k.loop("i", N) as i, k.loop("j", short(i)) as j:
        k.store(OUT, i * short(i) + j, relu(k.load("a", X, i * M + j)))


@kernel(f"the number of iterations of t {ROW_37}")
def fewer_terms_in_a_row(k: Kernel) -> None:
    with k.loop("i", N) as i:
        acc = k.let("acc", const(0, 32))
        with k.loop("t", short(i)) as t:
            k.assign(acc, acc + k.load("a", X, i * M + t))
        k.store(OUT, i, relu(acc))


@kernel(f"the number of iterations of w {ROW_37}")
def a_ragged_nest(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t, k.loop("v", M) as v, k.loop("w", ite(v == 37, const(0, 32), N)) as w:
        k.assign(acc, acc + k.load("a", X, (t * M + v) * N + w))
    k.store(OUT, const(0, 32), relu(acc))


@kernel(f"the number of iterations of v {ROW_37}")
def a_triangle(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t, k.loop("v", t + 1) as v:
        k.assign(acc, acc + k.load("a", X, t * N + v))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("the condition of g must be one on counters")
def a_condition_that_is_the_whole_body_of_a_loop(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t, k.when("g", N != 37):
        k.assign(acc, acc + k.load("a", X, t))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("no lemma is about")
def first_lane_only(k: Kernel) -> None:
    with k.loop("i", N) as i, k.loop("lane", const(2, 32)) as lane:
        a = k.load("a", X, i * 2 + lane)
        k.store(OUT, i * 2 + lane, relu(ite(lane == 0, a, const(100, 32))))


@kernel("out must be stored to once for each")
def one_word_for_all(k: Kernel) -> None:
    with k.loop("i", N) as i:
        k.store(OUT, const(0, 32), relu(k.load("a", X, i)))


@kernel("scratch must be stored to once for each")
def scratch_overwritten(k: Kernel) -> None:
    with k.loop("t", N) as t:
        k.store(SCRATCH, const(0, 32), k.load("a", X, t))
    acc = k.let("acc", const(0, 32))
    with k.loop("u", N):
        k.assign(acc, acc + k.load("again", SCRATCH, const(0, 32)))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("small must be stored to once for each")
def scratch_wraps(k: Kernel) -> None:
    small = var("small", mem(1, 32))
    with k.loop("t", N) as t:
        k.store(small, t[0:0], k.load("a", X, t))
    acc = k.let("acc", const(0, 32))
    with k.loop("u", N) as u:
        k.assign(acc, acc + k.load("again", small, u[0:0]))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("scratch must be loaded where it was stored")
def one_more_is_read(k: Kernel) -> None:
    i, a, again = var("i", bv(32)), var("a", bv(32)), var("again", bv(32))
    k.body += [For(i, N, (Load(a, X, i), Store(SCRATCH, i, a)))]
    k.body += [For(i, N + 1, (Load(again, SCRATCH, i), Store(OUT, i, relu(again))))]


@kernel("all loops over t must have one extent")
def nested_once_only(k: Kernel) -> None:
    acc, other = k.let("acc", const(0, 32)), k.let("other", const(0, 32))
    with k.loop("t", N) as t, k.loop("inner", const(3, 32)):
        k.assign(acc, acc + k.load("a", X, t))
    with k.loop("u", N) as u:
        k.assign(other, other + k.load("b", Z, u))
    k.store(OUT, const(0, 32), relu(vta.alu_min(acc, other)))


@kernel("loops over t must not be inside of each other")
def one_index_in_itself(k: Kernel) -> None:
    with k.loop("t", N) as t:
        acc = k.let("acc", const(0, 32))
        with k.loop("u", N):
            k.assign(acc, acc + k.load("a", X, t))
        k.store(OUT, t, relu(acc))


@kernel("what is stored to scratch must not be kept from one iteration to the next")
def sums_on_the_way(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t:
        k.assign(acc, acc + k.load("a", X, t))
        k.store(SCRATCH, t, acc)
    k.store(OUT, const(0, 32), relu(acc))


@kernel("the number of iterations of g must not depend on data")
def guarded_by_data(k: Kernel) -> None:
    with k.loop("i", N) as i:
        a, found = k.load("a", X, i), k.let("found", const(0, 32))
        with k.when("g", const(0, 32).slt(a)):
            k.assign(found, a)
        k.store(OUT, i, vta.narrow(vta.alu_min(found, const(0, 32))))


@kernel("found must be 0 where g is not reached")
def guarded_and_used_beside(k: Kernel) -> None:
    with k.loop("i", N) as i:
        a, found = k.load("a", X, i), k.let("found", const(0, 32))
        with k.when("g", i == 0):
            k.assign(found, a)
        k.store(OUT, i, vta.narrow(vta.alu_add(found, a)))


@kernel("a must be read under one condition")
def loaded_under_a_guard_and_beside(k: Kernel) -> None:
    with k.loop("i", N) as i:
        found = k.let("found", const(0, 32))
        with k.when("g", i == 0):
            k.assign(found, k.load("a", X, i))

        k.store(OUT, i, vta.narrow(vta.alu_add(found, k.load("beside", X, i))))


@kernel("no lemma is about leaf b")
def replaced_and_used_beside(k: Kernel) -> None:
    with k.loop("i", N) as i:
        other = k.load("b", Z, i)
        found = k.let("found", other)
        with k.when("g", i == 0):
            k.assign(found, k.load("a", X, i))
        k.store(OUT, i, vta.narrow(vta.alu_add(found, other)))


@kernel("a must not be loaded from where the kernel stores")
def replaced_words_are_stored(k: Kernel) -> None:
    with k.loop("i", N) as i:
        found = k.let("found", k.load("b", OUT, i + 1).sext(32))
        with k.when("g", i == 0):
            k.assign(found, k.load("a", OUT, i + 2).sext(32))
        k.store(OUT, i, relu(found))


@kernel("the condition of g must be one on counters")
def at_one_size_only(k: Kernel) -> None:
    with k.loop("i", N) as i:
        acc = k.let("acc", const(0, 32))
        with k.when("g", N == 3):
            k.assign(acc, acc + k.load("a", X, i))
        k.store(OUT, i, relu(acc))


@kernel("largest must begin with 0")
def sum_named_largest(k: Kernel) -> None:
    largest = k.let("largest", const(-64 << 20 & 0xFFFFFFFF, 32))
    with k.loop("t", N) as t:
        k.assign(largest, largest + k.load("a", X, t))
    k.store(OUT, const(0, 32), relu(largest))


@kernel("acc must begin with 0")
def second_sum_goes_on(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t:
        k.assign(acc, acc + k.load("a", X, t))
    with k.loop("u", N) as u:
        k.assign(acc, acc + k.load("b", Z, u))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("what acc keeps must not depend on")
def last_iteration_dropped(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t:
        k.assign(acc, ite(t == N - 1, const(99, 32), acc + k.load("a", X, t)))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("an address must not depend on data")
def indirect(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t:
        k.assign(acc, acc + k.load("a", X, k.load("b", Z, t)))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("the number of iterations of u must not depend on data")
def as_often_as_data_say(k: Kernel) -> None:
    acc = k.let("acc", const(0, 32))
    with k.loop("u", k.load("b", Z, const(0, 32))) as u:
        k.assign(acc, acc + k.load("a", X, u))
    k.store(OUT, const(0, 32), relu(acc))


@kernel("a must not be loaded from where the kernel stores")
def in_place(k: Kernel) -> None:
    with k.loop("i", N) as i:
        a = k.load("a", OUT, i + 1)
        k.store(OUT, i, relu(a.sext(32)))


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_is_not_what_laws_are_about_is_refused(name: str) -> None:
    reason, k = KERNELS[name]
    with pytest.raises(Unread, match=f"^{reason}"):
        words_of(k)


def test_names_of_two_things_are_refused() -> None:
    k = Kernel("two")
    with k.loop("i", N) as i:
        k.store(OUT, i, vta.narrow(vta.alu_add(k.load("a", X, i), k.load("b", Z, i))))
    named = replace(NAMES, leaves={"a": A, "b": A})
    with pytest.raises(Unread, match=r"^a must be words of one place"):
        words_of(k, named)
    clashing = replace(NAMES, leaves={"a": A, "b": Leaf("high", "accumulator", "127")})
    with pytest.raises(Unread, match=r"^leaves must not be called low or high"):
        words_of(k, clashing)


@pytest.mark.parametrize("first", [True, False])
def test_words_that_replace_others_are_not_0_elsewhere(first: bool) -> None:
    k = Kernel("replaced")
    with k.loop("i", N) as i:
        other = k.load("b", Z, i)
        found, again = k.let("found", other), k.let("again", const(0, 32))
        for register, name in ((found, "a"), (again, "c"))[:: 1 if first else -1]:
            with k.when(f"g_{name}", i == 0):
                k.assign(register, k.load(name, X, i))
        k.store(OUT, i, vta.narrow(vta.alu_add(found, again)))
    b = replace(A, name="b")
    with pytest.raises(Unread):
        words_of(k, replace(NAMES, leaves={"a": A, "c": A, "b": b}))


def test_a_register_that_is_too_narrow_is_refused() -> None:
    short = var("x", mem(32, 16))
    k = Kernel("narrow")
    acc = k.let("acc", const(0, 16))
    with k.loop("t", N) as t:
        k.assign(acc, acc + k.load("a", short, t))
    k.store(var("out", mem(32, 16)), const(0, 32), acc)
    with pytest.raises(Unread, match=r"^a\[t\] must be of the 32 bits of the form accumulator"):
        words_of(k)


def test_an_operand_has_the_value_that_the_command_says() -> None:
    flag = var("flag", bv(32))
    k = Kernel("flagged")
    with k.loop("i", N) as i:
        k.store(OUT, i, relu(ite(flag == 0, k.load("a", X, i), const(50, 32))))
    with pytest.raises(Unread, match=r"^flag is 1, not 0$"):
        words_of(k, replace(NAMES, given={"flag": 0}), flag=1)
    assert "flag is 0" not in words_of(k, NAMES, flag=0).assumptions
    given = derivation_of(k, {flag: flag}, "out", replace(NAMES, given={"flag": 0}))
    assert "flag is 0" in given.assumptions


def test_the_largest_begins_with_less_than_all() -> None:
    (instruction,) = attention_ir(replace(attention.OPERATOR, least=0)).instructions.values()
    assert instruction.kernel is not None
    (run,) = called(attention.ir_fragment())
    with pytest.raises(Unread, match=r"^largest must begin with less than all scores, not 0x0$"):
        derivation_of(instruction.kernel, run.operands, "tensor_out", named(flexasr.ATTENTION))


def test_a_masked_score_is_none() -> None:
    (run,) = called(attention.ir_fragment())
    with pytest.raises(Unread):
        derivation_of(run.kernel, run.operands, "tensor_scores", named(flexasr.ATTENTION))


def convolution(test: Callable[[Expr], Expr] | None, form: str = "weight", *, twice: bool = False) -> Written:
    h = arithmetic(HlscnnOptions())
    values, weights = var("values", mem(32, 16)), var("weights", mem(32, 16))
    k = Kernel("sum")
    with k.loop("i", N) as i:
        total, other = k.let("total", const(0, 32)), k.let("other", const(0, 32))
        with k.loop("member", const(8, 32)) as c:
            value, weight = k.load("value", values, i * 8 + c), k.load("weight", weights, c)
            product = h.product(weight, value)
            k.assign(total, total + product if test is None else ite(test(c), total + product, total))
            if twice:
                k.assign(other, other + product)
        k.store(var("out", mem(32, 16)), i, h.requantise(other if twice else total))
    leaves = {"value": Leaf("x", "word", "x"), "weight": Leaf("w", form, "w")}
    return derivation_of(k, {}, "out", Names(leaves, loops={"member": ("c", "8")}, ranges={"total": "M"}))


def test_terms_count_by_their_place_and_are_0_elsewhere() -> None:
    written = convolution(lambda c: c == 0)
    assert written.assumptions[1:] == tuple(f"{leaf}[c] counts as 0 but where member == 0x0" for leaf in "xw")
    with pytest.raises(Unread, match=r"^the condition of terms of total must be one on counters"):
        convolution(lambda c: N == 12345)
    with pytest.raises(Unread, match=r"must be used in one place$"):
        convolution(lambda c: c == 0, twice=True)


def test_half_of_a_byte_weight_is_zeros() -> None:
    with pytest.raises(Unread, match=r"^w\[c\] must be of the 16 bits of the form byte weight"):
        convolution(None, "byte weight")


BIASES = {n: bv(3) for n in ("bias_w", "bias_x", "bias_b", "bias_y")}


def layer(end: Callable[[Expr, Expr], Expr], names: Names = flexasr._LAYER_NAMES) -> Written:
    def finish(acc: Expr, b: Expr, bias_w: Expr, bias_x: Expr, bias_b: Expr, bias_y: Expr) -> Expr:
        shifted = functions.pe_add_bias(functions.pe_shift(acc, bias_w, bias_x), b, bias_b)
        return end(functions.pe_saturate(shifted), bias_y)

    ended = primitive(bv(8), name="ended", acc=bv(32), b=bv(8), **BIASES)(finish)
    ila = dense_ir(replace(linear.operator_of(None), finish=ended))
    (instruction,) = ila.instructions.values()
    assert instruction.kernel is not None
    return derivation_of(instruction.kernel, {s: s for n, s in ila.states.items() if n in BIASES}, "tensor_out", names)


def test_a_bias_is_an_operand_with_a_name_of_its_own() -> None:
    assert layer(fixed_to_adpfloat).steps == flexasr.LINEAR["none"].steps
    for bias in (lambda bias: bias + 1, lambda bias: const(2, 3)):
        with pytest.raises(Unread, match=r"^a bias must be an operand"):
            layer(lambda word, bias_y, bias=bias: fixed_to_adpfloat(word, bias(bias_y)))
    names = flexasr._LAYER_NAMES
    one = {**names.leaves, "bias": replace(names.leaves["bias"], bias="b_y")}
    with pytest.raises(Unread, match=r"^b_y must be the name of one operand"):
        layer(fixed_to_adpfloat, replace(names, leaves=one, biases={**names.biases, "bias_b": "b_y"}))


def test_a_lemma_of_a_mapping_is_asked() -> None:
    p, q, codes = var("p", bv(8)), var("q", bv(8)), var("codes", mem(32, 8))
    k = Kernel("added")
    with k.loop("i", N) as i:
        k.store(OUT, i, k.load("first", codes, i) + k.load("second", codes, i + N))
    names = Names({"first": Leaf("x", "code", "X", "b"), "second": Leaf("y", "code", "X", "b")})
    lemma = Lemma("false", adpfloat_max(p, q), p + q)
    written = derivation_of(k, {}, "out", names, lemmas=[lemma])
    assert written.lemmas == (lemma,)
    verdict = BoundSubject("bound-own", operator_of(written)).prove(Discharger())
    assert verdict.status is Status.UNKNOWN
    assert [(o.name, o.group) for o in verdict.obligations] == [("false", "lemmas")]


def summed(
    change: Callable[[Expr, Expr], Expr] = lambda word, t: word,
    stored: Callable[[Expr], Expr] = lambda i: i,
    last: Callable[[Kernel, Expr], object] = lambda k, i: None,
) -> Kernel:
    """Sums of rows of a matrix, as bytes; or almost."""
    k = Kernel("rows")
    with k.loop("i", N) as i:
        acc = k.let("acc", const(0, 32))
        with k.loop("t", N) as t:
            k.assign(acc, acc + change(k.load("a", X, i * N + t), t))
        k.store(OUT, stored(i), relu(acc))
        last(k, i)
    return k


OTHERS = {
    "another word": summed(lambda word, t: word + 1),
    "at times another word": summed(lambda word, t: ite(t == 2, word + 1, word)),
    "a word of data": summed(lambda word, t: ite(word == 0, const(1, 32), word)),
    "another element": summed(stored=lambda i: N - 1 - i),
    "one element for all": summed(stored=lambda i: const(0, 32)),
    "stored twice": summed(last=lambda k, i: k.store(OUT, i, const(0, 8))),
    "stored elsewhere, too": summed(last=lambda k, i: k.store(OUT, i + N, const(0, 8))),
    "operands replaced": summed(last=lambda k, i: k.store(X, i * N, const(0, 32))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_kernel_that_stores_other_words_than_the_theorem_is_an_error(name: str) -> None:
    """Whatever the writer read: the kernel is run before PROVED is said, and when a certificate is checked."""
    right = words_of(summed())
    assert differing(operator_of(right)) == ""
    operator = operator_of(replace(right, kernel=OTHERS[name]))
    verdict = BoundSubject("bound-own", operator).prove(Discharger())
    assert verdict.status is Status.ERROR
    assert re.match("the proof does not survive runs: the kernel (stores|replaces) ", verdict.reason)
    found = BoundSubject("bound-own", operator).required({"derivation": {"steps": written_steps(right.steps)}})
    assert isinstance(found, str) and "the kernel" in found


RARE = {
    "in iteration 37": summed(lambda word, t: ite(t == 37, word + 1, word)),
    "for a word of 71": summed(lambda word, t: ite(word == 71, word + 1, word)),
    "for 5 words": summed(lambda word, t: ite(N == 5, word + 1, word)),
}


@pytest.mark.parametrize("name", RARE)
def test_a_derivation_is_written_anew_from_the_kernel(name: str) -> None:
    """Runs at small sizes do not see such a kernel in the place of another one."""
    right = words_of(summed())
    subject = BoundSubject("bound-own", operator_of(replace(right, kernel=RARE[name])))
    verdict = subject.prove(Discharger())
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason.startswith("the kernel rows has no derivation: no lemma is about ")
    assert subject.required({"derivation": {"steps": written_steps(right.steps)}}) == verdict.reason


def test_a_theorem_is_that_of_the_steps() -> None:
    operator = operator_of(words_of(summed()))
    operator.theorem.ranges.clear()
    verdict = BoundSubject("bound-own", operator).prove(Discharger())
    assert (verdict.status, verdict.reason) == (
        Status.UNKNOWN,
        "the steps prove another theorem than the operator's",
    )


def test_growth_is_of_the_error_of_the_state() -> None:
    """An operand's error does not become that of the next timestep."""
    (run,) = called(linear.ir_fragment(None))
    base = flexasr._LAYER_NAMES
    leaves = {**base.leaves, "element": replace(base.leaves["element"], error="e_x")}
    with pytest.raises(Unread, match=r"^e_x must be the error of the words that are loaded from tensor_out, "):
        derivation_of(run.kernel, run.operands, "tensor_out", replace(base, leaves=leaves), growth=("e_x", "U", "G"))


def test_growth_counts_all_words_of_the_state() -> None:
    """Words of the timestep before have its error under every name: here the second gate reads them as exact ones."""
    (run,) = called(recurrent.ir_fragment("gru"))
    names = flexasr._recurrent_names("gru")
    other = {n: replace(leaf, name="k", error="0") for n, leaf in names.leaves.items() if n.endswith("r_h")}
    assert len(other) == 1
    with pytest.raises(Unread, match=r"^e_h must be the error of the words that are loaded from tensor_out, "):
        derivation_of(
            run.kernel,
            run.operands,
            "tensor_out",
            replace(names, leaves={**names.leaves, **other}),
            growth=("e_h", "U", "G"),
        )


@pytest.mark.parametrize(
    ("series", "role"),
    [("H", "a number of values"), ("R", "a range"), ("b_h", "a bias"), ("X", "a magnitude of words")],
)
def test_a_series_has_a_name_of_its_own(series: str, role: str) -> None:
    (run,) = called(recurrent.ir_fragment("rnn"))
    names = flexasr._recurrent_names("rnn")
    with pytest.raises(
        Rejected, match=rf"^{series} must be the name of one thing, not of {role} and a sum over steps$"
    ):
        derivation_of(run.kernel, run.operands, "tensor_out", names, growth=("e_h", "U", series))


def test_growth_counts_states_in_all_memories() -> None:
    """What the timestep before left in another memory has an error, too."""
    ila = recurrent_ir(replace(recurrent.cell_of("rnn"), keeps="state", combine=_added_to_the_state))
    (instruction,) = ila.instructions.values()
    assert instruction.kernel is not None
    operands = {state: state for name, state in ila.states.items() if name in recurrent.BIASES}
    names = flexasr._recurrent_names("rnn")
    names = replace(
        names,
        leaves={**names.leaves, "state_code": Leaf("c", "code", "1", "b_h", "0")},
        ranges={name: value for name, value in names.ranges.items() if name != "tensor_state"},
    )
    with pytest.raises(Unread, match=r"^e_h must be the error of the words that are loaded from tensor_out, "):
        derivation_of(instruction.kernel, operands, "tensor_out", names, growth=("e_h", "U", "G"))


def _added_to_the_state(pairs: Sequence[tuple[Expr, Expr]], state: Expr) -> tuple[Expr, Expr]:
    ((of_input, of_state),) = pairs
    new = functions.tanh(functions.eadd(functions.eadd(of_input, of_state), functions.eadd(state, state)))
    return new, new


def test_weights_are_exact() -> None:
    names = flexasr._LAYER_NAMES
    leaves = {**names.leaves, "weight": replace(names.leaves["weight"], error="e_w")}
    with pytest.raises(Unread, match=r"^weights must be exact codes, not words of the form code with the error e_w$"):
        layer(fixed_to_adpfloat, replace(names, leaves=leaves))


def test_operands_have_numbers_of_their_widths() -> None:
    (run,) = called(linear.ir_fragment(None))
    (operand, *_) = (state for state in run.operands if state.name.startswith("bias"))
    names = replace(flexasr._LAYER_NAMES, given={operand.name: 1 << operand.width})
    with pytest.raises(Unread, match=rf"^{operand.name} must be a number of {operand.width} bits, not "):
        derivation_of(run.kernel, run.operands, "tensor_out", names)


def test_the_error_of_the_state_is_no_magnitude() -> None:
    """What bounds an operand would be replaced in the conditions, too."""
    (run,) = called(recurrent.ir_fragment("rnn"))
    names = flexasr._recurrent_names("rnn")
    leaves = {name: replace(leaf, magnitude="e_h") if leaf.name == "x" else leaf for name, leaf in names.leaves.items()}
    with pytest.raises(Rejected, match=r"^e_h must be the name of one thing, not of a magnitude of words and an error"):
        derivation_of(run.kernel, run.operands, "tensor_out", replace(names, leaves=leaves), growth=("e_h", "U", "G"))


def test_a_cut_between_data_is_as_large_as_these() -> None:
    """max(min(a, b), c) is within a's magnitude where c <= 0 <= b, which nobody knows of data."""
    k = Kernel("cut")
    with k.loop("i", N) as i:
        a, b, c = (k.load(name, memory, i) for name, memory in (("a", X), ("b", Z), ("beside", var("y", WORDS))))
        k.store(OUT, i, vta.narrow(vta.alu_max(vta.alu_min(a, b), c)))
    names = replace(NAMES, leaves={"a": A, "b": Leaf("b", "accumulator", "B"), "beside": Leaf("c", "accumulator", "C")})
    theorem = replay(words_of(k, replace(names, ranges={})).steps)
    assert str(theorem.result.magnitude) == "max(max(A, B), C)"
    assert "0" not in theorem.ranges


def test_a_series_is_said() -> None:
    assert "G is 1 + U + U^2 + .., a term for each step" in _assumptions(OPERATORS["FlexASR RNN, T steps"].theorem)


@pytest.mark.parametrize(
    ("zeros", "role"),
    [("m", "a lower bound"), ("R", "a range"), ("K", "a magnitude of words")],
)
def test_a_number_of_zeros_has_a_name_of_its_own(zeros: str, role: str) -> None:
    written = flexasr.ATTENTION.written
    assert written.source is not None and written.kernel is not None
    names = written.source.names
    names = replace(names, bounds={**names.bounds, "distance from the largest": ("m", zeros)})
    with pytest.raises(
        Rejected, match=rf"^{zeros} must be the name of one thing, not of {role} and a number of zeros$"
    ):
        derivation_of(written.kernel, written.source.operands, "tensor_out", names)


def test_words_depend_on_what_decides_whether_they_count() -> None:
    k = Kernel("guarded")
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t:
        word = k.let("word", const(0, 32))
        with k.when("g", t < 10):
            k.assign(word, k.load("a", X, const(0, 32)))
        k.assign(acc, acc + vta.alu_min(word, k.load("b", Z, t)))
    k.store(OUT, const(0, 32), relu(acc))
    assert {*replay(words_of(k).steps).leaves} == {"a[t]", "b[t]", "low"}


def test_what_is_taken_not_to_wrap_is_said() -> None:
    k = Kernel("kept")
    with k.loop("t", N) as t:
        k.store(SCRATCH, t, k.load("a", X, t))
    acc = k.let("acc", const(0, 32))
    with k.loop("u", N) as u:
        k.assign(acc, acc + k.load("again", SCRATCH, u))
    k.store(OUT, const(0, 32), relu(acc))
    assert "what is stored to scratch lies in it" in words_of(k).assumptions
    assert flexasr.LAYER_NORM.written.assumptions[1].endswith(" is less than 2^32")


def test_a_derivation_of_no_kernel_is_not_proved() -> None:
    right = words_of(summed())
    verdict = BoundSubject("bound-own", operator_of(Written(right.steps))).prove(Discharger())
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, "a bound must be derived from a kernel, which is run")


def test_what_the_unit_takes_for_0_must_be_0() -> None:
    """A query with an error may have a sum of 0 where the real one is none: -64 is in its place then."""
    (run,) = called(attention.ir_fragment())
    names = named(flexasr.ATTENTION)
    off = {**names.leaves, "asked": replace(names.leaves["asked"], error="e_q")}
    with pytest.raises(Rejected, match="distances must be of exact sums"):
        derivation_of(run.kernel, run.operands, "tensor_out", replace(names, leaves=off))


@pytest.mark.parametrize(
    ("symbol", "value"),
    [("b_y", 9), ("b_y", -3), ("b_y", Fraction(1, 2)), ("X", -1), ("I", -64), ("I", 0), ("I", Fraction(1, 2)),
     ("B", -100), ("X", float("inf")), ("X", float("nan"))],
)  # fmt: skip
def test_what_is_no_value_of_a_symbol_has_no_bound(symbol: str, value: float) -> None:
    layer = flexasr.LINEAR["none"]
    assert layer.bound(layer.example).value is not None
    with pytest.raises(ValueError, match=f"^{symbol} of FlexASR linear must be "):
        layer.bound({**layer.example, symbol: value})


def test_a_derivation_without_a_law_says_so() -> None:
    k = Kernel("cut")
    with k.loop("i", N) as i:
        k.store(OUT, i, vta.narrow(k.load("a", X, i)))
    verdict = BoundSubject("bound-own", operator_of(words_of(k, replace(NAMES, ranges={})))).prove(Discharger())
    assert verdict.status is Status.UNKNOWN
    assert verdict.reason == "it says no more than its lemmas, and uses no law that could be asked"


def test_a_bias_is_no_magnitude() -> None:
    names = flexasr._LAYER_NAMES
    with pytest.raises(Rejected, match=r"^X must be the name of one thing, not of a magnitude of words and a bias$"):
        layer(fixed_to_adpfloat, replace(names, biases={**names.biases, "bias_y": "X"}))


def test_a_theorem_that_nobody_can_read_is_refused() -> None:
    k = Kernel("doubled")
    with k.loop("i", N) as i:
        word = k.load("a", X, i)
        for _ in range(25):
            word = vta.alu_add(word, word)
        k.store(OUT, i, relu(word))
    with pytest.raises(Rejected, match=r"must have at most 10,000 operations$"):
        words_of(k, replace(NAMES, ranges={}))


def test_loops_that_would_be_written_out_without_end_are_refused() -> None:
    k = Kernel("nested")
    with ExitStack() as nest:
        for depth in range(9):
            nest.enter_context(k.loop(f"level{depth}", const(8, 32)))
        k.load("b", Z, const(0, 32))
    with pytest.raises(Unread, match=r"^loops that are written out must be of at most 10,000 statements$"):
        words_of(k)


def test_runs_of_a_kernel_end() -> None:
    """A loop of nothing that anybody reads, beside the result's."""
    k = summed()
    with k.loop("long", const(1 << 31, 32)):
        k.load("b", Z, const(0, 32))
    verdict = BoundSubject("bound-own", operator_of(words_of(k))).prove(Discharger())
    reason = "no sizes were found at which rows stores a word within 100,000 iterations"
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN, reason)


@pytest.mark.parametrize("constant", [0, 3, 15, -5, 100])
@pytest.mark.parametrize("operation", [vta.alu_shr_signed5, vta.alu_add, vta.alu_min, vta.alu_max])
def test_constants_are_drawn_where_a_theorem_has_them(operation: Function, constant: int) -> None:
    """What is right survives runs; a shift to the left, and one by more than 15, are no shift by the law."""
    k = Kernel("by a constant")
    with k.loop("i", N) as i:
        k.store(OUT, i, vta.narrow(operation(k.load("a", X, i), const(constant % (1 << 32), 32))))
    if operation is vta.alu_shr_signed5 and not 0 <= constant < 16:
        with pytest.raises((Unread, Rejected)):
            words_of(k, replace(NAMES, ranges={}))
        return
    verdict = BoundSubject("bound-own", operator_of(words_of(k, replace(NAMES, ranges={})))).prove(Discharger())
    assert verdict.status is Status.PROVED, verdict.reason


def test_a_kernel_with_another_constant_is_an_error() -> None:
    def added(constant: int) -> Kernel:
        k = Kernel("added")
        with k.loop("i", N) as i:
            k.store(OUT, i, vta.narrow(k.load("a", X, i) + const(constant, 32)))
        return k

    right = words_of(added(3), replace(NAMES, ranges={}))
    verdict = BoundSubject("bound-own", operator_of(replace(right, kernel=added(2)))).prove(Discharger())
    assert verdict.status is Status.ERROR


@pytest.mark.parametrize(
    ("depth", "extent", "reason"),
    [
        (10, None, ""),
        (20, None, "no sizes were found at which nested sums stores a word within 100,000 iterations"),
        (9, 4, "it is of more than 500 words, which are too many to be run"),
    ],
)
def test_runs_of_many_sums_inside_of_each_other_end(depth: int, extent: int | None, reason: str) -> None:
    k = Kernel("nested sums")
    extents = [var(f"n{d}", bv(32)) if extent is None else const(extent, 32) for d in range(depth)]

    def summed_from(level: int, at: Expr) -> Expr:
        if level == depth:
            return k.load("a", X, at)
        acc = k.let(f"acc{level}", const(0, 32))
        with k.loop(f"t{level}", extents[level]) as t:
            k.assign(acc, acc + summed_from(level + 1, at * extents[level] + t))
        return acc

    k.store(OUT, const(0, 32), relu(summed_from(0, const(0, 32))))
    counts = {f"t{d}": (f"i{d}", f"T{d}" if extent is None else str(extent)) for d in range(depth)}
    written = derivation_of(k, {}, "out", Names({"a": A}, loops=counts))
    operator = Operator("own", "", {**SYMBOLS, **{f"T{d}": "" for d in range(depth)}}, lambda: written, {})
    verdict = BoundSubject("bound-own", operator).prove(Discharger())
    assert (verdict.status, verdict.reason) == (Status.UNKNOWN if reason else Status.PROVED, reason)


@pytest.mark.parametrize("count", ["4/1", "2*2", "1*T", "T*1", "04", "0", "T*T"])
def test_a_number_of_values_has_one_text(count: str) -> None:
    """Else the kernel of bounds takes for one what the writer takes for two."""
    k = Kernel("counted")
    acc = k.let("acc", const(0, 32))
    with k.loop("t", N) as t:
        k.assign(acc, acc + k.load("a", X, t))
    k.store(OUT, const(0, 32), relu(acc))
    with pytest.raises((Unread, Rejected)):
        replay(words_of(k, replace(NAMES, loops={"t": ("t", count)})).steps)


@pytest.mark.parametrize("text", ["X*2", "2*2", "1*X", "0*X", "Z*X", "4/2", "02", "2*", "*X", ""])
def test_an_amount_has_one_text(text: str) -> None:
    with pytest.raises((Rejected, ValueError)):
        amount(text)


def test_amounts() -> None:
    assert [str(amount(t)) for t in ("0", "1/2", "X", "2*X", "1/16*X*Y")] == ["0", "1/2", "X", "2 X", "1/16 X Y"]


def test_a_bias_decides_nothing() -> None:
    """The last iteration adds the bias to what the others add, whatever the bias is."""
    h = arithmetic(HlscnnOptions())
    values, weights, biases = (var(name, mem(32, 16)) for name in ("values", "weights", "biases"))
    k = Kernel("biased")
    with k.loop("i", N) as i:
        bias = k.load("bias", biases, i)
        element = k.let("element", const(0, 16))
        with k.loop("group", M) as t:
            total = k.let("total", const(0, 32))
            with k.loop("member", const(8, 32)) as c:
                place = t * 8 + c
                k.assign(total, total + h.product(k.load("weight", weights, place), k.load("value", values, place)))
            word = h.requantise(total)
            other = ite(bias == 12345, const(0x4000, 16), word)
            last = h.stored(h.total(other, element, bias))
            k.assign(element, ite(t == M - 1, last, h.stored(h.total(word, element, const(0, 16)))))
        k.store(var("out", mem(32, 16)), i, element)
    names = Names(
        {"value": Leaf("x", "word", "x"), "weight": Leaf("w", "weight", "w"), "bias": Leaf("b", "bias", "B")},
        loops={"group": ("t", "n"), "member": ("c", "8")},
        ranges={"total": "M", "element": "M"},
    )
    with pytest.raises(Unread, match=r"^the last iteration must do what the others do, and add a bias$"):
        words_of(k, names)


def test_a_range_that_is_named_twice_has_a_default_for_both() -> None:
    """The second default is in terms of a range that is named between them."""
    k = Kernel("order")
    one, two = k.let("one", const(0, 32)), k.let("two", const(0, 32))
    with k.loop("t", N) as t:
        k.assign(one, one + k.load("a", X, t))
    with k.loop("u", N) as u:
        k.assign(two, two + k.load("b", Z, u))
    k.store(OUT, const(0, 32), vta.narrow(vta.alu_add(one, two)))
    names = replace(
        NAMES,
        leaves={"a": A, "b": Leaf("b", "accumulator", "B")},
        loops={"t": ("t", "T"), "u": ("u", "T")},
        ranges={"one": "Y", "two": "S", "out": "Y"},
    )
    written = words_of(k, names)
    operator = Operator("order", "", {**SYMBOLS, "S": ""}, lambda: written, {})
    assert operator.values({"A": 1, "B": 1, "T": 2})["Y"] == 4


def test_leaves_are_named_without_indices() -> None:
    k = Kernel("copied")
    with k.loop("i", N) as i:
        k.store(OUT, i, relu(k.load("a", X, i)))
    with pytest.raises(Unread, match=r"^a leaf must be named without its indices, not 'a\[q"):
        words_of(k, replace(NAMES, leaves={"a": Leaf("a[q]", "accumulator", "A")}))
