"""Token order on VTA, proved: a token-correct program ends, in every schedule, as its sequential order does.

Two theorems, with one argument (docs/explanation/vta_tokens.md):

* :func:`prove_token_order` is about the blocked product of :mod:`accel_models.vta.products`, with any number of
  blocks and rounds, of any sizes that fit: an inductive invariant of the three modules, and footprints for every size;
* :func:`~chc.token_order.program.prove_program` is about one program.

A wrong rule of tokens is refuted by a small product with these tokens, whose schedule is replayed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pysmt.shortcuts as smt

from accel_models.mmio_program import ProgramError
from accel_models.vta.isa import ENCODINGS, Finish, Gemm, Instruction, Load, MemoryId, Store, encode
from accel_models.vta.model import vta
from accel_models.vta.options import HLS, VtaOptions
from accel_models.vta.order.hazards import check_tokens
from accel_models.vta.products import dense_program, post_steps
from accel_models.vta.program import Program
from accel_models.vta.tiling import Blocks
from ila_lang import canonical_text, digest, show_expr
from smt_encodings.claims import Claim, Equality, Interpretation, Status, Unsupported, Verdict
from smt_encodings.discharge import Discharger, NotDischarged
from smt_encodings.environment import fresh_symbols
from smt_encodings.printer import term_text
from smt_encodings.runs import surviving

from .accesses import require_tokens, self_contained
from .blocks import DOMAIN, kinds, prove_footprints, shared_memories
from .family import DOUBLE, SINGLE, Rule, System, TokenRules
from .lemmas import ASSUMPTIONS, prove_lemmas
from .program import STATEMENT, prove_program
from .replay import Counterexample
from .runs import survey_products

SUBJECT = "vta_token_order"
LEVEL = "blocked product"


def _ordered(left: str, right: str, options: VtaOptions) -> list[str]:
    """The memories that the rules of tokens order for two kinds of instructions of different modules.

    Besides, they may have DRAM in common, where they have regions of their own.
    """
    products = ("clear", "products", "products of a small block")
    if right in products:
        return {"load of inputs": ["inp"], "load of weights": ["wgt"]}.get(left, [])
    if right == "store" and (left in products or left.startswith("step ") or left == "load of the bias"):
        return [options.store_source]
    return []


def token_order_claim(rules: TokenRules = DOUBLE) -> Claim:
    """What a PROVED of :func:`prove_token_order` says."""
    buffers = {DOUBLE: "double buffering", SINGLE: "one buffer"}.get(rules, "other tokens")
    return Claim(
        subject=SUBJECT,
        statement=f"blocked matrix product, {buffers}: {STATEMENT}",
        size_domain="any number of rounds, grouped into any number of blocks (at least one); with or without bias; any "
        "number of products in a round and of steps in a block; each block: "
        + "; ".join(text for text, _ in DOMAIN)
        + "; tensors do not overlap in DRAM",
        equality=Equality.BIT_EXACT,
        interpretations=(Interpretation.UNINTERPRETED,),
        assumptions=(
            *ASSUMPTIONS,
            "the programs of accel_models.vta.products have these tokens and fields "
            "(tests/chc/token_order/test_theorem.py compares them)",
        ),
    )


def semantics(rules: TokenRules = DOUBLE, options: VtaOptions = HLS) -> dict[str, str]:
    """Digests (SHA-256) of what the claim is about: the model, and the rules with the fields of the instructions."""
    described = [
        [kind.name, kind.instruction, {n: show_expr(e) for n, e in {**kind.fields, **(kind.uop or {})}.items()}]
        for kind in kinds()
    ]
    relation = canonical_text({"rules": asdict(rules), "kinds": described, "domain": [show_expr(e) for _, e in DOMAIN]})
    model = digest(vta(options))
    return {"device": model, "ir": model, "relation": hashlib.sha256(relation.encode()).hexdigest()}


def prove_token_order(
    rules: TokenRules = DOUBLE, *, options: VtaOptions = HLS, discharger: Discharger | None = None
) -> Verdict:
    """Proves token order of the blocked product with ``rules`` for any number of blocks and rounds.

    The answer is REFUTED where a small product with these tokens has a schedule that ends in another memory or in a
    deadlock, with the :class:`~chc.token_order.replay.Counterexample`, replayed, as detail "counterexample".
    """
    start = time.perf_counter()
    asked = discharger or Discharger()
    details: dict[str, object] = {}
    invariants: dict[str, list[str]] = {}
    with fresh_symbols():
        try:
            invariants[LEVEL], details["levels"] = _prove(rules, options, asked)
            status, reason = asked.conclude()
        except (NotDischarged, Unsupported) as error:
            status, reason = Status.UNKNOWN, str(error)
            counterexample = _search(rules, options)
            if counterexample is not None:
                details = {"unproved": reason, "counterexample": counterexample}
                status, reason = Status.REFUTED, counterexample.summary()
    seconds, claim = time.perf_counter() - start, token_order_claim(rules)
    verdict = Verdict(status, claim, "token order", seconds, reason, asked.obligations, invariants, details)
    return surviving(verdict, lambda: survey_products(partial(blocked_product, rules, options=options), options))


def _prove(rules: TokenRules, options: VtaOptions, discharger: Discharger) -> tuple[list[str], dict[str, object]]:
    """Asks everything; the invariant in words, and in the form of the loop levels of other proofs."""
    require_tokens(options)
    problems = self_contained(vta(options))
    for (left, right), memories in shared_memories(options).items():
        ordered = (*_ordered(left, right, options), "dram")
        problems += [f"{left} and {right} may meet in {m}" for m in memories if m not in ordered]
    if problems:
        raise Unsupported("; ".join(problems))
    prove_lemmas(discharger)
    system = System(rules)
    conjuncts = system.invariant()
    invariant = smt.And(conjuncts)
    for name, assertions in system.conditions(invariant).items():
        meaning = "any number of rounds and blocks: the invariant that is read off the token rules " + name
        discharger.ask(f"invariant {LEVEL}", name, assertions, meaning)
    meaning = "the invariant admits the state in which FINISH has executed"
    discharger.ask("health", "end satisfiable", [invariant, system.symbols["finished"]], meaning, expected="sat")
    for name, queue in RACES.items():
        loose = [c for c in conjuncts if c is not system.not_negative(queue)]
        meaning = f"if {queue} could hold less than no tokens, this bad state would not be excluded"
        discharger.ask("health", f"tokens exclude: {name}", [*loose, system.bad()[name]], meaning, expected="sat")
    prove_footprints(discharger, options)
    return system.text(), {
        LEVEL: {
            "found_by": "read off the token rules",
            "seconds": 0.0,
            "horn": system.horn(),
            "invariant": [term_text(c) for c in conjuncts],
            "names": {name: name for name in ("rounds", "blocks")},
        }
    }


RACES = {
    "inputs overwritten while they are used": "g2l",
    "inputs used before they are loaded": "l2g",
    "outputs stored before they are computed": "g2s",
    "outputs overwritten before they are stored": "s2g",
}


# -- products with given tokens ---------------------------------------------------------------------------------------


def _follows(rule: Rule, number: int, sizes: dict[str, int]) -> bool:
    return any(span.holds(number, sizes) for span in rule)


def retoken(instructions: Sequence[Instruction], rules: TokenRules) -> list[Instruction]:
    """The instructions of a blocked product with the tokens that ``rules`` give them.

    Roles are read off the order: a LOAD of INP begins a round, a LOAD of ACC or a GEMM with reset a block, and a STORE
    ends it.
    """
    rounds = sum(isinstance(x, Load) and x.memory is MemoryId.INP for x in instructions)
    sizes = {"rounds": rounds, "blocks": sum(isinstance(x, Store) for x in instructions)}
    retokened: list[Instruction] = []
    number, block, popped = -1, 0, False

    def last_compute() -> int:
        return max(i for i, x in enumerate(retokened) if not isinstance(x, Store) and x.unit == Gemm().unit)

    def end_round() -> None:
        if number >= 0:
            i = max(i for i, x in enumerate(retokened) if isinstance(x, Gemm))
            retokened[i] = replace(retokened[i], push_prev=_follows(rules.product_pushes, number, sizes))

    for instruction in instructions:
        x = replace(instruction, pop_prev=False, pop_next=False, push_prev=False, push_next=False)
        begins_block = (isinstance(x, Load) and x.memory is MemoryId.ACC) or (isinstance(x, Gemm) and x.reset_reg)
        match x:
            case Load(memory=MemoryId.INP):
                end_round()
                number, popped = number + 1, False
                x = replace(x, pop_next=_follows(rules.load_pops, number, sizes))
            case Load(memory=MemoryId.WGT):
                x = replace(x, push_next=_follows(rules.load_pushes, number, sizes))
            case Store():
                i = last_compute()
                retokened[i] = replace(retokened[i], push_next=_follows(rules.block_pushes, block, sizes))
                x = replace(
                    x,
                    pop_prev=_follows(rules.store_pops, block, sizes),
                    push_prev=_follows(rules.store_pushes, block, sizes),
                )
                block += 1
            case Finish():
                end_round()
                x = replace(x, pop_next=bool(rules.finish))
        if begins_block:
            x = replace(x, pop_next=_follows(rules.block_pops, block, sizes))
        if isinstance(x, Gemm) and not popped:
            x, popped = replace(x, pop_prev=_follows(rules.product_pops, number, sizes)), True
        retokened.append(x)
    return retokened


def blocked_product(
    rules: TokenRules, blocks: int, rounds: int, *, bias: bool = False, options: VtaOptions = HLS
) -> Program:
    """A matrix product of ``blocks`` blocks of ``rounds`` rounds each, with the tokens of ``rules`` and random data."""
    cut = Blocks(rows=1, outputs=1, inputs=1, halves=rules.halves)
    plan = dense_program((1, 16 * rounds, 16 * blocks), has_bias=bias, steps=post_steps(shift=6), blocks=cut)
    source = np.random.default_rng(1)
    tensors = {
        name: source.integers(0, 256, region.size).astype(np.uint8).tobytes()
        for name, region in plan.regions.items()
        if name not in ("uops", "output")
    }
    program, encoding = plan.program(options, **tensors), ENCODINGS[options.encoding]
    return replace(program, words=tuple(encode(x, encoding) for x in retoken(plan.instructions, rules)))


def _search(rules: TokenRules, options: VtaOptions) -> Counterexample | None:
    """A counterexample among small products with these tokens."""
    for program in _small(rules, options):
        if not check_tokens(program.words, program.dram, options):
            continue
        try:
            verdict = prove_program(program, options, discharger=Discharger(second=False))
        except ProgramError:
            continue
        counterexample = verdict.details.get("counterexample")
        if isinstance(counterexample, Counterexample):
            return counterexample
    return None


def _small(rules: TokenRules, options: VtaOptions) -> Iterator[Program]:
    for total in range(1, 7):
        for blocks in range(1, total + 1):
            if total % blocks == 0:
                for bias in (False, True):
                    yield blocked_product(rules, blocks, total // blocks, bias=bias, options=options)
