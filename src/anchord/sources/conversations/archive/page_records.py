"""Read the records of a damaged SQLite file page by page, without SQLite.

SQLite reaches a record through the pages above it, so one bad page hides all below it. Here every
page is read by itself: whatever is on an intact page is found. The format is described at
https://sqlite.org/fileformat2.html.

Deleted records are not found: anchord's files are written with `secure_delete`, which overwrites
them with zeros.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

Value = int | float | str | bytes | None

_LARGEST_PAGE_BYTES = 1 << 16
DEFAULT_PAGE_SIZE = 4096
_MAGIC = b"SQLite format 3\0"
_DATABASE_HEADER_BYTES = 100
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 13, 10, 2
_WAL_MAGICS = {0x377F0682: "<", 0x377F0683: ">"}
"""The first four bytes of a WAL -> the byte order of its checksums."""
_WAL_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Serial type -> length of the integer."""
_CONSTANTS = {8: 0, 9: 1}
_FIRST_BLOB_TYPE = 12
_CACHED_PAGES = 64


class BrokenRecordError(ValueError):
    """Bytes that are not a record of a SQLite page."""


class FoundRecord(NamedTuple):
    """A record of an intact page."""

    rowid: int | None
    """None for an entry of an index, or a row of a table WITHOUT ROWID."""
    values: tuple[Value, ...]
    """The columns as they are stored: text that is not UTF-8 is None."""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """How a file is divided into pages."""

    page_size: int
    """Bytes."""
    reserved_bytes: int
    """Bytes at the end of each page that hold no content; 0 in every usual build of SQLite."""


