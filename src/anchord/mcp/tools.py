"""The tools and resources: each call goes to the daemon that runs then, or reads the index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from mcp.types import CallToolResult, TextContent

from anchord.config.paths import Paths, working_folder
from anchord.core.quoting import escape_text, quote_name
from anchord.daemon import access
from anchord.errors import UsageError
from anchord.ipc import requests
from anchord.ipc.messages.searching import MAX_EXPAND_CHARS, SearchParams, ShowAnswer
from anchord.ipc.requests import Call
from anchord.mcp import answers, file_answers, parameters, schema, session_answers
from anchord.mcp.parts import DEFAULT_TOKEN_BUDGET, Answer
from anchord.mcp.render import render_answer

A = TypeVar("A")

_OUTDATED_NOTE = "anchord is not running: this is as of the last `anchord index`"
_OPTION_TYPES: dict[str, type] = {"detached": bool, "expand": int}
_TYPE_NAMES: dict[type, str] = {bool: "true or false", int: "a number", str: "a text"}
_FILES_AT_ONCE = 60
"""More do not fit in an answer."""
_EXCHANGES_AT_ONCE = 40


class Tools:
    """The tools and resources of one user's index.

    Agents see the methods' docstrings and parameters, so docstrings are one line of plain text.
    """

    def __init__(self, paths: Paths) -> None:
        """Serve the index of this home."""
        self._paths = paths

    def search(
        self,
        query: parameters.Query,
        k: parameters.ResultCount = 5,
        options: parameters.Options = {},  # noqa: B006 - never changed; None would be a type more
        cwd: parameters.Folder = "",
        max_tokens: parameters.TokenBudget = DEFAULT_TOKEN_BUDGET,
    ) -> Annotated[CallToolResult, schema.SearchAnswer]:
        """Search the user's files and past conversations."""
        call = requests.search(
            query,
            k=k,
            budget=answers.passages_budget(max_tokens),
            cwd=cwd or working_folder(),
            **_checked(options),
        )
        return self._tool_result(call, lambda found: answers.search_answer(found, max_tokens))

    def show(
        self,
        id: parameters.Text,  # noqa: A002 - the name is a fixed interface
        context: parameters.NeighborCount = 0,
        whole: bool = False,
        max_tokens: parameters.TokenBudget = DEFAULT_TOKEN_BUDGET,
    ) -> Annotated[CallToolResult, schema.ShowAnswer]:
        """Read a chunk in full, or the whole file; of an edited one its successor."""
        call = requests.show(id, context=context, whole=whole)
        return self._tool_result(call, lambda found: answers.show_answer(found, max_tokens))

    def files(
        self,
        path: parameters.Glob = "",
        kind: parameters.Text = "",
        cursor: parameters.Text = "",
    ) -> Annotated[CallToolResult, schema.FilesAnswer]:
        """List indexed files; cursor: the last answer's next."""

        def ask(count: int) -> tuple[Answer, bool]:
            call = requests.files(path=path, kind=kind, limit=count, cursor=cursor)
            found = self._ask(call).value
            answer = file_answers.files_answer(found)
            return answer, len(answer["files"]) == len(found.files)

        answer, is_whole = ask(_FILES_AT_ONCE)
        while not is_whole and answer["files"]:
            # Again with as many as fit: the cursor is that of the last one.
            answer, is_whole = ask(len(answer["files"]))
        return as_result(answer)

    def changes(
        self,
        since: parameters.Text = "",
        path: parameters.Glob = "",
    ) -> Annotated[CallToolResult, schema.ChangesAnswer]:
        """List files changed since, such as 7d."""
        call = requests.changes(since, path=path, limit=_FILES_AT_ONCE)
        return as_result(file_answers.changes_answer(self._ask(call).value))

    def sessions(
        self,
        project: parameters.Text = "",
        agent: parameters.Text = "",
        since: parameters.Text = "",
        limit: parameters.ListCount = 20,
    ) -> Annotated[CallToolResult, schema.SessionsAnswer]:
        """List past conversations, newest first."""
        call = requests.sessions(
            project=project,
            agent=agent,
            since=since,
            limit=limit,
        )
        found = self._ask(call).value
        return as_result(session_answers.sessions_answer(found, self._coverage_note()))

    def session(
        self,
        id: parameters.Text,  # noqa: A002 - the name is a fixed interface
        offset: parameters.Offset = 0,
        max_tokens: parameters.TokenBudget = DEFAULT_TOKEN_BUDGET,
    ) -> Annotated[CallToolResult, schema.SessionAnswer]:
        """Read a conversation."""
        call = requests.session(id, offset=offset, limit=_EXCHANGES_AT_ONCE)
        found = self._ask(call).value
        note = self._coverage_note()
        return as_result(session_answers.session_answer(found, offset, max_tokens, note))

    def explain(self, path: parameters.Text) -> Annotated[CallToolResult, schema.ExplainAnswer]:
        """Say whether a file is indexed, and why."""
        return self._tool_result(requests.explain(path), answers.explain_answer)

    def roots(self) -> Annotated[CallToolResult, schema.RootsAnswer]:
        """List indexed folders."""
        return self._tool_result(requests.roots(), answers.roots_answer)

    def status(self) -> Annotated[CallToolResult, schema.StatusAnswer]:
        """Say whether the index is healthy and up to date."""
        return as_result(answers.status_answer(self._ask_daemon(requests.status())))

    def sync(
        self, timeout: parameters.SyncTimeout = 30.0
    ) -> Annotated[CallToolResult, schema.SyncAnswer]:
        """Wait until everything written before is searchable."""
        return as_result(answers.sync_answer(self._ask_daemon(requests.sync(timeout))))

    def file(self, root: str, path: str) -> str:
        """Return a file's indexed text."""
        return self._resource(requests.show(root=root, path=path))

    def chunk(self, id: str) -> str:  # noqa: A002 - the name is a fixed interface
        """Return the text of the file or exchange that a chunk is part of."""
        return self._resource(requests.show(id, whole=True))

    def _tool_result(self, call: Call[A], to_answer: Callable[[A], Answer]) -> CallToolResult:
        """Ask the daemon, or read the index when none runs; the answer then says so."""
        result = self._ask(call)
        answer = to_answer(result.value)
        is_said = result.is_live or isinstance(call.params, SearchParams)
        return as_result(answer if is_said else _with_note(answer, _OUTDATED_NOTE))

    def _coverage_note(self) -> str:
        """Return what to know of answers that do not say themselves how complete the index is."""
        return self._ask(requests.files(limit=0)).value.note

    def _resource(self, call: Call[ShowAnswer]) -> str:
        """Return a text as one field: unsafe characters are escaped, and nothing is added."""
        found = self._ask(call).value
        return escape_text("\n\n".join(chunk.text for chunk in found.chunks))

    def _ask(self, call: Call[A]) -> access.Answer[A]:
        return access.ask_daemon_or_index(
            self._paths,
            call,
            retry_during_restart=True,
        )

    def _ask_daemon(self, call: Call[A]) -> A:
        """Ask the daemon for what only it can answer."""
        client = access.try_connect(self._paths)
        if client is None:
            raise access.not_running_error(self._paths)
        with client:
            return client.ask(call)


def as_result(answer: Answer) -> CallToolResult:
    """Return an answer in both forms: many clients show the model only the text."""
    text = TextContent(type="text", text=render_answer(answer))
    return CallToolResult(content=[text], structured_content=answer)


def _checked(options: parameters.Options) -> dict[str, Any]:
    """Return the options of a search.

    Raises:
        UsageError: There is no such option, or its value is of another type.
    """
    for name, value in options.items():
        if name not in parameters.OPTIONS:
            known = ", ".join(parameters.OPTIONS)
            raise UsageError(f"there is no option {quote_name(name)}", f"there are: {known}")
        wanted = _OPTION_TYPES.get(name, str)
        if type(value) is not wanted:
            raise UsageError(f"the option `{name}` is not {_TYPE_NAMES[wanted]}")
    if not 0 <= options.get("expand", 0) <= MAX_EXPAND_CHARS:
        raise UsageError("the option `expand` is out of range")
    return options


def _with_note(answer: Answer, note: str) -> Answer:
    """Put a note before the note of an answer."""
    notes = ". ".join(filter(None, (note, answer.get("note"))))
    return {"notice": answer["notice"], "note": notes} | answer | {"note": notes}
