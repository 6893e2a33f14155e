"""Plans the changes for some clients as `steps`, and makes them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from anchord.agents import settings_files
from anchord.agents.clients import Client, Places, Scope, Server
from anchord.agents.connections import connection
from anchord.agents.settings_files import ChangedError, copy_of, read
from anchord.agents.steps import (
    Step,
    connecting_steps,
    edited_value,
    hook_step,
    removing_steps,
    renewed,
)
from anchord.core.quoting import quote_name
from anchord.errors import AnchordError

_COMMAND_TIMEOUT_S = 60.0
_TRIES = 4


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be done with clients."""

    places: Places
    scope: Scope
    server: Server | None
    """What they are to start; None takes anchord out of them."""
    hooks: bool = False
    """Whether hooks are added; those that are there are updated anyway."""


class Done(NamedTuple):
    """A change that was made."""

    step: Step
    remarks: Sequence[str]
    """What the user should know of it, in sentences."""


@dataclass
class Plan:
    """The steps for some clients, and what keeps others from being connected."""

    steps: list[Step] = field(default_factory=list)
    problems: dict[str, AnchordError] = field(default_factory=dict)
    """By the client's name."""

    @property
    def changes(self) -> list[Step]:
        """The steps that change something."""
        return [step for step in self.steps if step.action != "none"]

    @property
    def notes(self) -> list[Step]:
        """The steps that change nothing for a reason."""
        return [step for step in self.steps if step.note]


def make_plan(wish: Wish, clients: Sequence[Client]) -> Plan:
    """Plan what is to be done with clients; nothing is written."""
    plan = Plan()
    for client in clients:
        try:
            plan.steps += list(_steps(wish, client))
        except AnchordError as error:
            plan.problems[client.name] = error
    return plan


def _steps(wish: Wish, client: Client) -> Iterator[Step]:
    places, scope, server = wish.places, wish.scope, wish.server
    if server is None:
        yield from removing_steps(client, places, scope, read, copy_of)
        return
    yield from connecting_steps(client, places, scope, server, read)
    if client.hooks_file and (wish.hooks or connection(client, places, scope, server).hooks):
        yield hook_step(client, places, scope, server, read)


def apply_plan(plan: Plan, wish: Wish) -> Iterator[Done]:
    """Make the changes, and yield each; what fails is added to the problems of the plan.

    A change that fails stops the later ones of its client only. Clients that wrote their settings
    in the same moment are planned and tried again.
    """
    for step in plan.steps:
        settings_files.delete_leftovers(step.file)
    steps = plan.changes
    for tries_left in reversed(range(_TRIES)):
        changed = yield from _apply_steps(steps, plan, wish.places)
        if not changed or not tries_left:
            return
        for client in changed:
            del plan.problems[client.name]
        again = make_plan(wish, changed)
        plan.problems |= again.problems
        steps = again.changes


def _apply_steps(
    steps: Sequence[Step], plan: Plan, places: Places
) -> Generator[Done, None, list[Client]]:
    """Make changes, and yield each; return the clients whose settings changed meanwhile."""
    changed: list[Client] = []
    for step in steps:
        if step.client.name in plan.problems:
            continue
        try:
            yield Done(step, _apply(step, places))
        except AnchordError as error:
            plan.problems[step.client.name] = error
            if isinstance(error, ChangedError):
                changed.append(step.client)
    return changed


def _apply(step: Step, places: Places) -> list[str]:
    """Make the change of a step; return what the user should know of it.

    Raises:
        AnchordError: It cannot be made.
    """
    remarks = []
    if step.command and shutil.which(step.command[0], path=places.environment.get("PATH")):
        failure = _run(step, places)
        if not failure:
            return [f"with `{shlex.join(step.command[:3])}`"]
        remarks.append(f"`{shlex.join(step.command[:3])}` failed ({failure}); edited the file")
        step = renewed(step, read, copy_of)
        if step.action == "none":
            return remarks
    remarks += _keep_copy(step)
    if step.after is None:
        settings_files.delete(step.file, step.before or "", places.kept_folders)
    else:
        settings_files.replace(step.file, step.before, step.after)
    return remarks + _drop_copy(step)


def _run(step: Step, places: Places) -> str:
    """Run the client's own command; return why it failed, "" if it did what it should."""
    program = shutil.which(step.command[0], path=places.environment.get("PATH"))
    assert program  # noqa: S101 - the caller looked
    try:
        ran = subprocess.run(
            [program, *step.command[1:]],
            env=dict(places.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    wanted = edited_value(step.file, step.after, step.client)
    if edited_value(step.file, read(step.file), step.client) == wanted:
        return ""
    return f"exit code {ran.returncode}"


def _keep_copy(step: Step) -> list[str]:
    """Copy a file before its first change; return what the user should know of that.

    Raises:
        AnchordError: The skill of the user's own that the copy is of was changed since.
    """
    copy = copy_of(step.file)
    earlier = read(copy)
    is_first = step.before is not None and not step.has_part(step.before)
    is_skill = step.part == "skill"
    if is_skill and is_first and earlier is not None:
        raise AnchordError(
            f"{quote_name(step.file)} was changed, and an earlier copy is kept beside it",
            f"move {quote_name(copy)} away, or restore it",
        )
    is_due = is_first or (earlier is None and step.after is not None and not is_skill)
    if step.before is None or not is_due:
        return []
    settings_files.copy(step.file, step.before)
    return [f"the earlier file is kept as {quote_name(copy)}"]


def _drop_copy(step: Step) -> list[str]:
    """Delete the copy once the file is as it was; return what the user should know of it."""
    copy = copy_of(step.file)
    earlier = read(copy)
    if step.action != "remove" or earlier is None:
        return []
    if read(step.file) == earlier:
        settings_files.delete(copy, earlier)
        return []
    return [f"the copy of the earlier file stays: {quote_name(copy)}"]
