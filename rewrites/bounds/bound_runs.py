"""Runs that PROVED bounds survive: both sides of a theorem on random words, and their distance against the bound.

The device's side is run primitive by primitive on the scalar interpreter, the real one in intervals of exact
fractions (:mod:`ir_semantics.scalars.intervals`).  Ranges are measured on the data, or left to their defaults.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from accel_models.flexasr import numerics as flexasr_numerics
from ila_lang.interpreter.compile import compile_function
from ir_semantics.scalars.intervals import Interval, point
from smt_encodings.claims import Runs

from .derivations.calculus import Operator
from .kernel.judgements import Judgement, Theorem, amount, indices_of, text_of
from .kernel.readings import READINGS, WIDTHS, Term
from .values import INTERVALS, Values

RUNS, MOST_TRIES = 12, 60
EXTENTS = (1, 2, 3)
MOST_WORDS = 500
"""Words of a leaf with all indices; with more, every size that is not fixed is 1."""
BIASES = 8
STEPS = 3
"""Timesteps of a bound over time."""

FRACTION_BITS = {
    "fixed": 14, "sum": 14, "score": 20, "quotient": 20, "partial": 16, "total": 16, "word": 7, "weight": 14,
    "byte weight": 14, "bias": 14, "byte": 0, "accumulator": 0,
}  # fmt: skip


@dataclass
class Data:
    """Words of leaves by index, biases, and extents of indices; real values where they are not those of the words."""

    extents: dict[str, int]
    biases: dict[str, int]
    words: dict[str, dict[tuple[int, ...], int]] = field(default_factory=dict)
    reals: dict[str, dict[tuple[int, ...], Fraction]] = field(default_factory=dict)


def _signed(word: int, width: int) -> int:
    return word - (word >> width - 1 << width)


def number(word: int, form: str, bias: int = 0) -> Fraction:
    """What a leaf's word stands for."""
    if form == "code":
        return flexasr_numerics.value_of(word, bias)
    return Fraction(_signed(word, WIDTHS[form]), 1 << FRACTION_BITS[form])


def survey_bound(operator: Operator) -> Runs:
    """Runs both sides on data of which a bound is stated, small and large."""
    draw, count, at, fixed = random.Random(0), 0, dict[str, None](), _fixed(operator.theorem)
    if prod(fixed.values()) > MOST_WORDS:
        return Runs(0, (), (f"it is of more than {MOST_WORDS:,} words, which are too many to be run",))
    for attempt in range(MOST_TRIES):
        data = _drawn(operator.theorem, draw, attempt)
        excess = beyond(operator, data)
        if excess is None:
            continue
        count += 1
        at[", ".join(f"{n} = {v}" for n, v in {**data.extents, **data.biases}.items()) or "scalars"] = None
        if excess:
            return Runs(count, tuple(at), difference={"data": data, "seen": excess}, shown=excess)
        if count >= RUNS:
            break
    places = (*list(at)[:4], "...") if len(at) > 4 else tuple(at)
    return Runs(count, places, () if count else ("no data that were tried meet the conditions",))


def _drawn(theorem: Theorem, draw: random.Random, attempt: int) -> Data:
    fixed, sizes = _fixed(theorem), dict[str, int]()
    extents = {i: fixed.get(i) or sizes.setdefault(n, draw.choice(EXTENTS)) for i, n in _sizes(theorem).items()}
    if prod(extents.values()) > MOST_WORDS:
        extents = {i: fixed.get(i, 1) for i in extents}
    biases = {b: draw.randrange(0, 4) for _, b, *_ in theorem.leaves.values() if b}
    biases |= {b: draw.randrange(0, BIASES) for j in theorem.judgements for b in j.biases if b not in biases}
    data = Data(extents, biases)
    for leaf, (form, bias, error, *_) in theorem.leaves.items():
        if not form:
            data.reals[leaf] = {(): Fraction(1, 100_000)}
            continue
        words, reals, draws = {}, {}, _Draws(theorem, leaf, biases.get(bias, 0))
        for place in product(*(range(extents[i]) for i in indices_of(leaf))):
            words[place] = draws.word(draw, attempt)
            value = number(words[place], form, biases.get(bias, 0))
            reals[place] = value if error == "0" else _near(value, leaf, draw)
        data.words[leaf], data.reals[leaf] = words, reals
    return data


def _sizes(theorem: Theorem) -> dict[str, str]:
    """How many values each index has: a number or a name; where it has none, the index."""
    return {i: i for i in theorem.indices} | theorem.counts


