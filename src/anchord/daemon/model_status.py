"""What `status` says of the models of an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anchord.index.embedders import MissingModelEmbedder
from anchord.index.further_models import FurtherModel
from anchord.index.profile import IndexProfile
from anchord.ipc.messages.status import EmbedderStatus, ModelStatus


def embedder_status(profile: IndexProfile) -> EmbedderStatus:
    """Return the state of the main model, and of the further ones."""
    embedder = profile.embedder
    fields: dict[str, Any] = dict(embedder.status_fields())
    return EmbedderStatus(
        state=embedder.state,
        provider=profile.provider,
        model=profile.model_files.name,
        rate=round(embedder.texts_per_second, 1),
        why=embedder.fallback_reason,
        further=tuple(map(_further_status, profile.further.models)),
        **fields,
    )


def _further_status(model: FurtherModel) -> ModelStatus:
    embedder = model.embedder
    known = embedder.status_fields()
    shown: dict[str, Any] = {name: known.get(name) for name in ("runtime", "device", "precision")}
    return ModelStatus(
        state=embedder.state,
        provider=model.options.provider,
        model=model.options.model,
        rate=round(embedder.texts_per_second, 1),
        why=embedder.fallback_reason,
        **shown,
    )


def lost_models(profile: IndexProfile) -> Iterator[str]:
    """Yield a sentence for each model that rows were made with and that this machine lacks."""
    if isinstance(profile.embedder, MissingModelEmbedder):
        model = profile.model_files.name
        yield f"the model {model} is gone: only text search works until a new index is built"
    for further in profile.further.models:
        if isinstance(further.embedder, MissingModelEmbedder):
            yield (
                f"the model {further.options.model} is gone: only words find its documents until a "
                "new index is built"
            )
