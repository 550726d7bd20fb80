"""Table 2 of the D2A/3LA paper (arXiv 2203.00218, section 4.4.1): errors of IR-accelerator mappings by simulation.

Every row runs the accelerator's program for 100 random inputs of each size, from one fixed seed, and takes the relative
Frobenius error ||result - reference|| / ||reference|| of each input's output, three times:

* *whole*: the reference is the IR operator in float64 on the data as they were drawn;
* *arithmetic*: on the quantised data that the accelerator got, so that only its arithmetic is measured;
* *as published*: as the authors' scripts compare (public repository 3la_ILA_tensor_op, ``flexnlp/op_sim.py`` and the
  drivers): on quantised data, and with the reference itself rounded to AdaptivFloat.  Which tensors the scripts had
  quantised when the published samples were taken follows from these samples only: see docs/how-to/campaigns.md.

Where the paper's samples are public, they are shown by size.  ``--inputs`` changes the number of inputs, ``--rows`` the
rows.  Variations of data, sizes and options, which explain the differences, are in the same result.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.record import machine
from reports.certificate import write_atomically
from rewrites.campaigns.statistics import statistics_of

RESULTS = Path(__file__).parent / "results"
SEED = 0
MEASURES = ("whole", "arithmetic", "as published")

Reals = NDArray[np.float64]
Errors = dict[str, list[float]]
"""Errors of each input, by measure."""


@dataclass(frozen=True)
class Row:
    """A row: the paper's mean and deviation in percent, and by size where they are public; sizes; what one size runs.

    ``run(generator, size, inputs)`` gives the errors.
    """

    title: str
    paper: tuple[float, float]
    published: Mapping[int, tuple[float, float]]
    sizes: Sequence[int]
    data: str
    run: Callable[[np.random.Generator, int, int], Errors]


def uniform(generator: np.random.Generator, *shape: int, low: float = -1.0) -> Reals:
    return generator.uniform(low, 1.0, shape)


def errors_of(result: Reals, whole: Reals, quantised: Reals, published: Reals) -> Errors:
    """The errors of each row of a result, against the references of the three measures."""
    from rewrites.campaigns.statistics import relative_error

    references = zip(MEASURES, (whole, quantised, published), strict=True)
    return {name: [relative_error(r, y) for r, y in zip(result, want, strict=True)] for name, want in references}


def merged(parts: Sequence[Errors]) -> Errors:
    return {name: [e for part in parts for e in part[name]] for name in parts[0]}


def coded(rows: Reals) -> Reals:
    """Each row rounded to AdaptivFloat, at the bias that fits it."""
    from rewrites.campaigns.accelerators.device import quantise_fitting

    return np.stack([quantise_fitting(row).values for row in rows])


# -- rows -----------------------------------------------------------------------------------------------


def gemm(generator: np.random.Generator, size: int, inputs: int) -> Errors:
    from ir_semantics.reference import alu_int32, dense_int8, truncate_int8
    from rewrites.campaigns.accelerators.device import run_vta
    from rewrites.mappings.vta.operations import dense

    parts = []
    for _ in range(inputs):
        x, w = (generator.integers(-128, 128, (size, size)).astype(np.int8) for _ in range(2))
        result = run_vta(dense(x, w, shift=8)).astype(np.float64)
        product = alu_int32("shr", dense_int8(x, w), 8)
        ideal = truncate_int8(alu_int32("min", alu_int32("max", product, -128), 127)).astype(np.float64)
        parts.append(errors_of(result[None], *[ideal[None]] * 3))
    return merged(parts)


def conv2d(generator: np.random.Generator, size: int, inputs: int, **options: Any) -> Errors:
    """``size`` channels and filters on an image of 16x16; by default on the recorded hardware (weights of 8 bits)."""
    from accel_models.hlscnn.options import BY_WEIGHT_BITS
    from ir_semantics.reference import conv2d as reference
    from rewrites.campaigns.accelerators.hlscnn import convolve

    readings = replace(BY_WEIGHT_BITS[options.get("weight_bits", 8)], **options)
    parts = []
    for _ in range(inputs):
        x, w = uniform(generator, size, 16, 16), uniform(generator, size, size, 3, 3)
        result, ideal = convolve(x, w, 1, readings)
        parts.append(errors_of(result[None], reference(x[None], w), ideal[None], ideal[None]))
    return merged(parts)


def linear(generator: np.random.Generator, size: int, inputs: int, *, layer_bias: str = "rounded") -> Errors:
    """The reference as published has the layer's bias as drawn, and the device has it rounded to codes.

    Or it is "cut" to codes instead, as the constructor of the C++ class does; or both sides have it "quantised".
    """
    from ir_semantics.reference import dense
    from rewrites.campaigns.accelerators.device import fitting_bias, quantise_fitting, run_flexasr
    from rewrites.mappings.flexasr import operations

    x, w, b = uniform(generator, inputs, size), uniform(generator, size, size), uniform(generator, size, low=0.0)
    whole = dense(x, w, b)
    q_x, q_w, q_b = map(quantise_fitting, (x, w, cut_mantissa(b) if layer_bias == "cut" else b))
    result = run_flexasr(operations.linear(q_x, q_w, q_b, output_bias=fitting_bias(whole))).values
    ideal = dense(q_x.values, q_w.values, q_b.values)
    published = ideal if layer_bias == "quantised" else dense(q_x.values, q_w.values, b)
    return errors_of(result, whole, ideal, coded(published))


def cut_mantissa(values: Reals) -> Reals:
    """Numbers cut to four mantissa bits, toward zero."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.trunc(np.ldexp(mantissa, 5)), exponent - 5))


