"""What the processes that read strangers' bytes cannot do, tried from inside the real processes."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from anchord.embedding.workers.export_cache import offline_environment
from anchord.ipc import confinement
from anchord.ipc.confinement import environment_without_keys, missing_layers
from anchord.ipc.worker_process import WorkerProcess

pytestmark = pytest.mark.skipif(
    bool(missing_layers()), reason=f"this system lacks {missing_layers()}"
)

_PARSER = """
import sys
from pathlib import Path
from ipc.attempts import try_all
from anchord.chunking.formats import parser_worker
parser_worker.find_definitions = lambda text, language: try_all(Path(text))
parser_worker.main()
"""
_READER = """
import json, sys
from pathlib import Path
from ipc.attempts import try_all
from anchord.sources.conversations import reader_worker
def read_whole(request):
    succeeded = try_all(Path(request.root_path))
    shown = Path(request.root_path, request.path).read_text()
    raise reader_worker.TooLongError(json.dumps([succeeded, shown]))
    yield
reader_worker.read_whole = read_whole
reader_worker.main()
"""
ATTEMPTS_FILE = Path(__file__).with_name("attempts.py")
_MODEL = """
import json, os, socket
from anchord.embedding.workers import worker_main
def load(settings):
    opened = []
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
        try:
            socket.socket(family).close()
            opened.append(family.name)
        except PermissionError:
            pass
    assert (opened, os.environ.get("OPENAI_API_KEY")) == (["AF_UNIX"], None)
    return lambda texts, query: b""
worker_main.run_worker_loop(load)
"""
_OPEN = "from anchord.ipc import confinement\nconfinement.{} = lambda *_: None\n"

_ATTEMPTS = frozenset(re.findall(r'^ {8}"(.+?)": ', ATTEMPTS_FILE.read_text(), re.MULTILINE))
Started = Callable[..., WorkerProcess]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder with a file to be read; beside it are a private file and a socket."""
    (tmp_path / "private").write_text("diary")
    (tmp_path / "shown").mkdir()
    for name in ("a.json", "b", "c"):
        (tmp_path / "shown" / name).write_text("a transcript")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        yield tmp_path / "shown"


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """Give a function that starts a worker of a program, with what a worker gets of the environment."""
    programs = tmp_path / "programs"
    programs.mkdir()
    tests = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(programs), tests]))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-a-worker")
    started: list[WorkerProcess] = []

    def run(
        program: str, arguments: tuple[str, ...], environment: Mapping[str, str] | None = None
    ) -> WorkerProcess:
        (programs / "taken_over.py").write_text(program)
        environment = environment or environment_without_keys()
        started.append(WorkerProcess("taken_over", arguments, environment))
        return started[-1]

    yield run
    for each in started:
        each.shut_down()


def parser_answer(worker: WorkerProcess, folder: Path) -> object:
    return worker.call_or_kill(60, {"text": str(folder), "language": "python"})["definitions"]


def reader_answer(worker: WorkerProcess, folder: Path) -> tuple[list[str], str]:
    request = {
        "root_path": os.fsencode(folder), "path": b"a.json", "disk_path": b"", "member_names": [], "size": 0,
        "recorded_source": "", "resume_offset": 0, "resume_number": 0, "cpu_s": 60,
    }  # fmt: skip
    answer = worker.call_or_kill(60, request)
    assert answer["error"] == "TooLongError", answer
    succeeded, shown = json.loads(str(answer["reason"]))
    return succeeded, shown


def test_a_parser_that_was_taken_over_can_do_nothing(folder: Path, start: Started) -> None:
    assert parser_answer(start(_PARSER, ()), folder) == []


def test_a_reader_that_was_taken_over_can_only_read_its_root(folder: Path, start: Started) -> None:
    assert reader_answer(start(_READER, (str(folder),)), folder) == ([], "a transcript")


def test_a_process_with_a_model_has_no_internet_and_no_keys(start: Started) -> None:
    settings = '{"folder": "", "threads": 1, "dimension": 3, "window": 1, "tokenizer": ""}'
    model = start(_MODEL, (settings,), offline_environment())
    assert model.call_or_kill(60) == {"ready": 3}


def test_each_attempt_succeeds_in_a_process_that_is_not_confined(
    folder: Path, start: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement, "_KEPT_VARIABLES", ("PYTHONPATH", "OPENAI_API_KEY", "HOME"))
    program = "".join(map(_OPEN.format, ("limit_resources", "confine_to_reading"))) + _PARSER
    succeeded = parser_answer(start(program, ()), folder)
    assert isinstance(succeeded, list)
    assert _ATTEMPTS - set(succeeded) <= {"set an attribute", "connect over IPv6", "open 300 files"}


def test_a_module_in_the_current_folder_is_not_loaded_instead_of_a_library(
    folder: Path, start: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "msgspec.py").write_text(f"open({str(folder / 'loaded')!r}, 'w').close()\n")
    monkeypatch.chdir(folder)
    assert parser_answer(start(_PARSER, ()), folder) == []
    assert not (folder / "loaded").exists()
