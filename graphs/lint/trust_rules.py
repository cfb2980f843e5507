"""Rules on texts that a model reads: hidden characters, length, injected orders, names of other agents' tools."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice

from callsheet.graphs.catalog.errors import Severity
from callsheet.graphs.catalog.model import SKILLS
from callsheet.graphs.lint.injection_phrases import orders_in
from callsheet.graphs.lint.lint_rule import Remark, Subject, listed, quoted, rule
from callsheet.graphs.text.sanitizing import LONGEST_TEXT, Hidden, hidden_in, shown, strings_in

_NAME = re.compile(r"([`'\"]?)([^\W_][\w.-]*(?:/[\w.-]+)?)([`'\"]?)")
_TELLING = re.compile(r"[_/.-]|[a-z][A-Z]|\d")
_ORDERING = re.compile(
    r"\b(?:instead|before|after|prior|whenever|when|always|must|never|should|don'?t|do not|rather|first|only|"
    r"replaces?|supersedes?|overrides?|deprecated|every|any|all)\b"
)
_NEAR, _REMEMBERED = 80, 10_000
MANY = 10
_OF_AGENT = ("id", "name", "description", "instructions", "category")
_OF_TOOL = ("name", "title", "description", "input_schema", "output_schema", "annotations")


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of an agent or a tool, and its texts from outside."""

    where: str
    texts: tuple[str, ...]
    agent: str
    tool: str = ""

    def remark(self, message: str) -> Remark:
        return Remark(f"{self.where} {message}", self.agent, self.tool)


@rule(
    "hidden-text",
    Severity.ERROR,
    "A name, a text or a value contains Unicode tags, bidirectional overrides, control characters or ANSI sequences.",
)
def hidden_text(subject: Subject) -> Iterator[Remark]:
    """People do not see them; they are removed from what a model is shown."""
    return _hidden(subject, (Hidden.TAG, Hidden.BIDI, Hidden.CONTROL))


@rule(
    "invisible-characters",
    Severity.WARNING,
    "A name, a text or a value contains zero-width or other invisible characters that its script does not need.",
)
def invisible_characters(subject: Subject) -> Iterator[Remark]:
    """Often pasted by accident; legitimate joiners of Persian, Indic scripts and emoji do not count."""
    return _hidden(subject, (Hidden.INVISIBLE,))


@rule(
    "long-text",
    Severity.WARNING,
    f"A text has more than {LONGEST_TEXT:,} characters; a model sees no more than that.",
)
def long_text(subject: Subject) -> Iterator[Remark]:
    """The rest is neither shown nor embedded."""
    for place in chain.from_iterable(_places_by_agent(subject)):
        for text in place.texts:
            if len(text) > LONGEST_TEXT:
                yield place.remark(f"has {len(text):,} characters; only the first {LONGEST_TEXT:,} are shown")


@rule(
    "poisoned-text",
    Severity.ERROR,
    "A text pretends to be the system, or tells a model to hide something from the user, to ignore instructions, to "
    "reveal secrets or the whole conversation, or to send data to an address that it names.",
)
def poisoned_text(subject: Subject) -> Iterator[Remark]:
    """Detects tool poisoning by phrases; an attacker can avoid these phrases."""
    for places in (*_places_by_agent(subject), _places_of_skills(subject, "name", "description")):
        if any(orders_in(*_distinct(places))):  # one search for all of them is quick
            yield from _orders_at(places)


@rule("suspicious-skill", Severity.WARNING, "The instructions of a skill contain phrases of a poisoned text.")
def suspicious_skill(subject: Subject) -> Iterator[Remark]:
    """Instructions give orders by nature, so this is a reason to read them, not an error."""
    places = _places_of_skills(subject, "text")
    comments_apart = [replace(place, texts=tuple(text.replace("<!--", "") for text in place.texts)) for place in places]
    return _orders_at(comments_apart)


