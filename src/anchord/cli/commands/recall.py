"""`recall`: what is indexed about each prompt, for Claude Code; off until it is asked for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from anchord.cli.app import JsonOption, app, ensure_paths, print_json, print_line
from anchord.cli.parameters import Option
from anchord.core.quoting import quote_name

if TYPE_CHECKING:
    from anchord.agents.recall.journal import LogEntry

_SHOWN_SESSION_CHARS = 8
_WITHOUT_PASSAGES = {
    "no strong match": "without a strong match",
    "short": "not searched: fewer than three words, or a command",
    "no answer": "without an answer within 0.3 s: the daemon was busy or not running",
}
"""Outcome in the log -> what it means."""

recall_commands = app.group(
    "recall",
    "Give Claude Code the strong matches for a prompt. "
    "`anchord connect claude --hooks` adds the hooks.",
)


@recall_commands.command("on")
def recall_on(
    tokens: Annotated[
        int | None,
        Option("--tokens", help="Maximum tokens for a prompt (600).", min=300, max=10_000),
    ] = None,
    hits: Annotated[
        int | None, Option("--hits", help="Maximum passages for a prompt (3).", min=1, max=8)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Switch recall on, or change its limits."""
    from anchord.agents.recall.settings import RecallSettings, load_settings, save_settings

    data_folder = ensure_paths().data_folder
    now = load_settings(data_folder)
    settings = RecallSettings(True, tokens or now.tokens, hits or now.hits)
    save_settings(data_folder, settings)
    server = _embedding_server()
    if json:
        print_json(
            {
                "on": True,
                "tokens": settings.tokens,
                "hits": settings.hits,
                "embedding_server": server,
            }
        )
        return
    print_line(f"recall is on: at most {settings.hits} passages, {settings.tokens} tokens a prompt")
    if server:
        print_line(
            f"the embedding server {quote_name(server)} gets the first 1,000 characters of each "
            "prompt, with secrets redacted"
        )


def _embedding_server() -> str:
    """Return the URLs of the embedding servers that are configured; "" without one."""
    from anchord.config.file import load_config

    servers = load_config(ensure_paths().config_file).embedding.servers
    return ", ".join(dict.fromkeys(server.url for server in servers))


@recall_commands.command("off")
def recall_off(json: JsonOption = False) -> None:
    """Switch recall off; its limits and its log stay."""
    from anchord.agents.recall.settings import RecallSettings, load_settings, save_settings

    data_folder = ensure_paths().data_folder
    now = load_settings(data_folder)
    save_settings(data_folder, RecallSettings(False, now.tokens, now.hits))
    if json:
        print_json({"on": False, "tokens": now.tokens, "hits": now.hits})
    else:
        print_line("recall is off")


@recall_commands.command("status")
def recall_status(json: JsonOption = False) -> None:
    """Show whether recall is on, and what the prompts in its log have cost."""
    from anchord.agents.recall.journal import Journal
    from anchord.agents.recall.settings import load_settings

    data_folder = ensure_paths().data_folder
    settings = load_settings(data_folder)
    entries = Journal(data_folder).entries()
    said = [entry for entry in entries if entry.tokens]
    outcomes = Counter(entry.outcome for entry in entries)
    total = sum(entry.tokens for entry in said)
    most = max((entry.tokens for entry in said), default=0)
    if json:
        print_json(
            {
                "on": settings.is_on,
                "tokens": settings.tokens,
                "hits": settings.hits,
                "prompts": len(entries),
                "prompts_with_passages": len(said),
                "outcomes": outcomes,
                "total_tokens": total,
                "most_tokens": most,
            }
        )
        return
    state = "on" if settings.is_on else "off"
    print_line(f"recall is {state}: at most {settings.hits} passages, {settings.tokens} tokens")
    print_line(
        f"in the log: {len(entries):,} prompts, {len(said):,} with passages; "
        f"{total:,} tokens in all, at most {most:,} for one prompt"
    )
    for outcome, meaning in _WITHOUT_PASSAGES.items():
        if outcomes[outcome]:
            print_line(f"  {outcomes[outcome]:,} {meaning}")


@recall_commands.command("log")
def recall_log(
    count: Annotated[int, Option("-n", help="How many prompts, the last ones.", min=1)] = 20,
    json: JsonOption = False,
) -> None:
    """List the last prompts: when, session, tokens, and the places of the passages.

    Nothing of a prompt or a passage is in the log.
    """
    from anchord.agents.recall.journal import Journal

    entries = Journal(ensure_paths().data_folder).entries()[-count:]
    if json:
        print_json(entries)
        return
    for entry in entries:
        _print_entry(entry)
    if not entries:
        print_line("no prompt yet")


@recall_commands.command("hook", hidden=True)
def recall_hook() -> None:
    """Answer a hook of Claude Code: JSON on standard input and output."""
    from anchord.agents.recall.hook import run_hook

    run_hook()


def _print_entry(entry: LogEntry) -> None:
    session = entry.session[:_SHOWN_SESSION_CHARS]
    print_line(
        f"{entry.at}  {session}  {entry.tokens:>5} tokens  {entry.ms:>4} ms  {entry.outcome}"
    )
    for hit in entry.hits:
        print_line(f"    {hit}")
