"""What the commands print, with a daemon and without one: `shell` is both in turn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import shellingham
from cli.conftest import CATS, Printed, Shell
from pyarrow import parquet

from anchord.cli.completion import _TAKE_THE_NAME
from anchord.ipc.messages.chunks import ChunkAnswer

_ROW = list(ChunkAnswer.__struct_fields__)
_HIT = {
    *_ROW, "score", "confidence", "confidence_parts", "cosine", "cosine_rank", "bm25", "bm25_rank", "exact", "named", "matched", "ids",
    "match_line", "also_at", "date", "recency", "heading",
}  # fmt: skip
_STATUS = {
    "state", "degraded", "pid", "uptime_s", "version", "recipe", "roots", "files", "chunks", "pending", "failed",
    "embedded_total", "reused_total", "commits_total", "overflows", "reconciles", "last_event_age_s", "last_commit_age_s",
    "last_verified_age_s", "latency_ms", "embedder", "store", "rss_bytes", "cpu_s",
}  # fmt: skip
_ROOT = {
    "name",
    "path",
    "kind",
    "state",
    "files",
    "chunks",
    "skipped",
    "watching",
    "watches",
    "polled_dirs",
}
_LONG = "# Long\n\n" + "\n".join(
    f"## Part {n}\n\n"
    + " ".join(f"Sentence {m} of part {n} tells about matter {n * 31 + m}." for m in range(12))
    + "\n"
    for n in range(6)
)
_FILES: dict[str | bytes, str | bytes] = {
    "cats.md": CATS,
    "deep/money talk.md": "# Interest\n\n## Rates\n\nThe central bank raised its rates.\n",
    "long.md": _LONG,
    "tool.py": "def main():\n    return 'wrench'\n",
    "zürich ☃.md": "# Zürich\n\nEin Schneemann.\n",
    "two\nlines.md": "# Newline\n\nA gnu.\n",
    "red\x1b[31m.md": "# Escape\n\nA quagga, [bold]not markup[/bold], \x1b[31mred.\n",
    b"bad\xff.md": "# Bytes\n\nA zebra.\n",
    "noise\x1b[31m\n.md": bytes(range(256)) * 16,
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return a shell with an index of the files above, and a daemon."""
    made = _indexed(Shell(tmp_path_factory.mktemp("c")))
    with made.daemon():
        assert made("sync").code == 0
        yield made


