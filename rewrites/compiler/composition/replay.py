"""Replays the steps by which the bound of a network in ranges was found, with numbers of its own, all rounded upward.

A step names a law and earlier steps, and says how large an error is at most.  What it is about is a *place*: a node
(4,), an operand as an accelerator gets it (4, "x"), or a node of what a composite operator stands for (4, 2).  The
graph says which places an operator's operands are, so that a step which is left out, exchanged or forged is refused.
The laws are claims; :data:`.steps.PROOFS` says which ones a step rests on.

Beside a bound of each element, of a value's distance from the reference, stands a *form* of all of them: a sum of
matrices times atoms, vectors with bounds of each element and of the length, and a rest with bounds of elements.
A matrix is exact by definition: what float64 rounds in a product of matrices goes to the rest.  Sums of n products are
off by at most (n + 4) 2^-53 times the sum of their magnitudes, and by what is below float64's normal numbers.

Trusted with this module: the operators' meaning in float64 (:func:`ir_semantics.graph.build.run_node`), and that
NumPy and BLAS round every operation, in whatever order sums are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ir_semantics.graph import Graph, Node, TensorType
from ir_semantics.graph.build import run_node
from ir_semantics.graph.types import Array

from .steps import EXTREMA, LAW_OF, NEGLIGIBLE, Device, Place, Places, Rejected, Step, roundings_of, terms_of
from .upward import LOST, UNIT, Reals, length_of, row_lengths, spectral_norm, up

_FLOAT32, _LEAST32 = 2.0**-23, 2.0**-149
"""Twice the relative error of float32's operations, and of what they lose below the normal numbers."""
_LARGEST32 = float(np.finfo(np.float32).max)
_MOST_ROUNDINGS = 1 << 22
"""Of 'one more rounding': so many of them are at most twice as large as one, times their number."""
MOST_ELEMENTS = 1024
"""Elements of a value that has a form."""
_MOST_ENTRIES = 1 << 24
"""Entries of the matrix of an operator that is applied to a form, and of those of a form."""
_SMALL = 2.0**-12
"""The length of a part that is so much shorter than the others is bounded in the way that costs little."""


@dataclass(frozen=True, eq=False)
class _Form:
    """Matrices [elements, elements of the atom] by number of the atom, and bounds of the rest."""

    parts: Mapping[int, Reals]
    rest: Reals


@dataclass(frozen=True, eq=False)
class _Judgement:
    """Bounds of the distance from the reference, and of the magnitude (infinite ones of inputs); both have its shape.

    Of a constant the reference is known, and by how much the accelerator's is more (``change``, up to ``slip``).
    Elements may be copies of ``origin``, whose magnitudes these are: at position ``copies``, or zeros at -1.
    """

    place: Place
    error: Reals
    most: Reals
    form: _Form | None = None
    constant: Array | None = None
    change: Reals | None = None
    slip: Reals | None = None
    copies: NDArray[np.int64] | None = None
    origin: Reals | None = None


