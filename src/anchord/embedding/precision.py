"""Which precision a model runs in where the configuration leaves it open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from anchord.embedding.worker_options import WorkerOptions
from anchord.embedding.workers.export_cache import INT8, ExportInfo, has_accelerator

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
    int8_export = find_export(INT8)
    return choose_precision(
        options.indexed_model,
        model_id,
        is_default_model=options.is_default_model,
        has_accelerator=has_accelerator(),
        is_int8_impossible=int8_export is not None and int8_export[0].runtime != "onnx",
    )


def choose_precision(
    indexed_model: str,
    model_id: str,
    *,
    is_default_model: bool,
    has_accelerator: bool,
    is_int8_impossible: bool,
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
        is_int8_impossible: Whether an int8 form of the model was tried here and failed.
    """
    if is_int8_impossible or indexed_model == model_id:
        return FP32
    if indexed_model == int8_id(model_id):
        return INT8
    return INT8 if is_default_model and not has_accelerator else FP32


def int8_id(model_id: str) -> str:
    """Return the id of a model's int8 form: its vectors are others."""
    return f"{model_id}/{INT8}"


def precision_of(model_id: str) -> str:
    """Return the precision that an id of a model names."""
    return INT8 if model_id.endswith(f"/{INT8}") else FP32
