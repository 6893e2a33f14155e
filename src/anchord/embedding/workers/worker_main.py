"""The main loop of every embedding process: lower the priority, load the model, answer requests.

`python -m anchord.embedding.workers.torch_worker SETTINGS` (or `onnx_worker`) is such a process;
SETTINGS is JSON. The first frame on its standard output is {"ready": dimension}. A request is
{"texts": [...], "query": bool}; the answer is {"vectors": float32 bytes} or {"error": text}. The
process ends when its input ends, so it never outlives a daemon that was killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import BinaryIO

import msgspec
import psutil

from anchord.ipc.confinement import refuse_internet
from anchord.ipc.framing import read_frame, write_frame

EmbedFunction = Callable[[Sequence[str], bool], bytes]
"""Embed texts (first argument), as queries if the second is true.

Returns the L2-normalised vectors one after another, as little-endian float32.
"""

_NICE = 10


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an embedding process. Paths are absolute."""

    folder: str
    """The folder of the model's own files."""
    threads: int
    """Number of CPU threads that compute."""
    dimension: int
    window: int
    """Maximum tokens of a text, without special tokens and prefix."""
    tokenizer: str
    """The tokenizer's file."""
    query_prefix: str = ""
    """Put before queries."""
    text_prefix: str = ""
    """Put before texts that are no queries."""
    onnx: str = ""
    """The exported model's file; "" for a process that runs the model itself."""
    device: str = "cpu"
    nice: int = _NICE
    """Added to the nice value of the process: higher means lower priority. 0 leaves it as it is."""


class EmbedRequest(msgspec.Struct, frozen=True):
    """A batch of texts to embed."""

    texts: list[str]
    query: bool = False


def settings_from_argv() -> WorkerSettings:
    """Return the settings in this process's first argument.

    Raises:
        msgspec.MsgspecError: The argument is not JSON of `WorkerSettings`.
    """
    return msgspec.json.decode(sys.argv[1], type=WorkerSettings)


def run_worker_loop(load_model: Callable[[WorkerSettings], EmbedFunction]) -> None:
    """Load the model, then answer requests until the input ends.

    Redirects standard output to standard error, so that what a library prints does not get between
    the frames. A request that fails is answered with the error's type; the loop goes on.

    Args:
        load_model: Loads the model. What it raises ends the process before it is ready.
    """
    settings = settings_from_argv()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lower_priority(settings.nice)
    refuse_internet()
    embed = load_model(settings)
    write_frame(answers, {"ready": settings.dimension})
    while (request := read_frame(sys.stdin.buffer)) is not None:
        _answer(answers, embed, request)


def lower_priority(nice: int) -> None:
    """Lower the CPU and I/O priority of this process, so that other programs go first.

    Args:
        nice: Added to the nice value; 0 changes neither priority.
    """
    if not nice:
        return
    os.nice(nice)
    if hasattr(psutil, "IOPRIO_CLASS_IDLE"):  # Linux only.
        with suppress(psutil.Error, OSError):
            psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)


def _answer(answers: BinaryIO, embed: EmbedFunction, frame: object) -> None:
    answer: dict[str, object]
    try:
        request = msgspec.convert(frame, EmbedRequest)
        answer = {"vectors": embed(request.texts, request.query)}
    except Exception as error:  # noqa: BLE001 - a model may raise anything; the daemon needs an answer
        # Only the type: the message of an exception can hold the text that was embedded.
        answer = {"error": type(error).__name__}
    write_frame(answers, answer)
