"""The kind of document and the programming language of a file, by its name."""

from __future__ import annotations

MARKDOWN_SUFFIXES = frozenset(
    """
    .md .markdown .mdown .mkd .mdx .mdc .qmd .rmd .ipynb
    """.split()  # noqa: SIM905 - a list of so many strings would be harder to read
)
"""Files of kind `markdown`. A notebook (.ipynb) is converted to Markdown."""

TEXT_SUFFIXES = frozenset(
    """
    .txt .text .rst .adoc .asciidoc .org .tex .html .htm .xml .csv .tsv .json .jsonl .yaml .yml
    .toml .ini .cfg .conf
    """.split()  # noqa: SIM905 - a list of so many strings would be harder to read
)
"""Files of kind `text`."""

CODE_SUFFIXES = frozenset(
    """
    .py .pyi .rs .ts .tsx .js .jsx .mjs .cjs .go .java .kt .kts .scala .c .h .cc .cpp .cxx .hpp
    .hh .cs .rb .php .sh .bash .zsh .fish .ps1 .swift .m .mm .lua .pl .pm .r .jl .ex .exs .erl
    .hs .ml .mli .clj .cljs .elm .dart .zig .nim .sql .graphql .proto .vue .svelte .css .scss
    .less .tf .nix .cmake .gradle .groovy .vim .el .lisp
    """.split()  # noqa: SIM905 - a list of so many strings would be harder to read
)
"""Files of kind `code`."""

_NAMES_BY_KIND = {
    "markdown": "readme changelog",
    "text": "license licence copying notice authors",
    "code": "makefile dockerfile justfile rakefile gemfile cmakelists.txt",
}
_KIND_BY_NAME = {name: kind for kind, names in _NAMES_BY_KIND.items() for name in names.split()}
"""Names of files, in lower case, that have a kind whatever their suffix."""

_KIND_BY_SUFFIX = {
    **dict.fromkeys(CODE_SUFFIXES, "code"),
    **dict.fromkeys(TEXT_SUFFIXES, "text"),
    **dict.fromkeys(MARKDOWN_SUFFIXES, "markdown"),
}

_SUFFIXES_BY_LANGUAGE = {
    "python": "py pyi",
    "rust": "rs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "javascript": "js jsx mjs cjs",
    "go": "go",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx hpp hh",
    "csharp": "cs",
    "ruby": "rb",
    "php": "php",
    "bash": "sh bash",
    "rst": "rst",
    "adoc": "adoc asciidoc",
    "org": "org",
    "html": "html htm",
    "yaml": "yaml yml",
    "toml": "toml",
    "ini": "ini cfg conf",
    "json": "json ipynb",
    "csv": "csv",
    "tsv": "tsv",
    "clojure": "clj cljs",
    "elisp": "el",
    "elixir": "ex exs",
    "erlang": "erl",
    "groovy": "groovy gradle",
    "haskell": "hs",
    "julia": "jl",
    "kotlin": "kt kts",
    "objc": "m mm",
    "ocaml": "ml mli",
    "perl": "pl pm",
    "powershell": "ps1",
    "terraform": "tf",
    # Their suffix is their name.
    **{
        name: name
        for name in (
            *("cmake", "css", "dart", "elm", "fish", "graphql", "less", "lisp", "lua", "nim"),
            *("nix", "proto", "r", "scala", "scss", "sql", "svelte", "swift", "vim", "vue"),
            *("zig", "zsh"),
        )
    },
}
_LANGUAGE_BY_NAME = {
    "makefile": "make", "dockerfile": "dockerfile", "justfile": "just", "cmakelists.txt": "cmake",
}  # fmt: skip
_LANGUAGE_BY_SUFFIX = {
    suffix: language
    for language, suffixes in _SUFFIXES_BY_LANGUAGE.items()
    for suffix in suffixes.split()
}
_OTHER_LANGUAGE_NAMES = {
    "c#": "csharp",
    "c++": "cpp",
    "docker": "dockerfile",
    "golang": "go",
    "hcl": "terraform",
    "ipython": "python",
    "makefile": "make",
    "node": "javascript",
    "objective-c": "objc",
    "py3": "python",
    "python3": "python",
    "shell": "bash",
    "zsh": "bash",
}
"""Names in code blocks that are no suffix."""


def kind_of(path: str) -> str | None:
    """Return the kind of a file by its name.

    Args:
        path: A file name or a path with "/".

    Returns:
        `markdown`, `text` or `code`; None if no such name is known to be text.
    """
    kind = _KIND_BY_SUFFIX.get(path[path.rfind(".") :])
    if kind and "/" not in path and path[0] not in "./":
        # An ordinary file name: the usual case, for a walk asks for the kind of every name.
        return _KIND_BY_NAME.get(path.lower()) or kind
    name = path.rpartition("/")[2].lower()
    named_kind = _KIND_BY_NAME.get(name)
    if named_kind:
        return named_kind
    stem, dot, suffix = name.rpartition(".")
    if not stem.strip("."):
        return None  # A hidden file such as `.md` has a name and no suffix.
    return _KIND_BY_SUFFIX.get(dot + suffix)


def language_of(path: str) -> str:
    """Return the programming language or text format of a file by its name; "" if unknown."""
    name = path.rpartition("/")[2].lower()
    return _LANGUAGE_BY_NAME.get(name) or _LANGUAGE_BY_SUFFIX.get(name.rpartition(".")[2], "")


def names_of_language(name: str) -> tuple[str, ...]:
    """Return every name of a language in the index: the language of files, and of code blocks.

    Args:
        name: Any of them, in any case, such as "py" or "Python".

    Returns:
        The names in lower case; the name alone if no file type has it.
    """
    lower = name.strip().lower()
    named = _OTHER_LANGUAGE_NAMES.get(lower, lower)
    language = _LANGUAGE_BY_SUFFIX.get(named, named)
    others = [other for other, meant in _OTHER_LANGUAGE_NAMES.items() if meant == language]
    suffixes = _SUFFIXES_BY_LANGUAGE.get(language, "").split()
    return tuple(dict.fromkeys([language, lower, *suffixes, *others]))
