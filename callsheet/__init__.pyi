from .agents import (
    A2AAgent as A2AAgent,
    Plan as Plan,
    Prompts as Prompts,
    Step as Step,
    StepResult as StepResult,
    ToolRegistry as ToolRegistry,
)
from .graphs import (
    Agent as Agent,
    CallsheetError as CallsheetError,
    Catalog as Catalog,
    CatalogError as CatalogError,
    Dependency as Dependency,
    DependencyKind as DependencyKind,
    Parameter as Parameter,
    Policy as Policy,
    Tool as Tool,
    TrustError as TrustError,
    User as User,
    load as load,
)
from .orchestrator import (
    CallsheetTools as CallsheetTools,
    Settings as Settings,
    create_arag as create_arag,
    create_ask_app as create_ask_app,
    create_retriever_app as create_retriever_app,
    create_supervisor as create_supervisor,
)
from .retrievers import (
    AgentGraphRetriever as AgentGraphRetriever,
    MiniLMEmbeddings as MiniLMEmbeddings,
    Selection as Selection,
    SelectSettings as SelectSettings,
)

__version__: str
