"""A pattern matches what git's wildmatch matches: git's own cases (t3070), and git itself, byte by byte."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from anchord.sources.files.ignore_patterns import IgnorePatterns, compile_patterns
from anchord.sources.files.wildmatch import byte_text, regex_of


def matches(pattern: str, path: str, *, is_path: bool = True, ignores_case: bool = False) -> bool:
    """Match as the module's users do."""
    regex = regex_of(byte_text(pattern), is_path=is_path, ignores_case=ignores_case)
    return regex is not None and bool(re.compile(regex, re.DOTALL).fullmatch(byte_text(path)))


# git's own cases: pattern -> texts that it matches, and texts that it does not match

CASES: Sequence[tuple[str, str, str]] = [
    ("foo", "foo", "bar fo fooo"),
    ("???", "foo", "fo fooo"),
    ("??", "fo", "foo f"),
    ("*", "foo", "foo/bar"),
    ("f*", "foo f", "oof"),
    ("*f", "oof f", "foo"),
    ("*foo*", "foo xfoox", "fo"),
    ("*ob*a*r*", "foobar", "foorab"),
    ("*ab", "aaaaaaabababab ab", "aaaaaaabababa"),
    ("foo\\*", "foo*", "foo foobar"),
    ("foo\\*bar", "foo*bar", "foobar foo\\*bar"),
    ("f\\\\oo", "f\\oo", "foo f\\\\oo"),
    ("*[al]?", "ball", "ten"),
    ("[ten]", "t e n", "ten"),
    ("**[!te]", "ten", "tee"),
    ("**[!ten]", "tea", "ten"),
    ("t[a-g]n", "tan tgn ten", "t`n thn ton"),
    ("t[!a-g]n", "ton t`n thn", "tan tgn ten"),
    ("t[^a-g]n", "ton", "ten"),
    ("a[]]b", "a]b", "a[]]b ab"),
    ("a[]-]b", "a-b a]b", "aab"),
    ("a[]a-]b", "aab a-b a]b", "abb"),
    ("]", "]", "["),
    ("foo*bar", "foobar foobazbar", "foo/baz/bar foo/bar"),
    ("foo**bar", "foobazbar", "foo/baz/bar"),
    ("foo/**/bar", "foo/baz/bar foo/b/a/z/bar foo/bar", "foobar foo/bar/baz foobar/bar foo/xbar"),
    ("foo/**/**/bar", "foo/b/a/z/bar foo/bar", "foobar"),
    ("foo?bar", "foo-bar", "foo/bar"),
    ("foo[/]bar", "", "foo/bar foo[/]bar"),
    ("foo[^a-z]bar", "foo-bar", "foo/bar"),
    ("f[^eiu][^eiu][^eiu][^eiu][^eiu]r", "foo-bar", "foo/bar"),
    ("**/foo", "foo XXX/foo bar/baz/foo", "xfoo bar/xfoo foo/bar"),
    ("*/foo", "bar/foo", "bar/baz/foo foo"),
    ("**/bar*", "bar foo/barx", "foo/bar/baz"),
    ("**/bar/*", "deep/foo/bar/baz bar/baz", "deep/foo/bar deep/foo/bar/baz/x"),
    ("**/bar/**", "deep/foo/bar/baz deep/foo/bar/baz/x", "deep/foo/bar"),
    ("**/bar**", "foo/barbaz", "foo/bar/baz"),
    ("*/bar/**", "foo/bar/baz/x foo/bar/x", "deep/foo/bar/baz/x foo/bar"),
    ("**/bar/*/*", "deep/foo/bar/baz/x", "deep/foo/bar/baz deep/bar/a/b/c"),
    ("a[c-c]rt", "acrt", "abrt adrt"),
    ("[!]-]", "a", "] -"),
    ("\\", "", "\\ x"),
    ("*/\\", "", "XXX/\\"),
    ("*/\\\\", "XXX/\\", "XXX/x"),
    ("@foo", "@foo", "foo"),
    ("\\[ab]", "[ab]", "a b"),
    ("[[]ab]", "[ab]", "a"),
    ("[[:]ab]", "[ab] :ab]", "a"),
    ("[[::]ab]", "", "[ab] :ab]"),
    ("[[:digit]ab]", "[ab] dab]", "0ab]"),
    ("[[:]x:]]", "[x:]] :x:]]", "x ]x:]]"),
    ("[[:alpha:x", "", "a alpha:x [a"),
    ("[a:x:]", "a : x", "b a:x:"),
    ("[[ax:]", "[ a x :", "b"),
    ("[[xalpha:]", "[ x a l p h :", "b c"),
    ("[\\[:]ab]", "[ab] :ab]", "\\ab]"),
    ("\\??\\?b", "?a?b", "xa?b ?axb"),
    ("\\a\\b\\c", "abc", "\\a\\b\\c"),
    ("**/t[o]", "foo/bar/baz/to to", "foo/bar/baz/t"),
    ("[[:alpha:]][[:digit:]][[:upper:]]", "a1B", "a1b 11B aaB"),
    ("[[:digit:][:upper:][:spaci:]]", "", "1 A"),
    ("[^[:alnum:][:punct:]]", "\x7f", "a . 5"),
    ("[a-c[:digit:]x-z]", "5 b y", "q d w"),
    ("[\\\\-^]", "] ^ \\", "[ _"),
    ("[\\-_]", "- _", "\\ ^"),
    ("[\\]]", "]", "\\] \\"),
    ("a[]b", "", "ab a[]b"),
    ("ab[", "", "ab["),
    ("[!", "", "ab ! ["),
    ("[-", "", "ab - ["),
    ("[-]", "-", "a"),
    ("[a-", "", "- a"),
    ("[!a-", "", "- b"),
    ("[--A]", "- 5 A", ", B"),
    ("[$--]", "$ - +", "0 ."),
    ("[---]", "-", ","),
    ("[------]", "-", "a"),
    ("[!------]", "a", "-"),
    ("[a-e-n]", "- a e n c", "j f"),
    ("[]-a]", "] ^ a", "[ b"),
    ("[!]-a]", "[ b", "] ^ a"),
    ("[a^bc]", "^ a", "d"),
    ("[a-]b]", "-b] ab]", "a b"),
    ("[\\]", "", "\\ ]"),
    ("[!\\\\]", "a", "\\"),
    ("[A-\\\\]", "G A \\ [", "] @"),
    ("b*a", "ba bxa", "aaabbb"),
    ("*ba*", "aba", "aabcaa"),
    ("[\\\\,]", ", \\", "-"),
    ("[,-.]", "- , .", "+ -.]"),
    ("[\\1-\\3]", "1 2 3", "0 4 \\"),
    ("[[-\\]]", "\\ [ ]", "- ^ Z"),
    (
        "-*-*-*-*-*-*-12-*-*-*-m-*-*-*",
        "-adobe-courier-bold-o-normal--12-120-75-75-m-70-iso8859-1",
        "-adobe-courier-bold-o-normal--12-120-75-75-X-70-iso8859-1 -a-b-c-d-e-f-12-g-h-i-/-m-j-k-l",
    ),
    (
        "XXX/*/*/*/*/*/*/12/*/*/*/m/*/*/*",
        "XXX/adobe/courier/bold/o/normal/x/12/120/75/75/m/70/iso8859/1",
        "XXX/adobe/courier/bold/o/normal/x/12/120/75/75/X/70/iso8859/1",
    ),
    (
        "**/*a*b*g*n*t",
        "abcd/abcdefg/abcdefghijk/abcdefghijklmnop.txt",
        "abcd/abcdefg/abcdefghijk/abcdefghijklmnop.txtz",
    ),
    ("*/*/*", "foo/bba/arr", "foo foo/bar foo/bb/aa/rr"),
    ("**/**/**", "foo/bb/aa/rr foo/bba/arr foo foo/bar", ""),
    ("*X*i", "abcXdefXghi", "ab/cXd/efXg/hi"),
    ("*/*X*/*/*i", "ab/cXd/efXg/hi", "ab/cd/efXg/hi"),
    ("**/*X*/**/*i", "ab/cXd/efXg/hi", "ab/cd/efg/hi"),
    ("foo/*", "foo/bar", "foo/bba/arr foo xfoo/bar"),
    ("foo/**", "foo/bar foo/bba/arr", "foo xfoo/bar"),
    ("foo/*arr", "foo/arr", "foo/bba/arr"),
    ("foo/**arr", "foo/xarr", "foo/bba/arr"),
    ("*Xg*i", "aXghi", "ab/cXd/efXg/hi"),
    # Told of several deep marks in one pattern.
    ("a/**/b/**/c/**/d", "a/b/c/d a/x/b/y/z/c/d a/b/c/x/d", "a/b/d a/c/d a/c/b/d a/b/cd a/d"),
    ("**/b/**/c/**/d", "b/c/d x/b/x/c/x/d", "b/d c/d x/c/d"),
    ("a/**/x*y/**/z", "a/xy/z a/b/xqy/c/z", "a/xq/z a/x/y/z a/z"),
    ("**/a/*b*c/**/d", "a/bc/d x/a/xbxc/x/d", "a/b/d a/cb/d"),
    ("a/**\\/b", "a/x/b a/x/y/b", "a/b ab"),
    ("a/**\\b", "a/b a/xb", "a/x/b"),
    ("**\\/b", "x/b x/y/b", "b"),
    ("a/***/b", "a/b a/x/y/b", "ab"),
    ("a/***", "a/b/c", "a"),
    ("a**/b", "ax/b a/b", "ax/y/b"),
    ("a***b", "ab axxb", "a/b"),
    ("**", "a a/b", ""),
    ("**a", "a xa", "x/a"),
    ("*?a", "xa xxa", "a"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "matched", "others"), CASES, ids=[ascii(c[0]) for c in CASES])
