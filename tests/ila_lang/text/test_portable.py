"""JSON exchange: round trips, digests, and what is refused where."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import ila_lang as il
from ila_lang import BOOL, Ila, Kernel, PortableError, bv, const
from ila_lang.text import portable
from ila_lang.text.portable import functions_of
from ila_lang.text.portable_read import result_sort
from tests.ila_lang.language.test_models import small, store_and_load
from tests.ila_lang.oracle import Raw, build_raw, kernels, mix, raw_any

ROOT = Path(__file__).parents[3]


@given(raw_any())
@settings(max_examples=200)
def test_every_operator_keeps_its_sort_and_identity(raw: Raw) -> None:
    term = build_raw(raw)
    kernel = Kernel("k", on_done={"out": term})
    document = json.loads(il.canonical_text(il.kernel_to_json(kernel)))
    assert il.kernel_from_json(document).on_done["out"] is term
    for node in il.postorder([term]):
        if node.args:
            assert result_sort(node.op, [a.sort for a in node.args], [int(p) for p in node.params]) == node.sort


@given(kernels())
@settings(max_examples=60)
def test_kernels_round_trip(kernel: Kernel) -> None:
    document = il.kernel_to_json(kernel)
    back = il.kernel_from_json(json.loads(json.dumps(document)))
    assert il.show_kernel(back) == il.show_kernel(kernel)
    assert il.kernel_to_json(back) == document
    assert il.digest(back) == il.digest(kernel)


def test_models_round_trip() -> None:
    ila = small()
    flag = ila.state("flag", BOOL, init=1)
    ila.state("wide", 100, init=1 << 99)
    kernel = Kernel("second")
    kernel.let("mixed", mix(ila.states["a"][3:0], mix(const(2, 4), ila.inputs["arg"][3:0] & 0)))
    ila.instruction("more").set_decode(ila.inputs["op"] == 8).update(flag, ~flag).start(kernel, flag)
    document = il.ila_to_json(ila)
    back = il.ila_from_json(json.loads(json.dumps(document)))
    assert il.ila_to_json(back) == document
    assert il.show_ila(back) == il.show_ila(ila)
    assert back.inits == ila.inits and back.states == ila.states
    assert il.digest(back) == il.digest(ila)
    child = il.child_ila(ila, "run")
    assert il.ila_to_json(il.ila_from_json(il.ila_to_json(child))) == il.ila_to_json(child)


def test_fragments_round_trip() -> None:
    fragment = store_and_load()
    fragment.idle = {"b": 3}
    document = il.fragment_to_json(fragment)
    back = il.fragment_from_json(json.loads(json.dumps(document)))
    assert il.fragment_to_json(back) == document
    assert il.digest(back) == il.digest(fragment)
    assert back.idle == {"b": 3} and back.parameters == fragment.parameters


def test_functions_round_trip() -> None:
    unknown = il.uninterpreted("g", bv(4), a=bv(4))
    outer = il.primitive(a=bv(4), name="outer")(lambda a: mix(unknown(a), a))
    document = il.function_to_json(outer)
    assert [f["n"] for f in document["f"]] == ["g", "mix", "outer"]
    back = il.function_from_json(document)
    assert il.function_to_json(back) == document
    assert il.digest(back) == il.digest(outer)
    assert il.function_from_json(il.function_to_json(mix)).doc == mix.doc


def test_a_document() -> None:
    double = il.primitive(a=bv(4), name="double")(lambda a: a + a)
    assert il.canonical_text(il.function_to_json(double)) == (
        '{"a":[{"n":"double.a","s":{"u":2,"w":4},"u":1},{"a":[0,0],"o":"bvadd","s":{"u":2,"w":4},"u":3}],'
        '"f":[{"b":1,"n":"double","p":[{"n":"a","s":{"u":2,"w":4}}],"r":{"u":2,"w":4}}],"t":0}'
    )


def _digest_anew(ila: Ila) -> str:
    portable._WRITTEN.clear()
    return il.digest(ila)


def _change_function(ila: Ila) -> None:
    (application,) = (n for n in il.postorder([ila.instructions["doubled"].updates["a"]]) if n.func is not None)
    assert application.func is not None and application.func.body is None
    application.func.body = application.func.params[0] + application.func.params[0]


def _grow_kernel(ila: Ila) -> None:
    ila.kernels["fill"].body.append(ila.kernels["fill"].body[0])


CHANGES: dict[str, Callable[[Ila], object]] = {
    "name": lambda ila: setattr(ila, "name", "other"),
    "input": lambda ila: ila.input("more", 3),
    "state": lambda ila: ila.state("more", 3),
    "reset": lambda ila: ila.inits.update(a=2),
    "reset of another state": lambda ila: ila.inits.update(b=1),
    "no reset": lambda ila: ila.inits.pop("a"),
    "valid": lambda ila: ila.set_valid(ila.inputs["op"] == 1),
    "instruction": lambda ila: ila.instruction("more"),
    "order": lambda ila: ila.instructions.update(swap=ila.instructions.pop("swap")),
    "instruction's name": lambda ila: setattr(ila.instructions["swap"], "name", "other"),
    "decode": lambda ila: ila.instructions["swap"].set_decode(ila.inputs["op"] == 9),
    "update": lambda ila: ila.instructions["swap"].updates.update(a=ila.states["b"] + 1),
    "updates": lambda ila: ila.instructions["swap"].updates.pop("a"),
    "reserved": lambda ila: setattr(ila.instructions["swap"], "reserved", "why"),
    "kernel": _grow_kernel,
    "kernel's name": lambda ila: setattr(ila.kernels["fill"], "name", "other"),
    "end of the kernel": lambda ila: ila.kernels["fill"].on_done.clear(),
    "no kernel": lambda ila: [setattr(i, "kernel", None) for i in ila.instructions.values()],
    "body of a function": _change_function,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_digest_sees_what_changed_in_a_model_that_had_one(change: Callable[[Ila], object]) -> None:
    ila = small()
    doubled = il.uninterpreted("doubled", ila.states["a"].sort, a=ila.states["a"].sort)
    ila.instruction("doubled").set_decode(ila.inputs["op"] == 11).update(ila.states["a"], doubled(ila.states["a"]))
    before = il.digest(ila)
    assert il.digest(ila) == before == _digest_anew(ila)
    change(ila)
    after = il.digest(ila)
    assert after == _digest_anew(ila)
    assert after != before


def test_documents_are_the_callers_own() -> None:
    fragment = store_and_load()
    before = il.digest(fragment)
    for document in (il.fragment_to_json(fragment), il.fragment_to_json(fragment)):
        document["a"].clear()
        document["t"]["l"].clear()
    assert il.digest(fragment) == before
    assert il.fragment_to_json(fragment)["t"]["l"]["n"] == fragment.ila.name


def test_functions_of_a_fragment() -> None:
    ila = small()
    inner = il.Function("inner", {"x": bv(8)}, bv(8), None)
    outer = il.Function("outer", {"x": bv(8)}, bv(8), None)
    outer.body = inner(outer.params[0]) + 1
    ila.instruction("more").set_decode(ila.inputs["op"] == 11).update(ila.states["a"], outer(ila.states["a"]))
    program = Kernel("program")
    program.command("more", op=const(11, 4), arg=il.Function("of_program", {"x": bv(8)}, bv(8), None)(const(1, 8)))
    fragment = il.Fragment("f", ila, {}, {}, program)
    names = {f.name for f in functions_of(fragment)}
    assert names == {"inner", "outer", "of_program"} == {f["n"] for f in il.fragment_to_json(fragment)["f"]}
    assert {f.name for f in functions_of(fragment)} == names


def test_digests_see_meaning_and_not_documentation() -> None:
    plain = small()
    commented = small()
    commented.doc, commented.state_docs["a"] = "other", "other"
    commented.instructions["swap"].doc = "other"
    commented.kernels["fill"].doc = "other"
    assert il.digest(plain) == il.digest(commented)
    assert il.ila_to_json(plain) != il.ila_to_json(commented)

    left, right = store_and_load(), store_and_load()
    right.doc = "other"
    assert il.digest(left) == il.digest(right)

    changed = small()
    changed.instructions["swap"].updates["a"] = changed.states["b"] + 1
    renamed = small()
    renamed.name = "other"
    reset = small()
    reset.inits["a"] = 2
    unset = small()
    del unset.inits["a"]
    done = small()
    done.kernels["fill"].on_done.clear()
    models = [plain, changed, renamed, reset, unset, done]
    assert len({il.digest(m) for m in models}) == len(models)
    assert il.digest(plain, changed) != il.digest(changed, plain)
    assert il.digest(Kernel("k")) != il.digest(Ila("k"))
    with pytest.raises(TypeError, match="Only models, fragments, functions and kernels have a digest"):
        il.digest("small")  # type: ignore[arg-type]


def test_reserved_instructions_round_trip() -> None:
    def reserved(reason: str) -> Ila:
        ila = small()
        ila.instructions["low"].reserved = reason
        return ila

    back = il.ila_from_json(il.ila_to_json(reserved("not modelled")))
    assert back.instructions["low"].reserved == "not modelled"
    assert il.digest(reserved("one reason")) == il.digest(reserved("another")) != il.digest(small())


def test_documents_do_not_depend_on_the_process() -> None:
    code = (
        "import ila_lang as il\n"
        "from tests.ila_lang.language.test_models import small, store_and_load\n"
        "print(il.digest(small(), store_and_load()))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == il.digest(small(), store_and_load())


def edited(path: list[Any], value: Any) -> Any:
    """The document of ``small`` with one place replaced; ``...`` deletes it."""
    document = copy.deepcopy(il.ila_to_json(small()))
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["t"], ..., "document: must have the key t"),
        (["x"], 1, "document: must not have the key x"),
        (["a"], {}, "a: must be a list, not {}"),
        (["a", 0, "u"], 9, "a[0]: must have a kind u of 1, 2 or 3"),
        (["a", 0, "u"], True, "a[0].u: must be an integer, not True"),
        (["a", 0, "s", "w"], 0, "a[0].s: Width of a bit-vector must be a positive integer, not 0"),
        (["a", 0, "s", "u"], 3, "a[0].s: must have the key a"),
        (["a", 0, "n"], "no name", "a[0]: Name of a variable must be an identifier, not 'no name'"),
        (["a", 1, "v"], "0x10", "a[1]: Constant must fit in 4 bits unsigned, not 16"),
        (["a", 1, "v"], 15, "a[1].v: must be text, not 15"),
        (["a", 1, "v"], "15", "a[1].v: must be hexadecimal text such as 0x1f, not '15'"),
        (["a", 2, "a"], [0, 2], "a[2].a[1]: must name one of the 2 nodes before it, not 2"),
        (["a", 2, "a"], [0], "a[2]: operator 'eq' must fit its operands, not bv4 with parameters []"),
        (["a", 2, "o"], "bvpow",
         "a[2]: operator 'bvpow' must fit its operands, not bv4, bv4 with parameters []"),
        (["a", 2, "s"], {"u": 2, "w": 4}, "a[2].s: must be bool, the sort of eq, not bv4"),
        (["t", "v"], 0, "t.v: Valid condition of small must have sort bool, not bv4"),
        (["t", "i", 1, "n"], "op", "t.i[1]: Name op must be declared once in small, not twice"),
        (["t", "init", 0, 1], "0x100", "t.s[0]: Constant must fit in 8 bits unsigned, not 256"),
        (["t", "init", 0, 0], "arg", "t.init: must name states only, not arg"),
        (["t", "instr", 0, "u", 0, 0], "op", "t.instr[0].u[0]: must update a state of small, not op"),
        (["t", "instr", 0, "d"], 0, "t.instr[0]: Decode of swap must have sort bool, not bv4"),
        (["t", "instr", 4, "g"], ...,
         "t.instr[4]: must have both a kernel k and its start condition g, or neither"),
        (["t", "instr", 4, "k", "b", 0, "o"], "while",
         "t.instr[4].k.b[0]: must have an o of for, let, load, store or command"),
        (["t", "instr", 4, "k", "b", 0, "c"], 1, "t.instr[4].k.b[0].c: must name a variable, not 0xf"),
        (["t", "instr", 4, "k", "b", 0, "b", 0, "t"], 0,
         "t.instr[4].k.b[0].b[0]: must give its target a value of sort bv4, not bv8"),
        (["t", "instr", 4, "k", "e", 0, 0], "op",
         "t.instr[4].k.e: must set states of small at their sorts, not op"),
    ],
)  # fmt: skip
def test_malformed_documents(path: list[Any], value: Any, message: str) -> None:
    with pytest.raises(PortableError) as caught:
        il.ila_from_json(edited(path, value))
    assert str(caught.value) == message
    assert message.startswith(caught.value.path or "document")


def test_malformed_functions() -> None:
    document = il.function_to_json(mix)
    document["f"][0]["p"].pop()
    with pytest.raises(PortableError, match=r"^f\[0\]\.b: Body of mix must use only its parameters, not mix\.b$"):
        il.function_from_json(document)
    document = il.function_to_json(mix)
    document["f"][0]["r"]["w"] = 5
    with pytest.raises(PortableError, match=r"^f\[0\]\.b: Body of mix must have sort bv5, not bv4$"):
        il.function_from_json(document)
    with pytest.raises(PortableError, match=r"^document: must be an object, not None$"):
        il.function_from_json(None)
