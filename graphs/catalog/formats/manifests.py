"""Reads catalogs in JSON and YAML safely: MCP's ``tools/list``, Callsheet's own format, and published data sets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Self

from pydantic import ConfigDict, Field

from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, DependencyKind, Name, Record, Tool
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.hidden import written_out
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.regular_files import read_regular
from callsheet.graphs.text.unicode import DEEPEST, clean, encodable

_LARGEST_ENV = 1_000_000
_NOT_BREAK = re.compile(r"[^\n]")
_STRING = r'("(?:[^"\\]|\\.)*")'
_COMMENT = linear(rf"(?s){_STRING}|//[^\n]*|/\*.*?\*/")
_TRAILING = linear(rf"(?s){_STRING}|,(\s*[\]}}])")


def read_json(path: Path) -> Any:
    """Reads a JSON file, which may have comments and trailing commas as editors write them.

    Raises:
        CatalogError: The file cannot be read, or is not valid JSON.
    """
    try:
        return parse_json(read_regular(path), str(path))
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error


def parse_json(content: bytes, where: str) -> Any:
    """Parses JSON with the extensions of ``read_json``.

    Raises:
        CatalogError: It is not valid JSON.
        BoundError: It is nested too deeply.
    """
    try:
        text = content.decode("utf-8-sig")
        with suppress(json.JSONDecodeError):
            return json.loads(text)
        return json.loads(plain_json(text))
    except RecursionError as error:
        raise BoundError(f"{where}: not valid JSON: nested too deeply") from error
    except ValueError as error:  # also of a number that is too long
        raise CatalogError(f"{where}: not valid JSON: {error}") from error


def without_comments(text: str) -> str:
    """Returns a JSON text whose comments are blanks, so that everything else has its place."""
    return _COMMENT.sub(lambda match: match[1] or _NOT_BREAK.sub(" ", match[0]), text)


def plain_json(text: str) -> str:
    """Returns a JSON text whose comments and trailing commas are blanks, so that everything else has its place."""
    return _TRAILING.sub(lambda match: match[1] or f" {match[2]}", without_comments(text))


def read_env_file(path: Path) -> dict[str, str]:
    """Reads the variables in a file with lines ``NAME=value``; nothing in them is expanded.

    Raises:
        CatalogError: The file is too large, cannot be read, or has another line.
    """
    from dotenv.parser import parse_stream

    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_ENV:
            raise CatalogError(f"its envFile {path} is not a file of at most {_LARGEST_ENV // 1000:,} KB")
        text = read_regular(path).decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise CatalogError(f"its envFile {path} cannot be read: {error}") from error
    values: dict[str, str] = {}
    for line in parse_stream(StringIO(text)):
        if line.error or (line.key and line.value is None):
            raise CatalogError(f"its envFile {path} has a line that is not NAME=value: line {line.original.line}")
        if line.key:  # not an empty line or a comment
            values[line.key] = line.value or ""
    return values


class BoundError(CatalogError):
    """Raised if a document is nested too deeply or is too large."""


DEEPEST_DOCUMENT = 200
"""Maximum nesting of a document; schemas in it have their own maximum, ``DEEPEST``."""
_SCALARS = (  # YAML 1.2, JSON schema: no dates, and "no" is a word
    ("bool", r"true|false", "tf"),
    ("null", r"null|~|", "n~\0"),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
)


def read_yaml(text: bytes | str, where: str, *, most: int = 20_000_000) -> Any:
    """Parses a YAML document of at most this number of nodes; scalars are read as in JSON, and keys are strings.

    Raises:
        CatalogError: It is empty or malformed.
        BoundError: It is nested too deeply, or too large, also through its aliases.
    """
    import yaml

    loader = _loader()(text)
    try:
        _check_size(_loader()(text), where, most)
        node = loader.get_single_node()
        if node is None:
            raise CatalogError(f"{where}: the file is empty")
        if _nodes(node, {}, most) > most:
            raise BoundError(f"{where}: its YAML aliases expand to too many nodes: write them out")
        return loader.construct_document(node)
    except CatalogError:
        raise
    except RecursionError as error:
        raise BoundError(f"{where}: nested too deeply, or an alias contains itself: it cannot be read") from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise CatalogError(f"{where}: not valid YAML: {' '.join(str(error).split())[:300]}") from error
    finally:
        loader.dispose()


def _check_size(events: Any, where: str, most: int) -> None:
    """Refuses a document that is too deep or too large before it is built: libyaml builds nested nodes on the stack."""
    import yaml

    too_deep = f"{where}: nested more than {DEEPEST_DOCUMENT} levels deep"
    depth = count = 0
    try:
        while events.check_event():
            event = events.get_event()
            count += isinstance(event, yaml.NodeEvent)
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST_DOCUMENT:
                raise BoundError(too_deep)
            if count > most:
                raise BoundError(f"{where}: more than {most:,} nodes: leave out what is not needed")
    except yaml.MarkedYAMLError as error:
        # libyaml reads ahead of the events, and has a maximum of its own.
        if error.problem == "exceeded maximum nesting depth":
            raise BoundError(too_deep) from error
        raise
    finally:
        events.dispose()


def _nodes(node: Any, known: dict[int, int], most: int) -> int:
    """Returns the number of nodes of a YAML document with its aliases written out, at most ``most`` and one more.

    ``known`` holds the counts by the ``id`` of a node, so that each anchor is counted once.
    """
    if id(node) in known:
        return known[id(node)]
    if not isinstance(node.value, list):
        return 1
    # An alias within itself never ends; it is met here again before its count is known.
    known[id(node)] = most + 1
    count = 1
    for item in node.value:
        parts = item if isinstance(item, tuple) else (item,)  # key and value of a mapping, or an item of a list
        for part in parts:
            count += _nodes(part, known, most)
    known[id(node)] = min(count, most + 1)
    return known[id(node)]


def _loader() -> Any:
    """Returns PyYAML's safe loader, in C where it was built so, with the scalars of JSON; keys are strings."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> JsonObject:
            return {
                key if isinstance(key, str) else json.dumps(key, default=str): value
                for key, value in super().construct_mapping(node, deep=deep).items()
            }

    Loader.yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("^<<$"))]}
    for tag, pattern, first in _SCALARS:
        compiled = re.compile(f"^(?:{pattern})$")
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", compiled, ["" if c == "\0" else c for c in first])
    return Loader


