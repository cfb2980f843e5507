"""Loads catalogs of any kind; the kind is detected from the content of the source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.formats.manifests import (
    Problem,
    agent_from_listing,
    agent_of_toollinkos,
    agents_of_livemcpbench,
    from_native,
    read_json,
    text_or_empty,
)
from callsheet.graphs.catalog.formats.openapi_documents import LARGEST, is_specification, object_of
from callsheet.graphs.catalog.formats.server_config import (
    ROOTS,
    Configuration,
    ServerConfig,
    is_address,
    read_configuration,
)
from callsheet.graphs.catalog.formats.skill_folders import is_skill, is_skill_file, read_skills
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.references import resolve, resolve_skills, separate_ids
from callsheet.graphs.dependencies import attach, parse_dependencies
from callsheet.graphs.errors import CatalogError, near_names
from callsheet.graphs.sources.cards import agreed_servers, read_cards
from callsheet.graphs.sources.loaded import (
    CatalogSource,
    Loaded,
    SourceCatalog,
    check_unique,
    decisions_file,
    join_parts,
    label_of,
    rejected_in,
    sources_of,
)
from callsheet.graphs.sources.python_files import reference_to
from callsheet.graphs.text.messages import counted
from callsheet.graphs.text.regular_files import read_regular
from callsheet.graphs.trust.consent import Start, check_agreed, starts_of, with_trust
from callsheet.graphs.trust.pins import PinBook
from callsheet.graphs.trust.policy import Policy, policy_of

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
    retry: bool = False,
    heard: Callable[[], object] | None = None,
) -> Loaded:
    """Loads catalogs of any kind and joins them.

    Examples:
        >>> loaded = load("mcp.json", "manifests/")
        >>> loaded.catalog.tools["weather/forecast"].description

    Args:
        sources: The path of a catalog (``CATALOG_KINDS`` has the kinds), the address of an OpenAPI specification, or of
            a domain with Server Cards, ``module:object``, a catalog that is already loaded, or Python objects
            (``CatalogSource``). The servers of an ``mcp.json`` are started and listed. A list is the same as several.
        yes: Starts the commands of an ``mcp.json`` without consent, as ``CALLSHEET_YES`` does. A command with consent
            from the command line needs neither.
        pins: File of accepted tool definitions; ``CALLSHEET_PINS`` by default, otherwise one file per ``mcp.json``
            in the user's data folder.
        policy: Who may see and call which tools: a policy or its file; ``CALLSHEET_POLICY`` by default.
        anew: Lists every server, also one that answered recently (``CALLSHEET_LIMIT_FRESH``).
        known: Lists no server: the last known tools are used, whatever their age.
        retry: Lists also servers that failed a short time ago, for a person who waits and may have repaired them.
        heard: Called when the answer of another server is stored; with it, every server has its full time limit.

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
    rules = policy_of(policy or _policy_in(sources))
    opening = _Opening(yes, pins, rules, {"anew": anew, "known": known, "retry": retry, "heard": heard})
    parts = [_part(source, opening) for source in sources]
    labels = [label_of(source) for source in sources]
    check_unique(zip((label or "a catalog in memory" for label in labels), parts, strict=True))

    catalog_labels = [label for label, part in zip(labels, parts, strict=True) if not part.dependencies]
    label = "\n".join(filter(None, catalog_labels))
    # Servers may be down or have changed: an edge to a tool of theirs that is missing is dropped, not refused.
    lenient = set(join_parts(parts).connections)
    decisions = _decisions_on(catalog_labels, parts)
    if decisions is not None and decisions.is_file():
        parts.append(_part(str(decisions), _Opening()))
        # Nobody named this file, so a tool that it names may be gone from any agent.
        lenient.update(agent.id for part in parts for agent in part.agents)

    whole = join_parts(parts)
    agents, misnamed = separate_ids(whole.agents, whole.skills)
    agents, dangling = resolve(agents, lenient=set(whole.connections), places=whole.places)
    agents, unattached = attach(agents, whole.dependencies, lenient=lenient)
    skills, ambiguous, unresolved = resolve_skills(whole.skills, agents, whole.unresolved, whole.places)

    details = whole.details
    details["problems"] = (*whole.problems, *misnamed, *dangling, *unattached, *ambiguous)
    details["rejected"] = (*whole.rejected, *rejected_in(whole))
    details["unresolved"] = unresolved
    if decisions is not None:
        details["dependency_files"] = whole.dependency_files or (str(decisions),)
    return Loaded(Catalog(agents=agents, skills=skills), label=label, policy=rules, **details)


