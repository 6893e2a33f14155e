"""Git repositories around and below a root: where they begin, and which settings ignore files.

git itself is asked for the settings, once for each repository and again when a file that they
come from changed. So `include`, `includeIf`, `safe.directory` and the system's own settings count.
Without git on this machine the default place of the user's exclude file is taken.

A repository that git refuses to open (it belongs to another user, its configuration is broken) has
unknown rules: its last known settings are used or, if there are none, nothing of it is indexed.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from anchord.core.quoting import escape_non_utf8
from anchord.sources.files.source_memory import GitSettings, SourceMemory

_TIMEOUT_S = 20.0
_TIMEOUT_REPEAT_S = 600.0
"""A repository for which git did not answer in time is not asked about again sooner."""
_TIMED_OUT = f"git did not answer within {_TIMEOUT_S:.0f} s"
_MAX_GIT_FILE_BYTES = 10_000
_LOCAL_VARIABLES = frozenset(
    """
    GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_DIR
    GIT_OBJECT_DIRECTORY GIT_WORK_TREE GIT_IMPLICIT_WORK_TREE GIT_GRAFT_FILE GIT_INDEX_FILE
    GIT_NO_REPLACE_OBJECTS GIT_REPLACE_REF_BASE GIT_PREFIX GIT_SHALLOW_FILE GIT_COMMON_DIR
    GIT_INTERNAL_SUPER_PREFIX GIT_CEILING_DIRECTORIES
    """.split()  # noqa: SIM905 - a list of twenty words would not be easier to read
)
_IGNORES_CASE = re.compile(
    r"^\s*ignorecase\s*(=\s*(true|yes|on|1)\s*)?$", re.IGNORECASE | re.MULTILINE
)


_Setting = tuple[str, str, str]
"""Scope, origin and setting (key, line feed, value), as `git config --list` prints them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A git repository with a working tree."""

    top: str
    """Absolute path of the working tree."""
    common_folder: str
    """Absolute path of the folder with `info/exclude`; a linked worktree shares the main one's."""
    is_valid: bool = True
    """False for a `.git` in which git sees no repository."""
    settings: GitSettings = field(default_factory=GitSettings)
    problem: str = ""
    """Why git does not open it, "" if it does."""
    is_known: bool = True
    """Whether `settings` are those of this repository, now or when git opened it last."""


@dataclass(frozen=True, slots=True)
class _Answer:
    settings: GitSettings | None
    problem: str
    origins: dict[str, tuple[int, ...]]
    """Each file that the settings depend on, with its state before git read it."""

    def is_current(self) -> bool:
        """Whether no file that the settings depend on has changed."""
        return all(state_of_file(path) == state for path, state in self.origins.items())


