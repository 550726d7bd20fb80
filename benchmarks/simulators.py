"""Speed of the simulators: whole programs and single operations, beside the scalar interpreter and recorded times.

Every time is the processor's, the shortest of several runs in one process, each on a new device: from the commands to
the words that they read.  The first run, for which code is compiled or found in the cache, is given beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accel_models.flexasr.layout import PE_BASE, PE_COUNT, PeRegion, pe_register_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.quantise import Quantised, quantise
from accel_models.hlscnn.model import hlscnn
from accel_models.vta.model import vta
from benchmarks.record import takes_nothing, write
from ila_lang import CommandStream, Ila, Machine, Simulator
from rewrites.mappings.flexasr.operations import attention, layer_norm, linear, pool, recurrent
from rewrites.mappings.hlscnn.operations import conv2d
from rewrites.mappings.vta.operations import dense

REPEATS = 15
RNG = np.random.default_rng(20261121)

# What the public ILAng-generated C++ simulator of FlexASR took on one core (seconds, optimised build); recorded.
RECORDED = {
    "FlexASR max-pool 16x64": 0.020,
    "FlexASR max-pool 64x256": 0.230,
    "FlexASR linear 64 to 64, 16 timesteps": 0.262,
    "FlexASR linear 256 to 64, 10 timesteps": 0.651,
    "FlexASR layer norm 16x64": 0.040,
    "FlexASR attention 16x64": 0.016,
    "FlexASR LSTM 64, 1 step": 0.34,
    "FlexASR LSTM 256 clustered, 4 steps": 17.8,
}


@dataclass(frozen=True)
class Case:
    """A program: how to make its device, how to run it there, and the kernel in which the work is done.

    ``target`` is in milliseconds; ``scalar`` asks for the time of the scalar interpreter, too.
    """

    name: str
    ila: Callable[[], Ila]
    run: Callable[[Simulator], Any]
    load: Callable[[Machine], Any]
    kernel: str
    target: float | None = None
    scalar: bool = False


def tensor(*shape: int) -> Quantised:
    """Normally distributed numbers of standard deviation 0.3, as codes."""
    return quantise(np.clip(RNG.normal(size=shape) * 0.3, -3, 3))


def clustered(rows: int, columns: int) -> Quantised:
    """Weights of 16 different codes."""
    table = quantise(np.linspace(-0.24, 0.24, 16))
    return Quantised(RNG.choice(table.codes, (rows, columns)), table.bias)


def looked_up(stream: CommandStream) -> CommandStream:
    """The commands of a layer with at most 16 different weights, with these in tables and indices in the buffers."""
    columns = {name: column.copy() for name, column in stream.columns.items()}
    address, data = columns["addr_in"], columns["data_in"]
    region, number = address >> 20 & 15, address >> 4 & 0xFFFF
    elements = address >= PE_BASE
    weights, core = elements & (region == PeRegion.WEIGHT), elements & (region == PeRegion.CORE)
    table = np.unique(data[weights])
    assert len(table) <= 16
    pairs = np.searchsorted(table, data[weights]).astype(np.uint8).reshape(-1, 2)
    packed = (pairs[:, 0] | pairs[:, 1] << 4).reshape(-1, 16)
    data[core & (number == 1), 2] |= 1  # is_cluster
    managers = core & (number > 1)
    starts = np.ascontiguousarray(data[managers, 6:8]).view("<u2")
    data[managers, 6:8] = (starts // 2).view(np.uint8)  # base_weight
    tables = [pe_register_address(pe, PeRegion.CORE, 3 + 2 * m) for pe in range(PE_COUNT) for m in range(2)]
    entry = np.pad(table, (0, 16 - len(table)), mode="edge")
    places = address[weights].reshape(-1, 2)
    half = (places[:, 0] & ~0xFFFFF) | (places[:, 0] & 0xFFFFF) >> 5 << 4
    first = np.concatenate([half, np.array(tables, address.dtype)])
    rows = np.concatenate([packed, np.tile(entry, (len(tables), 1))])
    written = {"if_axi_wr": np.ones(len(first), bool), "if_axi_rd": np.zeros(len(first), bool)}
    written |= {"addr_in": first, "data_in": rows}
    return CommandStream({name: np.concatenate([written[name], c[~weights]]) for name, c in columns.items()})


def flexasr_case(
    name: str, stream: CommandStream, kernel: str, target: float | None = None, scalar: bool = False
) -> Case:
    """A program for FlexASR; a machine of the scalar interpreter is brought to where the operation has been done."""

    def load(device: Machine) -> None:
        start = device.ila.kernels[kernel]
        for number in range(len(stream)):
            instruction = device.decode(stream.command(number))
            if instruction.kernel is not start:
                device.execute_one(instruction, stream.command(number))

    return Case(name, flexasr, lambda device: device.execute(stream, ["data_out"]), load, kernel, target, scalar)


def lstm(x: Quantised, w: Quantised, u: Quantised, b: Quantised) -> CommandStream:
    """The commands of an LSTM with one bias beside x and beside the state."""
    return recurrent("lstm", (x, w, u, b, b), state_bias=2).stream


def cases() -> list[Case]:
    """All programs."""
    activations = RNG.integers(-300, 300, (16, 32, 32)).astype(np.int16)
    weights = RNG.integers(-128, 128, (16, 16, 3, 3))
    convolution = conv2d(np.pad(activations, ((0, 0), (1, 1), (1, 1))), weights)
    x, w = (RNG.integers(-128, 128, (64, 64)).astype(np.int8) for _ in "xw")
    product = dense(x, w, shift=6)
    control = "gb_control"
    small = linear(tensor(16, 64), tensor(64, 64), tensor(64), output_bias=3).stream
    return [
        flexasr_case("FlexASR max-pool 16x64", pool("max", tensor(16, 64)).stream, "layer_reduce"),
        flexasr_case("FlexASR max-pool 64x256", pool("max", tensor(64, 256)).stream, "layer_reduce", 1),
        flexasr_case(
            "FlexASR layer norm 16x64", layer_norm(tensor(16, 64), tensor(64), tensor(64)).stream, "layer_norm"
        ),
        flexasr_case(
            "FlexASR attention 16x64", attention(tensor(16, 64), tensor(64), output_bias=3).stream, "attention"
        ),
        flexasr_case("FlexASR linear 64 to 64, 16 timesteps", small, control, 5, scalar=True),
        flexasr_case(
            "FlexASR linear 256 to 64, 10 timesteps",
            linear(tensor(10, 256), tensor(64, 256), tensor(64), output_bias=4).stream,
            control,
        ),
        flexasr_case(
            "FlexASR linear 256 to 256, 16 timesteps",
            linear(tensor(16, 256), tensor(256, 256), tensor(256), output_bias=4).stream,
            control,
            scalar=True,
        ),
        flexasr_case(
            "FlexASR LSTM 64, 1 step",
            lstm(tensor(1, 64), tensor(256, 64), tensor(256, 64), tensor(256)),
            control,
        ),
        flexasr_case(
            "FlexASR LSTM 256 clustered, 4 steps",
            looked_up(lstm(tensor(4, 256), clustered(1024, 256), clustered(1024, 256), tensor(1024))),
            control,
        ),
        flexasr_case(
            "FlexASR LSTM 256, 35 steps",
            lstm(tensor(35, 256), tensor(1024, 256), tensor(1024, 256), tensor(1024)),
            control,
            100,
        ),
        Case(
            "HLSCNN convolution 3x3, 16x32x32 to 16",
            hlscnn,
            convolution.run,
            convolution.run,
            "convolution",
            50,
            scalar=True,
        ),
        Case(
            "VTA product 64x64x64",
            vta,
            product.run,
            product.run,
            "gemm",
            10,
        ),
    ]


def timed(action: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Milliseconds of one call, of the processor by default."""
    start = clock()
    action()
    return (clock() - start) * 1e3


