"""The parser process finds what a parser in this process finds; a crash costs one text only."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from cli.conftest import Printed, call_here

from anchord.chunking.formats import parser_process as grammars
from anchord.chunking.formats import parser_worker as grammar_worker
from anchord.chunking.formats.code_symbols import ParserProcessError, find_definitions
from anchord.chunking.formats.parser_process import ParserProcess
from anchord.index import opening
from anchord.ipc import worker_process

pytest.importorskip("tree_sitter_python", reason="the extra [code] is not installed")

CODE = "class Gull:\n    def fly(self):\n        return 1\n\n\ndef puffin():\n    return 2\n"
TOO_MUCH = "<a " * 8_000
"""24 KB that take the grammar of C# more than 4 GB."""


@pytest.fixture
def asked() -> Iterator[ParserProcess]:
    with closing(ParserProcess()) as process:
        yield process


def pid_of(process: ParserProcess) -> int:
    assert process._child
    return process._child.popen.pid


def test_it_finds_what_is_found_here(asked: ParserProcess) -> None:
    for language, text in (
        ("python", CODE),
        ("python", "\ufeffdéf größe():\n  pass\r\n# 🐦\0"),
        ("csharp", "class A { int F() { return 1; } }"),
        ("go", ""),
    ):
        assert asked(text, language) == find_definitions(text, language)
    assert [one.name for one in asked(CODE, "python")] == ["Gull", "fly", "puffin"]


def test_without_a_grammar_no_process_is_started(asked: ParserProcess) -> None:
    assert asked(CODE, "cobol") == []
    assert asked._child is None


def test_its_limits_are_those_of_the_system_and_its_environment_holds_no_key(
    asked: ParserProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-a-parser")
    asked(CODE, "python")
    process = psutil.Process(pid_of(asked))
    assert "OPENAI_API_KEY" not in process.environ()
    if sys.platform != "linux":
        return
    assert process.rlimit(psutil.RLIMIT_AS) == (
        grammar_worker.MAX_MEMORY_BYTES,
        grammar_worker.MAX_MEMORY_BYTES,
    )
    for none in (psutil.RLIMIT_FSIZE, psutil.RLIMIT_NPROC, psutil.RLIMIT_CORE):
        assert process.rlimit(none) == (0, 0)
    assert process.rlimit(psutil.RLIMIT_CPU)[0] <= grammar_worker.MAX_CPU_S + 5
    assert process.rlimit(psutil.RLIMIT_NOFILE)[1] <= 64


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to RLIMIT_AS")
def test_h4_a_text_that_takes_a_grammar_gigabytes_costs_the_process_and_not_the_machine(
    asked: ParserProcess,
) -> None:
    with pytest.raises(ParserProcessError, match="ended before it answered"):
        asked(TOO_MUCH, "csharp")
    assert [one.name for one in asked("class A { }", "csharp")] == ["A"]
    before = pid_of(asked)
    with pytest.raises(ParserProcessError):
        asked(TOO_MUCH, "csharp")
    assert pid_of(asked) == before, "it is left alone after two tries"


_SCRIPTED = """
import os, signal, sys, time
from anchord.chunking.formats import parser_worker as grammar_worker
found = grammar_worker.find_definitions
def scripted(text, language):
    with open(sys.argv[0] + ".log", "a") as log:
        log.write(text.split()[0] + chr(10))
    if text.startswith("crash") or "crash here" in text or (text.startswith("once") and not os.path.exists(sys.argv[0] + ".once")):
        open(sys.argv[0] + ".once", "w").close()
        os.kill(os.getpid(), signal.SIGSEGV)
    if text.startswith("spin"):
        while True:
            pass
    if text.startswith("hang"):
        time.sleep(3600)
    if text.startswith("memory"):
        raise MemoryError
    if text.startswith("raise"):
        raise ValueError(text)
    return found(text, language)
grammar_worker.find_definitions = scripted
grammar_worker.MAX_CPU_S = 1
grammar_worker.apply_resource_limits = lambda: None
grammar_worker.main()
"""


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ParserProcess]:
    """Give the real process with a grammar that does what the text says."""
    (tmp_path / "scripted_worker.py").write_text(_SCRIPTED)
    monkeypatch.setenv(
        "PYTHONPATH",
        os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    )
    with closing(ParserProcess("scripted_worker")) as process:
        yield process


def tries(folder: Path) -> list[str]:
    return (folder / "scripted_worker.py.log").read_text().split()