def test_a_pattern_matches_what_git_says_in_its_own_tests(
    pattern: str, matched: str, others: str
) -> None:
    texts = [*matched.split(), *others.split()]
    assert [text for text in texts if matches(pattern, text)] == matched.split()


@pytest.mark.parametrize(
    ("pattern", "text", "as_written"),
    [
        ("[A-Z]", "a", False),
        ("[A-Z]", "A", True),
        ("[a-z]", "A", False),
        ("[a-z]", "a", True),
        ("[[:upper:]]", "a", False),
        ("[[:upper:]]", "A", True),
        ("[[:lower:]]", "A", False),
        ("[[:lower:]]", "a", True),
        ("[B-Za]", "A", False),
        ("[B-Za]", "a", True),
        ("[B-a]", "A", False),
        ("[B-a]", "a", True),
        ("[Z-y]", "z", False),
        ("[Z-y]", "Z", True),
        ("README", "readme", False),
        ("readme", "README", False),
        ("a*B", "AxxB", False),
        ("*/B", "A/b", False),
    ],
)
def test_without_case_a_letter_matches_its_other_form_too(
    pattern: str,
    text: str,
    as_written: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert matches(pattern, text) is as_written
    assert matches(pattern, text, ignores_case=True)


@pytest.mark.parametrize(
    ("pattern", "text"), [("\\A", "a"), ("\\A", "A"), ("x\\Ay", "xay"), ("[0-9]", "a"), ("@", "`")]
)
def test_without_case_some_patterns_match_no_letter(pattern: str, text: str) -> None:
    """Of an escaped capital git lowers the path's letter only: they never meet."""
    assert not matches(pattern, text, ignores_case=True)


def test_an_escaped_small_letter_matches_both_forms_without_case() -> None:
    assert [matches("\\a", text, ignores_case=True) for text in "aAb"] == [True, True, False]
    assert [matches("\\a", text) for text in "aAb"] == [True, False, False]


@pytest.mark.parametrize(
    ("pattern", "name", "is_matched"),
    [("**", "ab", True), ("**", "a/b", False), ("a**", "ab", True), ("**b", "ab", True), ("***", "", True)],
)  # fmt: skip
def test_two_stars_of_a_pattern_about_names_are_one_star(
    pattern: str,
    name: str,
    is_matched: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert matches(pattern, name, is_path=False) is is_matched


@pytest.mark.parametrize("ending", ["b", "[b]", "?b", "\\b"])
@pytest.mark.parametrize("part", ["*a", "*[ax]", "*a*", "*?a"])
def test_many_stars_end_at_once_on_a_path_that_almost_matches(part: str, ending: str) -> None:
    """A regex that tried every way to share the letters out would not end in a lifetime."""
    pattern = part * 24 + ending
    assert not matches(pattern, "a" * 200)
    assert not matches(f"x/**/{pattern}", f"x/{'a' * 200}")
    assert matches(pattern, "a" * 200 + "b")


@pytest.mark.parametrize("section", ["a", "*a", "a*"])
def test_many_deep_marks_end_at_once_on_a_path_that_almost_matches(section: str) -> None:
    pattern = f"**/{section}/" * 24 + "b"
    assert not matches(pattern, "a/" * 100 + "c")
    assert matches(pattern, "a/" * 100 + "b")


def test_a_byte_text_has_one_character_for_each_byte_of_a_path() -> None:
    assert byte_text("a.md") == "a.md"
    assert byte_text("ü") == "\xc3\xbc"
    assert byte_text(os.fsdecode(b"\xff\x80a")) == "\xff\x80a"
    assert matches("??", "ü")
    assert not matches("?", "ü")
    assert matches("[ü][¼-¾]", "ü")


# git itself, byte by byte

BYTES = [bytes([each]) for each in range(1, 256) if each not in b"/.\n"]
"""Names of one byte: all but those that are none, and the one that ends a line."""
CLASSES = ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"]  # fmt: skip
BYTE_PATTERNS: Sequence[bytes] = [
    *(f"[[:{name}:]]".encode() for name in CLASSES),
    *(f"[![:{name}:]]".encode() for name in CLASSES),
    b"[\x01-\xff]", b"[!\x01]", b"[!\xff]", b"[!a]", b"[!A]", b"[^\x80-\xfe]", b"[\x7f-\x81]", b"[\xfe-\xff]", b"[\xff]", b"\xff",
    b"[A-Z]", b"[a-z]", b"[B-a]", b"[Z-y]", b"[@-Z]", b"[A-[]", b"[@-[]", b"[`-{]", b"[Y-a]", b"[z-~]", b"[A]", b"[a]", b"[Z]", b"[z]",
    b"[\\A]", b"[\\a]", b"\\A", b"\\a", b"\\z", b"\\Z", b"A", b"a", b"Z", b"z", b"@", b"`", b"{", b"\\[", b"\\]", b"\\{", b"?", b"*",
    b"[[:upper:]a]", b"[![:upper:]a]", b"[0-Q]", b"[Q-q]", b"[q-Q]", b"[M-m]", b"[!A-M]", b"[!a-m]", b"[\\--0]", b"[,-0]", b"[.-0]",
]  # fmt: skip

PATH_PATTERNS = [
    *("/" + case[0] for case in CASES if case[0] != "a**/b"),
    "a/b", "a/b/", "/a/", "*/a", "**/a", "**/a/", "a/**", "a/**/", "a/*/b", "a/**/b", "**/", "/**", "/*", "*a/", "A/b", "/A",
    "a\\ ", "a\\  ", "a  ", "\\!a", "\\#a", "!", "#a", "/", "//", "//a", "a//b", "a/b//", "***/a", "\\a/b", "a\\/b", "a/\\b",
]  # fmt: skip
PATHS = [
    "a", "b", "A", "ab", "a/b", "A/b", "a/B", "b/a", "a/a", "a/a/b", "a/x/b", "a/x/y/b", "x/a/b", "x/y/a", "a/b/c", "a/b/c/d", "x/b/c/d",
    "a ", "a  ", "!a", "#a", "foo", "FOO", "foobar", "foo/bar", "foo/baz/bar", "foo/b/a/z/bar", "XXX/foo", "bar/baz/foo", "bar/x",
    "deep/foo/bar/baz/x", "foo/bar/baz", "foo/barbaz", "ab/cXd/efXg/hi", "AB/cxd/efXg/hi", "foo/bba/arr", "foo/bb/aa/rr", "ax/b",
    "ax/y/b", "to", "x/to", "-", "]", "\\", "x/\\", "G", "g", "5", "b/c/d", "a/xqy/z", "a/bc/d", "XXX/\\",
]  # fmt: skip


def ignored_by_git(
    tree: Path, folders: Sequence[tuple[bytes, Sequence[bytes]]], *, ignores_case: bool
) -> list[set[bytes]]:
    """Give each pattern a folder of its own; return which paths git ignores in each."""
    alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tree)}  # fmt: skip
    git = ["git", "-c", f"core.ignoreCase={str(ignores_case).lower()}"]
    subprocess.run([*git, "init", "--quiet"], cwd=tree, env=alone, check=True)
    asked = []
    for number, (line, paths) in enumerate(folders):
        (tree / str(number)).mkdir(exist_ok=True)
        (tree / str(number) / ".gitignore").write_bytes(line + b"\n")
        asked += [b"%d/%s" % (number, path) for path in paths]
    done = subprocess.run(
        [*git, "check-ignore", "-z", "--stdin"],
        cwd=tree, env=alone, input=b"\0".join(asked), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    found: list[set[bytes]] = [set() for _ in folders]
    for each in filter(None, done.stdout.split(b"\0")):
        folder, _, path = each.partition(b"/")
        found[int(folder)].add(path)
    return found


Oracle = Mapping[tuple[bytes, bool], set[bytes]]


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """Ask git once with case and once without: pattern -> what it ignores."""
    lines = [(line, BYTES) for line in BYTE_PATTERNS]
    lines += [(line.encode(), [path.encode() for path in PATHS]) for line in PATH_PATTERNS]
    tree = tmp_path_factory.mktemp("oracle")
    return {
        (line, ignores_case): found
        for ignores_case in (False, True)
        for (line, _), found in zip(
            lines, ignored_by_git(tree, lines, ignores_case=ignores_case), strict=True
        )
    }


def ignored_here(line: bytes, paths: Sequence[bytes], *, ignores_case: bool) -> set[bytes]:
    patterns = compile_patterns("", ".gitignore", (os.fsdecode(line),), ignores_case=ignores_case)
    return {path for path in paths if is_ignored(patterns, os.fsdecode(path))}


def is_ignored(patterns: IgnorePatterns, path: str) -> bool:
    """Return whether a file, or a folder above it, is ignored."""
    match = patterns.nearest_match(path)
    return match is not None and match.is_match


@pytest.mark.parametrize("ignores_case", [False, True], ids=["case", "no case"])
@pytest.mark.filterwarnings("ignore:Possible nested set")
def test_every_byte_is_matched_as_git_matches_it(oracle: Oracle, *, ignores_case: bool) -> None:
    for line in BYTE_PATTERNS:
        found = ignored_here(line, BYTES, ignores_case=ignores_case)
        assert found == oracle[line, ignores_case], line


@pytest.mark.parametrize("ignores_case", [False, True], ids=["case", "no case"])
@pytest.mark.filterwarnings("ignore:Possible nested set")
def test_every_path_is_ignored_as_git_ignores_it(oracle: Oracle, *, ignores_case: bool) -> None:
    paths = [path.encode() for path in PATHS]
    for pattern in PATH_PATTERNS:
        line = pattern.encode()
        found = ignored_here(line, paths, ignores_case=ignores_case)
        assert found == oracle[line, ignores_case], pattern
