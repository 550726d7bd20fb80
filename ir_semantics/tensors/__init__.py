"""Tensor terms with symbolic shapes: operators, their meaning element by element, and its evaluation on data.

``index`` has arithmetic on subscripts and sizes, ``elements`` expressions for one element, ``terms`` what a tensor term
is.  ``operators``, ``reductions`` and ``selection`` define the operators; ``evaluate`` runs terms on the numbers of
``numbers``, ``arrays`` on NumPy's, ``comprehension`` on these by the letter; ``work`` says what an operator costs.
"""
