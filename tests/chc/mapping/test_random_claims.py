"""Random claims, and the evaluator that judges what is said of them."""

from __future__ import annotations

from random import Random

import pytest

from ila_lang import CommandError, Machine, const, run_fragment
from ila_lang.interpreter.compile import Memory
from ila_lang.mapping import TensorMapping
from smt_encodings.claims import Status
from tests.chc.mapping import random_campaign
from tests.chc.mapping.evaluator import Draw, TooLong, differs, drawn, outputs
from tests.chc.mapping.random_campaign import campaign
from tests.chc.mapping.random_claims import Claim, random_claim
from tests.chc.mapping.test_flow import flow
from tests.chc.mapping.toy import Body, copy_body, mapping


def interpreted(claim: TensorMapping, sizes: dict[str, int], draw: Draw) -> list[object]:
    """What the interpreter says, from the same contents."""
    rows, columns = claim.output_extents(sizes)
    results: list[object] = []
    for side, fragment, number in (("device", claim.device, 0), ("ir", claim.ir, 1)):
        machine = Machine(fragment.ila)
        inputs = {pair[number]: pair[0] for pair in claim.inputs}

        class Drawn(Memory):
            def __init__(self, owner: str, name: str, bits: int) -> None:
                super().__init__()
                self.cell = owner, name, bits

            def __missing__(self, address: int) -> int:
                owner, name, bits = self.cell
                return draw(owner, name, address, bits)

        for name, state in fragment.ila.states.items():
            if name in machine.values:
                machine.values[name] = draw(side, name, None, state.width)
            else:
                owner = ("input", inputs[name]) if name in inputs else (side, name)
                machine.memories[name] = Drawn(*owner, 8)
        try:
            run_fragment(fragment, sizes, {}, machine)
            memory = machine.memories[claim.output[number]]
            results.append([memory[a] for a in range(rows * columns)])
        except CommandError:
            results.append("refused")
    return results


@pytest.mark.parametrize("seed", range(30))
def test_the_evaluator_and_the_interpreter_agree(seed: int) -> None:
    claim = random_claim(Random(seed)).mapping
    for values in ((1, 1), (2, 3), (3, 2)):
        sizes = dict(zip(claim.parameters, values, strict=True))
        try:
            found = outputs(claim, sizes, drawn(seed))
        except TooLong:
            continue
        assert ["refused" if isinstance(f, str) else f for f in found] == interpreted(claim, sizes, drawn(seed))


def test_no_verdict_on_random_claims_is_wrong() -> None:
    found = campaign(5, seed=3, clash=False, report=0)
    assert not found.wrong, found.table()
    assert 0 < found.mutated < found.claims
    assert found.verdicts["chc", "PROVED"] and found.verdicts["bmc", "PROVED"]


def test_names_that_clash_do_not_make_a_verdict_wrong() -> None:
    found = campaign(4, seed=4, report=0)
    assert not found.wrong, found.table()


@pytest.mark.slow
@pytest.mark.parametrize("clash", [False, True])
def test_a_campaign(clash: bool) -> None:
    found = campaign(150, seed=5, clash=clash, report=0)
    assert not found.wrong, found.table()


def test_a_wrong_verdict_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign's own check: a prover that takes every claim for proved."""

    def off_by_one() -> Body:
        def body(k, s):  # type: ignore[no-untyped-def]
            with k.loop("i", s["n"]) as i, k.loop("j", s["m"]) as j:
                k.store(s["dst"], i * s["m"] + j, k.load("word", s["src"], i * s["m"] + j) + const(1, 8))

        return body

    false = flow(mapping(off_by_one(), copy_body))
    assert differs(false, {"n": 1, "m": 1}) and not differs(flow(mapping()), {"n": 3, "m": 2})
    right = random_campaign.prove(flow(mapping()))
    assert right.status is Status.PROVED
    monkeypatch.setattr(random_campaign, "prove", lambda *_, **__: right)
    monkeypatch.setattr(random_campaign, "random_claim", lambda *_, **__: Claim(false, ("off by one",), "a change"))
    (wrong,) = campaign(1, seed=0, every=2, report=0).wrong[:1]
    assert "PROVED, and differs at {'n': 1, 'm': 1}" in wrong
