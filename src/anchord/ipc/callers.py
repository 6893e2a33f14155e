"""Every method of the socket as a method of a Python object, with its own parameters and answer.

The parameters come from `requests`, so that type checkers know them: a misspelt method or parameter
is an error of theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Generic, ParamSpec, TypeVar, overload

from anchord.ipc import requests
from anchord.ipc.requests import Call

Q = ParamSpec("Q")
A = TypeVar("A")


class _Described(Generic[Q, A]):
    """A method that one of `requests` describes."""

    def __init__(self, make_call: Callable[Q, Call[A]]) -> None:
        """Take the parameters and the docstring from one of `requests`."""
        self._make_call = make_call
        self.__doc__ = make_call.__doc__


class Blocking(_Described[Q, A]):
    """A method of a `BlockingMethods` that returns its answer."""

    @overload
    def __get__(self, owner: None, owner_type: type) -> Callable[Q, Call[A]]: ...

    @overload
    def __get__(self, owner: BlockingMethods, owner_type: type) -> Callable[Q, A]: ...

    def __get__(
        self, owner: BlockingMethods | None, owner_type: type
    ) -> Callable[Q, A] | Callable[Q, Call[A]]:
        """Return the method of an object; of a class, for `help`, the function of `requests`."""
        if owner is None:
            return self._make_call

        @wraps(self._make_call)
        def ask(*args: Q.args, **params: Q.kwargs) -> A:
            return owner.ask(self._make_call(*args, **params))

        return ask


class Awaited(_Described[Q, A]):
    """A method of an `AwaitedMethods`; its answer is awaited."""

    @overload
    def __get__(self, owner: None, owner_type: type) -> Callable[Q, Call[A]]: ...

    @overload
    def __get__(self, owner: AwaitedMethods, owner_type: type) -> Callable[Q, Awaitable[A]]: ...

    def __get__(
        self, owner: AwaitedMethods | None, owner_type: type
    ) -> Callable[Q, Awaitable[A]] | Callable[Q, Call[A]]:
        """Return the method of an object; of a class, for `help`, the function of `requests`."""
        if owner is None:
            return self._make_call

        @wraps(self._make_call)
        async def ask(*args: Q.args, **params: Q.kwargs) -> A:
            return await owner.ask(self._make_call(*args, **params))

        return ask


class BlockingMethods(ABC):
    """All methods. Each blocks until its answer is there, and raises what `ask` raises."""

    @abstractmethod
    def ask(self, call: Call[A], /) -> A:
        """Return the answer to a call.

        Raises:
            AnchordError: The method failed; the class says how.
        """

    hello = Blocking(requests.hello)
    ping = Blocking(requests.ping)
    status = Blocking(requests.status)
    errors = Blocking(requests.errors)
    search = Blocking(requests.search)
    show = Blocking(requests.show)
    files = Blocking(requests.files)
    changes = Blocking(requests.changes)
    blame = Blocking(requests.blame)
    decisions = Blocking(requests.decisions)
    explain = Blocking(requests.explain)
    sessions = Blocking(requests.sessions)
    session = Blocking(requests.session)
    dump = Blocking(requests.dump)
    roots = Blocking(requests.roots)
    roots_add = Blocking(requests.roots_add)
    roots_remove = Blocking(requests.roots_remove)
    reload = Blocking(requests.reload)
    index = Blocking(requests.index)
    sync = Blocking(requests.sync)
    verify = Blocking(requests.verify)
    rescan = Blocking(requests.rescan)
    confirm_delete = Blocking(requests.confirm_delete)
    reindex = Blocking(requests.reindex)
    rebuild = Blocking(requests.rebuild)
    forget = Blocking(requests.forget)
    backup = Blocking(requests.backup)
    pause = Blocking(requests.pause)
    resume = Blocking(requests.resume)
    shutdown = Blocking(requests.shutdown)


class AwaitedMethods(ABC):
    """All methods. Each is awaited, and raises what `ask` raises."""

    @abstractmethod
    async def ask(self, call: Call[A], /) -> A:
        """Return the answer to a call.

        Raises:
            AnchordError: The method failed; the class says how.
        """

    hello = Awaited(requests.hello)
    ping = Awaited(requests.ping)
    status = Awaited(requests.status)
    errors = Awaited(requests.errors)
    search = Awaited(requests.search)
    show = Awaited(requests.show)
    files = Awaited(requests.files)
    changes = Awaited(requests.changes)
    blame = Awaited(requests.blame)
    decisions = Awaited(requests.decisions)
    explain = Awaited(requests.explain)
    sessions = Awaited(requests.sessions)
    session = Awaited(requests.session)
    dump = Awaited(requests.dump)
    roots = Awaited(requests.roots)
    roots_add = Awaited(requests.roots_add)
    roots_remove = Awaited(requests.roots_remove)
    reload = Awaited(requests.reload)
    index = Awaited(requests.index)
    sync = Awaited(requests.sync)
    verify = Awaited(requests.verify)
    rescan = Awaited(requests.rescan)
    confirm_delete = Awaited(requests.confirm_delete)
    reindex = Awaited(requests.reindex)
    rebuild = Awaited(requests.rebuild)
    forget = Awaited(requests.forget)
    backup = Awaited(requests.backup)
    pause = Awaited(requests.pause)
    resume = Awaited(requests.resume)
    shutdown = Awaited(requests.shutdown)
