"""FlexASR's AXI port: the inputs of a command, and how registers and buffers recognise their commands."""

from __future__ import annotations

from ila_lang import BOOL, Expr, Ila, Instruction, concat, const

from .config import ConfigWord
from .layout import GB_PARTITION, LANES, PE_COUNT
from .options import FlexAsrOptions

# Fields that are Boolean states.
FLAGS = frozenset({"is_valid", "is_rnn", "is_zero_first", "is_cluster", "is_bias", "zero_active"})


class Bus:
    """The inputs of ``ila``, and the parts of the address.

    A command is valid with exactly one of write and read, at an address of a partition of FlexASR: the global buffer's,
    or that of a processing element.
    """

    def __init__(self, ila: Ila, options: FlexAsrOptions) -> None:
        self.ila = ila
        self.options = options
        self.write = ila.input("if_axi_wr", BOOL)
        self.read = ila.input("if_axi_rd", BOOL)
        self.address = ila.input("addr_in", 32)
        self.data = ila.input("data_in", 128)
        # Hardware routes by the partition, addr[23:20] and addr[19:4], and ignores addr[3:0]: a command always moves
        # one aligned vector.  The published ILA compares whole addresses and lets buffers be accessed at any byte.
        self.partition = self.address[31:24]
        self.region = self.address[23:20]
        self.index = self.address[19:4]
        first, last = GB_PARTITION, GB_PARTITION + PE_COUNT
        ila.set_valid((self.write ^ self.read) & (self.partition >= first) & (self.partition <= last))

    def at(self, partition: int, region: int, index: int) -> Expr:
        """Whether the command is for one register."""
        if self.options.addresses == "byte":
            return self.address == (partition << 24 | region << 20 | index << 4)
        return self.partition_and_region(partition, region) & (self.index == index)

    def partition_and_region(self, partition: int, region: int) -> Expr:
        """Whether the command is for one region of a partition."""
        return (self.partition == partition) & (self.region == region)

    def start(self, partition: int, region: int, index: int) -> Expr:
        """Whether the command is for a start register, in a direction that starts."""
        here = self.at(partition, region, index)
        return here & self.write if self.options.starts == "write" else here

    def configuration(self, instruction: Instruction, word: ConfigWord, prefix: str, *fields: str) -> None:
        """Declares states for fields of a word (default: all) that ``instruction`` writes."""
        for name in fields or word.fields:
            field, value = word.fields[name], word.select(self.data, name)
            if name in FLAGS:
                instruction.update(self.ila.state(prefix + name, BOOL, field.reset), value == 1)
            else:
                instruction.update(self.ila.state(prefix + name, field.width, field.reset), value)

    def buffer(
        self,
        names: tuple[str, str],
        memory: Expr,
        place: tuple[int, int],
        vectors: int,
        pe: int | None = None,
        *,
        loads: bool = True,
    ) -> None:
        """Instructions that store and load one vector of a buffer.

        ``names`` are those of the store and the load; ``place`` is partition and region.  The buffer answers its
        first ``vectors`` vectors: what hardware does beyond is not documented, and such commands are reserved.  With
        ``pe`` the memory is that of all processing elements, and the buffer is the part of this one.
        """
        here = self.partition_and_region(*place)
        bits = memory.sort.addr_width - (0 if pe is None else 2)  # type: ignore[union-attr]
        if self.options.addresses == "byte":
            # the limit is on the first byte
            here = here & (self.address[19:0] <= 16 * (vectors - 1))
            first = self.address[19:0].zext(max(bits, 20))[bits - 1 : 0]
            lanes = [first + lane for lane in range(LANES)]
        else:
            if vectors < 1 << 16:
                here = here & (self.index < vectors)
            vector = self.index.zext(max(bits - 4, 16))[bits - 5 : 0]
            # Each lane's address is a concatenation, so that two lanes are distinguished without arithmetic.
            lanes = [concat(vector, const(lane, 4)) for lane in range(LANES)]
        if pe is not None:
            lanes = [concat(const(pe, 2), address) for address in lanes]
        what = memory.name.replace("_", " ") + ("" if pe is None else f" of PE {pe}")
        stored = memory
        for lane, address in enumerate(lanes):
            stored = stored.store(address, self.data[8 * lane + 7 : 8 * lane])
        store = self.ila.instruction(names[0], f"writes a vector of the {what}")
        store.set_decode(here & self.write).update(memory, stored)
        if loads:
            word = concat(*(memory.load(address) for address in reversed(lanes)))
            load = self.ila.instruction(names[1], f"reads a vector of the {what}")
            load.set_decode(here & self.read).update(self.ila.states["data_out"], word)