def _fixed(theorem: Theorem) -> dict[str, int]:
    """Extents that are no sizes; of a state over time, one feature is run."""
    numbers = {i: int(n) for i, n in theorem.counts.items() if n.isdecimal()}
    return {**numbers, **({"j": 1} if theorem.result.real[0] == "steps" else {})}


def require_data(theorem: Theorem, data: Data) -> None:
    """Raises ValueError unless the theorem speaks of these data: of their leaves, words, extents and signs.

    Sizes, ranges and errors that are symbols are what the data have (:func:`beyond`); those that are numbers must hold.
    """
    leaves, fixed, sizes = theorem.leaves, _fixed(theorem), dict[str, int]()
    biases = {b for j in theorem.judgements for b in j.biases} | {b for _, b, *_ in leaves.values() if b}
    _need(set(data.extents) == set(_sizes(theorem)), "extents must be of the bound's indices")
    for index, n in data.extents.items():
        allowed = n == fixed.get(index, n) and n >= 1 if type(n) is int else False
        _need(allowed, f"the extent of {index} must be {fixed.get(index, 'a positive integer')}, not {n!r:.60}")
    for index, size in _sizes(theorem).items():
        _need(sizes.setdefault(size, data.extents[index]) == data.extents[index], f"{size} must be one number")
    _need(set(data.biases) == biases, f"biases must be {', '.join(sorted(biases)) or 'none'}")
    for name, b in data.biases.items():
        _need(type(b) is int and 0 <= b < BIASES, f"the bias {name} must be an integer below {BIASES}, not {b!r:.60}")
    _need(set(data.words) == {n for n, (form, *_) in leaves.items() if form}, "words must be of the leaves with forms")
    _need(set(data.reals) == set(leaves), "reals must be of the leaves")
    for leaf in leaves:
        _require_leaf(theorem, data, leaf)
    real = _reals(theorem, data)
    for how, term in (t for t in theorem.ranges.get("0", ()) if isinstance(t, tuple)):
        signs = all(v.low >= 0 if how == "at most" else v.high <= 0 for v in _values(real, term))
        _need(signs, f"{text_of(term)} must be {'at least' if how == 'at most' else 'at most'} 0")


def _need(met: bool, reason: str) -> None:
    if not met:
        raise ValueError(f"data of a bound: {reason}")


def _require_leaf(theorem: Theorem, data: Data, leaf: str) -> None:
    form, bias, error, magnitude, *_ = theorem.leaves[leaf]
    shape = [data.extents[i] for i in indices_of(leaf)]
    words, reals = data.words.get(leaf, {}), data.reals[leaf]
    for places in [set(words), set(reals)] if form else [set(reals)]:
        complete = len(places) == prod(shape) and places == set(product(*map(range, shape)))
        _need(complete, f"{leaf} must have a value at every index below its extents, and no others")
    most, off = amount(magnitude), amount(error)
    for place, real in reals.items():
        _need(type(real) is Fraction, f"{leaf} must have fractions as real values, not {real!r:.60}")
        if most.op == "constant":
            _need(abs(real) <= most.value, f"{leaf} must be at most {magnitude} in magnitude, not {real}")
        if not form:
            continue
        word = words[place]
        fits = type(word) is int and 0 <= word < 1 << WIDTHS[form] and not (form == "byte weight" and word % 256)
        _need(fits, f"{leaf} must have words of the form {form}, not {word!r:.60}")
        stands = number(word, form, data.biases.get(bias, 0))
        if off.op == "constant":
            _need(abs(real - stands) <= off.value, f"{leaf} must be within {error} of its word's {stands}, not {real}")


class _Draws:
    """Draws words of a leaf: any that the theorem is about, but small ones where a large one is likely to wrap."""

    def __init__(self, theorem: Theorem, leaf: str, bias: int) -> None:
        self.leaf, self.bias = leaf, bias
        self.form, _, error, magnitude, *_ = theorem.leaves[leaf]
        most, signs = amount(magnitude), theorem.ranges.get("0", ())
        self.most = most.value if most.op == "constant" and error == "0" else None
        self.at_least, self.at_most = ("at most", leaf) in signs, ("at least", leaf) in signs

    def word(self, draw: random.Random, attempt: int) -> int:
        """A word whose number has the sign and the magnitude that the theorem assumes; the last resort is 0."""
        width = WIDTHS[self.form]
        if self.form == "accumulator":
            most = 70 if self.most is None else int(self.most)
            return draw.randint(0 if self.at_least else -most, 0 if self.at_most else most) % (1 << width)
        for _ in range(MOST_TRIES):
            word = self._any(draw, attempt, width)
            if self.most is None or abs(number(word, self.form, self.bias)) <= self.most:
                return word
        return 0

    def _any(self, draw: random.Random, attempt: int, width: int) -> int:
        if self.form == "code" and self.leaf[0] in "wukqbd" and self.leaf[:4] != "beta":
            return draw.choice((0, 1, draw.randrange(64), 0x80 + draw.randrange(64)))
        if self.form in ("weight", "word", "bias", "byte weight"):
            word = draw.choice(
                (draw.randint(-200, 200), draw.randint(-(1 << width - 1), (1 << width - 1) - 1) >> attempt % 4)
            )
            return (word >> 8 << 8 if self.form == "byte weight" else word) % (1 << width)
        return draw.randrange(1 << width)


