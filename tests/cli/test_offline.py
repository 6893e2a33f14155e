"""Commands that need no daemon: index, config, roots, chunk, diff; and the errors when none runs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from cli.conftest import CATS, PATIENCE_S, BuiltOnce, Shell, until
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord import chunk_text
from anchord.api import chunks as api
from anchord.cli.commands.chunk import _reason_of_git
from anchord.core.types import Chunk
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.store.writer_lock import WriterLock

_DOGS = "# Dogs\n\nA dog barks at the postman.\n"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return one shell for the module, without an index or a daemon; its tests change nothing."""
    made = Shell(tmp_path_factory.mktemp("c"))
    made.write("cats.md", CATS)
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index_two_files)


@pytest.fixture
def indexed(built: BuiltOnce) -> Shell:
    """Give a shell whose two files are indexed."""
    return built.fresh()


def index_two_files(shell: Shell) -> None:
    shell.write("cats.md", CATS)
    shell.write("dogs.md", _DOGS)
    assert shell("index", "notes").code == 0


def test_what_needs_a_daemon_says_that_none_runs(bare: Shell) -> None:
    for command in ("status", "sync", "pause", "resume"):
        bare(command).is_refused(3, "anchord is not running", "`anchord start`")


def test_status_as_json_is_one_value_even_without_a_daemon(bare: Shell) -> None:
    printed = bare("status", "--json")
    assert printed.code == 3
    assert printed.json["state"] not in {
        "idle",
        "indexing",
        "scanning",
        "starting",
        "paused",
        "degraded",
    }
    assert printed.err.count("\n") == 1


def test_stop_without_a_daemon_has_nothing_to_do(bare: Shell) -> None:
    bare("stop").is_calm(0, 3)


def test_a_damaged_table_is_repaired_when_a_root_leaves_too(indexed: Shell) -> None:
    """Its rows are deleted while the index is opened, before any other repair."""
    other = indexed.base / "other"
    other.mkdir()
    (other / "birds.md").write_text("# Birds\n\nA bird sings.\n")
    config = indexed.config.read_text()
    assert indexed("add", str(other)).code == 0
    assert indexed("index").code == 0
    for file in (indexed.home / "data" / "lance" / "chunks.lance" / "data").iterdir():
        content = file.read_bytes()
        start = len(content) * 2 // 3
        file.write_bytes(content[:start] + b"\xa5" * 64 + content[start + 64 :])
    indexed.config.write_text(config)
    assert indexed("index").code == 0
    assert indexed("verify").code == 0
    rows = [json.loads(line) for line in indexed("dump").out.splitlines()]
    assert {row["path"] for row in rows} == {"cats.md", "dogs.md"}


@pytest.mark.parametrize("year", [1700, 1960, 2300, 2999])
def test_a_file_of_any_time_is_indexed_and_read_once(indexed: Shell, year: int) -> None:
    """The catalog holds 64 bits of nanoseconds, which end in 1677 and 2262."""
    seconds = (year - 1970) * 31_556_952
    indexed.write("birds.md", "# Birds\n\nA bird sings.\n")
    indexed.write(".gitignore", "*.tmp\n")
    for name in ("birds.md", ".gitignore", "cats.md", "."):
        os.utime(indexed.notes / name, (seconds, seconds))
    assert indexed("index", "--json").json["files"] == 3
    assert indexed("index", "--json").json["embedded"] == 0
    assert indexed("verify").code == 0


def test_a_socket_that_nobody_listens_on_counts_as_no_daemon(indexed: Shell) -> None:
    left = indexed.home / "run" / "anchord.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    indexed("status").is_refused(3, "`anchord start`")
    indexed("sync").is_refused(3, "`anchord start`")
    assert [
        group[0]["path"]
        for group in indexed("search", "dog", "--mode", "text", "--json").json["groups"]
    ] == ["dogs.md"]
    assert indexed("index").code == 0
    assert indexed("stop").code in {0, 3}
    left.unlink()
    left.write_text("no socket at all")
    indexed("status").is_refused(3, "`anchord start`")
    assert indexed("roots").code == 0


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", marks=pytest.mark.slow),  # The command waits for ten seconds.
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"{}\n",
        b"[]\n",
        b"\xff\n",
        b'{"error":1}\n',
    ],
)
def test_a_listener_that_does_not_speak_the_protocol_is_one_line(
    shell: Shell, answer: bytes
) -> None:
    shell("config", "path")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(shell.home / "run" / "anchord.sock"))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100_000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        printed = shell("status")
        thread.join()
    printed.has_no_traceback()
    assert printed.code in {1, 3}
    assert printed.err.count("\n") == 1


def test_questions_to_an_index_that_is_not_there_say_how_to_make_one(shell: Shell) -> None:
    for arguments in (
        ("dump",),
        ("search", "x"),
        ("show", "ab"),
        ("explain", "notes/cats.md"),
        ("verify",),
    ):
        shell(*arguments).is_refused(1, "there is no index yet", "`anchord index FOLDER`")


