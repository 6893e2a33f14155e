"""The files of anchord, for their owner alone; G5 and G7: an unsafe location is refused with a remedy."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from anchord.config import paths as places_module
from anchord.config.paths import Paths, find_paths
from anchord.errors import UsageError

_NOBODY = 65_534
_needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give a folder to another user"
)


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path) -> Paths:
    """Return the paths of a home that does not exist yet."""
    return find_paths({"ANCHORD_HOME": str(tmp_path / "home")})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def folders(places: Paths) -> list[Path]:
    return [places.config_file.parent, places.data_folder, places.run_folder, places.log_folder]


# Finding


def test_a_home_holds_everything(home: Paths, tmp_path: Path) -> None:
    base = tmp_path / "home"
    assert home == Paths(
        config_file=base / "config.toml",
        data_folder=base / "data",
        run_folder=base / "run",
        log_folder=base / "log",
    )
    assert home.socket_file == base / "run" / "anchord.sock"
    assert {home.lock_file.parent, home.catalog_file.parent, home.vector_cache_file.parent} == {
        base / "data"
    }
    assert home.log_file.parent == base / "log"


def test_a_home_may_be_relative_or_under_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert find_paths({"ANCHORD_HOME": "here"}).config_file == tmp_path / "here" / "config.toml"
    assert (
        find_paths({"ANCHORD_HOME": "~/it"}).config_file == tmp_path / "me" / "it" / "config.toml"
    )


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="XDG's places are those of Linux")
def test_without_a_home_xdgs_places_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {
        f"XDG_{name}": str(tmp_path / name)
        for name in ("CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR")
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", pwd.getpwuid(os.geteuid()).pw_dir)
    found = find_paths(environment)
    assert found.config_file == tmp_path / "CONFIG_HOME" / "anchord" / "config.toml"
    assert found.data_folder == tmp_path / "DATA_HOME" / "anchord"
    assert found.socket_file == tmp_path / "RUNTIME_DIR" / "anchord" / "anchord.sock"
    assert tmp_path / "STATE_HOME" / "anchord" in (found.log_folder, *found.log_folder.parents)


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="XDG's places are those of Linux")
def test_without_xdg_the_places_are_under_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR"):
        monkeypatch.delenv(f"XDG_{name}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = find_paths({})
    assert found.config_file == tmp_path / ".config" / "anchord" / "config.toml"
    assert found.data_folder == tmp_path / ".local" / "share" / "anchord"


def test_without_a_session_the_socket_is_in_a_private_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", pwd.getpwuid(os.geteuid()).pw_dir)
    assert find_paths({}).run_folder.name == f"anchord-{os.geteuid()}"


def test_another_home_than_the_accounts_own_has_a_socket_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = pwd.getpwuid(os.geteuid()).pw_dir
    runs = set()
    for home in (own, str(tmp_path / "a"), str(tmp_path / "b")):
        monkeypatch.setenv("HOME", home)
        for environment in ({}, {"XDG_RUNTIME_DIR": "/run/user/7"}):
            runs.add(find_paths(environment).run_folder)
            assert find_paths(environment).run_folder.name.startswith("anchord")
    assert len(runs) == 6
    monkeypatch.setenv("HOME", own)
    assert find_paths({"XDG_RUNTIME_DIR": "/run/user/7"}).run_folder == Path("/run/user/7/anchord")


def test_an_empty_home_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_paths({"ANCHORD_HOME": ""}).config_file != Path.cwd() / "config.toml"


def test_finding_makes_nothing(home: Paths, tmp_path: Path) -> None:
    assert home.config_file.parent == tmp_path / "home"
    assert os.listdir(tmp_path) == []


def test_d16_the_folders_never_indexed_are_real_paths(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    own = find_paths({"ANCHORD_HOME": str(tmp_path / "link")}).own_folders
    base = tmp_path / "real"
    models = os.path.realpath(find_paths({}).shared_models_folder)
    assert set(own) == {str(base), *(str(base / name) for name in ("data", "run", "log")), models}


# Making


def test_what_is_made_is_for_its_owner_alone(home: Paths) -> None:
    home.create_folders()
    assert {mode(folder) for folder in folders(home)} == {0o700}


def test_folders_on_the_way_are_for_their_owner_alone_too(tmp_path: Path) -> None:
    find_paths({"ANCHORD_HOME": str(tmp_path / "a" / "b")}).create_folders()
    assert mode(tmp_path / "a" / "b") == 0o700


def test_making_twice_is_no_error(home: Paths) -> None:
    home.create_folders()
    home.create_folders()


def test_a_home_that_is_a_link_to_an_own_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(0o700)
    (tmp_path / "link").symlink_to("real")
    find_paths({"ANCHORD_HOME": str(tmp_path / "link")}).create_folders()
    assert (tmp_path / "real" / "run").is_dir()


# Refusing


@pytest.mark.parametrize("bits", [0o020, 0o002])
@pytest.mark.parametrize("name", ["data", "run"])
def test_g7_a_folder_that_others_can_write_to_is_refused(home: Paths, name: str, bits: int) -> None:
    home.create_folders()
    folder: Path = getattr(home, f"{name}_folder")
    folder.chmod(0o700 | bits)
    with pytest.raises(UsageError, match="is writable by other users") as refused:
        home.create_folders()
    assert refused.value.hint == f"run `chmod 700 {folder}`"


def test_g7_a_socket_folder_that_is_a_link_is_refused(home: Paths, tmp_path: Path) -> None:
    home.create_folders()
    home.run_folder.rmdir()
    (tmp_path / "theirs").mkdir()
    home.run_folder.symlink_to(tmp_path / "theirs")
    with pytest.raises(UsageError, match="is a symbolic link"):
        home.create_folders()


def test_g7_a_socket_folder_that_is_a_link_to_nothing_is_refused(
    home: Paths, tmp_path: Path
) -> None:
    home.create_folders()
    home.run_folder.rmdir()
    home.run_folder.symlink_to(tmp_path / "nothing")
    with pytest.raises(UsageError):
        home.create_folders()


@_needs_root
@pytest.mark.parametrize("name", ["data", "run", "log"])
def test_g7_a_folder_of_another_user_is_refused(home: Paths, name: str) -> None:
    home.create_folders()
    os.chown(getattr(home, f"{name}_folder"), _NOBODY, _NOBODY)
    with pytest.raises(UsageError, match=f"belongs to another user \\(uid {_NOBODY}\\)"):
        home.create_folders()


@_needs_root
def test_g7_a_home_of_another_user_is_refused(home: Paths, tmp_path: Path) -> None:
    home.create_folders()
    os.chown(tmp_path / "home", _NOBODY, _NOBODY)
    with pytest.raises(UsageError, match="belongs to another user"):
        home.create_folders()


def test_a_file_in_a_folders_place_is_refused_with_what_to_do(home: Paths, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    home.data_folder.write_text("", "utf-8")
    with pytest.raises(UsageError, match="File exists") as refused:
        home.create_folders()
    assert "ANCHORD_HOME" in refused.value.hint


@pytest.mark.parametrize(("spare", "fits"), [(0, True), (-1, False)])
def test_g5_a_socket_path_is_refused_from_the_first_byte_too_many(
    tmp_path: Path, spare: int, *, fits: bool
) -> None:
    limit = places_module._MAX_SOCKET_PATH
    fixed = len(os.fsencode(tmp_path)) + len("//run/anchord.sock")
    found = find_paths({"ANCHORD_HOME": str(tmp_path / ("x" * (limit - fixed - spare)))})
    assert len(os.fsencode(found.socket_file)) == limit - spare
    if fits:
        found.create_folders()
    else:
        with pytest.raises(UsageError, match=f"longer than the {limit} bytes allowed") as refused:
            found.create_folders()
        assert "shorter" in refused.value.hint


def test_g5_bytes_count_and_not_letters(tmp_path: Path) -> None:
    found = find_paths({"ANCHORD_HOME": str(tmp_path / ("ä" * 45))})
    with pytest.raises(UsageError, match="bytes"):
        found.create_folders()


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o772])
def test_a_home_below_a_folder_that_others_can_write_to_is_refused_with_the_reason(
    tmp_path: Path, mode: int
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "mine").mkdir(mode=0o700)
    shared.chmod(mode)
    with pytest.raises(UsageError, match=f"{shared} is writable"):
        find_paths({"ANCHORD_HOME": str(shared / "mine" / "home")}).create_folders()


@pytest.mark.parametrize("mode", [0o1777, 0o755, 0o775])
def test_a_home_below_a_sticky_folder_or_one_of_the_users_own_group_is_accepted(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anchord.config.paths._is_own_group", lambda group: group == os.getegid())
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    find_paths({"ANCHORD_HOME": str(shared / "home")}).create_folders()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_home_below_a_folder_of_another_group_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chown(shared, 0, 65534)
    shared.chmod(0o775)
    with pytest.raises(UsageError, match="replace"):
        find_paths({"ANCHORD_HOME": str(shared / "home")}).create_folders()


# Models


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's cache folder, which does not exist yet."""
    if os.uname().sysname != "Linux":
        pytest.skip("XDG's places are those of Linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_all_homes_of_a_user_share_their_models(cache: Path, tmp_path: Path) -> None:
    names = [{"ANCHORD_HOME": str(tmp_path / name)} for name in ("one", "two")]
    for environment in (*names, {}):
        paths = find_paths(environment)
        assert paths.shared_models_folder == cache / "anchord" / "models"
    one, two = map(find_paths, names)
    one.create_folders()
    assert not cache.exists()
    assert one.choose_models_folder() == two.choose_models_folder() == cache / "anchord" / "models"
    assert mode(cache / "anchord" / "models") == 0o700
    assert one.home_models_folder == tmp_path / "one" / "data" / "models"


def test_where_no_cache_can_be_made_the_home_keeps_its_models(cache: Path, tmp_path: Path) -> None:
    cache.write_text("no folder")
    home = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    home.create_folders()
    assert home.choose_models_folder() == tmp_path / "home" / "data" / "models"


@pytest.mark.parametrize("name", ["anchord/models", "anchord"])
def test_models_are_not_kept_where_others_can_write(cache: Path, tmp_path: Path, name: str) -> None:
    home = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    home.create_folders()
    home.choose_models_folder()
    (cache / name).chmod(0o777)
    home.create_folders()
    assert home.choose_models_folder() == home.home_models_folder


@_needs_root
def test_models_are_not_kept_in_a_folder_of_another_user(cache: Path, tmp_path: Path) -> None:
    home = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    home.create_folders()
    home.choose_models_folder()
    os.chown(cache / "anchord" / "models", _NOBODY, _NOBODY)
    home.create_folders()
    assert home.choose_models_folder() == home.home_models_folder


def test_models_are_not_kept_in_a_folder_that_cannot_be_written(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    home.create_folders()
    assert home.choose_models_folder().is_relative_to(cache)
    monkeypatch.setattr(os, "access", lambda _, wanted: not wanted & os.W_OK)
    assert home.choose_models_folder() == home.home_models_folder


@pytest.mark.parametrize("name", ["cache\nfolder", "caf\udcff"])
def test_models_are_not_kept_below_an_unprintable_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
    home = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    home.create_folders()
    assert home.choose_models_folder() == home.home_models_folder
