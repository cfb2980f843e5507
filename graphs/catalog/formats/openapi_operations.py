"""OpenAPI 3.0 and 3.1: agents by tag, and tools by operation. Nothing here sends anything."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Literal

from pydantic import ConfigDict, Field

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.openapi_documents import Document, list_of, object_of
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.text.sanitizing import counted, encodable, storable

META = "callsheet/http"
"""Where in ``_meta`` of a tool's definition this is."""
Where = Literal["path", "query", "header", "cookie", "body"]


class Place(Record):
    """Where an argument goes: its name in a part of the request.

    ``style`` is how lists and objects are written, by OpenAPI's names, or a media type; empty: objects as JSON.
    ``explode`` is whether each item is written by itself.
    """

    argument: str
    name: str
    where: Where
    style: str
    explode: bool


class HttpCall(Record):
    """A request with places for its arguments.

    Attributes:
        path: Path after the server's address, with ``{name}`` for each path parameter.
        places: Those of its arguments, and of the fields of a form that the specification describes.
        media: Media type of the body; empty without one.
        body: The argument that is the body; empty if all arguments without a place are fields of it.
        required: Whether a body without fields is sent too.
    """

    method: str
    path: str
    places: tuple[Place, ...] = ()
    media: str = ""
    body: str = ""
    required: bool = False


METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_INPUTS, _OUTPUTS = 150, 50  # sizes of schemas
_LONGEST_NAME = 64
_NO_WORD = re.compile(r"\W")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_VARIABLE = re.compile(r"\{([^{}/]+)\}")
_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_NOT_GIVEN = frozenset(
    "accept content-type authorization host cookie content-length transfer-encoding connection keep-alive te trailer "
    "upgrade expect proxy-authorization proxy-connection accept-encoding".split()
)
"""Headers that a specification cannot have a model fill: the catalog and the client do."""
_READS = {"readOnlyHint": True, "idempotentHint": True}
_HINTS: Mapping[str, Mapping[str, bool]] = {
    **dict.fromkeys(("get", "head", "options"), _READS),
    "put": {"readOnlyHint": False, "idempotentHint": True},
    "delete": {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True},
}


class _Read(Record):
    """What is read of an object of the specification."""

    model_config = ConfigDict(extra="ignore")


class _Parameter(_Read):
    name: str
    where: Literal["path", "query", "header", "cookie"] = Field(alias="in")
    required: bool = False
    description: str = ""
    style: str = ""
    explode: bool | None = None
    form: Any = Field(default=None, alias="schema")
    content: dict[str, Any] = Field(default_factory=dict)


class _Operation(_Read):
    operation_id: str = Field(default="", alias="operationId")
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: list[Any] = Field(default_factory=list)
    body: Any = Field(default=None, alias="requestBody")
    responses: dict[str, Any] = Field(default_factory=dict)
    deprecated: Any = False


