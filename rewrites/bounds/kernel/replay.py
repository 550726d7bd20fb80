"""The kernel of error bounds: replays a derivation, step by step, and computes every formula itself.

A derivation is a list of :class:`Step`.  A step names a law, the steps that it is applied to, and what it is applied
with: lemmas and names.  It states no formula: what it concludes is a :class:`Judgement`, whose formulas are the
functions ``of_...`` of :mod:`.laws`, which two solvers prove (:mod:`rewrites.bounds.lemmas.real_rules`), at the
operands' formulas.  Where a law needs a condition (that a word does not wrap, say), the kernel adds it to the theorem.

The kernel imports nothing of the modules that write derivations.  It trusts the laws and their
:data:`~.laws.AXIOMS`, the :data:`~.readings.READINGS` of lemmas, and exact arithmetic on
:class:`~.formula.Formula`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from . import laws
from .constants import EXP_VANISHES, INV_SQRT_ERROR, LEAST_RADICAND
from .formula import (
    MOST_OPERATIONS,
    Formula,
    constant,
    half_step,
    inverse_root,
    maximum,
    minimum,
    power_of_two,
    symbol,
    symbols_of,
)
from .judgements import Condition, Judgement, Rejected, Step, Theorem, amount, need, operands_of, put, size_of
from .readings import LARGEST_AT_0, READINGS, TINY_AT_0, UNIT, Reading, Term

SLICE, QUOTIENT = Fraction(1, 16), Fraction(1, 256)
"""What the divider's operands lose at most, and what its quotient loses (lemmas 'divide slices' and 'divide')."""
MASKED = -64
"""What a score of exactly 0 becomes, also that of the rows that fill the last block."""
_LARGEST_POWER = Fraction(1022, 1024)
_ACCUMULATOR = "the accumulator of 32 bits wraps"


def replay(steps: Sequence[Step]) -> Theorem:
    """The theorem of a derivation; raises Rejected where a step is no instance of its law."""
    theorem = Theorem()
    need(bool(steps), "a derivation must have a step")
    for step in steps:
        extend(theorem, step)
    need(_is_word(theorem.result.device), "a derivation must end with a word")
    theorem.judgements[-1] = _used(theorem, theorem.result)
    return theorem


def extend(theorem: Theorem, step: Step) -> None:
    """Applies one more step; raises Rejected where it is no instance of its law."""
    number = len(theorem.judgements) + 1
    need(all(1 <= k < number for k in step.of), f"step {number} must be of steps before it")
    operands = [theorem.judgements[k - 1] for k in step.of]
    try:
        judgement = _applied(theorem, step, operands)
        for term in (judgement.real, judgement.device):  # which is at most a few times as large as one that was small
            need(size_of(term) <= MOST_OPERATIONS, f"a term must have at most {MOST_OPERATIONS:,} operations")
        theorem.judgements.append(judgement)
    except (ValueError, KeyError, IndexError, TypeError) as error:  # operands or names of another number or kind
        raise Rejected(f"step {number}: {step.law} does not apply: {error}") from error


def alone(theorem: Theorem, step: Step) -> tuple[Judgement, tuple[Condition, ...]]:
    """One step of a theorem, in terms of its operands' magnitudes m1, m2, .. and errors e1, e2, .. (exact ones: 0).

    The conditions are those of the step, and those under which its operands' words have not wrapped.
    """
    zero = constant(0)
    operands = [
        replace(j, magnitude=symbol(f"m{k}"), error=zero if j.error == zero else symbol(f"e{k}"))
        for k, j in ((k, theorem.judgements[k - 1]) for k in step.of)
    ]
    ranges = dict(theorem.ranges) if step.law == "share" else {}
    known = Theorem(leaves=dict(theorem.leaves), ranges=ranges, counts=dict(theorem.counts))
    return _applied(known, step, operands), tuple(known.conditions)


def _applied(theorem: Theorem, step: Step, operands: list[Judgement]) -> Judgement:
    need(step.law in LAWS, f"there is no law {step.law!r}")
    if step.law not in _ON_REALS:
        operands = [_used(theorem, j) for j in operands]
        words = step.law in _ON_OPERATIONS or all(_is_word(j.device) for j in operands)
        need(words, "operands must be words, not operations that no primitive does")
    return LAWS[step.law](theorem, step, *operands)


