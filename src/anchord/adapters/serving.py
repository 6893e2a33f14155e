"""What every embedding process does: keep its output for frames, step back behind other work, answer until its input ends.

`python -m anchord.adapters.torch_worker SETTINGS` and `anchord.adapters.onnx_worker` are such processes; SETTINGS is JSON.
A request is {"texts": [...], "query": bool}; an answer is {"vectors": float32 bytes} or {"error": text}. The first frame is
{"ready": dimension}. It ends when its input ends, so it never outlives a daemon that was killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import BinaryIO

import msgspec
import psutil

from anchord.adapters.frames import read_frame, write_frame

Encode = Callable[[Sequence[str], bool], bytes]
"""Texts, and whether they are queries -> their vectors, one after another."""

_NICE = 10


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedding process is started with."""

    folder: str
    """The model's own files."""
    threads: int
    dimension: int
    window: int
    """Tokens of a text without special tokens and prefix."""
    tokenizer: str
    query_prefix: str = ""
    text_prefix: str = ""
    onnx: str = ""
    """The exported model."""
    device: str = "cpu"
    nice: int = _NICE


class Request(msgspec.Struct, frozen=True):
    """Texts to embed."""

    texts: list[str]
    query: bool = False


def settings() -> Settings:
    """Return what this process was started with."""
    return msgspec.json.decode(sys.argv[1], type=Settings)


def serve(load: Callable[[Settings], Encode]) -> None:
    """Load the model, then answer until the input ends. What a library prints goes to standard error."""
    given = settings()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    step_back(given.nice)
    encode = load(given)
    write_frame(answers, {"ready": given.dimension})
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        _answer(answers, encode, frame)


def step_back(nice: int) -> None:
    """Let everything else on the machine go first."""
    os.nice(nice)
    if hasattr(psutil, "IOPRIO_CLASS_IDLE"):
        with suppress(psutil.Error, OSError):
            psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)


def _answer(answers: BinaryIO, encode: Encode, frame: object) -> None:
    answer: dict[str, object]
    try:
        request = msgspec.convert(frame, Request)
        answer = {"vectors": encode(request.texts, request.query)}
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the daemon must hear of it and go on
        # Its name alone: the words of an exception can hold what was embedded.
        answer = {"error": type(error).__name__}
    write_frame(answers, answer)
