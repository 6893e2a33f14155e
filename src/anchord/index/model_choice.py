"""Which model embeds a document: the main one, or a further one for its root or its language.

It depends on the document alone and not on what the index had before, so that a rebuild gives the
same. The model decides where a document is cut, too: its tokenizer counts the tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anchord.chunking.engine.layout import CountTokens
from anchord.chunking.plan import ChunkingPlans
from anchord.core.ids import hash_fields
from anchord.core.text_language import text_language

LANGUAGE_SAMPLE_CHARS = 4_000
"""So much of a document, from its beginning, decides its language."""


def language_of_document(text: str) -> str:
    """Return the code of a document's language, "" if it is not clear."""
    return text_language(text[:LANGUAGE_SAMPLE_CHARS])


@dataclass(frozen=True, kw_only=True)
class DocumentModel:
    """What a document is chunked by, and what its vector keys are made of."""

    tag: str
    """What its vector keys begin with; "" for the main model."""
    model_id: str
    """`Embedder.model_id`."""
    plans: ChunkingPlans
    count_tokens: CountTokens = field(compare=False)
    """Counts a text's tokens as the model does."""
    tokenizer_identity: str = ""

    def identity(self, root_name: str) -> str:
        """Return a hash of everything that the rows of a root depend on here."""
        plans = [
            f"{kind} {self.plans.plan_for(root_name, kind)!r}"
            for kind in sorted(self.plans.default_by_kind)
        ]
        return hash_fields(self.model_id, self.tokenizer_identity, *plans)


@dataclass(frozen=True)
class ModelChoice:
    """Which documents have which further model. None stands for the main one."""

    by_root: Mapping[str, DocumentModel | None] = field(default_factory=dict)
    """Root name -> model of all its documents."""
    by_language: Mapping[str, DocumentModel] = field(default_factory=dict)
    """Code of a language -> model of the documents in it, in roots that are not in `by_root`."""

    def model_of(self, root_name: str, text: str) -> DocumentModel | None:
        """Return the further model of a document, None for the main one.

        Args:
            root_name: The document's root.
            text: Its text. The first 4,000 characters say in which language it is.
        """
        if root_name in self.by_root:
            return self.by_root[root_name]
        if not self.by_language:
            return None
        return self.by_language.get(language_of_document(text))

    def identities(self, root_name: str) -> Sequence[str]:
        """Return what the rows of a root depend on besides the main model; nothing without it."""
        if root_name in self.by_root:
            model = self.by_root[root_name]
            return [model.identity(root_name)] if model else []
        return [
            f"{code} {model.identity(root_name)}"
            for code, model in sorted(self.by_language.items())
        ]


MAIN_MODEL_ONLY = ModelChoice()
