"""Which write gave a cell of a memory its value, proved: iterations, addresses, cases, and that nothing kills it.

``reaching_definitions`` is the door.  ``witnesses`` proposes the iteration, ``layout`` proves what an address
determines, ``kills`` that nothing comes in between, and ``cases`` tells several writes apart.
"""
