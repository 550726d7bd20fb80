"""Units of FlexASR's global buffer: proved for every size and at a shape, and faults of which none is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import bmc.prove
import chc.mapping.prove
from accel_models.flexasr.layout import Region, Start
from accel_models.flexasr.options import FlexAsrOptions
from accel_models.flexasr.units.layer_norm import BETA, GAMMA
from ila_lang import Expr, Fragment, Kernel, Machine, const, run_fragment
from ila_lang.interpreter.compile import Memory
from ila_lang.mapping import SizeError, TensorMapping
from rewrites.mappings.flexasr import attention as flexasr_attention
from rewrites.mappings.flexasr import layer_norm as flexasr_layer_norm
from rewrites.mappings.flexasr.attention import attention_mapping
from rewrites.mappings.flexasr.buffers import ENTRY, NV, T, UnitProgram
from rewrites.mappings.flexasr.layer_norm import layer_norm_mapping
from rewrites.mappings.flexasr.padding import P, padding_mapping
from smt_encodings.claims import Status
from tests.rewrites.mappings.mapping_checks import fault_tests, require_proved

PAD, NORM, ATTENTION = padding_mapping(), layer_norm_mapping(), attention_mapping()
MASKED = attention_mapping(masked=True)


def with_program(mapping: TensorMapping, emit: Callable[[UnitProgram], None]) -> TensorMapping:
    """The mapping with another device program."""
    program, device = Kernel(mapping.device.name), mapping.device
    emit(UnitProgram(program, device.ila, ENTRY))
    return replace(mapping, device=Fragment(device.name, device.ila, device.parameters, device.tensors, program))


def padding_program(
    *,
    first: Expr = T,
    end: Expr = P,
    vectors: Expr = NV,
    stored: Expr = T,
    loaded: Expr = P,
    starts: bool = True,
    late: bool = False,
    entry: Expr = ENTRY,
) -> TensorMapping:
    """The program of padding with another operand somewhere."""

    def emit(host: UnitProgram) -> None:
        if not late:
            host.large_manager(NV)
        fields = {
            "memory_index_1": entry[2:0],
            "num_vector_1": vectors[7:0],
            "num_timestep_1": first[15:0],
            "num_timestep_2": end[15:0],
        }
        host.unit("ZeroPadding", Region.ZERO_PADDING, **fields)
        host.store_matrix(stored)
        if starts:
            host.start("ZeroPadding", Start.ZERO_PADDING)
        if late:
            host.large_manager(NV)
        host.load_matrix(loaded)

    return with_program(PAD, emit)


def norm_program(
    *,
    timesteps: Expr = T,
    bias: str = "bias_x",
    bias_beta: str = "bias_beta",
    swapped: bool = False,
    twice: bool = False,
    late: bool = False,
    beta: bool = True,
    vectors: Expr = NV,
    entry: Expr = ENTRY,
) -> TensorMapping:
    """The program of layer normalisation with another operand somewhere."""
    m = flexasr_layer_norm

    def emit(host: UnitProgram) -> None:
        host.large_manager()
        entries = (BETA, GAMMA) if swapped else (GAMMA, BETA)
        host.small_manager(dict(zip(entries, (m.BASE_GAMMA, m.BASE_BETA), strict=True)))
        host.unit(
            "LayerNorm",
            Region.LAYER_NORM,
            memory_index_1=entry[2:0],
            num_vector_1=vectors[7:0],
            num_timestep_1=timesteps[15:0],
            adpbias_1=m.BIASES[bias][2:0],
            adpbias_3=m.BIASES[bias_beta][2:0],
            adpbias_4=m.BIASES["bias_gamma"][2:0],
        )
        host.store_row("gamma", m.HOST_GAMMA, m.BASE_GAMMA)
        if beta and not late:
            host.store_row("beta", m.HOST_BETA, m.BASE_BETA)
        host.store_matrix(T)
        for _ in range(2 if twice else 1):
            host.start("LayerNorm", Start.LAYER_NORM)
        if late:
            host.store_row("beta", m.HOST_BETA, m.BASE_BETA)
        host.load_matrix(T)

    return with_program(NORM, emit)


def attention_program(
    *,
    timesteps: Expr = T,
    biases: tuple[str, str, str, str] = ("bias_x", "bias_query", "bias_weights", "bias_y"),
    stored: Expr = flexasr_attention.ROWS,
    query: bool = True,
    late: bool = False,
    twice: bool = False,
    vectors: Expr = NV,
    shift: int = 0,
    entries: tuple[Expr, Expr] = (ENTRY, flexasr_attention.ENTRY_QUERY),
    valid: Expr | None = None,
) -> TensorMapping:
    """The program of attention, masked where rows are ``valid``, with another operand somewhere."""
    m = flexasr_attention

    def emit(host: UnitProgram) -> None:
        host.large_manager()
        host.small_manager(m.small_entries())
        fields = {f"adpbias_{i}": m.BIASES[n][2:0] for i, n in enumerate(biases, 1)}
        fields |= {f"memory_index_{i}": e[2:0] for i, e in enumerate(entries, 1)}
        host.unit("Attention", Region.ATTENTION, num_vector_1=vectors[7:0], num_timestep_1=timesteps[15:0], **fields)
        host.store_matrix(stored, valid=valid)
        if query and not late:
            host.store_row("query", m.HOST_QUERY, m.BASE_QUERY)
        for _ in range(2 if twice else 1):
            host.start("Attention", Start.ATTENTION)
        if late:
            host.store_row("query", m.HOST_QUERY, m.BASE_QUERY)
        host.load_row(m.BASE_QUERY + shift)

    return with_program(ATTENTION if valid is None else MASKED, emit)


def without(mapping: TensorMapping, text: str, **sizes: int) -> TensorMapping:
    """The mapping on a larger domain; ``sizes`` are outside of the old one."""
    domain = tuple(c for c in mapping.domain if c[0] != text)
    assert len(domain) == len(mapping.domain) - 1
    return replace(mapping, domain=domain, sizes_of=lambda *shape: mapping.sizes_of(*shape) | sizes)


def too_many_rows() -> TensorMapping:
    """Attention over more rows than the unit can number scores of."""
    domain = tuple(("T <= 65535", T <= 65535) if c[0] == "1 <= T <= 1024" else c for c in ATTENTION.domain)
    sizes = {"T": 1040, "nv": 1, "base": 0, "entry": 0, "base_query": 0, "entry_query": 0, "base_scores": 1}
    biases = dict.fromkeys(flexasr_attention.BIASES, 3)
    return replace(ATTENTION, domain=domain, sizes_of=lambda *shape: sizes | biases, sample_shapes=((1, 16),))


ONE = const(1, 32)
FAULTS: dict[str, Callable[[], TensorMapping]] = {
    "zeropad: the matrix at address 0": lambda: padding_mapping(FlexAsrOptions(padding_base="zero")),
    "zeropad: vectors with accumulated offsets": lambda: padding_mapping(FlexAsrOptions(padding_vectors="accumulated")),
    "zeropad: one row too few": lambda: padding_program(first=T + 1),
    "zeropad: the last row is left": lambda: padding_program(end=P - 1),
    "zeropad: one row too many": lambda: padding_program(first=T - 1),
    "zeropad: the first vector only": lambda: padding_program(vectors=ONE),
    "zeropad: not started": lambda: padding_program(starts=False),
    "zeropad: the manager is configured after the start": lambda: padding_program(late=True),
    "zeropad: the last given row is not stored": lambda: padding_program(stored=T - 1),
    "zeropad: the matrix at entry 0": lambda: padding_program(entry=const(0, 32)),
    "zeropad: the next entry": lambda: padding_program(entry=ENTRY + 1),
    "zeropad: one row is not loaded": lambda: padding_program(loaded=P - 1),
    "layernorm: saturation as before 2022": lambda: layer_norm_mapping(FlexAsrOptions(saturation="pre2022")),
    "layernorm: another AdaptivFloat bias": lambda: norm_program(bias="bias_gamma"),
    "layernorm: beta has the input's AdaptivFloat bias": lambda: norm_program(bias_beta="bias_x"),
    "layernorm: gamma and beta exchanged": lambda: norm_program(swapped=True),
    "layernorm: the last row is left": lambda: norm_program(timesteps=T - 1),
    "layernorm: done twice": lambda: norm_program(twice=True),
    "layernorm: beta is stored after the start": lambda: norm_program(late=True),
    "layernorm: beta is what was there": lambda: norm_program(beta=False),
    "layernorm: the first vector only": lambda: norm_program(vectors=ONE),
    "layernorm: beta overwrites gamma": lambda: without(
        NORM, "base_gamma + nv <= base_beta or base_beta + nv <= base_gamma", base_beta=0
    ),
    "layernorm: the matrix at entry 0": lambda: norm_program(entry=const(0, 32)),
    "layernorm: the entry's last bit alone": lambda: norm_program(entry=ENTRY & 1),
    "attention: saturation as before 2022": lambda: attention_mapping(FlexAsrOptions(saturation="pre2022")),
    "attention: rows of the last tile are not stored": lambda: attention_program(stored=T),
    "attention: a tile of rows too few": lambda: attention_program(timesteps=((T - 1) >> 4) << 4),
    "attention: the query has another AdaptivFloat bias": lambda: attention_program(
        biases=("bias_x", "bias_x", "bias_weights", "bias_y")
    ),
    "attention: the result has another AdaptivFloat bias": lambda: attention_program(
        biases=("bias_x", "bias_query", "bias_weights", "bias_query")
    ),
    "attention: the query is what was there": lambda: attention_program(query=False),
    "attention: the query is stored after the start": lambda: attention_program(late=True),
    "attention: done twice": lambda: attention_program(twice=True),
    "attention: the first vector only": lambda: attention_program(vectors=ONE),
    "attention: the result is loaded from the next vector": lambda: attention_program(shift=1),
    "attention: scores overwrite the query": lambda: without(
        ATTENTION, "base_query + nv <= base_scores or base_scores + 4*ceil(T/16) <= base_query", base_scores=0
    ),
    "attention: the matrix at entry 0": lambda: attention_program(
        entries=(const(0, 32), flexasr_attention.ENTRY_QUERY)
    ),
    "attention: the query at entry 0": lambda: attention_program(entries=(ENTRY, const(0, 32))),
    "attention: both entries are one": lambda: attention_program(entries=(ENTRY, ENTRY)),
    "attention: the query may have the entry of the scores": lambda: without(
        ATTENTION, "entry_query <= 6", entry_query=7
    ),
    "attention: too many rows": lambda: too_many_rows(),
    "masked attention: no row is hidden": lambda: attention_program(valid=flexasr_attention.ROWS),
    "masked attention: a row too many counts": lambda: attention_program(valid=T + 1),
    "masked attention: the last row is hidden": lambda: attention_program(valid=T - 1),
    "masked attention: hidden rows are what was there": lambda: attention_program(stored=T, valid=T),
    "masked attention: a tile of rows too few": lambda: attention_program(timesteps=((T - 1) >> 4) << 4, valid=T),
    "masked attention: the query is what was there": lambda: attention_program(query=False, valid=T),
    "masked attention: done twice": lambda: attention_program(twice=True, valid=T),
}
QUICK = ("zeropad: the matrix at address 0", "zeropad: the last row is left", "layernorm: gamma and beta exchanged")


test_a_fault_is_refuted_by_a_run_that_replays, test_a_fault_is_not_proved_for_every_size = fault_tests(FAULTS, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mapping",
    [
        padding_mapping(FlexAsrOptions(padding_stride="unit")),
        layer_norm_mapping(FlexAsrOptions(norm_stride="unit")),
        attention_mapping(FlexAsrOptions(attention_stride="unit")),
    ],
    ids=["zeropad", "layernorm", "attention"],
)
def test_strides_of_the_unit_are_right_where_the_program_configures_both_alike(mapping: TensorMapping) -> None:
    verdict = chc.mapping.prove.prove(mapping)
    assert verdict.status is Status.PROVED, verdict.reason


SLOW_PROOFS = [pytest.param(m, marks=pytest.mark.slow, id=m.name) for m in (NORM, ATTENTION, MASKED)]


@pytest.mark.parametrize("mapping", [pytest.param(PAD, id=PAD.name), *SLOW_PROOFS])
def test_it_is_proved_for_every_size(mapping: TensorMapping) -> None:
    require_proved(mapping)


@pytest.mark.parametrize(
    "mapping,shape",
    [
        (PAD, (3, 32, 18)),
        (PAD, (15, 48, 17)),
        pytest.param(NORM, (2, 32), marks=pytest.mark.slow),
        pytest.param(ATTENTION, (1, 16), marks=pytest.mark.slow),
        pytest.param(ATTENTION, (17, 32), marks=pytest.mark.slow),
    ],
)
def test_it_is_proved_at_a_shape(mapping: TensorMapping, shape: tuple[int, ...]) -> None:
    verdict = bmc.prove.prove(mapping, shape, data="uninterpreted")
    assert verdict.status is Status.PROVED, verdict.reason


def test_shapes_that_do_not_fit_are_refused() -> None:
    for mapping, shape, message in (
        (
            PAD,
            (3, 16, 3),
            "Rows of shape 3x16x3 of a FlexASR zero-padding mapping must be 1 or more, and fewer than those of the "
            "result, not 3 of 3: the unit clears at least one; use no accelerator where nothing is appended",
        ),
        (
            PAD,
            (3, 17, 4),
            "Columns of shape 3x17x4 of a FlexASR zero-padding mapping must be a positive multiple of 16, not 17; pad "
            "the tensor",
        ),
        (
            NORM,
            (70000, 16),
            "Rows of shape 70000x16 of a FlexASR layer-norm mapping must be 1 to 65535 (a 16-bit register), not 70000",
        ),
        (
            NORM,
            (1, 4096),
            "Columns of shape 1x4096 of a FlexASR layer-norm mapping must be at most 4080 (255 vectors, an 8-bit "
            "register), not 4096",
        ),
        (
            NORM,
            (65535, 32),
            "Tiles of shape 65535x32 of a FlexASR layer-norm mapping must fit 65536 vectors, not 131072; split the "
            "tensor",
        ),
        (
            ATTENTION,
            (1025, 16),
            "Rows of shape 1025x16 of a FlexASR attention mapping must be at most 1024, not 1025; shorten the sequence",
        ),
    ):
        with pytest.raises(SizeError) as error:
            mapping.sizes_for(shape)
        assert str(error.value) == message


# -- a run -----------------------------------------------------------------------------------------------


def ran(mapping: TensorMapping, sizes: dict[str, int], data: dict[str, np.ndarray]) -> np.ndarray:
    """The output of a claim's device program on host tensors."""
    words = {n: dict(enumerate(t.ravel().tolist())) for n, t in data.items()}
    host = {n: Memory(0, words.get(n, {})) for n in mapping.device.tensors}
    run_fragment(mapping.device, sizes, host, Machine(mapping.device.ila))
    rows, columns = mapping.output_extents(sizes)
    return np.array([host["host_y"][i] for i in range(rows * columns)], np.uint8).reshape(rows, columns)


def codes(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def test_masked_attention_is_that_of_the_rows_that_count() -> None:
    x, query = codes(4, 16, 32), codes(5, 32)
    sizes = MASKED.sizes_for((5, 32))
    rest = np.vstack([x[:5], np.zeros((11, 32), np.uint8)])
    found = ran(MASKED, sizes, {"host_x": x, "host_query": query})
    assert np.array_equal(found, ran(ATTENTION, sizes, {"host_x": rest, "host_query": query}))
    assert not np.array_equal(found, ran(ATTENTION, sizes, {"host_x": x, "host_query": query}))


def test_padding_is_that_of_numpy() -> None:
    x = codes(1, 5, 48)
    found = ran(PAD, PAD.sizes_for((5, 48, 19)), {"host_x": x})
    assert np.array_equal(found, np.vstack([x, np.zeros((14, 48), np.uint8)]))
