"""The worktrees of the repositories in the roots, as git's own files tell them.

The rules of a folder are read whenever its `.git` is met: by a walk, and before a file is indexed.
Each time, the repository's list of worktrees is read again, so nothing is stored. A clone is a
repository of its own and never a further worktree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from anchord.config.roots import find_root
from anchord.core.types import Root, RootedPath
from anchord.core.worktrees import Checkouts, choose_main
from anchord.sources.files.git_repositories import Repository, git_folder_of, read_small_file
from anchord.sources.files.secret_names import actual_path

_IS_BARE = re.compile(r"^\s*bare\s*(=\s*(true|yes|on|1)\s*)?$", re.IGNORECASE | re.MULTILINE)


class Worktrees:
    """Implements `WorktreeFiles` over the roots. Not thread-safe."""

    def __init__(self, roots: Mapping[str, Root], redact_path: Callable[[str], str]) -> None:
        """Know no worktree yet.

        Args:
            roots: The roots by name. Changes to the mapping take effect.
            redact_path: Returns how a path on disk is known.
        """
        self._redact_path = redact_path
        self._roots = roots
        self._checkouts = Checkouts()
        self._main_folders: dict[tuple[str, str], RootedPath | None] = {}
        """Root and folder -> the folder of the main checkout; a walk asks for each file."""
        self._linked_by_repository: dict[str, set[str]] = {}

    # What rules meet

    def note(self, repository: Repository) -> None:
        """Read which worktrees a repository has; nothing unless some root merges them."""
        if not any(root.worktrees == "one" for root in self._roots.values()):
            return
        if not repository.is_valid:
            self.note_no_repository(repository.top)
            return
        common = repository.common_folder
        listed = _list_linked(common)
        known = self._linked_by_repository.setdefault(common, set())
        for others in self._linked_by_repository.values():
            others.discard(repository.top)
        known.add(repository.top)
        met = {top for top in known if _is_linked_to(top, common)}
        roots = [root.path for root in self._roots.values() if root.kind == "project"]
        main = choose_main(_own_top(common), listed, roots)
        mains = {
            top: before
            for top, before in self._checkouts.main_by_worktree.items()
            if top not in known
        }
        known.clear()
        known.update(met, listed)
        if main:
            mains |= {top: main for top in sorted(known) if top != main}
        self._checkouts = Checkouts(mains)
        self._main_folders.clear()

    def note_no_repository(self, folder: str) -> None:
        """Note that no working tree begins at a folder."""
        mains = self._checkouts.main_by_worktree
        if folder in mains:
            self._checkouts = Checkouts({top: mains[top] for top in mains if top != folder})
            self._main_folders.clear()

    # What files are asked about

    def merges(self, root: str) -> bool:
        """Whether a root leaves out files that equal the main checkout's."""
        found = self._roots.get(root)
        is_asked_for = found and found.worktrees == "one" and found.kind == "project"
        return bool(is_asked_for and self._checkouts.main_by_worktree)

    def main_file(self, origin: RootedPath) -> RootedPath | None:
        """Return the main checkout's file at the same path; None for none."""
        if not self.merges(origin.root):
            return None
        folder, _, name = origin.path.rpartition("/")
        key = (origin.root, folder)
        if key not in self._main_folders:
            main = self._checkouts.main_path(self._absolute(RootedPath(*key)).rstrip("/") + "/.")
            self._main_folders[key] = None if main is None else self._rooted(main)
        main_folder = self._main_folders[key]
        if main_folder is None:
            return None
        return RootedPath(main_folder.root, main_folder.path.removesuffix(".") + name)

    def copies_of(self, origin: RootedPath) -> Sequence[RootedPath]:
        """Return the files of further worktrees whose `main_file` is this one."""
        if not self._checkouts.main_by_worktree or origin.path.startswith("/"):
            return ()
        copies = map(self._rooted, self._checkouts.copy_paths(self._absolute(origin)))
        return [copy for copy in copies if copy and self.merges(copy.root)]

    def _absolute(self, origin: RootedPath) -> str:
        top = self._roots[origin.root].path
        return f"{top}/{actual_path(top, origin.path)}"

    def _rooted(self, path: str) -> RootedPath | None:
        projects = [root for root in self._roots.values() if root.kind == "project"]
        found = find_root(projects, path)
        if found is None:
            return None
        root, inside = found
        return RootedPath(root.name, self._redact_path(inside))


def _list_linked(common_folder: str) -> set[str]:
    """Return the linked worktrees that a repository lists and that exist."""
    tops: set[str] = set()
    with suppress(OSError):
        for name in os.listdir(f"{common_folder}/worktrees"):
            folder = f"{common_folder}/worktrees/{name}"
            with suppress(OSError):
                git_file = os.path.join(folder, read_small_file(f"{folder}/gitdir").rstrip("\r\n"))
                if os.path.lexists(git_file):
                    tops.add(os.path.realpath(os.path.dirname(os.path.normpath(git_file))))
    return tops


def _is_linked_to(top: str, common_folder: str) -> bool:
    """Whether a folder is a linked worktree of a repository, also one that was moved by hand."""
    try:
        git_folder = git_folder_of(f"{top}/.git")
    except OSError:
        return False
    return git_folder is not None and os.path.dirname(git_folder) == f"{common_folder}/worktrees"


def _own_top(common_folder: str) -> str:
    """Return the repository's own working tree, "" for a bare repository."""
    top, name = os.path.split(common_folder)
    with suppress(OSError):
        if name == ".git" and not _IS_BARE.search(read_small_file(f"{common_folder}/config")):
            return top
    return ""
