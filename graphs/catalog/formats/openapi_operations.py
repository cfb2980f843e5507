"""Converts OpenAPI 3.0 and 3.1 specifications: tags become agents, operations become tools; nothing is sent."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from pydantic import ConfigDict, Field

from callsheet.graphs.catalog.formats.openapi_documents import Document, list_of, object_of
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.messages import counted
from callsheet.graphs.text.unicode import encodable, storable

META = "callsheet/http"
"""Key in ``_meta`` of a tool's definition; its value describes the HTTP request."""
Where = Literal["path", "query", "header", "cookie", "body"]


class Place(Record):
    """The place of an argument in a request: the part of the request, and the name in it.

    ``style`` determines how lists and objects are written: a style of OpenAPI or a media type; if it is empty, objects
    are written as JSON. With ``explode``, each item is written separately.
    """

    argument: str
    name: str
    where: Where
    style: str
    explode: bool


class HttpCall(Record):
    """The template of a request, with places for its arguments.

    Attributes:
        path: Path after the server's address, with ``{name}`` for each path parameter.
        places: The places of the arguments, and of the fields of a form that the specification describes.
        media: Media type of the body; empty if there is no body.
        body: The argument that is the whole body; empty if all arguments without a place are fields of the body.
        required: Whether a body is sent even if it has no fields.
    """

    method: str
    path: str
    places: tuple[Place, ...] = ()
    media: str = ""
    body: str = ""
    required: bool = False


METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_NOT_SENT = ("trace", "query")
"""Other methods of OpenAPI, whose operations are left out and reported."""
_INPUTS = 150
_OUTPUTS = 50
"""Subschemas of the schema of the arguments, and of that of a result."""
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
    """The base of records that hold the fields that are read from an object of the specification."""

    model_config = ConfigDict(extra="ignore")


class _Parameter(_Read):
    name: str
    where: Literal["path", "query", "header", "cookie"] = Field(alias="in")
    required: bool = False
    description: str = ""
    style: str = ""
    explode: bool | None = None
    form: Any = Field(default=None, alias="schema")
    content: JsonObject = Field(default_factory=dict)


class _Operation(_Read):
    operation_id: str = Field(default="", alias="operationId")
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: list[Any] = Field(default_factory=list)
    body: Any = Field(default=None, alias="requestBody")
    responses: JsonObject = Field(default_factory=dict)
    deprecated: Any = False