def lstm_steps(
    generator: np.random.Generator, size: int, inputs: int, timesteps: int, bias: int = 2, saturation: Any = "2022"
) -> list[Errors]:
    """The errors by timestep; everything is uniform in [-1, 1), states have AdaptivFloat bias 2 as in the driver."""
    from accel_models.flexasr.options import FlexAsrOptions
    from ir_semantics.reference import lstm
    from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr
    from rewrites.mappings.flexasr import operations

    parts: list[list[Errors]] = []
    for _ in range(inputs):
        rows = 4 * size
        layer = [uniform(generator, *s) for s in ((timesteps, size), (rows, size), (rows, size), (rows,), (rows,))]
        q = [quantise_fitting(tensor) for tensor in layer]
        result = run_flexasr(
            operations.recurrent("lstm", q, state_bias=bias), FlexAsrOptions(saturation=saturation)
        ).values
        whole, ideal = lstm(*layer)[0], lstm(*(t.values for t in q))[0]
        published = coded(lstm(*(t.values for t in q[:3]), *layer[3:])[0])
        steps = zip(result, whole, ideal, published, strict=True)
        parts.append([errors_of(*(part[None] for part in step)) for step in steps])
    return [merged([part[t] for part in parts]) for t in range(timesteps)]


def lstm(generator: np.random.Generator, size: int, inputs: int) -> Errors:
    return lstm_steps(generator, size, inputs, 1)[0]


def layer_norm(generator: np.random.Generator, size: int, inputs: int, draw: Callable[..., Reals] = uniform) -> Errors:
    from ir_semantics.reference import layer_norm as reference
    from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr
    from rewrites.mappings.flexasr import operations

    tensors = draw(generator, inputs, size), 0.2 * uniform(generator, size), 0.2 * uniform(generator, size)
    q = [quantise_fitting(tensor) for tensor in tensors]
    result = run_flexasr(operations.layer_norm(*q)).values
    ideal = reference(*(t.values for t in q))
    return errors_of(result, reference(*tensors), ideal, coded(ideal))


