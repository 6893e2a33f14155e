"""Many files of one folder that change in a moment are a burst; a save beside them is not."""

from __future__ import annotations

import pytest

from anchord.core.bursts import FEWEST_FILES, WINDOW_S, BurstDetector
from anchord.core.types import RootedPath


def files(folder: str, count: int) -> dict[RootedPath, float]:
    return {RootedPath("docs", f"{folder}{number}.md"): 10.0 for number in range(count)}


@pytest.mark.parametrize("folder", ["", "notes/", "notes/2026/"])
def test_as_many_files_as_a_person_saves_at_once_are_no_burst_and_one_more_is(folder: str) -> None:
    assert BurstDetector().find_bursts(files(folder, FEWEST_FILES - 1), 10.0) == set()
    many = files(folder, FEWEST_FILES)
    assert BurstDetector().find_bursts(many, 10.0) == set(many)


def test_a_burst_that_comes_in_parts_is_one_as_soon_as_it_is_large_enough() -> None:
    detector = BurstDetector()
    whole = list(files("copied/", 2 * FEWEST_FILES))
    for file in whole[: FEWEST_FILES - 1]:
        assert detector.find_bursts({file: 10.0}, 10.0) == set()
    for file in whole[FEWEST_FILES - 1 :]:
        assert detector.find_bursts({file: 10.5}, 10.5) == {file}


def test_a_save_beside_a_copy_into_another_folder_is_no_part_of_it() -> None:
    copied = files("copied/", 500) | files("copied/deep/", 500)
    saved = [RootedPath("docs", name) for name in ("notes/a.md", "b.md")]
    other_root = RootedPath("other", "copied/0.md")
    changed = {**copied, **dict.fromkeys([*saved, other_root], 10.0)}
    assert BurstDetector().find_bursts(changed, 10.0) == set(copied)


def test_folders_that_change_at_once_below_the_root_are_counted_apart() -> None:
    changed = {
        file: at for number in range(9) for file, at in files(f"project{number}/", 9).items()
    }
    assert BurstDetector().find_bursts(changed, 10.0) == set()


def test_a_file_that_is_saved_again_and_again_counts_once() -> None:
    detector = BurstDetector()
    for number in range(5 * FEWEST_FILES):
        now = 10.0 + number / 100
        assert detector.find_bursts({RootedPath("docs", "log.md"): now}, now) == set()


def test_changes_of_more_than_a_moment_ago_do_not_count() -> None:
    detector = BurstDetector()
    detector.find_bursts(files("", FEWEST_FILES), 10.0)
    late = RootedPath("docs", "late.md")
    assert detector.find_bursts({late: 10.0 + WINDOW_S}, 10.0 + WINDOW_S) == {late}
    later = 10.1 + WINDOW_S
    assert detector.find_bursts({late: later}, later) == set()
    assert len(detector._changed_at) == 1
    assert sum(detector._counts.values()) == 1
