"""An e-graph that proves its equalities, with saturation by rewrites and extraction by the cost of DAGs.

``terms`` and ``explanation`` are the language of proofs, and ``checker`` the only part whose answer is relied on. The
e-graph stands in ``equivalence`` and ``egraph``; extraction in ``extraction``, on ``selection``, ``reduction`` and
``search``.
"""

from .checker import check_explanation, check_steps
from .egraph import Analysis, EGraph, ENode
from .explanation import Explanation, Rule, RuleApplication, Step, Substitution
from .extraction import Cost, Extraction, extract
from .terms import EGraphError, Symbol, Term, term

__all__ = [
    "Analysis",
    "Cost",
    "EGraph",
    "EGraphError",
    "ENode",
    "Explanation",
    "Extraction",
    "Rule",
    "RuleApplication",
    "Step",
    "Substitution",
    "Symbol",
    "Term",
    "check_explanation",
    "check_steps",
    "extract",
    "term",
]
