"""Layers of clustered weights on FlexASR: proved for every size, run against an oracle, and faults that are refuted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from accel_models.flexasr.layout import LANES, PE_COUNT, PeRegion, pe_register_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.quantise import Quantised
from ila_lang import Command, Expr, Simulator, concat, const
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.claim import MappingClaim
from rewrites.mappings.flexasr.claims import CLUSTERED
from rewrites.mappings.flexasr.linear import linear_mapping
from rewrites.mappings.flexasr.recurrent import recurrent_mapping
from rewrites.mappings.programs import filled
from tests.accel_models.flexasr import tensor_oracle as oracle
from tests.rewrites.mappings.mapping_checks import edited, fault_tests, require_proved

LINEAR = linear_mapping(clustered=True)
RNN, GRU, LSTM = (recurrent_mapping(kind, clustered=True) for kind in ("rnn", "gru", "lstm"))


def sent_otherwise(mapping: TensorMapping, note: str, **changes: Callable[[Expr], Expr]) -> TensorMapping:
    """The mapping with other inputs of the command with that note."""

    def change(command: Command) -> Command:
        return Command(tuple((n, changes.get(n, lambda e: e)(e)) for n, e in command.inputs), command.note)

    return edited(mapping, note, change)


def parts(word: Expr, width: int) -> list[Expr]:
    """The parts of a word, the lowest one first."""
    return [word[k + width - 1 : k] for k in range(0, word.width, width)]


def nibbles_swapped(word: Expr) -> Expr:
    return concat(*reversed([concat(b[3:0], b[7:4]) for b in parts(word, 8)]))


def halves_swapped(word: Expr) -> Expr:
    return concat(word[63:0], word[127:64])


def unpacked(word: Expr) -> Expr:
    """A row of 16 indices, a byte for each."""
    return concat(*(x for n in reversed(parts(word[63:0], 4)) for x in (const(0, 4), n)))


def flag_cleared(mapping: TensorMapping) -> TensorMapping:
    """No core looks weights up."""
    for pe in range(PE_COUNT):
        mapping = sent_otherwise(mapping, f"configure core {pe}", data_in=lambda d: d & ~const(1 << 16, 128))
    return mapping


OF_GATES: dict[str, Callable[[TensorMapping], TensorMapping]] = {
    "both matrices with the input's table": lambda m: sent_otherwise(m, "store table u", addr_in=lambda a: a - 32),
    "the input's table in reverse": lambda m: sent_otherwise(
        m, "store table w", data_in=lambda d: concat(*parts(d, 8))
    ),
    "the state's weights with the even column in the high half": lambda m: sent_otherwise(
        m, "store weights u", data_in=nibbles_swapped
    ),
    "rows of a pair of the input's weights exchanged": lambda m: sent_otherwise(
        m, "store weights w", data_in=halves_swapped
    ),
    "weights are no indices": flag_cleared,
}
"""Faults of layers with several gates."""
TABLE, WEIGHTS = "store table weights", "store weights weights"
FIRST = const(pe_register_address(0, PeRegion.CORE, 3), 32)
FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "linear: the even column in the high half": lambda: sent_otherwise(LINEAR, WEIGHTS, data_in=nibbles_swapped),
    "linear: rows of a pair exchanged": lambda: sent_otherwise(LINEAR, WEIGHTS, data_in=halves_swapped),
    "linear: a byte for each index": lambda: sent_otherwise(LINEAR, WEIGHTS, data_in=unpacked),
    "linear: a pair of rows one vector too far": lambda: sent_otherwise(LINEAR, WEIGHTS, addr_in=lambda a: a + 16),
    "linear: the table in reverse": lambda: sent_otherwise(LINEAR, TABLE, data_in=lambda d: concat(*parts(d, 8))),
    "linear: the table for the first PE alone": lambda: sent_otherwise(LINEAR, TABLE, addr_in=lambda _: FIRST),
    "linear: the other manager's table": lambda: sent_otherwise(LINEAR, TABLE, addr_in=lambda a: a + 32),
    "linear: the last code of the table is left out": lambda: sent_otherwise(
        LINEAR, TABLE, data_in=lambda d: d & ((1 << 120) - 1)
    ),
    "linear: weights are no indices": lambda: flag_cleared(LINEAR),
    "linear: from the IR's table of another layer": lambda: replace(
        LINEAR, inputs=tuple((h, {"tensor_table": "tensor_bias", "tensor_bias": "tensor_table"}.get(t, t))
                             for h, t in LINEAR.inputs)
    ),
    "rnn: both matrices with the input's table": lambda: sent_otherwise(RNN, "store table u", addr_in=lambda a: a - 32),
    "rnn: the state's table in reverse": lambda: sent_otherwise(
        RNN, "store table u", data_in=lambda d: concat(*parts(d, 8))
    ),
    "rnn: the state's weights one vector too far": lambda: sent_otherwise(
        RNN, "store weights u", addr_in=lambda a: a + 16
    ),
    "rnn: rows of a pair of the state's weights exchanged": lambda: sent_otherwise(
        RNN, "store weights u", data_in=halves_swapped
    ),
    "rnn: weights are no indices": lambda: flag_cleared(RNN),
    **{f"{m.name}: {name}": partial(fault, m) for m in (GRU, LSTM) for name, fault in OF_GATES.items()},
}  # fmt: skip
QUICK = ("linear: the even column in the high half", "linear: the other manager's table")


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("mapping", [LINEAR, RNN, GRU, LSTM], ids=lambda m: m.name)
def test_a_layer_of_clustered_weights_is_proved_for_every_size(mapping: TensorMapping) -> None:
    require_proved(mapping)


def drawn(seed: int, *shape: int, top: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, top, shape).astype(np.uint8)


def run(claim: MappingClaim, sizes: tuple[int, ...], tensors: dict[str, np.ndarray]) -> np.ndarray:
    """The codes of a layer's result on the simulator; all AdaptivFloat biases are 2."""
    given = claim.mapping.sizes_for(sizes)
    given |= {name: 2 for name in given if name.startswith("bias_")}
    program = filled(claim, given, {n: (t, t.shape) for n, t in tensors.items()}, lambda found: found["host_y"])
    return program.run(Simulator(flexasr())).reshape(sizes[0], -1)


