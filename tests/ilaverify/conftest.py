"""The small model, compiled once."""

from pathlib import Path

import pytest

from .compiled_models import small_compiled


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with ``small.onnx``, ``proofs``, and ``made``, compiled from these; for reading only."""
    return small_compiled(tmp_path_factory.mktemp("small"))
