"""H2, H3, H6, H7 of FAULTS.md: archives with false headers, bombs, nesting, long lines, links, names."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from conversations.conftest import Talks, claude
from conversations.test_carriers import MANY, TURNS, export, zipped

from anchord.core.types import Document
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import (
    add_session_info,
    decode_exchange,
    encode_exchange,
)

BOMB = export(*MANY[:2])[:-1] + b" " * 60_000_000 + b"]"
"""It begins as an export does, so that only its content decides."""
_LOCAL, _CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


def lying(data: bytes, *, packed: int | None = None, size: int | None = None) -> bytes:
    """Change the sizes in both headers of a zip with one member."""
    made = bytearray(data)
    for mark, at in ((_LOCAL, 18), (_CENTRAL, 20)):
        start = data.index(mark) + at
        for offset, value in ((start, packed), (start + 4, size)):
            if value is not None:
                made[offset : offset + 4] = struct.pack("<I", value)
    return bytes(made)


def refused(talks: Talks, name: str, data: bytes) -> str:
    """Write a hostile file and a good one, sync, and return its problem; nothing of it may be indexed."""
    talks.write(name, data)
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert {row.session for row in talks.rows()} == {"s1"}
    assert list(talks.problems()) == [name]
    assert talks.is_right()
    return talks.problems()[name]


def test_h2_a_member_that_is_longer_than_its_header_says_is_refused(talks: Talks) -> None:
    whole = zipped(**{"conversations.json": export(*MANY)})
    refused(talks, "lying.zip", lying(whole, size=2_000))


def test_h2_what_swells_beyond_all_measure_is_refused_for_that(talks: Talks) -> None:
    assert "TooLargeError" in refused(talks, "bomb.zip", zipped(**{"conversations.json": BOMB}))


def test_h2_a_bomb_whose_header_says_that_it_is_small_is_refused(talks: Talks) -> None:
    assert "BrokenError" in refused(
        talks, "bomb.zip", lying(zipped(**{"conversations.json": BOMB}), size=2_000)
    )


def test_h2_a_bomb_whose_header_says_that_it_came_out_of_much_is_refused(talks: Talks) -> None:
    refused(talks, "bomb.zip", lying(zipped(**{"conversations.json": BOMB}), packed=50_000_000))


def test_h2_an_archive_whose_headers_say_that_it_is_huge_is_refused(
    talks: Talks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.sources.conversations.containers.MAX_TOTAL_BYTES", 1 << 31)
    data = lying(zipped(**{"conversations.json": export(*MANY)}), size=(1 << 32) - 2)
    assert "TooLargeError" in refused(talks, "huge.zip", data)


def test_h2_an_archive_in_an_archive_is_not_opened(talks: Talks) -> None:
    inner = zipped(**{"conversations.json": export(*MANY)})
    refused(talks, "nested.zip", zipped(**{"conversations.json": inner, "export.zip": inner}))


def test_h2_a_hundred_archives_in_each_other_are_one(talks: Talks) -> None:
    data = export(*MANY)
    for _ in range(100):
        data = zipped(**{"conversations.json": data})
    refused(talks, "nested.zip", data)


def test_h2_a_compressed_session_that_swells_is_refused(talks: Talks) -> None:
    swollen = claude(*TURNS[:2], session="s9") + b" " * 60_000_000 + b"\n"
    assert "TooLargeError" in refused(talks, "s9.jsonl.zst", zstandard.compress(swollen))


def test_h2_names_that_windows_would_take_out_of_the_archive_are_passed_over(talks: Talks) -> None:
    names = (
        "..\\conversations.json",
        "C:\\conversations.json",
        "a/../../conversations.json",
        "\\conversations.json",
    )
    for number, name in enumerate(names):
        refused(talks, f"outside{number}.zip", zipped(**{name: export(*MANY)}))
        (talks.folder / f"outside{number}.zip").unlink()
        talks.sync()
        assert talks.problems() == {}


def test_h2_an_encrypted_member_is_passed_over(talks: Talks) -> None:
    data = bytearray(zipped(**{"conversations.json": export(*MANY)}))
    for mark, at in ((_LOCAL, 6), (_CENTRAL, 8)):
        data[data.index(mark) + at] |= 1
    refused(talks, "locked.zip", bytes(data))


def test_h3_an_export_that_ends_in_the_middle_gives_what_came_before_and_is_named(
    talks: Talks,
) -> None:
    whole = export(*MANY)
    talks.write("torn.json", whole[: whole.index(b'"uuid": "c7"') + 200])
    talks.sync()
    assert {row.session for row in talks.rows()} == {f"c{n}" for n in range(7)}
    assert "broken JSON" in talks.problems()["torn.json"]


def test_h6_a_session_that_is_a_link_out_of_the_root_is_not_read(talks: Talks) -> None:
    outside = talks.base / "outside"
    outside.mkdir()
    whole = zipped(**{"conversations.json": export(*MANY)})
    for name, data in (
        ("s1.jsonl", claude(*TURNS[:2])),
        ("export.zip", whole),
        ("note.md", b"# Note\n\nWords.\n"),
    ):
        (outside / name).write_bytes(data)
        (talks.folder / name).symlink_to(outside / name)
    (talks.folder / "folder").symlink_to(outside)
    talks.sync()
    assert talks.rows() == []
    assert talks.archive.counts_by_root() == {}


@pytest.mark.parametrize(
    "kind", ["the swordfish clause", "AKIAZ7QRDVNN7HOLMWTB"], ids=["prose", "a key"]
)
def test_h7_what_a_record_of_an_unknown_kind_calls_itself_is_not_reported(
    talks: Talks, kind: str
) -> None:
    assert kind not in unknown(talks, kind)


def test_h7_of_many_and_long_kinds_little_is_reported(talks: Talks) -> None:
    assert len(unknown(talks, *(f"{n}{'x' * 50_000}" for n in range(50)))) < 1_000


def unknown(talks: Talks, *kinds: str) -> str:
    """Write a session with records of unknown kinds; return its problem."""
    records = [{"type": kind, "uuid": f"odd{n}", "sessionId": "s1"} for n, kind in enumerate(kinds)]
    talks.write(
        "s1.jsonl",
        claude(*TURNS[:2]) + b"".join(json.dumps(record).encode() + b"\n" for record in records),
    )
    talks.sync()
    said = talks.problems()["s1.jsonl"]
    assert said.startswith(f"skipped {len(kinds)} record")
    return said


def test_f1_what_is_wrong_with_a_file_is_reported_also_after_a_kill_between_the_archive_and_the_index(
    talks: Talks,
) -> None:
    lines = claude(*TURNS[:2]).splitlines(keepends=True)
    talks.write("s1.jsonl", b"".join([*lines[:2], b"{broken\n", *lines[2:]]))
    talks.take_in("s1.jsonl")  # And then it is killed.
    talks.close()
    talks.open()
    talks.ahead_ns = 10_000_000_000
    talks.sync()
    assert "broken line (1)" in talks.problems().get("s1.jsonl", "")


# Gigabytes

_MEASURED = """
import resource, sys
from anchord.cli import main
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
sys.argv = ["anchord", "index"]
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""
"""A memory limit in bytes, to protect the machine from a failing test."""
_CEILING = 2_000_000_000
"""`[store] max_memory_mb`: a daemon above it restarts."""
_SESSION = claude(*TURNS[:1]) + b'{"type": "user", "uuid": "q9", "message": {"content": "'
_EXPORT = b'[{"uuid": "c", "chat_messages": [{"sender": "human", "text": "'
_TRANSCRIPT = b"User: What of it?\n\nAssistant: This.\n\n" * 20


