"""Laws that hold for every strategy, with any sizes, and for any document; and hostile texts in bounded time."""

from __future__ import annotations

import pytest
from documents import documents
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anchord.chunkers import chunk
from anchord.chunkers.check import check
from anchord.chunkers.layout import Count
from anchord.chunkers.plan import Plan
from anchord.core.recipe import plan_of
from anchord.model import Chunk, Document
from anchord.settings import STRATEGIES, Value, effective, unheeded

_SIZES: dict[str, st.SearchStrategy[Value]] = {
    "max_chars": st.integers(64, 2_000),
    "min_chars": st.integers(0, 400),
    "overlap_chars": st.integers(0, 900),
    "max_chunk_tokens": st.integers(64, 600),
    "overlap_tokens": st.integers(0, 300),
    "min_chunk_tokens": st.integers(0, 300),
    "keep_code_blocks_intact": st.booleans(),
    "rule_ends_exchange": st.booleans(),
}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Give a plan of any strategy, "whole" among them, with any of the sizes that it heeds."""
    name = draw(st.sampled_from([*STRATEGIES, "whole"]))
    given: dict[str, Value] = {"enabled": False} if name == "whole" else {"strategy": name}
    for key, sizes in _SIZES.items():
        if key in STRATEGIES.get(name, {}) and draw(st.booleans()):
            given[key] = draw(sizes)
    return plan_of(254, effective(given))


_talk = st.lists(st.sampled_from(["> a question of some words", "an answer", "---", "", "```", "# heading"]), max_size=30).map(
    "\n".join
)
_texts = st.one_of(documents, _talk, documents.map(lambda text: text.replace("\n\n", "\n")))
_kinds = st.sampled_from(["markdown", "text", "code"])


def without_blanks(text: str) -> str:
    return "".join(text.split())


def clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def document(text: str, kind: str) -> Document:
    return Document(clean(text), kind)


@settings(deadline=None, max_examples=200)
@given(text=_texts, kind=_kinds, plan=plans())
@example(text="# a\n# b\n```\n", kind="markdown", plan=plan_of(254, effective({"strategy": "sentences"})))
@example(
    text="> words of a quote\n" * 12 + "---\n```\n---\n```",
    kind="markdown",
    plan=plan_of(254, effective({"max_chunk_tokens": 64})),
)
@example(
    text="###### " + "river " * 8 + "\n\n```py\nriver\n" + "river " * 8 + "\n```\n\n## river",
    kind="markdown",
    plan=plan_of(254, effective({"max_chunk_tokens": 64})),
)
def test_no_law_is_broken(count: Count, text: str, kind: str, plan: Plan) -> None:
    made = document(text, kind)
    figures = check(made, chunk(made, plan, count, "k"), plan, count)
    assert not figures.breaks(plan), figures


@settings(deadline=None)
@given(text=_texts, kind=_kinds, plan=plans())
def test_the_slices_joined_are_the_text_up_to_blanks(count: Count, text: str, kind: str, plan: Plan) -> None:
    joined, reached = "", 0
    for piece in chunk(document(text, kind), plan, count):
        joined += clean(text)[max(reached, piece.start_char) : piece.end_char]
        reached = max(reached, piece.end_char)
    assert without_blanks(joined) == without_blanks(text)


@settings(deadline=None)
@given(text=_texts, kind=_kinds, plan=plans())
def test_the_content_is_the_slice_but_for_what_is_repeated_around_it(count: Count, text: str, kind: str, plan: Plan) -> None:
    for piece in chunk(document(text, kind), plan, count):
        source = clean(text)[piece.start_char : piece.end_char]
        assert source in piece.content if piece.is_part else source == piece.content


@settings(deadline=None)
@given(text=_texts, kind=_kinds, plan=plans())
def test_the_same_text_gives_the_same_chunks_with_the_models_count(count: Count, text: str, kind: str, plan: Plan) -> None:
    chunks = chunk(document(text, kind), plan, count)
    assert chunks == chunk(document(text, kind), plan, count)
    assert [piece.tokens for piece in chunks] == count([piece.embed_text for piece in chunks])


@settings(deadline=None)
@given(text=_texts, plan=plans().filter(lambda plan: plan.strategy not in ("anchored", "exchange")))
def test_an_id_is_that_of_the_chunk_wherever_it_stands(count: Count, text: str, plan: Plan) -> None:
    """Their lines count from the chunk's own first one: what stands above moves cuts, but never an id where it does not."""
    for piece in chunk(document(text, "text"), plan, count):
        assert piece.anchor_line == piece.start_line


HOSTILE = {
    "one word": "x" * 1_000_000,
    "one line": "word and more, " * 60_000,
    "equal items": "- item same text here\n" * 20_000,
    "nested quotes": "> " * 50_000 + "x",
    "blank": "\n" * 200_000 + "x",
    "headings": "# a\n" * 10_000,
    "fences": "```\na\n```\n" * 5_000,
    "CJK sentences": "他来了。" * 40_000,
    "dots": "a. " * 100_000,
    "turns": "> q\nanswer\n" * 5_000,
    "rules": "---\n" * 20_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("strategy", [*STRATEGIES, "whole"])
def test_hostile_text_is_cut_like_any_other(count: Count, strategy: str, text: str) -> None:
    plan = plan_of(254, effective({"enabled": False} if strategy == "whole" else {"strategy": strategy}))
    chunks: list[Chunk] = chunk(Document(text, "markdown"), plan, count)
    assert chunks
    assert max(piece.tokens for piece in chunks) <= plan.limits.window


# The table of the keys


def test_every_strategy_heeds_its_own_keys_and_names_the_others() -> None:
    for name, keys in STRATEGIES.items():
        assert unheeded({"strategy": name, **dict.fromkeys(keys, 100)}) == []
    assert unheeded({"strategy": "sentences", "max_chars": 100, "overlap_tokens": None}) == ["max_chars"]


def test_what_is_given_goes_before_the_default_and_none_is_not_given() -> None:
    chosen = effective({"strategy": "window", "max_chars": 900, "overlap_chars": None, "overlap_tokens": 7})
    assert chosen == {
        "strategy": "window", "max_chars": 900, "overlap_chars": 100, "min_chars": 50, "max_chunk_tokens": None,
        "max_heading_level_for_path": 6, "extract": None, "summaries": None,
    }  # fmt: skip


def test_the_names_of_the_seeds_stand_for_ours() -> None:
    given: dict[str, Value] = {"chunk_size": 300, "chunk_overlap": 30}
    chosen = {name: effective({"strategy": name, **given}) for name in ("window", "recursive", "two_stage")}
    assert (chosen["window"]["max_chars"], chosen["window"]["overlap_chars"]) == (300, 30)
    assert (chosen["recursive"]["max_chars"], chosen["recursive"]["overlap_chars"]) == (300, 30)
    assert (chosen["two_stage"]["max_chunk_tokens"], chosen["two_stage"]["overlap_tokens"]) == (300, 30)


def test_a_plan_never_goes_beyond_the_window() -> None:
    assert plan_of(254, effective({"strategy": "two_stage"})).limits.window == 254
    assert plan_of(510, effective({"strategy": "two_stage"})).limits.window == 448
    assert plan_of(40, effective({"strategy": "semantic", "overlap_tokens": 500})).overlap_tokens <= 8
