"""Settings shared by all tests.

No answer depends on how busy the machine is: limits of time count the processor's seconds, and the solvers' are limits
of their own counters.  The clock ends a question after PATIENCE times as long.

Hypothesis runs its examples in the same order on every machine; ``HYPOTHESIS_PROFILE=thorough`` draws
many more of them, at random.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import settings
from pysmt.environment import Environment, pop_env, push_env

from smt_encodings.solvers import cvc5, z3

PATIENCE = 20.0

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))

time.perf_counter = time.process_time


def patient(ask: Callable[..., Any], text: object, seconds: float, patience: float = 1.0, **more: Any) -> Any:
    return ask(text, seconds, max(patience, PATIENCE), **more)


z3._limit = partial(patient, z3._limit)
cvc5.check, cvc5.start = partial(patient, cvc5.check), partial(patient, cvc5.start)


def pytest_configure(config: pytest.Config) -> None:
    """Native code that tests make is kept for the session, of all workers, and nothing in the user's cache."""
    if not hasattr(config, "workerinput"):
        directory = tempfile.mkdtemp()
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
        os.environ["XDG_CACHE_HOME"] = directory
        # tests start a hundred interpreters, of which none has to compile the packages again
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    gc.disable()  # what is collected stays, and to look for garbage in it takes a sixth of the time
    sys.dont_write_bytecode = False  # assertions are rewritten once, not each time and by each worker


def pytest_collection_finish() -> None:
    """Collections of garbage begin, and do not look at thousands of tests again and again.

    Modules that tests write, and change within a second, are not taken from bytecode of before.
    """
    gc.freeze()
    gc.enable()
    sys.dont_write_bytecode = True


_unused: list[Environment] = []
"""An environment in which no test made a term: it costs more than many tests, of which most make none."""


@pytest.fixture(autouse=True)
def symbols_of_its_own(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test has a table of pySMT symbols of its own, so that tests in one process may share names.

    A module that makes symbols while it is imported has its table in ``ENVIRONMENT``.
    """
    given = getattr(request.module, "ENVIRONMENT", None)
    environment = given or (_unused.pop() if _unused else Environment())
    terms = environment.formula_manager.formulae
    before = len(terms)
    push_env(environment)
    yield
    pop_env()
    if given is None and len(terms) == before:
        _unused.append(environment)