def test_layers_of_clustered_weights_are_those_of_the_weights() -> None:
    x = drawn(1, 3, 32, top=90)
    tables = [drawn(4 + k, LANES, top=90) for k in range(2)]
    for claim, gates in zip(CLUSTERED, (1, 1, 3, 4), strict=True):
        b, c = drawn(2, 64 * gates), drawn(3, 64 * gates)
        w, u = drawn(6, 64 * gates, 32, top=16), drawn(7, 64 * gates, 64, top=16)
        order = (0, 2, 1, 3)[:gates]  # the oracle has z before n, and f before g
        ordered = (t.reshape(gates, 64, -1)[list(order)].reshape(t.shape) for t in (tables[0][w], tables[1][u], b, c))
        of = [Quantised(t, 2) for t in (x, *ordered)]
        tensors = {"host_x": x, "host_w": w, "host_b": b}
        if claim is CLUSTERED[0]:
            found = run(claim, (3, 32, 64), {**tensors, "host_table": tables[0]})
            expected = oracle.linear(of[0], of[1], of[3], 2, None)
        else:
            tensors |= {"host_u": u, "host_c": c, "host_w_table": tables[0], "host_u_table": tables[1]}
            found = run(claim, (3, 32, 64), tensors)
            kind = claim.name.removeprefix("flexasr_").removesuffix("_clustered")
            expected = oracle.recurrent(kind, of[0], tuple(of[1:]), 2)
        assert np.array_equal(found, expected)
        assert len(np.unique(found)) > 8


def test_twice_as_many_weights_fit() -> None:
    plain = linear_mapping()
    sizes = LINEAR.sizes_for((1, 2048, 4032))
    with pytest.raises(SizeError):
        plain.sizes_for((1, 2048, 4032))
    assert LINEAR.holds(sizes) and not plain.holds(sizes)
