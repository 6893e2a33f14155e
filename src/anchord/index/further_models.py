"""The further models of an index: those for some roots, or for documents in some languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from anchord.chunking.engine.layout import CountTokens
from anchord.config.models import FurtherSettings, ModelOptions
from anchord.core.ids import hash_content, make_model_tag
from anchord.embedding.model_files import ModelFiles
from anchord.embedding.tokenizer import shared_token_counter
from anchord.errors import AnchordError
from anchord.index.embedders import (
    AnyEmbedder,
    MissingModelEmbedder,
    ProfileInputs,
    chunking_plans,
    find_model_files,
    make_embedder,
)
from anchord.index.model_choice import MAIN_MODEL_ONLY, DocumentModel, ModelChoice


def configured_settings(inputs: ProfileInputs) -> FurtherSettings:
    """Return what the configuration says, without models that no document can have."""
    embedding = inputs.config.embedding
    by_root = {root.name: root.embedding for root in inputs.roots if root.embedding}
    used = {*by_root.values(), *embedding.by_language.values()}
    return FurtherSettings(
        options={name: each for name, each in embedding.further.items() if name in used},
        by_root=by_root,
        by_language=embedding.by_language,
    )


@dataclass(frozen=True, kw_only=True)
class FurtherModel:
    """A model that embeds some of the documents."""

    options: ModelOptions
    files: ModelFiles
    """Its files, or those of the model that counts its tokens."""
    embedder: AnyEmbedder
    tag: str
    """What its vector keys begin with."""


_NO_SETTINGS = FurtherSettings()


@dataclass(frozen=True)
class FurtherModels:
    """The further models of an index, and which documents they embed."""

    models: Sequence[FurtherModel] = ()
    """Each has another identity than the others and the main model. In the order of their tags."""
    choice: ModelChoice = MAIN_MODEL_ONLY
    settings: FurtherSettings = _NO_SETTINGS
    """The same as a catalog records it."""

    @cached_property
    def embedders(self) -> Mapping[str, AnyEmbedder]:
        """Tag -> what embeds its texts."""
        return {model.tag: model.embedder for model in self.models}


NO_FURTHER_MODELS = FurtherModels()


def build_further_models(
    inputs: ProfileInputs,
    settings: FurtherSettings,
    main_model_id: str,
    known: FurtherModels = NO_FURTHER_MODELS,
) -> FurtherModels:
    """Return the further models that settings describe.

    Args:
        inputs: The configuration, and how models run on this machine.
        settings: Which models, for which documents. A model that an index was made with and that
            is gone or has changed has a `MissingModelEmbedder`.
        main_model_id: Documents of a model with this identity have the main one.
        known: Models that are open already, and are used again.

    Raises:
        ConfigError: A model of the configuration is not on this machine.
    """
    tags = {"": ""}
    models: dict[str, FurtherModel] = {}
    for name, options in settings.options.items():
        model = _find_model(inputs, options, settings.made_by.get(name), known)
        is_main = model.embedder.model_id == main_model_id
        tags[name] = "" if is_main else model.tag
        if not is_main:
            models.setdefault(model.tag, model)
    if not models:
        return NO_FURTHER_MODELS
    by_tag = {tag: models[tag] for tag in sorted(models)}
    by_root = {root: tags[name] for root, name in settings.by_root.items()}
    by_language = {code: tags[name] for code, name in settings.by_language.items() if tags[name]}
    documents = {tag: _document_model(inputs, model) for tag, model in by_tag.items()}
    choice = ModelChoice(
        by_root={root: documents.get(tag) for root, tag in by_root.items()},
        by_language={code: documents[tag] for code, tag in by_language.items()},
    )
    recorded = FurtherSettings(
        options={tag: model.options for tag, model in by_tag.items()},
        by_root=by_root,
        by_language=by_language,
        made_by={
            tag: (model.embedder.model_id, model.embedder.dimension)
            for tag, model in by_tag.items()
        },
    )
    return FurtherModels(list(by_tag.values()), choice, recorded)


def _find_model(
    inputs: ProfileInputs,
    options: ModelOptions,
    made_by: tuple[str, int] | None,
    known: FurtherModels,
) -> FurtherModel:
    """Return an open model.

    Args:
        inputs: The configuration.
        options: Which model.
        made_by: Identity and dimension that it must have; None for any.
        known: Models that are open already.
    """
    for model in known.models:
        if made_by and made_by[0] == model.embedder.model_id:
            return model
    if options.precision == "auto":
        options = options.with_precision("fp32")
    embedder: AnyEmbedder
    try:
        files = find_model_files(inputs.config, options)
        embedder = make_embedder(inputs, options, files)
        is_lost = made_by is not None and embedder.model_id != made_by[0]
    except AnchordError:
        if made_by is None:
            raise
        files, is_lost = find_model_files(inputs.config, inputs.config.embedding), True
    if made_by and is_lost:
        embedder = MissingModelEmbedder(options.model, *made_by)
    return FurtherModel(
        options=options,
        files=files,
        embedder=embedder,
        tag=make_model_tag(embedder.model_id),
    )


def _document_model(inputs: ProfileInputs, model: FurtherModel) -> DocumentModel:
    return DocumentModel(
        tag=model.tag,
        model_id=model.embedder.model_id,
        plans=chunking_plans(inputs.config, inputs.roots, model.files.window),
        count_tokens=_counter_of(model.files.tokenizer),
        tokenizer_identity=hash_content(model.files.tokenizer.read_bytes()),
    )


def _counter_of(tokenizer: Path) -> CountTokens:
    """Return what counts a text's tokens; the tokenizer is loaded at the first use."""

    def count(texts: Sequence[str]) -> list[int]:
        return shared_token_counter(tokenizer)(texts)

    return count
