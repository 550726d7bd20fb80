"""A kernel's statements in the form that runs on arrays execute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ila_lang.language.kernel import For, Kernel, Let, Load, Statement, Store

from .flow import Flow, addend
from .products import Product, product
from .values import Value, check_widths, value

#: Fewer choices in a block are not worth to be made at once.
FEW = 3


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop; the memories in ``private`` are stored in it at addresses that its counter has no part in."""

    statement: For
    extent: Value
    body: Block
    private: list[str]


@dataclass(frozen=True, eq=False)
class Assign:
    """Sets a register; ``update`` where it has a value already."""

    name: str
    value: Value
    width: int
    update: bool


@dataclass(frozen=True, eq=False)
class Add:
    """Adds to a register that the loops around it only add to."""

    name: str
    value: Value
    product: Product | None
    width: int


@dataclass(frozen=True, eq=False)
class Put:
    """Stores a word."""

    memory: str
    address: Value
    value: Value


Node = Loop | Assign | Add | Put


class Block:
    """Statements in sequence.

    ``choices`` are loops of which it can be said beforehand whether they have iterations, at given places of
    ``counters`` and contents of ``memories``: what they depend on, no statement of the kernel changes.
    """

    def __init__(self, nodes: list[Node], flow: Flow) -> None:
        self.nodes = nodes
        # registers that depend on what does not change are set in the block itself: only those from outside count
        inside = {n.name for n in nodes if isinstance(n, Assign)}
        self.choices = {n for n in nodes if isinstance(n, Loop) and n.extent.kept and not inside & n.extent.all_names()}
        if len(self.choices) < FEW:
            self.choices.clear()
        self.counters = sorted({c for n in self.choices if isinstance(n, Loop) for c in n.extent.counters})
        self.memories = sorted({m for n in self.choices if isinstance(n, Loop) for m in n.extent.memories})


class CompiledKernel:
    """The nodes of a kernel, and what its values depend on."""

    def __init__(self, kernel: Kernel) -> None:
        check_widths(kernel)
        self.flow = Flow(kernel)
        self.body = self.block(kernel.body, set())

    def block(self, body: Sequence[Statement], additive: set[str]) -> Block:
        """The nodes of one block; registers in ``additive`` are only added to."""
        nodes: list[Node] = []
        for statement in body:
            match statement:
                case For():
                    inside = additive | self.flow.additive(statement)
                    block = self.block(statement.body, inside)
                    private = sorted(self.flow.private[statement.counter.name])
                    nodes.append(Loop(statement, value(statement.extent, self.flow), block, private))
                case Let(target=target, value=term, update=update):
                    added = addend(statement) if update and target.name in additive else None
                    if added is not None:
                        found = product(added, self.flow)
                        nodes.append(Add(target.name, value(added, self.flow), found, target.width))
                    else:
                        nodes.append(Assign(target.name, value(term, self.flow), target.width, update))
                case Load(target=target, memory=memory, address=address):
                    found_value = value(memory.load(address), self.flow)
                    nodes.append(Assign(target.name, found_value, target.width, False))
                case Store(memory=memory, address=address, value=term):
                    nodes.append(Put(memory.name, value(address, self.flow), value(term, self.flow)))
        return Block(nodes, self.flow)
