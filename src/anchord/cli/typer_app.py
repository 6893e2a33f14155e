"""The commands as a typer application: for the help, for errors of usage, and for completion.

A correct command line is parsed by `parameters` and needs none of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import Abort, TyperException

from anchord._version import __version__
from anchord.cli.app import app
from anchord.cli.help_groups import HELP_GROUPS
from anchord.cli.output.console import print_text
from anchord.cli.parameters import Parameter, parameters_of
from anchord.cli.registry import Command, Commands
from anchord.errors import UsageError

Runner = Callable[[Command, dict[str, Any]], None]


class GroupedCommands(TyperGroup):
    """A group of commands whose help lists them under the titles of `HELP_GROUPS`."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override] # noqa: ARG002 - typer's own base is vendored
        """Return the names of the commands in the order of the help."""
        return [name for group in HELP_GROUPS.values() for name in group]

    def format_commands(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override] # noqa: ARG002 - likewise
        """Write the groups. `formatter` is click's HelpFormatter."""
        width = max(len(name) for group in HELP_GROUPS.values() for name in group)
        for title, summaries in HELP_GROUPS.items():
            with formatter.section(title):  # type: ignore[attr-defined] # likewise
                padded = [(name.ljust(width), summary) for name, summary in summaries.items()]
                formatter.write_dl(padded)  # type: ignore[attr-defined] # likewise


class UncutCommands(TyperGroup):
    """A group of commands whose help shows the whole first sentence of each."""

    def format_commands(self, ctx: typer.Context, formatter: object) -> None:  # type: ignore[override] # likewise
        """Write the list of commands. `formatter` is click's HelpFormatter."""
        no_limit = 1_000
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command and not command.hidden:
                rows.append((name, command.get_short_help_str(no_limit)))
        with formatter.section("Commands"):  # type: ignore[attr-defined] # likewise
            formatter.write_dl(rows)  # type: ignore[attr-defined] # likewise


def run_command(command: Command, values: dict[str, Any]) -> None:
    """Run a command with these values of its parameters."""
    command(**values)


def run_with_typer(names: Collection[str], words: Sequence[str]) -> int:
    """Have typer answer a command line: print help or complete it; return the exit code.

    Args:
        names: The commands that the command line may mean; all of them are registered.
        words: The command line without the program's name.

    Raises:
        UsageError: The command line is wrong.
        KeyboardInterrupt: A question of a command was not answered.
        BrokenPipeError: The reader of the output ended first.
    """
    try:
        # Without a name it is "python -m anchord" by how Python was started.
        code = build(names)(
            words,
            prog_name="anchord",
            standalone_mode=False,
        )
    except TyperException as error:
        message = error.format_message().rstrip(".")
        raise UsageError(message, "`anchord --help` lists the commands and options") from None
    except Abort:
        raise KeyboardInterrupt from None
    except SystemExit as ending:  # typer ends so after a closed pipe, and after a shell's script.
        if isinstance(ending.__context__, BrokenPipeError):
            raise ending.__context__ from None
        code = ending.code
    return code if isinstance(code, int) else 0


def build(names: Collection[str], run: Runner = run_command) -> typer.Typer:
    """Return the application with these of the registered commands.

    Args:
        names: The commands.
        run: Called with the command that a command line means and the values for its parameters.
    """
    main = typer.Typer(
        name="anchord",
        cls=GroupedCommands,
        help=app.help,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    main.callback(invoke_without_command=True)(_main_callback)
    _add(main, app, names, run)
    return main


def _add(target: typer.Typer, commands: Commands, names: Collection[str], run: Runner) -> None:
    for name, command in commands.functions.items():
        if name in names:
            target.command(name, hidden=name in commands.hidden)(_for_typer(command, run))
    for name, group in commands.groups.items():
        if name in names:
            inner = typer.Typer(cls=UncutCommands, help=group.help)
            inner.callback(invoke_without_command=True, help=group.help)(_group_callback)
            _add(inner, group, group.functions, run)
            target.add_typer(inner, name=name)


def _for_typer(command: Command, run: Runner) -> Command:
    """Return a function that runs a command and declares its parameters in typer's way."""

    def call(**values: Any) -> None:  # noqa: ANN401 - of the command's parameters
        run(command, values)

    call.__doc__ = command.__doc__
    parameters = parameters_of(command)
    call.__annotations__ = {each.name: _annotation(each) for each in parameters}
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # of any function
        [
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if each.is_required else each.default,
                annotation=_annotation(each),
            )
            for each in parameters
        ]
    )
    return call


def _annotation(parameter: Parameter) -> Any:  # noqa: ANN401 - a type
    declared = parameter.declaration
    make = typer.Argument if parameter.is_argument else typer.Option
    rule = make(
        *declared.names,
        help=declared.help,
        metavar=declared.metavar,
        min=declared.min,
        max=declared.max,
        autocompletion=declared.autocompletion,
    )
    return Annotated[parameter.annotation, rule]


def _main_callback(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Keep a search index of your folders current; a one-line edit re-embeds one chunk."""
    if version:
        print_text(f"anchord {__version__}")
        raise typer.Exit
    _group_callback(context)


def _group_callback(context: typer.Context) -> None:
    """Print the help and exit with code 2 if no command was given."""
    if context.invoked_subcommand is None:
        print_text(context.get_help(), is_stderr=True)
        raise typer.Exit(2)
