"""What `[privacy] redact` means."""

from __future__ import annotations

from anchord.config.schema import Config


def redacts_conversations(config: Config) -> bool:
    """Return whether secrets in conversations are replaced."""
    return config.privacy.redact not in {"off", False}


def redacts_files(config: Config) -> bool:
    """Return whether secrets in project files and in file names are replaced."""
    return config.privacy.redact in {"all", True}
