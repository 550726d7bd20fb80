"""Translation validation: functions of MLIR files, or of a file before and after each pass, as claims to be proved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from chc.translation.refine import Options
from ila_lang.text.files import FileRefused, read_at_most
from ilaverify.errors import UsageError
from ir_semantics.mlir import ir
from ir_semantics.mlir.convert import Converter, ConverterError, Source, find_converter, load
from ir_semantics.mlir.printer import text_of
from ir_semantics.mlir.reader import LONGEST_TEXT
from ir_semantics.mlir.scanner import MlirError
from ir_semantics.mlir.semantics.values import NotCovered
from reports.outcomes import ProofOutcome
from reports.subjects import Entry
from rewrites.claims.names import slug
from rewrites.claims.subjects.translation import Pair, Program, TranslationSubject, part_of_name
from rewrites.rules.mlir.files import text_of_pairs
from rewrites.rules.mlir.reading import rule_of

_PASS = re.compile(r"([a-z0-9][a-z0-9-]*)(?:\{([^{}]*)\})?", re.ASCII)


@dataclass
class Claims:
    """What is to be proved, by name; what could not be looked at; and names of steps that changed nothing."""

    entries: dict[str, Entry] = field(default_factory=dict)
    broken: list[ProofOutcome] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    known: dict[str, None] = field(default_factory=dict)
    """Names of the functions that passes were given."""


@dataclass(frozen=True)
class Step:
    """One pass over one file: a name for its claims, the program before and after."""

    name: str
    file: str
    source: Program
    target: Program
    target_file: str = ""


def read_program(path: Path, mlir_opt: str | None = None) -> Program:
    """The program in a file, converted where it must be; raises UsageError with the place where it cannot be read."""
    try:
        return _program(load(path, mlir_opt))
    except MlirError as error:
        raise UsageError(f"{path}:{error}") from error
    except (ConverterError, FileRefused) as error:
        raise UsageError(str(error)) from error


def _program(source: Source) -> Program:
    return Program(source.text, source.release)


def functions(program: Program, file: str) -> dict[str, ir.Operation]:
    """Functions with a body, by name; raises UsageError, in which ``file`` is named, where two have one."""
    found = {}
    for operation in program.module.symbols():
        if operation.name == "func.func" and operation.symbol is not None:
            if not _is_unicode(operation.symbol):
                raise UsageError(f"{file}:{operation.position}: the name of a function must be UTF-8; rename it")
            if operation.symbol in found:
                raise UsageError(
                    f"{file}:{operation.position}: the function @{operation.symbol} must be defined only once"
                )
            if operation.regions and operation.regions[0].blocks:
                found[operation.symbol] = operation
    return found


def _is_unicode(text: str) -> bool:
    return text == text.encode("utf-8", "replace").decode()


def add_pairs(claims: Claims, step: Step, options: Options, symbol: str | None = None) -> None:
    """Adds a claim for each function of the source, or for one of them; raises UsageError where none is in both."""
    before = functions(step.source, step.file)
    after = functions(step.target, step.target_file or step.file)
    chosen = [s for s in before if symbol in (None, s)]
    if not any(s in after for s in chosen):
        what = "a function" if symbol is None else f"the function @{symbol}"
        raise UsageError(
            f"both programs must have {what} with a body under one name; {step.file} has {listed(before)}, and "
            f"{step.target_file} has {listed(after)}"
        )
    for each in chosen:
        _add(claims, step, options, before[each], each in after)


def listed(symbols: Iterable[str]) -> str:
    """Names of functions, for a message."""
    return ", ".join(f"@{s}" for s in symbols) or "none"


def _add(claims: Claims, step: Step, options: Options, function: ir.Operation, is_there: bool) -> None:
    """Adds the claim about one function, if it is there or should be: private functions may go."""
    assert function.symbol is not None
    if not is_there and function.attributes.get("sym_visibility") == ir.StringAttribute("private"):
        return
    name = _free(claims, ".".join(filter(None, [step.name, part_of_name(function.symbol)])))
    build = partial(TranslationSubject, name, Pair(function.symbol, step.source, step.target, options), step.file)
    claims.entries[name] = Entry(_SUMMARY, build, TranslationSubject.kind)


_SUMMARY = "a function of MLIR refines another one"


def _free(claims: Claims, name: str) -> str:
    taken = {*claims.entries, *(o.name for o in claims.broken)}
    numbered = [name, *(f"{name}-{i}" for i in range(2, len(taken) + 3))]
    return next(n for n in numbered if n not in taken)


def passes_of(text: str) -> list[tuple[str, str]]:
    """Names and options of passes, as in ``canonicalize,one-shot-bufferize{allow-unknown-ops=1}``."""
    at, passes = 0, []
    text = "".join(text.split("\n")).strip()
    while at < len(text):
        match = _PASS.match(text, at)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise UsageError(
                "--passes must be names of passes of mlir-opt with commas between them, and options in braces, such as "
                f"canonicalize,one-shot-bufferize{{allow-unknown-ops=1}}, not {text[at : at + 40]!r}; passes on "
                "functions are named alone, without func.func(...)"
            )
        passes.append((match[1], match[2] or ""))
        at = match.end() + 1
    if not passes or text.endswith(","):
        raise UsageError("--passes must name a pass behind each comma, such as canonicalize,cse")
    return passes


def converter_for(mlir_opt: str | None, needed_by: str = "--passes") -> Converter:
    """The ``mlir-opt`` that runs passes; raises UsageError where there is none."""
    try:
        converter = find_converter(mlir_opt)
    except ConverterError as error:
        raise UsageError(str(error)) from error
    if converter is None:
        raise UsageError(
            f"{needed_by} needs an mlir-opt, and none was found; install one (Debian: mlir-19-tools or mlir-22-tools; "
            "pip: the extra mlir of ilaverify), or name it with --mlir-opt"
        )
    return converter


def steps(path: Path, passes: Sequence[tuple[str, str]], converter: Converter) -> Iterator[Step]:
    """What each pass makes of the file, one after the other.

    Raises UsageError where the file cannot be read, and PassFailed where a pass ends without a program.
    """
    try:
        text = read_at_most(path, "an MLIR file", LONGEST_TEXT).decode("utf-8", "surrogateescape")
        before = _program(converter.generic(text))
    except MlirError as error:
        raise UsageError(f"{path}:{error}") from error
    except ConverterError as error:
        raise UsageError(f"{path}: {error}") from error
    except FileRefused as error:
        raise UsageError(str(error)) from error
    for number, (name, options) in enumerate(passes, 1):
        title = f"{part_of_name(path.stem)}.{number}-{name}"
        try:
            after = _program(converter.generic(before.text, f"{name}{{{options}}}" if options else name))
            functions(after, str(path))
        except ConverterError as error:
            raise PassFailed(title, f"the pass {name} must give a program: {path}: {error}") from error
        except (MlirError, UsageError) as error:
            place = f"{path}:{error}" if isinstance(error, MlirError) else str(error)
            raise PassFailed(title, f"the pass {name} must give a program: {place}") from error
        yield Step(title, str(path), before, after)
        before = after


class PassFailed(Exception):
    """A pass that gave no program: the name of the step, and what happened."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(reason)
        self.step = step


