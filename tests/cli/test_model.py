"""`model add`, `list` and `remove`: a model has a name, and its files are as they were when it was added."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import CATS, Shell

from anchord.embedding import model_files as module
from anchord.embedding.model_files import find_model

LOCAL = 'embedding.provider = "sentence-transformers"'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a copy of the bundled model: links to its files, of which a test may replace some."""
    bundled = find_model("all-MiniLM-L6-v2").folder
    made = tmp_path / "mini"
    shutil.copytree(
        bundled, made, copy_function=lambda source, target: Path(target).symlink_to(source)
    )
    return made


def change(file: Path) -> None:
    """Put another file in the place of a link."""
    text = file.read_text("utf-8")
    file.unlink()
    file.write_text(text + " ", "utf-8")


def tables(shell: Shell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(shell.config.read_text("utf-8")).get("model", [])
    return found


def test_a_folder_is_added_under_its_name_with_the_digests_of_its_files(
    shell: Shell, folder: Path
) -> None:
    shell.configure("# mine")
    printed = shell("model", "add", str(folder))
    assert printed.code == 0
    assert 'added "mini": 384 dimensions, window of 254 tokens' in printed.out
    assert 'set model = "mini" under [embedding]' in printed.out
    (table,) = tables(shell)
    assert (table["name"], table["path"]) == ("mini", str(folder))
    assert {"model.safetensors", "config.json", "tokenizer.json"} < set(table["files"])
    assert "# mine" in shell.config.read_text()
    assert shell("config", "check").code == 0


def test_a_bundled_model_can_have_another_name(shell: Shell) -> None:
    assert shell("model", "add", "all-MiniLM-L6-v2", "--name", "small", "--json").json["files"]
    (row,) = shell("model", "list", "--json").json
    assert (row["name"], row["path"], row["state"]) == ("small", "all-MiniLM-L6-v2", "unchanged")


def test_a_changed_file_is_refused_by_name_until_the_model_is_added_again(
    shell: Shell, folder: Path
) -> None:
    shell.configure()
    shell("model", "add", str(folder))
    shell.config.write_text(
        'embedding.model = "mini"\n' + shell.config.read_text().split("\n", 1)[1]
    )
    change(folder / "config.json")
    shell.write("a.md", CATS)
    shell("index", str(shell.notes)).is_refused(
        2, "model `mini` has changed since it was added", '"config.json"', "anchord model add"
    )
    (row,) = shell("model", "list", "--json").json
    assert "config.json" in row["state"]
    assert row["in_use"]
    shell("model", "add", str(folder))
    assert [row["state"] for row in shell("model", "list", "--json").json] == ["unchanged"]
    assert len(tables(shell)) == 1


def test_a_new_file_and_a_missing_one_are_changes_too(shell: Shell, folder: Path) -> None:
    shell("model", "add", str(folder))
    (folder / "new.json").write_text("{}")
    (folder / "data_config.json").unlink()
    (row,) = shell("model", "list", "--json").json
    assert '"data_config.json", "new.json"' in row["state"]


def test_a_model_whose_folder_is_gone_is_listed(shell: Shell, folder: Path) -> None:
    shell("model", "add", str(folder))
    shutil.rmtree(folder)
    assert "not on this machine" in shell("model", "list").out


def test_a_removed_model_leaves_the_configuration_and_stays_on_disk(
    shell: Shell, folder: Path
) -> None:
    for name in ("one", "two"):
        shell("model", "add", str(folder), "--name", name)
    assert shell("model", "remove", "one").code == 0
    assert [table["name"] for table in tables(shell)] == ["two"]
    assert shell("model", "remove", "two").code == 0
    assert tables(shell) == []
    assert (folder / "modules.json").is_file()
    shell("model", "remove", "two").is_refused(2, "no model", "model list")


@pytest.mark.parametrize("table", ["embedding", "embedding.further.other"])
def test_a_model_in_use_cannot_be_removed(shell: Shell, folder: Path, table: str) -> None:
    shell.configure(f'{table}.model = "mini"')
    shell("model", "add", str(folder))
    shell("model", "remove", "mini").is_refused(2, "is in use")


@pytest.mark.parametrize("model", ["no/such-model", "/no/such/folder", "."])
def test_what_is_no_model_on_this_machine_is_refused(shell: Shell, model: str) -> None:
    shell("model", "add", model).is_refused(2, "model `")
    assert tables(shell) == []


def test_nothing_is_downloaded_unless_that_is_asked_for(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(module, "download_model", asked.append)
    shell("model", "add", "no/such-model")
    assert asked == []
    shell("model", "add", "no/such-model", "--download")
    assert asked == ["no/such-model"]


def test_a_download_that_fails_says_why(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, *, allow_patterns: list[str]) -> str:
        assert "*.safetensors" in allow_patterns
        raise OSError(f"no connection for {name}\nmore")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    shell("model", "add", "a/b", "--download").is_refused(
        2, "model `a/b` cannot be downloaded: no connection for a/b"
    )
