"""In whichever order files are read, how often, and at whichever of their states: one archive.

The time of a file says which of two copies is the later one, so here it rises with the content.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import NoReturn

import pytest
from conversations.conftest import Talks, claude
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.types import Root, RootedPath
from anchord.search.answers import handle_dump
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.ingest import ConversationIngester, IngestOptions
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles

ROOT = "talks"
START = 1_700_000_000
SAMPLES = next(
    (
        folder / "shared" / "samples"
        for folder in Path(__file__).resolve().parents
        if (folder / "shared" / "samples").is_dir()
    ),
    None,
)
needs_samples = pytest.mark.skipif(
    SAMPLES is None, reason="the samples are beside the repository only where it is developed"
)
_DUMP_SQL = {
    "exchanges": """
        SELECT coalesce(d.reason, ''), e.path, s.name, e.name, e.number, e.superseded, e.until,
            e.digest, e.redacted, e.content, e.carrier IS NULL, coalesce(c.path, e.last_path)
        FROM exchanges e JOIN sessions s ON s.id=e.session LEFT JOIN carriers c ON c.id=e.carrier
        LEFT JOIN detached d ON d.key=e.root""",
    "tellings": """
        SELECT c.path, e.path, t.digest, t.until FROM tellings t
        JOIN carriers c ON c.id=t.carrier JOIN exchanges e ON e.id=t.exchange""",
    "sessions": "SELECT source, name, title, project, parent FROM sessions",
    "heads": """
        SELECT c.path, s.name, h.updated, h.title, h.project, h.parent FROM heads h
        JOIN carriers c ON c.id=h.carrier JOIN sessions s ON s.id=h.session""",
    "carriers": "SELECT path, source, size, mtime_ns, reader, mark, unknown FROM carriers",
    "deleted": "SELECT root, path FROM deleted",
}


@dataclass(frozen=True, slots=True)
class State:
    """What a file contains from a time on."""

    path: str
    data: bytes
    mtime: int
    """Seconds since the epoch."""


@dataclass
class ReadFolder:
    """A folder, and the archive of what was read in it."""

    base: Path
    archive: ArchiveWriter = field(init=False)

    def __post_init__(self) -> None:
        """Make both."""
        self.folder = self.base / ROOT
        self.folder.mkdir(parents=True)
        self.archive = ArchiveWriter(self.base / "conversations.sqlite")
        # What a loss of power costs is no question here.
        self.archive._db.execute("PRAGMA synchronous=OFF")
        roots = {ROOT: Root(name=ROOT, path=str(self.folder), kind="conversations")}
        self.archive.attach_root(ROOT, str(self.folder))
        files = FolderFiles(roots, (), MAX_FILE_BYTES)
        now_ns = (START + 10**8) * 10**9
        self._ingester = ConversationIngester(
            files, self.archive, lambda: now_ns, roots, IngestOptions()
        )

    def read(self, state: State) -> None:
        """Write a file, and read it with all files that must be read again because of it."""
        file = self.folder / state.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(state.data)
        os.utime(file, (state.mtime, state.mtime))
        due = [RootedPath(ROOT, state.path)]
        for _ in range(100):
            if not due:
                return
            due += self._ingester.ingest(due.pop(0)).files_to_reread
        raise AssertionError("files are read again and again")

    def dump(self) -> bytes:
        """Return all that the archive has, without ids and versions."""
        return dump(self.archive)


def dump(archive: Archive) -> bytes:
    """Return all that an archive has, without ids and versions, as JSON lines."""
    lines = []
    for table, sql in _DUMP_SQL.items():
        rows = [[_plain(value) for value in row] for row in archive._db.execute(sql)]
        lines += sorted(json.dumps([table, *row]) for row in rows)
    return "\n".join(lines).encode()


def _plain(value: object) -> object:
    if not isinstance(value, bytes):
        return value
    try:
        return zlib.decompress(value).decode()
    except zlib.error:
        return os.fsdecode(value)


def dump_after(base: Path, states: Sequence[State]) -> bytes:
    """Return what an archive has after some states of files were read in this order."""
    folder = ReadFolder(base)
    for state in states:
        folder.read(state)
    found = folder.dump()
    folder.archive.close()
    return found


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - an order of files


# Real files


def lines_of(sample: str, most: int) -> list[bytes]:
    """Return the first lines of a sample."""
    assert SAMPLES
    return (SAMPLES / sample).read_bytes().splitlines(keepends=True)[:most]


def growing(path: str, sample: str, *cuts: int, at: int) -> list[State]:
    """Return a session after so many lines, modified at these lines' seconds from `at` on."""
    lines = lines_of(sample, max(cuts))
    return [State(path, b"".join(lines[:cut]), START + at + cut) for cut in cuts]


