"""Settings shared by all tests.

Hypothesis runs its examples in the same order on every machine; ``HYPOTHESIS_PROFILE=thorough`` draws
many more of them, at random.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "deterministic"))
