"""A file that makes the embedder fail is found among others, and a failing embedder condemns nobody by itself."""

from __future__ import annotations

from anchord.core.suspects import ALONE, TOGETHER, Suspects
from anchord.model import Origin

FILES = [Origin("r", name) for name in ("a", "b", "poison", "c")]


def run(suspects: Suspects, waiting: list[Origin], poison: Origin) -> Origin | None:
    """Try what is chosen until a file is named or nothing waits."""
    while waiting:
        tried = suspects.choose(waiting)
        if poison in tried:
            named = suspects.failed(tried)
            if named:
                return named
        else:
            suspects.worked(tried)
            waiting = [origin for origin in waiting if origin not in tried]
    return None


def test_files_go_together_until_a_batch_failed_twice() -> None:
    suspects = Suspects()
    for _ in range(TOGETHER):
        assert suspects.choose(FILES) == FILES
        assert suspects.failed(FILES) is None
    assert len(suspects.choose(FILES)) == 1


def test_the_file_at_fault_is_named_and_the_others_are_done() -> None:
    assert run(Suspects(), list(FILES), FILES[2]) == FILES[2]


def test_those_that_failed_least_are_tried_first() -> None:
    suspects = Suspects()
    for _ in range(TOGETHER):
        suspects.failed(FILES)
    suspects.failed([FILES[0]])
    assert suspects.choose(FILES) == [FILES[1]]


def test_a_file_is_named_only_after_it_failed_alone_three_times() -> None:
    suspects = Suspects()
    assert [suspects.failed([FILES[0]]) for _ in range(ALONE)] == [None, None, FILES[0]]


def test_once_nothing_is_suspected_files_go_together_again() -> None:
    suspects = Suspects()
    suspects.failed([FILES[0]])
    suspects.worked([FILES[0]])
    assert suspects.choose(FILES) == FILES