def test_repairing_an_index_that_is_not_there_is_no_success(shell: Shell) -> None:
    shell("verify", "--repair").is_refused(1, "there is no index yet")


def test_index_without_any_root_is_a_wrong_call(bare: Shell) -> None:
    bare("index").is_refused(2, "no folders to index", "`anchord index FOLDER`")


@pytest.mark.parametrize("spoil", [b"garbage" * 1000, b""])
def test_a_spoiled_catalogue_is_one_line_and_the_advice_differs_from_what_failed(
    indexed: Shell, spoil: bytes
) -> None:
    for file in (indexed.home / "data").glob("state.sqlite*"):
        file.unlink()
    (indexed.home / "data" / "state.sqlite").write_bytes(spoil)
    for command in (("dump",), ("search", "dog"), ("explain", "notes/cats.md"), ("roots",)):
        indexed(*command).is_refused(1, "state.sqlite")
    again = indexed("index", "notes")
    if again.code:
        again.is_refused(1, "state.sqlite")
        assert "`anchord index`" not in again.err, "index advises to run index"
    else:
        assert indexed("verify").code == 0


def test_a_table_that_is_gone_is_one_line_and_indexing_brings_it_back(indexed: Shell) -> None:
    (indexed.home / "data" / "lance").rename(indexed.home / "data" / "away")
    for command in (("dump",), ("search", "dog"), ("verify",)):
        printed = indexed(*command)
        printed.has_no_traceback()
        assert printed.code in {0, 1}
    assert indexed("index", "--json").json["chunks"] == 2
    assert indexed("verify").code == 0


def test_index_tells_what_it_did_and_a_second_run_does_nothing(shell: Shell) -> None:
    shell.write("cats.md", CATS)
    shell.write("dogs.md", _DOGS)
    first = shell("index", str(shell.notes), "--json").json
    assert (
        first["files"],
        first["chunks"],
        first["embedded"],
        first["problems"],
        first["away"],
    ) == (2, 2, 2, [], [])
    assert shell("index", "notes", "--json").json["embedded"] == 0
    assert shell("index", "~/notes/", "--json").json["embedded"] == 0
    assert shell("index", ".", "--json", cwd=shell.notes).json["embedded"] == 0
    printed = shell("index")
    assert printed.out == "up to date: 2 files, 2 chunks; 0 texts embedded now, 0 vectors reused\n"
    assert printed.err == ""


@pytest.mark.parametrize(
    "name", ["with space", "ünï☃", "new\nline", "-dash", "[red]quo'te\"", "bad\udcff"]
)
def test_a_folder_of_any_name_is_indexed_searched_and_listed(shell: Shell, name: str) -> None:
    folder = shell.base / name
    folder.mkdir()
    (folder / name).with_suffix(".md").write_text(CATS)
    assert shell("index", "--json", "--", f"./{name}").json["chunks"] == 1
    (root,) = shell("roots", "--json").json
    assert root["chunks"] == 1
    (hit,) = shell("search", "kitten", "--mode", "text", "--json").json["groups"][0]
    assert hit["root"] == root["name"]
    for command in (
        ("roots",),
        ("search", "kitten"),
        ("verify",),
        ("dump",),
        ("explain", f"./{name}/{name}.md"),
    ):
        shell(*command).is_calm(0)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nowhere", "does not exist"),
        ("notes/cats.md", "is not a folder"),
        ("", "empty"),
        ("/", "too wide"),
        ("~", "too wide"),
    ],
)
def test_what_cannot_be_a_root_is_refused(bare: Shell, path: str, said: str) -> None:
    for command in ("index", "run", "start", "add"):
        bare(command, path).is_refused(2, said)


def test_a_file_that_cannot_be_indexed_is_named_on_standard_error_and_the_rest_goes_on(
    shell: Shell,
) -> None:
    shell.write("noise.md", bytes(range(256)) * 16)
    shell.write("cats.md", CATS)
    printed = shell("index", "notes")
    assert printed.code == 0
    assert printed.err.count("\n") == 1
    assert printed.err.endswith("noise.md: binary content: not indexed\n")
    assert printed.out.startswith("up to date: ")


def test_an_index_that_another_process_writes_is_refused_in_one_line(indexed: Shell) -> None:
    lock = WriterLock(indexed.home / "data" / "anchord.lock")
    try:
        for command in (
            ("index",),
            ("run",),
            ("start",),
            ("verify", "--repair"),
            ("remove", "notes"),
        ):
            indexed(*command).is_refused(1, f"process {os.getpid()}")
        indexed("sync").is_refused(3, f"process {os.getpid()}")
        indexed("status").is_refused(3, f"process {os.getpid()}")
        assert indexed("search", "dog").code == 0
    finally:
        lock.release()


