"""Finding: from a request to the agents and tools that serve it."""

from callsheet.retrievers.agent_graph import agent_as_a_graph, agents_by_score
from callsheet.retrievers.chroma import ChromaIndex
from callsheet.retrievers.embeddings import MiniLMEmbeddings, embeddings_of
from callsheet.retrievers.evaluation import Evaluation, evaluate, metric_names
from callsheet.retrievers.fusion import blend, log_sum_exp, reciprocal_rank_fusion, weighted_rrf
from callsheet.retrievers.index import Changes, Hit, Node, VectorIndex, VectorStoreIndex
from callsheet.retrievers.labelled import LabelledQuery, QueriesError, read_queries
from callsheet.retrievers.lexical import LexicalIndex
from callsheet.retrievers.metrics import average_precision, complete, ndcg, recall
from callsheet.retrievers.retriever import AgentGraphRetriever, default_place, explain_tool
from callsheet.retrievers.select import Selector, SelectSettings
from callsheet.retrievers.selection import Cut, Evidence, PickedAgent, PickedTool, Selection, Trace
from callsheet.retrievers.texts import nodes_of
from callsheet.retrievers.tool_fusion import graph_rag_tool_fusion

__all__ = [
    "AgentGraphRetriever",
    "Changes",
    "ChromaIndex",
    "Cut",
    "Evaluation",
    "Evidence",
    "Hit",
    "LabelledQuery",
    "LexicalIndex",
    "MiniLMEmbeddings",
    "Node",
    "PickedAgent",
    "PickedTool",
    "QueriesError",
    "SelectSettings",
    "Selection",
    "Selector",
    "Trace",
    "VectorIndex",
    "VectorStoreIndex",
    "agent_as_a_graph",
    "agents_by_score",
    "average_precision",
    "blend",
    "complete",
    "default_place",
    "embeddings_of",
    "evaluate",
    "explain_tool",
    "graph_rag_tool_fusion",
    "log_sum_exp",
    "metric_names",
    "ndcg",
    "nodes_of",
    "read_queries",
    "recall",
    "reciprocal_rank_fusion",
    "weighted_rrf",
]