class _Operations:
    """Makes entries of ``tools/list`` from a specification; takes the same arguments as ``api_of``."""

    def __init__(self, document: Mapping[str, Any], given: Collection[str]) -> None:
        self._document = document
        self._given = frozenset(name.lower() for name in given)
        self._read = Document(document)
        self._names: set[str] = set()

    def operations(self) -> Iterator[tuple[str, str, Any, Any]]:
        """Yields the path, the method, the operation object and the path item object of each operation."""
        for path, item in self._document.get("paths", {}).items():
            try:
                target = self._read.followed(item)
            except CatalogError:
                target = item  # beside a reference to nothing, it may still have operations
            if not isinstance(target, dict):
                continue
            for method in (*METHODS, *_NOT_SENT):
                if method in target:
                    yield path, method, target[method], target

    def entry(self, path: str, method: str, operation: Any, item: Mapping[str, Any]) -> tuple[str, JsonObject]:
        """Returns the tag of an operation, empty if it has no tag, and its entry of ``tools/list``.

        Raises:
            CatalogError: The operation cannot be called as it is specified.
        """
        if method not in METHODS:
            raise CatalogError("calls by this method are not supported")
        # Programs decode the path of a request before they resolve "..".
        parts = re.split(r"[/\\]", unquote(unquote(path)))
        if not path.startswith("/") or any(part in (".", "..") for part in parts):
            raise CatalogError("the path must start with '/' and have no '..': correct it")
        if "?" in path:
            problem = "the path has a query, which would add hidden arguments to a call"
            raise CatalogError(f"{problem}: declare its parameters instead")
        declared = _read(_Operation, self._read.followed(operation))
        call, schema = self._call(path, method, declared, item)
        output = self._output(declared.responses)
        entry: JsonObject = {
            "name": self._name(path, method, declared.operation_id),
            "description": _description(declared),
            "inputSchema": schema,
        }
        if output:
            entry["outputSchema"] = output
        entry["annotations"] = dict(_HINTS.get(method, {"readOnlyHint": False}))
        if declared.deprecated is True:
            entry["annotations"]["deprecated"] = True
        entry["_meta"] = {META: call.model_dump(mode="json")}
        tag = declared.tags[0].strip() if declared.tags else ""
        return tag, entry

    def _name(self, path: str, method: str, operation_id: str) -> str:
        """Returns a unique name for an operation, without the path and method that FastAPI appends to the id."""
        whole = operation_id or f"{method}{path}"
        short = whole.removesuffix(f"{_NO_WORD.sub('_', path)}_{method}")
        plain = [_NO_NAME.sub("_", text).strip("_")[:_LONGEST_NAME] for text in (short, whole)]
        candidates = list(filter(None, plain)) or ["operation"]
        name = _free(self._names, *candidates)
        self._names.add(name)
        return name

    def _call(
        self, path: str, method: str, declared: _Operation, item: Mapping[str, Any]
    ) -> tuple[HttpCall, JsonObject]:
        """Returns the request of an operation, and the schema of its arguments."""
        places = list[Place]()
        properties = JsonObject()
        required = list[str]()
        for parameter in self._parameters(path, [*list_of(item.get("parameters")), *declared.parameters]):
            name = parameter.name
            where = parameter.where
            argument = _free(properties, name, f"{name}_{where}")
            properties[argument] = self._of_parameter(parameter)
            style = next(iter(parameter.content), parameter.style or _STYLES[where])
            explode = style == "form" if parameter.explode is None else parameter.explode
            places.append(Place(argument=argument, name=name, where=where, style=style, explode=explode))
            if parameter.required or where == "path":
                required.append(argument)
        body, more = self._body(declared.body, properties)
        schema = {
            "type": "object",
            "properties": {**properties, **more.get("properties", {})},
            "required": [*required, *more.get("required", ())],
            "additionalProperties": more.get("additionalProperties", False),
        }
        for name in schema["properties"]:
            if storable(name) != name:
                raise CatalogError(f"no argument can be named {name[:_LONGEST_NAME]!r}: correct it")
        places += body.pop("places", ())
        return HttpCall(method=method.upper(), path=path, places=tuple(places), **body), schema

    def _parameters(self, path: str, listed: Sequence[Any]) -> list[_Parameter]:
        """Returns the parameters that are arguments of a call; those of the operation override those of its path."""
        parameters: dict[tuple[str, str], _Parameter] = {}
        for entry in listed:
            parameter = _read(_Parameter, self._read.followed(entry))
            if parameter.where == "header" and not _HEADER.fullmatch(parameter.name):
                raise CatalogError(f"no header can be named {parameter.name[:_LONGEST_NAME]!r}: correct it")
            if parameter.name.strip():  # nothing can be sent without a name
                parameters[parameter.where, parameter.name] = parameter
        variables = list(dict.fromkeys(_VARIABLE.findall(path)))
        for name in variables:
            undeclared = {"name": name, "in": "path", "schema": {"type": "string"}}
            parameters.setdefault(("path", name), _Parameter(**undeclared))
        given = {"query": self._given, "header": self._given | _NOT_GIVEN, "cookie": frozenset[str]()}
        result = list[_Parameter]()
        for (where, name), parameter in parameters.items():
            is_argument = name in variables if where == "path" else name.lower() not in given[where]
            if is_argument:
                result.append(parameter)
        return result

    def _of_parameter(self, parameter: _Parameter) -> JsonObject:
        """Returns the schema of a parameter: its ``schema``, or the one in its ``content``."""
        form = object_of(next(iter(parameter.content.values()), {"schema": parameter.form})).get("schema")
        schema = self._read.resolved(form, without="readOnly", most=_INPUTS)
        return {**schema, "description": parameter.description} if parameter.description else schema

    def _body(self, declared: Any, taken: Collection[str]) -> tuple[JsonObject, Mapping[str, Any]]:
        """Returns the fields of ``HttpCall`` that describe the body, and the schema of the arguments in the body."""
        body = object_of(self._read.followed(declared))
        content = object_of(body.get("content"))
        if not content:
            return {}, {}
        # JSON is preferred to a form, and a form to anything else.
        media = min(map(str, content), key=lambda media: (not is_json(media), not is_form(media)))
        about = object_of(content.get(media))
        required = body.get("required") is True
        schema = self._read.resolved(about.get("schema"), without="readOnly", most=_INPUTS)
        encoding = object_of(about.get("encoding")) if is_form(media) else {}
        places = [_form_field(name, field) for name, field in encoding.items() if isinstance(field, dict)]
        call = {"media": media, "required": required, "places": places}

        has_fields = is_json(media) or is_form(media)
        fields = schema.get("properties", {}) if has_fields else {}
        if fields and "anyOf" not in schema and not set(fields) & set(taken):
            # The fields are arguments themselves. An optional body requires none of them.
            more = {"additionalProperties": True, **schema}
            if not required:
                more["required"] = ()
            return call, more
        argument = _free(taken, "body", "request_body")
        if not has_fields:
            schema = {"type": "string", "description": f"The body, as {media}."}
        more = {"properties": {argument: schema}, "required": (argument,) if required else ()}
        return {**call, "body": argument}, more

    def _output(self, responses: Mapping[str, Any]) -> JsonObject:
        """Returns the schema of a successful call's structured result; empty if the specification has none."""
        status = min((status for status in responses if status.startswith("2")), default="default")
        response = object_of(self._read.followed(responses.get(status)))
        content = object_of(response.get("content"))
        about = object_of(next((content[media] for media in content if is_json(str(media))), None))
        schema = self._read.resolved(about.get("schema"), without="writeOnly", most=_OUTPUTS)
        if "properties" in schema or schema.get("type") == "object":
            return {**schema, "type": "object"}
        # A structured result is an object: another value is its property.
        return {"type": "object", "properties": {"result": schema}} if schema else {}


