"""What conversations cost: the first reading of a session, an appended exchange, and a new export of many.

    python tests/tools/benchmarks/bench_conversations.py [--megabytes N] [--exports N] [--samples FOLDER]

Everything is done by the real archive, catalogue, table and indexer in this process, with the embedder that needs no model.

session     a session of Claude Code of some MB, most of it results of tools, as real ones are: CPU of its first taking in and
            indexing, the largest memory of the process, and CPU of taking in and indexing one appended exchange (half of 20)
export      an export of N conversations, and a second export in which one of them has changed
peer        with --peer, a Python that has mempalace (`pip install mempalace` in an environment of its own): texts that each
            embeds of a session, and after one more exchange was appended to it; and how much of the prose is in no stored text
samples     with --samples: every file below a folder: exchanges, characters, records that were not understood, CPU
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(1, str(Path(__file__).resolve().parents[2]))

from conversations.conftest import ROOT, Talks, answer, claude
from figures import table

from anchord.core.types import RootedPath
from anchord.sources.conversations.containers import is_zip, make_transcript_file
from anchord.sources.conversations.events import Exchange, UnknownRecord
from anchord.sources.conversations.exchanges import build_exchanges
from anchord.sources.conversations.formats import claude_code
from anchord.sources.conversations.formats.registry import HEAD_BYTES, detect_format, read_events

_APPENDS = 20
_NOISE_BYTES = 60_000
_LEAST_PIECE = 8


def main() -> int:
    """Run the chosen parts; print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", default="4,500", help="sizes of sessions, with commas")
    parser.add_argument("--exports", type=int, default=10_000, help="conversations of an export")
    parser.add_argument("--peer", default="", metavar="PYTHON", help="a Python that has mempalace")
    parser.add_argument(
        "--session",
        default="",
        help="for --peer: a real session of Claude Code instead of an invented one",
    )
    parser.add_argument("--samples", default="", help="a folder of real files")
    given = parser.parse_args()
    rows = [_session(int(size)) for size in given.megabytes.split(",")]
    print(
        table(
            (
                "session",
                "exchanges",
                "first, CPU s",
                "appended, CPU ms",
                "of it taken in, ms",
                "memory MB",
            ),
            rows,
        )
    )
    if given.exports:
        print(
            table(
                ("export", "MB", "CPU s", "exchanges touched", "texts embedded"),
                _export(given.exports),
            )
        )
    if given.peer:
        of_peers = (
            "of one session",
            "texts embedded",
            "after one more exchange",
            "characters of prose",
            "lost",
        )
        print(table(of_peers, _peers(given.peer, given.session)))
    if given.samples:
        head = (
            "sample",
            "format",
            "exchanges",
            "asked, characters",
            "answered",
            "left out",
            "not understood",
            "CPU s",
        )
        print(table(head, list(_samples(Path(given.samples)))))
    return 0


def _session(megabytes: int) -> tuple[str, ...]:
    with _talks() as talks:
        file = talks.folder / "s1.jsonl"
        count = _write_session(file, megabytes << 20)
        first = _cpu(talks)
        taken, whole = [], []
        for n in range(_APPENDS):
            with file.open("ab") as appending:
                appending.write(claude((f"And what of {n}?", answer(f"late{n}")), start=count + n))
            began = time.process_time()
            changed = talks.conversations.ingest(RootedPath(ROOT, "s1.jsonl")).changed_exchanges
            taken.append(time.process_time() - began)
            assert len(changed) == 1, changed
            list(talks.indexer.index([RootedPath(ROOT, "s1.jsonl")]))
            whole.append(time.process_time() - began)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        costs = (f"{statistics.median(each) * 1000:.1f}" for each in (whole, taken))
        return (f"{megabytes} MB", f"{count:,}", f"{first:.2f}", *costs, f"{peak:.0f}")


def _write_session(file: Path, size: int) -> int:
    """Write a session in which a question and its answer are among results of tools; return how many exchanges it has."""
    noise = json.dumps({"type": "user", "uuid": "NUMBER", "sessionId": "s1", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "x" * _NOISE_BYTES}]}}).encode() + b"\n"  # fmt: skip
    count = written = 0
    with file.open("wb") as stream:
        while written < size:
            written += stream.write(
                claude(
                    (f"How does part {count} work?", answer(f"part{count}", 1 + count % 4)),
                    start=count,
                )
            )
            for n in range(3):
                written += stream.write(noise.replace(b"NUMBER", f"t{count}-{n}".encode()))
            count += 1
    return count


def _export(count: int) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    with _talks() as talks:
        for name, late in (("first", ""), ("second", " And one more word.")):
            file = talks.folder / f"{name}.json"
            _write_export(file, count, late)
            began, before = time.process_time(), set(talks.store.all_row_hashes())
            done = talks.sync()
            touched = [outcome for outcome in done if outcome.origin.path.startswith("/")]
            cpu, embedded = time.process_time() - began, sum(outcome.embedded for outcome in done)
            assert len(set(talks.store.all_row_hashes()) - before) >= 1
            figures = (
                f"{file.stat().st_size / 1e6:.0f}",
                f"{cpu:.1f}",
                f"{len(touched):,}",
                f"{embedded:,}",
            )
            rows.append((f"{name}, {count:,} conversations", *figures))
    return rows


