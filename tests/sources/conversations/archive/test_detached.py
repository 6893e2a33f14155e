"""Exchanges that leave their root are kept in groups, and come back with their folder, whole or in part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anchord.core.types import Fingerprint, RootedPath
from anchord.sources.conversations.archive.detached import DetachedGroup, DetachReason
from anchord.sources.conversations.archive.exchange_forms import ExchangeSource
from anchord.sources.conversations.archive.path_lookup import BelowPath, path_inside
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.events import Exchange, SessionInfo

DAY_NS = 24 * 3600 * 10**9


class Talks:
    """An archive, and what is put into it and read from it."""

    def __init__(self, archive: ArchiveWriter) -> None:
        """Use an archive."""
        self.archive = archive

    def put(
        self, file: str, name: str, *, root: str = "talks", until: str = "1", answer: str = "So."
    ) -> int:
        """Store that a file contains an exchange of the session that is named like the file."""
        origin, session = RootedPath(root, file), Path(file).stem
        archive = self.archive
        with archive.transaction():
            file_id = archive.upsert_transcript_file(origin, Fingerprint(1, 1, 1, 1, 1), "codex")
            info = SessionInfo(session=session, title=f"Title of {session}", project="/p")
            session_id = archive.get_or_create_session(root, "codex", info)
            archive.save_session_info(file_id, {session_id: info}, is_full_read=True)
            exchange = Exchange(
                id=name, session=session, number=int(name), question="How?", answer=answer,
                at="", until=until,
            )  # fmt: skip
            source = ExchangeSource(root, "codex", file_id)
            exchange_id = archive.upsert_exchange(source, session_id, exchange)
        assert exchange_id
        return exchange_id

    def lose(self, file: str, reason: DetachReason | None = None, now_ns: int = 5) -> None:
        """Remove a transcript file."""
        with self.archive.transaction():
            self.archive.remove_transcript_file(RootedPath("talks", file), now_ns, reason)

    def paths(self, root: str = "talks") -> list[str]:
        """Return the exchanges of a root."""
        return [found.path for found in self.archive.list_exchanges(root)]

    def answers(self, root: str = "talks") -> list[str]:
        """Return the answers of a root's exchanges."""
        read = [self.archive.read(RootedPath(root, path)) for path in self.paths(root)]
        return [json.loads(each.data)["answer"] for each in read]  # type: ignore[union-attr]

    def files(self, root: str = "talks") -> list[str]:
        """Return the transcript files of a root."""
        return [each.path for each in self.archive.transcript_files(root)]

    def groups(self) -> list[tuple[str, str, str, int]]:
        """Return reason, root, folder and number of exchanges of each group."""
        return [
            (str(each.reason), each.root, each.folder, each.exchange_count)
            for each in self.archive.detached_groups()
        ]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query gives."""
        return self.archive._db.execute(query).fetchall()


@pytest.fixture
def talks(tmp_path: Path) -> Iterator[Talks]:
    archive = ArchiveWriter(tmp_path / "conversations.sqlite")
    archive.attach_root("talks", "/talks")
    yield Talks(archive)
    archive.close()


def test_a_detached_root_is_a_group_with_its_counts(talks: Talks) -> None:
    for file, name in (("a.jsonl", "1"), ("a.jsonl", "2"), ("b.jsonl", "1")):
        talks.put(file, name)
    talks.lose("b.jsonl")
    talks.put("c.jsonl", "1", root="other")
    talks.archive.detach_root("talks", 7)
    group = DetachedGroup(
        key="\x0100000001",
        reason=DetachReason.ROOT,
        root="talks",
        folder="/talks",
        session_count=2,
        exchange_count=3,
        sourceless_count=1,
    )
    assert talks.archive.detached_groups() == [group]
    assert talks.archive.detached.folder_of_root("talks") is None
    assert talks.paths() == []
    assert talks.paths("other") == ["/codex/c/1"]
    assert talks.rows("SELECT DISTINCT root, detached_ns FROM exchanges ORDER BY root") == [
        ("\x0100000001", 7),
        ("other", 0),
    ]
    talks.archive.detach_root("other", 8)
    assert talks.archive.detached_groups()[1] == replace(
        group,
        key="\x0100000002", root="other", folder="",
        session_count=1, exchange_count=1, sourceless_count=0,
    )  # fmt: skip


def test_a_root_without_exchanges_leaves_no_group(talks: Talks) -> None:
    talks.archive.detach_root("talks", 7)
    assert talks.groups() == []


def test_detached_exchanges_are_told_with_session_and_file(talks: Talks) -> None:
    talks.put("b.jsonl", "2")
    talks.put("b.jsonl", "1")
    talks.put("a.jsonl", "1")
    talks.lose("a.jsonl")
    talks.archive.detach_root("talks", 7)
    found = list(talks.archive.detached_exchanges())
    assert [(each.path, each.transcript_path) for each in found] == [
        ("/codex/b/1", "b.jsonl"),
        ("/codex/b/2", "b.jsonl"),
        ("/codex/a/1", "a.jsonl"),
    ]
    first = found[0]
    assert (first.source, first.session, first.title) == ("codex", "b", "Title of b")
    assert (first.project, first.group_key) == ("/p", "\x0100000001")
    assert json.loads(first.content)["answer"] == "So."


# Roots that come back


@pytest.mark.parametrize("name", ["talks", "renamed"])
def test_exchanges_return_with_their_folder_whatever_its_name_is(talks: Talks, name: str) -> None:
    talks.put("a.jsonl", "1")
    talks.put("b.jsonl", "1")
    talks.lose("b.jsonl")
    versions = talks.rows("SELECT max(version) FROM exchanges")[0][0]
    talks.archive.mark_indexed([RootedPath("talks", path) for path in talks.paths()])
    talks.archive.detach_root("talks", 7)
    assert talks.archive.attach_root(name, "/talks") == 2
    assert talks.paths(name) == ["/codex/a/1", "/codex/b/1"]
    assert talks.files(name) == ["a.jsonl"]
    assert talks.groups() == []
    rows = talks.rows("SELECT detached_ns, due, last_path FROM exchanges ORDER BY path")
    assert rows == [(0, 1, None), (0, 1, b"b.jsonl")]
    assert talks.rows("SELECT min(version) FROM exchanges")[0][0] > versions
    assert {name for (name,) in talks.rows("SELECT root FROM sessions")} == {name}


def test_a_folder_around_gets_them_below_its_own(talks: Talks) -> None:
    talks.archive.detach_root("talks", 1)
    talks.archive.attach_root("inner", "/talks/in/ner")
    talks.put("a.jsonl", "1", root="inner")
    talks.put("b.jsonl", "1", root="inner")
    with talks.archive.transaction():
        talks.archive.remove_transcript_file(RootedPath("inner", "b.jsonl"), 5, None)
    talks.archive.detach_root("inner", 7)
    assert talks.archive.attach_root("talks", "/talks") == 2
    assert talks.files() == ["in/ner/a.jsonl"]
    assert talks.rows("SELECT last_path FROM exchanges WHERE carrier IS NULL") == [
        (b"in/ner/b.jsonl",)
    ]


def test_a_folder_inside_gets_only_what_comes_from_it(talks: Talks) -> None:
    for file in ("in/a.jsonl", "in/gone.jsonl", "b.jsonl", "inner.jsonl", "left.jsonl"):
        talks.put(file, "1")
    for file in ("in/gone.jsonl", "left.jsonl"):
        talks.lose(file)
    talks.archive.detach_root("talks", 7)
    talks.archive.attach_root("part", "/talks/in")
    assert talks.paths("part") == ["/codex/a/1", "/codex/gone/1"]
    assert talks.files("part") == ["a.jsonl"]
    assert talks.groups()[0][:3] == ("root", "talks", "/talks")
    left = {each.path for each in talks.archive.detached_exchanges()}
    assert left == {"/codex/b/1", "/codex/inner/1", "/codex/left/1"}
    talks.archive.attach_root("talks", "/talks")
    assert "inner.jsonl" in talks.files()


def test_what_no_file_contains_returns_to_the_folder_of_its_last_file(talks: Talks) -> None:
    for file in ("in/a.jsonl", "b.jsonl"):
        talks.put(file, "1")
        talks.lose(file)
    talks.archive.detach_root("talks", 7)
    talks.archive.attach_root("part", "/talks/in")
    assert talks.paths("part") == ["/codex/a/1"]
    assert talks.rows("SELECT last_path FROM exchanges WHERE root='part'") == [(b"a.jsonl",)]
    assert talks.rows("SELECT name FROM sessions WHERE root='part'") == [("a",)]
    assert [each.path for each in talks.archive.detached_exchanges()] == ["/codex/b/1"]


def test_a_group_all_of_which_came_from_a_folder_inside_leaves_nothing(talks: Talks) -> None:
    talks.put("in/a.jsonl", "1")
    talks.archive.detach_root("talks", 7)
    talks.archive.attach_root("part", "/talks/in")
    assert talks.groups() == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_root_of_the_same_name_gets_them_only_if_their_folder_is_gone(
    talks: Talks, tmp_path: Path, *, exists: bool
) -> None:
    folder = tmp_path / "old"
    if exists:
        folder.mkdir()
    talks.archive.attach_root("talks", str(folder))
    talks.put("a.jsonl", "1")
    talks.archive.detach_root("talks", 7)
    assert talks.archive.attach_root("unrelated", "/elsewhere") == 0
    assert talks.archive.attach_root("talks", "/new") == (0 if exists else 1)
    assert len(talks.groups()) == (1 if exists else 0)


@pytest.mark.parametrize(
    ("until", "answer"), [("0", "Detached."), ("1", "Of the root."), ("2", "Of the root.")]
)
def test_of_two_forms_of_an_exchange_the_later_stays_and_of_equals_the_roots(
    talks: Talks, until: str, answer: str
) -> None:
    talks.put("a.jsonl", "1", until="1", answer="Detached.")
    talks.put("b.jsonl", "1", answer="Another.")
    talks.archive.detach_root("talks", 7)
    talks.put("a.jsonl", "1", until=until, answer="Of the root.")
    assert talks.archive.attach_root("talks", "/talks") == 2
    assert talks.answers() == [answer, "Another."]
    assert talks.files() == ["a.jsonl", "b.jsonl"]
    assert talks.rows("SELECT DISTINCT root FROM sessions") == [("talks",)]
    assert talks.rows("SELECT DISTINCT root FROM carriers") == [("talks",)]
    assert talks.rows("SELECT DISTINCT root FROM exchanges") == [("talks",)]
    assert talks.groups() == []
    ids = "SELECT exchange FROM tellings WHERE exchange NOT IN (SELECT id FROM exchanges)"
    assert talks.rows(ids) == []
    # The root's own file contains the form that stays, whichever it is.
    assert len(talks.archive.exchanges_due(RootedPath("talks", "a.jsonl"))) == 1


# Single exchanges


def test_trash_has_its_own_group_and_returns_when_the_root_keeps_again(talks: Talks) -> None:
    for file in ("a.jsonl", "b.jsonl"):
        talks.put(file, "1")
    version = talks.rows("SELECT max(version) FROM exchanges")[0][0]
    talks.lose("a.jsonl", DetachReason.TRASH, now_ns=9)
    assert talks.groups() == [("trash", "talks", "/talks", 1)]
    assert talks.paths() == ["/codex/b/1"]
    assert talks.rows("SELECT detached_ns, due FROM exchanges WHERE detached_ns") == [(9, 0)]
    talks.archive.return_trash("other")
    assert talks.paths() == ["/codex/b/1"]
    talks.archive.return_trash("talks")
    assert talks.paths() == ["/codex/a/1", "/codex/b/1"]
    assert talks.groups() == []
    assert talks.rows("SELECT max(version) FROM exchanges")[0][0] > version


def test_only_what_no_file_contains_and_whose_last_file_is_gone_goes_to_the_trash(
    talks: Talks,
) -> None:
    for file in ("gone.jsonl", "there.jsonl", "cut.jsonl"):
        talks.put(file, "1")
    talks.lose("gone.jsonl")
    record = talks.archive.find_transcript_file(RootedPath("talks", "cut.jsonl"))
    assert record
    with talks.archive.transaction():  # The file is still there, and no longer contains it.
        ids = sorted(talks.archive.exchange_ids_of(record.id))
        talks.archive.remove_source(record.id, ids, 5, None)
    talks.archive.trash_orphans("talks", 9)
    assert talks.paths() == ["/codex/cut/1", "/codex/there/1"]
    assert talks.groups() == [("trash", "talks", "/talks", 1)]


def test_the_trash_alone_is_emptied_after_thirty_days(talks: Talks) -> None:
    for file, reason, now_ns in (
        ("old.jsonl", DetachReason.TRASH, 5),
        ("new.jsonl", DetachReason.TRASH, 6),
        ("reader.jsonl", DetachReason.READER, 5),
    ):
        talks.put(file, "1")
        talks.lose(file, reason, now_ns)
    for day in (0, 15):
        assert talks.archive.empty_trash(6 + day * DAY_NS) == 0
    assert talks.archive.empty_trash(6 + 30 * DAY_NS) == 1
    left = {each.path for each in talks.archive.detached_exchanges()}
    assert left == {"/codex/new/1", "/codex/reader/1"}


@pytest.mark.parametrize(
    "days",
    [
        [0, 365, 366, 367, 0, 1],
        [0, -365, 365, -365, 365, 0],
        [400, 0, 20, -500, -490, 29],
        [40],
        [0, 26, 52, 78, 104, 130],
    ],
)
def test_a_clock_that_jumps_empties_no_trash(talks: Talks, days: list[int]) -> None:
    talks.put("a.jsonl", "1")
    talks.lose("a.jsonl", DetachReason.TRASH, days[0] * DAY_NS)
    for day in days:
        assert talks.archive.empty_trash(day * DAY_NS) == 0
    assert len(list(talks.archive.detached_exchanges())) == 1


def test_after_a_jump_of_the_clock_the_trash_is_emptied_after_thirty_days(talks: Talks) -> None:
    talks.put("a.jsonl", "1")
    talks.archive.empty_trash(0)
    talks.lose("a.jsonl", DetachReason.TRASH, 0)
    for day in (10, 375, 394):
        assert talks.archive.empty_trash(day * DAY_NS) == 0
    assert talks.archive.empty_trash(396 * DAY_NS) == 1


def test_two_forms_of_one_exchange_are_kept_in_two_groups_and_equal_ones_once(
    talks: Talks,
) -> None:
    for answer in ("One.", "Other.", "Other."):
        talks.put("a.jsonl", "1", answer=answer)
        talks.lose("a.jsonl", DetachReason.READER)
    assert talks.groups() == [("reader", "talks", "/talks", 1)] * 2
    texts = [json.loads(each.content)["answer"] for each in talks.archive.detached_exchanges()]
    assert sorted(texts) == ["One.", "Other."]
    talks.put("a.jsonl", "1", answer="Other.")  # A file contains it again.
    talks.archive.empty_trash(0)
    texts = [json.loads(each.content)["answer"] for each in talks.archive.detached_exchanges()]
    assert texts == ["One."]


def test_a_copy_is_put_aside_with_its_text_and_last_file(talks: Talks) -> None:
    exchange_id = talks.put("a.jsonl", "1")
    with talks.archive.transaction():
        copy_id = talks.archive.detached.copy_aside(exchange_id, DetachReason.READER)
    assert copy_id not in {0, exchange_id}
    assert talks.rows("SELECT id FROM exchanges ORDER BY id") == [(exchange_id,), (copy_id,)]
    (copy,) = talks.archive.detached_exchanges()
    assert (copy.path, copy.transcript_path) == ("/codex/a/1", "a.jsonl")
    assert talks.paths() == ["/codex/a/1"]


@pytest.mark.parametrize("is_moved", [False, True])
def test_groups_of_single_exchanges_follow_their_root(
    talks: Talks, tmp_path: Path, *, is_moved: bool
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    talks.archive.attach_root("talks", str(old))
    talks.put("a.jsonl", "1")
    talks.lose("a.jsonl", DetachReason.TRASH)
    talks.archive.attach_root("other", "/elsewhere")
    assert talks.groups() == [("trash", "talks", str(old), 1)]
    if is_moved:
        old.rmdir()
        talks.archive.attach_root("talks", "/new")
        assert talks.groups() == [("trash", "talks", "/new", 1)]
    else:
        talks.archive.attach_root("talks", "/new")
        assert talks.groups() == [("trash", "talks", str(old), 1)]
        talks.archive.attach_root("renamed", str(old))
        assert talks.groups() == [("trash", "renamed", str(old), 1)]


def test_groups_that_a_damaged_file_lost_are_made_again(talks: Talks) -> None:
    talks.put("a.jsonl", "1")
    talks.put("b.jsonl", "1", root="other")
    talks.archive.detach_root("talks", 7)
    talks.archive._db.execute("DELETE FROM detached")
    talks.archive.detached.restore_lost_groups()
    talks.archive.detached.restore_lost_groups()
    assert talks.groups() == [("root", "", "", 1)]
    assert talks.archive.detached.attached_root_names() == {"other"}


def test_no_root_is_taken_for_a_lost_group(talks: Talks) -> None:
    talks.put("a.jsonl", "1", root="\x02")
    talks.put("b.jsonl", "1", root="\x00")
    talks.archive.detached.restore_lost_groups()
    assert talks.groups() == []
    assert talks.archive.detached.attached_root_names() == {"\x02", "\x00"}


@pytest.mark.parametrize("is_moved", [False, True])
def test_an_exchange_that_has_a_copy_aside_is_kept_once(talks: Talks, *, is_moved: bool) -> None:
    exchange_id = talks.put("a.jsonl", "1")
    with talks.archive.transaction():
        talks.archive.detached.copy_aside(exchange_id, DetachReason.READER)
    if is_moved:
        talks.lose("a.jsonl", DetachReason.READER)
    else:
        with talks.archive.transaction():
            talks.archive.detached.copy_aside(exchange_id, DetachReason.READER)
    assert talks.groups() == [("reader", "talks", "/talks", 1)]
    assert len(talks.rows("SELECT id FROM exchanges")) == (1 if is_moved else 2)


def test_a_root_that_had_only_files_leaves_none_of_them(talks: Talks) -> None:
    with talks.archive.transaction():
        talks.archive.upsert_transcript_file(
            RootedPath("talks", "a.jsonl"), Fingerprint(1, 1, 1, 1, 1), "codex"
        )
        info = SessionInfo(session="s", title="", project="")
        talks.archive.get_or_create_session("talks", "codex", info)
    talks.archive.detach_root("talks", 7)
    assert talks.groups() == []
    assert talks.rows("SELECT root FROM carriers UNION ALL SELECT root FROM sessions") == []


# Paths


@pytest.mark.parametrize(
    ("outer", "inner", "inside"),
    [
        ("/a", "/a", ""),
        ("/a", "/a/b", "b"),
        ("/a/", "/a/b/c", "b/c"),
        ("/", "/a", "a"),
        ("/a", "/ab", None),
        ("/a/b", "/a", None),
        ("/a", "", None),
        ("", "", None),
    ],
)
def test_the_path_of_a_folder_inside_another(outer: str, inner: str, inside: str | None) -> None:
    assert path_inside(outer, inner) == inside


def test_below_a_path_is_the_file_itself_or_what_is_in_the_folder(talks: Talks) -> None:
    for file in ("a", "a/b", "a0", "ab", "b/a", "a.x"):
        talks.put(file, "1")

    def below(path: str) -> list[str]:
        where = BelowPath(path)
        rows = talks.archive._db.execute(
            f"SELECT path FROM carriers WHERE {where.sql('path')} ORDER BY path", where.values
        )
        return [path.decode() for (path,) in rows]

    assert below("a") == ["a", "a/b"]
    assert below("a/b") == ["a/b"]
    assert below("") == ["a", "a.x", "a/b", "a0", "ab", "b/a"]


def test_what_comes_from_a_file_or_folder_is_found_in_roots_and_groups(
    talks: Talks, tmp_path: Path
) -> None:
    archive = talks.archive
    archive.attach_root("talks", str(tmp_path))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").touch()
    a = talks.put("in/a.jsonl", "1", answer="One.")
    gone = talks.put("in/gone.jsonl", "1", answer="Two.")
    other = talks.put("b.jsonl", "1", answer="Three.")
    found = archive.find_from(str(tmp_path / "in"))
    assert [path for _, _, path in found.files] == [b"in/a.jsonl", b"in/gone.jsonl"]
    assert {(root, path) for _, root, path in found.exchanges} == {
        ("talks", "/codex/a/1"),
        ("talks", "/codex/gone/1"),
    }
    assert {each[0] for each in found.exchanges} == {a, gone}
    assert (found.only_here, found.other_files, found.shared) == (1, [], frozenset())
    assert [each[0] for each in archive.find_from(str(tmp_path / "b.jsonl")).exchanges] == [other]
    assert len(archive.find_from(str(tmp_path.parent)).exchanges) == 3
    assert len(archive.find_from(str(tmp_path)).exchanges) == 3
    nothing = archive.find_from("/nowhere")
    assert (nothing.files, nothing.exchanges, nothing.only_here) == ([], [], 0)
    archive.detach_root("talks", 7)
    found = archive.find_from(str(tmp_path / "in" / "a.jsonl"))
    assert [(each[0], each[1]) for each in found.exchanges] == [(a, "\x0100000001")]
    assert found.only_here == 0


def test_exchanges_that_other_files_contain_too_are_shared(talks: Talks) -> None:
    first = talks.put("a.jsonl", "1")
    with talks.archive.transaction():
        other_file = talks.archive.upsert_transcript_file(
            RootedPath("talks", "copy.jsonl"), Fingerprint(1, 1, 1, 1, 1), "codex"
        )
        ids = talks.rows("SELECT session, digest, until FROM exchanges")[0]
        talks.archive._db.execute(
            "INSERT INTO tellings(carrier, exchange, digest, until) VALUES(?,?,?,?)",
            (other_file, first, ids[1], ids[2]),
        )
    found = talks.archive.find_from("/talks/a.jsonl")
    assert (found.other_files, found.shared) == ([other_file], frozenset({first}))
    assert talks.archive.find_from("/talks").shared == frozenset()


def test_copies_in_other_roots_that_no_file_contains_are_found_with_an_exchange(
    talks: Talks,
) -> None:
    """A transcript that was moved to another root leaves such a copy behind."""
    talks.put("a.jsonl", "1")
    copy = talks.put("a.jsonl", "1", root="other", until="2")
    unlike = talks.put("b.jsonl", "1", root="other", answer="Unlike.")
    found = {each[0]: each[1] for each in talks.archive.find_from("/talks/a.jsonl").exchanges}
    assert found[copy] == "other"
    assert unlike not in found


def test_a_root_elsewhere_hides_nothing_of_the_root_behind_it(talks: Talks) -> None:
    for name in ("another", "zebra"):
        talks.archive.attach_root(name, f"/{name}")
        talks.put("a.jsonl", "2", root=name, answer=f"In {name}.")
    exchange_id = talks.put("a.jsonl", "1")
    found = talks.archive.find_from("/talks/a.jsonl")
    assert [each[:2] for each in found.exchanges] == [(exchange_id, "talks")]
    assert [each[1:] for each in found.files] == [("talks", b"a.jsonl")]


def test_a_copy_in_another_root_stays_while_its_file_exists(talks: Talks, tmp_path: Path) -> None:
    talks.archive.attach_root("other", str(tmp_path))
    mine = talks.put("a.jsonl", "1")
    copy = talks.put("a.jsonl", "1", root="other")
    (tmp_path / "a.jsonl").touch()
    assert [each[0] for each in talks.archive.find_from("/talks/a.jsonl").exchanges] == [mine]
    (tmp_path / "a.jsonl").unlink()
    found = talks.archive.find_from("/talks/a.jsonl")
    assert {each[0] for each in found.exchanges} == {mine, copy}
    assert found.only_here == 2
