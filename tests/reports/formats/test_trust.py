"""The trust report: the golden one of the catalogue, and that what a theorem rests on appears in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chc.mapping.prove import claim_of
from ila_lang import Kernel, Let, bv, const, uninterpreted, var
from ila_lang.mapping import Lemma, TensorMapping
from ila_lang.text.portable import functions_of
from ilaverify.catalogue import all_entries
from reports.formats.trust import trust_entry, trust_report
from rewrites.mappings.flexasr.pooling import pooling_mapping
from smt_encodings.claims import Status

GOLDEN = Path(__file__).parent / "trust_golden.txt"


def report() -> str:
    """The report of all theorems but rules on scalars: their proofs find assumptions (docs/reference/rules.md)."""
    found = {}
    for name, entry in all_entries().items():
        subject = entry.build()
        if subject.method != "rule" and (entry.kind == "mapping" or entry.expected is Status.PROVED):
            found[name] = subject.trust(subject.words())
    return trust_report(found)


def test_the_golden_report() -> None:
    """A difference means that a theorem rests on something else now: look at it, then write the file again."""
    assert report() == GOLDEN.read_text(encoding="utf-8"), (
        "what the theorems rest on has changed; if that is meant: python -m tests.reports.formats.test_trust"
    )


def added(before: TensorMapping, after: TensorMapping) -> set[str]:
    return set(trust_entry(after).splitlines()) - set(trust_entry(before).splitlines())


def test_a_new_assumption_is_a_new_line() -> None:
    mapping = pooling_mapping("max")
    more = replace(mapping, assumptions=(*mapping.assumptions, "the moon is full"))
    assert added(mapping, more) == {"  assumption     the moon is full"}
    assert "  assumption     none" in trust_entry(replace(mapping, assumptions=()))


def test_what_is_compared_is_told() -> None:
    """A claim about fewer rows, or about the inputs, is true of less, and reads so."""
    mapping = pooling_mapping("max")
    assert claim_of(mapping).compared == (
        "host_out of flexasr = tensor_out of ir, floor(T/2) rows of 16*nv; given host_in = tensor_in"
    )
    (less,) = added(mapping, replace(mapping, rows=const(1, 32)))
    assert less.startswith("  compared       host_out of flexasr = tensor_out of ir, 1 row of 16*nv;")
    (other,) = added(mapping, replace(mapping, output=("host_in", "tensor_in"), inputs=()))
    assert other == "  compared       host_in of flexasr = tensor_in of ir, floor(T/2) rows of 16*nv"


def test_lemmas_abstract_functions_and_domains_are_told() -> None:
    mapping = pooling_mapping("max")
    left = mapping.lemmas[0].left
    more = replace(mapping, lemmas=(*mapping.lemmas, Lemma("strange", left, left)))
    assert added(mapping, more) == {f"  lemma          strange: {left!r} = {left!r}"}
    concrete = next(f.name for f in functions_of(mapping.ir) if f.name not in mapping.abstract)
    assert added(mapping, replace(mapping, abstract=mapping.abstract | {concrete})) == {f"  abstract       {concrete}"}
    assert added(mapping, replace(mapping, domain=(*mapping.domain, ("T small", mapping.domain[0][1])))) == {
        "  domain         T is a multiple of 2 (T small)"
    }
    assert added(mapping, replace(mapping, statement="other")) == {"  claim          other"}


def test_state_known_at_the_start_is_told() -> None:
    mapping = pooling_mapping("max")
    state = next(iter(mapping.device.ila.states))
    device = replace(mapping.device, idle={**mapping.device.idle, state: 5})
    assert added(mapping, replace(mapping, device=device)) == {f"  start          device: {state} = 0x5"}


def test_an_uninterpreted_function_is_told() -> None:
    mapping = pooling_mapping("max")
    assert "  uninterpreted  none" in trust_entry(mapping)
    mystery = uninterpreted("mystery", bv(8), code=bv(8))
    program = mapping.device.program
    more = Let(var("riddle", bv(8)), mystery(const(0, 8)))
    device = replace(mapping.device, program=Kernel(program.name, body=[*program.body, more]))
    assert added(mapping, replace(mapping, device=device)) == {"  uninterpreted  mystery"}


def test_entries_are_in_the_order_of_names() -> None:
    report = trust_report({"b": "b\n  x\n", "a": "a\n  y\n"})
    assert report.endswith("\n\na\n  y\n\nb\n  x\n")


if __name__ == "__main__":
    GOLDEN.write_text(report(), encoding="utf-8")
