"""The rules that lead to accelerators, as rewrites: those that the gate admits, and why others are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chc.tensor_rules.rule import TensorRule
from rewrites.claims.gate import Admission, Gate
from rewrites.claims.names import slug
from rewrites.claims.subjects.tensor import TensorSubject
from rewrites.compiler.codegen import Options, accelerator_operator, joint_problem
from rewrites.compiler.graph_rules.definitions import definitions as named_definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, claims_of, rewrites_of, unfit
from rewrites.egraph import Rule
from rewrites.egraph.rewrite import Rewrite
from rewrites.rules.rule_set import applied_rules
from smt_encodings.claims import Equality

from .backend import Backend
from .chains import chain_rewrites
from .directed import Directed, Place
from .rules import AcceleratorRewrite
from .unfolding import Normalisation, Unfolding, Uniform


@dataclass(frozen=True)
class RuleSet:
    """Rewrites for saturation; the claim that each rests on, by the rewrite's name; and what is missing, with reasons.

    ``claims`` has no entry for definitions, which rest on no claim.  ``missing`` has names of claims.  ``joints`` has
    the joint that a rule to an operator rests on, too.
    """

    rewrites: tuple[Rewrite, ...]
    claims: Mapping[str, str]
    equalities: Mapping[str, Equality]
    missing: Mapping[str, str]
    joints: Mapping[str, str] = field(default_factory=dict)

    def joined(self, other: RuleSet) -> RuleSet:
        """Both sets together."""
        return RuleSet(
            self.rewrites + other.rewrites,
            {**self.claims, **other.claims},
            {**self.equalities, **other.equalities},
            {**self.missing, **other.missing},
            {**self.joints, **other.joints},
        )


def is_rule_of(rule: TensorRule, admission: Admission) -> bool:
    """Whether a rule is the one that a certificate is about; that they have one name is not enough."""
    return isinstance(admission.subject, TensorSubject) and admission.subject.rule is rule


def rules_for(
    backends: Sequence[Backend],
    gate: Gate,
    constants: Constants,
    *,
    flexible: bool = True,
    options: Options | None = None,
) -> RuleSet:
    """The rewrites that lead to these accelerators, as far as the gate admits their claims.

    A rule to an accelerator operator needs one admitted mapping of those that execute it with these options, and their
    joint, where it is stated.  Raises
    ValueError where a backend's definition is none: it would need no certificate.
    """
    rewrites: list[Rewrite] = []
    claims: dict[str, str] = {}
    equalities: dict[str, Equality] = {}
    missing: dict[str, str] = {}
    joints: dict[str, str] = {}

    def use(rewrite: Rewrite, equality: Equality, claim: str = "") -> None:
        rewrites.append(rewrite)
        equalities[rewrite.rule.name] = equality
        if claim:
            claims[rewrite.rule.name] = claim

    for (rule, _), places in _places(backends, flexible).items():
        claim = slug(rule.name)
        admission = gate.admitted.get(claim)
        if admission is None or not is_rule_of(rule, admission):
            missing[claim] = _reason(gate, claim)
            continue
        if reason := unfit(rule, gate.admitted, constants):
            missing[claim] = reason
            continue
        admitted = {name: gate.admitted[name] for name in claims_of(rule)}
        directions = rewrites_of(admitted, constants)
        if claim not in directions:
            missing[claim] = "graphs have no operators that mean what its sides do"
            continue
        use(Directed(directions[claim], places) if places else directions[claim], directions[claim].equality, claim)
    for backend in backends:
        for to in backend.rules:
            operator = next(o for o in backend.operators if o.name == to.target)
            able = operator.mappings_for(dict(to.attributes), options or Options())
            problems = {
                m: joint_problem(operator, m, gate) if m.name in gate.admitted else (m.name, _reason(gate, m.name))
                for m in able
            }
            live = next((m for m, problem in problems.items() if problem is None), None)
            if live is None:
                missing |= dict(filter(None, problems.values()))
                continue
            rewrite = AcceleratorRewrite(Rule(to.name, gate.admitted[live.name].digest), to, constants)
            use(rewrite, rewrite.equality, live.name)
            joint = operator.joint(live)
            joints |= {} if joint is None else {to.name: joint.name}
    for backend in backends if flexible else ():
        for chain in chain_rewrites(backend.chains, gate.admitted).values():
            target = accelerator_operator(getattr(chain.claim.right, "operator", ""))
            problem = None if target is None else joint_problem(target, chain.claim.mapping, gate)
            if problem is not None:
                missing |= dict([problem])
                continue
            use(chain, chain.equality, chain.claim.mapping.name)
        missing |= {
            r.mapping.name: _reason(gate, r.mapping.name) for r in backend.chains if r.mapping.name not in gate.admitted
        }
    definitions = {d.rule.name: d for backend in backends for d in backend.definitions(constants, flexible)}
    known = named_definitions(constants)
    for definition in definitions.values():
        if (
            type(definition) not in (Unfolding, Normalisation, Uniform)
            and known.get(definition.rule.name) != definition
        ):
            raise ValueError(
                f"{definition.rule.name} must be a definition; it is another rule, of which nothing is proved"
            )
        use(definition, Equality.BIT_EXACT)
    return RuleSet(tuple(rewrites), claims, equalities, missing, joints)


def _places(backends: Sequence[Backend], flexible: bool) -> dict[tuple[TensorRule, bool], tuple[Place, ...]]:
    """Rules, and whether they are read from right to left, with their places; with none they apply everywhere."""
    by_rule: dict[tuple[TensorRule, bool], dict[Place | None, None]] = {}
    for backend in backends:
        for rule, place in (backend.flexible if flexible else backend.exact).items():
            by_rule.setdefault((rule, place is not None and place.backwards), {})[place] = None
    for rule in applied_rules() if flexible else ():
        by_rule.setdefault((rule, False), {})[None] = None
    return {key: () if None in places else tuple(p for p in places if p) for key, places in by_rule.items()}


def _reason(gate: Gate, claim: str) -> str:
    if claim in gate.admitted:
        return "the certificate of this name is of another rule"
    return gate.left_out.get(claim, "the gate was not asked for it")
