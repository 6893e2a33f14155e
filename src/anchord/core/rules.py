"""Which paths belong to the index, and which rule said so. The only user of pathspec.

Rules, the first that speaks decides:

1. anchord's own state, folders that no one means (`.git`, `node_modules`, ...) and what was to be forgotten are out;
2. `exclude` of the configuration is out;
3. what an ignore file says is ignored is out: `.gitignore`, `.ignore`, `.anchordignore` of every folder from the file's
   up to the root (the deepest that speaks decides, the last pattern in it), and `.git/info/exclude`;
4. the deny list (keys, credentials, histories) is out, unless `include` names the very file, without wildcards;
5. `include` is in;
6. hidden files and folders are out, generated files are out, text types are in, all else is out.

As in git, nothing below an ignored folder can be brought back.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from anchord.core.brackets import plain
from anchord.model import Root, Verdict, printable
from anchord.sources import kind_of
from anchord.sources.conversations import HIDDEN, NOISE_FOLDERS, may_carry

IGNORE_FILES = (".gitignore", ".ignore", ".anchordignore")
"""Later ones overrule earlier ones of the same folder."""

_NEVER = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "__pycache__", "site-packages",
                    "venv", ".venv", ".tox", ".nox"})  # fmt: skip
_DENIED_LINES = (
    ".env*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.asc",
    "*.gpg",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".dockercfg",
    ".aws/",
    ".ssh/",
    ".gnupg/",
    ".kube/",
    ".docker/",
    ".azure/",
    ".password-store/",
    "gcloud/",
    "keyrings/",
    "credentials*",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".mysql_history",
    ".node_repl_history",
    "*_history",
    ".mozilla/",
    ".thunderbird/",
    "google-chrome/",
    "chromium/",
    "BraveSoftware/",
    "cookies.sqlite",
    "logins.json",
    "key4.db",
)
_FEW_STARS = 5
_GENERATED_LINES = (
    "*.min.js",
    "*.min.css",
    "*.map",
    "*-lock.json",
    "*.lock",
    "go.sum",
    "pnpm-lock.yaml",
    "*.pb.go",
    "*_pb2.py",
    "*.ipynb_checkpoints/",
)
_DENIED = GitIgnoreSpec.from_lines(map(str.lower, _DENIED_LINES))
"""Of paths in lower case: a key is one however its name is written."""
_GENERATED = GitIgnoreSpec.from_lines(_GENERATED_LINES)
_MAYBE_DENIED, _MAYBE_GENERATED = (
    re.compile("|".join(fnmatch.translate(line.rstrip("/")) for line in lines), re.IGNORECASE)
    for lines in (_DENIED_LINES, _GENERATED_LINES)
)
"""Match the names that the lists could be about: for all others that is the end of it."""
_SPECIAL_LINES = [
    line for line in (*_DENIED_LINES, *_GENERATED_LINES) if "*" in line[1:] or line[:2] != "*." or kind_of(f"a{line[1:]}")
]
_SPECIAL_NAMES = frozenset(line.lower() for line in _SPECIAL_LINES if "*" not in line)
_SPECIAL = re.compile("|".join((r"\.", *(fnmatch.translate(line) for line in _SPECIAL_LINES if "*" in line))), re.IGNORECASE)
"""Both lists and what is hidden, as far as they can be about a file of a known kind: asked for every file of a walk."""


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """An ignore file's patterns; `name` is its path from the root, for the reason."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Compiled patterns that hold below `base` ("" or "a/b/")."""

    base: str
    name: str
    lines: tuple[tuple[int, str, GitIgnoreSpecPattern], ...]
    """Last first."""
    any_name: re.Pattern[str]
    """Finds the names that some pattern without an inner slash could speak about, and many more."""
    any_path: re.Pattern[str]
    """Likewise for paths below the base and patterns with one."""

    def check(self, path: str) -> tuple[bool, str] | None:
        """Return (matched, which pattern) of the last pattern that speaks about an entry itself, None when none does."""
        if not self.lines:
            return None
        below = path[len(self.base) :]
        bare = below.rstrip("/")
        if not self.any_name.search(bare[bare.rfind("/") + 1 :]) and not self.any_path.search(below):
            return None
        for number, line, pattern in self.lines:
            if _is_about(pattern, below):
                return bool(pattern.include), f"{self.name}:{number} {line}" if self.name else line
        return None

    def may_be_about(self, name: str, path: str) -> bool:
        """Whether `check` is worth the while: for most entries it is not."""
        if self.any_name.search(name):
            return True
        return self.any_path is not _NOTHING and bool(self.any_path.search(path[len(self.base) :]))

    def covers(self, path: str) -> tuple[bool, str] | None:
        """Do so for an entry or, when none speaks about it, the nearest folder above."""
        while path:
            spoken = self.check(path)
            if spoken:
                return spoken
            path = path[: path.rstrip("/").rfind("/") + 1]
        return None


