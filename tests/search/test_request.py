"""The parameters of a search as a request: which folders are the caller's."""

from __future__ import annotations

import pytest

from anchord.core.types import Root, RootedPath
from anchord.ipc.messages.searching import SearchParams
from anchord.search.packing import Layout
from anchord.search.request import make_search_request

ROOTS = [Root(name="app", path="/code/app"), Root(name="app2", path="/code/app-two")]


@pytest.mark.parametrize(
    ("cwd", "near", "far"),
    [
        ("/code/app", ["app:a.md"], ["app2:a.md"]),
        ("/code/app/", ["app:deep/a.md"], ["app2:a.md"]),
        ("/code/app/deep", ["app:deep/a.md", "app:deep"], ["app:deeper/a.md", "app2:deep/a.md"]),
        ("/code", ["app:a.md", "app2:a.md"], []),
        ("/", ["app:a.md", "app2:a.md"], []),
        ("/home/me", [], ["app:a.md", "app2:a.md"]),
        ("", [], ["app:a.md"]),
        ("relative", [], ["app:a.md"]),
    ],
)
def test_a_file_is_near_if_it_is_below_the_callers_folder(
    cwd: str, near: list[str], far: list[str]
) -> None:
    request = make_search_request(SearchParams(query="x", cwd=cwd), ROOTS)
    for name in (*near, *far):
        root, path = name.split(":")
        assert request.is_near(RootedPath(root, path)) == (name in near)


def test_a_budget_of_0_is_none() -> None:
    params = SearchParams(query="x", expand=50, show_chunks=True)
    request = make_search_request(params, ROOTS)
    assert request.layout == Layout(budget=None, expand_chars=50, is_flat=True)
    limited = make_search_request(SearchParams(query="x", budget=500), ROOTS)
    assert limited.layout == Layout(budget=500)
