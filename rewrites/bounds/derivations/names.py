"""What the writer of derivations is given beside a kernel, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ila_lang import Expr, Function, Kernel
from ila_lang.mapping import Lemma
from rewrites.bounds.kernel.judgements import Step


class Unread(ValueError):
    """Something in a kernel that no law is about; the message says what."""


@dataclass(frozen=True)
class Leaf:
    """The words that a register is loaded with: name, form, and symbols of their largest magnitude, bias and error.

    ``total`` is the range of a sum (or difference) of such a word and something else, where it has a name.
    """

    name: str
    form: str
    magnitude: str
    bias: str = ""
    error: str = "0"
    total: str = ""


@dataclass(frozen=True)
class Names:
    """What things in a kernel are called in a theorem.

    ``leaves`` are by the register that is loaded, or by the operand of the instruction.  ``loops`` have the index and
    the number of its values for the counter of a loop, of a nest that of the outermost one; for a counter with two
    digits these are two indices, and the number of the second one's values.  Other loops are those of the result's
    elements, which are alike.  ``biases`` are the names of operands that are biases, and ``given`` values of operands.

    ``ranges`` are named by the register that is summed or set, by the memory that a result is stored to (before it is
    converted), by the law of whose result it is a factor, or by the function that gives it ("sigmoid", "complement");
    ``norms`` are largest sums of magnitudes of weights by the register of the sum.  ``bounds`` are the further names
    that a law takes.  ``omitted`` are the name and the magnitude of what the device leaves out of the operand of a law.
    """

    leaves: Mapping[str, Leaf]
    loops: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    biases: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, str] = field(default_factory=dict)
    norms: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    omitted: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """Where a kernel has what its derivation speaks of, in terms of sizes, operands, and counters of loops.

    ``leaves`` have a memory and an address, or an operand; ``words`` what stands for a leaf's number, and the variable
    in it that is loaded; ``guards`` say where a leaf is read: elsewhere it is the word at the memory and address of
    ``others``, or 0.  ``indices`` have counters and extents of their loops.  ``axes`` are the loops of the result's
    elements besides those of indices, and ``result`` is its memory and address.  ``given`` are values of operands, and
    ``biases`` operands by name.
    """

    leaves: Mapping[str, tuple[Expr, ...]]
    words: Mapping[str, tuple[Expr, Expr]]
    guards: Mapping[str, Expr]
    others: Mapping[str, tuple[Expr, ...]]
    indices: Mapping[str, tuple[tuple[Expr, Expr], ...]]
    axes: tuple[tuple[Expr, Expr], ...]
    result: tuple[Expr, Expr]
    given: Mapping[Expr, Expr]
    biases: Mapping[str, Expr]


@dataclass(frozen=True)
class Source:
    """What a derivation was written from, beside the kernel: see :func:`.writer.derivation_of`."""

    operands: Mapping[Expr, Expr]
    result: str
    names: Names
    lemmas: tuple[Lemma, ...]
    growth: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """A derivation, the kernel that it was written from, and the primitives in it, which lemmas must be about.

    ``lemmas`` are the mapping's that it rests on, and ``assumptions`` what it takes words and operands for.  Whoever
    relies on it writes it again from ``kernel`` and ``source``.
    """

    steps: tuple[Step, ...]
    kernel: Kernel | None = None
    functions: tuple[Function, ...] = ()
    lemmas: tuple[Lemma, ...] = ()
    assumptions: tuple[str, ...] = ()
    layout: Layout | None = None
    source: Source | None = None

    def differs(self, other: Written) -> str:
        """Which part of another derivation is another one; empty where none is."""
        parts = ("steps", "functions", "lemmas", "assumptions")
        return next((part for part in parts if getattr(self, part) != getattr(other, part)), "")