@dataclass(frozen=True, slots=True)
class Scope:
    """The rules that hold inside one folder. Immutable; a walk makes one for each folder it enters."""

    root: Root
    path: str
    excludes: _Patterns
    includes: _Patterns
    own_state: tuple[str, ...]
    forgotten: frozenset[str] = frozenset()
    ignores: tuple[_Patterns, ...] = ()
    _is_plain: bool = False
    """Whether no rule but those of names and of ignore files can be about a file of this folder."""

    def enter(self, folder: str, ignore_files: Sequence[IgnoreFile]) -> Scope:
        """Return the rules inside a sub-folder (or, with "", those of this one with its own ignore files read)."""
        path = f"{self.path}{folder}/" if folder else self.path
        found = tuple(_patterns(path, f.name, f.lines) for f in ignore_files)
        ignores = (*self.ignores, *found)
        named = self.root.kind == "conversations" or self.root.include or self.root.exclude or self.forgotten
        plain = not named and "/." not in f"/{path}"
        return Scope(self.root, path, self.excludes, self.includes, self.own_state, self.forgotten, ignores, plain)

    def verdict(self, name: str, *, is_folder: bool) -> Verdict:
        """Say whether an entry of this folder belongs to the index; for a folder, whether it is worth entering."""
        path = self.path + name + "/" * is_folder
        if self._is_plain and not is_folder and (kind := kind_of(name)) and not _is_special(name):
            for patterns in self.ignores:
                if patterns.may_be_about(name, path):
                    break
            else:
                return _BY_KIND[kind]  # As of nearly every file: no rule could be about it.
        return self._refused(name, path, is_folder=is_folder) or self._accepted(name, path, is_folder=is_folder)

    def _refused(self, name: str, path: str, *, is_folder: bool) -> Verdict | None:
        if is_folder and (name in _NEVER or f"{self.root.path}/{path[:-1]}" in self.own_state):
            return Verdict(included=False, reason=f"{name}/ is never indexed")
        if self.forgotten and f"{self.root.path}/{path.rstrip('/')}" in self.forgotten:
            return Verdict(included=False, reason="forgotten by a command; `anchord forget --undo` lets it in again")
        excluded = self.excludes.check(path) if self.excludes.lines else None
        if excluded and excluded[0]:
            return Verdict(included=False, reason=f"exclude of the configuration: {excluded[1]}")
        for patterns in reversed(self.ignores):
            if not patterns.may_be_about(name, path):
                continue
            spoken = patterns.check(path)
            if spoken:
                if spoken[0]:
                    return Verdict(included=False, reason=f"ignored by {printable(spoken[1])}")
                break
        maybe = self.root.include or _MAYBE_DENIED.match(name)  # A named file lets in the denied folder around it.
        if maybe and _DENIED.check_file(path.lower()).include and not self._is_named(path):
            return Verdict(included=False, reason="on the deny list of keys and credentials; `include` may name the file")
        return None

    def _accepted(self, name: str, path: str, *, is_folder: bool) -> Verdict:
        included = self.includes.covers(path) if self.includes.lines else None
        if included and included[0]:
            return Verdict(included=True, reason=f"include of the configuration: {included[1]}", notable=not is_folder)
        if self.root.kind == "conversations":
            return _in_conversations(name, path, is_folder=is_folder)
        if "/." in f"/{path}" and not (is_folder and self._is_named(path)):
            return Verdict(included=False, reason="hidden; `include` may name it")
        if is_folder:
            return _FOLDER
        if _MAYBE_GENERATED.match(name) and _GENERATED.check_file(path).include:
            return _GENERATED_FILE
        return _BY_KIND[kind_of(name)]

    def _is_named(self, path: str) -> bool:
        """Whether `include` names this very file, or something below this folder, without wildcards on the way."""
        named = [pattern.removeprefix("/") for pattern in self.root.include]
        return any(name.startswith(path) if path.endswith("/") else name == path for name in named)


_FOLDER = Verdict(included=True, reason="a folder")
_GENERATED_FILE = Verdict(included=False, reason="generated; `include` may name it")
_BY_KIND: Mapping[str | None, Verdict] = {
    None: Verdict(included=False, reason="not a known text type; `include` may name it"),
    **{kind: Verdict(included=True, reason=f"a {kind} file", notable=True) for kind in ("markdown", "text", "code")},
}


def _is_special(name: str) -> bool:
    return name.lower() in _SPECIAL_NAMES or bool(_SPECIAL.match(name))


