"""Random trees of files and ignore files, and random changes of them.

Every choice comes from a `Random`: a seed gives a tree, and hypothesis can shrink one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

FILE_NAMES = (
    b"a.md", b"b.md", b"ab.md", b"A.md", b"a", b"b", b"ab", b"aab", b"B", b"a b", b"a[b", b"a*", b"a?.md", b"#a", b"!a",
    b"a\\b", b"a ", b"-", b"]", b"1.txt", "ü.md".encode(), "aü".encode(), b"\xc3.md", b"a\xff", "日.md".encode(),
)  # fmt: skip
FOLDER_NAMES = (b"a", b"b", b"ab", b"A", "ü".encode(), b"build", b"a b")
_PIECES = (
    b"a", b"a", b"b", b"b", b"ab", b"A", b"B", b".md", b"*", b"*", b"*", b"?", b"?", b"**", b"/", b"/", b"/", b"**/", b"/**",
    b"/**/", b"*/", b"[ab]", b"[!a]", b"[^b]", b"[a-b]", b"[A-Z]", b"[b-a]", b"[[:alpha:]]", b"[[:upper:]]", b"[[:space:]]",
    b"[[:none:]]", b"[]a]", b"[a\\]]", b"[", b"]", b"[a", b"\\a", b"\\*", b"\\[", b"\\", b" ", b"\\ ", b"#", b"!", b"-",
    b"\xc3", b"\xbc", "ü".encode(), b"[\xc3]", b"[\x80-\xff]", b".md ", b"\r", b"\t", b"build", b"build/", b"1",
)  # fmt: skip
_IDIOMS = (
    b"*", b"*.md", b"/*", b"!*/", b"!*.md", b"!a", b"!a.md", b"a/", b"/a", b"/a/", b"a/*", b"!a/b", b"**/a", b"a/**", b"a/**/b",
    b"build/", b"!build/", b"build/**", b"!build/a.md", b"", b"# a", b"\\#a", b"\\!a", b"??.md", b"?.md", b"[a-b]*",
    b"**/b/*.md", b"/**/a", b"a/*/b", b"***/a", b"!**", b"!",
)  # fmt: skip
_RULE_FILE = b".gitignore"


def random_pattern(rng: Random) -> bytes:
    """Return a line of an ignore file."""
    if rng.random() < 0.4:
        return rng.choice(_IDIOMS)
    mark = b"!" if rng.random() < 0.25 else b""
    line = mark + b"".join(rng.choice(_PIECES) for _ in range(rng.randint(1, 5)))
    # git before 2.53 takes "a**/b" for "a" and any folders; its manual says one star.
    while b"**" in line.replace(b"/**", b"").lstrip(b"!").removeprefix(b"**"):
        line = line.replace(b"**", b"*")
    return line


def random_rules(rng: Random) -> bytes:
    """Return the content of an ignore file."""
    lines = [random_pattern(rng) for _ in range(rng.randint(1, 4))]
    mark = b"\xef\xbb\xbf" if rng.random() < 0.02 else b""
    end = rng.choice((b"\n", b"\n", b"\n", b"\r\n"))
    return mark + end.join(lines) + (end if rng.random() < 0.9 else b"")


def make_tree(top: Path, rng: Random) -> None:
    """Fill a folder with files and ignore files."""
    top.mkdir()
    folders = [os.fsencode(top)]
    for _ in range(rng.randint(1, 4)):
        folder = rng.choice(folders) + b"/" + rng.choice(FOLDER_NAMES)
        os.makedirs(folder, exist_ok=True)
        folders.append(folder)
    for folder in dict.fromkeys(folders):
        for _ in range(rng.randint(1, 4)):
            _touch(folder + b"/" + rng.choice(FILE_NAMES))
    for folder in dict.fromkeys([folders[0], *rng.sample(folders, k=rng.randint(0, 2))]):
        _write(folder + b"/" + _RULE_FILE, random_rules(rng))


def change_tree(top: Path, rng: Random) -> None:
    """Change a tree: rules are written or deleted, files and folders come, go and move."""
    for _ in range(rng.randint(1, 3)):
        folders = [os.fsencode(path) for path, _, _ in os.walk(top)]
        folder = rng.choice(sorted(folders))
        kind = rng.randrange(5)
        rules = folder + b"/" + _RULE_FILE
        if kind == 0:
            _write(rules, random_rules(rng))
        elif kind == 1 and os.path.exists(rules):
            os.unlink(rules)
        elif kind == 2:
            _touch(folder + b"/" + rng.choice(FILE_NAMES))
        elif kind == 3 and folder != os.fsencode(top):
            to = os.path.dirname(folder) + b"/" + rng.choice(FOLDER_NAMES)
            if not os.path.lexists(to):
                os.rename(folder, to)
        elif folder != os.fsencode(top):
            shutil.rmtree(folder)


def _touch(path: bytes) -> None:
    if not os.path.lexists(path):
        _write(path, b"text\n")


def _write(path: bytes, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
