"""Finding: from a request to the agents and tools that serve it.

What stands on LangChain is imported when it is first used: that costs a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from callsheet.retrievers.agent_graph import agent_as_a_graph
from callsheet.retrievers.chroma import ChromaIndex
from callsheet.retrievers.embeddings import embeddings_of
from callsheet.retrievers.fusion import Hit, reciprocal_rank_fusion, weighted_rrf
from callsheet.retrievers.index import Changes, Node, VectorIndex, VectorStoreIndex
from callsheet.retrievers.labelled import LabelledQuery, QueriesError, read_queries
from callsheet.retrievers.lexical import LexicalIndex
from callsheet.retrievers.metrics import average_precision, complete, ndcg, recall
from callsheet.retrievers.part import PartOfIndex
from callsheet.retrievers.rerank import ChatModelReranker, Reranker, RerankError, rerank_tools
from callsheet.retrievers.rows import default_place
from callsheet.retrievers.scoring import agent_scores, expected_use, node_scores, share
from callsheet.retrievers.select import Selector
from callsheet.retrievers.selection import Cut, Evidence, PickedAgent, PickedTool, Selection, Trace, explain_tool
from callsheet.retrievers.settings import SelectSettings
from callsheet.retrievers.texts import nodes_of
from callsheet.retrievers.tool_fusion import graph_rag_tool_fusion
from callsheet.retrievers.units import Unit, units_of

if TYPE_CHECKING:
    from callsheet.retrievers.catalog_tools import CatalogTools
    from callsheet.retrievers.evaluation import Evaluation, evaluate, metric_names
    from callsheet.retrievers.minilm_embeddings import MiniLMEmbeddings
    from callsheet.retrievers.retriever import AgentGraphRetriever

_HOME = {
    "AgentGraphRetriever": "retriever",
    "CatalogTools": "catalog_tools",
    "Evaluation": "evaluation",
    "MiniLMEmbeddings": "minilm_embeddings",
    "evaluate": "evaluation",
    "metric_names": "evaluation",
}

__all__ = [
    "AgentGraphRetriever",
    "CatalogTools",
    "Changes",
    "ChatModelReranker",
    "ChromaIndex",
    "Cut",
    "Evaluation",
    "Evidence",
    "Hit",
    "LabelledQuery",
    "LexicalIndex",
    "MiniLMEmbeddings",
    "Node",
    "PartOfIndex",
    "PickedAgent",
    "PickedTool",
    "QueriesError",
    "RerankError",
    "Reranker",
    "SelectSettings",
    "Selection",
    "Selector",
    "Trace",
    "Unit",
    "VectorIndex",
    "VectorStoreIndex",
    "agent_as_a_graph",
    "agent_scores",
    "average_precision",
    "complete",
    "default_place",
    "embeddings_of",
    "evaluate",
    "expected_use",
    "explain_tool",
    "graph_rag_tool_fusion",
    "metric_names",
    "ndcg",
    "node_scores",
    "nodes_of",
    "read_queries",
    "recall",
    "reciprocal_rank_fusion",
    "rerank_tools",
    "share",
    "units_of",
    "weighted_rrf",
]


def __getattr__(name: str) -> Any:
    if (module := _HOME.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