def pool(kind: Any) -> Callable[[np.random.Generator, int, int], Errors]:
    def run(generator: np.random.Generator, size: int, inputs: int, draw: Callable[..., Reals] = uniform) -> Errors:
        from ir_semantics.reference import pool_over_time
        from rewrites.campaigns.accelerators.device import quantise_fitting, run_flexasr
        from rewrites.mappings.flexasr import operations

        x = draw(generator, 2 * inputs, size)
        q = quantise_fitting(x)
        ideal = pool_over_time(q.values, kind)
        return errors_of(run_flexasr(operations.pool(kind, q)).values, pool_over_time(x, kind), ideal, coded(ideal))

    return run


def attention(
    generator: np.random.Generator, size: int, inputs: int, *, scale: float = 1.0, timesteps: int = 10, bias: int = 2
) -> Errors:
    """Keys and query uniform in [-scale, scale); softmax weights of AdaptivFloat bias 2 as in the driver."""
    from ir_semantics.reference import attention as reference
    from rewrites.campaigns.accelerators.device import fitting_bias, quantise_fitting, run_flexasr
    from rewrites.mappings.flexasr import operations

    parts = []
    for _ in range(inputs):
        keys, query = scale * uniform(generator, timesteps, size), scale * uniform(generator, size)
        q_keys, q_query = quantise_fitting(keys), quantise_fitting(query)
        ideal = reference(q_keys.values, q_query.values)
        program = operations.attention(q_keys, q_query, output_bias=fitting_bias(ideal), weight_bias=bias)
        parts.append(
            errors_of(run_flexasr(program).values[None], reference(keys, query)[None], ideal[None], ideal[None])
        )
    return merged(parts)


SIZES = (64, 128, 256, 512)
ROWS = {
    "VTA GEMM": Row("VTA GEMM", (0.0, 0.0), {}, (16, 64), "x and w uniform in -128 .. 127, n x n by n x n", gemm),
    "HLSCNN Conv2D": Row(
        "HLSCNN Conv2D",
        (1.78, 0.16),
        {},
        (8, 16, 32),
        "x [n, 16, 16] and w [n, n, 3, 3] uniform in [-1, 1), weights of 8 bits",
        conv2d,
    ),
    "FlexASR LinearLayer": Row(
        "FlexASR LinearLayer",
        (0.84, 0.29),
        {64: (1.00, 0.43), 128: (0.89, 0.23), 256: (0.79, 0.17), 512: (0.68, 0.14)},
        SIZES,
        "x [n] and w [n, n] uniform in [-1, 1), b [n] in [0, 1)",
        linear,
    ),
    "FlexASR LSTM": Row(
        "FlexASR LSTM",
        (1.21, 0.19),
        {64: (1.50, 0.52), 128: (1.40, 0.39), 256: (1.30, 0.28), 512: (1.21, 0.19)},
        SIZES,
        "first timestep from zero states, n inputs and n states, everything uniform in [-1, 1)",
        lstm,
    ),
    "FlexASR LayerNorm": Row(
        "FlexASR LayerNorm",
        (0.27, 0.20),
        {64: (0.24, 0.27), 128: (0.26, 0.21), 256: (0.26, 0.16), 512: (0.31, 0.12)},
        SIZES,
        "x [n] uniform in [-1, 1), gamma and beta in [-0.2, 0.2)",
        layer_norm,
    ),
    "FlexASR MaxPool": Row(
        "FlexASR MaxPool",
        (0.0, 0.0),
        dict.fromkeys(SIZES, (0.0, 0.0)),
        SIZES,
        "x [2, n] uniform in [-1, 1)",
        pool("max"),
    ),
    "FlexASR MeanPool": Row(
        "FlexASR MeanPool",
        (1.79, 0.28),
        {64: (1.80, 0.44), 128: (1.78, 0.27), 256: (1.79, 0.19), 512: (1.80, 0.14)},
        SIZES,
        "x [2, n] uniform in [-1, 1)",
        pool("mean"),
    ),
    "FlexASR Attention": Row(
        "FlexASR Attention",
        (4.22, 0.09),
        {64: (13.60, 45.38), 128: (6.26, 1.66), 256: (5.74, 1.66), 512: (5.28, 1.32)},
        SIZES,
        "keys [10, n] and query [n] uniform in [-1, 1)",
        attention,
    ),
}
"""Rows by the paper's names; figures by size are those of the public samples (``flexnlp/op_sim/summary.json``)."""


