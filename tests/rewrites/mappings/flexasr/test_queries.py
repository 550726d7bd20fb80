"""Attention of several queries on FlexASR: proved for every size, run against an oracle, and faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.quantise import Quantised
from ila_lang import Simulator
from ila_lang.language.kernel import For
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.flexasr.attention import QUERIES, T, attention_mapping
from rewrites.mappings.flexasr.claims import ATTENTION_OF_QUERIES
from rewrites.mappings.programs import filled
from tests.accel_models.flexasr import tensor_oracle as oracle
from tests.rewrites.mappings.mapping_checks import changed, fault_tests, require_proved, with_body

ALL, MASKED = (attention_mapping(several=True, masked=masked) for masked in (False, True))


def around(mapping: TensorMapping) -> For:
    """The host's loop over queries."""
    (loop,) = (s for s in mapping.device.program.body if isinstance(s, For) and s.extent is QUERIES)
    return loop


def in_order(*order: int, once: bool = False) -> TensorMapping:
    """Storing the query, the start and loading the result in another order, or the first of them ``once`` before."""
    loop = around(ALL)
    steps = [loop.body[k] for k in order]
    inner = For(loop.counter, loop.extent, tuple(steps[once:]))
    body = [part for s in ALL.device.program.body for part in ((*steps[:once], inner) if s is loop else (s,))]
    return with_body(ALL, body, [loop])


Q = around(ALL).counter
FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "the first query every time": lambda: changed(ALL, "store query", {Q: Q & 0}),
    "the query after": lambda: changed(ALL, "store query", {Q: Q + 1}),
    "queries as far apart as rows of another width": lambda: changed(ALL, "store query", {Q: Q << 1}),
    "all results to the first row": lambda: changed(ALL, "host_y", {Q: Q & 0}),
    "results from the last to the first": lambda: changed(ALL, "host_y", {Q: QUERIES - 1 - Q}),
    "one query too few": lambda: changed(ALL, "query", {QUERIES: QUERIES - 1}),
    "the start before the query is stored": lambda: in_order(1, 0, 2),
    "the result loaded before the start": lambda: in_order(0, 2, 1),
    "a start for the first query alone": lambda: in_order(1, 0, 2, once=True),
    "scores overwrite the query": lambda: replace(
        ALL,
        domain=tuple(entry for entry in ALL.domain if "or base_scores" not in entry[0]),
        sizes_of=lambda *shape: {**ALL.sizes_for(shape), "base_scores": 0},
    ),
    "masked: no query over the last row": lambda: changed(MASKED, "store x", {T: T - 1}),
    "masked: a row too many counts": lambda: changed(MASKED, "store x", {T: T + 1}),
    "masked: all results to the first row": lambda: changed(MASKED, "host_y", {around(MASKED).counter: Q & 0}),
}
QUICK = ("the first query every time", "all results to the first row")


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("mapping", [ALL, MASKED], ids=lambda m: m.name)
def test_it_is_proved_for_every_size(mapping: TensorMapping) -> None:
    require_proved(mapping)


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 90, shape).astype(np.uint8)


def test_each_query_has_the_result_that_the_oracle_gives() -> None:
    x, queries = drawn(1, 5, 16), drawn(2, 3, 16)
    biases = {"bias_x": 1, "bias_query": 2, "bias_weights": 3, "bias_y": 2}
    expected = [oracle.attention(Quantised(x, 1), Quantised(q, 2), 2, 3) for q in queries]
    padded = np.vstack([x, np.zeros((11, 16), np.uint8)])
    for claim, rows in zip(ATTENTION_OF_QUERIES, (padded, x), strict=True):
        sizes = claim.mapping.sizes_for((3, 5, 16)) | biases
        tensors = {"host_x": (rows, rows.shape), "host_query": (queries, queries.shape)}
        found = filled(claim, sizes, tensors, lambda host: host["host_y"]).run(Simulator(flexasr()))
        assert np.array_equal(found.reshape(3, 16), expected)


def test_as_many_queries_as_are_numbered() -> None:
    assert ALL.holds(ALL.sizes_for((65535, 16, 16)))
    with pytest.raises(SizeError) as error:
        ALL.sizes_for((0, 16, 16))
    assert str(error.value) == "Queries of a FlexASR attention mapping must be 1 to 65535, not 0; cut them"
