"""An e-graph that proves its equalities, with saturation by rewrites and extraction by the cost of DAGs.

``terms`` and ``explanation`` are the language of proofs, and ``checker`` the only part whose answer is relied on. The
e-graph stands in ``equivalence`` and ``egraph``; rewrites in ``pattern``, ``rewrite`` and ``saturation``; extraction in
``extraction``, on ``selection``, ``reduction`` and ``search``. ``graphs`` and ``graph_checker`` are for graphs of the
tensor IR.
"""

from .checker import check_explanation, check_steps
from .egraph import Analysis, EGraph, ENode
from .explanation import Explanation, Rule, RuleApplication, Step, Substitution
from .extraction import Cost, Extraction, extract
from .graph_checker import check_graphs, terms_of
from .graphs import Network, explain_outputs, from_graph, to_graph, typing
from .pattern import Bindings, Bound, Computed, Operator, Variable, operator
from .rewrite import PatternRewrite, Rewrite, sides_of
from .saturation import Limits, RuleStatistics, Saturation, Stop, saturate
from .terms import EGraphError, Symbol, Term, term

__all__ = [
    "Analysis",
    "Bindings",
    "Bound",
    "Computed",
    "Cost",
    "EGraph",
    "EGraphError",
    "ENode",
    "Explanation",
    "Extraction",
    "Limits",
    "Network",
    "Operator",
    "PatternRewrite",
    "Rewrite",
    "Rule",
    "RuleApplication",
    "RuleStatistics",
    "Saturation",
    "Step",
    "Stop",
    "Substitution",
    "Symbol",
    "Term",
    "Variable",
    "check_explanation",
    "check_graphs",
    "check_steps",
    "explain_outputs",
    "extract",
    "from_graph",
    "operator",
    "saturate",
    "sides_of",
    "term",
    "terms_of",
    "to_graph",
    "typing",
]
