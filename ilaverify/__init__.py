"""The command line and the few functions that tie the parts together.

Nothing is proved here. The package passes on what the provers and the checker say; it trusts them,
and turns their verdicts into text, JSON and exit codes without making any of them stronger.
"""

__version__ = "0.1.0"
