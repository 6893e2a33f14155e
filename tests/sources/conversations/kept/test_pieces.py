"""Transcripts are cut where their content says."""

from __future__ import annotations

import io
import json
from random import Random

from anchord.sources.conversations.kept.pieces import (
    MOST_BYTES,
    contains,
    has_hole,
    read_pieces,
)
from anchord.sources.conversations.kept.versions import (
    MAX_COMPARED_BYTES,
    KeptVersion,
    best_version,
    places_to_compare,
)


def transcript(bytes_: int, seed: int = 0) -> bytes:
    random = Random(seed)  # noqa: S311 - a sample
    lines, size = [], 0
    while size < bytes_:
        words = [f"word{random.randrange(9_999)}" for _ in range(random.randrange(5, 400))]
        text = ", ".join(" ".join(words[n : n + 8]) for n in range(0, len(words), 8))
        lines.append(json.dumps({"uuid": f"{random.getrandbits(64):x}", "text": text}).encode())
        size += len(lines[-1]) + 1
    return b"\n".join(lines) + b"\n"


def pieces(data: bytes, size: int | None = None) -> list[bytes]:
    return [
        each.data for each in read_pieces(io.BytesIO(data), len(data) if size is None else size)
    ]


def test_pieces_are_the_whole_file_and_bounded() -> None:
    data = transcript(1_000_000)
    cut = pieces(data)
    assert b"".join(cut) == data
    assert max(map(len, cut)) <= MOST_BYTES
    assert 4 <= len(cut) <= 32
    assert pieces(b"") == []
    assert pieces(b"one line without an end") == [b"one line without an end"]
    assert b"".join(pieces(b"x" * 700_000)) == b"x" * 700_000
    assert b"".join(pieces(data, 5_000)) == data[:5_000]


def test_a_file_that_grew_has_all_pieces_but_the_last() -> None:
    data = transcript(1_000_000)
    before = pieces(data[:700_001])
    assert pieces(data)[: len(before) - 1] == before[:-1]


def test_an_insertion_changes_the_pieces_around_it_alone() -> None:
    data = transcript(2_000_000)
    changed = data[:500_000] + b"an insertion, of a few words\n" + data[500_000:]
    new = set(pieces(changed)) - set(pieces(data))
    assert sum(map(len, new)) < 2 * MOST_BYTES


def test_a_newer_state_holds_a_former_one_if_little_is_missing() -> None:
    former = {"updated": "2026-01-01", "messages": [{"text": f"say {n}"} for n in range(50)]}
    newer = {"updated": "2026-01-02", "messages": [*former["messages"], {"text": "more"}]}
    other = {"updated": "2026-01-02", "messages": [{"text": f"other {n}"} for n in range(60)]}
    encoded = [json.dumps(each, indent=1).encode() for each in (former, newer, other)]
    assert contains(encoded[1], encoded[0])
    assert not contains(encoded[2], encoded[0])


def test_a_run_of_nul_bytes_is_a_hole() -> None:
    assert has_hole(b"a line\n" + b"\0" * 4_096)
    assert not has_hole(b"a line\nwith \0 one")


def version(id_: int, size: int, *, is_sound: bool = True) -> KeptVersion:
    return KeptVersion(id=id_, size=size, saved_ns=id_, is_sound=is_sound)


def test_the_longest_sound_version_is_restored() -> None:
    cut_off, whole, torn = version(3, 10), version(2, 90), version(4, 100, is_sound=False)
    assert best_version([version(1, 90), whole, cut_off, torn]) == whole
    assert best_version([torn]) == torn
    assert best_version([]) is None


def test_another_piece_is_compared_with_each_growth() -> None:
    large = MAX_COMPARED_BYTES + 1
    assert list(places_to_compare(0, large, is_same_file=True)) == []
    assert list(places_to_compare(1, large, is_same_file=True)) == [0]
    assert {
        places_to_compare(9, size, is_same_file=True)[1]
        for size in range(large, large + 9)
        if size % 9 not in {0, 8}
    } == set(range(1, 8))
    for size, is_same_file in ((large, False), (MAX_COMPARED_BYTES, True)):
        assert list(places_to_compare(9, size, is_same_file=is_same_file)) == list(range(9))
