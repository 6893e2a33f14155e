"""`anchord eval` as a command: its input, comparison, output, pictures and errors."""

from __future__ import annotations

import os
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Printed, Shell
from hypothesis import given
from hypothesis import strategies as st

from anchord.config.strategies import STRATEGIES
from anchord.errors import UsageError
from anchord.search.evaluation.chart import render_scatter_svg
from anchord.search.evaluation.questions import GIVEN, HEADING, LINK, EvaluationQuestion, Section
from anchord.search.evaluation.run import (
    load_documents,
    load_evaluation_data,
    read_questions,
    sample_questions,
)

QUICK = ("--strategies", "headers", "--embedded", "heading", "--shares", "")
TEA = "# All about tea\n\n## Make green tea\n\nBoil water.\n\n## Drink it slowly\n\nFrom a cup.\n"
COFFEE = "# All about coffee\n\n## Roast your beans\n\nUntil they crack.\n\nFor leaves see [green](tea.md#make-green-tea) instead.\n"
DEFAULT = [
    "anchored, heading, hybrid", "headers, heading, hybrid", "paragraph, heading, hybrid", "two_stage, heading, hybrid",
    "recursive, heading, hybrid", "window, heading, hybrid", "anchored, content, hybrid", "anchored, path, hybrid",
    "anchored, heading, vector", "anchored, heading, text", "anchored, heading, hybrid 0.5", "anchored, heading, hybrid 0.7",
]  # fmt: skip


def history(shell: Shell, *commits: Mapping[str, str]) -> None:
    """Make a repository of the notes, with these commits."""
    somebody = {
        f"GIT_{who}_{what}": "x@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environment = shell.environment | somebody

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-C", str(shell.notes), *arguments],
            env=environment,
            check=True,
            capture_output=True,
        )

    git("init", "--quiet")
    for texts in commits:
        for name, text in texts.items():
            shell.write(name, text)
        git("add", "--all")
        git("commit", "--quiet", "--message=x")


