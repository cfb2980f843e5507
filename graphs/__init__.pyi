from .capabilities.taxonomy import (
    Capability as Capability,
    Taxonomy as Taxonomy,
    default_taxonomy as default_taxonomy,
    read_taxonomy as read_taxonomy,
)
from .catalog.errors import (
    CallsheetError as CallsheetError,
    CatalogError as CatalogError,
    PlanError as PlanError,
    RequestError as RequestError,
    SettingsError as SettingsError,
    TrustError as TrustError,
    UnknownNameError as UnknownNameError,
)
from .catalog.finding import Finding as Finding, Severity as Severity
from .catalog.formats.mcp_format import (
    Problem as Problem,
    agent_from_listing as agent_from_listing,
)
from .catalog.formats.native_format import dump as dump
from .catalog.formats.server_config import ServerConfig as ServerConfig
from .catalog.loaded import Loaded as Loaded, Part as Part
from .catalog.loading import load as load
from .catalog.model import (
    Agent as Agent,
    Catalog as Catalog,
    Dependency as Dependency,
    DependencyKind as DependencyKind,
    Parameter as Parameter,
    Provenance as Provenance,
    Skill as Skill,
    Tool as Tool,
)
from .catalog.ownership import (
    NodeKind as NodeKind,
    OwnershipGraph as OwnershipGraph,
    kind_of as kind_of,
    owner as owner,
    ownership_graph as ownership_graph,
)
from .catalog.source import CatalogSource as CatalogSource
from .dependencies.traversal import (
    Reached as Reached,
    dependency_graph as dependency_graph,
    evidence as evidence,
    required as required,
    strongest as strongest,
    walk as walk,
)
from .export.property_graph import KnowledgeGraph as KnowledgeGraph, knowledge_graph as knowledge_graph
from .text.json_schema import shown_schema as shown_schema
from .text.sanitizing import (
    Hidden as Hidden,
    counted as counted,
    escaped as escaped,
    hidden_in as hidden_in,
    shown as shown,
    split_name as split_name,
    strings_in as strings_in,
)
from .trust.changes import (
    diff_of as diff_of,
    findings_of as findings_of,
    problems_of as problems_of,
    reordered as reordered,
    told as told,
)
from .trust.consent import (
    Agreements as Agreements,
    Start as Start,
    check_agreed as check_agreed,
    starts_of as starts_of,
)
from .trust.pin_book import PinBook as PinBook
from .trust.pins import Admitted as Admitted, Change as Change, Listed as Listed, digest as digest, digests as digests
from .trust.policy import (
    Grants as Grants,
    Group as Group,
    Policy as Policy,
    policy_of as policy_of,
    read_policy as read_policy,
)
from .trust.policy_rules import Rule as Rule, User as User, hints as hints
from .trust.view import View as View
