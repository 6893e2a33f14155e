"""The sessions of an archive, as `sessions` and `session` answer."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conversations.conftest import Talks, claude

from anchord.errors import UsageError
from anchord.ipc.messages.sessions import SessionAnswer, SessionParams, SessionsParams
from anchord.search import project_names
from anchord.search.kept_sessions import KeptState
from anchord.search.project_names import ProjectNames, repository_name
from anchord.search.session_answers import describe_session, list_sessions
from anchord.sources.conversations.archive.session_records import SessionRecord, SessionRecords

OLD = "11111111-aaaa-4aaa-8aaa-000000000001"
NEW = "11111111-bbbb-4bbb-8bbb-000000000002"


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Talks]:
    """Two sessions of one project; the transcript of the older one is gone."""
    talks = Talks(tmp_path)
    talks.archive.attach_root("talks", str(talks.folder))
    old = talks.write(
        f"-home-me-app/{OLD}.jsonl", claude(("Why is the build slow?", "Caches."), session=OLD)
    )
    talks.write(
        f"-home-me-app/{NEW}.jsonl",
        claude(("/model", ""), ("Rename the parser", "Done."), session=NEW).replace(b"T10", b"T11"),
    )
    talks.sync()
    old.unlink()
    talks.sync()
    yield talks
    talks.close()


def listed(talks: Talks, **params: object) -> tuple[SessionAnswer, ...]:
    return list_sessions(talks.archive, SessionsParams(**params), lambda _: KeptState())  # type: ignore[arg-type]  # of a test


def test_sessions_are_listed_newest_first_with_what_became_of_their_transcripts(
    kept: Talks,
) -> None:
    new, old = listed(kept)
    assert (new.id, new.state, new.title, new.turns) == (NEW, "here", "Rename the parser", 2)
    assert (old.id, old.state, old.title) == (OLD, "deleted", "Why is the build slow?")
    assert old.path == str(kept.folder / f"-home-me-app/{OLD}.jsonl")
    assert (old.started_at, old.last_at) == ("2026-01-02T10:00:00.000Z", "2026-01-02T10:00:30.000Z")
    assert (old.agent, old.project, old.project_path, old.root) == (
        "claude-code",
        "app",
        "/home/me/app",
        "talks",
    )


def test_sessions_are_chosen_by_project_agent_root_and_time(kept: Talks) -> None:
    def ids(**params: object) -> list[str]:
        return [each.id for each in listed(kept, **params)]

    assert ids(project="APP") == ids(project="/home/me") == ids(agent="claude") == [NEW, OLD]
    assert ids(project="/home/m") == []
    with pytest.raises(UsageError, match='no agent "codex"'):
        ids(agent="codex")
    with pytest.raises(UsageError, match='no root "docs"'):
        ids(root="docs")
    with pytest.raises(UsageError, match='no project "zoo"'):
        ids(project="zoo")
    assert ids(limit=1) == ids(since="2026-01-02T10:30Z") == [NEW]
    assert ids(until="2026-01-02T10:30Z") == [OLD]
    assert list_sessions(None, SessionsParams(), lambda _: KeptState()) == ()


def test_a_session_is_found_by_its_id_a_beginning_its_file_and_an_exchange(kept: Talks) -> None:
    def found(wanted: str) -> str:
        return describe_session(kept.archive, SessionParams(id=wanted), lambda _: KeptState()).id

    path = str(kept.folder / f"-home-me-app/{OLD}.jsonl")
    assert {found(each) for each in (OLD, OLD[:12], path, f"q0-{OLD}")} == {OLD}
    with pytest.raises(UsageError, match="stands for 2 sessions"):
        found("1111")
    with pytest.raises(UsageError, match="there is no session"):
        found("2222")
    with pytest.raises(UsageError, match="there is no session"):
        found("")
    with pytest.raises(UsageError, match="no conversations yet"):
        describe_session(None, SessionParams(id=OLD), lambda _: KeptState())


def test_a_session_is_answered_with_its_exchanges_in_their_order(kept: Talks) -> None:
    whole = describe_session(kept.archive, SessionParams(id=NEW), lambda _: KeptState(is_kept=True))
    last = describe_session(
        kept.archive,
        SessionParams(id=NEW, offset=whole.exchange_count - 1, limit=5),
        lambda _: KeptState(is_kept=True),
    )
    assert whole.kept
    assert [(each.question, each.answer) for each in last.exchanges] == [
        ("Rename the parser", "Done.")
    ]
    assert last.exchanges[0].path == whole.exchanges[-1].path
    assert last.exchange_count == whole.exchange_count == len(whole.exchanges)


def test_a_session_is_described_with_one_list_of_all(
    kept: Talks, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[SessionRecords] = []
    list_all = SessionRecords.all

    def counted(records: SessionRecords) -> list[SessionRecord]:
        calls.append(records)
        return list_all(records)

    monkeypatch.setattr(SessionRecords, "all", counted)
    describe_session(kept.archive, SessionParams(id=NEW), lambda _: KeptState(is_kept=True))
    assert len(calls) == 1


def test_a_detached_session_says_so(kept: Talks) -> None:
    kept.archive.detach_root("talks", 0)
    assert {each.state for each in listed(kept)} == {"detached"}
    assert {each.root for each in listed(kept)} == {"talks"}


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_a_project_is_called_by_its_repository_in_every_worktree(tmp_path: Path) -> None:
    main, linked = tmp_path / "checkout", tmp_path / "checkout-of-a-fix"
    (main / "src").mkdir(parents=True)
    git(main, "init", "-q", "-b", "main")
    git(
        main,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "1",
    )
    git(main, "worktree", "add", "-q", str(linked), "-b", "fix")
    assert repository_name(str(main / "src")) == repository_name(str(linked)) == "checkout"
    deleted = f"{main}/.worktrees/gone"
    assert ProjectNames().name_of(deleted) == "checkout"
    git(main, "remote", "add", "origin", "git@example.org:me/parser.git")
    repository_name.cache_clear()
    assert repository_name(str(linked)) == "parser"


def test_a_project_that_is_named_by_a_hash_or_an_encoded_folder_has_its_name(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "my-app"
    folder.mkdir()
    hashed = hashlib.sha256(str(folder).encode()).hexdigest()
    encoded = str(folder).replace("/", "-").replace("_", "-")
    known = ProjectNames([str(folder), hashed])
    assert {known.name_of(each) for each in (str(folder), hashed, encoded, encoded[1:])} == {
        "my-app"
    }
    assert ProjectNames().name_of(encoded) == "my-app"
    assert ProjectNames().name_of(hashed) == ""
    assert ProjectNames().name_of("-home-me-no-such") == "no-such"


def test_a_folder_of_a_repository_chooses_the_sessions_of_the_repository(
    kept: Talks, tmp_path: Path
) -> None:
    checkout = tmp_path / "elsewhere" / "app"
    (checkout / "src").mkdir(parents=True)
    assert listed(kept, project=str(checkout / "src")) == ()
    git(checkout, "init", "-q")
    repository_name.cache_clear()
    assert [each.id for each in listed(kept, project=str(checkout / "src"))] == [NEW, OLD]


def test_a_name_is_looked_up_again_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [6_000_000.0]
    monkeypatch.setattr(project_names, "monotonic", lambda: now[0])
    folder = tmp_path / "checkout"
    folder.mkdir()
    assert ProjectNames().name_of(str(folder)) == "checkout"
    assert repository_name(str(folder)) == ""
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "git@example.org:me/parser.git")
    assert ProjectNames().name_of(str(folder)) == "checkout"
    now[0] += 60
    assert ProjectNames().name_of(str(folder)) == "parser"