def test_repair_drops_a_data_file_that_cannot_be_read_and_embeds_nothing(indexed: Shell) -> None:
    files = sorted((indexed.home / "data" / "lance" / "chunks.lance" / "data").iterdir())
    file = max(files, key=lambda each: each.stat().st_size)
    # The last column alone: opening the table reads ids, and does not meet the damage.
    head, _, tail = file.read_bytes().rpartition(b"lance.encodings21")
    file.write_bytes(head + b"laNce.encodings21" + tail)
    assert indexed("verify", "--json").code == 1
    repaired = indexed("verify", "--repair", "--json")
    assert repaired.code == 0, repaired.err
    assert repaired.json["differences"] == []
    assert "1 data files of the table were lost or damaged" in repaired.err
    assert indexed("verify").code == 0
    assert indexed("index", "--json").json["embedded"] == 0


def test_index_builds_a_search_index_again_whose_file_is_damaged(indexed: Shell) -> None:
    parts = (indexed.home / "data" / "lance" / "chunks.lance" / "_indices").glob("*/*lookup*")
    for file in parts:
        data = file.read_bytes()
        file.write_bytes(data[:-40] + bytes(byte ^ 1 for byte in data[-40:]))
    indexed.write("new.md", "# New\n\nA newt.\n")
    ran = indexed("index")
    assert ran.code == 0, ran.err
    assert "the index is built again" in ran.err
    assert indexed("verify").code == 0
    assert "newt" in indexed("search", "newt", "--mode", "text").out


