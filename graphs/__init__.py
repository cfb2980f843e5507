"""What exists: agents, tools, their owners and dependencies, read from outside and validated once."""

from callsheet.graphs.capabilities import Capability, Taxonomy, default_taxonomy, read_taxonomy
from callsheet.graphs.catalog import Agent, Catalog, Dependency, DependencyKind, Parameter, Provenance, Tool
from callsheet.graphs.changes import diff_of, findings_of, problems_of, reordered, told
from callsheet.graphs.consent import Agreements, Start, check_agreed, starts_of
from callsheet.graphs.dependencies import Reached, dependency_graph, required, strongest, walk
from callsheet.graphs.errors import (
    CallsheetError,
    CatalogError,
    PlanError,
    RequestError,
    SettingsError,
    TrustError,
    UnknownNameError,
)
from callsheet.graphs.findings import Finding, Severity
from callsheet.graphs.given import CatalogSource
from callsheet.graphs.knowledge_graph import KnowledgeGraph, knowledge_graph
from callsheet.graphs.loaded import Loaded, Part
from callsheet.graphs.loading import dump, load
from callsheet.graphs.mcp import Problem, ServerConfig, agent_from_listing
from callsheet.graphs.ownership import NodeKind, OwnershipGraph, kind_of, owner, ownership_graph
from callsheet.graphs.pin_book import PinBook
from callsheet.graphs.pins import Admitted, Change, Listed, digest, digests
from callsheet.graphs.policy import Grants, Group, Policy, policy_of, read_policy
from callsheet.graphs.rules import Rule, User, hints
from callsheet.graphs.text import Hidden, counted, escaped, hidden_in, shown, shown_schema, split_name, strings_in
from callsheet.graphs.view import View

__all__ = [
    "Admitted",
    "Agent",
    "Agreements",
    "CallsheetError",
    "Capability",
    "Catalog",
    "CatalogError",
    "CatalogSource",
    "Change",
    "Dependency",
    "DependencyKind",
    "Finding",
    "Grants",
    "Group",
    "Hidden",
    "KnowledgeGraph",
    "Listed",
    "Loaded",
    "NodeKind",
    "OwnershipGraph",
    "Parameter",
    "Part",
    "PinBook",
    "PlanError",
    "Policy",
    "Problem",
    "Provenance",
    "Reached",
    "RequestError",
    "Rule",
    "ServerConfig",
    "SettingsError",
    "Severity",
    "Start",
    "Taxonomy",
    "Tool",
    "TrustError",
    "UnknownNameError",
    "User",
    "View",
    "agent_from_listing",
    "check_agreed",
    "counted",
    "default_taxonomy",
    "dependency_graph",
    "diff_of",
    "digest",
    "digests",
    "dump",
    "escaped",
    "findings_of",
    "hidden_in",
    "hints",
    "kind_of",
    "knowledge_graph",
    "load",
    "owner",
    "ownership_graph",
    "policy_of",
    "problems_of",
    "read_policy",
    "read_taxonomy",
    "reordered",
    "required",
    "shown",
    "shown_schema",
    "split_name",
    "starts_of",
    "strings_in",
    "strongest",
    "told",
    "walk",
]
