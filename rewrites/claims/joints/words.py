"""Words that are data, as real numbers: in which form a word stands for a number, and what primitives do to numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache

from accel_models import fixed_point
from accel_models.flexasr.floats import EXPONENT_AT_0, adpfloat_to_float, float_to_adpfloat
from accel_models.hlscnn.options import BY_WEIGHT_BITS
from accel_models.hlscnn.quantise import activation_format, weight_format
from ila_lang import Expr, Function, bv, const, ite, substitute
from ila_lang.language.expr import private_var
from ila_lang.mapping import Lemma
from ir_semantics.graph.operator import lookup
from ir_semantics.tensors.conditions import TRUE, Condition, equal, negation
from ir_semantics.tensors.elements import Apply, Choice, Element, Number, Reduce, apply_scalar, parts_of
from ir_semantics.tensors.index import Index, Names, index
from rewrites.bounds.catalogue import LEMMAS
from rewrites.bounds.kernel.readings import ANY, READINGS, Reading, Term

from .indices import Indices
from .instruction import Unread
from .readings import operands_of

INTEGER = "integer"
"""The form of words that are signed integers in one unit."""
_FORMS = dict.fromkeys(("byte", "accumulator"), INTEGER)
_ADDED = (INTEGER, "products", "partial")
"""Forms of which plain addition is addition of numbers; that it does not wrap is a condition of bounds."""
_BIASED = ("code", "products")
"""Forms of which a bias is a part, so that exponents are theirs."""
NUMBER = "float32"
"""The form of words that are float32 numbers."""
CONVERSIONS: Mapping[Function, tuple[str, str, int]] = {
    float_to_adpfloat: (NUMBER, "code", EXPONENT_AT_0),
    adpfloat_to_float: ("code", NUMBER, EXPONENT_AT_0),
}
"""Functions of a word and an exponent that make a code of a number, or a number of a code: forms before and after, and
the exponent with which codes stand for what they are.  Over the real numbers they change nothing."""
EXPONENTS: Mapping[str, int] = {
    "code": EXPONENT_AT_0,
    INTEGER: fixed_point.EXPONENT_AT_0,
    "word": fixed_point.EXPONENT_AT_0 - activation_format().fraction,
    "byte weight": fixed_point.EXPONENT_AT_0 - weight_format(BY_WEIGHT_BITS[8]).fraction,
    "weight": fixed_point.EXPONENT_AT_0 - weight_format(BY_WEIGHT_BITS[16]).fraction,
}
"""By form, the exponent with which the host makes words that stand for numbers as they are; a code's bias is added."""
ZERO = Number(Fraction(0))
MOST_PARTS = 5_000
MARK = "!"
"""In the names of variables that are made up, and of no others."""


@cache
def _lemmas() -> Mapping[Function, Reading]:
    readings: dict[Function, Reading] = {}
    for name, reading in READINGS.items():
        if name in LEMMAS:
            readings.setdefault(LEMMAS[name].function, reading)
    # the lemma is about three operands, of which bounds use two at a time
    total = LEMMAS["HLSCNN total"].function
    readings[total] = replace(readings[total], operation=("+", ("+", ANY, ANY), ANY), takes=("word", "word", "bias"))
    return readings


def operation(term: Term, args: Sequence[Element], names: Names) -> Element:
    """A reading's operation on numbers; raises Unread where it has no element.

    The larger of two is written as the maximum over two places, which is how maxima over axes are written.
    """
    operands = iter(args)

    def go(term: Term) -> Element:
        if term == ANY:
            return next(operands)
        match term:
            case (("+" | "*") as op, first, second):
                return added(go(first), go(second)) if op == "+" else Apply("mul", (go(first), go(second)))
            case ("max", first, second):
                place = names.fresh("r")
                here = equal(Index({(place,): 1}), 0)
                return Reduce("max", place, index(2), Choice(here, go(first), go(second)))
            case ("rectify", of):
                return _scalar("relu", go(of))
            case ("complement", of):
                return Apply("sub", (Number(Fraction(1)), go(of)))
            case ("half", of):
                return Apply("mul", (Number(Fraction(1, 2)), go(of)))
        raise Unread(f"the operation {term} has no tensor term")

    return go(term)