def _policy_in(sources: Sequence[CatalogSource]) -> Policy | None:
    """Returns the policy of the first loaded catalog that has one."""
    for source in sources:
        if isinstance(source, Loaded) and source.policy:
            return source.policy
    return None


def _decisions_on(labels: Sequence[str], parts: Sequence[SourceCatalog]) -> Path | None:
    """Returns the file for decisions on dependencies that belongs to these catalogs.

    None if the user named files of dependencies, or if a catalog has no name by which to find its file again.
    """
    if any(part.dependency_files for part in parts) or not all(labels):
        return None
    return decisions_file("\n".join(labels))


def servers_in(source: str) -> Mapping[str, ServerConfig]:
    """Returns the MCP servers and APIs that loading this source would reach; empty for other kinds of sources."""
    specification = _specification(source)
    if specification is not None:
        cards = read_cards(source)
        return {source: specification, **(cards.servers if cards else {})}
    servers = dict[str, ServerConfig]()
    for configuration in _configurations(source):
        for name, server in configuration.servers.items():
            if not server.documents:
                servers[name] = server
    return servers


def starts_in(source: str) -> tuple[Start, ...]:
    """Returns what needs consent before this source is loaded: processes, addresses, folders of documents, toolkits."""
    specification = _specification(source)
    if specification is not None:
        cards = read_cards(source)
        return (*starts_of({"": specification}), *(cards.starts.values() if cards else ()))
    starts = list[Start]()
    for configuration in _configurations(source):
        starts += starts_of(configuration.servers)
    return tuple(starts)


def _configurations(source: str) -> Iterator[Configuration]:
    """Yields the configurations in this source, of which a folder may hold several."""
    path = _path(source)
    if path.is_dir():
        for file in path.glob("*.json"):
            # Of the files in a folder, loading reports those that cannot be read.
            with suppress(CatalogError):
                yield from _configurations_in(file)
    elif path.is_file() and path.suffix.lower() not in _RDF:
        yield from _configurations_in(path)


def _configurations_in(file: Path) -> Iterator[Configuration]:
    document = _configuration(read_json(file), file)
    if document is not None:
        yield read_configuration(document, file)


def _configuration(document: Any, path: Path) -> Mapping[str, Any] | None:
    """Returns an ``mcp.json``, or the toolkits of another catalog in its form; None for what starts nothing."""
    if not isinstance(document, dict):
        return None
    if any(root in document for root in ROOTS):
        return document
    match document:
        case {"toolkit": _}:
            entries = [document]
        case {"callsheet": _, "agents": list() as agents}:
            entries = [entry for entry in agents if _is_toolkit(entry)]
        case _:
            return None
    servers = dict[str, dict[str, Any]]()
    for entry in entries:
        name = str(entry.get("name") or entry.get("id") or path.stem)
        servers[name] = {key: value for key, value in entry.items() if key not in ("name", "id")}
    return {"mcpServers": servers} if servers else None


def _is_toolkit(entry: object) -> bool:
    return isinstance(entry, dict) and "toolkit" in entry


def _specification(source: str) -> ServerConfig | None:
    """Returns the API of an OpenAPI specification that is a catalog by itself; None for other kinds of sources."""
    if is_address(source):
        return ServerConfig(openapi=source, transport="openapi")
    path = _path(source)
    if _api_kind(path) is None:
        return None
    return ServerConfig(openapi=str(path.resolve()), transport="openapi")


def _api_kind(path: Path) -> CatalogKind | None:
    """Returns the kind of a path that describes an API; None for paths of other kinds."""
    return next((kind for kind in CATALOG_KINDS if kind.specification and kind.fits(path)), None)


def specification_text(path: Path) -> bytes:
    """Returns the text of the OpenAPI specification of an API.

    It is the content of the file, unless the path is of a kind that describes an API in another form.

    Raises:
        CatalogError: The other form cannot be read.
        OSError: The file cannot be read.
    """
    for kind in CATALOG_KINDS:
        if kind is not _OPENAPI and kind.specification and kind.fits(path):
            return kind.specification(path)
    return _specification_file(path)


def _specification_file(path: Path) -> bytes:
    return read_regular(path, most=LARGEST + 1)  # ``parse_specification`` says that it is too large


