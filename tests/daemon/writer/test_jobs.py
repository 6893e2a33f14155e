"""Jobs of other threads run in order in the writer's thread; after its end each job fails."""

from __future__ import annotations

import pytest

from anchord.daemon.calls import Call, set_current_call
from anchord.daemon.writer.jobs import JobQueue
from anchord.errors import AnchordError


def test_jobs_run_in_order_and_give_their_result_or_error() -> None:
    queue, rung = JobQueue(), []
    assert not queue
    done: list[int] = []
    first = queue.submit(lambda: done.append(1) or 7, lambda: rung.append(1))  # type: ignore[func-returns-value]
    second = queue.submit(lambda: done.append(2) or 1 // 0, lambda: rung.append(2))  # type: ignore[func-returns-value]
    assert queue
    assert (done, rung) == ([], [1, 2])
    queue.run_pending()
    assert not queue
    assert (done, first.result(0)) == ([1, 2], 7)
    with pytest.raises(ZeroDivisionError):
        second.result(0)


def test_jobs_leave_other_work_its_turn_and_their_place_in_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("anchord.daemon.writer.jobs.time.monotonic", lambda: clock[0])
    queue, done = JobQueue(), list[int]()

    def work(number: int) -> None:
        clock[0] += 0.6
        done.append(number)

    for number in range(5):
        queue.submit(lambda number=number: work(number), lambda: None)  # type: ignore[misc]
    queue.run_pending()
    assert (done, bool(queue)) == ([0, 1], True)
    queue.run_pending()
    assert done == [0, 1, 2, 3]
    queue.close()
    assert (done, bool(queue)) == ([0, 1, 2, 3], False)


def test_a_job_whose_client_left_before_it_began_is_not_run() -> None:
    queue, call = JobQueue(), Call()
    set_current_call(call)
    try:
        future = queue.submit(lambda: pytest.fail("it ran"), lambda: None)
    finally:
        set_current_call(Call())
    call.cancel()
    queue.run_pending()
    assert future.cancelled()


def test_after_the_writers_end_waiting_and_later_jobs_fail() -> None:
    queue = JobQueue()
    waiting = queue.submit(lambda: 1, lambda: None)
    queue.close()
    later = queue.submit(lambda: 1, lambda: None)
    for future in (waiting, later):
        with pytest.raises(AnchordError, match="stopping"):
            future.result(0)
    assert not queue


def test_a_job_that_waits_at_the_writers_end_fails_at_once() -> None:
    queue, ran = JobQueue(), list[int]()
    waiting = queue.submit(lambda: ran.append(1), lambda: None)
    queue.close()
    assert waiting.done()
    error = waiting.exception(0)
    assert isinstance(error, AnchordError)
    assert (error.message, error.hint) == ("anchord is stopping", "try again once it runs")
    assert ran == []
