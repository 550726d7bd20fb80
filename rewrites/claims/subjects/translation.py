"""Functions of MLIR programs before and after a pass, as subjects: the target must refine the source.

Such a claim has no name that others know: it is of two texts, which its certificates and counterexamples contain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from chc.translation.counterexample import Counterexample
from chc.translation.refine import METHOD, Options, refines, replay, required, survey
from ir_semantics.mlir import ir
from ir_semantics.mlir.convert import ORIGIN
from ir_semantics.mlir.reader import read
from ir_semantics.mlir.semantics.program import Reading
from reports.subjects import Refutation, Required, Subject
from rewrites.claims.documents import document, read_document, value_json, value_of
from rewrites.claims.sources import meaning_digest, text_digest
from rewrites.claims.words import named, trust_lines
from smt_encodings.claims import Claim, Equality, Runs, Status, Verdict
from smt_encodings.discharge import Discharger

_LANGUAGES = ("ir_semantics", "chc.scalar_rules.formats")
"""What says what MLIR's text and operators mean."""


@dataclass(frozen=True)
class Program:
    """A program in the generic form, and the release of the ``mlir-opt`` that wrote it; without one, a user did."""

    text: str
    release: str | None = None

    @cached_property
    def module(self) -> ir.Module:
        """What the text says; raises MlirError where it is wrong."""
        return read(self.text, ORIGIN if self.release else None)

    def function(self, symbol: str, side: str) -> ir.Operation:
        """The function of that name; raises ValueError, which names the side, unless there is one with a body."""
        named = [f for f in self.module.symbols() if f.symbol == symbol and f.name == "func.func" and f.regions]
        if len(named) != 1 or not named[0].regions[0].blocks:
            raise ValueError(
                f"both programs must have one function @{symbol} with a body; the {side} has {len(named) or 'none'}"
            )
        return named[0]


@dataclass(frozen=True)
class Pair:
    """The function of one name in two programs, and how they are read."""

    symbol: str
    source: Program
    target: Program
    options: Options

    @property
    def functions(self) -> tuple[ir.Operation, ir.Operation]:
        """Both functions; raises ValueError where there are none."""
        return self.source.function(self.symbol, "source"), self.target.function(self.symbol, "target")

    @property
    def modules(self) -> tuple[ir.Module, ir.Module]:
        """Both programs, whose globals the functions use."""
        return self.source.module, self.target.module

    def to_json(self) -> dict[str, Any]:
        """The pair as it stands in certificates and counterexamples."""
        return {
            "function": self.symbol,
            "source": asdict(self.source),
            "target": asdict(self.target),
            "options": asdict(self.options),
        }

    @staticmethod
    def from_json(content: object) -> Pair:
        """The pair in what :meth:`to_json` gave; raises ValueError on anything else."""
        if not isinstance(content, dict) or set(content) != {"function", "source", "target", "options"}:
            raise ValueError("a pair of programs must have function, source, target and options")
        if not isinstance(content["function"], str):
            raise ValueError("the function of a pair must be a name")
        options = content["options"]
        if not isinstance(options, dict) or options.keys() != asdict(Options()).keys():
            raise ValueError(f"the options of a pair must be {', '.join(asdict(Options()))}")
        if not isinstance(options["associative"], bool):
            raise ValueError("the option associative of a pair must be true or false")
        reading = options["reading"]
        known = asdict(Reading())
        if not isinstance(reading, dict) or {k: type(v) for k, v in reading.items()} != {
            k: type(v) for k, v in known.items()
        }:
            raise ValueError(f"the reading of a pair must be {', '.join(known)}, each true or false")
        chosen = Options(**(options | {"reading": Reading(**reading)}))
        return Pair(content["function"], _program(content["source"]), _program(content["target"]), chosen)


def _program(content: object) -> Program:
    if not isinstance(content, dict) or set(content) != {"text", "release"}:
        raise ValueError("a program of a pair must have text and release")
    if not isinstance(content["text"], str) or not isinstance(content["release"], str | None):
        raise ValueError("text and release of a program must be texts")
    return Program(content["text"], content["release"])


