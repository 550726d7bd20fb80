"""Hostile and damaged ONNX files: refused with a clear message, in bounded memory, and nothing is written."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from docs.onnx_conformance import cases, run_case
from ir_semantics.graph import GraphError
from ir_semantics.graph.build import MOST_COMPUTED
from ir_semantics.onnx import import_model, read_model
from tests.ir_semantics.onnx.onnx_models import convolutional, model, node, tensor


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(GraphError) as caught:
        action()
    return str(caught.value)


# -- damaged files ------------------------------------------------------------------------------------------


def test_truncated_files(tmp_path: Path) -> None:
    data = convolutional().SerializeToString()
    path = tmp_path / "m.onnx"
    imported = 0
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        try:
            import_model(path)
            imported += 1
        except GraphError as error:
            assert len(str(error)) > 20
    assert imported <= 1  # without the last fields, which are the operator set's, or none


def test_random_damage_is_refused_or_harmless(tmp_path: Path) -> None:
    data, chance, path = convolutional().SerializeToString(), random.Random(0), tmp_path / "m.onnx"
    refused = 0
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(chance.choice([1, 1, 2, 4])):
            at = chance.randrange(len(damaged))
            match chance.randrange(3):
                case 0:
                    damaged[at] = chance.randrange(256)
                case 1:
                    del damaged[at : at + chance.randrange(1, 8)]
                case 2:
                    damaged[at:at] = chance.randbytes(chance.randrange(1, 8))
        path.write_bytes(damaged)
        try:
            import_model(path)
        except GraphError:
            refused += 1
    assert 200 < refused < 400
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("side", ["input", "output"])
def test_tensors_without_a_shape_are_named(side: str) -> None:
    given = convolutional()
    (value, *_) = getattr(given.graph, side)
    value.type.tensor_type.ClearField("shape")
    said = f"the {side}s of a model must have shapes, and {value.name} has none; let onnx.shape_inference.infer_shapes "
    assert refusal(lambda: import_model(given)).startswith(said)


def test_files_that_are_no_models(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    assert refusal(lambda: read_model(path)) == f"the model {path} must be a readable file: No such file or directory"
    path.write_bytes(b"")
    assert refusal(lambda: read_model(path)) == (
        f"the model {path} must have a graph; it is empty or of another format"
    )
    path.write_bytes(b"\x7fELF\x02\x01\x01\x00 not a model")
    assert refusal(lambda: read_model(path)) == (
        f"the model {path} must be an ONNX file; it is cut off or of another format"
    )
    assert "must be a regular file" in refusal(lambda: read_model(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "must be a regular file" in refusal(lambda: read_model(tmp_path / "pipe"))


INTEGERS = (-1, 0, 1, 2, 3, 7, -100, 2**31, 2**40, -(2**63), 2**63 - 1)
FLOATS = (0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"), 2.5)


def spoil(proto: ModelProto, chance: random.Random) -> None:
    """Changes an attribute, drops an input, or exchanges inputs of a model's nodes."""
    chosen = chance.choice(proto.graph.node)
    if chosen.attribute and chance.random() < 0.7:
        attribute = chance.choice(chosen.attribute)
        attribute.i, attribute.f = chance.choice(INTEGERS), chance.choice(FLOATS)
        attribute.s = chance.choice([b"", b"xx", b"\xff", b"reflect", b"cubic", b"SAME_UPPER"])
        for values, others in ((attribute.ints, INTEGERS), (attribute.floats, FLOATS)):
            if values:
                values[chance.randrange(len(values))] = chance.choice(others)
                del values[len(values) - chance.randrange(2) :]
    elif chosen.input and chance.random() < 0.5:
        del chosen.input[-1]
    elif chosen.input:
        chosen.input[chance.randrange(len(chosen.input))] = chance.choice(["", *chosen.input])


