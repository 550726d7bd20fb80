"""What summands are for those who guess which is which: the elements of input tensors that they read.

That they are the same is a comparison of their values, in which this has no part.
"""

from __future__ import annotations

from dataclasses import dataclass

from chc.mapping.memory.contexts import Context
from chc.mapping.memory.layout import Reader
from ila_lang import Expr, free_variables, ite, postorder, resize, substitute
from ila_lang.mapping import TensorMapping
from ir_semantics.elements.terms import Input, Term, function, read
from ir_semantics.scalars.formats import INTEGERS, Format

from .subscripts import Subscripts
from .summands import Summands


@dataclass
class Hints:
    """The input tensors of a mapping, by what they are on both sides."""

    tensors: dict[Expr, Input]
    subscripts: Subscripts

    @staticmethod
    def of(mapping: TensorMapping, subscripts: Subscripts) -> Hints:
        """Those of a mapping."""
        tensors: dict[Expr, Input] = {}
        for number, names in enumerate(mapping.inputs):
            tensor = Input(f"input{number}", INTEGERS, ())
            for side, of in zip((mapping.device, mapping.ir), names, strict=True):
                tensors[side.tensor(of)] = tensor
        return Hints(tensors, subscripts)

    def summand(self, summands: Summands, value: Expr) -> Term:
        """A summand by the elements that it reads, in the order of tensors."""
        reads: dict[tuple[str, Term], Term] = {}
        for variable in free_variables(value).values():
            source = summands.side.sources.get(variable)
            if source is not None and source.memory in self.tensors:
                tensor = self.tensors[source.memory]
                cell = source.reader.cell()
                decided = seems_decided(source.context, cell)
                reader = source.reader if decided is cell else Reader(decided, None, {})
                at = self.subscripts.term(source.context, reader.term(source.context))
                reads[tensor.name, at] = read(tensor, [at])
        ordered = [term for (name, _), term in sorted(reads.items(), key=lambda item: item[0][0])]
        return function("summand", Format("integer", (value.width, "unsigned", "wrap")), *ordered)


def seems_decided(context: Context, term: Expr) -> Expr:
    """A term with the arms that its choices by equality take at all samples of a context."""
    arms: dict[Expr, Expr] = {}
    for node in postorder([term]):
        if node.op == "ite" and node.args[0].op == "eq" and context.samples.determine(node.args[0]):
            outcomes = {bool(v) for (v,) in context.samples.evaluate([node.args[0]])}
            arms |= {node: node.args[1 if outcomes == {True} else 2]} if len(outcomes) == 1 else {}
    return substitute(term, arms)


def simpler_extent(context: Context, extent: Expr) -> Expr:
    """What an extent seems to be in a context: the arm that it takes, or the minimum that it has the lowest bits of."""
    condition = extent.args[0] if extent.op == "ite" else extent
    if condition.op in ("bvult", "bvule"):
        minimum = ite(condition, *condition.args)
        return minimum if resize(minimum, extent.width) is extent else extent
    return seems_decided(context, extent)


def choice_in(context: Context, summands: Summands, value: Expr) -> Expr | None:
    """A condition by which a summand, where it reads, or how often its loops run is chosen; None where none is."""
    sources = [summands.side.sources.get(v) for v in free_variables(value).values()]
    indices = [*(s.reader.cell() for s in sources if s is not None), *(e for _, e in summands.loops)]
    firsts = (n for n in postorder(indices) if n.op == "ite" and n.args[0].op == "eq")
    choices = [n.args[0] for n in (*(n for n in postorder([value]) if n.op == "ite"), *firsts)]
    ours = (c for c in choices if context.samples.determine(c))  # over sizes, coordinates and counters
    return next((c for c in ours if len({v for (v,) in context.samples.evaluate([c])}) > 1), None)
