"""Which precision a model runs in where the configuration leaves it open."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anchord.embedding.worker_options import WorkerOptions
from anchord.embedding.workers.export_cache import INT8, ExportInfo, has_accelerator
from anchord.errors import EmbedderError

AUTO = "auto"
FP32 = "fp32"


def resolve_precision(
    options: WorkerOptions,
    model_id: str,
    find_export: Callable[[str], tuple[ExportInfo, Path] | None],
) -> str:
    """Return the precision that options name; where they leave it open, `choose_precision`.

    Args:
        options: How the model is run.
        model_id: The id of the model, without a precision.
        find_export: Returns the model's export of a precision, None if there is none yet.
    """
    if options.precision != AUTO:
        return options.precision
    if _failure_note(options).exists():
        return FP32
    int8_export = find_export(INT8)
    return choose_precision(
        options.indexed_model,
        model_id,
        is_default_model=options.is_default_model,
        has_accelerator=has_gpu(),
        has_int8_failed=int8_export is not None and int8_export[0].runtime != "onnx",
    )


def int8_failure(options: WorkerOptions, model_id: str, reason: str) -> EmbedderError:
    """Return the error of a model without an int8 form.

    Where nobody chose int8 and no vectors are in it, a note makes the next start take fp32.

    Args:
        options: How the model is run. `indexed_model` is what the index was made with before this
            process opened it.
        model_id: The id of the model, without a precision.
        reason: Why there is no int8 form.
    """
    hint = 'set precision = "fp32" under [embedding]'
    if options.precision == AUTO and options.indexed_model != int8_id(model_id):
        note = _failure_note(options)
        with suppress(OSError):
            note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            note.write_text(f"{reason}\n", "utf-8")
            hint = "`anchord restart`: from then on the model runs in fp32"
    return EmbedderError(f"this model has no int8 version: {reason}", hint)


def has_gpu() -> bool:
    """Return whether the machine may have a GPU: int8 was not measured beside one."""
    return has_accelerator() or sys.platform == "darwin"  # A Mac's has no driver file.


def _failure_note(options: WorkerOptions) -> Path:
    """Return the file that says that int8 failed in this home."""
    return (options.older_exports_folder or options.exports_folder) / "no-int8"


def choose_precision(
    indexed_model: str,
    model_id: str,
    *,
    is_default_model: bool,
    has_accelerator: bool,
    has_int8_failed: bool,
) -> str:
    """Return "fp32" or "int8".

    An index keeps what it was made with, because another precision embeds every text again. A new
    one is made with int8 where that was measured: with the default model, on a processor. There it
    takes less than half the time, and 1,173 questions found their files as before
    (`docs/design/embedding.md`). An accelerator runs the model itself.

    Args:
        indexed_model: The model's id with precision that the index was made with; "" for none.
        model_id: The id of the configured model, without a precision.
        is_default_model: Whether it is that of the default configuration.
        has_accelerator: Whether the machine has a GPU.
        has_int8_failed: Whether an int8 form of the model was tried here and failed. An index that
            has such vectors keeps them all the same.
    """
    if indexed_model == model_id:
        return FP32
    if indexed_model == int8_id(model_id):
        return INT8
    return INT8 if is_default_model and not (has_accelerator or has_int8_failed) else FP32


def int8_id(model_id: str) -> str:
    """Return the id of a model's int8 form: its vectors are others."""
    return f"{model_id}/{INT8}"


def precision_of(model_id: str) -> str:
    """Return the precision that an id of a model names."""
    return INT8 if model_id.endswith(f"/{INT8}") else FP32
