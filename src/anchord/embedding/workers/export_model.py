"""The program that exports a model for this machine: to ONNX, checked against the model, measured.

`python -m anchord.embedding.workers.export_model SETTINGS FOLDER PRECISION` writes `facts.json`
and, if all went well, the exported model to FOLDER. The exported model returns normalised vectors:
pooling and normalisation are inside. It is kept only if its vectors are those of the model itself,
alone and in batches, over texts of many kinds. Otherwise the model itself is served, and
`facts.json` has the reason.
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from anchord.embedding.tokenizer import shared_token_counter
from anchord.embedding.workers.export_cache import (
    CPU,
    EXPORT_INFO_FILE,
    INT8,
    ExportInfo,
    choose_backlog_device,
    library_versions,
    machine_signature,
)
from anchord.embedding.workers.onnx_worker import OnnxModel
from anchord.embedding.workers.torch_worker import embed_batch, load_sentence_transformer
from anchord.embedding.workers.worker_main import WorkerSettings, lower_priority, settings_from_argv
from anchord.ipc.confinement import refuse_internet

_OPSET = 17
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_MIN_COSINE = {"fp32": 0.9999, INT8: 0.95}
"""Between a text's vectors by the export and by the model itself.

int8 is less exact by nature: 0.992 on average, 0.987 at worst.
"""
_MIN_COSINE_IN_BATCH = 0.9999
"""Between a text's vectors alone and in a batch of other texts."""
_MIN_COSINE_HALF = 0.999
"""Between an accelerator's vectors, in half precision, and those of the model itself."""
_MEASURE_S = 1.0
_CPU_BATCH_TEXTS = 8
_ACCELERATOR_BATCH_TEXTS = 256

_PROBES = (
    "",
    "a",
    "?",
    "hello world",
    "The quick brown fox jumps over the lazy dog.",
    "How do I restore a backup?",
    "def add(a: int, b: int) -> int:\n    return a + b\n",
    "SELECT id, name FROM users WHERE created_at > now() - interval '7 days' ORDER BY name;",
    "# Setup\n\n- install the package\n- run `anchord start`\n- ask\n",
    "| a | b |\n| --- | --- |\n| 1 | 2 |\n",
    "Überraschung: die Größe ändert sich täglich, naïve café.",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "快速的棕色狐狸跳过懒狗。索引总是与重建的结果一致。",
    "いろはにほへと ちりぬるを",
    "אבגד הוזח",
    "😀🎉🚀👩‍👩‍👧‍👦🏳️‍🌈",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IGFuZCBub2JvZHkgcmVhZHMgaXQ=",
    '!function(e,t){"object"==typeof exports?t(exports):t(e.x={})}(this)',
    "0x7ffee4c0 0xdeadbeef 1234567890 3.14159 1e-9",
    "\t\n  \r\n",
    "x" * 300,
)
"""Texts of many kinds, by which an export is compared with the model."""
_QUESTION = "How do I restore a backup?"
_SHORT_QUESTION = "?"
_SENTENCE = (
    "An edit at the top of a file leaves the identifiers of everything below it as they were. "
)


class _DifferentVectorsError(Exception):
    """The export's vectors are not those of the model; the message says how they differ."""


@dataclass(frozen=True, slots=True)
class _Reference:
    """The vectors of the model itself, by which an export is checked."""

    probes: tuple[str, ...]
    vectors: tuple[bytes, ...]
    """Of each probe, embedded alone."""
    question: str
    question_vector: bytes


def main() -> None:
    """Export the model, check it, measure it, and write `facts.json`.

    Raises:
        OSError, MemoryError: For lack of disk space or memory; nothing is written, because another
            try may work.
    """
    settings = settings_from_argv()
    folder, precision = Path(sys.argv[2]), sys.argv[3]
    lower_priority(settings.nice)
    refuse_internet()
    os.dup2(2, 1)
    torch.set_num_threads(settings.threads)
    try:
        info = _prepare(settings, folder, precision)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a library may raise anything; the model itself still works
        info = ExportInfo(
            runtime="torch",
            why=f"it cannot be exported ({_reason(error)})",
            made_by=library_versions(),
            machine=machine_signature(),
        )
        for file in folder.iterdir():
            file.unlink()
    (folder / EXPORT_INFO_FILE).write_bytes(msgspec.json.encode(info))


