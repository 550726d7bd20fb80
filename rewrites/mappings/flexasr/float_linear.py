"""Dense layers of float32 tensors of any size: the host's share and FlexASR's in one mapping.

IR side: x [R, I], w [O, I] and b [O] are rounded to codes, rows of x and w filled with zeros to whole vectors, the
dense layer computed, and the codes of the result [R, O] read as float32 numbers.  Device side: the layer is cut into
parts, ``down`` times ``across`` of them, of T rows and 64*no outputs each.  Host loops round what a part needs and
store it, with zeros where it ends beyond the tensors, run the layer, and put what is loaded where it belongs, as
float32 numbers.
"""

from __future__ import annotations

import numpy as np

from accel_models.flexasr import micro_programs as programs
from accel_models.flexasr.floats import EXPONENT_AT_0, EXPONENTS, adpfloat_to_float, float_to_adpfloat
from accel_models.flexasr.functions import adpfloat_mul, pe_add_bias, pe_saturate, pe_shift
from accel_models.flexasr.layout import LANES, PE_COUNT, large_axi_address, vector_address
from accel_models.flexasr.model import flexasr
from accel_models.flexasr.numerics import fixed_to_adpfloat
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Ila, Kernel, bv, concat, const, ite, mem, true, var
from ila_lang.mapping import SizeError, TensorMapping
from ir_semantics.layers.conversion import DEQUANTISE_CODE, QUANTISE_CODE, convert, float_tensor, with_conversions
from ir_semantics.layers.dense import DENSE_CODE, dense_ir

from .buffers import BASE, T
from .float_pooling import between, covering
from .layers import CELL as PART_CELL
from .layers import NI, NO, LayerProgram, Matrix, emit_layer, layer_domain
from .linear import ACTIVATIONS, BIASES, SUMS, operator_of
from .linear import PARAMETER_TEXTS as PART_TEXTS
from .mapping import ASSUMPTIONS, flexasr_mapping

R, INPUTS, OUTPUTS, DOWN, ACROSS = (var(n, bv(32)) for n in ("R", "I", "O", "down", "across"))
FORMATS = {n: var(f"exponent_{n}", bv(32)) for n in "xwby"}
PARAMETERS = {
    **{v.name: v for v in (R, INPUTS, OUTPUTS, T, NI, NO, DOWN, ACROSS, BASE)},
    **BIASES,
    **{v.name: v for v in FORMATS.values()},
}
PARAMETER_TEXTS = {
    **PART_TEXTS,
    "R": "rows",
    "I": "inputs",
    "O": "outputs",
    "T": "rows of a part",
    "no": "vectors of 16 outputs of each of four processing elements in a part",
    "down": "parts of rows",
    "across": "parts of outputs",
    **{v.name: f"codes of {n} with the exponent field 0 have this one as float32 numbers" for n, v in FORMATS.items()},
}
HOST_X, HOST_W, HOST_B, HOST_Y = (var(f"host_{n}", mem(32, 32)) for n in "xwby")
DOWN_PART, ACROSS_PART = var("cell_down", bv(32)), var("cell_across", bv(32))
CELL = ((DOWN_PART, DOWN), PART_CELL[0], (ACROSS_PART, ACROSS), *PART_CELL[1:])
"""Coordinates of an output element: a part of rows and the row in it; a part of outputs and the output in it."""
_BUFFERS = (
    ("ni + no <= 256 vectors of a PE's input buffer", NI + NO <= 256),
    ("16*no*ni <= 65536 vectors of a PE's weight buffer", NO * NI * 16 <= 65536),
)
DOMAIN = (
    between("R", R, 1, 65535),
    between("I", INPUTS, 1, 4080),
    between("O", OUTPUTS, 1, 65535),
    *layer_domain(63, _BUFFERS, BIASES),
    ("16*(ni - 1) < I <= 16*ni", ((NI - 1) * 16 < INPUTS) & (INPUTS <= NI * 16)),
    *covering("down", DOWN, T, "R", R),
    *covering("across", ACROSS, NO << 6, "O", OUTPUTS),
    *(between(v.name, v, EXPONENTS[0], EXPONENTS[-1]) for v in FORMATS.values()),
)


