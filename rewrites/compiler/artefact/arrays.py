"""Arrays in ``.npz`` files, written the same way every time, and read from untrusted files.

A file is a zip of ``NAME.npy`` members that are not compressed, as :func:`numpy.savez` writes them, so that
:func:`numpy.load` reads it.  The reader never unpickles, and allocates no more than the bytes that are there, or than
it is told where members may be compressed: sizes that a header announces are compared with them first.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from ir_semantics.graph.types import MOST_RANK, Array

from .errors import ArtefactError

Data = bytes | memoryview
"""The bytes of a file."""

_DTYPES = frozenset(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)) | {"b1", "f2", "f4", "f8"}
_LONGEST_HEADER = 10_000
MOST_NAME = 65_000
"""Bytes of an array's name."""
ALIGNMENT = 64
"""Elements are aligned to this number of bytes in the file, so that arrays can be views of its bytes in memory."""
_LOCAL = struct.Struct("<4s5H3I2H")
"""The header of a member, without its name and its further fields: APPNOTE.TXT of PKWARE, 4.3.7."""
_ZIP64, _FIELD = 20, 4  # bytes of the field for large files, which is always present, and of the header of a field
_PADDING = 0x4C49  # not a registered number of a field


def is_name(name: str) -> bool:
    """Whether an array in a file can have a name: it is one of a zip file's members."""
    return "\0" not in name and len(name.encode(errors="replace")) <= MOST_NAME


def npz_bytes(arrays: Mapping[str, Array]) -> Data:
    """The file of arrays by name: sorted, row-major, little-endian, without times; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            if not is_name(name):
                raise ArtefactError(
                    f"the name of an array must have no NUL, and {MOST_NAME:,} bytes or less, not {name!r:.60}"
                )
            array = np.ascontiguousarray(arrays[name]).reshape(np.shape(arrays[name]))
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            if array.dtype.str[1:] not in _DTYPES:
                raise ArtefactError(f"the array {name} must be of Booleans or numbers, not of {array.dtype}")
            info = zipfile.ZipInfo(f"{name}.npy")
            begin = buffer.tell() + _LOCAL.size + len(info.filename.encode()) + _ZIP64 + _FIELD
            missing = -begin % ALIGNMENT  # NumPy's header has a multiple of 64 bytes
            info.extra = struct.pack("<HH", _PADDING, missing) + bytes(missing)
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
    return buffer.getbuffer()


def arrays_of(where: str, data: bytes, most: int | None = None) -> dict[str, Array]:
    """The arrays in a file, read-only; raises ArtefactError for a file that :func:`npz_bytes` would not write.

    They are the bytes of ``data``, and no copy of them.  With ``most``, a number of bytes, arrays may also be
    compressed, or column-major, and have as many in all.
    """
    return {name: array for name, (_, array) in _members(where, data, most).items()}


def array_of(where: str, data: bytes) -> Array:
    """The array in a ``.npy`` file, read-only, row- or column-major."""
    return _array(where, memoryview(data), column_major=True)[1]


def places_of(data: Data) -> dict[str, int]:
    """The offsets of the elements of each array in a file of :func:`npz_bytes`."""
    return {name: place for name, (place, _) in _members("the file", bytes(data)).items()}


def _members(where: str, data: bytes, most: int | None = None) -> dict[str, tuple[int, Array]]:
    arrays: dict[str, tuple[int, Array]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if most is not None and sum(m.file_size for m in members) > most:
                raise ArtefactError(f"{where} must hold at most {most:,} bytes")
            if most is None and sum(m.file_size for m in members) > len(data):
                raise ArtefactError(f"{where} must hold the bytes that it announces; its members would be larger")
            for member in members:
                name = member.filename.removesuffix(".npy")
                if name == member.filename or name in arrays:
                    raise ArtefactError(f"{where} must hold arrays of different names, not {member.filename!r:.60}")
                packed = most is not None and member.compress_type == zipfile.ZIP_DEFLATED
                if not (packed or member.compress_type == zipfile.ZIP_STORED) or member.flag_bits & 1:
                    raise ArtefactError(f"{where}: {name} must be neither compressed nor encrypted")
                content = memoryview(archive.read(member)) if packed else _content(data, member)
                if zlib.crc32(content) != member.CRC:
                    raise ArtefactError(f"{where}: {name} must have the checksum that it names; it was changed")
                begin, array = _array(f"{where}: {name}", content, column_major=most is not None)
                arrays[name] = member.header_offset + _skipped(data, member) + begin, array
    except (
        struct.error,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        OSError,
        RuntimeError,
    ) as error:
        raise ArtefactError(f"{where} must be a zip file of arrays, which it is not: {error}") from error
    return arrays


def _skipped(data: Data, member: zipfile.ZipInfo) -> int:
    """The bytes of a member's header."""
    local = _LOCAL.unpack_from(data, member.header_offset)
    if local[0] != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"there is no member at byte {member.header_offset}")
    return _LOCAL.size + int(local[-2]) + int(local[-1])


def _content(data: bytes, member: zipfile.ZipInfo) -> memoryview:
    """The bytes of a member that is not compressed."""
    begin = member.header_offset + _skipped(data, member)
    if begin + member.file_size > len(data):
        raise zipfile.BadZipFile("it ends before its last member")
    return memoryview(data)[begin : begin + member.file_size]


def _array(where: str, data: memoryview, *, column_major: bool = False) -> tuple[int, Array]:
    """Where elements begin, and the array, which may be column-major."""
    stream = io.BytesIO(data[: _LONGEST_HEADER + 20])
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ArtefactError(f"{where} must be in version 1.0 of NumPy's format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_LONGEST_HEADER)
    except ArtefactError:
        raise
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ArtefactError(f"{where} must be an array in NumPy's format: {error}") from error
    if dtype.str[:1] == ">" or dtype.str[1:] not in _DTYPES or (fortran and not column_major):
        order, given = ("" if column_major else "row-major and ", ", column-major" if fortran else "")
        raise ArtefactError(f"{where} must be of Booleans or numbers, {order}little-endian, not {dtype.str}{given}")
    if len(shape) > MOST_RANK or any(type(d) is not int or d < 0 for d in shape):
        raise ArtefactError(f"{where} must have at most {MOST_RANK} extents, all natural numbers")
    count = 1
    for extent in shape:
        count *= extent
    start = stream.tell()
    if count * dtype.itemsize != len(data) - start:
        raise ArtefactError(
            f"{where} must have the {count * dtype.itemsize} bytes of its type and shape, not {len(data) - start}"
        )
    if dtype.kind == "b" and np.any(np.frombuffer(data, np.uint8, count, start) > 1):
        raise ArtefactError(f"{where} must hold bytes 0 and 1, being of Booleans")
    array = np.frombuffer(data, dtype, count, start).reshape(shape, order="F" if fortran else "C")
    if fortran or not array.flags.aligned:
        array = array.copy()
    array.flags.writeable = False
    return start, array
