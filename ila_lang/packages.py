"""Files of users that have the name of one of our packages, and hide it."""

from __future__ import annotations

from importlib.util import find_spec

NAMES = ("ir_semantics", "accel_models", "smt_encodings", "bmc", "chc", "reports", "rewrites", "ilaverify")


def require_packages() -> None:
    """Raises ImportError where a module beside the user's script is found in the place of one of our packages."""
    for name in NAMES:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is None:
            raise ImportError(f"{spec.origin} hides the package {name} of ilaverify; give the file another name")