def _near(value: Fraction, leaf: str, draw: random.Random) -> Fraction:
    """A real value near a device's, of at most 1 in magnitude where it is a hidden state."""
    moved = value + Fraction(draw.randint(-64, 64), 1 << 12)
    return max(min(moved, Fraction(1)), Fraction(-1)) if leaf[0] == "h" else moved


def beyond(operator: Operator, data: Data) -> str | None:
    """In words, how the sides differ by more than the bound; empty where they do not, None where there is none."""
    theorem = operator.theorem
    try:
        device, real, ranges = _both(theorem, data)
        bound = operator.bound({n: v for n, v in ranges.items() if n in operator.symbols}).value
    except (ZeroDivisionError, OverflowError):
        return None  # a divisor that may be 0, which the conditions exclude
    if bound is None:
        return None
    distance = max(
        real.high - device, device - real.low
    )  # with the enclosure's width, which is far below a bound's unit
    slack = real.high - real.low
    if distance - slack <= bound:
        return ""
    off, real_value = float(distance), float(real.low)
    return f"the device's {float(device):.9g} is {off:.9g} from {real_value:.9g}, not within {float(bound):.9g}"


def _both(theorem: Theorem, data: Data) -> tuple[Fraction, Interval, dict[str, Fraction]]:
    result = theorem.result
    if isinstance(result.real, tuple) and result.real[0] == "steps":
        return _over_time(theorem, result, data)
    word, form, bias = Device(theorem, data).word(result.device, dict.fromkeys(data.extents, 0))
    assert form == result.forms[0]
    return _number(word, form, bias), _first(_reals(theorem, data), result.real), _measured(theorem, data)


def _number(word: int, form: str, bias: int) -> Fraction:
    return number(word, form, bias) if form in WIDTHS else Fraction(_signed(word, 32), 1 << FRACTION_BITS[form])


def _over_time(theorem: Theorem, result: Judgement, data: Data) -> tuple[Fraction, Interval, dict[str, Fraction]]:
    """A state of one feature through several steps, from 0; ranges are the largest of all steps."""
    data.words["h[j]"], data.reals["h[j]"] = {(0,): 0}, {(0,): Fraction(0)}
    bias, ranges = data.biases["b_h"], dict[str, Fraction]()
    state, real = Fraction(0), point(0)
    for _ in range(STEPS):
        ranges = {n: max(v, ranges.get(n, v)) for n, v in _measured(theorem, data).items()}
        word, _, _ = Device(theorem, data).word(result.device[1], {})
        real = _first(_reals(theorem, data), result.real[1])
        state = number(word, "code", bias)
        data.words["h[j]"], data.reals["h[j]"] = {(0,): word}, {(0,): real.low}
    factor = ranges["U"]
    return state, real, {**ranges, "G": sum((factor**t for t in range(STEPS)), Fraction(0))}


def _reals(theorem: Theorem, data: Data) -> Values:
    """The real side, in intervals; the first axis is for what has no index."""
    axes, leaves = {index: k for k, index in enumerate(data.extents, 1)}, {}
    for leaf, values in data.reals.items():
        indices = indices_of(leaf)
        leaves[leaf] = np.empty([1, *(n if i in indices else 1 for i, n in data.extents.items())], object)
        for place, value in values.items():
            at = dict(zip(indices, place, strict=True))
            leaves[leaf][(0, *(at.get(i, 0) for i in data.extents))] = point(value)
    return Values(leaves, axes, (1, *data.extents.values()), INTERVALS)


def _first(values: Values, term: Term) -> Interval:
    """A term's value at the first element: all elements of a result are alike."""
    first: Interval = values.of(term).flat[0]
    return first


_PARAMETERS = {"pe_shift": 2, "pe_add_bias": 1, "attention_shift": 2, "adpfloat_to_fixed": 1, "fixed_to_adpfloat": 1,
               "attention_compress": 1}  # fmt: skip
