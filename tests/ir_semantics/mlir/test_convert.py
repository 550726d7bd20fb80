"""Files in any form: with ``mlir-opt`` where there is one, and complaints where there is none or it fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ila_lang.text.files import FileRefused
from ir_semantics.mlir import convert
from ir_semantics.mlir.convert import Converter, ConverterError, find_converter, load
from ir_semantics.mlir.ir import Position
from ir_semantics.mlir.printer import text_of
from ir_semantics.mlir.reader import read
from ir_semantics.mlir.scanner import MlirError

DATA = Path(__file__).parent / "data"
CUSTOM = sorted((DATA / "custom").glob("*.mlir"))
needs_mlir_opt = pytest.mark.skipif(find_converter() is None, reason="there is no mlir-opt here to compare with")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Neither the path nor the folder of installed packages has an ``mlir-opt``."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(convert.sysconfig, "get_path", lambda _: str(tmp_path / "packages"))
    find_converter.cache_clear()
    yield
    find_converter.cache_clear()


def script(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@needs_mlir_opt
@pytest.mark.parametrize("path", CUSTOM, ids=lambda path: path.stem)
def test_the_print_of_this_mlir_opt_is_printed_again(path: Path) -> None:
    """With every release, whatever it prints: only files that it does not read are left out."""
    converter = find_converter()
    assert converter is not None
    try:
        text = converter.run(
            ["--mlir-print-op-generic", "--allow-unregistered-dialect"], path.read_text(encoding="utf-8")
        )
    except MlirError as error:
        pytest.skip(f"{converter.release} does not read this file: {error}")
    assert text_of(read(text)).rstrip() == text.rstrip()


@needs_mlir_opt
def test_what_is_printed_is_read_by_mlir_opt() -> None:
    converter = find_converter()
    assert converter is not None
    text = text_of(read((DATA / "generic" / "buffers.mlir").read_text(encoding="utf-8")))
    assert converter.run(["--mlir-print-op-generic"], text).rstrip() == text.rstrip()


@needs_mlir_opt
def test_a_file_in_any_form_has_its_own_positions() -> None:
    source = load(DATA / "custom" / "scalars.mlir")
    assert re.fullmatch(r"mlir-opt \d+\.\d+\.\S+", source.release or "")
    assert [operation.symbol for operation in source.module.symbols()] == ["unknown", "clamp", "indices"]
    *_, indices = source.module.symbols()
    assert indices.regions[0].blocks[0].operations[0].position == Position(17, 8)


@needs_mlir_opt
def test_passes_are_run() -> None:
    converter = find_converter()
    assert converter is not None
    text = "func.func @f(%a: i32) -> i32 {\n  %0 = arith.constant 0 : i32\n"
    text += "  %1 = arith.addi %a, %0 : i32\n  return %1 : i32\n}"
    names = [
        [o.name for f in source.module.symbols() for o in f.regions[0].blocks[0].operations]
        for source in (converter.generic(text), converter.generic(text, "canonicalize"))
    ]
    assert names == [["arith.constant", "arith.addi", "func.return"], ["func.return"]]


@needs_mlir_opt
def test_passes_of_functions_are_run_on_functions() -> None:
    converter = find_converter()
    assert converter is not None
    text = "func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = tosa.abs %a : (tensor<2xf32>) -> tensor<2xf32>\n"
    source = converter.generic(f"{text}  return %0 : tensor<2xf32>\n}}", "tosa-to-linalg")
    [function] = source.module.symbols()
    operations = function.regions[0].blocks[0].operations
    assert [o.name for o in operations] == ["tensor.empty", "linalg.generic", "func.return"]
    assert operations[1].position == Position(2, 8)


@needs_mlir_opt
def test_complaints_of_mlir_opt_have_their_place(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text("func.func @f() {\n  %0 = nowhere.op\n}", encoding="utf-8")
    with pytest.raises(MlirError, match=r"^2:8: .*mlir-opt.*: Dialect `nowhere' not found") as complaint:
        load(path)
    assert complaint.value.position == Position(2, 8)


def test_generic_files_need_no_converter(nothing_installed: None) -> None:
    source = load(DATA / "generic" / "scalars.mlir")
    assert source.release is None
    assert len(list(source.module.symbols())) == 3


def test_other_files_need_one(nothing_installed: None) -> None:
    with pytest.raises(MlirError) as complaint:
        load(DATA / "custom" / "scalars.mlir")
    assert str(complaint.value) == (
        "2:1: an operation must be in the generic form, because no mlir-opt was found to convert it; install one "
        "(Debian: mlir-19-tools or mlir-22-tools; pip: the extra mlir of ilaverify), or name it, or write the file "
        "with mlir-opt --mlir-print-op-generic"
    )


def test_where_a_converter_is_looked_for(
    nothing_installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("numbered/mlir-opt-9", "numbered/mlir-opt-22", "numbered/mlir-opt-x"):
        script(tmp_path / name, "true")
    monkeypatch.setenv("PATH", str(tmp_path / "numbered"))
    assert find_converter() == Converter(str(tmp_path / "numbered" / "mlir-opt-22"))
    find_converter.cache_clear()
    installed = script(tmp_path / "packages" / "mlir" / "bin" / "mlir-opt", "true")
    assert find_converter() == Converter(installed)
    find_converter.cache_clear()
    plain = script(tmp_path / "numbered" / "mlir-opt", "true")
    assert find_converter() == Converter(plain)
    assert find_converter("mlir-opt-9") == Converter(str(tmp_path / "numbered" / "mlir-opt-9"))
    with pytest.raises(
        ConverterError,
        match=r"^mlir-opt-8 must be a program that can be run; name an mlir-opt, on the path or with its folder$",
    ):
        find_converter("mlir-opt-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat > /dev/null; echo '<stdin>:0:0: error: no sequence' >&2; exit 1", "PROGRAM: no sequence"),
        ("cat > /dev/null; echo 'out of memory' >&2; exit 3", "PROGRAM ended with exit code 3: out of memory"),
        ("kill -9 $$", "PROGRAM ended with signal 9: "),
        ("exec sleep 60", "PROGRAM must end within 0.2 seconds; it was stopped"),
    ],
)
def test_a_converter_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setattr(convert, "SECONDS", 0.2 if "sleep" in text else 60.0)
    program = script(tmp_path / "mlir-opt", text)
    with pytest.raises(ConverterError) as complaint:
        Converter(program).generic("func.func private @f()")
    assert str(complaint.value) == message.replace("PROGRAM", program)


def test_a_converter_that_prints_nonsense(tmp_path: Path) -> None:
    program = script(tmp_path / "mlir-opt", "cat > /dev/null; echo nonsense")
    with pytest.raises(MlirError, match=r"^1:1: an operation must be in the generic form"):
        Converter(program).generic("func.func private @f()")
    with pytest.raises(ConverterError, match=r"--version must name a version$"):
        _ = Converter(program).release


def test_a_file_may_be_no_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.mlir"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(MlirError, match=r"^1:1: here must be an operation, not "):
        load(path)


def test_a_file_may_be_too_long_or_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "LONGEST_TEXT", 100)
    path = tmp_path / "long.mlir"
    path.write_bytes(b" " * 101)
    with pytest.raises(FileRefused, match=r"an MLIR file must have at most 100 bytes, not 101 or more"):
        load(path)
    with pytest.raises(FileRefused, match=r"an MLIR file must be a readable file: No such file or directory$"):
        load(tmp_path / "missing.mlir")
