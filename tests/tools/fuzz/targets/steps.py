"""The steps for long texts: a text of four times the length may cost about four times the steps.

An input is one of `chunking`, whose text is repeated. Steps are lines of Python that ran, not seconds; what runs in C (a
regular expression, the tokenizer) is left to the runner's limit of time for an input, and gets a text that is long enough.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from tools.fuzz.laws import hold
from tools.fuzz.targets.chunking import Task, task_of
from tools.fuzz.targets.counting import count

import anchord
from anchord.chunking.chunker import split_into_chunks

_SOURCE = str(Path(anchord.__file__).parent)
_SHORT, _TIMES, _MOST_TIMES = 2_500, 4, 7
"""The longer text is four times as long; n log n makes it five times as dear, squares sixteen times."""
_CONSTANT = 20_000
_LONG = 20_000


def steps(data: bytes) -> None:
    """Cut a repeated text of two lengths, counting; then a long one."""
    task = task_of(data)
    if task is None or not task.document.text.strip():
        return
    text = task.document.text[:600]
    less = text * max(1, _SHORT // len(text))
    few, many = (_counted(_of(task, each)) for each in (less, less * _TIMES))
    where = f"{task.document.kind}, {task.plan.strategy}"
    hold(
        many <= few * _MOST_TIMES + _CONSTANT,
        "a text four times as long is about four times the work",
        few,
        many,
        where=where,
    )
    split_into_chunks(_of(task, text * (_LONG // len(text))).document, task.plan, count(), "file")


def _of(task: Task, text: str) -> Task:
    return replace(task, document=replace(task.document, text=text))


def _counted(task: Task) -> int:
    return lines_run(lambda: split_into_chunks(task.document, task.plan, count(), "file"))


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of ours some work runs."""
    ran = 0

    def line(_: FrameType, event: str, __: Any) -> Callable[..., Any]:  # noqa: ANN401 - as Python calls it
        nonlocal ran
        ran += event == "line"
        return line

    def entered(frame: FrameType, _: str, __: Any) -> Callable[..., Any] | None:  # noqa: ANN401 - likewise
        return line if frame.f_code.co_filename.startswith(_SOURCE) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        work()
    finally:
        sys.settrace(before)
    return ran
