"""What can be claimed: mappings, rules, lemmas and theorems, how they are proved, and what a proof must contain.

``registry`` has the rules, lemmas and theorems by name, and ``gate`` admits what holds a live certificate.
"""
