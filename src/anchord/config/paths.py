"""The files and folders of anchord. This is the only module that uses platformdirs.

`ANCHORD_HOME` holds everything when it is set; otherwise the platform's standard folders do. Only
exported models are elsewhere: all homes of a user share them in the user's cache folder.
Folders are created with mode 0700, and files with 0600 through the umask that `main` sets. A folder
that other users can write to is refused.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from anchord.config.socket_place import SOCKET_NAME, run_folder
from anchord.core.quoting import escape_non_utf8
from anchord.errors import UsageError

_IS_MAC = os.uname().sysname == "Darwin"
_MAX_SOCKET_PATH = 103 if _IS_MAC else 107
"""Bytes of `sockaddr_un.sun_path`, without its final NUL."""
_MAC_USER_GROUPS = 100
_SPACE = 0x20
_DELETE = 0x7F
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Paths(msgspec.Struct, frozen=True):
    """The files and folders of one anchord home. None of them need exist."""

    config_file: Path
    data_folder: Path
    run_folder: Path
    log_folder: Path

    @property
    def socket_file(self) -> Path:
        """The daemon's socket."""
        return self.run_folder / SOCKET_NAME

    @property
    def lock_file(self) -> Path:
        """The lock that the one writer holds."""
        return self.data_folder / "anchord.lock"

    @property
    def catalog_file(self) -> Path:
        """The catalog: what is indexed of each file (SQLite)."""
        return self.data_folder / "state.sqlite"

    @property
    def next_catalog_file(self) -> Path:
        """The catalog of a generation that is being built."""
        return self.data_folder / "next.sqlite"

    @property
    def promotion_marker(self) -> Path:
        """The marker file that exists while a finished generation replaces the present one."""
        return self.data_folder / "promoting"

    @property
    def cli_state_file(self) -> Path:
        """What the user asked for by commands only (`config.cli_state`)."""
        return self.data_folder / "asked.json"

    @property
    def source_memory_file(self) -> Path:
        """The last good ignore rules, and which folder each root had (`sources.files`)."""
        return self.data_folder / "seen.json"

    @property
    def damaged_folder(self) -> Path:
        """The folder to which damaged databases are moved."""
        return self.data_folder / "damaged"

    @property
    def archive_file(self) -> Path:
        """The archive of all exchanges of conversations (SQLite)."""
        return self.data_folder / "conversations.sqlite"

    @property
    def kept_transcripts_file(self) -> Path:
        """The bytes of transcript files."""
        return self.data_folder / "transcripts.sqlite"

    @property
    def http_token_file(self) -> Path:
        """The token that clients of `anchord mcp --http` must send."""
        return self.data_folder / "mcp-token"

    @property
    def vector_cache_file(self) -> Path:
        """The cache of vectors of deleted rows (SQLite)."""
        return self.data_folder / "vectors.sqlite"

    @property
    def temp_folder(self) -> Path:
        """The folder for temporary files of the daemon."""
        return self.data_folder / "tmp"

    @property
    def shared_models_folder(self) -> Path:
        """The folder of exported models for all homes of this user."""
        import platformdirs  # noqa: PLC0415 - only what needs a model

        return platformdirs.PlatformDirs("anchord", appauthor=False).user_cache_path / "models"

    def choose_models_folder(self) -> Path:
        """Return the folder of models that were exported for this machine.

        That of all homes, which is created if need be, if it belongs to this user alone and can be
        written to; otherwise the home's own.
        """
        return self.shared_models_folder if self._can_share_models() else self.home_models_folder

    @property
    def home_models_folder(self) -> Path:
        """The home's own folder of exported models."""
        return self.data_folder / "models"

    @property
    def log_file(self) -> Path:
        """The log of a daemon that runs in the background."""
        return self.log_folder / "anchord.log"

    @property
    def own_folders(self) -> tuple[str, ...]:
        """The real paths of anchord's own folders. They are never indexed: it writes to them."""
        folders = (*self._folders, self.shared_models_folder)
        return tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))

    def create_folders(self) -> None:
        """Create the missing folders, and check all of them but that of shared models.

        Raises:
            UsageError: A folder has a line break in its path, cannot be created, belongs to another
                user, or is writable by others, itself or a folder above it that is not sticky; the
                run folder is a symbolic link; or the path of the socket is too long.
        """
        for folder in self._folders:
            _require_printable(folder)
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"{folder}: {os.strerror(error.errno or 0)}",
                    "set ANCHORD_HOME to a folder you own",
                ) from None
            is_private = folder in (self.data_folder, self.run_folder)
            self._check_folder(folder, is_private=is_private)
        if len(os.fsencode(self.socket_file)) > _MAX_SOCKET_PATH:
            raise UsageError(
                f"the path of the socket is longer than the {_MAX_SOCKET_PATH} bytes allowed: "
                f"{self.socket_file}",
                "set ANCHORD_HOME to a shorter path",
            )

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self.config_file.parent, self.data_folder, self.run_folder, self.log_folder)

    def _can_share_models(self) -> bool:
        folder = self.shared_models_folder
        if not folder.is_absolute():  # This user has no home.
            return False
        try:
            _require_printable(folder)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_folder(folder, is_private=True)
        except (OSError, UsageError):
            return False
        return os.access(folder, os.R_OK | os.W_OK | os.X_OK)

    def _check_folder(self, folder: Path, *, is_private: bool) -> None:
        status = folder.lstat()
        if stat.S_ISLNK(status.st_mode):
            # The run folder may be in /tmp, where anybody could have placed the link.
            if folder == self.run_folder:
                raise UsageError(f"{folder} is a symbolic link", "make it a folder of your own")
            status = folder.stat()
        if status.st_uid != os.geteuid():
            raise UsageError(
                f"{folder} belongs to another user (uid {status.st_uid})",
                "set ANCHORD_HOME to a folder you own",
            )
        if is_private and status.st_mode & _WRITABLE_BY_OTHERS:
            raise UsageError(f"{folder} is writable by other users", f"run `chmod 700 {folder}`")
        for parent in Path(os.path.realpath(folder)).parents:
            _check_parent(folder, parent)


