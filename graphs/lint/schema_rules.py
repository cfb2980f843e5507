"""Rules on the structure of the catalog, and on the schemas of tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from callsheet.graphs.capabilities.taxonomy import shipped_taxonomy
from callsheet.graphs.catalog.errors import Severity, near_names
from callsheet.graphs.catalog.formats.manifests import UNREAD
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.knowledge_graph import cycle_from, cycles, dependency_edges, knowledge_graph
from callsheet.graphs.lint.lint_rule import Remark, Subject, listed, on, quoted, rule
from callsheet.graphs.text.json_schema import LARGEST_SCHEMA, NAMED, keywords, pointed
from callsheet.graphs.text.model_schema import model_schema


@rule("load-problem", Severity.ERROR, "Something was left out when the catalog was loaded.")
def load_problem(subject: Subject) -> Iterator[Remark]:
    """For example a server that did not answer, a malformed entry, or a dependency on an unknown tool."""
    return _problems(subject, unread=False)


@rule("unread-source", Severity.WARNING, "A setting or a folder of a source was not read.")
def unread_source(subject: Subject) -> Iterator[Remark]:
    """For example a key of another program in an ``mcp.json``, or a link among folders of skills."""
    return _problems(subject, unread=True)


def _problems(subject: Subject, *, unread: bool) -> Iterator[Remark]:
    for problem in subject.problems:
        if (problem.kind == UNREAD) is unread:
            agent = problem.agent if problem.agent in subject.catalog.by_id else ""
            yield Remark(problem.message if agent else str(problem), agent)


@rule("dependency-cycle", Severity.ERROR, "Direct dependencies form a cycle.")
def dependency_cycle(subject: Subject) -> Iterator[Remark]:
    """None of the tools can run first. Cycles of indirect dependencies are allowed."""
    edges = dependency_edges(knowledge_graph(subject.catalog))
    parts = cycles((tool, edge.tool) for tool, edge in edges if edge.kind.direct)
    order = {tool: place for place, tool in enumerate(subject.catalog.tools)}
    first = {min(part, key=order.__getitem__): part for part in parts}
    for start in sorted(first, key=order.__getitem__):
        cycle = " -> ".join(cycle_from(first[start], start))
        message = f"is in a cycle of direct dependencies: {cycle}: remove one, or make it indirect"
        yield on(subject.catalog.tools[start], message)


@rule("unknown-capability", Severity.ERROR, "A tool names a capability that is not in the taxonomy.")
def unknown_capability(subject: Subject) -> Iterator[Remark]:
    """Retrieval by capabilities ignores it."""
    known, detailed = subject.taxonomy.by_id, shipped_taxonomy("detailed").by_id
    for tool in subject.catalog.tools.values():
        for name in tool.capabilities:
            if name not in known:
                cure = ", which the taxonomy 'detailed' holds: use it" if name in detailed else near_names(name, known)
                yield on(tool, f"has the unknown capability {quoted(name)}{cure}")


_REMEMBERED = 4_096


@rule(
    "invalid-schema", Severity.ERROR, "A schema is not valid JSON Schema of the draft that it names (default: 2020-12)."
)
def invalid_schema(subject: Subject) -> Iterator[Remark]:
    """Arguments cannot be validated before a call."""
    for tool, which, schema in _schemas(subject):
        if error := _schema_error(schema):
            yield on(tool, f"{which} is not valid JSON Schema, so arguments are not checked: {error}")


@rule("schema-not-object", Severity.ERROR, "An input schema does not have the type object, which MCP requires.")
def schema_not_object(subject: Subject) -> Iterator[Remark]:
    """A model is shown such a tool without parameters, unless one of its types is an object."""
    for tool in subject.catalog.tools.values():
        kind = tool.input_schema.get("type", "object")
        if kind != "object":
            yield on(tool, f"its input schema has type {quoted(str(kind))}: make it an object")


@rule(
    "adapted-schema",
    Severity.INFO,
    "A provider of models refuses the input schema as it is, so a model is shown another form; arguments are checked "
    "against the original.",
)
def adapted_schema(subject: Subject) -> Iterator[Remark]:
    """Other clients, which pass it on as it is, may fail with every request."""
    for tool in subject.catalog.tools.values():
        if changes := model_schema(tool.input_schema).changes:
            yield on(tool, f"has an input schema that a model is shown in another form: {listed(list(changes))}")


@rule("unresolved-reference", Severity.ERROR, "A $ref points to an undefined part of its own schema.")
def unresolved_reference(subject: Subject) -> Iterator[Remark]:
    """The referenced part is not validated."""
    return _broken_references(subject, remote=False, cure="is undefined: define it, or correct it")


@rule("remote-reference", Severity.ERROR, "A $ref points outside its schema; it is never fetched.")
def remote_reference(subject: Subject) -> Iterator[Remark]:
    """Fetching it would let a server make us send requests to any address."""
    return _broken_references(subject, remote=True, cure="is never fetched: copy it into $defs")


@rule("undeclared-required", Severity.WARNING, "A required parameter is not among the properties.")
def undeclared_required(subject: Subject) -> Iterator[Remark]:
    """A model cannot know its value."""
    for tool in subject.catalog.tools.values():
        properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list) or "$ref" in tool.input_schema:
            continue
        if missing := [repr(name) for name in required if isinstance(name, str) and name not in properties]:
            yield on(tool, f"requires parameters that it does not describe: {listed(missing)}")


@rule("foreign-pattern", Severity.INFO, "A pattern is not a valid Python regular expression.")
def foreign_pattern(subject: Subject) -> Iterator[Remark]:
    """Arguments are not validated with such a schema."""
    for tool, which, schema in _schemas(subject):
        for key, pattern in keywords(schema):
            if key == "pattern" and isinstance(pattern, str) and not _compiles(pattern):
                yield on(tool, f"{which} has the pattern {quoted(pattern)}, which Python cannot compile: simplify it")


@rule(
    "large-schema",
    Severity.WARNING,
    f"A schema has more than {LARGEST_SCHEMA:,} characters; a model sees only names and types of the parameters.",
)
def large_schema(subject: Subject) -> Iterator[Remark]:
    """Every character of a schema costs tokens."""
    for tool, which, schema in _schemas(subject):
        size = len(json.dumps(schema, ensure_ascii=False, default=str))
        if size > LARGEST_SCHEMA:
            yield on(tool, f"{which} has {size:,} characters; beyond {LARGEST_SCHEMA:,} only names and types are shown")


def _schemas(subject: Subject) -> Iterator[tuple[Tool, str, Mapping[str, Any]]]:
    for tool in subject.catalog.tools.values():
        yield tool, "its input schema", tool.input_schema
        if tool.output_schema is not None:
            yield tool, "its output schema", tool.output_schema


def _schema_error(schema: Mapping[str, Any]) -> str:
    """Why a schema is invalid, or an empty text.

    Checking against a metaschema is slow, and schemas consist of the same parts: each part is checked once, and the
    whole schema only for the error.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for

    try:
        # Not check_schema: it reads patterns as Python's, but they are ECMAScript's and have their own rule.
        draft = validator_for(schema, default=Draft202012Validator)
        if all(_is_valid(draft, json.dumps(part)) for part in _parts(schema)):
            return ""
        error = best_match(draft(draft.META_SCHEMA).iter_errors(dict(schema)))
    # The library may raise these on an invalid schema.
    except (TypeError, ValueError, AttributeError, RecursionError) as raised:
        return quoted(f"{type(raised).__name__}: {raised}")
    return f"{quoted(error.message)} at {quoted(error.json_path)}" if error else ""


