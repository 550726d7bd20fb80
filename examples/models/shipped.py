"""The networks that the onnx package ships for tests, whose weights are all equal, with random weights instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

SHIPPED = tuple(sorted(p.stem.removeprefix("light_") for p in _FOLDER.glob("light_*.onnx")))
"""Their names: bvlc_alexnet, densenet121, ..., zfnet512."""


def shipped(name: str, seed: int = 0) -> ModelProto:
    """A network with weights drawn such that activations keep their size."""
    model, generator = onnx.load(_FOLDER / f"light_{name}.onnx"), np.random.default_rng(seed)
    shapes = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = shapes[node.input[0]].tolist()
        if len(shape) == 1:
            values = generator.uniform(0.5, 1.5, shape).astype(np.float32)
        else:
            values = generator.standard_normal(shape, np.float32) * np.float32((2 / np.prod(shape[1:])) ** 0.5)
        model.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.ir_version = 8  # since 4, initializers need not be inputs
    return model
