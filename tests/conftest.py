"""Settings shared by all tests.

Hypothesis runs its examples in the same order on every machine; ``HYPOTHESIS_PROFILE=thorough`` draws
many more of them, at random.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings
from pysmt.environment import pop_env, push_env

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))


def pytest_configure(config: pytest.Config) -> None:
    """Native code that tests make is kept for the session, of all workers, and nothing in the user's cache."""
    if not hasattr(config, "workerinput"):
        directory = tempfile.mkdtemp()
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
        os.environ["XDG_CACHE_HOME"] = directory
        # tests start a hundred interpreters, of which none has to compile the packages again
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False  # assertions are rewritten once, not each time and by each worker


def pytest_collection_finish() -> None:
    """Collections of garbage do not look at thousands of tests again and again.

    Modules that tests write, and change within a second, are not taken from bytecode of before.
    """
    gc.freeze()
    sys.dont_write_bytecode = True


@pytest.fixture(autouse=True)
def symbols_of_its_own(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test has a table of pySMT symbols of its own, so that tests in one process may share names.

    A module that makes symbols while it is imported has its table in ``ENVIRONMENT``.
    """
    push_env(getattr(request.module, "ENVIRONMENT", None))
    yield
    pop_env()
