"""`forget` names what it deletes, deletes it from every place in a safe order, and refuses what it cannot mean."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from anchord.config.cli_state import CliState
from anchord.config.schema import Config, PrivacyConfig
from anchord.core.types import NO_FINGERPRINT, FileRecord, FileUpdate, Root, RootedPath
from anchord.daemon.answers import forget_answer
from anchord.errors import StoreError, UsageError
from anchord.index.integrity import purge as module
from anchord.index.integrity.purge import (
    PurgePreview,
    erase_replaced_secrets,
    is_erasure_due,
    note_rules_of_new_index,
    preview_purge,
    purge_path,
    unforget_path,
)
from anchord.ipc.messages.upkeep import ForgetAnswer
from anchord.store.table import maintenance

EXCHANGE = RootedPath("docs", "/codex/s/1")
OTHER_TALK = RootedPath("docs", "other.jsonl")


class Index:
    """An index of two files in a folder, and what was done to it."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write the files."""
        self.folder = base / "docs"
        (self.folder / "private").mkdir(parents=True)
        for name in ("private/a.md", "private/b.md"):
            (self.folder / name).write_text("Words.\n")
        self.events: list[Any] = []
        self.found = SimpleNamespace(exchanges=[], only_here=0)
        self.erased: list[RootedPath] = []
        self.damaged = base / "damaged"
        self.is_local = True
        note = self.events.append
        self.writer: Any = SimpleNamespace(
            files=SimpleNamespace(redact_path=lambda path: path),
            roots=[Root(name="docs", path=str(self.folder))],
            archive=SimpleNamespace(
                find_from=lambda _: self.found,
                erase=self._erase,
                files_to_reread={OTHER_TALK: None},
                truncate_wal=lambda: note("archive's log"),
                unforget=self._unforget,
                deletions=SimpleNamespace(all_forgotten=list),
            ),
            catalog=SimpleNamespace(
                list_records=self._list_records,
                save_intents=lambda updates: note(("intents", updates)),
                confirm_updates=lambda updates: note(("confirmed", updates)),
                mark_for_reread=lambda files: note(("reread", files)),
                history=SimpleNamespace(forget=lambda _: None),
                checkpoint_wal=lambda: note("catalog's log"),
                get_meta=lambda _: "",
            ),
            store=SimpleNamespace(
                ids_of_files=lambda files: {
                    file: [f"row of {file.path}", "shared row"] for file in files
                },
                ids_of_root=self._ids_of_root,
                delete_rows=lambda ids: note(("rows", ids)),
            ),
            vector_cache=SimpleNamespace(
                clear=lambda: note("vectors"), checkpoint_wal=lambda: note("cache's log")
            ),
            conversations=SimpleNamespace(mark_indexed=lambda each: note(("indexed", each))),
            keeper=SimpleNamespace(store=None),
            heartbeat=SimpleNamespace(beat=note),
            paths=SimpleNamespace(
                damaged_folder=self.damaged,
                kept_transcripts_file=base / "transcripts.sqlite",
                log_file=base / "anchord.log",
                data_folder=base / "data",
            ),
            config=None,
            cli_state=CliState(),
            save_cli_state=self._save_cli_state,
        )
        monkeypatch.setattr(module, "store_uri", lambda *_: "uri")
        monkeypatch.setattr(module, "is_local", lambda _: self.is_local)
        monkeypatch.setattr(maintenance, "erase_deleted_rows", lambda _: 7)

    def _ids_of_root(self, root: str, path: str) -> list[str]:
        return [f"row of {known}" for known in self._list_records(root, path)]

    def _save_cli_state(self, state: CliState) -> None:
        self.events.append(("saved", state))
        self.writer.cli_state = state

    def _list_records(self, root: str, inside: str) -> dict[str, None]:
        assert root == "docs"
        known = ("private/a.md", "private/b.md")
        return {path: None for path in known if path == inside or path.startswith(f"{inside}/")}

    def _erase(self, path: str) -> list[RootedPath]:
        self.events.append(("erased", path))
        return self.erased

    def _unforget(self, path: str) -> list[RootedPath]:
        self.events.append(("unforgotten", path))
        return [OTHER_TALK]

    def path(self, name: str) -> str:
        """Return the absolute path of a name in the folder."""
        return str(self.folder / name)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return Index(tmp_path, monkeypatch)


