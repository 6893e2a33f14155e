"""Which folders are roots: configured, remembered, given now. They never overlap; names are unique."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.config.file import load_config
from anchord.config.roots import (
    add_root_to_config,
    covers,
    find_root,
    gather_roots,
    remove_root_from_config,
    resolve_path,
    resolve_root_folder,
)
from anchord.config.schema import Config, RootConfig
from anchord.core.types import Root
from anchord.errors import ConfigError, UsageError


def configured(*paths: str | Path, name: str = "") -> Config:
    return Config(root=tuple(RootConfig(path=str(path), name=name) for path in paths))


def folder(base: Path, name: str) -> str:
    made = base / name
    made.mkdir(parents=True, exist_ok=True)
    return str(made)


def names(roots: list[Root]) -> list[str]:
    return [root.name for root in roots]


# Collecting roots


def test_configured_roots_come_first_then_remembered_then_given_ones(tmp_path: Path) -> None:
    a, b, c = (folder(tmp_path, name) for name in "abc")
    roots = gather_roots(configured(a), [Root(name="b", path=b, is_configured=False)], [c])
    assert [(root.name, root.path, root.is_configured) for root in roots] == [
        ("a", a, True),
        ("b", b, False),
        ("c", c, False),
    ]


def test_a_configured_root_keeps_its_settings(tmp_path: Path) -> None:
    entry = RootConfig(path=str(tmp_path), name="n", include=("x",), exclude=("y",))
    assert gather_roots(Config(root=(entry,)), (), ()) == [
        Root(name="n", path=str(tmp_path), kind="project", include=("x",), exclude=("y",))
    ]


def test_a_configured_root_that_is_not_there_stays_a_root(tmp_path: Path) -> None:
    assert names(gather_roots(configured(tmp_path / "unplugged"), (), ())) == ["unplugged"]


def test_a_folder_is_named_after_itself(tmp_path: Path) -> None:
    assert names(gather_roots(configured(tmp_path / "code" / "app"), (), ())) == ["app"]


def test_folders_of_the_same_name_get_a_number(tmp_path: Path) -> None:
    given_now = [folder(tmp_path, f"{n}/app") for n in range(4)]
    assert names(gather_roots(Config(), (), given_now)) == ["app", "app-2", "app-3", "app-4"]


def test_a_number_that_is_a_name_already_is_not_given(tmp_path: Path) -> None:
    taken = [
        Root(name="app", path=folder(tmp_path, "1/app")),
        Root(name="app-2", path=folder(tmp_path, "2/x")),
    ]
    assert names(gather_roots(Config(), taken, [folder(tmp_path, "3/app")]))[-1] == "app-3"


def test_two_configured_roots_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='two roots are named "n"'):
        gather_roots(configured(tmp_path / "a", tmp_path / "b", name="n"), (), ())


def test_a_remembered_root_yields_its_name_to_a_configured_one(tmp_path: Path) -> None:
    remembered = [Root(name="app", path=folder(tmp_path, "b/app"), is_configured=False)]
    assert names(gather_roots(configured(tmp_path / "a" / "app"), remembered, ())) == [
        "app",
        "app-2",
    ]


def test_a_path_that_a_root_covers_adds_none(tmp_path: Path) -> None:
    inner = folder(tmp_path, "app/src")
    outer = str(tmp_path / "app")
    assert names(gather_roots(configured(outer), (), [outer, inner, outer + "/"])) == ["app"]
    assert names(gather_roots(Config(), (), [outer, inner])) == ["app"]


def test_a_remembered_root_that_overlaps_a_configured_one_is_no_root_any_more(
    tmp_path: Path,
) -> None:
    inner, outer = folder(tmp_path, "app/src"), str(tmp_path / "app")
    assert names(gather_roots(configured(outer), [Root(name="src", path=inner)], ())) == ["app"]
    assert names(gather_roots(configured(inner), [Root(name="app", path=outer)], ())) == ["src"]


def test_d15_overlapping_roots_are_refused_in_the_configuration(tmp_path: Path) -> None:
    for pair in (
        (tmp_path / "app", tmp_path / "app" / "src"),
        (tmp_path / "app" / "src", tmp_path / "app"),
    ):
        with pytest.raises(ConfigError, match="overlap") as refused:
            gather_roots(configured(*pair), (), ())
        assert refused.value.hint


def test_d15_a_given_folder_around_a_root_is_refused(tmp_path: Path) -> None:
    inner = folder(tmp_path, "app/src")
    with pytest.raises(UsageError, match="overlap"):
        gather_roots(configured(inner), (), [str(tmp_path / "app")])


def test_a_folder_beside_another_with_a_longer_name_does_not_overlap_it(tmp_path: Path) -> None:
    assert names(gather_roots(configured(tmp_path / "app", tmp_path / "app-2"), (), ())) == [
        "app",
        "app-2",
    ]


def test_d8_a_root_given_by_a_link_is_the_folder_behind_it(tmp_path: Path) -> None:
    target = folder(tmp_path, "target")
    (tmp_path / "link").symlink_to("target")
    assert gather_roots(Config(), (), [str(tmp_path / "link")])[0].path == target
    assert gather_roots(configured(tmp_path / "link"), (), ())[0].path == target


def test_a_link_to_a_roots_folder_adds_none(tmp_path: Path) -> None:
    target = folder(tmp_path, "target")
    (tmp_path / "link").symlink_to("target")
    assert names(gather_roots(configured(target), (), [str(tmp_path / "link")])) == ["target"]


def test_a_configured_path_does_not_hang_on_the_callers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for name in ("a", "b"):
        monkeypatch.chdir(folder(tmp_path, name))
        try:
            seen.add(gather_roots(configured("docs"), (), ())[0].path)
        except ConfigError as refused:
            seen.add(refused.message)
    assert len(seen) == 1


# Too wide


@pytest.mark.parametrize("wide", ["/", "/usr", "/etc", "/home", "/var", "/proc"])
def test_a_system_folder_is_too_wide(wide: str) -> None:
    with pytest.raises(UsageError, match="too wide"):
        gather_roots(Config(), (), [wide])
    with pytest.raises(ConfigError, match="too wide"):
        gather_roots(configured(wide), (), ())


def test_the_users_home_is_too_wide_also_by_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = folder(tmp_path, "users/me")
    (tmp_path / "link").symlink_to(me)
    monkeypatch.setenv("HOME", me)
    for wide in (me, "~", str(tmp_path / "link")):
        with pytest.raises(UsageError, match="too wide"):
            gather_roots(Config(), (), [wide])


def test_a_folder_around_the_users_home_is_too_wide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", folder(tmp_path, "users/me"))
    with pytest.raises(UsageError, match="too wide"):
        gather_roots(Config(), (), [str(tmp_path / "users")])


def test_a_folder_in_the_users_home_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder(tmp_path, "app")
    assert gather_roots(Config(), (), ["~/app"])[0].path == str(tmp_path / "app")


# A folder on the command line


def test_a_folder_that_is_not_there_is_named_as_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='nothing" does not exist'):
        resolve_root_folder(str(tmp_path / "nothing"))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UsageError, match="is not a folder"):
        resolve_root_folder(str(tmp_path / "file"))


def test_a_link_to_nothing_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nothing")
    with pytest.raises(UsageError, match="does not exist"):
        resolve_root_folder(str(tmp_path / "link"))


def test_d12_a_folder_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="cannot be read"):
        resolve_root_folder(str(tmp_path))


def test_an_empty_path_is_not_the_folder_one_stands_in() -> None:
    with pytest.raises(UsageError):
        resolve_root_folder("")


def test_a_dot_is_the_folder_one_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve_root_folder(".") == str(tmp_path)


# The configuration's file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a configuration that does not exist yet."""
    return tmp_path / "config.toml"


