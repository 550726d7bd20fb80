"""Proofs that accelerator programs compute what tensor-compiler fragments mean; the verbs of the command line.

>>> import ilaverify
>>> verdict = ilaverify.prove("transposed-twice")
>>> verdict.status.value
'PROVED'

Nothing is proved here: the package passes on what the provers and the checker say, and makes none of it stronger.  Of
the other packages, what ``__all__`` of :mod:`ila_lang` names is meant for models and mappings of others, and so are the
doors in :mod:`rewrites` (docs/how-to/extending.md).  Everything else may change without notice.
"""

from .version import VERSION as __version__

TYPE_CHECKING = False  # typing itself takes time to load
if TYPE_CHECKING:
    from .api import InputError, campaign, check, compile, load, prove, run, simulate, tv, use_module

__all__ = [
    "InputError",
    "__version__",
    "campaign",
    "check",
    "compile",
    "load",
    "prove",
    "run",
    "simulate",
    "tv",
    "use_module",
]


def __getattr__(name: str) -> object:
    """Functions are loaded when they are first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(".api", __name__), name)
