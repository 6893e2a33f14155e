"""Lines and values: they survive a round trip, and errors name the invalid part."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord import errors
from anchord.errors import AnchordError, StoreError, UsageError
from anchord.ipc.messages.base import Params
from anchord.ipc.messages.roots import AddRootParams, RootNameParams
from anchord.ipc.messages.searching import ExplainParams, SearchParams, ShowParams
from anchord.ipc.messages.upkeep import IndexParams, SyncParams, VerifyParams
from anchord.ipc.protocol import (
    INVALID_PARAMS,
    SERVER_ERROR,
    Request,
    encode_error,
    encode_line,
    encode_result,
    exception_from_error,
    parse_params,
)

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, AnchordError)
]
ALL_PARAMS = (
    Params, SearchParams, ShowParams, ExplainParams, IndexParams, SyncParams, VerifyParams, AddRootParams, RootNameParams,
)  # fmt: skip

texts = st.text(st.characters(codec="utf-8"))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


@given(values)
def test_a_value_comes_back_from_its_line(value: object) -> None:
    assert msgspec.json.decode(encode_line(value)) == value


@given(values)
def test_a_value_is_one_line_whatever_line_ends_are_in_it(value: object) -> None:
    line = encode_line(value)
    assert line.endswith(b"\n")
    assert len(line.splitlines()) == 1


@given(method=texts, params=st.dictionaries(texts, values), request_id=st.integers() | texts)
def test_a_request_comes_back_from_its_line(
    method: str, params: dict[str, Any], request_id: int | str
) -> None:
    request = Request(method, params, request_id)
    assert msgspec.json.decode(encode_line(request), type=Request) == request


ASKED = Request("search", id=1)


def test_a_notification_is_answered_by_nothing() -> None:
    heard = Request("search")
    assert encode_result(heard, {}) == encode_error(heard, UsageError("no such root")) == b""


def test_a_request_with_the_id_null_is_no_notification() -> None:
    asked = msgspec.json.decode(b'{"jsonrpc":"2.0","id":null,"method":"status"}', type=Request)
    assert msgspec.json.decode(encode_result(asked, 1)) == {
        "jsonrpc": "2.0",
        "id": None,
        "result": 1,
    }


def test_an_error_has_the_protocols_code_and_our_own() -> None:
    assert msgspec.json.decode(
        encode_error(
            Request("search", id=3), UsageError("no such root", "name one"), INVALID_PARAMS
        )
    ) == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {
            "code": INVALID_PARAMS,
            "message": "no such root",
            "data": {"code": "usage", "hint": "name one"},
        },
    }


@given(kind=st.sampled_from(KINDS), message=texts, hint=texts)
def test_every_error_arrives_as_what_it_was(
    kind: type[AnchordError], message: str, hint: str
) -> None:
    arrived = exception_from_error(
        msgspec.json.decode(encode_error(ASKED, kind(message, hint)))["error"]
    )
    assert type(arrived) is kind
    assert (arrived.message, arrived.hint, arrived.exit_code) == (message, hint, kind.exit_code)


@pytest.mark.parametrize(
    "data",
    [{}, {"data": None}, {"data": {}}, {"data": {"code": "of a later version", "hint": "h"}}],
)
def test_an_error_of_another_version_is_an_error_all_the_same(data: dict[str, Any]) -> None:
    arrived = exception_from_error({"code": SERVER_ERROR, "message": "away", **data})
    assert type(arrived) is AnchordError
    assert arrived.message == "away"


def test_an_error_whose_words_no_json_can_hold_is_sent_all_the_same() -> None:
    line = encode_error(ASKED, StoreError("caf\udce9 is away", "mount caf\udce9"))
    assert "is away" in msgspec.json.decode(line)["error"]["message"]


@pytest.mark.parametrize("kind", ALL_PARAMS)
def test_an_unknown_parameter_is_refused_by_its_name(kind: type[Params]) -> None:
    needed = {"query": "q"} if kind is SearchParams else {"id": "i"} if kind is ShowParams else {}
    needed |= {"path": "p"} if kind in (ExplainParams, AddRootParams) else {}
    with pytest.raises(UsageError, match="unknown parameter 'qurey'") as refused:
        parse_params(kind, {**needed, "qurey": "words"})
    assert refused.value.hint


@pytest.mark.parametrize("name", ["", "self", "ObjectId", "a`b"])
def test_an_unknown_parameter_is_named_as_it_was_written(name: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_params(Params, {name: 1})
    assert f"unknown parameter '{name}'" in refused.value.message


@pytest.mark.parametrize(
    ("kind", "name"), [(SearchParams, "query"), (ExplainParams, "path"), (AddRootParams, "path")]
)
def test_a_missing_parameter_is_named(kind: type[Params], name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}'"):
        parse_params(kind, {})


@pytest.mark.parametrize(
    ("kind", "params", "where"),
    [
        (SearchParams, {"query": None}, "query"),
        (SearchParams, {"query": "q", "k": 1.5}, "k"),
        (SearchParams, {"query": "q", "k": True}, "k"),
        (SearchParams, {"query": "q", "fresh": "no"}, "fresh"),
        (ShowParams, {"id": "i", "context": {}}, "context"),
        (IndexParams, {"paths": "/home"}, "paths"),
        (IndexParams, {"paths": ["/home", 1]}, "paths"),
        (SyncParams, {"timeout": "1"}, "timeout"),
        (SyncParams, {"timeout": 10**400}, "timeout"),
        (VerifyParams, {"vectors": "all"}, "vectors"),
        (RootNameParams, {"name": []}, "name"),
    ],
)
def test_a_parameter_of_the_wrong_kind_is_refused_and_named(
    kind: type[Params], params: dict[str, Any], where: str
) -> None:
    with pytest.raises(UsageError) as refused:
        parse_params(kind, params)
    assert f"$.{where}" in refused.value.message
    assert "`" not in refused.value.message


@given(
    kind=st.sampled_from(ALL_PARAMS),
    params=st.dictionaries(
        st.sampled_from(["query", "id", "path", "k", "timeout", "x"]) | texts, values, max_size=4
    ),
)
def test_any_parameters_are_taken_or_refused_in_one_way(
    kind: type[Params], params: dict[str, Any]
) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(parse_params(kind, params), kind)


def test_what_the_interface_leaves_out_has_its_default() -> None:
    assert parse_params(SearchParams, {"query": "q"}) == SearchParams(
        query="q", k=10, mode="hybrid"
    )
    assert parse_params(SyncParams, {}).timeout is None
    assert parse_params(SyncParams, {"timeout": 2}).timeout == 2
    assert parse_params(VerifyParams, {"vectors": None}).vectors is None
    assert parse_params(IndexParams, {"paths": ["a", "b"]}).paths == ("a", "b")
