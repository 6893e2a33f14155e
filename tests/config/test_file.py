"""The configuration file: edits keep the user's text and comments, and a crash leaves it whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anchord.config.file import load_config
from anchord.config.file_editor import add_root, remove_root
from anchord.config.schema import Config, RootConfig
from anchord.errors import ConfigError, UsageError

WRITTEN = """\
# Mine, by hand.
[watch]
settle_ms = 300  # my disk is slow

# The work.
[[root]]
path = "/work/app"   # the app
name = "app"
exclude = [
    "*.log",  # noise
]

[embedding]
provider = "hash"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a configuration with comments."""
    written = tmp_path / "config.toml"
    written.write_text(WRITTEN, "utf-8")
    return written


def names(file: Path) -> list[str]:
    return [root.name for root in load_config(file).root]


def comments(text: str) -> list[str]:
    return [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]


# Reading


def test_a_named_pipe_in_place_of_the_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")
    with pytest.raises(ConfigError, match="is not a file"):
        load_config(tmp_path / "config.toml")


def test_a_file_that_is_not_there_is_an_empty_one(tmp_path: Path) -> None:
    assert load_config(tmp_path / "config.toml") == Config()


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", "[watch]\nmode = 'poll'\n".encode("utf-16")], ids=["bytes", "UTF-16"]
)
def test_a_file_that_is_no_utf_8_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(data)
    with pytest.raises(ConfigError, match="cannot be read") as refused:
        load_config(file)
    assert str(file) in refused.value.message


def test_a_folder_in_the_files_place_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b'[watch]\r\nmode = "poll"\r\n')
    assert load_config(file).watch.mode == "poll"


# Adding


def test_an_added_root_comes_last(file: Path) -> None:
    add_root(file, "/work/other", "project", "other")
    assert load_config(file).root[1:] == (RootConfig(path="/work/other", name="other"),)


def test_the_first_root_makes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    add_root(file, "/a", "project", "a")
    assert load_config(file) == Config(root=(RootConfig(path="/a", name="a"),))


def test_adding_changes_no_line_that_was_there(file: Path) -> None:
    add_root(file, "/work/other", "project", "other")
    before, _, rest = file.read_text("utf-8").partition(
        '[[root]]\npath = "/work/other"\nname = "other"\n'
    )
    assert [line for line in (before + rest).splitlines() if line] == [
        line for line in WRITTEN.splitlines() if line
    ]


def test_adding_keeps_every_other_setting(file: Path) -> None:
    before = load_config(file)
    add_root(file, "/work/other", "project", "other")
    after = load_config(file)
    assert (after.watch, after.embedding, after.root[0]) == (
        before.watch,
        before.embedding,
        before.root[0],
    )


@pytest.mark.parametrize("path", ['/a "quoted"', "/a\\b", "/ä/日本", "/a\tb", "/a#b", "/new\nline"])
def test_a_path_with_special_characters_comes_back_as_it_was(tmp_path: Path, path: str) -> None:
    file = tmp_path / "config.toml"
    add_root(file, path, "project", path[1:])
    assert load_config(file).root == (RootConfig(path=path, name=path[1:]),)


def test_a_path_that_toml_cannot_hold_is_refused_and_leaves_the_file_alone(file: Path) -> None:
    with pytest.raises(UsageError):
        add_root(file, os.fsdecode(b"/work/\xff"), "project", "other")
    assert file.read_text("utf-8") == WRITTEN
    assert os.listdir(file.parent) == [file.name]


def test_an_inline_array_of_roots_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('root = [{path = "/a"}]\n', "utf-8")
    with pytest.raises(ConfigError, match="inline array"):
        add_root(file, "/b", "project", "b")
    assert file.read_text("utf-8") == 'root = [{path = "/a"}]\n'


def test_a_root_is_added_between_tables_that_are_written_apart(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[[root]]\npath = "/a"\n[watch]\nmode = "poll"\n[[root]]\npath = "/b"\n', "utf-8"
    )
    add_root(file, "/c", "project", "c")
    config = load_config(file)
    assert [root.path for root in config.root] == ["/a", "/b", "/c"]
    assert config.watch.mode == "poll"


# Removing


def test_a_removed_root_takes_only_its_own_table_along(file: Path) -> None:
    before = load_config(file)
    add_root(file, "/work/other", "project", "other")
    remove_root(file, 1)
    assert load_config(file) == before
    assert comments(file.read_text("utf-8")) == comments(WRITTEN)


def test_the_comment_above_the_next_table_outlives_the_root_before_it(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[[root]]\npath = "/a"\n\n# How texts become vectors.\n[embedding]\nprovider = "hash"\n',
        "utf-8",
    )
    remove_root(file, 0)
    assert comments(file.read_text("utf-8")) == ["How texts become vectors."]


@pytest.mark.parametrize(("index", "kept"), [(0, 'path = "/b"'), (1, 'path = "/a"')])
def test_seed_002_04_a_removed_root_takes_its_kinds_along_and_no_comment_of_another_table(
    tmp_path: Path, index: int, kept: str
) -> None:
    file = tmp_path / "config.toml"
    tables = [
        '[[root]]\npath = "/a"\n\n[root.kinds.code]\nmax_chars = 700\n\n',
        '# second\n[[root]]\npath = "/b"\n[root.kinds.text]\nmax_chars = 900\n\n',
    ]
    end = '# watch\n[watch]\nmode = "poll"\n'
    file.write_text("".join(tables) + end)
    remove_root(file, index)
    left = file.read_text()
    assert left.count("[root.kinds.") == 1
    assert kept in left
    assert "# second\n" in left  # It is above the table and so belongs to none.
    assert left.endswith(end)


def test_removing_the_last_root_leaves_the_other_tables(file: Path) -> None:
    remove_root(file, 0)
    assert names(file) == []
    assert load_config(file).embedding.provider == "hash"
    assert "# my disk is slow" in file.read_text("utf-8")


def test_a_root_can_be_added_after_the_last_was_removed(file: Path) -> None:
    remove_root(file, 0)
    add_root(file, "/b", "project", "b")
    assert names(file) == ["b"]


def test_a_root_of_an_inline_array_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('root = [{path = "/a", name = "a"}, {path = "/b", name = "b"}]\n', "utf-8")
    remove_root(file, 0)
    assert names(file) == ["b"]


def test_a_root_is_removed_from_tables_that_are_written_apart(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    text = '[[root]]\npath = "/a"\nname = "a"\n[watch]\nmode = "poll"\n[[root]]\npath = "/b"\nname = "b"\n'
    file.write_text(text, "utf-8")
    remove_root(file, 1)
    assert names(file) == ["a"]
    assert load_config(file).watch.mode == "poll"


_segments = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=6
)
_heads = st.sampled_from(
    [
        "",
        "# head\n",
        WRITTEN,
        "[watch]\nmode = 'poll'\n",
        "\n\n[store]\nuri = ''",
        "# only a comment",
    ]
)


@given(_heads, st.lists(st.one_of(_segments, st.integers(0, 5)), max_size=6))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_row_of_additions_and_removals_does_just_that(
    tmp_path: Path, head: str, steps: list[str | int]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(head, "utf-8")
    expected = load_config(file)
    for number, step in enumerate(steps):
        roots = list(expected.root)
        if isinstance(step, str):
            add_root(file, f"/{step}", "project", f"{number}{step}")
            roots.append(RootConfig(path=f"/{step}", name=f"{number}{step}"))
        elif step < len(roots):
            remove_root(file, step)
            del roots[step]
        expected = Config(
            root=tuple(roots),
            watch=expected.watch,
            embedding=expected.embedding,
            store=expected.store,
        )
        assert load_config(file) == expected


# Crashes and other programs


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_crash_at_any_step_leaves_the_old_file_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(call, crash)
    with pytest.raises(KeyboardInterrupt):
        add_root(file, "/b", "project", "b")
    assert file.read_text("utf-8") == WRITTEN


def test_the_new_file_is_on_disk_before_it_takes_the_old_ones_name(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def note_fsync(descriptor: int) -> None:
        done.append("fsync")
        fsync(descriptor)

    def note_replace(self: Path, target: Path) -> Path:
        done.append("replace")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    add_root(file, "/b", "project", "b")
    assert done[:2] == ["fsync", "replace"]
    assert os.listdir(file.parent) == [file.name]


def test_a_link_to_the_configuration_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    kept = tmp_path / "dotfiles" / "anchord.toml"
    kept.write_text(WRITTEN, "utf-8")
    file = tmp_path / "config.toml"
    file.symlink_to(kept)
    add_root(file, "/b", "project", "b")
    assert file.is_symlink()
    assert names(kept) == ["app", "b"]
