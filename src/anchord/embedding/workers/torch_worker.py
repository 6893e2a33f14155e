"""The program of the embedding process that runs a model itself: sentence-transformers on torch.

It is used where a model cannot be exported (`export_model`), and for a large backlog where an
accelerator is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from anchord.embedding.workers.worker_main import EmbedFunction, WorkerSettings, run_worker_loop


def load_torch_embedder(settings: WorkerSettings) -> EmbedFunction:
    """Load a model onto its device and return the function that embeds with it.

    Sets the number of torch's threads for the whole process.

    Raises:
        ValueError: The model's vectors do not have `settings.dimension` dimensions.
    """
    torch.set_num_threads(settings.threads)
    model = load_sentence_transformer(settings.folder, settings.device)
    dimension = model.get_embedding_dimension()
    if dimension != settings.dimension:
        raise ValueError(
            f"the model's vectors have {dimension} dimensions, its files say {settings.dimension}"
        )

    def embed(texts: Sequence[str], query: bool) -> bytes:  # noqa: FBT001 - as `EmbedFunction` says
        prefix = settings.query_prefix if query else settings.text_prefix
        return embed_batch(model, texts, prefix, query=query)

    return embed


def load_sentence_transformer(folder: str, device: str) -> Any:  # noqa: ANN401 - the library's own type
    """Load a model from a folder; on an accelerator in half precision.

    Nothing is downloaded, and no code that comes with the model runs.

    Args:
        folder: The model's own files.
        device: "cpu", or an accelerator as torch names it ("cuda", "mps").
    """
    model = SentenceTransformer(
        folder, device=device, local_files_only=True, trust_remote_code=False
    )
    return model if device == "cpu" else model.half()


def embed_batch(model: Any, texts: Sequence[str], prefix: str, *, query: bool) -> bytes:  # noqa: ANN401 - likewise
    """Embed texts in one batch.

    Args:
        model: What `load_sentence_transformer` returned.
        texts: Texts of at most the model's window.
        prefix: Put before each text.
        query: Whether the texts are queries; some models embed queries differently.

    Returns:
        The L2-normalised vectors one after another, as little-endian float32.
    """
    encode = model.encode_query if query else model.encode_document
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
    run_worker_loop(load_torch_embedder)
