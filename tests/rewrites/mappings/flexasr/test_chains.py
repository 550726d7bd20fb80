"""Several FlexASR operations in one program, and data moved to the host and back: proofs, and faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import bmc.prove
from accel_models.flexasr.layout import LANES, large_axi_address, vector_address
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Kernel, Machine, const, load_bytes, run_fragment
from ila_lang.interpreter.compile import Memory
from ila_lang.mapping import SizeError, TensorMapping
from ilaverify.catalogue import mappings
from rewrites.mappings.flexasr.buffers import BASE, HOST_X, HOST_Y, NV, T, UnitProgram
from rewrites.mappings.flexasr.chains import (
    HOST_MID,
    PLACE,
    ROW_APART,
    VECTOR_APART,
    chain_mapping,
    ir_chain,
    reload_mapping,
)
from rewrites.mappings.flexasr.claims import CHAINS as PAIRS
from rewrites.mappings.flexasr.pooling import KINDS, pooling_mapping
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import fault_tests, require_proved

RELOAD, REST, APART = (reload_mapping(what) for what in ("matrix", "rest", "apart"))
CHAINS = {f"{kind} x{n}": chain_mapping(kind, n) for kind, n in PAIRS}
RELOADED = chain_mapping("max", 2, reloaded=True)


class Program(UnitProgram):
    """A host program whose transfers may have a base, a width and a host tensor of their own."""

    def store(
        self, name: str, rows: Expr, host: Expr = HOST_X, base: Expr = BASE, vectors: Expr = NV, first: int = 0
    ) -> None:
        """Rows of a host tensor, from row ``first`` on, to a matrix at ``base``."""
        with self.program.loop(f"{name}_t", rows) as t, self.program.loop(f"{name}_v", vectors) as v:
            data = load_bytes(host, (t + first) * (NV << 4) + (v << 4), LANES)
            self.write(name, large_axi_address(vector_address(base, vectors, t, v)), data)

    def load_rows(self, name: str, rows: Expr, host: Expr = HOST_Y, base: Expr = BASE) -> None:
        """Rows of a matrix at ``base`` to a host tensor."""
        with self.program.loop(f"{name}_t", rows) as t, self.program.loop(f"{name}_v", NV) as v:
            self.read(name, large_axi_address(vector_address(base, NV, t, v)), host, t * (NV << 4) + (v << 4))


def with_program(mapping: TensorMapping, emit: Callable[[Program], None]) -> TensorMapping:
    """The mapping with another device program."""
    program, device = Kernel(mapping.device.name), mapping.device
    emit(Program(program, device.ila))
    return replace(mapping, device=Fragment(device.name, device.ila, device.parameters, device.tensors, program))


def chain(
    name: str,
    *,
    modes: tuple[int, ...] = (0, 0, 0, 0),
    rows: Callable[[int], Expr] = lambda k: T >> k,
    skipped: tuple[int, ...] = (),
    twice: int = -1,
    base: Expr = BASE,
    late: bool = False,
) -> TensorMapping:
    """A chain of poolings with something else somewhere: ``skipped`` ones are not done, ``twice`` is one too many."""
    mapping = CHAINS[name]
    steps = int(name[-1])

    def emit(host: Program) -> None:
        if not late:
            host.large_manager()
        host.store("x", T)
        for number in range(steps):
            if number not in skipped:
                host.pool(modes[number], rows(number))
            if number == twice:
                host.pool(modes[number], rows(number))
            if late and number == 0:
                host.large_manager()
        host.load_rows("y", T >> steps, base=base)

    return with_program(mapping, emit)


def reloaded(
    *,
    back: Expr = BASE,
    source: Expr = HOST_MID,
    loaded: Expr = BASE,
    kept: int = 1,
    first: int = 0,
    rows: Expr = T >> 1,
    early: bool = False,
) -> TensorMapping:
    """Two poolings with a transfer in between that has something else somewhere."""

    def emit(host: Program) -> None:
        host.large_manager()
        host.store("x", T)
        if early:
            host.load_rows("there", T >> 1, HOST_MID, loaded)
        host.pool(0, T)
        if not early:
            host.load_rows("there", T >> kept, HOST_MID, loaded)
        host.store("back", T >> 1, source, back, first=first)
        host.pool(0, rows)
        host.load_rows("y", T >> 2)

    return with_program(RELOADED, emit)


def transfer(
    mapping: TensorMapping,
    *,
    back: Expr = BASE,
    rows: Expr = T,
    stored: Expr = T,
    loaded: Expr = BASE,
    vectors: Expr = NV,
    first: int = 0,
    early: bool = False,
    final: Expr = BASE,
    place: int = 0,
    given: bool = True,
) -> TensorMapping:
    """A matrix to the host and back, with something else somewhere."""
    where = {
        REST.name: vector_address(BASE, NV, ROW_APART, VECTOR_APART).zext(32),
        APART.name: PLACE,
    }.get(mapping.name)

    def emit(host: Program) -> None:
        if not given:
            pass
        elif where is not None:
            host.store_vector(where)
        else:
            host.store("x", T)
        if not early:
            host.load_rows("there", rows, HOST_MID, loaded)
        host.store("back", stored, HOST_MID, back, vectors, first)
        if early:
            host.load_rows("there", rows, HOST_MID, loaded)
        if where is not None:
            host.load_vector(where + place)
        else:
            host.load_rows("y", T, base=final)

    return with_program(mapping, emit)


ONE = const(1, 32)
FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "x2: rows are not halved and the second pooling is left out": lambda: chain("max x2", skipped=(1,)),
    "x2: the first pooling is left out": lambda: chain("max x2", skipped=(0,)),
    "x2: the second pooling takes means": lambda: chain("max x2", modes=(0, 1)),
    "x2: the first pooling takes means": lambda: chain("max x2", modes=(1, 0)),
    "x2: the first pooling leaves the last pair": lambda: chain("max x2", rows=lambda k: (T >> k) - 2 * (1 - k)),
    "x2: the second pooling is started for half of its rows": lambda: chain("max x2", rows=lambda k: T >> 2 * k),
    "x2: one pooling too many": lambda: chain("max x2", twice=1),
    "x2: the result is loaded from the next vector": lambda: chain("max x2", base=BASE + 1),
    "x2: the manager is configured after the first start": lambda: chain("max x2", late=True),
    "x2: means in the IR": lambda: replace(CHAINS["max x2"], ir=ir_chain("mean", 2)),
    "x3: the last pooling is left out": lambda: chain("max x3", skipped=(2,)),
    "x3: the second pooling adds": lambda: chain("max x3", modes=(0, 2, 0)),
    "x3: one pooling too many": lambda: chain("max x3", twice=0),
    "x3: the result is loaded from the next vector": lambda: chain("max x3", base=BASE + 1),
    "x3: the first pooling is started for half of its rows": lambda: chain("max x3", rows=lambda k: T >> max(1, k)),
    "x4: the third pooling is left out": lambda: chain("max x4", skipped=(2,)),
    "x4: the last pooling takes means": lambda: chain("max x4", modes=(0, 0, 0, 1)),
    "x4: one pooling too many": lambda: chain("max x4", twice=3),
    "x4: the manager is configured after the first start": lambda: chain("max x4", late=True),
    "x4: the first pooling leaves the last pair": lambda: chain(
        "max x4", rows=lambda k: (T >> k) - (2 if k == 0 else 0)
    ),
    "mean x2: maxima": lambda: chain("mean x2"),
    "mean x2: the second pooling takes maxima": lambda: chain("mean x2", modes=(1, 0)),
    "mean x2: the first pooling is left out": lambda: chain("mean x2", modes=(1, 1), skipped=(0,)),
    "mean x2: one pooling too many": lambda: chain("mean x2", modes=(1, 1), twice=1),
    "mean x2: sums in the first pooling": lambda: chain("mean x2", modes=(2, 1)),
    "reloaded: stored again one vector further": lambda: reloaded(back=BASE + 1),
    "reloaded: the input is stored again": lambda: reloaded(source=HOST_X),
    "reloaded: loaded from one vector further": lambda: reloaded(loaded=BASE + 1),
    "reloaded: loaded before the pooling": lambda: reloaded(early=True),
    "reloaded: half of the rows are loaded": lambda: reloaded(kept=2),
    "reloaded: stored again from the next row on": lambda: reloaded(first=1),
    "reloaded: the second pooling is started for half of its rows": lambda: reloaded(rows=T >> 2),
    "reload: stored again one vector further": lambda: transfer(RELOAD, back=BASE + 1),
    "reload: stored again before it is loaded": lambda: transfer(RELOAD, early=True),
    "reload: the last row is not loaded": lambda: transfer(RELOAD, rows=T - 1),
    "reload: loaded from one vector further": lambda: transfer(RELOAD, loaded=BASE + 1),
    "reload: stored again from the next row on": lambda: transfer(RELOAD, first=1),
    "reload: stored again with other tiles": lambda: transfer(RELOAD, vectors=NV + 1),
    "reload: the result is loaded from the next vector": lambda: transfer(RELOAD, final=BASE + 1),
    "reload: nothing was stored": lambda: transfer(RELOAD, given=False),
    "rest: a row more is stored again": lambda: transfer(REST, stored=T + 1),
    "rest: stored again one vector further": lambda: transfer(REST, back=BASE + 1),
    "rest: stored again with other tiles": lambda: transfer(REST, vectors=NV + 1, stored=T + 15),
    "rest: the next vector is loaded": lambda: transfer(REST, place=1),
    "rest: nothing was stored": lambda: transfer(REST, given=False),
    "apart: a tile more is stored again": lambda: transfer(APART, stored=((T + 15) >> 4 << 4) + 1),
    "apart: stored again a tile further": lambda: transfer(APART, back=BASE + 16),
    "apart: stored again with other tiles": lambda: transfer(APART, vectors=NV + 1, stored=T + 15),
    "apart: the next vector is loaded": lambda: transfer(APART, place=1),
    "apart: nothing was stored": lambda: transfer(APART, given=False),
}
QUICK = (
    "x2: the second pooling takes means",
    "x2: one pooling too many",
    "reloaded: the input is stored again",
    "reload: stored again one vector further",
    "apart: a tile more is stored again",
)


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


def test_programs_of_this_file_without_a_fault_are_those_of_the_claims() -> None:
    for mapping, other in (
        *((m, chain(n, modes=(KINDS[n.split()[0]][1],) * 4)) for n, m in CHAINS.items()),
        (RELOADED, reloaded()),
        (RELOAD, transfer(RELOAD)),
        (REST, transfer(REST)),
        (APART, transfer(APART)),
    ):
        rows = 30 if mapping is REST else 32
        sizes = mapping.sizes_for((rows, 32))
        x = codes(1, rows, 32)
        assert np.array_equal(ran(mapping, sizes, x), ran(other, sizes, x))


SLOW = [pytest.param(m, marks=pytest.mark.slow, id=m.name) for m in (*CHAINS.values(), RELOADED, REST, APART)]


@pytest.mark.parametrize("mapping", [pytest.param(RELOAD, id=RELOAD.name), *SLOW])
def test_it_is_proved_for_every_size(mapping: TensorMapping) -> None:
    require_proved(mapping)


def test_a_chain_is_proved_at_a_shape() -> None:
    verdict = bmc.prove.prove(CHAINS["max x2"], (4, 16), data="uninterpreted")
    assert verdict.status is Status.PROVED, verdict.reason


def test_the_catalogue_has_every_chain() -> None:
    named = {name for name in mappings() if re.fullmatch(r"flexasr_(?!float_).*_x\d+", name)}
    assert named == {mapping.name for mapping in CHAINS.values()}


def test_strides_of_the_unit_are_right_where_the_program_configures_both_alike() -> None:
    mapping, other = chain_mapping("max", 3, FlexAsrOptions(reduce_stride="unit")), CHAINS["max x3"]
    x = codes(2, 48, 32)
    assert np.array_equal(ran(mapping, mapping.sizes_for((48, 32)), x), ran(other, other.sizes_for((48, 32)), x))


# -- what programs compute ----------------------------------------------------------------------------


def codes(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def ran(mapping: TensorMapping, sizes: dict[str, int], x: np.ndarray, tensor: str = "host_x") -> np.ndarray:
    """The output of a claim's device program on one host tensor."""
    host = {n: Memory(0) for n in mapping.device.tensors}
    host[tensor] = Memory(0, dict(enumerate(x.ravel().tolist())))
    run_fragment(mapping.device, sizes, host, Machine(mapping.device.ila))
    rows, columns = mapping.output_extents(sizes)
    output = mapping.output[0]
    return np.array([host[output][i] for i in range(rows * columns)], np.uint8).reshape(rows, columns)


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_as_many_programs_of_one_pooling(name: str) -> None:
    """Programs of the mapping of a single pooling, each on what the one before returned."""
    mapping, single = CHAINS[name], pooling_mapping(name.split()[0])
    x = codes(3, 48, 32)
    found = ran(mapping, mapping.sizes_for((48, 32)), x)
    for _ in range(int(name[-1])):
        x = ran(single, single.sizes_for(x.shape), x, "host_in")  # type: ignore[arg-type]
    assert np.array_equal(found, x) and len(np.unique(found)) > 16


def test_shapes_that_do_not_fit_are_refused() -> None:
    for mapping, shape, message in (
        (
            CHAINS["max x4"],
            (24, 16),
            "Rows of shape 24x16 of a chain of 4 FlexASR poolings must be a positive multiple of 16, not 24; pad the "
            "tensor, or pool fewer times",
        ),
        (
            CHAINS["max x2"],
            (4, 24),
            "Columns of shape 4x24 of a chain of 2 FlexASR poolings must be a positive multiple of 16, not 24; pad the "
            "tensor",
        ),
        (
            RELOAD,
            (65535, 32),
            "Tiles of shape 65535x32 of a matrix in FlexASR's large buffer must fit 65536 vectors, not 131072; split "
            "the tensor",
        ),
        (
            REST,
            (32, 16),
            "Rows of shape 32x16 of a matrix with unused rows in its tiles must be no multiple of 16, not 32: there is "
            "no rest; take another number of rows",
        ),
        (
            APART,
            (65535, 16),
            "Tiles of shape 65535x16 of a matrix in FlexASR's large buffer must leave a vector of 65536 free, not take "
            "65536; take a smaller one",
        ),
    ):
        with pytest.raises(SizeError) as error:
            mapping.sizes_for(shape)
        assert str(error.value) == message
