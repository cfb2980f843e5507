"""Rules on texts that a model reads: hidden characters, length, injected orders, names of other agents' tools."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from callsheet.graphs.catalog.finding import Severity
from callsheet.graphs.catalog.model import SKILLS, Agent, Tool
from callsheet.graphs.lint.injection_phrases import orders_in
from callsheet.graphs.lint.lint_rule import Remark, Subject, quoted, rule
from callsheet.graphs.text.sanitizing import LONGEST_TEXT, Hidden, hidden_in, shown, strings_in

_NAME = re.compile(r"([`'\"]?)([^\W_][\w.-]*(?:/[\w.-]+)?)([`'\"]?)")
_TELLING = re.compile(r"[_/.-]|[a-z][A-Z]|\d")
_ORDERING = re.compile(
    r"\b(?:instead|before|after|prior|whenever|when|always|must|never|should|don'?t|do not|rather|first|only|"
    r"replaces?|supersedes?|overrides?|deprecated|every|any|all)\b"
)
_NEAR = 80


@dataclass(frozen=True, slots=True)
class _Text:
    """A text from outside, and its place."""

    where: str
    text: str
    agent: str
    tool: str = ""

    def remark(self, message: str) -> Remark:
        return Remark(f"{self.where} {message}", self.agent, self.tool)


@rule(
    "hidden-text",
    Severity.ERROR,
    "A name, a text or a value holds Unicode tags, bidirectional overrides, control characters or ANSI sequences.",
)
def hidden_text(subject: Subject) -> Iterator[Remark]:
    """People do not see them; they are removed from what a model is shown."""
    return _hidden(subject, (Hidden.TAG, Hidden.BIDI, Hidden.CONTROL))


@rule(
    "invisible-characters",
    Severity.WARNING,
    "A name, a text or a value holds zero-width or other invisible characters that do not belong to its writing.",
)
def invisible_characters(subject: Subject) -> Iterator[Remark]:
    """Often pasted by accident; legitimate joiners of Persian, Indic scripts and emoji do not count."""
    return _hidden(subject, (Hidden.INVISIBLE,))


@rule(
    "long-text",
    Severity.WARNING,
    f"A text has more than {LONGEST_TEXT:,} characters; a model is shown no more than that.",
)
def long_text(subject: Subject) -> Iterator[Remark]:
    """The rest is neither shown nor embedded."""
    for text in _texts(subject):
        if len(text.text) > LONGEST_TEXT:
            yield text.remark(f"has {len(text.text):,} characters; only the first {LONGEST_TEXT:,} are shown")


@rule(
    "poisoned-text",
    Severity.ERROR,
    "A text gives a model orders: it poses as the system, hides something from the user, overrides instructions, asks "
    "for secrets or the whole conversation, or sends data to an address of its own.",
)
def poisoned_text(subject: Subject) -> Iterator[Remark]:
    """Detects tool poisoning by phrases; an attacker can avoid these phrases."""
    for text in (*_texts(subject), *_texts_of_skills(subject, "name", "description")):
        for says, words in orders_in(text.text):
            yield text.remark(f"{says}: {quoted(words)}")


@rule("suspicious-skill", Severity.WARNING, "The instructions of a skill hold phrases of a poisoned text.")
def suspicious_skill(subject: Subject) -> Iterator[Remark]:
    """Instructions give orders by nature, so this is a reason to read them, not an error."""
    for text in _texts_of_skills(subject, "text"):
        for says, words in orders_in(text.text.replace("<!--", "")):  # a comment of Markdown
            yield text.remark(f"{says}: {quoted(words)}")


@rule(
    "shadowing",
    Severity.WARNING,
    "A text of one agent names another agent's tool and says when or whether to use it.",
)
def shadowing(subject: Subject) -> Iterator[Remark]:
    """A server could turn a model against another server's tools. Ordinary words count as names only in quotes."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for tool in subject.catalog.tools.values():
        owners[tool.name].add(tool.agent)
        owners[tool.id].add(tool.agent)
    own = {agent.id: _own_names(agent) for agent in subject.catalog.agents}
    for text in _texts(subject):
        for name, context in _names_in(shown(text.text), owners):
            if text.agent not in owners[name] and name not in own[text.agent] and _ORDERING.search(context.casefold()):
                owner = min(owners[name])
                yield text.remark(f"says when to use {quoted(name)}, a tool of agent {owner!r}: {quoted(context)}")
                break


def _names_in(text: str, known: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The known names in a text, each with its context."""
    for match in _NAME.finditer(text):
        before, name, after = match.groups()
        name = name.rstrip(".-")
        in_quotes = bool(before and (after or match.group().endswith(before)))
        if name in known and (in_quotes or _TELLING.search(name)):
            yield name, text[max(0, match.start() - _NEAR) : match.end() + _NEAR]


def _own_names(agent: Agent) -> set[str]:
    parameters = {parameter.name for tool in agent.tools for parameter in (*tool.parameters, *tool.outputs)}
    return {agent.id, agent.name, *parameters}


def _hidden(subject: Subject, sorts: tuple[Hidden, ...]) -> Iterator[Remark]:
    for agent in subject.catalog.agents:
        yield from _hidden_at(list(_texts_of_agent(agent)), sorts)
        for tool in agent.tools:
            yield from _hidden_at(list(_texts_of_tool(tool)), sorts)
    yield from _hidden_at(list(_texts_of_skills(subject, "name", "description", "text")), sorts)


def _hidden_at(texts: list[_Text], sorts: tuple[Hidden, ...]) -> Iterator[Remark]:
    """One remark for each place of an agent or a tool that has hidden characters."""
    places: defaultdict[str, Counter[Hidden]] = defaultdict(Counter)
    for text in texts:
        places[text.where].update({sort: n for sort, n in hidden_in(text.text).items() if sort in sorts})
    for where, counts in places.items():
        if counts:
            kinds = " and ".join(f"{n} {sort}" for sort, n in counts.items())
            first = next(text for text in texts if text.where == where)
            yield first.remark(f"has {kinds} characters that are invisible: remove them at the source")


def _texts_of_skills(subject: Subject, *fields: str) -> Iterator[_Text]:
    for skill in subject.catalog.skills:
        for name in fields:
            yield _Text(f"its {name}", getattr(skill, name), SKILLS, skill.id)


def _texts(subject: Subject) -> Iterator[_Text]:
    for agent in subject.catalog.agents:
        yield from _texts_of_agent(agent)
        for tool in agent.tools:
            yield from _texts_of_tool(tool)


def _texts_of_agent(agent: Agent) -> Iterator[_Text]:
    fields = {
        "its id": agent.id,
        "its name": agent.name,
        "its description": agent.description,
        "its instructions": agent.instructions,
        "its category": agent.category,
    }
    return (_Text(where, text, agent.id) for where, text in fields.items() if text)


def _texts_of_tool(tool: Tool) -> Iterator[_Text]:
    fields = {"its name": tool.name, "its title": tool.title, "its description": tool.description}
    values = {
        "its input schema": tool.input_schema,
        "its output schema": tool.output_schema,
        "its annotations": tool.annotations,
        "its dependencies": [[edge.parameter, edge.reason] for edge in tool.depends_on],
    }
    for where, text in fields.items():
        yield _Text(where, text, tool.agent, tool.id)
    for where, value in values.items():
        for text in strings_in(value):
            yield _Text(where, text, tool.agent, tool.id)
