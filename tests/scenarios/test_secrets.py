"""What a change of the rules for secrets costs: only chunks whose text changes are embedded."""

from __future__ import annotations

from dataclasses import replace

from scenarios.conftest import COUNT, Index
from sources.secrets.examples import filled

from anchord.core.types import Action
from anchord.index.indexer import Indexer

TOKEN = filled("ghp_{36}")
PARAGRAPH = " ".join(f"word{number}" for number in range(150))


def with_rules(index: Index, rules: str) -> None:
    """Continue with other rules, as another version of anchord does."""
    index.recipe = replace(index.recipe, redaction_identity=rules, _digests={})
    index.indexer = Indexer(index.indexer._dependencies, COUNT, index.recipe)


def test_redacting_embeds_the_chunks_with_a_secret_and_moves_no_other_id(index: Index) -> None:
    index.write("clean.md", f"# A\n\n{PARAGRAPH}\n")
    index.write("dirty.md", f"# B\n\n{PARAGRAPH * 4}\n\n# C\n\n{PARAGRAPH} {TOKEN} for it.\n")
    index.sync()
    before = {row.id: row.text for row in index.store.all_rows()}
    with_rules(index, "secrets 1")
    index.sync()
    after = {row.id: row.text for row in index.store.all_rows()}
    assert {text for text in after.values() if TOKEN in text} == set()
    kept = {row_id for row_id, text in before.items() if TOKEN not in text}
    assert kept <= after.keys()
    assert len(after) == len(before)
    assert index.verify().differences == ()


def test_new_rules_read_every_file_once_and_embed_nothing_where_no_text_changes(
    index: Index,
) -> None:
    index.write("clean.md", f"# A\n\n{PARAGRAPH}\n")
    index.write("dirty.md", f"# B\n\nUse {TOKEN} for it.\n")
    with_rules(index, "secrets 1")
    index.sync()
    embedded = index.embedder.embedded
    with_rules(index, "secrets 2")
    due = index.indexer.reconcile("tree").paths_due
    assert {path.path for path in due} == {"clean.md", "dirty.md"}
    list(index.indexer.index(due))
    assert index.embedder.embedded == embedded


def test_a_file_of_key_material_is_left_out_and_named(index: Index) -> None:
    body = "\n".join(filled("{64b}", str(line)) for line in range(6))
    index.write("server.txt", f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    with_rules(index, "secrets 1")
    (outcome,) = index.sync()
    assert outcome.action is Action.FAILED
    assert [failure.problem.reason for failure in index.catalogue.list_failures()] == [
        "holds mostly secrets: not indexed"
    ]
    assert list(index.store.all_rows()) == []
