"""A small accelerator, from its address map to a proof for every size.

docs/tutorials/row_pairs.md goes through this file.

RowPairs holds a matrix of bytes in 1024 words of four lanes and overwrites the even rows with the sums of row pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ila_lang import (
    BOOL,
    Expr,
    Fragment,
    Ila,
    Kernel,
    bv,
    concat,
    const,
    false,
    ite,
    load_bytes,
    mem,
    primitive,
    true,
    var,
)
from ila_lang.mapping import Lemma, SizeError, TensorMapping
from rewrites.mappings.claim import MappingClaim
from rewrites.targets.target import Model, Target

Fault = Literal["none", "adder wraps", "rows 0 to T/2 - 1 loaded"]

LANES = 4
BUFFER, REGISTERS = 0x0, 0x1  # addr[15:12]
ROWS, WORDS, START = 0, 1, 2  # addr[11:2] of the registers


# -- numerics: the device and the IR each say in their own way what a saturating sum is ----------------


@primitive(a=bv(8), b=bv(8))
def device_add(a: Expr, b: Expr) -> Expr:
    """An 8-bit adder that answers 255 when its result is less than an operand, i.e. when a carry was lost."""
    return ite(a + b < a, const(255, 8), a + b)


@primitive(a=bv(8), b=bv(8))
def wrapping_add(a: Expr, b: Expr) -> Expr:
    """The same adder without its carry logic: a fault of the hardware."""
    return a + b


@primitive(a=bv(8), b=bv(8))
def ir_add(a: Expr, b: Expr) -> Expr:
    """The exact sum on nine bits, and then the smaller of it and 255."""
    exact = a.zext(9) + b.zext(9)
    return ite(exact < 255, exact, const(255, 9))[7:0]


# -- the device ----------------------------------------------------------------------------------------


def word_address(words: Expr, y: Expr, w: Expr) -> Expr:
    """Where word ``w`` of row ``y`` lies: rows 2p and 2p + 1 are interleaved word by word."""
    pair = (y >> 1).zext(32)
    return ((pair * words.zext(32) + w.zext(32)) * 2 + y[0:0].zext(32))[9:0]


def device(wraps: bool = False) -> Ila:
    """The ILA of RowPairs; with ``wraps`` its adder forgets the carry."""
    ila = Ila("row_pairs", "Adds the rows of a matrix pair by pair, in place.")
    write, read = ila.input("write", BOOL), ila.input("read", BOOL)
    address, data = ila.input("address", 16), ila.input("data", 32)
    ila.set_valid((write ^ read) & (address[15:12] <= REGISTERS))
    buffer = ila.memory("buffer", 12, 8, 0, "1024 words of 4 lanes, a byte each")
    rows, words = ila.state("rows", 16, 0), ila.state("words", 16, 0)
    data_out = ila.state("data_out", 32, 0, "the word of the last read")

    in_buffer, word = address[15:12] == BUFFER, address[11:2]
    lanes = [concat(word, const(i, 2)) for i in range(LANES)]
    stored = buffer
    for i, at in enumerate(lanes):
        stored = stored.store(at, data[8 * i + 7 : 8 * i])
    loaded = concat(*(buffer.load(at) for at in reversed(lanes)))
    ila.instruction("STORE").set_decode(in_buffer & write).update(buffer, stored)
    ila.instruction("LOAD").set_decode(in_buffer & read).update(data_out, loaded)
    ila.instruction("SET_ROWS").set_decode(~in_buffer & (word == ROWS) & write).update(rows, data[15:0])
    ila.instruction("SET_WORDS").set_decode(~in_buffer & (word == WORDS) & write).update(words, data[15:0])

    kernel = Kernel("add_pairs", "The sum of a pair of rows overwrites the even row.")
    with (
        kernel.loop("p", rows >> 1) as p,
        kernel.loop("w", words) as w,
        kernel.loop("lane", const(LANES, 3)) as lane,
    ):
        target = concat(word_address(words, p * 2, w), lane[1:0])
        a = kernel.load("a", buffer, target)
        b = kernel.load("b", buffer, concat(word_address(words, p * 2 + 1, w), lane[1:0]))
        kernel.store(buffer, target, (wrapping_add if wraps else device_add)(a, b))
    ila.instruction("START").set_decode(~in_buffer & (word == START) & write).start(kernel)

    other = ila.instruction("OTHER").set_decode(~in_buffer & ~(write & (word <= START)))
    other.reserved = "registers 0 to 2 can be written, and none can be read"
    return ila


# -- the IR --------------------------------------------------------------------------------------------


def ir() -> Ila:
    """A tensor IR with one instruction, on row-major tensors."""
    ila = Ila("ir", "One instruction: add_rows.")
    run = ila.input("run", BOOL)
    height_in, width_in = ila.input("height_in", 32), ila.input("width_in", 32)
    height, width = ila.state("height", 32, 0), ila.state("width", 32, 0)
    source, target = ila.memory("tensor_in", 32, 8), ila.memory("tensor_out", 32, 8)
    ila.set_valid(run)
    kernel = Kernel("add_rows", "The saturating sum of rows 2y and 2y + 1 becomes row y.")
    with kernel.loop("y", height >> 1) as y, kernel.loop("x", width) as x:
        a = kernel.load("a", source, y * 2 * width + x)
        b = kernel.load("b", source, (y * 2 + 1) * width + x)
        kernel.store(target, y * width + x, ir_add(a, b))
    instruction = ila.instruction("add_rows").set_decode(run)
    instruction.update(height, height_in).update(width, width_in).start(kernel)
    return ila


# -- the mapping ---------------------------------------------------------------------------------------

T, N = var("T", bv(32)), var("N", bv(32))
PARAMETERS = {"T": T, "N": N}
HOST_IN, HOST_OUT = var("host_in", mem(32, 8)), var("host_out", mem(32, 8))


def device_fragment(ila: Ila, fault: Fault = "none") -> Fragment:
    """Store a matrix of T rows and 4*N columns, configure, start, load the even rows."""
    program = Kernel("row_pairs_program")

    def write(note: str, address: Expr, data: Expr) -> None:
        program.command(note, write=true, read=false, address=address, data=data)

    def place(region: int, word: Expr) -> Expr:
        return concat(const(region, 4), word, const(0, 2))

    with program.loop("t", T) as t, program.loop("v", N) as v:
        row = load_bytes(HOST_IN, t * (N << 2) + (v << 2), LANES)
        write("store tensor", place(BUFFER, word_address(N, t, v)), row)
    write("set rows", place(REGISTERS, const(ROWS, 10)), T)
    write("set words", place(REGISTERS, const(WORDS, 10)), N)
    write("start", place(REGISTERS, const(START, 10)), const(1, 32))
    with program.loop("u", T >> 1) as u, program.loop("k", N) as k:
        y = u if fault == "rows 0 to T/2 - 1 loaded" else u * 2
        word = place(BUFFER, word_address(N, y, k))
        program.command("load result", write=false, read=true, address=word, data=const(0, 32))
        for lane in range(LANES):
            byte = ila.states["data_out"][8 * lane + 7 : 8 * lane]
            program.store(HOST_OUT, u * (N << 2) + (k << 2) + lane, byte)
    return Fragment("row_pairs_program", ila, PARAMETERS, {"host_in": HOST_IN, "host_out": HOST_OUT}, program)


def ir_fragment() -> Fragment:
    """One add_rows on the whole tensor."""
    program = Kernel("ir_program")
    program.command("add rows", run=true, height_in=T, width_in=N << 2)
    return Fragment("ir_program", ir(), PARAMETERS, {}, program)


def sizes_of(rows: int, columns: int) -> dict[str, int]:
    """The sizes for an input tensor of that shape."""
    if rows < 2 or rows % 2 or columns < LANES or columns % LANES or rows * columns > 4096:
        raise SizeError(f"RowPairs needs an even number of rows, columns in fours and 4096 bytes, not {rows}x{columns}")
    return {"T": rows, "N": columns // LANES}


def mapping(fault: Fault = "none") -> TensorMapping:
    """The claim: the program computes add_rows.  With a fault it is wrong."""
    a, b = var("a", bv(8)), var("b", bv(8))
    wraps = fault == "adder wraps"
    adder = wrapping_add if wraps else device_add
    return TensorMapping(
        name="row_pairs",
        ir=ir_fragment(),
        device=device_fragment(device(wraps), fault),
        parameters=PARAMETERS,
        domain=(
            ("T is a multiple of 2", T[0] == 0),
            ("2 <= T <= 1024", (const(2, 32) <= T) & (T <= 1024)),
            ("1 <= N <= 512", (const(1, 32) <= N) & (N <= 512)),
            ("T*N <= 1024 words", T * N <= 1024),
        ),
        rows=T >> 1,
        columns=N << 2,
        inputs=(("host_in", "tensor_in"),),
        output=("host_out", "tensor_out"),
        lemmas=(Lemma("the device's sum is the IR's", adder(a, b), ir_add(a, b)),),
        abstract=frozenset({adder.name, ir_add.name}),
        sizes_of=sizes_of,
        statement="RowPairs computes the saturating sum of each pair of rows",
        assumptions=("commands arrive one at a time, and the host waits for the end of an operation",),
    )


TARGET = Target(
    "row_pairs",
    models=(Model("row_pairs", "adds the rows of a matrix of bytes pair by pair", device),),
    mappings=(
        MappingClaim("row_pairs", "saturating sums of pairs of rows on RowPairs", mapping),
        MappingClaim(
            "row_pairs_wraps",
            "the same where the adder wraps around",
            lambda: replace(mapping("adder wraps"), name="row_pairs_wraps"),
            false="an adder of 8 bits without saturation",
        ),
    ),
)


if __name__ == "__main__":
    import signal

    from ilaverify.text import show_verdict
    from rewrites.claims.verify import verify

    verdict = verify(mapping())
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # where nobody reads to the end, it ends as other programs do
    print(show_verdict(verdict))