def add_steps(
    claims: Claims,
    path: Path,
    passes: Sequence[tuple[str, str]],
    converter: Converter,
    options: Options,
    symbol: str | None = None,
) -> None:
    """Adds the claims about one file after each pass; where a pass fails, an ERROR, and the steps before it count.

    With ``symbol`` only the claims about the function of that name.  Raises UsageError where the file cannot be read.
    """
    try:
        for step in steps(path, passes, converter):
            add_step(claims, step, options, symbol)
    except PassFailed as error:
        claims.broken.append(broken(error.step, str(path), str(error)))


def broken(name: str, file: str, reason: str) -> ProofOutcome:
    """The outcome of what could not be looked at."""
    outcome = ProofOutcome(name, "ERROR", summary=_SUMMARY, reason=reason, kind=TranslationSubject.kind)
    return replace(outcome, method=TranslationSubject.method, file=file, line=1)


def add_step(claims: Claims, step: Step, options: Options, symbol: str | None = None) -> None:
    """Adds a claim for each function that a pass has changed, or for one of them."""
    before = functions(step.source, step.file)
    after = functions(step.target, step.target_file or step.file)
    claims.known |= dict.fromkeys(before)
    resources = [program.module.resources for program in (step.source, step.target)]
    around = [_attributes_of_modules(program.module.operations) for program in (step.source, step.target)]
    if resources[0] == resources[1] and _same_text(step.source.module.operations, step.target.module.operations):
        claims.unchanged.append(step.name)
        return
    for name, function in before.items():
        if symbol not in (None, name):
            continue
        same = name in after and _same_text((function,), (after[name],))
        refers = ("@",) if resources[0] == resources[1] else ("@", "dense_resource<")
        same = same and around[0] == around[1] and not any(s in text_of(ir.Module((function,))) for s in refers)
        if same:
            continue
        _add(claims, step, options, function, name in after)


def _attributes_of_modules(operations: Sequence[ir.Operation]) -> list[Mapping[str, ir.Attribute]]:
    return [o.attributes for o in ir.walk(operations) if o.name == "builtin.module"]


def _same_text(one: Sequence[ir.Operation], other: Sequence[ir.Operation]) -> bool:
    return text_of(ir.Module(tuple(one))) == text_of(ir.Module(tuple(other)))


def pairs_as_rules(entries: Mapping[str, Entry]) -> tuple[str, dict[str, str], dict[str, str]]:
    """The text of a file with pairs as rules on tensors, their names as rules by claim, and why others are none.

    Nothing is taken over from the proofs of the pairs: the rules are claims of their own.
    """
    pairs, names, reasons = dict[str, tuple[ir.Operation, ir.Operation]](), dict[str, str](), dict[str, str]()
    for name, entry in entries.items():
        subject = entry.build()
        assert isinstance(subject, TranslationSubject)
        left, right = subject.pair.functions
        try:
            rule_of(name, left, right)
        except NotCovered as error:
            reasons[name] = str(error)
            continue
        stem = slug(name) or "function"
        numbered = [stem, *(f"{stem}-{k}" for k in range(2, len(pairs) + 3))]
        names[name] = rule = next(n for n in numbered if n not in pairs)
        pairs[rule] = left, right
    return text_of_pairs(pairs), names, reasons
