"""The terms of Callsheet's vocabulary, and the namespaces that an export uses."""

# ruff: noqa: N815 - terms of a vocabulary are written in mixed case

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from rdflib import Namespace, URIRef
from rdflib.namespace import DCTERMS, RDFS, SKOS, XSD, DefinedNamespace

from callsheet.graphs.catalog.model import DependencyKind

BASE = "https://w3id.org/callsheet/catalog/"
"""Default beginning of the IRIs of a catalog's nodes."""


class CS(DefinedNamespace):
    """The vocabulary; ``vocabulary.ttl`` beside this file says what each term means."""

    _NS = Namespace("https://w3id.org/callsheet/ns#")
    _fail = True

    Catalog: URIRef
    Agent: URIRef
    Tool: URIRef
    Skill: URIRef
    Field: URIRef
    Parameter: URIRef
    OutputField: URIRef
    Dependency: URIRef
    Capability: URIRef
    json: URIRef

    lists: URIRef
    hostedOn: URIRef
    hosts: URIRef
    name: URIRef
    instructions: URIRef
    category: URIRef
    system: URIRef
    position: URIRef
    core: URIRef
    inputSchema: URIRef
    outputSchema: URIRef
    annotations: URIRef
    readOnly: URIRef
    destructive: URIRef
    idempotent: URIRef
    openWorld: URIRef

    hasInput: URIRef
    hasRequiredInput: URIRef
    hasOptionalInput: URIRef
    hasOutput: URIRef
    valueType: URIRef
    enumValue: URIRef
    defaultValue: URIRef
    valueFormat: URIRef

    hasCapability: URIRef
    capabilityOrder: URIRef

    namesTool: URIRef
    toolOrder: URIRef

    dependsOn: URIRef
    toolDirectlyDependsOn: URIRef
    toolIndirectlyDependsOn: URIRef
    parameterDirectlyDependsOn: URIRef
    parameterIndirectlyDependsOn: URIRef
    hasDependency: URIRef
    needs: URIRef
    kind: URIRef
    parameterName: URIRef
    onParameter: URIRef
    reason: URIRef
    provenance: URIRef
    confidence: URIRef
    count: URIRef


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
    own = {name: f"{base}{name}/" for name in _KINDS}
    shared = {"cs": CS, "dcterms": DCTERMS, "rdfs": RDFS, "skos": SKOS, "xsd": XSD}
    return {**{prefix: str(namespace) for prefix, namespace in shared.items()}, **own}


def vocabulary() -> str:
    """The shipped vocabulary as Turtle."""
    return files("callsheet.graphs.rdf").joinpath("shapes", "vocabulary.ttl").read_text(encoding="utf-8")
