"""The program of the light embedding process: a model exported to ONNX on onnxruntime, without torch.

Started in a third of a second, with a fifth of torch's memory and, on one text, two to three times its speed (EMBEDDING.md).
A model in whole numbers (int8) scales them by what is in the batch: a vector would depend on its neighbours, so it gets one
text a call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from anchord.adapters.serving import Encode, Settings, serve

_QUIET = 3
_WHOLE_NUMBERS = "int8"


class OnnxModel:
    """An exported model and its tokenizer: texts -> vectors, of length one."""

    def __init__(self, given: Settings) -> None:
        """Load both."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = given.threads, 1
        options.enable_mem_pattern = False  # Patterns are kept for each shape, and every batch has one of its own.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # Waiting threads would burn a core.
        options.log_severity_level = _QUIET
        self._session = onnxruntime.InferenceSession(given.onnx, options, providers=["CPUExecutionProvider"])
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._tokenizer = Tokenizer.from_file(given.tokenizer)
        self._tokenizer.no_truncation()  # The file may cut at 128 and fill up to it: see `tokenizer`.
        self._tokenizer.no_padding()
        self._prefixes = (given.text_prefix, given.query_prefix)
        self._singly = _WHOLE_NUMBERS in given.onnx.rpartition("/")[2]

    def embed(self, texts: Sequence[str], *, query: bool) -> bytes:
        """Return the vectors of texts, one after another, as float32."""
        prefix = self._prefixes[query]
        encodings = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        ids = [encoding.ids for encoding in encodings]
        parts = [[one] for one in ids] if self._singly else [ids] if ids else []
        return b"".join(self._run(part) for part in parts)

    def _run(self, ids: Sequence[Sequence[int]]) -> bytes:
        shape = (len(ids), max(map(len, ids)))
        given = {name: np.zeros(shape, np.int64) for name in self._inputs}
        for row, tokens in enumerate(ids):
            given["input_ids"][row, : len(tokens)] = tokens
            if "attention_mask" in given:
                given["attention_mask"][row, : len(tokens)] = 1
        (vectors,) = self._session.run(None, given)
        return bytes(np.asarray(vectors, "<f4").tobytes())


def load(given: Settings) -> Encode:
    """Load the model."""
    model = OnnxModel(given)
    return lambda texts, query: model.embed(texts, query=query)


if __name__ == "__main__":
    serve(load)
