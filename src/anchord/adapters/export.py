"""The program that makes a model ready for this machine, once: exported to ONNX, checked against the original, measured.

`python -m anchord.adapters.export SETTINGS FOLDER PRECISION` leaves a `facts.json` in FOLDER (see `prepared`). The exported
model gives vectors of length one: pooling and normalisation are inside. It is kept only if its vectors are the original's,
alone and in batches, over texts of all kinds; else the original serves, and the facts say why.
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

from anchord.adapters.onnx_worker import OnnxModel
from anchord.adapters.prepared import CPU, FACTS, INT8, Facts, choose, machine, made_by
from anchord.adapters.serving import Settings, settings, step_back
from anchord.adapters.tokenizer import counter_of
from anchord.adapters.torch_worker import embed, open_model

_OPSET = 17
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_LEAST_COSINE = {"fp32": 0.9999, INT8: 0.95}
"""Between a text's vectors by the export and by the original. int8 is coarser by nature: .992 in the mean, .987 at worst."""
_LEAST_TOGETHER = 0.9999
"""Between its vectors alone and in a batch of others."""
_LEAST_HALF = 0.999
"""Between an accelerator's vectors in half precision and the original's."""
_MEASURE_S = 1.0
_BATCH_TEXTS = 8
_LARGE_BATCH = 256

_PROBES = (
    "", "a", "?", "hello world", "The quick brown fox jumps over the lazy dog.",
    "How do I restore a backup?", "def add(a: int, b: int) -> int:\n    return a + b\n",
    "SELECT id, name FROM users WHERE created_at > now() - interval '7 days' ORDER BY name;",
    "# Setup\n\n- install the package\n- run `anchord start`\n- ask\n", "| a | b |\n| --- | --- |\n| 1 | 2 |\n",
    "Überraschung: die Größe ändert sich täglich, naïve café.", "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "快速的棕色狐狸跳过懒狗。索引总是与重建的结果一致。", "いろはにほへと ちりぬるを", "אבגד הוזח", "😀🎉🚀👩‍👩‍👧‍👦🏳️‍🌈",
    "aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IGFuZCBub2JvZHkgcmVhZHMgaXQ=",
    '!function(e,t){"object"==typeof exports?t(exports):t(e.x={})}(this)',
    "0x7ffee4c0 0xdeadbeef 1234567890 3.14159 1e-9", "\t\n  \r\n", "x" * 300,
)  # fmt: skip
_QUESTION = "How do I restore a backup?"
_SENTENCE = "An edit at the top of a file leaves the identifiers of everything below it as they were. "


def main() -> None:
    """Export, check, measure, and write down what came of it."""
    given, folder, precision = settings(), Path(sys.argv[2]), sys.argv[3]
    step_back(given.nice)
    os.dup2(2, 1)
    torch.set_num_threads(given.threads)
    try:
        facts = _prepare(given, folder, precision)
    except (OSError, MemoryError):
        raise  # It may work when there is room: no fact of the model.
    except Exception as error:  # noqa: BLE001 - a model that cannot be exported is served as it is; the facts say so
        why = f"it cannot be exported ({_reason(error)})"
        facts = Facts(runtime="torch", why=why, made_by=made_by(), machine=machine())
        for left in folder.iterdir():
            left.unlink()
    (folder / FACTS).write_bytes(msgspec.json.encode(facts))


