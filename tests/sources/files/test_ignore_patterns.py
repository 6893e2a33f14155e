"""What the lines of an ignore file match: below which folder, by name or by path, and what is said."""

from __future__ import annotations

import pytest

from anchord.sources.files.ignore_patterns import PatternMatch, compile_patterns


@pytest.mark.parametrize(
    ("lines", "path", "may_match"),
    [
        (("*.log",), "a.md", False),
        (("*.log",), "sub/a.log", True),
        (("*.log", "!a.log"), "a.log", True),
        (("*.log", "sub/*.md"), "sub/a.md", True),
        (("*.log", "sub/*.md"), "a.md", False),
        (("sub/*.md",), "sub/x/a.md", False),
        (("# comment", ""), "a.md", False),
        ((), "a.md", False),
    ],
)
def test_most_paths_are_known_not_to_match_without_a_look_at_the_lines(
    lines: tuple[str, ...],
    path: str,
    may_match: bool,  # noqa: FBT001 - a column of the table
) -> None:
    patterns = compile_patterns("", ".gitignore", lines)
    assert patterns.may_match(path.rpartition("/")[2], path) is may_match
    assert (patterns.last_match(path) is not None) is may_match


@pytest.mark.parametrize(
    ("line", "path", "is_match"),
    [
        ("a/b.md", "b.md", True),
        ("/a/b.md", "b.md", True),
        ("a/b.md", "a/b.md", False),
        ("b.md", "b.md", True),
        ("/b.md", "b.md", False),
        ("a/*/c.md", "b/c.md", True),
        ("a/b/", "b/", True),
        ("a/b/", "b", False),
    ],
)
def test_a_file_above_the_root_speaks_of_paths_from_its_own_folder(
    line: str,
    path: str,
    is_match: bool,  # noqa: FBT001 - a column of the table
) -> None:
    patterns = compile_patterns("", "/up/.gitignore", (line,), prefix="a/")
    assert (patterns.last_match(path) is not None) is is_match
    assert (patterns.nearest_match(path) is not None) is is_match


@pytest.mark.parametrize(("path", "is_match"), [("a.md", True), ("A.md", False), ("A.MD", False)])
def test_letters_count_as_they_are_written_unless_said_otherwise(
    path: str,
    is_match: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert (compile_patterns("", "", ("a.md",)).last_match(path) is not None) is is_match
    without_case = compile_patterns("", "", ("a.md",), ignores_case=True)
    assert without_case.last_match(path) == PatternMatch(is_match=True, pattern="a.md")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("a  ", "a"),
        ("a\\ ", "a "),
        ("a\\  ", "a "),
        ("a\\\\ ", "a\\"),
        ("a\\\\\\ ", "a\\ "),
        ("a\\b  ", "ab"),
        ("a\\\\b ", "a\\b"),
        (" a", " a"),
        ("a b ", "a b"),
    ],
)
def test_spaces_at_a_lines_end_count_only_behind_a_backslash(line: str, name: str) -> None:
    patterns = compile_patterns("", ".gitignore", (line,))
    assert patterns.last_match(name) == PatternMatch(is_match=True, pattern=f".gitignore:1 {line}")
    assert patterns.last_match(name + " ") is None


@pytest.mark.parametrize("line", ["a\\", "a\\\\\\", "#", "# a", "", "!", "/", "!/", "   ", "[a"])
def test_a_line_that_git_takes_for_no_pattern_matches_nothing(line: str) -> None:
    patterns = compile_patterns("", ".gitignore", (line, "other"))
    for name in ("a", "a ", "a\\", "a\\ ", line or "x"):
        assert patterns.nearest_match(name) is None
    assert [pattern.number for pattern in patterns.lines] == [2]


def test_the_nearest_folder_decides_on_what_it_holds_unless_the_entry_has_its_own_pattern() -> None:
    patterns = compile_patterns("", "", ("a/", "!a/b/", "a/b/c/", "!d.md"))

    def decided(path: str) -> tuple[bool, str] | None:
        match = patterns.nearest_match(path)
        return (match.is_match, match.pattern) if match else None

    assert decided("a/x.md") == (True, "a/")
    assert decided("a/b/x/y.md") == (False, "!a/b/")
    assert decided("a/b/c/x/y/z.md") == (True, "a/b/c/")
    assert decided("a/b/c/d.md") == (False, "!d.md")
    assert decided("a") is None, "it is a file"
    assert decided("x/y.md") is None
    assert compile_patterns("", "", ()).nearest_match("a/x.md") is None


@pytest.mark.parametrize("path", ["ab", "a/b", "ax/b", "a/x/b", "a/x/y/b"])
def test_two_stars_behind_literal_text_match_folders_as_in_git(path: str) -> None:
    patterns = compile_patterns("", ".gitignore", ("/a**/b",))
    assert patterns.nearest_match(path) is not None


@pytest.mark.parametrize("path", ["b", "a", "xa/b"])
def test_two_stars_behind_literal_text_do_not_match_other_names(path: str) -> None:
    patterns = compile_patterns("", ".gitignore", ("/a**/b",))
    assert patterns.nearest_match(path) is None
