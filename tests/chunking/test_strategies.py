"""Laws of every strategy, for any sizes and any document; hostile texts take bounded time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from documents import documents
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import CountTokens
from anchord.chunking.plan import Plan, build_plan
from anchord.chunking.validate import check_chunks
from anchord.config.strategies import STRATEGIES, OptionValue, ignored_keys, with_strategy_defaults
from anchord.core.types import Chunk, Document

_SIZES: dict[str, st.SearchStrategy[OptionValue]] = {
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
    """Draw a plan of any strategy, "whole" among them, with any of the sizes that it uses."""
    name = draw(st.sampled_from([*STRATEGIES, "whole"]))
    given: dict[str, OptionValue] = {"enabled": False} if name == "whole" else {"strategy": name}
    for key, sizes in _SIZES.items():
        if key in STRATEGIES.get(name, {}) and draw(st.booleans()):
            given[key] = draw(sizes)
    return build_plan(254, with_strategy_defaults(given))


_talk = st.lists(
    st.sampled_from(["> a question of some words", "an answer", "---", "", "```", "# heading"]),
    max_size=30,
).map("\n".join)
_texts = st.one_of(documents, _talk, documents.map(lambda text: text.replace("\n\n", "\n")))
_kinds = st.sampled_from(["markdown", "text", "code"])


def without_blanks(text: str) -> str:
    return "".join(text.split())


def clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def document(text: str, kind: str) -> Document:
    return Document(text=clean(text), kind=kind)


@settings(deadline=None, max_examples=4 * settings().max_examples)
@given(text=_texts, kind=_kinds, plan=plans())
@example(
    text="# a\n# b\n```\n",
    kind="markdown",
    plan=build_plan(254, with_strategy_defaults({"strategy": "sentences"})),
)
@example(
    text="> words of a quote\n" * 12 + "---\n```\n---\n```",
    kind="markdown",
    plan=build_plan(254, with_strategy_defaults({"max_chunk_tokens": 64})),
)
@example(
    text="###### " + "river " * 8 + "\n\n```py\nriver\n" + "river " * 8 + "\n```\n\n## river",
    kind="markdown",
    plan=build_plan(254, with_strategy_defaults({"max_chunk_tokens": 64})),
)
def test_no_law_is_broken(count: CountTokens, text: str, kind: str, plan: Plan) -> None:
    made = document(text, kind)
    figures = check_chunks(made, split_into_chunks(made, plan, count, "k"), plan, count)
    assert not figures.has_violations(plan), figures


@settings(deadline=None)
@given(text=_texts, kind=_kinds, plan=plans())
def test_the_slices_joined_are_the_text_up_to_blanks(
    count: CountTokens, text: str, kind: str, plan: Plan
) -> None:
    joined, reached = "", 0
    for piece in split_into_chunks(document(text, kind), plan, count):
        joined += clean(text)[max(reached, piece.start_char) : piece.end_char]
        reached = max(reached, piece.end_char)
    assert without_blanks(joined) == without_blanks(text)


@settings(deadline=None)
@given(text=_texts, kind=_kinds, plan=plans())
def test_the_content_is_the_slice_but_for_what_is_repeated_around_it(
    count: CountTokens, text: str, kind: str, plan: Plan
) -> None:
    for piece in split_into_chunks(document(text, kind), plan, count):
        source = clean(text)[piece.start_char : piece.end_char]
        assert source in piece.content if piece.is_partial_block else source == piece.content


@settings(deadline=None)
@given(text=_texts, kind=_kinds, plan=plans())
def test_the_same_text_gives_the_same_chunks_with_the_models_count(
    count: CountTokens, text: str, kind: str, plan: Plan
) -> None:
    chunks = split_into_chunks(document(text, kind), plan, count)
    assert chunks == split_into_chunks(document(text, kind), plan, count)
    assert [piece.token_count for piece in chunks] == count([piece.embed_text for piece in chunks])


@settings(deadline=None)
@given(text=_texts, plan=plans().filter(lambda plan: plan.strategy not in ("anchored", "exchange")))
def test_an_id_is_that_of_the_chunk_wherever_it_stands(
    count: CountTokens, text: str, plan: Plan
) -> None:
    """Lines count from the chunk's first line: text above can move a cut, but changes no id elsewhere."""
    for piece in split_into_chunks(document(text, "text"), plan, count):
        assert piece.anchor_line == piece.start_line