# -- variations -----------------------------------------------------------------------------------------


def normal(generator: np.random.Generator, *shape: int) -> Reals:
    return generator.standard_normal(shape)


def variations(inputs: int) -> dict[str, dict[str, Errors]]:
    """Errors under other data, sizes and options: the evidence for why figures differ."""
    groups: dict[str, dict[str, Errors]] = {}

    def add(group: str, name: str, run: Callable[[np.random.Generator], Errors]) -> None:
        groups.setdefault(group, {})[name] = run(generator_of(f"{group}: {name}", 0))
        print(f"{group}: {name}  {summary(groups[group][name])}", flush=True)

    for data, draw in (("uniform", uniform), ("normal", normal)):
        for title, run in (("MaxPool", pool("max")), ("MeanPool", pool("mean")), ("LayerNorm", layer_norm)):
            add(f"{title}, n = 256, by data", data, lambda g, run=run, draw=draw: run(g, 256, inputs, draw))  # type: ignore[misc]
    for size in SIZES:
        for kind in ("rounded", "cut", "quantised"):
            add(
                "LinearLayer by its bias: rounded or cut on the device, or quantised on both sides",
                f"n = {size}, {kind}",
                lambda g, n=size, b=kind: linear(g, n, inputs, layer_bias=b),  # type: ignore[misc]
            )
    for channels in (4, 8, 16, 32, 64):
        for name, options in (
            ("8-bit weights", {}),
            ("16-bit weights", {"weight_bits": 16}),
            ("8-bit weights, cut after every tap", {"tap_rounding": "truncate"}),
            ("16-bit weights, cut after every tap", {"weight_bits": 16, "tap_rounding": "truncate"}),
        ):
            add(
                "Conv2D by channels and weights",
                f"{channels} channels, {name}",
                lambda g, n=channels, o=options: conv2d(g, n, min(inputs, 20), **o),  # type: ignore[misc]
            )
    for scale in (1, 2, 4, 8):
        for bias in (2, 3):
            add(
                "Attention by scale of the data and bias of the weights, all sizes",
                f"[-{scale}, {scale}), bias {bias}",
                lambda g, s=scale, b=bias: merged([attention(g, n, inputs, scale=s, bias=b) for n in SIZES]),  # type: ignore[misc]
            )
    for bias, saturation in ((2, "2022"), (2, "pre2022"), (3, "2022")):
        steps = lstm_steps(generator_of("LSTM by timestep", 0), 64, min(inputs, 20), 10, bias, saturation)
        group = f"LSTM by timestep, n = 64, bias of the states {bias}, saturation of {saturation}"
        groups[group] = {f"timestep {t}": errors for t, errors in enumerate(steps)}
        print(f"{group}: " + ", ".join(f"{100 * np.mean(e['arithmetic']):.1f} %" for e in steps), flush=True)
    return groups


# -- running and showing --------------------------------------------------------------------------------


def generator_of(name: str, size: int) -> np.random.Generator:
    return np.random.default_rng([SEED, size, *name.encode()])


def summary(errors: Errors) -> str:
    return ", ".join(f"{name} {figure(values)}" for name, values in errors.items())


def figure(values: Sequence[float]) -> str:
    """Mean and deviation in percent."""
    statistics = statistics_of(values)
    assert statistics is not None
    return f"{100 * statistics.mean:.2f} ± {100 * statistics.deviation:.2f} %"


def worst(values: Sequence[float]) -> str:
    return f"{100 * max(values):.2f} %"


def pooled(by_size: Mapping[int, Errors]) -> Errors:
    return merged(list(by_size.values()))


