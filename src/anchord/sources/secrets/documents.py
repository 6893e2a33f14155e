"""Documents of project files without their secrets.

The redacted text is what is hashed, embedded, stored and shown, so offsets of characters count in
it. Its lines are those of the file.
"""

from __future__ import annotations

from dataclasses import replace

from anchord.core.types import Document, Problem
from anchord.sources.secrets.credential_files import holds_mostly_secrets
from anchord.sources.secrets.redactor import find_secrets, redact

MOSTLY_SECRETS = "holds mostly secrets: not indexed"


def redact_document(document: Document) -> Document | Problem:
    """Return a document without secrets.

    Returns:
        The document itself if it has no secrets, or a problem if it has little else.
    """
    findings = find_secrets(document.text)
    if holds_mostly_secrets(document.text, findings):
        return Problem(MOSTLY_SECRETS)
    if not findings:
        return document
    return replace(document, text=redact(document.text).text)
