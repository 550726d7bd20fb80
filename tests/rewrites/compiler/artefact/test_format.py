"""The parts of a compiled model on disk: what is written is read back, and what is not written so is refused."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_semantics.graph.build import Builder
from ir_semantics.graph.ir import Graph, digest_of
from ir_semantics.graph.types import TensorType
from rewrites.compiler.artefact.arrays import arrays_of, npz_bytes
from rewrites.compiler.artefact.chain import chain_json, chain_value
from rewrites.compiler.artefact.directory import MODEL, is_artefact, may_write, read_directory, write_directory
from rewrites.compiler.artefact.errors import ArtefactError
from rewrites.compiler.artefact.graphs import attribute_json, attribute_value, graph_json, graph_value
from rewrites.compiler.artefact.origins import origin_text
from rewrites.compiler.graph_rules.definitions import definitions
from rewrites.compiler.graph_rules.tensor_rewrites import Constants
from rewrites.egraph import EGraphError, Explanation, sides_of
from rewrites.egraph.extraction import extract
from rewrites.egraph.graph_checker import check_graphs
from rewrites.egraph.graphs import explain_outputs, from_graph, to_graph
from rewrites.egraph.saturation import Limits, saturate
from tests.rewrites.compiler.graph_rules.test_optimise import computed_elements


def small_graph() -> Graph:
    b = Builder()
    x = b.input("x", TensorType("float32", (1, 2, 4, 4)))
    w = b.constant(np.arange(36, dtype="float32").reshape(2, 2, 3, 3))
    options = {"strides": (1, 1), "pads": ((1, 1), (1, 1)), "dilations": (1, 1), "groups": 1}
    zero = b.constant(np.zeros((), "float32"))
    y = b.add("conv", x, w, **options)
    b.origin = "node act (Relu)"
    y = b.add("maximum", y, b.add("broadcast", zero, axes=(), shape=(1, 2, 4, 4)))
    return b.graph({"y": b.add("leaky_relu", y, alpha=0.1), "again": y})


def test_a_graph_comes_back_as_it_was() -> None:
    graph = small_graph()
    document = json.loads(json.dumps(graph_json(graph)))
    again = graph_value("it", document, graph.constants)
    assert again.nodes == graph.nodes and again.origins == graph.origins
    assert (again.inputs, again.outputs) == (graph.inputs, graph.outputs)
    assert graph_json(again) == graph_json(graph)


VALUES = [None, True, 1, 1.0, -0.0, float("inf"), float("nan"), 0.1, "text", (), (1, (2.5, None), "a")]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_an_attribute_comes_back_as_it_was(value: Any) -> None:
    again = attribute_value("it", json.loads(json.dumps(attribute_json(value))))
    assert repr(again) == repr(value) and type(again) is type(value)


@pytest.mark.parametrize(
    "value", [1.5, {"float": "1e0"}, {"float": 1}, {"float": "x"}, {"f": "1.0"}, [[[[[[[[[1]]]]]]]]]], ids=repr
)
def test_what_is_no_attribute_is_refused(value: object) -> None:
    with pytest.raises(ArtefactError):
        attribute_value("it", value)


def test_only_attributes_are_written() -> None:
    with pytest.raises(ArtefactError, match="must be a number, a text"):
        attribute_json(Fraction(1, 2))


def node(document: dict[str, Any], operator: str) -> dict[str, Any]:
    found: dict[str, Any] = next(n for n in document["nodes"] if n["operator"] == operator)
    return found


GRAPH_ATTACKS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another type": (lambda d: node(d, "conv").update(type=["float32", [1, 2, 4, 5]]), "conv must give float32"),
    "a later operand": (lambda d: node(d, "conv").update(operands=[0, 99]), "must be a natural number below"),
    "an operand true": (lambda d: node(d, "conv").update(operands=[0, True]), "must be a natural number"),
    "an unknown operator": (lambda d: node(d, "conv").update(operator="con"), "an operator must be one of"),
    "an attribute less": (lambda d: node(d, "conv")["attributes"].pop("groups"), "must be given what it can work with"),
    "an odd attribute": (lambda d: node(d, "conv")["attributes"].update(strides=["a", 1]), "must be given what it can"),
    "other data": (lambda d: node(d, "constant")["attributes"].update(digest="0" * 64), "must be there; they are not"),
    "data of another type": (lambda d: node(d, "constant").update(type=["float32", [3]]), "as its data are"),
    "no input": (lambda d: d.update(inputs={}), "inputs must be the nodes that are inputs"),
    "no output": (lambda d: d.update(outputs={}), "must have an output"),
    "an output nowhere": (lambda d: d["outputs"].update(y=50), "must be a natural number below"),
    "a key more": (lambda d: d.update(more=1), "must have exactly the keys"),
    "an absurd type": (lambda d: node(d, "input").update(type=["float32", [1 << 20, 1 << 20]]), "at most"),
    "no element type": (lambda d: node(d, "input").update(type=["object", [1]]), "must be of one of the types"),
}


@pytest.mark.parametrize("attack", GRAPH_ATTACKS)
def test_a_graph_that_does_not_fit_is_refused(attack: str) -> None:
    change, reason = GRAPH_ATTACKS[attack]
    graph = small_graph()
    document = graph_json(graph)
    change(document)
    with pytest.raises(ArtefactError, match=reason):
        graph_value("it", document, graph.constants)


def test_an_operator_without_an_origin_is_told_by_what_it_leads_to() -> None:
    graph = small_graph()
    conv = next(i for i, n in enumerate(graph.nodes) if n.operator == "conv")
    (last,) = (i for i, n in enumerate(graph.nodes) if n.operator == "leaky_relu")
    assert (origin_text(graph, conv), origin_text(graph, last)) == ("towards node act (Relu)", "node act (Relu)")
    bare = replace(graph, origins=("",) * len(graph.nodes))
    assert origin_text(bare, conv) == ""


# -- chains -------------------------------------------------------------------------------------------


def explained() -> tuple[Graph, Graph, dict[str, Explanation], Any]:
    graph = small_graph()
    constants = Constants(graph.constants)
    rewrites = list(definitions(constants).values())
    network = from_graph(graph)
    saturate(network.egraph, rewrites, Limits(nodes=200, iterations=3, seconds=10.0))
    found = extract(network.egraph, network.roots, (computed_elements,), 1000)
    result = to_graph(network, found, constants.data)
    return graph, result, explain_outputs(network, found), sides_of(rewrites)


def test_a_chain_comes_back_and_still_convinces() -> None:
    before, after, explanations, sides = explained()
    document = json.loads(json.dumps(chain_json(explanations)))
    assert document["rules"], "the example must apply a rule"
    again = chain_value("chain", document)
    assert again == explanations
    check_graphs(before, after, again, sides)


CHAIN_ATTACKS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no lines": lambda d: d["outputs"]["y"].update(lines=[], chain=[]),
    "no chain": lambda d: d["outputs"]["y"].update(chain=[]),
    "another end": lambda d: d["outputs"]["y"].update(end=0),
    "another rule": lambda d: d["rules"][0].__setitem__(0, "definition of relu, unfolded"),
    "another certificate": lambda d: d["rules"][0].__setitem__(1, "0" * 64),
    "another term": lambda d: d["terms"][-1][1].update(alpha={"float": "0.2"}),
    "an output less": lambda d: d["outputs"].pop("again"),
    "a line backwards": lambda d: d["outputs"]["y"].update(chain=[[n, not f] for n, f in d["outputs"]["y"]["chain"]]),
    "a line of its own": lambda d: d["outputs"]["y"].update(chain=[[99, True]]),
    "a number as direction": lambda d: d["outputs"]["y"].update(chain=[[0, 1]]),
}


@pytest.mark.parametrize("attack", CHAIN_ATTACKS)
def test_a_changed_chain_convinces_nobody(attack: str) -> None:
    before, after, explanations, sides = explained()
    document = chain_json(explanations)
    CHAIN_ATTACKS[attack](document)
    with pytest.raises((ArtefactError, EGraphError)):
        check_graphs(before, after, chain_value("chain", document), sides)


# -- arrays -------------------------------------------------------------------------------------------

ARRAYS = {
    "scalar": np.array(1.5, "float32"),
    "bytes": np.arange(12, dtype="uint8").reshape(3, 4),
    "none": np.zeros((0, 4), "int64"),
    "truth": np.array([True, False]),
    "transposed": np.arange(6, dtype="float64").reshape(2, 3).T,
    "big-endian": np.arange(3, dtype=">i4"),
}


def test_arrays_come_back_and_numpy_reads_them() -> None:
    data = bytes(npz_bytes(ARRAYS))
    assert data == npz_bytes(dict(reversed(ARRAYS.items())))
    with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
        again = arrays_of("it", data)
        assert set(again) == set(ARRAYS) == set(loaded)
        for name, array in ARRAYS.items():
            assert digest_of(again[name]) == digest_of(array) and np.array_equal(loaded[name], array)
            assert again[name].shape == array.shape and not again[name].flags.writeable


def member(header: str, data: bytes = b"", magic: bytes = b"\x93NUMPY\x01\x00") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return magic + struct.pack("<H", len(text)) + text + data


def zipped(content: bytes, name: str = "a.npy", method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


FLOATS = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
OBJECTS = io.BytesIO()
np.save(OBJECTS, np.array([{}], dtype=object), allow_pickle=True)

ARRAY_ATTACKS: dict[str, tuple[bytes, str]] = {
    "no zip": (b"text", "must be a zip file"),
    "cut": (bytes(npz_bytes(ARRAYS))[:-30], "must be a zip file"),
    "a pickle": (zipped(OBJECTS.getvalue()), "must be of Booleans or numbers"),
    "gigabytes": (zipped(member(FLOATS.replace("(2,)", "(1 << 40,)"))), "must be an array in NumPy's format"),
    "many": (zipped(member(FLOATS.replace("(2,)", "(1099511627776,)"))), "must have the 4398046511104 bytes"),
    "a negative extent": (zipped(member(FLOATS.replace("(2,)", "(-2,)"))), "all natural numbers"),
    "a byte less": (zipped(member(FLOATS, bytes(7))), "must have the 8 bytes"),
    "column-major": (zipped(member(FLOATS.replace("False", "True"), bytes(8))), "row-major"),
    "big-endian": (zipped(member(FLOATS.replace("<f4", ">f4"), bytes(8))), "little-endian"),
    "text": (zipped(member(FLOATS.replace("<f4", "<U1"), bytes(8))), "must be of Booleans or numbers"),
    "a Boolean of 2": (zipped(member(FLOATS.replace("<f4", "|b1"), b"\1\2")), "must hold bytes 0 and 1"),
    "no magic": (zipped(b"NUMPY"), "must be an array in NumPy's format"),
    "version 2": (zipped(member(FLOATS, bytes(8), b"\x93NUMPY\x02\x00")), "version 1.0"),
    "compressed": (zipped(member(FLOATS, bytes(8)), method=zipfile.ZIP_DEFLATED), "must hold the bytes|compressed"),
    "another member": (zipped(b"", "a.txt"), "must hold arrays of different names"),
}


@pytest.mark.parametrize("attack", ARRAY_ATTACKS)
def test_a_file_that_is_not_written_so_is_refused(attack: str) -> None:
    data, reason = ARRAY_ATTACKS[attack]
    with pytest.raises(ArtefactError, match=reason):
        arrays_of("it", data)


def test_only_numbers_are_written() -> None:
    with pytest.raises(ArtefactError, match="the array a must be of Booleans or numbers, not of <U1"):
        npz_bytes({"a": np.array(["x"])})


# -- directories --------------------------------------------------------------------------------------

FILES = {"plan.json": b"{}\n", "constants.npz": bytes(npz_bytes(ARRAYS)), "SUMMARY.md": b"# It\n"}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    write_directory(tmp_path / "made", {"name": "it"}, FILES)
    return tmp_path / "made"


def test_a_directory_comes_back(made: Path) -> None:
    content, files = read_directory(made)
    assert files == FILES and content["name"] == "it" and is_artefact(made)
    assert sorted(p.name for p in made.parent.iterdir()) == ["made"], "no temporary directory is left"


def test_an_artefact_is_replaced(made: Path) -> None:
    write_directory(made, {"name": "other"}, {"plan.json": b"[]\n"})
    content, files = read_directory(made)
    assert content["name"] == "other" and files == {"plan.json": b"[]\n"}
    assert sorted(p.name for p in made.parent.iterdir()) == ["made"]


def test_an_artefact_of_an_older_version_is_replaced(made: Path) -> None:
    edited(made, lambda c: c.update(schema="ilaverify-artefact-3"))
    write_directory(made, {"name": "other"}, {"plan.json": b"[]\n"})
    assert read_directory(made)[0]["name"] == "other"


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_directory(tmp_path / "empty", {}, FILES)
    assert read_directory(tmp_path / "empty")[1] == FILES


def test_what_is_no_artefact_is_not_overwritten(made: Path) -> None:
    (made / "notes.txt").write_text("mine")
    with pytest.raises(ArtefactError) as refused:
        write_directory(made, {}, FILES)
    assert str(refused.value) == (
        f"{made} must be new, empty, or a compiled model, which is then replaced; it holds other files; "
        "name another place"
    )
    assert (made / "notes.txt").read_text() == "mine" and (made / "plan.json").read_bytes() == b"{}\n"
    file = made.parent / "file"
    file.write_text("")
    with pytest.raises(ArtefactError, match="there is something else"):
        may_write(file)
    link = made.parent / "link"
    link.symlink_to(made)
    with pytest.raises(ArtefactError, match="there is something else"):
        may_write(link)


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        write_directory(tmp_path / "made", {}, {"x" * 300: b""})
    assert list(tmp_path.iterdir()) == []


def linked(path: Path) -> None:
    other = path.parent.parent / "other"
    path.rename(other)
    path.symlink_to(other)


DIRECTORY_ATTACKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte": (lambda d: (d / "plan.json").write_bytes(b"[]\n"), "plan.json: the file must have the digest"),
    "a constant": (
        lambda d: (d / "constants.npz").write_bytes(FILES["constants.npz"].replace(b"\1", b"\2", 1)),
        "constants.npz: the file must have the digest",
    ),
    "a file less": (lambda d: (d / "SUMMARY.md").unlink(), "must hold SUMMARY.md, as its model says; it is missing"),
    "a file more": (lambda d: (d / "more").write_text(""), "hold only the files that its model names; remove more"),
    "a directory more": (lambda d: (d / "more").mkdir(), "remove more"),
    "a link": (lambda d: linked(d / "plan.json"), "plan.json: a compiled model's file must be a file of its own, not"),
    "a linked directory": (lambda d: (d / "more").symlink_to("/"), "remove more"),
    "a pipe": (lambda d: ((d / "plan.json").unlink(), os.mkfifo(d / "plan.json")), "must be a regular file"),
    "the model": (lambda d: edited(d, lambda c: c.update(name="you"), seal=False), "the digest must match the content"),
    "another layout": (
        lambda d: (d / MODEL).write_text(json.dumps(json.loads((d / MODEL).read_text()))), "must be in canonical form",
    ),
    "an old version": (
        lambda d: edited(d, lambda c: c.update(schema="ilaverify-artefact-4")),
        "not ilaverify-artefact-4; another version wrote it; compile the model again",
    ),
    "another schema": (lambda d: edited(d, lambda c: c.update(schema="a-5")), "schema must be .*, not 'a-5'; compile"),
    "a path outside": (
        lambda d: edited(d, lambda c: c["files"].update({"../../etc/passwd": "0"})), "files must have names as compile",
    ),
    "deep text": (lambda d: (d / MODEL).write_text("[" * 100_000), "must be JSON text"),
    "no object": (lambda d: (d / MODEL).write_text("[]\n"), "must be a JSON object"),
    "infinite": (lambda d: (d / MODEL).write_text('{"a":Infinity,"schema":"ilaverify-artefact-5"}\n'), "finite"),
    "not ASCII": (lambda d: (d / MODEL).write_bytes(b"\xff"), "must be JSON text"),
    "no model": (lambda d: (d / MODEL).unlink(), "must be readable: No such file"),
}  # fmt: skip


def edited(directory: Path, change: Callable[[dict[str, Any]], object], *, seal: bool = True) -> None:
    """Changes the model; with ``seal`` its own digest is made right again."""
    import hashlib

    from ila_lang import canonical_text

    path = directory / MODEL
    content = json.loads(path.read_text())
    change(content)
    if seal:
        body = {k: v for k, v in content.items() if k != "digest"}
        content["digest"] = hashlib.sha256(canonical_text(body).encode()).hexdigest()
    path.write_text(canonical_text(content) + "\n")


@pytest.mark.parametrize("attack", DIRECTORY_ATTACKS)
def test_a_changed_directory_is_refused(attack: str, made: Path) -> None:
    change, reason = DIRECTORY_ATTACKS[attack]
    change(made)
    with pytest.raises(ArtefactError, match=reason):
        read_directory(made)


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError) as refused:
        read_directory(tmp_path / "none")
    assert str(refused.value) == (
        f"{tmp_path / 'none'} must be the directory of a compiled model, and there is none; make one with "
        "ilaverify compile"
    )
