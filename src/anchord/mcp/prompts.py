"""Prompts: questions that users ask often, with how to answer them from the index."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field

MAX_ARGUMENT_CHARS = 1_000

Topic = Annotated[
    str, Field(max_length=MAX_ARGUMENT_CHARS, description="What the decision is about")
]
Project = Annotated[
    str, Field(max_length=MAX_ARGUMENT_CHARS, description="Name or folder of the project")
]
What = Annotated[str, Field(max_length=MAX_ARGUMENT_CHARS, description="What is done")]


def what_did_we_decide(topic: Topic) -> str:
    """What did we decide about a topic?"""
    return (
        f"What did we decide about {json.dumps(topic, ensure_ascii=False)}?\n\n"
        'Call anchord\'s `search` with that topic and options {"kind": "exchange"}, then without '
        "options. Read the best exchanges with `show` and what came after with `next`, because "
        "a later one can revise a decision. Answer with each decision, its reason, its date and "
        "where it was made. Say so if nothing was decided."
    )


def catch_me_up(project: Project) -> str:
    """Catch me up on a project."""
    return (
        f"Catch me up on the project {json.dumps(project, ensure_ascii=False)}.\n\n"
        "Call anchord's `sessions` with this project, and `session` for the latest two or three, "
        "beginning at their last exchanges. Call `changes` with since 7d for the files. Tell what "
        "was done, what was decided, what is open, and what the next step was to be. Cite ids and "
        "dates."
    )


def where_is_it_done(what: What) -> str:
    """Find where something is done."""
    return (
        f"Find where {json.dumps(what, ensure_ascii=False)} is done.\n\n"
        'Call anchord\'s `search` with options {"kind": "code"}, then for documents and for '
        "conversations about it. Read on with `show`. Answer with paths and lines, the one that "
        "does it first, and what else depends on it."
    )


PROMPTS = (what_did_we_decide, catch_me_up, where_is_it_done)
