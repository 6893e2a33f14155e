"""Settings files of other programs: read, copied, and replaced at once."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from anchord.core.quoting import quote_name
from anchord.errors import AnchordError

_COPY_SUFFIX = ".before-anchord.bak"
_MAX_BYTES = 64 << 20


class SettingsError(AnchordError):
    """A settings file cannot be read, or must not be written."""


class ChangedError(SettingsError):
    """A settings file changed between reading and writing; it was left alone."""


def read(file: str) -> str | None:
    """Return the text of a file, with its byte order mark and line ends; None without a file.

    Raises:
        SettingsError: It is no regular file, not UTF-8, too large, or cannot be read.
    """
    try:
        status = os.stat(file)
        if not stat.S_ISREG(status.st_mode):
            raise SettingsError(f"{quote_name(file)} is not a regular file", "move it away")
        if status.st_size > _MAX_BYTES:
            raise SettingsError(f"{quote_name(file)} is larger than 64 MB", "make it smaller")
        return Path(file).read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(file):
            raise SettingsError(
                f"{quote_name(file)} is a link to a file that does not exist",
                "restore the file, or delete the link",
            ) from None
        return None
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{quote_name(file)} is not UTF-8 (byte {error.start})", "save it as UTF-8"
        ) from None
    except OSError as error:
        raise _cannot("read", file, error) from None


def copy_of(file: str) -> str:
    """Return the path of the copy that is made before a file is changed."""
    return f"{os.path.realpath(file)}{_COPY_SUFFIX}"


def copy(file: str, text: str) -> str:
    """Write the copy of a file, with its mode; return the path of the copy.

    Raises:
        SettingsError: It cannot be written.
    """
    path = copy_of(file)
    _write_atomically(path, text, like=os.path.realpath(file))
    return path


def replace(file: str, before: str | None, after: str) -> None:
    """Replace the text of a file; its mode and owner stay, and links to it.

    Args:
        file: The file; missing folders are created.
        before: What it has now; None if there is none.
        after: The new text.

    Raises:
        SettingsError: It is read-only, has another text by now, or cannot be written.
    """
    target = os.path.realpath(file)
    _require_unchanged(file, before)
    if before is not None and not os.stat(target).st_mode & stat.S_IWUSR:
        raise SettingsError(
            f"{quote_name(file)} is read-only", "make it writable: `chmod u+w FILE`"
        )
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
    except OSError as error:
        raise _cannot("write", file, error) from None
    _write_atomically(target, after, like=target, check=lambda: _require_unchanged(file, before))


def delete(file: str, before: str, kept_folders: Collection[str] = ()) -> None:
    """Delete a file, and the folders around it that are then empty.

    Args:
        file: The file.
        before: What it has now.
        kept_folders: These stay, and those around them.

    Raises:
        SettingsError: It has another text by now, or cannot be deleted.
    """
    _require_unchanged(file, before)
    try:
        os.unlink(file)
    except OSError as error:
        raise _cannot("delete", file, error) from None
    folder = os.path.dirname(file)
    with suppress(OSError):  # It is not empty.
        while folder not in kept_folders:
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def delete_leftovers(file: str) -> None:
    """Delete what a process that was killed while it wrote a file left beside it."""
    target = os.path.realpath(file)
    for leftover in glob.glob(f"{glob.escape(target)}*.anchord-*.tmp"):
        process = leftover.rpartition("-")[2].removesuffix(".tmp")
        if process.isdecimal() and not _is_running(int(process)):
            with suppress(OSError):
                os.unlink(leftover)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _require_unchanged(file: str, before: str | None) -> None:
    if read(file) != before:
        raise ChangedError(
            f"another program changed {quote_name(file)}; nothing was written", "run it again"
        )


def _write_atomically(
    path: str, text: str, *, like: str, check: Callable[[], None] = lambda: None
) -> None:
    """Write a file beside its place, and rename it into place.

    Args:
        path: The file.
        text: Its new text.
        like: The file whose mode and owner it gets, if that exists.
        check: Called before the renaming; may raise.
    """
    new = f"{path}.anchord-{os.getpid()}.tmp"
    try:
        try:
            # "x": a link in this place, in a folder of somebody else's making, is not followed.
            with open(new, "x", encoding="utf-8", newline="") as stream:
                with suppress(FileNotFoundError):
                    status = os.stat(like)
                    os.fchmod(stream.fileno(), stat.S_IMODE(status.st_mode))
                    with suppress(PermissionError):
                        os.fchown(stream.fileno(), status.st_uid, status.st_gid)
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            check()
            os.replace(new, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(new)
    except OSError as error:
        raise _cannot("write", path, error) from None


def _cannot(do: str, file: str, error: OSError) -> SettingsError:
    reason = os.strerror(error.errno or 0).lower()
    return SettingsError(f"cannot {do} {quote_name(file)}: {reason}", "check its permissions")
