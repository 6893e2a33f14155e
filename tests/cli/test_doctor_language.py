"""`doctor` says when much of the text is not in the language of an English model."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from cli.conftest import Shell

from anchord.config.file import load_config
from anchord.config.paths import find_paths
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.daemon.language_check import check_languages

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
    assert "% of your text is not in English" in finding.observation
    assert "`model` under [embedding]" in finding.remedy


@pytest.mark.parametrize(
    "config", ["", '[embedding]\nprovider = "hash"\n', '[embedding]\nmodel = "/m"\n']
)
def test_nothing_is_told_of_english_text_or_another_model(shell: Shell, config: str) -> None:
    index_documents(shell, *(("Russian", "Japanese") if config else ("English",)))
    assert found_by_check(shell, config or DEFAULT_MODEL) == []
