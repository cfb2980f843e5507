"""Makes the roster of a catalog: one line per agent with the names of its tools, from which a model chooses.

Names are cheap and schemas are dear: 472 tools are 2,000 tokens of names, in a prefix that providers cache. A model
that sees all names picks the tools that a whole request needs better than a ranking does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from callsheet.graphs import Agent, Catalog, Skill, Tool, UnknownNameError, shown, split_name
from callsheet.graphs.errors import near_names
from callsheet.graphs.text.messages import counted
from callsheet.graphs.text.words import tokens
from callsheet.retrievers.index.embedding import shared_tokenizer
from callsheet.retrievers.index.node_texts import COMPOSED, first_sentence
from callsheet.retrievers.retriever import AgentGraphRetriever
from callsheet.retrievers.selection.select_settings import units_of

LEGEND = "A tool's id is agent/tool; x_{a, b} stands for x_a and x_b."
"""Explains to a model how to read a roster."""
_ABOUT = (80, 40, 0)
"""Characters of what an agent is for: the first is the usual one, the others are for a catalog that is too large."""
_TOOL_ABOUT = 120
_LONGEST_NAME = 128
_LONGEST_TOKEN = 8
"""Characters that count as a token at least: WordPiece takes a very long word for one token."""
_PLAIN = re.compile(r"[\w./:@+-]+")
_SEPARATOR = re.compile(r"(?<=\w)[_.-]+(?=.)")
_DEPRECATED = re.compile(r"\W*deprecated\b", re.IGNORECASE)
_NOT_WORDS = re.compile(r"[\W_]+")
_PER_CLAUSE = 6
"""Number of tools that are searched for each clause of a request; the best agents own them."""
_RANKED = 60
"""Number of tools by which agents are ranked for words."""


@dataclass(frozen=True, slots=True)
class Roster:
    """The agents of a catalog as text for a model; the same catalog always has the same text.

    Attributes:
        text: A line for each agent and each skill; empty for an empty catalog.
        whole: Whether the names of all tools are there; if not, the lines say only what each agent is for.
        tokens: Number of its tokens (WordPiece, an approximation).
    """

    text: str
    whole: bool
    tokens: int


def roster(catalog: Catalog, *, max_tokens: int = 4_000, skills: bool = True) -> Roster:
    """Lists every agent with the names of all its tools, sorted, one line each; then the skills.

    Agents without tools are left out, because nothing of them can be called. If the names and descriptions of agents
    exceed ``max_tokens``, the descriptions are shortened first. If that is not enough, the lines have the description
    of each agent and its number of tools, again shortened if necessary. The last line counts what is still left out.
    The catalog is what the user may see; ``skills`` is whether the skills can be read. Every text of a server is
    cleaned to one line. The result is cached with the catalog.
    """
    key = f"roster {max_tokens} {skills}"
    made: Roster | None = catalog.derived.get(key)
    if made is None:
        made = catalog.derived[key] = _made(catalog, max_tokens, catalog.skills if skills else ())
    return made


def _made(catalog: Catalog, max_tokens: int, listed: Iterable[Skill]) -> Roster:
    """Makes the roster, with as much as fits of what each agent is for."""
    agents = sorted((agent for agent in catalog.agents if agent.tools), key=lambda agent: agent.id)
    skills = sorted(listed, key=lambda skill: skill.id)
    # A name and the comma behind it are two tokens at least, so that the lines of a large catalog are never made.
    if 2 * len(catalog.tools) <= max_tokens:
        for most in _ABOUT:
            lines = [_whole_line(agent, most) for agent in agents]
            lines += [_skill_line(skill, most) for skill in skills]
            tokens_of_lines = _cost(lines)
            if tokens_of_lines <= max_tokens:
                return Roster("\n".join(lines), whole=True, tokens=tokens_of_lines)
    lines = []
    for most in _ABOUT:
        lines = [_short_line(agent, most) for agent in agents]
        lines += [_skill_line(skill, most) for skill in skills]
        tokens_of_lines = _cost(lines)
        if tokens_of_lines <= max_tokens:
            return Roster("\n".join(lines), whole=False, tokens=tokens_of_lines)
    text = _first_lines(lines, max_tokens)
    return Roster(text, whole=False, tokens=count_tokens(text))


def _first_lines(lines: Sequence[str], max_tokens: int) -> str:
    """Returns the first lines that fit, and the number of the others."""
    room = max_tokens - count_tokens(_left(len(lines)))
    fitting: list[str] = []
    for line in lines:
        room -= count_tokens(line)
        if room < 0:
            break
        fitting.append(line)
    return "\n".join([*fitting, _left(len(lines) - len(fitting))])


def _left(number: int) -> str:
    return f"and {number:,} more agents and skills"


def _whole_line(agent: Agent, most: int = _ABOUT[0]) -> str:
    return f"{_head(agent, most)}: {_names(agent.tools)}"


def _short_line(agent: Agent, most: int) -> str:
    """Returns what an agent is for, or, if it does not say so, the first names of its tools."""
    about = _about(agent, most)
    if most and not about:
        about = _cut(_names(agent.tools), most)
    return f"{_one_line(agent.id)} ({counted(len(agent.tools), 'tool')})" + (f": {about}" if about else "")


def _skill_line(skill: Skill, most: int) -> str:
    about = _cut(first_sentence(skill.description), most)
    return f"{_one_line(skill.id)} (skill)" + (f": {about}" if about else "")


def _head(agent: Agent, most: int = _ABOUT[0]) -> str:
    about = _about(agent, most)
    return _one_line(agent.id) + (f" ({about})" if about else "")


def _about(agent: Agent, most: int) -> str:
    """Returns what an agent is for, by its description; empty if that only repeats its name."""
    about = _one_line(first_sentence(agent.description))
    named = set(tokens(split_name(f"{agent.id} {agent.name}")))
    return "" if set(tokens(split_name(about))) <= named else _cut(about, most)


def _one_line(text: str) -> str:
    """Returns a text of a server without hidden characters and line breaks."""
    return " ".join(shown(text, most=None).split())


def _cut(text: str, most: int) -> str:
    line = _one_line(text)
    if len(line) <= most:
        return line
    return f"{line[: most - 1].rstrip()}…" if most else ""


def _names(tools: Iterable[Tool]) -> str:
    """Returns the names, sorted; common prefixes are written once where that saves tokens."""
    marked = {tool.name: " (deprecated)" if is_deprecated(tool) else "" for tool in tools}
    names = sorted(marked)
    parts: list[str] = []
    at = 0
    while at < len(names):
        prefix, number = _group(names, at)
        group = names[at : at + number]
        if prefix:
            parts.append(f"{prefix}{{{', '.join(name.removeprefix(prefix) + marked[name] for name in group)}}}")
        else:
            parts.append(tool_name(group[0]) + marked[group[0]])
        at += number
    return ", ".join(parts)


def _group(names: Sequence[str], at: int) -> tuple[str, int]:
    """The prefix that saves most if it is written once for the names from here on, and the number of these names.

    A prefix ends with a separator. Without one that saves tokens, it is empty, and the number is 1.
    """
    best = ""
    number = 1
    saved = 0
    if not _is_plain(names[at]):
        return best, number
    for match in _SEPARATOR.finditer(names[at]):
        prefix = names[at][: match.end()]
        count = 1
        while at + count < len(names) and _continues(names[at + count], prefix):
            count += 1
        saving = (count - 1) * count_tokens(prefix) - _BRACES
        if saving > saved:
            best = prefix
            number = count
            saved = saving
    return best, number


_BRACES = 2
"""Tokens that the braces of a group cost."""


def _continues(name: str, prefix: str) -> bool:
    return len(name) > len(prefix) and name.startswith(prefix) and _is_plain(name)


def _is_plain(name: str) -> bool:
    """Returns whether a name can be written as it is: it holds nothing that a line of names means otherwise."""
    return len(name) <= _LONGEST_NAME and _PLAIN.fullmatch(name) is not None and _one_line(name) == name


def tool_name(name: str) -> str:
    """Returns a name for a line of names: in quotation marks if it has blanks, commas or other marks."""
    if _is_plain(name):
        return name
    return json.dumps(_cut(name, _LONGEST_NAME), ensure_ascii=False)


def is_deprecated(tool: Tool) -> bool:
    """Returns whether a tool is marked as deprecated.

    The mark is in its annotations or its schema, or it is the first word of its title or description.
    """
    said = tool.annotations.get("deprecated") is True or tool.input_schema.get("deprecated") is True
    return said or any(_DEPRECATED.match(shown(text)) for text in (tool.title, tool.description))


def count_tokens(text: str) -> int:
    """Returns the approximate number of WordPiece tokens of a text; eight characters count as at least one token."""
    known = len(shared_tokenizer().encode(text, add_special_tokens=False).ids)
    return max(known, len(text) // _LONGEST_TOKEN)


def _cost(lines: Sequence[str]) -> int:
    return sum(map(count_tokens, lines))


def found_lines(
    catalog: Catalog, agent_ids: Iterable[str], *, max_tokens: int = 2_000, first: Collection[str] = ()
) -> str:
    """Returns the complete roster lines of these agents, in this order, as far as they fit into ``max_tokens``.

    If the line of an agent is too long by itself, it shows the tools in ``first`` (ids), otherwise the first tools by
    name, and the number of the others. Unknown agents are left out. The result is empty if there are none.
    """
    room = max_tokens
    lines = list[str]()
    for agent_id in dict.fromkeys(agent_ids):
        agent = catalog.by_id.get(agent_id)
        if agent is None or not agent.tools:
            continue
        line, cost = _known_line(catalog, agent)
        if cost > max_tokens:
            line = _part_line(agent, first, min(room, max_tokens // 2))
            cost = count_tokens(line)
        if cost <= room:
            lines.append(line)
            room -= cost
    return "\n".join(lines)


def _known_line(catalog: Catalog, agent: Agent) -> tuple[str, int]:
    """The whole line of an agent and its tokens, made once for a catalog: each session of a gateway needs some."""
    known: dict[str, tuple[str, int]] = catalog.derived.setdefault("roster lines", {})
    if agent.id not in known:
        line = _whole_line(agent)
        known[agent.id] = line, count_tokens(line)
    return known[agent.id]


def _part_line(agent: Agent, first: Collection[str], max_tokens: int) -> str:
    tools = [tool for tool in agent.tools if tool.id in first] or sorted(agent.tools, key=lambda tool: tool.name)
    while len(tools) > 1 and count_tokens(_names(tools)) > max_tokens * 3 // 4:
        tools = tools[: len(tools) // 2]
    return f"{_head(agent)}: {_names(tools)}, and {len(agent.tools) - len(tools):,} more"


def agents_found(retriever: AgentGraphRetriever, request: str, *, most: int = 20) -> tuple[list[str], list[str]]:
    """Returns the agents and the tools that fit a request, best first.

    Agents that the request names come first, then the owners of the best tools of each clause, in turn. ``retriever``
    is restricted to what the user may see.
    """
    catalog = retriever.catalog
    units = [unit.text for unit in units_of(request, implied=False)]
    found = [_tools_for(retriever, text) for text in units]
    tools = [tool for row in zip_longest(*found) for tool in row if tool]
    owners = [catalog.tools[tool].agent for tool in tools]
    agents = list(dict.fromkeys([*_named_agents(catalog, request), *owners]))
    return agents[:most], list(dict.fromkeys(tools))


def lines_for(retriever: AgentGraphRetriever, words: str, *, most: int | None = None, max_tokens: int = 1_500) -> str:
    """Returns the roster lines of the agents that fit some words best, so that a model can name what it needs.

    A ranking of tools by a few words is often wrong, and names are cheap. So further agents follow in the order of
    their scores, up to ``max_tokens``, or up to ``most`` agents for a model that sees all names anyway.
    """
    agents, tools = agents_found(retriever, words)
    text = words[: retriever.selector.settings.max_query]
    everyone = max(1, len(retriever.catalog.agents))
    ranked = retriever.select(text, agents=everyone, tools=_RANKED, skills=0, judged=0).agents
    ids = list(dict.fromkeys([*agents, *(agent.id for agent in ranked)]))[:most]
    lines = found_lines(retriever.catalog, ids, max_tokens=max_tokens, first=tools[:_PER_CLAUSE])
    if not lines:
        return "There is no agent with tools."
    return f"Agents that fit best, with the names of their tools; name what you need. {LEGEND}\n{lines}"


def _tools_for(retriever: AgentGraphRetriever, text: str) -> list[str]:
    most = retriever.selector.settings.max_query
    selection = retriever.select(text[:most], agents=_PER_CLAUSE, tools=_PER_CLAUSE, skills=0, judged=0)
    return [tool.id for tool in selection.tools]


def _named_agents(catalog: Catalog, request: str) -> Iterator[str]:
    """Yields the agents whose id or name stands in a request, or the name of one of whose tools.

    The name of a tool counts only if it cannot be an ordinary word: it is composed, as ``create_chart`` or ``getUser``.
    """
    text = _as_words(request)
    for agent in catalog.agents:
        composed = (tool.name for tool in agent.tools if COMPOSED.search(tool.name))
        if any(_stands_in(_as_words(name), text) for name in (agent.id, agent.name, *composed)):
            yield agent.id


def _as_words(text: str) -> str:
    return f" {_NOT_WORDS.sub(' ', text.casefold()).strip()} "


def _stands_in(name: str, text: str) -> bool:
    """Returns whether a name stands in a text as words; scripts such as Chinese put no blanks between words."""
    return bool(name.strip()) and (name if name.isascii() else name.strip()) in text


def list_tools(catalog: Catalog, agent_id: str, *, start: int = 0, max_tokens: int = 4_000) -> str:
    """Returns the names of an agent's tools, each with a line that describes it.

    If that is too long, only the names are returned. If the names are too long too, those from ``start`` on that fit
    are returned, with the number of further ones.

    Raises:
        UnknownNameError: There is no such agent; the message names similar ones.
    """
    agent = _agent_of(catalog, agent_id)
    tools = sorted(agent.tools, key=lambda tool: tool.name)
    if not tools:
        return f"{_one_line(agent.id)} has no tools"
    if not 0 <= start < len(tools):
        raise UnknownNameError(f"start must be 0 to {len(tools) - 1}: agent {agent.id!r} has {len(tools):,} tools")
    lines = [_tool_line(tool) for tool in tools[start:]]
    if _cost(lines) <= max_tokens:
        return "\n".join([f"{_head(agent)}:", *lines])
    part = tools[start:]
    while len(part) > 1 and count_tokens(_names(part)) > max_tokens:
        part = part[: len(part) * 3 // 4]
    following = len(tools) - start - len(part)
    more = f"\nand {following:,} more: start={start + len(part)}" if following else ""
    return f"{_head(agent)}: {_names(part)}{more}"


def _tool_line(tool: Tool) -> str:
    about = _cut(first_sentence(tool.description or tool.title), _TOOL_ABOUT)
    mark = " (deprecated)" if is_deprecated(tool) else ""
    return f"- {tool_name(tool.name)}{mark}" + (f": {about}" if about else "")


def _agent_of(catalog: Catalog, name: str) -> Agent:
    """Returns the agent of this id; upper and lower case do not count if only one is meant."""
    if name in catalog.by_id:
        return catalog.by_id[name]
    alike = [agent for agent in catalog.agents if agent.id.casefold() == name.strip().casefold()]
    if len(alike) == 1:
        return alike[0]
    raise UnknownNameError(f"there is no agent {name!r}{near_names(name, catalog.by_id)}")