@pytest.mark.parametrize("damaged", ["meta", "recipes"])
def test_a_page_of_the_catalog_that_opening_does_not_read_is_repaired_by_the_same_command(
    indexed: Shell, damaged: str
) -> None:
    catalog = indexed.home / "data" / "state.sqlite"
    with closing(sqlite3.connect(catalog)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_master WHERE name=?"
        (page,) = db.execute(query, (damaged,)).fetchone()
    with catalog.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    ran = indexed("index")
    assert ran.code == 0, ran.err
    assert "the file catalog was damaged" in ran.err
    assert indexed("verify").code == 0


def test_verify_lists_what_differs_and_repair_mends_it(indexed: Shell) -> None:
    (indexed.notes / "cats.md").unlink()
    indexed.write("new.md", "# New\n\nA newt.\n")
    result = indexed("verify", "--json")
    assert result.code == 1
    assert result.json["ok"] is False
    assert {(d["kind"], d["path"]) for d in result.json["differences"]} == {
        ("extra", "cats.md"),
        ("missing", "new.md"),
    }
    assert result.json["differences_total"] == 2
    printed = indexed("verify")
    assert printed.code == 1
    assert [line.split()[:2] for line in printed.out.splitlines()[:2]] == [
        ["extra", "notes:cats.md"],
        ["missing", "notes:new.md"],
    ]
    assert "2 differences" in printed.out
    assert printed.err.count("\n") == 1
    assert "--repair" in printed.err
    mended = indexed("verify", "--repair", "--json")
    assert (mended.code, mended.json["ok"], mended.json["chunks"]) == (0, True, 2)
    assert indexed("verify", "--vectors", "all").code == 0


def test_a_root_that_is_away_is_said_to_be_left_alone(indexed: Shell) -> None:
    indexed.notes.rename(indexed.base / "gone")
    printed = indexed("index")
    assert printed.code == 0
    assert printed.err == 'skipped: "notes": the folder does not exist\n'
    assert indexed("index", "--json").json["away"] == ['"notes": the folder does not exist']
    assert indexed("search", "kitten", "--mode", "text").out != ""


def test_ctrl_c_ends_an_index_with_130_and_one_line_and_the_next_run_goes_on(shell: Shell) -> None:
    for n in range(400):
        shell.write(f"{n}.md", f"# Note {n}\n\nMatter {n * 31}.\n")
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # A shell ignores SIGINT in its background jobs.
    process = subprocess.Popen(
        [sys.executable, "-m", "anchord", "index", "notes"],
        env=shell.environment, cwd=shell.base, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    until((shell.home / "data" / "vectors.sqlite").exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
    assert shell("index", "notes", "--json").json["chunks"] == 400
    assert shell("verify").code == 0
    assert err.startswith(b"anchord: interrupted; ")
    assert err.count(b"\n") == 1


def test_roots_are_added_listed_and_removed(shell: Shell) -> None:
    shell.write("cats.md", CATS)
    assert shell("roots", "--json").json == []
    none = shell("roots")
    assert (none.out, none.err) == ("", "no folders yet: `anchord add FOLDER` adds one\n")
    added = shell("add", "notes")
    assert added.out.startswith(f'added "notes" ("{shell.notes}")')
    (root,) = shell("roots", "--json").json
    assert (root["name"], root["path"], root["from"], root["chunks"]) == (
        "notes",
        str(shell.notes),
        "configuration",
        0,
    )
    shell("add", "~/notes").is_refused(2, 'already in the root "notes"')
    (shell.notes / "deep").mkdir()
    shell("add", str(shell.notes / "deep")).is_refused(2, 'already in the root "notes"')
    assert shell("index").code == 0
    assert shell("remove", "notes").out == 'removed "notes": 1 chunk\n'
    assert "notes" not in {root["name"] for root in shell("roots", "--json").json}
    assert shell("dump").out == ""
    shell("remove", "notes").is_refused(2, 'no root "notes"')
    assert 'embedding.provider = "hash"' in shell.config.read_text()


@pytest.mark.parametrize("name", ["a b", "☃", "[bold]", "x\ny", 'q"', "\x1b[31m", "-"])
def test_a_root_may_have_any_name_and_is_removed_by_it(shell: Shell, name: str) -> None:
    printed = shell("add", "notes", "--name", name)
    if printed.code == 2:
        printed.is_refused(2)
        return
    assert printed.code == 0
    assert "\x1b" not in printed.out
    assert printed.out.count("\n") == 1
    assert [root["name"] for root in shell("roots", "--json").json] == [name]
    assert shell("remove", "--", name).code == 0
    assert shell("roots", "--json").json == []


def test_where_anchord_writes_itself_is_never_indexed(shell: Shell) -> None:
    printed = shell("add", str(shell.home))
    printed.is_calm(0, 2)
    if printed.code == 0:
        assert shell("index", "--json").json["chunks"] == 0


def test_two_roots_cannot_share_a_name(shell: Shell) -> None:
    (shell.base / "other").mkdir()
    assert shell("add", "notes", "--name", "same").code == 0
    shell("add", "other", "--name", "same").is_refused(2, 'there is already a root "same"')


def test_config_show_gives_every_key_with_its_value_and_origin(shell: Shell) -> None:
    shell.configure("watch.settle_ms = 300", "[[root]]", f'path = "{shell.notes}"')
    result = shell("config", "show", "--json").json
    keys = {entry["key"]: entry for entry in result["keys"]}
    assert result["file"] == str(shell.config)
    assert (keys["watch.settle_ms"]["value"], keys["watch.settle_ms"]["origin"]) == (
        300,
        str(shell.config),
    )
    assert (keys["watch.mode"]["value"], keys["watch.mode"]["origin"]) == ("auto", "default")
    assert {
        "chunking.strategy",
        "embedding.model",
        "store.uri",
        "watch.max_wait_ms",
        "watch.reconcile_s",
        "privacy.redact",
    } < set(keys)
    assert result["roots"][0]["path"] == str(shell.notes)
    printed = shell("config", "show")
    assert f"watch.settle_ms = 300  # {shell.config}\n" in printed.out
    assert "watch.mode = 'auto'  # default\n" in printed.out


def test_a_key_written_with_its_default_value_comes_from_the_file_all_the_same(
    shell: Shell,
) -> None:
    shell.configure('watch.mode = "auto"')
    keys = {
        entry["key"]: entry["origin"] for entry in shell("config", "show", "--json").json["keys"]
    }
    assert keys["watch.mode"] == str(shell.config)


def test_config_path_and_check_say_where_it_is_and_that_it_is_right(shell: Shell) -> None:
    assert shell("config", "path").out == f"{shell.config}\n"
    assert shell("config", "check").out == f"{shell.config} is valid\n"
    shell.configure("chunking.overlap_tokens = 9")
    assert shell("config", "check").err == "chunking.overlap_tokens has no effect\n"
    shell.config.unlink()
    assert shell("config", "check").code == 0
    assert "does not exist" in shell("config", "check").out


def test_chunk_gives_what_the_python_function_gives(bare: Shell) -> None:
    result = bare("chunk", "-", "--json", stdin=CATS.encode()).json
    assert result == chunk_text(CATS)
    assert set(result[0]) == set(ChunkAnswer.__struct_fields__)
    code = bare("chunk", "-", "--path", "a.py", "--json", stdin=b"def f():\n    return 1\n").json
    assert [piece["kind"] for piece in code] == ["code"]


def test_chunk_has_the_ids_of_the_index(indexed: Shell) -> None:
    rows = [json.loads(line)["id"] for line in indexed("dump").out.splitlines()]
    result = [
        indexed("chunk", f"notes/{name}.md", "--json").json[0]["id"] for name in ("cats", "dogs")
    ]
    assert result == rows
    assert indexed("chunk", "dogs.md", "--json", cwd=indexed.notes).json[0]["id"] == rows[1]


def test_chunk_for_people_gives_lines_section_and_text(bare: Shell) -> None:
    printed = bare("chunk", "notes/cats.md")
    assert (printed.code, printed.err) == (0, "")
    head, *lines = printed.out.splitlines()
    assert head.startswith("1-3  Cats  ")
    assert lines == ["    # Cats", "    ", "    The kitten sleeps on the sofa."]


@pytest.mark.parametrize("text", [b"", b"\xef\xbb\xbf", b"   \n\t\n"])
def test_chunk_of_nothing_is_an_empty_list(bare: Shell, text: bytes) -> None:
    assert bare("chunk", "-", "--json", stdin=text).json == []
    assert bare("chunk", "-", stdin=text).out == ""
    assert bare("chunk", "-", "--check", stdin=text).code == 0


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("nowhere.md", "not a file"),
        ("notes", "not a file"),
        ("", "not a file"),
        ("/dev/null", ""),
        ("bad\udcff", "not a file"),
    ],
)
def test_chunk_and_diff_of_what_is_no_file_are_refused(bare: Shell, file: str, said: str) -> None:
    bare("chunk", file).is_refused(2, said)
    bare("diff", file, "--against", "notes/cats.md").is_refused(2, said)
    bare("diff", "notes/cats.md", "--against", file).is_refused(2)


def test_binary_content_is_refused(bare: Shell) -> None:
    bare("chunk", "-", stdin=bytes(range(256)) * 16).is_refused(2, "binary")
    noise = bare.base / "noise.md"
    noise.write_bytes(bytes(range(256)) * 16)
    bare("chunk", "noise.md").is_refused(2, "noise.md", "binary")
    bare("diff", "noise.md", "--against", "notes/cats.md").is_refused(2, "noise.md", "binary")
    bare("diff", "notes/cats.md", "--against", "noise.md").is_refused(2, "noise.md", "binary")


def test_chunk_check_prints_figures_and_as_json_one_value(bare: Shell) -> None:
    printed = bare("chunk", "notes/cats.md", "--check")
    assert printed.code == 0
    assert printed.out.startswith("chunks: ")
    assert isinstance(bare("chunk", "notes/cats.md", "--check", "--json").json, dict)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_chunk_check_finds_a_file_whole_in_every_encoding_that_is_indexed(
    bare: Shell, encoding: str
) -> None:
    mark = "\ufeff" if encoding.endswith("e") else ""
    data = f"{mark}\n# Cats\n\nThe kitten.\n\nMore lines.\n".encode(encoding)
    assert len(bare("chunk", "-", "--json", stdin=data).json) == 1
    printed = bare("chunk", "-", "--check", stdin=data)
    assert printed.code == 0, printed.out


_PIECES = [
    "# ", "## ", "word ", "\n", "\n\n", "\r\n", "\r", "```\n", "- ", "> ", "\t", "| a | b |\n", "\x0b", "\x0c", "\u2028",
    "\x85", "é", "---\n",
]  # fmt: skip


@settings(max_examples=40, deadline=None, database=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_chunk_check_finds_nothing_wrong_with_any_text(bare: Shell, text: str) -> None:
    printed = bare("chunk", "-", "--check", stdin=text.encode())
    assert (printed.code, printed.err) == (0, ""), printed.out


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *arguments],
        cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL,
        env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip


@pytest.fixture
def repository(shell: Shell) -> Shell:
    """Give a shell whose folder is a git repository with one commit."""
    sections = "\n".join(
        f"## Part {n}\n\n" + f"Words of part {n}, some of them. " * 20 + "\n" for n in range(8)
    )
    shell.write("cats.md", f"# Cats\n\n{sections}")
    _git(shell.notes, "init")
    _git(shell.notes, "add", ".")
    _git(shell.notes, "commit", "-m", "first")
    return shell


def test_diff_counts_what_an_edit_costs_as_the_index_then_finds_it(repository: Shell) -> None:
    file = repository.notes / "cats.md"
    assert repository("index", "notes").code == 0
    same = repository("diff", "notes/cats.md", "--json").json
    assert (same["moved"], same["new"], same["vanished"], same["embedded"]) == (0, 0, 0, 0)
    before = {json.loads(line)["id"] for line in repository("dump").out.splitlines()}
    file.write_text(
        "A line above everything.\n\n"
        + file.read_text().replace("Words of part 5", "Other words of part 5")
    )
    result = repository("diff", "notes/cats.md", "--json").json
    assert result["new"] >= 1
    assert result["moved"] >= 1
    changes = [row["change"] for row in result["chunks"]]
    assert {what: changes.count(what) for what in ("kept", "moved", "new", "vanished")} == {
        what: result[what] for what in ("kept", "moved", "new", "vanished")
    }
    indexed = repository("index", "--json").json
    assert result["embedded"] == indexed["embedded"]
    after = {json.loads(line)["id"] for line in repository("dump").out.splitlines()}
    assert {row["id"] for row in result["chunks"] if row["change"] == "new"} == after - before
    assert {row["id"] for row in result["chunks"] if row["change"] == "vanished"} == before - after
    printed = repository("diff", "cats.md", cwd=repository.notes)
    assert printed.out.endswith(
        f"{result['embedded']} text{'s' * (result['embedded'] != 1)} would be embedded ({result['tokens']} tokens)\n"
    )


def test_diff_compares_with_another_file_or_revision(repository: Shell) -> None:
    copy = repository.base / "copy.md"
    copy.write_text((repository.notes / "cats.md").read_text())
    against = repository("diff", "notes/cats.md", "--against", "copy.md", "--json").json
    assert (against["new"], against["vanished"]) == (0, 0)
    (repository.notes / "cats.md").write_text(CATS)
    _git(repository.notes, "commit", "-a", "-m", "second")
    assert repository("diff", "notes/cats.md", "--json").json["new"] == 0
    assert repository("diff", "notes/cats.md", "--against", "HEAD~1", "--json").json["new"] == 1


def test_diff_refuses_what_git_does_not_know(repository: Shell) -> None:
    repository("diff", "notes/cats.md", "--against", "nonsense").is_refused(2, "nonsense")
    repository.write("untracked.md", CATS)
    repository("diff", "notes/untracked.md").is_refused(2, "untracked.md")


def test_diff_outside_a_repository_is_refused(bare: Shell) -> None:
    bare("diff", "notes/cats.md").is_refused(2, "not a git repository", "--against FILE2")


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("", "git knows no such revision"),
        ("warning: odd\n", "warning: odd"),
        ("warning: odd\nfatal: bad revision 'x'\n", "fatal: bad revision 'x'"),
        (
            "fatal: not a git repository (or any parent up to mount point /dev)\nStopping at a boundary\n",
            "fatal: not a git repository (or any parent up to mount point /dev)",
        ),
    ],
)
def test_of_what_git_prints_the_line_with_the_reason_is_shown(stderr: str, reason: str) -> None:
    assert _reason_of_git(stderr) == reason


