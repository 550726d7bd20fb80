"""Expressions printed straight as SMT-LIB text, for questions about thousands of cells.

pySMT needs seconds to build and print such a question; this printer needs a fraction of one.  It is one
operator to one SMT-LIB operator, like :mod:`smt_encodings.expressions.bits`, and is tested against it term by term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from pysmt.utils import quote

from ila_lang import BOOL, BvSort, Expr, Function, MemSort, Sort, postorder
from ila_lang.language.expr import variables_of
from ila_lang.mapping import Lemma
from smt_encodings.claims import Unsupported

from .bits import function_text, variable_text


class CannotPrint(Unsupported):
    """A question that this printer does not write, such as one with definitions that depend on each other."""


def sort_name(sort: Sort) -> str:
    """The SMT-LIB sort of an expression sort."""
    if isinstance(sort, BvSort):
        return f"(_ BitVec {sort.width})"
    if isinstance(sort, MemSort):
        return f"(Array (_ BitVec {sort.addr_width}) (_ BitVec {sort.data_width}))"
    return "Bool"


def miter_script(
    pairs: Sequence[tuple[Expr, Expr]],
    *,
    keep: frozenset[str] = frozenset(),
    lemmas: Sequence[Lemma] = (),
    comment: str = "",
) -> str:
    """A script that is satisfiable iff the two terms of some pair can differ.

    Functions are treated as in :func:`term_lines`, which says what is raised.
    """
    lines, texts = term_lines([t for pair in pairs for t in pair], keep=keep, lemmas=lemmas, comment=comment)
    return "\n".join([*lines, f"(assert {differences(pairs, texts)})", "(check-sat)"]) + "\n"


def differences(pairs: Sequence[tuple[Expr, Expr]], texts: Mapping[Expr, str]) -> str:
    """The text that says that the two terms of some pair differ."""
    unequal = [f"(not (= {texts[a]} {texts[b]}))" for a, b in pairs]
    return unequal[0] if len(unequal) == 1 else "(or\n" + "\n".join(unequal or ["false"]) + ")"


def term_lines(
    roots: Sequence[Expr],
    *,
    keep: frozenset[str] = frozenset(),
    lemmas: Sequence[Lemma] = (),
    comment: str = "",
) -> tuple[list[str], dict[Expr, str]]:
    """The beginning of a script, up to its assertions, and the text of each term in it.

    The function at the left of a lemma about all operands is *defined* by the lemma's right side; of the others, those
    named in ``keep`` and those without a body are declared without a meaning, and the rest are defined by their bodies.

    Raises CannotPrint where definitions depend on each other.
    """
    functions = _Functions(keep, lemmas)
    functions.use(roots)
    variables = {variable_text(v): v for v in variables_of(*roots)}
    lines = [f"; {line}" for line in comment.splitlines()]
    lines.append("(set-logic ALL)")
    lines += [f"(declare-fun {quote(n)} () {sort_name(v.sort)})" for n, v in sorted(variables.items())]
    lines += functions.lines
    shared = _shared(roots)
    texts: dict[Expr, str] = {}
    for node in postorder(roots):
        text = _node(node, [texts[a] for a in node.args])
        if node in shared:
            name = f"!shared{len(lines)}"
            lines.append(f"(define-fun {name} () {sort_name(node.sort)} {text})")
            text = name
        texts[node] = text
    return lines, texts


class _Functions:
    """Declarations and definitions of functions, each before its first use."""

    def __init__(self, keep: frozenset[str], lemmas: Sequence[Lemma]) -> None:
        self.keep = keep
        self.lemmas = {lemma.left.func: lemma for lemma in lemmas if lemma.defines}
        self.known: set[Function] = set()
        self.lines: list[str] = []
        self._open: set[Function] = set()

    def use(self, roots: Iterable[Expr]) -> None:
        for node in postorder(roots):
            if node.op == "apply":
                assert node.func is not None
                self._need(node.func)

    def _need(self, function: Function) -> None:
        if function in self._open:
            raise CannotPrint(f"the definition of {function.name} depends on itself")
        if function in self.known:
            return
        self.known.add(function)
        self._open.add(function)
        lemma = self.lemmas.get(function)
        if lemma is not None:
            self._define(function, lemma.left.args, lemma.right)
        elif function.name in self.keep or function.body is None:
            sorts = " ".join(sort_name(p.sort) for p in function.params)
            self.lines.append(f"(declare-fun {quote(function_text(function))} ({sorts}) {sort_name(function.result)})")
        else:
            self._define(function, function.params, function.body)
        self._open.discard(function)

    def _define(self, function: Function, parameters: Sequence[Expr], body: Expr) -> None:
        self.use([body])
        stray = sorted(v.name for v in set(variables_of(body)) - set(parameters))
        if stray:
            raise CannotPrint(f"the definition of {function.name} uses {', '.join(stray)}")
        bound = " ".join(f"({quote(variable_text(p))} {sort_name(p.sort)})" for p in parameters)
        result = sort_name(function.result)
        self.lines.append(f"(define-fun {quote(function_text(function))} ({bound}) {result} {_with_lets(body)})")


def _with_lets(root: Expr) -> str:
    """One term, in which every shared subterm is bound by a ``let`` of its own."""
    shared, texts, bindings = _shared([root]), dict[Expr, str](), list[str]()
    for node in postorder([root]):
        text = _node(node, [texts[a] for a in node.args])
        if node in shared and node is not root:
            bindings.append(f"(let ((!let{len(bindings)} {text})) ")
            text = f"!let{len(bindings) - 1}"
        texts[node] = text
    return "".join(bindings) + texts[root] + ")" * len(bindings)


def _shared(roots: Sequence[Expr]) -> set[Expr]:
    """Nodes with operands that are used more than once."""
    uses: Counter[Expr] = Counter(r for r in roots if r.args)
    for node in postorder(roots):
        uses.update(a for a in node.args if a.args)
    return {n for n, count in uses.items() if count > 1}


def _node(node: Expr, args: list[str]) -> str:
    special = _SPECIAL.get(node.op)
    if special is not None:
        return special(node, args)
    return f"({_NAMES.get(node.op, node.op)} {' '.join(args)})"


def _const(node: Expr, _: list[str]) -> str:
    if node.sort == BOOL:
        return "true" if node.value else "false"
    return f"#x{node.value:0{node.width // 4}x}" if node.width % 4 == 0 else f"#b{node.value:0{node.width}b}"


def _application(node: Expr, args: list[str]) -> str:
    assert node.func is not None
    name = quote(function_text(node.func))
    return f"({name} {' '.join(args)})" if args else name


def _extension(node: Expr, args: list[str]) -> str:
    name = "zero_extend" if node.op == "zext" else "sign_extend"
    return f"((_ {name} {node.width - node.args[0].width}) {args[0]})"


# Every operator that is not here has its SMT-LIB name.
_NAMES: Mapping[str, str] = {"eq": "=", "load": "select"}
_SPECIAL: Mapping[str, Callable[[Expr, list[str]], str]] = {
    "var": lambda node, _: quote(variable_text(node)),
    "const": _const,
    "apply": _application,
    "extract": lambda node, args: f"((_ extract {node.params[0]} {node.params[1]}) {args[0]})",
    "zext": _extension,
    "sext": _extension,
}
