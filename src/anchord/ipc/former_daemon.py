"""Calls as a daemon of before an update understands them, until it is restarted."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from anchord.ipc.messages.searching import SearchParams
from anchord.ipc.requests import Call

A = TypeVar("A")


def for_former_daemon(call: Call[A]) -> Call[A] | None:
    """Return a search without what only says how to show it: older daemons refuse to read that.

    Returns:
        None for a call that has no such parameter.
    """
    params = call.params
    if not isinstance(params, SearchParams) or not (params.cwd or params.budget):
        return None
    return Call(call.method, msgspec.structs.replace(params, cwd="", budget=0))
