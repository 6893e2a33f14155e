"""One generation is built at a time: it waits for roots, goes on after a restart, and leaves nothing when it is suspended."""

from __future__ import annotations

import time
from typing import Any

import pytest

from anchord.daemon.writer import generation_builds as module
from anchord.daemon.writer.generation_builds import GenerationBuilds
from anchord.index.generation import REBUILD, RECHUNK, BuildRequest

REQUIRED = BuildRequest("the model changed")


class Build:
    """A build that records what happens to it."""

    def __init__(self, writer: list[Any], request: BuildRequest) -> None:
        """Begin; `writer` is the record."""
        self.request = request
        self.unavailable_roots: tuple[str, ...] = ()
        self.finds_missing: tuple[str, ...] = ()
        self.events = writer
        self.events.append(("begun", request))

    def index_next_files(self, should_stop: object) -> list[str]:
        """Record the step."""
        self.events.append(("step", should_stop))
        self.unavailable_roots = self.finds_missing
        return ["outcome"]

    def delete(self) -> None:
        """Record it."""
        self.events.append(("deleted", self.request))

    def close(self) -> None:
        """Record it."""
        self.events.append(("closed", self.request))


@pytest.fixture
def events() -> list[Any]:
    return []


@pytest.fixture
def builds(events: list[Any], monkeypatch: pytest.MonkeyPatch) -> GenerationBuilds:
    monkeypatch.setattr(module, "GenerationBuild", Build)
    monkeypatch.setattr(module, "delete_next_generation", lambda _: events.append("left deleted"))
    monkeypatch.setattr(module, "find_required_build", lambda _: None)
    monkeypatch.setattr(module, "find_interrupted_build", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    writer: Any = events
    return GenerationBuilds(writer)


@pytest.mark.parametrize(
    ("required", "interrupted", "goes_on"),
    [
        (None, None, None),
        (REQUIRED, None, REQUIRED),
        (None, REBUILD, REBUILD),
        (REQUIRED, REBUILD, REQUIRED),
    ],
)
def test_a_start_goes_on_with_what_is_required_or_was_interrupted_and_deletes_the_rest(
    builds: GenerationBuilds,
    monkeypatch: pytest.MonkeyPatch,
    required: BuildRequest | None,
    interrupted: BuildRequest | None,
    goes_on: BuildRequest | None,
) -> None:
    monkeypatch.setattr(module, "find_required_build", lambda _: required)
    monkeypatch.setattr(module, "find_interrupted_build", lambda _: interrupted)
    builds.resume_or_delete()
    events: Any = builds._writer
    assert events == ["left deleted" if goes_on is None else ("begun", goes_on)]
    assert (builds.current is None) == (goes_on is None)
    assert builds.next_step_at == 0.0


def test_a_build_is_deleted_for_a_while_and_begins_anew(
    builds: GenerationBuilds, events: list[Any]
) -> None:
    with builds.suspended():
        assert not builds.is_building
    builds.start(REBUILD)
    builds.next_step_at = 500.0
    builds.start(RECHUNK)
    assert builds.next_step_at == 0.0
    with builds.suspended():
        assert builds.current is None
        assert builds.is_building, "a call that waits for it goes on waiting"
    assert builds.is_building
    assert events == [
        ("begun", REBUILD),
        ("deleted", REBUILD),
        ("begun", RECHUNK),
        ("deleted", RECHUNK),
        ("begun", RECHUNK),
    ]


def test_a_build_waits_while_a_root_is_unavailable(
    builds: GenerationBuilds, events: list[Any]
) -> None:
    def should_stop() -> bool:
        return False

    assert builds.index_next_files((), should_stop) is None
    builds.start(REBUILD)
    assert builds.index_next_files(["docs"], should_stop) is None
    assert builds.current
    assert builds.current.unavailable_roots == ("docs",)
    assert builds.next_step_at == 115.0
    assert len(events) == 1
    builds.next_step_at = 0.0
    outcomes: Any = builds.index_next_files([], should_stop)
    assert outcomes == ["outcome"]
    assert events[1:] == [("step", should_stop)]
    assert not builds.current.unavailable_roots
    assert builds.next_step_at == 0.0


def test_a_root_that_the_walk_of_the_build_misses_is_waited_for(builds: GenerationBuilds) -> None:
    builds.start(REBUILD)
    build: Any = builds.current
    build.finds_missing = ("docs",)
    outcomes: Any = builds.index_next_files([], lambda: False)
    assert outcomes == ["outcome"]
    assert builds.next_step_at == 115.0


def test_a_build_is_closed_and_kept_at_the_end(builds: GenerationBuilds, events: list[Any]) -> None:
    builds.close()
    builds.start(REBUILD)
    builds.close()
    assert events == [("begun", REBUILD), ("closed", REBUILD)]


@pytest.mark.parametrize("request_", [REBUILD, RECHUNK, None])
def test_only_a_rebuild_needs_nothing_of_the_present_index(
    builds: GenerationBuilds, request_: BuildRequest | None
) -> None:
    if request_:
        builds.start(request_)
    assert builds.is_from_scratch is (request_ is REBUILD)


@pytest.mark.parametrize("is_building", [True, False])
@pytest.mark.parametrize(("now", "is_over"), [(114.9, False), (115.0, True), (115.1, True)])
def test_a_build_goes_on_once_its_pause_is_over(
    builds: GenerationBuilds,
    now: float,
    is_over: bool,  # noqa: FBT001 - a column of the table
    *,
    is_building: bool,
) -> None:
    if is_building:
        builds.start(REBUILD)
    builds.next_step_at = 115.0
    assert builds.is_due(now) is (is_building and is_over)