def exports() -> list[State]:
    """Return three exports: one conversation on three days, each with more of it, and a new name."""
    assert SAMPLES
    sample = SAMPLES / "claude_ai_export" / "polylogue" / "schema-representative-00.json"
    conversation = json.loads(sample.read_bytes())
    messages = conversation["chat_messages"]
    return [
        State(
            f"{name}.json",
            json.dumps(
                [{
                    **conversation, "name": f"Named in {name}", "chat_messages": messages[:day],
                    "updated_at": f"2024-08-0{day}T00:00:00Z",
                }]
            ).encode(),
            START + day,
        )
        for day, name in enumerate(("march", "january", "february"), 1)
    ]  # fmt: skip


GROWN = "claude_code/grow_1284c080/t2.jsonl"
VIEWED = "claude_code/viewer/fe5e1c67-53e7-4862-81ae-d0e013e3270b.jsonl"


def sessions() -> list[list[State]]:
    """Return four growing sessions: the second is a copy of the first that was left behind."""
    return [
        growing("p/1284c080.jsonl", GROWN, 20, 45, 60, at=0),
        growing("copy/1284c080.jsonl", GROWN, 11, 30, at=0),
        growing("p/fe5e1c67.jsonl", VIEWED, 9, 14, 40, at=500),
        growing("codex.jsonl", "codex_cli/modern/synth_modern.jsonl", 4, 7, 12, at=900),
    ]


def mixed(order: Random, sequences: Iterable[Sequence[State]]) -> Iterator[State]:
    """Yield the states of files in any order of the files; some twice."""
    left = [list(states) for states in sequences]
    while left := [states for states in left if states]:
        state = order.choice(left).pop(0)
        yield from [state] * order.choice([1, 1, 1, 2])


def visible(dumped: bytes) -> list[str]:
    """Return all lines of a dump without which of several equal copies an exchange is read from.

    A session that grows is not read again from its beginning: its copy may still be named.
    """
    lines = (json.loads(line) for line in dumped.decode().split("\n"))
    return [json.dumps(line[:-1] if line[0] == "exchanges" else line) for line in lines]


def check_orders(base: Path, orders: Iterable[Sequence[State]]) -> None:
    """Check that all orders end in one archive, byte for byte."""
    found: dict[bytes, list[str]] = {}
    for number, order in enumerate(orders):
        folder = base / str(number)
        dumped = "\n".join(visible(dump_after(folder, order))).encode()
        shutil.rmtree(folder)
        found.setdefault(dumped, [f"{state.path} {len(state.data)}" for state in order])
    assert len(found) == 1, list(found.values())


@needs_samples
@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_every_order_of_exports_and_growing_sessions_ends_in_one_archive(
    tmp_path: Path, count: int
) -> None:
    sequences = [*([export] for export in exports()), *sessions()]
    seeds = (seeded(seed) for seed in range(count))
    check_orders(tmp_path, (list(mixed(seed, sequences)) for seed in seeds))


@needs_samples
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_orders_of_seven_files_end_in_one_archive(tmp_path: Path) -> None:
    sequences = [*([export] for export in exports()), *sessions()]
    orders = itertools.permutations(sequences)
    check_orders(tmp_path, (list(itertools.chain(*order)) for order in orders))


