"""Reading the configuration file. `file_editor` changes it."""

from __future__ import annotations

import fcntl
import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from anchord.config.schema import Config, parse_config
from anchord.errors import ConfigError


def load_config(file: Path) -> Config:
    """Read the configuration. A missing file is an empty one: all defaults.

    Raises:
        ConfigError: The file cannot be read, or is wrong.
    """
    return parse_config(read_text(file), str(file))


@contextmanager
def locked_for_editing(file: Path) -> Iterator[None]:
    """Wait until nobody else edits a configuration file, and let nobody edit it meanwhile.

    Two commands that each read the file, add a root and write it would lose one root. Where the
    file system has no locks, none is held.

    Args:
        file: The configuration file; it need not exist.
    """
    with ExitStack() as cleanup:
        with suppress(OSError):
            folder = os.open(file.resolve().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            cleanup.callback(os.close, folder)  # This also unlocks it.
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield


def read_set_keys(file: Path) -> frozenset[str]:
    """Return the keys that the file sets, as "table.key". A missing file sets none.

    Raises:
        ConfigError: The file cannot be read.
        tomllib.TOMLDecodeError: It is not TOML; load it with `load_config` first.
    """
    content = tomllib.loads(read_text(file))
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    keys = ((name, key) for name, table in tables.items() for key in table)
    return frozenset(f"{name}.{key}" for name, key in keys)


def read_text(file: Path) -> str:
    """Return the text of the configuration file; "" if there is none.

    Raises:
        ConfigError: The file cannot be read.
    """
    try:
        mode = file.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            # To open a named pipe waits for ever, and a device may have no end.
            raise ConfigError(f"{file} is not a file", "put a file in its place, or delete it")
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} cannot be read: {error}", "fix the file or its permissions"
        ) from None
