"""Random documents for property tests: prose, lists, tables, fences and odd text."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

_WORDS = "river stone light paper garden window letter morning silver bridge winter summer kitchen music travel".split()  # noqa: SIM905

prose = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=60).map(" ".join)
_odd = st.text(max_size=40)


def _fence(lines: Sequence[str]) -> str:
    return "\n".join(["```py", *lines, "```"])


def _table(rows: Sequence[str]) -> str:
    return "\n".join(["| a | b |", "|---|---|", *(f"| {row} | x |" for row in rows)])


_calm_blocks = st.one_of(
    st.tuples(st.integers(2, 6), prose).map(lambda pair: f"{'#' * pair[0]} {pair[1][:60]}"),
    prose,
    st.lists(prose, min_size=1, max_size=12).map("\n".join),
    st.lists(prose, min_size=1, max_size=15).map(
        lambda items: "\n".join(f"- {item}" for item in items)
    ),
    st.lists(prose, min_size=1, max_size=6).map(
        lambda items: "\n".join(f"  {n}. {item}" for n, item in enumerate(items))
    ),
    st.lists(prose, max_size=40).map(_fence),
    st.lists(prose, min_size=1, max_size=20).map(_table),
    st.lists(prose, min_size=1, max_size=9).map(
        lambda lines: "\n".join(f"> {line}" for line in lines)
    ),
)
_blocks = st.one_of(
    _calm_blocks, prose.map(lambda words: f"# {words[:60]}"), st.just("---"), st.just("```"), _odd
)
calm_documents = st.lists(_calm_blocks, max_size=25).map("\n\n".join)
documents = st.lists(_blocks, max_size=25).map("\n\n".join)