def _description(operation: _Operation) -> str:
    """Returns summary and description; a summary that is the beginning of the description is not repeated."""
    summary = operation.summary.strip()
    description = operation.description.strip()
    if description.startswith(summary):
        return description
    return f"{summary}\n{description}".strip()


def is_json(media: str) -> bool:
    """Returns whether a media type is JSON: ``application/json``, ``application/problem+json``, ``*/*``."""
    kind = media.partition(";")[0].strip().lower()
    return kind in ("application/json", "*/*", "application/*", "text/json") or kind.endswith("+json")


def is_form(media: str) -> bool:
    """Returns whether a media type is that of a form."""
    return media.partition(";")[0].strip().lower() in ("application/x-www-form-urlencoded", "multipart/form-data")


def _form_field(name: str, encoding: Mapping[str, Any]) -> Place:
    """Returns the place of a form's field in a request.

    Source: OpenAPI 3.1.2, section 4.8.15.1.2: if a style is given, the media type is ignored.
    """
    style = encoding.get("style")
    explode = encoding.get("explode")
    if not encoding.keys() & {"style", "explode", "allowReserved"}:
        style = encoding.get("contentType")
        explode = True
    elif not isinstance(style, str):
        style = "form"
    if not isinstance(explode, bool):
        explode = style == "form"
    return Place(argument=name, name=name, where="body", style=_text(style), explode=explode)


def _free(taken: Collection[str], *names: str) -> str:
    """Returns the first of these names that is not taken; if all are, the last one with a number appended."""
    for name in names:
        if name not in taken:
            return name
    number = 2
    while f"{names[-1]}_{number}" in taken:
        number += 1
    return f"{names[-1]}_{number}"


_Form = TypeVar("_Form", bound=_Read)


