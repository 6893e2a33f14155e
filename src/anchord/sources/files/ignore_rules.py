"""Which paths belong to the index, and which rule decided it.

The first rule that matches decides:

1. anchord's own folders, folders that are never indexed (`.git`, `node_modules`, ...) and forgotten
   paths are out;
2. `exclude` of the configuration is out;
3. what an ignore file ignores is out: `.gitignore`, `.ignore`, `.anchordignore` of every folder
   from the file's up to the top of the repository (`rules_reader`), `info/exclude` and
   `core.excludesFile`. The deepest file that has a matching pattern decides, by its last matching
   pattern. Where the rules are not known, everything is out;
4. the deny list (keys, credentials, histories) is out, unless `include` names the very file without
   wildcards;
5. `include` is in;
6. hidden files and folders are out, generated files are out, known text types are in, all other
   files are out.

As in git, nothing below an ignored folder can be included again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anchord.core.quoting import escape_non_utf8
from anchord.core.types import PathMatch, Problem, Root
from anchord.sources.conversations.formats.registry import (
    HIDDEN_TRANSCRIPTS,
    IGNORED_FOLDERS,
    may_be_transcript,
)
from anchord.sources.documents.file_types import kind_of
from anchord.sources.files.built_in_rules import (
    NEVER_INDEXED_FOLDERS,
    is_denied,
    is_generated,
    is_special_name,
    may_be_denied,
)
from anchord.sources.files.ignore_patterns import IgnorePatterns, compile_patterns

IGNORE_FILE_NAMES = (".gitignore", ".ignore", ".anchordignore")
"""Later ones overrule earlier ones of the same folder."""


def _excluded(reason: str) -> PathMatch:
    return PathMatch(is_included=False, reason=reason)


_FORGOTTEN = _excluded("forgotten by a command; `anchord forget --undo` indexes it again")
_DENIED = _excluded("on the deny list of keys and credentials; name the file in `include`")
_HIDDEN = _excluded("hidden; add it to `include` to index it")
_GENERATED = _excluded("generated; add it to `include` to index it")
_BESIDE_TRANSCRIPTS = _excluded("a folder of a program that holds no conversations")
_NO_TRANSCRIPT = _excluded("no conversations by its name; add it to `include` to read it")
_FOLDER = PathMatch(is_included=True, reason="a folder")
_MAY_BE_TRANSCRIPT = PathMatch(
    is_included=True, reason="may hold conversations", is_worth_reporting=True
)
_BY_KIND: Mapping[str | None, PathMatch] = {
    None: _excluded("not a known text type; add it to `include` to index it"),
    **{
        kind: PathMatch(
            is_included=True,
            reason=f"a {kind} file",
            is_worth_reporting=True,
        )
        for kind in ("markdown", "text", "code")
    },
}


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """An ignore file's content."""

    path: str
    """Path relative to the root, or absolute; it is part of the reason of a match."""
    lines: tuple[str, ...]
    prefix: str = ""
    """The root's path below the folder of a file above the root: "" or "a/b/"."""
    ignores_case: bool = False
    """Whether its patterns match ASCII letters whatever their case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRules:
    """The rules inside one folder. Immutable; a walk makes one for each folder that it enters."""

    root: Root
    path: str
    """The folder relative to the root: "" or "a/b/"."""
    exclude_patterns: IgnorePatterns
    include_patterns: IgnorePatterns
    own_folders: tuple[str, ...]
    """Absolute paths of folders that anchord writes."""
    forgotten_paths: frozenset[str] = frozenset()
    """Absolute paths of files and folders."""
    ignore_patterns: tuple[IgnorePatterns, ...] = ()
    """Of the ignore files from the root down to this folder."""
    problems: tuple[tuple[str, Problem], ...] = ()
    """The files of this folder's rules that cannot be read: path, and why."""
    closed: PathMatch | None = None
    """Set where the rules are not known: the match of everything in this folder."""
    ignores_case: bool = False
    """Whether the repository that contains this folder ignores case."""
    excludes_file: str = ""
    """Absolute path of the `core.excludesFile` in force, "" if there is none."""
    is_plain: bool = False
    """Whether only names and ignore files decide on this folder's files: a short cut holds."""

    def for_subfolder(self, folder: str, ignore_files: Sequence[IgnoreFile]) -> FolderRules:
        """Return the rules inside a sub-folder.

        Args:
            folder: The sub-folder's name; "" for this folder itself, with its ignore files added.
            ignore_files: The sub-folder's ignore files, in the order of `IGNORE_FILE_NAMES`.
        """
        path = f"{self.path}{folder}/" if folder else self.path
        added = tuple(
            compile_patterns(
                path, file.path, file.lines, prefix=file.prefix, ignores_case=file.ignores_case
            )
            for file in ignore_files
        )
        has_other_rules = (
            self.root.kind == "conversations"
            or self.root.include
            or self.root.exclude
            or self.forgotten_paths
        )
        return replace(
            self,
            path=path,
            ignore_patterns=(*self.ignore_patterns, *added),
            is_plain=not has_other_rules and not _is_hidden(path),
        )

    def match(self, name: str, *, is_folder: bool) -> PathMatch:
        """Decide whether an entry of this folder belongs to the index.

        Args:
            name: The entry's name.
            is_folder: Whether it is a folder: then the answer is whether to enter it.
        """
        if self.closed:
            return self.closed
        path = self.path + name + "/" * is_folder
        if self.is_plain and not is_folder:
            kind = kind_of(name)
            if kind and not is_special_name(name) and not self._may_be_ignored(name, path):
                return _BY_KIND[kind]  # Nearly every file: no other rule can match it.
        return self._excluding_rule(name, path, is_folder=is_folder) or self._other_rule(
            name, path, is_folder=is_folder
        )

    def _may_be_ignored(self, name: str, path: str) -> bool:
        for patterns in self.ignore_patterns:  # noqa: SIM110 - a walk calls it for every file: a generator is slower
            if patterns.may_match(name, path):
                return True
        return False

    def _excluding_rule(self, name: str, path: str, *, is_folder: bool) -> PathMatch | None:
        """Return the first of the rules 1 to 4 that matches."""
        return (
            self._never_indexed(name, path, is_folder=is_folder)
            or self._excluded_by_configuration(path)
            or self._ignored_by_file(name, path)
            or self._denied(name, path)
        )

    def _never_indexed(self, name: str, path: str, *, is_folder: bool) -> PathMatch | None:
        if not is_folder and not self.forgotten_paths:
            return None
        absolute_path = f"{self.root.path}/{path.rstrip('/')}"
        if is_folder and (name in NEVER_INDEXED_FOLDERS or absolute_path in self.own_folders):
            return _excluded(f"{name}/ is never indexed")
        if absolute_path in self.forgotten_paths:
            return _FORGOTTEN
        return None

    def _excluded_by_configuration(self, path: str) -> PathMatch | None:
        found = self.exclude_patterns.last_match(path)
        if found is None or not found.is_match:
            return None
        return _excluded(f"excluded by the configuration: {found.pattern}")

    def _ignored_by_file(self, name: str, path: str) -> PathMatch | None:
        for patterns in reversed(self.ignore_patterns):
            if not patterns.may_match(name, path):
                continue
            found = patterns.last_match(path)
            if found is None:
                continue
            # The deepest file with a matching pattern decides, also if the pattern begins with "!".
            if not found.is_match:
                return None
            return _excluded(f"ignored by {escape_non_utf8(found.pattern)}")
        return None

    def _denied(self, name: str, path: str) -> PathMatch | None:
        # With an `include` every path is checked: a named file includes denied folders above it.
        if not self.root.include and not may_be_denied(name):
            return None
        if is_denied(path) and not self._is_named_in_include(path):
            return _DENIED
        return None

    def _other_rule(self, name: str, path: str, *, is_folder: bool) -> PathMatch:
        """Return the rule 5 or 6 that matches."""
        included = self.include_patterns.nearest_match(path)
        if included and included.is_match:
            return PathMatch(
                is_included=True,
                reason=f"included by the configuration: {included.pattern}",
                is_worth_reporting=not is_folder,
            )
        if self.root.kind == "conversations":
            return _match_in_conversations(name, path, is_folder=is_folder)
        leads_to_named_file = is_folder and self._is_named_in_include(path)
        if _is_hidden(path) and not leads_to_named_file:
            return _HIDDEN
        if is_folder:
            return _FOLDER
        if is_generated(name, path):
            return _GENERATED
        return _BY_KIND[kind_of(name)]

    def _is_named_in_include(self, path: str) -> bool:
        """Return whether `include` names this file, or a path below this folder, literally."""
        names = [pattern.removeprefix("/") for pattern in self.root.include]
        if path.endswith("/"):
            return any(name.startswith(path) for name in names)
        return path in names


