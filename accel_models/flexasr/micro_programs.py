"""Micro-programs of the activation unit: a text of one instruction per line or ``;``, and bytes.

An instruction is ``op``, ``op dst`` or ``op dst, src``.  The unit has four registers r0 .. r3, each a vector of 16
numbers in Q6.14, and runs the whole program once for each output vector:

========== ================================================================================
nop        nothing
load d     d = the unit's buffer at the output vector; zeros while is_zero_first is set
store d    the unit's buffer at the output vector = d, as AdaptivFloat codes
inpe d     d = the next vector that the PE's core has computed
outgb d    send d to the global buffer, as AdaptivFloat codes
copy d, s  d = s
eadd d, s  d = d + s
emul d, s  d = d * s
sigm d     d = sigmoid(d); tanh d, relu d likewise
onex d     d = 1 - d
========== ================================================================================

As a byte, an instruction has its op in bits 7..4, the destination in 3..2 and the source in 1..0.  Ops without a
source ignore the source bits, and nop ignores the destination's, too; they are assembled as 0.

Source: ``ActUnit`` of the FlexASR SystemC design; the programs are those of the published drivers.
"""

from __future__ import annotations

import re

OPERATIONS = {
    "nop": 0x0,
    "load": 0x1,
    "store": 0x2,
    "inpe": 0x3,
    "outgb": 0x4,
    "copy": 0x7,
    "eadd": 0x8,
    "emul": 0x9,
    "sigm": 0xA,
    "tanh": 0xB,
    "relu": 0xC,
    "onex": 0xD,
}
"""The four bits of each op; 5, 6, 14 and 15 are no ops."""

INSTRUCTIONS = 32  # that the unit can hold

_NAMES = {code: name for name, code in OPERATIONS.items()}
_TWO_OPERANDS = frozenset({"copy", "eadd", "emul"})
_REGISTER = re.compile(r"r[0-3]", re.ASCII)

RNN = "inpe r0; inpe r1; eadd r0, r1; tanh r0; outgb r0"
"""h = tanh(W x + U h); the core gives W x, U h."""

GRU = """
    inpe r0; inpe r1; eadd r0, r1; sigm r0               # r
    inpe r1; inpe r2; emul r0, r2; eadd r0, r1; tanh r0  # n
    inpe r1; inpe r2; eadd r1, r2; sigm r1               # z
    load r2; emul r2, r1                                 # z * h
    onex r1; emul r0, r1; eadd r0, r2                    # (1 - z) * n + z * h
    store r0; outgb r0
"""
"""The core gives W x, U h of the gates r, n and z; the buffer holds h, which is also sent out."""

LSTM = """
    inpe r0; inpe r1; eadd r0, r1; sigm r0               # i
    inpe r1; inpe r2; eadd r1, r2; tanh r1               # g
    emul r0, r1                                          # i * g
    inpe r1; inpe r2; eadd r1, r2; sigm r1               # f
    load r2; emul r1, r2; eadd r0, r1                    # f * c + i * g
    store r0; tanh r0
    inpe r1; inpe r2; eadd r1, r2; sigm r1               # o
    emul r0, r1; outgb r0
"""
"""The core gives W x, U h of the gates i, g, f and o; the buffer holds c, and h is sent out."""


def linear_program(activation: str | None) -> str:
    """The program of a dense layer whose ``activation`` is None, "relu", "sigmoid" or "tanh"."""
    ops = {None: "", "relu": "relu r0; ", "sigmoid": "sigm r0; ", "tanh": "tanh r0; "}
    if activation not in ops:
        raise ValueError(f"activation must be None, 'relu', 'sigmoid' or 'tanh', not {activation!r}")
    return f"inpe r0; {ops[activation]}outgb r0"


def assemble(text: str) -> bytes:
    """The bytes of a micro-program; whatever follows a ``#`` in its line is a comment.

    Raises ValueError with the text of an invalid instruction, and where there are more than 32 or none at all.

    >>> assemble("inpe r0; relu r0; outgb r0").hex()
    '30c040'
    """
    code = []
    for line in text.splitlines():
        for part in line.partition("#")[0].split(";"):
            if part.strip():
                code.append(_instruction(part.strip()))
    if not 1 <= len(code) <= INSTRUCTIONS:
        raise ValueError(
            f"A micro-program must have 1 .. {INSTRUCTIONS} instructions, not {len(code)}; "
            "the activation unit holds no more"
        )
    return bytes(code)


def disassemble(code: bytes) -> list[str]:
    """One line per instruction; bits that an op ignores are not shown.

    Raises ValueError, with its place, on a byte that is no instruction.

    >>> disassemble(bytes.fromhex("3081"))
    ['inpe r0', 'eadd r0, r1']
    """
    lines = []
    for place, byte in enumerate(code):
        name = _NAMES.get(byte >> 4)
        if name is None:
            raise ValueError(
                f"Instruction {place} must have one of the ops {', '.join(f'{c:x}' for c in _NAMES)} in its upper "
                f"four bits, not {byte >> 4:x} (0x{byte:02x})"
            )
        lines.append(" ".join([name, ", ".join(f"r{n}" for n in _operands(name, byte))]).strip())
    return lines


def _operands(name: str, byte: int) -> list[int]:
    return [byte >> 2 & 3, byte & 3][: _count(name)]


def _count(name: str) -> int:
    return 0 if name == "nop" else 2 if name in _TWO_OPERANDS else 1


def _instruction(text: str) -> int:
    name, _, rest = text.partition(" ")
    if name not in OPERATIONS:
        raise ValueError(f"Op of instruction {text!r} must be one of {', '.join(OPERATIONS)}, not {name!r}")
    operands = [operand.strip() for operand in rest.split(",")] if rest.strip() else []
    if len(operands) != _count(name) or not all(map(_REGISTER.fullmatch, operands)):
        expected = ("no register", "one register, r0 .. r3", "two registers, r0 .. r3, with a comma between")[
            _count(name)
        ]
        raise ValueError(f"Instruction {text!r} must have {expected}, not {rest.strip() or 'none'!r}")
    destination, source = [*(int(operand[1]) for operand in operands), 0, 0][:2]
    return OPERATIONS[name] << 4 | destination << 2 | source
