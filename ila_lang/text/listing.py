"""Printed listings: expressions, kernels and whole models as text for people."""

from __future__ import annotations

from collections.abc import Iterable

from ila_lang.language.build import const
from ila_lang.language.expr import Expr, _algebra, postorder
from ila_lang.language.kernel import Command, For, Kernel, Let, Load, Statement, Store
from ila_lang.language.model import Ila

INFIX = {
    "and": "and", "or": "or", "xor": "xor", "eq": "==", "bvadd": "+", "bvsub": "-", "bvmul": "*", "bvudiv": "/",
    "bvurem": "%", "bvand": "&", "bvor": "|", "bvxor": "^", "bvshl": "<<", "bvlshr": ">>", "bvashr": ">>s",
    "bvult": "<", "bvule": "<=", "bvslt": "<s", "bvsle": "<=s", "concat": "++",
}  # fmt: skip
PREFIX = {"not": "not ", "bvnot": "~", "bvneg": "-"}


def show_expr(root: Expr, limit: int = 4000) -> str:
    """One line of text; operators as in Python, signed ones with an ``s``, ``++`` for concatenation.

    Text beyond ``limit`` characters is cut, with the number of characters left out.
    """
    texts: dict[Expr, tuple[str, int]] = {}
    for node in postorder([root]):  # terms share parts, so that a text may be far longer than the term is large
        parts = [texts[a] for a in node.args]
        text = _node(node, [part for part, _ in parts])
        kept = text[: limit + len("()")]
        texts[node] = kept, len(text) - len(kept) + sum(missing for _, missing in parts)
    text, missing = texts[root]
    if text.startswith("(") and (root.op in INFIX or root.op == "not"):
        text = text[1:-1] if not missing else text[1:]
        missing -= bool(missing)
    missing += len(text[limit:])
    return f"{text[:limit]} ... ({missing} more characters)" if missing else text


def _node(node: Expr, args: list[str]) -> str:
    if node.op == "var":
        return node.name
    if node.op == "const":
        return node.describe()
    if node.op in INFIX:
        return f"({args[0]} {INFIX[node.op]} {args[1]})"
    if node.op in PREFIX:
        if node.op == "not" and node.args[0].op == "eq":
            return args[0].replace(" == ", " != ", 1) if args[0].count(" == ") == 1 else f"(not {args[0]})"
        return f"({PREFIX[node.op]}{args[0]})"
    if node.op == "extract":
        hi, lo = node.params
        return f"{args[0]}[{hi}]" if hi == lo else f"{args[0]}[{hi}:{lo}]"
    if node.op == "load":
        address = args[1]
        return f"{args[0]}[{address[1:-1] if node.args[1].op in INFIX else address}]"
    if node.op == "apply":
        return f"{node.params[0]}({', '.join(args)})"
    if node.op == "ite":
        return f"({args[1]} if {args[0]} else {args[2]})"
    return f"{node.op}({', '.join([*args, *(str(p) for p in node.params)])})"


def show_statements(body: Iterable[Statement], indent: int = 0) -> list[str]:
    """The statements of a kernel as indented lines."""
    pad = "  " * indent
    lines: list[str] = []
    for statement in body:
        match statement:
            case For(counter=counter, extent=extent, body=inner):
                if extent.op == "ite" and {*extent.args[1:]} == {const(0, 1), const(1, 1)}:  # Kernel.when
                    condition = extent.args[0] if extent.args[1].value else ~extent.args[0]
                    lines.append(f"{pad}when {show_expr(condition)}:")
                else:
                    lines.append(f"{pad}for {counter.name} in 0 .. {show_expr(extent)} - 1:")
                lines += show_statements(inner, indent + 1)
            case Let(target=target, value=value):
                lines.append(f"{pad}{target.name} := {show_expr(value)}")
            case Load(target=target, memory=memory, address=address):
                lines.append(f"{pad}{target.name} := {show_expr(memory)}[{show_expr(address)}]")
            case Store(memory=memory, address=address, value=value):
                lines.append(f"{pad}{show_expr(memory)}[{show_expr(address)}] := {show_expr(value)}")
            case Command(inputs=inputs, note=note):
                shown = ", ".join(f"{n}={show_expr(v, 120)}" for n, v in inputs)
                lines.append(f"{pad}issue {shown}" + (f"  -- {note}" if note else ""))
    return lines


def show_ila(ila: Ila) -> str:
    """The listing of a model: inputs, states with widths and reset values, instructions, kernels."""
    lines = [f"ILA {ila.name}"]
    if ila.doc:
        lines += ["  " + line for line in ila.doc.splitlines()]
    wide = max([28, *(len(n) for n in (*ila.inputs, *ila.states))])
    lines += ["", "inputs"]
    lines += [f"  {n:<{wide}} {v.sort}" for n, v in ila.inputs.items()]
    lines += ["", "states"]
    for name, state in ila.states.items():
        reset = f"reset {ila.inits[name]:#x}" if name in ila.inits else "no reset value"
        lines.append(f"  {name:<{wide}} {state.sort!s:<10} {reset:<15} {ila.state_docs[name]}".rstrip())
    lines += ["", f"valid  {show_expr(ila.valid)}", "", "instructions"]
    for instruction in ila.instructions.values():
        lines.append(f"  {instruction.name}" + (f"  -- {instruction.doc}" if instruction.doc else ""))
        lines.append(f"    decode  {show_expr(instruction.decode, 400)}")
        if instruction.reserved:
            lines.append(f"    reserved: {instruction.reserved}")
        for name, term in instruction.updates.items():
            lines.append(f"    {name}' = {show_expr(term, 400)}")
        if instruction.kernel is not None:
            guard = instruction.kernel_guard
            when = "" if guard.op == "const" else f" when {show_expr(guard)}"
            lines.append(f"    starts kernel {instruction.kernel.name}{when}")
    for kernel in ila.kernels.values():
        lines += ["", f"kernel {kernel.name}" + (f"  -- {kernel.doc}" if kernel.doc else "")]
        lines += show_statements(kernel.body, 1)
        lines += [f"  at the end {n} := {show_expr(t)}" for n, t in kernel.on_done.items()]
    return "\n".join(lines)


def show_kernel(kernel: Kernel) -> str:
    """The statements of a kernel as indented text."""
    return "\n".join(show_statements(kernel.body))


_algebra.register(show=show_expr)