class GitRepositories:
    """Finds repositories, and remembers what git said of them."""

    def __init__(self, memory: SourceMemory) -> None:
        """Look at nothing yet.

        Args:
            memory: The settings of each repository that git opened.
        """
        self._memory = memory
        self._answers: dict[str, _Answer] = {}
        self._timed_out_at: dict[str, float] = {}

    def around(self, folder: str) -> Repository | None:
        """Return the repository that a folder belongs to: its own, or the next one above it."""
        while True:
            found = self.at(folder)
            if found and found.is_valid:
                return found
            above = os.path.dirname(folder)
            if above == folder:
                return None
            folder = above

    def at(self, folder: str) -> Repository | None:
        """Return the repository whose working tree begins at a folder; None if there is none."""
        git_path = os.path.join(folder, ".git")
        if not os.path.lexists(git_path):
            return None
        try:
            git_folder = git_folder_of(git_path)
            if git_folder is None:
                return Repository(
                    top=folder,
                    common_folder=git_path,
                    is_valid=False,
                )
            common_folder = common_folder_of(git_folder)
        except OSError as error:
            return self._with_settings(
                folder,
                git_path,
                None,
                f"{git_path}: {error.strerror}",
            )
        answer = self._ask(folder, git_folder, common_folder)
        return self._with_settings(
            folder,
            common_folder,
            answer.settings,
            answer.problem,
        )

    def settings_files(self, top: str) -> dict[str, tuple[int, ...]]:
        """Return the files that a repository's settings come from, each with its state then."""
        answer = self._answers.get(top)
        return answer.origins if answer else {}

    def _with_settings(
        self, top: str, common_folder: str, settings: GitSettings | None, problem: str
    ) -> Repository:
        if settings is not None:
            self._memory.repositories[top] = settings
        known = self._memory.repositories.get(top)
        return Repository(
            top=top,
            common_folder=common_folder,
            settings=known or GitSettings(),
            problem=problem,
            is_known=known is not None,
        )

    def _ask(self, top: str, git_folder: str, common_folder: str) -> _Answer:
        earlier = self._answers.get(top)
        if earlier and earlier.is_current():
            return earlier
        origins = [
            os.path.join(common_folder, "config"),
            os.path.join(git_folder, "config.worktree"),
            *_user_files(),
        ]
        states = {path: state_of_file(path) for path in origins}  # Before git reads them.
        if time.monotonic() - self._timed_out_at.get(top, -_TIMEOUT_REPEAT_S) < _TIMEOUT_REPEAT_S:
            return _Answer(None, _TIMED_OUT, {"/": ()})
        own = {path: state_of_file(path) for path in _own_files(git_folder)}
        if pipe := _find_pipe([*states, *own]):
            self._answers[top] = _Answer(None, f"{pipe} is not a regular file", states | own)
            return self._answers[top]
        try:
            answer = _ask_git(top, git_folder, common_folder, states)
        except subprocess.TimeoutExpired:
            self._timed_out_at[top] = time.monotonic()
            return _Answer(None, _TIMED_OUT, {"/": ()})
        except (OSError, subprocess.SubprocessError) as error:
            return _Answer(None, f"git could not be asked: {error}", {"/": ()})
        self._answers[top] = answer
        return answer


def _ask_git(
    top: str, git_folder: str, common_folder: str, states: dict[str, tuple[int, ...]]
) -> _Answer:
    """Ask git for a repository's settings; add the files that they come from to `states`.

    Raises:
        OSError, subprocess.SubprocessError: git does not run, or does not answer in time.
    """
    try:
        entries, refusal = _list_settings(top)
    except FileNotFoundError:
        return _Answer(_settings_without_git(common_folder), "", states)
    for path in _files_behind(entries, top, git_folder):
        states.setdefault(path, state_of_file(path))
    if refusal:
        states[top] = state_of_file(top)
    return _Answer(None if refusal else _settings_of(entries, top), refusal, states)


def state_of_file(path: str) -> tuple[int, ...]:
    """Return what changes when a file is written, replaced, deleted or changes its owner."""
    try:
        status = os.stat(path)
    except OSError as error:
        return (error.errno or 0,)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_uid, status.st_mode


def _own_files(git_folder: str) -> list[str]:
    """Return the other files that git reads before it says anything of a repository."""
    return [os.path.join(git_folder, name) for name in ("HEAD", "commondir")]


def _find_pipe(paths: Iterable[str]) -> str:
    """Return a file that is none, "" if all are regular or missing: git would wait for a pipe."""
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        # A folder or /dev/null ends at once.
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            return path
    return ""


def git_folder_of(git_path: str) -> str | None:
    """Return the folder of a repository's data; None if git sees no repository there.

    Raises:
        OSError: It cannot be read.
    """
    if os.path.isdir(git_path):
        os.listdir(git_path)
        folder = git_path
    else:
        try:
            content = read_small_file(git_path)
        except FileNotFoundError:  # A symbolic link to nothing.
            return None
        if not content.startswith("gitdir: "):
            return None
        target = content.removeprefix("gitdir: ").rstrip("\r\n")
        git_folder = os.path.dirname(git_path)
        folder = os.path.normpath(os.path.join(git_folder, target))
    return folder if os.path.lexists(os.path.join(folder, "HEAD")) else None


