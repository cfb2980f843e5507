"""What exists: agents, tools, their owners and dependencies, read from outside and validated once."""

from callsheet.graphs.capabilities import Capability, Taxonomy, default_taxonomy, read_taxonomy
from callsheet.graphs.catalog import Agent, Catalog, Dependency, DependencyKind, Parameter, Provenance, Tool
from callsheet.graphs.dependencies import Reached, dependency_graph, required, strongest, walk
from callsheet.graphs.errors import CallsheetError, CatalogError, PlanError, SettingsError, UnknownNameError
from callsheet.graphs.findings import Finding, Severity
from callsheet.graphs.loading import CatalogSource, Loaded, Part, dump, load
from callsheet.graphs.mcp import Problem, ServerConfig, agent_from_listing
from callsheet.graphs.ownership import NodeKind, OwnershipGraph, kind_of, owner, ownership_graph
from callsheet.graphs.text import Hidden, escaped, hidden_in, shown, shown_schema, split_name, strings_in

__all__ = [
    "Agent",
    "CallsheetError",
    "Capability",
    "Catalog",
    "CatalogError",
    "CatalogSource",
    "Dependency",
    "DependencyKind",
    "Finding",
    "Hidden",
    "Loaded",
    "NodeKind",
    "OwnershipGraph",
    "Parameter",
    "Part",
    "PlanError",
    "Problem",
    "Provenance",
    "Reached",
    "ServerConfig",
    "SettingsError",
    "Severity",
    "Taxonomy",
    "Tool",
    "UnknownNameError",
    "agent_from_listing",
    "default_taxonomy",
    "dependency_graph",
    "dump",
    "escaped",
    "hidden_in",
    "kind_of",
    "load",
    "owner",
    "ownership_graph",
    "read_taxonomy",
    "required",
    "shown",
    "shown_schema",
    "split_name",
    "strings_in",
    "strongest",
    "walk",
]