def entries(file: Path) -> list[tuple[str, str]]:
    return [(root.name, root.path) for root in load_config(file).root]


def test_an_added_root_is_written_with_its_real_path_and_name(file: Path, tmp_path: Path) -> None:
    target = folder(tmp_path, "target")
    (tmp_path / "link").symlink_to("target")
    root = add_root_to_config(file, (), RootConfig(path=str(tmp_path / "link")))
    assert root == Root(name="target", path=target)
    assert entries(file) == [("target", target)]


def test_an_added_root_gets_a_free_name_or_the_wanted_one(file: Path, tmp_path: Path) -> None:
    add_root_to_config(file, (), RootConfig(path=folder(tmp_path, "1/app")))
    assert add_root_to_config(file, (), RootConfig(path=folder(tmp_path, "2/app"))).name == "app-2"
    assert (
        add_root_to_config(file, (), RootConfig(path=folder(tmp_path, "3/app"), name="third")).name
        == "third"
    )


def test_a_remembered_root_keeps_its_name_when_it_is_added(file: Path, tmp_path: Path) -> None:
    app = folder(tmp_path, "app")
    assert (
        add_root_to_config(
            file, [Root(name="app-7", path=app, is_configured=False)], RootConfig(path=app)
        ).name
        == "app-7"
    )


def refuse(file: Path, wanted: RootConfig, words: str) -> None:
    before = file.read_bytes() if file.exists() else None
    with pytest.raises(UsageError, match=words):
        add_root_to_config(file, (), wanted)
    assert (file.read_bytes() if file.exists() else None) == before


def test_a_name_that_is_taken_is_refused(file: Path, tmp_path: Path) -> None:
    add_root_to_config(file, (), RootConfig(path=folder(tmp_path, "a"), name="n"))
    refuse(file, RootConfig(path=folder(tmp_path, "b"), name="n"), 'there is already a root "n"')