def _part(source: CatalogSource, opening: _Opening) -> SourceCatalog:
    """Reads one source of any kind."""
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
    """Reads a file, a folder, an address or ``module:object``."""
    if is_address(name):
        return _read_api(name, opening)
    path = _path(name)
    if path.suffix == ".py" and path.is_file():
        named = reference_to(path)
        raise CatalogError(f"{name} is a Python file: write {named}, which is the object that holds its tools")
    for kind in CATALOG_KINDS:
        if kind.fits(path):
            return kind.read(path, opening)
    if _REFERENCE.fullmatch(name):
        return _plugin("python")(name)
    beside = [str(Path(name).parent / one.name) for one in path.parent.iterdir()] if path.parent.is_dir() else []
    near = near_names(name, beside)
    raise CatalogError(f"no catalog at {name}: it is not a file, a folder or module:object{near}")


def _read_api(source: str | Path, opening: _Opening) -> SourceCatalog:
    """Reads the specification at a path or an address."""
    name = str(source)
    servers = {"": ServerConfig(openapi=name if is_address(name) else str(Path(name).resolve()), transport="openapi")}
    consented = check_agreed(servers, name, yes=opening.yes)
    pins = PinBook.of(Path(name), opening.pins)
    part = _plugin("mcp")(servers, pins=pins, agreed=consented, **opening.asking)
    cards = read_cards(name)
    if cards is None:
        return part
    agreed, problems = agreed_servers(cards, name, yes=opening.yes)
    parts = [part, SourceCatalog(problems=(*cards.problems, *problems))]
    if agreed:
        parts.append(_plugin("mcp")(with_trust(agreed), pins=pins, **opening.asking))
    return join_parts(parts)


def _path(name: str) -> Path:
    try:
        path = Path(name).expanduser()
        path.is_dir()
    except (OSError, RuntimeError) as error:
        raise CatalogError(f"no catalog at {name[:80]!r}: it cannot be a path: {error.args[-1]}") from error
    # Consent and pins are for a folder, by whatever way it is named.
    return path.resolve() if ".." in path.parts else path


def _is_rdf(path: Path) -> bool:
    return path.suffix.lower() in _RDF and path.is_file()


def _read_rdf(path: Path, opening: _Opening) -> SourceCatalog:
    from callsheet.graphs.rdf import read_rdf

    return _part(read_rdf(path), opening)


def _is_toollinkos(path: Path) -> bool:
    return all((path / name).is_file() for name in _TOOLLINKOS)


def _is_livemcpbench(path: Path) -> bool:
    published = path / "tools.json"
    return published.is_file() and isinstance(read_json(published), list)


def _read_livemcpbench(folder: Path, opening: _Opening) -> SourceCatalog:
    published = folder / "tools.json"
    return _document(read_json(published), published, opening)


def _is_skill(path: Path) -> bool:
    return is_skill_file(path) and path.is_file()


def _read_skill(path: Path, opening: _Opening) -> SourceCatalog:
    return _read_folder(path.parent, opening)


def _read_file(path: Path, opening: _Opening) -> SourceCatalog:
    return _document(read_json(path), path, opening)


def _read_folder(folder: Path, opening: _Opening) -> SourceCatalog:
    """Reads a folder of manifests and skills."""
    skills, problems = read_skills(folder)
    # A folder that is itself a skill may hold any .json files.
    files = [] if is_skill(folder) else sorted(folder.glob("*.json"))
    if not files and not skills and not problems:
        raise CatalogError(
            f"{folder}: no manifest and no skill in this folder: it should hold one .json file per agent, "
            "or one folder with a SKILL.md per skill"
        )
    parts = _manifests(files, opening, problems)
    if not parts and not skills:
        what = "a manifest" if files else "a skill"
        count = counted(len(files) or len(problems), "file")
        raise CatalogError(f"{folder}: none of its {count} is {what}; the first: {problems[0].message}")
    check_unique(parts.items())
    return replace(join_parts([*parts.values()]), skills=tuple(skills), problems=tuple(problems))


def _manifests(files: Sequence[Path], opening: _Opening, problems: list[Problem]) -> dict[str, SourceCatalog]:
    """Reads the manifests of a folder; a file that cannot be read is added to ``problems``."""
    parts: dict[str, SourceCatalog] = {}
    for file in files:
        try:
            document = read_json(file)
            part = _document(document, file, opening) if _is_toolkit(document) else _manifest(document, file)
        except CatalogError as error:
            problems.append(Problem(file.name, "malformed", str(error)))
        else:
            parts[str(file)] = part
            problems += part.problems
    return parts


def _read_toollinkos(folder: Path, _opening: _Opening) -> SourceCatalog:
    core, regular = (read_json(folder / name) for name in _TOOLLINKOS)
    agent, problems = agent_of_toollinkos(core, regular, str(folder))
    return SourceCatalog((agent,), problems=problems)