@needs_samples
def test_of_files_that_are_whole_the_same_copy_is_named_in_any_order(tmp_path: Path) -> None:
    states = [*exports(), *(session[-1] for session in sessions())]
    found = set()
    for seed in range(20):
        order = seeded(seed).sample(states, len(states))
        found.add(dump_after(tmp_path / str(seed), order))
    assert len(found) == 1


class NoPlans:
    """Chunking plans that know no kind of document."""

    def plan_for(self, root: str, kind: str) -> NoReturn:
        """Raise as for a damaged row."""
        raise KeyError(root, kind)


@needs_samples
def test_the_index_of_any_order_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    sequences = [*([export] for export in exports()), *sessions()]
    found = set()
    for seed in range(3):
        base = tmp_path / str(seed)
        base.mkdir()
        talks = Talks(base)
        for state in mixed(seeded(seed), sequences):
            os.utime(talks.write(state.path, state.data), (state.mtime, state.mtime))
            talks.sync()
        reader = SimpleNamespace(
            store=talks.store,
            roots=(),
            paths=SimpleNamespace(archive_file=base / "conversations.sqlite"),
            profile=SimpleNamespace(recipe=SimpleNamespace(plans=NoPlans())),
        )
        found.add("\n".join(map(repr, handle_dump(reader, talks.catalogue))))  # type: ignore[arg-type]
        talks.close()
    assert len(found) == 1


# Sessions that share exchanges


def session_of(record: Random, name: str) -> list[bytes]:
    """Return the records of a session whose user went back to an earlier place now and then."""
    lines = []
    places: list[str | None] = [None]
    for turn in range(record.randrange(2, 7)):
        parent = record.choice(places) if record.random() < 0.25 else places[-1]
        question = f"q{turn}-{name}"
        lines.append(line_of(name, question, parent, turn, f"Question {turn}?"))
        places.append(question)
        for part in range(record.randrange(3)):
            uuid = f"a{turn}.{part}-{name}"
            lines.append(line_of(name, uuid, places[-1], turn, f"Answer {turn}, {part}."))
            places.append(uuid)
    return lines


def line_of(session: str, uuid: str, parent: str | None, turn: int, text: str) -> bytes:
    """Return a record of a Claude Code session: a question if its id begins so, or an answer."""
    part = int(uuid[3]) + 1 if uuid.startswith("a") else 0
    record = {
        "sessionId": session, "cwd": "/home/me/app", "isSidechain": False, "uuid": uuid,
        "parentUuid": parent, "timestamp": f"2026-01-02T10:{turn:02}:{part:02}Z",
    }  # fmt: skip
    message: dict[str, object] = {"role": "user", "content": text}
    if part:
        blocks = [{"type": "text", "text": text}]
        message = {"id": f"m{uuid}", "model": "opus", "content": blocks}
    record |= {"type": "assistant" if part else "user", "message": message}
    return json.dumps(record).encode() + b"\n"