def peak_of_indexing(base: Path, name: str, head: bytes, tail: bytes, size: int) -> int:
    """Index a file of that size, zeros between its ends; return the peak memory in bytes."""
    home, talks = base / "home", base / "talks"
    home.mkdir(mode=0o700)
    talks.mkdir()
    (home / "config.toml").write_text(
        f'embedding.provider = "hash"\n[[root]]\npath = "{talks}"\nkind = "conversations"\n'
    )
    (talks / "s1.jsonl").write_bytes(claude(*TURNS[:2]))
    with (talks / name).open("wb") as made:
        made.write(head)
        made.truncate(size - len(tail))
        made.seek(0, io.SEEK_END)
        made.write(tail)
    ran = subprocess.run(
        [sys.executable, "-c", _MEASURED], env=os.environ | {"ANCHORD_HOME": str(home)}, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[:300]
    return int(ran.stderr.split()[-1]) * 1024


@pytest.mark.slow
@pytest.mark.timeout(1_000)
def test_h3_a_line_of_two_gigabytes_in_a_session_costs_a_few_times_what_is_read_of_one(
    tmp_path: Path,
) -> None:
    assert peak_of_indexing(tmp_path, "s2.jsonl", _SESSION, b'"}}\n', 2 << 30) < 1_000_000_000


@pytest.mark.slow
@pytest.mark.timeout(1_000)
def test_h3_an_export_of_one_value_of_two_gigabytes_stays_under_the_daemons_ceiling(
    tmp_path: Path,
) -> None:
    assert peak_of_indexing(tmp_path, "export.json", _EXPORT, b'"}]}]', 2 << 30) < _CEILING


@pytest.mark.slow
@pytest.mark.timeout(1_000)
def test_h3_a_transcript_of_a_quarter_of_a_gigabyte_stays_under_the_daemons_ceiling(
    tmp_path: Path,
) -> None:
    assert peak_of_indexing(tmp_path, "talk.txt", _TRANSCRIPT, b"\n", 1 << 28) < _CEILING


def test_h3_a_transcript_that_is_too_long_is_named_and_the_others_are_read(
    talks: Talks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "anchord.sources.conversations.formats.text_lines.MAX_TRANSCRIPT_BYTES", 1 << 20
    )
    talks.write("talk.txt", _TRANSCRIPT * 2_000)
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert talks.problems() == {"talk.txt": "the transcript is larger than 1 MB: not indexed"}
    assert len({row.exchange_id for row in talks.rows()}) == 2


def test_a_line_end_in_the_name_of_a_tool_or_a_file_makes_no_second_one() -> None:
    exchange = Exchange(
        session="s", id="1", number=0, question="q", answer="a",
        tools=("[Read\n[Bash] rm] a.txt", "[Read] b.txt"), files=("c\nd.py",),
    )  # fmt: skip
    stored = add_session_info(encode_exchange(exchange), "claude-code", "s", "", "")
    document = decode_exchange(stored)
    assert isinstance(document, Document)
    assert document.exchange_metadata
    metadata = document.exchange_metadata
    assert metadata.tools.split("\n") == ["[Read\\u{a}[Bash] rm] a.txt", "[Read] b.txt"]
    assert metadata.files == "c\\u{a}d.py"
