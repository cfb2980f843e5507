"""Loads catalogs of any kind; the kind is detected from the content of the source."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError, near_names
from callsheet.graphs.catalog.formats.manifests import (
    AMBIGUOUS,
    Problem,
    agent_from_listing,
    agent_of_toollinkos,
    agents_of_livemcpbench,
    from_native,
    read_json,
    text_of,
)
from callsheet.graphs.catalog.formats.openapi_documents import is_specification, object_of
from callsheet.graphs.catalog.formats.server_config import (
    ROOTS,
    Configuration,
    ServerConfig,
    is_address,
    read_configuration,
)
from callsheet.graphs.catalog.formats.skill_folders import is_skill, is_skill_file, read_skills
from callsheet.graphs.catalog.loaded import (
    CatalogSource,
    Loaded,
    SourceCatalog,
    decisions_file,
    joined,
    label_of,
    sources_of,
)
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, Skill, Tool
from callsheet.graphs.dependencies import attach, parse_dependencies
from callsheet.graphs.text.sanitizing import counted
from callsheet.graphs.trust.consent import Start, check_agreed, starts_of, with_trust
from callsheet.graphs.trust.pins import PinBook
from callsheet.graphs.trust.policy import Policy, policy_of

_CODE = re.compile(r"`(?=[^`\s]{0,199}(?:[_/-]|[a-z][A-Z]))([^`\s]{1,200})`")  # `fetch` may be any function
_MOST_NAMED = 200
_MOST_CANDIDATES = 5


def separated(agents: Sequence[Agent], skills: Sequence[Skill]) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """The agents without tools whose ids belong to another agent or a skill, and a problem for each such tool.

    A tool ``b/ok`` of ``a`` has the id of the tool ``ok`` of an agent ``a/b``. Servers name tools, users name agents.
    """
    nodes, problems = {*(a.id for a in agents), *(skill.id for skill in skills)}, list[Problem]()

    def own(tool: Tool) -> bool:
        starts = accumulate(tool.name.split("/"), lambda start, part: f"{start}/{part}")
        if other := next((node for start in starts if (node := f"{tool.agent}/{start}") in nodes), ""):
            message = f"tool {tool.name!r} is left out: {tool.id!r} belongs to {other!r} by its name"
            problems.append(Problem(tool.agent, "malformed", message))
        return not other

    kept = [(agent, tuple(filter(own, agent.tools))) for agent in agents]
    return tuple(a if len(t) == len(a.tools) else a.model_copy(update={"tools": t}) for a, t in kept), tuple(problems)


def resolve(
    agents: Sequence[Agent], *, lenient: Collection[str] = (), places: Mapping[str, int] | None = None
) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """Replaces the names in ``depends_on`` by tool ids: an id, a tool of the same agent, or the name of any tool.

    Of several tools of that name, the one whose server was pinned first (``places``) is meant, and that is reported: a
    server that is added later changes nothing. A dangling dependency is dropped and reported if there are ``lenient``
    agents: the server of the other tool may be down.

    Raises:
        CatalogError: A name matches no tool, and no agent is lenient.
    """
    ids, by_name = _names(agents, places or {})
    problems: list[Problem] = []

    def resolved(edge: Dependency, tool: Tool) -> Iterator[Dependency]:
        exact = (name for name in (edge.tool, f"{tool.agent}/{edge.tool}") if name in ids)
        candidates = list(islice(exact, 1)) or by_name.get(edge.tool, [])
        if len(candidates) > 1:
            message = f"tool {tool.id!r} depends on {edge.tool!r}, which {_several(candidates)}"
            problems.append(Problem(tool.agent, AMBIGUOUS, message))
        if candidates:
            yield edge.model_copy(update={"tool": candidates[0]})
            return
        # A server may list many unknown names, and a search for similar names is slow.
        hint = "" if tool.agent in lenient else near_names(edge.tool, ids)
        message = (
            f"tool {tool.id!r} depends on {edge.tool!r}, which is not in the catalog{hint}: "
            "correct the name or remove the dependency"
        )
        if not lenient:
            raise CatalogError(message)
        problems.append(Problem(tool.agent, "dependency", f"{message}; it is dropped"))

    def changed(tool: Tool) -> Tool:
        edges = tuple(found for edge in tool.depends_on for found in resolved(edge, tool))
        return tool if edges == tool.depends_on else tool.model_copy(update={"depends_on": edges})

    done = [agent.model_copy(update={"tools": tuple(map(changed, agent.tools))}) for agent in agents]
    return tuple(done), tuple(problems)


def _several(candidates: Sequence[str]) -> str:
    """What is said of a name that several tools have, of which the first is meant."""
    more = ", ..." if len(candidates) > _MOST_CANDIDATES else ""
    named = " or ".join(candidates[:_MOST_CANDIDATES])
    return f"could be {named}{more}: {candidates[0]} is meant, whose server came first; to be sure, give the id"


def resolve_skills(
    skills: Sequence[Skill],
    agents: Sequence[Agent],
    unresolved: Mapping[str, Sequence[str]],
    places: Mapping[str, int] | None = None,
) -> tuple[tuple[Skill, ...], tuple[Problem, ...], dict[str, tuple[str, ...]]]:
    """Replaces the tool names of skills by ids, and adds the tools that their texts name in code spans.

    A name can be an id, a bare name, or ``mcp__agent__tool``, as coding agents write it; of several tools of a bare
    name, the first is meant as in ``resolve``. In the text, a bare name must not be an ordinary word. Skills are often
    written for other programs, so a tool that is not in the catalog is no problem: its name is returned by the id of
    the skill, like the ``unresolved`` ones.
    """
    ids, by_name = _names(agents, places or {})
    problems: list[Problem] = []
    unknown: dict[str, tuple[str, ...]] = {}

    def candidates_of(name: str) -> list[str]:
        _, _, combined = name.partition("mcp__")
        exact = [one for one in (name, combined.replace("__", "/", 1)) if one in ids]
        return exact[:1] or by_name.get(name, [])

    def resolved(skill: Skill) -> Skill:
        allowed = (*skill.tools, *unresolved.get(skill.id, ()))
        unknown[skill.id] = tuple(name for name in allowed if not candidates_of(name))
        tools: dict[str, None] = {}
        for name in dict.fromkeys((*allowed, *_CODE.findall(skill.text)[:_MOST_NAMED])):
            candidates = candidates_of(name)
            tools |= dict.fromkeys(candidates[:1])
            if len(candidates) > 1:
                problems.append(Problem(skill.id, AMBIGUOUS, f"names {name!r}, which {_several(candidates)}"))
        return skill if tuple(tools) == skill.tools else skill.model_copy(update={"tools": tuple(tools)})

    return tuple(map(resolved, skills)), tuple(problems), unknown


def _names(agents: Sequence[Agent], places: Mapping[str, int]) -> tuple[set[str], Mapping[str, list[str]]]:
    """The ids of all tools, and bare name -> ids, those first whose server was pinned first."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for agent in sorted(agents, key=lambda agent: places.get(agent.id, 0)):
        for tool in agent.tools:
            by_name[tool.name].append(tool.id)
    return {tool for tools in by_name.values() for tool in tools}, by_name


