"""Sessions are answered by the daemon; without one, or by one of before an update, from the archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import pytest
from sample_archive import write_archive

from anchord.config.paths import Paths, find_paths
from anchord.daemon import archive_access as module
from anchord.daemon.archive_access import ask_daemon_or_archive
from anchord.errors import StoreError, UsageError
from anchord.ipc import requests


class Daemon:
    """A daemon that refuses every call."""

    def __init__(self, error: Exception) -> None:
        """Take the error."""
        self._error = error

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    def ask(self, _: object) -> Any:  # noqa: ANN401 - never returns
        """Raise."""
        raise self._error


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    tmp_path.chmod(0o700)
    found = find_paths({"ANCHORD_HOME": str(tmp_path)})
    found.create_folders()
    write_archive(found.archive_file, 60)
    return found


def test_a_daemon_without_the_method_leaves_the_archive_to_be_read(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = Daemon(UsageError("no method `sessions`", "there are: ping"))
    monkeypatch.setattr(module, "try_connect", lambda _: former)
    assert len(ask_daemon_or_archive(paths, requests.sessions(limit=0))) == 3


@pytest.mark.parametrize("error", [UsageError("no date", ""), StoreError("locked", "")])
def test_an_error_of_the_daemon_is_the_answer(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(module, "try_connect", lambda _: Daemon(error))
    with pytest.raises(type(error)):
        ask_daemon_or_archive(paths, requests.sessions())


def test_without_a_daemon_or_an_index_the_archive_answers(paths: Paths) -> None:
    found = ask_daemon_or_archive(paths, requests.sessions(limit=2))
    assert [each.id for each in found] == ["session-0002", "session-0001"]
    whole = ask_daemon_or_archive(paths, requests.session("session-0001", offset=1, limit=2))
    assert (whole.exchange_count, len(whole.exchanges)) == (20, 2)
    with pytest.raises(UsageError, match="no session"):
        ask_daemon_or_archive(paths, requests.session("other"))


def test_without_an_archive_there_is_no_session(tmp_path: Path) -> None:
    paths = find_paths({"ANCHORD_HOME": str(tmp_path)})
    assert ask_daemon_or_archive(paths, requests.sessions()) == ()
