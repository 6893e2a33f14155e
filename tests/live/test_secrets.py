"""H7 of FAULTS.md: logs, status and errors name files, and never contain their text or a query.

Every secret word begins with the same letters, also inside fake keys. Each error of this test
is provoked with such words in the data.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import structlog
from conversations.conftest import claude
from embedding.test_openai_api import Ask, answer, echoing
from faults.service import Service
from ipc.conftest import Running
from live.conftest import Home, until
from live.held import Held
from live.weak import needs_weakness, run_weak

from anchord.cli.output.log import configure_stderr_logging
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import AnchordError
from anchord.store.table.table import LanceStore

MARK = "zyqrdv"
"""The first letters of all secret words, and of no other word."""
SECRETS = (
    "AKIAZYQRDVNN7HOLMWTB",
    f"sk-ant-api03-{MARK}{'Ab3dEf9hIj' * 5}",
    f"ghp_{MARK}{'a1B2c3D4e5' * 3}",
    f"postgres://app:{MARK}hunter2@db.internal/app",
    f"-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7{MARK}\nq3Zx9{MARK}\n-----END RSA PRIVATE KEY-----",
    f'password = "{MARK}hunter2hunter2"',
)
WORDS = f"The {MARK}swordfish clause, and {MARK}nobody's business.\n\n" + "\n\n".join(SECRETS)
QUERIES = (
    f"{MARK}swordfish", f'"{MARK}swordfish clause"', f'"{MARK}', f"-{MARK}", f"{MARK}*", f"*{MARK}*", f"({MARK}", f"{MARK}[",
    f"{MARK}\\", f"'{MARK}' OR 1=1 --", f"{MARK}_name", f"src/{MARK}.py", f"{MARK}\0", f"{MARK}\ud800", f"{MARK}: OR {MARK}",
    f'"{"(" * 500}{MARK}"', f'"{MARK} {"x " * 20_000}"', f"{MARK}" * 20_000, f"+{MARK}^2~", SECRETS[0], SECRETS[4],
)  # fmt: skip
FILTERS: Sequence[dict[str, Any]] = (
    {}, {"mode": "vector"}, {"mode": "text"}, {"mode": MARK}, {"root": MARK}, {"path": f"{MARK}[**"}, {"kind": MARK},
    {"section": f"{MARK} > ("}, {"room": f"{MARK}'"}, {"session": MARK}, {"since": MARK}, {"until": f"2026-{MARK}"},
    {"k": 0}, {"expand": 100_000}, {MARK: 1},
)  # fmt: skip


@pytest.fixture
def held() -> Iterator[Held]:
    """Return a model server that can be blocked."""
    made = Held()
    yield made
    made.stop()


def plant(home: Home, talks: Path) -> None:
    """Write files of all kinds with secret words, many of them broken."""
    book = json.dumps({"cells": [{"cell_type": "markdown", "source": WORDS}], "nbformat": 4})
    for name, data in {
        "good.md": f"# {MARK}title\n\n{WORDS}\n".encode(),
        "latin.md": b"# Caf\xe9\n\n" + WORDS.encode() * 3,
        "nul.md": b"# Nul\0\n\n" + WORDS.encode() * 3,
        "binary.md": b"\0\1\2\3\4\5" * 500 + WORDS.encode(),
        "wide.md": f"# Wide\n\n{WORDS}\n".encode("utf-16"),
        "broken.ipynb": book[:-20].encode(),
        "book.ipynb": book.encode(),
        "huge.md": WORDS.encode() * (1 + 2_000_000 // len(WORDS)),
        "broken.py": f"def {MARK}(:\n    '''{WORDS}\n".encode(),
        "deep.json": b'{"a":' * 50_000 + f'"{MARK}"'.encode(),
        "long.md": f"# Long\n\n{MARK}{'x' * 100_000}\n".encode(),
        ".env": WORDS.encode(),
        f"id_rsa_{MARK}": WORDS.encode(),
        f"node_modules/{MARK}.md": WORDS.encode(),
        "closed.md": WORDS.encode(),
    }.items():
        file = home.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    (home.folder / "closed.md").chmod(0)
    (home.folder / "dangling.md").symlink_to(f"nowhere/{MARK}")
    session = claude((WORDS, f"An answer with {WORDS}"), (f"{MARK}second?", f"{MARK}answer."))
    lines = session.splitlines(keepends=True)
    for name, data in {
        "s1.jsonl": session,
        "broken.jsonl": b"".join(
            [*lines[:2], f'{{"type": "user", "{MARK}": "{MARK}\n'.encode(), *lines[2:]]
        ),
        "odd.json": json.dumps({MARK: WORDS}).encode(),
        "export.json": json.dumps(
            [{"uuid": "c", "name": MARK, "chat_messages": [{"sender": "human", "text": WORDS}]}]
        )[:-9].encode(),
        "torn.zip": b"PK\x03\x04" + WORDS.encode(),
        "state.vscdb": b"SQLite format 3\0" + WORDS.encode() * 20,
        "note.md": f"# Note\n\n{WORDS}\n".encode(),
    }.items():
        (talks / name).write_bytes(data)


def all_output(home: Home) -> str:
    """Return every log, status and error of the daemon, but no search result."""
    logs = [
        file.read_text("utf-8", "replace")
        for file in (home.path / "run.log", *(home.path / "log").glob("*"))
    ]
    said = [
        json.dumps(home.call(method), ensure_ascii=False)
        for method in ("status", "errors", "roots")
    ]
    return "\n".join([*logs, *said])


def printed(home: Home) -> str:
    """Return what commands print about the same."""
    ran = [
        home.command(*command)
        for command in (["status"], ["errors"], ["explain", str(home.folder / "latin.md")])
    ]
    return "\n".join(each.out + each.err for each in ran)


def where(text: str) -> list[str]:
    """Return the lines with a secret word."""
    return [line[:400] for line in text.splitlines() if MARK in line.lower()]


def ask_everything(home: Home, queries: Sequence[str] = QUERIES) -> None:
    """Search for secret words in every way, also with wrong parameters."""
    for query in queries:
        with suppress(AnchordError):
            home.call("search", query=query)
    for filters in FILTERS:
        with suppress(AnchordError):
            home.call("search", query=f"{MARK}swordfish", **filters)
    for method, params in {
        "show": {"id": MARK},
        MARK: {},
        "sync": {"timeout": MARK},
        "rescan": {"name": MARK},
    }.items():
        with suppress(AnchordError):
            home.call(method, **params)


def garbled(ask: Ask) -> None:
    """Answer with the request's texts and no vectors."""
    ask.send(200, json.dumps({"data": [{"embedding": ask.texts, "index": MARK}]}).encode())