class _Operations:
    """Makes the entries of a specification; arguments as ``api_of``."""

    def __init__(self, document: Mapping[str, Any], given: Collection[str]) -> None:
        self._document, self._given = document, frozenset(name.lower() for name in given)
        self._read = Document(document)
        self._names: set[str] = set()

    def operations(self) -> Iterator[tuple[str, str, Any, Any]]:
        """Path, method, operation and path item of each operation."""
        for path, item in self._document.get("paths", {}).items():
            try:
                found = self._read.followed(item)
            except CatalogError:
                found = item  # the operation below says so
            for method in METHODS if isinstance(found, dict) else ():
                if method in found:
                    yield path, method, found[method], found

    def entry(self, path: str, method: str, operation: Any, item: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The tag of an operation, empty without one, and its entry, or ``CatalogError``."""
        if not path.startswith("/") or any(part in (".", "..") for part in re.split(r"[/\\]", path)):
            raise CatalogError("the path must start with '/' and have no '..': correct it")
        if "?" in path:
            told = "the path has a query, which nobody is shown and which would add arguments to a call"
            raise CatalogError(f"{told}: declare its parameters instead")
        read = _read(_Operation, self._read.followed(operation))
        call, schema = self._call(path, method, read, item)
        texts = [text.strip() for text in (read.summary, read.description) if text.strip()]
        output = self._output(read.responses)
        annotations: dict[str, Any] = dict(_HINTS.get(method, {"readOnlyHint": False}))
        if read.deprecated is True:
            annotations["deprecated"] = True
        entry = {
            "name": self._name(path, method, read.operation_id),
            "description": texts[-1] if len(texts) == 2 and texts[1].startswith(texts[0]) else "\n".join(texts),
            "inputSchema": schema,
            **({"outputSchema": output} if output else {}),
            "annotations": annotations,
            "_meta": {META: call.model_dump(mode="json")},
        }
        return next(iter(read.tags), "").strip(), entry

    def _name(self, path: str, method: str, operation_id: str) -> str:
        """A name that no other operation has; without the path and the method that FastAPI appends to its ids."""
        whole = operation_id or f"{method}{path}"
        short = whole.removesuffix(f"{_NO_WORD.sub('_', path)}_{method}")
        plain = [_NO_NAME.sub("_", text).strip("_")[:_LONGEST_NAME] for text in (short, whole)]
        name = _free(self._names, *filter(None, plain)) if any(plain) else _free(self._names, "operation")
        self._names.add(name)
        return name

    def _call(
        self, path: str, method: str, read: _Operation, item: Mapping[str, Any]
    ) -> tuple[HttpCall, dict[str, Any]]:
        places, properties, required = list[Place](), dict[str, Any](), list[str]()
        for parameter in self._parameters(path, [*list_of(item.get("parameters")), *read.parameters]):
            name, where = parameter.name, parameter.where
            argument = _free(properties, name, f"{name}_{where}")
            properties[argument] = self._of_parameter(parameter)
            style = next(iter(parameter.content), parameter.style or _STYLES[where])
            explode = style == "form" if parameter.explode is None else parameter.explode
            places.append(Place(argument=argument, name=name, where=where, style=style, explode=explode))
            if parameter.required or where == "path":
                required.append(argument)
        body, more = self._body(read.body, properties)
        schema = {
            "type": "object",
            "properties": {**properties, **more.get("properties", {})},
            "required": [*required, *more.get("required", ())],
            "additionalProperties": more.get("additionalProperties", False),
        }
        if wrong := [name for name in schema["properties"] if storable(name) != name]:
            raise CatalogError(f"no argument can be named {wrong[0][:_LONGEST_NAME]!r}: correct it")
        places += body.pop("places", ())
        return HttpCall(method=method.upper(), path=path, places=tuple(places), **body), schema

    def _parameters(self, path: str, listed: Sequence[Any]) -> list[_Parameter]:
        """The parameters that a call gives; one of the operation overrides that of its path."""
        found: dict[tuple[str, str], _Parameter] = {}
        for entry in listed:
            parameter = _read(_Parameter, self._read.followed(entry))
            if parameter.where == "header" and not _HEADER.fullmatch(parameter.name):
                raise CatalogError(f"no header can be named {parameter.name[:_LONGEST_NAME]!r}: correct it")
            if parameter.name.strip():  # nothing can be sent without a name
                found[parameter.where, parameter.name] = parameter
        variables = list(dict.fromkeys(_VARIABLE.findall(path)))
        for name in variables:
            undeclared = {"name": name, "in": "path", "schema": {"type": "string"}}
            found.setdefault(("path", name), _Parameter(**undeclared))
        given = {"query": self._given, "header": self._given | _NOT_GIVEN, "cookie": frozenset[str]()}
        return [
            parameter
            for (where, name), parameter in found.items()
            if (name in variables if where == "path" else name.lower() not in given[where])
        ]

    def _of_parameter(self, parameter: _Parameter) -> dict[str, Any]:
        form = object_of(next(iter(parameter.content.values()), {"schema": parameter.form})).get("schema")
        schema = self._read.resolved(form, without="readOnly", most=_INPUTS)
        return {**schema, "description": parameter.description} if parameter.description else schema

    def _body(self, declared: Any, taken: Collection[str]) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """What a call says of its body, and the schema of the arguments that the body adds."""
        body = object_of(self._read.followed(declared))
        if not (content := object_of(body.get("content"))):
            return {}, {}
        media = min(map(str, content), key=lambda media: (not is_json(media), not is_form(media)))
        about, must = object_of(content.get(media)), body.get("required") is True
        schema = self._read.resolved(about.get("schema"), without="readOnly", most=_INPUTS)
        encoding = object_of(about.get("encoding")) if is_form(media) else {}
        places = [_form_field(name, found) for name, found in encoding.items() if isinstance(found, dict)]
        call = {"media": media, "required": must, "places": places}
        fields = schema.get("properties", {}) if is_json(media) or is_form(media) else {}
        if fields and "anyOf" not in schema and not set(fields) & set(taken):
            return call, {"additionalProperties": True, **schema, **({} if must else {"required": ()})}
        argument = _free(taken, "body", "request_body")
        if not is_json(media) and not is_form(media):
            schema = {"type": "string", "description": f"The body, as {media}."}
        return {**call, "body": argument}, {"properties": {argument: schema}, "required": (argument,) if must else ()}

    def _output(self, responses: Mapping[str, Any]) -> dict[str, Any]:
        """Schema of the structured result of a success; empty if there is none."""
        status = next(iter(sorted(status for status in responses if status.startswith("2"))), "default")
        content = object_of(object_of(self._read.followed(responses.get(status))).get("content"))
        about = object_of(next((content[media] for media in content if is_json(str(media))), None))
        schema = self._read.resolved(about.get("schema"), without="writeOnly", most=_OUTPUTS)
        if "properties" in schema or schema.get("type") == "object":
            return {**schema, "type": "object"}
        return {"type": "object", "properties": {"result": schema}} if schema else {}


def is_json(media: str) -> bool:
    """Whether a media type is JSON: ``application/json``, ``application/problem+json``, ``*/*``."""
    kind = media.partition(";")[0].strip().lower()
    return kind in ("application/json", "*/*", "application/*", "text/json") or kind.endswith("+json")


def is_form(media: str) -> bool:
    """Whether a media type is that of a form."""
    return media.partition(";")[0].strip().lower() in ("application/x-www-form-urlencoded", "multipart/form-data")


def _form_field(name: str, encoding: Mapping[str, Any]) -> Place:
    """Where a field of a form goes: a style comes before a media type, as in 4.8.15.1.2 of OpenAPI 3.1.2."""
    style, explode = encoding.get("style"), encoding.get("explode")
    if not encoding.keys() & {"style", "explode", "allowReserved"}:
        style, explode = encoding.get("contentType"), True
    elif not isinstance(style, str):
        style = "form"
    if not isinstance(explode, bool):
        explode = style == "form"
    return Place(argument=name, name=name, where="body", style=_text(style), explode=explode)


def _free(taken: Collection[str], *names: str) -> str:
    """The first of some names that is not taken, otherwise the last one with a number."""
    numbered = (f"{names[-1]}_{number}" for number in count(2))
    return next(name for name in chain(names, numbered) if name not in taken)


def _read(form: Any, found: Any) -> Any:
    if not isinstance(found, dict):
        raise CatalogError(f"{form.__name__.strip('_')}: it is not an object")
    return form(**found)


_NO_ID = re.compile(r"[^\w.-]+")
_LONGEST_ID, _LONGEST_ABOUT, _MOST_NAMED = 64, 2_000, 3


@dataclass(frozen=True, slots=True)
class ApiAgent:
    """The operations of one tag, or of none, as entries of ``tools/list``."""

    name: str
    description: str
    entries: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Api:
    """A specification.

    Attributes:
        server: The first of its ``servers``, variables replaced by their defaults; empty if it names none.
        agents: Its agents by tag, in the form of an id; the empty tag is that of operations without one.
        problems: What was left out, and why.
    """

    title: str
    server: str
    agents: Mapping[str, ApiAgent]
    problems: tuple[str, ...] = field(default=())

    @property
    def size(self) -> int:
        """Number of operations."""
        return sum(len(agent.entries) for agent in self.agents.values())


def api_of(document: Mapping[str, Any], *, given: Collection[str] = ()) -> Api:
    """The agents of a parsed specification.

    Names of headers and query parameters that are ``given`` are set by the catalog, and are no arguments of a tool.
    """
    info = object_of(document.get("info"))
    title = _text(info.get("title")) or "API"
    tools, names = _Operations(document, given), dict[str, str]()
    entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    left_out: dict[str, list[str]] = defaultdict(list)
    for path, method, operation, item in tools.operations():
        try:
            tag, entry = tools.entry(path, method, operation, item)
        except CatalogError as error:
            left_out[str(error)].append(f"{method.upper()} {path}")
            continue
        slug = id_of(tag)
        names.setdefault(slug, tag if slug else "")
        entries[slug].append(entry)
    tags = map(object_of, list_of(document.get("tags")))
    abouts = {_text(tag.get("name")): _text(tag.get("description")) for tag in tags}
    agents = {
        slug: ApiAgent(tag or title, _about(tag, abouts.get(tag, ""), title, info), tuple(entries[slug]))
        for slug, tag in names.items()
    }
    problems = tuple(_problem(why, which) for why, which in left_out.items())
    return Api(title, _server(document.get("servers")), agents, problems)


def id_of(text: str) -> str:
    """A title or a tag as a part of an id."""
    return _NO_ID.sub("-", encodable(text)).strip("-").lower()[:_LONGEST_ID]


def _problem(why: str, which: list[str]) -> str:
    more = f" and {len(which) - _MOST_NAMED} more" if len(which) > _MOST_NAMED else ""
    verb = "is" if len(which) == 1 else "are"
    return f"{', '.join(which[:_MOST_NAMED])}{more}: {why}; {counted(len(which), 'operation')} {verb} left out"


def _about(tag: str, text: str, title: str, info: Mapping[str, Any]) -> str:
    if not tag:
        return (_text(info.get("summary")) or _text(info.get("description")))[:_LONGEST_ABOUT]
    return f"{text or tag}".rstrip(".")[:_LONGEST_ABOUT] + f". Part of {title}."


def _server(servers: Any) -> str:
    first = object_of(next(iter(list_of(servers)), None))
    address = _text(first.get("url"))
    for name, about in object_of(first.get("variables")).items():
        address = address.replace(f"{{{name}}}", str(object_of(about).get("default", "")))
    return address


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
