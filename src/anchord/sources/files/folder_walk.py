"""Walks a folder of a root and lists the files that the rules include."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence

from anchord.core.ports import EnterDirCallback
from anchord.core.types import FoundFile, Problem, RootedPath, WalkResult
from anchord.sources.files.file_status import (
    LINK_LOOP,
    classify,
    fingerprint_of,
    leads_to_own_ancestor,
    outcome_of_error,
)
from anchord.sources.files.ignore_rules import FolderRules

RulesForSubfolder = Callable[[FolderRules, str, Sequence[str]], FolderRules]
"""Returns the rules inside a sub-folder, given the folder's rules, its name and its entries."""

_new_tuple = tuple.__new__
"""Makes a named tuple without a Python call: a walk makes one for every file."""


def list_entries(path: str) -> list[os.DirEntry[str]]:
    """List a folder.

    Raises:
        OSError: The folder cannot be read.
    """
    with os.scandir(path) as entries:
        return list(entries)


class FolderWalk:
    """One walk. It keeps its own stack of folders: a deep tree exceeds no recursion limit."""

    def __init__(
        self,
        rules: FolderRules,
        entries: list[os.DirEntry[str]],
        rules_for_subfolder: RulesForSubfolder,
        on_enter_dir: EnterDirCallback,
    ) -> None:
        """Prepare a walk; nothing is read yet.

        Args:
            rules: The rules inside the top folder.
            entries: The top folder's entries.
            rules_for_subfolder: Returns the rules inside a sub-folder.
            on_enter_dir: Called with each folder below the top before it is listed.
        """
        self._rules_for_subfolder = rules_for_subfolder
        self._on_enter_dir = on_enter_dir
        self._pending = [(rules, entries)]
        self._found: list[FoundFile] = []
        self._file_problems: list[tuple[str, Problem]] = []
        self._folder_problems: list[tuple[str, Problem]] = []
        self._unknown_rules: list[str] = []
        self._unreadable_folders: list[str] = []
        self._skipped_count = 0
        self._listed_folders = [rules.path.rstrip("/")]
        self._note_problems(rules)

    def run(self, top_device: int) -> WalkResult:
        """Walk. Never raises OSError: what cannot be read is a problem in the result.

        Args:
            top_device: The device that the top folder is on, for the result.
        """
        while self._pending:
            rules, entries = self._pending.pop()
            for entry in entries:
                self._visit(rules, entry)
        return WalkResult(
            files=tuple(self._found),
            file_problems=tuple(self._file_problems),
            folder_problems=tuple(self._folder_problems),
            unreadable_folders=tuple(self._unreadable_folders),
            unknown_rules=tuple(self._unknown_rules),
            skipped_count=self._skipped_count,
            listed_folders=tuple(self._listed_folders),
            top_device=top_device,
        )

    def _visit(self, rules: FolderRules, entry: os.DirEntry[str]) -> None:
        path = rules.path + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        match = rules.match(entry.name, is_folder=is_folder)
        if not match.is_included:
            self._skipped_count += 1
            if entry.is_symlink() and leads_to_own_ancestor(entry.path):
                self._folder_problems.append((path, LINK_LOOP))
        elif is_folder:
            self._enter(rules, entry, path)
        else:
            self._look_at_file(entry, path)

    def _enter(self, rules: FolderRules, entry: os.DirEntry[str], path: str) -> None:
        # Before the listing: a change between the listing and the watch would be missed.
        self._on_enter_dir(RootedPath(rules.root.name, path))
        try:
            entries = list_entries(entry.path)
        except OSError as error:
            outcome = outcome_of_error(error)
            if isinstance(outcome, Problem):
                self._unreadable_folders.append(path)
                self._folder_problems.append((path, outcome))
            return
        self._listed_folders.append(path)
        names = [each.name for each in entries]
        rules_inside = self._rules_for_subfolder(rules, entry.name, names)
        self._note_problems(rules_inside)
        self._pending.append((rules_inside, entries))

    def _note_problems(self, rules: FolderRules) -> None:
        self._folder_problems += rules.problems
        self._unknown_rules += [path for path, problem in rules.problems if not problem.is_partial]

    def _look_at_file(self, entry: os.DirEntry[str], path: str) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):  # Nearly every entry of every walk.
                self._found.append(_new_tuple(FoundFile, (path, fingerprint_of(status))))
                return
            outcome: object = classify(status, entry.path)
        except OSError as error:
            outcome = outcome_of_error(error)
        if isinstance(outcome, Problem):
            self._file_problems.append((path, outcome))
        else:
            self._skipped_count += 1