class DamagedFile:
    """The pages of a database file, with those of its WAL in place of older ones."""

    def __init__(self, file: int, wal: int | None, layout: PageLayout) -> None:
        """Read which pages are in the WAL.

        Args:
            file: Descriptor of the database, open for reading.
            wal: Descriptor of its WAL; None if there is none.
            layout: How the file is divided.
        """
        self._file = file
        self._wal = wal
        self._page_size = layout.page_size
        self._usable = layout.page_size - layout.reserved_bytes
        self._wal_offsets = {} if wal is None else _committed_frames(wal, layout.page_size)
        pages_in_file = -(-os.fstat(file).st_size // layout.page_size)
        self._page_count = max([pages_in_file, *self._wal_offsets])
        self._page = lru_cache(_CACHED_PAGES)(self._read_page)

    def records(self) -> Iterator[FoundRecord]:
        """Yield the records of every page that can be read; never raises for damage."""
        for number in range(1, self._page_count + 1):
            page = self._page(number)
            start = _DATABASE_HEADER_BYTES if number == 1 else 0
            kind = page[start] if len(page) > start else 0
            if kind in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
                yield from self._records_of(page, start, kind)

    def _read_page(self, number: int) -> bytes:
        """Return a page; b"" if the disk does not give it."""
        try:
            if number in self._wal_offsets and self._wal is not None:
                return os.pread(self._wal, self._page_size, self._wal_offsets[number])
            return os.pread(self._file, self._page_size, (number - 1) * self._page_size)
        except OSError:
            return b""

    def _records_of(self, page: bytes, start: int, kind: int) -> Iterator[FoundRecord]:
        header_bytes = 12 if kind == _INDEX_INTERIOR else 8
        first_pointer = start + header_bytes
        cell_count = int.from_bytes(page[start + 3 : start + 5])
        end = min(first_pointer + 2 * cell_count, len(page) - 1)
        for offset in range(first_pointer, end, 2):
            cell = int.from_bytes(page[offset : offset + 2])
            try:
                yield self._parse_cell(page, cell, kind)
            except BrokenRecordError:
                continue

    def _parse_cell(self, page: bytes, offset: int, kind: int) -> FoundRecord:
        if kind == _INDEX_INTERIOR:
            offset += 4  # The number of the child page.
        payload_bytes, offset = _read_varint(page, offset)
        rowid = None
        if kind == _TABLE_LEAF:
            rowid, offset = _read_varint(page, offset)
            rowid = rowid - (1 << 64) if rowid >> 63 else rowid
        payload = self._payload(
            page,
            offset,
            payload_bytes,
            is_table=kind == _TABLE_LEAF,
        )
        return FoundRecord(rowid, parse_record(payload))

    def _payload(self, page: bytes, offset: int, size: int, *, is_table: bool) -> bytes:
        """Return a record's bytes: those on its own page, and those of its overflow pages."""
        if size > self._page_count * self._page_size:
            raise BrokenRecordError
        local = self._local_bytes(size, is_table=is_table)
        payload = page[offset : offset + local]
        if local < size:
            following = int.from_bytes(page[offset + local : offset + local + 4])
            payload += self._overflow(following, size - local)
        if len(payload) != size:
            raise BrokenRecordError
        return payload

    def _overflow(self, number: int, size: int) -> bytes:
        parts: list[bytes] = []
        for _ in range(-(-size // (self._usable - 4))):
            if not 1 <= number <= self._page_count:
                raise BrokenRecordError
            page = self._page(number)
            parts.append(page[4 : self._usable])
            number = int.from_bytes(page[:4])
        return b"".join(parts)[:size]

    def _local_bytes(self, size: int, *, is_table: bool) -> int:
        """Return how many bytes of a payload are on its own page (fileformat2, section 1.6)."""
        usable = self._usable
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if size <= most:
            return size
        least = (usable - 12) * 32 // 255 - 23
        wanted = least + (size - least) % (usable - 4)
        return wanted if wanted <= most else least


def find_damage_before_open(file: Path) -> str:
    """Look for damage at which SQLite would delete or ignore the WAL while it opens a file.

    Args:
        file: A database file, which no process has open for writing. Only read.

    Returns:
        What is damaged; "" if SQLite may open the file.
    """
    header, wal_file = _head_of(file), Path(f"{file}-wal")
    has_wal = bool(_head_of(wal_file))
    if header and not header.startswith(_MAGIC):
        return "its header is overwritten"
    if has_wal and not header:
        return "the file is empty beside its write-ahead log"
    if not has_wal:
        return ""
    descriptor = os.open(wal_file, os.O_RDONLY)
    try:
        return "" if _is_wal_sound(descriptor) else "its write-ahead log is damaged"
    finally:
        os.close(descriptor)


def _head_of(file: Path) -> bytes:
    if not file.is_file():  # To open a named pipe would wait for ever.
        return b""
    try:
        with file.open("rb") as stream:
            return stream.read(_WAL_HEADER_BYTES)
    except OSError:
        return b""


def _is_wal_sound(wal: int) -> bool:
    """Whether SQLite finds every commit of a WAL: it stops at the first frame that is damaged.

    A transaction that a crash interrupted may leave a damaged end, without a commit behind it.
    """
    header = _pread(wal, _WAL_HEADER_BYTES, 0)
    order = _WAL_MAGICS.get(int.from_bytes(header[:4]))
    if order is None or _checksum(header[:24], bytes(8), order) != header[24:]:
        return False
    page_size = int.from_bytes(header[8:12])
    size = _FRAME_HEADER_BYTES + page_size
    has_damage = False
    previous = header[24:]
    wal_size = os.fstat(wal).st_size
    for offset in range(_WAL_HEADER_BYTES, wal_size - size + 1, size):
        frame = _pread(wal, size, offset)
        checked = frame[:8] + frame[24:]
        has_own_salts = frame[8:16] == header[16:24]
        if not has_own_salts or _checksum(checked, previous, order) != frame[16:24]:
            has_damage = True
        elif has_damage and any(frame[4:8]):
            return False
        previous = frame[16:24]
    return True


def layouts_of(file: int, wal: int | None) -> Sequence[PageLayout]:
    """Return the layouts that a file may have, the most likely first; usually just one.

    Args:
        file: Descriptor of the database.
        wal: Descriptor of its WAL; None if there is none.
    """
    header = _pread(file, _DATABASE_HEADER_BYTES, 0)
    is_header = len(header) > 20 and header[21:24] == b"\x40\x20\x20"
    reserved = header[20] if is_header else 0
    stored_sizes: list[int] = []
    if wal is not None:
        wal_field = _pread(wal, 4, 8)
        stored_sizes.append(int.from_bytes(wal_field))
    stored_sizes.append(int.from_bytes(header[16:18]))
    sizes = [_page_size(stored) for stored in stored_sizes]
    layouts = [PageLayout(size, reserved) for size in sizes if _is_page_size(size)]
    layouts.append(PageLayout(DEFAULT_PAGE_SIZE, reserved))
    layouts.append(PageLayout(DEFAULT_PAGE_SIZE, 0))
    return list(dict.fromkeys(layouts))


def _page_size(stored: int) -> int:
    """Return a page size in bytes: 65,536, which needs 17 bits, is stored as 1."""
    return _LARGEST_PAGE_BYTES if stored == 1 else stored


def _is_page_size(size: int) -> bool:
    is_power_of_two = size & (size - 1) == 0
    return is_power_of_two and 512 <= size <= _LARGEST_PAGE_BYTES


def parse_record(payload: bytes) -> tuple[Value, ...]:
    """Decode a record of a SQLite page: a header of column types, then the columns' values.

    Args:
        payload: The whole record, with what stood on its overflow pages.

    Returns:
        One value per column, in order. Text that is not UTF-8 is None.

    Raises:
        BrokenRecordError: The bytes are not such a record.
    """
    header_bytes, offset = _read_varint(payload, 0)
    if not offset <= header_bytes <= len(payload):
        raise BrokenRecordError
    values: list[Value] = []
    content = header_bytes
    while offset < header_bytes:
        serial_type, offset = _read_varint(payload, offset)
        value, content = _read_value(payload, content, serial_type)
        values.append(value)
    return tuple(values)


def _read_value(payload: bytes, start: int, serial_type: int) -> tuple[Value, int]:
    """Return a column's value, and where the next one starts."""
    if serial_type in _CONSTANTS:
        return _CONSTANTS[serial_type], start
    if serial_type == 0:
        return None, start
    if serial_type >= _FIRST_BLOB_TYPE:
        size = (serial_type - _FIRST_BLOB_TYPE) // 2
    else:
        size = 8 if serial_type == 7 else _INTEGER_BYTES.get(serial_type, -1)
    data = payload[start : start + size]
    if size < 0 or len(data) != size:
        raise BrokenRecordError
    return _decode_value(data, serial_type), start + size


def _decode_value(data: bytes, serial_type: int) -> Value:
    if serial_type == 7:
        return float(struct.unpack(">d", data)[0])
    if serial_type < _FIRST_BLOB_TYPE:
        return int.from_bytes(data, signed=True)
    if serial_type % 2 == 0:
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a variable-length integer, and where the next byte is."""
    value = 0
    for index, byte in enumerate(data[offset : offset + 8], start=offset):
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, index + 1
    if offset + 8 >= len(data):
        raise BrokenRecordError
    return value << 8 | data[offset + 8], offset + 9


def _committed_frames(wal: int, page_size: int) -> Mapping[int, int]:
    """Map page numbers to the place of their last committed copy in a WAL."""
    header = _pread(wal, _WAL_HEADER_BYTES, 0)
    order = _WAL_MAGICS.get(int.from_bytes(header[:4]))
    orders = [order] if order else list(_WAL_MAGICS.values())
    return max((_frames_in_order(wal, page_size, each) for each in orders), key=len)


def _frames_in_order(wal: int, page_size: int, order: str) -> Mapping[int, int]:
    """Do the same for one byte order of the checksums.

    A checksum covers the frames before it. Here it is computed from the checksum that is stored in
    the frame before, so a damaged frame costs itself and the next one, not all that follow. The
    salts tell frames of the present WAL from older ones behind them.
    """
    size = _FRAME_HEADER_BYTES + page_size
    wal_size = os.fstat(wal).st_size
    offsets = range(_WAL_HEADER_BYTES, wal_size - size + 1, size)
    salts_of_frames = [_pread(wal, 8, offset + 8) for offset in offsets]
    salts = _present_salts(salts_of_frames)
    previous = _pread(wal, 8, 24)
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    for offset in offsets:
        frame = _pread(wal, size, offset)
        is_whole = len(frame) == size and len(previous) == 8
        is_sound = is_whole and frame[8:16] == salts
        checked = frame[:8] + frame[24:]
        if is_sound and _checksum(checked, previous, order) == frame[16:24]:
            number, size_at_commit = struct.unpack(">II", frame[:8])
            pending[number] = offset + _FRAME_HEADER_BYTES
            if size_at_commit:
                committed |= pending
                pending = {}
        previous = frame[16:24]
    return committed


def _present_salts(salts: Sequence[bytes]) -> bytes:
    """Return the salts that the first two undamaged frames have in common."""
    equal = (one for one, other in pairwise(salts) if one == other and any(one))
    return next(equal, salts[0] if salts else b"")


def _checksum(data: bytes, initial: bytes, order: str) -> bytes:
    first, second = struct.unpack(">II", initial)
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return struct.pack(">II", first, second)


def _pread(descriptor: int, size: int, offset: int) -> bytes:
    """Return bytes of a file; fewer, or none, where the disk does not give them."""
    try:
        return os.pread(descriptor, size, offset)
    except OSError:
        return b""
