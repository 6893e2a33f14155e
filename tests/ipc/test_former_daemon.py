"""After an update the daemon of before answers until it is restarted.

`former_answers.json` was recorded from the daemon of commit ff2aae8, before answers had types.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from anchord.errors import AnchordError
from anchord.ipc.messages.status import Progress
from anchord.ipc.methods import (
    BLAME,
    CHANGES,
    DECISIONS,
    DUMP,
    FILES,
    METHODS,
    SEARCH,
    SESSION,
    SESSIONS,
    SHOW,
    Method,
)
from anchord.ipc.protocol import Response, progress_of, result_of

ANSWERS: dict[str, Any] = json.loads(Path(__file__).with_name("former_answers.json").read_text())
HINT = "`anchord restart`"


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def contains(answer: Any, former: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether an answer has what this version knows of the former one, with its values."""
    if isinstance(answer, dict) and isinstance(former, dict):
        shared = answer.keys() & former.keys()
        return bool(shared or not former) and all(contains(answer[k], former[k]) for k in shared)
    if isinstance(answer, list) and isinstance(former, list):
        return len(answer) == len(former) and all(map(contains, answer, former))
    return bool(answer == former)


NEW = {SESSIONS, SESSION, FILES, CHANGES, BLAME, DECISIONS}
"""It does not have these. For those of conversations `daemon.archive_access` reads the archive then."""


def test_the_answer_of_every_method_was_recorded() -> None:
    assert ANSWERS.keys() == {method.name for method in METHODS if method not in NEW}


OTHERS = [method for method in METHODS if method not in {SEARCH, SHOW, DUMP, *NEW}]


@pytest.mark.parametrize("method", [SEARCH, SHOW, DUMP], ids=lambda method: method.name)
def test_chunks_of_protocol_1_are_refused_with_what_to_do(method: Method[Any, Any]) -> None:
    with pytest.raises(AnchordError, match="not of this version") as raised:
        result_of(Response(result=raw(ANSWERS[method.name])), method.answer)
    assert HINT in raised.value.hint


@pytest.mark.parametrize("method", OTHERS, ids=lambda method: method.name)
def test_an_answer_of_the_former_daemon_is_understood(method: Method[Any, Any]) -> None:
    answer = result_of(Response(result=raw(ANSWERS[method.name])), method.answer)
    assert contains(json.loads(msgspec.json.encode(answer)), ANSWERS[method.name])


def test_progress_of_another_version_says_what_to_do() -> None:
    with pytest.raises(AnchordError, match="not of this version") as raised:
        progress_of(Response(params=raw({"state": 5})))
    assert HINT in raised.value.hint


def test_progress_without_the_fields_of_this_version_is_understood() -> None:
    former = {"state": "idle", "pending": 0, "left_s": None, "done": 3, "embedded_total": 2}
    told = progress_of(Response(params=raw(former | {"rate": 1.5})))
    assert told == Progress(
        state="idle", pending=0, left_s=None, done=3, embedded_total=2, rate=1.5
    )
