"""`doctor` says when much of the text is not in the language of an English model."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from cli.conftest import Shell

from anchord.config.file import load_config
from anchord.config.paths import find_paths
from anchord.daemon import language_check as module
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.daemon.language_check import check_languages
from anchord.embedding.model_files import find_model

SAMPLES = tomllib.loads(
    (Path(__file__).parents[1] / "search" / "languages.toml").read_text("utf-8")
)
DEFAULT_MODEL = '[embedding]\nprovider = "sentence-transformers"\n'


def found_by_check(shell: Shell, config: str) -> list[Finding]:
    """Check an index of one chunk a document as if it were made with another model."""
    paths = find_paths({"ANCHORD_HOME": str(shell.home)})
    paths.config_file.write_text(config, "utf-8")
    context = CheckContext(
        paths=paths,
        config=load_config(paths.config_file),
        roots=(),
        is_running=False,
        daemon_status=None,
        environment={},
    )
    return list(check_languages(context))


def index_documents(shell: Shell, *languages: str) -> None:
    shell.configure("[[root]]", f'path = "{shell.notes}"')
    for language in languages:
        for name, text in SAMPLES[language]["documents"].items():
            for copy in range(2):
                shell.write(f"{language}{copy}/{name}.md", f"{text} ({copy})\n")
    assert shell("index").code == 0


def test_much_text_in_other_languages_is_told_with_a_remedy(shell: Shell) -> None:
    index_documents(shell, "English", "Russian", "Japanese")
    (finding,) = found_by_check(shell, DEFAULT_MODEL)
    assert finding.health is Health.DOUBTFUL
    assert "is not in a language that the model all-MiniLM-L6-v2 knows (" in finding.observation
    assert "Japanese 3" in finding.observation
    assert "Russian 2" in finding.observation
    assert "`model` under [embedding]" in finding.remedy


def test_nothing_is_told_of_english_text_or_without_a_model(shell: Shell) -> None:
    index_documents(shell, "English")
    assert found_by_check(shell, DEFAULT_MODEL) == []
    assert found_by_check(shell, '[embedding]\nprovider = "hash"\n') == []


@pytest.mark.parametrize(
    ("card", "told"),
    [
        ("---\nlanguage: en\n---\n# A model\n", ["Russian", "Japanese"]),
        ("---\nlicense: mit\nlanguage:\n- en\n- ja\ntags: []\n---\n", ["Russian"]),
        ("---\nlanguage: [ru, ja-JP, en]\n---\n", []),
        ("---\nlanguage: multilingual\n---\n", []),
        ("# A model\nlanguage: en\n", []),
        (None, []),
    ],
)
def test_the_card_of_a_model_says_what_it_knows(
    shell: Shell, tmp_path: Path, card: str | None, told: list[str]
) -> None:
    bundled, folder = find_model("all-MiniLM-L6-v2").folder, tmp_path / "mine"
    folder.mkdir()
    for file in bundled.iterdir():
        if file.name != "README.md":
            (folder / file.name).symlink_to(file)
    if card is not None:
        (folder / "README.md").write_text(card)
    index_documents(shell, "English", "Russian", "Japanese")
    found = found_by_check(shell, f'[embedding]\nmodel = "{folder}"\n')
    languages = [name for name in ("Russian", "Japanese") if name in str(found)]
    assert languages == told


def test_the_first_index_says_it_and_the_next_does_not(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = Finding("language", Health.DOUBTFUL, "38 % of your text", "set a model")
    monkeypatch.setattr(module, "find_unknown_languages", lambda *_: finding)
    shell.configure("[[root]]", f'path = "{shell.notes}"')
    shell.write("a.md", "# Cats\n")
    assert shell("index").err == "38 % of your text; set a model\n"
    assert shell("index").err == ""