def _write_export(file: Path, count: int, late: str) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.write("[")
        for n in range(count):
            said = answer(f"talk{n}", 1 + n % 3) + (late if n == count // 2 else "")
            minute = 1 if late and n == count // 2 else 0
            messages = [
                {
                    "uuid": f"{n}-q",
                    "sender": "human",
                    "text": f"What of number {n}?",
                    "created_at": "2026-01-02T10:00:00Z",
                },
                {
                    "uuid": f"{n}-a",
                    "sender": "assistant",
                    "text": said,
                    "created_at": f"2026-01-02T10:0{minute}:30Z",
                },
            ]
            conversation = {"uuid": f"c{n}", "name": f"Talk {n}", "chat_messages": messages}
            stream.write(("," if n else "") + json.dumps(conversation))
        stream.write("]")


def _peers(python: str, session: str) -> Iterator[tuple[str, ...]]:
    """Index a session with both programs, then append its last exchange."""
    data = (
        Path(session).read_bytes()
        if session
        else claude(*((f"How does {n} go?", answer(f"it{n}", 1 + n % 5)) for n in range(30)))
    )
    with tempfile.TemporaryDirectory(prefix="anchord-bench-") as base:
        whole = Path(base) / "whole.jsonl"
        whole.write_bytes(data)
        carrier = make_transcript_file("s1.jsonl", lambda: whole.open("rb"), str(whole))
        made = [
            each
            for each in build_exchanges(claude_code.read_events(carrier))
            if isinstance(each, Exchange)
        ]
        said = [part for each in made for part in (each.question, each.answer)]
        early, late = data[: made[-1].offset], data[made[-1].offset :]
        (Path(base) / "late").write_bytes(late)
        (Path(base) / "theirs").mkdir()
        file = Path(base) / "theirs" / "s1.jsonl"
        file.write_bytes(early)
        command = [
            python,
            str(Path(__file__).with_name("peer_mempalace.py")),
            str(file.parent),
            f"{base}/late",
            str(file),
        ]
        mined = json.loads(
            subprocess.run(
                command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ).stdout
        )
        yield (
            "MemPalace",
            f"{mined['first']:,}",
            f"{mined['appended']:,}",
            *_lost(said, mined["documents"]),
        )
    with _talks() as talks:
        mine = talks.write("s1.jsonl", early)
        first = talks.cost()[0]
        with mine.open("ab") as appending:
            appending.write(late)
        appended = talks.cost()[0]
        yield (
            "anchord",
            f"{first:,}",
            f"{appended:,}",
            *_lost(said, [row.text for row in talks.rows()]),
        )


def _lost(said: Sequence[str], documents: Sequence[str]) -> tuple[str, str]:
    """Return the characters of prose, and how many of them are in no document, blanks aside; a line may be cut into pieces."""
    kept = " ".join(" ".join(documents).split())
    lines = [" ".join(line.split()) for part in said for line in part.split("\n") if line.strip()]
    return f"{sum(map(len, lines)):,}", f"{sum(_uncovered(line, kept) for line in lines):,}"


def _uncovered(line: str, kept: str) -> int:
    """Count the characters of a line that no piece of it covers: a piece is its rest, or 8 characters and more."""
    lost = at = 0
    while at < len(line):
        sizes = range(1, len(line) - at + 1)
        longest = bisect_left(sizes, True, key=lambda size, at=at: line[at : at + size] not in kept)  # type: ignore[misc]
        if longest >= _LEAST_PIECE or longest == len(sizes):
            at += max(longest, 1)
        else:
            lost, at = lost + 1, at + 1
    return lost


def _samples(folder: Path) -> Iterator[tuple[str, ...]]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        name = str(path.relative_to(folder))
        carrier = make_transcript_file(name, lambda path=path: path.open("rb"), str(path))  # type: ignore[misc]
        with carrier.open() as stream:
            head = stream.read(HEAD_BYTES)
        family = detect_format(head, carrier.path)
        if family is None:
            by_names = "an archive" if is_zip(head) else "none that is read"
            yield (name, by_names, *[""] * 6)
            continue
        began, made, unknown = time.process_time(), list[Exchange](), 0
        for each in build_exchanges(read_events(family, carrier)):
            if isinstance(each, Exchange):
                made.append(each)
            elif isinstance(each, UnknownRecord):
                unknown += 1
        cpu = time.process_time() - began
        said = (sum(len(each.question) for each in made), sum(len(each.answer) for each in made))
        left = sum(each.superseded for each in made)
        yield (
            name,
            family.source,
            f"{len(made):,}",
            f"{said[0]:,}",
            f"{said[1]:,}",
            f"{left}",
            f"{unknown}",
            f"{cpu:.3f}",
        )


@contextmanager
def _talks() -> Iterator[Talks]:
    """Give an index in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="anchord-bench-") as base:
        talks = Talks(Path(base))
        yield talks
        talks.close()


def _cpu(talks: Talks) -> float:
    began = time.process_time()
    talks.sync()
    return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