def test_diff_without_git_on_the_machine_is_one_line(bare: Shell) -> None:
    printed = bare("diff", "notes/cats.md", PATH=str(bare.base / "nothing"))
    printed.has_no_traceback()
    printed.is_refused(printed.code or 1, "git")


@pytest.mark.parametrize("revision", ["--output=notes/written", "-p", "--help", ""])
def test_a_revision_is_never_an_option_of_git(repository: Shell, revision: str) -> None:
    printed = repository("diff", "cats.md", f"--against={revision}", cwd=repository.notes)
    printed.is_calm(0, 2)
    assert printed.code == 2 or not revision, "git took it for an option"
    assert sorted(os.listdir(repository.notes)) == [".git", "cats.md"]
    assert sorted(os.listdir(repository.base)) == ["home", "notes"]


def test_diff_for_people_has_both_sides_in_columns_and_the_cost_below(repository: Shell) -> None:
    file = repository.notes / "cats.md"
    file.write_text(
        "A line above everything.\n\n"
        + file.read_text().replace("Words of part 5", "Other words of part 5")
    )
    printed = repository("diff", "notes/cats.md", COLUMNS="100")
    head, *rows, cost = printed.out.splitlines()
    assert head.split() == ["before", "now"]
    here = head.index("now")
    assert any(row.startswith("vanished") and row[here:].startswith("new") for row in rows)
    assert any(row.startswith("moved") and row[here:].startswith("moved") for row in rows)
    assert any("Other words" in row[here:] for row in rows)
    assert not any("Other words" in row[:here] for row in rows)
    assert max(map(len, rows)) <= 100
    assert re.search(r"would be embedded \(\d+ tokens\)$", cost)


