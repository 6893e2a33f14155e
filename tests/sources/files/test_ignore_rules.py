"""Which paths are included, and by which rule; files that git ignores are excluded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anchord.core.types import PathMatch, Root
from anchord.sources.files.ignore_rules import (
    IGNORE_FILE_NAMES,
    FolderRules,
    IgnoreFile,
    is_ignore_file,
    root_rules,
)

Ignores = Mapping[str, Sequence[str]]
"""Path of an ignore file -> its lines."""

ROOT = Root(name="notes", path="/home/ada/notes")


def judged(
    path: str, ignores: Ignores | None = None, root: Root = ROOT, own_state: Sequence[str] = ()
) -> PathMatch:
    """Check each parent folder first, as a walk does."""
    *folders, name = path.split("/")
    scope = opened(root_rules(root, own_state), "", ignores or {})
    for folder in folders:
        verdict = scope.match(folder, is_folder=True)
        if not verdict.is_included:
            return verdict
        scope = opened(scope, folder, ignores or {})
    return scope.match(name, is_folder=False)


def opened(scope: FolderRules, folder: str, ignores: Ignores) -> FolderRules:
    base = f"{scope.path}{folder}/" if folder else scope.path
    files = [
        IgnoreFile(base + name, tuple(ignores[base + name]))
        for name in IGNORE_FILE_NAMES
        if base + name in ignores
    ]
    return scope.for_subfolder(folder, files)


def with_include(*patterns: str) -> Root:
    return replace(ROOT, include=patterns)


def with_exclude(*patterns: str) -> Root:
    return replace(ROOT, exclude=patterns)


# Without any rule


@pytest.mark.parametrize(
    ("path", "kind"),
    [("a.md", "markdown"), ("a/b/c.txt", "text"), ("a/main.py", "code"), ("README", "markdown")],
)
def test_a_known_kind_of_text_is_in(path: str, kind: str) -> None:
    assert judged(path) == PathMatch(
        is_included=True, reason=f"a {kind} file", is_worth_reporting=True
    )


@pytest.mark.parametrize("path", ["a.png", "a", "a.md.bak", "a.md~", "archive.tar.gz", "a.pdf"])
def test_what_is_not_known_to_be_text_is_out(path: str) -> None:
    assert judged(path) == PathMatch(
        is_included=False, reason="not a known text type; add it to `include` to index it"
    )


@pytest.mark.parametrize(
    "path", [".hidden.md", ".github/a.md", "a/.b/c/d.md", ".gitignore", "...md"]
)
def test_hidden_files_and_what_is_in_hidden_folders_is_out(path: str) -> None:
    assert judged(path) == PathMatch(
        is_included=False, reason="hidden; add it to `include` to index it"
    )


@pytest.mark.parametrize(
    "path",
    [
        "a/app.min.js",
        "site.min.css",
        "app.js.map",
        "package-lock.json",
        "pnpm-lock.yaml",
        "a_pb2.py",
        "b.pb.go",
    ],
)
def test_generated_files_are_out(path: str) -> None:
    assert judged(path) == PathMatch(
        is_included=False, reason="generated; add it to `include` to index it"
    )


@pytest.mark.parametrize(
    "folder", [".git", "node_modules", "__pycache__", ".venv", "venv", "site-packages"]
)
def test_folders_that_no_one_means_are_out_even_when_included(folder: str) -> None:
    root = with_include("**", f"{folder}/a.md", f"x/{folder}/a.md")
    assert judged(f"{folder}/a.md", root=root) == PathMatch(
        is_included=False, reason=f"{folder}/ is never indexed"
    )
    assert not judged(f"x/{folder}/a.md", root=root).is_included


def test_a_file_named_like_such_a_folder_is_judged_as_a_file() -> None:
    assert judged("venv", root=with_include("venv")).is_included


# anchord's own state


def test_the_own_state_is_out_wherever_it_is() -> None:
    own = ("/home/ada/notes/state", "/home/ada/notes/a/cache")
    assert judged("state/a.md", own_state=own) == PathMatch(
        is_included=False, reason="state/ is never indexed"
    )
    assert not judged("a/cache/x.md", own_state=own).is_included
    assert not judged(
        "state/a.md", root=with_include("state/a.md", "**"), own_state=own
    ).is_included


def test_only_the_very_folder_is_own_state() -> None:
    own = ("/home/ada/notes/state", "/elsewhere/b")
    assert judged("a/state/a.md", own_state=own).is_included
    assert judged("state2/a.md", own_state=own).is_included
    assert judged("b/a.md", own_state=own).is_included


# The deny list


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.local", "prod.env", "a/b/server.pem", "tls.key", "id_rsa", "id_ed25519.pub", ".netrc", ".npmrc",
        "credentials.json", "a/credentials", "terraform.tfstate", "x.tfvars", "bash_history", ".bash_history",
        ".aws/config", ".ssh/notes.md", "gcloud/a.json", "logins.json", "secret.kdbx", "chromium/a.md",
    ],
)  # fmt: skip
def test_keys_and_credentials_are_out(path: str) -> None:
    assert (
        judged(path).reason
        == "on the deny list of keys and credentials; name the file in `include`"
    )


@pytest.mark.parametrize(
    "pattern", ["*", "**", "**/*", ".env*", "config/*", "/config/.env*", "config/", "config/.en[v]"]
)
def test_no_wildcard_lifts_the_deny_list(pattern: str) -> None:
    assert judged("config/.env", root=with_include(pattern)).reason.startswith("on the deny list")


def test_the_exact_name_lifts_the_deny_list_for_that_file_alone() -> None:
    root = with_include("config/credentials.json")
    assert judged("config/credentials.json", root=root).is_included
    assert not judged("credentials.json", root=root).is_included
    assert not judged("other/config/credentials.json", root=root).is_included
    assert not judged("config/credentials.json.md", root=root).is_included


def test_the_exact_name_lifts_a_hidden_file_too() -> None:
    assert judged(".env", root=with_include(".env")).is_included


def test_the_exact_name_lifts_a_file_in_a_denied_folder_alone() -> None:
    root = with_include("gcloud/notes.md")
    assert judged("gcloud/notes.md", root=root).is_included
    assert not judged("gcloud/other.md", root=root).is_included


def test_a_denied_folder_named_by_include_gives_none_of_its_files() -> None:
    assert not judged("credentials/a.md", root=with_include("credentials")).is_included


def test_the_deny_list_goes_before_what_an_ignore_file_brings_back() -> None:
    assert not judged("prod.env", {".gitignore": ["!prod.env"]}).is_included


# include and exclude of the configuration


def test_include_lets_in_what_is_no_known_text() -> None:
    verdict = judged("a/Caddyfile", root=with_include("Caddyfile"))
    assert verdict == PathMatch(
        is_included=True, reason="included by the configuration: Caddyfile", is_worth_reporting=True
    )


def test_include_lets_in_what_is_generated_or_hidden() -> None:
    assert judged("a/app.min.js", root=with_include("*.min.js")).is_included
    assert judged(".hidden.md", root=with_include(".hidden.md")).is_included


@pytest.mark.parametrize(
    "pattern",
    [".github/workflows/ci.yml", "/.github/workflows/ci.yml", ".github/**", ".github/workflows/"],
)
def test_include_leads_into_a_hidden_folder(pattern: str) -> None:
    assert judged(".github/workflows/ci.yml", root=with_include(pattern)).is_included


@pytest.mark.parametrize("pattern", [".github", "/.github"])
def test_include_of_a_hidden_folder_by_name_lets_in_what_it_holds(pattern: str) -> None:
    assert judged(".github/workflows/ci.yml", root=with_include(pattern)).is_included


@pytest.mark.parametrize(
    "path", [".github/notes.md", ".github/other/a.md", ".github/workflows/cd.yml"]
)
def test_include_of_one_file_in_a_hidden_folder_leaves_the_others_hidden(path: str) -> None:
    assert not judged(path, root=with_include(".github/workflows/ci.yml")).is_included


def test_exclude_goes_before_include_and_names_its_pattern() -> None:
    root = replace(ROOT, include=("a.md",), exclude=("*.md",))
    assert judged("a.md", root=root) == PathMatch(
        is_included=False, reason="excluded by the configuration: *.md"
    )


def test_exclude_of_a_folder_takes_all_below() -> None:
    root = with_exclude("drafts/")
    assert not judged("drafts/a/b.md", root=root).is_included
    assert not judged("x/drafts/a.md", root=root).is_included
    assert judged("drafts.md", root=root).is_included


def test_exclude_can_except_a_file() -> None:
    root = with_exclude("*.txt", "!keep.txt")
    assert not judged("a.txt", root=root).is_included
    assert judged("keep.txt", root=root).is_included


def test_an_ignore_file_does_not_bring_back_what_exclude_took() -> None:
    assert not judged("a.md", {".gitignore": ["!a.md"]}, with_exclude("a.md")).is_included


def test_include_does_not_bring_back_what_an_ignore_file_took() -> None:
    assert (
        judged("a.md", {".gitignore": ["a.md"]}, with_include("a.md")).reason
        == "ignored by .gitignore:1 a.md"
    )


# Roots of conversations

TALKS = replace(ROOT, kind="conversations")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.jsonl", "may hold conversations"),
        ("2026/a.jsonl", "may hold conversations"),
        (".specstory/history/a.md", "may hold conversations"),
        (".aider.chat.history.md", "may hold conversations"),
        ("history.jsonl", "no conversations by its name; add it to `include` to read it"),
        ("a.png", "no conversations by its name; add it to `include` to read it"),
        (".hidden.jsonl", "hidden; add it to `include` to index it"),
        (".hidden/a.jsonl", "hidden; add it to `include` to index it"),
        ("a/.b/c.jsonl", "hidden; add it to `include` to index it"),
        ("todos/a.jsonl", "a folder of a program that holds no conversations"),
        ("a/debug/b.jsonl", "a folder of a program that holds no conversations"),
        ("node_modules/a.jsonl", "node_modules/ is never indexed"),
    ],
)
def test_in_a_root_of_conversations_a_name_says_whether_a_look_is_worth_it(
    path: str, reason: str
) -> None:
    is_in = reason == "may hold conversations"
    assert judged(path, root=TALKS) == PathMatch(
        is_included=is_in, reason=reason, is_worth_reporting=is_in
    )


def test_a_file_in_a_root_of_conversations_may_be_named_like_a_folder_beside_them() -> None:
    assert judged("todos", root=TALKS).reason == "may hold conversations"


def test_include_lets_a_file_without_a_known_name_into_a_root_of_conversations() -> None:
    root = replace(TALKS, include=("history.jsonl", "todos/"))
    for path, pattern in (("history.jsonl", "history.jsonl"), ("todos/a.png", "todos/")):
        assert judged(path, root=root) == PathMatch(
            is_included=True,
            reason=f"included by the configuration: {pattern}",
            is_worth_reporting=True,
        )


# Folders, asked for themselves


@pytest.mark.parametrize(
    ("folder", "root", "match"),
    [
        ("a", ROOT, PathMatch(is_included=True, reason="a folder")),
        ("a.md", ROOT, PathMatch(is_included=True, reason="a folder")),
        ("a.min.js", ROOT, PathMatch(is_included=True, reason="a folder")),
        ("a", TALKS, PathMatch(is_included=True, reason="a folder")),
        (
            ".a",
            ROOT,
            PathMatch(is_included=False, reason="hidden; add it to `include` to index it"),
        ),
        (".specstory", TALKS, PathMatch(is_included=True, reason="a folder")),
        (
            ".a",
            with_include(".a"),
            PathMatch(is_included=True, reason="included by the configuration: .a"),
        ),
        (".a", with_include(".a/b.md"), PathMatch(is_included=True, reason="a folder")),
        (".a", with_include("/.a/b.md"), PathMatch(is_included=True, reason="a folder")),
        (
            ".a",
            with_include(".ab/b.md"),
            PathMatch(is_included=False, reason="hidden; add it to `include` to index it"),
        ),
    ],
)
def test_a_folder_is_entered_or_not_and_never_worth_a_report(
    folder: str, root: Root, match: PathMatch
) -> None:
    assert root_rules(root, ()).for_subfolder("", []).match(folder, is_folder=True) == match


# Forgotten paths


def test_a_forgotten_file_or_folder_is_out_whatever_lets_it_in() -> None:
    forgotten = frozenset({"/home/ada/notes/a.md", "/home/ada/notes/sub", "/home/ada/b.md"})
    told = "forgotten by a command; `anchord forget --undo` indexes it again"
    for root in (ROOT, with_include("a.md", "sub/**")):
        rules = root_rules(root, (), forgotten).for_subfolder("", [])
        assert rules.match("a.md", is_folder=False) == PathMatch(is_included=False, reason=told)
        assert rules.match("sub", is_folder=True) == PathMatch(is_included=False, reason=told)
        assert rules.match("b.md", is_folder=False).is_included
        assert rules.match("subs", is_folder=True).is_included
        below = rules.for_subfolder("x", [])
        assert below.match("a.md", is_folder=False).is_included
        assert below.match("sub", is_folder=True).is_included


def test_a_folder_that_is_never_indexed_is_called_so_though_it_was_forgotten() -> None:
    rules = root_rules(ROOT, (), frozenset({"/home/ada/notes/venv", "/home/ada/notes/a.md"}))
    assert rules.match("venv", is_folder=True).reason == "venv/ is never indexed"
    assert not rules.match("venv", is_folder=False).is_included


def test_a_file_with_the_name_of_an_own_folder_is_a_file() -> None:
    own = ("/home/ada/notes/state.md",)
    for forgotten in (frozenset[str](), frozenset({"/home/ada/notes/x"})):
        rules = root_rules(ROOT, own, forgotten).for_subfolder("", [])
        assert rules.match("state.md", is_folder=False).is_included
        assert not rules.match("state.md", is_folder=True).is_included


# Rules that are not known, and rules from above


def test_where_the_rules_are_not_known_everything_is_out_for_that_reason() -> None:
    closed = PathMatch(is_included=False, reason="its rules cannot be read")
    rules = replace(root_rules(with_include("**"), ()), closed=closed)
    for folder in (rules, rules.for_subfolder("", []), rules.for_subfolder("a", [])):
        assert folder.match("a.md", is_folder=False) == closed
        assert folder.match("sub", is_folder=True) == closed


def test_an_ignore_file_above_the_root_speaks_of_paths_from_its_own_folder() -> None:
    above = IgnoreFile("/home/ada/.gitignore", ("notes/a.md", "b.md", "/c.md"), prefix="notes/")
    rules = root_rules(ROOT, ()).for_subfolder("", [above])
    assert rules.match("a.md", is_folder=False) == PathMatch(
        is_included=False, reason="ignored by /home/ada/.gitignore:1 notes/a.md"
    )
    assert not rules.match("b.md", is_folder=False).is_included
    assert rules.match("c.md", is_folder=False).is_included
    assert rules.for_subfolder("sub", []).match("a.md", is_folder=False).is_included


@pytest.mark.parametrize(("options", "is_included"), [({}, True), ({"ignores_case": True}, False)])
def test_the_letters_of_an_ignore_file_count_unless_its_repository_ignores_case(
    options: dict[str, bool],
    is_included: bool,  # noqa: FBT001 - a column of the table
) -> None:
    file = IgnoreFile(".gitignore", ("readme.md",), **options)  # type: ignore[arg-type]
    rules = root_rules(ROOT, ()).for_subfolder("", [file])
    assert rules.match("README.md", is_folder=False).is_included is is_included
    assert not rules.match("readme.md", is_folder=False).is_included


def test_the_letters_of_the_configuration_count() -> None:
    assert judged("A.md", root=with_exclude("a.md")).is_included
    assert not judged("a.md", root=with_exclude("a.md")).is_included
    assert not judged("A.png", root=with_include("a.png")).is_included
    assert judged("a.png", root=with_include("a.png")).is_included


def test_nothing_is_set_for_a_new_root_but_what_was_asked() -> None:
    rules = root_rules(ROOT, ("/state",))
    assert (rules.path, rules.own_folders, rules.forgotten_paths) == ("", ("/state",), frozenset())
    assert (rules.ignore_patterns, rules.problems, rules.closed) == ((), (), None)
    assert (rules.ignores_case, rules.excludes_file, rules.is_plain) == (False, "", False)


@pytest.mark.parametrize(
    ("root", "forgotten", "folder", "is_plain"),
    [
        (ROOT, (), "", True),
        (ROOT, (), "sub", True),
        (ROOT, (), ".sub", False),
        (ROOT, ("/x",), "", False),
        (TALKS, (), "", False),
        (with_include("a.md"), (), "", False),
        (with_exclude("a.md"), (), "", False),
    ],
)
def test_the_short_way_is_taken_only_where_no_other_rule_can_decide(
    root: Root,
    forgotten: Sequence[str],
    folder: str,
    is_plain: bool,  # noqa: FBT001 - a column of the table
) -> None:
    rules = root_rules(root, (), frozenset(forgotten)).for_subfolder(folder, [])
    assert rules.is_plain is is_plain


def test_of_the_ignore_files_the_deepest_that_says_anything_decides() -> None:
    """A file that says nothing of a path leaves it to those above, also between two that do."""
    ignores = {
        ".gitignore": ["*.md", "*.txt"],
        "a/.gitignore": ["*.py"],
        "a/b/.gitignore": ["!*.md"],
    }
    assert judged("a/b/x.md", ignores).is_included
    assert judged("a/b/x.txt", ignores).reason == "ignored by .gitignore:2 *.txt"
    assert judged("a/b/x.py", ignores).reason == "ignored by a/.gitignore:1 *.py"
    assert judged("a/x.md", ignores).reason == "ignored by .gitignore:1 *.md"


def test_a_pattern_for_folders_leaves_a_file_of_that_name_to_the_files_above() -> None:
    ignores = {".gitignore": ["*.md"], "a/.gitignore": ["!x.md/"], "b/.gitignore": ["x.txt/"]}
    assert judged("a/x.md", ignores).reason == "ignored by .gitignore:1 *.md"
    assert judged("b/x.md", ignores).reason == "ignored by .gitignore:1 *.md"
    assert judged("b/x.txt", ignores).is_included
    assert judged("b/x.txt/y.py", ignores).reason == "ignored by b/.gitignore:1 x.txt/"


def test_what_exclude_leaves_alone_or_excepts_is_decided_by_the_other_rules() -> None:
    root = with_exclude("*.txt", "!*.md")
    assert judged("a.md", {".gitignore": ["a.md"]}, root).reason == "ignored by .gitignore:1 a.md"
    assert judged("a.py", {".gitignore": ["a.md"]}, root) == PathMatch(
        is_included=True, reason="a code file", is_worth_reporting=True
    )


def test_an_exception_in_include_lets_nothing_in() -> None:
    assert not judged("a.png", root=with_include("*.png", "!a.png")).is_included
    assert judged("b.png", root=with_include("*.png", "!a.png")).is_included
    assert judged("a.md", root=with_include("!a.md")).reason == "a markdown file"


# The short way


LISTED = ["credentials.md", "terraform.tfstate.json", "shell_history", "id_rsa.txt", "a.env", ".env", ".env.py", "x.pem",
          "a-lock.json", "package-lock.json", "pnpm-lock.yaml", "a.min.js", "b.map", "c_pb2.py", "d.pb.go", "logins.json",
          "go.sum", "Cargo.lock", ".hidden.md", "gcloud", "LICENSE", "CMakeLists.txt", "note.md", "b.py", "x.yaml"]  # fmt: skip
"""One name for each pattern of the lists that can be about a text, and ordinary ones."""
names = st.sampled_from(LISTED) | st.builds(
    "{}{}".format,
    st.text("ab_-.", max_size=6)
    | st.sampled_from(["id_rsa", "credentials", ".env", "a_history", "a.tfstate"]),
    st.sampled_from(
        [
            "",
            ".md",
            ".py",
            ".json",
            ".js",
            ".min.js",
            ".yaml",
            ".lock",
            ".env",
            ".go",
            ".tfstate.md",
            ".pem",
        ]
    ),
).filter(lambda name: name not in {"", ".", ".."})


@given(name=names, folder=st.sampled_from(["", "a/", "a/b/", ".github/"]))
def test_most_files_are_judged_by_less_and_the_verdict_is_the_same(name: str, folder: str) -> None:
    ignores = {".gitignore": ["*.log", "/b.py", "a/*.yaml", "note*"], "a/.gitignore": ["!note.md"]}
    by_all_rules = with_exclude("/no such file")
    assert judged(folder + name, ignores) == judged(folder + name, ignores, by_all_rules)


# Ignore files


def test_the_reason_names_file_line_and_pattern() -> None:
    ignores = {"sub/.gitignore": ["# comment", "", "*.txt", "!a.txt"]}
    assert judged("sub/b.txt", ignores).reason == "ignored by sub/.gitignore:3 *.txt"


def test_an_undecodable_pattern_is_named_in_words_that_utf_8_can_hold() -> None:
    reason = judged("a\udcff.md", {".gitignore": ["a\udcff.md"]}).reason
    assert reason == "ignored by .gitignore:1 a\\xff.md"


def test_a_deeper_file_overrules_one_above_it() -> None:
    ignores = {
        ".gitignore": ["*.md"],
        "keep/.gitignore": ["!*.md"],
        "keep/but/.gitignore": ["a.md"],
    }
    assert not judged("a.md", ignores).is_included
    assert judged("keep/a.md", ignores).is_included
    assert judged("keep/x/y/a.md", ignores).is_included
    assert not judged("keep/but/a.md", ignores).is_included
    assert judged("keep/but/b.md", ignores).is_included


def test_a_file_below_holds_only_below() -> None:
    ignores = {"sub/.gitignore": ["a.md", "/b.md"]}
    assert judged("a.md", ignores).is_included
    assert not judged("sub/x/a.md", ignores).is_included
    assert not judged("sub/b.md", ignores).is_included
    assert judged("sub/x/b.md", ignores).is_included


def test_later_kinds_of_ignore_file_overrule_earlier_ones_of_the_same_folder() -> None:
    ignores = {
        ".gitignore": ["a.md", "b.md"],
        ".ignore": ["!a.md", "c.md"],
        ".anchordignore": ["!c.md", "d.md"],
    }
    assert [name for name in "abcd" if judged(f"{name}.md", ignores).is_included] == ["a", "c"]


def test_nothing_below_an_ignored_folder_can_be_brought_back() -> None:
    ignores = {".gitignore": ["build/", "!build/a.md"], "build/.gitignore": ["!a.md"]}
    assert not judged("build/a.md", ignores).is_included


def test_a_line_that_is_no_pattern_is_skipped_and_the_others_hold() -> None:
    ignores = {".gitignore": ["!", "a.md", "\\", "   ", "b.md"]}
    assert not judged("a.md", ignores).is_included
    assert not judged("b.md", ignores).is_included
    assert judged("c.md", ignores).is_included


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        (".gitignore", True),
        ("a/b/.ignore", True),
        ("a/.anchordignore", True),
        ("gitignore", False),
        (".gitignore/a", False),
    ],
)
def test_ignore_files_change_the_rules(path: str, changes: bool) -> None:  # noqa: FBT001 - a table
    assert is_ignore_file(path) == changes


# git as the reference

FOLDERS = ("", "a/", "b/", "ab/", "a/a/", "a/b/", "b/a/", "a/b/a/", "build/", "logs/", "a/logs/")
NAMES = ("a.md", "b.md", "draft-1.md", "keep.md")
PATHS = tuple(folder + name for folder in FOLDERS for name in NAMES)


@pytest.fixture(scope="module")
def work_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a repository with every path of PATHS and no ignore file."""
    tree = tmp_path_factory.mktemp("tree")
    git(tree, "init", "--quiet")
    for path in PATHS:
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tree


