"""Suggested capabilities of tools, and the file in which a person declares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from callsheet.graphs import dump
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.catalog_files import from_native
from callsheet.graphs.catalog.formats.documents import read_json
from callsheet.graphs.storage import locked, replace_bytes
from callsheet.graphs.trust.pins import digest
from callsheet.orchestrator.server.explorer.answers.json_answers import Link, shown_line
from callsheet.orchestrator.server.explorer.answers.search_results import link
from callsheet.orchestrator.server.explorer.site import Seen
from callsheet.retrievers.capabilities import Assigned, Assignments, with_capabilities

NO_FILE = (
    "capabilities are declared in a catalog of Callsheet's own form: write one with "
    "`callsheet capabilities -o catalog.json`, and open that"
)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A capability of a tool: id, name, confidence, and whether the tool declares it."""

    id: str
    label: str
    confidence: float
    declared: bool


@dataclass(frozen=True, slots=True)
class CapabilityItem:
    """A tool with its capabilities.

    Attributes:
        digest: SHA-256 of exactly these.
        capabilities: Its capabilities; all declared, or all suggested by its text.
        writable: Whether a file can declare them.
    """

    digest: str
    tool: Link
    capabilities: tuple[Suggestion, ...]
    writable: bool


def capability_items(seen: Seen, known: Assignments) -> list[CapabilityItem]:
    """All visible tools: those that a file can declare first, with suggestions, without any, then declared ones."""
    files = _files(seen)
    items = [_item(seen, tool.id, known, writable=tool.agent in files) for tool in seen.catalog.tools.values()]
    return sorted(items, key=lambda item: (not item.writable, _declared(item), not item.capabilities))


def no_file(seen: Seen) -> str:
    """Why no capability can be declared; empty if that of some tool can."""
    return "" if _files(seen) else NO_FILE


def declare(seen: Seen, tool: str, capabilities: Sequence[str], known: Assignments) -> None:
    """Writes the capabilities of a tool into the file of its catalog, as ``callsheet capabilities -o`` does.

    Raises:
        CatalogError: There is no such file, it has changed, a capability is not in the taxonomy, or none is given.
        TrustError: Another process has locked the file.
    """
    if unknown := sorted(set(capabilities) - set(known.taxonomy.by_id)):
        raise CatalogError(f"the taxonomy has no capability {unknown[0]!r}")
    if not capabilities:
        raise CatalogError("declare at least one capability: a tool without any gets those that its text suggests")
    agent, before = seen.catalog.tools[tool].agent, seen.catalog.tools[tool].capabilities
    file = _files(seen).get(agent)
    if file is None:
        raise CatalogError(NO_FILE)
    file = file.resolve()  # a symbolic link stays one
    with locked(file):
        catalog = from_native(read_json(file), str(file))
        if tool not in catalog.tools or catalog.tools[tool].capabilities != before:
            raise CatalogError(f"the capabilities of {tool} were changed in {file} by somebody else: look again")
        chosen = tuple(Assigned(name, 1.0, "declared") for name in dict.fromkeys(capabilities))
        changed = with_capabilities(catalog, Assignments(known.taxonomy, {tool: chosen}))
        try:
            replace_bytes(file, f"{dump(changed)}\n".encode(), mode=file.stat().st_mode & 0o777, exact=True)
        except OSError as error:
            raise CatalogError(f"{file}: cannot be written: {error.strerror}") from error


def _item(seen: Seen, tool: str, known: Assignments, *, writable: bool) -> CapabilityItem:
    found = known.of.get(tool, ())
    return CapabilityItem(
        digest({"tool": tool, "capabilities": [[one.capability, one.by, f"{one.confidence:.4f}"] for one in found]}),
        link(tool, seen.catalog),
        tuple(_suggestion(one, known) for one in found),
        writable,
    )


def _suggestion(one: Assigned, known: Assignments) -> Suggestion:
    entry = known.taxonomy.by_id.get(one.capability)
    return Suggestion(
        one.capability, shown_line(entry.name if entry else one.capability), one.confidence, one.by == "declared"
    )


def _declared(item: CapabilityItem) -> bool:
    return any(one.declared for one in item.capabilities)


def _files(seen: Seen) -> Mapping[str, Path]:
    """The catalog in Callsheet's own form of each agent that has one."""
    found: dict[str, Path] = {}
    for name in seen.loaded.label.splitlines():
        path = Path(name)
        if path.suffix == ".json" and path.is_file():
            found |= dict.fromkeys(_agents(path, path.stat().st_mtime_ns), path)
    return found


@lru_cache(maxsize=8)
def _agents(path: Path, _version: int) -> Sequence[str]:
    """The agents of a file of this form; none of any other."""
    try:
        document = read_json(path)
        native = isinstance(document, dict) and "callsheet" in document
        return [agent.id for agent in from_native(document, str(path)).agents] if native else []
    except CatalogError:  # it was changed since; whoever loads it again is told
        return []
