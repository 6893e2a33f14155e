"""The overview of `anchord --help`: commands in groups, those for every day first."""

from __future__ import annotations

HELP_GROUPS: dict[str, dict[str, str]] = {
    "Search": {
        "search": "Search by meaning and by words.",
        "show": "Print a chunk, its neighbours, or its whole file.",
        "connect": "Give agents access: Claude Code, Codex, Cursor and others.",
        "recall": "Give Claude Code what is indexed about each prompt.",
        "mcp": "Serve agents over the Model Context Protocol.",
    },
    "Conversations": {
        "sessions": "List conversations, also those that were deleted.",
        "session": "Show a conversation, restore or resume it.",
        "decisions": "List what was decided in conversations.",
        "blame": "Show which conversations and commits changed a file.",
        "discover": "Find conversations of AI assistants on this machine.",
    },
    "Folders": {
        "add": "Index a folder from now on.",
        "remove": "Stop indexing a folder; its files stay.",
        "roots": "List the indexed folders.",
    },
    "Indexing": {
        "start": "Start the daemon in the background.",
        "stop": "Stop the daemon.",
        "restart": "Restart the daemon.",
        "run": "Run the daemon in the foreground.",
        "service": "Run the daemon as a service of your session.",
        "index": "Bring the index up to date once and exit.",
        "sync": "Wait until all changes so far are searchable.",
        "pause": "Pause indexing; searches still work.",
        "resume": "Resume indexing.",
    },
    "What is going on": {
        "status": "Show what the daemon does and whether it is healthy.",
        "errors": "List files that are not fully indexed, with reasons.",
        "explain": "Explain whether and why a file is indexed.",
        "doctor": "Check this machine and say what to do.",
        "verify": "Compare the index with a clean rebuild.",
        "privacy": "List replaced secrets, or check a file for secrets.",
        "config": "Show or check the configuration.",
        "model": "Name models on this machine and pin their files.",
    },
    "Chunks": {
        "chunk": "Chunk one file and print the result.",
        "diff": "Compare two versions of a file by their chunks.",
        "eval": "Measure which strategy finds sections best.",
        "dump": "Print every row as JSON.",
        "export": "Write all chunks to a Parquet or JSONL file.",
    },
    "Maintenance": {
        "backup": "Copy index, archive and settings to another folder.",
        "restore": "Restore a backup into an empty home.",
        "rescan": "Compare a folder with the index now.",
        "confirm-delete": "Confirm a mass deletion.",
        "forget": "Delete a file from the index for good.",
        "reindex": "Read every file again.",
        "rebuild": "Build a new index and embed every text again.",
        "man": "Print the manual page.",
        "schema": "Print the methods of the socket as JSON Schema.",
    },
}
"""Title -> command -> summary, of at most 60 characters: no line is wrapped at 80 columns."""