def test_a_folder_in_a_root_is_refused(file: Path, tmp_path: Path) -> None:
    inner = folder(tmp_path, "app/src")
    add_root_to_config(file, (), RootConfig(path=str(tmp_path / "app")))
    refuse(file, RootConfig(path=inner), 'is already in the root "app"')
    refuse(file, RootConfig(path=str(tmp_path / "app")), 'is already in the root "app"')


def test_d15_a_folder_around_a_root_is_refused_before_it_is_written(
    file: Path, tmp_path: Path
) -> None:
    add_root_to_config(file, (), RootConfig(path=folder(tmp_path, "app/src")))
    refuse(file, RootConfig(path=str(tmp_path / "app")), "overlap")


def test_a_folder_that_is_too_wide_or_not_there_is_refused(file: Path, tmp_path: Path) -> None:
    refuse(file, RootConfig(path="/"), "too wide")
    refuse(file, RootConfig(path=str(tmp_path / "nothing")), "does not exist")


def test_a_folder_whose_name_toml_cannot_hold_is_refused(file: Path, tmp_path: Path) -> None:
    odd = os.path.join(tmp_path, os.fsdecode(b"x\xff"))
    os.mkdir(odd)
    refuse(file, RootConfig(path=odd), r"x\\xff|UTF-8")


def test_a_wrong_configuration_is_left_as_it_is(file: Path, tmp_path: Path) -> None:
    file.write_text("[wach]\n", "utf-8")
    refuse(file, RootConfig(path=folder(tmp_path, "a")), "unknown key `wach`")


def test_a_removed_root_leaves_the_others(file: Path, tmp_path: Path) -> None:
    for name in "abc":
        add_root_to_config(file, (), RootConfig(path=folder(tmp_path, name)))
    assert remove_root_from_config(file, "b")
    assert [name for name, _ in entries(file)] == ["a", "c"]
    assert not remove_root_from_config(file, "b")


def test_a_root_without_a_written_name_is_removed_by_its_folders(
    file: Path, tmp_path: Path
) -> None:
    file.write_text(
        f'[[root]]\npath = "{tmp_path}/x/app"\n[[root]]\npath = "{tmp_path}/y/app"\n', "utf-8"
    )
    assert remove_root_from_config(file, "app-2")
    assert entries(file) == [("", f"{tmp_path}/x/app")]


# Paths in roots


def test_a_path_is_found_in_its_root() -> None:
    roots = [Root(name="a", path="/r/a"), Root(name="ab", path="/r/ab")]
    assert find_root(roots, "/r/ab/x/y.md") == (roots[1], "x/y.md")
    assert find_root(roots, "/r/a") == (roots[0], "")
    assert find_root(roots, "/r/abc") is None
    assert find_root(roots, "/r") is None


_paths = st.lists(st.sampled_from(["a", "b", "ab", "a b", "ä"]), max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)


@given(_paths, _paths)
def test_covering_is_having_all_the_parts(above: str, path: str) -> None:
    parts, inner = above.strip("/").split("/"), path.strip("/").split("/")
    assert covers(above, path) == (above == "/" or inner[: len(parts)] == parts)


@given(_paths, _paths)
def test_what_a_root_covers_is_found_in_it_and_joins_to_the_same_path(
    above: str, path: str
) -> None:
    found = find_root([Root(name="r", path=above)], path)
    assert (found is not None) == covers(above, path)
    if found:
        assert os.path.join(above, found[1]).rstrip("/") == path.rstrip("/")


def test_a_real_path_has_no_tilde_and_no_dots(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve_path("~/a/../b/") == str(tmp_path / "b")


def test_a_new_root_gets_a_name_that_a_command_can_show(tmp_path: Path) -> None:
    hostile = folder(tmp_path, "q` and\nthen\u202e run")
    file = tmp_path / "config.toml"
    assert add_root_to_config(file, (), RootConfig(path=hostile)).name == "q- and-then- run"
    assert names(gather_roots(Config(), (), [hostile])) == ["q- and-then- run"]
    # A root that has no name in the configuration may have rows: they know it by this name.
    assert names(gather_roots(configured(Path(hostile)), (), ())) == ["q` and\nthen\u202e run"]


def test_roots_that_are_added_and_removed_at_once_all_count(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[embedding]\nprovider = "hash"\n# kept\n')
    names = [f"root-{number}" for number in range(12)]
    for name in names:
        folder(tmp_path, name)

    def add(name: str) -> None:
        add_root_to_config(file, (), RootConfig(path=str(tmp_path / name)))
        if name.endswith(("3", "7")):
            assert remove_root_from_config(file, name)

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(add, names))
    left = {root.name for root in gather_roots(load_config(file), (), ())}
    assert left == {name for name in names if not name.endswith(("3", "7"))}
    assert "# kept" in file.read_text()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