def _scalar(operator: str, of: Element) -> Element:
    meaning = lookup(operator).scalar
    assert meaning is not None
    return apply_scalar(meaning({}), {"x": of})


@dataclass(frozen=True)
class Data:
    """A number, and how a word stands for it: its form, and the exponent of two that its format adds (a code's bias).

    Where one of these is not known, it is that of the register or memory ``place``, which has one for all its words.
    """

    element: Element
    form: str = ""
    exponent: Index | None = None
    place: object = None


@dataclass
class Units:
    """Form and exponent of each place, and the places that are copies: one state for all instructions of a joint.

    Integers that were ``shifted`` right have a form of their own, and by how many bits.
    """

    known: dict[object, tuple[str, Index | None]] = field(default_factory=dict)
    copies: dict[str, object] = field(default_factory=dict)
    shifted: dict[str, Index] = field(default_factory=dict)

    def place(self, memory: str) -> object:
        """The place that says in which form a memory's words are."""
        return self.copies.get(memory, memory)

    def of(self, place: object) -> tuple[str, Index | None]:
        """As far as it is known."""
        return self.known.get(place, ("", None))

    def copy(self) -> Units:
        """One that changes apart."""
        return Units(dict(self.known), dict(self.copies), self.shifted)

    def host_exponent(self, memory: str) -> Index | None:
        """The exponent with which the host converts numbers to and from a memory's words if it does not scale them.

        None where nothing is known of the form.
        """
        form, exponent = self.of(self.place(memory))
        shift = self.shifted.get(form)
        unit = EXPONENTS.get(INTEGER if shift is not None else form)
        if unit is None or exponent is None:
            return None
        return exponent + unit + (0 if shift is None else shift)


