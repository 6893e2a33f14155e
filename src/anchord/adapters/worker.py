"""The program of the embedding process: sentence-transformers behind a pipe. The only user of sentence_transformers and torch.

Started by `embedder` as `python -m anchord.adapters.worker FOLDER THREADS`. Frames both ways: four bytes of length, then
MessagePack. A request is a list of texts; an answer is {"vectors": float32 bytes} or {"error": text}. The first frame it
sends is {"ready": dimension}. It ends when its input ends, so it never outlives a daemon that was killed.

What a library prints goes to standard error: standard output carries frames alone.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import BinaryIO

import msgspec

_LENGTH = struct.Struct("<I")
_BATCH = 16


def read_frame(stream: BinaryIO) -> object:
    """Return the next frame's value, None at the end of the stream and for bytes that are no frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    body = stream.read(size)
    try:
        return msgspec.msgpack.decode(body) if len(body) == size else None
    except msgspec.DecodeError:
        return None


def write_frame(stream: BinaryIO, value: object) -> None:
    """Send a frame."""
    body = msgspec.msgpack.encode(value)
    stream.write(_LENGTH.pack(len(body)) + body)
    stream.flush()


def main() -> None:
    """Load the model, then answer until the input ends."""
    folder, threads = sys.argv[1], int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.nice(10)

    import torch  # noqa: PLC0415 - after standard output is safe
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415

    torch.set_num_threads(threads)
    model = SentenceTransformer(folder, device="cpu", local_files_only=True, trust_remote_code=False)
    write_frame(answers, {"ready": model.get_embedding_dimension()})
    while (texts := read_frame(sys.stdin.buffer)) is not None:
        try:
            vectors = model.encode(
                texts, batch_size=_BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
            )
            answer: dict[str, object] = {"vectors": vectors.astype("<f4").tobytes()}
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the daemon must hear of it and go on
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        write_frame(answers, answer)


if __name__ == "__main__":
    main()
