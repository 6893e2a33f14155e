"""Files of roots and exchanges of the archive as one tree: an exchange is read like a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from anchord.core.ports import EnterDirCallback, PathFilter, ignore_enter_dir
from anchord.core.types import (
    Absent,
    ChangedDuringRead,
    FileContent,
    Fingerprint,
    PathMatch,
    Problem,
    Root,
    RootedPath,
    WalkResult,
)
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.exchange_document import ALL_EXCHANGES, is_exchange_path
from anchord.sources.conversations.formats.registry import has_prose_suffix
from anchord.sources.files.folder_files import FolderFiles

_EXCHANGE = PathMatch(is_included=True, reason="an exchange of a conversation")
_NO_EXCHANGE = Absent("no such exchange")
_IN_ARCHIVE = Absent("not a document: its exchanges are in the archive")


class SourceTree:
    """Implements `FileTree` over folders and the archive.

    A path that begins with "/" is an exchange's, any other a file's.
    """

    def __init__(
        self, folders: FolderFiles, roots: Mapping[str, Root], archive: Archive | None
    ) -> None:
        """Read nothing yet.

        Args:
            folders: The roots' files.
            roots: The roots by name; only roots of kind `conversations` have exchanges.
            archive: The exchanges; None if there is no archive yet.
        """
        self.folder_files = folders
        self.archive = archive
        self._roots = roots

    def set_forgotten_paths(self, paths: Sequence[str]) -> None:
        """Exclude files and folders, whatever the rules say; replaces the earlier list.

        Args:
            paths: Absolute paths.
        """
        self.folder_files.set_forgotten_paths(paths)

    def redact_path(self, path: str) -> str:
        """Return how a path on disk is known: without the secrets in its names."""
        return self.folder_files.redact_path(path)

    def path_filter(self) -> PathFilter:
        """Return a function that applies the rules to paths. Exchanges are always included."""
        match_file = self.folder_files.path_filter()

        def match(origin: RootedPath) -> PathMatch:
            return _EXCHANGE if is_exchange_path(origin.path) else match_file(origin)

        return match

    def check_root(
        self, root: str, known_paths: Callable[[], Collection[str]], *, accept: bool
    ) -> str:
        """Accept or refuse the folder at a root's path, as `FolderFiles.check_root`."""

        def known_files() -> list[str]:
            return [path for path in known_paths() if not is_exchange_path(path)]

        return self.folder_files.check_root(root, known_files, accept=accept)

    def fingerprint(self, origin: RootedPath) -> Fingerprint | Absent | Problem:
        """Return the fingerprint of a file or an exchange without reading its content."""
        if not is_exchange_path(origin.path):
            return self.folder_files.fingerprint(origin)
        return self.archive.fingerprint(origin) if self.archive else _NO_EXCHANGE

    def read(self, origin: RootedPath) -> FileContent | Absent | Problem | ChangedDuringRead:
        """Read a file or an exchange.

        A transcript file is Absent: only its exchanges are indexed.
        """
        if is_exchange_path(origin.path):
            return self.archive.read(origin) if self.archive else _NO_EXCHANGE
        if self._holds_conversations(origin.root) and self._is_transcript_file(origin):
            return _IN_ARCHIVE
        return self.folder_files.read(origin)

    def walk(
        self, root: str, prefix: str, on_enter_dir: EnterDirCallback = ignore_enter_dir
    ) -> WalkResult | Absent | Problem:
        """List the files below a folder, or exchanges.

        Args:
            root: Name of the root.
            prefix: A folder relative to the root; "" lists the whole root with its exchanges after
                the files; `ALL_EXCHANGES`, an exchange's or a session's path lists exchanges only.
            on_enter_dir: Called with each folder before it is listed.

        Returns:
            As `FolderFiles.walk`.
        """
        if is_exchange_path(prefix):
            below = prefix.removesuffix(ALL_EXCHANGES)
            return WalkResult(
                files=self.archive.list_exchanges(root, below) if self.archive else ()
            )
        walk = self.folder_files.walk(root, prefix, on_enter_dir)
        if prefix or not isinstance(walk, WalkResult):
            return walk
        if not self.archive or not self._holds_conversations(root):
            return walk
        return replace(walk, files=(*walk.files, *self.archive.list_exchanges(root)))

    def _holds_conversations(self, root: str) -> bool:
        return self._roots[root].kind == "conversations"

    def _is_transcript_file(self, origin: RootedPath) -> bool:
        """Return False for a text in which no conversation was found: it is a document."""
        if not has_prose_suffix(origin.path):
            return True
        return self.archive is not None and self.archive.find_transcript_file(origin) is not None