def _read(form: type[_Form], value: Any) -> _Form:
    """Returns an object of the specification as a record, or raises ``CatalogError``."""
    if not isinstance(value, dict):
        raise CatalogError(f"{form.__name__.strip('_')}: it is not an object")
    return form(**value)


_NO_ID = re.compile(r"[^\w.-]+")
_LONGEST_ID = 64
_LONGEST_ABOUT = 2_000
"""Maximum characters of the description of an agent."""
_MOST_NAMED = 3
"""Maximum number of operations that a problem names."""


@dataclass(frozen=True, slots=True)
class ApiAgent:
    """The operations of one tag, or all operations without a tag, as entries of ``tools/list``."""

    name: str
    description: str
    entries: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Api:
    """The agents of an OpenAPI specification.

    Attributes:
        server: The first of the ``servers``, with default values of its variables; empty if there is none.
        agents: The agents by tag, in the form of an id; operations without a tag belong to the agent with the empty
            tag.
        problems: What was left out, and why.
    """

    title: str
    server: str
    agents: Mapping[str, ApiAgent]
    problems: tuple[str, ...] = field(default=())

    @property
    def size(self) -> int:
        """Returns the number of operations."""
        return sum(len(agent.entries) for agent in self.agents.values())


def api_of(document: Mapping[str, Any], *, given: Collection[str] = ()) -> Api:
    """Returns the agents of a parsed specification.

    The catalog itself sets the headers and query parameters named in ``given``; tools have no arguments for them.
    """
    info = object_of(document.get("info"))
    title = _text(info.get("title")) or "API"
    tools = _Operations(document, given)
    names = dict[str, str]()
    entries: dict[str, list[JsonObject]] = defaultdict(list)
    left_out: dict[str, list[str]] = defaultdict(list)
    for path, method, operation, item in tools.operations():
        try:
            tag_name, entry = tools.entry(path, method, operation, item)
        except CatalogError as error:
            left_out[str(error)].append(f"{method.upper()} {path}")
            continue
        slug = id_part(tag_name)
        names.setdefault(slug, tag_name if slug else "")
        entries[slug].append(entry)
    descriptions = dict[str, str]()
    for tag in map(object_of, list_of(document.get("tags"))):
        descriptions[_text(tag.get("name"))] = _text(tag.get("description"))
    agents = dict[str, ApiAgent]()
    for slug, name in names.items():
        about = _about(name, descriptions.get(name, ""), title, info)
        agents[slug] = ApiAgent(name or title, about, tuple(entries[slug]))
    problems = tuple(_problem(why, which) for why, which in left_out.items())
    return Api(title, _server(document.get("servers")), agents, problems)


def id_part(text: str) -> str:
    """Converts a title or a tag to a form that can be part of an id."""
    return _NO_ID.sub("-", encodable(text)).strip("-").lower()[:_LONGEST_ID]


def _problem(why: str, which: list[str]) -> str:
    """Returns a message about the operations that are left out for the reason ``why``."""
    names = ", ".join(which[:_MOST_NAMED])
    if len(which) > _MOST_NAMED:
        names += f" and {len(which) - _MOST_NAMED} more"
    verb = "is" if len(which) == 1 else "are"
    return f"{names}: {why}; {counted(len(which), 'operation')} {verb} left out"


def _about(tag: str, text: str, title: str, info: Mapping[str, Any]) -> str:
    """Returns the description of the agent for a tag; for the empty tag, of the agent for operations without a tag."""
    if not tag:
        return (_text(info.get("summary")) or _text(info.get("description")))[:_LONGEST_ABOUT]
    return f"{text or tag}".rstrip(".")[:_LONGEST_ABOUT] + f". Part of {title}."


def _server(servers: Any) -> str:
    """Returns the address of the first server, with the defaults of its variables."""
    first = object_of(next(iter(list_of(servers)), None))
    address = _text(first.get("url"))
    for name, about in object_of(first.get("variables")).items():
        address = address.replace(f"{{{name}}}", str(object_of(about).get("default", "")))
    return address


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
