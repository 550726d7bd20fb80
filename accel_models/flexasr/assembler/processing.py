"""Layers on the processing elements (PEs): buffers, registers and the pass of GBControl over all timesteps.

A PE keeps its part of the weights in its weight buffer; its input buffer holds, for each matrix, the vector that is
multiplied and the matrix's biases.  A recurrent layer has two matrices:

    input x | biases of W x | hidden state h | biases of U h

GBControl sends the input of a timestep to all PEs and lets them run; recurrent layers get the new hidden state back
before the next timestep.  Outputs are spread over the PEs by whole vectors: PE p computes a quarter of them.

Layouts and register contents are those of the published drivers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from accel_models.flexasr.config import (
    ACT_MNGR_WORD,
    ACT_VECTOR_WORDS,
    MEM_MNGR_WORD,
    RNN_LAYER_SIZING_WORD,
    pack_large_manager,
    pack_unit,
)
from accel_models.flexasr.layout import (
    ACT_VECTORS,
    INPUT_VECTORS,
    LANES,
    LARGE_BASE,
    LARGE_VECTORS,
    PE_COUNT,
    WEIGHT_VECTORS,
    PeRegion,
    Region,
    Start,
    pe_register_address,
    register_address,
)
from accel_models.flexasr.quantise import Quantised

from .activation import pops
from .clusters import clustered_rows
from .commands import Assembled, Builder
from .tiling import (
    AssemblyError,
    at_most,
    bias_rows,
    check_matrix,
    matrix_places,
    matrix_size,
    output_vectors,
    padded,
    vectors,
    weight_rows,
)

__all__ = ["Layer", "Matrix"]

Codes = NDArray[np.uint8]

_PE_STRIDE = 1 << 20  # vectors from one PE's partition to the next
_MOST_OUTPUTS = 255  # num_output of the core has 8 bits


@dataclass(frozen=True, eq=False)
class Matrix:
    """What one memory manager of the PEs describes.

    ``weights`` [G, H, I] and ``biases`` [G, H] (codes) stack the gates in the order in which the activation unit takes
    them.  ``operand`` is the number of vectors of what is multiplied, which is padded with zeros, unless it is the
    ``hidden`` state, whose padding is whatever the layer makes of it.
    """

    name: str
    weights: Codes
    weight_bias: int
    biases: Codes | None
    bias_bias: int
    operand: int
    operand_bias: int
    hidden: bool = False

    def rows(self, outputs: int, clustered: bool) -> tuple[Codes, Codes | None]:
        """The rows of the weight buffer [PEs, N, 16], and the tables [PEs, 16] of clustered weights."""
        rows = weight_rows(self.weights, self.operand, outputs)
        if not clustered:
            return rows, None
        gates, features, inputs = self.weights.shape
        # Weights of padded outputs have no effect, as nothing reads these.  Weights on the padding of a hidden state
        # have to be zero.
        counted = np.ones((gates, features, self.operand * LANES if self.hidden else inputs), np.uint8)
        used = weight_rows(counted, self.operand, outputs).astype(bool)
        tables, packed = clustered_rows(rows, used, f"{self.name}, of which a PE holds a quarter,")
        return packed, tables


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer whose tensors fit each other, with x [T, I] and ``features`` outputs.

    The second matrix, if any, is that of the hidden state.  ``program`` is the activation unit's.  ``initial`` has the
    initial hidden state (codes [H]) and, if the activation unit keeps a state, that one; None begins with zeros.
    """

    x: Quantised
    features: int
    matrices: Sequence[Matrix]
    output_bias: int
    program: bytes
    clustered: bool
    initial: tuple[Codes, Codes | None] | None = None

    def assemble(self, output_base: int | None) -> Assembled:
        """The program, with the output at vector ``output_base`` of the large buffer, by default after the input.

        Raises AssemblyError where a buffer or counter is too small.
        """
        timesteps, inputs, outputs = len(self.x.codes), self.matrices[0].operand, self._outputs
        base = self._check(output_base)
        out = Builder()
        self._processing_elements(out)
        out.word(register_address(Region.MANAGERS), pack_large_manager({0: inputs, 1: outputs}, {1: base}))
        config = pack_unit(
            is_valid=1,
            is_rnn=int(self._recurrent),
            memory_index_2=1,
            num_vector_1=inputs,
            num_vector_2=outputs,
            num_timestep_1=timesteps,
        )
        out.word(register_address(Region.CONTROL), config)
        out.vectors(LARGE_BASE, matrix_places(0, timesteps, inputs), padded(self.x.codes, inputs))
        out.start(register_address(Region.START, Start.CONTROL))
        places = matrix_places(base, timesteps, outputs)[:, : vectors(self.features)]
        return out.finish(LARGE_BASE, places, (timesteps, self.features), self.output_bias)

    # -- sizes ----------------------------------------------------------------------------------------

    @property
    def _recurrent(self) -> bool:
        return len(self.matrices) > 1

    @property
    def _biased(self) -> bool:
        return self.matrices[0].biases is not None

    @property
    def _from_zero(self) -> bool:
        return self._recurrent and self.initial is None

    @property
    def _outputs(self) -> int:
        """Output vectors, of all PEs."""
        return output_vectors(self.features)

    @property
    def _in_pe(self) -> int:
        """Vectors that the core of a PE computes in a timestep with each matrix: all gates of its outputs."""
        return len(self.matrices[0].weights) * self._outputs // PE_COUNT

    @cached_property
    def _operand_bases(self) -> list[int]:
        """Where each matrix's operand begins in the input buffer, and the end of the last one's biases."""
        bases = [0]
        for matrix in self.matrices:
            bases.append(bases[-1] + matrix.operand + (self._in_pe if self._biased else 0))
        return bases

    def _check(self, output_base: int | None) -> int:
        """Compares all sizes with their limits; the vector of the large buffer where the output begins."""
        timesteps, outputs = len(self.x.codes), self._outputs
        check_matrix("x", *self.x.shape)
        check_matrix("the output", timesteps, self.features)
        at_most(
            "Vectors that a PE computes in a timestep",
            self._in_pe,
            _MOST_OUTPUTS,
            "num_output of its core has 8 bits",
            "split the outputs",
        )
        if self._recurrent:
            at_most(
                "State vectors of a PE", outputs // PE_COUNT, ACT_VECTORS, "its activation buffer", "split the layer"
            )
        at_most(
            "Input, state and bias vectors of a PE",
            self._operand_bases[-1],
            INPUT_VECTORS,
            "its input buffer of 4 KiB",
            "split the layer",
        )
        rows_per_tile = LANES // 2 if self.clustered else LANES
        at_most(
            "Weight vectors of a PE",
            sum(matrix.operand for matrix in self.matrices) * self._in_pe * rows_per_tile,
            WEIGHT_VECTORS,
            "its weight buffer of 1 MiB",
            "split the outputs",
        )
        end_of_input = matrix_size(timesteps, self.matrices[0].operand)
        base = end_of_input if output_base is None else output_base
        if base < end_of_input:
            raise AssemblyError(
                f"output_base must be at least {end_of_input}, the end of the input in vectors, not {base}; raise it"
            )
        at_most(
            "Vectors of input and output",
            base + matrix_size(timesteps, outputs),
            LARGE_VECTORS,
            "the large buffer, in groups of 16 timesteps",
            "split the sequence",
        )
        assert pops(self.program) * (outputs // PE_COUNT) == self._in_pe * len(self.matrices)
        return base

    # -- commands -------------------------------------------------------------------------------------

    def _processing_elements(self, out: Builder) -> None:
        sizing = RNN_LAYER_SIZING_WORD.pack(
            is_valid=1,
            is_zero_first=int(self._from_zero),
            is_cluster=int(self.clustered),
            is_bias=int(self._biased),
            num_manager=len(self.matrices),
            num_output=self._in_pe,
        )
        for pe in range(PE_COUNT):
            out.word(pe_register_address(pe, PeRegion.CORE), sizing)
            self._activation_unit(out, pe)
        base_weight = 0
        for index, matrix in enumerate(self.matrices):
            rows, tables = matrix.rows(self._outputs, self.clustered)
            base_input = self._operand_bases[index]
            manager = MEM_MNGR_WORD.pack(
                zero_active=int(self._from_zero and matrix.hidden),
                adpfloat_bias_w=matrix.weight_bias,
                adpfloat_bias_b=matrix.bias_bias,
                adpfloat_bias_i=matrix.operand_bias,
                num_input=matrix.operand,
                base_weight=base_weight,
                base_bias=base_input + matrix.operand,
                base_input=base_input,
            )
            for pe in range(PE_COUNT):
                out.word(pe_register_address(pe, PeRegion.CORE, 2 + 2 * index), manager)
                if tables is not None:
                    table = int.from_bytes(tables[pe].tobytes(), "little")
                    out.word(pe_register_address(pe, PeRegion.CORE, 3 + 2 * index), table)
            _fill(out, PeRegion.WEIGHT, base_weight, rows)
            if matrix.biases is not None:
                _fill(out, PeRegion.INPUT, base_input + matrix.operand, bias_rows(matrix.biases, self._outputs))
            base_weight += rows.shape[1]
        if self.initial is not None:
            hidden, kept = (None if state is None else padded(state, self._outputs) for state in self.initial)
            assert hidden is not None
            _fill(out, PeRegion.INPUT, self._operand_bases[1], np.broadcast_to(hidden, (PE_COUNT, *hidden.shape)))
            if kept is not None:
                _fill(out, PeRegion.ACT_BUFFER, 0, kept.reshape(PE_COUNT, -1, LANES))

    def _activation_unit(self, out: Builder, pe: int) -> None:
        outputs = self._outputs // PE_COUNT
        config = ACT_MNGR_WORD.pack(
            is_valid=1,
            is_zero_first=int(self._from_zero),
            adpfloat_bias=self.output_bias,
            num_inst=len(self.program),
            num_output=outputs,
            output_addr_base=pe * outputs,
        )
        out.word(pe_register_address(pe, PeRegion.ACT), config)
        for index, word in enumerate(ACT_VECTOR_WORDS[: -(-len(self.program) // LANES)]):
            instructions = self.program[LANES * index : LANES * (index + 1)]
            packed = word.pack(**dict(zip(word.fields, instructions, strict=False)))
            out.word(pe_register_address(pe, PeRegion.ACT, 2 + index), packed)


def _fill(out: Builder, region: int, first: int, rows: Codes) -> None:
    """Writes rows [PEs, N, 16] to the PEs' buffers of a region, from vector ``first`` on."""
    numbers = np.arange(PE_COUNT)[:, None] * _PE_STRIDE + first + np.arange(rows.shape[1])
    out.vectors(pe_register_address(0, region, 0), numbers, rows)
