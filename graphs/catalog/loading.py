"""One door for every kind of catalog: what it is, is read off the file itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.document_folders import read_folders
from callsheet.graphs.catalog.formats.malformed import no_catalog, no_json
from callsheet.graphs.catalog.formats.mcp_format import (
    DEEPEST,
    Problem,
    ServerConfig,
    agent_from_listing,
    clean,
    read_servers,
)
from callsheet.graphs.catalog.formats.published import agent_of_toollinkos, agents_of_livemcpbench
from callsheet.graphs.catalog.loaded import Loaded, Part, joined
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.resolving import resolve
from callsheet.graphs.catalog.source import CatalogSource, label_of, sources_of
from callsheet.graphs.catalog.writing import FORMAT
from callsheet.graphs.dependencies import attach, parse_dependencies
from callsheet.graphs.text.sanitizing import counted
from callsheet.graphs.trust.consent import Start, check_agreed, starts_of
from callsheet.graphs.trust.pin_book import PinBook
from callsheet.graphs.trust.policy import Policy, policy_of

__all__ = ["Loaded", "Part", "Problem", "load", "servers_in", "starts_in"]

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_OWN_LEVELS = 6  # from the document to a tool's fields; a manifest's entry is counted from the tool
_RDF = (".ttl", ".jsonld", ".nt")
_TOOLLINKOS = ("core_tools.json", "regular_tools.json")


@dataclass(frozen=True, slots=True)
class _Opening:
    """How live servers are opened."""

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
    """Reads catalogs of any kind and joins them into one.

    Args:
        sources: Any of: an ``mcp.json`` (its servers are started and listed), a folder of manifests or
            one manifest, a ``callsheet.json``, an RDF export (``.ttl``, ``.jsonld``, ``.nt``), ``module:object``,
            the published files of LiveMCPBench and ToolLinkOS, objects that are loaded already, a file of
            dependencies (``callsheet_dependencies``) that belongs beside the others, or Python objects: LangChain
            tools, functions with docstrings, toolkits, LangGraph apps, ``RemoteGraph`` and other runnables, an
            ``A2AAgent``, one, a list, or a dict by agent id. A list of several sources is the same as the sources.
        yes: Starts the commands of an ``mcp.json`` without consent. ``CALLSHEET_YES`` does the same. A command with
            consent from the command line needs neither.
        pins: File of accepted tool definitions; ``CALLSHEET_PINS`` by default, otherwise one file per ``mcp.json``
            in the user's data folder.
        policy: Who may see and call which tools: a policy or its file; ``CALLSHEET_POLICY`` by default.
        anew: Lists every server, also one that answered recently (``CALLSHEET_LIMIT_FRESH``).

    Returns:
        The joined catalog. Servers that do not answer, entries that are malformed and tools that are not as they were
        accepted are left out and named in ``problems``.

    Raises:
        CatalogError: A source does not exist or has an unknown kind, or the catalog is inconsistent.
        TrustError: A command has no consent, or the pins cannot be used.
        SettingsError: The policy cannot be read.
    """
    sources = sources_of(*sources)
    if not sources:
        raise CatalogError("no catalog was named: give an mcp.json, a folder of manifests or module:object")
    held = next((source.policy for source in sources if isinstance(source, Loaded) and source.policy), None)
    rules = policy_of(policy or held)
    parts = [_part(source, _Opening(yes, pins, rules, anew)) for source in sources]
    _check_unique(
        [(label_of(source) or "a catalog in memory", part) for source, part in zip(sources, parts, strict=True)]
    )
    whole = joined(parts)
    agents, dangling = resolve(whole.agents, lenient=set(whole.connections))
    agents, without = attach(agents, whole.dependencies, lenient=set(whole.connections))
    named = [label_of(source) for source, part in zip(sources, parts, strict=True) if not part.dependencies]
    return Loaded(
        catalog=Catalog(agents=agents),
        connections=whole.connections,
        problems=(*whole.problems, *dangling, *without),
        label="\n".join(filter(None, named)),
        digests=whole.digests,
        changes=whole.changes,
        policy=rules,
        live=whole.live,
        down=whole.down,
        remembered=whole.remembered,
    )


def servers_in(source: str) -> Mapping[str, ServerConfig]:
    """The MCP servers that loading this source would start; empty for every other kind of source."""
    return read_servers(document, source) if (document := _configuration(source)) else {}


def starts_in(source: str) -> tuple[Start, ...]:
    """What has to be agreed to before this source is loaded: processes, addresses, folders of documents."""
    document = _configuration(source)
    return starts_of(read_servers(document, source), read_folders(document, _path(source))) if document else ()


def _configuration(source: str) -> Mapping[str, Any] | None:
    """The document of an ``mcp.json``; None for every other kind of source."""
    path = _path(source)
    document = _parse(path) if path.is_file() and path.suffix.lower() not in _RDF else None
    return document if isinstance(document, dict) and ("mcpServers" in document or "servers" in document) else None


def _part(source: CatalogSource, opening: _Opening) -> Part:
    match source:
        case Part():
            return source
        case Loaded():
            return source.part
        case Catalog():
            return Part(source.agents)
        case str() | Path():
            return _read(str(source), opening)
        case _:
            return _plugin("objects")(source)


def _read(name: str, opening: _Opening) -> Part:
    path = _path(name)
    if path.is_dir():
        return _folder(path)
    if path.suffix.lower() in _RDF and path.is_file():
        from callsheet.graphs.rdf import read_rdf

        return Part(read_rdf(path).agents)
    if path.is_file():
        return _document(_parse(path), path, opening)
    if _REFERENCE.fullmatch(name):
        return _plugin("python")(name)
    raise CatalogError(f"no catalog at {name}: there is no such file or folder, and it is not module:object")


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
    if published.is_file() and isinstance(document := _parse(published), list):
        return _document(document, published, _Opening())
    files = sorted(folder.glob("*.json"))
    if not files:
        raise CatalogError(f"{folder}: no manifest in this folder: it should hold one .json file an agent")
    parts: list[tuple[str, Part]] = []
    problems_found: list[Problem] = []
    for file in files:
        try:
            part = _manifest(_parse(file), file)
        except CatalogError as error:
            problems_found.append(Problem(file.name, "malformed", str(error)))
            continue
        parts.append((str(file), part))
        problems_found.extend(part.problems)
    if not parts:
        many = counted(len(files), "file")
        raise CatalogError(f"{folder}: none of its {many} is a manifest: {problems_found[0].message}")
    _check_unique(parts)
    return Part(tuple(agent for _, part in parts for agent in part.agents), problems=tuple(problems_found))


def _check_unique(parts: Sequence[tuple[str, Part]]) -> None:
    holder: dict[str, str] = {}
    for where, agent in ((where, agent) for where, part in parts for agent in part.agents):
        if agent.id in holder:
            raise CatalogError(
                f"agent {agent.id!r} is in {holder[agent.id]} and again in {where}: rename one or leave one out"
            )
        holder[agent.id] = where


def _toollinkos(folder: Path) -> Part:
    for name in _TOOLLINKOS:
        if not (folder / name).is_file():
            raise CatalogError(
                f"{folder / name} is missing: ToolLinkOS is read from {' and '.join(_TOOLLINKOS)} together"
            )
    core, regular = (_parse(folder / name) for name in _TOOLLINKOS)
    agent, problems = agent_of_toollinkos(core, regular, str(folder))
    return Part((agent,), problems=problems)


def _own_form(agents: list[Any], path: Path) -> Catalog:
    try:
        return Catalog(**clean({"agents": agents}, deepest=DEEPEST + _OWN_LEVELS))
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from error


def _document(document: Any, path: Path, opening: _Opening) -> Part:
    match document:
        case {"mcpServers": _} | {"servers": _}:
            return _configured(document, path, opening)
        case {"callsheet_dependencies": _}:
            return Part(dependencies=((str(path), parse_dependencies(document, str(path))),))
        case {"callsheet": version, "agents": list()}:
            if version != FORMAT:
                raise CatalogError(f"{path}: format {version!r} is not known here; this program reads {FORMAT}")
            return Part(_own_form(document["agents"], path).agents)
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
    agreed = check_agreed(servers, str(path), yes=opening.yes, commands=commands, folders=folders)
    parts = [_plugin("documents")(folders)] if folders else []
    if servers or not folders:
        pins = PinBook.of(path, opening.pins)
        parts.insert(0, _plugin("mcp")(servers, pins=pins, agreed=agreed, anew=opening.anew))
    return joined(parts)


def _manifest(document: Any, path: Path) -> Part:
    match document:
        case {"name": str() as name, "tools": list() as tools}:
            about, instructions = document.get("description"), document.get("instructions")
        case {"server": str() as name, "tools": list() as tools}:
            greeting = document.get("initialize")
            greeting = greeting if isinstance(greeting, dict) else {}
            info = greeting.get("serverInfo")
            about = info.get("description") if isinstance(info, dict) else ""
            instructions = greeting.get("instructions")
        case _:
            raise CatalogError(no_catalog(path, document))
    if not name.strip():
        raise CatalogError(f"{path}: the agent's name is empty: give it one")
    agent, problems = agent_from_listing(name, tools, description=_text(about), instructions=_text(instructions))
    return Part((agent,), problems=problems)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _parse(path: Path) -> Any:
    text = ""
    try:
        return json.loads(text := path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise CatalogError(no_json(path, text, error)) from error
    except ValueError as error:
        raise CatalogError(f"{path}: holds a number that is too long to be read") from error
    except RecursionError as error:
        raise CatalogError(f"{path}: nested too deeply to be a catalog") from error
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error


def _plugin(kind: str) -> Callable[..., Part]:
    """What reads this kind of catalog; looked up by name, for this package must not import agents."""
    found: Sequence[Any] = tuple(entry_points(group="callsheet.catalog_kinds", name=kind))
    if not found:
        raise CatalogError(f"nothing is installed that reads catalogs of kind {kind!r}: install callsheet itself")
    loader: Callable[..., Part] = found[0].load()
    return loader
