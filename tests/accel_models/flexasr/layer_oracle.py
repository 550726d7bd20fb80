"""GBControl, cores and activation units on Python's integers, as an independent description to compare with.

``run(values, memories)`` takes the state of a machine in the hardware reading (or that of the public simulator's
passes, whose timesteps its text names) and changes it in place.  The numeric functions are the model's, whose tables
are compared with the hardware's classes elsewhere; what is independent here is which numbers meet, where they lie, and
in what order things happen.
"""

from __future__ import annotations

from typing import Any

from accel_models.flexasr import functions, numerics
from ila_lang import Memory, compile_function

PE = range(4)
product = compile_function(functions.adpfloat_mul)
to_fixed = compile_function(numerics.adpfloat_to_fixed)
to_code = compile_function(numerics.fixed_to_adpfloat)
sigmoid, tanh = compile_function(functions.sigmoid), compile_function(functions.tanh)

Values = dict[str, int]
Memories = dict[str, Memory]


def signed(value: int, bits: int) -> int:
    value %= 1 << bits
    return value - (value >> (bits - 1) << bits)


def run(v: Values, m: Memories, passes: str = "rtl") -> None:
    """One start of GBControl."""
    steps = max(v["gb_control_num_timestep_1"], 1)
    for t in range(steps):
        n, mode = v["gb_control_num_timestep_1"], v["gb_control_mode"]
        if passes == "rtl":
            source, result = {0: (t, t), 1: (t, 2 * t), 2: ((n - t - 1) % 32768, (n - t) * 2 - 1)}.get(mode, (0, 0))
        else:
            source = result = {0: t, 1: 2 * t, 2: (n - t) * 2 + 1}.get(mode, 0)
        source, result = source % 65536, result % 65536
        broadcast(v, m, 1, source)
        queues = [core(v, m, pe) for pe in PE]
        for pe in PE:
            for logical, codes in activation(v, m, pe, queues[pe]):
                memory, at = vector(v, 2, result, logical)
                for lane, code in enumerate(codes):
                    m[memory][at + lane] = code
            assert not queues[pe]
        if v["gb_control_is_rnn"]:
            broadcast(v, m, 2, result)
    v["top_interrupt_request"] = 1


