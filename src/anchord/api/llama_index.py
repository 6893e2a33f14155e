"""anchord as a retriever of LlamaIndex; needs the package llama-index-core."""

from __future__ import annotations

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from anchord.api.passages import find_passages, metadata_of
from anchord.ipc.callers import BlockingMethods
from anchord.ipc.messages.searching import Passage


class AnchordRetriever(BaseRetriever):
    """Gives LlamaIndex the passages that `anchord search` finds, the best first."""

    def __init__(self, index: BlockingMethods, **options: Any) -> None:  # noqa: ANN401 - as `search`
        """Search an index.

        Args:
            index: An `anchord.Client`, or what `anchord.open()` returned.
            **options: Parameters of `search`, such as `k=5, kind="markdown"`.
        """
        super().__init__()
        self._index = index
        self._options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        passages = find_passages(self._index, query_bundle.query_str, self._options)
        return [NodeWithScore(node=_node_of(passage), score=passage.score) for passage in passages]


def _node_of(passage: Passage) -> TextNode:
    return TextNode(
        id_=passage.id,
        text=passage.text,
        metadata=metadata_of(passage),
    )