HOSTILE = {
    "one word": ("x", 1_000_000, ""),
    "one line": ("word and more, ", 60_000, ""),
    "equal items": ("- item same text here\n", 20_000, ""),
    "nested quotes": ("> ", 50_000, "x"),
    "blank": ("\n", 200_000, "x"),
    "headings": ("# a\n", 10_000, ""),
    "fences": ("```\na\n```\n", 5_000, ""),
    "CJK sentences": ("他来了。", 40_000, ""),
    "dots": ("a. ", 100_000, ""),
    "turns": ("> q\nanswer\n", 5_000, ""),
    "rules": ("---\n", 20_000, ""),
}
"""Name -> the unit that is repeated, how often, and what comes after it."""
DIVISOR = 16
"""By default they get a sixteenth of a text, and the whole as a slow test. `test_laws` gives the default strategy larger ones."""


def hostile_cases() -> Iterator[object]:
    """Yield each strategy with each text and the number that its length is divided by."""
    for strategy in (*STRATEGIES, "whole"):
        for name in HOSTILE:
            yield pytest.param(strategy, name, DIVISOR, id=f"{strategy}-a sixteenth of {name}")
            yield pytest.param(strategy, name, 1, id=f"{strategy}-{name}", marks=pytest.mark.slow)


@pytest.mark.parametrize(("strategy", "name", "divisor"), list(hostile_cases()))
def test_hostile_text_is_cut_like_any_other(
    count: CountTokens, strategy: str, name: str, divisor: int
) -> None:
    unit, times, end = HOSTILE[name]
    text = unit * (times // divisor) + end
    plan = build_plan(
        254,
        with_strategy_defaults(
            {"enabled": False} if strategy == "whole" else {"strategy": strategy}
        ),
    )
    chunks: list[Chunk] = split_into_chunks(Document(text=text, kind="markdown"), plan, count)
    assert chunks
    assert max(piece.token_count for piece in chunks) <= plan.limits.window


# The table of the keys


def test_every_strategy_uses_its_own_keys_and_names_the_others() -> None:
    for name, keys in STRATEGIES.items():
        assert ignored_keys({"strategy": name, **dict.fromkeys(keys, 100)}) == []
    assert ignored_keys({"strategy": "sentences", "max_chars": 100, "overlap_tokens": None}) == [
        "max_chars"
    ]


def test_what_is_given_goes_before_the_default_and_none_is_not_given() -> None:
    chosen = with_strategy_defaults(
        {"strategy": "window", "max_chars": 900, "overlap_chars": None, "overlap_tokens": 7}
    )
    assert chosen == {
        "strategy": "window", "max_chars": 900, "overlap_chars": 100, "min_chars": 50, "max_chunk_tokens": None,
        "max_heading_level_for_path": 6, "extract": None, "summaries": None,
    }  # fmt: skip


def test_the_names_of_the_seeds_stand_for_ours() -> None:
    given: dict[str, OptionValue] = {"chunk_size": 300, "chunk_overlap": 30}
    chosen = {
        name: with_strategy_defaults({"strategy": name, **given})
        for name in ("window", "recursive", "two_stage")
    }
    assert (chosen["window"]["max_chars"], chosen["window"]["overlap_chars"]) == (300, 30)
    assert (chosen["recursive"]["max_chars"], chosen["recursive"]["overlap_chars"]) == (300, 30)
    assert (chosen["two_stage"]["max_chunk_tokens"], chosen["two_stage"]["overlap_tokens"]) == (
        300,
        30,
    )


def test_a_plan_never_goes_beyond_the_window() -> None:
    assert build_plan(254, with_strategy_defaults({"strategy": "two_stage"})).limits.window == 254
    assert build_plan(510, with_strategy_defaults({"strategy": "two_stage"})).limits.window == 448
    assert (
        build_plan(
            40, with_strategy_defaults({"strategy": "semantic", "overlap_tokens": 500})
        ).overlap_tokens
        <= 8
    )
