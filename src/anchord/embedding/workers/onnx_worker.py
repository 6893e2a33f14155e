"""The program of the light embedding process: an ONNX export on onnxruntime, without torch.

It starts in a third of a second, with a fifth of torch's memory. On one text it is two to three
times as fast as torch (`docs/design/embedding.md`).

An int8 model scales its numbers by what is in the batch, so a vector would depend on the others.
Such a model gets one text at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from anchord.embedding.workers.worker_main import EmbedFunction, WorkerSettings, run_worker_loop

_LOG_ERRORS = 3
_INT8_MARK = "int8"


class OnnxModel:
    """An exported model and its tokenizer."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Load the model from `settings.onnx` and the tokenizer."""
        self._session = onnxruntime.InferenceSession(
            settings.onnx, _session_options(settings.threads), providers=["CPUExecutionProvider"]
        )
        self._input_names = [each.name for each in self._session.get_inputs()]
        self._tokenizer = Tokenizer.from_file(settings.tokenizer)
        # The file may tell the tokenizer to cut texts at 128 tokens and to pad them to 128.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._text_prefix = settings.text_prefix
        self._query_prefix = settings.query_prefix
        file_name = settings.onnx.rpartition("/")[2]
        self._embeds_singly = _INT8_MARK in file_name

    def embed(self, texts: Sequence[str], *, query: bool) -> bytes:
        """Embed texts.

        Args:
            texts: Texts of at most `window` tokens.
            query: Whether the texts are queries, which have another prefix.

        Returns:
            The L2-normalised vectors one after another, as little-endian float32; b"" for no texts.
        """
        if not texts:
            return b""
        prefix = self._query_prefix if query else self._text_prefix
        encodings = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        token_ids = [encoding.ids for encoding in encodings]
        batches = [[ids] for ids in token_ids] if self._embeds_singly else [token_ids]
        return b"".join(self._run(batch) for batch in batches)

    def _run(self, token_ids: Sequence[Sequence[int]]) -> bytes:
        """Run the model on one batch; shorter texts are padded with 0 and masked."""
        shape = (len(token_ids), max(map(len, token_ids)))
        inputs = {name: np.zeros(shape, np.int64) for name in self._input_names}
        for row, ids in enumerate(token_ids):
            inputs["input_ids"][row, : len(ids)] = ids
            if "attention_mask" in inputs:
                inputs["attention_mask"][row, : len(ids)] = 1
        (vectors,) = self._session.run(None, inputs)
        return bytes(np.asarray(vectors, "<f4").tobytes())


def load_onnx_embedder(settings: WorkerSettings) -> EmbedFunction:
    """Load the exported model and return the function that embeds with it."""
    model = OnnxModel(settings)

    def embed(texts: Sequence[str], query: bool) -> bytes:  # noqa: FBT001 - as `EmbedFunction` says
        return model.embed(texts, query=query)

    return embed


def _session_options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Memory patterns are kept for each shape of a batch, and every batch has its own shape.
    options.enable_mem_pattern = False
    # Threads that wait would otherwise keep a core busy.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = _LOG_ERRORS
    return options


if __name__ == "__main__":
    run_worker_loop(load_onnx_embedder)