def common_folder_of(git_folder: str) -> str:
    """Return the folder that a repository's worktrees share, given the data folder of one.

    Raises:
        OSError: It cannot be read.
    """
    try:
        shared = read_small_file(os.path.join(git_folder, "commondir")).rstrip("\r\n")
    except (FileNotFoundError, NotADirectoryError):
        return git_folder
    return os.path.normpath(os.path.join(git_folder, shared))


def read_small_file(path: str) -> str:
    """Return the first 10,000 bytes of one of git's small files.

    Raises:
        OSError: It cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.fsdecode(os.read(descriptor, _MAX_GIT_FILE_BYTES))
    finally:
        os.close(descriptor)


def _run_git(top: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in _LOCAL_VARIABLES and not name.startswith("GIT_TRACE")
    }
    return subprocess.run(
        ["git", *arguments],
        cwd=top,
        env={**environment, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def _list_settings(top: str) -> tuple[list[_Setting], str]:
    """Run git; return the settings of a repository, and why git refuses to open it, else "".

    Raises:
        FileNotFoundError: git is not installed.
        OSError: git could not be started.
        SubprocessError: git did not answer in time.
    """
    process = _run_git(
        top,
        "config",
        "--list",
        "--show-scope",
        "--show-origin",
        "-z",
    )
    entries = _entries(process.stdout) if not process.returncode else []
    if not any(scope == "local" for scope, _, _ in entries):
        # git lists the user's settings also for a repository that it refuses to open.
        process = _run_git(top, "rev-parse", "--git-dir")
    return entries, _first_line(process.stderr) if process.returncode else ""


def _files_behind(entries: list[_Setting], top: str, git_folder: str) -> Iterator[str]:
    """Yield the files that settings come from; HEAD if some of them depend on the branch."""
    for _, origin, entry in entries:
        if entry.startswith("includeif.onbranch:"):
            yield os.path.join(git_folder, "HEAD")
        if origin.startswith("file:"):
            yield os.path.join(top, origin.removeprefix("file:"))


def _entries(output: bytes) -> list[_Setting]:
    fields = os.fsdecode(output).split("\0")
    first, second, third = fields[0::3], fields[1::3], fields[2::3]
    return list(zip(first, second, third, strict=False))


def _settings_of(entries: list[_Setting], top: str) -> GitSettings:
    values: dict[str, str] = {}
    for _, _, entry in entries:
        key, has_value, value = entry.partition("\n")
        values[key] = value if has_value else "true"
    named = values.get("core.excludesfile")
    excludes_file = _default_excludes_file()
    if named is not None:
        excludes_file = os.path.join(top, os.path.expanduser(named)) if named else ""
    ignores_case = values.get("core.ignorecase", "").lower() in ("true", "yes", "on", "1")
    return GitSettings(excludes_file, ignores_case)


def _settings_without_git(common_folder: str) -> GitSettings:
    try:
        with open(os.path.join(common_folder, "config"), "rb") as file:
            config = os.fsdecode(file.read())
    except OSError:
        config = ""
    return GitSettings(_default_excludes_file(), bool(_IGNORES_CASE.search(config)))


def _default_excludes_file() -> str:
    return os.path.join(_user_folder(), "git", "ignore")


def _user_folder() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def _user_files() -> list[str]:
    """Return where git looks for settings that are no repository's."""
    named = [os.environ.get(name, "") for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")]
    return [
        os.path.expanduser("~/.gitconfig"),
        os.path.join(_user_folder(), "git", "config"),
        "/etc/gitconfig",
        *filter(None, named),
    ]


def _first_line(stderr: bytes) -> str:
    lines = os.fsdecode(stderr).removeprefix("fatal: ").splitlines()
    return escape_non_utf8(lines[0]) if lines else "git gave no reason"
