"""Ignore files: an input's first line is a path, the rest the lines of a `.gitignore` in the root.

Beside the rules stands what they are made of: each pattern asked by itself, without the looks that spare that.
"""

from __future__ import annotations

import warnings

from fuzz.inputs import headed
from fuzz.laws import hold

from anchord.adapters.files import _ignore_lines
from anchord.core import rules
from anchord.core.rules import IgnoreFile, Scope, scope_of
from anchord.model import Root

_ROOT = Root("root", "/srv/root")


def ignoring(data: bytes) -> None:
    """Judge a path: no line breaks the rules, and no shortcut changes what they say."""
    head, body = headed(data)
    path = "/".join(part for part in head.replace("\0", "").split("/") if part not in ("", ".", ".."))[:200]
    lines = _ignore_lines(body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Of pathspec's expressions, for classes like `[[:alpha:]]`.
        scope = scope_of(_ROOT, ()).enter("", [IgnoreFile(".gitignore", lines)])
    *folders, name = path.split("/") if path else ["a"]
    for folder in folders:
        _judge(scope, folder, is_folder=True)
        scope = scope.enter(folder, [])
    _judge(scope, name, is_folder=False)


def _judge(scope: Scope, name: str, *, is_folder: bool) -> None:
    verdict = scope.verdict(name, is_folder=is_folder)
    hold(verdict.reason, "every verdict has its reason", name)
    hold(verdict == scope.verdict(name, is_folder=is_folder), "the same path has the same verdict", name)
    path = scope.path + name + "/" * is_folder
    for patterns in scope.ignores:
        spoken = patterns.check(path)
        by_each = next(
            (
                (bool(made.include), f"{patterns.name}:{at} {line}")
                for at, line, made in patterns.lines
                if rules._is_about(made, path)
            ),
            None,
        )
        hold(spoken == by_each, "a shortcut says what the patterns say", path, spoken, by_each)
        may = patterns.may_be_about(name, path)
        hold(may or by_each is None, "no pattern that speaks is passed over", path, by_each)
