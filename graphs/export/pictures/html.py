"""The whole graph as one self-contained page with search, details, and light and dark colours."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, Parameter, Provenance, Tool
from callsheet.graphs.export.pictures.drawing import KINDS, Numbers, drawn, xml
from callsheet.graphs.export.pictures.layout import lay_out
from callsheet.graphs.export.pictures.svg import asset, signs, summary
from callsheet.graphs.text.sanitizing import shown

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_TITLE = "Callsheet"


def to_html(catalog: Catalog) -> str:
    """All agents, tools and dependencies as one HTML page.

    The picture is that of ``to_svg``. A search marks its results; a click shows the details of an agent or a tool, and
    its dependencies. The page uses no network: its content security policy allows only its own script and style, by
    their hashes. Texts of servers are inserted as text only.
    """
    style = f"{asset('picture.css')}{asset('page.css')}:root[data-theme=dark] {{\n{asset('picture_dark.css')}}}\n"
    script = asset("page.js")
    parts = {
        "title": xml(f"{_TITLE}: {summary(catalog)}"),
        "summary": xml(summary(catalog)),
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "legend": "".join(_legend(catalog)),
        "svg": "\n".join(_svg(catalog)),
        "data": _in_script(_data(catalog)),
    }
    # One pass, so that placeholders in inserted texts are not replaced.
    return _PLACE.sub(lambda match: parts[match.group(1)], asset("page.html"))


def _svg(catalog: Catalog) -> Iterator[str]:
    layout = lay_out(catalog)
    size = (
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}"'
    )
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size}><rect class="ground" width="100%" height="100%"/>'
    yield from drawn(layout, catalog)
    yield "</svg>"


def _legend(catalog: Catalog) -> Iterator[str]:
    for sign, label, kind in signs(catalog):
        picture = f'<svg width="28" height="12" viewBox="0 -6 28 12" aria-hidden="true">{sign}</svg>'
        if kind:
            yield f'<label><input type="checkbox" data-kind="{kind}" checked>{picture}{label}</label>'
        else:
            yield f"<span>{picture}{label}</span>"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _in_script(value: Any) -> str:
    """JSON without characters that an HTML parser interprets."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(catalog: Catalog) -> dict[str, Any]:
    numbers = Numbers.of(catalog)
    agents = [_agent(agent) for agent in catalog.agents]
    tools = [_tool(tool, numbers) for tool in catalog.tools.values()]
    return {"nodes": agents + tools, "meanings": dict(KINDS.values())}


def _agent(agent: Agent) -> dict[str, Any]:
    return _without_empty(
        id=shown(agent.id, most=None),
        name=shown(agent.id),
        title=shown(agent.name),
        about=shown(agent.description),
        instructions=shown(agent.instructions),
    )


def _tool(tool: Tool, numbers: Numbers) -> dict[str, Any]:
    return _without_empty(
        id=shown(tool.id, most=None),
        name=shown(tool.name),
        title=shown(tool.title),
        about=shown(tool.description),
        agent=numbers.agents[tool.agent],
        core=tool.core,
        parameters=[_parameter(parameter) for parameter in tool.parameters],
        outputs=[_parameter(parameter) for parameter in tool.outputs],
        needs=[_needed(edge, numbers) for edge in tool.depends_on],
        capabilities=[shown(name) for name in tool.capabilities],
        hints=[shown(f"{name}: {value}") for name, value in tool.annotations.items()],
    )


def _parameter(parameter: Parameter) -> dict[str, Any]:
    values = ", ".join(map(str, parameter.enum[:20]))
    about = "\n".join(filter(None, (parameter.description, f"one of: {values}" if values else "")))
    return _without_empty(
        name=shown(parameter.name), type=shown(parameter.type), about=shown(about), required=parameter.required
    )


def _needed(edge: Dependency, numbers: Numbers) -> dict[str, Any]:
    declared = edge.provenance is Provenance.DECLARED
    return _without_empty(
        to=numbers.tools[edge.tool],
        kind=KINDS[edge.kind][0],
        parameter=shown(edge.parameter or ""),
        reason=shown(edge.reason),
        provenance="" if declared else f"{edge.provenance} ({edge.confidence:.0%})",
    )


def _without_empty(**fields: Any) -> dict[str, Any]:
    """The fields that are not empty; a number is never empty."""
    return {name: value for name, value in fields.items() if value or (isinstance(value, int) and value is not False)}