@pytest.fixture(scope="module", params=["index", "daemon"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a shell with the same files, without and with a daemon."""
    if request.param == "index":
        return _indexed(Shell(tmp_path_factory.mktemp("c")))
    running: Shell = request.getfixturevalue("running")
    return running


def _indexed(shell: Shell) -> Shell:
    for name, text in _FILES.items():
        shell.write(name, text)
    shell.configure("[[root]]", f'path = "{shell.notes}"')
    assert shell("index").code == 0
    return shell


def _hits(printed: Printed) -> list[dict[str, Any]]:
    return [hit for group in printed.json["groups"] for hit in group]


def test_search_gives_groups_of_hits_with_the_names_of_the_interface(shell: Shell) -> None:
    found = shell("search", "kitten", "--json").json
    assert (found["query"], found["mode"]) == ("kitten", "hybrid")
    (best, *_) = found["groups"][0]
    assert set(best) == _HIT
    assert (best["path"], best["root"], best["kind"], best["start_line"]) == (
        "cats.md",
        "notes",
        "markdown",
        1,
    )
    assert best["file"] == str(shell.notes / "cats.md")


def test_what_is_found_says_how_surely_it_is_about_the_query(shell: Shell) -> None:
    found = shell("search", "kitten sofa", "--json").json
    assert found["about"]
    best = found["groups"][0][0]
    assert best["confidence"] == "strong"
    assert best["confidence_parts"] == {
        "score": 1.0,
        "meaning": None,
        "words": 1.0,
        "all_words": 1.0,
    }
    explained = shell("search", "kitten sofa", "--explain").out
    assert "  strong 1.00 (100% of the words, 100% in the best hits); meaning: cosine" in explained


def test_for_a_word_that_nothing_has_the_nearest_three_are_shown_and_marked(shell: Shell) -> None:
    found = shell("search", "xqzzyvra", "--json").json
    assert not found["about"]
    assert len(found["groups"]) == 3
    assert {hit["confidence"] for group in found["groups"] for hit in group} == {"weak"}
    printed = shell("search", "xqzzyvra")
    assert printed.code == 0
    assert "Nothing here seems to be about this. Nearest:" in printed.err
    assert printed.out.count("weak 0.") >= 1
    assert shell("search", "xqzzyvra", "--mode", "text", "--json").json["groups"] == []


def test_a_term_quoted_in_a_question_excludes_nothing_and_a_query_in_quotes_does(
    shell: Shell,
) -> None:
    paths = {
        hit["path"] for hit in _hits(shell("search", 'where is the "kitten" or a wrench', "--json"))
    }
    assert {"cats.md", "tool.py"} <= paths
    assert [hit["path"] for hit in _hits(shell("search", '"kitten sleeps"', "--json"))] == [
        "cats.md"
    ]


def test_a_phrase_that_too_little_has_is_relaxed_and_the_note_says_so(shell: Shell) -> None:
    found = shell("search", 'wrench "kitten sleeps"', "--json").json
    assert found["note"].startswith(
        'only 1 chunk contains "kitten sleeps": hits without it are shown too'
    )
    assert {"cats.md", "tool.py"} <= {hit["path"] for group in found["groups"] for hit in group}


def test_search_prints_where_the_best_chunk_stands_seen_from_here(shell: Shell) -> None:
    printed = shell("search", "kitten", "--mode", "text", cwd=shell.notes)
    assert printed.code == 0
    assert printed.out.startswith("cats.md:3  Cats  ")
    assert "    The kitten sleeps on the sofa.\n" in printed.out
    assert shell("search", "kitten", "--mode", "text").out.startswith("notes/cats.md:3  ")


def test_every_chunk_of_a_file_is_in_one_group_and_show_chunks_makes_the_list_flat(
    shell: Shell,
) -> None:
    grouped = shell("search", "sentence part matter", "--mode", "text", "--json").json["groups"]
    assert len(grouped) == 1
    assert len(grouped[0]) > 1
    assert {hit["path"] for hit in grouped[0]} == {"long.md"}
    flat = shell(
        "search", "sentence part matter", "--mode", "text", "--show-chunks", "--json"
    ).json["groups"]
    assert [len(group) for group in flat] == [1] * len(grouped[0])
    assert {hit["id"] for hit in grouped[0]} == {hit["id"] for (hit,) in flat}
    scores = [hit["score"] for (hit,) in flat]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
def test_each_mode_finds_the_words_and_k_bounds_the_files(shell: Shell, mode: str) -> None:
    found = shell(
        "search", "The central bank raised its rates", "--mode", mode, "-k", "1", "--json"
    ).json
    assert len(found["groups"]) == 1
    assert found["groups"][0][0]["path"] == "deep/money talk.md"


def test_a_filter_lets_through_what_it_names(shell: Shell) -> None:
    for option, value, path in (
        ("--path", "deep/*", "deep/money talk.md"),
        ("--kind", "code", "tool.py"),
        ("--section", "Long > Part 3", "long.md"),
        ("--path", "o'hara", ""),
        ("--section", "100%_\\", ""),
    ):
        found = _hits(shell("search", "rates wrench kitten matter", option, value, "--json"))
        assert {hit["path"] for hit in found} == ({path} if path else set()), (option, value)


@pytest.mark.parametrize("name", ["python", "Python", "py", "python3"])
def test_code_is_found_by_any_name_of_its_language_in_files_and_in_code_blocks(
    shell: Shell, name: str
) -> None:
    notes = {
        "how.md": "# How\n\n```lua\nwrench()\n```\n\n```py\nwrench()\n```\n",
        "go.md": "# Go\n\n```go\nwrench()\n```\n",
        "open.md": "# Open\n\n```python3\nwrench()\n",
        "q.sql": "select wrench from tools;\n",
    }
    for file, text in notes.items():
        (shell.notes / file).write_text(text)
    assert shell("index").code == 0
    hits = _hits(shell("search", "wrench", "--lang", name, "--show-chunks", "--json"))
    for file in notes:
        (shell.notes / file).unlink()
    assert shell("index").code == 0
    languages = {hit["path"]: hit["language"] for hit in hits}
    assert languages == {"how.md": "lua py", "open.md": "python3", "tool.py": "python"}


def test_each_hit_says_what_its_chunk_is(shell: Shell) -> None:
    described = {chunk["id"]: chunk for chunk in shell("chunk", "notes/cats.md", "--json").json}
    hits = _hits(shell("search", "kitten", "--path", "cats.md", "--show-chunks", "--json"))
    assert hits
    for hit in hits:
        chunk = described[hit["id"]]
        for name in ("chunk_type", "language", "level", "token_count"):
            assert hit[name] == chunk[name]
    found = _hits(shell("search", "kitten", "--type", "section", "--json"))
    assert {hit["chunk_type"] for hit in found} == {"section"}
    assert _hits(shell("search", "kitten", "--type", "table", "--json")) == []


def test_files_are_found_by_when_they_changed(shell: Shell) -> None:
    os.utime(shell.notes / "cats.md", ns=(0, 1_600_000_000 * 10**9))  # 2020-09-13
    assert shell("index").code == 0
    for since, until, is_found in (
        ("2020-09-01", "2020-10-01", True),
        ("2020-09-13T12:26:41", "", False),
        ("", "2020-09-13", True),
        ("", "2020-09-12", False),
    ):
        options = [*(("--since", since) if since else ()), *(("--until", until) if until else ())]
        hits = _hits(shell("search", "kitten", *options, "--json"))
        assert ("cats.md" in {hit["path"] for hit in hits}) is is_found, options


@pytest.mark.parametrize(
    ("path", "here", "found"),
    [
        ("deep", "", {"deep/money talk.md"}),
        ("deep/", "", {"deep/money talk.md"}),
        (".", "notes/deep", {"deep/money talk.md"}),
        ("./deep", "notes", {"deep/money talk.md"}),
        ("../cats.md", "notes/deep", {"cats.md"}),
        ("~/notes/deep", "", {"deep/money talk.md"}),
        ("./*.py", "notes", {"tool.py"}),
        ("notes/deep/money talk.md", "", {"deep/money talk.md"}),
        ("notes/deep", "", {"deep/money talk.md"}),
        ("deep", "notes", {"deep/money talk.md"}),
        ("home", "", set()),
        ("~/elsewhere", "", set()),
        ("/deep", "", {"deep/money talk.md"}),
    ],
)
def test_a_place_as_it_is_seen_from_here_is_a_filter_too(
    shell: Shell, path: str, here: str, found: set[str]
) -> None:
    hits = _hits(
        shell(
            "search", "rates wrench kitten matter", "--path", path, "--json", cwd=shell.base / here
        )
    )
    assert {hit["path"] for hit in hits} == found


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("kitten", "--kind", "MARKDOWN"), "use one of markdown, "),
        (("kitten", "--kind", "x' OR '1'='1"), "no kind"),
        (("kitten", "--type", "code"), "use one of section, text, code_block, table, list"),
        (
            ("kitten", "--since", "2027-01-01", "--until", "2026-01-01"),
            '"2027-01-01" (since) is not before "2026-01-01" (until)',
        ),
    ],
)
def test_a_search_that_can_find_nothing_is_refused(
    shell: Shell, arguments: tuple[str, ...], reason: str
) -> None:
    refused = shell("search", *arguments)
    assert refused.code == 2
    assert reason in refused.err


def test_the_editor_opens_beside_json_too(shell: Shell) -> None:
    editor = shell.base / "editor.sh"
    editor.write_text(f'#!/bin/sh\necho "$@" > {shell.base}/opened\n')
    editor.chmod(0o700)
    found = shell("search", "kitten", "--json", "--open", EDITOR=str(editor), VISUAL="").json
    assert found["groups"]
    line, file = (shell.base / "opened").read_text().split()
    assert (line, Path(file).name) == ("+3", "cats.md")


def test_the_live_status_is_no_json(shell: Shell) -> None:
    refused = shell("status", "--watch", "--json")
    assert refused.code == 2
    assert "--watch cannot be combined with --json" in refused.err


def test_explain_takes_no_folder(shell: Shell) -> None:
    answer = shell("explain", str(shell.notes / "deep"), "--json").json
    assert (answer["indexed"], answer["rule"]) == (False, 'is a folder of the root "notes"')


def test_the_folder_of_a_root_is_all_of_it(shell: Shell) -> None:
    everything = _hits(shell("search", "rates wrench kitten matter", "--json"))
    whole = _hits(shell("search", "rates wrench kitten matter", "--path", "~/notes", "--json"))
    assert everything
    assert [hit["id"] for hit in whole] == [hit["id"] for hit in everything]


def test_a_search_without_a_result_succeeds_and_prints_nothing_on_standard_output(
    shell: Shell,
) -> None:
    printed = shell("search", "xyzzyplugh", "--mode", "text")
    assert (printed.code, printed.out) == (0, "")
    is_live = shell("status").code == 0
    assert printed.err.splitlines()[-1] == ("nothing found" if is_live else "nothing found so far")
    assert shell("search", "xyzzyplugh", "--mode", "text", "--json").json["groups"] == []


@pytest.mark.parametrize("mode", ["hybrid", "vector", "text"])
@pytest.mark.parametrize("query", ["", "  \n\t", '"', "' '"])
def test_a_query_without_any_character_to_search_for_is_refused(
    shell: Shell, mode: str, query: str
) -> None:
    shell("search", query, "--mode", mode).is_refused(2, "the query is empty")


def test_a_query_is_text_and_no_syntax(shell: Shell) -> None:
    for query in (
        "a AND (b OR",
        "kitten*^~:",
        "[red]kitten[/]",
        "--",
        "'; DROP TABLE chunks; --",
        "☃" * 3000,
        "a\0b",
    ):
        assert shell("search", "--json", "--", query).json["query"] == query
        shell("search", "--", query).is_calm(0)


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "\udcff"),
        ("search", "\udcff", "--json"),
        ("search", "x", "--path", "\udcff*"),
        ("show", "\udcff"),
    ],
)
def test_arguments_that_are_no_utf8_end_in_no_traceback(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    shell(*arguments).is_calm(0, 2)


def test_what_is_not_there_is_refused_with_what_there_is(shell: Shell) -> None:
    shell("search", "x", "--mode", "psychic").is_refused(2, "hybrid, vector, text")
    shell("search", "x", "--root", "nowhere").is_refused(2, 'there are: "notes"')
    shell("remove", "nowhere").is_refused(2, 'there are: "notes"')
    for digits in ("f" * 32, "", "%", "x' OR '1'='1"):
        shell("show", digits).is_refused(2, "no chunk")


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "kitten", "-k"),
        ("show", "ID", "--context"),
        ("verify", "--vectors"),
        ("sync", "--timeout"),
    ],
)
@pytest.mark.parametrize("digits", [30, 5000])
def test_a_number_beyond_all_measure_is_a_wrong_call_or_a_large_number(
    running: Shell, arguments: tuple[str, ...], digits: int
) -> None:
    chunk = _dumped(running)[0]["id"]
    running(*[chunk if word == "ID" else word for word in arguments], "9" * digits).is_calm(0, 2)


def test_a_context_beyond_all_measure_without_a_daemon_is_no_crash(shell: Shell) -> None:
    shell("show", _dumped(shell)[0]["id"], "--context", "9" * 30).is_calm(0, 2)


def _dumped(shell: Shell) -> list[dict[str, Any]]:
    printed = shell("dump")
    assert (printed.code, printed.err) == (0, "")
    return [json.loads(line) for line in printed.out.splitlines()]


def test_dump_prints_a_row_a_line_with_the_names_of_the_interface_sorted(shell: Shell) -> None:
    rows = _dumped(shell)
    assert all(list(row) == _ROW for row in rows)
    places = [(row["root"], row["path"], row["start_line"]) for row in rows]
    assert places == sorted(places)
    assert {row["path"] for row in rows} == {
        "cats.md", "deep/money talk.md", "long.md", "tool.py", "zürich ☃.md", "two\nlines.md", "red\x1b[31m.md",
        "bad\\xff.md",
    }  # fmt: skip


def test_show_finds_a_chunk_by_the_first_digits_of_its_id(shell: Shell) -> None:
    row = next(row for row in _dumped(shell) if row["path"] == "cats.md")
    shown = shell("show", row["id"][:12], "--json").json
    chunk = row | {"file": str(shell.notes / "cats.md")}
    assert shown == {
        "id": row["id"],
        "chunks": [chunk],
        "previous": None,
        "next": None,
        "conversation": None,
        "replaced": None,
    }
    assert shell("show", row["id"].upper(), "--json").json == shown
    printed = shell("show", row["id"])
    shown_text = "    # Cats\n\n    The kitten sleeps on the sofa.\n"
    assert printed.out == f"notes:cats.md:1-3  Cats  {row['id']}\n{shown_text}"


def test_show_gives_neighbours_and_the_whole_file_in_order(shell: Shell) -> None:
    rows = [row for row in _dumped(shell) if row["path"] == "long.md"]
    rows = [row | {"file": str(shell.notes / "long.md")} for row in rows]
    middle = rows[len(rows) // 2]
    assert shell("show", middle["id"], "--whole", "--json").json["chunks"] == rows
    at = rows.index(middle)
    around = shell("show", middle["id"], "--context", "1", "--json").json
    assert around["chunks"] == rows[at - 1 : at + 2]
    assert (around["previous"], around["next"]) == (rows[at - 2]["id"], rows[at + 2]["id"])


def test_text_of_a_file_is_printed_as_it_is_without_what_steers_a_terminal(shell: Shell) -> None:
    printed = shell("search", "quagga", "--mode", "text")
    assert "[bold]not markup[/bold]" in printed.out
    assert "\x1b" not in printed.out


def test_explain_tells_why_for_an_absolute_a_relative_and_a_home_path(shell: Shell) -> None:
    answer = shell("explain", str(shell.notes / "cats.md"), "--json").json
    assert answer["indexed"] is True
    assert (answer["root"], answer["chunks"], answer["problem"]) == ("notes", 1, None)
    assert {"path", "rule", "decision", "reason", "last_reason"} <= set(answer)
    assert shell("explain", "cats.md", "--json", cwd=shell.notes).json == answer
    assert shell("explain", "~/notes/../notes/cats.md", "--json").json == answer
    human = shell("explain", "notes/cats.md")
    assert human.out.startswith(f"indexed  {shell.notes / 'cats.md'}\n")
    assert '  root  "notes": 1 chunks by the strategy anchored' in human.out
    assert f"  rule  {answer['rule']}\n" in human.out
    assert "\n  now   " in human.out
    away = shell("explain", "/")
    assert away.out.splitlines() == [
        "not indexed  /",
        "  is in no indexed folder: `anchord add FOLDER` adds its folder",
    ]


def test_explain_says_that_a_path_is_not_indexed(shell: Shell) -> None:
    for name in ("nothing.md", "../other.md", ".", "two\nlines.md/x"):
        assert shell("explain", name, "--json", cwd=shell.notes).json["indexed"] is False
    shell("explain", "").is_calm(0, 2)


@pytest.mark.parametrize(
    "name", ["deep/money talk.md", "zürich ☃.md", "two\nlines.md", "bad\udcff.md"]
)
def test_explain_knows_files_of_every_name(shell: Shell, name: str) -> None:
    assert shell("explain", os.path.join(shell.notes, name), "--json").json["indexed"] is True


def test_a_file_that_could_not_be_indexed_is_explained_and_listed_with_its_reason(
    shell: Shell,
) -> None:
    answer = shell("explain", "notes/noise\x1b[31m\n.md", "--json").json
    assert (answer["indexed"], answer["problem"]) == (False, "binary content: not indexed")
    (problem,) = shell("index", "--json").json["problems"]
    assert problem["reason"] == "binary content: not indexed"


@pytest.mark.parametrize(
    "arguments",
    [("index",), ("search", "quagga"), ("explain", "notes/red\x1b[31m.md"), ("errors",)],
)
def test_a_name_cannot_steer_the_terminal(shell: Shell, arguments: tuple[str, ...]) -> None:
    printed = shell(*arguments)
    assert "\x1b" not in printed.out + printed.err


@pytest.mark.parametrize(
    "arguments", [("index",), ("search", "gnu"), ("explain", "notes/two\nlines.md")]
)
def test_a_newline_in_a_name_forges_no_line(shell: Shell, arguments: tuple[str, ...]) -> None:
    printed = shell(*arguments)
    assert [
        line
        for line in (printed.out + printed.err).splitlines()
        if line.startswith((".md", "lines.md"))
    ] == []


def test_roots_are_listed_with_what_they_hold(shell: Shell) -> None:
    (root,) = shell("roots", "--json").json
    assert root == {
        "name": "notes", "path": str(shell.notes), "kind": "project", "from": "configuration",
        "files": len(_FILES), "chunks": len(_dumped(shell)),
    }  # fmt: skip
    printed = shell("roots")
    assert printed.err == ""
    assert printed.out.startswith(f"notes  {shell.notes}  (project, ")


def test_an_index_that_is_true_verifies(shell: Shell) -> None:
    answer = shell("verify", "--vectors", "all", "--json").json
    assert set(answer) >= {"ok", "files", "chunks", "differences"}
    assert (answer["ok"], answer["differences"], answer["chunks"]) == (
        True,
        [],
        len(_dumped(shell)),
    )
    printed = shell("verify")
    assert printed.code == 0
    assert printed.out.startswith("the index equals a clean rebuild")


def test_index_again_embeds_nothing_and_has_the_same_names_with_and_without_a_daemon(
    shell: Shell,
) -> None:
    answer = shell("index", "--json").json
    assert (answer["files"], answer["chunks"], answer["embedded"], answer["reused"]) == (
        len(_FILES),
        len(_dumped(shell)),
        0,
        0,
    )
    assert set(answer) == {
        "files", "chunks", "embedded", "reused", "upserted", "deleted", "actions", "away", "problems",
    }  # fmt: skip


def test_problems_of_index_name_the_file_alike_with_and_without_a_daemon(shell: Shell) -> None:
    (problem,) = shell("index", "--json").json["problems"]
    assert problem["path"] == str(shell.notes / "noise\x1b[31m\n.md")


def test_a_folder_whose_name_is_no_utf8_is_refused_or_indexed_but_never_forgotten(
    shell: Shell,
) -> None:
    folder = os.fsdecode(os.fsencode(shell.base) + b"/other\xff")
    os.makedirs(folder, exist_ok=True)
    printed = shell("index", folder)
    assert "UnicodeEncodeError" not in printed.err
    printed.is_calm(0, 2)


def test_what_search_finds_without_a_daemon_is_said_to_be_of_the_last_index(shell: Shell) -> None:
    printed = shell("search", "kitten")
    offline = shell("status").code == 3
    assert ("anchord is not running" in printed.err) == offline


def test_status_has_the_names_of_the_interface(running: Shell) -> None:
    printed = running("status", "--json")
    assert (printed.code, printed.err) == (0, "")
    answer = printed.json
    assert set(answer) >= _STATUS
    assert answer["state"] == "idle"
    assert set(answer["roots"][0]) >= _ROOT
    assert {"path", "reason"} < set(answer["failed"][0])
    assert {"p50", "p95"} == set(answer["latency_ms"])
    assert {"state", "model", "rate"} <= set(answer["embedder"])
    assert {"rows", "fragments", "versions", "bytes"} == set(answer["store"])


def test_failed_files_carry_since_when_as_the_interface_names_it(running: Shell) -> None:
    assert {"path", "reason", "since"} <= set(running("status", "--json").json["failed"][0])


def test_status_for_people_is_safe_and_begins_with_the_state(running: Shell) -> None:
    printed = running("status")
    assert (printed.code, printed.err) == (0, "")
    assert printed.out.startswith("idle  anchord ")
    assert "\x1b" not in printed.out


def test_status_gives_a_failed_file_one_line(running: Shell) -> None:
    assert not any(line.startswith(".md") for line in running("status").out.splitlines())


def test_sync_makes_what_was_written_findable(running: Shell) -> None:
    running.write("fresh.md", "# Fresh\n\nA wombat.\n")
    assert running("sync").code == 0
    assert [
        hit["path"] for hit in _hits(running("search", "wombat", "--mode", "text", "--json"))
    ] == ["fresh.md"]
    running.write("fresh.md", "# Fresh\n\nA numbat.\n")
    found = running("search", "numbat", "--mode", "text", "--fresh", "--json")
    assert [hit["path"] for hit in _hits(found)] == ["fresh.md"]
    (running.notes / "fresh.md").unlink()
    assert running("sync", "--json", "--timeout", "100").json["synced"] is True


def test_a_strange_timeout_of_sync_ends_in_sync_or_says_that_it_is_over(running: Shell) -> None:
    for timeout in ("-1", "nan", "0", "1e999"):
        printed = running("sync", "--timeout", timeout)
        if printed.code:
            printed.is_refused(printed.code)


def test_a_second_instance_is_refused_with_the_process_that_is_first(running: Shell) -> None:
    pid = running("status", "--json").json["pid"]
    running("run").is_refused(1, f"process {pid}")
    running("start").is_refused(1, f"process {pid}")


def test_added_and_removed_roots_are_followed_at_once(running: Shell) -> None:
    other = running.base / "other place"
    other.mkdir()
    (other / "b.md").write_text("# B\n\nA capybara.\n")
    assert running("add", "other place", "--name", "o p").code == 0
    assert running("sync").code == 0
    assert [
        hit["root"] for hit in _hits(running("search", "capybara", "--mode", "text", "--json"))
    ] == ["o p"]
    running("add", str(other)).is_refused(2, "o p")
    printed = running("remove", "o p")
    assert (printed.code, printed.out) == (0, 'removed "o p": 1 chunk\n')
    assert _hits(running("search", "capybara", "--mode", "text", "--json")) == []


def test_a_configuration_broken_meanwhile_is_named_and_the_daemon_goes_on(running: Shell) -> None:
    good = running.config.read_text()
    running.config.write_text(good + "[wach]\n")
    try:
        running("add", "notes").is_refused(2, "unknown key `wach`", "did you mean `watch`?")
        running("index").is_refused(2, "unknown key `wach`")
        assert running("status").code == 0
        assert _hits(running("search", "kitten", "--json"))
    finally:
        running.config.write_text(good)


# For other programs


def test_the_manual_has_every_command_and_option(shell: Shell) -> None:
    printed = shell("man")
    assert printed.code == 0
    plain = printed.out.replace("\\-", "-")
    for words in (".TH ANCHORD 1", "search QUERY", "--show-chunks", "config show", "forget PATH"):
        assert words in plain
    assert not [line for line in printed.out.splitlines() if line.startswith("'")]


@pytest.mark.parametrize("around", ["bash", "sh", ""])
def test_completion_can_be_printed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    """For the shell that is named, whatever shell the command runs in."""
    monkeypatch.setattr(shellingham, "detect_shell", lambda: _detected(around))
    monkeypatch.delenv(_TAKE_THE_NAME, raising=False)
    scripts = {
        "bash": "_anchord_completion() {",
        "zsh": "#compdef anchord",
        "fish": "complete --command anchord ",
    }
    for name, first_words in scripts.items():
        printed = shell("--show-completion", name)
        assert (printed.code, printed.err) == (0, "")
        assert printed.out.startswith(first_words)
        assert "_ANCHORD_COMPLETE" in printed.out
    shell("--show-completion", "tcsh").is_refused(2, "tcsh")


def test_completion_without_a_name_is_for_the_shell_around(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(_TAKE_THE_NAME, raising=False)
    monkeypatch.setattr(shellingham, "detect_shell", lambda: _detected("zsh"))
    assert shell("--show-completion").out.startswith("#compdef anchord")
    for around in ("sh", ""):
        monkeypatch.setattr(shellingham, "detect_shell", partial(_detected, around))
        for option in ("--show-completion", "--install-completion"):
            shell(option).is_refused(2, f"`anchord {option} bash`", around)


def _detected(name: str) -> tuple[str, str]:
    if not name:
        raise shellingham.ShellDetectionFailure
    return name, f"/bin/{name}"


def test_export_gives_every_row_with_its_lines_and_vector(shell: Shell, tmp_path: Path) -> None:
    rows = {row["id"]: row for row in _dumped(shell)}
    printed = shell("export", "-", "--no-vectors")
    answer = [json.loads(line) for line in printed.out.splitlines()]
    assert {row["id"]: (row["text"], row["start_line"], row["end_line"]) for row in answer} == {
        chunk: (row["text"], row["start_line"], row["end_line"]) for chunk, row in rows.items()
    }
    assert not any("vector" in row for row in answer)
    file = tmp_path / "all.parquet"
    assert shell("export", str(file)).code == 0
    table = parquet.read_table(file)
    assert sorted(table["id"].to_pylist()) == sorted(rows)
    assert len(table["vector"][0]) == 384
    lines = tmp_path / "all.jsonl"
    assert shell("export", str(lines)).code == 0
    assert sum(
        len(json.loads(line)["vector"]) for line in lines.read_text().splitlines()
    ) == 384 * len(rows)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("all")) == [
        "all.jsonl",
        "all.parquet",
    ]


def test_export_overwrites_no_indexed_file(shell: Shell) -> None:
    (root, *_) = shell("roots", "--json").json
    indexed = next(file for file in Path(root["path"]).iterdir() if file.name == "cats.md")
    before = indexed.read_bytes()
    link = shell.base / "new.jsonl"
    link.symlink_to(indexed)
    shell("export", str(link)).is_refused(2, "is indexed")
    assert indexed.read_bytes() == before
    link.unlink()


def test_export_refuses_a_name_that_says_no_format(shell: Shell) -> None:
    shell("export", "all.csv").is_refused(2, ".parquet", ".jsonl")
