"""Reading the configuration file. `file_editor` changes it."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

from anchord.config.schema import Config, parse_config
from anchord.errors import ConfigError


def load_config(file: Path) -> Config:
    """Read the configuration. A missing file is an empty one: all defaults.

    Raises:
        ConfigError: The file cannot be read, or is wrong.
    """
    return parse_config(read_text(file), str(file))


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
