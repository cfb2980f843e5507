"""What a catalog offers for a request, in a few lines for a planning model."""

from __future__ import annotations

from itertools import accumulate

from callsheet.graphs import Agent, Catalog, Skill, Tool, shown, split_name
from callsheet.graphs.text.words import tokens
from callsheet.retrievers.index.embedding.minilm import shared_tokenizer
from callsheet.retrievers.index.node_texts import first_sentence
from callsheet.retrievers.selection.result import Selection

_DESCRIPTION, _WORDS, _TOOLS = 120, 60, 6
_OTHERS = 400
"""Maximum number of tokens of the agents of which no tool is named."""


def catalog_outline(catalog: Catalog, selection: Selection, *, max_tokens: int = 800, floor: float = 0.0005) -> str:
    """The agents that fit, each with what it is for and its picked tools; then the skills, and other agents.

    An agent fits if its score reaches the selection's ``threshold``, or the expected use of one of its tools is at
    least ``floor`` times that of the best tool. Tools that only an inferred dependency brought are left out. Agents are
    in the order of their best tools.

    Args:
        catalog: The part of the catalog that the user may see.
        selection: What was picked for the whole request.
        max_tokens: Maximum number of tokens (WordPiece, an approximation); the tools that fit worst are left out.
        floor: The minimum, as a share of the best tool's expected use.
    """
    skills = [_skill_line(catalog.skills_by_id[skill.id]) for skill in selection.skills]
    room = max_tokens - sum(map(_tokens, skills))
    least = floor * max((tool.use for tool in selection.tools), default=0.0)
    threshold = selection.trace.settings.get("threshold", 0.0)
    fitting = {agent.id for agent in selection.agents if agent.score >= threshold}
    fitting |= {tool.id.partition("/")[0] for tool in selection.tools if tool.use >= least}
    lines: dict[str, list[str]] = {}
    for tool in (catalog.tool(picked.id) for picked in selection.tools if not picked.inferred):
        known = lines.get(tool.agent, [])
        new = [*([] if known else [agent_line(catalog.agent(tool.agent))]), _tool_line(tool)]
        if tool.agent not in fitting or len(known) > _TOOLS:
            continue
        room -= sum(map(_tokens, new))
        if room < 0:
            break
        lines[tool.agent] = [*known, *new]
    for agent_id, known in lines.items():
        if more := len(catalog.agent(agent_id).tools) - len(known) + 1:
            known.append(f"  - and {more} more")
    others = [agent_line(agent) for agent in catalog.agents if agent.id not in lines]
    spare = list(accumulate(map(_tokens, others), initial=0))
    beside = [line for line, total in zip(others, spare[1:], strict=True) if total <= _OTHERS]
    told = [*(line for of_agent in lines.values() for line in of_agent), *skills]
    return "\n".join([*told, *(["Other agents:", *beside] if beside else [])])


def _tokens(line: str) -> int:
    return len(shared_tokenizer().encode(line, add_special_tokens=False).ids)


def _skill_line(skill: Skill) -> str:
    return shown(f"- {skill.id} (instructions that a step can follow): {_short(skill.description)}", most=None)


def agent_line(agent: Agent) -> str:
    """Its id, and its description; if that only repeats its name, the descriptions of its tools."""
    named = set(tokens(split_name(f"{agent.id} {agent.name}")))
    about = agent.description
    if set(tokens(split_name(about))) <= named:
        about = " ".join(first_sentence(tool.description) for tool in agent.tools)
    return shown(f"- {agent.id}: {_short(about)}".rstrip(": "), most=None)


def _tool_line(tool: Tool) -> str:
    return shown(f"  - {tool.name}: {_short(first_sentence(tool.description), _WORDS)}".rstrip(": "), most=None)


def _short(text: str, most: int = _DESCRIPTION) -> str:
    return " ".join(shown(text, most=most).split())