@pytest.fixture(scope="module")
def drinks(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return one shell for the module over two documents with two edits; its tests change nothing."""
    made = Shell(tmp_path_factory.mktemp("c"))
    before = {"tea.md": TEA.replace("Boil", "Cool"), "coffee.md": COFFEE}
    history(made, before, {"tea.md": TEA.replace("Boil", "Cook")}, {"tea.md": TEA})
    return made


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a shell over the same documents without a history."""
    made = Shell(tmp_path_factory.mktemp("c"))
    made.write("tea.md", TEA)
    made.write("coffee.md", COFFEE)
    return made


def asking(shell: Shell, *lines: str | bytes, option: str = "--json") -> Printed:
    """Ask the questions of a file."""
    (shell.base / "q.jsonl").write_bytes(
        b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
    )
    return shell("eval", "notes", *QUICK, "--questions", "q.jsonl", option)


# The table


@pytest.fixture(scope="module")
def table(drinks: Shell) -> Printed:
    """Return the output of a separate process."""
    return drinks.process("eval", "notes", COLUMNS="80")


def test_a_process_ends_with_0_and_has_nothing_to_complain_of(table: Printed) -> None:
    assert (table.code, table.err) == (0, "")


def test_the_table_fits_80_columns_and_no_figure_is_cut(table: Printed) -> None:
    assert max(map(len, table.out.splitlines())) <= 80
    assert "…" not in table.out


def test_the_table_begins_with_what_was_asked_and_ends_with_what_the_figures_mean(
    table: Printed,
) -> None:
    lines = table.out.splitlines()
    assert lines[0] == "2 documents, 1 link questions, 5 heading questions, 2 edits"
    for name in ("R@k", "MRR", "nDCG", "Cov4k", "an edit"):
        assert any(name in line for line in lines[-3:])


def tables(out: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the figures of a table by the kind of question, the name of the variant, and the name of the column."""
    read: dict[str, dict[str, dict[str, str]]] = {}
    rows: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    for line in map(str.rstrip, out.replace("an edit", "an-edit").splitlines()):
        if line in ("link questions", "heading questions"):
            rows = read[line.split()[0]] = {}
        elif "R@1" in line:
            columns = line.split()[3:]
        elif line.count("  ") > 3:
            cells = line.split()
            rows[" ".join(cells[: -len(columns)])] = dict(
                zip(columns, cells[-len(columns) :], strict=True)
            )
    return read


def test_there_is_a_table_for_each_kind_of_question_with_a_row_for_each_variant(
    table: Printed,
) -> None:
    read = tables(table.out)
    assert list(read) == [LINK, HEADING]
    for rows in read.values():
        assert sorted(rows) == sorted(DEFAULT)
        for figures in rows.values():
            assert {"R@1", "R@5", "MRR", "nDCG", "Cov4k", "an-edit"} <= set(figures)
            assert all(0 <= float(figure) <= 100 for figure in figures.values())


def test_the_table_has_the_figures_of_the_json_in_per_cent(drinks: Shell) -> None:
    read = tables(drinks("eval", "notes", *QUICK).out)
    variants = drinks("eval", "notes", *QUICK, "--json").json["variants"]
    for kind, rows in read.items():
        assert sorted(rows) == sorted(variant["name"] for variant in variants)
        for variant in variants:
            scores, edit = variant["by_kind"][kind], f"{variant['embeds_an_edit']:.2f}"
            named = {
                "R@1": scores["recall"][0],
                "R@5": scores["recall"][1],
                "R@10": scores["recall"][2],
                "MRR": scores["mrr"],
            }
            named |= {"nDCG": scores["ndcg"], "Cov4k": scores["cov4k"]}
            comparison = {name: f"{100 * figure:.1f}" for name, figure in named.items()} | {
                "an-edit": edit
            }
            assert rows[variant["name"]] == {
                name: comparison[name] for name in rows[variant["name"]]
            }


@pytest.mark.parametrize(
    "options",
    [
        ("--strategies", ",".join(STRATEGIES), "--embedded", "", "--shares", ""),
        ("--strategies", "two_stage", "--embedded", "content", "--shares", "0.25"),
    ],
)
def test_any_strategy_and_a_share_of_two_digits_fit_80_columns_too(
    drinks: Shell, options: tuple[str, ...]
) -> None:
    printed = drinks("eval", "notes", *options, COLUMNS="80")
    assert max(map(len, printed.out.splitlines())) <= 80
    assert "…" not in printed.out


@pytest.mark.parametrize("columns", ["100", "80", "0"])
def test_the_table_takes_no_more_room_than_there_is(drinks: Shell, columns: str) -> None:
    printed = drinks("eval", "notes", *QUICK, COLUMNS=columns)
    assert max(map(len, printed.out.splitlines())) <= (int(columns) or 80)
    assert "100.0" in printed.out


@pytest.mark.parametrize(
    "options",
    [
        ("--strategies", "two_stage", "--embedded", "", "--shares", "0.125"),
        (
            "--strategies",
            "headers",
            "--embedded",
            "",
            "--shares",
            "",
            "--models",
            "all-MiniLM-L6-v2",
        ),
    ],
)
def test_no_figure_is_cut_whatever_is_compared(drinks: Shell, options: tuple[str, ...]) -> None:
    printed = drinks("eval", "notes", *options, COLUMNS="80")
    assert max(map(len, printed.out.splitlines())) <= 80
    assert "…" not in printed.out


# JSON


@pytest.fixture(scope="module")
def comparison(drinks: Shell) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON of the whole comparison, and draw it."""
    return drinks("eval", "notes", "--picture", "p.svg", "--json").json


def test_json_has_counts_and_every_variant_with_its_scores(comparison: Any) -> None:  # noqa: ANN401 - JSON
    assert {name: comparison[name] for name in ("documents", "questions", "edits")} == {
        "documents": 2, "questions": {"link": 1, "heading": 5}, "edits": 2,
    }  # fmt: skip
    assert sorted(variant["name"] for variant in comparison["variants"]) == sorted(DEFAULT)
    for variant in comparison["variants"]:
        assert variant["chunks"] > 0
        assert variant["tokens"] > 0
        assert variant["embeds_an_edit"] == 1.0
        for scores in variant["by_kind"].values():
            assert len(scores["recall"]) == 3
            assert all(
                0 <= figure <= 1
                for figure in (*scores["recall"], scores["mrr"], scores["ndcg"], scores["cov4k"])
            )


def test_two_runs_print_the_same(drinks: Shell) -> None:
    assert (
        drinks("eval", "notes", *QUICK, "--json").json
        == drinks("eval", "notes", *QUICK, "--json").json
    )


def names(comparison: Any) -> list[str]:  # noqa: ANN401 - JSON
    return sorted(variant["name"] for variant in comparison["variants"])


@pytest.mark.parametrize(
    ("options", "compared"),
    [
        (QUICK, ["headers, heading, hybrid", "headers, heading, text", "headers, heading, vector"]),
        (
            ("--strategies", " paragraph , headers,headers,", "--embedded", "path,path", "--shares", "1,0.50"),
            ["headers, heading, hybrid", "paragraph, heading, hybrid", "paragraph, heading, hybrid 0.5",
             "paragraph, heading, hybrid 1", "paragraph, heading, text", "paragraph, heading, vector",
             "paragraph, path, hybrid"],
        ),
        (
            ("--strategies", "", "--embedded", "", "--shares", ""),
            ["anchored, heading, hybrid", "anchored, heading, text", "anchored, heading, vector"],
        ),
        (
            (*QUICK, "--models", "all-MiniLM-L6-v2"),
            [f"headers, heading, {mode}, all-MiniLM-L6-v2" for mode in ("hybrid", "text", "vector")],
        ),
    ],
)  # fmt: skip
def test_each_strategy_is_compared_and_of_the_first_each_form_way_and_share_once(
    drinks: Shell, options: tuple[str, ...], compared: list[str]
) -> None:
    assert names(drinks("eval", "notes", *options, "--json").json) == compared


def test_without_a_history_or_where_none_is_wanted_edits_have_no_cost(
    shell: Shell, drinks: Shell
) -> None:
    for printed in (
        shell("eval", "notes", *QUICK, "--json"),
        drinks("eval", "notes", *QUICK, "--json", "--commits", "0"),
    ):
        assert printed.json["edits"] == 0
        assert all(variant["embeds_an_edit"] is None for variant in printed.json["variants"])
    assert "0 edits" in drinks("eval", "notes", *QUICK, "--commits", "0").out


def test_edits_count_of_documents_that_are_still_there(shell: Shell) -> None:
    history(shell, {"old.md": "1", "tea.md": TEA}, {"old.md": "2", "tea.md": f"{TEA}\nMore.\n"})
    assert shell("eval", "notes", *QUICK, "--json").json["edits"] == 2
    os.remove(shell.notes / "old.md")
    assert shell("eval", "notes", *QUICK, "--json").json["edits"] == 1
    assert shell("eval", "notes", *QUICK, "--json", "--commits", "1").json["edits"] <= 1


@pytest.mark.parametrize("most", [1, 2, 4])
def test_at_most_so_many_questions_of_a_kind_are_asked(drinks: Shell, most: int) -> None:
    asked = drinks("eval", "notes", *QUICK, "--json", "--most", str(most)).json["questions"]
    assert asked[LINK] == 1
    assert 1 <= asked[HEADING] <= most


def test_one_document_is_compared_by_itself(drinks: Shell) -> None:
    comparison = drinks("eval", "notes/tea.md", *QUICK, "--json").json
    assert (comparison["documents"], comparison["questions"], comparison["edits"]) == (
        1,
        {"heading": 3},
        0,
    )


def test_nothing_is_left_behind(
    drinks: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert drinks("eval", "notes", *QUICK).code == 0
    before = sorted(drinks.base.rglob("*"))
    assert drinks("eval", "notes", *QUICK).code == 0
    assert list(tmp_path.iterdir()) == []
    assert sorted(drinks.base.rglob("*")) == before
    assert not list(drinks.home.rglob("*.lance"))


# Questions of a file


def test_a_file_asks_by_section_by_path_of_headings_by_lines_and_for_a_whole_document(
    drinks: Shell,
) -> None:
    (drinks.base / "asked.jsonl").write_text(
        '{"question": "how", "path": "tea.md", "section": "Make green tea"}\n'
        "\n"
        '{"question": "how", "path": "tea.md", "section": "All about tea > drink it SLOWLY"}\r\n'
        '{"question": "where", "path": "tea.md", "first": 5}\n'
        '  {"question": "when", "path": "tea.md", "first": 5, "last": 7}  \n'
        '{"question": "who", "path": "tea.md"}'
    )
    found = read_questions(drinks.base / "asked.jsonl", {"tea.md": TEA})
    assert [(each.text, each.kind, each.answer_section.first_line, each.answer_section.last_line, each.source_lines) for each in found] == [
        ("how", GIVEN, 3, 6, None), ("how", GIVEN, 7, 10, None), ("where", GIVEN, 5, 5, None), ("when", GIVEN, 5, 7, None),
        ("who", GIVEN, 1, 10, None),
    ]  # fmt: skip


def test_given_questions_are_asked_beside_the_others(drinks: Shell) -> None:
    printed = asking(
        drinks, '{"question": "boil water", "path": "tea.md", "section": "Make green tea"}'
    )
    assert printed.json["questions"] == {"link": 1, "heading": 5, "given": 1}
    assert all(
        variant["by_kind"]["given"]["recall"][-1] == 1.0 for variant in printed.json["variants"]
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nope", "malformed"),
        ("[]", "array"),
        ("{}", "query"),
        ('{"query": "x"}', "file"),
        ('{"query": 1, "file": "tea.md"}', "query"),
        ('{"query": "x", "file": "tea.md", "also": ["milk.md"]}', "milk.md"),
        ('{"question": "x", "path": "tea.md", "first": "1"}', "first"),
        ('{"question": "x", "path": "tea.md", "first": 1.5}', "first"),
        ('{"question": "x", "path": "tea.md", "line": 1}', "line"),
        ('{"question": "x", "path": "tea.md"} {}', "malformed"),
        ('{"question": "x", "path": "milk.md"}', "milk.md"),
        ('{"question": "x", "path": "../notes/tea.md"}', "../notes/tea.md"),
        ('{"question": "x", "path": "\\u001b[31m"}', "no document"),
        ('{"question": "x", "path": "tea.md", "section": "Milk it"}', "Milk it"),
        ('{"question": "x", "path": "tea.md", "section": "?!"}', "?!"),
        ('{"question": "\\ud800", "path": "tea.md"}', "malformed"),
    ],
)
def test_a_wrong_question_is_refused_with_its_line(drinks: Shell, line: str, said: str) -> None:
    printed = asking(drinks, '{"question": "x", "path": "tea.md"}', "", line)
    printed.is_refused(2, "q.jsonl:3: ", said)
    assert "\x1b" not in printed.err


@pytest.mark.parametrize(
    "line",
    [
        '{"question": "x", "path": "tea.md", "first": 999}',
        '{"question": "x", "path": "tea.md", "first": -3}',
        b'{"question": "\xff", "path": "tea.md"}',
    ],
)
def test_lines_that_are_not_there_and_bytes_that_are_no_text_are_refused_too(
    drinks: Shell, line: str | bytes
) -> None:
    asking(drinks, '{"question": "x", "path": "tea.md"}', line).is_refused(2, "q.jsonl:2: ")


def test_a_question_without_a_section_asks_for_the_whole_document_whatever_its_titles_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "x", "path": "a.md"}')
    (question,) = read_questions(
        tmp_path / "q.jsonl", {"a.md": "# Page\n\n## 🎉\n\nx\n\n## More\n\ny"}
    )
    assert (question.answer_section.first_line, question.answer_section.last_line) == (1, 9)


def test_a_section_is_found_by_its_very_title_before_one_that_is_like_it(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "x", "path": "a.md", "section": "C++"}')
    (question,) = read_questions(
        tmp_path / "q.jsonl", {"a.md": "# Languages\n\n## C\n\nx\n\n## C++\n\ny"}
    )
    assert question.answer_section.title == "C++"


def test_a_file_without_questions_is_named(drinks: Shell) -> None:
    asking(drinks, "", "  ").is_refused(2, "q.jsonl")


# Wrong calls


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "nowhere does not exist"),
        (("",), "does not exist"),
        (("empty",), "holds no markdown"),
        (("notes.txt",), "holds no markdown"),
        (("plain",), "no questions can be made of"),
        (("notes", "--questions", "nowhere.jsonl"), "nowhere.jsonl"),
        (("notes", "--questions", "notes"), "notes"),
        (("notes", "--strategies", "header"), "`headers`"),
        (("notes", "--strategies", "headers,psychic"), "psychic"),
        (("notes", "--strategies", "headers", "--embedded", "psychic"), "content, heading, path"),
        (("notes", "--shares", "half"), "half"),
        (("notes", "--shares", "0.3,1.1"), "1.1"),
        (("notes", "--shares", "-0.1"), "-0.1"),
        (("notes", "--shares", "nan"), "nan"),
        (("notes", "--shares", "inf"), "inf"),
        (("notes", "--most", "0"), "--most"),
        (("notes", "--most", "few"), "--most"),
        (("notes", "--commits", "-1"), "--commits"),
        (("notes", "--models", "psychic", *QUICK), "psychic"),
        (("notes", "notes"), "notes"),
        (("notes", "--psychic"), "--psychic"),
        ((), "DIR|FILE"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(
    drinks: Shell, arguments: tuple[str, ...], said: str
) -> None:
    (drinks.base / "empty").mkdir(exist_ok=True)
    (drinks.base / "plain").mkdir(exist_ok=True)
    (drinks.base / "plain" / "a.md").write_text("No heading, no link.\n")
    (drinks.base / "notes.txt").write_text("# A title of it\n")
    drinks("eval", *arguments).is_refused(2, said)


def test_a_picture_that_cannot_be_written_is_one_line_and_1(drinks: Shell) -> None:
    printed = drinks("eval", "notes", *QUICK, "--picture", "notes")
    printed.has_no_traceback()
    assert (printed.code, printed.err.count("\n")) == (1, 1)
    assert printed.err.startswith("anchord: notes: ")
    assert "; " in printed.err


def test_a_picture_for_a_folder_that_is_not_there_is_refused_before_the_work(drinks: Shell) -> None:
    drinks("eval", "notes", *QUICK, "--picture", "nowhere/p.svg").is_refused(2, "nowhere/p.svg")


# Pictures

_SVG = "{http://www.w3.org/2000/svg}"


def points_of(svg: str) -> dict[str, tuple[float, float]]:
    """Return the places of the points of a well-formed picture by their names."""
    drawn = ET.fromstring(svg)  # noqa: S314 - our own
    titled = [(each.find(f"{_SVG}title"), each) for each in drawn.iter(f"{_SVG}circle")]
    return {
        title.text or "": (float(each.get("cx", "")), float(each.get("cy", "")))
        for title, each in titled
        if title is not None
    }


def texts_of(svg: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(svg).iter(f"{_SVG}text")]  # noqa: S314 - our own


def test_a_picture_shows_each_strategy_and_form_with_what_it_costs(
    drinks: Shell,
    comparison: Any,  # noqa: ANN401 - JSON
) -> None:
    svg = (drinks.base / "p.svg").read_text("utf-8")
    hybrid = [variant for variant in comparison["variants"] if variant["name"].endswith("hybrid")]
    points = points_of(svg)
    assert sorted(points) == sorted(variant["name"] for variant in hybrid)
    by_cov = sorted(hybrid, key=lambda variant: variant["by_kind"]["link"]["cov4k"])
    assert [points[variant["name"]][1] for variant in by_cov] == sorted(
        (y for _, y in points.values()), reverse=True
    )
    assert all(x > 70 for x, _ in points.values())
    assert any("notes" in text for text in texts_of(svg))
    assert set(points) <= set(texts_of(svg))


def test_a_picture_needs_no_history_and_goes_with_the_table(shell: Shell) -> None:
    printed = shell("eval", "notes", *QUICK, "--picture", "p.svg")
    assert (printed.code, "link questions" in printed.out) == (0, True)
    ((name, (x, _)),) = points_of((shell.base / "p.svg").read_text("utf-8")).items()
    assert (name, x) == ("headers, heading, hybrid", 70)


def test_a_folder_may_have_any_name_that_is_text(shell: Shell) -> None:
    named = shell.base / "R&D <b>\"ä'&amp;"
    shell.notes.rename(named)
    assert shell("eval", named.name, *QUICK, "--picture", "p.svg").code == 0
    assert any(
        text.startswith(f"{named.name}: ")
        for text in texts_of((shell.base / "p.svg").read_text("utf-8"))
    )


@pytest.mark.parametrize("name", ["a\x01b", "a\udcffb", "a\x1b[31m"])
def test_a_folder_may_have_any_name_at_all(shell: Shell, name: str) -> None:
    shell.notes.rename(shell.base / name)
    printed = shell("eval", name, *QUICK, "--picture", "p.svg")
    printed.has_no_traceback()
    assert len(points_of((shell.base / "p.svg").read_text("utf-8"))) == 1


def test_a_file_may_have_any_name_at_all(shell: Shell) -> None:
    os.remove(shell.notes / "coffee.md")
    os.rename(shell.notes / "tea.md", os.fsencode(shell.notes) + b"/t\xe9.md")
    (first, *_) = shell("eval", "notes", *QUICK, "--json").json["variants"]
    assert first["by_kind"]["heading"]["recall"][-1] == 1.0


_numbers = st.floats(0, 1e6) | st.just(0.0)
_named = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"),
    min_size=1,
    max_size=20,
)


