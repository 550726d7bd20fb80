"""The operators of arith and math on integers, Booleans and indices, and conversions from them and to them.

Sources: the MLIR documentation of the dialects arith and math, and of ub for poison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from ir_semantics.elements.operators import (
    apply,
    at_most,
    below,
    both,
    choose,
    either,
    equal,
    minus,
    negation,
    plus,
    quotient,
    remainder,
    same,
    times,
)
from ir_semantics.elements.terms import Term, constant, integer_value, is_true, literal, number, truth
from ir_semantics.mlir import ir
from ir_semantics.scalars.floats import largest
from ir_semantics.scalars.formats import BOOLEAN, INTEGERS, Format

from .elementwise import Result, ScalarRule, elementwise
from .memory import Buffer, selected_buffer
from .program import Call, MeaningOfValue, Operator
from .values import Element, Tensor, bits_of, word, zero


def unsigned(value: Term) -> Term:
    """A word read without sign."""
    return apply("cast", value, target=word(bits_of(value.kind), signed=False))


def signed(value: Term) -> Term:
    """A word read with sign."""
    return apply("cast", value, target=word(bits_of(value.kind)))


def exactly(op: str, a: Term, b: Term) -> Term:
    """Whether the result of an operator on words, as their signs say, needs no more bits than they have."""
    wide = word(2 * bits_of(a.kind) + 2)
    exact = apply(op, apply("cast", a, target=wide), apply("cast", b, target=wide))
    return same(exact, apply("cast", apply(op, a, b), target=wide))


def _flags(call: Call) -> set[str]:
    """``nsw`` and ``nuw``, if there."""
    value = call.attribute("overflowFlags", "overflow_flags")
    if value is None:
        return set()
    text = value.text if isinstance(value, ir.OpaqueAttribute) else ""
    flags = set(text.removeprefix("arith.overflow<").removesuffix(">").replace(" ", "").split(","))
    if not flags <= {"none", "nsw", "nuw"}:
        raise call.wrong("the flags of overflow must be nsw, nuw or none")
    return flags - {"none"}


def _kept_unsigned(op: str, a: Term, b: Term) -> Term:
    """Whether a sum, difference or product of indices, read without sign, does not leave 64 bits."""
    end = number(1 << 64)
    exact = apply(op, *(choose(below(x, number(0)), plus(x, end), x) for x in (a, b)))
    return both(at_most(number(0), exact), below(exact, end))


def _wrapping(op: str) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        a, b = args
        flags = _flags(call)
        if a.kind == BOOLEAN:
            if flags:
                raise call.fail("overflow of i1 has no meaning here")
            return Result(both(a, b) if op == "mul" else negation(same(a, b)))
        if a.kind == INTEGERS:
            note_index(call)  # which says nsw, too
            return Result(apply(op, a, b), _kept_unsigned(op, a, b) if "nuw" in flags else None)
        kept = []
        if "nsw" in flags:
            kept.append(exactly(op, a, b))
        if "nuw" in flags:
            kept.append(exactly(op, unsigned(a), unsigned(b)))
        return Result(apply(op, a, b), both(*kept) if kept else None)

    return rule


def note_index(call: Call) -> None:
    """Notes the reading of arithmetic on values of type index."""
    call.scope.notes["operations on values of type index do not leave 64 bits"] = None


def _words_only(call: Call, args: Sequence[Term]) -> None:
    if any(a.kind.family != "integer" for a in args):
        raise call.fail(f"the operator on values of the format {args[0].kind} has no meaning here")


def division(op: str, is_signed: bool) -> ScalarRule:
    """A quotient or remainder of words.

    A divisor that is not defined is undefined behaviour, and so is -1 with a dividend that may be the least number.
    """

    def rule(call: Call, args: Sequence[Term]) -> Result:
        a, b = args
        if a.kind == INTEGERS:
            return _index_division(call, op, is_signed, a, b)
        _words_only(call, args)
        exact = None
        if op == "quotient" and call.has("isExact"):
            x, y = (a, b) if is_signed else (unsigned(a), unsigned(b))
            exact = same(apply("remainder", x, y), zero(x.kind))
        if not is_signed:
            return Result(signed(apply(op, unsigned(a), unsigned(b))), exact, _nonzero(b), "a divisor must not be 0")
        if op == "remainder" and literal(b) in (None, -1):
            call.scope.notes["the remainder of the least number by -1 is 0, as MLIR folds it"] = None
        required = _nonzero(b) if op == "remainder" else _fitting(a, b)
        return Result(apply(op, a, b), exact, required, "a divisor must not be 0, nor the quotient too large")

    return rule


def _nonzero(b: Term) -> Callable[[Sequence[Term]], Term]:
    return lambda defined: both(defined[1], negation(same(b, zero(b.kind))))


def _fitting(a: Term, b: Term) -> Callable[[Sequence[Term]], Term]:
    """What a signed quotient requires."""
    least, minus_one = constant(-(1 << (bits_of(a.kind) - 1)), a.kind), constant(-1, b.kind)

    def required(defined: Sequence[Term]) -> Term:
        fits = both(defined[0], negation(same(a, least)))
        return both(_nonzero(b)(defined), either(negation(same(b, minus_one)), fits))

    return required


def _index_division(call: Call, op: str, is_signed: bool, a: Term, b: Term) -> Result:
    """Divisions of index by a positive number."""
    divisor = integer_value(b)
    if divisor is None or divisor <= 0:
        raise call.fail("a divisor of type index must be a positive constant", "compute on i64")
    down, rest = quotient(a, b), remainder(a, b)
    if not is_signed and not is_true(at_most(number(0), a)):
        raise call.fail("an unsigned quotient of an index that may be negative has no meaning here", "compute on i64")
    if op == "floor_quotient":
        return Result(down)
    if op == "ceil_quotient":
        return Result(minus(number(0), quotient(minus(number(0), a), b)))
    negative = both(below(a, number(0)), negation(equal(rest, number(0))))
    toward_zero = choose(negative, plus(down, number(1)), down)
    return Result(toward_zero if op == "quotient" else minus(a, times(b, toward_zero)))


def _ceil_division(is_signed: bool) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        a, b = args
        if a.kind == INTEGERS:
            return _index_division(call, "ceil_quotient", is_signed, a, b)
        _words_only(call, args)
        if is_signed:
            wide = word(bits_of(a.kind) + 1)
            x, y = (apply("cast", v, target=wide) for v in (a, b))
            value = apply("neg", apply("floor_quotient", apply("neg", x), y))
            required = _fitting(a, b)
        else:
            x, y = unsigned(a), unsigned(b)
            down, rest = apply("quotient", x, y), apply("remainder", x, y)
            one, none = constant(1, x.kind), zero(x.kind)
            value, required = apply("add", down, choose(same(rest, none), none, one)), _nonzero(b)
        return Result(apply("cast", value, target=a.kind), None, required, "a divisor must not be 0")

    return rule


def _shift(op: str, is_signed: bool) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        a, b = args
        if a.kind == INTEGERS:
            amount = integer_value(b)
            if op != "shift_left" or amount is None or not 0 <= amount < 64:
                raise call.fail("a shift of an index must be to the left, by a constant below 64", "compute on i64")
            note_index(call)
            kept_ = _kept_unsigned("mul", a, number(1 << amount)) if "nuw" in _flags(call) else None
            return Result(times(a, number(1 << amount)), kept_)
        _words_only(call, args)
        width = bits_of(a.kind)
        amount_ = unsigned(b)
        fits = apply("lt", amount_, constant(width, amount_.kind)) if width < 1 << width else truth(True)
        x = a if is_signed else unsigned(a)
        kept = [fits]
        if op == "shift_left":
            back = signed(apply("shift_right", apply(op, a, b), b))
            kept += [same(back, a)] if "nsw" in _flags(call) else []
            over = apply("shift_right", unsigned(apply(op, a, b)), amount_)
            kept += [same(signed(over), a)] if "nuw" in _flags(call) else []
            return Result(apply(op, a, b), both(*kept))
        if call.has("isExact"):
            kept.append(
                same(apply("shift_left", apply(op, x, b if is_signed else amount_), b if is_signed else amount_), x)
            )
        return Result(signed(apply(op, x, b if is_signed else amount_)), both(*kept))

    return rule


def _bitwise(op: str) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        a, b = args
        if a.kind == BOOLEAN:
            logic = {"bit_and": both, "bit_or": either, "bit_xor": lambda x, y: negation(same(x, y))}
            return Result(logic[op](a, b))
        _words_only(call, args)
        return Result(apply(op, a, b))

    return rule


def _extreme(op: str, is_signed: bool) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        a, b = args
        if a.kind == INTEGERS:
            smaller, larger = (a, b) if op == "minimum" else (b, a)
            return Result(choose(at_most(a, b) if is_signed else less(a, b, False), smaller, larger))
        if a.kind == BOOLEAN:  # signed, true is -1
            return Result(both(a, b) if (op == "minimum") != is_signed else either(a, b))
        _words_only(call, args)
        return Result(apply(op, a, b) if is_signed else signed(apply(op, unsigned(a), unsigned(b))))

    return rule


_COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def less(a: Term, b: Term, is_signed: bool) -> Term:
    """a < b, of words, Booleans or indices."""
    if a.kind == BOOLEAN:
        return both(a, negation(b)) if is_signed else both(negation(a), b)
    if a.kind == INTEGERS:
        if is_signed:
            return below(a, b)
        alike = same(below(a, number(0)), below(b, number(0)))
        return choose(alike, below(a, b), below(b, number(0)))
    return apply("lt", a, b) if is_signed else apply("lt", unsigned(a), unsigned(b))


def compare(predicate: str, a: Term, b: Term) -> Term:
    """A predicate of ``arith.cmpi``."""
    if predicate in ("eq", "ne"):
        return same(a, b) if predicate == "eq" else negation(same(a, b))
    is_signed = predicate[0] == "s"
    match predicate[1:]:
        case "lt":
            return less(a, b, is_signed)
        case "gt":
            return less(b, a, is_signed)
        case "le":
            return negation(less(b, a, is_signed))
    return negation(less(a, b, is_signed))


def _cmpi(call: Call, args: Sequence[Term]) -> Result:
    return Result(compare(_COMPARISONS[call.whole("predicate")], *args))


def _select(call: Call) -> Sequence[MeaningOfValue]:
    if isinstance(call.operands[1], Element):
        return [selected(call.element(0), call.element(1), call.element(2))]
    if isinstance(call.operands[1], Buffer):
        call.settled(call.element(0), "a buffer is chosen by a condition that may be undefined")
        return [selected_buffer(call.element(0), call.buffer(1), call.buffer(2))]
    yes, no = call.tensor(1), call.tensor(2)
    call.require_equal(yes.shape, no.shape, "operands must have one shape")
    conditions = call.tensor(0) if isinstance(call.operands[0], Tensor) else None
    single = call.element(0) if conditions is None else None
    if conditions is not None:
        call.require_equal(conditions.shape, yes.shape, "operands must have one shape")

    def element(at: tuple[Term, ...]) -> Element:
        condition = conditions.at(at) if conditions is not None else single
        assert condition is not None
        return selected(condition, yes.at(at), no.at(at))

    return [Tensor(yes.kind, yes.shape, element)]


def selected(condition: Element, yes: Element, no: Element) -> Element:
    """``arith.select``: what is not selected need not be defined."""
    kept = choose(condition.value, yes.defined, no.defined)
    return Element(choose(condition.value, yes.value, no.value), both(condition.defined, kept))


# -- conversions ---------------------------------------------------------------------------------------------


def convert(value: Term, kind: Format, is_signed: bool = True) -> Term:
    """An integer as a word, an index or a float; one of fewer bits than the target is extended."""
    if value.kind == BOOLEAN:
        one = constant(Fraction(-1 if is_signed else 1), kind)
        return choose(value, one, zero(kind))
    if value.kind == INTEGERS:
        if kind == BOOLEAN:
            return equal(remainder(value, number(2)), number(1))
        return apply("cast", value, target=kind)
    read = value if is_signed else unsigned(value)
    if kind == BOOLEAN:
        return negation(same(apply("bit_and", value, constant(1, value.kind)), zero(value.kind)))
    return apply("cast", read, target=kind)


def _conversion(is_signed: bool = True) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        (value,) = args
        kind = call.result_format()
        if value.kind == INTEGERS and not is_signed and bits_of(kind) > 64:
            raise call.fail("an index cannot be extended here without its sign", "cast it to i64 first")
        if kind == INTEGERS and bits_of(value.kind) >= 64:  # the lower 64 bits, which are read with sign
            return Result(convert(apply("cast", value, target=word(64)), kind))
        return Result(convert(value, kind, is_signed))

    return rule


def _truncation(call: Call, args: Sequence[Term]) -> Result:
    (value,), kind = args, call.result_format()
    cut, flags = convert(value, kind), _flags(call)
    kept = [same(convert(cut, value.kind, flag == "nsw"), value) for flag in sorted(flags)]
    return Result(cut, both(*kept))


def _to_integer(is_signed: bool) -> ScalarRule:
    def rule(call: Call, args: Sequence[Term]) -> Result:
        (value,) = args
        kind = call.result_format()
        if kind.family != "integer":
            raise call.fail(f"a conversion to {kind} has no meaning here")
        target = word(bits_of(kind), signed=is_signed)
        cut = apply("trunc", value)
        end = Fraction(1 << (bits_of(kind) - is_signed))
        within = [apply("is_finite", value)]
        if end <= Fraction(largest(value.kind)):
            within.append(apply("lt", cut, constant(end, value.kind)))
            low = -end if is_signed else Fraction(0)
            within.append(apply("le", constant(low, value.kind), cut))
        elif not is_signed:
            within.append(apply("le", zero(value.kind), cut))
        return Result(apply("cast", apply("cast", value, target=target), target=kind), both(*within))

    return rule


def _bitcast(call: Call, args: Sequence[Term]) -> Result:
    if args[0].kind != call.result_format():
        raise call.fail("a change of the reading of bits has no meaning here")
    return Result(args[0])


_RULES: dict[str, ScalarRule] = {
    "arith.addi": _wrapping("add"),
    "arith.subi": _wrapping("sub"),
    "arith.muli": _wrapping("mul"),
    "arith.divsi": division("quotient", True),
    "arith.divui": division("quotient", False),
    "arith.remsi": division("remainder", True),
    "arith.remui": division("remainder", False),
    "arith.floordivsi": division("floor_quotient", True),
    "arith.ceildivsi": _ceil_division(True),
    "arith.ceildivui": _ceil_division(False),
    "arith.shli": _shift("shift_left", True),
    "arith.shrsi": _shift("shift_right", True),
    "arith.shrui": _shift("shift_right", False),
    "arith.andi": _bitwise("bit_and"),
    "arith.ori": _bitwise("bit_or"),
    "arith.xori": _bitwise("bit_xor"),
    "arith.maxsi": _extreme("maximum", True),
    "arith.minsi": _extreme("minimum", True),
    "arith.maxui": _extreme("maximum", False),
    "arith.minui": _extreme("minimum", False),
    "arith.cmpi": _cmpi,
    "arith.extsi": _conversion(),
    "arith.extui": _conversion(False),
    "arith.trunci": _truncation,
    "arith.index_cast": _conversion(),
    "arith.index_castui": _conversion(False),
    "arith.sitofp": _conversion(),
    "arith.uitofp": _conversion(False),
    "arith.fptosi": _to_integer(True),
    "arith.fptoui": _to_integer(False),
    "arith.bitcast": _bitcast,
    "math.absi": lambda call, args: Result(apply("abs", args[0])),
}

OPERATORS: Mapping[str, Operator] = {
    **{name: elementwise(rule) for name, rule in _RULES.items()},
    "arith.select": _select,
}
"""By name."""
