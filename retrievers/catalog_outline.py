"""What a catalog offers for a request, in a few lines for a planning model."""

from __future__ import annotations

from callsheet.graphs import Catalog, Skill, shown
from callsheet.retrievers.index.embedding.minilm import shared_tokenizer
from callsheet.retrievers.selection.result import PickedAgent, Selection

_DESCRIPTION, _TOOLS = 120, 6


def catalog_outline(catalog: Catalog, selection: Selection, *, max_tokens: int = 800) -> str:
    """The picked agents and skills, a line each: id, description, and the names of a few picked tools.

    Args:
        catalog: The part of the catalog that the user may see.
        selection: What was picked for the whole request; its best agents come first, then its skills.
        max_tokens: Maximum number of tokens (WordPiece, an approximation); lines that do not fit are left out.
    """
    lines: list[str] = []
    spent = 0
    skills = (catalog.skills_by_id[skill.id] for skill in selection.skills)
    for line in (*(_line(catalog, agent) for agent in selection.agents), *map(_skill_line, skills)):
        spent += len(shared_tokenizer().encode(line, add_special_tokens=False).ids)
        if spent > max_tokens:
            break
        lines.append(line)
    return "\n".join(lines)


def _skill_line(skill: Skill) -> str:
    about = " ".join(shown(skill.description, most=_DESCRIPTION).split())
    return shown(f"- {skill.id} (instructions that a step can follow): {about}", most=None)


def _line(catalog: Catalog, picked: PickedAgent) -> str:
    agent = catalog.agent(picked.id)
    known = [tool.id for tool in picked.tools] or [tool.id for tool in agent.tools]
    names = ", ".join(tool.partition("/")[2] for tool in known[:_TOOLS])
    about = " ".join(shown(agent.description or agent.name, most=_DESCRIPTION).split())
    return shown(f"- {agent.id}{f': {about}' if about else ''}{f' Tools: {names}' if names else ''}", most=None)
