"""Edits of documents in a real git repository: which count, their order, the texts before and after."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anchord.errors import UsageError
from anchord.search.evaluation import git_history
from anchord.search.evaluation.git_history import Edit, recent_edits

_SOMEBODY = {
    "GIT_AUTHOR_NAME": "Somebody", "GIT_AUTHOR_EMAIL": "somebody@example.org",
    "GIT_COMMITTER_NAME": "Somebody", "GIT_COMMITTER_EMAIL": "somebody@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
ALL = 1000


class Repository:
    """A repository in a folder."""

    def __init__(self, folder: Path) -> None:
        """Begin it."""
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run git in it."""
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments], check=True, capture_output=True
        )
        return done.stdout.decode()

    def commit(self, texts: Mapping[str, str | bytes | None]) -> None:
        """Write files (None deletes one) and commit everything."""
        for path, text in texts.items():
            file = self.folder / path
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode() if isinstance(text, str) else text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")

    def edits(self, folder: str = "", most: int = ALL) -> list[Edit]:
        """Return the edits of a folder in it."""
        return recent_edits(str(self.folder / folder), most)


@pytest.fixture(autouse=True)
def _somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in _SOMEBODY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "repository").mkdir()
    return Repository(tmp_path / "repository")


def test_edits_come_newest_first_with_the_text_before_and_after(repository: Repository) -> None:
    for text in ("one\n", "two\n", "three\n"):
        repository.commit({"a.md": text})
    assert repository.edits() == [("a.md", "two\n", "three\n"), ("a.md", "one\n", "two\n")]


def test_every_document_of_a_commit_is_an_edit(repository: Repository) -> None:
    repository.commit({"a.md": "1", "b.md": "1", "c.md": "1"})
    repository.commit({"a.md": "2", "c.md": "2"})
    assert repository.edits() == [("a.md", "1", "2"), ("c.md", "1", "2")]


def test_the_edits_are_those_of_the_folder_with_paths_below_it(repository: Repository) -> None:
    repository.commit({"a.md": "1", "docs/a.md": "1", "docs/deep/b.md": "1"})
    repository.commit({"a.md": "2", "docs/a.md": "2", "docs/deep/b.md": "2"})
    assert repository.edits("docs") == [("a.md", "1", "2"), ("deep/b.md", "1", "2")]
    assert repository.edits("docs/deep") == [("b.md", "1", "2")]


def test_a_commit_elsewhere_does_not_use_up_the_edits_asked_for(repository: Repository) -> None:
    repository.commit({"docs/a.md": "1", "b.md": "1", "n.txt": "1"})
    repository.commit({"docs/a.md": "2"})
    for text in "234":
        repository.commit({"b.md": text, "n.txt": text})
    assert repository.edits("docs", 1) == [("a.md", "1", "2")]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
def test_there_are_at_most_so_many_and_these_are_the_newest(
    repository: Repository, most: int
) -> None:
    for text in "123":
        repository.commit({"a.md": text, "b.md": text})
    newest = [("a.md", "2", "3"), ("b.md", "2", "3"), ("a.md", "1", "2"), ("b.md", "1", "2")]
    assert repository.edits(most=most) == newest[:most]


@pytest.mark.parametrize("name", ["a.md", "a.markdown", "a.mdx", "docs/a.md"])
def test_markdown_counts(repository: Repository, name: str) -> None:
    repository.commit({name: "1"})
    repository.commit({name: "2"})
    assert repository.edits() == [(name, "1", "2")]


@pytest.mark.parametrize("name", ["README.MD", "a.mdown", "a.mkd", "a.mdc", "a.qmd", "a.Rmd"])
def test_every_document_that_is_read_has_its_edits(repository: Repository, name: str) -> None:
    repository.commit({name: "1"})
    repository.commit({name: "2"})
    assert repository.edits() == [(name, "1", "2")]


@pytest.mark.parametrize("name", ["a.txt", "md", "a.md.bak", "a.ipynb", "a.md/code.py"])
def test_what_is_no_markdown_does_not_count(repository: Repository, name: str) -> None:
    repository.commit({name: "1"})
    repository.commit({name: "2"})
    assert repository.edits() == []


def test_a_new_a_renamed_and_a_deleted_document_are_no_edits(repository: Repository) -> None:
    repository.commit({"old.md": "1\n" * 30, "gone.md": "1"})
    repository.git("mv", "old.md", "new.md")
    repository.commit({"new.md": "1\n" * 30 + "2\n", "gone.md": None, "fresh.md": "1"})
    assert repository.edits() == []


def test_a_commit_that_changes_no_text_is_no_edit(repository: Repository) -> None:
    repository.commit({"a.md": "1"})
    (repository.folder / "a.md").chmod(0o755)
    repository.commit({})
    repository.commit({})
    assert repository.edits() == []