class FloatProgram(LayerProgram):
    """A program of a part of a layer on host tensors of float32 numbers."""

    def __init__(self, program: Kernel, ila: Ila, down: Expr, across: Expr) -> None:
        super().__init__(program, ila)
        self.down, self.across = down, across

    def x(self, t: Expr, vector: Expr) -> Expr:
        """The codes of a vector of the part's rows."""
        row = self.down * T + t
        return _rounded(HOST_X, "x", row * INPUTS, vector << 4, INPUTS, row < R)

    def weights(self, matrix: Matrix, feature: Expr, vector: Expr) -> Expr:
        """The codes of a vector of the weights of an output of the part."""
        output = ((self.across * (NO << 2) + (feature >> 4)) << 4) + feature[3:0].zext(32)
        return _rounded(HOST_W, "w", output * INPUTS, vector << 4, INPUTS, output < OUTPUTS)

    def bias(self, matrix: Matrix, feature: Expr) -> Expr:
        """The codes of the biases of 16 outputs of the part."""
        return _rounded(HOST_B, "b", const(0, 32), self.across * (NO << 6) + feature, OUTPUTS, true)

    def load_result(self) -> None:
        """Reads the part's result, whose elements inside of the tensor are stored as numbers."""
        p = self.program
        with p.loop("load_t", T) as t, p.loop("load_vector", NO << 2) as v:
            row, first = self.down * T + t, (self.across * (NO << 2) + v) << 4
            codes = self.load("load y", large_axi_address(vector_address(BASE, NO << 2, t, v)))
            for lane, code in enumerate(codes):
                with p.when(f"inside_{lane}", (row < R) & (first + lane < OUTPUTS)):
                    p.store(HOST_Y, row * OUTPUTS + first + lane, adpfloat_to_float(code, FORMATS["y"][7:0]))


def _rounded(host: Expr, name: str, row: Expr, first: Expr, columns: Expr, exists: Expr) -> Expr:
    """The codes of 16 elements of a row of a tensor, and of zeros where there are none."""
    exponent = FORMATS[name][7:0]
    lanes = [
        ite(exists & (first + k < columns), float_to_adpfloat(host.load(row + first + k), exponent), 0)
        for k in range(LANES)
    ]
    return concat(*reversed(lanes))


def ir_fragment(activation: str | None) -> Fragment:
    """Operands are rounded to codes, one dense instruction follows, and the codes of the result are read."""
    filled = {"tensor_in": True, "tensor_weights": True, "tensor_bias": False}
    ila = with_conversions(
        dense_ir(operator_of(activation)), filled, "tensor_out", float_to_adpfloat, adpfloat_to_float
    )
    program = Kernel("ir_float_dense")
    formats = {n: v[7:0] for n, v in FORMATS.items()}
    convert(program, "round x to codes", QUANTISE_CODE, R, INPUTS, NI << 4, exponent=formats["x"])
    convert(program, "round w to codes", QUANTISE_CODE + 1, OUTPUTS, INPUTS, NI << 4, exponent=formats["w"])
    convert(program, "round b to codes", QUANTISE_CODE + 2, OUTPUTS, const(1, 32), exponent=formats["b"])
    operands = {"rows": R, "features_in": NI << 4, "features_out": OUTPUTS, **{n: v[2:0] for n, v in BIASES.items()}}
    inputs = {f"{n}_in": v for n, v in operands.items()}
    program.command("dense layer", func_run=true, func_id=const(DENSE_CODE, 8), **inputs)
    convert(program, "read the codes of y", DEQUANTISE_CODE, R, OUTPUTS, exponent=formats["y"])
    return Fragment(program.name, ila, PARAMETERS, {}, program)


