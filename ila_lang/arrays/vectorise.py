"""Kernels on whole NumPy arrays: loops become axes of index grids.

Every loop is taken for an axis at first.  One that carries a register from iteration to iteration runs one iteration at
a time, on the whole arrays of the loops around it, unless the register is only added to: then its addends are summed
over the axis (by a matrix product where they are products).  Iterations that an extent leaves out are masked.  All
stores and loads of a stored memory are checked to be in the scalar order (:mod:`ila_lang.arrays.regions`); where they
are not, the run starts again with one loop less as an axis.  So the result is that of the scalar interpreter, bit for
bit.

What was learned about a kernel is kept for each configuration, that is, for each tuple of the scalars it uses: which
loops are no axes; that the order was right (if no address depends on the contents of memories); and arrays that depend
on nothing else than unchanged memories.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from hashlib import blake2b
from itertools import count
from operator import is_not, itemgetter, ne
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ila_lang.language.expr import free_variables
from ila_lang.language.kernel import Kernel, Statement, terms, walk
from ila_lang.language.sorts import MemSort

from .clock import Restart, joined, without
from .execution import Configuration, Run
from .plan import CompiledKernel
from .recorder import Recorder
from .regions import NotParallel
from .trace import Trace

Words = NDArray[Any]

#: Loops are cut so that a grid has about this many points at most.
POINTS = 1 << 19
#: What is learned of one kernel belongs to at most so many configurations.
CONFIGURATIONS = 64
#: An axis is split into this many phases at most.
MOST_PHASES = 8
#: Similar configurations differ in at most so many scalars.
SIMILAR = 12
#: Contents of memories are part of a configuration if these have at most this many bits.
STEERING_BITS = 1 << 20

#: Kernels keep values by the versions of memories, for all runs and machines: no two contents may share one.
VERSIONS = count()


def run_vectorised(
    kernel: Kernel, values: Mapping[str, int], memories: MutableMapping[str, Words], points: int = POINTS
) -> None:
    """Runs ``kernel`` on arrays of words, in place.

    ``values`` gives the external scalars and ``memories`` a one-dimensional integer array for each memory,
    which may stop short of the memory's last address; ``points`` bounds the grid.  Final values of states
    (:attr:`Kernel.on_done`) are not applied.  Raises ValueError if the kernel issues commands, stores to a
    conditional memory or uses a width above 62 bits; if an argument is missing, or an array does not fit
    its memory; if an extent does not fit its counter; or if the run leaves an array.  Stored memories are unchanged
    then.
    """
    plan = plan_of(kernel)
    for name, sort in plan.memories.items():
        if name not in memories:
            raise ValueError(f"Kernel {kernel.name} must be given the memory {name}")
        _check_array(name, sort, memories[name], name in plan.flow.stored)
    for name in sorted(plan.flow.stored):
        for other in plan.memories:
            if other != name and np.may_share_memory(memories[name], memories[other]):
                raise ValueError(f"Memories {name} and {other} must be separate arrays")
    # recorded runs are for arrays of the same types
    kinds = tuple((memories[name].dtype.str, memories[name].strides) for name in plan.memories)
    plan.run(values, memories, {name: next(VERSIONS) for name in plan.memories}, points, kinds)


_PLANS: WeakKeyDictionary[Kernel, tuple[list[Statement], Plan]] = WeakKeyDictionary()


def plan_of(kernel: Kernel) -> Plan:
    """The plan of a kernel, which must be complete; a new one where the kernel has other statements since."""
    body, plan = _PLANS.get(kernel, ([], None))
    if plan is None or len(body) != len(kernel.body) or any(map(is_not, body, kernel.body)):
        plan = Plan(kernel)
        _PLANS[kernel] = list(kernel.body), plan
    return plan


class Plan:
    """A kernel compiled for runs on arrays."""

    def __init__(self, kernel: Kernel) -> None:
        compiled = CompiledKernel(kernel)
        self.flow = compiled.flow
        self.body = compiled.body
        self.name = kernel.name
        external = kernel.external_variables()
        self.memories = {n: v.sort for n, v in external.items() if isinstance(v.sort, MemSort)}
        used = set[str]()
        for statement in walk(kernel.body):
            used |= {n for t in terms(statement) for n in free_variables(t)}
        self.scalars = [n for n in external if n not in self.memories and n in used]
        # every run of a configuration takes the same steps if their contents are part of the configuration
        self.steering = sorted(self.flow.steering)
        sizes = (((1 << s.addr_width) * s.data_width) for n, s in self.memories.items() if n in self.steering)
        self.static = not self.flow.steering & self.flow.stored and sum(sizes) <= STEERING_BITS
        # memories whose addresses depend on data: whether they lie in an array may change from run to run
        data = self.flow.memories - self.flow.steering
        self.gathered = {a.memory for a in self.flow.accesses(kernel.body) if self.flow.reached([a.address]) & data}
        self.configurations: dict[tuple[Any, ...], Configuration] = {}
        self.traces: dict[tuple[Any, ...], Trace | None] = {}

    def run(
        self,
        values: Mapping[str, int],
        memories: Mapping[str, Words],
        versions: Mapping[str, int],
        points: int = POINTS,
        kinds: tuple[Any, ...] = (),
    ) -> None:
        """Runs the kernel on ``memories`` in place; equal ``versions`` of a memory promise equal contents.

        Equal ``kinds`` promise arrays of equal types and strides.
        """
        missing = [name for name in self.scalars if name not in values]
        if missing:
            raise ValueError(f"Kernel {self.name} must be given the value {missing[0]}")
        scalars = tuple(int(values[name]) for name in self.scalars)
        key: tuple[Any, ...] = (points, *scalars, kinds)
        if self.static:
            key += tuple(
                (memories[name].dtype.str, blake2b(memories[name].tobytes(), digest_size=16).digest())
                for name in self.steering
            )
        whole = {name: len(memories[name]) == 1 << sort.addr_width for name, sort in self.memories.items()}
        if not all(whole.values()):
            key += tuple(len(memories[name]) for name in self.memories)
        if key not in self.configurations:
            if len(self.configurations) >= CONFIGURATIONS:
                self.configurations.clear()
                self.traces.clear()
            self.configurations[key] = self._new_configuration(scalars)
        configuration = self.configurations[key]
        # products wrap around on purpose; NumPy warns about it on single numbers
        with np.errstate(over="ignore"):
            trace = self.traces.get(key)
            if trace is not None:
                trace.run(memories, versions)
                return
            arguments = (self, configuration, dict(zip(self.scalars, scalars, strict=True)), memories, versions, points)
            if configuration.ordered and key not in self.traces:
                configuration.forget()
                recorder = Recorder(*arguments)
                recorder.block(self.body)
                self.traces[key] = recorder.trace()
                configuration.forget()
                return
            while not self._run(Run(*arguments)):
                pass  # it has learned something
        configuration.ordered = self.static and all(whole[name] for name in self.gathered)

    def _run(self, run: Run) -> bool:
        """Runs; false, with nothing stored, where it has to be done again with what was learned."""
        try:
            run.block(self.body)
            return True
        except NotParallel as found:
            self._learn(run.configuration, found)
        except Restart:
            pass
        except ValueError:
            run.undo()
            raise
        run.undo()
        run.configuration.forget()
        return False

    def _learn(self, configuration: Configuration, found: NotParallel) -> None:
        """Splits the axis that was not in order into phases, or, where that does not help, makes it none."""
        counter = found.counter
        assert counter not in configuration.serial
        loop = self.flow.ragged.get(counter)
        if loop is not None:
            split, phases = configuration.phases.get(loop, (counter, 1))
            if split == counter and phases <= found.distance < MOST_PHASES:
                configuration.phases[loop] = counter, found.distance + 1
                if loop in configuration.serial:
                    return
                counter = loop
            elif split == counter:
                configuration.phases.pop(loop, None)
        configuration.serial.add(counter)
        configuration.layout = without(configuration.layout, counter)

    def _new_configuration(self, scalars: tuple[int, ...]) -> Configuration:
        """What a similar configuration has taught is a good guess; more serial loops are never wrong, only slower."""
        known = [(sum(map(ne, key[1 : len(scalars) + 1], scalars)), c) for key, c in self.configurations.items()]
        distance, nearest = min(known, key=itemgetter(0), default=(SIMILAR + 1, None))
        if nearest is None or distance > SIMILAR:
            return Configuration(set(self.flow.serial), {})
        # digits that are long enough for all of those with the same axes are likely to be long enough here
        alike = joined(c.layout for c in self.configurations.values() if c.serial == nearest.serial)
        layout = nearest.layout if alike is None else alike
        return Configuration(set(nearest.serial), {path: list(bits) for path, bits in layout.items()})


def _check_array(name: str, sort: MemSort, words: Words, written: bool) -> None:
    if not isinstance(words, np.ndarray) or words.ndim != 1 or not np.issubdtype(words.dtype, np.integer):
        raise ValueError(f"Memory {name} must be a one-dimensional array of integers")
    if len(words) > 1 << sort.addr_width:
        raise ValueError(f"Memory {name} must have at most {1 << sort.addr_width} words, not {len(words)}")
    largest = (1 << sort.data_width) - 1
    if written and np.iinfo(words.dtype).max < largest:
        raise ValueError(f"Array {name} must have a type for {sort.data_width} bits, not {words.dtype}")
    if words.size and (int(words.min()) < 0 or int(words.max()) > largest):
        raise ValueError(f"Words of {name} must lie in 0 .. {largest}")