GIVES = {r.primitive: r.gives for r in READINGS.values()} | {"divide_q24": "quotient", "inv_sqrt": "fixed"}


@cache
def _primitives() -> Mapping[str, Any]:
    from .catalogue import LEMMAS

    return {lemma.function.name: lemma.function for lemma in LEMMAS.values()}


@cache
def _run(name: str) -> Any:
    return compile_function(_primitives()[name])


@dataclass
class Device:
    """The device's side, in words."""

    theorem: Theorem
    data: Data

    def word(self, term: Term, at: Mapping[str, int]) -> tuple[int, str, int]:
        """A term's word, its form, and the bias of a code."""
        if isinstance(term, str):
            form, bias, *_ = self.theorem.leaves[term]
            word = self.data.words[term][tuple(at[i] for i in indices_of(term))]
            return word, form, self.data.biases.get(bias, 0)
        match term:
            case ("sum", str() as index, body):
                terms = [self.word(body, {**at, index: k}) for k in range(self.data.extents[index])]
                return sum(w for w, _, _ in terms) % (1 << 32), terms[0][1], 0
            case ("eadd over" | "alu_add over" | "hlscnn_stored over", str() as index, body):
                total = 0
                for k in range(self.data.extents[index]):
                    word, form, _ = self.word(body, {**at, index: k})
                    if term[0] == "hlscnn_stored over":
                        total = _run("hlscnn_stored")(_run("hlscnn_total")(word, total, 0))
                    else:
                        total = _run(str(term[0]).split()[0])(total, word)
                return total, form, 0
            case ("norm_divide", str() as index, body):
                groups = [self.word(body, {**at, index: k})[0] for k in range(self.data.extents[index])]
                total = sum(_signed(g, 20) for g in groups) % (1 << 24)
                return _run("norm_divide")(total, 16 * len(groups)), "fixed", 0
            case ("from the largest", str() as index, body):
                scores = [_signed(self.word(body, {**at, index: k})[0], 32) for k in range(self.data.extents[index])]
                return (_signed(self.word(body, at)[0], 32) - max(scores)) % (1 << 32), "score", 0
            case ("negative", body):
                return -self.word(body, at)[0] % (1 << 20), "fixed", 0
        name = str(term[0])
        codes = _PARAMETERS.get(name, 0)
        parts = term[1 : len(term) - codes] if codes else term[1:]
        biases = [self.data.biases[str(b)] for b in term[len(term) - codes :]] if codes else []
        operands = [self.word(p, at) for p in parts]
        zero = [0] if name == "hlscnn_total" else []  # of a sum that is stored and a bias
        word = _run(name)(*zero, *(w for w, _, _ in operands), *biases)
        own = biases[0] if GIVES[name] == "code" and biases else operands[0][2]
        return word, GIVES[name], own


def _measured(theorem: Theorem, data: Data) -> dict[str, Fraction]:
    """Sizes, biases, magnitudes and errors of leaves, and ranges, as the data have them."""
    measured = {n: Fraction(v) for n, v in data.biases.items()}
    measured |= {n: Fraction(data.extents[i]) for i, n in theorem.counts.items()}
    for leaf, (form, bias, error, magnitude, *_) in theorem.leaves.items():
        if not form:
            continue
        most = max((abs(v) for v in data.reals[leaf].values()), default=Fraction(0))
        measured[magnitude] = max(
            most, measured[magnitude] if magnitude in measured and not magnitude[:1].isdigit() else most
        )
        if error != "0":
            off = (
                abs(v - number(data.words[leaf][k], form, data.biases.get(bias, 0)))
                for k, v in data.reals[leaf].items()
            )
            measured[error] = max([*off, measured.get(error, Fraction(0))])
    real = _reals(theorem, data)
    for name, terms in theorem.ranges.items():
        if name == "0":  # signs, which the data have
            continue
        for term in terms:
            least = isinstance(term, tuple) and term[0] == "at least"
            values = list(_values(real, term[1] if least else term))
            if least:
                measured[name] = min([*(v.low for v in values), *([measured[name]] if name in measured else [])])
            else:
                measured[name] = max([*(abs(v).high for v in values), measured.get(name, Fraction(0))])
    return measured


def _values(real: Values, term: Term) -> Iterator[Interval]:
    """A term's values at all values of its free indices; of a sum, also those of its parts from the first term on."""
    if isinstance(term, tuple) and term[0] == "sum":
        axis = real.axes[str(term[1])]
        yield from INTERVALS["+"].accumulate(real.spread(axis, real.of(term[2])), axis=axis).flat
    else:
        yield from real.of(term).flat
