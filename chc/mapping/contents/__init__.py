"""What cells hold, as terms and folds: what one write stored, and what several of them add up or do in turn.

``values`` reads a cell back as a term.  ``reduction``, ``scatter_add``, ``unrolled``, ``numbered`` and ``alternating``
are the forms in which writes make a fold in memory; ``gathers`` and ``indirect_addressing`` are reads at addresses
that memory holds.
"""
