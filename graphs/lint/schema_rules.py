"""Rules on the structure of the catalog, and on the schemas of tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from callsheet.graphs.catalog.formats.manifests import AMBIGUOUS, UNREAD
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.errors import Severity, near_names
from callsheet.graphs.knowledge_graph import cycle_from, cycles, dependency_edges, knowledge_graph
from callsheet.graphs.lint.lint_rule import Remark, Subject, first_names, on, quoted, rule
from callsheet.graphs.text.json_schema import NAMED, keywords, resolve_pointer
from callsheet.graphs.text.model_schema import model_schema


@rule("load-problem", Severity.ERROR, "Something was left out when the catalog was loaded.")
def load_problem(subject: Subject) -> Iterator[Remark]:
    """Reports parts that were left out: for example a server that did not answer, or a malformed entry."""
    return _problems(subject, lambda kind: kind not in (UNREAD, AMBIGUOUS))


@rule("unread-source", Severity.WARNING, "A setting or a folder of a source was not read.")
def unread_source(subject: Subject) -> Iterator[Remark]:
    """Reports what was not read: for example a key of another program, or a link among folders of skills."""
    return _problems(subject, lambda kind: kind == UNREAD)


@rule("ambiguous-name", Severity.WARNING, "A dependency or a skill names a tool by a name that several tools have.")
def ambiguous_name(subject: Subject) -> Iterator[Remark]:
    """Reports names that several tools have; such a name stands for the tool whose server was pinned first."""
    return _problems(subject, lambda kind: kind == AMBIGUOUS)


def _problems(subject: Subject, fits: Callable[[str], bool]) -> Iterator[Remark]:
    for problem in subject.problems:
        if fits(problem.kind):
            agent = problem.agent if problem.agent in subject.catalog.by_id else ""
            yield Remark(problem.message if agent else str(problem), agent)


@rule("dependency-cycle", Severity.ERROR, "Direct dependencies form a cycle.")
def dependency_cycle(subject: Subject) -> Iterator[Remark]:
    """Reports cycles in which no tool can run first; cycles of indirect dependencies are allowed."""
    edges = dependency_edges(knowledge_graph(subject.catalog))
    parts = cycles((tool, edge.tool) for tool, edge in edges if edge.kind.direct)
    # Each cycle is reported at its first tool in the order of the catalog.
    order = {tool: place for place, tool in enumerate(subject.catalog.tools)}
    part_from = {min(part, key=order.__getitem__): part for part in parts}
    for start in sorted(part_from, key=order.__getitem__):
        cycle = " -> ".join(cycle_from(part_from[start], start))
        message = f"is in a cycle of direct dependencies: {cycle}: remove one, or make it indirect"
        yield on(subject.catalog.tools[start], message)


@rule("unknown-capability", Severity.ERROR, "A tool names a capability that is not in the taxonomy.")
def unknown_capability(subject: Subject) -> Iterator[Remark]:
    """Reports capabilities that retrieval ignores, because the taxonomy does not have them."""
    known = subject.taxonomy.by_id
    for tool in subject.catalog.tools.values():
        for name in tool.capabilities:
            if name not in known:
                yield on(tool, f"has the unknown capability {quoted(name)}{near_names(name, known)}")


_REMEMBERED = 4_096


@rule(
    "invalid-schema", Severity.ERROR, "A schema is not valid JSON Schema of the draft that it names (default: 2020-12)."
)
def invalid_schema(subject: Subject) -> Iterator[Remark]:
    """Reports invalid schemas; the arguments of a call cannot be validated against them."""
    for tool, which, schema in _schemas(subject):
        error = _schema_error(schema)
        if error:
            yield on(tool, f"{which} is not valid JSON Schema, so arguments are not checked: {error}")


@rule(
    "adapted-schema",
    Severity.INFO,
    "A provider of models refuses the input schema as it is, so models get a changed schema; arguments are checked "
    "against the original.",
)
def adapted_schema(subject: Subject) -> Iterator[Remark]:
    """Reports schemas that are changed before models see them.

    Other clients may send such a schema unchanged, and a provider then refuses every request that contains it.
    """
    for tool in subject.catalog.tools.values():
        changes = model_schema(tool.input_schema).changes
        if changes:
            yield on(tool, f"has an input schema that is changed before models see it: {first_names(list(changes))}")


@rule("unresolved-reference", Severity.ERROR, "A $ref points to nothing in its own schema; no other is fetched.")
def unresolved_reference(subject: Subject) -> Iterator[Remark]:
    """Reports references that cannot be resolved; arguments are not validated against that part of the schema.

    Other documents are not fetched, because a server could then make us send requests to any address.
    """
    for tool, which, schema in _schemas(subject):
        references: dict[str, None] = {}  # in order, without duplicates
        for key, value in keywords(schema):
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                references[value] = None
        for reference in references:
            if not _resolves(schema, reference):
                yield on(tool, f"{which} refers to {quoted(reference)}, which it does not define: copy it into $defs")


def _schemas(subject: Subject) -> Iterator[tuple[Tool, str, Mapping[str, Any]]]:
    for tool in subject.catalog.tools.values():
        yield tool, "its input schema", tool.input_schema
        if tool.output_schema is not None:
            yield tool, "its output schema", tool.output_schema


def _schema_error(schema: Mapping[str, Any]) -> str:
    """Returns why a schema is invalid; empty if it is valid.

    Checking against a metaschema is slow, and many schemas have equal parts. So each part is checked once, and a whole
    schema only to write the error.
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
    """Yields the parts of a schema: if each of them is valid, so is the schema."""
    if not isinstance(schema, Mapping):
        yield schema
        return
    own = {}
    for key, value in schema.items():
        subschemas = _subschemas(key, value)
        is_text = key in ("title", "description") and isinstance(value, str)
        if subschemas is not None:
            for subschema in subschemas:
                yield from _parts(subschema)
        # Texts and defaults are valid whatever they are, and differ from tool to tool.
        elif key != "default" and not is_text:
            own[key] = value
    yield own


def _subschemas(key: str, value: Any) -> Iterable[Any] | None:
    """Returns the schemas in the value of a keyword that holds schemas only; None for other keywords."""
    if key in NAMED and isinstance(value, Mapping):
        return value.values()
    if key == "items" and isinstance(value, Mapping):
        return [value]
    if key == "anyOf" and isinstance(value, list) and value:
        return value
    return None


@lru_cache(maxsize=_REMEMBERED)
def _is_valid(draft: Any, part: str) -> bool:
    return bool(draft(draft.META_SCHEMA).is_valid(json.loads(part)))


def _resolves(schema: Mapping[str, Any], reference: str) -> bool:
    """Returns whether a reference points to a part of its own schema."""
    base, _, anchor = reference.partition("#")
    if not base and not anchor:
        return True  # the schema itself
    if base or not anchor.startswith("/"):
        names = {str(value) for key, value in keywords(schema) if key in ("$id", "$anchor", "$dynamicAnchor")}
        return (base or anchor) in names
    try:
        resolve_pointer(reference, schema)
    except LookupError:
        return False
    return True
