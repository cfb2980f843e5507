"""Rules on names and texts: what helps retrieval, and what must not reach a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import networkx as nx

from callsheet.graphs.catalog.errors import Severity
from callsheet.graphs.catalog.model import SKILLS, Tool
from callsheet.graphs.lint.lint_rule import Remark, Subject, listed, on, quoted, rule
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.sanitizing import LONGEST_TEXT, Hidden, hidden_in, normalized, shown, split_name, strings_in

ALIKE, _COMPARED = 0.75, 300


@rule("empty-description", Severity.WARNING, "A tool has neither a description nor a title.")
def empty_description(subject: Subject) -> Iterator[Remark]:
    """Only names can match a query: its own, and those of its parameters and results."""
    for tool in subject.catalog.tools.values():
        if not shown(tool.description).strip() and not shown(tool.title).strip():
            fields = {"its parameters": tool.parameters, "its results": tool.outputs}
            names = " and ".join(["its name", *(what for what, found in fields.items() if found)])
            yield on(tool, f"has no description, so only {names} can match: describe it in one sentence")


@rule("undescribed-agent", Severity.INFO, "An agent has neither a description nor instructions.")
def undescribed_agent(subject: Subject) -> Iterator[Remark]:
    """The description is part of the ranking of agents."""
    for agent in subject.catalog.agents:
        if not (agent.description.strip() or agent.instructions.strip()):
            yield Remark('has no description: add a "description" to its entry or manifest', agent.id)


@rule("duplicate-description", Severity.WARNING, "Several tools of one agent have the same description, word for word.")
def duplicate_description(subject: Subject) -> Iterator[Remark]:
    """Copied descriptions do not distinguish tools."""
    for agent in subject.catalog.agents:
        same: defaultdict[str, list[Tool]] = defaultdict(list)
        for tool in agent.tools:
            if text := " ".join(shown(tool.description).casefold().split()):
                same[text].append(tool)
        for first, *others in same.values():
            if others:
                names = listed([tool.name for tool in others])
                yield on(first, f"has the same description as {names}: describe the difference")


@rule(
    "near-identical-tools",
    Severity.WARNING,
    f"Tools of different agents share {ALIKE:.0%} of the words in their names and in the first {_COMPARED} characters "
    "of their descriptions. In the name of a tool, the words of its agent's name do not count.",
)
def near_identical_tools(subject: Subject) -> Iterator[Remark]:
    """Their texts do not show which of them a request means."""
    words = {tool.id: _words_of(tool) for tool in subject.catalog.tools.values()}
    owner = {tool.id: tool.agent for tool in subject.catalog.tools.values()}
    pairs: nx.Graph[str] = nx.Graph((a, b) for a, b in similar_pairs(words, ALIKE) if owner[a] != owner[b])
    place = {tool: i for i, tool in enumerate(words)}
    clusters = (sorted(tools, key=place.__getitem__) for tools in nx.connected_components(pairs))
    for first, *others in sorted(clusters, key=lambda cluster: place[cluster[0]]):
        names = listed([tool for tool in others if owner[tool] != owner[first]])
        message = f"is nearly identical to {names}: distinguish them in their descriptions, or leave one out"
        yield on(subject.catalog.tool(first), message)


@rule(
    "undescribed-parameter",
    Severity.INFO,
    "A parameter has no description in the schema, and the tool's description does not mention it.",
)
def undescribed_parameter(subject: Subject) -> Iterator[Remark]:
    """One remark per tool; a list of arguments in the tool's description counts."""
    for tool in subject.catalog.tools.values():
        about = shown(tool.description)
        undescribed = [repr(p.name) for p in tool.parameters if not p.description.strip() and p.name not in about]
        if undescribed:
            yield on(tool, f"does not describe these parameters: {listed(undescribed)}")


def _words_of(tool: Tool) -> frozenset[str]:
    name = set(split_name(tool.name).split()) - set(split_name(tool.agent).split())
    return frozenset(name | set(split_name(shown(tool.description)[:_COMPARED].casefold()).split()))


def similar_pairs(words: Mapping[str, frozenset[str]], least: float) -> Iterator[tuple[str, str]]:
    """All pairs of sets whose Jaccard similarity ``|x & y| / |x | y|`` is at least ``least``, which is above 0."""
    import numpy as np

    keys, sizes = list(words), np.array([len(members) for members in words.values()])
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for i, members in enumerate(words.values()):
        for word in members:
            holders[word].append(i)
    places = {word: np.array(found) for word, found in holders.items()}
    for i, (key, members) in enumerate(words.items()):
        before = [places[word][: places[word].searchsorted(i)] for word in members]
        shared = np.bincount(np.concatenate(before), minlength=i) if before else np.zeros(i, int)
        alike = (shared > 0) & (shared >= least * (sizes[i] + sizes[:i] - shared))
        yield from ((keys[j], key) for j in np.flatnonzero(alike))


