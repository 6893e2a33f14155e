"""Trees of turns: the active branch comes first; superseded turns keep their question and are not lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anchord.sources.conversations.events import Role, Turn
from anchord.sources.conversations.formats import branches

NODES = "abcdefgh"


def question(key: str) -> Turn:
    return Turn(id=key, role=Role.QUESTION, text=f"{key}?")


def answer(key: str) -> Turn:
    return Turn(id=key, role=Role.ANSWER, text=f"{key}.")


def flattened(above: dict[str, str], turns: list[Turn], leaf: str) -> list[tuple[str, bool]]:
    found = branches.flatten_tree(above, {turn.id: [turn] for turn in turns}, leaf)
    return [(turn.id, turn.superseded) for turn in found]


def test_a_line_is_read_in_its_order() -> None:
    assert flattened({"a": "", "b": "a"}, [question("a"), answer("b")], "b") == [
        ("a", False),
        ("b", False),
    ]


def test_what_was_left_comes_after_what_is_active() -> None:
    above = {"a": "", "b": "a", "c": "b", "d": "b"}
    turns = [question("a"), answer("b"), question("c"), question("d")]
    assert flattened(above, turns, "d") == [("a", False), ("b", False), ("d", False), ("c", True)]


def test_an_answer_that_was_left_has_its_question_again() -> None:
    above = {"a": "", "b": "a", "c": "a"}
    assert flattened(above, [question("a"), answer("b"), answer("c")], "c") == [
        ("a", False),
        ("c", False),
        ("a~b", True),
        ("b", True),
    ]


def test_an_answer_without_any_question_has_an_empty_one() -> None:
    above = {"a": "", "b": ""}
    assert flattened(above, [answer("a"), question("b")], "b") == [
        ("b", False),
        ("~a", True),
        ("a", True),
    ]


def test_a_branch_that_was_left_is_read_as_a_whole() -> None:
    above = {"a": "", "b": "a", "c": "b", "d": "a"}
    turns = [question("a"), question("b"), answer("c"), question("d")]
    assert flattened(above, turns, "d") == [("a", False), ("d", False), ("b", True), ("c", True)]


def test_each_answer_that_was_left_has_its_own_question() -> None:
    above = {"a": "", "b": "a", "c": "b", "d": "c", "e": "b", "f": "a", "g": "c", "h": "b"}
    turns = [
        question("a"),
        answer("b"),
        question("c"),
        answer("d"),
        answer("e"),
        answer("f"),
        answer("g"),
        answer("h"),
    ]
    left = [key for key, superseded in flattened(above, turns, "d") if superseded]
    assert left == ["a~e", "e", "a~f", "f", "c~g", "g", "a~h", "h"]


def test_what_is_below_the_leaf_was_left() -> None:
    assert flattened({"a": "", "b": "a"}, [question("a"), question("b")], "a") == [
        ("a", False),
        ("b", True),
    ]


def test_an_unknown_leaf_loses_nothing() -> None:
    assert flattened({"a": "", "b": "a"}, [question("a"), question("b")], "z") == [
        ("a", True),
        ("b", True),
    ]


def test_a_question_is_found_above_what_has_no_turns() -> None:
    above = {"a": "", "n": "a", "b": "n", "c": "n"}
    left = flattened(above, [question("a"), answer("b"), answer("c")], "c")[2:]
    assert left == [("a~b", True), ("b", True)]


def test_a_circle_without_a_question_ends() -> None:
    assert flattened({"a": "b", "b": "a"}, [answer("a"), answer("b")], "") == [
        ("~b", True),
        ("b", True),
        ("a", True),
    ]


def test_a_circle_that_the_leaf_is_on_ends() -> None:
    assert flattened({"a": "b", "b": "a"}, [question("a"), answer("b")], "b") == [
        ("a", False),
        ("b", False),
    ]


@given(
    st.dictionaries(st.sampled_from(NODES), st.sampled_from([*NODES, ""])),
    st.sampled_from(NODES),
    st.sets(st.sampled_from(NODES)),
)
def test_every_turn_is_read_once_whatever_the_parents_are(
    above: dict[str, str], leaf: str, asking: set[str]
) -> None:
    turns = [question(key) if key in asking else answer(key) for key in above]
    names = [key for key, _ in flattened(above, turns, leaf)]
    assert sorted(name for name in names if "~" not in name) == sorted(above)
    assert len(set(names)) == len(names)
