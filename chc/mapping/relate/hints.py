"""What summands are for those who guess which is which: the elements of input tensors that they read.

That they are the same is a comparison of their values, in which this has no part.
"""

from __future__ import annotations

from dataclasses import dataclass

from chc.mapping.memory.contexts import Context
from ila_lang import Expr, free_variables, postorder
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
                at = self.subscripts.term(source.context, source.reader.term(source.context))
                reads[tensor.name, at] = read(tensor, [at])
        ordered = [term for (name, _), term in sorted(reads.items(), key=lambda item: item[0][0])]
        return function("summand", Format("integer", (value.width, "unsigned", "wrap")), *ordered)


def choice_in(context: Context, value: Expr) -> Expr | None:
    """A condition over sizes, coordinates and counters by which a summand is chosen; None where there is none."""
    choices = (n.args[0] for n in postorder([value]) if n.op == "ite")
    ours = (c for c in choices if context.samples.determine(c))
    return next((c for c in ours if len({v for (v,) in context.samples.evaluate([c])}) > 1), None)