_PIECE = 4_096  # characters; the normal form of one character can have eighteen
_TELL = r"(?:tell|inform|mention|reveal|disclos|notify|show|alert|report|explain)\w*"
_USER = r"(?:user|human|customer|person|operator|anyone)"
_GIVE = (
    r"(?:includ(?:e|ing)|send(?:ing)?|pass(?:ing)?|attach(?:ing)?|upload(?:ing)?|append(?:ing)?|forward(?:ing)?|"
    r"transmit|exfiltrate|post|copy|return|add|embed|put|log)"
)
_TAKE = r"(?:read(?:ing)?|open|cat|load|access|get|fetch|retrieve|extract|collect|gather|dump|scan|search|contents? of)"
_VALUABLES = (
    r"(?:(?:^|[^\w.])\.env(?:[^\w.]|$)|environment variables?|mcp\.json|"
    r"(?:user(?:'s)?|your|their|saved|stored|all|any) (?:\w+ ){0,2}(?:credentials|passwords?|api[ _-]keys?|"
    r"access tokens?|private keys?|secrets|cookies))"
)
_WITHIN = r"(?:[^.\n]|\.\S)"  # a character within a sentence
_LINKED = r"\b(?:to|at|via|into) (?:\w+ ){0,3}\[[^\]]{0,60}\]"  # other links lead to documentation
_DIRECTIVE = linear(r"<!-- ?[\w-]{1,40}(?:: ?[\w-]{1,40})? ?-->")
"""A comment for the program that renders Markdown: ``<!-- theme: warning -->``."""
_TALK = r"(?:conversation|chat|messages|prompts?|dialogue)"
_MAIL = r"(?:bcc|forward|redirect|cop(?:y|ied)|sen[dt]|deliver)\w*"
_ADDRESS = r"[\w.+-]+@[\w-]+\.[a-z]{2,}"

ORDERS: Mapping[str, re.Pattern[str]] = {
    says: linear("|".join(patterns))
    for says, patterns in {
        "speaks as if it were the system": (
            r"< ?/? ?(?:important|system|instructions?|admin|critical|assistant|sys)\b[^>]{0,40}>",
            r"< ?/? ?(?:secret|hidden) ?(?: [^>]{0,40}=[^>]{0,40})?>",  # "<secret id>" is a placeholder
            r"\[/?inst\]|<\|(?:im_start|im_end|system|user|assistant)\|>|<< ?sys ?>>|<!--",
            r"\bsystem[ _-](?:instruction|override|notice|directive|command|prompt)s? ?:",
        ),
        "tells a model to hide something from the user": (
            r"\b(?:do not|don'?t|never|must not|should not|without|avoid|no need to) "
            rf"(?:\w+ ){{0,3}}{_TELL}\b{_WITHIN}{{0,60}}\b{_USER}",
            rf"\b(?:hide|conceal|(?:keep|kept|must|should|shall)\b.{{0,40}}\b(?:secret|hidden))\b.{{0,30}}"
            rf"\bfrom (?:the |your |any )?{_USER}",
            rf"\bwithout (?:the |your |asking |any )*{_USER}(?:'s)? "
            r"(?:\w+ )?(?:knowledge|noticing|knowing|awareness|consent)",
            rf"\b{_USER}s? (?:must|should|does|do|need|may|can)(?: not|n'?t| never) "
            r"(?:\w+ )?(?:know|see|notice|be told|learn)",
            r"\b(?:silently|secretly|covertly|stealthily) (?:\w+ ){0,2}"
            r"(?:send|copy|read|call|includ|forward|upload|append|collect|bcc|execut|run)",
            r"(?:不要|别|切勿|请勿|禁止|不得)(?:(?:告诉|告知|通知|提醒|透露给)(?:用户|使用者)|"
            r"[向对](?:用户|使用者)(?:提及|透露|说明|告知))",
        ),
        "tells a model to drop its instructions": (
            r"\b(?:ignore|disregard|forget|override|bypass|supersede) (?:\w+ ){0,4}(?:instructions?|prompts?|"
            r"guidelines|directives|guardrails|safety)\b",
            r"\b(?:ignore|disregard|forget|override|bypass|supersede) (?:all|any|your|these|previous|prior|other|"
            r"existing|system|above) (?:\w+ ){0,2}(?:rules?|restrictions|polic(?:y|ies))\b",
            r"\byou are now (?:in |an? )?(?:\w+ )?(?:developer|debug|admin|root|unrestricted|jailbroken|dan)\b",
            r"(?:忽略|无视|忘记)(?:之前|以前|上面|先前|所有|以上|此前|全部)(?:的)?(?:所有|全部)?(?:的)?"
            r"(?:指令|指示|说明|规则|提示)",
        ),
        "asks for files that hold secrets": (
            r"(?:^|[^a-z0-9])(?:\.ssh(?:[^a-z0-9]|$)|id_(?:rsa|dsa|ecdsa|ed25519)(?:[^a-z0-9]|$)|\.aws/credentials|"
            r"/etc/(?:passwd|shadow)(?:[^a-z]|$)|\.cursor/|claude_desktop_config|\.git-credentials|\.netrc|\.kube/config|"
            r"\.docker/config|authorized_keys|\.gnupg|\.bash_history)",
            rf"\b{_TAKE}\b.{{0,60}}{_VALUABLES}.{{0,100}}\b{_GIVE}\b",
        ),
        "asks for the whole conversation": (
            rf"\b{_GIVE}\b.{{0,60}}\b(?:entire|full|complete|whole|all)(?: of)?(?: the| this| your| our)? "
            rf"(?:\w+ ){{0,2}}{_TALK}",
            rf"\b{_GIVE}\b.{{0,60}}\bsystem prompt",
        ),
        "sends what it handles to an address of its own": (
            rf"\b{_MAIL}\b.{{0,60}}{_ADDRESS}.{{0,40}}\b(?:all|every|any|each|also|instead|always)\b",
            rf"\b(?:all|every|any|each|also|always|must|instead)\b.{{0,60}}\b{_MAIL}\b.{{0,60}}{_ADDRESS}",
            r"\b(?:send|upload|exfiltrate|forward|transmit|post)\w*\b.{0,40}\b(?:contents?|data|results?|output|response|"
            rf"files?|{_TALK}|credentials|keys?)\b.{{0,40}}(?:[^\w(]|[^\]]\(|{_LINKED}\()https?://",
        ),
    }.items()
}
"""Kinds of orders, and their patterns in lower case with single spaces."""