def _orders_at(places: Iterable[_Place]) -> Iterator[Remark]:
    for place in places:
        for text in place.texts:
            for says, words in orders_in(text):
                yield place.remark(f"{says}: {quoted(words)}")


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
    ordered = lru_cache(maxsize=_REMEMBERED)(lambda text: tuple(_ordered_names(text, owners)))
    for agent, places in zip(subject.catalog.agents, _places_by_agent(subject), strict=True):
        parameters = {parameter.name for tool in agent.tools for parameter in (*tool.parameters, *tool.outputs)}
        own = {agent.id, agent.name, *parameters}
        for place in places:
            for text in place.texts:
                foreign = (at for at in ordered(text) if agent.id not in owners[at[0]] and at[0] not in own)
                for name, context in islice(foreign, 1):
                    owner = min(owners[name])
                    yield place.remark(f"says when to use {quoted(name)}, a tool of agent {owner!r}: {quoted(context)}")


@rule(
    "source-of-many",
    Severity.WARNING,
    f"Tools of {MANY} other agents or more depend on an agent's tools, or seem to.",
)
def source_of_many(subject: Subject) -> Iterator[Remark]:
    """Its tools would be selected beside theirs; agents of one system do not count."""
    tools = subject.catalog.tools
    system = {agent.id: agent.system_key for agent in subject.catalog.agents}
    edges = {(tool.id, edge.tool) for tool in tools.values() for edge in tool.depends_on}
    edges |= {(edge.source, edge.target) for edge in subject.proposals}
    needing: defaultdict[str, set[str]] = defaultdict(set)
    for source, target in edges:
        if system[tools[source].agent] != system[tools[target].agent]:
            needing[tools[target].agent].add(tools[source].agent)
    for agent, others in sorted(needing.items()):
        if len(others) >= MANY:
            names = listed(sorted(others))
            yield Remark(
                f"its tools seem to return arguments of {len(others)} other agents ({names}): they do not count as "
                "sources unless you trust it, or accept dependencies one by one (callsheet infer)",
                agent,
            )


def _ordered_names(text: str, known: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The known names in a text that says when to use them, each with its context."""
    text = shown(text)
    if not _ORDERING.search(text.casefold()):
        return
    for match in _NAME.finditer(text):
        before, name, after = match.groups()
        name = name.rstrip(".-")
        in_quotes = bool(before and (after or match.group().endswith(before)))
        if name in known and (in_quotes or _TELLING.search(name)):
            context = text[max(0, match.start() - _NEAR) : match.end() + _NEAR]
            if _ORDERING.search(context.casefold()):
                yield name, context


def _hidden(subject: Subject, sorts: tuple[Hidden, ...]) -> Iterator[Remark]:
    """One remark for each place that has hidden characters."""
    for places in (*_places_by_agent(subject), _places_of_skills(subject, "name", "description", "text")):
        if any(map(hidden_in, _distinct(places))):
            for place in places:
                found = sum((Counter(hidden_in(text)) for text in place.texts), Counter[Hidden]())
                if kinds := " and ".join(f"{found[sort]} {sort}" for sort in found if sort in sorts):
                    yield place.remark(f"has {kinds} characters that are invisible: remove them at the source")


def _distinct(places: Iterable[_Place]) -> frozenset[str]:
    return frozenset(chain.from_iterable(place.texts for place in places))


def _places_of_skills(subject: Subject, *fields: str) -> list[_Place]:
    return [place for skill in subject.catalog.skills for place in _places(skill, fields, SKILLS, skill.id)]


def _places_by_agent(subject: Subject) -> Iterator[list[_Place]]:
    for agent in subject.catalog.agents:
        places = [*_places(agent, _OF_AGENT, agent.id)]
        for tool in agent.tools:
            places += _places(tool, _OF_TOOL, agent.id, tool.id)
            if said := tuple(strings_in([[edge.parameter, edge.reason] for edge in tool.depends_on])):
                places.append(_Place("its dependencies", said, agent.id, tool.id))
        yield places


def _places(node: object, fields: Iterable[str], agent: str, tool: str = "") -> Iterator[_Place]:
    for field in fields:
        if value := getattr(node, field):
            yield _Place(f"its {field.replace('_', ' ')}", tuple(strings_in(value)), agent, tool)