def show(results: Mapping[str, Mapping[int, Errors]], varied: Mapping[str, Mapping[str, Errors]], inputs: int) -> str:
    """The tables as Markdown."""
    lines = [
        "# Table 2",
        "",
        f"Relative Frobenius errors, mean ± standard deviation over all inputs of all sizes ({inputs} inputs of each "
        f"size, seed {SEED}).  The measures are explained in [campaigns](../../docs/how-to/campaigns.md), and so are "
        "the differences.  Machine, versions and every single error: table2.json.",
        "",
        "| accelerator, operation | whole | worst | arithmetic | worst | as published | paper |",
        "|" + " --- |" * 7,
    ]
    for name, by_size in results.items():
        e, (mean, deviation) = pooled(by_size), ROWS[name].paper
        cells = [figure(e["whole"]), worst(e["whole"]), figure(e["arithmetic"]), worst(e["arithmetic"])]
        cells += [figure(e["as published"]), f"{mean:.2f} ± {deviation:.2f} %"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "## By size", ""]
    lines += ["| operation | data | n | whole | arithmetic | as published | public samples |", "|" + " --- |" * 7]
    for name, by_size in results.items():
        row = ROWS[name]
        for size, e in by_size.items():
            public = row.published.get(size)
            cells = [name, row.data, str(size), *(figure(e[m]) for m in MEASURES)]
            lines.append("| " + " | ".join([*cells, f"{public[0]:.2f} ± {public[1]:.2f} %" if public else "-"]) + " |")
    lines += ["", "## Variations", ""]
    for group, parts in varied.items():
        lines += [f"**{group}**", "", "| | whole | worst | arithmetic | worst | as published |", "|" + " --- |" * 6]
        for name, e in parts.items():
            cells = [figure(e["whole"]), worst(e["whole"]), figure(e["arithmetic"]), worst(e["arithmetic"])]
            lines.append(f"| {name} | " + " | ".join([*cells, figure(e["as published"])]) + " |")
        lines.append("")
    return "\n".join(lines)


def record(errors: Errors) -> dict[str, Any]:
    return {name: [float(f"{e:.6g}") for e in values] for name, values in errors.items()}


def main(arguments: Sequence[str]) -> int:
    """Measures the table, prints it, and writes JSON and Markdown to ``benchmarks/results``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table2", description="Table 2: errors of mappings.")
    parser.add_argument("--inputs", type=int, default=100, help="random inputs of each size")
    parser.add_argument("--rows", default=",".join(ROWS), help="names, with commas between")
    parser.add_argument("--no-variations", action="store_true", help="rows only")
    parser.add_argument("-o", dest="directory", type=Path, default=RESULTS, help="default: benchmarks/results")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.rows.split(",") if name not in ROWS]
    if unknown or options.inputs < 1:
        parser.error(f"rows must be among {', '.join(ROWS)}, and inputs at least 1")
    start = time.perf_counter()
    results: dict[str, dict[int, Errors]] = {}
    for name in options.rows.split(","):
        results[name] = {}
        for size in ROWS[name].sizes:
            results[name][size] = ROWS[name].run(generator_of(name, size), size, options.inputs)
            print(f"{name:<20} {size:>4}  {summary(results[name][size])}", flush=True)
    varied = {} if options.no_variations else variations(options.inputs)
    text = show(results, varied, options.inputs)
    print(f"\n{text}")
    content = {
        "command": "python -m benchmarks.table2",
        "seed": SEED,
        "inputs": options.inputs,
        "seconds": round(time.perf_counter() - start, 1),
        "machine": machine(),
        "rows": {n: {str(s): record(e) for s, e in by_size.items()} for n, by_size in results.items()},
        "variations": {g: {n: record(e) for n, e in parts.items()} for g, parts in varied.items()},
    }
    write_atomically(options.directory / "table2.json", json.dumps(content, indent=None) + "\n")
    write_atomically(options.directory / "table2.md", text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