_LONGEST_NAME = 1_024
_LONGEST_LIST = 1_000
NOT_CALLABLE = "not_callable"
UNREAD = "unread"
AMBIGUOUS = "ambiguous"
"""Kinds of problems that leave nothing out.

These are: tools that nobody knows where to call, settings without effect, and names that several tools have.
"""
SERVER_TROUBLE = frozenset(("start", "sign_in", "timeout", "crash", "protocol", "busy", "too_large", "unheard"))
"""The kinds of problems that concern a whole server."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with a part of a source: it was left out, it was not read, or its tools cannot be called.

    ``agent`` is the agent or the file. The kinds are ``start``, ``timeout``, ``malformed``, ``consent``,
    ``NOT_CALLABLE`` and ``UNREAD``.
    """

    agent: str
    kind: str
    message: str

    @property
    def word(self) -> str:
        """Returns the consequence of the problem as a word for people."""
        return {NOT_CALLABLE: "not callable", UNREAD: "not read", AMBIGUOUS: "ambiguous"}.get(self.kind, "left out")

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.agent}: {self.message}"


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a listing, valid and invalid.

    Attributes:
        tools: Name -> entry. A name with several different entries is ambiguous and has none; equal entries count once.
        repeated: Name -> count, for names with entries that differ.
        nameless: Positions, from 1, of entries without a name, or with a name that is too long.
    """

    tools: Mapping[str, JsonObject]
    repeated: Mapping[str, int]
    nameless: tuple[int, ...]

    @classmethod
    def of(cls, listing: Sequence[Any]) -> Self:
        """Sorts the entries of a listing as a server sent it."""
        by_name: dict[str, list[Any]] = {}
        nameless = list[int]()
        for position, entry in enumerate(listing, 1):
            name = name_of(entry)
            if name:
                by_name.setdefault(name, []).append(entry)
            else:
                nameless.append(position)
        tools = dict[str, JsonObject]()
        repeated = dict[str, int]()
        for name, entries in by_name.items():
            if len(entries) == 1 or _are_equal(entries):
                tools[name] = entries[0]
            else:
                repeated[name] = len(entries)
        return cls(tools, repeated, tuple(nameless))


def _are_equal(entries: Sequence[Any]) -> bool:
    """Returns whether entries are equal as JSON; in Python, 1 and True are equal."""
    return len({json.dumps(entry, sort_keys=True) for entry in entries}) == 1


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between two listings of a server, by tool name."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: Sequence[Any], after: Sequence[Any]) -> Self:
        """Compares two listings as a server sent them."""
        old = Entries.of(before).tools
        new = Entries.of(after).tools
        return cls(
            tuple(name for name in new if name not in old),
            tuple(name for name, entry in new.items() if name in old and old[name] != entry),
            tuple(name for name in old if name not in new),
        )


class _Declared(Record):
    """What ``_meta`` of an entry says in words of Callsheet."""

    model_config = ConfigDict(extra="ignore", alias_generator="callsheet/{}".format)

    core: Any = False
    depends_on: tuple[Dependency, ...] | None = Field(default=None, max_length=_LONGEST_LIST)
    capabilities: tuple[Name, ...] | None = Field(default=None, max_length=_LONGEST_LIST)


def name_of(entry: Any) -> str:
    """Returns the name of an entry, encodable as UTF-8; empty if it has no valid name."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        return ""
    return encodable(name)


