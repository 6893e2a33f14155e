"""Bytes of a file -> Document. For now project files only; conversations get readers beside this table."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace

from anchord.model import Document, Problem
from anchord.sources.clean import clean
from anchord.sources.notebook import read_notebook

MARKDOWN = frozenset(
    {".md", ".markdown", ".mdown", ".mkd", ".mdx", ".mdc", ".qmd", ".rmd", ".ipynb"}
)  # A notebook is read as markdown.
TEXT = frozenset({".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".tex", ".html", ".htm", ".xml", ".csv", ".tsv",
                  ".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"})  # fmt: skip
CODE = frozenset({".py", ".pyi", ".rs", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".go", ".java", ".kt", ".kts", ".scala",
                  ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".cs", ".rb", ".php", ".sh", ".bash", ".zsh", ".fish",
                  ".ps1", ".swift", ".m", ".mm", ".lua", ".pl", ".pm", ".r", ".jl", ".ex", ".exs", ".erl", ".hs", ".ml",
                  ".mli", ".clj", ".cljs", ".elm", ".dart", ".zig", ".nim", ".sql", ".graphql", ".proto", ".vue", ".svelte",
                  ".css", ".scss", ".less", ".tf", ".nix", ".cmake", ".gradle", ".groovy", ".vim", ".el", ".lisp"})  # fmt: skip
_NAMES = {"readme": "markdown", "changelog": "markdown", "license": "text", "licence": "text", "copying": "text",
          "notice": "text", "authors": "text", "makefile": "code", "dockerfile": "code", "justfile": "code",
          "rakefile": "code", "gemfile": "code", "cmakelists.txt": "code"}  # fmt: skip
_KINDS = {suffix: kind for kind, suffixes in (("code", CODE), ("text", TEXT), ("markdown", MARKDOWN)) for suffix in suffixes}
_LANGUAGES = {
    "py": "python", "pyi": "python", "rs": "rust", "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "tsx",
    "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript", "go": "go", "java": "java",
    "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "cxx": "cpp", "hpp": "cpp", "hh": "cpp", "cs": "csharp", "rb": "ruby",
    "php": "php", "sh": "bash", "bash": "bash",
    "rst": "rst", "adoc": "adoc", "asciidoc": "adoc", "org": "org", "html": "html", "htm": "html",
    "yaml": "yaml", "yml": "yaml", "toml": "toml",
    "ini": "ini", "cfg": "ini", "conf": "ini", "json": "json", "ipynb": "json", "csv": "csv", "tsv": "tsv",
}  # fmt: skip

_BOMS = (  # The UTF-32 mark begins with the UTF-16 one, so it is looked for first.
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BINARY_SHARE = 0.1


def kind_of(path: str) -> str | None:
    """Return the kind of a file by its name, None for one that is not known to be text."""
    kind = _KINDS.get(path[path.rfind(".") :])
    if kind and path[0] not in "./" and "/" not in path:  # An ordinary name, as a walk asks of: no more needs to be known.
        return _NAMES.get(path.lower()) or kind
    name = path.rpartition("/")[2].lower()
    stem, dot, ending = name.rpartition(".")
    return _NAMES.get(name) or (_KINDS.get(dot + ending) if stem.strip(".") else None)


def language_of(path: str) -> str:
    """Return the programming language or text format of a file by its ending, "" for one that none is known of."""
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "")


def parse(data: bytes, path: str) -> Document | Problem:
    """Read a file's text; what is no text is a Problem, what is partly none is read with U+FFFD in its place."""
    mark, encoding = next(((mark, name) for mark, name in _BOMS if data.startswith(mark)), (b"", "utf-8"))
    body = data[len(mark) :]
    problem = None
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        text = body.decode(encoding, "replace")
        problem = Problem(f"not {encoding.upper()} at byte {len(mark) + error.start}: read with U+FFFD there", partial=True)
    odd = len(_CONTROLS.findall(text)) + text.count("\ufffd")
    if odd > _BINARY_SHARE * len(text):
        return Problem("binary content: not indexed")
    if "\0" in text:
        problem = problem or Problem(f"NUL at character {text.find(chr(0))}: read with U+FFFD there", partial=True)
    document = document_of(clean(text), path)
    if kind_of(path) is None:
        document = replace(document, kind="text")
    return replace(document, problem=problem or document.problem)


def document_of(text: str, path: str) -> Document:
    """Return a text as a document of the kind that its path says; of no known kind it is markdown. `text` is clean."""
    if path.lower().endswith(".ipynb"):
        book = read_notebook(text)
        if book is not None:
            return Document(book.text, "markdown", None, "ipynb", book.source_lines, book.cells)
        return Document(text, "text", Problem("no notebook: read as JSON", partial=True), "json")
    return Document(text, kind_of(path) or "markdown", None, language_of(path))
