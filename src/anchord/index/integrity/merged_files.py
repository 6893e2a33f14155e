"""The files as a clean rebuild reads them where worktrees are merged."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from anchord.core.ids import hash_content
from anchord.core.ports import Catalog, EnterDirCallback, FileTree, PathFilter, ignore_enter_dir
from anchord.core.types import (
    Absent,
    ChangedDuringRead,
    FileContent,
    Fingerprint,
    Problem,
    RootedPath,
    WalkResult,
)
from anchord.core.worktrees import WorktreeFiles, indexed_digest
from anchord.index.session import IndexReader

_LEFT_OUT = Absent("equal to the main checkout's file")


@dataclass(frozen=True)
class MergedFiles:
    """A `FileTree` in which a file that equals the main checkout's cannot be read."""

    files: FileTree
    catalog: Catalog
    """Says what the index holds of a main file that is gone and kept, or cannot be read now."""
    worktrees: WorktreeFiles

    def path_filter(self) -> PathFilter:
        """Return the filter of the files."""
        return self.files.path_filter()

    def check_root(
        self, root: str, known_paths: Callable[[], Collection[str]], *, accept: bool
    ) -> str:
        """Accept or refuse the folder at a root's path."""
        return self.files.check_root(root, known_paths, accept=accept)

    def fingerprint(self, origin: RootedPath) -> Fingerprint | Absent | Problem:
        """Return the fingerprint of a file."""
        return self.files.fingerprint(origin)

    def walk(
        self, root: str, prefix: str, on_enter_dir: EnterDirCallback = ignore_enter_dir
    ) -> WalkResult | Absent | Problem:
        """List the files below a folder, also those that are left out."""
        return self.files.walk(root, prefix, on_enter_dir)

    def read(self, origin: RootedPath) -> FileContent | Absent | Problem | ChangedDuringRead:
        """Read a file; Absent if it is left out."""
        content = self.files.read(origin)
        main = self.worktrees.main_file(origin) if isinstance(content, FileContent) else None
        if main is None or not isinstance(content, FileContent):
            return content
        main_content = self._read_main(main)
        if isinstance(main_content, ChangedDuringRead):
            return main_content
        if isinstance(main_content, FileContent):
            is_equal = main_content.data == content.data
        else:
            known = indexed_digest(self.catalog.get_record(main))
            is_equal = hash_content(content.data) == known
        return _LEFT_OUT if is_equal else content

    @cached_property
    def _includes(self) -> PathFilter:
        return self.files.path_filter()

    def _read_main(self, main: RootedPath) -> FileContent | Absent | Problem | ChangedDuringRead:
        is_included = self._includes(main).is_included
        return self.files.read(main) if is_included else Absent()


def merged_files(reader: IndexReader) -> MergedFiles:
    """Return the files of an index, without those that are left out."""
    return MergedFiles(reader.files, reader.catalog, reader.files.folder_files.worktrees)
