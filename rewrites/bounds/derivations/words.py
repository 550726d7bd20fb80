"""Words of a kernel as steps of a derivation: what the writer knows of primitives, lemmas and laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from accel_models.flexasr.layout import LANES
from accel_models.vta import numerics as vta
from ila_lang import Expr, Function, MemSort, bv, const, substitute
from ila_lang.language.expr import private_var, variables_of
from ila_lang.language.function import inline
from ila_lang.mapping import Lemma
from rewrites.bounds.kernel.judgements import Judgement, Step, Theorem
from rewrites.bounds.kernel.readings import ANY, READINGS, WIDTHS, Reading, Term
from rewrites.bounds.kernel.replay import MASKED, extend

from .names import Leaf, Names, Unread

_PRIMITIVES: Mapping[str, tuple[tuple[str, Reading], ...]] = {
    r.primitive: tuple((n, other) for n, other in READINGS.items() if other.primitive == r.primitive)
    for r in READINGS.values()
}
_OWN = ("norm_divide", "inv_sqrt", "divide_q24", "exp")
"""Primitives with laws of their own."""
KEPT = frozenset({*_PRIMITIVES, *_OWN, "hlscnn_rectify"})
_LAWS = {"+": "sum", "*": "product", "max": "larger", "min": "smaller", "rectify": "rectify", "half": "half",
         "complement": "complement", "shift": "shift"}  # fmt: skip
CONSTANTS = ("low", "high")
"""Leaves that are constants up to 0, and above."""
_IN_WORDS = (vta.alu_add, vta.alu_max, vta.alu_min, vta.alu_shr_signed5, vta.narrow)
"""Primitives that kernels write out as operators on words."""


@dataclass
class Words:
    """Steps of words: of leaves, of primitives that lemmas are about, and of what stands for them.

    ``known`` are the steps of terms, and ``leaves`` variables for words that are loaded.  ``pending`` is what registers
    stand for that have no step yet: a law, the step of a term, its index and the number of terms.  ``data`` are the
    variables that stand for data, of which neither addresses nor decisions may be.  ``closed`` are leaves that count
    only where a test holds, which was taken into account at the one place where they are used.

    ``places`` are where the words of leaves lie, ``guards`` where they are read if not everywhere, and ``others`` where
    words lie that are read elsewhere.  ``guard`` is what holds where a statement is reached.
    """

    result: str
    names: Names
    operands: Mapping[Expr, Expr]
    lemmas: Sequence[Lemma]
    alike: bool
    steps: list[Step] = field(default_factory=list)
    theorem: Theorem = field(default_factory=Theorem)
    known: dict[Expr, int] = field(default_factory=dict)
    leaves: dict[Expr, tuple[str, Leaf]] = field(default_factory=dict)
    ways: dict[Expr, Expr] = field(default_factory=dict)
    """What of a leaf stands for a number: the word that is loaded, or one that is made wider."""
    places: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    guards: dict[str, Expr | None] = field(default_factory=dict)
    others: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    zeros: set[str] = field(default_factory=set)
    """Leaves that were taken for 0 where they are not read."""
    guard: Expr | None = None
    data: set[Expr] = field(default_factory=set)
    closed: set[Expr] = field(default_factory=set)
    used: dict[str, Lemma] = field(default_factory=dict)
    biases: dict[str, Expr] = field(default_factory=dict)
    pending: dict[Expr, tuple[str, int, str, str]] = field(default_factory=dict)
    functions: dict[Function, None] = field(default_factory=dict)
    extents: dict[str, tuple[Expr, ...]] = field(default_factory=dict)
    """Extents of the loops over an index."""

    def add(self, law: str, *of: int, names: Iterable[str] = (), lemmas: Iterable[str] = ()) -> int:
        """A step by a law, which must apply."""
        step = Step(law, of, tuple(lemmas), tuple(names))
        extend(self.theorem, step)
        self.steps.append(step)
        return len(self.steps)

    def judgement(self, step: int) -> Judgement:
        """What a step says."""
        return self.theorem.judgements[step - 1]

    def named(self, step: int, name: str | None) -> int:
        """The same, where the range has a name."""
        return self.add("range", step, names=[name]) if name else step

    def word(self, step: int, width: int) -> Expr:
        """A variable that stands for the word of a step."""
        place = self.variable(f"word {step}", width)
        self.known[place] = step
        return place

    def variable(self, name: str, width: int) -> Expr:
        """A variable that stands for data."""
        variable = private_var(name, bv(width))
        self.data.add(variable)
        return variable

    def replaces(self, other: Expr, term: Expr) -> bool:
        """Whether a word takes the place of another one under the guard: a leaf is one or the other of both then."""
        read = [v for v in variables_of(term) if v in self.leaves and self.guards[self.leaves[v][0]] is self.guard]
        replaced = [v for v in variables_of(other) if v in self.leaves]
        if len(read) != 1 or len(replaced) != 1 or substitute(other, {replaced[0]: read[0]}) is not term:
            return False
        (name, leaf), (elsewhere, alike) = self.leaves[read[0]], self.leaves.pop(replaced[0])
        place = self.places.pop(elsewhere)
        used = replaced[0] in self.ways or name in self.zeros or (read[0] in self.ways and name not in self.others)
        if used or self.guards.pop(elsewhere) is not None or replace(alike, name=leaf.name) != leaf or len(place) != 2:
            raise Unread(f"{elsewhere} must be read as {name} is, and be used only where that is not read")
        if not all(map(is_, self.others.setdefault(name, place), place)):
            raise Unread(f"{name} must be words of one place where its condition does not hold, not of {place}")
        return True

    def vanishes(self, term: Expr) -> bool:
        """Whether a word is 0 where all words that are read under the guard are: a sum of their products is."""
        read = [leaf for leaf, (name, _) in self.leaves.items() if self.guards[name] is self.guard]
        if any(self.leaves[leaf][0] in self.others for leaf in read):
            return False
        self.zeros |= {self.leaves[leaf][0] for leaf in read}
        if term in self.known:
            match self.judgement(self.known[term]).device:
                case ("sum", _, ("adpfloat_mul", *factors)):
                    return all(any(f == self.leaves[leaf][0] for leaf in read) for f in factors)
            return False
        word = inline(substitute(term, {leaf: const(0, leaf.width) for leaf in read}))
        return word.is_const and word.value == 0

    def data_free(self, term: Expr, what: object) -> Expr:
        """The same term, which depends on sizes, counters and operands, and on no data."""
        if any(v in self.data or isinstance(v.sort, MemSort) for v in variables_of(term)):
            raise Unread(f"{what} must not depend on data")
        return term

    def require_signs(self) -> None:
        """Raises Unread where a law takes a constant for one with the other sign, so that it says nothing."""
        wrong = {("at most", CONSTANTS[0]), ("at least", CONSTANTS[1])} & {*self.theorem.ranges.get("0", ())}
        for how, constant in sorted(wrong):
            magnitude = self.theorem.leaves[constant][3]
            if magnitude != "0":
                sign = "negative" if how == "at most" else "positive"
                raise Unread(f"a constant that is shifted by or cut at must not be {sign}, as that of {magnitude} is")

    def of(self, real: Term) -> int:
        """The last step with this real value."""
        return max(n for n, j in enumerate(self.theorem.judgements, 1) if j.real == real)

    def step(self, term: Expr, name: str | None = None, *, converted: bool = True) -> int:
        """The step of a word; ``name`` is the range of what it is converted from, which alone is written otherwise."""
        if term not in self.known:
            step = self._written(term, name, converted)
            if not converted:
                return step
            self.known[term] = step
        return self.known[term]

    def _form(self, term: Expr) -> str:
        return self.leaves[term][1].form if term in self.leaves else ""

    def use(self, leaf: Expr, word: Expr) -> Leaf:
        """A leaf as it is used: in one way, and with as many bits as its form has."""
        name, entry = self.leaves[leaf]
        if leaf in self.closed:
            raise Unread(f"{name}, which does not always count, must be used in one place")
        half = entry.form == "byte weight" and word is leaf  # the other half of its bits must be zeros
        if half or self.ways.setdefault(leaf, word) is not word or word.width != WIDTHS.get(entry.form):
            raise Unread(f"{name} must be of the {WIDTHS.get(entry.form)} bits of the form {entry.form}, not {word}")
        return entry

    def _written(self, term: Expr, name: str | None, converted: bool) -> int:
        if term in self.leaves:
            return self._given(term, term)
        match term.op, term.args:
            case "const", _ if term.width == WIDTHS["accumulator"]:
                number = signed(term)
                return self.add("given", names=[CONSTANTS[number > 0], "accumulator", str(abs(number)), "0", ""])
            case "zext" | "sext", (of,) if self._form(of) == "accumulator":
                return self._given(of, term)
            case "concat", (of, low) if self._form(of) == "byte weight" and low is const(0, 8):
                return self._given(of, term)
            case "bvsub", (first, second):
                difference = self.add("difference", self.step(first), self.step(second))
                return self.named(self.lemma("sum", difference), self._total(first, second))
            case "apply", args:
                assert term.func is not None
                own: Mapping[str, Callable[..., int]] = {
                    "norm_divide": self._average, "inv_sqrt": self._inverse_root,
                    "divide_q24": self._share, "exp": self._exponential,
                }  # fmt: skip
                if term.func.name in own:
                    self.functions[term.func] = None
                    return own[term.func.name](*args)
                if term.func.name in _PRIMITIVES:
                    return self._primitive(term.func, args, name, converted)
        for function in _IN_WORDS:
            operands = (term.args[0].args if term.op == "ite" else term.args)[: len(function.params)]
            if [o.sort for o in operands] == [p.sort for p in function.params]:
                word = function(*operands)
                if inline(word) is term:
                    return self._primitive(function, operands, name, converted)
                if word.width == 32 and inline(vta.narrow(word)) is term:  # a cut between two constants
                    return self._primitive(vta.narrow, (word,), name, converted)
        for lemma in (each for each in self.lemmas if each.defines):
            used = set(variables_of(term))
            leaves = dict(zip(lemma.left.args, (v for v in self.leaves if v in used), strict=False))
            if lemma.left.func is not None and inline(substitute(lemma.right, leaves), KEPT) is term:
                if self.used.setdefault(lemma.name, lemma) is not lemma:
                    raise Unread(f"{lemma.name} must be the name of one lemma")
                return self._primitive(lemma.left.func, tuple(leaves.values()), name, converted)
        raise Unread(f"no lemma is about {term}")

    def _given(self, leaf: Expr, word: Expr) -> int:
        entry = self.use(leaf, word)
        names = [self.leaves[leaf][0], entry.form, entry.magnitude, entry.error, entry.bias]
        return self.add("given", names=names)

    def score(self, term: Expr) -> int:
        """The step of a score of which distances are taken: -64 may be in the place of 0."""
        if term.op == "ite" and term.args[1] is const(MASKED * (1 << 20) % (1 << 32), 32):
            test, _, score = term.args
            if score.op != "apply" or test is not (score.args[0] == 0):
                raise Unread(f"only sums of exactly 0 may be masked, not those with {test}")
            term = score  # the law on distances from the largest excludes a sum of exactly 0
        return self.step(term)

    def lemma(self, name: str, of: int, *names: str) -> int:
        """The primitive of a lemma in the place of the operation."""
        return self.add("lemma", of, names=names, lemmas=[name])

    def _primitive(self, function: Function, args: tuple[Expr, ...], name: str | None, converted: bool) -> int:
        """The operation of the primitive's lemma, and the lemma."""
        primitive = function.name
        self.functions[function] = None
        places = _places(_PRIMITIVES[primitive][0][1].operation)
        operands = [self.step(a) for a in args[:places]]
        forms = tuple(f for o in operands for f in self.judgement(o).forms)
        of_these = [(n, r) for n, r in _PRIMITIVES[primitive] if r.takes == forms]
        if not of_these:
            raise Unread(f"{primitive} must be of other words than {', '.join(forms)}")
        lemma, reading = of_these[0]
        step = self.named(self._operation(reading.operation, iter(operands)), name)
        if not converted:
            if reading.operation == ANY:
                self.known[args[0]] = step
            return step
        if primitive == "pe_saturate" and self.alike:
            return self.add("nothing is cut", step, lemmas=[lemma])
        biases = tuple(map(self._bias, args[places:]))
        own, also = self.judgement(step).biases, ()
        if reading.gives == "code":
            code = biases or own[:1]
            also = (*code, *(("any size",) if self.alike else ()))
        elif biases != own:
            raise Unread(f"{primitive} must be of the biases {', '.join(own)}, not {', '.join(biases)}")
        step = self.lemma(lemma, step, *also)
        if reading.operation == ("+", ANY, ANY):
            step = self.named(step, self._total(*args[:places]))
        real = self.judgement(step).real
        if reading.operation == ("*", ANY, ANY) and any(f[0] == "1/sqrt" for f in real[1:]):
            step = self.named(step, self.names.ranges.get("1/sqrt"))
        if real[0] in ("sigmoid", "complement"):
            step = self.named(step, self.names.ranges.get(str(real[0])))
        return step if reading.operation == ANY else self._sharper(step, real)

    def _bias(self, operand: Expr) -> str:
        """The name of an operand that is a bias, which is no other operand's."""
        self.data_free(operand, "a bias")
        if operand.op != "var" or operand not in self.operands:
            raise Unread(f"a bias must be an operand, not {operand}")
        name = self.names.biases.get(operand.name, operand.name)
        if self.biases.setdefault(name, operand) is not operand:
            raise Unread(f"{name} must be the name of one operand, not of {self.biases[name]} and {operand}")
        return name

    def _operation(self, operation: Term, operands: Iterator[int]) -> int:
        if operation == ANY:
            return next(operands)
        return self.add(_LAWS[str(operation[0])], *(self._operation(o, operands) for o in operation[1:]))

    def _total(self, *args: Expr) -> str | None:
        """The name of the range of a sum."""
        for arg in args:
            word = arg.args[0] if arg.func is not None and arg.func.name == "adpfloat_to_fixed" else arg
            if word in self.leaves and self.leaves[word][1].total:
                return self.leaves[word][1].total
        return None

    def _sharper(self, step: int, real: Term) -> int:
        """Laws on magnitudes that follow from what an operation is of."""
        match real:
            case ("+", ("*", ("complement", z), a), ("*", y, b)) | ("+", ("*", y, b), ("*", ("complement", z), a)) if (
                y == z
            ):
                return self.add("weighted mean", step, self.of(a), self.of(b))
            case ("min", ("max", a, "low"), "high") | ("max", ("min", a, "high"), "low"):  # constants: low <= 0 <= high
                return self.add("clip", step, self.of(a))
        return step

    # -- laws of single primitives -----------------------------------------------------------------------------

    def _average(self, total: Expr, count: Expr) -> int:
        _, step, index, groups = self._taken("average", total)
        (extent,) = self.extents[index]
        if count is not (extent * LANES)[count.width - 1 : 0]:
            raise Unread(f"an average must be over all values of {index}, 16 each, not {count}")
        return self.add("average", step, names=[index, groups])

    def _taken(self, law: str, term: Expr) -> tuple[str, int, str, str]:
        if term not in self.pending or self.pending[term][0] != law:
            raise Unread(f"{law} must be of the register of a loop, not of {term}")
        return self.pending[term]

    def _inverse_root(self, of: Expr) -> int:
        step = self.step(of)
        if "inverse root" in self.names.omitted:
            step = self.add("omission", step, names=self.names.omitted["inverse root"])
        return self.add("inverse root", self.named(step, self.names.ranges.get("inverse root")),
                        names=self.names.bounds["inverse root"])  # fmt: skip

    def _exponential(self, of: Expr) -> int:
        if of.op != "bvsub" or of.args[1] not in self.pending:
            raise Unread(f"an exponential must be of a distance from the largest, not of {of}")
        _, step, index, _ = self._taken("largest", of.args[1])
        if self.score(of.args[0]) != step:
            raise Unread("a distance must be from the largest of its own kind")
        names = [index, *self.names.bounds["distance from the largest"]]
        return self.lemma("exponential", self.add("distance from the largest", step, names=names))

    def _share(self, of: Expr, total: Expr) -> int:
        least = self.names.bounds["sum of exponentials"][1]
        return self.add("share", self.step(of), self.step(total), names=[least])


def signed(number: Expr) -> int:
    """A literal as a signed number."""
    return number.value - (number.value >> number.width - 1 << number.width)


def _places(operation: Term) -> int:
    return 1 if operation == ANY else sum(map(_places, operation[1:]))
