"""The rules that hold in every root: folders never indexed, the deny list, generated files."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from pathspec import GitIgnoreSpec

from anchord.sources.documents.file_types import kind_of

NEVER_INDEXED_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".jj",
        "node_modules",
        "bower_components",
        "__pycache__",
        "site-packages",
        "venv",
        ".venv",
        ".tox",
        ".nox",
    }
)
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


def _name_regex(lines: Sequence[str]) -> re.Pattern[str]:
    """Match the names that a list of patterns could match, and more names."""
    patterns = [fnmatch.translate(line.rstrip("/")) for line in lines]
    return re.compile("|".join(patterns), re.IGNORECASE)


# Case is ignored: a key is one however its name is written.
_DENIED = GitIgnoreSpec.from_lines(map(str.lower, _DENIED_LINES))
_GENERATED = GitIgnoreSpec.from_lines(_GENERATED_LINES)
_MAYBE_DENIED = _name_regex(_DENIED_LINES)
_MAYBE_GENERATED = _name_regex(_GENERATED_LINES)


def _concerns_indexed_kind(line: str) -> bool:
    """Return whether a pattern could match a file of a kind that is indexed."""
    is_plain_suffix = line.startswith("*.") and "*" not in line[1:]
    return not is_plain_suffix or kind_of(f"a{line[1:]}") is not None


_SPECIAL_LINES = [
    line for line in (*_DENIED_LINES, *_GENERATED_LINES) if _concerns_indexed_kind(line)
]
_SPECIAL_NAMES = frozenset(line.lower() for line in _SPECIAL_LINES if "*" not in line)
_SPECIAL_NAME = re.compile(
    "|".join((r"\.", *(fnmatch.translate(line) for line in _SPECIAL_LINES if "*" in line))),
    re.IGNORECASE,
)


def is_special_name(name: str) -> bool:
    """Return whether a file of an indexed kind may be hidden, denied or generated.

    A walk calls this for every file: for most names it is the only check.

    Args:
        name: The file's name without its folder.
    """
    return name.lower() in _SPECIAL_NAMES or bool(_SPECIAL_NAME.match(name))


def may_be_denied(name: str) -> bool:
    """Return whether `is_denied` could be true for a path that ends in this name."""
    return bool(_MAYBE_DENIED.match(name))


def is_denied(path: str) -> bool:
    """Return whether a path is on the deny list of keys, credentials and histories.

    Args:
        path: Path relative to the root; a folder's ends with "/". Case is ignored.
    """
    return bool(_DENIED.check_file(path.lower()).include)


def is_generated(name: str, path: str) -> bool:
    """Return whether a file is generated: minified, a lock file, protobuf code.

    Args:
        name: The file's name.
        path: Its path relative to the root.
    """
    return bool(_MAYBE_GENERATED.match(name) and _GENERATED.check_file(path).include)