@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("crash", "ended before it answered"),
        ("spin", "ended before it answered"),
        ("hang", "gave no answer in 1 s"),
        ("memory", "ended before it answered"),
        ("raise", "ended before it answered"),
    ],
)
def test_a_text_that_ends_the_process_is_tried_twice_and_the_next_one_has_its_own(
    scripted: ParserProcess, tmp_path: Path, what: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "hang":
        monkeypatch.setattr(
            grammars, "_TRIES", 1
        )  # A second is for an answer, and may be too short for a second start.
    scripted("warm = 1\n", "python")
    monkeypatch.setattr(grammars, "_ANSWER_TIMEOUT_S", 1.0 if what == "hang" else 50.0)
    for _ in range(3):
        with pytest.raises(ParserProcessError, match=how):
            scripted(f"{what} secret\n", "python")
    assert tries(tmp_path) == ["warm", *[what] * grammars._TRIES]
    monkeypatch.setattr(grammars, "_ANSWER_TIMEOUT_S", 50.0)
    assert [one.name for one in scripted(CODE, "python")] == ["Gull", "fly", "puffin"]


def test_an_end_that_was_not_the_text_s_fault_is_forgiven(
    scripted: ParserProcess, tmp_path: Path
) -> None:
    assert [one.name for one in scripted(f"once = 1\n{CODE}", "python")] == [
        "Gull",
        "fly",
        "puffin",
    ]
    assert tries(tmp_path) == ["once", "once"]


def test_a_process_that_was_killed_between_two_texts_is_replaced_and_nothing_held_against_the_next(
    asked: ParserProcess,
) -> None:
    asked(CODE, "python")
    os.kill(pid_of(asked), signal.SIGKILL)
    assert len(asked(CODE, "python")) == 3
    assert not asked._quarantine


def test_where_no_process_can_be_started_the_text_is_not_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(ParserProcess()) as process:
        with monkeypatch.context() as broken:
            broken.setattr(sys, "executable", str(tmp_path / "gone"))
            with pytest.raises(ParserProcessError, match="cannot be started"):
                process(CODE, "python")
        assert len(process(CODE, "python")) == 3


def test_it_ends_after_a_while_without_work_and_with_what_started_it(
    asked: ParserProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(CODE, "python")
    first = pid_of(asked)
    asked.stop_if_idle()
    assert psutil.pid_exists(first)
    monkeypatch.setattr(worker_process, "_IDLE_S", -1.0)
    asked.stop_if_idle()
    assert not psutil.pid_exists(first)
    asked(CODE, "python")
    second = pid_of(asked)
    asked.close()
    assert not psutil.pid_exists(second)


def test_it_does_not_outlive_a_process_that_was_killed() -> None:
    program = f"from anchord.chunking.formats.parser_process import ParserProcess\ng = ParserProcess(); g({CODE!r}, 'python')\n"
    program += "print(g._child.popen.pid, flush=True); import time; time.sleep(600)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    end = time.monotonic() + 30
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < end:
        time.sleep(0.05)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to RLIMIT_AS")
@pytest.mark.parametrize(
    "bad",
    ["crash here", pytest.param(TOO_MUCH, marks=pytest.mark.slow)],
    ids=["a crash", "gigabytes"],
)
@pytest.mark.usefixtures("scripted")
def test_h4_a_file_that_ends_its_parser_is_cut_without_its_definitions_and_named_and_the_rest_goes_on(
    tmp_path: Path, bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash by signal stands for the grammar that takes gigabytes, which needs 10 s: that one is slow."""
    if bad != TOO_MUCH:
        monkeypatch.setattr(opening, "ParserProcess", lambda: ParserProcess("scripted_worker"))
    home, notes = tmp_path / "h", tmp_path / "notes"
    home.mkdir(mode=0o700)
    notes.mkdir()
    (home / "config.toml").write_text(
        f'[[root]]\npath = "{notes}"\n[embedding]\nprovider = "hash"\n'
    )
    (notes / "a.cs").write_text("class Gull { int Fly() { return 1; } }\n")
    (notes / "bad.cs").write_text(f"// a comment on terns\n{bad}\n")
    (notes / "z.md").write_text("# Puffins\n")

    def run(*arguments: str) -> Printed:
        return call_here(arguments, os.environ | {"ANCHORD_HOME": str(home)}, tmp_path)

    indexed = run("index", "--json")
    assert indexed.code == 0, indexed.err
    explained = run("explain", str(notes / "bad.cs")).out
    assert "the parser of csharp ended" in explained
    assert "not indexed" not in explained
    rows = [json.loads(line) for line in run("dump").out.splitlines()]
    assert {row["path"] for row in rows} == {"a.cs", "bad.cs", "z.md"}
    assert any("a comment on terns" in row["text"] for row in rows)
    assert [row["header_path"] for row in rows if row["path"] == "a.cs"] == [["Gull"]]
    assert run("verify").code == 0, "the judge cuts it in the same way"