_ON_REALS = ("range", "weighted mean", "clip", "mean by shares")
"""Laws that leave the device's word as it is, so that it is not used yet."""
_ON_OPERATIONS = ("lemma", "half")
_OPERATIONS = ("+", "*", "max", "min", "half", "rectify", "complement", "shift")
"""What is a number on the device's side, too, until a lemma has a primitive for it."""


def _is_word(device: Term) -> bool:
    return isinstance(device, str) or device[0] not in _OPERATIONS


def _used(theorem: Theorem, j: Judgement) -> Judgement:
    """The judgement whose word is used: it must not have wrapped."""
    for limit, reason in j.limits:
        theorem.need(j.magnitude + j.error, limit, reason)
    return replace(j, limits=())


# -- laws on operations --------------------------------------------------------------------------------------


def _given(t: Theorem, step: Step) -> Judgement:
    """names: a leaf, its form, its magnitude, its error, its bias (or nothing, where it is no code)."""
    leaf, form, magnitude, error, bias = step.names
    need(bool(bias) == (form == "code"), "codes must have a bias, and other forms none")
    t.leaf(leaf, form, bias, error, magnitude)
    return Judgement(leaf, leaf, amount(magnitude), amount(error), (form,), (bias,) if bias else ())


def _binary(operation: str, law: Callable[..., laws.Pair], *rules: str) -> Callable[..., Judgement]:
    def apply(t: Theorem, step: Step, a: Judgement, b: Judgement) -> Judgement:
        t.rest(*rules)
        need(operation != "-" or a.forms == b.forms == ("fixed",), "a difference must be of fixed-point numbers")
        other = ("negative", b.device) if operation == "-" else b.device
        device = ("+" if operation == "-" else operation, a.device, other)
        magnitude, error = law(a.magnitude, a.error, b.magnitude, b.error)
        return Judgement((operation, a.real, b.real), device, magnitude, error, a.forms + b.forms, a.biases + b.biases)

    return apply


def _half(t: Theorem, step: Step, a: Judgement) -> Judgement:
    t.rest("multiple")
    need(a.device[0] == "+", "a half must be of a sum")
    magnitude, error = laws.of_multiple(Fraction(1, 2), a.magnitude, a.error)
    return Judgement(("*", "1/2", a.real), ("half", a.device), magnitude, error, a.forms, a.biases)


