"""What can be claimed: mappings, rules, lemmas and theorems, how they are proved, and what a proof must contain.

``registry`` has the rules, lemmas and theorems by name, ``verify`` proves a mapping, and ``gate`` admits what holds a
live certificate.  ``methods``, ``subjects``, ``joints`` and ``theorems`` have one kind of thing each.
"""
