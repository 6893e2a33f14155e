"""What the main checkout's file means for the plan of a file in a further worktree."""

from __future__ import annotations

from anchord.core.change_detection import is_up_to_date
from anchord.core.ports import Catalog, FileTree, PathFilter
from anchord.core.types import FileRecord, FileUpdate, Fingerprint, ReadFile, RootedPath, SkipFile
from anchord.core.worktrees import (
    WorktreeFiles,
    agrees,
    digest_to_record,
    indexed_digest,
    is_left_out,
)
from anchord.index.recipe import Recipe


class WorktreePlans:
    """Reads files' states and the catalog only. Nothing to do where no worktrees are merged."""

    def __init__(
        self, files: FileTree, catalog: Catalog, worktrees: WorktreeFiles, recipe: Recipe
    ) -> None:
        """Plan over these files and this catalog."""
        self._files = files
        self._catalog = catalog
        self._worktrees = worktrees
        self._recipe = recipe
        self._planned_digests: dict[RootedPath, str] = {}
        """What this run is about to record for files."""

    def begin_run(self) -> None:
        """Forget what the last run planned: it may not have been written."""
        self._planned_digests.clear()

    def main_file_due(self, path: RootedPath, path_filter: PathFilter) -> RootedPath | None:
        """Return the main checkout's file if it must be planned before this one; else None."""
        main = self._worktrees.main_file(path)
        if main is None or main in self._planned_digests:
            return None
        record = self._catalog.get_record(main)
        observed = self._files.fingerprint(main)
        if not isinstance(observed, Fingerprint):
            return None  # Its deletion is for a walk, which has the guard.
        if record and is_up_to_date(observed, record, self._recipe.digest(main.root)):
            return None
        return main if record or path_filter(main).is_included else None

    def copies_due(self, path: RootedPath, plan: object) -> list[RootedPath]:
        """Return the files that must be planned in the same commit as this one.

        Args:
            path: A file.
            plan: Its plan; only an update concerns other files.
        """
        if not isinstance(plan, FileUpdate):
            return []
        digest = self._planned_digests[path] = indexed_digest(plan.new_record)
        copies = {copy: self._catalog.get_record(copy) for copy in self._worktrees.copies_of(path)}
        return [
            copy
            for copy, record in copies.items()
            if record and not agrees(record.content_digest, digest)
        ]

    def decide(
        self, path: RootedPath, record: FileRecord, decision: SkipFile
    ) -> SkipFile | ReadFile:
        """Return the decision for a file that did not change: the main one may have."""
        main_digest, why = self._main_digest(path)
        if not agrees(record.content_digest, main_digest):
            return ReadFile("the main checkout's file changed")
        return SkipFile(why) if is_left_out(record.content_digest) else decision

    def mark(self, path: RootedPath, content_digest: str, reason: str) -> tuple[str, str]:
        """Return the digest to record for a file that was read, and why it is updated.

        Args:
            path: The file.
            content_digest: Digest of its bytes.
            reason: Why it was read.
        """
        main_digest, why = self._main_digest(path)
        digest = digest_to_record(content_digest, main_digest)
        return digest, why if is_left_out(digest) else reason

    def _main_digest(self, path: RootedPath) -> tuple[str, str]:
        """Return the digest of the main checkout's file, and why this one is left out if equal."""
        main = self._worktrees.main_file(path)
        if main is None:
            return "", ""
        planned = self._planned_digests.get(main)
        digest = indexed_digest(self._catalog.get_record(main)) if planned is None else planned
        return digest, left_out_reason(main)


def left_out_reason(main: RootedPath) -> str:
    """Say why a file of a further worktree is not indexed.

    Args:
        main: The main checkout's file.
    """
    return f"equal to the main checkout's {main}"
