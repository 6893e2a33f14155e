"""Holds the deletions of a root when so many files are missing that a person must confirm them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anchord.core.deletion_guard import (
    DeletionPolicy,
    find_missing_files,
    find_moves,
    is_mass_deletion,
    recent_deletions_meta_key,
)
from anchord.core.ports import Catalog, FileTree, IndexerDependencies
from anchord.core.types import FileRecord, Fingerprint, RootedPath, WalkResult
from anchord.core.worktrees import is_left_out


@dataclass(frozen=True, slots=True)
class MassDeletionGuard:
    """Holds the deletions of one root when so many are missing that a person must confirm."""

    dependencies: IndexerDependencies
    root: str
    policy: DeletionPolicy

    def deletions_to_count(
        self, missing: Mapping[str, Fingerprint], moves: Mapping[str, str]
    ) -> dict[str, Fingerprint]:
        """Return the missing files whose rows would be lost.

        Args:
            missing: Path -> fingerprint that the file was indexed with.
            moves: New path -> old path.
        """
        conversations = self.dependencies.conversations
        at_risk = {}
        old_paths = set(moves.values())
        for path, last_seen in missing.items():
            # Invariant: the rows of a moved file are reused at its new path, so none is lost.
            if path in old_paths:
                continue
            rooted_path = RootedPath(self.root, path)
            # Invariant: a released file went through the guard before. A transcript file that keeps
            # its exchanges loses no row, nor does an exchange that its rows give back, or that has
            # another path now.
            keeps_rows = conversations.keeps_after_delete(rooted_path)
            keeps_rows = keeps_rows or conversations.is_lost(rooted_path)
            keeps_rows = keeps_rows or conversations.is_renamed(rooted_path)
            if rooted_path not in self.policy.released and not keeps_rows:
                at_risk[path] = last_seen
        return at_risk

    def update_hold(
        self,
        at_risk: Mapping[str, Fingerprint],
        records: Mapping[str, FileRecord],
        walk: WalkResult,
    ) -> bool:
        """Return whether the deletions are held, and store that in the catalog.

        Deletions of a moment ago count together with those of now. Their number stays in the
        catalog while the guard holds, so that a restart decides alike; afterwards the entry is "".

        Args:
            at_risk: The deletions that count.
            records: What the catalog lists in the root, without what has left already.
            walk: What the walk of the whole root found.
        """
        catalog = self.dependencies.catalog
        meta_key = recent_deletions_meta_key(self.root)
        stored_count = catalog.get_meta(meta_key)
        recent_count = max(self.policy.recent_count, int(stored_count or 0))
        must_confirm = is_mass_deletion(at_risk, records, walk, recent_count)
        holds = must_confirm and not self.policy.all_confirmed
        new_count = str(recent_count) if holds else ""
        if new_count != stored_count:
            catalog.set_meta(meta_key, new_count)
        return holds


def held_by_guard(
    root: str, walk: WalkResult, files: FileTree, catalog: Catalog
) -> list[RootedPath]:
    """Return the files that are gone, but that the mass-deletion guard keeps in the index.

    Args:
        root: Name of the root.
        walk: What a walk of the whole root found.
        files: Say which paths the rules include.
        catalog: Lists the indexed files, and the deletions of a moment ago.
    """
    records = catalog.list_records(root, "")
    unseen = find_missing_files(walk, records)
    if unseen:
        # What the rules exclude is not missing: its rows must be gone.
        path_filter = files.path_filter()
        excluded = {path for path in unseen if not path_filter(RootedPath(root, path)).is_included}
        records = {path: record for path, record in records.items() if path not in excluded}
    has_rows = {path for path, known in records.items() if not is_left_out(known.content_digest)}
    missing = {path: seen for path, seen in unseen.items() if path in has_rows}
    found_files = {found.path: found.fingerprint for found in walk.files}
    new_files = {path: seen for path, seen in found_files.items() if path not in records}
    moved_paths = set(find_moves(missing, new_files).values())
    at_risk = {path: seen for path, seen in missing.items() if path not in moved_paths}
    recent_count = int(catalog.get_meta(recent_deletions_meta_key(root)) or 0)
    if not is_mass_deletion(at_risk, records, walk, recent_count):
        return []
    return [RootedPath(root, path) for path in at_risk]
