"""`privacy`: where secrets were replaced, and what the rules find in one file."""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from anchord.cli.app import (
    JsonOption,
    app,
    ensure_paths,
    print_json,
    print_line,
    warn,
)
from anchord.cli.parameters import Argument
from anchord.cli.registry import Exit
from anchord.core.quoting import escape_gaps
from anchord.daemon.access import query_index
from anchord.errors import UsageError

if TYPE_CHECKING:
    from anchord.index.session import IndexReader
    from anchord.search.secrets_report import SecretsReport

privacy_commands = app.group("privacy", "List replaced secrets, or check a file for secrets.")


@privacy_commands.command("report")
def privacy_report(json: JsonOption = False) -> None:
    """List the indexed files in which secrets were replaced, by kind, and the files left out.

    The secrets themselves are not stored, so they are not listed.
    """

    def read_report(reader: IndexReader) -> SecretsReport:
        from anchord.search.secrets_report import report_secrets

        return report_secrets(reader, reader.catalog)

    report = query_index(ensure_paths(), read_report)
    if json:
        print_json(asdict(report))
        return
    totals: Counter[str] = Counter()
    for file in report.files:
        secrets = file["secrets"]
        totals.update(secrets)
        place = escape_gaps(f"{file['root']}:{file['path']}")
        print_line(f"{place}  {_counts(secrets)}")
    for left_out in report.left_out:
        place = escape_gaps(f"{left_out['root']}:{left_out['path']}")
        print_line(f"{place}  left out: it holds mostly secrets")
    replaced = f"{totals.total()} secrets replaced in {len(report.files)} files"
    print_line(f"{replaced}, {len(report.left_out)} files left out ({report.rules})")


@privacy_commands.command("check")
def privacy_check(file: Annotated[str, Argument(metavar="FILE")], json: JsonOption = False) -> None:
    """Show the secrets that the rules find in a file; exit 1 if there are any.

    The secrets are printed on a terminal only; elsewhere their lines are printed without them.
    """
    from anchord.sources.secrets.credential_files import holds_mostly_secrets
    from anchord.sources.secrets.redactor import find_secrets, redact

    text = _read_text(file)
    findings = find_secrets(text)
    redacted_lines = redact(text).text.split("\n")
    is_shown = sys.stdout.isatty() and not json
    rows: list[dict[str, Any]] = []
    for finding in findings:
        number = text.count("\n", 0, finding.start) + 1
        secret = text[finding.start : finding.end].partition("\n")[0]
        shown = secret if is_shown else redacted_lines[number - 1].strip()
        rows.append({"line": number, "kind": finding.kind, "text": shown})
    is_left_out = holds_mostly_secrets(text, findings)
    if json:
        print_json({"secrets": rows, "left_out": is_left_out})
    else:
        for row in rows:
            line, kind, text = row["line"], row["kind"], row["text"]
            print_line(f"{line}: {kind}  {text}")
        if is_left_out:
            warn("The file holds mostly secrets: it is not indexed.")
        if not rows:
            print_line("No secrets found.")
    raise Exit(1 if rows else 0)


def _counts(by_kind: dict[str, int]) -> str:
    counts = [f"{count} {kind}" for kind, count in by_kind.items()]
    return ", ".join(counts)


def _read_text(file: str) -> str:
    """Return the text that would be indexed of a file.

    Raises:
        UsageError: It cannot be read, or is binary.
    """
    from anchord.core.types import Problem
    from anchord.sources.documents.parse import parse_document

    try:
        with open(file, "rb") as stream:
            data = stream.read()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"cannot read {file}: {reason}", "give the path of a file") from None
    document = parse_document(data, file)
    if isinstance(document, Problem):
        raise UsageError(f"{file}: {document.reason}", "give a text file")
    return document.text
