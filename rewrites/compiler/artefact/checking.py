"""The check of a compiled model: all its content is generated again and compared; none of it is trusted.

What is relied on: the front end, the certificates (the gate says that they are live, ``ilaverify check`` that they are
proofs), the checker of explanations, the mappings' own fragments, and the checker of memory plans.  Quantisation and
splits are choices; any of them is right, so long as calls stay in the proved domain, and that is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ir_semantics.graph.ir import Graph
from ir_semantics.graph.types import GraphError
from reports.subjects import Entry
from rewrites.claims.gate import Gate, open_gate
from rewrites.claims.names import slug
from rewrites.compiler.codegen import is_program_of, joint_problem, joints_of, operator_of
from rewrites.compiler.graph_rules.tensor_rewrites import Constants, weakest_of
from rewrites.compiler.offload.folding import folded
from rewrites.compiler.offload.rule_sets import is_rule_of, rules_for
from rewrites.egraph import EGraphError, Rule
from rewrites.egraph.graph_checker import check_graphs
from rewrites.egraph.rewrite import sides_of

from .contents import Check, check_contents
from .errors import ArtefactError
from .model import Compiled
from .sources.front_end import FRONT_ENDS


def check_compiled(compiled: Compiled, entries: Mapping[str, Entry], proofs: Path) -> Iterator[Check]:
    """Checks a compiled model against the certificates in ``proofs``, part by part.

    ``entries`` are all claims that are known.
    """
    unknown = [name for name in compiled.proof.certificates if name not in entries]
    gate = open_gate({n: entries[n] for n in compiled.proof.certificates if n in entries}, proofs)
    yield _certificates(compiled, gate, unknown)
    yield _chain(compiled, gate)
    yield _folding(compiled)
    yield from check_contents(compiled)


def _certificates(compiled: Compiled, gate: Gate, unknown: list[str]) -> Check:
    problems = [f"{name}: there is no claim of this name" for name in unknown]
    problems += [f"{name}: {reason}" for name, reason in gate.left_out.items()]
    for name, admission in gate.admitted.items():
        quoted = compiled.proof.certificates[name]
        if admission.digest != quoted.digest:
            problems.append(
                f"{name}: the model rests on the certificate {quoted.digest[:12]}, and there is another one, "
                f"{admission.digest[:12]}; compile the model again"
            )
        current = (
            admission.subject.kind,
            admission.claim.statement,
            admission.claim.size_domain,
            admission.claim.equality.value,
        )
        if current != (quoted.kind, quoted.statement, quoted.size_domain, quoted.equality):
            problems.append(f"{name}: the model must quote the claim as it is")
    joints = [joints_of(i) for i in compiled.implementations.values()]
    needed = {name for i in compiled.implementations.values() for name in i.claims}.union(*joints)
    problems += [
        f"{name}: programs rest on it, and the model does not name its certificate"
        for name in sorted(needed - set(compiled.proof.certificates))
    ]
    implementations = compiled.implementations.values()
    programs = {
        mapping.name: mapping
        for i in implementations
        for mapping in (*i.mappings, *i.conversions_used)
        if mapping.name in gate.admitted
    }
    problems += [
        f"{name}: its programs must be those that the certificate is of; they are others"
        for name, mapping in sorted(programs.items())
        if not is_program_of(mapping, gate.admitted[name])
    ]
    problems += [
        f"{name}: a program is none of it: {why}" for reasons in joints for name, why in reasons.items() if why
    ]
    problems += [
        f"{problem[0]}: {problem[1]}"
        for i in implementations
        for mapping in i.mappings
        if (problem := joint_problem(operator_of(i), mapping, gate)) is not None and problem[0] in gate.admitted
    ]
    rules = {slug(rule.name): rule for i in implementations for rule in i.rules}
    problems += [
        f"{name}: the rule that programs rest on must be the one that the certificate is of; it is another"
        for name, rule in sorted(rules.items())
        if name in gate.admitted and not is_rule_of(rule, gate.admitted[name])
    ]
    return Check("certificates", f"{len(gate.admitted)} live, with the digests that the model names", tuple(problems))


def _chain(compiled: Compiled, gate: Gate) -> Check:
    """Every output's explanation, from the model as it is imported now to the rewritten graph."""
    applied: dict[Rule, int] = {}
    try:
        explanations = dict(compiled.proof.explanations)
    except ArtefactError as error:
        return Check("chain of rules", "explanations of all outputs", (str(error),))
    for explanation in explanations.values():
        for rule, count in explanation.rules().items():
            applied[rule] = applied.get(rule, 0) + count
    distinct = f"{len(applied)} rule{'' if len(applied) == 1 else 's'}"
    summary = f"{sum(applied.values())} applications of {distinct} lead from the model to the compiled graph"
    try:
        source = _imported(compiled)
        constants = Constants(source.constants)
        constants.data |= compiled.proof.rewritten.constants
        rules = rules_for(
            compiled.choices.backends,
            gate,
            constants,
            flexible=compiled.choices.settings.get("matching") != "exact",
            options=compiled.choices.options,
        )
        check_graphs(source, compiled.proof.rewritten, explanations, sides_of(rules.rewrites))
    except (ArtefactError, EGraphError, GraphError) as error:
        return Check("chain of rules", summary, (str(error),))
    notions = [rules.equalities[rule.name] for rule in applied]
    weakest = weakest_of(notions)
    if weakest is not compiled.proof.equality:
        problem = f"the equality must be that of the weakest rule, {weakest.value}, not {compiled.proof.equality.value}"
        return Check("chain of rules", summary, (problem,))
    return Check("chain of rules", summary)


def _imported(compiled: Compiled) -> Graph:
    return FRONT_ENDS.all()[compiled.model.front_end].read_again(compiled.model.source, compiled.model.dimensions)


def _folding(compiled: Compiled) -> Check:
    summary = "what depends on constants alone was computed, and nothing else was changed"
    again = folded(compiled.proof.rewritten)
    same = (
        again.nodes == compiled.graph.nodes
        and dict(again.inputs) == dict(compiled.graph.inputs)
        and dict(again.outputs) == dict(compiled.graph.outputs)
    )
    problem = "the compiled graph must be the rewritten one with its constants computed; it is another"
    return Check("constants", summary, () if same else (problem,))