def test_a_merge_counts_by_its_commits(repository: Repository) -> None:
    repository.commit({"a.md": "1", "b.md": "1"})
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit({"a.md": "2"})
    repository.git("switch", "--quiet", "main")
    repository.commit({"b.md": "2"})
    repository.git("merge", "--quiet", "--no-ff", "--message=m", "side")
    assert sorted(repository.edits()) == [("a.md", "1", "2"), ("b.md", "1", "2")]


@pytest.mark.parametrize(
    "name",
    ["two words.md", "ünï.md", "日本.md", 'quo"te\'.md', "-dash.md", ":colon.md", ":(top)x.md", "star*.md", "[ab].md", "$x;.md",
     " blank .md", "a\tb.md", "new\nline.md", "a\\b.md", "f" * 40 + ".md", "f" * 40 + "/a.md", ".md", "d/.hidden.md"],
)  # fmt: skip
def test_any_name_is_read(repository: Repository, name: str) -> None:
    repository.commit({name: "1", "other.md": "1"})
    repository.commit({name: "2"})
    assert repository.edits() == [(name, "1", "2")]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"gr\xc3\xbcn", "grün"),
        (b"gr\xfcn", "gr\ufffdn"),
        (b"a\r\nb\r\n", "a\r\nb\r\n"),
        (b"a\0b", "a\0b"),
        (b"", ""),
    ],
)
def test_texts_are_as_they_were_committed(repository: Repository, data: bytes, text: str) -> None:
    repository.commit({"a.md": "before"})
    repository.commit({"a.md": data})
    repository.commit({"a.md": "after"})
    assert repository.edits() == [("a.md", text, "after"), ("a.md", "before", text)]


def test_what_is_not_committed_does_not_count(repository: Repository) -> None:
    repository.commit({"a.md": "1"})
    repository.commit({"a.md": "2"})
    (repository.folder / "a.md").write_text("3")
    assert repository.edits() == [("a.md", "1", "2")]


def test_a_persons_settings_of_git_do_not_matter(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"ä.md": "1"})
    repository.commit({"ä.md": "2"})
    settings_of_git = repository.folder.parent / "config"
    settings_of_git.write_text(
        "[color]\nui = always\n[log]\ndecorate = full\ndate = relative\nshowSignature = true\nfollow = true\n"
        "[diff]\nexternal = false\nrenames = copies\nnoprefix = true\nrelative = false\n"
        "[core]\nquotePath = true\nautocrlf = true\npager = false\n[format]\npretty = full\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings_of_git))
    assert repository.edits() == [("ä.md", "1", "2")]


def test_of_a_shallow_clone_the_edits_that_are_there_count(
    repository: Repository, tmp_path: Path
) -> None:
    for text in "1234":
        repository.commit({"a.md": text})
    repository.git(
        "clone", "--quiet", "--depth=2", f"file://{repository.folder}", str(tmp_path / "clone")
    )
    assert recent_edits(str(tmp_path / "clone"), ALL) == [("a.md", "3", "4")]


def test_where_there_is_no_history_there_are_no_edits(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    assert recent_edits(str(tmp_path / "plain"), ALL) == []
    assert recent_edits(str(tmp_path / "nowhere"), ALL) == []
    assert repository.edits() == []
    repository.commit({"a.md": "1"})
    assert repository.edits() == []


def test_without_git_there_are_no_edits(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a.md": "1"})
    repository.commit({"a.md": "2"})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repository.edits() == []


def test_a_git_that_does_not_answer_is_reported(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a.md": "1"})
    repository.commit({"a.md": "2"})
    head = Path(repository.folder, ".git", "HEAD")
    head.unlink()
    os.mkfifo(head)
    monkeypatch.setattr(git_history, "_GIT_TIMEOUT_S", 0.3)
    with pytest.raises(UsageError, match="git did not answer"):
        repository.edits()


_texts = st.dictionaries(
    st.sampled_from(["a.md", "d/b.md", "ü c.markdown", "n.txt"]),
    st.text(st.characters(codec="utf-8")),
)


@given(st.lists(_texts, max_size=4))
@settings(
    deadline=None, max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_edits_lead_from_the_first_texts_to_the_last(
    tmp_path_factory: pytest.TempPathFactory, commits: list[dict[str, str]]
) -> None:
    repository = Repository(tmp_path_factory.mktemp("repository"))
    texts: dict[str, str] = {}
    expected: list[Edit] = []
    for changed in commits:
        documents = {
            path: text for path, text in changed.items() if path in texts and texts[path] != text
        }
        expected += [
            (path, texts[path], text)
            for path, text in documents.items()
            if not path.endswith(".txt")
        ]
        texts |= changed
        repository.commit(changed)
    assert sorted(repository.edits()) == sorted(expected)
