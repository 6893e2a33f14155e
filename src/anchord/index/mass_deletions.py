"""Holds the deletions of a root when so many files are missing that a person must confirm them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anchord.core.deletion_guard import (
    DeletionPolicy,
    is_mass_deletion,
    recent_deletions_meta_key,
)
from anchord.core.ports import IndexerDependencies
from anchord.core.types import FileRecord, Fingerprint, RootedPath, WalkResult


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
