"""A compiled model for people: what runs where and why the rest does not, what it rests on, and the limits of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reports.outcomes import counted
from rewrites.compiler.codegen import declared, operator_of
from rewrites.compiler.codegen.floats import FloatImplementation
from rewrites.compiler.codegen.interface import Implementation
from smt_encodings.claims import Equality

from .model import Compiled
from .origins import origin_text, printable

_MODELS = (
    "Simulators are derived from the same models as the proofs; that hardware behaves like them is not claimed.",
    "That the graph means what other runtimes compute is tested (ONNX backend tests), not proved.",
)
_NUMBERS = (
    "Quantisation is chosen from ranges that calibration saw. Numbers beyond them are cut to the end of their format.",
    "Bounds of operators are about one operator on its own operands. Under a bound of an output for all inputs in "
    "ranges, run says whether it is proved if check accepts the model, or what is declared; nothing is said about "
    "accuracy.",
    "Nothing is claimed about time on hardware, interrupts, or commands of other masters in between.",
)
_HOST = "What the host does for a node's programs (to round and pad operands, to cut them, to put results together)"

_EQUALITY = {
    Equality.BIT_EXACT: "the same bits",
    Equality.UP_TO_REDUCTION_ORDER: "the same sums in another order",
    Equality.OVER_REALS: "the same real numbers, where every operation of the model and of its chain of rules has a "
    "real value (no infinity, no division by 0); floating-point results may be rounded differently",
}


def caveats(compiled: Compiled) -> tuple[str, ...]:
    """What a compiled model does not guarantee."""
    return (*_MODELS, *_host_share(compiled), *_NUMBERS)


def _host_share(compiled: Compiled) -> Iterator[str]:
    """Which nodes' host code is not proved, or that it is; nothing where no node has any."""
    own = [str(n) for n, implementation in compiled.implementations.items() if not _is_host_proved(implementation)]
    if len(own) < len(compiled.implementations):
        yield (f"{_HOST} is proved programs{', for other nodes than the next line names' if own else ''}.")
    if own:
        nodes = f"node{'' if len(own) == 1 else 's'} {', '.join(own)}"
        yield f"{_HOST} is code of the target's author for {nodes}: nothing is proved of it."


def _is_host_proved(implementation: Implementation) -> bool:
    """Whether its host code is a sequence of proved programs."""
    return isinstance(implementation, FloatImplementation)


def equality_text(equality: Equality) -> str:
    """The sense in which the compiled graph equals the model, before accelerators quantise."""
    return f"{equality.value}: {_EQUALITY.get(equality, 'see the certificates')}"


def calibration_text(compiled: Compiled) -> str:
    """The source of the ranges; in capitals where they come from random numbers."""
    calibration = compiled.choices.calibration
    if calibration.get("given") is not True:
        return (
            f"NO CALIBRATION DATA WERE GIVEN: ranges are those of {calibration.get('samples')} random inputs (seed "
            f"{calibration.get('seed')}), which may be far from real ones; give data with --calibrate"
        )
    samples = calibration.get("samples")
    return f"ranges are those of {samples} given {'input' if samples == 1 else 'inputs'}"


def summary_text(compiled: Compiled) -> str:
    """The text of SUMMARY.md."""
    model, proof, memory = compiled.model, compiled.proof, compiled.memory
    read = ""
    if model.package:
        package = _cell(model.package)
        read = f"Read by the front end {model.front_end} of {package}, which is trusted as that is.\n\n"
    calls = sum(len(i.calls) for i in compiled.implementations.values())
    commands = sum(p["commands"] for programs in compiled.programs.values() for p in programs)
    host = [f"| {_cell(h.operator)} | {h.count} | {_cell(h.reason)} |" for h in compiled.host]
    claims = [
        f"| {name} | {c.uses} | `{c.digest[:12]}` | {_cell(c.statement)} | {_cell(c.size_domain)} |"
        for name, c in proof.certificates.items()
    ]
    left_out = [f"* {name}: {_cell(reason)}" for name, reason in proof.left_out.items()]
    return f"""\
# {_cell(model.name)}, compiled for {", ".join(compiled.targets)}

{read}On accelerators: {counted(len(compiled.implementations), "operator")}, by {counted(calls, "program")} of \
{commands:,} commands; the graph equals the model in the sense of {equality_text(proof.equality)}.

## What runs where

| node | operator | from | result | programs | commands | mappings | host's share | formats |
|---|---|---|---|---|---|---|---|---|
{_joined(_accelerated(compiled))}
| stays on the host | nodes | why |
|---|---|---|
{_joined(host)}
## Proofs that it rests on

Each of these claims holds a certificate; without any one of them the compiled model would be another one, \
or, without an `error-...`, bounds in ranges would be declared. `ilaverify check` checks this again; why operators \
stay on the host, counts of uses, settings and calibration are what the compiler said. A use is a step of the chain of \
rules, or a program. What the letters of a bound mean is printed by `ilaverify rule NAME`; in `error-...`, a and b are \
numbers of magnitudes up to m and n, a' and b' differ \
from them by up to e and f, and s is a sum of k terms.

| claim | uses | certificate | what it says | sizes |
|---|---|---|---|---|
{_joined(claims)}
{_joined(_joints(compiled))}
{counted(len(left_out), "claim")} left out{":" if left_out else "."}

{_joined(left_out)}
## Number formats

{calibration_text(compiled)}.

## Memory of the host

{len(memory.plan.addresses)} tensors share {memory.plan.peak:,} bytes; at least {memory.problem.load:,} are needed.

## What this does not mean

{_joined(f"* {text}" for text in caveats(compiled))}"""


def _joined(lines: Iterable[str]) -> str:
    """Lines, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def _joints(compiled: Compiled) -> list[str]:
    """What is proved of operators and the programs that execute them, and what is not."""
    operators = [(operator_of(i), i.mappings) for i in compiled.implementations.values()]
    proved = all(of.stated(mapping) is not None for of, mappings in operators for mapping in mappings)
    told = ["That operators are what their mappings compute over the real numbers is among these claims (joint-...)."]
    unproved = declared(compiled.implementations.values()).items()
    reasons = [f"* {_cell(what)}: {_cell(reason)}" for what, reason in unproved]
    return [*(told if proved else ()), *(("", "DECLARED, NOT PROVED:", "", *reasons) if reasons else ())]


def _accelerated(compiled: Compiled) -> Iterator[str]:
    for number, implementation in compiled.implementations.items():
        node = compiled.graph.nodes[number]
        mappings = ", ".join(m.name for m in implementation.mappings)
        formats = ", ".join(f"{name} {value}" for name, value in sorted(implementation.quantisation.items()))
        share = "proved" if _is_host_proved(implementation) else "the author's code"
        commands = sum(p["commands"] for p in compiled.programs[number])
        yield (
            f"| {number} | {node.operator} | {_cell(origin_text(compiled.graph, number))} | {node.type} | "
            f"{len(implementation.calls)} | {commands:,} | {mappings} | {share} | {formats} |"
        )


def _cell(text: str) -> str:
    """A text that stays in its table cell, whatever names a model has."""
    return printable(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
