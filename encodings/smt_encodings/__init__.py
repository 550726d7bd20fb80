"""How data and reductions become SMT terms.

Data: uninterpreted values, abstract floats, bits.  Reductions: hash sums, multisets, unrolled sums.  Every encoding is
one more interpretation of the expressions and kernels of ``ila_lang``.  The package trusts ``ila_lang``, pySMT's terms
and printer, and the solvers' answers.  It proves the lemmas and the soundness facts that the encodings rest on.

``discharge`` asks both solvers, ``claims`` has verdicts and the one place that says PROVED, ``runs`` what PROVED must
survive, ``naming`` and ``environment`` keep symbols apart, and ``wellformed`` checks models.
"""