def agent_from_listing(
    agent_id: str,
    tools: Sequence[object],
    *,
    name: str = "",
    description: str = "",
    instructions: str = "",
    category: str = "",
) -> tuple[Agent, tuple[Problem, ...]]:
    """Makes an agent from the entries of ``tools/list``, and a problem for each entry that is left out.

    Dependencies may still have bare tool names; ``load`` resolves them.
    """
    agent_id = clean(agent_id)
    entries = Entries.of(tools)
    valid = list[Tool]()
    messages = list[str]()
    for entry in entries.tools.values():
        try:
            valid.append(tool_from_entry(agent_id, entry))
        except CatalogError as error:
            messages.append(str(error))
    messages += [f"{count} tools are named {name!r}: none of them is used" for name, count in entries.repeated.items()]
    messages += [_nameless(position) for position in entries.nameless]
    texts = {"name": name, "description": description, "instructions": instructions, "category": category}
    agent = Agent(id=agent_id, tools=tuple(valid), **clean(texts))
    return agent, tuple(Problem(agent_id, "malformed", message) for message in messages)


def tool_from_entry(agent_id: str, entry: Any) -> Tool:
    """Makes a tool from one entry of ``tools/list``.

    Raises:
        CatalogError: The entry has no valid name, no valid schema, or claims of its own that are malformed.
    """
    if not name_of(entry):
        raise CatalogError(_nameless(1))
    try:
        entry = clean(entry)
    except CatalogError as error:
        raise CatalogError(f"tool {clean(entry['name'])!r}: {error}: it is left out") from error
    name = entry["name"]
    schema = entry.get("inputSchema")
    if schema is not None and not isinstance(schema, dict):
        raise CatalogError(f"tool {name!r}: inputSchema is not an object: it is left out")
    try:
        declared = _Declared(**_object(entry.get("_meta")))
    except CatalogError as error:
        raise CatalogError(f"tool {name!r}: {str(error).removeprefix('Declared: ')}: it is left out") from error
    output = entry.get("outputSchema")
    return Tool(
        agent=agent_id,
        name=name,
        title=text_or_empty(entry.get("title")),
        description=text_or_empty(entry.get("description")),
        input_schema=schema or {"type": "object", "properties": {}},
        output_schema=output if isinstance(output, dict) else None,
        annotations=_object(entry.get("annotations")),
        core=declared.core is True,
        depends_on=declared.depends_on or (),
        capabilities=tuple(dict.fromkeys(declared.capabilities or ())),
    )