def _parts(schema: Any) -> Iterator[Any]:
    """Parts of a schema: if each of them is valid, so is the schema. Texts and defaults, always valid, are left out."""
    if not isinstance(schema, Mapping):
        yield schema
        return
    own = {}
    for key, value in schema.items():
        if key in NAMED and isinstance(value, Mapping):
            yield from (part for subschema in value.values() for part in _parts(subschema))
        elif key == "items" and isinstance(value, Mapping):
            yield from _parts(value)
        elif key == "anyOf" and isinstance(value, list) and value:
            yield from (part for subschema in value for part in _parts(subschema))
        elif key != "default" and not (key in {"title", "description"} and isinstance(value, str)):
            own[key] = value
    yield own


@lru_cache(maxsize=_REMEMBERED)
def _is_valid(draft: Any, part: str) -> bool:
    return bool(draft(draft.META_SCHEMA).is_valid(json.loads(part)))


def _broken_references(subject: Subject, *, remote: bool, cure: str) -> Iterator[Remark]:
    for tool, which, schema in _schemas(subject):
        references = [value for key, value in keywords(schema) if key in {"$ref", "$dynamicRef"}]
        for reference in dict.fromkeys(value for value in references if isinstance(value, str)):
            if _remote(reference) is remote and not _resolves(schema, reference):
                yield on(tool, f"{which} refers to {quoted(reference)}, which {cure}")


def _resolves(schema: Mapping[str, Any], reference: str) -> bool:
    base, _, anchor = reference.partition("#")
    if base or not anchor.startswith("/"):
        names = {str(value) for key, value in keywords(schema) if key in {"$id", "$anchor", "$dynamicAnchor"}}
        return not (base or anchor) or (base or anchor) in names
    try:
        pointed(reference, schema)
    except LookupError:
        return False
    return True


def _remote(reference: str) -> bool:
    try:
        parts = urlsplit(reference)
    except ValueError:
        return False
    return bool(parts.scheme or parts.netloc or parts.path)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True
