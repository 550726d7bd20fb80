"""Commands as arrays: what an assembler makes, before it becomes a list of Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accel_models.flexasr.layout import LANES
from accel_models.flexasr.program import Program, ProgramCommand
from accel_models.flexasr.quantise import Quantised

__all__ = ["READ", "WAIT", "WRITE", "Assembled", "Builder", "Commands", "Reads"]

WRITE, READ, WAIT = 0, 1, 2
"""Mode codes of :class:`Commands`: the modes "W", "R" and "Q" of program files."""

Reads = Sequence[tuple[int, int]] | NDArray[np.uint8]
"""What a run returns: (address, word of 128 bits) of each read, or the words as bytes [N, 16]."""


@dataclass(frozen=True, eq=False)
class Commands:
    """N commands in issue order: mode codes (uint8), addresses (uint32), and data [N, 16] (uint8, byte 0 lowest).

    Addresses and data that have no meaning are 0.
    """

    modes: NDArray[np.uint8]
    addresses: NDArray[np.uint32]
    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.modes)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The model's inputs, a column each, for :class:`ila_lang.CommandStream`; waits are left out.

        The model runs every command to completion, so that there is nothing to wait for.
        """
        sent = self.modes != WAIT
        modes = self.modes[sent]
        return {
            "if_axi_wr": modes == WRITE,
            "if_axi_rd": modes == READ,
            "addr_in": self.addresses[sent],
            "data_in": self.data[sent],
        }

    def program(self) -> Program:
        """The same commands as objects.

        That takes longer than assembling them: about a microsecond each.
        """
        blob, modes = self.data.tobytes(), "WRQ"
        listed = zip(self.modes.tolist(), self.addresses.tolist(), range(0, len(blob), LANES), strict=True)
        return Program(
            tuple(
                ProgramCommand(modes[mode], address, int.from_bytes(blob[at : at + LANES], "little"))  # type: ignore[arg-type]
                for mode, address, at in listed
            )
        )


@dataclass(frozen=True, eq=False)
class Assembled:
    """A program and the meaning of what it reads: a tensor of ``shape``, as codes of AdaptivFloat bias ``bias``.

    The last axis of the tensor is read in whole vectors, whose lanes beyond it are dropped.
    """

    commands: Commands
    shape: tuple[int, ...]
    bias: int

    @cached_property
    def program(self) -> Program:
        """The program for :func:`accel_models.flexasr.program.run` and for program files."""
        return self.commands.program()

    def read_output(self, reads: Reads) -> Quantised:
        """The result, from the words that a run of this program returned.

        Raises ValueError where they are not this program's, by their number or an address.
        """
        wanted = self.commands.addresses[self.commands.modes == READ]
        if isinstance(reads, np.ndarray):
            words: NDArray[Any] = reads
        else:
            given = [address for address, _ in reads]
            for place, (address, want) in enumerate(zip(given, wanted.tolist(), strict=False)):
                if address != want:
                    raise ValueError(f"Word {place} must come from 0x{want:08x}, not 0x{address:08x}; {_RUN}")
            blob = b"".join(word.to_bytes(LANES, "little") for _, word in reads)
            words = np.frombuffer(blob, np.uint8).reshape(-1, LANES)
        if words.shape != (len(wanted), LANES) or words.dtype != np.uint8:
            raise ValueError(f"The program reads {len(wanted)} words, not {len(words)}; {_RUN}")
        features = self.shape[-1]
        rows = words.reshape(-1, -(-features // LANES) * LANES)
        return Quantised(np.ascontiguousarray(rows[:, :features]).reshape(self.shape), self.bias)


_RUN = "give what a run of this very program returned"


class Builder:
    """Collects commands in blocks."""

    def __init__(self) -> None:
        self._modes: list[NDArray[np.uint8]] = []
        self._addresses: list[NDArray[np.uint32]] = []
        self._data: list[NDArray[np.uint8]] = []

    def word(self, address: int, data: int) -> None:
        """Writes a word of 128 bits."""
        row = np.frombuffer(data.to_bytes(LANES, "little"), np.uint8)
        self._add(WRITE, np.array([address]), row[None])

    def vectors(self, base: int, numbers: ArrayLike, rows: NDArray[np.uint8]) -> None:
        """Writes vectors (rows [..., 16]) to a buffer at ``base``; ``numbers`` [...] are their places in it."""
        self._add(WRITE, base + np.asarray(numbers).ravel() * LANES, rows.reshape(-1, LANES))

    def start(self, address: int) -> None:
        """Starts a unit and waits for its end."""
        self.word(address, 1)
        self._add(WAIT, np.zeros(1), np.zeros((1, LANES), np.uint8))

    def finish(self, base: int, numbers: ArrayLike, shape: tuple[int, ...], bias: int) -> Assembled:
        """Reads vectors of a buffer at ``base``, and all commands with the tensor that these vectors hold."""
        addresses = base + np.asarray(numbers).ravel() * LANES
        self._add(READ, addresses, np.zeros((len(addresses), LANES), np.uint8))
        commands = Commands(np.concatenate(self._modes), np.concatenate(self._addresses), np.concatenate(self._data))
        return Assembled(commands, shape, bias)

    def _add(self, mode: int, addresses: NDArray[Any], data: NDArray[np.uint8]) -> None:
        self._modes.append(np.full(len(addresses), mode, np.uint8))
        self._addresses.append(addresses.astype(np.uint32))
        self._data.append(data)
