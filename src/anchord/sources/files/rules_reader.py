"""Collects the rules of each folder: its ignore files, and what git adds to them.

Of a project, git's rules count in git's order: `core.excludesFile`, `info/exclude`, then the ignore
files of each folder from the top of the repository down, also of folders above the root. They say
nothing about the root's own folder and those above it: the user named that one. A repository below
the root adds its own rules, and those from outside stay in force in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from anchord.core.types import PathMatch, Problem, Root, RootedPath
from anchord.sources.files.git_repositories import GitRepositories, Repository, state_of_file
from anchord.sources.files.ignore_rules import (
    IGNORE_FILE_NAMES,
    FolderRules,
    IgnoreFile,
    root_rules,
)
from anchord.sources.files.rule_files import OpenFile, RuleFile, RuleFiles
from anchord.sources.files.source_memory import SourceMemory
from anchord.sources.files.worktrees import Worktrees

GIT = ".git"
_NAMES = (*IGNORE_FILE_NAMES, GIT)


@dataclass(slots=True)
class _Collected:
    """The rules of one folder, as far as they were read."""

    files: list[IgnoreFile] = field(default_factory=list)
    problems: list[tuple[str, Problem]] = field(default_factory=list)
    closed_reason: str = ""

    def add(self, described: IgnoreFile, problem_path: str, read: RuleFile) -> None:
        """Add an ignore file.

        Args:
            described: It, without lines.
            problem_path: Its path relative to the root, or absolute.
            read: What it says.
        """
        self.files += [replace(described, lines=lines) for lines in read.layers]
        if read.problem:
            self.problems.append((problem_path, read.problem))
        if read.problem and read.is_closed:
            self.closed_reason = f"{described.path} {read.problem.reason}"


@dataclass(slots=True)
class _RootState:
    """What the rules of a root depend on besides the events of its watcher."""

    outside: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Files that are not watched -> their state when they were read."""
    settles_at_ns: int = 0
    """When rules that may be in the middle of a save have to be read again; 0 for none."""