def _repeated(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: the index of the terms, and their number; lemmas: of the addition.

    HLSCNN's sums are stored after each term: words have the same bits of fraction, so that nothing is cut.
    """
    index, count = step.names
    t.rest("one more term", lemmas=step.lemmas, axioms=["induction", "residues"])
    magnitude, error = laws.of_multiple(t.count(index, count), a.magnitude, a.error)
    addition, form, limits = _ADDITIONS[step.lemmas]
    need(a.forms == (form,), f"terms of a sum must be of the form {form}")
    return Judgement(("sum", index, a.real), (addition, index, a.device), magnitude, error, a.forms, (), limits)


_ADDITIONS: Mapping[tuple[str, ...], tuple[str, str, tuple[tuple[Formula, str], ...]]] = {
    ("sum",): ("eadd over", "fixed", ((constant(32), "a vector's sum wraps in 20 bits"),)),
    ("VTA sum",): ("alu_add over", "accumulator", ((constant(1 << 31), "the accumulator wraps"),)),
    (): ("sum", "partial", ((constant(1 << 15), "a partial sum of 32 bits wraps"),)),
    ("HLSCNN total", "HLSCNN store"): (
        "hlscnn_stored over", "word", ((constant(256), "a stored word of 16 bits wraps"),)
    ),
}  # fmt: skip
"""By lemmas on additions: the primitive, the form of its words, and where a sum of them wraps."""


def _weighted(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: index, row of exact weights, their bias, sum of magnitudes; number and magnitude of weights for it."""
    index, row, bias, norm, count, weight = step.names
    t.rest("one more weighted term", "one more term", lemmas=step.lemmas, axioms=["induction", "residues"])
    t.leaf(row, "code", bias, "0", weight)
    need(step.lemmas == ("multiply codes",) and a.forms == ("code",), "weighted sums must be of codes")
    total = t.count(index, count) * amount(weight)
    if norm:
        total = t.named(norm, ("sum", index, ("magnitude", row)), total)
    magnitude, error = laws.of_multiple(total, a.magnitude, a.error)
    limit = 8 * power_of_two(
        symbol(bias) + symbol(a.biases[0])
    )  # 31 bits of codes' products, of 28 + biases of fraction
    product = (READINGS["multiply codes"].primitive, row, a.device)
    real = ("sum", index, ("*", row, a.real))
    device = ("sum", index, product)
    return Judgement(real, device, magnitude, error, ("products",), (bias, *a.biases), ((limit, _ACCUMULATOR),))


def _average(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: index and number of the groups, of 16 terms each, with sums like a; the unit divides and rounds."""
    index, groups = step.names
    need(a.forms == ("fixed",) and a.device[0] == "eadd over", "an average must be of sums of fixed-point numbers")
    need(t.counts[str(a.device[1])] == "16", "an average must be of sums of 16 numbers")
    t.rest("average", "multiple", "round to nearest", lemmas=["divide by a count"], axioms=["induction", "residues"])
    t.need(t.count(index, groups), 256, "a timestep has more numbers than the unit is known to divide by")
    t.need(t.count(index, groups) * (a.magnitude + a.error), 512, "a timestep's sum wraps in 24 bits")
    magnitude, error = laws.of_multiple(Fraction(1, 16), a.magnitude, a.error)
    device = ("norm_divide", index, a.device)
    limits = ((constant(32), "a number of 20 bits wraps"),)
    return Judgement(("average", index, a.real), device, magnitude, laws.of_rounding(UNIT, error), a.forms, (), limits)


def _rectify(t: Theorem, step: Step, a: Judgement) -> Judgement:
    t.rest("rectify")
    return replace(a, real=("relu", a.real), device=("rectify", a.device))


def _shift(t: Theorem, step: Step, a: Judgement, by: Judgement) -> Judgement:
    """Both sides shift one integer, so that the results are one."""
    need(a.error == by.error == constant(0), "a shift must be of exact integers")
    t.rest("shift")
    t.need(by.magnitude, 16, "a shift is by more than the unit shifts by")
    t.ranges.setdefault("0", []).append(("at most", by.real))
    return replace(a, real=("shift", a.real, by.real), device=("shift", a.device, by.device), forms=a.forms + by.forms)


def _clip(t: Theorem, step: Step, mixed: Judgement, a: Judgement) -> Judgement:
    """Of max(min(a, high), low), or min(max(a, low), high), where low <= 0 <= high."""
    match mixed.real:
        case ("max", ("min", real, high), low) | ("min", ("max", real, low), high) if real == a.real:
            need(mixed.error == constant(0), "a clip must be exact")
            t.rest("clip")
            t.ranges.setdefault("0", []).extend([("at most", high), ("at least", low)])
            return replace(mixed, magnitude=a.magnitude)
    raise Rejected("a clip must be of the operand")


def _complement(t: Theorem, step: Step, z: Judgement) -> Judgement:
    need(z.real[0] == "sigmoid", "a complement must be of a number from 0 to 1")
    t.rest("complement")
    return Judgement(("complement", z.real), ("complement", z.device), *laws.of_complement(z.error), z.forms)


def _weighted_mean(t: Theorem, step: Step, mixed: Judgement, a: Judgement, b: Judgement) -> Judgement:
    """Of a (1 - z) + b z, where z is from 0 to 1, in any order."""
    need(mixed.real[0] == "+" and all(p[0] == "*" for p in mixed.real[1:]), "a weighted mean must be a sum of products")
    weights = [z for p in mixed.real[1:] for z in p[1:] if z[0] == "sigmoid" and {b.real, z} == set(p[1:])]
    need(bool(weights), "a weighted mean must be of the operands")
    products = [{a.real, ("complement", weights[0])}, {b.real, weights[0]}]
    parts = [set(p[1:]) for p in mixed.real[1:]]
    need(products in (parts, parts[::-1]), "the weights must add up to 1")
    t.rest("weighted mean")
    return replace(mixed, magnitude=laws.of_weighted_mean(a.magnitude, b.magnitude))


def _omission(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: a leaf that the device leaves out, and its magnitude."""
    leaf, magnitude = step.names
    t.leaf(leaf, "", "", "0", magnitude)
    t.rest("omission")
    m, e = laws.of_omission(amount(magnitude), a.magnitude, a.error)
    return replace(a, real=("+", a.real, leaf), magnitude=m, error=e)


# -- laws on names --------------------------------------------------------------------------------------------


def _range(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: of the range; of sums, the range is of their parts, too."""
    (name,) = step.names
    return replace(a, magnitude=t.named(name, a.real, a.magnitude))


# -- primitives -----------------------------------------------------------------------------------------------


def _lemma(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """The primitive of a lemma in the place of its operation; names: the bias, for a code, and else nothing."""
    (name,) = step.lemmas
    r = READINGS[name]
    operands = operands_of(a.device, r.operation)
    need(operands is not None, f"lemma {name!r} must be applied to its operation")
    need(all(map(_is_word, operands or ())), "operands must be words, not operations that no primitive does")
    assert operands is not None
    need(a.forms == r.takes, f"lemma {name!r} must be applied to {', '.join(r.takes)}, not {', '.join(a.forms)}")
    t.rest(lemmas=[name])
    if r.below is not None:
        t.need(a.magnitude + a.error, r.below, r.reason)
    if r.gives == "code":
        return _coded(t, step, a, r, operands)
    need(len(a.biases) == r.biases, f"lemma {name!r} must be applied to codes of {r.biases} biases")
    real, magnitude, error = a.real, a.magnitude, a.error
    match r.kind:
        case "exact":
            pass
        case "down" | "nearest":
            t.rest("round down" if r.kind == "down" else "round to nearest")
            error = laws.of_rounding(r.amount, error)
        case "cut":
            t.rest("cut")
            error = laws.of_cut(r.amount, magnitude, error)
        case _:
            need(r.kind != "exp" or a.real[0] == "from the largest", "an exponential must be of a number up to 0")
            t.rest("slope", *_SLOPES[r.kind], lemmas=_TAILS.get(r.kind, ()), axioms=["mean value"])
            real, magnitude, error = (r.kind, a.real), constant(1), laws.of_slope(r.slope, r.amount, error)
    limits = () if r.limit is None else ((constant(r.limit), r.reason),)
    return Judgement(real, (r.primitive, *operands, *a.biases), magnitude, error, (r.gives,), (), limits)


_SLOPES = {"sigmoid": ["slope of the logistic function"], "tanh": ["slope of tanh"], "exp": []}
_TAILS = {"exp": ["exponential, tail"]}


def _coded(t: Theorem, step: Step, a: Judgement, r: Reading, operands: tuple[Term, ...]) -> Judgement:
    """names: the code's bias, and "any size" for an error that does not depend on the magnitude, or a lower bound of
    it, where the device's number is too large to become zero."""
    bias, *how = step.names
    t.role("a bias", symbol(bias))
    if a.biases:  # codes, that are pooled as if their bias was 0
        need(set(a.biases) == {bias}, "codes that are pooled must have one bias")
    device = (r.primitive, *operands, *(() if a.biases else (bias,)))
    if r.kind == "exact":
        return Judgement(a.real, device, a.magnitude, a.error, (r.gives,), (bias,))
    scale = power_of_two(symbol(bias))
    largest, tiny = LARGEST_AT_0 * scale, TINY_AT_0 * scale
    if how == ["any size"]:
        t.rest("any code", axioms=["half steps", "scale"])
        error = laws.of_any_code(largest, tiny, half_step(largest), a.magnitude, a.error)
    else:
        t.rest("code", axioms=["half steps", "scale"])
        half = half_step(minimum(a.magnitude + a.error, largest))
        error = laws.of_code(largest, tiny, half, a.magnitude, a.error)
        for least in how:
            t.least(least, ("magnitude", a.real))
            t.need(tiny + a.error, symbol(least), "a number may become zero")
            error = laws.of_large_code(largest, half, a.magnitude, a.error)
    return Judgement(a.real, device, a.magnitude, error, (r.gives,), (bias,))


def _uncut(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """A cut of numbers whose real values lie below its limit."""
    (name,) = step.lemmas
    r = READINGS[name]
    need(r.kind == "cut" and a.forms == r.takes, f"lemma {name!r} must be on a cut")
    t.rest("nothing is cut", lemmas=[name])
    t.need(a.magnitude, r.amount, "a processing element saturates")
    return Judgement(a.real, (r.primitive, a.device), a.magnitude, a.error, (r.gives,))


def _inverse_root(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: a lower bound of the real number."""
    (least,) = step.names
    need(a.forms == ("fixed",), "the inverse root must be of a fixed-point number")
    t.least(least, a.real)
    t.need(a.magnitude + a.error, 64, "the variance wraps (an unsigned number of 20 bits)")
    t.rest("difference of inverse roots", "relative error", "sum", lemmas=["inverse root"])
    low = symbol(least) - a.error
    t.need(constant(LEAST_RADICAND), low, "the inverse root wraps, or is not positive")
    root = inverse_root(low)
    error = laws.of_inverse_roots(a.error, root) + laws.of_relative(INV_SQRT_ERROR, root)
    return Judgement(("1/sqrt", a.real), ("inv_sqrt", a.device), inverse_root(symbol(least)), error, a.forms)


# -- softmax --------------------------------------------------------------------------------------------------


def _from_largest(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: the index, a lower bound of the largest one, how many are exactly 0."""
    index, least, zeros = step.names
    need(a.forms == ("score",), "distances must be of scores")
    need(_is_exact(t, a.device), "distances must be of exact sums, so that what the unit takes for 0 is 0")
    t.least(least, ("max over", t.index(index), a.real), -1 * a.magnitude)
    t.rest("sum", "larger", lemmas=["exponential vanishes"], axioms=["induction"])
    t.need(constant(MASKED + EXP_VANISHES) + a.error, symbol(least), "rows that fill the last block count in the sum")
    t.role("a number of zeros", symbol(zeros))
    t.ranges.setdefault(zeros, []).append(("zeros of", index, a.real))
    t.need(symbol(zeros), 1, "the unit takes a score of exactly 0 for -64")
    magnitude, error = laws.of_sum(a.magnitude, a.error, a.magnitude, a.error)
    limits = ((constant(1 << 11), "a difference of scores wraps (Q12.20)"),)
    real, device = (("from the largest", index, x) for x in (a.real, a.device))
    return Judgement(real, device, magnitude, error, a.forms, (), limits)


def _is_exact(t: Theorem, device: Term) -> bool:
    """Whether a score is a sum of products of exact codes, which alone is rounded."""
    match device:
        case ("attention_shift", ("sum", _, ("adpfloat_mul", str() as row, str() as factor)), *_):
            return all(t.leaves[leaf][2] == "0" for leaf in (row, factor))
    return False


def _total(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: index and number of exponentials, an upper and a lower bound of their sum: one of them is e^0."""
    index, count, most, least = step.names
    scores = a.forms == ("score",)
    need(
        scores and a.real[:1] == ("exp",) and a.real[1][1] == index, "a sum with a lower bound must be of exponentials"
    )
    t.rest("one more term", lemmas=["exponential is below 1"], axioms=["induction"])
    number = t.count(index, count)
    magnitude, error = laws.of_multiple(number, a.magnitude, a.error)
    real = ("sum", index, a.real)
    t.least(least, real, constant(1))
    upper = t.named(most, real, magnitude)
    reached = minimum(upper + error, number * _LARGEST_POWER)
    t.need(reached, 4, "the divider takes its operands modulo 4")
    return Judgement(real, ("sum", index, a.device), upper, error, a.forms)


def _share(t: Theorem, step: Step, p: Judgement, total: Judgement) -> Judgement:
    """names: the lower bound of the sum."""
    (least,) = step.names
    real = ("/", p.real, total.real)
    need(t.ranges.get(least) == [("at least", total.real)], f"{least} must be a lower bound of the sum")
    need(total.real[0] == "sum" and total.real[2] == p.real, "a share must be of its own sum")
    need(p.forms == total.forms == ("score",), "a share must be of scores")
    laws_used = ("quotient, above", "quotient, below", "quotients of larger sums", "nothing below 0")
    t.rest(*laws_used, lemmas=["divide slices", "divide"])
    s, d = symbol(least), total.error
    t.need(constant(Fraction(1, 4)), s - d - SLICE, "a quotient may reach 4, and wrap")
    above = laws.of_quotient_above(p.magnitude, d + SLICE, p.error, s)
    below = laws.of_rounding(QUOTIENT, laws.of_quotient_below(p.magnitude, d, p.error + SLICE, s))
    magnitude = minimum(p.magnitude / s, 1)
    below = laws.of_nonnegative(magnitude, below)  # a quotient of slices, which have no sign
    return Judgement(real, ("divide_q24", p.device, total.device), magnitude, maximum(above, below), ("quotient",))


def _shares(t: Theorem, step: Step, mixed: Judgement, k: Judgement) -> Judgement:
    """A sum of numbers like k, weighted with shares."""
    real = mixed.real
    need(real[0] == "sum" and real[2][0] == "*" and real[2][1] == k.real, "shares must be weights of the operand")
    need(real[2][2][0] == "/" and real[2][2][2][1] == real[1], "shares must be of one sum")
    t.rest("one more share", axioms=["induction"])
    return replace(mixed, magnitude=k.magnitude)


# -- time -----------------------------------------------------------------------------------------------------


def _growth(t: Theorem, step: Step, a: Judgement) -> Judgement:
    """names: the error before the step, by what it is multiplied, and 1 + q + q^2 .. for as many steps as there are."""
    before, factor, series = step.names
    t.role("an error of words", symbol(before))
    t.role("a range", symbol(factor))
    states = [leaf for leaf, (_, _, error, _) in t.leaves.items() if before in symbols_of(amount(error))]
    need(
        len(states) == 1, f"{before} must be the error of one leaf, the state, not of {' and '.join(states) or 'none'}"
    )
    t.role("a sum over steps", symbol(series))
    t.series[series] = factor
    own = Formula("*", (symbol(factor), symbol(before)))
    need(a.error.op == "+" and a.error.args.count(own) == 1, f"the error must be {own} and what the step adds")
    rest = sum((x for x in a.error.args if x != own), constant(0))
    need(before not in symbols_of(rest), f"what the step adds must not depend on {before}")
    t.rest("growth", axioms=["induction"])
    error = rest * symbol(series)
    for number, c in enumerate(t.conditions):  # which hold for smaller errors, if they hold for the last one
        need(_grows(c.left, before) and before not in symbols_of(c.right), f"{c} must grow with {before}")
        t.conditions[number] = replace(c, left=put(c.left, before, error))
    return replace(a, real=("steps", a.real), device=("steps", a.device), error=error)


def _grows(f: Formula, name: str) -> bool:
    """Whether a formula does not decrease with a symbol; symbols outside of exponents stand for magnitudes."""
    if name not in symbols_of(f) or f.op == "symbol":
        return True
    if f.op == "*" and any(not _positive(a) for a in f.args):
        return False
    return f.op in ("+", "*", "max", "min", "half_step") and all(_grows(a, name) for a in f.args)


def _positive(f: Formula) -> bool:
    if f.op == "constant":
        return f.value >= 0
    return f.op in ("symbol", "2^") or (f.op in ("+", "*", "max", "min") and all(map(_positive, f.args)))


LAWS: Mapping[str, Callable[..., Judgement]] = {
    "given": _given,
    "sum": _binary("+", laws.of_sum, "sum"),
    "difference": _binary("-", laws.of_sum, "sum"),
    "product": _binary("*", laws.of_product, "product", "magnitude of a product"),
    "larger": _binary("max", laws.of_choice, "larger"),
    "smaller": _binary("min", laws.of_choice, "smaller"),
    "half": _half,
    "repeated sum": _repeated,
    "weighted sum": _weighted,
    "average": _average,
    "rectify": _rectify,
    "shift": _shift,
    "clip": _clip,
    "complement": _complement,
    "weighted mean": _weighted_mean,
    "omission": _omission,
    "range": _range,
    "lemma": _lemma,
    "nothing is cut": _uncut,
    "inverse root": _inverse_root,
    "distance from the largest": _from_largest,
    "sum of exponentials": _total,
    "share": _share,
    "mean by shares": _shares,
    "growth": _growth,
}
"""By name, what a step does; it takes the theorem so far, the step, and the judgements that it is of."""