def _nameless(position: int) -> str:
    expected = f"an object with a name of {_LONGEST_NAME:,} characters at most"
    return f"entry {position} of the tools is not {expected}: it is left out"


def text_or_empty(value: object) -> str:
    """Returns the value if it is a text, otherwise an empty text."""
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


FORMAT = 1
"""The version of the native format."""
_LEVELS = 6  # levels from the document to a tool's fields; in a manifest, the count starts at the tool


def dump(catalog: Catalog) -> str:
    """Returns the catalog in the native format, which ``load`` reads back unchanged."""
    body = {"callsheet": FORMAT, "agents": [], **catalog.model_dump(mode="json", exclude_defaults=True)}
    return written_out(json.dumps(body, ensure_ascii=False, indent=1))


def from_native(document: Mapping[str, Any], where: str) -> Catalog:
    """Returns the catalog in a parsed document in the native format.

    Raises:
        CatalogError: The document is of another version, or not valid.
    """
    if document["callsheet"] != FORMAT:
        raise CatalogError(f"{where}: unknown format {document['callsheet']!r}; this program reads {FORMAT}")
    nodes = {name: document[name] for name in ("agents", "skills") if name in document}
    try:
        return Catalog(**clean(nodes, deepest=DEEPEST + _LEVELS))
    except CatalogError as error:
        raise CatalogError(f"{where}: {error}") from error


def agents_of_livemcpbench(entries: Sequence[object], where: str) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """Returns the agents in LiveMCPBench's ``tools.json``: one per key under ``tools`` of each entry.

    Raises:
        CatalogError: An entry does not have the published format.
    """
    agents = list[Agent]()
    problems = list[Problem]()
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
    """Returns the one agent that holds all tools in the two files of ToolLinkOS.

    Raises:
        CatalogError: An entry does not have the published format.
    """
    tools = [(tool, True) for tool in core] + [(tool, False) for tool in regular]
    entries: list[JsonObject] = []
    for position, (tool, is_core) in enumerate(tools, 1):
        try:
            entries.append(_entry(tool, core=is_core))
        except (AttributeError, KeyError, TypeError) as error:
            wrong = f"entry {position} of ToolLinkOS's tools does not have the published format"
            raise CatalogError(f"{where}: {wrong}: {type(error).__name__}: {error}") from error
    return agent_from_listing("toollinkos", entries, name="ToolLinkOS")


def _entry(tool: Mapping[str, Any], *, core: bool) -> JsonObject:
    """Returns a published tool in the form of an entry of ``tools/list``."""
    properties = JsonObject()
    required = list[str]()
    for parameter in tool.get("parameters") or []:
        name = parameter["name"]
        properties[name] = {key: value for key, value in parameter.items() if key not in ("name", "required")}
        if parameter.get("required"):
            required.append(name)
    depends_on = [
        {
            "tool": edge["name"],
            "kind": _kind(edge["dependence_type"]),
            "parameter": edge.get("parameter_name"),
            "reason": edge.get("reason") or "",
        }
        for edge in tool.get("depends_on") or []
    ]
    return {
        "name": tool.get("name"),
        "description": tool.get("description"),
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "_meta": {"callsheet/core": core, "callsheet/depends_on": depends_on},
    }


def _kind(published: str) -> DependencyKind:
    """Returns the kind for ``PARAMETER_DIRECTLY_DEPENDS_ON`` and so on; edges without an adverb count as direct."""
    subject = "parameter" if published.startswith("PARAMETER") else "tool"
    adverb = "indirectly" if "INDIRECTLY" in published else "directly"
    return DependencyKind(f"{subject}_{adverb}")
