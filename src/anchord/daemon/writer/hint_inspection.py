"""Looks at the paths of settled hints: what is there, what is gone, what has moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from anchord.core.deletion_guard import find_moves
from anchord.core.types import Fingerprint, RootedPath
from anchord.index.reconcile import ReconcileResult
from anchord.index.session import IndexWriter


@dataclass(slots=True, kw_only=True)
class Inspection:
    """What the hinted paths of one root turned out to be."""

    root: str
    files_due: dict[RootedPath, float] = field(default_factory=dict)
    """Files to index, with the time of the hint that led to them; includes all `missing`."""
    mtimes_ns: dict[RootedPath, int] = field(default_factory=dict)
    """When those of them that exist changed."""
    missing: dict[RootedPath, Fingerprint] = field(default_factory=dict)
    """Files that are gone or were emptied, with the fingerprint they were indexed with."""
    hinted_paths: dict[RootedPath, str] = field(default_factory=dict)
    """Missing file -> the hinted path that led to it: the file itself or a folder above it."""
    present: dict[str, Fingerprint] = field(default_factory=dict)
    """Path -> fingerprint of the hinted files that exist: a missing file may have moved there."""

    def drop(self, file: RootedPath) -> None:
        """Remove a missing file, so that it is not indexed now."""
        del self.missing[file]
        del self.files_due[file]


class HintInspector:
    """Looks at hinted paths; changes nothing. For the writer thread."""

    def __init__(self, writer: IndexWriter, walk: Callable[[str, str], ReconcileResult]) -> None:
        """Look at nothing yet.

        Args:
            writer: The opened index.
            walk: Walks a folder of a root and returns what differs from the index.
        """
        self._writer = writer
        self._walk = walk

    def inspect(self, root: str, hinted_at: Mapping[str, float]) -> Inspection | None:
        """Look at each hinted path; None when a folder among them cannot be walked."""
        inspection = Inspection(root=root)
        others: dict[str, float] = {}
        for path, at in hinted_at.items():
            origin = RootedPath(root, path)
            fingerprint = self._writer.files.fingerprint(origin)
            if isinstance(fingerprint, Fingerprint):
                self._inspect_file(inspection, origin, fingerprint)
                inspection.files_due[origin] = at
            else:
                others[path] = at
        return inspection if self._walk_folders(inspection, others) else None

    def _walk_folders(self, inspection: Inspection, hinted_at: Mapping[str, float]) -> bool:
        """Look below paths that are folders, or are gone; return False if one cannot be walked."""
        walked: set[str] = set()
        # A folder is walked before those in it, which its walk covers: a tree of folders that was
        # copied or deleted is one walk.
        for path in sorted(hinted_at, key=len):
            if not walked.isdisjoint(_folders_above(path)):
                continue
            # Of a path that is gone, the walk returns the files that were indexed below it.
            walk = self._walk(inspection.root, path)
            if walk.walk_error:
                return False
            at = hinted_at[path]
            inspection.files_due.update(dict.fromkeys(walk.paths_due, at))
            inspection.mtimes_ns.update(walk.mtimes_ns)
            inspection.missing.update(walk.gone_or_emptied)
            inspection.hinted_paths.update(dict.fromkeys(walk.gone_or_emptied, path))
            if not walk.folder_problems:
                walked.add(path)
        return True

    def _inspect_file(
        self, inspection: Inspection, file: RootedPath, fingerprint: Fingerprint
    ) -> None:
        """Sort a file that exists: missing if it was emptied since it was indexed, else present."""
        inspection.mtimes_ns[file] = fingerprint.mtime_ns
        record = None if fingerprint.size else self._writer.catalog.get_record(file)
        if record and record.chunks:
            inspection.missing[file] = record.fingerprint
            inspection.hinted_paths[file] = file.path
        else:
            inspection.present[file.path] = fingerprint

    def find_moves(self, inspection: Inspection) -> dict[RootedPath, RootedPath]:
        """Return the missing files that exist under another path now: new path -> old path."""
        if not inspection.missing:
            return {}
        root, files = inspection.root, self._writer.files
        candidates = dict(inspection.present)
        for file in inspection.files_due:  # Those that a walk found have no fingerprint here.
            if file in inspection.missing or file.path in candidates:
                continue
            fingerprint = files.fingerprint(file)
            if isinstance(fingerprint, Fingerprint):
                candidates[file.path] = fingerprint
        path_filter = files.path_filter()
        included = {
            path: fingerprint
            for path, fingerprint in candidates.items()
            if path_filter(RootedPath(root, path)).is_included
        }
        missing = {file.path: fingerprint for file, fingerprint in inspection.missing.items()}
        return {
            RootedPath(root, new): RootedPath(root, old)
            for new, old in find_moves(missing, included).items()
        }


def _folders_above(path: str) -> Iterator[str]:
    """Yield each folder above a path, the nearest first."""
    while path := path.rpartition("/")[0]:
        yield path