def measure_case(case: Case) -> dict[str, Any]:
    """Times of one program, in milliseconds."""
    ila = case.ila()
    first = timed(lambda: case.run(Simulator(ila)))
    devices = [Simulator(ila) for _ in range(REPEATS)]
    program = min(timed(lambda device=device: case.run(device)) for device in devices)  # type: ignore[misc]
    device, kernel = devices[-1], ila.kernels[case.kernel]
    operation = min(timed(lambda: device.run_kernel(kernel)) for _ in range(REPEATS))
    row: dict[str, Any] = {
        "what": case.name,
        "first_ms": first,
        "program_ms": program,
        "operation_ms": operation,
        "target_ms": case.target,
    }
    if case.name in RECORDED:
        row |= {"recorded_ms": RECORDED[case.name] * 1e3, "faster_than_recorded": RECORDED[case.name] * 1e3 / program}
    if case.scalar:
        slow = Machine(ila)
        case.load(slow)
        row["scalar_operation_ms"] = timed(lambda: slow.run_kernel(kernel))
        row["faster_than_scalar"] = row["scalar_operation_ms"] / operation
    return row


MEMORY = """
import sys
from ila_lang import CommandStream, Simulator
from benchmarks.simulators import cases, peak_kib
case = next(c for c in cases() if c.name == sys.argv[1])
ila = case.ila()
before = peak_kib()
device = Simulator(ila)
case.run(device)
case.run(Simulator(ila))
print(peak_kib() - before)
"""


