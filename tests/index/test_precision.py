"""A home of before keeps fp32 when nobody chose a precision; nothing is embedded again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from anchord.config.paths import Paths, find_paths
from anchord.config.schema import Config, EmbeddingConfig
from anchord.embedding import precision
from anchord.embedding.precision import precision_of
from anchord.index.generation import BuildRequest, GenerationBuild
from anchord.index.opening import open_reader, open_writer

AUTO = Config()
INT8 = Config(embedding=EmbeddingConfig(precision="int8"))
FP32 = Config(embedding=EmbeddingConfig(precision="fp32"))


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setattr(precision, "has_gpu", lambda: False)
    found = find_paths({"ANCHORD_HOME": str(tmp_path / "home")})
    found.create_folders()
    return found


def opened(paths: Paths, config: Config) -> tuple[str, str]:
    """Return the precision that is configured, and that of the rows."""
    with closing(open_writer(paths, config, [])) as writer:
        profiles = (writer.configured_profile, writer.profile)
        configured, rows = (precision_of(profile.embedder.model_id) for profile in profiles)
        return configured, rows


def test_a_new_home_has_int8_and_one_with_fp32_keeps_it(paths: Paths, tmp_path: Path) -> None:
    assert opened(paths, FP32) == ("fp32", "fp32")
    assert opened(paths, AUTO) == ("fp32", "fp32")
    with closing(open_reader(paths, AUTO)) as reader:
        assert precision_of(reader.profile.embedder.model_id) == "fp32"
    new = find_paths({"ANCHORD_HOME": str(tmp_path / "new")})
    new.create_folders()
    assert opened(new, AUTO) == ("int8", "int8")
    assert opened(new, FP32)[0] == "fp32"


def test_the_table_says_the_precision_where_the_catalog_was_lost(paths: Paths) -> None:
    opened(paths, FP32)
    paths.catalog_file.unlink()
    assert opened(paths, AUTO) == ("fp32", "fp32")


def test_the_table_says_the_precision_of_its_newest_generation(paths: Paths) -> None:
    opened(paths, FP32)
    with closing(open_writer(paths, INT8, [])) as writer:
        build = GenerationBuild(writer, BuildRequest("the precision changed"))
        while not build.is_finished:
            build.index_next_files(lambda: False)
        build.promote()
    paths.catalog_file.unlink()
    assert opened(paths, AUTO) == ("int8", "int8")
