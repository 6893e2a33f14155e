"""What MemPalace embeds of a folder of sessions before and after an appended exchange, and what it keeps of them.

    python tests/tools/benchmarks/peer_mempalace.py FOLDER APPENDED FILE

Run by `bench_conversations.py --peer PYTHON` with a Python that has mempalace (it need not have anchord). FILE is in FOLDER;
the bytes of APPENDED are added to it between two runs of its own miner. Its embedding function is replaced by one that counts.
Prints JSON: {"first": texts, "appended": texts, "documents": [text, ...]}.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def main() -> int:
    """Mine twice; print what was counted."""
    folder, appended, file = map(Path, sys.argv[1:4])
    with tempfile.TemporaryDirectory() as home:
        os.environ.update({"HOME": home, "MEMPALACE_HOME": home, "ANONYMIZED_TELEMETRY": "False"})
        counts = _counting()
        from mempalace.convo_miner import mine_convos  # noqa: PLC0415 - its home is read when it is imported

        palace = str(Path(home) / "palace")
        out, sys.stdout = sys.stdout, sys.stderr
        mine_convos(str(folder), palace)
        first = len(counts)
        time.sleep(1.1)  # It compares times of writing.
        with file.open("ab") as stream:
            stream.write(appended.read_bytes())
        mine_convos(str(folder), palace)
        sys.stdout = out
        json.dump(
            {"first": first, "appended": len(counts) - first, "documents": _documents(palace)},
            sys.stdout,
        )
    return 0


def _counting() -> list[str]:
    """Replace what embeds; return the list that grows with each text."""
    import chromadb.utils.embedding_functions as functions  # noqa: PLC0415 - only where this is run
    import mempalace.embedding as theirs  # noqa: PLC0415 - likewise
    import numpy  # noqa: PLC0415, ICN001 - likewise

    texts: list[str] = []

    class Counting(functions.DefaultEmbeddingFunction):  # type: ignore[misc]
        """Vectors that say nothing."""

        def __call__(self, input: Any) -> Any:  # noqa: A002, ANN401 - chromadb's name and types
            texts.extend(input)
            return [numpy.full(384, 1 / (1 + len(text)), dtype=numpy.float32) for text in input]

    made = Counting()
    for name in dir(theirs):
        if name.startswith("get_embedding") or name == "embedding_function":
            setattr(theirs, name, lambda *_, **__: made)
    return texts


def _documents(palace: str) -> list[str]:
    import chromadb  # noqa: PLC0415 - only where this is run

    client = chromadb.PersistentClient(palace)
    return [
        text
        for found in client.list_collections()
        for text in client.get_collection(found.name).get()["documents"] or []
    ]


if __name__ == "__main__":
    sys.exit(main())
