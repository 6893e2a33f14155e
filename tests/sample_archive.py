"""An archive as after years of use: many sessions, long and short exchanges, several files."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

from anchord.core.types import Fingerprint, RootedPath
from anchord.sources.conversations.archive.exchange_forms import ExchangeSource
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.events import Exchange, SessionInfo

ROOT = "talks"
WORDS = [f"word{number:04}" for number in range(3000)]


def text(random: Random, most_words: int) -> str:
    return " ".join(random.choices(WORDS, k=random.randrange(3, most_words)))


def write_archive(file: Path, exchanges: int, seed: int = 0) -> dict[RootedPath, bytes]:
    """Write an archive whose last exchanges are in the WAL; return the content of each exchange."""
    random = Random(seed)  # noqa: S311 - a sample
    with closing(ArchiveWriter(file)) as archive:
        for number in range(exchanges // 20):
            _write_session(archive, number, 20, random)
            if number == exchanges // 40:
                archive.truncate_wal()
        # A copy, because the last connection to close removes the WAL.
        kept = {suffix: Path(f"{file}{suffix}").read_bytes() for suffix in ("", "-wal")}
        contents = contents_of(file)
    for suffix, data in kept.items():
        Path(f"{file}{suffix}").write_bytes(data)
    return contents


def _write_session(archive: ArchiveWriter, session: int, exchanges: int, random: Random) -> None:
    origin = RootedPath(ROOT, f"project/{session:04}.jsonl")
    with archive.transaction():
        file_id = archive.upsert_transcript_file(
            origin, Fingerprint(session, session, session, session, 1), "claude-code"
        )
        info = SessionInfo(session=f"session-{session:04}", title=text(random, 9), project="/p")
        session_id = archive.get_or_create_session(ROOT, "claude-code", info)
        archive.save_session_info(file_id, {session_id: info}, is_full_read=True)
        for number in range(exchanges):
            exchange = Exchange(
                id=f"{session:04}-{number:04}",
                session=info.session,
                number=number,
                question=text(random, 40),
                answer=text(random, random.choice([50, 300, 3000])),
                at="2026-01-01T00:00:00Z",
                until="2026-01-01T00:00:09Z",
            )
            source = ExchangeSource(ROOT, "claude-code", file_id)
            archive.upsert_exchange(source, session_id, exchange)
    if session % 3 == 0:  # Its transcript file is gone.
        with archive.transaction():
            archive.remove_transcript_file(origin, 0, None)


def contents_of(file: Path) -> dict[RootedPath, bytes]:
    """Return the content of each exchange in the archive."""
    found = {}
    with closing(Archive(file, read_only=True)) as archive:
        for listed in archive.list_exchanges(ROOT):
            origin = RootedPath(ROOT, listed.path)
            found[origin] = archive.read(origin).data  # type: ignore[union-attr]
    return found


def flip_bytes(data: bytearray, random: Random) -> None:
    for _ in range(random.choice([1, 5, 40])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def zero_pages(data: bytearray, random: Random) -> None:
    for _ in range(random.choice([1, 3, 10])):
        start = random.randrange(len(data) // 4096) * 4096
        data[start : start + 4096] = bytes(4096)


def fill_pages(data: bytearray, random: Random) -> None:
    for _ in range(random.choice([1, 3])):
        start = random.randrange(len(data) // 512) * 512
        data[start : start + 4096] = random.randbytes(len(data[start : start + 4096]))


def truncate(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data)) :]


def damage_header(data: bytearray, random: Random) -> None:
    data[random.randrange(100)] = random.randrange(256)


def zero_schema(data: bytearray, _: Random) -> None:
    data[:4096] = bytes(4096)


def swap_pages(data: bytearray, random: Random) -> None:
    one, other = (random.randrange(len(data) // 4096) * 4096 for _ in range(2))
    data[one : one + 4096], data[other : other + 4096] = (
        data[other : other + 4096],
        data[one : one + 4096],
    )


DAMAGES: tuple[Callable[[bytearray, Random], None], ...] = (
    flip_bytes,
    zero_pages,
    fill_pages,
    truncate,
    damage_header,
    zero_schema,
    swap_pages,
)


def is_whole(content: bytes) -> bool:
    """Whether a compressed text can be read."""
    try:
        return bool(zlib.decompress(content))
    except zlib.error:
        return False