def vector(v: Values, operand: int, t: int, number: int) -> tuple[str, int]:
    """Buffer and byte address of a vector of GBControl's input (1) or result (2)."""
    index = v[f"gb_control_memory_index_{operand}"]
    if v["gb_control_mode"] == 3:
        return "gb_core_small_buffer", 16 * ((v[f"gb_core_mem_mngr_small_base_small_{index}"] + number) % 1024)
    stride = v[f"gb_core_mem_mngr_large_num_vector_{index % 4}"]
    place = v[f"gb_core_mem_mngr_large_base_large_{index % 4}"] + t % 16 + 16 * (t // 16 * stride + number)
    return "gb_core_large_buffer", 16 * (place % 65536)


def broadcast(v: Values, m: Memories, operand: int, t: int) -> None:
    manager = ("first", "second")[operand - 1]
    for number in range(max(v[f"gb_control_num_vector_{operand}"], 1)):
        memory, at = vector(v, operand, t, number)
        for pe in PE:
            place = (v[f"pe{pe}_mem_mngr_{manager}_base_input"] + number) % 256
            for lane in range(16):
                m["pe_core_input_buffer"][pe << 12 | place << 4 | lane] = m[memory][at + lane]


def core(v: Values, m: Memories, pe: int) -> list[list[int]]:
    """The vectors that a core gives its activation unit."""
    c: dict[str, int] = {n.removeprefix(f"pe{pe}_rnn_layer_sizing_"): x for n, x in v.items()}
    queue: list[list[int]] = []
    if not c["is_valid"]:
        return queue

    def inputs(place: int, lane: int) -> int:
        return m["pe_core_input_buffer"][pe << 12 | place % 256 << 4 | lane]

    for output in range(c["num_output"]):
        for number in range(c["num_manager"]):
            prefix = f"pe{pe}_mem_mngr_{('first', 'second')[number]}_"
            g: dict[str, int] = {n.removeprefix(prefix): x for n, x in v.items() if n.startswith(prefix)}
            out = []
            for row in range(16):
                total = 0
                if not (g["zero_active"] and c["is_zero_first"]):
                    for i in range(g["num_input"]):
                        tile = output * g["num_input"] + i
                        for column in range(16):
                            w = weight(m, pe, number, g["base_weight"], tile, row, column, bool(c["is_cluster"]))
                            total += signed(product(w, inputs(g["base_input"] + i, column)), 32)
                total = signed(total, 32) >> (14 - g["adpfloat_bias_w"] - g["adpfloat_bias_i"])
                if c["is_bias"]:
                    code = inputs(g["base_bias"] + output, row)
                    total = signed(total + signed(to_fixed(code, g["adpfloat_bias_b"]), 20), 32)
                out.append(max(-524287, min(524287, total)))
            queue.append(out)
    v[f"pe{pe}_rnn_layer_sizing_is_zero_first"] = 0
    return queue


def weight(m: Memories, pe: int, manager: int, base: int, tile: int, row: int, column: int, cluster: bool) -> int:
    memory = m["pe_core_weight_buffer"]
    if not cluster:
        return memory[pe << 20 | (base + 16 * tile + row) % 65536 << 4 | column]
    half = 8 * row + column // 2  # bytes of 128 per tile, a row after the other
    pair = memory[pe << 20 | (16 * base + 128 * tile + half) % (1 << 20)]
    return m["pe_core_cluster_table"][pe << 5 | manager << 4 | (pair >> 4 if column % 2 else pair & 15)]


def activation(v: Values, m: Memories, pe: int, queue: list[list[int]]) -> Any:
    """Runs a program; yields the logical address and codes of each vector for the global buffer."""
    c: dict[str, int] = {n.removeprefix(f"pe{pe}_act_mngr_"): x for n, x in v.items()}
    bias, registers = c["adpfloat_bias"], m["pe_act_regs"]

    def get(register: int) -> list[int]:
        return [signed(registers[pe << 6 | register << 4 | lane], 20) for lane in range(16)]

    def put(register: int, words: list[int]) -> None:
        for lane, word in enumerate(words):
            registers[pe << 6 | register << 4 | lane] = word % (1 << 20)

    for output in range(c["num_output"]):
        slot = pe << 9 | (output + c["buffer_addr_base"]) % 32 << 4
        for number in range(c["num_inst"]):
            instruction = v[f"pe{pe}_act_vector_Inst{number}"]
            op, a2, a1 = instruction >> 4, instruction >> 2 & 3, instruction & 3
            x, y = get(a2), get(a1)
            codes = [to_code(word % (1 << 20), bias) for word in x]
            if op == 1:
                held = [to_fixed(m["pe_act_buffer"][slot + lane], bias) for lane in range(16)]
                put(a2, [0] * 16 if c["is_zero_first"] else held)
            elif op == 2:
                for lane, code in enumerate(codes):
                    m["pe_act_buffer"][slot + lane] = code
            elif op == 3:
                put(a2, queue.pop(0))
            elif op == 4:
                yield (output + c["output_addr_base"]) % 256, codes
            elif op == 7:
                put(a2, y)
            elif op == 8:
                put(a2, [p + q for p, q in zip(x, y, strict=True)])
            elif op == 9:
                put(a2, [p * q >> 14 for p, q in zip(x, y, strict=True)])
            elif op in (10, 11):
                put(a2, [(sigmoid if op == 10 else tanh)(p % (1 << 20)) for p in x])
            elif op == 12:
                put(a2, [max(p, 0) for p in x])
            elif op == 13:
                put(a2, [16384 - p for p in x])
    v[f"pe{pe}_act_mngr_is_zero_first"] = 0