def _document(document: Any, path: Path, opening: _Opening) -> SourceCatalog:
    """Reads a parsed JSON file of any kind."""
    configuration = _configuration(document, path)
    match document:
        case {"callsheet_dependencies": _}:
            content = parse_dependencies(document, str(path))
            return SourceCatalog(dependencies=((str(path), content),), dependency_files=(str(path),))
        case {"callsheet": _, "agents": list()} | {"callsheet": _, "skills": list()}:
            if configuration is None:
                return _part(from_native(document, str(path)), opening)
            # Toolkits are no agents yet: they are made as the servers of an mcp.json are.
            agents = [entry for entry in document["agents"] if not _is_toolkit(entry)]
            part = _part(from_native({**document, "agents": agents}, str(path)), opening)
            return join_parts([part, _configured(configuration, path, opening)])
        case dict() if configuration is not None:
            return _configured(configuration, path, opening)
        case list() if path.name in _TOOLLINKOS:
            return _read_toollinkos(path.parent, opening)
        case list():
            published, problems = agents_of_livemcpbench(document, str(path))
            return SourceCatalog(published, problems=problems)
        case _:
            return _manifest(document, path)


def _configured(document: Mapping[str, Any], path: Path, opening: _Opening) -> SourceCatalog:
    """Reads the servers of an ``mcp.json``, its toolkits, and its folders of documents."""
    configuration = read_configuration(document, path)
    commands = opening.policy.commands if opening.policy else None
    consented = check_agreed(configuration.servers, str(path), yes=opening.yes, commands=commands)
    parts = [SourceCatalog(problems=configuration.problems)]
    servers = with_trust(configuration.servers)
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
    return join_parts(parts)


def _manifest(document: Any, path: Path) -> SourceCatalog:
    """Reads a manifest, or the recorded answers of a server."""
    match document:
        case {"name": str() as name, "tools": list() as tools}:
            description = document.get("description")
            instructions = document.get("instructions")
        case {"server": str() as name, "tools": list() as tools}:
            initialize = object_of(document.get("initialize"))
            description = object_of(initialize.get("serverInfo")).get("description")
            instructions = initialize.get("instructions")
        case _:
            forms = "'callsheet' with 'agents', or a manifest with 'name' (or 'server') and 'tools'"
            raise CatalogError(f"{path}: not a catalog: expected 'mcpServers' (or 'servers'), {forms}")
    if not name.strip():
        raise CatalogError(f"{path}: the agent's name is empty: give it one")
    texts = {"description": text_or_empty(description), "instructions": text_or_empty(instructions)}
    agent, problems = agent_from_listing(name, tools, **texts)
    return SourceCatalog((agent,), problems=problems)


def _plugin(kind: str) -> Callable[..., SourceCatalog]:
    """Returns the loader of this kind of catalog, by entry point because this package must not import ``agents``."""
    plugins = tuple(entry_points(group="callsheet.catalog_kinds", name=kind))
    if not plugins:
        raise CatalogError(f"nothing is installed that reads catalogs of kind {kind!r}: install callsheet itself")
    loader: Callable[..., SourceCatalog] = plugins[0].load()
    return loader


@dataclass(frozen=True, slots=True)
class CatalogKind:
    """A kind of file or folder that is a catalog.

    Attributes:
        names: Its names in help texts and in the documentation; several if one reader serves several forms.
        fits: Whether a path is of this kind.
        read: Returns the agents and skills at a path.
        specification: Returns the OpenAPI specification, if the kind describes an API over HTTP; then the operations
            can be called, and ``read`` is ``_read_api``.
    """

    names: tuple[str, ...]
    fits: Callable[[Path], bool]
    read: Callable[[Path, _Opening], SourceCatalog]
    specification: Callable[[Path], bytes] | None = None


_OPENAPI = CatalogKind(("OpenAPI specification",), is_specification, _read_api, _specification_file)
CATALOG_KINDS: tuple[CatalogKind, ...] = (
    _OPENAPI,
    CatalogKind(("RDF file",), _is_rdf, _read_rdf),
    CatalogKind(("SKILL.md",), _is_skill, _read_skill),
    CatalogKind(("mcp.json", "callsheet.json", "dependencies.json"), Path.is_file, _read_file),
    CatalogKind(("folder of ToolLinkOS",), _is_toollinkos, _read_toollinkos),
    CatalogKind(("folder of LiveMCPBench",), _is_livemcpbench, _read_livemcpbench),
    CatalogKind(("folder of manifests", "folder of skills"), Path.is_dir, _read_folder),
)
"""All kinds of catalogs with a path; the first that fits a path reads it."""