def _is_hidden(path: str) -> bool:
    """Return whether a path or a folder above it begins with a dot."""
    return "/." in f"/{path}"


def _match_in_conversations(name: str, path: str, *, is_folder: bool) -> PathMatch:
    """Decide by its name whether an entry of a root of conversations is worth a look."""
    for part in path.rstrip("/").split("/"):
        if part.startswith(".") and part not in HIDDEN_TRANSCRIPTS:
            return _HIDDEN
    if is_folder:
        return _BESIDE_TRANSCRIPTS if name in IGNORED_FOLDERS else _FOLDER
    return _MAY_BE_TRANSCRIPT if may_be_transcript(name) else _NO_TRANSCRIPT


def root_rules(
    root: Root, own_folders: Sequence[str], forgotten_paths: frozenset[str] = frozenset()
) -> FolderRules:
    """Return the rules at the top of a root, without any ignore file.

    Args:
        root: The root.
        own_folders: Absolute paths of folders that anchord writes.
        forgotten_paths: Absolute paths of files and folders that stay out.
    """
    return FolderRules(
        root=root,
        path="",
        exclude_patterns=compile_patterns("", "", root.exclude),
        include_patterns=compile_patterns("", "", root.include),
        own_folders=tuple(own_folders),
        forgotten_paths=forgotten_paths,
    )


def is_ignore_file(path: str) -> bool:
    """Return whether a change to the file at this path can change what is indexed."""
    return path.rsplit("/", 1)[-1] in IGNORE_FILE_NAMES
