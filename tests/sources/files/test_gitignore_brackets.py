"""A bracket expression matches what git matches with it, character by character."""

from __future__ import annotations

import os
import random
import string
import subprocess

import pytest

from anchord.sources.files.ignore_patterns import IgnorePatterns, compile_patterns

BY_HAND = [
    "[a]", "[!a]", "[^a]", "[ab", "[]", "[]a]", "[!]a]", "[]-a]", "[a-c]", "[c-a]", "[a-]", "[-a]", "[!-a]", "[a-c-e]",
    "[a-a]", "[\\a]", "[\\]]", "[\\\\]", "[a\\-c]", "[a-\\c]", "[\\a-\\c]", "[a-\\]]", "[\\", "[a-", "[a-\\", "[a\\",
    "[[]", "[[a]", "[[:]", "[[:]a:]", "[[:]x:]]", "[[:]:]]", "[[::]]", "[[:alpha:]]", "[![:alpha:]]", "[[:alpha:]-z]",
    "[[:digit:]a-c]", "[a-c[:digit:]]", "[[:nothing:]]", "[[:alpha:]", "[[:alpha:", "[[:alpha]", "[[:a]", "[[:a:]]", "[a[:digit:]-]",
    "[[:digit:]-a]", "[+--]", "[--0]", "[!--0]", "[*?]", "[&~|]", "[a&&b]", "[a~~b]", "[a||b]", "[a--b]", "[[.a.]]", "[[=a=]]",
    "[!-~]", "[ -~]", "[/]", "[a/]", "[+-0]", "[.-0]", "[!/]", "[^!]", "[!^]", "[!!]", "[^^]", "[a^]", "[a!]",
    "[a]]", "[a][b]", "x[ab]", "[ab]x", "[!a]*", "*[ab]", "?[a]", "\\[a]", "[a]\\b", "a[", "\\[", "[a]  ", "[a]\\ ", "a\t", "[a]\t",
    *(f"[[:{name}:]]" for name in ("alnum", "blank", "cntrl", "graph", "lower", "print", "punct", "space", "upper", "xdigit")),
]  # fmt: skip
NAMES = [each for each in [*string.printable, "\x7f", "\x01"] if each not in "/.\n\r\0\x0b\x0c"] + [
    "ab",
    "xa",
    "ax",
    "a]",
    "a]]",
    "[a]",
    "[a",
    "a[",
    "\\a",
    "bx",
    "xb",
    "[ab",
    "a ",
    "a\t",
]


def drawn(count: int) -> list[str]:
    """Draw patterns from the characters that mean something between brackets."""
    dice = random.Random(20)  # noqa: S311 - any patterns
    parts = ["[", "]", "!", "^", "-", ":", "\\", "a", "b", "c", "0", "[:", ":]", "digit", "lower"]
    return ["[" + "".join(dice.choices(parts, k=dice.randint(1, 6))) for _ in range(count)] + [
        "[" + "".join(dice.choices(parts, k=dice.randint(1, 6))) + "]" for _ in range(count)
    ]


PATTERNS = [each for each in dict.fromkeys([*BY_HAND, *drawn(150)]) if each.strip()]


@pytest.fixture(scope="module")
def ignored_by_git(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Run git once: each pattern has its own folder."""
    tree = tmp_path_factory.mktemp("brackets")
    alone = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(tree),
    }
    subprocess.run(["git", "init", "--quiet"], cwd=tree, env=alone, check=True)
    for number, pattern in enumerate(PATTERNS):
        (tree / str(number)).mkdir()
        (tree / str(number) / ".gitignore").write_text(f"{pattern}\n", "utf-8", newline="")
    paths = "\0".join(f"{number}/{name}" for number in range(len(PATTERNS)) for name in NAMES)
    done = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin"],
        cwd=tree,
        env=alone,
        input=paths.encode(),
        capture_output=True,
        check=False,
    )
    return set(done.stdout.decode().split("\0"))


@pytest.mark.filterwarnings("ignore:Possible nested set")  # Python's re, of "[[!]"
def test_a_pattern_with_brackets_matches_what_git_matches(ignored_by_git: set[str]) -> None:
    for number, pattern in enumerate(PATTERNS):
        compiled = compile_patterns(f"{number}/", f"{number}/.gitignore", (pattern,))
        expected = {name for name in NAMES if f"{number}/{name}" in ignored_by_git}
        assert {name for name in NAMES if ignores(compiled, f"{number}/{name}")} == expected, (
            pattern
        )


def ignores(patterns: IgnorePatterns, path: str) -> bool:
    """Return whether one of the patterns ignores a file, asked as a walk asks."""
    name = path.rpartition("/")[2]
    match = patterns.last_match(path) if patterns.may_match(name, path) else None
    return match is not None and match.is_match
