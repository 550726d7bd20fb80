"""A depth in blocks of 8 of which the last one is shorter, each in tiles of 4 of which the last one is padded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ila_lang import Fragment, Ila, Kernel, const, ite
from ila_lang.mapping import TensorMapping
from tests.chc.mapping.library_gemm import PARAMETERS, K, M, N, assert_false_and_not_proved, assert_proved, multiply
from tests.chc.mapping.test_sums_in_functions import HOST_B, HOST_W, HOST_X, HOST_Y, ZERO, finish, of
from tests.marks import slow_but

FAULTS = ("begins anew in each block", "the last block is lost", "x is not padded", "tiles overlap", "blocks overlap")
CORNERS = [{"m": 2, "n": 2, "k": k} for k in (1, 3, 4, 5, 7, 8, 9, 13, 16)]


def tiles() -> Ila:
    """Multiplies tiles of 4 in a register, and adds that to an accumulator."""
    ila = Ila("tiles_of_four")
    op, at, word = ila.input("op", 2), ila.input("at", 12), ila.input("word", 32)
    xs, ws = ila.memory("xs", 12, 8), ila.memory("ws", 12, 8)
    acc, out, to = ila.memory("acc", 12, 32), ila.state("out", 8), ila.state("to", 12)
    load = ila.instruction("LOAD").set_decode(op == 0).update(xs, xs.store(at, word[7:0]))
    load.update(ws, ws.store(at, word[15:8]))
    kernel = Kernel("dot")
    total = kernel.let("total", const(0, 32))
    with kernel.loop("lane", const(4, 12)) as lane:
        kernel.assign(total, total + multiply(kernel.load("x", xs, lane), kernel.load("w", ws, lane)))
    kernel.store(acc, to, kernel.load("old", acc, to) + total)
    ila.instruction("DOT").set_decode(op == 1).update(to, at).start(kernel)
    ila.instruction("READ").set_decode(op == 2).update(out, finish(acc.load(at), word))
    ila.instruction("CLEAR").set_decode(op == 3).update(acc, acc.store(at, const(0, 32)))
    return ila


def nest(fault: str = "") -> TensorMapping:
    """The nest, with a fault."""
    ila, kernel = tiles(), Kernel("host")

    def clear(name: str) -> None:
        with kernel.loop(f"{name}r", M) as r, kernel.loop(f"{name}c", N) as c:
            kernel.command("clear", op=const(3, 2), at=(r * N + c)[11:0], word=ZERO)

    clear("z")
    blocks = (K >> 3) if fault == "the last block is lost" else (K + 7) >> 3
    with kernel.loop("q", blocks) as q:
        if fault == "begins anew in each block":
            clear("a")
        begin = q * 7 if fault == "blocks overlap" else q << 3
        left = K - (q << 3)
        deep = ite(const(8, 32) <= left, const(8, 32), left)
        with kernel.loop("r", M) as r, kernel.loop("c", N) as c, kernel.loop("p", (deep + 3) >> 2) as p:
            with kernel.loop("l", const(4, 32)) as lane:
                i = begin + (p * 3 if fault == "tiles overlap" else p << 2) + lane
                x, w = HOST_X.load(r * K + i), HOST_W.load(c * K + i)
                padded = x if fault == "x is not padded" else ite(i < K, x, const(0, 8))
                word = padded.zext(32) | (w.zext(32) << 8)
                kernel.command("load", op=const(0, 2), at=lane[11:0], word=word)
            kernel.command("dot", op=const(1, 2), at=(r * N + c)[11:0], word=ZERO)
    with kernel.loop("yr", M) as r, kernel.loop("yc", N) as c:
        kernel.command("read", op=const(2, 2), at=(r * N + c)[11:0], word=HOST_B.load(c))
        kernel.store(HOST_Y, r * N + c, ila.states["out"])
    tensors = {t.name: t for t in (HOST_X, HOST_W, HOST_B, HOST_Y)}
    shapes = tuple((1, 1, k) for k in (1, 4, 5, 8, 9, 13, 16, 17, 24))
    return replace(of(), device=Fragment("tiles_of_four", ila, PARAMETERS, tensors, kernel), sample_shapes=shapes)


@pytest.mark.slow
def test_padded_tiles_in_blocks_are_proved() -> None:
    assert_proved(nest(), CORNERS)


@pytest.mark.parametrize("fault", slow_but({"tiles overlap"}, FAULTS))
def test_a_fault_is_not_proved(fault: str) -> None:
    assert_false_and_not_proved(nest(fault), CORNERS)
