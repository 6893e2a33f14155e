"""Which files of further worktrees are left out: those that equal the main checkout's file.

With `[[root]] worktrees = "one"` a file of a further worktree has rows of its own only while it
differs from the file at the same path in the main checkout. Both sides are known by the digest of
the content that the catalog has recorded, so nothing is read to decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anchord.core.change_detection import TRANSCRIPT_DIGEST
from anchord.core.types import FileRecord, RootedPath

EQUAL_MARK = "="
"""Before the digest of a file that is left out because it equals the main checkout's file."""


class WorktreeFiles(Protocol):
    """Which file of the main checkout belongs to a file of a further worktree."""

    def merges(self, root: str) -> bool:
        """Whether a root leaves out files that equal the main checkout's."""

    def main_file(self, origin: RootedPath) -> RootedPath | None:
        """Return the main checkout's file at the same path; it need not exist.

        Returns:
            None for a file that is in no further worktree, or in a root that indexes all of them.
        """

    def copies_of(self, origin: RootedPath) -> Sequence[RootedPath]:
        """Return the files whose `main_file` is this one. They need not exist."""


class AllWorktrees:
    """`WorktreeFiles` where every worktree is indexed in full."""

    def merges(self, root: str) -> bool:  # noqa: ARG002 - the same for all roots
        """Return False."""
        return False

    def main_file(self, origin: RootedPath) -> RootedPath | None:  # noqa: ARG002 - likewise
        """Return None."""
        return None

    def copies_of(self, origin: RootedPath) -> Sequence[RootedPath]:  # noqa: ARG002 - likewise
        """Return no file."""
        return ()


ALL_WORKTREES = AllWorktrees()


# Digests


def is_left_out(digest: str) -> bool:
    """Whether a recorded content digest is that of a file that equals the main checkout's."""
    return digest.startswith(EQUAL_MARK)


def indexed_digest(record: FileRecord | None) -> str:
    """Return the digest of the content that has rows of its own; "" for none."""
    if record is None or is_left_out(record.content_digest):
        return ""
    return "" if record.content_digest == TRANSCRIPT_DIGEST else record.content_digest


def digest_to_record(content_digest: str, main_digest: str) -> str:
    """Return what to record for a file: with the mark if it is left out.

    Args:
        content_digest: Digest of the file's content.
        main_digest: `indexed_digest` of the main checkout's file; "" without one.
    """
    return EQUAL_MARK + content_digest if content_digest == main_digest else content_digest


def agrees(digest: str, main_digest: str) -> bool:
    """Whether a file is recorded as it should be.

    Args:
        digest: What is recorded for the file.
        main_digest: `indexed_digest` of the main checkout's file; "" without one.
    """
    return not digest or digest_to_record(digest.removeprefix(EQUAL_MARK), main_digest) == digest


# Paths


@dataclass(frozen=True, slots=True)
class Checkouts:
    """The further worktrees and their main checkouts, as absolute paths."""

    main_by_worktree: Mapping[str, str] = field(default_factory=dict)

    def main_path(self, path: str) -> str | None:
        """Return the path in the main checkout that belongs to an absolute path; None for none.

        The innermost further worktree decides. A path that would itself be left out stands for no
        other: no chain and no circle of files can hide a content.
        """
        target = self._in_main(path)
        return None if target is None or self._in_main(target) is not None else target

    def copy_paths(self, path: str) -> Iterator[str]:
        """Yield the absolute paths whose `main_path` is this one."""
        for worktree, main in self.main_by_worktree.items():
            if is_inside(path, main):
                copy = worktree + path[len(main) :]
                if self.main_path(copy) == path:
                    yield copy

    def _in_main(self, path: str) -> str | None:
        around = [top for top in self.main_by_worktree if is_inside(path, top)]
        if not around:
            return None
        innermost = max(around, key=len)
        return self.main_by_worktree[innermost] + path[len(innermost) :]


def is_inside(path: str, folder: str) -> bool:
    """Whether an absolute path is below a folder."""
    return path.startswith(folder) and path[len(folder) : len(folder) + 1] == "/"


def choose_main(main_top: str, linked_tops: Iterable[str], roots: Collection[str]) -> str:
    """Return which checkout of a repository is the main one; "" if none is in a root.

    Args:
        main_top: The repository's own working tree; "" for a bare repository.
        linked_tops: The linked worktrees.
        roots: Absolute paths of the roots. A checkout may lie in a root, or contain one.
    """
    for top in (main_top, *sorted(linked_tops)):
        if top and any(
            root == top or is_inside(top, root) or is_inside(root, top) for root in roots
        ):
            return top
    return ""
