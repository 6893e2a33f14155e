"""What a model was when it was added: a changed file is refused, and named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from anchord.core.quoting import quote_command, quote_names
from anchord.errors import ConfigError


class ModelPin(NamedTuple):
    """A model as `anchord model add` recorded it."""

    path: str
    """Its folder, or a bundled model's name."""
    digest: str
    """`ModelFiles.compute_digest` of then."""
    files: Mapping[str, str]
    """`ModelFiles.digest_files` of then."""


def changed_files(pin: ModelPin, files_now: Mapping[str, str]) -> list[str]:
    """Return the files that changed, are new, or are gone since a model was added, sorted."""
    names = pin.files.keys() | files_now.keys()
    return sorted(name for name in names if pin.files.get(name) != files_now.get(name))


def changed_model_error(name: str, pin: ModelPin, files_now: Mapping[str, str]) -> ConfigError:
    """Return the error for a model that changed since it was added.

    Args:
        name: The name that it was added under.
        pin: What was recorded then.
        files_now: The digests of its files now.
    """
    changed = quote_names(changed_files(pin, files_now)) or "its recorded digest"
    accept = quote_command(f"anchord model add --name {name}", pin.path, "PATH")
    return ConfigError(
        f"model `{name}` has changed since it was added: {changed}",
        f"put the files back, or accept the model as it is now with {accept}",
    )
