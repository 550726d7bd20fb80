"""The simulator: a device that takes streams of commands, as native code.

``simulator`` runs them; ``programs`` has fragments at concrete sizes.
"""
