"""An index keeps its precision; a new one of the default model is made with int8 where no GPU is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from anchord.embedding.precision import choose_precision, precision_of, resolve_precision
from anchord.embedding.worker_options import WorkerOptions
from anchord.embedding.workers import export_cache

MODEL = "sentence-transformers/abc"


@pytest.mark.parametrize(
    ("indexed_model", "is_default", "has_gpu", "has_failed", "precision"),
    [
        ("", True, False, False, "int8"),
        ("", False, False, False, "fp32"),
        ("", True, True, False, "fp32"),
        ("", True, False, True, "fp32"),
        (MODEL, True, False, False, "fp32"),
        (f"{MODEL}/int8", False, True, False, "int8"),
        (f"{MODEL}/int8", True, False, True, "int8"),
        ("sentence-transformers/another", True, False, False, "int8"),
        ("sentence-transformers/another/int8", False, False, False, "fp32"),
    ],
)
def test_an_index_keeps_its_precision_and_a_new_one_has_what_was_measured(
    *, indexed_model: str, is_default: bool, has_gpu: bool, has_failed: bool, precision: str
) -> None:
    chosen = choose_precision(
        indexed_model,
        MODEL,
        is_default_model=is_default,
        has_accelerator=has_gpu,
        has_int8_failed=has_failed,
    )
    assert chosen == precision


def test_a_mac_counts_as_a_machine_with_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_cache, "_DRIVERS", ())
    options = WorkerOptions(exports_folder=tmp_path, precision="auto", is_default_model=True)
    for platform, precision in (("linux", "int8"), ("darwin", "fp32")):
        monkeypatch.setattr(sys, "platform", platform)
        assert resolve_precision(options, MODEL, lambda _: None) == precision


@pytest.mark.parametrize(
    ("model_id", "precision"), [(MODEL, "fp32"), (f"{MODEL}/int8", "int8"), ("", "fp32")]
)
def test_an_id_says_which_precision_it_is_of(model_id: str, precision: str) -> None:
    assert precision_of(model_id) == precision
