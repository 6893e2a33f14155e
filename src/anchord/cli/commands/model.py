"""`model`: name a model that is on this machine, with the digests of its files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from anchord.cli.app import JsonOption, app, ensure_paths, load_user_config, print_json, print_line
from anchord.cli.parameters import Argument, Option
from anchord.core.quoting import quote_name
from anchord.errors import AnchordError, UsageError

if TYPE_CHECKING:
    from anchord.config.schema import Config, ModelConfig
    from anchord.embedding.model_files import ModelFiles

model_commands = app.group("model", "Name embedding models on this machine and pin their files.")


@model_commands.command("add")
def model_add(
    model: Annotated[str, Argument(metavar="PATH|NAME")],
    name: Annotated[str, Option("--name", help="Name to use; by default that of the model.")] = "",
    download: Annotated[
        bool, Option("--download", help="Download NAME from the Hugging Face hub first.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Add a model to the configuration, with the digests of its files.

    PATH is a folder in the format of sentence-transformers, NAME a bundled model or an id in the
    hub's cache. A changed file of an added model is refused. Adding a model again accepts it as it
    is now. Without --download nothing is downloaded.
    """
    from anchord.config.file import locked_for_editing
    from anchord.config.file_editor import add_model
    from anchord.config.schema import ModelConfig
    from anchord.embedding.model_files import download_model, find_model, is_bundled

    paths = ensure_paths()
    if download:
        download_model(model)
    found = find_model(model)
    entry = ModelConfig(
        name=name or _default_name(model),
        path=model if is_bundled(model) else str(found.folder),
        digest=found.compute_digest(),
        files=found.digest_files(),
    )
    with locked_for_editing(paths.config_file):
        config = load_user_config(paths)
        add_model(paths.config_file, entry)
    if json:
        print_json(_described(entry, found, config))
        return
    print_line(
        f"added {quote_name(entry.name)}: {found.dimension} dimensions, window of {found.window} "
        f"tokens, {len(entry.files)} files pinned"
    )
    if config.embedding.model != entry.name:
        print_line(
            f"to use it, set model = {quote_name(entry.name)} under [embedding] in "
            f"{paths.config_file}; every text is embedded again then"
        )


@model_commands.command("list")
def model_list(json: JsonOption = False) -> None:
    """List the added models, and whether their files are as they were."""
    config = load_user_config(ensure_paths())
    rows = [_checked(entry, config) for entry in config.model]
    if json:
        print_json(rows)
        return
    for row in rows:
        use = "  in use" if row["in_use"] else ""
        print_line(f"{row['name']}  {row['state']}{use}  {row['path']}")
    if not rows:
        print_line("no model was added; `anchord model add PATH` adds one")


@model_commands.command("remove")
def model_remove(name: Annotated[str, Argument(metavar="NAME")]) -> None:
    """Remove a model from the configuration; its files stay."""
    from anchord.config.file import locked_for_editing
    from anchord.config.file_editor import remove_model

    paths = ensure_paths()
    with locked_for_editing(paths.config_file):
        config = load_user_config(paths)
        if config.find_model(name) is None:
            raise UsageError(
                f"no model {quote_name(name)} was added", "`anchord model list` lists them"
            )
        if name in config.embedding.model_names:
            raise UsageError(
                f"the model {quote_name(name)} is in use",
                "set another `model` under [embedding] or [embedding.further] first",
            )
        remove_model(paths.config_file, name)
    print_line(f"removed {quote_name(name)}; its files stay where they are")


def _default_name(model: str) -> str:
    is_folder = os.path.isdir(os.path.expanduser(model))
    return os.path.basename(os.path.realpath(os.path.expanduser(model))) if is_folder else model


def _checked(entry: ModelConfig, config: Config) -> dict[str, object]:
    """Return what `list` shows of a model."""
    from anchord.embedding.model_files import find_token_counting_model
    from anchord.index.embedders import pin_of

    try:
        pin = pin_of(config, entry.name)
        found = find_token_counting_model(
            "sentence-transformers",
            entry.name,
            0,
            pin,
        )
        found.compute_digest()
    except AnchordError as error:
        return _described(entry, None, config) | {"state": error.message}
    return _described(entry, found, config)


def _described(entry: ModelConfig, found: ModelFiles | None, config: Config) -> dict[str, object]:
    return {
        "name": entry.name,
        "path": entry.path,
        "state": "unchanged",
        "in_use": entry.name in config.embedding.model_names,
        "digest": entry.digest,
        "files": entry.files,
        "dimension": found.dimension if found else None,
        "window": found.window if found else None,
    }
