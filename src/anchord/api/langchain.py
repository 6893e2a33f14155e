"""anchord as a retriever of LangChain; needs the package langchain-core."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from anchord.api.passages import find_passages, metadata_of
from anchord.ipc.callers import BlockingMethods


class AnchordRetriever(BaseRetriever):
    """Gives LangChain the passages that `anchord search` finds, the best first."""

    index: BlockingMethods
    """An `anchord.Client`, or what `anchord.open()` returned."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Parameters of `search`, such as `{"k": 5, "kind": "markdown"}`."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del run_manager
        return [
            Document(id=passage.id, page_content=passage.text, metadata=metadata_of(passage))
            for passage in find_passages(self.index, query, self.options)
        ]
