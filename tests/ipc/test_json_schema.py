"""The schema of the socket says what is sent and answered."""

from __future__ import annotations

import json
from pathlib import Path

from anchord.ipc import methods, requests
from anchord.ipc.callers import AwaitedMethods, Blocking, BlockingMethods
from anchord.ipc.json_schema import protocol_schema
from anchord.ipc.methods import METHODS, Method

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "schema.json"


def test_the_reference_is_the_schema_of_this_version() -> None:
    """`anchord schema > docs/reference/schema.json` writes it."""
    assert json.loads(REFERENCE.read_text("utf-8")) == json.loads(json.dumps(protocol_schema()))


def test_every_method_is_in_the_table_once() -> None:
    defined = [each for each in vars(methods).values() if isinstance(each, Method)]
    assert sorted(each.name for each in METHODS) == sorted(each.name for each in defined)
    assert len({each.name for each in METHODS}) == len(METHODS)
    assert set(protocol_schema()["methods"]) == {each.name for each in METHODS}


def test_every_request_is_a_method_of_both_kinds_of_clients() -> None:
    made = {
        name
        for name, each in vars(requests).items()
        if getattr(each, "__module__", "") == requests.__name__
    }
    names = {name for name in made if name[0].islower()}
    assert names == {
        name for name, each in vars(BlockingMethods).items() if isinstance(each, Blocking)
    }
    assert all(hasattr(AwaitedMethods, name) for name in names)
    assert len(names) == len(METHODS) - 1  # "roots.list" is another name of "roots".


def test_whatever_is_referred_to_is_defined() -> None:
    text = json.dumps(protocol_schema())
    defined = protocol_schema()["$defs"]
    referred = {part.split('"')[0] for part in text.split("#/$defs/")[1:]}
    assert referred <= set(defined)
