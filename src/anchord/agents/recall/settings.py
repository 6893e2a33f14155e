"""Whether recall is on, and how much it may say."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

DEFAULT_TOKENS = 600
DEFAULT_HITS = 3


class RecallSettings(msgspec.Struct, frozen=True):
    """The settings of recall."""

    is_on: bool = False
    tokens: int = DEFAULT_TOKENS
    """Maximum tokens for one prompt."""
    hits: int = DEFAULT_HITS
    """Maximum passages for one prompt."""


def load_settings(data_folder: Path) -> RecallSettings:
    """Return the settings; the defaults if there are none, or they cannot be read."""
    try:
        return msgspec.json.decode(_file(data_folder).read_bytes(), type=RecallSettings)
    except (OSError, msgspec.DecodeError):
        return RecallSettings()


def save_settings(data_folder: Path, settings: RecallSettings) -> None:
    """Write the settings.

    Raises:
        OSError: They cannot be written.
    """
    file = _file(data_folder)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_bytes(msgspec.json.encode(settings))
    new.replace(file)


def recall_folder(data_folder: Path) -> Path:
    """Return the folder of recall's files."""
    return data_folder / "recall"


def _file(data_folder: Path) -> Path:
    return recall_folder(data_folder) / "settings.json"
