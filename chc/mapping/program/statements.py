"""What the statements of a loop do, as far as their text says."""

from __future__ import annotations

from collections.abc import Sequence

from ila_lang import Command, Expr, For, Fragment, Let, Load, Statement, Store, postorder
from ila_lang.language.kernel import terms, walk
from ila_lang.language.sorts import MemSort
from smt_encodings.claims import Unsupported
from smt_encodings.environment import plain


def own_memory(memory: Expr) -> Expr:
    """A memory that a statement names; raises Unsupported where it is a term."""
    if memory.op != "var":
        raise Unsupported(f"{memory.describe()} is not a memory of its own")
    return memory


def require_words(fragment: Fragment) -> None:
    """Raises Unsupported where a term speaks of a memory other than by a word of it.

    What reads a memory is known by its loads; a comparison or a function of a whole memory would be overlooked.
    """
    ila = fragment.ila
    started = [i.kernel for i in ila.instructions.values() if i.kernel is not None]  # two may have one name
    kernels = dict.fromkeys([fragment.program, *started])
    parts = [t for k in kernels for t in (*k.on_done.values(), *(t for s in walk(k.body) for t in terms(s)))]
    parts += [t for i in ila.instructions.values() for t in (i.decode, i.kernel_guard, *i.updates.values())]
    for node in postorder([ila.valid, *parts]):
        whole = any(isinstance(a.sort, MemSort) for a in node.args) and node.op not in ("ite", "store")
        if whole and not (node.op == "load" and node.args[0].op == "var"):
            raise Unsupported(f"{node.describe()} takes a whole memory")


def condition_of(extent: Expr) -> Expr | None:
    """The condition of a block that runs once or not at all; None for other loops."""
    if extent.op == "ite" and extent.args[1].is_const and extent.args[2].is_const:
        then, otherwise = extent.args[1].value, extent.args[2].value
        if (then, otherwise) == (1, 0):
            return extent.args[0]
        if (then, otherwise) == (0, 1):
            return ~extent.args[0]
    return None


def deciding(term: Expr, *, choices: bool) -> list[Expr]:
    """By how much a term shifts and, if asked for, by what it chooses."""
    nodes = postorder([term])
    shifts = [n.args[1] for n in nodes if n.op in ("bvshl", "bvlshr", "bvashr")]
    return [*shifts, *(n.args[0] for n in nodes if n.op == "ite")] if choices else shifts


def carried(loop: For) -> list[Expr]:
    """The registers of outside the loop that its body sets, in the order of their first assignment."""
    own = {s.target for s in walk(loop.body) if isinstance(s, Let) and not s.update}
    updated = [s.target for s in walk(loop.body) if isinstance(s, Let) and s.update and s.target not in own]
    return list(dict.fromkeys(updated))


def carries(loop: For) -> bool:
    """Whether a loop carries a register from one iteration to the next."""
    return bool(carried(loop))


def writes_memory(loop: For) -> bool:
    """Whether a loop writes a memory, or may."""
    return any(isinstance(s, Store | Command) for s in walk(loop.body))


def distributable(loop: For) -> bool:
    """Whether the text of a loop shows that nothing it writes depends on registers that it carries."""
    dependent = set(carried(loop))

    def depends(term: Expr) -> bool:
        return any(n in dependent for n in postorder([term]))

    def stores(body: Sequence[Statement], decided: bool) -> bool:
        """Whether a store depends on them; ``decided`` where they decide whether the body runs."""
        dependent_store = False
        for statement in body:
            match statement:
                case For(extent=extent, body=inner):
                    dependent_store |= stores(inner, decided or depends(extent))
                case Let(target=target, value=term) | Load(target=target, address=term):
                    if decided or depends(term):
                        dependent.add(target)
                case Store(address=address, value=value):
                    dependent_store |= decided or depends(address) or depends(value)
                case Command():
                    dependent_store = True
        return dependent_store

    before = -1
    while len(dependent) > before:  # what one iteration computes, the next one may store
        before = len(dependent)
        if stores(loop.body, False):
            return False
    return True


def loads_memory(loop: For) -> bool:
    """Whether a loop reads a memory."""
    return any(isinstance(s, Load) for s in walk(loop.body))


def variable_text(variable: Expr) -> str:
    """A variable that a proof found no value for, in words of the program."""
    kind, _, name = plain(variable.name).partition(".")
    match kind:
        case "initial":
            return f"{name} as it was before the program"
        case "unknown":
            return f"{name} after a loop that changes it"
        case "kept":
            return f"{name}, which was read from memory"
    return plain(variable.name)
