"""The texts of the skills that were selected for a step."""

from __future__ import annotations

from collections.abc import Sequence

from callsheet.agents import SkillText
from callsheet.graphs import Catalog, shown
from callsheet.retrievers.index.embedding.minilm import first_tokens


def skill_texts(catalog: Catalog, ids: Sequence[str], *, most: int) -> tuple[SkillText, ...]:
    """The texts of skills, without hidden characters.

    Args:
        catalog: The part of the catalog that the user may see; skills that are not in it are left out.
        ids: Ids of the skills, best first.
        most: Maximum number of tokens of all texts together; a text that is cut says so; without room,
            it is left out.
    """
    texts: list[SkillText] = []
    for skill in (catalog.skills_by_id[skill_id] for skill_id in ids if skill_id in catalog.skills_by_id):
        whole = shown(skill.text, most=None)
        text, spent = first_tokens(whole, most)
        most -= spent
        if whole and not text:
            continue
        if len(text) < len(whole):
            text = f"{text}\n[cut: {len(text):,} of {len(whole):,} characters are shown]".lstrip()
        texts.append(SkillText(name=skill.name, text=text))
    return tuple(texts)
