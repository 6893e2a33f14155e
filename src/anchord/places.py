"""Where anchord keeps its files. The only user of platformdirs.

`ANCHORD_HOME`, when set, holds everything; otherwise the platform's own places do. What anchord makes is for its owner
alone: folders 0700, files 0600 (by the umask that `main` sets). A place that others can write to is refused.
"""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from anchord.errors import UsageError

_MAX_SOCKET_PATH = 103 if os.uname().sysname == "Darwin" else 107
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Places:
    """Files and folders of one anchord."""

    config: Path
    data: Path
    run: Path
    log: Path

    @property
    def socket(self) -> Path:
        """Return the daemon's socket."""
        return self.run / "anchord.sock"

    @property
    def lock(self) -> Path:
        """Return the lock of the one writer."""
        return self.data / "anchord.lock"

    @property
    def catalogue(self) -> Path:
        """Return the truth about files."""
        return self.data / "state.sqlite"

    @property
    def next_catalogue(self) -> Path:
        """Return the catalogue of a generation that is being built."""
        return self.data / "next.sqlite"

    @property
    def promoting(self) -> Path:
        """Return the mark that a finished generation is being put in place."""
        return self.data / "promoting"

    @property
    def asked(self) -> Path:
        """Return what was asked for by commands alone."""
        return self.data / "asked.json"

    @property
    def damaged(self) -> Path:
        """Return the folder for what was found damaged and set aside."""
        return self.data / "damaged"

    @property
    def conversations(self) -> Path:
        """Return the archive of all exchanges of conversations."""
        return self.data / "conversations.sqlite"

    @property
    def vanished(self) -> Path:
        """Return the cache of vectors whose rows are gone."""
        return self.data / "vectors.sqlite"

    @property
    def temporary(self) -> Path:
        """Return the folder of files that a running daemon needs for a moment."""
        return self.data / "tmp"

    @property
    def models(self) -> Path:
        """Return the folder of models that were made ready for this machine."""
        return self.data / "models"

    @property
    def log_file(self) -> Path:
        """Return the log of a daemon in the background."""
        return self.log / "anchord.log"

    @property
    def own(self) -> tuple[str, ...]:
        """Return the folders that are never indexed, for anchord writes there itself."""
        folders = (self.config.parent, self.data, self.run, self.log)
        return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))

    def make(self) -> None:
        """Make the folders.

        Raises:
            UsageError: one is not ours, is a symbolic link, or lets others write; or the socket's path is too long.
        """
        for folder in (self.config.parent, self.data, self.run, self.log):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(f"{folder}: {os.strerror(error.errno or 0)}", "set ANCHORD_HOME to a folder you own") from None
            self._check(folder)
        if len(os.fsencode(self.socket)) > _MAX_SOCKET_PATH:
            raise UsageError(
                f"the socket's path is longer than the system's {_MAX_SOCKET_PATH} bytes: {self.socket}",
                "set ANCHORD_HOME to a shorter path",
            )

    def _check(self, folder: Path) -> None:
        seen = folder.lstat()
        if stat.S_ISLNK(seen.st_mode):
            seen = folder.stat()
            if folder == self.run:
                raise UsageError(f"{folder} is a symbolic link", "make it a folder of your own")
        if seen.st_uid != os.geteuid():
            raise UsageError(f"{folder} belongs to another user (uid {seen.st_uid})", "set ANCHORD_HOME to a folder you own")
        if seen.st_mode & _OTHERS_WRITE and folder in (self.data, self.run):
            raise UsageError(f"{folder} lets others write to it", f"run `chmod 700 {folder}`")


def find_places(environment: Mapping[str, str]) -> Places:
    """Return the places for an environment; nothing is made."""
    home = environment.get("ANCHORD_HOME")
    if home:
        base = Path(os.path.abspath(os.path.expanduser(home)))
        return Places(base / "config.toml", base / "data", base / "run", base / "log")
    dirs = platformdirs.PlatformDirs("anchord", appauthor=False)
    return Places(dirs.user_config_path / "config.toml", dirs.user_data_path, _run_folder(environment), dirs.user_log_path)


def _run_folder(environment: Mapping[str, str]) -> Path:
    """Prefer the session's own folder; without one (a cron job, a container) a private one under the temporary folder.

    Both are one a user, whatever `HOME` says: another home has a folder of its own there, or its commands would reach the
    daemon of this one.
    """
    other = _other_home()
    runtime = environment.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / f"anchord{other}"
    if os.uname().sysname == "Darwin":
        return platformdirs.PlatformDirs("anchord", appauthor=False).user_data_path / "run"
    return Path(tempfile.gettempdir()) / f"anchord-{os.geteuid()}{other}"


def _other_home() -> str:
    """Return what tells a home that is not the account's own from others, else nothing."""
    home = os.path.realpath(os.path.expanduser("~"))
    try:
        own = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:  # A container's user without a name.
        own = home
    return "" if home == own else f"-{zlib.crc32(os.fsencode(home)):08x}"
