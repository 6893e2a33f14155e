"""A daemon that starts with nothing changed loads no library that only changed files need."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import json, sys
from anchord.cli.output.log import configure_stderr_logging
configure_stderr_logging()
import anchord.daemon.main
from anchord.sources.secrets import values
unused = ("rich", "attr", "typer", "markdown_it", "lancedb.embeddings.base", "lance_namespace_urllib3_client.models.fts_query")
print(json.dumps([[name for name in unused if name in sys.modules], "match" in vars(values._UUID)]))
"""


def test_neither_rich_nor_a_parser_nor_clients_of_other_services_are_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [[], False]
