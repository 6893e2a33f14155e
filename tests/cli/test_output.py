"""Printed results, live status and manual: lines fit 80 columns and contain no escape sequences."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from sample_messages import message
from syrupy.assertion import SnapshotAssertion

from anchord.cli.output.dashboard import build_dashboard
from anchord.cli.output.editor import editor_arguments, open_in_editor
from anchord.cli.output.search_results import Window, passage_lines, search_lines
from anchord.cli.output.status_text import progress_lines
from anchord.cli.output.wrapping import wrap
from anchord.core.quoting import sanitize_line
from anchord.errors import UsageError
from anchord.ipc.messages.searching import Passage
from anchord.ipc.messages.status import StatusAnswer


def hit(text: str = "the text", **more: Any) -> Passage:  # noqa: ANN401 - any field
    fields = {
        "id": "0123456789abcdef", "score": 0.5, "cosine": 0.61, "cosine_rank": 2, "bm25": None, "bm25_rank": None,
        "exact": False, "named": False,
        "matched": [], "root": "r", "path": "a.md", "file": "/home/me/notes/a.md", "section": "A > B", "start_line": 3,
        "end_line": 9, "text": text, **more,
    }  # fmt: skip
    return message(Passage, fields)


def shown(
    *groups: list[Passage], explain: bool = False, columns: int | None = 80, rows: int | None = None
) -> list[str]:
    """Return the lines as a terminal shows them."""
    window = Window(columns, rows)
    return [
        Text.from_markup(line).plain
        for line in search_lines(groups, "/home/me", window, with_explanations=explain)
    ]


@given(
    st.text(max_size=300),
    st.text(max_size=200),
    st.lists(st.text(min_size=1, max_size=9), max_size=4),
    st.booleans(),
)
def test_results_fit_80_columns_whatever_is_in_them(
    text: str,
    section: str,
    matched: list[str],
    explain: bool,  # noqa: FBT001 - drawn
) -> None:
    one = hit(text.replace("\r", ""), section=" ".join(section.split()), matched=matched)
    lines = shown([one, hit(start_line=20, end_line=30)], explain=explain)
    assert all(len(line) <= 80 for line in lines if "matched:" not in line)


def test_a_result_has_its_place_its_section_and_the_beginning_of_its_id() -> None:
    assert shown([hit()])[0] == "notes/a.md:3  A > B  0.50 01234567"


def test_a_long_section_stands_below() -> None:
    first, second, *_ = shown([hit(section="A very long heading of a section " * 3)])
    assert first == "notes/a.md:3  0.50 01234567"
    assert second.startswith("    A very long heading")


def test_the_excerpt_is_where_most_of_the_words_are_and_they_are_marked() -> None:
    text = (
        "\n".join(f"line {n}" for n in range(20)) + "\nhere are the onions\nand onions again\nend"
    )
    lines = list(search_lines([[hit(text, matched=["onions"])]], "/"))
    assert "[bold yellow]onions[/]" in "\n".join(lines)
    assert "    and onions again" in [Text.from_markup(line).plain for line in lines]
    assert Text.from_markup(lines[1]).plain.startswith("    … line 19")


def test_a_long_line_is_broken_between_words_so_that_what_matched_is_seen() -> None:
    lines = shown([hit("word " * 60 + "onions at the end", matched=["onions"])])
    assert any("onions at the end" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)


def test_a_word_is_not_marked_within_another() -> None:
    lines = "\n".join(search_lines([[hit("art and party", matched=["art"])]], "/"))
    assert lines.count("[bold yellow]") == 1


def test_a_place_links_to_its_file_and_line_where_the_terminal_has_links() -> None:
    (line, *_) = search_lines([[hit(file="/home/me/my notes/a.md")]], "/home/me")
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    console.print(line)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert "\x1b]8;" in printed
    assert "file:///home/me/my%20notes/a.md#3" in printed


def test_explain_says_how_each_hit_was_found() -> None:
    best = hit(bm25=7.25, bm25_rank=4, exact=True, matched=["parse_config"])
    lines = shown([best, hit(cosine_rank=None, cosine=None, bm25=1.0, bm25_rank=9)], explain=True)
    assert (
        "  meaning: cosine 0.610, no. 2; words: BM25 7.25, no. 4; contains the identifier exactly; matched: parse_config"
        in lines
    )
    assert "  not by meaning; words: BM25 1.00, no. 9" in lines


def test_a_text_cannot_forge_how_it_was_found() -> None:
    forged = "meaning: cosine 0.999, no. 1; words: BM25 99.00, no. 1; matched: forged"
    lines = shown([hit(text=f"{forged}\n  {forged}")], explain=True)
    assert [line for line in lines if line.startswith("  meaning: ")] == [
        line for line in lines if "0.610" in line
    ]


# The window

LINES = "\n".join(
    f"Line {n} tells of onions, of soup and of what is cooked slowly." for n in range(40)
)
WIDE = "\N{CJK UNIFIED IDEOGRAPH-4E2D}\N{CJK UNIFIED IDEOGRAPH-6587}"
COPY = {"root": "r", "path": "b.md", "file": "/home/me/copy/b.md", "start_line": 7, "end_line": 9}


def results() -> list[list[Passage]]:
    """Return twelve files: the first has a long text and copies, the second a wide one."""
    best = hit(LINES, matched=["onions", "soup"], match_line=23, also_at=[COPY] * 9)
    wide = hit(WIDE * 90, file=f"/home/me/{WIDE}.md", section=WIDE * 40)
    others = [hit(LINES[:200], file=f"/home/me/notes/{n}.md") for n in range(10)]
    return [[best, hit(start_line=50, end_line=60)], [wide], *([each] for each in others)]


@pytest.mark.parametrize("columns", [60, 100])
def test_results_in_a_window(columns: int, snapshot: SnapshotAssertion) -> None:
    lines = shown(*results(), columns=columns, rows=38)
    assert all(cell_len(line) <= columns for line in lines)
    assert len(lines) <= 38
    assert "\n".join(lines) == snapshot


@given(st.integers(1, 12), st.integers(6, 60), st.integers(40, 120))
def test_results_fit_any_window_and_the_best_has_text(count: int, rows: int, columns: int) -> None:
    groups = results()[:count]
    lines = shown(*groups, columns=columns, rows=rows)
    assert len(lines) <= max(rows, 9)
    assert all(cell_len(line) <= columns for line in lines)
    assert any("onions" in line for line in lines[:8])
    heads = sum(line.endswith(" 0.50 01234567") and "also" not in line for line in lines)
    omitted = count - heads
    assert bool(omitted) == any(line.startswith(f"and {omitted} more (") for line in lines)


def test_elsewhere_no_line_is_wrapped_and_nothing_left_out() -> None:
    lines = shown([hit("word " * 400, section="Heading " * 40)] * 6, columns=None)
    assert "    " + "word " * 400 in lines
    assert any(len(line) > 300 and "Heading Heading" in line for line in lines)


def test_the_place_is_the_line_of_the_match() -> None:
    (line, *_) = shown([hit(match_line=8)])
    assert line.startswith("notes/a.md:8  ")


def test_the_end_of_a_long_path_is_shown() -> None:
    (line, *_) = shown([hit(file="/home/me/" + "folder/" * 40 + "file.md")], columns=60)
    assert line.startswith("…")
    assert "folder/file.md:3  0.50 01234567" in line


def test_a_budget_shows_whole_texts() -> None:
    lines = list(passage_lines([[hit(LINES), hit("short")]], "/home/me", Window(70)))
    assert sum("onions" in line for line in lines) == 40
    assert "    short" in lines


@given(st.text(max_size=200), st.integers(4, 60))
def test_wrapping_loses_no_character_and_splits_no_wide_one(text: str, width: int) -> None:
    line = " ".join(text.split())
    pieces = list(wrap(line, width))
    assert all(cell_len(piece) <= width for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(sanitize_line(line).split())


# Editors


@pytest.mark.parametrize(
    ("command", "called"),
    [
        ("vi", ["vi", "+7", "a b.md"]),
        ("nvim -R", ["nvim", "-R", "+7", "a b.md"]),
        ("/usr/bin/code --wait", ["/usr/bin/code", "--wait", "--goto", "a b.md:7"]),
        ("hx", ["hx", "a b.md:7"]),
        ("emacs -nw", ["emacs", "-nw", "+7", "a b.md"]),
    ],
)
def test_each_editor_is_called_its_own_way(command: str, called: list[str]) -> None:
    assert editor_arguments(command, "a b.md", 7) == called


def test_what_stands_in_no_file_cannot_be_opened() -> None:
    with pytest.raises(UsageError, match="conversation"):
        open_in_editor(hit(session="s"))


def test_the_editor_opens_at_the_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    open_in_editor(hit(match_line=8))
    assert (tmp_path / "opened").read_text() == "+8\n"


def test_an_editor_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    with pytest.raises(UsageError, match="/no/such/editor"):
        open_in_editor(hit())


# The live status

REPORT: dict[str, Any] = {
    "state": "indexing", "degraded": [], "version": "0.1.0", "pid": 7, "uptime_s": 90.0, "files": 3, "pending": 2,
    "left_s": 4.0,
    "waiting": [{"root": "notes", "path": "new.md", "why": "saved"},
                {"root": "notes", "path": "old.md", "why": "found by a walk"}],
    "recent": [{"root": "notes", "path": "a.md", "action": "indexed", "reason": "its size changed", "kept": 11, "moved": 3,
                "embedded": 1, "reused": 0, "deleted": 1, "age_s": 1.5}],
    "roots": [{"name": "notes", "path": "/home/me/notes", "state": "indexing", "files": 3, "chunks": 12, "watching": True,
               "watches": 2, "polled_dirs": 0}],
    "failed": [{"path": "/home/me/notes/x.md", "reason": "not UTF-8"}], "embedded_total": 13, "reused_total": 2,
    "commits_total": 5,
    "last_event_age_s": 0.5, "last_commit_age_s": 1.0, "last_verified_age_s": None, "latency_ms": {"p50": 250.0, "p95": 400.0},
    "embedder": {"state": "ready", "model": "all-MiniLM-L6-v2", "rate": 70.0},
    "store": {"rows": 12, "fragments": 2, "bytes": 90_000},
    "rss_bytes": 250_000_000, "cpu_s": 3.0,
}  # fmt: skip


def drawn(report: dict[str, Any]) -> str:
    """Return the view as 100 columns show it."""
    console = Console(file=io.StringIO(), width=100)
    console.print(build_dashboard(message(StatusAnswer, report)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_view_shows_roots_queue_changes_with_their_cost_and_failures() -> None:
    view = drawn(REPORT)
    for part in (
        "indexing",
        "2 files wait",
        "new.md",
        "found by a walk",
        "its size changed",
        "not UTF-8",
        "70 texts/s",
    ):
        assert part in view
    (edit,) = [line for line in view.splitlines() if "its size changed" in line]
    assert edit.split()[3:] == [
        "a.md",
        "indexed",
        "11",
        "3",
        "1",
        "0",
        "1",
        "its",
        "size",
        "changed",
    ]
    assert max(len(line) for line in view.splitlines()) <= 100


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({}, ["words: 12 chunks of 3 files so far; 2 files wait, about 4.0 s left"]),
        (
            {"pending": 0, "chunks": 4_000, "without_vector": 1_000, "vectors_left_s": 300.0},
            ["meaning: 3,000 of 4,000 chunks so far, about 5 min left"],
        ),
        (
            {
                "left_s": None,
                "without_vector": 12,
                "embedder": {"state": "preparing", "model": "m"},
            },
            [
                "words: 12 chunks of 3 files so far; 2 files wait",
                "meaning: 0 of 12 chunks so far",
                "preparing the model for this machine: once, about 15 s",
            ],
        ),
        ({"pending": 0}, []),
    ],
)
def test_the_status_says_what_words_and_meaning_find_so_far(
    changed: dict[str, Any], lines: list[str]
) -> None:
    report = message(StatusAnswer, {**REPORT, "chunks": 12, **changed})
    assert list(progress_lines(report)) == lines


def test_a_degraded_state_says_why_and_an_idle_one_has_no_queue() -> None:
    assert "the disk is full" in drawn(
        REPORT | {"state": "degraded", "degraded": ["the disk is full"]}
    )
    idle = drawn(
        REPORT | {"state": "idle", "pending": 0, "waiting": [], "failed": [], "recent": []}
    )
    assert "wait" not in idle
    assert "last changes" not in idle


@pytest.mark.parametrize(
    "text",
    ["\u0645\u06cc\u200c\u062e\u0648", "\u0915\u094d\u200d\u0937", "\U0001f469\u200d\U0001f4bb"],
)
def test_joiners_that_belong_to_the_spelling_are_shown(text: str) -> None:
    assert sanitize_line(text) == text


def test_a_name_cannot_steer_the_terminal_or_pass_for_markup() -> None:
    odd = REPORT["recent"][0] | {"path": "\x1b[31m[red]x[/]\n.md"}
    view = drawn(REPORT | {"recent": [odd]})
    assert "\x1b" not in view
    assert "[red]x" in view


# The manual


@pytest.mark.skipif(
    shutil.which("groff") is None and shutil.which("mandoc") is None,
    reason="neither groff nor mandoc is installed",
)
def test_the_manual_is_read_without_a_complaint(tmp_path: Any) -> None:  # noqa: ANN401 - a path
    from typer.main import get_command  # noqa: PLC0415 - only here

    from anchord.cli.commands.man_page import man_page_lines  # noqa: PLC0415 - likewise
    from anchord.cli.loading import load_commands  # noqa: PLC0415 - likewise
    from anchord.cli.typer_app import build  # noqa: PLC0415 - likewise

    lines = man_page_lines(get_command(build(load_commands(["man"]))))
    file = tmp_path / "anchord.1"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    reader = (
        ["groff", "-man", "-Tutf8", "-ww", str(file)]
        if shutil.which("groff")
        else ["mandoc", "-Tlint", str(file)]
    )
    ran = subprocess.run(reader, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
