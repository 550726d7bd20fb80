"""Seeded faults of FlexASR pooling: each is the correct mapping with one place of model, program or claim changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from accel_models.flexasr.config import LARGE_MANAGER_WORD, UNIT_WORD
from accel_models.flexasr.model import _build
from accel_models.flexasr.numerics import adpfloat_max
from accel_models.flexasr.options import FlexAsrOptions
from ila_lang import Expr, Fragment, Function, Ila, Kernel, bv, concat, const, free_variables, ite, substitute
from ila_lang.language.kernel import Command, For, Statement, Store
from ila_lang.mapping import TensorMapping
from rewrites.mappings.flexasr import pooling as rewrite
from tests.bmc.mutation import mutate, mutate_statements

LARGE = "gb_core_large_buffer"


class Parts:
    """A max-pooling mapping made of parts of its own, to be changed in one place."""

    def __init__(self) -> None:
        self.ila: Ila = _build.__wrapped__(FlexAsrOptions())
        self.device: Fragment = rewrite.pooling_fragment("max", self.ila)
        self.ir: Fragment = rewrite.ir_fragment("max")

    @property
    def kernel(self) -> Kernel:
        return self.ila.kernels["layer_reduce"]

    def mapping(self, fault: str) -> TensorMapping:
        plain = rewrite.pooling_mapping("max")
        return replace(plain, name=f"{plain.name} with {fault}", device=self.device, ir=self.ir)


FAULTS: dict[str, Callable[[], TensorMapping]] = {}
"""Mappings that do not hold, by the name of the fault; small shapes show it."""

LARGE_FAULTS: dict[str, tuple[tuple[int, int], Callable[[], TensorMapping]]] = {}
"""Mappings that hold at all small shapes, with a shape that refutes them."""


def fault(function: Callable[[Parts], None]) -> Callable[[Parts], None]:
    def build() -> TensorMapping:
        parts = Parts()
        function(parts)
        return parts.mapping(function.__name__)

    FAULTS[function.__name__] = build
    return function


def names(term: Expr) -> set[str]:
    return set(free_variables(term))


def selects(what: str) -> Callable[[Expr], bool]:
    """The choice among the four manager entries of one kind."""
    wanted = {f"gb_core_mem_mngr_large_{what}_{i}" for i in range(4)} | {"gb_layer_reduce_memory_index_1"}
    return lambda node: node.op == "ite" and names(node) == wanted


def command(text: str) -> Callable[[Statement], bool]:
    return lambda s: isinstance(s, Command) and s.note.startswith(text)


def with_input(name: str, change: Callable[[Expr], Expr]) -> Callable[[Statement], list[Statement]]:
    def new(statement: Statement) -> list[Statement]:
        assert isinstance(statement, Command)
        inputs = tuple((n, change(v) if n == name else v) for n, v in statement.inputs)
        return [Command(inputs, statement.note)]

    return new


def counter(kernel: Kernel, name: str) -> Expr:
    found = next(v for s in kernel.body for t in [s] if isinstance(t, For) for v in _counters(t) if v.name == name)
    return found


def _counters(loop: For) -> list[Expr]:
    return [loop.counter, *(c for s in loop.body if isinstance(s, For) for c in _counters(s))]


# -- the model --------------------------------------------------------------------------------------------


@fault
def stride_of_another_manager_entry(p: Parts) -> None:
    other = p.ila.states["gb_core_mem_mngr_large_num_vector_1"]
    mutate(p.kernel, selects("num_vector"), lambda _: other, 3)


@fault
def base_of_another_manager_entry(p: Parts) -> None:
    other = p.ila.states["gb_core_mem_mngr_large_base_large_2"]
    mutate(p.kernel, selects("base_large"), lambda _: other, 3)


@fault
def base_taken_as_a_byte_address(p: Parts) -> None:
    mutate(p.kernel, selects("base_large"), lambda base: base >> 4, 3)


@fault
def tile_order_swapped(p: Parts) -> None:
    vector = counter(p.kernel, "vector")

    def tile(node: Expr) -> bool:
        return node.op == "bvadd" and node.args[1] is vector.zext(32) and node.args[0].op == "bvmul"

    def swapped(node: Expr) -> Expr:
        group, stride = node.args[0].args
        return vector.zext(32) * stride + group

    mutate(p.kernel, tile, swapped, 3)


def _lanes(p: Parts, lane: Callable[[int], int]) -> None:
    def load(node: Expr) -> bool:
        return node.op == "load"

    def other(node: Expr) -> Expr:
        memory, address = node.args
        vector, own = address.args
        return memory.load(concat(vector, const(lane(own.value), 4)))

    mutate(p.ila.instructions["GB_CORE_LOAD_LARGE"], load, other, 16)


@fault
def load_swaps_neighbouring_lanes(p: Parts) -> None:
    _lanes(p, lambda lane: lane ^ 1)


@fault
def load_reverses_lanes(p: Parts) -> None:
    _lanes(p, lambda lane: 15 - lane)


@fault
def store_swaps_bytes(p: Parts) -> None:
    data = p.ila.inputs["data_in"]

    def byte(node: Expr) -> bool:
        return node.op == "extract" and node.args[0] is data

    def other(node: Expr) -> Expr:
        low = int(node.params[1]) ^ 8
        return data[low + 7 : low]

    mutate(p.ila.instructions["GB_CORE_STORE_LARGE"], byte, other, 16)


def _store_row(p: Parts, row: Callable[[Expr], Expr]) -> None:
    pair = counter(p.kernel, "pair")

    def new(statement: Statement) -> list[Statement]:
        assert isinstance(statement, Store)
        address = substitute(statement.address, {pair: row(pair)})
        return [Store(statement.memory, address, statement.value)]

    mutate_statements(p.kernel, lambda s: isinstance(s, Store), new)


@fault
def output_row_off_by_one(p: Parts) -> None:
    _store_row(p, lambda pair: pair + 1)


@fault
def result_clobbers_an_unread_row(p: Parts) -> None:
    # the pair after next is read from rows that this pair has overwritten
    _store_row(p, lambda pair: pair * 2 + 2)


@fault
def pairs_from_the_top(p: Parts) -> None:
    pair = counter(p.kernel, "pair")
    loop = p.kernel.body[0]
    assert isinstance(loop, For)
    extent = loop.extent
    mutate(p.kernel, lambda n: n is pair, lambda _: extent - 1 - pair, 3)


def _loop_extent(p: Parts, name: str, change: Callable[[Expr], Expr]) -> None:
    mutate_statements(
        p.kernel,
        lambda s: isinstance(s, For) and s.counter.name == name,
        lambda s: [For(s.counter, change(s.extent), s.body)] if isinstance(s, For) else [],
    )


@fault
def one_pair_too_few(p: Parts) -> None:
    _loop_extent(p, "pair", lambda extent: extent - 1)


def _inner_extent(p: Parts, name: str, change: Callable[[Expr], Expr]) -> None:
    _loop_extent(p, name, change)


@fault
def one_vector_too_many(p: Parts) -> None:
    # vector nv of one group of timesteps is vector 0 of the next: its rows are overwritten before they are read
    _inner_extent(p, "vector", lambda extent: extent + 1)


@fault
def one_lane_too_few(p: Parts) -> None:
    _inner_extent(p, "lane", lambda extent: extent - 1)


def minimum(name: str) -> Function:
    """The minimum, under a name."""
    a, b = adpfloat_max.params
    assert adpfloat_max.body is not None
    larger = adpfloat_max.body
    function = Function(name, {"a": bv(8), "b": bv(8)}, bv(8), None)
    body = ite(larger == a, b, a)
    function.body = substitute(body, dict(zip((a, b), function.params, strict=True)))
    return function


@fault
def minimum_where_the_first_operand_is_5(p: Parts) -> None:
    other = minimum("adpfloat_min")
    mutate(p.kernel, lambda n: n.func is adpfloat_max, lambda n: ite(n.args[0] == 5, other(*n.args), n))


@fault
def one_operand_only(p: Parts) -> None:
    mutate(p.kernel, lambda n: n.func is adpfloat_max, lambda n: adpfloat_max(n.args[0], n.args[0]))


@fault
def maximum_keeps_a_negative_zero(p: Parts) -> None:
    # differs from the hardware only where the result is 0x80
    mutate(
        p.kernel,
        lambda n: n.func is adpfloat_max,
        lambda n: ite((n.args[0] == 0x80) & (n.args[1] == 0x80), const(0x80, 8), n),
    )


# -- the program ------------------------------------------------------------------------------------------


@fault
def manager_not_configured(p: Parts) -> None:
    mutate_statements(p.device, command("configure manager"), lambda _: [])


@fault
def unit_not_configured(p: Parts) -> None:
    mutate_statements(p.device, command("configure LayerReduce"), lambda _: [])


@fault
def unit_not_started(p: Parts) -> None:
    mutate_statements(p.device, command("start LayerReduce"), lambda _: [])


def _unit(p: Parts, **fields: Expr | int) -> None:
    plain: dict[str, Expr | int] = {
        "is_valid": 1, "mode": 0, "memory_index_1": rewrite.ENTRY[2:0], "num_vector_1": rewrite.NV[7:0],
        "num_timestep_1": rewrite.T[15:0],
    }  # fmt: skip
    word = UNIT_WORD.pack_expr(**(plain | fields))
    mutate_statements(p.device, command("configure LayerReduce"), with_input("data_in", lambda _: word))


@fault
def started_while_not_valid(p: Parts) -> None:
    _unit(p, is_valid=0)


@fault
def mean_mode_for_max(p: Parts) -> None:
    _unit(p, mode=1)


@fault
def unit_counts_one_vector_less(p: Parts) -> None:
    _unit(p, num_vector_1=(rewrite.NV - 1)[7:0])


@fault
def unit_counts_two_timesteps_less(p: Parts) -> None:
    _unit(p, num_timestep_1=(rewrite.T - 2)[15:0])


@fault
def unit_names_an_unset_manager_entry(p: Parts) -> None:
    _unit(p, memory_index_1=1)


@fault
def unit_names_the_next_manager_entry(p: Parts) -> None:
    _unit(p, memory_index_1=(rewrite.ENTRY + 1)[2:0])


@fault
def unit_names_only_even_manager_entries(p: Parts) -> None:
    _unit(p, memory_index_1=(rewrite.ENTRY & 2)[2:0])


@fault
def loads_start_one_row_late(p: Parts) -> None:
    loop = p.device.program.body[-1]
    assert isinstance(loop, For)
    u = loop.counter
    mutate_statements(p.device, command("load y"), with_input("addr_in", lambda a: substitute(a, {u: u + 1})))


@fault
def stores_ignore_the_base(p: Parts) -> None:
    mutate_statements(
        p.device,
        command("store x"),
        with_input("addr_in", lambda a: substitute(a, {rewrite.BASE: const(0, 32)})),
    )


@fault
def host_reads_columns_in_reverse(p: Parts) -> None:
    outer = p.device.program.body[0]
    assert isinstance(outer, For)
    inner = outer.body[0]
    assert isinstance(inner, For)
    v = inner.counter
    mutate_statements(
        p.device,
        command("store x"),
        with_input("data_in", lambda d: substitute(d, {v: rewrite.NV - 1 - v})),
    )


# -- the IR -----------------------------------------------------------------------------------------------


def _window(p: Parts, **values: int) -> None:
    def new(statement: Statement) -> list[Statement]:
        assert isinstance(statement, Command)
        inputs = tuple((n, const(values[n], 8) if n in values else v) for n, v in statement.inputs)
        return [Command(inputs, statement.note)]

    mutate_statements(p.ir, lambda s: isinstance(s, Command), new)


@fault
def window_and_stride_transposed(p: Parts) -> None:
    _window(p, pool_y_in=1, pool_x_in=2, stride_y_in=1, stride_x_in=2)


@fault
def window_one_by_two(p: Parts) -> None:
    _window(p, pool_y_in=1, pool_x_in=2)


@fault
def window_stride_one(p: Parts) -> None:
    _window(p, stride_y_in=1)


# -- the claim --------------------------------------------------------------------------------------------


def odd_rows_admitted() -> TensorMapping:
    """Odd T with an output row for the last, lonely timestep: it is combined with a row that nobody stored."""
    parts = Parts()
    rows = (rewrite.T + 1) >> 1
    mutate_statements(
        parts.device,
        lambda s: isinstance(s, For) and s.counter.name == "load_t",
        lambda s: [For(s.counter, rows, s.body)] if isinstance(s, For) else [],
    )
    plain = rewrite.pooling_mapping("max", odd=True)
    cell = ((plain.cell[0][0], rows), *plain.cell[1:])
    return replace(plain, name="odd rows", device=parts.device, ir=parts.ir, rows=rows, cell=cell)


def odd_rows_pooled(rows: Expr) -> TensorMapping:
    """The unit pools another number of rows than there are."""
    parts = Parts()
    _unit(parts, num_timestep_1=rows[15:0])
    return replace(rewrite.pooling_mapping("max", odd=True), name="odd rows", device=parts.device)


FAULTS["odd_rows_pooled_three_less"] = lambda: odd_rows_pooled(rewrite.T - 3)
FAULTS["odd_rows_pooled_once"] = lambda: odd_rows_pooled(const(1, 32))
FAULTS["odd_rows_as_sum"] = lambda: replace(
    rewrite.pooling_mapping("max", odd=True), device=rewrite.pooling_fragment("add", Parts().ila)
)
FAULTS["odd_rows_as_mean"] = lambda: replace(
    rewrite.pooling_mapping("max", odd=True), device=rewrite.pooling_fragment("mean", Parts().ila)
)
FAULTS["odd_rows_admitted"] = odd_rows_admitted


# -- faults of large shapes only --------------------------------------------------------------------------


def large(shape: tuple[int, int]) -> Callable[[Callable[[Parts], None]], Callable[[Parts], None]]:
    def register(function: Callable[[Parts], None]) -> Callable[[Parts], None]:
        fault(function)
        LARGE_FAULTS[function.__name__] = (shape, FAULTS.pop(function.__name__))
        return function

    return register


@large((258, 16))
def timesteps_cut_to_eight_bits(p: Parts) -> None:
    _unit(p, num_timestep_1=rewrite.T[7:0].zext(16))


@large((18, 2048))
def stride_cut_to_seven_bits(p: Parts) -> None:
    word = LARGE_MANAGER_WORD.pack_expr(num_vector_0=rewrite.NV[6:0].zext(8), base_large_0=rewrite.BASE[15:0])
    mutate_statements(p.device, command("configure manager"), with_input("data_in", lambda _: word))
