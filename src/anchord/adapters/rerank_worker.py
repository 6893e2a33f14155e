"""The program of the process that runs a CrossEncoder: how well each text answers a query. It ends when its input does."""

from __future__ import annotations

import os
import sys
from typing import Any

from sentence_transformers import CrossEncoder

from anchord.adapters.child import die_with_parent
from anchord.adapters.frames import read_frame, write_frame


def scores(model: Any, query: str, texts: list[str]) -> list[float]:  # noqa: ANN401 - the library's type, told by it alone
    """Return a number a text; more is better."""
    return [float(score) for score in model.predict([(query, text) for text in texts], show_progress_bar=False)]


def main() -> None:
    """Load the model, say so, and answer until the input ends."""
    die_with_parent()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        model = CrossEncoder(sys.argv[1], device="cpu", local_files_only=True, trust_remote_code=False)
        write_frame(answers, {"ready": True})
    except Exception as error:  # noqa: BLE001 - whatever a stranger's model does, the reason is told
        write_frame(answers, {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"})
        return
    while isinstance(frame := read_frame(sys.stdin.buffer), dict):
        try:
            write_frame(answers, {"scores": scores(model, str(frame["query"]), list(frame["texts"]))})
        except Exception as error:  # noqa: BLE001 - likewise
            write_frame(answers, {"error": type(error).__name__})


if __name__ == "__main__":
    main()
