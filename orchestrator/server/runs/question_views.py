"""Converts questions to a person to JSON for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callsheet.agents.calls import question_text
from callsheet.agents.calls.plan import KIND
from callsheet.agents.calls.review import each_call, flat
from callsheet.orchestrator.server.visible_catalog import Json, VisibleCatalog, page_text, shown_line

_TEXTS = ("why", "problem", "unchecked", "server")
WITHHELD = "withheld: it is about tools that you may not see"


def question_views(visible: VisibleCatalog, interrupt: str, value: Any) -> list[Json]:
    """Returns the questions in an interrupt: one for each call that it is about, otherwise a single one."""
    return [_question_view(visible, interrupt, place, one) for place, one in enumerate(each_call(value))]


def _question_view(visible: VisibleCatalog, interrupt: str, place: int, value: Any) -> Json:
    """Returns a question that waits for a person; without its content if it is about a tool that the user may not see.

    ``interrupt`` is the id by which it is answered, with the decisions on all its calls in the order of their places;
    ``kind`` is ``tool_approval``, ``new_tool``, ``unknown_outcome``, ``needs_input`` or ``question``, or that of
    another agent;
    ``why`` is the reason, ``problem`` what was wrong with the last answer, ``unchecked`` why the arguments could not be
    validated, ``shown`` is the text of the arguments that is approved, ``args`` all of them as JSON, ``fields`` are the
    missing values, ``server`` is the agent whose server asks for them, ``name`` and ``decisions`` are those of
    LangChain's form, ``always`` says whether the tool can be approved for good, and ``hash`` binds an answer to exactly
    this call.
    """
    plain: Mapping[str, Any] = flat(value) or {"type": "", "description": str(value)}
    tool = str(plain.get("tool") or "")
    # A tool that a server has added in the run is in no catalog yet.
    late = tool in visible.registry.late(visible.user)
    hidden = bool(tool) and not (late or visible.may_see(tool))
    text = WITHHELD if hidden else page_text(str(_question(plain) or plain.get("description") or plain))
    return {
        "id": f"{interrupt}-{place}" if place else interrupt,
        "interrupt": interrupt,
        "kind": str(plain.get("type") or ""),
        "step": shown_line(str(plain.get("step_id") or "")),
        "tool": visible.link(tool) if tool and not hidden else None,
        "text": text,
        **_content({} if hidden else plain),
    }


def _content(asked: Mapping[str, Any]) -> Json:
    """Returns what a question asks, and how it can be answered; all of it is empty for one that is withheld."""
    schema = asked.get("schema")
    args = asked.get("args")
    choices: list[str] = []
    if isinstance(args, Mapping) and _question(asked):
        choices = [str(one) for one in args.get("choices") or ()]
    return {
        **{name: question_text.shown_text(str(asked.get(name) or "")) for name in _TEXTS},
        "shown": str(asked.get("shown") or ""),
        # Complete: what is edited is sent back as text, because JavaScript rounds numbers.
        "args": None if args is None else question_text.whole_value(args),
        "fields": _fields(schema.get("properties") or {}) if isinstance(schema, Mapping) else {},
        "choices": choices,
        "decisions": [str(one) for one in asked.get("decisions") or ()],
        "always": bool(asked.get("always")),
        **{name: str(asked.get(name) or "") for name in ("name", "hash")},
    }


def _fields(properties: Mapping[str, Any]) -> Json:
    """Returns the missing values by name: what each is about, and the choices as text if there are only some."""
    fields: Json = {}
    for name, schema in properties.items():
        spec = schema if isinstance(schema, Mapping) else {}
        choices = spec.get("enum")
        if not isinstance(choices, list):
            choices = [True, False] if spec.get("type") == "boolean" else []
        texts = [one if isinstance(one, str) else question_text.whole_value(one, indent=None) for one in choices]
        kinds = spec.get("type") or "value"
        kind = " or ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)
        fields[name] = {"about": page_text(str(spec.get("description") or "")), "type": kind, "choices": texts}
    return fields


def _question(asked: Mapping[str, Any]) -> str:
    """Returns the question to the user, if it is one about the request, or of another agent."""
    return str(asked["args"]["question"] if asked.get("type") == KIND else asked.get("question") or "")