def files_that_share(record: Random) -> list[list[State]]:
    """Return states of sessions, of copies that were left behind, and of forks that went on."""
    sequences = []
    for name in ("s2", "s1"):
        lines = session_of(record, name)
        cuts = [record.randrange(1, len(lines) + 1) for _ in range(3)]
        path = f"p/{name}.jsonl"
        ends = [*cuts, len(lines)]
        sequences.append([State(path, b"".join(lines[:end]), START + 10 * end) for end in ends])
        end = record.randrange(1, len(lines) + 1)
        at = START + 10 * end + 2
        copy = State(f"{record.choice('az')}/{name}.jsonl", b"".join(lines[:end]), at)
        other = record.choice(["s0", "s3"]) + name
        end = record.randrange(1, len(lines) + 1)
        last = json.loads(lines[end - 1])["uuid"]
        shared = [line.replace(f'"{name}"'.encode(), f'"{other}"'.encode()) for line in lines[:end]]
        added = line_of(other, f"q9-{other}", last, 9, "And now?")
        forks = [shared, [*shared, added]]
        at = START + 10 * end + 5
        fork = [State(f"p/{other}.jsonl", b"".join(f), at + n) for n, f in enumerate(forks)]
        sequences += [[copy], fork]
    return sequences


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_any_states_of_sessions_that_share_exchanges_end_in_one_archive(seed: int) -> None:
    found = set()
    for number in range(3):
        sequences = files_that_share(seeded(seed))
        order = seeded(seed + number)
        for states in sequences:
            # All states but the last come in any order, as of a file that is cut and restored.
            states[:-1] = order.sample(states[:-1], len(states) - 1)
        with tempfile.TemporaryDirectory() as base:
            dumped = dump_after(Path(base) / "order", list(mixed(order, sequences)))
        found.add(tuple(visible(dumped)))
    assert len(found) == 1


# What the laws found


def read(base: Path, *states: State) -> ReadFolder:
    folder = ReadFolder(base)
    for state in states:
        folder.read(state)
    return folder


def test_a_tool_call_with_an_earlier_time_is_added_to_its_answer(tmp_path: Path) -> None:
    cut = line_of("s1", "q0-s1", None, 5, "How?") + line_of("s1", "a0.0-s1", "q0-s1", 5, "So.")
    call = json.loads(line_of("s1", "a0.1-s1", "a0.0-s1", 4, ""))
    call["message"]["content"] = [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]
    whole = cut + json.dumps(call).encode() + b"\n"
    states = [State("s1.jsonl", cut, START), State("s1.jsonl", whole, START + 1)]
    grown = dump_after(tmp_path / "grown", states)
    assert grown == dump_after(tmp_path / "whole", states[1:])
    assert b"[Bash] ls" in grown


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_question_is_left_where_its_session_went_on_last_though_a_fork_has_it(
    tmp_path: Path, order: list[int]
) -> None:
    first = claude(("First?", "So."), ("Second?", "Then."), session="s2")
    fork = State("s1.jsonl", first.replace(b'"sessionId": "s2"', b'"sessionId": "s1"'), START)
    back = line_of("s2", "q2-s2", "a0-s2", 30, "Other second?")
    rewound = State("s2.jsonl", first + back, START + 1)
    folder = read(tmp_path / "order", *([fork, rewound][number] for number in order))
    paths = [each.path for each in folder.archive.list_exchanges(ROOT)]
    assert paths == ["/claude-code/q0-s2", "/claude-code/q2-s2"]


def test_an_exchange_that_its_file_lost_is_read_from_the_copy_that_has_it(tmp_path: Path) -> None:
    whole, cut = claude(("How?", "So it is.")), claude(("How?", "So"))
    folder = read(
        tmp_path / "order", State("a/s1.jsonl", whole, START), State("s1.jsonl", whole, START + 1),
        State("s1.jsonl", cut, START + 2),
    )  # fmt: skip
    assert folder.archive.counts_by_root()[ROOT]["source_missing"] == 0


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_two_equal_copies_of_one_time_the_same_is_named(tmp_path: Path, order: str) -> None:
    data = claude(("How?", "So."))
    folder = read(tmp_path / "order", *(State(f"{name}.jsonl", data, START) for name in order))
    place = RootedPath(ROOT, "/claude-code/q0-s1")
    assert folder.archive.exchange_places([place])[place].transcript == "b.jsonl"


def test_a_damaged_text_is_stored_again_when_its_file_is_read(tmp_path: Path) -> None:
    state = State("s1.jsonl", claude(("How?", "So.")), START)
    folder = read(tmp_path / "order", state)
    before = folder.dump()
    folder.archive._db.execute("UPDATE exchanges SET content=x'00'")
    folder.archive.schedule_full_reads([RootedPath(ROOT, "s1.jsonl")])
    folder.read(state)
    assert folder.dump() == before