@given(
    st.dictionaries(_named, st.tuples(_numbers, st.floats(0, 100)), max_size=12),
    _named,
    _named,
    _named,
)
def test_a_picture_is_well_formed_and_holds_every_point_and_name(
    named: dict[str, tuple[float, float]], across: str, up: str, title: str
) -> None:
    svg = render_scatter_svg([(name, x, y) for name, (x, y) in named.items()], across, up, title)
    points = points_of(svg)
    assert list(points) == list(named)
    assert all(70 <= x <= 610 and 40 <= y <= 460 for x, y in points.values())
    assert Counter(texts_of(svg)) >= Counter([*named, across, up, title])


@given(st.lists(st.tuples(_numbers, st.floats(0, 100)), min_size=2, max_size=6))
def test_points_stand_in_the_order_of_their_figures(figures: Sequence[tuple[float, float]]) -> None:
    points = points_of(
        render_scatter_svg([(str(n), x, y) for n, (x, y) in enumerate(figures)], "x", "y", "title")
    )
    for one, (x, y) in enumerate(figures):
        for other, (more_x, more_y) in enumerate(figures):
            assert more_x < x or points[str(one)][0] <= points[str(other)][0]
            assert more_y < y or points[str(one)][1] >= points[str(other)][1]


@pytest.mark.parametrize("count", [1, 11, 33])
def test_every_name_stands_inside_the_picture(count: int) -> None:
    svg = render_scatter_svg([(f"variant {n}", 1.0, 1.0) for n in range(count)], "x", "y", "title")
    _, _, width, height = map(float, str(ET.fromstring(svg).get("viewBox")).split())  # noqa: S314 - our own
    places = [
        (float(each.get("x", "")), float(each.get("y", "")))
        for each in ET.fromstring(svg).iter(f"{_SVG}text")  # noqa: S314
    ]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in places)


