"""The search for counterexamples: its budget on any program, and names that stand for two things."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bmc.budget import CHUNK, MOST_WORDS, Budget, BudgetExceeded
from bmc.contents import Draw
from bmc.counterexample import placed, replays
from bmc.programs import write_program_file
from bmc.prove import prove
from bmc.runner import Outcome, Runner
from bmc.search import search
from ila_lang import Expr, Kernel, bv, const, mem, primitive, true, uninterpreted, var
from ila_lang.language.fragment import Fragment
from ila_lang.mapping import TensorMapping
from rewrites.claims.subjects.mapping import MappingSubject
from rewrites.claims.verify import verify
from smt_encodings.claims import Status
from tests.chc.mapping.toy import PARAMETERS, M, N, copy_body, go, mapping

ROOT = Path(__file__).parents[2]


def loops_for_as_long_as_a_register_says(write: bool) -> TensorMapping:
    """The register k is never set, so that it holds any of 2^32 values."""

    def device(kernel: Kernel, s: Mapping[str, Expr]) -> None:
        with kernel.loop("u", s["k"]) as u:
            kernel.store(s["tmp"], u if write else const(0, 32), const(1, 8))
        copy_body(kernel, s)

    return mapping(device, extra=[("k", 32)])


LIMITED = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
time.perf_counter = time.process_time
from bmc.search import search
from tests.bmc.test_search import loops_for_as_long_as_a_register_says
start = time.perf_counter()
assert search(loops_for_as_long_as_a_register_says(True), budget_seconds=2.0) is None
print(time.perf_counter() - start)
"""


