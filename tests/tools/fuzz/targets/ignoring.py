"""Ignore files: an input's first line is a path, the rest the lines of a `.gitignore` in the root.

The reference is each pattern matched alone, without the shortcuts.
"""

from __future__ import annotations

from tools.fuzz.inputs import headed
from tools.fuzz.laws import hold

from anchord.core.types import Root
from anchord.sources.files import ignore_patterns
from anchord.sources.files.ignore_rules import FolderRules, IgnoreFile, root_rules
from anchord.sources.files.rule_files import split_lines
from anchord.sources.files.wildmatch import byte_text

_ROOT = Root(name="root", path="/srv/root")


def ignoring(data: bytes) -> None:
    """Check a path: no line breaks the rules, and no shortcut changes the result."""
    head, body = headed(data)
    path = "/".join(
        part for part in head.replace("\0", "").split("/") if part not in ("", ".", "..")
    )[:200]
    lines = split_lines(body)
    scope = root_rules(_ROOT, ()).for_subfolder("", [IgnoreFile(".gitignore", lines)])
    *folders, name = path.split("/") if path else ["a"]
    for folder in folders:
        _judge(scope, folder, is_folder=True)
        scope = scope.for_subfolder(folder, [])
    _judge(scope, name, is_folder=False)


def _judge(scope: FolderRules, name: str, *, is_folder: bool) -> None:
    verdict = scope.match(name, is_folder=is_folder)
    hold(verdict.reason, "every verdict has its reason", name)
    hold(
        verdict == scope.match(name, is_folder=is_folder),
        "the same path has the same verdict",
        name,
    )
    path = scope.path + name + "/" * is_folder
    for patterns in scope.ignore_patterns:
        spoken = patterns.last_match(path)
        by_each = next(
            (
                ignore_patterns.PatternMatch(
                    not made.is_negated, f"{patterns.file_path}:{made.number} {made.line}"
                )
                for made in patterns.lines
                if made.matches(
                    byte_text(name), byte_text(path.removesuffix("/")), is_folder=is_folder
                )
            ),
            None,
        )
        hold(spoken == by_each, "a shortcut says what the patterns say", path, spoken, by_each)
        may = patterns.may_match(name, path)
        hold(may or by_each is None, "no pattern that speaks is passed over", path, by_each)