def device_fragment(activation: str | None, options: FlexAsrOptions | None = None) -> Fragment:
    """For each part the whole program of a layer."""
    program = Kernel("flexasr_float_linear")
    matrix = Matrix("weights", HOST_W, HOST_B, NI, BIASES["bias_w"], BIASES["bias_x"], BIASES["bias_b"])
    micro_program = programs.assemble(programs.linear_program(activation))
    ila = flexasr(options)
    with program.loop("down_part", DOWN) as down, program.loop("across_part", ACROSS) as across:
        emit_layer(FloatProgram(program, ila, down, across), [matrix], 1, micro_program, BIASES["bias_y"])
    return Fragment(program.name, ila, PARAMETERS, {t.name: t for t in (HOST_X, HOST_W, HOST_B, HOST_Y)}, program)


def float_linear_mapping(activation: str | None = None, options: FlexAsrOptions | None = None) -> TensorMapping:
    """The mapping ``flexasr_float_linear``, with ``activation`` None, "relu", "sigmoid" or "tanh" after it.

    ``options`` select another reading of the hardware.
    """
    function = ACTIVATIONS[activation]
    functions = [adpfloat_mul, pe_shift, pe_add_bias, pe_saturate, fixed_to_adpfloat, *([function] if function else [])]
    functions += [float_to_adpfloat, adpfloat_to_float]
    tensors = {"host_x": "tensor_in", "host_w": "tensor_weights", "host_b": "tensor_bias"}
    return flexasr_mapping(
        name=f"flexasr_float_linear{f'_{activation}' if activation else ''}",
        ir=ir_fragment(activation),
        device=device_fragment(activation, options),
        parameters=PARAMETERS,
        parameter_texts=PARAMETER_TEXTS,
        domain=DOMAIN,
        rows=R,
        columns=OUTPUTS,
        cell=CELL,
        cell_column=((ACROSS_PART * (NO << 2) + PART_CELL[1][0] * NO + PART_CELL[2][0]) << 4) + PART_CELL[3][0],
        row_coordinates=2,
        cell_beyond=True,
        inputs=tuple((host, float_tensor(codes)) for host, codes in tensors.items()),
        output=("host_y", float_tensor("tensor_out")),
        abstract=frozenset(f.name for f in functions),
        sizes_of=sizes_of,
        statement="the host's loops and FlexASR's linear program compute the quantised dense layer x w^T + b"
        f"{f', then {activation},' if activation else ''} of float32 tensors, their elements rounded to codes, each of "
        "an exponent, rows filled with zeros, and the result's codes read as float32",
        doc="For each part: configure all PEs, round and store weights, biases and input, run, load and convert",
        assumptions=ASSUMPTIONS,
        shape_names=("rows", "inputs", "outputs", "part_rows", "part_outputs"),
        sample_shapes=SAMPLES,
        shape_parameters=frozenset({"R", "I", "O", "T", "ni", "no", "down", "across"}),
        sums=SUMS,
        show_element=lambda word: str(np.uint32(word).view(np.float32)),
    )


SAMPLES = ((1, 3, 5, 1, 64), (2, 20, 70, 1, 64), (3, 40, 130, 2, 128), (17, 33, 64, 17, 64), (5, 16, 200, 2, 64))


def sizes_of(rows: int, inputs: int, outputs: int, part_rows: int, part_outputs: int) -> dict[str, int]:
    """Sizes for x [rows, inputs] and so many outputs, in parts of so many of both; the result follows the input.

    Codes stand for what they are, and have the bias 0.  Raises SizeError where outputs of a part are no multiple of 64.
    """
    if part_outputs % (LANES * PE_COUNT) or part_outputs < 1 or part_rows < 1:
        raise SizeError(
            f"A part of a dense layer of float32 tensors on FlexASR must have rows, and a positive multiple of 64 "
            f"outputs, not {part_rows} and {part_outputs}; cut it otherwise"
        )
    ni = -(-inputs // LANES)
    return {
        "R": rows,
        "I": inputs,
        "O": outputs,
        "T": part_rows,
        "ni": ni,
        "no": part_outputs // (LANES * PE_COUNT),
        "down": -(-rows // part_rows),
        "across": -(-outputs // part_outputs),
        "base": 16 * -(-part_rows // 16) * ni,
        **dict.fromkeys(BIASES, 0),
        **{v.name: EXPONENT_AT_0 for v in FORMATS.values()},
    }
