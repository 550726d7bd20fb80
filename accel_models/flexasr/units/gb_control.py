"""GBControl: linear and recurrent layers, timestep by timestep, on all four processing elements (PEs).

Source: ``GBControl`` of the FlexASR SystemC design; its departures in the public simulator were measured.
"""

from __future__ import annotations

from accel_models.flexasr.layout import LANES, PE_COUNT
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Ila, Kernel, all_of, concat, const, false, ite

from .matrix import Matrix, Row, at_least_one
from .pe_act import act_ends, act_pops, pe_acts
from .pe_core import core_ends, core_pushes, pe_cores
from .processing_elements import MANAGERS, of_pe


class Mode:
    """Modes of GBControl; higher ones work on timestep 0 of the large buffer at every step."""

    UNIDIRECTIONAL = 0
    FORWARD = 1  # of a bidirectional layer: results go to even timesteps
    BACKWARD = 2  # results go to odd timesteps, and time runs backwards
    DECODER = 3  # inputs and results are in the small buffer


def gb_control_starts(ila: Ila) -> Expr:
    """The condition under which a start has an effect.

    Beside a valid configuration, all four activation units have to be valid, since the unit waits for each of them;
    counts must be such that the PEs end; and every activation unit must take exactly the vectors that its core
    gives.  Where this fails, hardware sends the first inputs and waits for ever.  The model then leaves everything
    as it was; no interrupt comes in either.
    """
    s = ila.states
    conditions = [s["gb_control_is_valid"]]
    for pe in range(PE_COUNT):
        conditions += [act_ends(ila, pe), core_ends(ila, pe)]
        conditions.append(act_pops(ila, pe) == core_pushes(ila, pe).zext(14))
    return all_of(conditions)


def gb_control(ila: Ila, options: FlexAsrOptions) -> Kernel:
    """Each timestep: inputs to all PEs, cores, activation units, and the new state back to the PEs.

    Input vector v goes to the input buffer at the base of the PE's first manager plus v.  With is_rnn, the num_vector_2
    result vectors go back to the base of the second manager.  Within a timestep the cores do not depend on the
    activation units, so that here all cores run before all activation units; hardware overlaps them.

    The flags is_zero_first of cores and activation units hold for the first timestep and are cleared at the end.
    """
    s = ila.states
    mode, count = s["gb_control_mode"], s["gb_control_num_timestep_1"]
    kernel = Kernel("gb_control", "linear and recurrent layers on the processing elements")
    with kernel.loop("t", at_least_one(count)) as t:
        # Both in 16 bits.  The timestep of the result leads; where two passes share one matrix of results, hardware
        # reads the input of half of it, and the published ILA that of the same number.
        left, hardware = (count - t) * 2, options.control_passes == "rtl"
        backward = left - 1 if hardware else left + 1
        result_t = ite(mode == Mode.BACKWARD, backward, const(0, 16))
        result_t = ite(mode == Mode.FORWARD, t * 2, result_t)
        result_t = kernel.let("result_t", ite(mode == Mode.UNIDIRECTIONAL, t, result_t))
        shared = (mode == Mode.FORWARD) | (mode == Mode.BACKWARD)
        input_t = kernel.let("input_t", ite(shared, result_t >> 1, result_t) if hardware else result_t)
        first = t == 0
        link = _Link(kernel, ila, options)
        link.send("send", 1, input_t)
        pe_cores(kernel, ila, options, first)

        def receive(name: str, vector: Expr, lane: Expr, code: Expr) -> None:
            row, matrix = link.operand(2)
            with kernel.when(f"{name}_small", link.in_small):
                kernel.store(row.memory, row.address(vector, lane), code)
            with kernel.when(f"{name}_large", ~link.in_small):
                kernel.store(matrix.memory, matrix.address(result_t, vector, lane), code)

        pe_acts(kernel, ila, options, first, receive)
        with kernel.when("recurrent", s["gb_control_is_rnn"]):
            link.send("back", 2, result_t)
    for pe in range(PE_COUNT):
        ran, flag = s[f"pe{pe}_rnn_layer_sizing_is_valid"], s[f"pe{pe}_rnn_layer_sizing_is_zero_first"]
        kernel.done(flag, flag & ~ran)
        kernel.done(s[f"pe{pe}_act_mngr_is_zero_first"], false)
    kernel.done(s["top_interrupt_request"], True)
    return kernel


class _Link:
    """The way from the global buffer to the PEs."""

    def __init__(self, kernel: Kernel, ila: Ila, options: FlexAsrOptions) -> None:
        self.kernel, self.ila, self.options = kernel, ila, options
        mode = ila.states["gb_control_mode"]
        self.in_small = mode == Mode.DECODER if options.control_high_modes == "large" else mode >= Mode.DECODER

    def operand(self, number: int) -> tuple[Row, Matrix]:
        """Where operand 1 or 2 lies: in the small buffer, and in the large one."""
        row = Row(self.ila, self.ila.states[f"gb_control_memory_index_{number}"])
        matrix = Matrix(self.ila, "control", self.options.control_stride, number)
        if number == 1 and self.options.control_input_base == "zero":
            matrix.base = row.base = const(0, 16)
        return row, matrix

    def send(self, name: str, number: int, timestep: Expr) -> None:
        """Copies the vectors of an operand to the input buffers of all PEs."""
        k, s = self.kernel, self.ila.states
        row, matrix = self.operand(number)
        for suffix, condition in (("small", self.in_small), ("large", ~self.in_small)):
            label = f"{name}_{suffix}"
            with (
                k.when(label, condition),
                k.loop(f"{label}_vector", at_least_one(matrix.vectors)) as vector,
                k.loop(f"{label}_pe", const(PE_COUNT, 3)) as pe,
                k.loop(f"{label}_lane", const(LANES, 5)) as lane,
            ):
                source = row.address(vector, lane) if suffix == "small" else matrix.address(timestep, vector, lane)
                code = k.load(f"{label}_code", row.memory if suffix == "small" else matrix.memory, source)
                base = of_pe(self.ila, pe[1:0], f"mem_mngr_{MANAGERS[number - 1]}_base_input")
                target = (base + vector.zext(16))[self.options.input_buffer - 1 : 0]
                k.store(s["pe_core_input_buffer"], concat(pe[1:0], target, lane[3:0]), code)
