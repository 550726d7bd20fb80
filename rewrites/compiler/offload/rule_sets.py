"""Which rules lead to which accelerator: small sets, so that saturation is quick and every rule has a purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ir_semantics.graph.types import TensorType
from rewrites.claims.gate import Gate
from rewrites.claims.names import slug
from rewrites.compiler.graph_rules.definitions import definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, rewrites_of
from rewrites.egraph import EGraph, ENode, Rule
from rewrites.egraph.rewrite import Rewrite
from rewrites.targets.flexasr.operators import ACCELERATOR_OPERATORS, mappings_of
from smt_encodings.claims import Equality

from .chains import CHAIN_RULES, WINDOW_RULES, chain_rewrites
from .directed import PLACES, Directed
from .rules import RULES, AcceleratorRewrite
from .unfolding import Unfolding, Uniform

__all__ = ["EXACT", "FLEXIBLE", "RuleSet", "rules_for"]

_WEIGHTS = ("transposed twice",)
_SEQUENCES = (
    "an axis of size 1 dropped and back",
    "four gates from ONNX's order and back",
    "biases of four gates from ONNX's order and back",
    "first two of three gates exchanged and back",
    "biases of the first two of three gates exchanged and back",
    "a vector in two parts",
)
_PADS = ("pads of a convolution as a pad with zeros",)
_NORMALISATION = (
    "batch normalisation as networks have it into a convolution",
    "batch normalisation as networks have it into a convolution with bias",
    "channels of one image, broadcast",
)
_PRODUCTS = (
    *_PADS,
    "convolution as windows times filters",
    "1 x 1 convolution as pixels times filters",
    "1 x 1 convolution with a stride as subsampling",
    "batched matmul with one right side as one matmul",
)

EXACT: Final[Mapping[str, tuple[str, ...]]] = {
    "flexasr": (*_WEIGHTS, *_SEQUENCES),
    "hlscnn": _PADS,
    "vta": _WEIGHTS,
}
"""Rules that exact matching has: operands in the layout that an accelerator's operator takes, and pads by the host."""

FLEXIBLE: Final[Mapping[str, tuple[str, ...]]] = {
    "flexasr": (
        *EXACT["flexasr"],
        *_PRODUCTS,
        *_NORMALISATION,
        "convolution with bias as windows times filters with bias",
        "1 x 1 convolution with bias as pixels times filters with bias",
        "a bias of zeros",
        "bias after a reshape",
        "relu after a reshape of rows",
        "relu of rows as an image",
        *(f"a sum of rank {rank} commutes" for rank in (2, 3, 4)),
        *WINDOW_RULES,
    ),
    "hlscnn": (*EXACT["hlscnn"], *_NORMALISATION),
    "vta": (*EXACT["vta"], *_PRODUCTS, *_NORMALISATION),
}
"""Rules that flexible matching has, by accelerator."""


@dataclass(frozen=True)
class RuleSet:
    """Rewrites for saturation; the claim that each rests on, by the rewrite's name; and what is missing, with reasons.

    ``claims`` has no entry for definitions, which rest on no claim.  ``missing`` has names of claims.
    """

    rewrites: tuple[Rewrite, ...]
    claims: Mapping[str, str]
    equalities: Mapping[str, Equality]
    missing: Mapping[str, str]

    def joined(self, other: RuleSet) -> RuleSet:
        """Both sets together."""
        return RuleSet(
            self.rewrites + other.rewrites,
            {**self.claims, **other.claims},
            {**self.equalities, **other.equalities},
            {**self.missing, **other.missing},
        )


MOST_STEPS: Final = 512
"""Timesteps of recurrent layers that are written out for VTA, some thirty nodes each; a bound of this code."""


def _few_steps(egraph: EGraph, node: ENode) -> bool:
    """Whether a recurrent layer has few timesteps."""
    of = egraph.type_of(node.operands[0])
    return isinstance(of, TensorType) and of.shape[0] <= MOST_STEPS


