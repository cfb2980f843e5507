"""Catalogs in files: Callsheet's own full form, and the published sets LiveMCPBench and ToolLinkOS."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.mcp_format import Problem, agent_from_listing
from callsheet.graphs.catalog.model import Agent, Catalog, DependencyKind
from callsheet.graphs.text.sanitizing import DEEPEST, clean, written_out

FORMAT = 1
"""Version of the format."""
_LEVELS = 6  # levels from the document to a tool's fields; in a manifest, the count starts at the tool


def dump(catalog: Catalog) -> str:
    """The catalog in the native format, which ``load`` reads back unchanged."""
    body = {"callsheet": FORMAT, "agents": [], **catalog.model_dump(mode="json", exclude_defaults=True)}
    return written_out(json.dumps(body, ensure_ascii=False, indent=1))


def from_native(document: Mapping[str, Any], where: str) -> Catalog:
    """The catalog of a parsed document; ``CatalogError``: it is of another version, or not valid."""
    if document["callsheet"] != FORMAT:
        raise CatalogError(f"{where}: unknown format {document['callsheet']!r}; this program reads {FORMAT}")
    nodes = {name: document[name] for name in ("agents", "skills") if name in document}
    try:
        return Catalog(**clean(nodes, deepest=DEEPEST + _LEVELS))
    except CatalogError as error:
        raise CatalogError(f"{where}: {error}") from error


TOOLLINKOS_AGENT = "toollinkos"


def agents_of_livemcpbench(entries: Sequence[object], where: str) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """The agents of LiveMCPBench's ``tools.json``: one for each key under an entry's ``tools``, or ``CatalogError``."""
    agents: list[Agent] = []
    problems: list[Problem] = []
    for position, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("tools"), dict):
            raise CatalogError(f"{where}: entry {position} is not an object with 'tools' by server name")
        for key, listing in entry["tools"].items():
            if not isinstance(listing, dict) or not isinstance(listing.get("tools"), list):
                raise CatalogError(f"{where}: server {key!r} has no list of tools")
            agent, malformed = agent_from_listing(
                key,
                listing["tools"],
                name=str(entry.get("name") or key),
                description=str(entry.get("description") or ""),
                category=str(entry.get("category") or ""),
            )
            agents.append(agent)
            problems.extend(malformed)
    return tuple(agents), tuple(problems)


def agent_of_toollinkos(
    core: Sequence[Mapping[str, Any]], regular: Sequence[Mapping[str, Any]], where: str
) -> tuple[Agent, tuple[Problem, ...]]:
    """The agent of ToolLinkOS's ``core_tools.json`` and ``regular_tools.json``, or ``CatalogError``."""
    tools = [(tool, True) for tool in core] + [(tool, False) for tool in regular]
    entries: list[dict[str, Any]] = []
    for position, (tool, is_core) in enumerate(tools, 1):
        try:
            entries.append(_entry(tool, core=is_core))
        except (AttributeError, KeyError, TypeError) as error:
            raise CatalogError(
                f"{where}: entry {position} of ToolLinkOS's tools does not have the published format: "
                f"{type(error).__name__}: {error}"
            ) from error
    return agent_from_listing(TOOLLINKOS_AGENT, entries, name="ToolLinkOS")


def _entry(tool: Mapping[str, Any], *, core: bool) -> dict[str, Any]:
    parameters = tool.get("parameters") or []
    return {
        "name": tool.get("name"),
        "description": tool.get("description"),
        "inputSchema": {
            "type": "object",
            "properties": {
                p["name"]: {key: value for key, value in p.items() if key not in ("name", "required")}
                for p in parameters
            },
            "required": [p["name"] for p in parameters if p.get("required")],
        },
        "_meta": {
            "callsheet/core": core,
            "callsheet/depends_on": [
                {
                    "tool": edge["name"],
                    "kind": _kind(edge["dependence_type"]),
                    "parameter": edge.get("parameter_name"),
                    "reason": edge.get("reason") or "",
                }
                for edge in tool.get("depends_on") or []
            ],
        },
    }


def _kind(published: str) -> DependencyKind:
    """The kind of ``PARAMETER_DIRECTLY_DEPENDS_ON`` and so on; edges without an adverb count as direct."""
    subject = "parameter" if published.startswith("PARAMETER") else "tool"
    adverb = "indirectly" if "INDIRECTLY" in published else "directly"
    return DependencyKind(f"{subject}_{adverb}")