_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_RDF = (".ttl", ".jsonld", ".nt")
_TOOLLINKOS = ("core_tools.json", "regular_tools.json")


@dataclass(frozen=True, slots=True)
class _Opening:
    """Options for opening live servers."""

    yes: bool = False
    pins: str | Path | None = None
    policy: Policy | None = None
    asking: Mapping[str, Any] = field(default_factory=dict)


def load(
    *sources: CatalogSource,
    yes: bool = False,
    pins: str | Path | None = None,
    policy: Policy | str | Path | None = None,
    anew: bool = False,
    known: bool = False,
    heard: Callable[[], object] | None = None,
) -> Loaded:
    """Loads catalogs of any kind and joins them.

    Args:
        sources: Any of: an ``mcp.json`` (its servers are started and listed), a folder of manifests or one manifest,
            a folder of skills (``SKILL.md``), a ``callsheet.json``, an OpenAPI specification (its file or address),
            an RDF export (``.ttl``, ``.jsonld``, ``.nt``), ``module:object``, the published files of LiveMCPBench and
            ToolLinkOS, catalogs that are already loaded, a file of dependencies (``callsheet_dependencies``) for the
            other sources, or Python objects (``CatalogSource``). A list of sources is the same as several arguments.
        yes: Starts the commands of an ``mcp.json`` without consent, as ``CALLSHEET_YES`` does. A command with consent
            from the command line needs neither.
        pins: File of accepted tool definitions; ``CALLSHEET_PINS`` by default, otherwise one file per ``mcp.json``
            in the user's data folder.
        policy: Who may see and call which tools: a policy or its file; ``CALLSHEET_POLICY`` by default.
        anew: Lists every server, also one that answered recently (``CALLSHEET_LIMIT_FRESH``).
        known: Lists none: what is known of the servers is used, whatever its age.
        heard: Called when the answer of one more server is stored; servers have as long as their limits say.

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
    asking = {"anew": anew, "known": known, "heard": heard}
    parts = [_part(source, _Opening(yes, pins, rules, asking)) for source in sources]
    named = [(label_of(source), part) for source, part in zip(sources, parts, strict=True)]
    _check_unique((label or "a catalog in memory", part) for label, part in named)
    labels = [label for label, part in named if not part.dependencies]
    label, lenient = "\n".join(filter(None, labels)), set(joined(parts).connections)
    own = None if any(part.dependency_files for part in parts) or not all(labels) else decisions_file(label)
    if own is not None and own.is_file():
        parts.append(_part(str(own), _Opening()))
        lenient.update(agent.id for part in parts for agent in part.agents)  # nobody who lost a tool named this file
    whole = joined(parts)
    agents, misnamed = separated(whole.agents, whole.skills)
    agents, dangling = resolve(agents, lenient=set(whole.connections), places=whole.places)
    agents, unattached = attach(agents, whole.dependencies, lenient=lenient)
    skills, unclear, unresolved = resolve_skills(whole.skills, agents, whole.unresolved, whole.places)
    problems = (*whole.problems, *misnamed, *dangling, *unattached, *unclear)
    refused = (edge.key for _, edges in whole.dependencies for edge in edges if edge.accept is False)
    more = {"problems": problems, "rejected": (*whole.rejected, *refused), "unresolved": unresolved}
    more["dependency_files"] = whole.dependency_files or ((str(own),) if own else ())
    return Loaded(Catalog(agents=agents, skills=skills), label=label, policy=rules, **{**whole.details, **more})


def servers_in(source: str) -> Mapping[str, ServerConfig]:
    """The MCP servers and APIs that loading this source would reach; empty for other kinds of sources."""
    if server := _specification(source):
        return {source: server}
    servers = (item for one in _configurations(source) for item in one.servers.items())
    return {name: server for name, server in servers if not server.documents}


def starts_in(source: str) -> tuple[Start, ...]:
    """What needs consent before this source is loaded: processes, addresses, folders of documents, toolkits."""
    if server := _specification(source):
        return starts_of({"": server})
    return tuple(start for one in _configurations(source) for start in starts_of(one.servers))


def _configurations(source: str) -> Iterator[Configuration]:
    """The configurations in this source, of which a folder may hold several."""
    path = _path(source)
    if path.is_dir():
        files = list(path.glob("*.json"))
    else:
        files = [path] if path.is_file() and path.suffix.lower() not in _RDF else []
    for file in files:
        with suppress(*([CatalogError] if path.is_dir() else [])):  # which loading reports
            if one := _configuration(read_json(file), file):
                yield read_configuration(one, file)


def _configuration(document: Any, path: Path) -> Mapping[str, Any] | None:
    """An ``mcp.json``, or the toolkits of another catalog in its form; None for what starts nothing."""
    match document:
        case dict() if any(root in document for root in ROOTS):
            return document
        case {"toolkit": _}:
            entries = [document]
        case {"callsheet": _, "agents": list() as agents}:
            entries = [entry for entry in agents if _is_toolkit(entry)]
        case _:
            return None
    named = {str(entry.get("name") or entry.get("id") or path.stem): entry for entry in entries}
    servers = {name: {key: entry[key] for key in entry.keys() - {"name", "id"}} for name, entry in named.items()}
    return {"mcpServers": servers} if servers else None


def _is_toolkit(entry: object) -> bool:
    return isinstance(entry, dict) and "toolkit" in entry


def _specification(source: str) -> ServerConfig | None:
    """The API of an OpenAPI specification that is a catalog by itself; None for other kinds of sources."""
    if is_address(source):
        return ServerConfig(openapi=source, transport="openapi")
    path = _path(source)
    is_one = path.is_file() and is_specification(path)
    return ServerConfig(openapi=str(path.resolve()), transport="openapi") if is_one else None


def _part(source: CatalogSource, opening: _Opening) -> SourceCatalog:
    match source:
        case SourceCatalog():
            return source
        case Loaded():
            return source.part
        case Catalog():
            return SourceCatalog(source.agents, skills=source.skills)
        case str() | Path():
            return _read(str(source), opening)
        case _:
            return _plugin("objects")(source)


def _read(name: str, opening: _Opening) -> SourceCatalog:
    if server := _specification(name):
        consented = check_agreed({"": server}, name, yes=opening.yes)
        pins = PinBook.of(Path(name), opening.pins)
        return _plugin("mcp")({"": server}, pins=pins, agreed=consented, **opening.asking)
    path = _path(name)
    if path.is_dir():
        return _folder(path, opening)
    if path.suffix.lower() in _RDF and path.is_file():
        from callsheet.graphs.rdf import read_rdf

        return _part(read_rdf(path), opening)
    if is_skill_file(path) and path.is_file():
        return _folder(path.parent, opening)
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


def _folder(folder: Path, opening: _Opening) -> SourceCatalog:
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
    parts: dict[str, SourceCatalog] = {}
    for file in files:
        try:
            document = read_json(file)
            one = _document(document, file, opening) if _is_toolkit(document) else _manifest(document, file)
        except CatalogError as error:
            problems.append(Problem(file.name, "malformed", str(error)))
        else:
            parts[str(file)] = one
            problems += one.problems
    if not parts and not skills:
        what = "a skill" if not files else "a manifest"
        read = counted(len(files) or len(problems), "file")
        raise CatalogError(f"{folder}: none of its {read} is {what}: {problems[0].message}")
    _check_unique(parts.items())
    return replace(joined([*parts.values()]), skills=tuple(skills), problems=tuple(problems))


def _check_unique(parts: Iterable[tuple[str, SourceCatalog]]) -> None:
    first: dict[str, str] = {}
    for where, part in parts:
        nodes: tuple[Agent | Skill, ...] = (*part.agents, *part.skills)
        for node in nodes:
            if node.id in first:
                raise CatalogError(f"{node.id!r} is in {first[node.id]} and again in {where}: rename or leave out one")
            first[node.id] = where


def _toollinkos(folder: Path) -> SourceCatalog:
    core, regular = (read_json(folder / name) for name in _TOOLLINKOS)
    agent, problems = agent_of_toollinkos(core, regular, str(folder))
    return SourceCatalog((agent,), problems=problems)


def _document(document: Any, path: Path, opening: _Opening) -> SourceCatalog:
    configuration = _configuration(document, path)
    match document:
        case {"callsheet_dependencies": _}:
            content = parse_dependencies(document, str(path))
            return SourceCatalog(dependencies=((str(path), content),), dependency_files=(str(path),))
        case {"callsheet": _, "agents": list()} | {"callsheet": _, "skills": list()}:
            if configuration:
                document = {**document, "agents": [entry for entry in document["agents"] if not _is_toolkit(entry)]}
            part = _part(from_native(document, str(path)), opening)
            return joined([part, _configured(configuration, path, opening)]) if configuration else part
        case dict() if configuration:
            return _configured(configuration, path, opening)
        case list() if path.name in _TOOLLINKOS:
            return _toollinkos(path.parent)
        case list():
            published, problems = agents_of_livemcpbench(document, str(path))
            return SourceCatalog(published, problems=problems)
        case _:
            return _manifest(document, path)


def _configured(document: Mapping[str, Any], path: Path, opening: _Opening) -> SourceCatalog:
    """The servers of an ``mcp.json``, its toolkits, and its folders of documents."""
    configuration = read_configuration(document, path)
    commands = opening.policy.commands if opening.policy else None
    consented = check_agreed(configuration.servers, str(path), yes=opening.yes, commands=commands)
    parts, servers = [SourceCatalog(problems=configuration.problems)], with_trust(configuration.servers)
    for name, folder in configuration.servers.items():
        if folder.documents:
            del servers[name]
            try:
                parts.append(_plugin("documents")({name: folder}))
            except CatalogError as error:
                parts.append(SourceCatalog(problems=(Problem(name, "malformed", f"{error} (in {path})"),)))
    if servers:
        pins = PinBook.of(path, opening.pins)
        parts.insert(1, _plugin("mcp")(servers, pins=pins, agreed=consented, **opening.asking))
    return joined(parts)


def _manifest(document: Any, path: Path) -> SourceCatalog:
    match document:
        case {"name": str() as name, "tools": list() as tools}:
            description, instructions = document.get("description"), document.get("instructions")
        case {"server": str() as name, "tools": list() as tools}:
            initialize = object_of(document.get("initialize"))
            description = object_of(initialize.get("serverInfo")).get("description")
            instructions = initialize.get("instructions")
        case _:
            forms = "'callsheet' with 'agents', or a manifest with 'name' (or 'server') and 'tools'"
            raise CatalogError(f"{path}: not a catalog: expected 'mcpServers' (or 'servers'), {forms}")
    if not name.strip():
        raise CatalogError(f"{path}: the agent's name is empty: give it one")
    texts = {"description": text_of(description), "instructions": text_of(instructions)}
    agent, problems = agent_from_listing(name, tools, **texts)
    return SourceCatalog((agent,), problems=problems)


def _plugin(kind: str) -> Callable[..., SourceCatalog]:
    """The loader of this kind of catalog, found by entry point because this package must not import ``agents``."""
    plugins: Sequence[Any] = tuple(entry_points(group="callsheet.catalog_kinds", name=kind))
    if not plugins:
        raise CatalogError(f"nothing is installed that reads catalogs of kind {kind!r}: install callsheet itself")
    loader: Callable[..., SourceCatalog] = plugins[0].load()
    return loader