@dataclass(eq=False)
class Replay:
    """Takes the steps of a network in turn; raises Rejected where one does not follow.

    ``own`` are the bounds of accelerators' nodes on what they get, and ``ranges`` the largest magnitudes of operands.
    """

    graph: Graph
    devices: Mapping[int, Device]
    own: Mapping[int, float]
    ranges: Mapping[int, Mapping[str, float]]
    outputs: dict[str, float] = field(default_factory=dict)
    _places: Places = field(init=False)
    _held: dict[int, _Judgement] = field(default_factory=dict)
    _atoms: list[tuple[Reals, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._places = Places(self.graph, self.devices)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def take(self, steps: Sequence[Step]) -> dict[str, float]:
        """The bounds of outputs that the steps state; what no later step is of is forgotten."""
        last = {i: number for number, step in enumerate(steps) for i in step.of}
        for number, step in enumerate(steps):
            missing = [i for i in step.of if i not in self._held]
            if missing:
                raise Rejected(f"step {number} is of step {missing[0]}, which is no earlier one")
            found = self._found(number, step, [self._held[i] for i in step.of])
            if not np.isfinite(found.error).all():
                raise Rejected(f"step {number} has elements of which no finite error is known")
            reached = float(found.error.max(initial=0.0))
            if not reached <= step.most:
                raise Rejected(f"the error of step {number} may be {reached!r}, and {step.most!r} is stated")
            for i in {*step.of, number}:
                if i in self._held and last.get(i, -1) <= number:
                    del self._held[i]
            if number in last:
                self._held[number] = found
            if step.law == "output":
                self.outputs[str(step.place[-1])] = step.most
        missing_outputs = {n for n, i in self.graph.outputs.items() if self.graph.nodes[i].type.kind == "float"}
        if missing_outputs - self.outputs.keys():
            raise Rejected(f"no step is about the output {min(missing_outputs - self.outputs.keys())}")
        return self.outputs

    # -- what a step is about ------------------------------------------------------------------------------------

    def _found(self, number: int, step: Step, of: list[_Judgement]) -> _Judgement:
        if not step.place:
            raise Rejected(f"step {number}, {step.law}, must be about a place")
        places = [j.place for j in of]

        def require(holds: bool, what: str) -> None:
            if not holds:
                raise Rejected(f"step {number}, {step.law} at {step.place}, must {what}")

        if step.law == "output":
            output = self.graph.outputs.get(str(step.place[-1]), -1)
            require(places == [self._places.resolved((output,))], "be of the output's node")
            return self._settled(of[0], step.place)
        if step.law == "form":
            require(places == [step.place], "be of one step about the same")
            return self._settled(of[0], step.place)
        if step.law in ("operand", "own"):
            owner = step.place[0]
            if not isinstance(owner, int) or owner not in self.devices:
                raise Rejected(f"step {number}, {step.law} at {step.place}, must be about an accelerator")
            device = self.devices[owner]
            if step.law == "operand":
                name = str(step.place[-1])
                require(step.place == (owner, name) and name in device.operands, "be about an operand")
                source = self.graph.nodes[owner].operands[device.operands.index(name)]
                require(places == [self._places.resolved((source,))], "be of the operand's node")
                return self._operand(step, of[0], device, self.ranges[owner].get(name, math.inf))
            inside = (owner, self._places.inside((owner,)).outputs["y"])
            require(
                step.place == (owner,) and places == [self._places.resolved(inside)],
                "be of what the operator stands for",
            )
            require(step.given is not None and step.given == self.own.get(owner), "state the bound of its accelerator")
            return replace(self._off(of[0], np.full(of[0].error.shape, self.own[owner])), place=step.place)
        graph, at = self._places.graph_of(step.place)
        node = graph.nodes[at]
        if step.law == "input":
            require(len(step.place) == 1 and node.operator == "input", "be about an input")
            return _Judgement(
                step.place,
                np.zeros(node.type.shape),
                np.full(node.type.shape, np.inf),
                _Form({}, np.zeros(node.type.elements)),
            )
        if step.law == "constant":
            if node.operator == "constant":
                return _constant(step.place, graph.constant(at))
            require(all(j.constant is not None and j.change is None for j in of), "be of constants")
            require(node.type.kind != "float", "be of no real numbers")
        else:
            require(LAW_OF.get(node.operator) == step.law and node.type.kind == "float", "be the law of its operator")
            require(len(step.place) > 1 or at not in self.devices, "be about an operator of the host")
        require(places == [self._places.resolved((*step.place[:-1], i)) for i in node.operands], "be of the operands")
        if step.law == "constant":
            return _constant(step.place, run_node(node, [j.constant for j in of if j.constant is not None]))
        types = [graph.nodes[i].type for i in node.operands]
        made = self._applied(_Applied(node, types, of), step.place)
        require(made.error.shape == node.type.shape, "be of operands whose shapes fit")
        return made if step.place[0] in self.devices else self._rounded(made, node, types)

    # -- accelerators, and the host's roundings ------------------------------------------------------------------

    def _operand(self, step: Step, of: _Judgement, device: Device, limit: float) -> _Judgement:
        """As an accelerator gets it: rounded, within its range; equal numbers are rounded equally, 0 to 0."""
        name = str(step.place[-1])
        if of.constant is not None:
            rounded = device.constant_of(name)
            change = np.asarray(rounded - of.constant, np.float64)
            slip = UNIT * np.abs(change) * 2
            error = np.abs(change) + slip
            changed = None if not change.any() else change
            form = _Form({}, np.zeros(error.size)) if changed is None else self._fresh(error)
            return _Judgement(step.place, error, np.abs(rounded), form, of.constant, changed, slip)
        if step.given is None or step.given != device.rounding(name, limit):
            raise Rejected(f"the operand {name} at {step.place} must be rounded by what its accelerator states")
        by = step.given

        def within(most: Reals) -> Reals:
            return np.minimum(up(most + by, 1), limit)

        most = within(of.most)
        origin = None if of.origin is None else within(of.origin)
        moved = self._off(of, np.full(of.error.shape, by), _selected(of, by))
        return replace(moved, place=step.place, most=most, copies=of.copies, origin=origin)

    def _off(self, of: _Judgement, by: Reals, form: Callable[[Replay], _Form | None] | None = None) -> _Judgement:
        """Off by so much more in each element."""
        extra = self._fresh(by) if form is None else form(self)
        joined = None if of.form is None or extra is None else self._joined(of.form, extra)
        return replace(_plain(of), error=up(of.error + by, 1), most=up(of.most + by, 1), form=joined)

    def _rounded(self, made: _Judgement, node: Node, types: Sequence[TensorType]) -> _Judgement:
        """Each number that the host computes is rounded to float32."""
        times = roundings_of(node, types)
        if not times:
            return made
        if node.type.dtype not in ("float32", "float64") or not np.isfinite(made.most).all():
            raise Rejected(f"nothing is known of what the host rounds at {made.place}")
        if times > _MOST_ROUNDINGS or not (made.most * (2 * times + 2) <= _LARGEST32).all():
            raise Rejected(f"float32 may be left at {made.place}")
        return self._off(made, up(times * (_FLOAT32 * made.most + _LEAST32), 3))

    # -- operators -----------------------------------------------------------------------------------------------

    def _applied(self, of: _Applied, place: Place) -> _Judgement:
        law, name = LAW_OF[of.node.operator], of.node.operator
        if law == "move":
            return self._moved(of, place)
        if law == "factor":
            return self._product(of, place)
        errors, mosts = [j.error for j in of.operands], of.mosts
        if law in ("choice", "slope"):
            if name in ("sigmoid", "tanh"):
                slope, apart = (0.25, 1.0) if name == "sigmoid" else (1.0, 2.0)
                error = np.minimum(errors[0] * slope, apart)
                return _Judgement(place, error, np.ones(error.shape), self._sloped(of.operands[0], slope))
            if name in EXTREMA:
                large = replace(of, node=replace(of.node, operator="reduce_max" if name == "reduce_min" else name))
                return _Judgement(place, large.run(errors), large.run(mosts))
            form = self._sloped(of.operands[0], 1.0) if name == "relu" else None
            most = np.maximum.reduce(mosts)
            return _Judgement(place, np.maximum.reduce(errors), most, form)
        terms = terms_of(of.node, of.types)
        if law == "sum":
            error, most = np.add(*errors), up(np.add(*mosts), 1)
            made = _Judgement(place, up(error, 1), most)
            forms = [self._form_of(j, of.node) for j in of.operands]
            if forms[0] is None or forms[1] is None or len({j.error.shape for j in of.operands}) > 1:
                return made
            sign = 1.0 if name == "add" else -1.0
            second = _Form({a: m * sign for a, m in forms[1].parts.items()}, forms[1].rest)
            return replace(made, form=self._joined(forms[0], second))
        made = _Judgement(place, up(of.run(errors), terms), up(of.run(mosts), terms))
        form = self._form_to_map(of.operands[0], of.node)
        if form is None or name in ("cumsum", "avg_pool") or not terms:
            return made
        return replace(made, form=self._mapped(form, of.matrix(0, [None]), 1))

    def _moved(self, of: _Applied, place: Place) -> _Judgement:
        at = [None if t.kind == "float" else j.constant for t, j in zip(of.types, of.operands, strict=True)]
        if any(a is None and t.kind != "float" for a, t in zip(at, of.types, strict=True)):
            raise Rejected(f"indices at {place} are no constants")
        error = of.run([j.error if a is None else a for a, j in zip(at, of.operands, strict=True)])
        mosts = of.mosts
        most = of.run([m if a is None else a for a, m in zip(at, mosts, strict=True)])
        if all(j.constant is not None for j in of.operands):
            kept = [j.constant for j in of.operands if j.constant is not None]

            def each(read: Callable[[_Judgement], Reals | None]) -> Reals:
                parts = [read(j) for j in of.operands]
                filled = [np.zeros(j.error.shape) if p is None else p for j, p in zip(of.operands, parts, strict=True)]
                return of.run([p if a is None else a for a, p in zip(at, filled, strict=True)])

            change = each(lambda j: j.change) if any(j.change is not None for j in of.operands) else None
            whole = None if change is not None else _Form({}, np.zeros(error.size))
            slip = each(lambda j: j.slip)
            return _Judgement(place, error, most, whole, of.run(kept), change, slip)
        total: _Form | None = _Form({}, np.zeros(error.size))
        sources = [of.sources(k, at) for k, a in enumerate(at) if a is None]
        moving = [j for a, j in zip(at, of.operands, strict=True) if a is None]
        for j, positions in zip(moving, sources, strict=True):
            form = self._form_of(j, of.node)
            picked = None if form is None else _Form({a: _picked(m, positions) for a, m in form.parts.items()},
                                                     _picked(form.rest, positions))  # fmt: skip
            total = None if total is None or picked is None else self._joined(total, picked)
        made = _Judgement(place, error, most, total)
        first, others = moving[0], moving[1:]
        zeros = all(j.constant is not None and not j.constant.any() and j.change is None for j in others)
        if not zeros or not np.isfinite(first.most).all() or of.node.operator == "concat":
            return made
        copied = np.arange(first.error.size) if first.copies is None else first.copies
        copies = np.where(sources[0] < 0, -1, np.append(copied, -1)[sources[0]])
        return replace(made, copies=copies, origin=first.most if first.origin is None else first.origin)

    def _product(self, of: _Applied, place: Place) -> _Judgement:
        """a b - r s = (a - r) s + a (b - s), where b and s are a constant's, if there is one."""
        places = [k for k, j in enumerate(of.operands) if j.constant is not None]
        fixed, terms = places[-1] if places else 1, terms_of(of.node, of.types)
        other, own = of.operands[1 - fixed], of.operands[fixed]

        def run(x: Reals, y: Reals) -> Reals:
            return up(of.run([y, x] if fixed == 0 else [x, y]), terms)

        known = bool(np.isfinite(own.most).all() and np.isfinite(other.most).all())
        if own.constant is None:
            if not known:
                raise Rejected(f"numbers of which no range is known are multiplied at {place}")
            error = run(other.error, up(own.most + own.error, 1)) + run(other.most, own.error)
            return _Judgement(place, up(error, 1), run(other.most, own.most))
        error = run(other.error, np.abs(own.constant))
        most = run(other.most, own.most) if known else np.full(error.shape, np.inf)
        if own.change is not None:
            if not known:
                raise Rejected(f"numbers of which no range is known are multiplied at {place}")
            error = up(error + run(other.most, own.error), 1)
        form = self._form_to_map(other, of.node)
        if form is None:
            return _Judgement(place, error, most)
        around: list[Reals | None] = [None, None]
        around[fixed] = own.constant
        form = self._mapped(form, of.matrix(1 - fixed, around), 0)
        if own.change is not None:
            around[fixed] = own.change
            value = _selected(other, 0.0, other.most if other.origin is None else other.origin)(self)
            if value is None:
                return _Judgement(place, error, most)
            assert own.slip is not None
            more = self._mapped(value, of.matrix(1 - fixed, around), 0)
            rest = up(more.rest + run(other.most, own.slip).reshape(-1), 1)
            form = self._joined(form, _Form(more.parts, rest))
        return _Judgement(place, error, most, form)

    # -- forms ---------------------------------------------------------------------------------------------------

    def _atom(self, elements: Reals, length: float) -> int:
        self._atoms.append((elements, min(length, length_of(elements))))
        return len(self._atoms) - 1

    def _fresh(self, bounds: Reals) -> _Form | None:
        """Of a vector of which nothing but bounds is known."""
        flat = bounds.reshape(-1)
        if flat.size > MOST_ELEMENTS:
            return None
        zeros = np.zeros(flat.size)
        return _Form({self._atom(flat, math.inf): np.eye(flat.size)} if flat.any() else {}, zeros)

    def _form_of(self, of: _Judgement, node: Node) -> _Form | None:
        """The form of an operand; None where that of the result would be too large."""
        if node.type.elements * MOST_ELEMENTS > _MOST_ENTRIES:
            return None
        return self._fresh(of.error) if of.form is None else of.form

    def _form_to_map(self, of: _Judgement, node: Node) -> _Form | None:
        """The same; None also where the matrix from the operand to the result would be too large."""
        return None if node.type.elements * of.error.size > _MOST_ENTRIES else self._form_of(of, node)

    def _joined(self, first: _Form, second: _Form) -> _Form:
        """The sum of two vectors; what float64 rounds where both have an atom goes to the rest."""
        parts, rest = dict(first.parts), first.rest + second.rest
        for a, m in second.parts.items():
            if a in parts:
                m = parts[a] + m
                elements = self._atoms[a][0]
                rest = rest + UNIT * up(np.abs(m) @ elements, elements.size)
            parts[a] = m
        return _Form(parts, up(rest, len(parts) + 1))

    def _mapped(self, form: _Form, matrix: Reals, inexact: int) -> _Form:
        """A matrix, whose entries are off by so many roundings, times a form."""
        size, columns = np.abs(matrix), matrix.shape[1]
        parts = {a: matrix @ m for a, m in form.parts.items()}
        reached = sum((np.abs(m) @ self._atoms[a][0] for a, m in form.parts.items()), np.zeros(columns))
        lost = (columns + 1) * LOST * (1 + sum(float(self._atoms[a][0].sum()) for a in parts))
        off = (columns + 4 + inexact) * UNIT * (size @ up(reached, columns + MOST_ELEMENTS)) + lost
        return _Form(parts, up(size @ form.rest + off, columns + 4))

    def _parts(self, form: _Form) -> dict[int, Reals]:
        """Bounds of the elements of each part: by elements, and by Cauchy and Schwarz."""
        found = {}
        for a, m in form.parts.items():
            elements, length = self._atoms[a]
            by_elements = up(np.abs(m) @ elements, elements.size)
            found[a] = np.minimum(by_elements, up(row_lengths(m) * length, 2))
        return found

    def _elements(self, of: _Judgement, parts: Mapping[int, Reals]) -> Reals:
        """Bounds of a value's elements; ``parts`` are those of its form."""
        if of.form is None:
            return of.error
        total = up(sum(parts.values(), of.form.rest), len(parts))
        return np.minimum(of.error, total.reshape(of.error.shape))

    def _settled(self, of: _Judgement, place: Place) -> _Judgement:
        """The smaller one of both bounds of each element."""
        parts = {} if of.form is None else self._parts(of.form)
        return replace(of, place=place, error=self._elements(of, parts))

    def _sloped(self, of: _Judgement, slope: float) -> _Form | None:
        """Half of what a slope makes of a vector, and an atom of at most that."""
        if of.form is None:
            return None
        parts, half = self._parts(of.form), slope / 2
        lengths = {a: length_of(most) for a, most in parts.items()}
        elements = self._elements(of, parts).reshape(-1)
        length = min(length_of(elements), self._length_of(of.form, parts, lengths))
        limit = max(lengths.values(), default=0.0) * NEGLIGIBLE
        small = [a for a, part in lengths.items() if part <= limit]
        left = up(sum((parts[a] for a in small), np.zeros(elements.size)), len(small))
        atom = self._atom(up((elements + left) * half, 2), up((length + length_of(left)) * half, 2))
        kept = {a: m * half for a, m in of.form.parts.items() if a not in small}
        lost = LOST * (1 + sum(float(self._atoms[a][0].sum()) for a in kept))
        return _Form({**kept, atom: np.eye(elements.size)}, of.form.rest * half + lost)

    def _length_of(self, form: _Form, parts: Mapping[int, Reals], lengths: Mapping[int, float]) -> float:
        total = length_of(form.rest)
        for a in sorted(parts, key=lambda a: -lengths[a]):
            most = lengths[a]
            if most > total * _SMALL:
                most = min(most, up(spectral_norm(form.parts[a]) * self._atoms[a][1], 2))
            total = up(total + most, 1)
        return total


@dataclass(frozen=True, eq=False)
class _Applied:
    """An operator on judgements."""

    node: Node
    types: Sequence[TensorType]
    operands: Sequence[_Judgement]

    @property
    def mosts(self) -> list[Reals]:
        """The magnitudes of the operands."""
        return [j.most for j in self.operands]

    def run(self, arrays: Sequence[Array]) -> Reals:
        """The operator on float64 in the place of floats."""
        wide = replace(self.node, type=self.node.type.with_dtype("float64"))
        result: Reals = np.asarray(run_node(wide, list(arrays)), np.float64)
        return result

    def matrix(self, place: int, others: Sequence[Reals | None]) -> Reals:
        """The linear operator of one operand, the others being given: its results on all unit vectors."""
        shape = self.types[place].shape
        columns = np.zeros((self.node.type.elements, math.prod(shape)))
        for k in range(columns.shape[1]):
            unit = np.zeros(columns.shape[1])
            unit[k] = 1.0
            arrays = [unit.reshape(shape) if i == place else a for i, a in enumerate(others)]
            columns[:, k] = self.run([a for a in arrays if a is not None]).reshape(-1)
        return columns

    def sources(self, place: int, at: Sequence[Array | None]) -> NDArray[np.int64]:
        """For each result the position of the operand's element that is moved there; -1 for none."""
        arrays = [
            np.zeros(t.shape) if k != place else np.arange(1.0, t.elements + 1).reshape(t.shape)
            for k, t in enumerate(self.types)
        ]
        moved = self.run([x if a is None else a for a, x in zip(at, arrays, strict=True)])
        return moved.astype(np.int64).reshape(-1) - 1


def _constant(place: Place, value: Array) -> _Judgement:
    wide = value.astype(np.float64) if value.dtype.kind == "f" else value
    zeros = np.zeros(wide.shape)
    most = np.abs(wide).astype(np.float64) if value.dtype.kind == "f" else zeros
    return _Judgement(place, zeros, most, _Form({}, zeros.reshape(-1)), wide, None, zeros)


def _plain(of: _Judgement) -> _Judgement:
    """Bounds alone: no constant, no copies."""
    return _Judgement(of.place, of.error, of.most, of.form)


def _selected(of: _Judgement, by: float, bounds: Reals | None = None) -> Callable[[Replay], _Form | None]:
    """A vector whose elements are copied as the value's: of at most ``by``, or within ``bounds`` of the origin."""

    def form(replay: Replay) -> _Form | None:
        shape = of.error.shape if of.origin is None else of.origin.shape
        made = replay._fresh(np.full(shape, by) if bounds is None else bounds)
        if made is None or of.copies is None:
            return made
        if of.error.size * MOST_ELEMENTS > _MOST_ENTRIES:
            return None
        return _Form({a: _picked(m, of.copies) for a, m in made.parts.items()}, _picked(made.rest, of.copies))

    return form


def _picked(of: Reals, positions: NDArray[np.int64]) -> Reals:
    """Rows at positions, zeros at -1."""
    return np.concatenate([of, np.zeros_like(of[:1] if len(of) else np.zeros((1, *of.shape[1:])))])[positions]