def test_a_search_ends_in_time_and_memory_on_a_program_that_does_not_end() -> None:
    ran = subprocess.run([sys.executable, "-c", LIMITED], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 3.0


def test_a_search_ends_in_time_where_nothing_is_written() -> None:
    start = time.perf_counter()
    assert search(loops_for_as_long_as_a_register_says(False), budget_seconds=0.4) is None
    assert time.perf_counter() - start < 1.4


def test_loops_inside_of_loops_look_at_the_clock() -> None:
    budget = Budget(time.perf_counter() - 1, lambda: 0)
    with pytest.raises(BudgetExceeded, match=r"^the run takes longer than it may$"):
        for _ in range(CHUNK):
            list(budget.steps(3))
    words = Budget(time.perf_counter() + 60, lambda: MOST_WORDS + 1)
    with pytest.raises(BudgetExceeded, match=f"^the run holds more than {MOST_WORDS} words$"):
        next(iter(words.steps(1 << 40)))
    assert list(Budget(time.perf_counter() + 60, lambda: 0).steps(3 * CHUNK + 1)) == list(range(3 * CHUNK + 1))


def test_functions_without_a_body_cannot_be_run_and_are_proved_for_all_meanings() -> None:
    blur = uninterpreted("blur", bv(8), x=bv(8))
    twice = primitive(bv(8), x=bv(8), name="twice")(lambda x: blur(blur(x)))

    def applied(change: int) -> Callable[[Kernel, Mapping[str, Expr]], None]:
        def body(kernel: Kernel, s: Mapping[str, Expr]) -> None:
            with kernel.loop("i", s["n"]) as i, kernel.loop("j", s["m"]) as j:
                word = kernel.load("word", s["src"], i * s["m"] + j)
                kernel.store(s["dst"], i * s["m"] + j, blur(word + change) ^ twice(const(3, 8)))

        return body

    assert search(mapping(applied(0), applied(0)), budget_seconds=2.0) is None
    for data in ("auto", "bits"):
        verdict = prove(mapping(applied(0), applied(0)), (2, 2), data=data, search_seconds=1.0)
        assert verdict.status is Status.PROVED, (data, verdict.reason)
        verdict = prove(mapping(applied(0), applied(1)), (2, 2), data=data, search_seconds=1.0)
        assert verdict.status is Status.UNKNOWN, (data, verdict.reason)


# -- one name, two things --------------------------------------------------------------------------------


def rows_of_a_size(width: int, limit: Callable[[Mapping[str, Expr]], Expr]) -> TensorMapping:
    """The size k is n, and the program sets the register k to 1; ``limit`` is how many rows the device copies."""
    size = var("k", bv(width))

    def device(kernel: Kernel, s: Mapping[str, Expr]) -> None:
        with kernel.loop("u", limit(s).zext(32)) as u, kernel.loop("j", s["m"]) as j:
            kernel.store(s["dst"], u * s["m"] + j, kernel.load("word", s["src"], u * s["m"] + j))

    def program(kernel: Kernel, _: Mapping[str, Expr]) -> None:
        kernel.command("set k", run=true, op=const(3, 4), k_in=const(1, 8))
        go(kernel)

    parameters = {**PARAMETERS, "k": size}
    domain = (("1 <= n <= 5", (const(1, 16) <= N) & (N <= 5)), ("1 <= m <= 5", (const(1, 16) <= M) & (M <= 5)))
    claim = mapping(
        device,
        program=program,
        parameters=parameters,
        domain=(*domain, ("k = n", size.zext(16) == N)),
        extra=[("k", 8)],
    )
    return replace(claim, sizes_of=lambda rows, columns: {"n": rows, "m": columns, "k": rows})


@pytest.mark.parametrize("width", [8, 16])
def test_a_size_is_no_register_of_its_name(width: int) -> None:
    right = rows_of_a_size(width, lambda s: s["n"])
    assert search(right, budget_seconds=0.5) is None
    wrong = rows_of_a_size(width, lambda s: s["k"])
    found = search(wrong, budget_seconds=5.0)
    assert found is not None and replays(wrong, found) and found.sizes["n"] > 1


def sent(shared: bool, change: int = 0) -> TensorMapping:
    """The host sends its tensor, which the claim is about; the device adds ``change`` and its memory is read back.

    With ``shared`` the host's tensors have the names of the device's memories.
    """
    claim = mapping(None)
    old = claim.device
    source, target = (var(name if shared else f"host_{name}", mem(32, 8)) for name in ("src", "dst"))
    index = lambda i, j: i * M.zext(32) + j  # noqa: E731
    text = Kernel("send")
    with text.loop("i", N.zext(32)) as i, text.loop("j", M.zext(32)) as j:
        text.command("word", run=true, op=const(1, 4), address=index(i, j), data=source.load(index(i, j)) + change)
    with text.loop("u", N.zext(32)) as u, text.loop("v", M.zext(32)) as v:
        text.command("read", run=true, op=const(2, 4), address=index(u, v))
        text.store(target, index(u, v), old.ila.states["out"])
    device = Fragment(old.name, old.ila, old.parameters, {t.name: t for t in (source, target)}, text)
    return replace(claim, device=device, inputs=((source.name, "isrc"),), output=(target.name, "idst"))


@pytest.mark.parametrize("shared", [False, True])
def test_a_host_tensor_is_no_memory_of_its_name(shared: bool) -> None:
    assert search(sent(shared), budget_seconds=0.5) is None
    wrong = sent(shared, change=1)
    found = search(wrong, budget_seconds=5.0)
    assert found is not None and replays(wrong, found)


def test_the_search_finds_nothing_wrong_with_a_copy_in_the_devices_own_memories() -> None:
    assert search(mapping(), budget_seconds=0.5) is None


def test_a_memory_of_the_device_with_the_name_of_a_host_tensor_holds_contents_of_its_own() -> None:
    """Read back before anything was sent, the device's dst holds what it held, not what the host's dst holds."""
    claim = sent(True)
    text = Kernel("read only")
    with text.loop("i", N.zext(32)) as i, text.loop("j", M.zext(32)) as j:
        text.command("read", run=true, op=const(2, 4), address=i * M.zext(32) + j)
        text.store(claim.device.tensors["dst"], i * M.zext(32) + j, claim.device.ila.states["out"])
    wrong = replace(claim, device=replace(claim.device, program=text))
    found = search(wrong, budget_seconds=5.0)
    assert found is not None and replays(wrong, found)
    assert {cell.side for cell in found.initial} <= {"input", "device", "host"}


def with_a_tensor(paired: bool, ours: str = "w") -> TensorMapping:
    """Both hosts add a tensor of theirs to what the device holds, the IR's is called w; perhaps they are one input."""
    claim = mapping(None)

    def adding(old: Fragment, name: str, prefix: str) -> Fragment:
        tensor, states, text = var(name, mem(32, 8)), old.ila.states, Kernel("adding")
        with text.loop("i", N.zext(32)) as i, text.loop("j", M.zext(32)) as j:
            at = i * M.zext(32) + j
            text.store(states[f"{prefix}dst"], at, states[f"{prefix}src"].load(at) + tensor.load(at))
        return Fragment(old.name, old.ila, old.parameters, {name: tensor}, text)

    inputs = (*claim.inputs, (ours, "w")) if paired else claim.inputs
    return replace(claim, device=adding(claim.device, ours, ""), ir=adding(claim.ir, "w", "i"), inputs=inputs)


def test_tensors_of_one_name_that_are_not_paired_are_two() -> None:
    for right in (with_a_tensor(True), with_a_tensor(True, "v")):
        assert search(right, budget_seconds=0.5) is None
        for memory in ("resolved", "arrays"):
            assert prove(right, (2, 2), memory=memory, search_seconds=0).status is Status.PROVED  # type: ignore[arg-type]
    for ours, sides in (("w", {"device host", "ir host"}), ("v", {"host"})):
        wrong = with_a_tensor(False, ours)
        found = search(wrong, shapes=[(2, 2)], budget_seconds=5.0)
        assert found is not None and replays(wrong, found)
        assert found.initial and {cell.side for cell in found.initial} <= sides
        verdict = prove(wrong, (2, 2), search_seconds=4.0)
        assert verdict.status is Status.REFUTED, verdict.reason


def test_a_claim_that_takes_two_tensors_for_one_is_refuted_by_a_document_that_says_whose_they_are() -> None:
    wrong = with_a_tensor(False)
    verdict = verify(wrong, "chc")
    assert verdict.status is Status.REFUTED, verdict.reason
    subject = MappingSubject(wrong)
    told = subject.refutation(verdict)
    assert told is not None and subject.replayed(told.document) == told
    ((side, *cell),) = json.loads(told.document)["initial"]
    assert side in ("device host", "ir host") and cell[0] == "w"
    for other, where in ((("host", "w"), "host w[0]"), (("input", "w"), "input w[0]"), (("ir", "tmp"), "ir tmp[0]")):
        document = told.document.replace(f'"{side}","w"', f'"{other[0]}","{other[1]}"')
        message = f"^initial of a counterexample to toy must be of its own cells, not {re.escape(where)}$"
        with pytest.raises(ValueError, match=message):
            subject.replayed(document)


def test_a_program_file_has_what_a_tensor_that_is_no_input_held() -> None:
    claim = sent(False)
    old, extra = claim.device, var("w", mem(32, 8))
    source, target = old.tensors.values()
    text = Kernel("send")
    with text.loop("i", N.zext(32)) as i, text.loop("j", M.zext(32)) as j:
        at = i * M.zext(32) + j
        text.command("word", run=true, op=const(1, 4), address=at, data=source.load(at) + extra.load(at))
    with text.loop("u", N.zext(32)) as u, text.loop("v", M.zext(32)) as v:
        text.command("read", run=true, op=const(2, 4), address=u * M.zext(32) + v)
        text.store(target, u * M.zext(32) + v, old.ila.states["out"])
    device = Fragment(old.name, old.ila, old.parameters, {**old.tensors, "w": extra}, text)
    wrong = replace(claim, device=device, program_file=json.dumps)
    found = search(wrong, shapes=[(1, 1)], budget_seconds=5.0)
    assert found is not None and found.device != found.ir
    assert [c["data"] for c in json.loads(write_program_file(wrong, found)) if c["op"] == 1] == [found.device]


def test_a_counterexample_names_the_shape_that_its_sizes_belong_to() -> None:
    def device(kernel: Kernel, s: Mapping[str, Expr]) -> None:
        copy_body(kernel, s)
        with kernel.when("third", s["m"] == 3):
            kernel.store(s["dst"], const(0, 32), kernel.load("first", s["src"], const(0, 32)) + 1)

    one = replace(mapping(device), rows=const(1, 32), columns=const(1, 32))
    says = "output element (0, 0) is 0x1 on the device and 0x0 in the IR; 1 of 1 elements differ"
    even = replace(one, sizes_of=lambda rows, columns: {"n": rows, "m": 2 * columns})
    found = search(even)
    assert found is not None and found.shape is None
    assert found.summary() == f"sizes (n = 1, m = 3): {says}"
    found = search(replace(even, shape_parameters=frozenset({"n"})))
    assert found is not None and found.summary() == f"input 1x1 (n = 1, m = 3): {says}"
    names = ("rows", "inner", "columns")
    three = replace(one, sizes_of=lambda r, _, c: {"n": r, "m": c}, shape_names=names, sample_shapes=((1, 2, 3),))
    found = search(three)
    assert found is not None and replays(three, found)
    assert found.summary() == f"rows 1, inner 2, columns 3 (n = 1, m = 3): {says}"
    beside = replace(found, shape=(1, 2, 4))
    assert placed(three, beside).summary() == f"sizes (n = 1, m = 3): {says}"


# -- where to look ---------------------------------------------------------------------------------------


def test_registers_at_reset_are_tried_before_any_that_make_runs_long() -> None:
    """The number of rows is a register that is never set: at reset it is 0, and most values take 2^31 iterations."""

    def rows_of_a_register(kernel: Kernel, s: Mapping[str, Expr]) -> None:
        with kernel.loop("u", s["k"]) as u, kernel.loop("j", s["m"]) as j:
            kernel.store(s["dst"], u * s["m"] + j, kernel.load("word", s["src"], u * s["m"] + j))

    wrong = replace(mapping(rows_of_a_register, extra=[("k", 32)]), sample_shapes=((2, 2), (40, 60)))
    start = time.perf_counter()
    found = search(wrong, budget_seconds=2.0)
    assert found is not None and found.shape == (2, 2) and replays(wrong, found)
    assert not [cell for cell in found.initial if cell.side != "input"]
    assert time.perf_counter() - start < 1.0


def test_what_a_sample_shape_shows_is_found_by_a_slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its clock a run takes a second, so that the budget is over before the last shape."""

    def the_last_shape_is_wrong(kernel: Kernel, s: Mapping[str, Expr]) -> None:
        copy_body(kernel, s)
        with kernel.when("last", s["m"] == 7):
            kernel.store(s["dst"], const(0, 32), kernel.load("first", s["src"], const(0, 32)) + 1)

    now = 0.0
    run = Runner.run

    def slow(self: Runner, sizes: Mapping[str, int], draw: Draw) -> Outcome:
        nonlocal now
        now += 1.0
        return run(self, sizes, draw)

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    monkeypatch.setattr(Runner, "run", slow)
    wrong = replace(mapping(the_last_shape_is_wrong), sample_shapes=tuple((2, m) for m in range(1, 8)))
    found = search(wrong, budget_seconds=6.0)
    assert found is not None and found.shape == (2, 7) and replays(wrong, found)
    assert search(wrong, shapes=wrong.sample_shapes, budget_seconds=6.0) is None


def test_a_size_at_the_end_of_a_registers_range_is_tried() -> None:
    """The columns go to a register of 10 bits, and only 1024 of them do not fit."""

    def program(p: Kernel, _: Mapping[str, Expr]) -> None:
        p.command("go", run=true, op=const(0, 4), n_in=N.zext(32), m_in=M[9:0].zext(32))

    domain = (("1 <= n <= 5", (const(1, 16) <= N) & (N <= 5)), ("1 <= m <= 1024", (const(1, 16) <= M) & (M <= 1024)))
    wrong = replace(mapping(program=program, domain=domain, extra=[("k", 10)]), sample_shapes=((2, 3), (4, 5)))
    start = time.perf_counter()
    found = search(wrong, budget_seconds=2.0)
    assert found is not None and found.sizes == {"n": 1, "m": 1024} and replays(wrong, found)
    assert time.perf_counter() - start < 3.0
    assert search(wrong, shapes=[(2, 3), (4, 5)], budget_seconds=1.0) is None