def git(tree: Path, *arguments: str, given: str = "") -> str:
    """Run git without anyone's own settings; `check-ignore` exits 1 when nothing is ignored."""
    alone = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "XDG_CONFIG_HOME": os.devnull,
    }
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull} | alone
    ran = subprocess.run(
        ["git", *arguments],
        cwd=tree,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def ignored_by_git(tree: Path, ignores: Ignores) -> set[str]:
    for file in tree.rglob(".gitignore"):
        file.unlink()
    for path, lines in ignores.items():
        (tree / path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return set(git(tree, "check-ignore", "-z", "--stdin", given="\0".join(PATHS)).split("\0")) - {
        ""
    }


def ignored_here(ignores: Ignores) -> set[str]:
    return {path for path in PATHS if not judged(path, ignores).is_included}


IDIOMS: dict[str, Ignores] = {
    "plain names": {".gitignore": ["a.md", "/b.md", "logs/", "a/b"]},
    "a whole folder but one file": {".gitignore": ["build/*", "!build/keep.md"]},
    "everything below a folder but one file": {".gitignore": ["build/**", "!build/keep.md"]},
    "everything below a folder but one file, said below": {
        ".gitignore": ["build/**"],
        "build/.gitignore": ["!keep.md"],
    },
    "everything below any such folder but one file": {".gitignore": ["**/logs/**", "!keep.md"]},
    "nothing but one kind of file": {".gitignore": ["*", "!*/", "!keep.md"]},
    "nothing but one folder": {".gitignore": ["/*", "!/a", "/a/*", "!/a/b/"]},
    "a folder brought back keeps what is ignored by name": {".gitignore": ["draft-*.md", "!logs/"]},
    "a name is ignored in an excepted folder too": {".gitignore": ["logs", "!a"]},
    "a folder brought back below keeps what is ignored by name above": {
        ".gitignore": ["draft-*.md"],
        "a/.gitignore": ["!logs/"],
    },
    "a name brought back below keeps what is ignored by name above": {
        ".gitignore": ["draft-*.md"],
        "a/.gitignore": ["!logs"],
    },
    "a folder ignored after a wider exception": {".gitignore": ["!*", "logs/"]},
    "a folder ignored after an exception for what it holds": {".gitignore": ["!a/*", "a/b/"]},
    "any depth": {".gitignore": ["**/b.md", "a/**/a.md", "b/**"]},
    "one level": {".gitignore": ["*/b.md", "a/*"]},
    "classes": {".gitignore": ["[ab].md", "![!b].md", "draft-[0-9].md"]},
    "marks": {".gitignore": ["?.md", "\\#x", "#a.md", "keep.md  "]},
    "braces are no alternatives": {".gitignore": ["{a,b}.md"]},
    "case counts": {".gitignore": ["A.md", "LOGS/"]},
}


@pytest.mark.parametrize("ignores", IDIOMS.values(), ids=IDIOMS)
def test_git_and_we_ignore_the_same_for_an_idiom(work_tree: Path, ignores: Ignores) -> None:
    assert ignored_here(ignores) == ignored_by_git(work_tree, ignores)


PATTERNS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "!"]),
        st.sampled_from(
            [
                "a", "b", "a/", "b/", "/a", "/a/", "a/b", "a/b/", "/a/b/", "a/*", "*/", "*", "/*", "a*", "*b", "?b", "[ab]",
                "a.md", "b.md", "/a.md", "*.md", "?.md", "[!a].md", "draft-*", "keep.md", "*/a.md", "b/a.md",
                "**/b", "**/a.md", "a/**", "a/**/a.md", "**/b/**", "logs", "logs/", "build/*", "build/**", "\\a.md", "a.md  ",
            ]
        ),
    ),
)  # fmt: skip
LINES = st.lists(PATTERNS, min_size=1, max_size=4)
NESTED = st.dictionaries(
    st.sampled_from([f"{folder}.gitignore" for folder in FOLDERS if folder]), LINES, max_size=2
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(top=LINES, nested=NESTED)
def test_git_and_we_ignore_the_same(work_tree: Path, top: Iterable[str], nested: Ignores) -> None:
    ignores = {".gitignore": list(top), **nested}
    assert ignored_here(ignores) == ignored_by_git(work_tree, ignores)
