"""Terms that a proof traces back are the values that runs leave."""

from __future__ import annotations

import pytest

from tests.chc.mapping.traces import campaign


def _agree(programs: int, seed: int) -> None:
    wrong: list[str] = []
    counts = campaign(programs, seed, wrong.append)
    assert not wrong
    assert counts["agrees"] > programs / 3, "most programs have no trace: the campaign says little"


def test_traced_terms_are_what_runs_leave() -> None:
    _agree(20, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1000, 2000])
def test_many_traced_terms_are_what_runs_leave(seed: int) -> None:
    _agree(600, seed)
