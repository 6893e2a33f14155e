"""The files of the roots and the exchanges of the archive as one tree: an exchange is looked at and read as a file is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anchord.adapters.archive import Archive
from anchord.adapters.files import FolderFiles
from anchord.model import Absent, Content, Fingerprint, Origin, Problem, Root, Unstable, Verdict, Walk
from anchord.ports import Entering, Judge, unheard
from anchord.sources.archived import is_archived
from anchord.sources.conversations import is_prose

_EXCHANGE = Verdict(included=True, reason="an exchange of a conversation")
_TAKEN_IN = Absent("not a document: what it tells is in the archive")


class JoinedFiles:
    """`Files` over folders and over an archive; without an archive there are no exchanges yet."""

    def __init__(self, folders: FolderFiles, roots: Mapping[str, Root], archive: Archive | None) -> None:
        """Join them; `roots` says which roots hold conversations."""
        self.folders = folders
        self.archive = archive
        self._roots = roots

    def forget(self, paths: Sequence[str]) -> None:
        """Never let these absolute paths, and what is below them, into the index; replaces those named before."""
        self.folders.forget(paths)

    def judge(self) -> Judge:
        """Return a judge of paths."""
        inner = self.folders.judge()
        return lambda origin: _EXCHANGE if is_archived(origin.path) else inner(origin)

    def fingerprint(self, origin: Origin) -> Fingerprint | Absent | Problem:
        """Look at a path without reading it."""
        if is_archived(origin.path):
            return self.archive.fingerprint(origin) if self.archive else Absent("no such exchange")
        return self.folders.fingerprint(origin)

    def read(self, origin: Origin) -> Content | Absent | Problem | Unstable:
        """Read a file or an exchange; a file whose exchanges are in the archive has nothing of its own."""
        if is_archived(origin.path):
            return self.archive.read(origin) if self.archive else Absent("no such exchange")
        if self._holds(origin.root) and (not is_prose(origin.path) or (self.archive and self.archive.carrier(origin))):
            return _TAKEN_IN
        return self.folders.read(origin)

    def walk(self, root: str, prefix: str, entering: Entering = unheard) -> Walk | Absent | Problem:
        """List the files of a root, and its exchanges after them."""
        if is_archived(prefix):
            return Walk(self.archive.found(root, prefix) if self.archive else ())
        walk = self.folders.walk(root, prefix, entering)
        if prefix or not isinstance(walk, Walk) or not self.archive or not self._holds(root):
            return walk
        return replace(walk, found=(*walk.found, *self.archive.found(root)))

    def _holds(self, root: str) -> bool:
        return self._roots[root].kind == "conversations"