def _prepare(settings: WorkerSettings, folder: Path, precision: str) -> ExportInfo:
    """Export a model to a folder, check it, and measure it on every device.

    Raises:
        _DifferentVectorsError: The export's vectors are not those of the model.
    """
    model = load_sentence_transformer(settings.folder, CPU)
    reference = _reference_vectors(model, settings)
    exported_file = str(folder / "model.onnx")
    _export(model, exported_file)
    if precision == INT8:
        onnx_model, cosine = _quantize_and_check(
            exported_file,
            folder,
            settings,
            reference,
        )
        os.unlink(exported_file)
    else:
        onnx_model, cosine = _check(
            exported_file,
            settings,
            reference,
            precision,
        )
    text = _half_window_text(settings)

    def embed(texts: Sequence[str]) -> bytes:
        return onnx_model.embed(texts, query=False)

    rates = {CPU: _texts_per_second(embed, text, _CPU_BATCH_TEXTS)}
    if precision != INT8:  # An accelerator runs the model itself, whose vectors are not int8.
        for device in _accelerators():
            rate = _rate_on_accelerator(device, settings, text, reference)
            if rate:
                rates[device] = rate
    return ExportInfo(
        runtime="onnx",
        device=choose_backlog_device(rates),
        cosine=round(cosine, 6),
        rates=rates,
        made_by=library_versions(),
        machine=machine_signature(),
    )