def _in_conversations(name: str, path: str, *, is_folder: bool) -> Verdict:
    """Say whether an entry of a root of conversations is worth a look; its content says what it is."""
    if any(part.startswith(".") and part not in HIDDEN for part in path.rstrip("/").split("/")):
        return Verdict(included=False, reason="hidden; `include` may name it")
    if is_folder:
        return _FOLDER if name not in NOISE_FOLDERS else Verdict(included=False, reason="beside conversations, and none itself")
    if may_carry(name):
        return Verdict(included=True, reason="may hold conversations", notable=True)
    return Verdict(included=False, reason="holds no conversations; `include` may name it")


def scope_of(root: Root, own_state: Sequence[str], forgotten: frozenset[str] = frozenset()) -> Scope:
    """Return the rules at the top of a root, before its ignore files. `own_state`: absolute folders never indexed."""
    excludes, includes = _patterns("", "", root.exclude), _patterns("", "", root.include)
    return Scope(root, "", excludes, includes, tuple(own_state), forgotten)


def _patterns(base: str, name: str, lines: tuple[str, ...]) -> _Patterns:
    """Compile patterns; a line that is none (git skips it too) is dropped without the others."""
    compiled = [(number, line, _pattern(line)) for number, line in enumerate(lines, 1)]
    kept = tuple((n, line, made) for n, line, made in reversed(compiled) if made)
    inner = [made for _, line, made in kept if _has_inner_slash(line)]
    names = [made for _, line, made in kept if not _has_inner_slash(line)]
    return _Patterns(base, name, kept, _any_of(names, on_names=True), _any_of(inner, on_names=False))


def _has_inner_slash(line: str) -> bool:
    return "/" in line.strip().removeprefix("!").rstrip("/") or "**" in line


_NAME = re.compile(r"\^\(\?:\.\+/\)\?(.*?)(?:\(\?:\(\?P<ps_d>/\)\|\$\)|\(\?P<ps_d>/\))", re.DOTALL)
"""How pathspec writes a pattern without an inner slash: any folders, the name, and a slash or the end."""
_NOTHING, _EVERYTHING = re.compile("(?!)"), re.compile("")


def _any_of(patterns: Sequence[GitIgnoreSpecPattern], *, on_names: bool) -> re.Pattern[str]:
    """Return one expression that finds whatever one of some patterns finds: of most files it is all that must be asked."""
    sources = [pattern.regex.pattern for pattern in patterns if pattern.regex is not None]
    if on_names:  # In a name there is no folder to skip, and no slash at its end.
        bodies = [_NAME.fullmatch(source) for source in sources]
        if not all(bodies):
            return _EVERYTHING
        sources = [f"^{body[1]}$" for body in bodies if body]
    plain = [re.sub(r"\(\?P<\w+>", "(?:", source) for source in sources]
    try:
        return re.compile("|".join(f"(?:{source})" for source in plain)) if plain else _NOTHING
    except re.error:
        return _EVERYTHING


def _pattern(line: str) -> GitIgnoreSpecPattern | None:
    simple = plain(_with_few_stars(line))
    if simple is None:
        return None
    try:
        made = GitIgnoreSpecPattern(simple)
    except (ValueError, re.error):
        return None
    return None if made.include is None else made


def _with_few_stars(line: str) -> str:
    """Return a pattern that can be asked in no time: each star may stand for anything, and twelve of them for minutes.

    A run of stars is one to git, or two where it is all of a name. Of a name with more than five, what stands between the outer
    ones is left out: that ignores more, and never less. A line that lets in again must not let in more: it goes.
    """
    sign, bare = ("!", line[1:]) if line.startswith("!") else ("", line)
    names = []
    for name in bare.split("/"):
        if re.fullmatch(r"\*{2,}\s*", name):
            names.append("**")
            continue
        parts = re.split(r"(?<!\\)\*+", name)
        if len(parts) - 1 > _FEW_STARS and sign:
            return ""
        names.append("*".join(parts if len(parts) - 1 <= _FEW_STARS else [*parts[:3], *parts[-3:]]))
    return sign + "/".join(names)


def _is_about(pattern: GitIgnoreSpecPattern, path: str) -> bool:
    """Whether a pattern matches an entry itself, as git asks: the folders above it were asked for before.

    pathspec also matches what stands below a match. The one group of an expression is the slash of the entry that it means:
    below that entry the group ends before the path does. Without a group (`**`, `a/**`) all that is found is meant.
    """
    if pattern.regex is None:
        return False
    bare = path.rstrip("/")
    if any(not found.lastindex for found in pattern.regex.finditer(bare)):
        return True
    return bare != path and any(found.lastindex and found.end() == len(path) for found in pattern.regex.finditer(path))


def changes_rules(path: str) -> bool:
    """Whether a file at this path can change what else belongs to the index."""
    return path.rsplit("/", 1)[-1] in IGNORE_FILES
