"""Whole devices as LLVM IR: one command, streams of them, and fragments that send them.

``step`` takes the inputs of a command as a block and returns the number of the instruction that it was, or -1 where the
run ends.  What has no native code here, and what no device accepts, goes to the interpreter by a call (``slow``): it
executes the command, or refuses it with its own words.  Kernels are called by a table that is filled when a kernel is
first started (``start``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import ref

from ila_lang.interpreter.machine import store_plan
from ila_lang.language.build import any_of, true
from ila_lang.language.expr import Expr, postorder, variables_of
from ila_lang.language.fragment import Fragment
from ila_lang.language.kernel import Command
from ila_lang.language.model import Ila, Instruction
from ila_lang.language.sorts import MemSort

from .kernels import (
    BLOCK,
    ERROR,
    FIRST,
    KERNELS,
    LEFT,
    OTHER,
    POLL,
    PROFILE,
    SLOW,
    START,
    STEP,
    AddressFault,
    Fault,
    Runtime,
    Statements,
    Table,
    changed_by,
    faults_of,
)
from .layout import Layout
from .terms import WIDEST, Body, Module, NotNative, Place, Words, bits_of, bytes_of

NOT_HERE, RAN_ALREADY = -2, 2
"""What functions of instructions, and ``start``, return where the interpreter serves."""

COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


class Device:
    """Where the state and the inputs of a model are, and its code.  It does not keep the model in memory.

    Raises NotNative where a scalar has no native code.
    """

    def __init__(self, ila: Ila) -> None:
        self._ila = ref(ila)
        self.name = ila.name
        self.memories = {n: s for n, s in ila.states.items() if isinstance(s.sort, MemSort)}
        self.layout = Layout(s for n, s in ila.states.items() if n not in self.memories)
        self.inputs = Layout(ila.inputs.values())
        self._places, self._input_places = self.layout.places("%s"), self.inputs.places("%inputs")
        self.names = list(self.memories)
        self.kernels = list({i.kernel: None for i in self.instructions if i.kernel is not None})

    @property
    def ila(self) -> Ila:
        """The model, which is there as long as a machine of it is."""
        ila = self._ila()
        assert ila is not None
        return ila

    @property
    def instructions(self) -> list[Instruction]:
        """The instructions of the model."""
        return list(self.ila.instructions.values())

    def table_place(self, memory: Expr) -> int:
        """The number of a memory of the device in the table; raises NotNative where it is none of the device's."""
        if self.memories.get(memory.name) is not memory:
            raise NotNative(f"Memory {memory.name} is none of {self.name}")
        return FIRST + self.names.index(memory.name)

    def text(self) -> str:
        """The functions ``step`` and ``plain``, and ``run``, which calls one of them for each command.

        Raises NotNative where a decode has no native code.
        """
        module = Module()
        native = [k for k, i in enumerate(self.instructions) if self._instruction(module, k, i)]
        self._decode(module)
        self._plain(module)
        cases = " ".join(f"i32 {k}, label %case{k}" for k in native)
        calls = [
            f"case{k}:\n  %r{k} = call i32 @i{k}(ptr %args, ptr %s, ptr %inputs)\n  br label %done" for k in native
        ]
        results = "".join(f"[ %r{k}, %case{k} ], " for k in native)
        module.parts.append(f"""define i32 @step(ptr %args, ptr %inputs) nounwind {{
  %s = load ptr, ptr %args
  %which = call i32 @decode(ptr %args, ptr %s, ptr %inputs)
  switch i32 %which, label %other [ {cases} ]
{chr(10).join(calls)}
other:
  br label %done
done:
  %result = phi i32 {results}[ {NOT_HERE}, %other ]
  %native = icmp ne i32 %result, {NOT_HERE}
  br i1 %native, label %end, label %slow
slow:
  %place = getelementptr i64, ptr %args, i64 {SLOW}
  %f = load ptr, ptr %place
  %answer = call i32 %f(ptr %inputs)
  ret i32 %answer
end:
  %failed = icmp slt i32 %result, 0
  %number = select i1 %failed, i32 -1, i32 %which
  ret i32 %number
}}
define i64 @run(ptr %args, ptr %rows, i64 %n, ptr %which, i64 %seen, ptr %places, ptr %out) nounwind {{
start:
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %next, %copied ]
  %to = phi ptr [ %out, %start ], [ %at, %copied ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %offset = mul i64 %i, {max(self.inputs.size, 8)}
  %row = getelementptr i8, ptr %rows, i64 %offset
  %steps = getelementptr i64, ptr %args, i64 {STEP}
  %step = load ptr, ptr %steps
  %number = call i32 %step(ptr %args, ptr %row)
  %place = getelementptr i32, ptr %which, i64 %i
  store i32 %number, ptr %place
  %bad = icmp slt i32 %number, 0
  br i1 %bad, label %end, label %copy
copy:
  %k = phi i64 [ 0, %one ], [ %knext, %word ]
  %at = phi ptr [ %to, %one ], [ %atnext, %word ]
  %left = icmp ult i64 %k, %seen
  br i1 %left, label %word, label %copied
word:
  %s = load ptr, ptr %args
  %p = getelementptr i64, ptr %places, i64 %k
  %from = load i64, ptr %p
  %source = getelementptr i8, ptr %s, i64 %from
  %value = load i64, ptr %source
  store i64 %value, ptr %at
  %atnext = getelementptr i64, ptr %at, i64 1
  %knext = add i64 %k, 1
  br label %copy
copied:
  %next = add i64 %i, 1
  br label %head
end:
  ret i64 %i
}}""")
        return f"{module.text}{PROFILE}\n{COPY}\n"

    def _body(self, module: Module, state: bool = True) -> Body:
        body = Body(module)
        body.places.update(self._input_places)
        if state:
            body.places.update(self._places)
        return body

    def _with_memories(self, body: Body, terms: Sequence[Expr]) -> None:
        """Gives a body the memories that occur in terms."""
        table = Table(body)
        for variable in variables_of(*terms):
            if isinstance(variable.sort, MemSort) and variable not in body.memories:
                body.memories[variable] = Words(table.pointer(self.table_place(variable)))

    def _decode(self, module: Module) -> None:
        """The number of the one instruction that a valid command selects, or -1."""
        body = self._body(module)
        conditions = [self.ila.valid, *(i.decode for i in self.instructions)]
        self._with_memories(body, conditions)
        _select(body, conditions, range(len(self.instructions)))
        module.add("internal i32 @decode(ptr %args, ptr %s, ptr %inputs) nounwind", body)

    def _plain(self, module: Module) -> None:
        """As ``step`` for nothing but the number, from the inputs alone; one more where the state has a part in it."""
        decodes = [i.decode for i in self.instructions]
        of_inputs = set(self.ila.inputs.values())
        #: what the inputs must satisfy for a term to hold in some state, or less
        possible: dict[Expr, Expr] = {}
        for node in postorder([self.ila.valid, *decodes]):
            if node.op != "var" and of_inputs.issuperset(node.args):
                of_inputs.add(node)
            if node in of_inputs:
                possible[node] = node
            elif node.op in ("and", "or"):
                left, right = (possible[a] for a in node.args)
                possible[node] = left & right if node.op == "and" else left | right
            else:
                possible[node] = true
        body = self._body(module, state=False)
        quick = [k for k, d in enumerate(decodes) if d in of_inputs]
        others = any_of([possible[d] for d in decodes if d not in of_inputs])
        valid = self.ila.valid & ~others if self.ila.valid in of_inputs else ~true
        _select(body, [valid, *(decodes[k] for k in quick)], quick, str(len(decodes)))
        module.add("i32 @plain(ptr %args, ptr %inputs) nounwind", body)

    def _instruction(self, module: Module, number: int, instruction: Instruction) -> bool:
        """Adds the function of an instruction; false where the interpreter has to execute it."""
        if instruction.reserved:
            return False
        body = self._body(module)
        try:
            self._update(body, instruction)
            if instruction.kernel is not None:
                self._start(body, instruction)
        except ValueError:  # too wide, without a body, or a memory that no stores lead to
            return False
        body.line("ret i32 0")
        module.add(f"internal i32 @i{number}(ptr %args, ptr %s, ptr %inputs) noinline nounwind", body)
        return True

    def _update(self, body: Body, instruction: Instruction) -> None:
        """What the instruction sets, all computed before any of it is set."""
        scalars = {n: t for n, t in instruction.updates.items() if n not in self.memories}
        plans = {n: store_plan(t) for n, t in instruction.updates.items() if n in self.memories}
        terms = [*scalars.values(), *(x for _, plan in plans.values() for entry in plan for x in entry)]
        self._with_memories(body, [*terms, *(self.memories[n] for n in plans), *(base for base, _ in plans.values())])
        values = {name: body.term(term) for name, term in scalars.items()}
        stores = [
            (name, entry[1], [body.term(x) for x in entry]) for name, (_, plan) in plans.items() for entry in plan
        ]
        copies = {name: base for name, (base, _) in plans.items() if base.name != name}
        for name, base in copies.items():
            inits = self.ila.inits
            if base.name in copies or inits.get(base.name, 0) != inits.get(name, 0):
                raise NotNative("Memories that change places have no native code")
            to, source = body.memories[self.memories[name]].pointer, body.memories[base].pointer
            sort = base.sort
            assert isinstance(sort, MemSort)
            size = bytes_of(sort.data_width) << sort.addr_width
            body.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")
        for name, value in values.items():
            body.write(body.places[self.ila.states[name]], bits_of(self.ila.states[name].sort), value)
        for name, address, (guard, where, data) in stores:
            if guard != "1":
                inside, after = body.label(), body.label()
                body.branch(guard, inside, after)
            body.store(self.memories[name], address, where, data)
            if guard != "1":
                body.place(after)
        body.memo.clear()

    def _start(self, body: Body, instruction: Instruction) -> None:
        kernel = instruction.kernel
        assert kernel is not None
        self._with_memories(body, [instruction.kernel_guard, *kernel.on_done.values()])
        start, after = body.label(), body.label()
        body.branch(body.term(instruction.kernel_guard), start, after)
        number = self.kernels.index(kernel)
        table = Table(body)
        record = table.pointer(ERROR)
        place = body.let(f"getelementptr i64, ptr {table.pointer(KERNELS)}, i64 {number}")
        known, new, call, ran, failed, done = (body.label() for _ in range(6))
        body.branch(body.let(f"icmp ne ptr {body.let(f'load ptr, ptr {place}')}, null"), known, new)
        body.line(f"br label %{call}")
        body.lines.append(f"{new}:")
        answer = body.let(f"call i32 {table.pointer(START)}(i32 {number})")
        body.line(f"switch i32 {answer}, label %{failed} [ i32 0, label %{call} i32 {RAN_ALREADY}, label %{done} ]")
        body.lines.append(f"{call}:")
        body.line(f"br label %{ran}")
        body.lines.append(f"{ran}:")
        result = body.let(f"call i32 {body.let(f'load ptr, ptr {place}')}(ptr %args)")
        body.line(f"switch i32 {result}, label %{failed} [ i32 0, label %{done} i32 {OTHER}, label %{new} ]")
        body.lines.append(f"{failed}:")
        body.line(f"store i64 {number + 1}, ptr {body.let(f'getelementptr i8, ptr {record}, i64 {8 + WIDEST // 8}')}")
        body.line("ret i32 -1")
        body.lines.append(f"{done}:")
        body.memo.clear()
        ends = {name: body.term(term) for name, term in kernel.on_done.items()}
        for name, value in ends.items():
            body.write(body.places[self.ila.states[name]], bits_of(self.ila.states[name].sort), value)
        body.place(after)