class RulesReader:
    """Reads the rules of folders. Not thread-safe."""

    def __init__(
        self,
        own_folders: Sequence[str],
        open_in_root: Callable[[RootedPath], AbstractContextManager[int]],
        memory: SourceMemory,
        worktrees: Worktrees,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Read nothing yet.

        Args:
            own_folders: Absolute paths of folders that anchord writes.
            open_in_root: Opens a file of a root, without following links.
            memory: Keeps the last good rules.
            worktrees: Told of each working tree that is met.
            clock: Returns the time in nanoseconds since the epoch.
        """
        self._own_folders = own_folders
        self._open_in_root = open_in_root
        self._memory = memory
        self._worktrees = worktrees
        self._clock = clock
        self._files = RuleFiles(memory, clock)
        self._repositories = GitRepositories(memory)
        self._states: dict[str, _RootState] = {}

    def begin_walk(self, root_name: str) -> None:
        """Forget what the last walk of a whole root noted about its rules."""
        self._states[root_name] = _RootState()

    def settle_in_s(self, root_name: str) -> float | None:
        """Return in how many seconds a root's rules must be read again; None if they are settled.

        A save of an ignore file may be under way: until then its last good rules hold.
        """
        state = self._states.get(root_name)
        if state is None or not state.settles_at_ns:
            return None
        return max(0.0, (state.settles_at_ns - self._clock()) / 1e9)

    def has_outside_changes(self, root_name: str) -> bool:
        """Return whether a file above a root, or one of git's own, changed since it was read."""
        state = self._states.get(root_name)
        return state is not None and any(
            (_kind_of(path) if path.endswith(f"/{GIT}") else state_of_file(path)) != seen
            for path, seen in state.outside.items()
        )

    def top_rules(self, root: Root, forgotten_paths: frozenset[str]) -> FolderRules:
        """Return the rules inside a root's own folder."""
        rules = root_rules(root, self._own_folders, forgotten_paths)
        collected = _Collected()
        if root.kind == "conversations":
            # Transcripts are no part of a project: only what is in the root counts.
            self._add_outside(root, f"{root.path}/.git/info/exclude", collected)
            return self._with_folder(rules, "", IGNORE_FILE_NAMES, collected)
        outside = self._state(root).outside
        for folder in _folders_up(root.path):
            git_path = f"{folder}/{GIT}"
            outside[git_path] = _kind_of(git_path)
            if not os.path.lexists(git_path):
                self._worktrees.note_no_repository(folder)
        repository = self._repositories.around(root.path)
        if repository is None or repository.top != root.path:
            own = self._repositories.at(root.path)
            if own:  # In a `.git` that git does not accept, there can be an exclude file.
                self._add_exclude(root, own, "", collected)
        if repository:
            rules = self._enter(rules, repository, collected)
            self._add_folders_above(root, repository, collected)
        return self._with_folder(rules, "", IGNORE_FILE_NAMES, collected)

    def subfolder_rules(
        self, parent: FolderRules, folder: str, entry_names: Sequence[str] = _NAMES
    ) -> FolderRules:
        """Return the rules inside a sub-folder.

        Args:
            parent: The rules inside the folder above.
            folder: The sub-folder's name.
            entry_names: What is in the sub-folder: other ignore files are not opened.
        """
        rules, collected = parent, _Collected()
        top = f"{parent.root.path}/{parent.path}{folder}"
        if parent.root.kind != "conversations":
            repository = self._repositories.at(top) if GIT in entry_names else None
            if repository is None:
                self._worktrees.note_no_repository(top)
            else:
                rules = self._enter(
                    parent,
                    repository,
                    collected,
                    f"{parent.path}{folder}/",
                )
        return self._with_folder(rules, folder, entry_names, collected)

    def _with_folder(
        self, rules: FolderRules, folder: str, entry_names: Sequence[str], collected: _Collected
    ) -> FolderRules:
        """Return the rules inside a folder, after adding its own ignore files to `collected`."""
        root = rules.root
        path = f"{rules.path}{folder}/" if folder else rules.path
        for name in IGNORE_FILE_NAMES:
            absolute = f"{root.path}/{path}{name}"
            if name not in entry_names and not self._files.is_remembered(absolute):
                continue
            origin = RootedPath(root.name, path + name)
            read = self._read(root, absolute, partial(self._open_in_root, origin))
            described = IgnoreFile(
                path + name,
                (),
                ignores_case=rules.ignores_case,
            )
            collected.add(described, path + name, read)
        inside = rules.for_subfolder(folder, collected.files)
        closed = rules.closed
        if collected.closed_reason:
            closed = PathMatch(
                is_included=False,
                reason=collected.closed_reason,
                is_undecided=True,
            )
        return replace(
            inside,
            problems=tuple(collected.problems),
            closed=closed,
        )

    def _enter(
        self, rules: FolderRules, repository: Repository, collected: _Collected, base: str = ""
    ) -> FolderRules:
        """Add git's own rules of a repository; return the rules with its settings.

        Args:
            rules: The rules before.
            repository: The repository.
            collected: Its exclude files are added to it.
            base: The repository's folder in the root; "" for one that contains the root.
        """
        root, settings = rules.root, repository.settings
        self._worktrees.note(repository)
        if root.worktrees == "one":
            git_path = f"{repository.top}/{GIT}"
            self._state(root).outside.setdefault(git_path, _kind_of(git_path))
        self._state(root).outside.update(self._repositories.settings_files(repository.top))
        if repository.problem:
            problem = _refusal(repository)
            collected.problems.append((f"{repository.top}/{GIT}", problem))
            if not repository.is_known:
                collected.closed_reason = problem.reason
        excludes_file = settings.excludes_file
        if excludes_file and excludes_file != rules.excludes_file:
            described = _outside_file(root, repository, excludes_file, base)
            self._add_outside(
                root, excludes_file, collected, replace(described, path=excludes_file)
            )
        self._add_exclude(root, repository, base, collected)
        return replace(
            rules,
            ignores_case=settings.ignores_case,
            excludes_file=excludes_file or rules.excludes_file,
        )

    def _add_exclude(
        self, root: Root, repository: Repository, base: str, collected: _Collected
    ) -> None:
        path = f"{repository.common_folder}/info/exclude"
        self._add_outside(
            root,
            path,
            collected,
            _outside_file(root, repository, path, base),
        )

    def _add_folders_above(self, root: Root, repository: Repository, collected: _Collected) -> None:
        """Add the ignore files between the top of the repository and the root."""
        inner = os.path.relpath(root.path, repository.top)
        names = [] if inner == "." else inner.split("/")
        for depth in range(len(names)):
            folder = "/".join((repository.top, *names[:depth]))
            prefix = "/".join(names[depth:]) + "/"
            for name in IGNORE_FILE_NAMES:
                path = f"{folder}/{name}"
                described = IgnoreFile(
                    os.path.relpath(path, root.path),
                    (),
                    prefix=prefix,
                    ignores_case=repository.settings.ignores_case,
                )
                self._add_outside(root, path, collected, described)

    def _add_outside(
        self, root: Root, path: str, collected: _Collected, described: IgnoreFile | None = None
    ) -> None:
        """Add an ignore file that the watcher does not watch."""
        self._state(root).outside[path] = state_of_file(path)
        described = described or IgnoreFile(os.path.relpath(path, root.path), ())
        read = self._read(root, path, partial(_open, path), is_outside=True)
        collected.add(described, path, read)

    def _read(
        self, root: Root, path: str, open_file: OpenFile, *, is_outside: bool = False
    ) -> RuleFile:
        read = self._files.read(path, open_file, is_outside=is_outside)
        if read.settles_at_ns:
            state = self._state(root)
            state.settles_at_ns = max(state.settles_at_ns, read.settles_at_ns)
        return read

    def _state(self, root: Root) -> _RootState:
        return self._states.setdefault(root.name, _RootState())


def _outside_file(root: Root, repository: Repository, path: str, base: str) -> IgnoreFile:
    prefix = ""
    if not base and repository.top != root.path:
        prefix = os.path.relpath(root.path, repository.top) + "/"
    return IgnoreFile(
        os.path.relpath(path, root.path),
        (),
        prefix=prefix,
        ignores_case=repository.settings.ignores_case,
    )


def _refusal(repository: Repository) -> Problem:
    remedy = "`git status` there must work first"
    if "dubious ownership" in repository.problem:
        remedy = f"`git config --global --add safe.directory {repository.top}` trusts it"
    message = f"git does not open this repository ({repository.problem})"
    if repository.is_known:
        return Problem(
            f"{message}: its last known settings stay in force; {remedy}", is_partial=True
        )
    return Problem(f"{message}: nothing of it is indexed until it does; {remedy}")


def _folders_up(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, without "/"."""
    while len(folder) > 1:
        yield folder
        folder = os.path.dirname(folder)


def _kind_of(path: str) -> tuple[int, ...]:
    """Return the state of a `.git`, of a folder only that there is one: it changes often."""
    return (int(os.path.lexists(path)), 1) if os.path.isdir(path) else state_of_file(path)


@contextmanager
def _open(path: str) -> Iterator[int]:
    """Open a file outside the root; as git does, through symbolic links."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
