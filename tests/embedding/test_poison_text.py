"""A text that crashes the model is found, and the others are embedded; a failing model blames no text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.embedding.poison_text import PROBE_TEXT, embed_isolating_failures


class ModelError(Exception):
    """The model failed."""


class OtherError(Exception):
    """Something else happened."""


class Model:
    """Returns a text in capitals; fails on texts with "poison", and at the given calls."""

    def __init__(
        self,
        *poison: str,
        fails: Callable[[int], bool] = lambda _: False,
        error: type[Exception] = ModelError,
    ) -> None:
        """Record the calls."""
        self.tried: list[list[str]] = []
        self.made: list[str] = []
        self._poison = set(poison)
        self._fails = fails
        self._error = error

    def embed(self, texts: Sequence[str]) -> list[str]:
        """Try."""
        self.tried.append(list(texts))
        if self._fails(len(self.tried)) or self._poison & set(texts):
            raise self._error
        self.made += [text for text in texts if text != PROBE_TEXT]
        return [text.upper() for text in texts]

    def run(self, *texts: str) -> list[tuple[int, str | None]]:
        """Return the result for each text."""
        return list(embed_isolating_failures(texts, self.embed, ModelError))


def test_a_good_batch_is_tried_once() -> None:
    model = Model()
    assert model.run("a", "b", "c") == [(0, "A"), (1, "B"), (2, "C")]
    assert model.tried == [["a", "b", "c"]]


def test_nothing_is_tried_for_nothing() -> None:
    model = Model(fails=lambda _: True)
    assert model.run() == []
    assert model.tried == []


def test_a_batch_that_failed_once_is_tried_again_as_it_is() -> None:
    model = Model(fails=lambda nth: nth == 1)
    assert model.run("a", "b") == [(0, "A"), (1, "B")]
    assert model.tried == [["a", "b"]] * 2


def test_a_batch_that_failed_twice_goes_text_by_text() -> None:
    model = Model(fails=lambda nth: nth <= 2)
    assert model.run("a", "b") == [(0, "A"), (1, "B")]
    assert model.tried == [["a", "b"], ["a", "b"], ["a"], ["b"]]


def test_the_one_text_at_fault_is_given_up_and_the_others_are_made_once() -> None:
    model = Model("bad")
    assert model.run("a", "bad", "c") == [(0, "A"), (1, None), (2, "C")]
    assert model.tried == [["a", "bad", "c"]] * 2 + [["a"], ["bad"], ["bad"], [PROBE_TEXT], ["c"]]
    assert model.made == ["a", "c"]


def test_two_texts_at_fault_are_given_up_and_the_others_are_made_once() -> None:
    model = Model("bad", "worse")
    assert model.run("bad", "b", "worse", "d") == [(0, None), (1, "B"), (2, None), (3, "D")]
    assert model.tried[2:] == [
        ["bad"],
        ["bad"],
        [PROBE_TEXT],
        ["b"],
        ["worse"],
        ["worse"],
        [PROBE_TEXT],
        ["d"],
    ]
    assert model.made == ["b", "d"]


@given(st.lists(st.sampled_from("abcxyz"), max_size=12))
def test_every_text_comes_once_and_none_but_those_at_fault_is_given_up(texts: list[str]) -> None:
    model = Model("x", "y")
    assert model.run(*texts) == [
        (number, None if text in "xy" else text.upper()) for number, text in enumerate(texts)
    ]
    assert model.made == [text for text in texts if text not in "xy"]


@given(st.lists(st.sampled_from("abx"), min_size=2, max_size=12))
def test_a_text_at_fault_costs_three_tries_and_any_other_one_beyond_two_of_the_batch(
    texts: list[str],
) -> None:
    model = Model("x")
    model.run(*texts)
    bad = texts.count("x")
    assert len(model.tried) == (2 + 3 * bad + len(texts) - bad if bad else 1)


@pytest.mark.parametrize("texts", [["a"], ["a", "b"], ["a", PROBE_TEXT]], ids=str)
def test_where_everything_fails_the_failure_is_raised_and_no_text_is_given_up(
    texts: list[str],
) -> None:
    model, came = Model(fails=lambda _: True), list[tuple[int, str | None]]()
    with pytest.raises(ModelError):
        came.extend(embed_isolating_failures(texts, model.embed, ModelError))
    assert came == []
    assert model.tried[-3:] == [["a"], ["a"], [PROBE_TEXT]]


def test_a_model_that_breaks_later_has_given_what_was_made_by_then() -> None:
    model, came = Model("bad", fails=lambda nth: nth >= 6), list[tuple[int, str | None]]()
    with pytest.raises(ModelError):
        came.extend(embed_isolating_failures(["a", "bad", "c"], model.embed, ModelError))
    assert came == [(0, "A")]


def test_a_single_text_is_tried_once_when_it_works() -> None:
    model = Model()
    assert model.run("a") == [(0, "A")]
    assert model.tried == [["a"]]


def test_a_single_text_that_failed_once_is_tried_again() -> None:
    model = Model(fails=lambda nth: nth == 1)
    assert model.run("a") == [(0, "A")]
    assert model.tried == [["a"], ["a"]]


def test_a_single_text_that_failed_twice_is_given_up_if_a_harmless_one_works() -> None:
    model = Model("bad")
    assert model.run("bad") == [(0, None)]
    assert model.tried == [["bad"], ["bad"], [PROBE_TEXT]]


def test_another_error_is_raised_at_once() -> None:
    model = Model(fails=lambda _: True, error=OtherError)
    with pytest.raises(OtherError):
        model.run("a", "b")
    assert len(model.tried) == 1


def test_nothing_is_tried_before_it_is_asked_for() -> None:
    model = Model("bad")
    going = embed_isolating_failures(["a", "b", "bad"], model.embed, ModelError)
    assert model.tried == []
    assert next(going) == (0, "A")
    assert model.tried[2:] == [["a"]]
