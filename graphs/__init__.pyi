from .capabilities import (
    Capability as Capability,
    Taxonomy as Taxonomy,
    default_taxonomy as default_taxonomy,
    read_taxonomy as read_taxonomy,
)
from .catalog import (
    Agent as Agent,
    Catalog as Catalog,
    Dependency as Dependency,
    DependencyKind as DependencyKind,
    Parameter as Parameter,
    Provenance as Provenance,
    Tool as Tool,
)
from .changes import (
    diff_of as diff_of,
    findings_of as findings_of,
    problems_of as problems_of,
    reordered as reordered,
    told as told,
)
from .consent import Agreements as Agreements, Start as Start, check_agreed as check_agreed, starts_of as starts_of
from .dependencies import (
    Reached as Reached,
    dependency_graph as dependency_graph,
    required as required,
    strongest as strongest,
    walk as walk,
)
from .errors import (
    CallsheetError as CallsheetError,
    CatalogError as CatalogError,
    PlanError as PlanError,
    RequestError as RequestError,
    SettingsError as SettingsError,
    TrustError as TrustError,
    UnknownNameError as UnknownNameError,
)
from .findings import Finding as Finding, Severity as Severity
from .given import CatalogSource as CatalogSource
from .knowledge_graph import KnowledgeGraph as KnowledgeGraph, knowledge_graph as knowledge_graph
from .loaded import Loaded as Loaded, Part as Part
from .loading import dump as dump, load as load
from .mcp import Problem as Problem, ServerConfig as ServerConfig, agent_from_listing as agent_from_listing
from .ownership import (
    NodeKind as NodeKind,
    OwnershipGraph as OwnershipGraph,
    kind_of as kind_of,
    owner as owner,
    ownership_graph as ownership_graph,
)
from .pin_book import PinBook as PinBook
from .pins import Admitted as Admitted, Change as Change, Listed as Listed, digest as digest, digests as digests
from .policy import (
    Grants as Grants,
    Group as Group,
    Policy as Policy,
    policy_of as policy_of,
    read_policy as read_policy,
)
from .rules import Rule as Rule, User as User, hints as hints
from .text import (
    Hidden as Hidden,
    counted as counted,
    escaped as escaped,
    hidden_in as hidden_in,
    shown as shown,
    shown_schema as shown_schema,
    split_name as split_name,
    strings_in as strings_in,
)
from .view import View as View