def test_a_folder_leaves_every_place_in_an_order_in_which_nothing_comes_back(index: Index) -> None:
    index.erased = [EXCHANGE, RootedPath("docs", "private/a.md")]
    index.found = SimpleNamespace(exchanges=[1, 2], only_here=1)
    result = purge_path(index.writer, index.path("private"))
    names = [event[0] if isinstance(event, tuple) else event for event in index.events]
    assert names == [
        "saved", 3600.0, "erased", "vectors", "intents", "rows", "confirmed", "indexed", "reread",
        "catalog's log", "cache's log", "archive's log", 3600.0, "saved",
    ]  # fmt: skip
    assert index.events[0][1].forgotten_paths == (index.path("private"),)
    told: dict[str, Any] = dict(event for event in index.events if isinstance(event, tuple))
    assert told["erased"] == index.path("private")
    origins = [RootedPath("docs", "private/a.md"), RootedPath("docs", "private/b.md"), EXCHANGE]
    updates: list[FileUpdate] = told["intents"]
    assert [update.origin for update in updates] == origins
    assert all(update.new_record is None for update in updates)
    assert told["confirmed"] == updates
    assert sorted(told["rows"]) == sorted(
        {f"row of {each.path}" for each in origins} | {"shared row"}
    )
    assert len(told["rows"]) == 4
    assert told["indexed"] == [EXCHANGE]
    assert told["reread"] == [OTHER_TALK]
    assert forget_answer(result) == ForgetAnswer(
        path=index.path("private"),
        files=2,
        rows=4,
        exchanges=2,
        disk_files_removed=7,
        also_in=("other.jsonl",),
    )


def test_damaged_copies_are_named_and_a_remote_tables_files_cannot_be_counted(index: Index) -> None:
    index.damaged.mkdir()
    index.is_local = False
    result = purge_path(index.writer, index.path("private/a.md"))
    assert result.damaged_folder == str(index.damaged)
    assert result.disk_files_removed == -1
    assert "archive's log" in index.events


@pytest.mark.parametrize(
    ("name", "exchanges", "stays_out"),
    [("private/a.md", 0, True), ("typo.md", 0, False), ("gone.jsonl", 1, True)],
)
def test_only_what_is_or_was_there_is_kept_out(
    index: Index,
    name: str,
    exchanges: int,
    stays_out: bool,  # noqa: FBT001 - a column of the table
) -> None:
    index.found = SimpleNamespace(exchanges=list(range(exchanges)), only_here=0)
    purge_path(index.writer, index.path(name))
    assert (index.path(name) in index.writer.cli_state.forgotten_paths) is stays_out


def test_a_file_that_no_walk_has_indexed_yet_is_kept_out_too(index: Index) -> None:
    (index.folder / "new.md").symlink_to(index.folder / "nowhere")
    assert purge_path(index.writer, index.path("new.md")).file_count == 0
    assert index.path("new.md") in index.writer.cli_state.forgotten_paths