def test_diff_cuts_long_runs_of_what_stays_short(repository: Shell) -> None:
    printed = repository("diff", "notes/cats.md")
    result = repository("diff", "notes/cats.md", "--json").json
    assert result["kept"] == len(result["chunks"])
    assert len(printed.out.splitlines()) <= 6
    if result["kept"] > 4:
        assert f"... {result['kept'] - 3} more kept" in printed.out


@pytest.mark.parametrize("strategy", ["window", "sentences", "headers"])
def test_chunk_cuts_by_the_strategy_given_or_configured(shell: Shell, strategy: str) -> None:
    text = ("# A\n\nOne sentence. And another.\n\n## B\n\n" + "Words of a section. " * 80).encode()
    result = shell("chunk", "-", "--strategy", strategy, "--json", stdin=text).json
    assert {piece["strategy"] for piece in result} == {strategy}
    shell.configure(f'chunking.strategy = "{strategy}"')
    assert shell("chunk", "-", "--json", stdin=text).json == result
    assert shell("chunk", "-", "--check", stdin=text).code == 0


def test_chunk_refuses_a_strategy_that_there_is_not(shell: Shell) -> None:
    shell("chunk", "-", "--strategy", "sentence", stdin=b"x").is_refused(
        2, "`sentence`", "`sentences`"
    )


def test_a_root_has_its_own_strategy_in_the_index_and_in_chunk(shell: Shell) -> None:
    shell.write("talk.md", "> one\na\n\n> two\nb\n\n> three\nc\n")
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'strategy = "exchange"')
    assert shell("index").code == 0
    rows = [json.loads(line) for line in shell("dump").out.splitlines()]
    assert [row["header_path"] for row in rows] == [["one"], ["two"], ["three"]]
    result = shell("chunk", "notes/talk.md", "--json").json
    assert [piece["id"] for piece in result] == [row["id"] for row in rows]
    assert shell("explain", "notes/talk.md", "--json").json["strategy"] == "exchange"
    assert shell("verify").code == 0


