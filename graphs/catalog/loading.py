"""Loads catalogs of any kind; the kind is detected from the content of the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.malformed import no_catalog, read_json
from callsheet.graphs.catalog.formats.mcp_format import Problem, agent_from_listing
from callsheet.graphs.catalog.formats.native_format import from_native
from callsheet.graphs.catalog.formats.openapi.spec_text import is_specification
from callsheet.graphs.catalog.formats.published import agent_of_toollinkos, agents_of_livemcpbench
from callsheet.graphs.catalog.formats.server_config import ServerConfig, is_address, read_folders, read_servers
from callsheet.graphs.catalog.formats.skill_folders import SKILL_FILE, is_skill, read_skills
from callsheet.graphs.catalog.loaded import Loaded, Part, joined
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.resolving import resolve, resolve_skills
from callsheet.graphs.catalog.source import CatalogSource, label_of, sources_of
from callsheet.graphs.dependencies import attach, parse_dependencies
from callsheet.graphs.text.sanitizing import counted
from callsheet.graphs.trust.consent import Start, check_agreed, starts_of
from callsheet.graphs.trust.pin_book import PinBook
from callsheet.graphs.trust.policy import Policy, policy_of

__all__ = ["Loaded", "Part", "Problem", "load", "servers_in", "starts_in"]

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_RDF = (".ttl", ".jsonld", ".nt")
_TOOLLINKOS = ("core_tools.json", "regular_tools.json")


@dataclass(frozen=True, slots=True)
class _Opening:
    """Options for opening live servers."""

    yes: bool = False
    pins: str | Path | None = None
    policy: Policy | None = None
    anew: bool = False


def load(
    *sources: CatalogSource,
    yes: bool = False,
    pins: str | Path | None = None,
    policy: Policy | str | Path | None = None,
    anew: bool = False,
) -> Loaded:
    """Loads catalogs of any kind and joins them.

    Args:
        sources: Any of: an ``mcp.json`` (its servers are started and listed), a folder of manifests or one manifest,
            a folder of skills (``SKILL.md``), a ``callsheet.json``, an OpenAPI specification (its file or address),
            an RDF export (``.ttl``, ``.jsonld``, ``.nt``), ``module:object``, the published files of LiveMCPBench and
            ToolLinkOS, catalogs that are already loaded, a file of dependencies (``callsheet_dependencies``) for the
            other sources, or Python objects: LangChain tools, functions with docstrings, toolkits, LangGraph apps,
            ``RemoteGraph`` and other runnables, an ``A2AAgent``; one object, a list, or a dict by agent id. A list of
            sources is the same as several arguments.
        yes: Starts the commands of an ``mcp.json`` without consent. ``CALLSHEET_YES`` does the same. A command with
            consent from the command line needs neither.
        pins: File of accepted tool definitions; ``CALLSHEET_PINS`` by default, otherwise one file per ``mcp.json``
            in the user's data folder.
        policy: Who may see and call which tools: a policy or its file; ``CALLSHEET_POLICY`` by default.
        anew: Lists every server, also one that answered recently (``CALLSHEET_LIMIT_FRESH``).

    Returns:
        The joined catalog. Servers that do not answer, malformed entries and tools that differ from the accepted
        definitions are left out and reported in ``problems``.

    Raises:
        CatalogError: A source does not exist or has an unknown kind, or the catalog is inconsistent.
        TrustError: A command has no consent, or the pins cannot be used.
        SettingsError: The policy cannot be read.
    """
    sources = sources_of(*sources)
    if not sources:
        raise CatalogError("no catalog was named: give an mcp.json, a folder of manifests or module:object")
    inherited = next((source.policy for source in sources if isinstance(source, Loaded) and source.policy), None)
    rules = policy_of(policy or inherited)
    parts = [_part(source, _Opening(yes, pins, rules, anew)) for source in sources]
    _check_unique(
        [(label_of(source) or "a catalog in memory", part) for source, part in zip(sources, parts, strict=True)]
    )
    whole = joined(parts)
    agents, dangling = resolve(whole.agents, lenient=set(whole.connections))
    agents, unattached = attach(agents, whole.dependencies, lenient=set(whole.connections))
    skills, unclear, unresolved = resolve_skills(whole.skills, agents, whole.unresolved)
    labels = [label_of(source) for source, part in zip(sources, parts, strict=True) if not part.dependencies]
    problems = (*whole.problems, *dangling, *unattached, *unclear)
    label = "\n".join(filter(None, labels))
    refused = (edge.key for _, file in whole.dependencies for edge in file.edges if edge.accept is False)
    more = {"problems": problems, "rejected": (*whole.rejected, *refused), "unresolved": unresolved}
    return Loaded(Catalog(agents=agents, skills=skills), label=label, policy=rules, **{**whole.details, **more})


def servers_in(source: str) -> Mapping[str, ServerConfig]:
    """The MCP servers and APIs that loading this source would reach; empty for other kinds of sources."""
    if server := _specification(source):
        return {source: server}
    return read_servers(document, source) if (document := _configuration(source)) else {}


def starts_in(source: str) -> tuple[Start, ...]:
    """What needs consent before this source is loaded: processes, addresses, folders of documents."""
    if server := _specification(source):
        return starts_of({"": server})
    document = _configuration(source)
    return starts_of(read_servers(document, source), read_folders(document, _path(source))) if document else ()


def _configuration(source: str) -> Mapping[str, Any] | None:
    """The document of an ``mcp.json``; None for other kinds of sources."""
    path = _path(source)
    document = read_json(path) if path.is_file() and path.suffix.lower() not in _RDF else None
    return document if isinstance(document, dict) and ("mcpServers" in document or "servers" in document) else None


def _specification(source: str) -> ServerConfig | None:
    """The API of an OpenAPI specification that is a catalog by itself; None for other kinds of sources."""
    if is_address(source):
        return ServerConfig(openapi=source, transport="openapi")
    path = _path(source)
    if not path.is_file() or not is_specification(path):
        return None
    return ServerConfig(openapi=str(path.resolve()), transport="openapi")


def _part(source: CatalogSource, opening: _Opening) -> Part:
    match source:
        case Part():
            return source
        case Loaded():
            return source.part
        case Catalog():
            return Part(source.agents, skills=source.skills)
        case str() | Path():
            return _read(str(source), opening)
        case _:
            return _plugin("objects")(source)


def _read(name: str, opening: _Opening) -> Part:
    if server := _specification(name):
        consented = check_agreed({"": server}, name, yes=opening.yes)
        pins = PinBook.of(Path(name), opening.pins)
        return _plugin("mcp")({"": server}, pins=pins, agreed=consented, anew=opening.anew)
    path = _path(name)
    if path.is_dir():
        return _folder(path)
    if path.suffix.lower() in _RDF and path.is_file():
        from callsheet.graphs.rdf import read_rdf

        written = read_rdf(path)
        return Part(written.agents, skills=written.skills)
    if path.name == SKILL_FILE and path.is_file():
        return _folder(path.parent)
    if path.is_file():
        return _document(read_json(path), path, opening)
    if _REFERENCE.fullmatch(name):
        return _plugin("python")(name)
    raise CatalogError(f"no catalog at {name}: it is not a file, a folder or module:object")


def _path(name: str) -> Path:
    try:
        path = Path(name).expanduser()
        path.is_dir()
    except (OSError, RuntimeError) as error:
        raise CatalogError(f"no catalog at {name[:80]!r}: it cannot be a path: {error.args[-1]}") from error
    return path


def _folder(folder: Path) -> Part:
    if all((folder / name).is_file() for name in _TOOLLINKOS):
        return _toollinkos(folder)
    published = folder / "tools.json"
    if published.is_file() and isinstance(document := read_json(published), list):
        return _document(document, published, _Opening())
    skills, problems = read_skills(folder)
    files = [] if is_skill(folder) else sorted(folder.glob("*.json"))
    if not files and not skills and not problems:
        raise CatalogError(
            f"{folder}: no manifest and no skill in this folder: it should hold one .json file per agent, "
            "or one folder with a SKILL.md per skill"
        )
    parts: list[tuple[str, Part]] = []
    for file in files:
        try:
            part = _manifest(read_json(file), file)
        except CatalogError as error:
            problems.append(Problem(file.name, "malformed", str(error)))
            continue
        parts.append((str(file), part))
        problems.extend(part.problems)
    if not parts and not skills:
        what = "a skill" if not files else "a manifest"
        read = counted(len(files) or len(problems), "file")
        raise CatalogError(f"{folder}: none of its {read} is {what}: {problems[0].message}")
    _check_unique(parts)
    agents = tuple(agent for _, part in parts for agent in part.agents)
    return Part(agents, skills=tuple(skills), problems=tuple(problems))


def _check_unique(parts: Sequence[tuple[str, Part]]) -> None:
    first: dict[str, str] = {}
    for where, part in parts:
        nodes = [(f"agent {agent.id!r}", agent.id) for agent in part.agents]
        for called, node in (*nodes, *((f"skill {skill.name!r}", skill.id) for skill in part.skills)):
            if node in first:
                raise CatalogError(f"{called} is in {first[node]} and again in {where}: rename one or leave one out")
            first[node] = where


def _toollinkos(folder: Path) -> Part:
    for name in _TOOLLINKOS:
        if not (folder / name).is_file():
            raise CatalogError(
                f"{folder / name} is missing: ToolLinkOS is read from {' and '.join(_TOOLLINKOS)} together"
            )
    core, regular = (read_json(folder / name) for name in _TOOLLINKOS)
    agent, problems = agent_of_toollinkos(core, regular, str(folder))
    return Part((agent,), problems=problems)


def _document(document: Any, path: Path, opening: _Opening) -> Part:
    match document:
        case {"mcpServers": _} | {"servers": _}:
            return _configured(document, path, opening)
        case {"callsheet_dependencies": _}:
            content = parse_dependencies(document, str(path))
            return Part(dependencies=((str(path), content),), dependency_files=(str(path),))
        case {"callsheet": _, "agents": list()} | {"callsheet": _, "skills": list()}:
            own = from_native(document, str(path))
            return Part(own.agents, skills=own.skills)
        case list() if path.name in _TOOLLINKOS:
            return _toollinkos(path.parent)
        case list():
            agents, problems = agents_of_livemcpbench(document, str(path))
            return Part(agents, problems=problems)
        case _:
            return _manifest(document, path)


def _configured(document: Mapping[str, Any], path: Path, opening: _Opening) -> Part:
    """The servers of an ``mcp.json``, and its folders of documents."""
    servers, folders = read_servers(document, str(path)), read_folders(document, path)
    commands = opening.policy.commands if opening.policy else None
    consented = check_agreed(servers, str(path), yes=opening.yes, commands=commands, folders=folders)
    parts = [_plugin("documents")(folders)] if folders else []
    if servers or not folders:
        pins = PinBook.of(path, opening.pins)
        parts.insert(0, _plugin("mcp")(servers, pins=pins, agreed=consented, anew=opening.anew))
    return joined(parts)


def _manifest(document: Any, path: Path) -> Part:
    match document:
        case {"name": str() as name, "tools": list() as tools}:
            description, instructions = document.get("description"), document.get("instructions")
        case {"server": str() as name, "tools": list() as tools}:
            initialize = document.get("initialize")
            initialize = initialize if isinstance(initialize, dict) else {}
            info = initialize.get("serverInfo")
            description = info.get("description") if isinstance(info, dict) else ""
            instructions = initialize.get("instructions")
        case _:
            raise CatalogError(no_catalog(path, document))
    if not name.strip():
        raise CatalogError(f"{path}: the agent's name is empty: give it one")
    agent, problems = agent_from_listing(name, tools, description=_text(description), instructions=_text(instructions))
    return Part((agent,), problems=problems)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _plugin(kind: str) -> Callable[..., Part]:
    """The loader of this kind of catalog, found by entry point because this package must not import ``agents``."""
    plugins: Sequence[Any] = tuple(entry_points(group="callsheet.catalog_kinds", name=kind))
    if not plugins:
        raise CatalogError(f"nothing is installed that reads catalogs of kind {kind!r}: install callsheet itself")
    loader: Callable[..., Part] = plugins[0].load()
    return loader
