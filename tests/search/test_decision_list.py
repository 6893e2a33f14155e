"""The decisions of an archive, newest first, each sentence of a project once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conversations.conftest import Talks, claude

from anchord.errors import UsageError
from anchord.ipc.messages.decisions import DecisionAnswer, DecisionsParams
from anchord.search.decision_list import list_decisions


@pytest.fixture
def talks(tmp_path: Path) -> Iterator[Talks]:
    made = Talks(tmp_path)
    made.archive.attach_root("talks", str(made.folder))
    sessions = {
        "old": (("What of the store?", "Two ways."), ("Let's go with SQLite.", "Done.")),
        "mid": (("Let's go with SQLite.", "Again."), ("Is it slow?", "No.")),
        "new": (("The parser", "Decision: we keep the old parser."), ("Thanks", "")),
    }
    for month, (name, turns) in enumerate(sessions.items(), 1):
        said = claude(*turns, session=f"{name}-session-id").replace(b"2026-01", b"2026-0%d" % month)
        if name == "new":
            said = said.replace(b"/home/me/app", b"/home/me/other")
        made.write(f"{name}.jsonl", said)
    made.sync()
    yield made
    made.close()


def listed(talks: Talks, **params: object) -> tuple[DecisionAnswer, ...]:
    return list_decisions(talks.archive, DecisionsParams(**params))  # type: ignore[arg-type]  # of a test


def test_each_decision_says_when_where_who_and_in_answer_to_what(talks: Talks) -> None:
    parser, store = listed(talks)
    assert (parser.sentence, parser.by, parser.question) == (
        "Decision: we keep the old parser.",
        "assistant",
        "The parser",
    )
    assert (parser.project, parser.at[:7], parser.session) == ("other", "2026-03", "new-session-id")
    # Said twice: the newer one counts.
    assert (store.sentence, store.by, store.session) == (
        "Let's go with SQLite.",
        "user",
        "mid-session-id",
    )


def test_decisions_are_filtered_and_the_newest_are_enough(talks: Talks) -> None:
    assert [each.project for each in listed(talks, limit=1)] == ["other"]
    assert [each.project for each in listed(talks, project="app")] == ["app"]
    assert listed(talks, project="none") == ()
    assert len(listed(talks, since="2026-02-15")) == 1
    assert list_decisions(None, DecisionsParams()) == ()
    with pytest.raises(UsageError, match="yester"):
        listed(talks, since="yesterdayish")
