"""What the tests believe: SMT-LIB's operators in plain Python, a kernel walker, and random terms and kernels.

Nothing here uses the operator table, the simplifier or the compiler of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

import ila_lang as il
from ila_lang import BOOL, BvSort, Command, Expr, For, Kernel, Let, Load, MemSort, Store, bv, mem, var

Value = Any  # int, bool or dict


def signed(value: int, width: int) -> int:
    return value - 2**width if value >= 2 ** (width - 1) else value


def meaning(op: str, v: list[Value], w: list[int], params: tuple[Any, ...], result: int) -> Value:
    """The value of ``op`` on values ``v`` of widths ``w``, as SMT-LIB 2.6 defines it."""
    size = 2 ** w[0] if w else 0
    match op:
        case "not":
            return not v[0]
        case "and":
            return bool(v[0]) and bool(v[1])
        case "or":
            return bool(v[0]) or bool(v[1])
        case "xor":
            return bool(v[0]) is not bool(v[1])
        case "eq":
            return v[0] == v[1]
        case "ite":
            return v[1] if v[0] else v[2]
        case "bvnot":
            return size - 1 - v[0]
        case "bvneg":
            return (size - v[0]) % size
        case "bvadd":
            return (v[0] + v[1]) % size
        case "bvsub":
            return (v[0] - v[1]) % size
        case "bvmul":
            return (v[0] * v[1]) % size
        case "bvudiv":
            return size - 1 if v[1] == 0 else v[0] // v[1]
        case "bvurem":
            return v[0] if v[1] == 0 else v[0] % v[1]
        case "bvand":
            return v[0] & v[1]
        case "bvor":
            return v[0] | v[1]
        case "bvxor":
            return v[0] ^ v[1]
        case "bvshl":
            return v[0] * 2 ** min(v[1], w[0]) % size
        case "bvlshr":
            return v[0] // 2 ** min(v[1], w[0])
        case "bvashr":
            return signed(v[0], w[0]) // 2 ** min(v[1], w[0]) % size
        case "bvult":
            return v[0] < v[1]
        case "bvule":
            return v[0] <= v[1]
        case "bvslt":
            return signed(v[0], w[0]) < signed(v[1], w[0])
        case "bvsle":
            return signed(v[0], w[0]) <= signed(v[1], w[0])
        case "concat":
            return v[0] * 2 ** w[1] + v[1]
        case "extract":
            return v[0] // 2 ** params[1] % 2 ** (params[0] - params[1] + 1)
        case "zext":
            return v[0]
        case "sext":
            return signed(v[0], w[0]) % 2**result
        case "load":
            return v[0].get(v[1], 0)
        case "store":
            return {**v[0], v[1]: v[2]}
    raise AssertionError(op)


def width_of(sort: il.Sort) -> int:
    return sort.width if isinstance(sort, BvSort) else 0


def evaluate(root: Expr, env: Mapping[str, Value]) -> Value:
    """The value of an expression as it stands, functions unfolded by hand."""
    done: dict[Expr, Value] = {}

    def go(node: Expr) -> Value:
        if node not in done:
            values = [go(a) for a in node.args]
            if node.op == "var":
                done[node] = env[node.name]
            elif node.op == "const":
                done[node] = bool(node.value) if node.sort == BOOL else node.value
            elif node.op == "apply":
                assert node.func is not None and node.func.body is not None
                inner = {p.name: v for p, v in zip(node.func.params, values, strict=True)}
                done[node] = evaluate(node.func.body, inner)
            else:
                widths = [width_of(a.sort) for a in node.args]
                done[node] = meaning(node.op, values, widths, node.params, width_of(node.sort))
        return done[node]

    return go(root)


# -- raw terms: (operator, operands, parameters, sort), with meaning and construction apart ----------------

Raw = tuple[str, tuple[Any, ...], tuple[Any, ...], il.Sort]

BUILD: dict[str, Callable[..., Expr]] = {
    "not": lambda a: ~a,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "eq": lambda a, b: a == b,
    "ite": il.ite,
    "bvnot": lambda a: ~a,
    "bvneg": lambda a: -a,
    "bvadd": lambda a, b: a + b,
    "bvsub": lambda a, b: a - b,
    "bvmul": lambda a, b: a * b,
    "bvudiv": lambda a, b: a // b,
    "bvurem": lambda a, b: a % b,
    "bvand": lambda a, b: a & b,
    "bvor": lambda a, b: a | b,
    "bvxor": lambda a, b: a ^ b,
    "bvshl": lambda a, b: a << b,
    "bvlshr": lambda a, b: a >> b,
    "bvashr": lambda a, b: a.ashr(b),
    "bvult": lambda a, b: a < b,
    "bvule": lambda a, b: a <= b,
    "bvslt": lambda a, b: a.slt(b),
    "bvsle": lambda a, b: a.sle(b),
    "concat": il.concat,
    "load": lambda m, a: m.load(a),
    "store": lambda m, a, d: m.store(a, d),
}
ARITHMETIC = [
    "bvadd", "bvsub", "bvmul", "bvudiv", "bvurem", "bvand", "bvor", "bvxor", "bvshl", "bvlshr", "bvashr",
]  # fmt: skip
COMPARISONS = ["eq", "bvult", "bvule", "bvslt", "bvsle"]
MEMORY = mem(2, 3)


def build_raw(raw: Raw) -> Expr:
    op, args, params, sort = raw
    if op == "var":
        return var(params[0], sort)
    if op == "const":
        return (il.true if params[0] else il.false) if sort == BOOL else il.const(params[0], width_of(sort))
    built = [build_raw(a) for a in args]
    if op == "extract":
        return built[0][params[0] : params[1]]
    if op in ("zext", "sext"):
        return getattr(built[0], op)(width_of(sort))  # type: ignore[no-any-return]
    return BUILD[op](*built)


def evaluate_raw(raw: Raw, env: Mapping[str, Value]) -> Value:
    op, args, params, sort = raw
    if op == "var":
        return env[params[0]]
    if op == "const":
        return params[0]
    values = [evaluate_raw(a, env) for a in args]
    return meaning(op, values, [width_of(a[3]) for a in args], params, width_of(sort))


def raw_variables(raw: Raw) -> dict[str, il.Sort]:
    if raw[0] == "var":
        return {raw[2][0]: raw[3]}
    found: dict[str, il.Sort] = {}
    for a in raw[1]:
        found |= raw_variables(a)
    return found


@st.composite
def raw_terms(draw: st.DrawFn, sort: il.Sort, depth: int = 4) -> Raw:
    """A random typed term; few variables per sort, so that equal operands are common."""

    def sub(other: il.Sort) -> Raw:
        return draw(raw_terms(other, depth - 1))

    leaf = depth == 0 or draw(st.integers(0, 5)) == 0
    if isinstance(sort, MemSort):
        if leaf:
            return ("var", (), (draw(st.sampled_from(["m", "n"])),), sort)
        if draw(st.booleans()):
            return ("store", (sub(sort), sub(bv(sort.addr_width)), sub(bv(sort.data_width))), (), sort)
        return ("ite", (sub(BOOL), sub(sort), sub(sort)), (), sort)
    if leaf:
        if draw(st.booleans()):
            return ("var", (), (f"{draw(st.sampled_from('xy'))}{width_of(sort)}",), sort)
        bound = 2 ** width_of(sort) - 1
        return ("const", (), (draw(st.integers(0, bound) if bound else st.booleans()),), sort)
    if sort == BOOL:
        kind = draw(st.sampled_from(["not", "and", "or", "xor", "ite", *COMPARISONS, *COMPARISONS]))
        if kind in COMPARISONS:
            s = bv(draw(st.integers(1, 6)))
            return (kind, (sub(s), sub(s)), (), BOOL)
        return (kind, tuple(sub(BOOL) for _ in range({"not": 1, "ite": 3}.get(kind, 2))), (), BOOL)
    w = width_of(sort)
    kinds = [*ARITHMETIC, "bvnot", "bvneg", "ite", "ite", "extract", "extract", "extract"]
    kinds += ["concat", "concat", "concat", "zext", "zext", "sext"] if w > 1 else []
    kinds += ["load"] * 3 if w == MEMORY.data_width else []
    kind = draw(st.sampled_from(kinds))
    if kind == "ite":
        return ("ite", (sub(BOOL), sub(sort), sub(sort)), (), sort)
    if kind == "load":
        return ("load", (sub(MEMORY), sub(bv(MEMORY.addr_width))), (), sort)
    if kind == "extract":
        inner = draw(st.integers(w, 6))
        lo = draw(st.integers(0, inner - w))
        return ("extract", (sub(bv(inner)),), (lo + w - 1, lo), sort)
    if kind == "concat":
        high = draw(st.integers(1, w - 1))
        return ("concat", (sub(bv(high)), sub(bv(w - high))), (), sort)
    if kind in ("zext", "sext"):
        return (kind, (sub(bv(draw(st.integers(1, w - 1)))),), (), sort)
    return (kind, tuple(sub(sort) for _ in range(1 if kind in ("bvnot", "bvneg") else 2)), (), sort)


def raw_any() -> st.SearchStrategy[Raw]:
    sorts = st.sampled_from([BOOL, MEMORY, *(bv(w) for w in range(1, 7))])
    return sorts.flatmap(lambda s: raw_terms(s))


def environments(sorts: Mapping[str, il.Sort]) -> st.SearchStrategy[dict[str, Value]]:
    def values(sort: il.Sort) -> st.SearchStrategy[Value]:
        if sort == BOOL:
            return st.booleans()
        if isinstance(sort, MemSort):
            words = st.integers(0, 2**sort.data_width - 1)
            return st.dictionaries(st.integers(0, 2**sort.addr_width - 1), words, max_size=4)
        return st.integers(0, 2 ** width_of(sort) - 1)

    return st.fixed_dictionaries({n: values(s) for n, s in sorts.items()})


# -- kernels --------------------------------------------------------------------------------------------


def run_kernel(
    kernel: Kernel, values: Mapping[str, int], memories: Mapping[str, dict[int, int]], issue: Any = None
) -> None:
    """Walks the kernel statement by statement; memories are plain dictionaries with 0 elsewhere."""
    env: dict[str, Value] = {**values, **memories}

    def run(body: Any) -> None:
        for statement in body:
            match statement:
                case For(counter=counter, extent=extent, body=inner):
                    for i in range(evaluate(extent, env)):
                        env[counter.name] = i
                        run(inner)
                case Let(target=target, value=value):
                    env[target.name] = evaluate(value, env)
                case Load(target=target, memory=memory, address=address):
                    env[target.name] = evaluate(memory, env).get(evaluate(address, env), 0)
                case Store(memory=memory, address=address, value=value):
                    where, what = evaluate(address, env), evaluate(value, env)
                    env[memory.name][where] = what
                case Command(inputs=inputs, note=note):
                    issue({n: evaluate(v, env) for n, v in inputs}, note)

    run(kernel.body)


WORD = bv(4)
SRC, DST = var("src", mem(4, 4)), var("dst", mem(9, 4))
COUNT, SCALE = var("count", WORD), var("scale", WORD)


@il.primitive(a=WORD, b=WORD)
def mix(a: Expr, b: Expr) -> Expr:
    """A data function with a little of everything."""
    return il.ite(a.slt(b), a * 3 + b, b - a)


@st.composite
def kernels(draw: st.DrawFn, separate: bool = False) -> Kernel:
    """A random kernel over ``src``, ``dst``, ``count`` and ``scale``.

    With ``separate`` every store has its own addresses in ``dst``, which is never loaded.
    """
    kernel = Kernel("k")
    names = iter(range(1000))
    stores = iter(range(8))

    def term(scope: list[Expr], depth: int = 2) -> Expr:
        kind = draw(st.integers(0, 9)) if depth else draw(st.integers(0, 3))
        if kind <= 2:
            return draw(st.sampled_from([*scope, *scope, COUNT, SCALE]))
        if kind == 3:
            return il.const(draw(st.integers(0, 15)), 4)
        a, b = term(scope, depth - 1), term(scope, depth - 1)
        if kind == 4:
            return SRC.load(a)
        if kind == 5:
            return DST.load(a.zext(9)) if not separate else a * b
        if kind == 6:
            return mix(a, b)
        if kind == 7:
            return il.ite(a < b, a, b + 1)
        return draw(st.sampled_from([a + b, a - b, a ^ b, a % b, a & b, a.ashr(b)]))

    def extent(scope: list[Expr]) -> Expr:
        if draw(st.booleans()):
            return il.const(draw(st.integers(0, 3)), 4)
        return draw(st.sampled_from([*scope, COUNT])) & 3

    def block(scope: list[Expr], registers: list[Expr], counters: list[Expr]) -> None:
        scope, registers = list(scope), list(registers)
        for _ in range(draw(st.integers(1, 4))):
            kind = draw(st.sampled_from(["for", "for", "when", "let", "assign", "add", "load", "store", "store"]))
            if kind == "for" and len(counters) < 3:
                with kernel.loop(f"i{next(names)}", extent(scope)) as i:
                    block([*scope, i], registers, [*counters, i])
            elif kind == "when":
                with kernel.when(f"i{next(names)}", term(scope) < term(scope)):
                    block(scope, registers, counters)
            elif kind == "add" and registers:
                register = draw(st.sampled_from(registers))
                kernel.assign(register, register + term([v for v in scope if v is not register]))
            elif kind == "let":
                register = kernel.let(f"r{next(names)}", term(scope))
                scope.append(register)
                registers.append(register)
            elif kind == "assign" and registers:
                kernel.assign(draw(st.sampled_from(registers)), term(scope))
            elif kind == "load":
                memory = SRC if separate or draw(st.booleans()) else DST
                register = kernel.load(f"w{next(names)}", memory, il.resize(term(scope), memory.sort.addr_width))
                scope.append(register)
                registers.append(register)
            elif kind == "store":
                place = term(scope).zext(9)
                if separate:
                    number = next(stores, None)
                    if number is None:
                        continue
                    at = il.concat(il.const(0, 1), *(c[1:0] for c in counters))
                    place = il.concat(il.const(number, 3), il.resize(at, 6))
                kernel.store(DST, place, term(scope))

    block([], [], [])
    return kernel


words = st.dictionaries(st.integers(0, 15), st.integers(0, 15), max_size=16)
scalars = st.fixed_dictionaries({"count": st.integers(0, 3), "scale": st.integers(0, 15)})