def _convolved(egraph: EGraph, number: int) -> bool:
    """Whether a class has a convolution in one group."""
    return any(n.symbol.operator == "conv" and dict(n.symbol.attributes)["groups"] == 1 for n in egraph.nodes(number))


def _of_convolution(egraph: EGraph, node: ENode) -> bool:
    """Whether a batch normalisation is that of a convolution in one group, with or without a bias."""
    x = node.operands[0]
    sums = (n for n in egraph.nodes(x) if n.symbol.operator == "add")
    return _convolved(egraph, x) or any(_convolved(egraph, o) for n in sums for o in n.operands)


def rules_for(
    targets: Sequence[str],
    gate: Gate,
    constants: Constants,
    *,
    flexible: bool = True,
    mappings: Mapping[str, Sequence[str]] | None = None,
) -> RuleSet:
    """The rewrites that lead to these accelerators, as far as the gate admits their claims.

    ``mappings`` name, by accelerator operator, the mappings of which one must be admitted, where not any that executes
    the operator will do.
    """
    names = dict.fromkeys(name for target in targets for name in (FLEXIBLE if flexible else EXACT)[target])
    wanted = {slug(name): name for name in names}
    missing = {claim: _reason(gate, claim) for claim in wanted if claim not in gate.admitted}
    proved = rewrites_of({c: gate.admitted[c] for c in wanted if c in gate.admitted}, constants)
    without = [claim for claim in wanted if claim in gate.admitted and claim not in proved]
    assert not without, f"rules for accelerators have patterns: {without}"
    rewrites: list[Rewrite] = []
    claims: dict[str, str] = {}
    equalities: dict[str, Equality] = {}
    for claim, rewrite in proved.items():
        place = PLACES.get(wanted[claim])
        made = rewrite if place is None else Directed(rewrite, place)
        rewrites.append(made)
        claims[made.rule.name] = claim
        equalities[made.rule.name] = made.equality
    for rule in RULES:
        if ACCELERATOR_OPERATORS[rule.target].target not in targets:
            continue
        able = (mappings or {}).get(rule.target) or mappings_of(rule.target, dict(rule.attributes))
        live = next((name for name in able if name in gate.admitted), None)
        if live is None:
            missing |= {name: _reason(gate, name) for name in able}
            continue
        made_to = AcceleratorRewrite(Rule(rule.name, gate.admitted[live].digest), rule, live, constants)
        rewrites.append(made_to)
        claims[rule.name] = live
        equalities[rule.name] = made_to.equality
    if flexible and "flexasr" in targets:
        for name, chain in chain_rewrites(gate.admitted).items():
            rewrites.append(chain)
            claims[name] = chain.claim.mapping
            equalities[name] = chain.equality
        missing |= {r.mapping: _reason(gate, r.mapping) for r in CHAIN_RULES if r.mapping not in gate.admitted}
    for definition in _definitions(targets, constants, flexible):
        rewrites.append(definition)
        equalities[definition.rule.name] = Equality.BIT_EXACT
    return RuleSet(tuple(rewrites), claims, equalities, missing)


def _definitions(targets: Sequence[str], constants: Constants, flexible: bool) -> list[Rewrite]:
    """Operators by what they stand for: nothing is proved of these, for there is nothing to prove."""
    found: list[Rewrite] = []
    if flexible:
        found.append(Unfolding.of("batch_norm", _of_convolution, constants))
    if "flexasr" in targets:
        found.append(Uniform.of(constants))
        named = definitions(constants)
        found += [d for d in named.values() if flexible and d.name == "relu"]
    if "vta" in targets:
        found += [Unfolding.of(name, _few_steps, constants) for name in ("lstm", "gru", "rnn")]
    return found


def _reason(gate: Gate, claim: str) -> str:
    return gate.left_out.get(claim, "the gate was not asked for it")