@pytest.mark.parametrize("module", ["conv", "lppool", "lstm", "resize", "slice", "einsum", "scatternd"])
def test_spoilt_nodes_are_refused_or_harmless(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without the checker of the onnx package, which would find many of these before the importer."""
    chance, found = random.Random(module), [c for c in cases([module]) if "expanded" not in c.name]
    outcomes = set()
    for count in range(60):
        if count == 20:
            unchecked(monkeypatch)
        case = chance.choice(found)
        proto = ModelProto()
        proto.CopyFrom(case.model)
        spoil(proto, chance)
        spoilt = type(case)(**{**case.__dict__, "model": proto})
        outcomes.add(run_case(spoilt, by_definition=(False,)).status)  # another exception than GraphError would fail
    assert "unsupported" in outcomes


def test_what_a_converter_stumbles_over_is_told_with_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(monkeypatch)
    proto = model([node("Max", [], ["y"], name="none")], {}, {"y": [1]})
    assert refusal(lambda: import_model(proto)) == (
        "node none (Max): the inputs and attributes must be such as the operator has, which these are not "
        "(reduce() of empty iterable with no initial value); correct the model"
    )


# -- graphs that cannot be -------------------------------------------------------------------------------------


def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The importer alone, without the checker of the onnx package before it."""
    monkeypatch.setattr("ir_semantics.onnx.importer.check_structure", lambda proto: None)


def cyclic() -> ModelProto:
    nodes = [node("Add", ["x", "b"], ["a"], name="first"), node("Exp", ["a"], ["b"])]
    return model(nodes, {"x": [2]}, {"b": [2]})


def test_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(lambda: import_model(cyclic())).startswith("the model must pass the checker of the onnx package: ")
    unchecked(monkeypatch)
    assert refusal(lambda: import_model(cyclic())) == (
        "node first (Add): the input 'b' must be given by an earlier node, an input or an initializer; "
        "none gives it: the graph is cyclic, not sorted, or cut off"
    )


def test_functions_that_call_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(monkeypatch)
    body = [node("Again", ["a"], ["b"], domain="own")]
    again = helper.make_function("own", "Again", ["a"], ["b"], body, [helper.make_opsetid("own", 1)])
    proto = model([node("Again", ["x"], ["y"], domain="own")], {"x": [2]}, {"y": [2]}, functions=[again])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    assert refusal(lambda: import_model(proto)).endswith("functions and branches must be nested at most 16 deep")


def test_wrong_types() -> None:
    integers = tensor("k", [1, 2], "int64")
    mixed = model([node("Add", ["x", "k"], ["y"])], {"x": [2]}, {"y": [2]}, [integers])
    assert refusal(lambda: import_model(mixed)) == (
        "node number 0 (Add): the operands of add must be of one type, not float32[2], int64[2]"
    )
    texts = model([node("Identity", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, dtype=TensorProto.STRING)
    assert refusal(lambda: import_model(texts)) == (
        "the input x must have elements of a type that the IR has, not string; convert the model"
    )
    mismatch = model([node("MatMul", ["x", "z"], ["y"])], {"x": [2, 3], "z": [4, 5]}, {"y": [2, 5]})
    assert refusal(lambda: import_model(mismatch)) == (
        "node number 0 (MatMul): factors must have a common inner extent, not [2, 3] and [4, 5]"
    )


def test_data_that_do_not_fit_their_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    unchecked(monkeypatch)
    short = TensorProto(name="k", data_type=1, dims=[1 << 27], raw_data=b"\0" * 8)
    proto = model([node("Add", ["x", "k"], ["y"])], {"x": [2]}, {"y": [2]}, [short])
    assert refusal(lambda: import_model(proto)) == (
        f"the initializer k must have {4 << 27} bytes for float32[{1 << 27}], not 8; it is cut off or wrong"
    )
    proto.graph.initializer[0].CopyFrom(TensorProto(name="k", data_type=3, dims=[2], int32_data=[1, 300]))
    assert refusal(lambda: import_model(proto)) == "the initializer k must have elements of the type int8, not 1 .. 300"
    proto.graph.initializer[0].CopyFrom(TensorProto(name="k", data_type=1, dims=[-1], raw_data=b""))
    assert refusal(lambda: import_model(proto)) == (
        "the initializer k must have at most 32 axes of natural extents, not [-1]"
    )
    proto.graph.initializer[0].CopyFrom(TensorProto(name="k", data_type=1, dims=[2], float_data=[1.0]))
    assert refusal(lambda: import_model(proto)) == (
        "the initializer k must have 2 elements for float32[2], not 1; correct the model"
    )


# -- absurd sizes ------------------------------------------------------------------------------------------------

HUGE = 1 << 40


def absurd() -> dict[str, ModelProto]:
    shape, one = tensor("s", [HUGE]), {"x": [1]}
    values = [tensor("a", 0), tensor("b", HUGE), tensor("d", 1)]
    return {
        "input": model([node("Relu", ["x"], ["y"])], {"x": [HUGE, HUGE]}, {"y": [1]}),
        "fill": model([node("ConstantOfShape", ["s"], ["y"])], one, {"y": [HUGE]}, [shape]),
        "expand": model([node("Expand", ["x", "s"], ["y"])], one, {"y": [HUGE]}, [shape]),
        "tile": model([node("Tile", ["x", "s"], ["y"])], one, {"y": [HUGE]}, [shape]),
        "range": model([node("Range", ["a", "b", "d"], ["y"])], {}, {"y": [HUGE]}, values, dtype=7),
        "pad": model([node("Pad", ["x", "p"], ["y"])], one, {"y": [HUGE]}, [tensor("p", [0, HUGE])]),
        "edge": model([node("Pad", ["x", "p"], ["y"], mode="edge")], one, {"y": [HUGE]}, [tensor("p", [0, HUGE])]),
        "one_hot": model(
            [node("OneHot", ["i", "b", "v"], ["y"])],
            {},
            {"y": [1, HUGE]},
            [tensor("i", [0]), values[1], tensor("v", [0, 1])],
            dtype=7,
        ),
        "outer": model(
            [node("Mul", ["x", "z"], ["y"])], {"x": [1 << 20, 1], "z": [1, 1 << 20]}, {"y": [1 << 20, 1 << 20]}
        ),
        "resize": model(
            [node("Resize", ["x", "", "f"], ["y"], mode="linear")],
            {"x": [1, 1, 1, 2]},
            {"y": [1, 1, 1, HUGE]},
            [tensor("f", [1, 1, 1, float(HUGE)], "float32")],
        ),
        "upsample": model(
            [node("Resize", ["x", "", "f"], ["y"])],
            {"x": [1, 1, 1, 2]},
            {"y": [1, 1, 1, HUGE]},
            [tensor("f", [1, 1, 1, float(HUGE)], "float32")],
        ),
        "top": model([node("TopK", ["x", "s"], ["y", "i"])], {"x": [1 << 40]}, {"y": [HUGE], "i": [HUGE]}, [shape]),
        "eye": model(
            [node("EyeLike", ["x"], ["y"])], {"x": [1 << 20, 1 << 20]}, {"y": [1 << 20, 1 << 20]}
        ),
        "stride": model(
            [node("MaxPool", ["x"], ["y"], kernel_shape=[1], pads=[HUGE, HUGE], strides=[HUGE])],
            {"x": [1, 1, 1]},
            {"y": [1, 1, 3]},
        ),
        "timesteps": model(
            [node("RNN", ["x", "w", "r"], ["y"], hidden_size=1)],
            {"x": [1 << 20, 1, 1]},
            {"y": [1 << 20, 1, 1, 1]},
            [tensor("w", [[[1]]], "float32"), tensor("r", [[[1]]], "float32")],
        ),
        "conv": model(
            [node("AveragePool", ["x"], ["y"], kernel_shape=[1], pads=[HUGE, HUGE])], {"x": [1, 1, 1]}, {"y": [1, 1, 1]}
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", absurd())
def test_absurd_sizes(name: str) -> None:
    message = refusal(lambda: import_model(absurd()[name]))
    assert "must have at most" in message and len(message) < 500


def test_sizes_of_windows() -> None:
    proto = model([node("LRN", ["x"], ["y"], size=HUGE)], {"x": [1, 2, 2, 2]}, {"y": [1, 2, 2, 2]})
    assert refusal(lambda: import_model(proto)) == (
        f"node number 0 (LRN): the size of lrn must be in 1 .. 5, twice the channels and 1, not {HUGE}"
    )


def test_many_large_constants_are_not_computed_at_once() -> None:
    """Of 8 tensors of 64 MiB, computed from small constants, some stay unevaluated until the graph runs."""
    nodes, constants = [], [tensor("s", [1 << 24])]
    for i in range(8):
        constants.append(tensor(f"c{i}", [i], "float32"))
        nodes += [node("Expand", [f"c{i}", "s"], [f"e{i}"]), node("Exp", [f"e{i}"], [f"y{i}"])]
    graph = import_model(model(nodes, {}, {f"y{i}": [1 << 24] for i in range(8)}, constants))
    assert sum(a.size for a in graph.constants.values()) <= MOST_COMPUTED + 8
    assert 4 <= graph.operators()["exp"] < 8


def test_a_small_file_does_not_take_much_memory(tmp_path: Path) -> None:
    """Each absurd model in a process with 1 GiB of address space beyond what the modules take."""
    for name, proto in absurd().items():
        (tmp_path / f"{name}.onnx").write_bytes(proto.SerializeToString())
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from ir_semantics.graph import GraphError\n"
        "from ir_semantics.onnx import import_model\n"
        "import onnx.checker, onnx.defs\n"
        "size = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize() + (1 << 30)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size, size))\n"
        "for path in sorted(Path(sys.argv[1]).iterdir()):\n"
        "    try:\n"
        "        import_model(path)\n"
        "    except GraphError:\n"
        "        print(path.stem)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == sorted(absurd())
    assert resource.RLIMIT_AS is not None


# -- external data ------------------------------------------------------------------------------------------------


def external(location: str, **more: str) -> ModelProto:
    data = TensorProto(name="k", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        data.external_data.add(key=key, value=value)
    return model([node("Add", ["x", "k"], ["y"])], {"x": [2]}, {"y": [2]}, [data])


def saved(folder: Path, proto: ModelProto) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.bin").write_bytes(b"\0" * 8)
    inner = tmp_path / "model"
    inner.mkdir()
    (inner / "data.bin").write_bytes(np.array([7, 1, 2], np.float32).tobytes())
    return inner


def test_external_data_is_read(folder: Path) -> None:
    graph = import_model(saved(folder, external("data.bin", offset="4", length="8")))
    assert [a.tolist() for a in graph.constants.values()] == [[1, 2]]
    graph = import_model(saved(folder, external("./data.bin")))
    assert [a.tolist() for a in graph.constants.values()] == [[7, 1]]


@pytest.mark.parametrize(
    "location", ["../secret.bin", "a/../../secret.bin", "/etc/passwd", "", "..\\secret.bin", "a\0b"]
)
def test_paths_outside(folder: Path, location: str) -> None:
    message = refusal(lambda: import_model(saved(folder, external(location))))
    assert message == (
        "the external data of the tensor k must lie in the model's folder, at a relative path without '..', "
        f"not at {location!r}"
    )


def test_links_and_special_files(folder: Path) -> None:
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    (folder / "dir").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")
    what = "the external data of the tensor k must"
    for location in ("link.bin", "dir/secret.bin"):
        assert refusal(lambda name=location: import_model(saved(folder, external(name)))) == (
            f"{what} not be reached through a symbolic link, as {location!r} is; copy the file"
        )
    for location in ("pipe", "."):
        assert refusal(lambda name=location: import_model(saved(folder, external(name)))) == (
            f"the external data of the tensor k, {folder / location}, must be a regular file"
        )
    assert refusal(lambda: import_model(saved(folder, external("none.bin")))) == (
        f"the external data of the tensor k, {folder / 'none.bin'}, must be a readable file: No such file or directory"
    )


def test_hard_links(folder: Path) -> None:
    os.link(folder.parent / "secret.bin", folder / "hard.bin")
    assert refusal(lambda: import_model(saved(folder, external("hard.bin")))) == (
        "the external data of the tensor k must be a file with one name, not with hard links, as "
        f"{folder / 'hard.bin'} has; copy it"
    )


def test_external_sizes(folder: Path) -> None:
    what = "the external data of the tensor k must"
    cases = {
        ("data.bin", "offset", "8"): f"{what} lie inside the file {folder / 'data.bin'}: 8 + 8 bytes of 12",
        ("data.bin", "offset", "-4"): f"{what} have a natural number as its offset, not '-4'",
        ("data.bin", "length", "9"): f"{what} have 8 bytes for its type and shape, not 9; correct the model",
        ("data.bin", "length", "9" * 30): f"{what} have a natural number as its length, not '{'9' * 30}'",
        ("data.bin", "basepath", "/"): f"{what} be given by location, offset and length, not by location, basepath",
    }
    for (location, key, value), message in cases.items():
        proto = external(location, **{key: value})
        assert refusal(lambda p=proto: import_model(saved(folder, p))) == message
    proto = external("data.bin")
    proto.graph.initializer[0].dims[:] = [1 << 27]
    assert refusal(lambda: import_model(saved(folder, proto))).startswith(f"{what} lie inside the file")
    proto.graph.initializer[0].dims[:] = [1 << 40, 1 << 40]
    assert "must have at most" in refusal(lambda: import_model(saved(folder, proto)))


def test_external_data_of_a_model_in_memory() -> None:
    assert refusal(lambda: import_model(external("/etc/passwd"))) == (
        "the tensor k must hold its data, which is external; read the model from its file"
    )


def test_external_data_in_branches_is_found(folder: Path) -> None:
    inner = external("../secret.bin").graph
    del inner.input[:]
    proto = model([node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)], {"x": [2]}, {"y": [2]})
    assert "must lie in the model's folder" in refusal(lambda: import_model(saved(folder, proto)))


def test_a_checker_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx import checker

    def silent(model: object) -> None:
        raise checker.ValidationError("")

    monkeypatch.setattr(checker, "check_model", silent)
    message = "the model must pass the checker of the onnx package: it gives no reason"
    with pytest.raises(GraphError, match=message):
        import_model(convolutional())