def test_002_20_a_changed_strategy_cuts_the_files_again_by_itself(shell: Shell) -> None:
    shell.write("a.md", "First.\n\nSecond.\n")
    shell.configure("[[root]]", f'path = "{shell.notes}"')
    assert shell("index", "--json").json["chunks"] == 1
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'strategy = "paragraph"')
    assert shell("explain", "notes/a.md", "--json").json["reason"] == "the recipe changed"
    assert shell("index", "--json").json["chunks"] == 2
    assert shell("verify").code == 0


def test_seed_002_04_sizes_of_a_root_chunk_its_files_again_and_no_others(shell: Shell) -> None:
    other = shell.base / "other"
    other.mkdir()
    text = "\n\n".join(f"Paragraph {n} has its own words and a few more." for n in range(30))
    for name in ("a.md", "a.txt"):
        shell.write(name, text)
        (other / name).write_text(text)
    roots = [f"[[root]]\npath = '{other}'", f"[[root]]\npath = '{shell.notes}'"]
    shell.configure(*roots)
    assert shell("index").code == 0
    chunks = {root["name"]: root["chunks"] for root in shell("roots", "--json").json}
    shell.configure(*roots, "max_chars = 300", "[root.kinds.text]", "max_chars = 100")
    done = shell("index", "--json").json
    now = {root["name"]: root["chunks"] for root in shell("roots", "--json").json}
    assert now["other"] == chunks["other"]
    assert now["notes"] > chunks["notes"]
    assert done["actions"]["indexed"] == 2  # The files of `notes`.
    rows = [json.loads(line) for line in shell("dump").out.splitlines()]
    for name, max_chars in (("a.md", 300), ("a.txt", 100)):
        ids = [row["id"] for row in rows if (row["root"], row["path"]) == ("notes", name)]
        listed = shell("chunk", f"notes/{name}", "--json").json
        assert [chunk["id"] for chunk in listed] == ids
        assert max(len(chunk["text"]) for chunk in listed) <= max_chars
    assert shell("verify").code == 0
    shell.configure(*roots)
    assert shell("index", "--json").json["embedded"] == 0  # The vectors of before were kept.


def test_explain_shows_no_secret_of_a_name_or_of_a_pattern(shell: Shell) -> None:
    token = "ghp_" + "sfxLHMtlw4tUa5zGyYT6S48Z3qbNqSHY0ilv"
    shell.write(f"{token}.md", "# A\n")
    shell.write(".gitignore", f"{token}*\n")
    shell.configure(f"[[root]]\npath = '{shell.notes}'")
    assert shell("index").code == 0
    for options in ([], ["--json"]):
        explained = shell("explain", f"{shell.notes}/{token}.md", *options)
        assert explained.code == 0
        assert "[REDACTED:github]" in explained.out
        assert token not in explained.out + explained.err


def test_explain_refuses_a_path_that_no_file_can_have(shell: Shell) -> None:
    shell.write("a.md", "# A\n")
    shell.configure(f"[[root]]\npath = '{shell.notes}'")
    assert shell("index").code == 0
    shell("explain", f"{shell.notes}/a\0.md").is_refused(2, "NUL")


def test_seed_003_32_sizes_depend_on_the_type_of_the_content(shell: Shell) -> None:
    code = "\n".join(f"value_{n} = compute({n})" for n in range(100))
    shell.write("a.py", code)
    shell.write("a.md", code)
    shell.configure("kind.code.max_chars = 200")
    longest = {
        name: max(len(chunk["text"]) for chunk in shell("chunk", f"notes/{name}", "--json").json)
        for name in ("a.py", "a.md")
    }
    assert longest["a.py"] <= 200 < longest["a.md"]


def test_seed_000_20_a_change_of_rooms_embeds_nothing(shell: Shell) -> None:
    shell.write("docs/a.md", "The invoice of March.\n")
    shell.write("planet.md", "Mars is a planet.\n")
    root = f"[[root]]\npath = '{shell.notes}'"
    shell.configure(root)
    assert shell("index").code == 0
    assert rooms_of(shell) == {"docs/a.md": "docs", "planet.md": "general"}
    assert shell("index", "--json").json["upserted"] == 0
    room = "[[room]]\nname = 'Billing'\nkeywords = ['invoice']\n[[room]]\nname = 'space'\npaths = ['planet*']"
    shell.configure(root, room)
    done = shell("index", "--json").json
    assert (done["embedded"], done["upserted"]) == (0, 2)
    assert rooms_of(shell) == {"docs/a.md": "billing", "planet.md": "space"}
    found = shell("search", "planet", "--room", "space", "--mode", "text", "--json").json
    assert [group[0]["path"] for group in found["groups"]] == ["planet.md"]
    assert shell("verify").code == 0


def rooms_of(shell: Shell) -> dict[str, str]:
    """Return the room of each file of the index, as `export` has it."""
    file = shell.base / "rows.jsonl"
    assert shell("export", str(file)).code == 0
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return {row["path"]: row["room"] for row in rows}