# Documents, and the questions that are used


def test_documents_are_the_markdown_of_a_folder_but_for_what_git_ignores(tmp_path: Path) -> None:
    names = (
        "a.md",
        "b.MARKDOWN",
        "deep/er/c.mdx",
        "d.qmd",
        "ignored.md",
        "skipped/e.md",
        "f.txt",
        "g.py",
        "h.ipynb",
        "README",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A title of it\r\n")
    (tmp_path / ".gitignore").write_text("ignored.md\nskipped/\n")
    (tmp_path / "binary.md").write_bytes(b"\0\1\2\3" * 99)
    (tmp_path / "empty.md").write_bytes(b"")
    (tmp_path / "link.md").symlink_to("a.md")
    found = load_documents(str(tmp_path))
    assert sorted(found) == ["a.md", "b.MARKDOWN", "d.qmd", "deep/er/c.mdx", "empty.md"]
    assert found["a.md"] == "# A title of it\n"
    assert load_documents(str(tmp_path / "deep" / "er" / "c.mdx")) == {"c.mdx": "# A title of it\n"}


@pytest.mark.parametrize("name", ["f.txt", "h.ipynb", "nowhere.md", "pipe.md"])
def test_what_is_no_markdown_document_is_refused(tmp_path: Path, name: str) -> None:
    for other in ("f.txt", "h.ipynb"):
        (tmp_path / other).write_text("{}")
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(UsageError) as caught:
        load_documents(str(tmp_path / name))
    assert caught.value.hint


def test_the_material_is_documents_questions_and_edits(
    drinks: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("GIT_DIR", raising=False)
    material = load_evaluation_data(str(drinks.notes), "", 1, 300)
    assert dict(material.documents) == {"tea.md": TEA, "coffee.md": COFFEE}
    assert [question.kind for question in material.questions] == [LINK, *[HEADING] * 5]
    assert list(material.edits) == [("tea.md", TEA.replace("Boil", "Cook"), TEA)]


_questions = st.lists(st.sampled_from([LINK, HEADING, GIVEN]), min_size=9, max_size=60).map(
    lambda kinds: [
        EvaluationQuestion(
            str(n), kind, Section(path="a.md", title="", anchors=(), first_line=1, last_line=1)
        )
        for n, kind in enumerate(kinds)
    ]
)


@given(_questions, st.integers(1, 9) | st.integers(1, 70))
def test_questions_are_kept_from_all_over_and_at_most_so_many_of_a_kind(
    questions: list[EvaluationQuestion], most: int
) -> None:
    kept = sample_questions(questions, most)
    for kind in (LINK, HEADING, GIVEN):
        of_all, some = (
            [each for each in asked if each.kind == kind] for asked in (questions, kept)
        )
        assert len(some) <= most
        assert len(some) * 2 >= min(most, len(of_all))
        places = [of_all.index(each) for each in some]
        assert places == sorted(set(places))
        if of_all:
            assert places[0] == 0
            assert len(of_all) - places[-1] <= len(of_all) / most + 1
        if len(of_all) <= most:
            assert some == of_all
    assert len(kept) == len(set(kept))
