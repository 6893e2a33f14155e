"""The program of the embedding process that runs the model as it is: sentence-transformers on torch.

It serves where a model cannot be exported (`export`), or where there is an accelerator that is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from anchord.adapters.serving import Encode, Settings, serve


def load(given: Settings) -> Encode:
    """Load the model onto its device; on an accelerator in half precision."""
    torch.set_num_threads(given.threads)
    model = open_model(given.folder, given.device)
    found = model.get_embedding_dimension()
    if found != given.dimension:
        raise ValueError(f"the model gives {found} numbers where its files say {given.dimension}")

    def encode(texts: Sequence[str], query: bool) -> bytes:  # noqa: FBT001 - as `Encode` says
        return embed(model, texts, given.query_prefix if query else given.text_prefix, query=query)

    return encode


def open_model(folder: str, device: str) -> Any:  # noqa: ANN401 - the library's type, told by the library alone
    """Load a model from a folder; nothing is downloaded, and no code that comes with a model runs."""
    model = SentenceTransformer(folder, device=device, local_files_only=True, trust_remote_code=False)
    return model.half() if device != "cpu" else model


def embed(model: Any, texts: Sequence[str], prefix: str, *, query: bool) -> bytes:  # noqa: ANN401 - likewise
    """Return the vectors of texts, all in one batch, of length one."""
    encode = model.encode_query if query else model.encode_document  # Models with two ways tell them apart.
    vectors = encode(
        list(texts),
        prompt=prefix,
        batch_size=max(len(texts), 1),
        normalize_embeddings=True,
        convert_to_numpy=True,
        show_progress_bar=False,
    )
    return bytes(vectors.astype("<f4").tobytes())


if __name__ == "__main__":
    serve(load)
