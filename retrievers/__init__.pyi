from .catalog_tools import CatalogTools as CatalogTools
from .decisions.answers import DecisionError as DecisionError
from .decisions.chat_decision_model import ChatDecisionModel as ChatDecisionModel, DecisionModel as DecisionModel
from .discovery import Discovery as Discovery, discover as discover
from .evaluation.evaluator import (
    Evaluation as Evaluation,
    average_precision as average_precision,
    complete as complete,
    evaluate as evaluate,
    metric_names as metric_names,
    ndcg as ndcg,
    recall as recall,
)
from .evaluation.labelled_queries import (
    LabelledQuery as LabelledQuery,
    QueriesError as QueriesError,
    read_queries as read_queries,
)
from .index.indexes import (
    ChromaIndex as ChromaIndex,
    LexicalIndex as LexicalIndex,
    PartOfIndex as PartOfIndex,
    VectorStoreIndex as VectorStoreIndex,
)
from .index.minilm_embeddings import MiniLMEmbeddings as MiniLMEmbeddings, embeddings_of as embeddings_of
from .index.node_texts import (
    Changes as Changes,
    Node as Node,
    VectorIndex as VectorIndex,
    nodes_of as nodes_of,
)
from .index.rows import default_place as default_place
from .papers.agent_graph import (
    agent_as_a_graph as agent_as_a_graph,
    first_of_each_type as first_of_each_type,
    fusion_of_two_lists as fusion_of_two_lists,
)
from .papers.first_search import first_search as first_search
from .papers.mcp_zero import mcp_zero as mcp_zero
from .papers.rank_fusion import (
    RankContribution as RankContribution,
    RankedAgent as RankedAgent,
    RankedNode as RankedNode,
    reciprocal_rank_fusion as reciprocal_rank_fusion,
    weighted_rrf as weighted_rrf,
)
from .papers.tool_fusion import (
    expected_accuracy as expected_accuracy,
    first_within_tokens as first_within_tokens,
    graph_rag_tool_fusion as graph_rag_tool_fusion,
)
from .retriever import AgentGraphRetriever as AgentGraphRetriever
from .selection.query_transform import transform_query as transform_query
from .selection.result import (
    Cut as Cut,
    DecisionReport as DecisionReport,
    Evidence as Evidence,
    PickedAgent as PickedAgent,
    PickedSkill as PickedSkill,
    PickedTool as PickedTool,
    Selection as Selection,
    Trace as Trace,
    explain_tool as explain_tool,
)
from .selection.scoring import (
    agent_scores as agent_scores,
    expected_use as expected_use,
    node_scores as node_scores,
    share as share,
)
from .selection.select_settings import (
    METHODS as METHODS,
    SelectSettings as SelectSettings,
    Unit as Unit,
    units_of as units_of,
)
from .selection.selector import Selector as Selector
from .selection.step_selection import StepNeed as StepNeed