class TranslationSubject(Subject):
    """The claim that the target's function refines the source's."""

    kind = "translation"
    method = METHOD

    def __init__(self, name: str, pair: Pair, file: str = "") -> None:
        self.name, self.pair, self.file = name, pair, file

    @staticmethod
    def of_certificate(certificate: Mapping[str, Any]) -> TranslationSubject:
        """The subject of a certificate with this method; raises ValueError where its parameters are no pair's."""
        pair = Pair.from_json(certificate["parameters"].get("pair"))
        return TranslationSubject(_named_by(str(certificate["claim"].get("subject")), pair), pair)

    @staticmethod
    def of_counterexample(content: Mapping[str, Any]) -> TranslationSubject:
        """The subject of a document; raises ValueError where it names no pair."""
        pair = Pair.from_json(content.get("pair"))
        return TranslationSubject(_named_by(str(content.get("subject")), pair), pair)

    def place(self) -> tuple[str, int]:
        """The source's file and the line of the function in it."""
        return self.file, self.pair.source.function(self.pair.symbol, "source").position.line

    def provers(self, method: str) -> tuple[Callable[..., Any], ...]:
        """The proof, and its obligations made again."""
        return refines, required

    def claim(self, parameters: Mapping[str, Any]) -> Claim:
        """The claim of a proof with these answers of the solvers."""
        return self._needed(parameters)[0]

    def words(self) -> Claim:
        """What is known before the proof."""
        statement = "wherever the source's behaviour is defined, the target's is, with the same shapes and values"
        return self._own(Claim(self.name, statement, "", Equality.REFINES, (), ()))

    @property
    def _programs(self) -> str:
        """The texts that it is of."""
        pair = self.pair
        return f"@{pair.symbol} of source {_short(pair.source)} and target {_short(pair.target)}"

    def _own(self, claim: Claim) -> Claim:
        """The claim with the texts that it is of, and what it rests on besides the proof."""
        pair = self.pair
        releases = [p.release for p in (pair.source, pair.target) if p.release]
        trusted = [f"{release} writes in the generic form what its input says" for release in dict.fromkeys(releases)]
        return replace(
            named(claim, self.name),
            statement=f"{claim.statement}; {self._programs}",
            assumptions=(*claim.assumptions, *trusted),
        )

    def semantics(self) -> dict[str, str]:
        """Digests of both programs, of how they are read, and of the texts that say what operators mean."""
        pair = self.pair
        return {
            "source": text_digest(pair.source.text),
            "target": text_digest(pair.target.text),
            "relation": text_digest(pair.symbol, json.dumps(asdict(pair.options), sort_keys=True)),
            "operators": meaning_digest(self.provers(self.method), *_LANGUAGES),
        }

    def trust(self, claim: Claim) -> str:
        """Claim, data and assumptions."""
        return trust_lines(claim)

    def prove(self, discharger: Discharger) -> Verdict:
        """As :func:`chc.translation.refine.refines`; UNKNOWN where the functions cannot be compared."""
        try:
            verdict = refines(*self.pair.functions, self.pair.options, discharger, self.pair.modules)
        except ValueError as error:
            return Verdict(Status.UNKNOWN, self.words(), self.method, 0.0, str(error))
        except RecursionError:
            deep = "an operation depends on others through too many steps; prove parts of the function by themselves"
            return Verdict(Status.UNKNOWN, self.words(), self.method, 0.0, deep)
        verdict.claim = self._own(verdict.claim)
        return verdict

    def parameters(self, verdict: Verdict) -> dict[str, Any]:
        """The pair, and the solvers' answers by which the proof has its form."""
        answers: Any = verdict.details["answers"]
        return {"pair": self.pair.to_json(), "answers": list(answers)}

    def required(self, certificate: Mapping[str, Any]) -> Required | str:
        """The obligations of a proof with the certificate's answers."""
        claim, obligations = self._needed(certificate["parameters"])
        return Required(claim, obligations)

    def _needed(self, parameters: Mapping[str, Any]) -> tuple[Claim, Any]:
        answers = parameters.get("answers")
        if set(parameters) != {"pair", "answers"} or parameters["pair"] != self.pair.to_json():
            raise ValueError("the parameters of a refinement must be its pair and answers")
        if not isinstance(answers, list) or not all(isinstance(a, bool) for a in answers):
            raise ValueError("the answers of a refinement must be a list of truth values")
        claim, obligations = required(*self.pair.functions, self.pair.options, answers, self.pair.modules)
        return self._own(claim), obligations

    def survey(self) -> Runs:
        """Both functions evaluated on drawn inputs."""
        return survey(*self.pair.functions, self.pair.options, self.pair.modules)

    def refutation(self, verdict: Verdict) -> Refutation | None:
        """The inputs that were evaluated."""
        evidence = verdict.details.get("counterexample")
        return self._shown(evidence) if isinstance(evidence, Counterexample) else None

    def replayed(self, document: str) -> Refutation | None:
        """Both functions evaluated again on the document's inputs."""
        content = read_document(document, self.name, {"pair", "inputs"})
        if content["pair"] != self.pair.to_json():
            raise ValueError(f"a counterexample to {self.name} must be of its pair of programs")
        try:
            given = _inputs(content["inputs"])
        except (TypeError, KeyError) as error:
            raise ValueError(
                f"inputs of a counterexample to {self.name} must be sizes, numbers and elements"
            ) from error
        counterexample = replay(*self.pair.functions, self.pair.options, given, self.pair.modules)
        return None if counterexample is None else self._shown(counterexample)

    def _shown(self, counterexample: Counterexample) -> Refutation:
        content = {"pair": self.pair.to_json(), "inputs": _inputs_json(counterexample)}
        shown = {"programs": self._programs, "reading": list(self.pair.options.notes), **counterexample.to_json()}
        return Refutation(str(counterexample), document(self.name, content), shown=shown)


