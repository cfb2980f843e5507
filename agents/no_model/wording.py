"""What the mode says about itself: its agents, requests that work, and why a step was refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from callsheet.agents.no_model.filling import Parameter, StepReading, parameters_of, read_step
from callsheet.agents.no_model.values import Kind
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.text.sanitizing import shown, split_name

_EXAMPLES, _AGENTS, _LONGEST = 3, 20, 200
_VALUES = {
    Kind.NUMBER: ("5",),
    Kind.CLOCK: ("9:30",),
    Kind.ZONE: ("Berlin", "Tokyo"),
    Kind.DATE: (date.today().isoformat(),),
    Kind.FILE: ("notes.txt",),
    Kind.FOLDER: ("notes/",),
    Kind.URL: ("https://example.org",),
    Kind.EMAIL: ("ann@example.org",),
    Kind.TEXT: ('"text"',),
}
_ABOUT = (
    "Without a model, a step must name a tool and each of its values, and nothing else; anything else needs --model"
)


def example(tool: Tool, registry: ToolRegistry) -> str:
    """A request that works for a tool; empty if none of the words tried does."""
    needed = [parameter for parameter in parameters_of(tool) if parameter.required]
    needed.sort(key=lambda parameter: (parameter.side == 1, not parameter.kinds & {Kind.NUMBER, Kind.CLOCK}))
    said = split_name(tool.name)
    for parameter in needed:
        if (value := _value(parameter)) is None:
            return ""
        said += f"{' to' if parameter.side == 1 else ''} {value}"
    said = f"{said[:1].upper()}{said[1:]}"
    reading = read_step(said, [tool.id], registry)
    return said if reading is not None and reading.complete else ""


def _value(parameter: Parameter) -> str | None:
    some = parameter.choices or next((_VALUES[kind] for kind in sorted(parameter.kinds) if kind in _VALUES), ())
    return some[max(0, parameter.side) % len(some)] if some else None


def examples(catalog: Catalog, registry: ToolRegistry) -> list[str]:
    """Requests that work, of different agents."""
    found: list[str] = []
    for agent in catalog.agents:
        if len(found) == _EXAMPLES:
            break
        clear = (tool for tool in agent.tools if _is_clear(tool, registry))
        found += filter(None, [next(filter(None, (example(tool, registry) for tool in clear)), "")])
    return found


def _is_clear(tool: Tool, registry: ToolRegistry) -> bool:
    """Whether a tool is harmless, and its required values have forms of their own: any text may be a wrong one."""
    if tool.id not in registry.catalog.tools or registry.assurance(tool.id).harm != "none":
        return False
    return not any(parameter.required and parameter.kinds == {Kind.TEXT} for parameter in parameters_of(tool))


def note(catalog: Catalog, registry: ToolRegistry) -> str:
    """One sentence about the mode, for the plan."""
    works = " or ".join(f'"{said}"' for said in examples(catalog, registry)[:2])
    return f"planned without a model: it does what names a tool and its values{f', as {works}' if works else ''}; " + (
        "anything else needs --model"
    )


def introduction(catalog: Catalog, registry: ToolRegistry) -> str:
    """The agents, and requests that work."""
    lines = ["The agents are:"]
    for agent in catalog.agents[:_AGENTS]:
        about = agent.description or ", ".join(split_name(tool.name) for tool in agent.tools[:_EXAMPLES])
        lines.append(f"- {agent.id}: {shown(' '.join(about.split())[:_LONGEST])}")
    if (more := len(catalog.agents) - _AGENTS) > 0:
        lines.append(f"- and {more} more")
    works = [f"- {said}" for said in examples(catalog, registry)]
    return "\n".join([*lines, *(["Requests that work:", *works] if works else []), _ABOUT])


def refusal(reading: StepReading, registry: ToolRegistry) -> str:
    """Why the tool of a step is not called, and a wording that would work."""
    tool, filled = reading.tool, reading.filled
    why = []
    if filled.unused:
        why.append(f"nothing would be done with {_quoted(filled.unused)}")
    if filled.missing:
        about = {parameter.name: parameter.about for parameter in parameters_of(tool)}
        why.append(f"it needs {'; '.join(' '.join(about[name].split())[:_LONGEST] for name in filled.missing)}")
    if reading.others:
        why.append(f"{', '.join(reading.others)} would do as well: say which")
    said = example(tool, registry)
    hint = f'. It would be called for "{said}"' if said else ""
    return f"the nearest tool, {tool.id}, was not called: {', and '.join(why)}{hint}"


def not_allowed(tool: Tool) -> str:
    """Why a complete call is not made where nobody can confirm it."""
    return (
        f"{tool.id} may change something, and nobody is here to confirm the call: repeat this in a terminal, or allow "
        f"the tool with --allow {tool.id}"
    )


def no_answer(reading: StepReading, lacking: Sequence[str], answer: str) -> str:
    """Why an answer is none."""
    return f"{reading.tool.id} says nothing about {_quoted(lacking)}; the best that it has: {shown(answer)}"


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)
