"""Programs that the public ILA-generated simulator has run: every word it read comes back.

``recorded_pe.json.gz`` holds the programs that use processing elements, Attention, or addresses at random; those of the
global buffer's other units stand beside the tests of these units.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from accel_models.flexasr.model import flexasr
from accel_models.flexasr.options import RECORDED_SIMULATOR, FlexAsrOptions
from ila_lang import CommandError
from tests.accel_models.flexasr.port import execute, recorded_programs

HARDWARE = FlexAsrOptions()
OLD_HARDWARE, OLD_SIMULATOR = (replace(o, saturation="pre2022") for o in (HARDWARE, RECORDED_SIMULATOR))
UNITS = ("linear", "act", "recurrent", "attention", "mem", "probes")
PROGRAMS = [program for unit in UNITS for program in recorded_programs(unit)]

# Tags of what hardware does otherwise.  Other tags name numerics, and what the program relies on.
DEPARTURES = {"bi_backward_index", "zero_pad_base_ignored", "control_input_base_ignored"}
# Programs of memory accesses without a tag: they use addresses that are no vector's (not a multiple of 16), which
# hardware takes as the vector's, or that nothing answers.
ADDRESSES = {"mem_000", "mem_002", "mem_004", "mem_006", "mem_010", "mem_014", "mem_016"}


def parameters(*, slow: int) -> list[Any]:
    """The programs; those of more than ``slow`` instructions in the simulator take longer than a quick test may."""
    marks = (pytest.mark.slow,)
    return [pytest.param(p, id=p["id"], marks=marks if p["ila_insns"] > slow else ()) for p in PROGRAMS]


@pytest.mark.parametrize("program", parameters(slow=5000))
def test_the_recorded_simulators_words(program: dict[str, Any]) -> None:
    assert execute(program, flexasr(RECORDED_SIMULATOR)) == (program["reads"], program["irq"])


@pytest.mark.parametrize("program", parameters(slow=5000))
def test_hardware_answers_alike_where_no_departure_is_known(program: dict[str, Any]) -> None:
    departs = bool(DEPARTURES & set(program["tags"])) or program["id"] in ADDRESSES
    try:
        answers = execute(program, flexasr()) == (program["reads"], program["irq"])
    except CommandError as error:
        assert "no register or buffer answers this command" in str(error)
        answers = False
    assert answers is not departs


@pytest.mark.parametrize("program", [p for p in parameters(slow=5000) if "reads_pre2022" in p.values[0]])
def test_words_with_the_older_saturation(program: dict[str, Any]) -> None:
    expected = (program["reads_pre2022"], program["irq"])
    assert program["reads_pre2022"] != program["reads"]
    assert execute(program, flexasr(OLD_SIMULATOR)) == expected
    if not DEPARTURES & set(program["tags"]):
        assert execute(program, flexasr(OLD_HARDWARE)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("program", [p for p in PROGRAMS if "reads_pre2022" not in p], ids=lambda p: p["id"])
def test_other_programs_do_not_see_the_older_saturation(program: dict[str, Any]) -> None:
    assert execute(program, flexasr(OLD_SIMULATOR)) == (program["reads"], program["irq"])


def test_there_are_recorded_programs_of_every_kind() -> None:
    assert {unit: len(recorded_programs(unit)) for unit in UNITS} == {
        "linear": 42, "act": 42, "recurrent": 16, "attention": 15, "mem": 10, "probes": 19
    }  # fmt: skip
    assert sum("reads_pre2022" in p for p in PROGRAMS) == 39
    assert sum(bool(DEPARTURES & set(p["tags"])) for p in PROGRAMS) == 9
