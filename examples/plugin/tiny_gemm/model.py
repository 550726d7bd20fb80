"""The accelerator tiny_gemm at its bus, as an ILA: what its software sees.

It multiplies matrices of bytes, adds up in 32 bits, and makes bytes of the sums again.  A host talks to it over a bus
with 16 address and 32 data bits.  An address names an element, not a byte:

    0x0000 .. 0x0fff   write        input scratchpad, 4096 signed bytes
    0x1000 .. 0x1fff   write        weight scratchpad, 4096 signed bytes
    0x2000 .. 0x2fff   write        bias scratchpad, 4096 signed words of 32 bits
    0x3000 .. 0x3fff   read, write  accumulators, 4096 signed words of 32 bits
    0x4000 .. 0x4003   write        rows m of the input, depth k, columns n of the result, shift
    0x4004             write        CLEAR: all m*n accumulators become 0
    0x4005             write        GEMM: accumulator [r, c] += sum over i of input[r, i] * weight[c, i]
    0x4006             write        REQUANTISE: accumulator [r, c] becomes the byte of itself, bias[c] and the shift

Matrices lie row after row: element [r, i] of the input at r*k + i.
"""

from __future__ import annotations

from ila_lang import BOOL, Expr, Ila, Kernel, bv, const, ite, primitive

INPUT, WEIGHT, BIAS, ACCUMULATOR, REGISTERS = range(5)
"""What address[15:12] selects."""
ROWS, DEPTH, COLUMNS, SHIFT, CLEAR, GEMM, REQUANTISE = range(7)
"""What address[11:0] selects among the registers."""
ELEMENTS = 4096
"""Elements of each scratchpad."""


# -- numerics: functions on bits, written once; the simulator runs them, and solvers get them bit by bit -------------


@primitive(a=bv(8), b=bv(8))
def device_product(a: Expr, b: Expr) -> Expr:
    """The multiplier: signed bytes make a product of 16 bits, whose sign is carried on to 32."""
    return (a.sext(16) * b.sext(16)).sext(32)


def _shifted(acc: Expr, bias: Expr, shift: Expr) -> Expr:
    return (acc + bias).ashr(shift.zext(32))


@primitive(acc=bv(32), bias=bv(32), shift=bv(5))
def device_requantise(acc: Expr, bias: Expr, shift: Expr) -> Expr:
    """Adds the bias, shifts right, and saturates to a signed byte where the bits above it are not all its sign."""
    total = _shifted(acc, bias, shift)
    fits = (total[31:7] == 0) | (total[31:7] == (1 << 25) - 1)
    saturated = ite(total[31:31] == 1, const(0x80, 8), const(0x7F, 8))
    return ite(fits, total[7:0], saturated)


@primitive(acc=bv(32), bias=bv(32), shift=bv(5))
def wrapping_requantise(acc: Expr, bias: Expr, shift: Expr) -> Expr:
    """The same without saturation: a fault of the hardware, for the false twin of the mapping."""
    return _shifted(acc, bias, shift)[7:0]


# -- the ILA: inputs, states, and an instruction for each kind of command --------------------------------------------


def device(wraps: bool = False) -> Ila:
    """The ILA of the accelerator; with ``wraps`` it does not saturate."""
    ila = Ila("tiny_gemm", "Products of matrices of signed bytes, requantised to bytes.")
    write, read = ila.input("write", BOOL), ila.input("read", BOOL)
    address, data = ila.input("address", 16), ila.input("data", 32)
    ila.set_valid((write ^ read) & (address[15:12] <= REGISTERS))
    inputs = ila.memory("input", 12, 8, 0, "input scratchpad")
    weights = ila.memory("weight", 12, 8, 0, "weight scratchpad")
    biases = ila.memory("bias", 12, 32, 0, "bias scratchpad")
    accumulators = ila.memory("accumulator", 12, 32, 0, "accumulators")
    rows, depth, columns = (ila.state(name, 16, 0) for name in ("rows", "depth", "columns"))
    shift = ila.state("shift", 5, 0)
    data_out = ila.state("data_out", 32, 0, "the word of the last read")

    region, at = address[15:12], address[11:0]
    ila.instruction("WRITE_INPUT").set_decode((region == INPUT) & write).update(inputs, inputs.store(at, data[7:0]))
    ila.instruction("WRITE_WEIGHT").set_decode((region == WEIGHT) & write).update(weights, weights.store(at, data[7:0]))
    ila.instruction("WRITE_BIAS").set_decode((region == BIAS) & write).update(biases, biases.store(at, data))
    ila.instruction("WRITE_ACCUMULATOR").set_decode((region == ACCUMULATOR) & write).update(
        accumulators, accumulators.store(at, data)
    )
    ila.instruction("READ").set_decode((region == ACCUMULATOR) & read).update(data_out, accumulators.load(at))
    register = (region == REGISTERS) & write
    for number, state in ((ROWS, rows), (DEPTH, depth), (COLUMNS, columns), (SHIFT, shift)):
        instruction = ila.instruction(f"SET_{state.name.upper()}").set_decode(register & (at == number))
        instruction.update(state, data[state.width - 1 : 0])

    def place(row: Expr, length: Expr, column: Expr) -> Expr:
        return (row.zext(32) * length.zext(32) + column.zext(32))[11:0]

    clear = Kernel("clear", "All accumulators in use become 0.")
    with clear.loop("row", rows) as r, clear.loop("column", columns) as c:
        clear.store(accumulators, place(r, columns, c), const(0, 32))
    ila.instruction("CLEAR").set_decode(register & (at == CLEAR)).start(clear)

    gemm = Kernel("gemm", "Products are added to what the accumulators hold.")
    with gemm.loop("row", rows) as r, gemm.loop("column", columns) as c:
        total = gemm.let("total", gemm.load("before", accumulators, place(r, columns, c)))
        with gemm.loop("i", depth) as i:
            x = gemm.load("x", inputs, place(r, depth, i))
            w = gemm.load("w", weights, place(c, depth, i))
            gemm.assign(total, total + device_product(x, w))
        gemm.store(accumulators, place(r, columns, c), total)
    ila.instruction("GEMM").set_decode(register & (at == GEMM)).start(gemm)

    requantise = Kernel("requantise", "Accumulators become bytes, their signs carried on to 32 bits.")
    with requantise.loop("row", rows) as r, requantise.loop("column", columns) as c:
        acc = requantise.load("acc", accumulators, place(r, columns, c))
        bias = requantise.load("of_column", biases, c[11:0])
        byte = (wrapping_requantise if wraps else device_requantise)(acc, bias, shift)
        requantise.store(accumulators, place(r, columns, c), byte.sext(32))
    ila.instruction("REQUANTISE").set_decode(register & (at == REQUANTISE)).start(requantise)

    known = ((region <= ACCUMULATOR) & write) | ((region == ACCUMULATOR) & read) | (register & (at <= REQUANTISE))
    other = ila.instruction("OTHER").set_decode(~known)
    other.reserved = "scratchpads, accumulators and registers 0 to 6 can be written, and accumulators read"
    return ila