def _require_printable(folder: Path) -> None:
    """Return if LanceDB can use a folder: its path is UTF-8 without control characters.

    Raises:
        UsageError: It is not.
    """
    path = str(folder)
    # Not shown as it is: a terminal would act on the characters.
    shown = ascii(path)
    hint = "set ANCHORD_HOME to a folder with another name"
    if any(ord(character) < _SPACE or ord(character) == _DELETE for character in path):
        raise UsageError(f"the path {shown} has a line break or another control character", hint)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the path {shown} is not valid UTF-8", hint) from None


def _check_parent(folder: Path, parent: Path) -> None:
    """Refuse a folder above one of anchord's in which others can exchange what is below it."""
    status = parent.stat()
    is_sticky = bool(status.st_mode & stat.S_ISVTX)  # As /tmp: only owners rename what is in it.
    by_group = status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid)
    if (status.st_mode & stat.S_IWOTH or by_group) and not is_sticky:
        raise UsageError(
            f"other users can replace {folder}: {parent} is writable by them",
            f"run `chmod go-w {parent}`, or set ANCHORD_HOME to another folder",
        )


def _is_own_group(group_id: int) -> bool:
    """Whether nobody but this user and root is in a group, as far as the group itself says.

    Debian gives each user such a group and a umask of 002. Groups that the system reserves for
    administrators (id 0 everywhere, below 100 on macOS) count too.
    """
    if group_id == 0 or (_IS_MAC and group_id < _MAC_USER_GROUPS):
        return True
    try:
        user_name = pwd.getpwuid(os.geteuid()).pw_name
        group = grp.getgrgid(group_id)
    except KeyError:
        # A container's user or group need not have an entry.
        return group_id == os.getegid()
    return group.gr_name == user_name and set(group.gr_mem) <= {user_name, "root"}


def find_paths(environment: Mapping[str, str]) -> Paths:
    """Return the paths for an environment. Nothing is created or checked.

    Args:
        environment: Environment variables; ANCHORD_HOME and XDG_RUNTIME_DIR are used.
    """
    home = environment.get("ANCHORD_HOME")
    if home:
        base = Path(os.path.abspath(os.path.expanduser(home)))
        return Paths(
            config_file=base / "config.toml",
            data_folder=base / "data",
            run_folder=Path(run_folder(environment)),
            log_folder=base / "log",
        )
    import platformdirs  # noqa: PLC0415 - not needed with ANCHORD_HOME

    standard = platformdirs.PlatformDirs("anchord", appauthor=False)
    return Paths(
        config_file=standard.user_config_path / "config.toml",
        data_folder=standard.user_data_path,
        run_folder=Path(run_folder(environment) or standard.user_data_path / "run"),
        log_folder=standard.user_log_path,
    )


def paths_of_home(home: str | os.PathLike[str] | None) -> Paths:
    """Return the paths of a home that a program names; None for ANCHORD_HOME or this user's own."""
    places = {} if home is None else {"ANCHORD_HOME": os.fspath(home)}
    return find_paths({**os.environ, **places})


def working_folder() -> str:
    """Return the working folder; "" if it was deleted, or if its name is not UTF-8."""
    with suppress(OSError):
        folder = os.getcwd()
        return folder if escape_non_utf8(folder) == folder else ""
    return ""


def absolute_path(path: str) -> str:
    """Return the absolute form of a path that a user gave; `~` is expanded, links are not resolved.

    Raises:
        UsageError: It is empty, as that of a variable that is not set: it does not mean the working
            folder.
    """
    if not path:
        raise UsageError("the path is empty", "`.` is the current folder")
    return os.path.abspath(os.path.expanduser(path))
