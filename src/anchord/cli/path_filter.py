"""The option --path of a search, as the index stores paths."""

from __future__ import annotations

import os
from contextlib import suppress

from anchord.cli.app import load_user_config
from anchord.config.paths import Paths
from anchord.errors import AnchordError


def resolve_path_filter(paths: Paths, path_filter: str) -> str:
    """Return a path filter as the index stores paths; a glob stays as it is.

    A path relative to the current folder, as results are printed, becomes an absolute one. So does
    any other path that exists here, if it is in an indexed folder.
    """
    expanded = os.path.expanduser(path_filter)
    is_here = expanded in {".", ".."} or expanded.startswith(("./", "../"))
    exists = bool(expanded) and os.path.exists(expanded)
    if not is_here and not exists:
        return path_filter
    absolute = os.path.realpath(expanded)
    if is_here or expanded.startswith("/") or _is_in_root(paths, absolute):
        return absolute
    return path_filter


def _is_in_root(paths: Paths, path: str) -> bool:
    """Return whether a path is in an indexed folder; False if the configuration is broken."""
    # Imported where it is needed: `status` and most searches do without it.
    from anchord.config.cli_state import load_cli_state
    from anchord.config.roots import find_root, gather_roots

    with suppress(AnchordError):
        given_roots = load_cli_state(paths.cli_state_file).given_roots
        roots = gather_roots(
            load_user_config(paths),
            given_roots,
            (),
            paths.own_folders,
        )
        return bool(find_root(roots, path))
    return False