@pytest.mark.parametrize("place", ["middle", "end"])
def test_seed_001_20_003_30_chunk_check_finds_a_wrong_header_path(bare: Shell, place: str) -> None:
    text = "# One\n\n## Two\n\nwords\n\n# Three\n\nmore\n"
    given = text.encode()
    options = ("chunk", "-", "--check", "--json", "--strategy", "headers")
    assert bare(*options, stdin=given).json["wrong_header_paths"] == 0
    changed = 1 if place == "middle" else -1

    def spoiled(*arguments: Any) -> list[Chunk]:  # noqa: ANN401 - those of the function
        chunks = chunk_document(*arguments)
        chunks[changed] = replace(chunks[changed], header_path=("One",))
        return chunks

    chunk_document = api.chunk_document
    with mock.patch.object(api, "chunk_document", spoiled):
        printed = bare(*options, stdin=given)
    assert (printed.code, printed.json["wrong_header_paths"]) == (1, 1)


@pytest.mark.parametrize("revision", ["v1.*", "HEAD?", "[a-z]", "--output=evil", "-h", "HEAD~99"])
def test_diff_takes_no_pattern_and_no_option_for_a_revision(
    repository: Shell, revision: str
) -> None:
    repository("diff", "cats.md", "--against", revision, cwd=repository.notes).is_refused(
        2, revision, "--against FILE2"
    )
    assert [file.name for file in repository.notes.iterdir() if "evil" in file.name] == []


def test_columns_of_nought_are_no_width(bare: Shell) -> None:
    assert "kitten" in bare.process("chunk", "notes/cats.md", COLUMNS="0").out


def test_a_terminal_that_is_not_utf_8_shows_what_it_can_and_json_stays_utf_8(bare: Shell) -> None:
    bare.write("u.md", "# \N{GRINNING FACE}\n")
    printed = bare.process("chunk", "notes/u.md", PYTHONIOENCODING="ascii")
    assert (printed.code, printed.err) == (0, "")
    assert "1f600" in printed.out
    assert (
        bare.process("chunk", "notes/u.md", "--json", PYTHONIOENCODING="ascii").json[0]["text"]
        == "# \N{GRINNING FACE}"
    )


def test_config_show_tells_what_was_written_for_kinds_aliases_and_roots(shell: Shell) -> None:
    shell.configure(
        "kind.code.strategy = 'window'",
        "chunking.chunk_size = 300",
        "chunking.strategy = 'recursive'",
    )
    with shell.config.open("a") as file:
        file.write(f"[[root]]\npath = '{shell.notes}'\nname = 'n'\nstrategy = 'headers'\n")
    result = {
        row["key"]: (row["value"], row["origin"])
        for row in shell("config", "show", "--json").json["keys"]
    }
    where = str(shell.config)
    assert result["kind.code.strategy"] == ("window", where)
    assert result["chunking.max_chars"] == (300, where)
    assert result["root.n.strategy"] == ("headers", where)


def test_a_strategy_that_is_asked_for_goes_before_enabled_false(shell: Shell) -> None:
    shell.configure("chunking.enabled = false")
    assert len(shell("chunk", "-", "--json", stdin=b"One is. Two is.").json) == 1
    assert (
        len(shell("chunk", "-", "--strategy", "sentences", "--json", stdin=b"One is. Two is.").json)
        == 2
    )


def test_chunk_check_ends_with_1_where_a_law_is_broken(bare: Shell) -> None:
    def spoiled(*arguments: Any) -> list[Chunk]:  # noqa: ANN401 - those of the function
        return [replace(piece, end_line=1) for piece in chunk_document(*arguments)]

    chunk_document = api.chunk_document
    with mock.patch.object(api, "chunk_document", spoiled):
        printed = bare("chunk", "notes/cats.md", "--check")
        result = bare("chunk", "notes/cats.md", "--check", "--json")
    assert (printed.code, result.code, result.json["ok"]) == (1, 1, False)
    assert result.json["lines_not_covered"] == 1


def test_explain_tells_the_strategy_that_a_notebook_is_cut_by(shell: Shell) -> None:
    shell.write("a.ipynb", '{"cells": [{"cell_type": "markdown", "source": "words"}]}')
    shell.configure("kind.text.strategy = 'window'", "[[root]]", f"path = '{shell.notes}'")
    assert shell("index").code == 0
    assert shell("explain", "notes/a.ipynb", "--json").json["strategy"] == "anchored"
    assert shell("chunk", "notes/a.ipynb", "--json").json[0]["strategy"] == "anchored"


@pytest.mark.parametrize("table", ["meta", "files", "chunks", "problems", "recipes"])
def test_a_damaged_page_of_the_catalogue_is_repaired_by_the_command_that_meets_it(
    indexed: Shell, table: str
) -> None:
    catalogue = indexed.home / "data" / "state.sqlite"
    with closing(sqlite3.connect(catalogue)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_master WHERE name=?"
        (page,) = db.execute(query, (table,)).fetchone()
    with catalogue.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    ran = indexed("index", "--json")
    assert ran.code == 0, ran.err
    assert "the file catalog was damaged and is rebuilt" in ran.err
    assert ran.json["embedded"] == 0
    assert indexed("verify").code == 0
