"""The rules of the seeds for search and store, through the commands; names have the row's number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lancedb
import pytest
from cli.conftest import BuiltOnce, Shell
from conversations.conftest import claude

from anchord.embedding.hash_embedder import HashEmbedder

SOUP = (
    "# Soup\n\nA word on soup. And another.\n\n## Onions\n\nSimmer the onions slowly. Stir them.\n\n"
    "## Salt at last\n\nAdd salt to the onions at the end.\n"
)
BREAD = "# Bread\n\nA word on bread.\n\n## Onions\n\nOnions can go into bread.\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index_two_documents)


@pytest.fixture
def kitchen(built: BuiltOnce) -> Shell:
    """Return an index of two documents that share words; each section is one chunk."""
    return built.fresh()


def index_two_documents(shell: Shell) -> None:
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'strategy = "headers"')
    shell.write("soup.md", SOUP)
    shell.write("deep/bread.md", BREAD)
    assert shell("index").code == 0


def groups(printed: Any) -> list[list[dict[str, Any]]]:  # noqa: ANN401 - what a command printed
    found: list[list[dict[str, Any]]] = printed.json["groups"]
    return found


def rows(shell: Shell) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell("dump").out.splitlines()]


def seen(shell: Shell) -> dict[Path, tuple[bytes, int]]:
    files = (path for path in shell.notes.rglob("*") if path.is_file())
    return {
        path.relative_to(shell.notes): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in files
    }


def table(shell: Shell) -> Any:  # noqa: ANN401 - lancedb ships no types
    return lancedb.connect(str(shell.home / "data" / "lance")).open_table("chunks")


def test_002_01_chunks_live_in_the_table_alone_and_files_stay_untouched(kitchen: Shell) -> None:
    before = {
        path.relative_to(kitchen.notes): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in kitchen.notes.rglob("*.md")
    }
    kitchen("search", "onions")
    kitchen("index")
    after = {
        path.relative_to(kitchen.notes): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in kitchen.notes.rglob("*.md")
    }
    assert (
        before
        == after
        == {
            Path("soup.md"): before[Path("soup.md")],
            Path("deep/bread.md"): before[Path("deep/bread.md")],
        }
    )
    assert not [path for path in kitchen.notes.rglob("*") if path.suffix not in ("", ".md")]


def test_002_16_003_26_a_file_that_goes_takes_its_rows_by_its_path_and_no_others(
    kitchen: Shell,
) -> None:
    kitchen.write("deep/bread.md.md", BREAD)
    kitchen("index")
    (kitchen.notes / "deep" / "bread.md").unlink()
    assert kitchen("index").code == 0
    assert {row["path"] for row in rows(kitchen)} == {"soup.md", "deep/bread.md.md"}


def test_002_17_18_hits_come_by_file_the_best_first_and_none_is_dropped(kitchen: Shell) -> None:
    found = groups(kitchen("search", "onions", "--mode", "text", "--json"))
    assert sorted(group[0]["path"] for group in found) == ["deep/bread.md", "soup.md"]
    (soup,) = [group for group in found if group[0]["path"] == "soup.md"]
    assert {hit["section"] for hit in soup} == {"Soup > Onions", "Soup > Salt at last"}
    assert [hit["score"] for hit in soup] == sorted((hit["score"] for hit in soup), reverse=True)
    flat = groups(kitchen("search", "onions", "--mode", "text", "--show-chunks", "--json"))
    assert all(len(group) == 1 for group in flat)
    assert sorted(hit["id"] for (hit,) in flat) == sorted(
        hit["id"] for group in found for hit in group
    )
    assert (
        len(
            groups(
                kitchen("search", "onions", "--mode", "text", "--show-chunks", "-k", "2", "--json")
            )
        )
        == 2
    )


def test_002_19_json_has_every_field_of_a_chunk(kitchen: Shell) -> None:
    ((hit, *_), *_) = groups(kitchen("search", "simmer slowly", "--mode", "text", "--json"))
    (row,) = [row for row in rows(kitchen) if row["id"] == hit["id"]]
    assert {name: hit[name] for name in row} == row | {
        "file": str(kitchen.notes / "soup.md"),
        "vector_key": None,
    }
    assert hit["chunk_index"] == [
        each["id"] for each in rows(kitchen) if each["path"] == "soup.md"
    ].index(hit["id"])
    assert hit["strategy"] == "headers"
    assert hit["locator"] == f"soup.md#Onions#{hit['chunk_index']}"


def test_002_20_21_22_a_mismatch_of_the_strategy_is_shown_and_reindex_chunks_again(
    kitchen: Shell,
) -> None:
    before = rows(kitchen)
    kitchen.configure("[[root]]", f'path = "{kitchen.notes}"', 'strategy = "sentences"')
    assert kitchen("explain", "notes/soup.md", "--json").json["reason"] == "the recipe changed"
    assert rows(kitchen) == [row | {"strategy": "sentences"} for row in before]
    assert groups(kitchen("search", "onions", "--mode", "text", "--json"))
    assert kitchen("reindex", "--force-rechunk").code == 0
    assert len(rows(kitchen)) > len(before)
    assert kitchen("verify").code == 0


def test_002_23_the_words_are_found_as_the_files_are_now(kitchen: Shell) -> None:
    kitchen.write("soup.md", SOUP.replace("Simmer", "Fry"))
    kitchen("index")
    assert groups(kitchen("search", "simmer", "--mode", "text", "--json")) == []
    ((hit,),) = groups(kitchen("search", "fry", "--mode", "text", "--json"))
    assert hit["path"] == "soup.md"
    (words,) = table(kitchen).search("fry").limit(5).to_list()
    assert words["id"] == hit["id"]


def test_002_24_strategies_are_judged_by_how_well_sections_are_found(kitchen: Shell) -> None:
    answer = kitchen(
        "eval",
        "notes",
        "--strategies",
        "anchored,headers",
        "--embedded",
        "heading",
        "--shares",
        "",
        "--json",
    ).json
    assert answer["questions"] == {"heading": 1}
    assert [
        variant["by_kind"]["heading"]["recall"][0]
        for variant in answer["variants"]
        if variant["variant"]["mode"] == "text"
    ] == [1.0]
    assert {variant["variant"]["strategy"] for variant in answer["variants"]} == {
        "anchored",
        "headers",
    }


def test_003_33_a_search_is_kept_below_headings(kitchen: Shell) -> None:
    found = groups(kitchen("search", "onions", "--section", "soup > onions", "--json"))
    assert [hit["section"] for group in found for hit in group] == ["Soup > Onions"]
    assert {
        hit["path"]
        for group in groups(kitchen("search", "onions", "--section", "Onions", "--json"))
        for hit in group
    } == {
        "soup.md",
        "deep/bread.md",
    }


def test_004_11_12_all_parts_of_a_turn_come_in_order_and_as_one_group(shell: Shell) -> None:
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"')
    long = "\n\n".join(
        f"Paragraph {n} tells at some length about onions and matter {n * 17}." * 4
        for n in range(12)
    )
    shell.write("s.jsonl", claude(("Tell me of onions.", long)))
    assert shell("index").code == 0
    (group,) = groups(shell("search", "onions", "--json"))
    shown = shell("show", group[0]["id"], "--whole", "--json").json["chunks"]
    assert [chunk["part_index"] for chunk in shown] == list(range(shown[0]["total_parts"]))
    assert len({chunk["exchange_id"] for chunk in shown}) == 1
    assert len(shown) > 2


def test_001_19_one_command_takes_a_folder_in(shell: Shell) -> None:
    shell.write("a/soup.md", SOUP)
    shell.write("bread.md", BREAD)
    done = shell("index", str(shell.notes), "--json").json
    assert done["files"] == 2
    assert {row["path"] for row in rows(shell)} == {"a/soup.md", "bread.md"}


def test_000_22_23_what_is_stored_is_what_was_said_and_not_the_form_of_the_export(
    shell: Shell,
) -> None:
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"')
    shell.write("s.jsonl", claude(("How long does rye rise?", "Two hours, *at least*.")))
    assert shell("index").code == 0
    (row,) = rows(shell)
    assert row["text"] == "How long does rye rise?\n\nTwo hours, *at least*."
    assert row["kind"] == "exchange"


def test_000_24_a_hit_names_its_root_its_room_and_its_file(shell: Shell) -> None:
    shell.write("architecture/soup.md", SOUP)
    shell.write("bread.md", BREAD)
    assert shell("index", str(shell.notes)).code == 0
    ((hit, *_),) = groups(shell("search", "onions", "--room", "architecture", "--json"))
    assert (hit["root"], hit["room"], hit["path"]) == (
        "notes", "architecture", "architecture/soup.md",
    )  # fmt: skip


@pytest.mark.parametrize(("most", "overlap"), [(64, 0), (128, 0), (128, 40)])
def test_002_05_06_sizes_of_sentences_in_tokens_are_those_of_the_configuration(
    shell: Shell, most: int, overlap: int
) -> None:
    sizes = (f"max_chunk_tokens = {most}", f"overlap_tokens = {overlap}")
    shell.configure("[chunking]", 'strategy = "semantic"', *sizes)
    text = " ".join(f"Sentence number {n} is about the river." for n in range(60))
    file = shell.write("river.md", text)
    chunks = shell("chunk", file, "--json").json
    # Some of a chunk's tokens are kept free for its headings.
    assert most // 4 < max(chunk["token_count"] for chunk in chunks) <= most
    repeated = sum(len(chunk["text"]) for chunk in chunks) - len(text)
    assert (repeated > 0) is (overlap > 0)


def test_003_08_check_says_how_whole_fences_are(shell: Shell) -> None:
    long = "# A\n\n```sh\n" + "echo one two three four\n" * 200 + "```\n\nWords.\n"
    checked = shell("chunk", shell.write("long.md", long), "--check", "--json").json
    assert checked["chunks"] > 2
    assert (checked["unbalanced_fences"], checked["integrity"]) == (0, 1.0)
    assert checked["ok"]


def test_003_28_29_texts_are_embedded_apart_from_chunking_and_many_at_once(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    embed = HashEmbedder.embed

    def count(embedder: HashEmbedder, texts: Sequence[str], *, is_query: bool = False) -> Any:  # noqa: ANN401 - vectors
        sizes.append(len(texts))
        return embed(embedder, texts, is_query=is_query)

    monkeypatch.setattr(HashEmbedder, "embed", count)
    for number in range(60):
        shell.write(f"{number}.md", f"# Note {number}\n\nSomething about river {number}.\n")
    assert shell("index", str(shell.notes), "--json").json["embedded"] == 60
    assert sum(sizes) == 60
    assert len(sizes) <= 6


def test_004_08_09_10_13_a_part_of_an_exchange_says_of_which_and_the_how_manieth(
    shell: Shell,
) -> None:
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"')
    long = "\n\n".join(f"Paragraph {n} is about rye and " + "bread " * 60 for n in range(12))
    shell.write("s.jsonl", claude(("First?", "Short."), ("Second?", long), session="s1"))
    assert shell("index").code == 0
    parts = sorted(
        (row for row in rows(shell) if "Paragraph" in row["text"]),
        key=lambda row: int(row["part_index"]),
    )
    assert len(parts) > 2
    assert [part["part_index"] for part in parts] == list(range(len(parts)))
    assert {part["total_parts"] for part in parts} == {len(parts)}
    assert len({(part["session"], part["exchange_id"]) for part in parts}) == 1
    ((hit, *_), *_) = groups(shell("search", "rye", "--session", "s1", "--json"))
    assert (hit["turn"], hit["session"]) == (2, "s1")
    assert hit["at"].startswith("20")


def test_004_18_rebuild_chunks_and_embeds_everything_again(kitchen: Shell) -> None:
    before = rows(kitchen)
    done = kitchen("rebuild", "--json").json
    assert done["embedded"] == len({row["vector_key"] for row in before})
    assert rows(kitchen) == before
