"""Program files of VTA: contents of DRAM, instructions, and what to read back.

A file is a JSON object with three lists, of which ``dram`` and ``read`` may be missing::

    {"dram": [{"addr": "0x100", "data": "00ff10"}],
     "program": ["load.inp sram=0 dram=16 size=1x1", "0x00000000000000000000000000000003"],
     "read": [{"addr": "0x200", "bytes": 32}]}

``data`` is hexadecimal, two digits per byte, in the order of addresses.  An instruction is assembly text
(:mod:`accel_models.vta.assembly`) or a word in hexadecimal with ``0x``.  Other keys are ignored.  Reads are made after
FINISH, 16 bytes each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel_models.mmio_program import ProgramError, read_json
from ila_lang import CommandStream, Simulator

from .assembly import format_instruction, parse_instruction
from .isa import ENCODINGS, IsaError, decode, encode
from .model import HOST_BYTES, CommandKind
from .options import HLS, VtaOptions
from .order.schedule import Device, Policy, run_instructions
from .scratchpads import DRAM_BITS

_HEX = re.compile(r"0[xX][0-9a-fA-F]+", re.ASCII)
_BYTES = re.compile(r"([0-9a-fA-F]{2})*", re.ASCII)
_LIMIT = 1 << DRAM_BITS


@dataclass(frozen=True)
class Program:
    """A program: (address, bytes) to put into DRAM, instruction words, and (address, number of bytes) to read."""

    dram: tuple[tuple[int, bytes], ...]
    words: tuple[int, ...]
    reads: tuple[tuple[int, int], ...] = ()


def parse_program(text: str, options: VtaOptions = HLS) -> Program:
    """The program in a JSON text; ``options`` say how assembly text is encoded.

    Raises ProgramError where the text is not JSON or not a program, with the number of the entry.

    >>> parse_program('{"program": ["finish"]}').words
    (3,)
    """
    root = read_json(text, "three flat lists")
    if not isinstance(root, dict) or "program" not in root:
        raise ProgramError('Program must be a JSON object with the key "program"; write it as {"program": [...]}')
    dram = tuple(_preload(n, entry) for n, entry in _entries(root, "dram"))
    words = tuple(_word(n, entry, options) for n, entry in _entries(root, "program"))
    reads = tuple(_read(n, entry) for n, entry in _entries(root, "read"))
    return Program(dram, words, reads)


def _entries(root: dict[str, object], key: str) -> Iterator[tuple[int, object]]:
    entries = root.get(key, [])
    if not isinstance(entries, list):
        raise ProgramError(f'"{key}" must be a list, not {json.dumps(entries)[:40]}; put it in brackets')
    return iter(enumerate(entries, 1))


def _preload(number: int, entry: object) -> tuple[int, bytes]:
    what = f'Entry {number} of "dram"'
    fields = _object(what, entry, ("addr", "data"), '{"addr": "0x100", "data": "00ff"}')
    addr, data = _address(what, fields["addr"]), fields["data"]
    if not isinstance(data, str) or not _BYTES.fullmatch(data):
        raise ProgramError(
            f'data of {what[0].lower()}{what[1:]} must be a string of two hexadecimal digits per byte such as "00ff", '
            f"not {_short(data)}; correct it"
        )
    content = bytes.fromhex(data)
    _require_in_dram(what, addr, len(content))
    return addr, content


def _read(number: int, entry: object) -> tuple[int, int]:
    what = f'Entry {number} of "read"'
    fields = _object(what, entry, ("addr", "bytes"), '{"addr": "0x100", "bytes": 16}')
    addr, count = _address(what, fields["addr"]), fields["bytes"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 0 or count % HOST_BYTES or addr % HOST_BYTES:
        raise ProgramError(
            f"{what} must have addr and bytes that are multiples of {HOST_BYTES}, not {addr:#x} and {_short(count)}; "
            "read the whole words around it"
        )
    _require_in_dram(what, addr, count)
    return addr, count


def _word(number: int, entry: object, options: VtaOptions) -> int:
    if not isinstance(entry, str):
        raise ProgramError(
            f"Instruction {number} must be a string, assembly text or a word in hexadecimal, not {_short(entry)}; "
            'write it as "finish" or "0x3"'
        )
    encoding = ENCODINGS[options.encoding]
    try:
        if not _HEX.fullmatch(entry):
            if not entry.split():
                raise IsaError("it must not be empty; remove it")
            return encode(parse_instruction(entry), encoding)
        word = int(entry, 16)
        decode(word, encoding)
    except IsaError as error:
        raise ProgramError(f"Instruction {number}: {error}") from None
    return word


def _object(what: str, entry: object, keys: tuple[str, ...], example: str) -> dict[str, object]:
    if not isinstance(entry, dict):
        raise ProgramError(f"{what} must be an object, not {_short(entry)}; write it as {example}")
    for key in keys:
        if key not in entry:
            raise ProgramError(f"{what} must have {key}, which is missing; write it as {example}")
    return entry


def _address(what: str, text: object) -> int:
    if not isinstance(text, str) or not _HEX.fullmatch(text):
        raise ProgramError(
            f'addr of {what[0].lower()}{what[1:]} must be a hexadecimal string such as "0x100", '
            f"not {_short(text)}; correct it"
        )
    return int(text, 16)


def _require_in_dram(what: str, addr: int, count: int) -> None:
    if addr + count > _LIMIT:
        raise ProgramError(f"{what} must lie in DRAM, 0x0 .. {_LIMIT - 1:#x}, not reach {addr + count - 1:#x}; move it")


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def format_program(program: Program, options: VtaOptions = HLS) -> str:
    """The program as JSON text, instructions as assembly text, one per line."""
    encoding = ENCODINGS[options.encoding]
    lists: dict[str, Iterable[object]] = {
        "dram": ({"addr": f"{addr:#x}", "data": data.hex()} for addr, data in program.dram),
        "program": (" ".join(format_instruction(decode(word, encoding)).split()) for word in program.words),
        "read": ({"addr": f"{addr:#x}", "bytes": count} for addr, count in program.reads),
    }
    parts = [
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(e)}" for e in entries) + "]" for key, entries in lists.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def run(
    program: Program, machine: Device, options: VtaOptions = HLS, policy: Policy | None = None
) -> list[tuple[int, int]]:
    """Fills DRAM, executes the instructions and reads, on a machine of :func:`~accel_models.vta.model.vta`.

    ``options`` must be the model's.  Returns (address, 16 bytes as a number, lowest address least significant) of each
    read.  Raises ProgramError as :func:`~accel_models.vta.order.schedule.run_instructions` does.
    """
    for addr, content in program.dram:
        write_bytes(machine, addr, content)
    run_instructions(machine, program.words, options, policy)
    outputs = []
    for start, count in program.reads:
        data = read_bytes(machine, start, count)
        words = (int.from_bytes(data[i : i + HOST_BYTES], "little") for i in range(0, count, HOST_BYTES))
        outputs += [(start + i * HOST_BYTES, word) for i, word in enumerate(words)]
    return outputs


def write_bytes(machine: Device, addr: int, content: bytes) -> None:
    """Writes bytes of DRAM by commands of the host."""
    first = -(-addr // HOST_BYTES) * HOST_BYTES
    last = max(first, (addr + len(content)) // HOST_BYTES * HOST_BYTES)
    _write_part(machine, addr, content[: first - addr])
    whole = content[first - addr : last - addr]
    if whole:
        rows = np.frombuffer(whole, np.uint8).reshape(-1, HOST_BYTES)
        _host(machine, CommandKind.WRITE, first, len(rows), data=rows)
    _write_part(machine, last, content[last - addr :])


def _write_part(machine: Device, addr: int, content: bytes) -> None:
    """Writes bytes within one word of 16."""
    if content:
        shift = addr % HOST_BYTES
        machine.step(
            {
                "command": CommandKind.WRITE,
                "addr": addr - shift,
                "data": int.from_bytes(content, "little") << 8 * shift,
                "strobe": (1 << len(content)) - 1 << shift,
            }
        )


def read_bytes(machine: Device, addr: int, count: int) -> bytes:
    """Reads bytes of DRAM by commands of the host."""
    first = addr // HOST_BYTES * HOST_BYTES
    number = -(-(addr + count - first) // HOST_BYTES) if count else 0
    data = b"".join(_host(machine, CommandKind.READ, first, number))
    return data[addr - first : addr - first + count]


def _host(
    machine: Device, kind: CommandKind, first: int, number: int, data: NDArray[np.uint8] | None = None
) -> Iterator[bytes]:
    """Commands on ``number`` words of 16 bytes from ``first`` on; gives ``data_out`` after each read."""
    columns: dict[str, NDArray[Any]] = {
        "command": np.full(number, int(kind)),
        "addr": first + HOST_BYTES * np.arange(number),
        "strobe": np.full(number, (1 << HOST_BYTES) - 1),
    }
    stream = CommandStream(columns if data is None else {**columns, "data": data})
    if isinstance(machine, Simulator):
        return (row.tobytes() for _, row in machine.execute(stream, watch=("data_out",))["data_out"])
    outputs = []
    for i in range(number):
        machine.step(stream.command(i))
        outputs.append(machine.values["data_out"].to_bytes(HOST_BYTES, "little"))
    return iter(outputs)
