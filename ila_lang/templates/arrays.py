"""Templates as named arrays for storage, and back: numbers, and a header in JSON as bytes.

Files are untrusted, so every array is checked against the others before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .build import Gather, Scatter
from .sites import InstanceError
from .words import ELEMENT_BITS

VERSION = 2
_HEADER = "header"
_TEXTS = ("fragment", "device", "output")
_TABLES = ("sizes", "idle", "tensors")

Arrays = Mapping[str, NDArray[Any]]


def named_arrays(
    simple: Mapping[str, Any], constants: Arrays, gathers: Sequence[Gather], scatters: Mapping[str, Scatter]
) -> dict[str, NDArray[Any]]:
    """A template's fields as arrays; ``simple`` has its texts, its tables of numbers, and ``reads``."""
    header = {name: simple[name] for name in (*_TEXTS, *_TABLES, "output_bytes")} | {
        "version": VERSION,
        "columns": list(constants),
        "gathers": [[g.column, g.tensor, g.bits, g.run] for g in gathers],
        "scatters": {name: s.bits for name, s in scatters.items()},
    }
    text = json.dumps(header, sort_keys=True).encode()
    named: dict[str, NDArray[Any]] = {"reads": simple["reads"]}
    named |= {f"column.{name}": column for name, column in constants.items()}
    for number, gather in enumerate(gathers):
        named |= {f"places.{number}": gather.places, f"elements.{number}": gather.elements}
    named |= {f"words.{name}": scatter.words for name, scatter in scatters.items()}
    return {_HEADER: np.frombuffer(text, np.uint8)} | {name: _narrow(array) for name, array in named.items()}


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers in the narrowest unsigned type that has all of them, if one has."""
    if array.ndim != 1 or array.dtype == bool or not array.size or int(array.min()) < 0:
        return array
    largest = int(array.max())
    return array.astype(next(kind for kind, most in _WIDTHS if largest <= most), copy=False)


_WIDTHS = (("u1", 0xFF), ("u2", 0xFFFF), ("u4", 0xFFFF_FFFF), ("i8", (1 << 63) - 1))


def fields_of(arrays: Arrays) -> dict[str, Any]:
    """The fields of the template that :func:`named_arrays` has written.

    Raises InstanceError where the arrays are those of no template, or of one that would reach outside of its columns.
    """
    arrays = dict(arrays)
    header = _header(arrays)
    taken = {_HEADER}
    untouched = {f"column.{name}" for name in header["columns"]} - {
        f"column.{column}" for column, *_ in header["gathers"]
    }

    def array(name: str, kind: str, dimensions: int = 1) -> NDArray[Any]:
        stored = arrays.get(name)
        exact = kind == "?" or dimensions > 1
        if (
            stored is None
            or stored.ndim != dimensions
            or (stored.dtype != kind if exact else stored.dtype.kind not in "iu")
        ):
            form = f"{stored.dtype} of {stored.ndim} dimensions" if stored is not None else "nothing"
            raise _wrong(f"array {name}", f"be {kind} of {dimensions} dimensions", form)
        if (
            not exact
            and stored.size
            and not np.iinfo(kind).min <= int(stored.min()) <= int(stored.max()) <= np.iinfo(kind).max
        ):
            raise _wrong(f"array {name}", f"have numbers that fit {kind}", f"{stored.min()} to {stored.max()}")
        taken.add(name)
        # a column without elements stays as narrow as it is
        return np.ascontiguousarray(stored, stored.dtype if name in untouched else kind)

    constants = {}
    for name in header["columns"]:
        given = arrays.get(f"column.{name}")
        kind, dimensions = ("u1", 2) if given is not None and given.ndim == 2 else ("i8", 1)
        if given is not None and given.dtype == bool:
            kind, dimensions = "?", 1
        constants[name] = array(f"column.{name}", kind, dimensions)
    lengths = {len(column) for column in constants.values()}
    if len(lengths) != 1:
        raise _wrong("columns", "have one length", str(sorted(lengths)))
    (length,) = lengths
    reads = array("reads", "i8")
    if reads.size and (reads[0] < 0 or reads[-1] >= length or not (reads[1:] > reads[:-1]).all()):
        raise _wrong("reads", f"be rising numbers of {length} commands", f"{reads.min()} to {reads.max()}")
    gathers = []
    for number, (column, tensor, bits, run) in enumerate(header["gathers"]):
        row = _row(constants, column)
        if bits != header["tensors"].get(tensor) or bits not in ELEMENT_BITS or run < 1 or row % (bits // 8 * run):
            raise _wrong(f"gather {number}", f"be runs of elements in rows of {row} bytes", f"{run} of {bits} bits")
        places, elements = array(f"places.{number}", "i4"), array(f"elements.{number}", "i4")
        room = length * (row // (bits // 8 * run))
        if not places.size or places.size != elements.size or elements.min() < 0:
            raise _wrong(f"gather {number}", "have an element for each place", f"{elements.size} for {places.size}")
        if places.min() < 0 or places.max() >= room or not _distinct(places, room):
            raise _wrong(f"gather {number}", f"have distinct places below {room}", f"{places.min()} to {places.max()}")
        gathers.append(Gather(column, tensor, bits, run, places, elements))
    scatters = {}
    for name, bits in header["scatters"].items():
        words = array(f"words.{name}", "i4")
        if bits != header["tensors"].get(name) or bits not in ELEMENT_BITS or header["output_bytes"] % (bits // 8):
            raise _wrong(f"tensor {name}", f"be elements in {header['output_bytes']} bytes", f"{bits} bits")
        room = len(reads) * (header["output_bytes"] // (bits // 8))
        if words.size and (words.min() < 0 or words.max() >= room):
            raise _wrong(f"tensor {name}", f"come from {room} words", f"{words.min()} to {words.max()}")
        scatters[name] = Scatter(bits, words)
    if set(arrays) != taken:
        raise _wrong("arrays", f"be {', '.join(sorted(taken))} alone", ", ".join(sorted(set(arrays) - taken)))
    simple = {name: header[name] for name in (*_TEXTS, *_TABLES, "output_bytes")}
    return simple | {"constants": constants, "gathers": tuple(gathers), "scatters": scatters, "reads": reads}


def _distinct(places: NDArray[Any], room: int) -> bool:
    taken = np.zeros(room, bool)
    taken[places] = True
    return int(np.count_nonzero(taken)) == len(places)


def _row(constants: Arrays, column: str) -> int:
    """The bytes that a command has in a column which may hold elements."""
    values = constants.get(column)
    if values is None or values.dtype == bool:
        raise _wrong(f"gather into column {column}", "name a column of numbers", "one of Booleans, or none")
    return values.shape[1] if values.ndim == 2 else 8


def _header(arrays: Arrays) -> dict[str, Any]:
    raw = arrays.get(_HEADER)
    if raw is None or raw.dtype != np.uint8 or raw.ndim != 1:
        raise _wrong("header", "be text as bytes", "missing or of another form")
    try:
        header = json.loads(raw.tobytes())
    except ValueError as error:
        raise _wrong("header", "be JSON", str(error)) from error
    if not isinstance(header, dict) or header.get("version") != VERSION:
        version = header.get("version") if isinstance(header, dict) else header
        raise _wrong("header", f"be of version {VERSION}", repr(version))
    fields = {*_TEXTS, *_TABLES, "output_bytes", "version", "columns", "gathers", "scatters"}
    if header.keys() != fields:
        raise _wrong("header", f"have {', '.join(sorted(fields))}", ", ".join(sorted(header)))
    forms: list[tuple[str, bool]] = [
        *((name, isinstance(header[name], str)) for name in _TEXTS),
        *((name, _is_table(header[name])) for name in (*_TABLES, "scatters")),
        ("output_bytes", type(header["output_bytes"]) is int and header["output_bytes"] > 0),
        ("columns", isinstance(header["columns"], list) and all(isinstance(n, str) for n in header["columns"])),
        ("gathers", isinstance(header["gathers"], list) and all(map(_is_gather, header["gathers"]))),
    ]
    for name, right in forms:
        if not right:
            raise _wrong(f"field {name} of the header", "have the form that to_arrays writes", repr(header[name]))
    return header


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(type(number) is int and number >= 0 for number in value.values())


def _is_gather(value: object) -> bool:
    return isinstance(value, list) and [type(part) for part in value] == [str, str, int, int]


def _wrong(what: str, must: str, actual: str) -> InstanceError:
    return InstanceError(f"Stored program: {what} must {must}, not {actual}; compile it again")
