"""The program of the process that scores with a CrossEncoder how well each text answers a query.

`python -m anchord.embedding.workers.rerank_worker FOLDER` is such a process. The first frame on its
standard output is {"ready": true} or {"error": reason}. A request is {"query": text, "texts":
[...]}; the answer is {"scores": [...]} or {"error": type}. The process ends when its input ends.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from sentence_transformers import CrossEncoder

from anchord.ipc.confinement import refuse_internet
from anchord.ipc.framing import read_frame, write_frame
from anchord.ipc.worker_process import die_with_parent


def score_texts(model: Any, query: str, texts: list[str]) -> list[float]:  # noqa: ANN401 - the library's own type
    """Return a score for each text, in order; a higher score is a better answer."""
    pairs = [(query, text) for text in texts]
    scores = model.predict(pairs, show_progress_bar=False)
    return [float(score) for score in scores]


def main() -> None:
    """Load the model named on the command line; answer requests until standard input ends."""
    die_with_parent()
    refuse_internet()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a library prints must not get between the frames.
    try:
        model = CrossEncoder(
            sys.argv[1], device="cpu", local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # noqa: BLE001 - a model may raise anything; the daemon needs the reason
        write_frame(answers, {"error": _first_line(error)})
        return
    write_frame(answers, {"ready": True})
    while isinstance(request := read_frame(sys.stdin.buffer), dict):
        write_frame(answers, _answer(model, request))


def _answer(model: Any, request: dict[str, Any]) -> dict[str, object]:  # noqa: ANN401 - likewise
    try:
        return {"scores": score_texts(model, str(request["query"]), list(request["texts"]))}
    except Exception as error:  # noqa: BLE001 - likewise
        # Only the type: the message of an exception can hold the text that was scored.
        return {"error": type(error).__name__}


def _first_line(error: Exception) -> str:
    """Return the type and the first line of an exception."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


if __name__ == "__main__":
    main()
