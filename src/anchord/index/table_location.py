"""Where the table is: a folder of this machine, or a remote store."""

from __future__ import annotations

from anchord.config.paths import Paths
from anchord.config.schema import Config


def store_uri(paths: Paths, config: Config) -> str:
    """Return the table's location: a folder of this machine, or a URI with "://"."""
    return config.store.uri or str(paths.data_folder / "lance")
