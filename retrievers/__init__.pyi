from .agent_graph import agent_as_a_graph as agent_as_a_graph
from .catalog_tools import CatalogTools as CatalogTools
from .chroma import ChromaIndex as ChromaIndex
from .embeddings import embeddings_of as embeddings_of
from .evaluation import Evaluation as Evaluation, evaluate as evaluate, metric_names as metric_names
from .fusion import Hit as Hit, reciprocal_rank_fusion as reciprocal_rank_fusion, weighted_rrf as weighted_rrf
from .index import Changes as Changes, Node as Node, VectorIndex as VectorIndex, VectorStoreIndex as VectorStoreIndex
from .labelled import LabelledQuery as LabelledQuery, QueriesError as QueriesError, read_queries as read_queries
from .lexical import LexicalIndex as LexicalIndex
from .metrics import average_precision as average_precision, complete as complete, ndcg as ndcg, recall as recall
from .minilm_embeddings import MiniLMEmbeddings as MiniLMEmbeddings
from .part import PartOfIndex as PartOfIndex
from .rerank import (
    ChatModelReranker as ChatModelReranker,
    Reranker as Reranker,
    RerankError as RerankError,
    rerank_tools as rerank_tools,
)
from .retriever import AgentGraphRetriever as AgentGraphRetriever
from .rows import default_place as default_place
from .scoring import (
    agent_scores as agent_scores,
    expected_use as expected_use,
    node_scores as node_scores,
    share as share,
)
from .select import Selector as Selector
from .selection import (
    Cut as Cut,
    Evidence as Evidence,
    PickedAgent as PickedAgent,
    PickedTool as PickedTool,
    Selection as Selection,
    Trace as Trace,
    explain_tool as explain_tool,
)
from .settings import SelectSettings as SelectSettings
from .texts import nodes_of as nodes_of
from .tool_fusion import graph_rag_tool_fusion as graph_rag_tool_fusion
from .units import Unit as Unit, units_of as units_of
