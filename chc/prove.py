"""The CHC method: a mapping proved for every size of its domain, without unrolling and without given invariants.

The theorem is about one arbitrary output cell (``row``, ``column``): after both programs ran, the cells are equal.
Its parts, each an obligation that z3 and cvc5 answer (:mod:`chc.trace` and :mod:`chc.levels` say why they suffice):

1. the precondition is satisfiable;
2. index arithmetic stays within its bit widths;
3. every demanded cell is written by its witness iteration, and by no other; source cells are overwritten later only;
4. per loop level, the invariants that Spacer inferred hold at the start, are kept, and exclude the bad states;
5. both sides read the same cells of the same input tensor;
6. the values are equal for every choice of the data functions that satisfies the lemmas.  The lemmas are proved for
   the functions' closed forms, bit by bit, so the closed forms are such a choice and the claim is bit-exact.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pysmt.shortcuts as smt
from pysmt.exceptions import PysmtException

from ila_lang import Expr, bv, const, free_variables, substitute, true, var
from ila_lang.mapping import TensorMapping
from smt_encodings.bits import BitEncoding
from smt_encodings.claims import Claim, Equality, Interpretation, Status, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols
from smt_encodings.integers import NotLinearizable
from smt_encodings.naming import ambiguous_name
from smt_encodings.printer import term_text
from smt_encodings.values import differ, falsifying, lemma_instances, prove_lemmas

from .align import AlignedLevel, align
from .cells import address_theorems
from .context import Proof, Side
from .flow import prove_by_origins
from .invariants import Inferred, infer, parse_term, show_invariant
from .nests import Nest, Unsupported, nests_of
from .systems import LevelPlan, plan_levels
from .trace import Clobber, Demand, Samples, SourceCell, Tracer, sample_sizes
from .writes import Loops

__all__ = ["COLUMN", "ROW", "claim_of", "prove"]

ROW, COLUMN = var("row", bv(32)), var("column", bv(32))
"""The distinguished output cell."""


def claim_of(mapping: TensorMapping) -> Claim:
    """What a PROVED of this method says."""
    return Claim(
        subject=mapping.name,
        statement=mapping.statement,
        size_domain=mapping.size_domain,
        equality=Equality.BIT_EXACT,
        interpretations=(Interpretation.UNINTERPRETED, Interpretation.BITS),
        assumptions=mapping.assumptions,
    )


def prove(
    mapping: TensorMapping,
    *,
    discharger: Discharger | None = None,
    horn_timeout: float = 10.0,
    invariants: Mapping[str, Sequence[str]] | None = None,
) -> Verdict:
    """Proves a mapping for every size of its domain.

    The answer is PROVED, VACUOUS or UNKNOWN; this method does not search for counterexamples.  With ``invariants``
    (SMT-LIB conjuncts by level) Spacer is not asked; what is given is checked like what is inferred.
    """
    with fresh_symbols():
        return _prove(Proof(mapping, discharger or Discharger(), horn_timeout, invariants))


def _prove(proof: Proof) -> Verdict:
    start = time.perf_counter()
    status, reason = Status.VACUOUS, "no size satisfies the precondition"
    try:
        if _precondition(proof):
            _run(proof)
            status, reason = proof.discharger.conclude()
    except NotDischarged as error:
        status, reason = Status.UNKNOWN, str(error)
    except (Unsupported, NotLinearizable) as error:
        status, reason = Status.UNKNOWN, str(error)
    except (PysmtException, ValueError) as error:
        status, reason = Status.ERROR, str(error)
    finally:
        proof.discharger.abandon()
    return Verdict(
        status,
        claim_of(proof.mapping),
        "chc",
        time.perf_counter() - start,
        reason,
        proof.discharger.obligations,
        proof.invariants,
        {"levels": proof.levels},
    )


def _precondition(proof: Proof) -> bool:
    encoding = proof.base
    for _, condition in proof.mapping.domain:
        encoding.assume(condition)
    for coordinate, extent in cell_of(proof.mapping):
        encoding.assume(extent > coordinate)
    meaning = "some size satisfies the precondition and has an output cell"
    try:
        proof.discharger.ask("health", "precondition satisfiable", encoding.hypotheses, meaning, expected="sat")
    except NotDischarged as error:
        if any(a.status == "unsat" for a in error.obligation.answers):
            return False
        raise
    return True


def cell_of(mapping: TensorMapping) -> Loops:
    """The coordinates of the distinguished output cell, with their extents."""
    return mapping.cell or ((ROW, mapping.rows), (COLUMN, mapping.columns))


def _run(proof: Proof) -> None:
    mapping = proof.mapping
    ambiguous = ambiguous_name(mapping)
    if ambiguous is not None:
        raise Unsupported(ambiguous)
    if mapping.device.ila.name == "ir":
        raise Unsupported("the model of the device must not be called ir: that is what the proof calls the other side")
    prove_lemmas(proof.discharger, mapping.lemmas, background=True)
    if mapping.cell:
        for key, nest, plan, relational in prove_by_origins(proof):
            _level(proof, nest, plan, relational, key)
        return
    samples = sample_sizes(mapping, ROW, COLUMN)
    if not samples.rows:
        raise Unsupported("no sample shape lies in the size domain")
    device_nests, ir_nests = nests_of(mapping.device), nests_of(mapping.ir)
    _names_apart(mapping, [*device_nests, *ir_nests])
    pool = _pool([*device_nests, *ir_nests])
    output, ir_output = mapping.device.tensor(mapping.output[0]), mapping.ir.tensor(mapping.output[1])
    index = mapping.output_index(ROW, COLUMN)
    sides = []
    for prefix, fragment, nests, memory in (
        (mapping.device.ila.name, mapping.device, device_nests, output),
        ("ir", mapping.ir, ir_nests, ir_output),
    ):
        trace = Tracer(prefix, nests, samples, pool).run(memory, index)
        sides.append(Side(prefix, fragment, nests, trace))
    device, ir = sides
    for side in sides:
        address_theorems(proof, side)
    _level_theorems(proof, device, ir)
    pairs = _source_theorems(proof, samples, device, ir)
    _value_theorems(proof, device, ir, pairs)


def _names_apart(mapping: TensorMapping, nests: Sequence[Nest]) -> None:
    """Refuses programs in which one name stands for two things: a term could then speak of the wrong one."""
    common = {*mapping.parameters, ROW.name, COLUMN.name}
    if len(common) < len(mapping.parameters) + 2:
        raise Unsupported(f"{ROW.name} and {COLUMN.name} name the output cell; a parameter must have another name")
    dotted = next((n for n in sorted(common) if "." in n), None)
    if dotted is not None:
        raise Unsupported(f"{dotted} must have a name without dots: those are the proof's own")
    for nest in nests:
        names = [c.name for c in nest.counters]
        # names with dots are the proof's own
        clash = next((n for i, n in enumerate(names) if n in common or n in names[:i] or "." in n), None)
        if clash is not None:
            raise Unsupported(f"counter {clash} of {nest.label} must have a name of its own")


def _pool(nests: Sequence[Nest]) -> list[Expr]:
    """Terms over the distinguished cell that witnesses are tried from: coordinates, and their digits."""
    pool = [ROW, COLUMN]
    radices = {e.value for nest in nests for _, e in nest.loops if e.is_const and e.value > 1}
    for k in sorted(radices):
        for coordinate in (COLUMN, ROW):
            pool += [coordinate // const(k, 32), coordinate % const(k, 32)]
    # windows and strides of 2 are so common that their rows need not stand in an address to be tried
    return [*pool, const(0, 32), ROW * 2, ROW * 2 + 1]


# -- loop levels ------------------------------------------------------------------------------------


def _level_theorems(proof: Proof, device: Side, ir: Side) -> None:
    """Invariants of every level of every nest that writes a demanded cell, in lock-step where loops correspond."""
    aligned = _alignment(proof, device, ir)
    for index in sorted({d.nest for d in device.trace.demands}):
        demands = [d for d in device.trace.demands if d.nest == index]
        clobbers = [c for c in device.trace.clobbers if c.nest == index]
        partner = None
        if aligned is not None and aligned[0] == index:
            partner = (aligned[2], [d for d in ir.trace.demands if d.nest == aligned[1]])
        nest = device.nests[index]
        prefix = device.prefix if partner or clobbers else "host"
        for part, some, hazards in _shares(nest, demands, clobbers):
            for plan in plan_levels(part, prefix, some, hazards, proof.names, partner):
                _level(proof, part, plan, partner is not None)
    for index in sorted({d.nest for d in ir.trace.demands}):
        if aligned is not None and aligned[1] == index:
            continue
        demands = [d for d in ir.trace.demands if d.nest == index]
        clobbers = [c for c in ir.trace.clobbers if c.nest == index]
        for part, some, hazards in _shares(ir.nests[index], demands, clobbers):
            for plan in plan_levels(part, "ir", some, hazards, proof.names):
                _level(proof, part, plan, False)


SHARE = 2
"""How many cells one Horn system tracks: with 8 of them Spacer takes 40 times as long."""


def _shares(
    nest: Nest, demands: Sequence[Demand], clobbers: Sequence[Clobber]
) -> Iterator[tuple[Nest, Sequence[Demand], Sequence[Clobber]]]:
    """The demanded cells of a nest in shares, with the overwriting that endangers what their iterations read.

    Each cell is a theorem of its own, so they need not stand in one system.  The nest has the share in its label.
    """
    if len(demands) <= SHARE:
        yield nest, demands, clobbers
        return
    left = list(clobbers)
    for first in range(0, len(demands), SHARE):
        some = demands[first : first + SHARE]
        theirs = [c for c in left if any(_one_iteration(c.read.witness, d.witness) for d in some)]
        left = [c for c in left if all(c is not t for t in theirs)]
        last = first + SHARE >= len(demands)
        label = f"{nest.label}, cells from {first}"
        yield replace(nest, label=label), some, [*theirs, *(left if last else [])]


def _one_iteration(one: Sequence[Expr], other: Sequence[Expr]) -> bool:
    return all(a is b for a, b in zip(one, other, strict=True))


def _alignment(proof: Proof, device: Side, ir: Side) -> tuple[int, int, list[AlignedLevel]] | None:
    """The device nest and the IR nest that compute, and their loops in lock-step; each must serve a single cell."""
    if len(ir.trace.demands) != 1 or ir.trace.clobbers:
        return None
    theirs = ir.trace.demands[0].nest
    for demand in device.trace.demands:
        served = sum(d.nest == demand.nest for d in device.trace.demands)
        if demand.store.value.op != "load" and served == 1:
            levels = align(device.nests[demand.nest], ir.nests[theirs], proof.proves)
            if levels is not None:
                return demand.nest, theirs, levels
    return None


def _level(proof: Proof, nest: Nest, plan: LevelPlan, relational: bool, label: str = "") -> None:
    system = plan.system
    key = f"{label or nest.label}: {' with '.join(system.counters)}"
    for name, fact in plan.facts:
        if fact is not true:
            proof.theorem("loop facts", f"{nest.label}: {name}", fact, name)
    found = _invariant(proof, key, plan)
    if isinstance(found, str):
        raise Unsupported(found)
    kind = "lock-step" if relational else "single loop"
    for name, assertions in system.conditions(found.term).items():
        proof.discharger.ask(f"invariant {key}", name, assertions, f"{kind}: the inferred invariant {name}")
    parameters = set(system.parameters.values())
    about_state = tuple(c for c in found.conjuncts if not c.get_free_variables() <= parameters)
    proof.invariants[key] = show_invariant(about_state, proof.names.texts)
    proof.levels[key] = {
        "found_by": found.found_by,
        "seconds": found.seconds,
        "horn": system.horn(),
        "invariant": [term_text(c) for c in found.conjuncts],
        "names": {n: proof.names.texts[n] for n in system.parameters},
    }


def _invariant(proof: Proof, key: str, plan: LevelPlan) -> Inferred | str:
    if proof.given is None:
        return infer(plan.system, proof.horn_timeout, proof.inferred)
    if key not in proof.given:
        return f"no invariant is given for {key}"
    try:
        conjuncts = tuple(parse_term(t, plan.system.arguments) for t in proof.given[key])
    except (PysmtException, KeyError) as error:
        return f"the invariant given for {key} cannot be read: {error}"
    return Inferred(conjuncts, "given", 0.0)


# -- sources and values ------------------------------------------------------------------------------


def _source_theorems(proof: Proof, samples: Samples, device: Side, ir: Side) -> dict[Expr, Expr]:
    """Every device source cell is the IR source cell of the same index; maps device symbols to IR symbols."""
    mapping = proof.mapping
    tensors = {mapping.device.tensor(a): mapping.ir.tensor(b) for a, b in mapping.inputs}
    pairs: dict[Expr, Expr] = {}
    for number, cell in enumerate(device.trace.sources):
        if cell.memory not in tensors:
            raise Unsupported(f"the result depends on {cell.memory.name} as it was before the program")
        partner = _same_cell(samples, cell, tensors[cell.memory], ir.trace.sources)
        if partner is None:
            raise Unsupported(f"the IR does not read the cell that {device.prefix} reads as operand {number}")
        _same_source(proof, device, ir, cell, partner, number)
        pairs[cell.symbol] = partner.symbol
    inputs = set(tensors.values())
    for cell in ir.trace.sources:
        if cell.memory not in inputs:
            raise Unsupported(f"the IR reads {cell.memory.name}, which no device tensor corresponds to")
    return pairs


def _same_source(proof: Proof, device: Side, ir: Side, cell: SourceCell, partner: SourceCell, number: int) -> None:
    terms = []
    for side, source in ((device, cell), (ir, partner)):
        if source.read is None:
            raise Unsupported(f"{side.prefix} does not compute the output cell at all")
        box = side.readers[source.read.nest]
        terms.append(box.term_at(source.read.address, source.read.witness))
        proof.fits(box.encoding, f"operand {number}")
    proof.fits(proof.base, f"operand {number}")
    meaning = "both sides read the same element of the input tensor"
    proof.discharger.follows("sources", f"operand {number}", proof.base.hypotheses, smt.Equals(*terms), meaning)


def _same_cell(samples: Samples, cell: SourceCell, memory: Expr, others: Sequence[SourceCell]) -> SourceCell | None:
    for other in others:
        if other.memory is memory:
            values = samples.evaluate([cell.address, other.address])
            if all(a == b for a, b in values):
                return other
    return None


def _value_theorems(proof: Proof, device: Side, ir: Side, pairs: Mapping[Expr, Expr]) -> None:
    mapping = proof.mapping
    left, right = substitute(device.trace.value, pairs), ir.trace.value
    determined = {*(c.symbol for c in ir.trace.sources), *mapping.parameters.values(), ROW, COLUMN}
    for name, variable in free_variables(left, right).items():
        if variable not in determined:
            raise Unsupported(f"the result depends on {name}, which the program does not determine")
    structure = BitEncoding(mapping.abstract)
    lemmas = lemma_instances(mapping.lemmas, [left, right], structure)
    proof.discharger.ask(
        "values",
        "equal for uninterpreted functions",
        [*lemmas, differ(structure, left, right)],
        "both sides are the same term, for every choice of the data functions that satisfies the lemmas",
    )
    if pairs:
        first = next(iter(pairs.values()))
        unrelated = substitute(left, {first: var("unrelated", first.sort)})
        proof.discharger.ask(
            "health",
            "conclusion falsifiable",
            falsifying(unrelated, right),
            "with an unrelated operand the sides differ, so equality is not trivial",
            expected="sat",
        )