def _reference_vectors(model: Any, settings: WorkerSettings) -> _Reference:  # noqa: ANN401 - the library's own type
    """Embed a question and the probes that fit in the window with the original model."""
    long_probes = (_long_text(settings.window // 2), _long_text(settings.window))
    probes = tuple(text for text in (*_PROBES, *long_probes) if _fits_window(text, settings))
    vectors = [embed_batch(model, [text], settings.text_prefix, query=False) for text in probes]
    question = _QUESTION if _fits_window(_QUESTION, settings) else _SHORT_QUESTION
    question_vector = embed_batch(
        model,
        [question],
        settings.query_prefix,
        query=True,
    )
    return _Reference(probes, tuple(vectors), question, question_vector)


def _fits_window(text: str, settings: WorkerSettings) -> bool:
    counter = shared_token_counter(Path(settings.tokenizer))
    return counter.count_without_caching([text])[0] <= settings.window


def _half_window_text(settings: WorkerSettings) -> str:
    """Return a text of about half a window; shorter where a word has many tokens."""
    text = _long_text(settings.window // 2)
    while not _fits_window(text, settings):
        text = text[: len(text) // 2]
    return text


def _quantize_and_check(
    exported_file: str, folder: Path, settings: WorkerSettings, reference: _Reference
) -> tuple[OnnxModel, float]:
    """Quantize an export to int8, with a reduced range only where the full range fails the check.

    Some processors (AVX2, and AVX512 without VNNI) saturate with the full range.

    Raises:
        _DifferentVectorsError: The check fails with both ranges.
    """
    target = str(folder / "model.int8.onnx")
    try:
        _quantize(exported_file, target, reduce_range=False)
        return _check(target, settings, reference, INT8)
    except _DifferentVectorsError:
        _quantize(exported_file, target, reduce_range=True)
        return _check(target, settings, reference, INT8)


def _check(
    file: str, settings: WorkerSettings, reference: _Reference, precision: str
) -> tuple[OnnxModel, float]:
    """Load an export; return it with the smallest cosine between its vectors and the model's.

    Raises:
        _DifferentVectorsError: A cosine is too small.
    """
    onnx_model = OnnxModel(msgspec.structs.replace(settings, onnx=file))
    min_cosine = _MIN_COSINE[precision]
    alone = [onnx_model.embed([text], query=False) for text in reference.probes]
    cosine = min(map(_cosine, alone, reference.vectors))
    if cosine < min_cosine:
        raise _DifferentVectorsError(f"its vectors differ from the original's: cosine {cosine:.5f}")
    in_batch = _split_vectors(onnx_model.embed(reference.probes, query=False), settings)
    batch_cosine = min(map(_cosine, alone, in_batch))
    if batch_cosine < _MIN_COSINE_IN_BATCH:
        raise _DifferentVectorsError(
            f"a vector depends on the other texts of a batch: cosine {batch_cosine:.5f}"
        )
    question_vector = onnx_model.embed([reference.question], query=True)
    query_cosine = _cosine(question_vector, reference.question_vector)
    if query_cosine < min_cosine:
        raise _DifferentVectorsError(
            f"its vectors of queries differ from the original's: cosine {query_cosine:.5f}"
        )
    return onnx_model, cosine


def _export(model: Any, file: str) -> None:  # noqa: ANN401 - likewise
    """Write a model to an ONNX file, with pooling and normalisation inside."""
    inputs = model.tokenizer(
        ["a text", "another text that is longer"], return_tensors="pt", padding=True
    )
    names = [name for name in _INPUTS if name in inputs]

    class TokensToVectors(torch.nn.Module):
        """From token ids to L2-normalised vectors."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            features = dict(zip(names, tensors, strict=True))
            vectors = self.model(features)["sentence_embedding"]
            shortened = vectors[:, : model.truncate_dim]
            return torch.nn.functional.normalize(shortened, dim=-1)

    dynamic_axes = {name: {0: "texts", 1: "tokens"} for name in names}
    dynamic_axes["vectors"] = {0: "texts"}
    with torch.no_grad(), warnings.catch_warnings():
        # Torch warns about constants in a trace; the check by texts shows whether it is right.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            TokensToVectors().eval(),
            tuple(inputs[name] for name in names),
            file,
            input_names=names,
            output_names=["vectors"],
            dynamic_axes=dynamic_axes,
            opset_version=_OPSET,
            dynamo=False,
        )


def _quantize(file: str, target: str, *, reduce_range: bool) -> None:
    """Write an int8 form of an exported model, with 7 bits instead of 8 if `reduce_range`."""
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 - brings onnx, which only this needs

    # Scales for each channel, and the embedding table as it is: the probes' mean cosine is 0.989
    # instead of 0.924.
    quantize_dynamic(
        file,
        target,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=reduce_range,
        op_types_to_quantize=["MatMul"],
    )


def _accelerators() -> list[str]:
    """Return the names of the accelerators that torch can use here."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    return [name for name, is_available in available.items() if is_available]


def _rate_on_accelerator(
    device: str, settings: WorkerSettings, text: str, reference: _Reference
) -> float:
    """Return an accelerator's texts a second; 0 if it fails or its vectors are not the model's."""
    try:
        model = load_sentence_transformer(settings.folder, device)

        def embed(texts: Sequence[str]) -> bytes:
            return embed_batch(
                model,
                texts,
                settings.text_prefix,
                query=False,
            )

        vectors = _split_vectors(embed(reference.probes), settings)
        if min(map(_cosine, vectors, reference.vectors)) < _MIN_COSINE_HALF:
            return 0.0
        return _texts_per_second(embed, text, _ACCELERATOR_BATCH_TEXTS)
    except RuntimeError:
        # Whatever the driver's problem is: the CPU still works.
        return 0.0


def _texts_per_second(
    embed: Callable[[Sequence[str]], bytes], text: str, batch_texts: int
) -> float:
    """Measure for a second how many texts are embedded, after one batch to warm up."""
    batch = [text] * batch_texts
    embed(batch)
    embedded, started = 0, time.perf_counter()
    while (elapsed_s := time.perf_counter() - started) < _MEASURE_S:
        embed(batch)
        embedded += batch_texts
    return round(embedded / elapsed_s, 1)


def _long_text(tokens: int) -> str:
    """Return English words of about so many tokens: two words for three tokens, at least one."""
    words = (_SENTENCE * (tokens // 8 + 1)).split()
    return " ".join(words[: max(tokens * 2 // 3, 1)])


def _split_vectors(vectors: bytes, settings: WorkerSettings) -> list[bytes]:
    size = 4 * settings.dimension
    return [vectors[start : start + size] for start in range(0, len(vectors), size)]


def _cosine(vector: bytes, other: bytes) -> float:
    """Return the cosine of two L2-normalised vectors."""
    pairs = zip(array("f", vector), array("f", other), strict=True)
    return math.fsum(a * b for a, b in pairs)


def _reason(error: Exception) -> str:
    """Return why an export failed; of an error of a library its type alone.

    The message of a library's error can hold paths.
    """
    return str(error) if isinstance(error, _DifferentVectorsError) else type(error).__name__


if __name__ == "__main__":
    main()
