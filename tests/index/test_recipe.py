"""The recipe: whatever the index depends on besides the files changes its digest, and nothing is hashed before it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fakes import plans
from hypothesis import given
from hypothesis import strategies as st

from anchord.chunking.engine.layout import Limits
from anchord.chunking.plan import (
    ChunkingPlans,
    Plan,
    build_plans,
    limits_for_max_tokens,
    limits_for_window,
)
from anchord.config.effective import chunking_of_root
from anchord.config.schema import DOCUMENT_KINDS, parse_config
from anchord.config.strategies import with_strategy_defaults
from anchord.core.types import Root
from anchord.index import recipe as recipe_module
from anchord.index.embedders import chunking_plans
from anchord.index.recipe import Recipe
from anchord.index.topics import OwnRooms


def recipe(plan: Plan | None = None, model: str = "model", tokenizer: str = "tokenizer") -> Recipe:
    return Recipe(
        plans=ChunkingPlans(dict.fromkeys(DOCUMENT_KINDS, plan or Plan())),
        model_identity=lambda: model,
        chunking_tools_identity=tokenizer,
    )


def with_limits(**changes: Any) -> Recipe:  # noqa: ANN401 - fields of several types
    return recipe(Plan(limits=replace(Limits(), **changes)))


def test_equal_recipes_have_equal_digests() -> None:
    assert recipe().digest() == recipe().digest()


OTHERS: dict[str, Callable[[], Recipe]] = {
    "model": lambda: recipe(model="another"),
    "tokenizer": lambda: recipe(tokenizer="another"),
    "model and tokenizer swapped": lambda: recipe(model="tokenizer", tokenizer="model"),
    "body": lambda: with_limits(body=199),
    "context": lambda: with_limits(context=31),
    "repeated": lambda: with_limits(repeated=31),
    "window": lambda: with_limits(window=253),
    "heading depth": lambda: with_limits(heading_depth=5),
    "characters": lambda: with_limits(max_chars=900),
    "least section": lambda: with_limits(min_chars=100),
    "fences": lambda: with_limits(whole_fences=False),
    "strategy": lambda: recipe(Plan(strategy="window", max_chars=800)),
    "a strategy's size": lambda: recipe(Plan(max_chars=800)),
    "overlap": lambda: recipe(Plan(overlap_tokens=32)),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_whatever_the_index_depends_on_changes_the_digest(other: Callable[[], Recipe]) -> None:
    assert other().digest() != recipe().digest()


@pytest.mark.parametrize("version", ["CHUNKER_VERSION", "ROW_VERSION"])
def test_a_new_version_of_chunker_or_row_changes_the_digest(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    before = recipe().digest()
    monkeypatch.setattr(recipe_module, version, "next")
    assert recipe().digest() != before


def test_the_model_is_asked_once_and_only_for_the_digest() -> None:
    asked: list[str] = []
    made = Recipe(
        plans=plans(),
        model_identity=lambda: asked.append("model") or "model",  # type: ignore[func-returns-value]
        chunking_tools_identity="tokenizer",
    )
    assert asked == []
    assert made.digest() == made.digest()
    assert asked == ["model"]


def test_a_strategy_of_one_root_changes_the_recipe_of_that_root_alone() -> None:
    general = {kind: with_strategy_defaults({}) for kind in DOCUMENT_KINDS}
    own = {kind: with_strategy_defaults({"strategy": "window"}) for kind in DOCUMENT_KINDS}
    made = Recipe(
        plans=build_plans(254, {"": general, "notes": own}),
        model_identity=lambda: "model",
        chunking_tools_identity="tokenizer",
    )
    assert made.digest("notes") != made.digest()
    assert (
        made.digest("other")
        == made.digest()
        == Recipe(
            plans=plans(), model_identity=lambda: "model", chunking_tools_identity="tokenizer"
        ).digest()
    )
    assert made.plans.plan_for("notes", "code").strategy == "window"
    assert made.plans.plan_for("other", "code").strategy == "anchored"


def configured_recipe(text: str) -> Recipe:
    """Return the recipe of a configuration whose first root is `n`, with a root of conversations."""
    config = parse_config(text, "config.toml")
    roots = [
        Root(name="n", path="/a", chunking=chunking_of_root(config.root[0]) if config.root else {}),
        Root(name="talks", path="/b", kind="conversations"),
    ]
    return Recipe(
        plans=chunking_plans(config, roots, 254),
        model_identity=lambda: "model",
        chunking_tools_identity="tools",
        ingest_identity_by_root={"talks": "6"},
        redaction_identity="rules",
        own_rooms=OwnRooms(config.room),
    )


FROZEN = {
    ("", ""): "c994a0e3485a4602456828eafe04d4fd",
    ("", "n"): "c994a0e3485a4602456828eafe04d4fd",
    ("", "talks"): "db9c6941ec0ce2d75830f166cb0cb533",
    ("[[root]]\npath = '/a'\nstrategy = 'window'\n", "n"): "9a192ac8765f8662793cfd7d870be01f",
    (
        "chunking.max_chars = 900\nkind.code.strategy = 'window'\n",
        "",
    ): "04e736d04e17e02307182b5e55bae07f",
}
"""Configuration and root -> the digest that version 0.2.0 computes for them, by row version 2."""


@pytest.mark.parametrize(("text", "root"), FROZEN)
def test_seed_002_04_settings_that_nobody_uses_leave_a_digest_as_it_was(
    monkeypatch: pytest.MonkeyPatch, text: str, root: str
) -> None:
    """Of the digests of existing indexes, only the versions of rows, exchanges and chunker may change."""
    monkeypatch.setattr(recipe_module, "ROW_VERSION", "2")
    monkeypatch.setattr(recipe_module, "CHUNKER_VERSION", "7")
    monkeypatch.setattr(recipe_module, "EXCHANGE_VERSION", "")
    assert configured_recipe(text).digest(root) == FROZEN[text, root]


def test_seed_002_04_sizes_of_one_root_change_the_recipe_of_that_root_alone() -> None:
    before = configured_recipe("")
    sized = configured_recipe("[[root]]\npath = '/a'\nmax_chars = 900\n")
    finer = configured_recipe(
        "[[root]]\npath = '/a'\nmax_chars = 900\n[root.kinds.code]\nmax_chars = 700\n"
    )
    assert len({made.digest("n") for made in (before, sized, finer)}) == 3
    for other_root in ("", "talks"):
        assert {made.digest(other_root) for made in (before, sized, finer)} == {
            before.digest(other_root)
        }


def test_seed_000_20_rooms_of_the_users_own_change_every_digest() -> None:
    room = "[[room]]\nname = 'a'\nkeywords = ['{}']\n"
    recipes = [configured_recipe(text) for text in ("", room.format("b"), room.format("c"))]
    for root in ("", "n", "talks"):
        assert len({made.digest(root) for made in recipes}) == 3


@pytest.mark.parametrize(
    ("window", "body"),
    [
        (254, 222),
        (126, 94),
        (510, 430),
        (8190, 430),
        (40, 16),
        (48, 16),
        (49, 17),
        (462, 430),
        (461, 429),
    ],
)
def test_a_chunk_leaves_room_for_its_context_in_the_window(window: int, body: int) -> None:
    limits = limits_for_window(window, None)
    assert (limits.body, limits.window, limits.heading_depth) == (body, window, 6)


def test_a_setting_makes_the_window_smaller_and_counts_the_two_special_tokens() -> None:
    assert limits_for_max_tokens(254, 128, None) == limits_for_window(126, None)


@pytest.mark.parametrize("tokens", [None, 256, 300, 10_000])
def test_a_setting_never_makes_the_window_larger(tokens: int | None) -> None:
    assert limits_for_max_tokens(254, tokens, None) == limits_for_window(254, None)


@pytest.mark.parametrize(("depth", "used"), [(None, 6), (1, 1), (3, 3), (6, 6)])
def test_the_depth_of_headings_is_kept(depth: int | None, used: int) -> None:
    assert limits_for_max_tokens(254, None, depth).heading_depth == used


@given(st.integers(16, 10_000), st.none() | st.integers(18, 10_000))
def test_a_chunk_always_fits_the_window(window: int, tokens: int | None) -> None:
    limits = limits_for_max_tokens(window, tokens, None)
    assert 16 <= limits.body <= limits.window <= window