@pytest.mark.slow
@needs_weakness
def test_h7_whatever_goes_wrong_no_content_no_secret_and_no_query_is_reported(
    home: Home, held: Held, tmp_path: Path
) -> None:
    talks = tmp_path / "talks"
    talks.mkdir()
    plant(home, talks)
    (home.path / "config.toml").write_text(
        f'{held.settings}[[root]]\npath = "{talks}"\nkind = "conversations"\n'
    )
    held.way = echoing(500)
    run_weak(home)
    until(lambda: "no vectors can be made" in " ".join(home.status()["degraded"]))
    ask_everything(home, QUERIES[:2])
    assert where(all_output(home)) == []
    held.way = garbled
    home.write("good.md", f"# {MARK}title\n\n{WORDS} And {MARK}more.\n")
    ask_everything(home, QUERIES[:2])
    assert where(all_output(home)) == []
    held.way = lambda ask: (
        echoing(400) if any(f"{MARK}second" in text for text in ask.texts) else answer
    )(ask)
    home.call("sync")
    for name in (
        "broken.jsonl",
        "export.json",
    ):  # They are named only if they were read, which happened while the model failed.
        (talks / name).touch()
    home.call("sync")
    named = {Path(failure["path"]).name for failure in home.status()["failed"]}
    assert {
        "latin.md",
        "nul.md",
        "binary.md",
        "broken.ipynb",
        "huge.md",
        "closed.md",
        "dangling.md",
    } <= named
    assert {"broken.jsonl", "odd.json", "export.json", "torn.zip", "state.vscdb"} <= named
    assert "good.md" in home.found(f"{MARK}swordfish")
    assert any("[REDACTED:" in row["text"] for row in home.dump()), (
        "the secrets of what was said are gone, so they were seen"
    )
    ask_everything(home)
    home.command("search", f"{MARK}swordfish")
    assert where(printed(home)) == []
    home.call("forget", path=str(home.folder / "latin.md"))
    home.call("verify")
    assert where(all_output(home)) == []
    assert home.terminate() == 0
    assert where((home.path / "run.log").read_text("utf-8", "replace")) == []


# Unexpected errors


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Have the log written as the daemon writes it, to where a test can read it."""
    written = io.StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", written)
        configure_stderr_logging()
    yield written
    structlog.reset_defaults()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a service that is not started."""
    made = Service(tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize(("holder", "method"), [(HashEmbedder, "embed"), (LanceStore, "upsert")])
def test_h7_an_exception_of_a_library_that_quotes_what_it_was_given_is_logged_without_it(
    service: Service, log: io.StringIO, monkeypatch: pytest.MonkeyPatch, holder: type, method: str
) -> None:
    def quoting(_: object, given: Sequence[object], *__: object, **___: object) -> None:
        raise TypeError(f"cannot convert {given[0]!r}")

    monkeypatch.setattr(holder, method, quoting)
    service.write("a.md", f"# A\n\n{WORDS}\n")
    service.start()
    until(lambda: "TypeError" in service.reasons())
    assert where(service.reasons()) == []
    service.stop()
    assert "writer.step_failed" in log.getvalue()
    assert where(log.getvalue()) == []


def test_h7_a_method_that_breaks_over_a_query_is_logged_without_it(log: io.StringIO) -> None:
    with tempfile.TemporaryDirectory(prefix="h7-", dir="/tmp") as folder:
        running = Running(Path(folder) / "s")
        try:
            with running.talk() as talk:
                assert "error" in talk.ask("broken")
        finally:
            running.stop()
    assert "socket.failed" in log.getvalue()
    assert "the words of a document" not in log.getvalue()


def test_h7_a_daemon_in_the_background_writes_its_log_for_its_owner_alone_and_without_content(
    home: Home,
) -> None:
    home.write("a.md", f"# A\n\n{WORDS}\n")
    assert home.anchord("start", str(home.folder)).returncode == 0
    try:
        home.call("sync")
        ask_everything(home)
        limits = Path(f"/proc/{home.call('status')['pid']}/limits")
        if (
            limits.exists()
        ):  # A core dump would contain everything; child processes inherit this limit.
            assert re.search(r"Max core file size +0 ", limits.read_text())
    finally:
        assert home.anchord("stop").returncode == 0
    log = home.path / "log" / "anchord.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert where(log.read_text()) == []