def _prepare(given: Settings, folder: Path, precision: str) -> Facts:
    model = open_model(given.folder, CPU)
    count = counter_of(Path(given.tokenizer))
    probes = [
        text for text in (*_PROBES, _long(given.window // 2), _long(given.window)) if count.once([text])[0] <= given.window
    ]
    question = _QUESTION if count.once([_QUESTION])[0] <= given.window else "?"
    original = _Original(
        tuple(embed(model, [text], given.text_prefix, query=False) for text in probes),
        embed(model, [question], given.query_prefix, query=True),
        question,
    )
    exported, target = str(folder / "model.onnx"), str(folder / "model.int8.onnx")
    _export(model, exported)
    text = _long(given.window // 2)
    while count.once([text])[0] > given.window:
        text = text[: len(text) // 2]
    if precision == INT8:
        try:
            light, cosine = _checked(_quantized(exported, target, narrow=False), given, probes, original, precision)
        except _UnlikeError:
            light, cosine = _checked(_quantized(exported, target, narrow=True), given, probes, original, precision)
        os.unlink(exported)
        rates = {CPU: _rate(lambda texts: light.embed(texts, query=False), text, _BATCH_TEXTS)}
    else:
        light, cosine = _checked(exported, given, probes, original, precision)
        rates = {CPU: _rate(lambda texts: light.embed(texts, query=False), text, _BATCH_TEXTS)}
        found = {device: _rate_on(device, given, text, original, probes) for device in _accelerators()}
        rates |= {device: rate for device, rate in found.items() if rate}
    return Facts(
        runtime="onnx", device=choose(rates), cosine=round(cosine, 6), rates=rates, made_by=made_by(), machine=machine()
    )


@dataclass(frozen=True, slots=True)
class _Original:
    """What the model itself says: of each probe alone, and of a question, which may be short."""

    vectors: tuple[bytes, ...]
    queried: bytes
    question: str


def _checked(file: str, given: Settings, probes: Sequence[str], original: _Original, precision: str) -> tuple[OnnxModel, float]:
    """Load an export; return it with the smallest cosine to the original.

    Raises:
        _UnlikeError: its vectors are not those of the original.
    """
    light = OnnxModel(msgspec.structs.replace(given, onnx=file))
    alone = [light.embed([text], query=False) for text in probes]
    together = _split(light.embed(probes, query=False), given)
    cosine = min(map(_cosine, alone, original.vectors))
    _require(cosine >= _LEAST_COSINE[precision], f"its vectors differ from the original's: cosine {cosine:.5f}")
    batched = min(map(_cosine, alone, together))
    _require(batched >= _LEAST_TOGETHER, f"a vector depends on the other texts of a batch: cosine {batched:.5f}")
    queried = _cosine(light.embed([original.question], query=True), original.queried)
    _require(queried >= _LEAST_COSINE[precision], f"its vectors of queries differ: cosine {queried:.5f}")
    return light, cosine


def _export(model: Any, file: str) -> None:  # noqa: ANN401 - the library's type, told by the library alone
    inputs = model.tokenizer(["a text", "another text that is longer"], return_tensors="pt", padding=True)
    names = [name for name in _INPUTS if name in inputs]

    class Whole(torch.nn.Module):
        """Token ids -> vectors of length one."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            vectors = self.model(dict(zip(names, tensors, strict=True)))["sentence_embedding"]
            return torch.nn.functional.normalize(vectors[:, : model.truncate_dim], dim=-1)

    axes = {name: {0: "texts", 1: "tokens"} for name in names} | {"vectors": {0: "texts"}}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # On constants of a trace; whether it is right is checked on texts.
        torch.onnx.export(
            Whole().eval(), tuple(inputs[name] for name in names), file, input_names=names, output_names=["vectors"],
            dynamic_axes=axes, opset_version=_OPSET, dynamo=False,
        )  # fmt: skip


def _quantized(file: str, target: str, *, narrow: bool) -> str:
    """Make an int8 form. `narrow`: with a bit less, for processors that saturate otherwise (AVX2 and AVX512 without VNNI)."""
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415 - brings onnx, which only this needs

    # Scales for each channel, and the embedding table left as it is: .989 in place of .924 in the mean of the probes.
    options = {"per_channel": True, "reduce_range": narrow, "op_types_to_quantize": ["MatMul"]}
    quantize_dynamic(file, target, weight_type=QuantType.QInt8, **options)
    return target


def _accelerators() -> list[str]:
    return [name for name, there in (("cuda", torch.cuda.is_available()), ("mps", torch.backends.mps.is_available())) if there]


def _rate_on(device: str, given: Settings, text: str, original: _Original, probes: Sequence[str]) -> float:
    """Return an accelerator's tokens a second; 0 where it fails, or gives other vectors."""
    try:
        model = open_model(given.folder, device)
        vectors = _split(embed(model, probes, given.text_prefix, query=False), given)
        if min(map(_cosine, vectors, original.vectors)) < _LEAST_HALF:
            return 0.0
        return _rate(lambda texts: embed(model, texts, given.text_prefix, query=False), text, _LARGE_BATCH)
    except RuntimeError:  # Whatever a driver says: without it there is still the processor.
        return 0.0


def _rate(run: Callable[[list[str]], bytes], text: str, texts: int) -> float:
    """Return texts a second, of texts of half a window."""
    run([text] * texts)
    done, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < _MEASURE_S:
        run([text] * texts)
        done += texts
    return round(done / took, 1)


def _long(tokens: int) -> str:
    words = (_SENTENCE * (tokens // 8 + 1)).split()
    return " ".join(words[: max(tokens * 2 // 3, 1)])


def _split(vectors: bytes, given: Settings) -> list[bytes]:
    size = 4 * given.dimension
    return [vectors[at : at + size] for at in range(0, len(vectors), size)]


def _cosine(one: bytes, other: bytes) -> float:
    """Both are of length one."""
    left, right = array("f", one), array("f", other)
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def _require(true: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition
    if not true:
        raise _UnlikeError(otherwise)


class _UnlikeError(Exception):
    """The export is not the model."""


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, _UnlikeError) else type(error).__name__


if __name__ == "__main__":
    main()
