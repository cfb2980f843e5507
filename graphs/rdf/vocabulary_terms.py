"""The terms of Callsheet's vocabulary, which fields of a catalog they hold, and the namespaces of an export."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from rdflib import DCTERMS, RDFS, SKOS, XSD, URIRef
from rdflib.namespace import ClosedNamespace

from callsheet.graphs.catalog.model import DependencyKind

BASE = "https://w3id.org/callsheet/catalog/"
"""Default beginning of the IRIs of a catalog's nodes."""
NAMESPACE = "https://w3id.org/callsheet/ns#"
TERMS = (
    *("Catalog", "Agent", "Tool", "Skill", "Field", "Parameter", "OutputField", "Dependency", "Capability", "json"),
    *("lists", "hostedOn", "hosts", "name", "instructions", "category", "system", "position", "core"),
    *("inputSchema", "outputSchema", "annotations", "readOnly", "destructive", "idempotent", "openWorld"),
    *("hasInput", "hasRequiredInput", "hasOptionalInput", "hasOutput"),
    *("valueType", "enumValue", "defaultValue", "valueFormat"),
    *("hasCapability", "capabilityOrder", "namesTool", "toolOrder"),
    *("dependsOn", "toolDirectlyDependsOn", "toolIndirectlyDependsOn"),
    *("parameterDirectlyDependsOn", "parameterIndirectlyDependsOn"),
    *("hasDependency", "needs", "kind", "parameterName", "onParameter", "reason", "provenance", "confidence", "count"),
)
CS = ClosedNamespace(NAMESPACE, list(TERMS))
"""The vocabulary; ``vocabulary.ttl`` beside this file says what each term means."""

TEXTS: Mapping[URIRef, Mapping[str, URIRef]] = {
    CS.Agent: {
        "name": CS.name,
        "description": DCTERMS.description,
        "instructions": CS.instructions,
        "category": CS.category,
        "system": CS.system,
    },
    CS.Tool: {"name": CS.name, "title": DCTERMS.title, "description": DCTERMS.description},
    CS.Skill: {"name": CS.name, "description": DCTERMS.description, "text": CS.instructions},
    CS.Field: {"name": CS.name, "description": DCTERMS.description, "format": CS.valueFormat},
    CS.Dependency: {
        "kind": CS.kind,
        "parameter": CS.parameterName,
        "reason": CS.reason,
        "provenance": CS.provenance,
    },
}
"""Class -> field of the catalog -> property with its text."""
DOCUMENTS: Mapping[str, URIRef] = {
    "input_schema": CS.inputSchema,
    "output_schema": CS.outputSchema,
    "annotations": CS.annotations,
}
"""Field of a tool -> property with its JSON."""
EDGES: Mapping[DependencyKind, URIRef] = {
    DependencyKind.TOOL_DIRECTLY: CS.toolDirectlyDependsOn,
    DependencyKind.TOOL_INDIRECTLY: CS.toolIndirectlyDependsOn,
    DependencyKind.PARAMETER_DIRECTLY: CS.parameterDirectlyDependsOn,
    DependencyKind.PARAMETER_INDIRECTLY: CS.parameterIndirectlyDependsOn,
}
HINTS: Mapping[str, URIRef] = {
    "readOnlyHint": CS.readOnly,
    "destructiveHint": CS.destructive,
    "idempotentHint": CS.idempotent,
    "openWorldHint": CS.openWorld,
}

_KINDS = ("agent", "tool", "skill", "parameter", "output", "dependency", "capability")


def prefixes(base: str) -> dict[str, str]:
    """Prefix -> namespace, of the vocabularies and of a catalog's own nodes."""
    shared = {"cs": CS, "dcterms": DCTERMS, "rdfs": RDFS, "skos": SKOS, "xsd": XSD}
    own = {name: f"{base}{name}/" for name in _KINDS}
    return {prefix: str(namespace) for prefix, namespace in shared.items()} | own


def vocabulary() -> str:
    """The shipped vocabulary as Turtle."""
    return files("callsheet.graphs.rdf").joinpath("shapes", "vocabulary.ttl").read_text(encoding="utf-8")
