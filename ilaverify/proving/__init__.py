"""Many claims, proved in processes of their own or found in the store.

``prove_all`` is the door; ``workers`` and ``cluster`` run tasks here and on other machines, ``stored`` looks proofs
up.
"""