def test_what_a_call_that_failed_has_deleted_is_counted_by_the_next_one(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = index.path("talk.jsonl")
    index.found = SimpleNamespace(exchanges=[1, 2], only_here=1)
    with monkeypatch.context() as patch:
        patch.setattr(index.writer.catalog, "save_intents", _fail)
        with pytest.raises(StoreError):
            purge_path(index.writer, talk)
    index.found = SimpleNamespace(exchanges=[], only_here=0)
    assert preview_purge(index.writer, index.path("private")).exchange_count == 0
    assert preview_purge(index.writer, talk).exchange_count == 2
    assert purge_path(index.writer, talk).exchange_count == 2
    assert purge_path(index.writer, talk).exchange_count == 0


def test_a_log_that_cannot_be_written_is_named_and_keeps_nothing_else_from_being_forgotten(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = index.writer.paths.log_file
    log.write_text("private/a.md\n")
    monkeypatch.setattr(module, "erase_traces", lambda *_: [log])
    with pytest.raises(
        StoreError, match=r"it is forgotten, but its name may still be in .*anchord\.log"
    ):
        purge_path(index.writer, index.path("private"))
    done = [event[0] for event in index.events if isinstance(event, tuple)]
    assert "rows" in done
    assert index.writer.cli_state.unfinished_forget, "the next start tries it again"


def test_nothing_counts_as_forgotten_while_kept_transcripts_cannot_be_opened(
    index: Index,
) -> None:
    index.writer.paths.kept_transcripts_file.touch()
    with pytest.raises(StoreError, match="could not be opened"):
        purge_path(index.writer, index.path("private"))
    assert index.writer.cli_state.unfinished_forget
    index.writer.paths.kept_transcripts_file.unlink()
    purge_path(index.writer, index.path("private"))
    assert not index.writer.cli_state.unfinished_forget


def _fail(*_: object) -> None:
    raise StoreError("a page could not be read")


def test_a_preview_counts_and_changes_nothing(index: Index) -> None:
    index.found = SimpleNamespace(exchanges=[1, 2, 3], only_here=2)
    assert preview_purge(index.writer, index.path("private")) == PurgePreview(
        path=index.path("private"), file_count=2, exchange_count=3, only_here=2
    )
    assert index.events == []


def test_an_indexed_folder_and_what_contains_one_are_refused(index: Index, tmp_path: Path) -> None:
    for path, words in (
        (str(index.folder), "is an indexed folder itself"),
        (str(tmp_path), "contains the indexed folder"),
        ("/elsewhere/a.md", "is in no indexed folder"),
    ):
        with pytest.raises(UsageError, match=words):
            purge_path(index.writer, path)
    assert index.events == []


def test_conversations_of_a_folder_that_is_not_indexed_any_more_can_be_forgotten(
    index: Index,
) -> None:
    index.found = SimpleNamespace(exchanges=[1], only_here=1)
    index.erased = []
    result = purge_path(index.writer, "/elsewhere/talk.jsonl")
    assert (result.file_count, result.exchange_count, result.row_count) == (0, 1, 0)
    assert ("erased", "/elsewhere/talk.jsonl") in index.events


def test_links_of_the_folder_are_followed_and_the_file_itself_is_not(
    index: Index, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(index.folder / "private")
    (index.folder / "private" / "inner").symlink_to(tmp_path)
    assert preview_purge(index.writer, str(tmp_path / "link" / "a.md")).file_count == 1
    told = preview_purge(index.writer, str(tmp_path / "link" / "inner"))
    assert told.path == index.path("private/inner")


def test_what_is_let_in_again_is_read_again(index: Index) -> None:
    with pytest.raises(UsageError, match="was not forgotten") as refused:
        unforget_path(index.writer, index.path("private/a.md"))
    assert refused.value.hint == "forgotten: nothing"
    both = CliState().with_forgotten_path(index.path("private/a.md"))
    index.writer.cli_state = both.with_forgotten_path("/elsewhere/b.md")
    assert unforget_path(index.writer, index.path("private/a.md")) == "docs"
    assert index.events == [
        ("saved", CliState().with_forgotten_path("/elsewhere/b.md")),
        ("unforgotten", index.path("private/a.md")),
        ("reread", [OTHER_TALK]),
    ]
    with pytest.raises(UsageError, match="in no indexed folder now"):
        unforget_path(index.writer, "/elsewhere/b.md")
    assert len(index.events) == 3


# The rules for secrets


class Rules:
    """An index of two files that were read with present rules, and what was done to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin with rules that nobody has noted."""
        self.events: list[Any] = []
        self.notes: dict[str, str] = {}
        self.row_count = 2
        self.records = {
            "a": {"1.md": self.record("recipe of a"), "2.md": self.record("recipe of a")},
            "b": {"3.md": self.record("recipe of b")},
        }
        note = self.events.append
        self.config = Config()
        self.writer: Any = SimpleNamespace(
            config=self.config,
            paths=None,
            profile=SimpleNamespace(
                recipe=SimpleNamespace(digest=lambda root: f"recipe of {root}")
            ),
            catalog=SimpleNamespace(
                get_meta=lambda key: self.notes.get(key, ""),
                set_meta=self.notes.__setitem__,
                root_names=lambda: list(self.records),
                list_records=lambda root, _: self.records[root],
                checkpoint_wal=lambda: note("catalog's log"),
                history=SimpleNamespace(clear=lambda: note("history")),
            ),
            store=SimpleNamespace(count_rows=lambda: self.row_count),
            vector_cache=SimpleNamespace(
                clear=lambda: note("vectors"), checkpoint_wal=lambda: note("cache's log")
            ),
            archive=SimpleNamespace(truncate_wal=lambda: note("archive's log")),
            heartbeat=SimpleNamespace(beat=lambda _: None),
        )
        self.redact("all")
        monkeypatch.setattr(module, "rules_version", lambda: "rules 1")
        monkeypatch.setattr(module, "store_uri", lambda *_: "uri")
        monkeypatch.setattr(module, "is_local", lambda _: True)
        monkeypatch.setattr(maintenance, "erase_deleted_rows", lambda _: note("table") or 1)

    @staticmethod
    def record(recipe_digest: str, content_digest: str = "digest") -> FileRecord:
        """Give the record of a file."""
        return FileRecord(NO_FINGERPRINT, 1, content_digest, recipe_digest, is_confirmed=True)

    def redact(self, what: Literal["all", "conversations", "off"]) -> None:
        """Configure what is redacted."""
        self.writer.config = Config(privacy=PrivacyConfig(redact=what))

    def noted(self) -> str:
        """Return the rules that are noted."""
        return self.notes.get("rules for secrets on disk", "")


ERASED = ["vectors", "history", "catalog's log", "cache's log", "archive's log", "table"]


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    return Rules(monkeypatch)


def test_only_an_index_without_rows_begins_with_the_rules_of_now(rules: Rules) -> None:
    note_rules_of_new_index(rules.writer)
    assert rules.noted() == "", "other rules may have written its rows"
    assert is_erasure_due(rules.writer)
    rules.row_count = 0
    note_rules_of_new_index(rules.writer)
    assert rules.noted() == "all rules 1"
    assert not is_erasure_due(rules.writer)
    rules.redact("conversations")
    note_rules_of_new_index(rules.writer)
    assert rules.noted() == "all rules 1", "an index that was emptied may have old versions"
    assert is_erasure_due(rules.writer)


def test_what_other_rules_wrote_is_erased_once(rules: Rules) -> None:
    erase_replaced_secrets(rules.writer)
    assert (rules.events, rules.noted()) == (ERASED, "all rules 1")
    assert not is_erasure_due(rules.writer)
    erase_replaced_secrets(rules.writer)
    assert rules.events == ERASED
    rules.redact("conversations")
    assert is_erasure_due(rules.writer)
    erase_replaced_secrets(rules.writer)
    assert (rules.events, rules.noted()) == (ERASED * 2, "conversations rules 1")


@pytest.mark.parametrize(("root", "name"), [("a", "2.md"), ("b", "3.md")])
def test_nothing_is_erased_before_every_file_was_read_with_the_present_rules(
    rules: Rules, root: str, name: str
) -> None:
    read = rules.records[root][name]
    rules.records[root][name] = rules.record("an old recipe")
    erase_replaced_secrets(rules.writer)
    assert (rules.events, rules.noted()) == ([], "")
    rules.records[root][name] = rules.record("an old recipe", content_digest="")
    erase_replaced_secrets(rules.writer)  # It has no rows: it could not be read.
    assert (rules.events, rules.noted()) == (ERASED, "all rules 1")
    rules.records[root][name] = read
    assert not is_erasure_due(rules.writer)


def test_without_rules_nothing_is_erased_and_that_is_noted(rules: Rules) -> None:
    rules.redact("off")
    erase_replaced_secrets(rules.writer)
    assert (rules.events, rules.noted()) == ([], "none")
    assert not is_erasure_due(rules.writer)
    rules.redact("all")
    erase_replaced_secrets(rules.writer)
    assert (rules.events, rules.noted()) == (ERASED, "all rules 1")


def test_a_rewriting_that_fails_is_tried_again(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise StoreError("the disk is full", "")

    with monkeypatch.context() as fault:
        fault.setattr(maintenance, "erase_deleted_rows", fail)
        with pytest.raises(StoreError):
            erase_replaced_secrets(rules.writer)
    assert is_erasure_due(rules.writer)
    rules.events.clear()
    erase_replaced_secrets(rules.writer)
    assert rules.events == ERASED