def part_of_name(text: str) -> str:
    """A text as part of the name of a claim, and of a file: without dots."""
    return re.sub(r"[^\w+-]+", "-", text, flags=re.ASCII) or "-"


def _named_by(name: str, pair: Pair) -> str:
    """The name of a claim; raises ValueError unless it ends with that of its function, and perhaps a number."""
    symbol = part_of_name(pair.symbol)
    if re.fullmatch(rf"{re.escape(symbol)}(-[0-9]+)?", name.rpartition(".")[2], re.ASCII) is None:
        raise ValueError(f"the subject of a claim about @{pair.symbol} must end with {symbol}, not be {name}")
    return name


def _short(program: Program) -> str:
    return f"SHA-256 {text_digest(program.text)[:16]}"


def _inputs_json(counterexample: Counterexample) -> dict[str, Any]:
    """Inputs in the order of the arguments, with the place that they show."""
    return {
        "sizes": [[name, value_json(value)] for name, value in counterexample.sizes.items()],
        "scalars": [[name, value_json(value)] for name, value in counterexample.scalars.items()],
        "elements": [
            [name, [[list(at), value_json(value)] for at, value in elements.items()]]
            for name, elements in counterexample.elements.items()
        ],
        "at": list(counterexample.at),
    }


def _inputs(content: Mapping[str, Any]) -> Counterexample:
    """What :func:`_inputs_json` wrote; raises ValueError, TypeError or KeyError on anything else."""
    sizes = {str(name): _natural(value) for name, value in content["sizes"]}
    scalars = {str(name): value_of(value) for name, value in content["scalars"]}
    elements = {
        str(name): {tuple(map(_natural, at)): value_of(value) for at, value in listed}
        for name, listed in content["elements"]
    }
    return Counterexample(sizes, scalars, elements, "", "", "", tuple(map(_natural, content["at"])))


def _natural(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(f"sizes and subscripts of a counterexample must be natural numbers, not {value!r:.40}")
    return value
