"""Nothing here is too short to be compiled."""

from __future__ import annotations

import pytest

from ila_lang.native import code, session


@pytest.fixture(autouse=True)
def always_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "TRIED", 0)
    monkeypatch.setattr(session, "LONG", 0)