def peak_kib() -> int:
    """The most memory that this process has had (KiB), from Linux's account of it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def memory_mib(name: str) -> float:
    """By how much the peak of memory grows while two devices run a program, one after the other (MiB)."""
    done = subprocess.run([sys.executable, "-c", MEMORY, name], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def startup_seconds() -> float:
    """The processor's time for the shortest of five starts of the command line (``ilaverify list``)."""
    command = [sys.executable, "-m", "ilaverify", "list"]

    def children() -> float:
        return os.times().children_user + os.times().children_system

    return (
        min(timed(lambda: subprocess.run(command, check=True, capture_output=True), children) for _ in range(5)) / 1e3
    )


def main() -> int:
    """Measures every program and writes JSON and Markdown to ``benchmarks/results``."""
    rows = []
    for case in cases():
        row = measure_case(case)
        rows.append(row)
        more = "".join(f"  {row[k]:>8.0f}x {k}" for k in ("faster_than_recorded", "faster_than_scalar") if k in row)
        print(
            f"{row['what']:<42} {row['program_ms']:>9.2f} ms, operation {row['operation_ms']:>9.2f} ms{more}",
            flush=True,
        )
    memory = {
        name: memory_mib(name)
        for name in (
            "FlexASR max-pool 64x256",
            "FlexASR LSTM 256, 35 steps",
            "HLSCNN convolution 3x3, 16x32x32 to 16",
            "VTA product 64x64x64",
        )
    }
    startup = startup_seconds()
    content = {
        "rows": rows,
        "memory_mib": memory,
        "startup_seconds": startup,
    }
    write("simulators", content, markdown(content))
    print(f"memory {memory}, start-up {startup:.2f} s")
    return 0


def markdown(content: dict[str, Any]) -> str:
    """The results as a page."""

    def number(row: dict[str, Any], key: str, form: str = ".2f") -> str:
        return "" if row.get(key) is None else format(row[key], form)

    lines = [
        "# Simulators",
        "",
        "Milliseconds of one processor; shortest of 15 runs on new devices, from commands to the words read.",
        "*First*: the first run in the process, with what is compiled or found in the cache.  *Operation*: the kernel.",
        "*Recorded*: the public ILAng-generated C++ simulator, measured elsewhere on one core; that ratio is between",
        "machines.  The ratio to the scalar interpreter is within this run, for the operation.  Machine and versions:",
        "simulators.json.",
        "",
        "| program | first | program | target | operation | recorded | ratio | scalar operation | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in content["rows"]:
        cells = [
            r["what"], number(r, "first_ms", ".0f"), number(r, "program_ms"), number(r, "target_ms", "g"),
            number(r, "operation_ms"), number(r, "recorded_ms", "g"), number(r, "faster_than_recorded", ".0f"),
            number(r, "scalar_operation_ms", ".0f"), number(r, "faster_than_scalar", ".0f"),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| program | growth of peak memory with one device, MiB |", "| --- | --- |"]
    lines += [f"| {name} | {mib:.0f} |" for name, mib in content["memory_mib"].items()]
    lines += ["", f"Start-up of the command line (`ilaverify list`): {content['startup_seconds']:.2f} s.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    takes_nothing("benchmarks.simulators", __doc__)
    sys.exit(main())
