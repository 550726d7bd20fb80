"""Sizes at which programs are tried: drawn from the domain, whatever the samples of a mapping's author are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from chc.mapping.program.schedule import schedule_of
from chc.mapping.sampling.samples import Sampler, Samples
from chc.mapping.sampling.sizes import MOST_DRAWN, MOST_IN_CASES, MOST_STEPS, MOST_WORK, Tried
from ila_lang import const
from ila_lang.mapping import TensorMapping
from tests.chc.mapping.library_gemm import K, M, claim
from tests.chc.mapping.test_library_gemm import PATTERNS


def gemm(least: int = 1) -> TensorMapping:
    return claim(partial(PATTERNS["overwrites first by choice"][0], fault=""), least=least)


def executed(mapping: TensorMapping) -> Tried:
    tried = Tried.of(mapping)
    tried.samplers = [Sampler(schedule_of(side, tried.points)) for side in (mapping.device, mapping.ir)]
    return tried


def test_each_size_goes_up_from_the_smallest_beside_different_others() -> None:
    tried = executed(gemm())
    assert tried.own == [(1, 1, 1)]
    rows = tried.quick()
    assert len(rows) <= 1 + MOST_DRAWN and all(tried.mapping.holds(p) for p in tried.points)
    for column, others in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        assert set(range(1, MOST_STEPS + 1)) <= {row[column] for row in rows}
        assert len({row[column] for row in rows if row[column] != row[others[0]] != row[others[1]]}) > 3


def test_steps_are_those_of_the_domain() -> None:
    mapping = gemm()
    sixteen = ("k mod 16 = 0", (K & 15) == 0), ("k >= 32", K >= 32)
    mapping = replace(mapping, domain=(*mapping.domain, *sixteen), sample_shapes=((3, 1, 48),))
    rows = [tuple(point.values()) for point in Tried.of(mapping).points]
    assert {32 + 16 * k for k in range(MOST_STEPS)} <= {k for _, _, k in rows}


def test_literals_of_a_program_are_tried_with_their_neighbours() -> None:
    mapping = gemm()
    domain = (*mapping.domain, ("k < 41 or m = 1", (K < 41) | (M == 1)))
    assert {40, 41, 42} <= {p["k"] for p in Tried.of(replace(mapping, domain=domain)).points}


def test_what_takes_long_is_made_smaller() -> None:
    tried = executed(gemm())
    parameters = tuple(tried.mapping.parameters.values())
    long = [row for row in tried.drawn if row not in tried.quick()]
    assert long, "some of what is drawn takes long"
    sizes, spare = tried.recombined()
    for row in (*tried.quick(), *sizes, *spare):
        assert all(sampler.takes(parameters, row, MOST_WORK) for sampler in tried.samplers)
    assert len(sizes) <= len(tried.quick()) + MOST_IN_CASES


def test_a_case_that_few_sizes_are_in_takes_spare_ones() -> None:
    tried = executed(gemm())
    parameters = tuple(tried.mapping.parameters.values())
    sizes, spare = tried.recombined()
    samples = Samples(parameters, (), tuple(sizes))
    case = (M == 2) & (K[0:0] == 1) & ~(K == 1)
    few, more = samples.where(case), replace(samples, spare=Samples(parameters, (), tuple(spare))).where(case)
    assert set(few.rows) < set(more.rows)
    assert {1, 2, 4} <= {n for _, n, _ in more.rows}
    assert all(m == 2 and k in range(3, 100, 2) for m, _, k in more.rows)


def test_a_domain_of_one_point_has_one_size() -> None:
    mapping = gemm()
    one = tuple((f"{n} = 2", v == const(2, 32)) for n, v in mapping.parameters.items())
    tried = Tried.of(replace(mapping, domain=one, sample_shapes=((2, 2, 2),)))
    assert tried.points == [{"m": 2, "n": 2, "k": 2}]