def orders_in(*texts: str) -> Iterator[tuple[str, str]]:
    """The kinds of orders in texts, each with the matching words.

    The search is complete, in linear time. The phrases are English, with some Chinese ones.
    """
    plain = _DIRECTIVE.sub(" ", "\n".join(map(_plain, texts)))
    for says, pattern in ORDERS.items():
        if match := pattern.search(plain):
            yield says, match.group()


def _plain(text: str) -> str:
    """The text in lower case with single spaces, converted in pieces so that other threads can run in between."""
    plain, open_word = list[str](), False
    for start in range(0, len(text), _PIECE):
        piece = normalized("NFKC", shown(text[start : start + _PIECE], most=None)).casefold()
        if words := piece.split():
            plain += [] if open_word and not piece[0].isspace() else [" "]
            plain.append(" ".join(words))
        open_word = bool(words) and not piece[-1].isspace() if piece else open_word
    return "".join(plain).strip()


_NAME = re.compile(r"([`'\"]?)([^\W_][\w.-]*(?:/[\w.-]+)?)([`'\"]?)")
_TELLING = re.compile(r"[_/.-]|[a-z][A-Z]|\d")
_ORDERING = re.compile(
    r"\b(?:instead|before|after|prior|whenever|when|always|must|never|should|don'?t|do not|rather|first|only|"
    r"replaces?|supersedes?|overrides?|deprecated|every|any|all)\b"
)
_NEAR = 80
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


@rule("long-text", Severity.WARNING, f"A text has more than {LONGEST_TEXT:,} characters; a model sees no more.")
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
        if any(orders_in(*{text for place in places for text in place.texts})):  # one search for all of them is quick
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
    "shadowing", Severity.WARNING, "A text of one agent names another agent's tool and says when or whether to use it."
)
def shadowing(subject: Subject) -> Iterator[Remark]:
    """A server could turn a model against another server's tools. Ordinary words count as names only in quotes."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for tool in subject.catalog.tools.values():
        owners[tool.name].add(tool.agent)
        owners[tool.id].add(tool.agent)
    for agent, places in zip(subject.catalog.agents, _places_by_agent(subject), strict=True):
        parameters = {parameter.name for tool in agent.tools for parameter in (*tool.parameters, *tool.outputs)}
        own = {agent.id, agent.name, *parameters}
        for place in places:
            for text in place.texts:
                for name, context in _ordered_names(text, owners):
                    if agent.id not in owners[name] and name not in own:
                        owner = f"a tool of agent {min(owners[name])!r}"
                        yield place.remark(f"says when to use {quoted(name)}, {owner}: {quoted(context)}")
                        break


@rule("source-of-many", Severity.WARNING, f"{MANY} or more other agents depend on an agent's tools, or seem to.")
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
    of_skills = _places_of_skills(subject, "name", "description", "text")
    for place in chain(*_places_by_agent(subject), of_skills):
        found = sum((Counter(hidden_in(text)) for text in place.texts), Counter[Hidden]())
        if kinds := " and ".join(f"{found[sort]} {sort}" for sort in found if sort in sorts):
            yield place.remark(f"has {kinds} characters that are invisible: remove them at the source")


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
