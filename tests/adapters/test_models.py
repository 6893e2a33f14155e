"""Finding a model: what its files say, what makes its identity, and what is said when something is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from anchord.adapters.models import ModelFiles, find_model
from anchord.core.identity import HEX_DIGITS
from anchord.errors import ConfigError

FILES: Mapping[str, object] = {
    "modules.json": [],
    "tokenizer.json": {},
    "config.json": {"hidden_size": 8, "max_position_embeddings": 512},
    "sentence_bert_config.json": {"max_seq_length": 128},
    "1_Pooling/config.json": {"word_embedding_dimension": 6},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder that looks like a model."""
    made = tmp_path / "model"
    for name in FILES:
        put(made, name, FILES[name])
    (made / "model.safetensors").write_bytes(b"weights")
    return made


def put(folder: Path, name: str, value: object) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value))


def found(folder: Path) -> ModelFiles:
    return find_model(str(folder))


def test_the_bundled_model_is_there_and_tells_its_sizes() -> None:
    model = find_model("all-MiniLM-L6-v2")
    assert (model.window, model.dimension) == (254, 384)
    assert model.tokenizer.is_file()
    assert len(model.identity()) == HEX_DIGITS


def test_a_folder_is_a_model(folder: Path) -> None:
    assert found(folder) == ModelFiles(str(folder), folder.resolve(), window=126, dimension=6)


def test_a_folder_may_be_below_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_model("~/model").folder == folder.resolve()


def test_the_window_comes_from_the_first_file_that_says_it(folder: Path) -> None:
    put(folder, "sentence_bert_config.json", {"max_seq_length": None})
    assert found(folder).window == 510
    (folder / "sentence_bert_config.json").unlink()
    assert found(folder).window == 510
    put(folder, "config.json", {"hidden_size": 8})
    assert found(folder).window == 254


def test_the_dimension_comes_from_the_pooling_or_the_model(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").unlink()
    assert found(folder).dimension == 8


def test_a_model_that_does_not_say_its_dimension_is_refused(folder: Path) -> None:
    put(folder, "config.json", {})
    put(folder, "1_Pooling/config.json", {})
    with pytest.raises(ConfigError, match="does not say how long its vectors are"):
        found(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "modules.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=f"has no {name}"):
        found(folder)


@pytest.mark.parametrize("content", ["not json", "[]", "\xff", ""])
def test_a_settings_file_that_cannot_be_read_says_nothing(folder: Path, content: str) -> None:
    (folder / "sentence_bert_config.json").write_text(content, encoding="latin-1")
    assert found(folder).window == 510


@pytest.mark.parametrize("name", ["no-such-model", "someone/no-such-model", "/no/such/folder", "a/b/c", "", "~nobody-at-all/x"])
def test_a_model_that_is_not_on_this_machine_is_a_config_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        find_model(name)
    assert "all-MiniLM-L6-v2" in raised.value.hint


def test_the_identity_is_that_of_the_content_wherever_it_lies(folder: Path) -> None:
    before = found(folder).identity()
    moved = folder.rename(folder.parent / "elsewhere")
    assert found(moved).identity() == before
    (moved / "README.md").write_text("words about it")
    assert found(moved).identity() == before


@pytest.mark.parametrize("name", list(FILES))
def test_every_settings_file_is_part_of_the_identity(folder: Path, name: str) -> None:
    before = found(folder).identity()
    put(folder, name, {"hidden_size": 8, "word_embedding_dimension": 6, "new": "setting"})
    assert found(folder).identity() != before


def test_the_weights_are_part_of_the_identity(folder: Path) -> None:
    before = found(folder).identity()
    (folder / "model.safetensors").write_bytes(b"weights, tuned")
    assert found(folder).identity() != before
