"""The values that the shell offers for options and arguments: `anchord search --mode <Tab>`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from anchord.cli.parameters import Completer
from anchord.errors import AnchordError

MODES = ("hybrid", "vector", "text")
ROOT_KINDS = ("project", "conversations")
CHUNK_TYPES = ("section", "text", "code_block", "table", "list")


def one_of(values: Iterable[str]) -> Completer:
    """Return what completes one of some values."""
    words = tuple(values)

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


complete_mode = one_of(MODES)
complete_root_kind = one_of(ROOT_KINDS)
complete_chunk_type = one_of(CHUNK_TYPES)


def complete_client(incomplete: str) -> list[str]:
    """Return the clients of `connect` that begin so."""
    from anchord.agents.clients import CLIENT_NAMES

    return one_of(CLIENT_NAMES)(incomplete)


def complete_kind(incomplete: str) -> list[str]:
    """Return the kinds of documents that begin so."""
    from anchord.config.schema import DOCUMENT_KINDS

    return one_of(DOCUMENT_KINDS)(incomplete)


def complete_root(incomplete: str) -> list[str]:
    """Return the names of roots that begin so; none if the configuration cannot be read."""
    # The commands that offer this need none of it themselves.
    from anchord.config.cli_state import load_cli_state
    from anchord.config.file import load_config
    from anchord.config.paths import find_paths
    from anchord.config.roots import gather_roots

    try:
        paths = find_paths(os.environ)
        given_roots = load_cli_state(paths.cli_state_file).given_roots
        roots = gather_roots(
            load_config(paths.config_file),
            given_roots,
            (),
            paths.own_folders,
        )
    except (AnchordError, OSError):
        return []
    return one_of(root.name for root in roots)(incomplete)