def _select(body: Body, conditions: Sequence[Expr], numbers: Sequence[int], others: str = "-1") -> None:
    """Returns the number of the one condition, after a first one that must hold, that does; else ``others``."""
    valid = body.term(conditions[0])
    count, chosen = "0", "0"
    for condition, number in zip(conditions[1:], numbers, strict=True):
        hit = body.term(condition)
        count = body.let(f"add i32 {count}, {body.let(f'zext i1 {hit} to i32')}")
        chosen = body.let(f"or i32 {chosen}, {body.let(f'select i1 {hit}, i32 {number}, i32 0')}")
    one = body.let(f"icmp eq i32 {count}, 1")
    accepted = body.let(f"and i1 {valid}, {one}")
    body.line(f"ret i32 {body.let(f'select i1 {accepted}, i32 {chosen}, i32 {others}')}")


@dataclass(frozen=True)
class FragmentText:
    """The code of a fragment as the function ``fragment`` of a table.

    Behind the device's memories the table has the block of sizes, the host tensors, and how many words these have.
    Behind the inputs of a command stands its number in :attr:`commands`, the names that it gives.
    """

    text: str
    sizes: Layout
    tensors: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    faults: tuple[Fault, ...]


def fragment_text(fragment: Fragment, device: Device) -> FragmentText:
    """The code of a fragment on its device; raises NotNative where the interpreter has to serve."""
    module = Module()
    external = fragment.program.external_variables()
    own = {*fragment.parameters.values(), *fragment.tensors.values()}
    volatile = {v for v in external.values() if v not in own}
    body = Body(module, changing=volatile | set(changed_by(fragment.program.body)))
    table = Table(body)
    sizes = Layout(fragment.parameters.values())
    tensors = tuple(n for n, v in external.items() if fragment.tensors.get(n) is v)
    state, step = table.pointer(BLOCK), table.pointer(STEP)
    runtime = Runtime(table.pointer(ERROR), table.pointer(POLL), table.place(LEFT))
    faults = faults_of(fragment.program.body, tensors)
    first = FIRST + len(device.names)
    body.places.update({v: p for v, p in device.layout.places(state).items() if v in volatile})
    body.places.update(sizes.places(table.pointer(first)))
    for variable in volatile:
        if isinstance(variable.sort, MemSort):
            body.memories[variable] = Words(table.pointer(device.table_place(variable)))
    block = body.fresh()
    body.entry.append(f"  {block} = alloca [{device.inputs.size + 8} x i8], align 8")
    number = Place(block, 64, device.inputs.size)
    commands: list[tuple[str, ...]] = []
    places = device.inputs.places(block)

    def issue(command: Command) -> None:
        operands = {name: body.term(value) for name, value in command.inputs}
        for variable, place in places.items():
            body.write(place, bits_of(variable.sort), operands.get(variable.name, "0"))
        body.write(number, 64, str(len(commands)))
        commands.append(tuple(operands))
        failed = body.let(f"icmp slt i32 {body.let(f'call i32 {step}(ptr %args, ptr {block})')}, 0")
        stop, on = body.label(), body.label()
        body.branch(failed, stop, on)
        body.line("ret i32 1")
        body.lines.append(f"{on}:")

    statements = Statements(body, runtime, faults, issue, volatile)
    for i, name in enumerate(tensors):
        body.memories[fragment.tensors[name]] = Words(
            table.pointer(first + 1 + i),
            table.length(first + 1 + len(tensors) + i),
            faults.index(AddressFault(name)),
        )
    statements.run(fragment.program.body)
    module.add("i32 @fragment(ptr %args) nounwind", body)
    return FragmentText(module.text + PROFILE + "\n", sizes, tensors, tuple(commands), faults)


def recorder_text(size: int) -> str:
    """The function ``record``, which takes the place of ``step`` to note the inputs of a command, of ``size`` bytes.

    The table has, as ``START``, the address of two pointers: where the next command goes, and where there is no room.
    """
    return f"""define i32 @record(ptr %args, ptr %inputs) nounwind {{
  %place = getelementptr i64, ptr %args, i64 {START}
  %ends = load ptr, ptr %place
  %last = getelementptr i64, ptr %ends, i64 1
  %to = load ptr, ptr %ends
  %end = load ptr, ptr %last
  %full = icmp eq ptr %to, %end
  br i1 %full, label %none, label %room
none:
  ret i32 -1
room:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %inputs, i64 {size}, i1 false)
  %next = getelementptr i8, ptr %to, i64 {size}
  store ptr %next, ptr %ends
  ret i32 0
}}
{COPY}
"""