class Words(Indices):
    """Reads expressions over *leaves*, which are data.

    ``readings`` are those of primitives on integers, and ``lemmas`` say what functions are in terms of others.
    """

    def __init__(
        self, names: Names, readings: Mapping[Function, Term], lemmas: Sequence[Lemma], units: Units | None = None
    ) -> None:
        super().__init__()
        self.names, self.readings, self.lemmas = names, readings, lemmas
        self.leaves: dict[Expr, Data] = {}
        self.inside: dict[Expr, tuple[Condition, str]] = {}
        """Where leaves are the data that they stand for: what must hold wherever one is used, in words, too."""
        self.units = Units() if units is None else units
        self.used: dict[str, Lemma] = {}
        self.uses: dict[tuple[Function, tuple[Expr, ...]], None] = {}
        """Readings of the mapping's own that were used, with what their operations do not take."""
        self._read: dict[tuple[Expr, tuple[Condition, ...]], Data] = {}
        self._counted: dict[int, tuple[int, Element]] = {}

    def leaf(self, width: int, data: Data) -> Expr:
        """A variable that stands for data; what is made up here has a mark that no counter and no register has."""
        leaf = private_var(f"data{MARK}{len(self.leaves)}", bv(width))
        self.leaves[leaf] = data
        return leaf

    def forget(self) -> None:
        """What was read is read again, with its obligations."""
        self._congruent.clear()
        self._read.clear()

    # -- how words stand for numbers -------------------------------------------------------------------------

    def known(self, data: Data) -> tuple[str, Index | None]:
        """Form and exponent, as far as they are known."""
        form, exponent = self.units.of(data.place)
        return data.form or form, exponent if data.exponent is None else data.exponent

    def use(self, data: Data, form: str, exponent: Index | None = None) -> None:
        """A word is used as one of a form and an exponent; raises Unread where it is of others."""
        required, (has, own) = _FORMS.get(form, form), self.known(data)
        if data.element == ZERO:  # a word of zeros is 0 in every form
            return
        if required and has not in ("", required):
            raise Unread(f"a word of the form {has} must not be used as {required}")
        if own is not None and exponent is not None and own != exponent:
            raise Unread(f"a number with the exponent {own} must not be used as one with {exponent}")
        used = own if exponent is None else exponent
        if (required or has) not in ("", *_BIASED) and used not in (None, index(0)):
            raise Unread(f"a word of the form {required or has} must have the exponent 0, not {used}")
        if data.place is not None:
            self.units.known[data.place] = has or required, exponent if own is None else own

    def stored(self, memory: str, data: Data, exponent: Index | None) -> None:
        """What lies in a memory now has the form of this, and whoever reads it later finds it so.

        Without an exponent it is the data's own.
        """
        if exponent is None:
            own = self.known(data)[1]
            exponent = index(0) if own is None else own
        self.use(data, "", exponent)
        form, _ = self.known(data)
        if form == "weight":
            raise Unread("a weight must not be stored: no primitive says that the word is one")
        if form:
            self.use(Data(data.element, "", exponent, memory), form, exponent)
        elif data.place is not None:
            self.units.copies[memory] = data.place
        elif data.element != ZERO:
            raise Unread(f"what is stored in {memory} must be of a known form")

    def alike(self, words: Sequence[Data], form: str = "") -> tuple[str, Index | None]:
        """The form and exponent of words that must have one; raises Unread where they have not, or it is not known."""
        units = [self.known(data) for data in words]
        form = form or next((f for f, _ in units if f), "")
        exponent = next((e for _, e in units if e is not None), None)
        if not form and sum(data.element != ZERO for data in words) > 1:
            raise Unread("words must be of a known form where they are combined")
        for data in words:
            self.use(data, form, exponent)
        return form, exponent

    # -- data ------------------------------------------------------------------------------------------------

    def data(self, of: Expr) -> Data:
        """The number that a word stands for."""
        if (of, self.path) not in self._read:
            if of in self.leaves:
                self.require(*self.inside.get(of, (TRUE, "")))
                data = self.leaves[of]
            else:
                self.step()
                data = self._data(of)
            if self._parts(data.element) > MOST_PARTS:
                raise Unread(f"a number of more than {MOST_PARTS} operations is too large to be read")
            self._read[of, self.path] = data
        return self._read[of, self.path]

    def _parts(self, element: Element) -> int:
        """How many elements it consists of, where those that occur twice count twice."""
        if id(element) not in self._counted:
            self._counted[id(element)] = 1 + sum(map(self._parts, parts_of(element))), element
        return self._counted[id(element)][0]

    def _data(self, of: Expr) -> Data:
        match of.op:
            case "const" if of.value == 0:
                return Data(ZERO)
            case "apply" if of.func is not None:
                return self.applied(of.func, of)
            case "bvadd" | "bvmul":
                first, second = words = [self.data(a) for a in of.args]
                form = next((f for f, _ in map(self.known, words) if f), INTEGER)
                fits = sum(a.args[0].width if a.op == "sext" else a.width for a in of.args) <= of.width
                if form not in _ADDED if of.op == "bvadd" else form != INTEGER or not fits:
                    raise Unread(f"words of the form {form} must not be combined by {of.op}")
                form, exponent = self.alike(words, form)
                if of.op == "bvadd":
                    return Data(added(first.element, second.element), form, exponent)
                return Data(Apply("mul", (first.element, second.element)), form, exponent)
            case "sext":
                inner = self.data(of.args[0])
                self.use(inner, INTEGER, index(0))
                return Data(inner.element, INTEGER, index(0))
            case "concat" if of.args[1] is const(0, 8) and of.args[0].width == 8:  # HLSCNN's byte, a weight's high half
                inner = self.data(of.args[0])
                self.use(inner, "byte weight", index(0))
                return Data(inner.element, "weight", index(0))
            case "ite":
                condition = self.condition(of.args[0])
                with self.under(condition):
                    yes = self.data(of.args[1])
                with self.under(negation(condition)):
                    no = self.data(of.args[2])
                if yes == no:
                    return yes
                form, exponent = self.alike((yes, no))
                if yes.element == no.element:
                    return Data(yes.element, form, exponent)
                return Data(Choice(condition, yes.element, no.element), form, exponent, yes.place or no.place)
        raise Unread(f"{of.describe()} on data has no real number")

    def applied(self, function: Function, of: Expr) -> Data:
        """What a function makes of numbers: the operation that it is read as, or what its body says."""
        for k, arg in enumerate(of.args):
            words = [self.leaves[a] for a in arg.args[1:] if a in self.leaves] if arg.op == "ite" else []
            if len(words) == 2 and not any(self.known(word)[0] for word in words):  # what uses them gives them a form
                yes, no = (function(*of.args[:k], a, *of.args[k + 1 :]) for a in arg.args[1:])
                return self.data(ite(arg.args[0], yes, no))
        if function in self.readings:
            term = self.readings[function]
            r = Reading(function.name, term, (INTEGER,) * operands_of(term), INTEGER)
            others = of.args[len(r.takes) :]
            for other in others:
                try:
                    sizes = self.exact(other).variables
                except Unread as error:
                    raise Unread(f"the operation of {function.name} must take all but sizes: {error}") from error
                if any("." in name for name in sizes):
                    raise Unread(f"{function.name} must shift all results by the same number of bits, not by {other}")
            if others:  # of another unit, so that it cannot be added to others
                r = replace(r, gives=f"result of {function.name} by {self.exact(others[-1])}")
                self.units.shifted[r.gives] = self.exact(others[-1])
            self.uses[function, others] = None
        elif function in CONVERSIONS:
            return self.converted(function, of)
        elif function in _lemmas():
            r = _lemmas()[function]
        else:
            for lemma in (each for each in self.lemmas if each.defines):
                bound = _matched(lemma, of)
                if bound is not None:
                    self.used[lemma.name] = lemma
                    return self.data(substitute(lemma.left, bound))
            if function.body is None:
                raise Unread(f"the function {function.name} has no reading")
            return self.data(function.unfold(of.args))
        args, formats = [self.data(a) for a in of.args[: len(r.takes)]], of.args[len(r.takes) :]
        exponent = self.taken(r, args, formats)
        element = operation(r.operation, [a.element for a in args], self.names)
        if r.kind in ("sigmoid", "tanh", "exp"):
            element = _scalar(r.kind, element)
        return Data(element, _FORMS.get(r.gives, r.gives), exponent)

    def converted(self, function: Function, of: Expr) -> Data:
        """The same number in another form; a code's exponent is what the function is given."""
        takes, gives, offset = CONVERSIONS[function]
        number, exponent = self.data(of.args[0]), self.exact(of.args[1]) - offset
        before, after = (index(0), exponent) if takes == NUMBER else (exponent, index(0))
        self.use(number, takes, before)
        return Data(number.element, gives, after)

    def taken(self, r: Reading, args: Sequence[Data], formats: Sequence[Expr]) -> Index | None:
        """Uses operands as a primitive takes them, and gives the exponent of its result.

        Codes have exponents: a product's is their sum, a conversion takes or gives it, and others keep it.
        """
        if r.operation == ("*", ANY, ANY) and r.takes == ("code", "code"):
            exponents = [self.known(a)[1] for a in args]
            for arg, form, own in zip(args, r.takes, exponents, strict=True):
                self.use(arg, form, own)
            known = [e for e in exponents if e is not None]
            return sum(known, index(0)) if len(known) == len(exponents) else None
        bias: Index | None = None
        if r.biases:
            bias = sum((self.exact(e) for e in formats[: r.biases]), index(0))
        elif r.kind != "code" or not formats:
            exponent = next((e for _, e in map(self.known, args) if e is not None), None)
            for arg, form in zip(args, r.takes, strict=True):
                self.use(arg, form, exponent)
            if r.kind in ("sigmoid", "tanh", "exp"):
                self.use(args[0], r.takes[0], index(0))
            return exponent
        for arg, form in zip(args, r.takes, strict=True):
            self.use(arg, form, bias if bias is not None and form in ("code", "products") else index(0))
        return index(0) if bias is not None else self.exact(formats[0])


def added(first: Element, second: Element) -> Element:
    """The sum, where a literal 0 is left out."""
    return second if first == ZERO else first if second == ZERO else Apply("add", (first, second))


def _matched(lemma: Lemma, of: Expr) -> dict[Expr, Expr] | None:
    """What a lemma's variables are, so that its right side is the term; the lemma is an obligation."""
    substitution: dict[Expr, Expr] = {}
    variables = {a for a in lemma.left.args if a.op == "var"}

    def match(pattern: Expr, term: Expr) -> bool:
        if pattern in variables:
            return pattern.sort == term.sort and substitution.setdefault(pattern, term) is term
        if any(getattr(pattern, part) != getattr(term, part) for part in ("op", "sort", "params", "func")):
            return False
        return len(pattern.args) == len(term.args) and all(map(match, pattern.args, term.args))

    return substitution if match(lemma.right, of) else None
