"""Finding: from a request to the agents and tools that serve it."""

from callsheet.retrievers.agent_graph import agent_as_a_graph
from callsheet.retrievers.catalog_tools import CatalogTools
from callsheet.retrievers.chroma import ChromaIndex
from callsheet.retrievers.embeddings import MiniLMEmbeddings, embeddings_of
from callsheet.retrievers.evaluation import Evaluation, evaluate, metric_names
from callsheet.retrievers.fusion import Hit, reciprocal_rank_fusion, weighted_rrf
from callsheet.retrievers.index import Changes, Node, VectorIndex, VectorStoreIndex
from callsheet.retrievers.labelled import LabelledQuery, QueriesError, read_queries
from callsheet.retrievers.lexical import LexicalIndex
from callsheet.retrievers.metrics import average_precision, complete, ndcg, recall
from callsheet.retrievers.part import PartOfIndex
from callsheet.retrievers.rerank import ChatModelReranker, Reranker, RerankError, rerank_tools
from callsheet.retrievers.retriever import AgentGraphRetriever, default_place, explain_tool
from callsheet.retrievers.scoring import agent_scores, expected_use, node_scores, share
from callsheet.retrievers.select import Selector
from callsheet.retrievers.selection import Cut, Evidence, PickedAgent, PickedTool, Selection, Trace
from callsheet.retrievers.settings import SelectSettings
from callsheet.retrievers.texts import nodes_of
from callsheet.retrievers.tool_fusion import graph_rag_tool_fusion
from callsheet.retrievers.units import Unit, units_of

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
