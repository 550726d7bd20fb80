"""Running a compiled graph: accelerator nodes on simulators by their programs, everything else on the host.

The host's operators are those of the graph IR on NumPy arrays.  A node of an accelerator operator that has no
implementation runs on the host, too, as the graph that it stands for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ir_semantics.graph.ir import Graph, Node
from ir_semantics.graph.samples import inputs_on_samples, run_on_samples
from ir_semantics.graph.types import Array, GraphError
from rewrites.compiler.codegen import Devices, Executed, ExecutedSamples, Implementation
from rewrites.compiler.codegen.programs import Columns


@dataclass(frozen=True, eq=False)
class Ran:
    """The execution of a node: its operands and result, the accelerator's record of it, and how long it took."""

    number: int
    operands: tuple[Array, ...]
    value: Array
    executed: Executed | None
    seconds: float


@dataclass(frozen=True, eq=False)
class RanSamples:
    """The execution of a node on samples, which are the first axis of operands and result.

    It has the extent 1 where all samples have the same.  ``seconds`` is the time of all.
    """

    number: int
    operands: tuple[Array, ...]
    value: Array
    executed: ExecutedSamples | None
    seconds: float

    def sample(self, number: int, of: int = 1) -> Ran:
        """The execution on one ``of`` so many."""
        operands, value = (
            tuple(a[number if len(a) > 1 else 0] for a in arrays) for arrays in (self.operands, (self.value,))
        )
        executed = None if self.executed is None else self.executed.sample(number)
        return Ran(self.number, operands, value[0], executed, self.seconds / of)


def run_compiled(
    graph: Graph, implementations: Mapping[int, Implementation], inputs: Mapping[str, Array], devices: Devices
) -> Iterator[Ran]:
    """Every node in order; a value is dropped after its last use.

    Raises GraphError where an input is missing, unknown, or of another type, and where an accelerator's operand has a
    number that is not finite: its formats have no code for it.
    """
    one = {name: np.asarray(array)[None] for name, array in inputs.items()}
    for ran in run_samples(graph, implementations, one, devices):
        yield ran.sample(0)


def run_samples(
    graph: Graph, implementations: Mapping[int, Implementation], inputs: Mapping[str, Array], devices: Devices
) -> Iterator[RanSamples]:
    """As :func:`run_compiled` on samples, which are the first axis of inputs; bit for bit what each of them gives."""
    arrays = inputs_on_samples(graph, inputs)
    last = {j: i for i, node in enumerate(graph.nodes) for j in node.operands}
    values: dict[int, Array] = {}
    for i, node in enumerate(graph.nodes):
        operands = tuple(values[j] for j in node.operands)
        started = time.perf_counter()
        executed = None
        if node.operator == "input":
            value = arrays[i]
        elif node.operator == "constant":
            value = graph.constant(i)[None]
        elif i in implementations:
            _check_finite(i, node, operands)
            executed = implementations[i].run_samples(operands, devices)
            value = executed.value
        else:
            value = run_on_samples(node, operands)
        values[i] = value
        yield RanSamples(i, operands, value, executed, time.perf_counter() - started)
        for j in node.operands:
            if last[j] == i:
                values.pop(j, None)


def commands(
    graph: Graph,
    implementations: Mapping[int, Implementation],
    inputs: Mapping[str, Array],
    devices: Devices | None = None,
) -> Iterator[tuple[str, Columns]]:
    """The commands of a run, as columns, of every call under the numbers of node and call; for drivers.

    Raises GraphError as :func:`run_compiled` does, and InstanceError where commands are known only when the device has
    answered.
    """
    for ran in run_compiled(graph, implementations, inputs, devices or Devices()):
        if ran.executed is not None:
            implementation = implementations[ran.number]
            for call in range(len(implementation.calls)):
                yield f"{ran.number}-{call}", implementation.columns(call, ran.operands)


def _check_finite(number: int, node: Node, operands: tuple[Array, ...]) -> None:
    for place, operand in enumerate(operands):
        if not np.all(np.isfinite(operand)):
            raise GraphError(
                f"operand {place} of node {number} ({node.operator}) must be finite numbers, for an accelerator has no "
                "others; NaN or infinity reached it: look at the inputs"
            )
