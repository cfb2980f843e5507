"""Which of the offered tools a step wants, by name, score and the arguments that can be filled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callsheet.agents.brief import Brief, Offer
from callsheet.agents.keyless.arguments import Filled, fill
from callsheet.agents.keyless.evidence import Kind, Pool
from callsheet.agents.keyless.lexicon import FUNCTION_WORDS
from callsheet.agents.keyless.slots import stem, words_of

MOST = 12
"""How many offers are weighed: more only cost time, the retriever has put them in order."""

_SYNONYMS = (
    "write save store put create record dump export append note insert update",
    "read show get open display view fetch retrieve load",
    "list show enumerate",
    "search find look query lookup seek",
    "convert turn change transform translate express",
    "calculate compute evaluate work solve calculator sum",
    "statistics average mean median variance deviation",
    "send email mail message notify text forward",
    "delete remove erase drop discard destroy",
    "create make add new open insert generate build",
    "add stage",
    "switch checkout",
    "move rename",
    "add append note record insert",
    "book reserve schedule create arrange add",
    "update edit modify change set alter make adjust",
    "describe explain schema columns structure",
    "status state stands",
    "length miles mile kilometers kilometres km meters metres feet foot inches inch yards cm mm",
    "mass weight kg kilograms kilogram pounds lb grams ounces",
    "temperature celsius fahrenheit kelvin degrees",
    "volume liters litres gallons liter litre cups pints",
    "time clock timezone hour",
    "file document text txt",
    "directory folder dir",
)
_DESTRUCTIVE = frozenset(
    {
        "delete",
        "remove",
        "drop",
        "clear",
        "reset",
        "kill",
        "overwrite",
        "erase",
        "destroy",
        "purge",
        "wipe",
        "truncate",
        "terminate",
        "clean",
    }
)
_SAYS_DESTRUCTIVE = frozenset(
    stem(w) for w in (*_DESTRUCTIVE, "discard", "cancel", "uninstall", "unstage", "empty", "undo", "forget", "stop")
)
_TYPED = (
    Kind.NUMBER,
    Kind.PATH,
    Kind.URL,
    Kind.EMAIL,
    Kind.CLOCK,
    Kind.DATE,
    Kind.DATETIME,
    Kind.IDENTIFIER,
    Kind.SQL,
    Kind.QUOTED,
)
_CLASSES = {
    "read": "read show get list search find look fetch describe query check display view open load retrieve lookup see"
    " report count",
    "write": "write save store put create add insert append update edit set modify rename move copy commit push stage"
    " record replace book reserve schedule upload execute import install",
    "convert": "convert turn transform translate calculate compute evaluate solve factor simplify summarise summarize",
    "send": "send email mail notify forward post message",
    "delete": "delete remove drop clear erase destroy purge",
}
_CLASS_OF = {word: name for name, said in _CLASSES.items() for word in said.split()}
"""Verb -> what sort of act it is."""
_GROUPS: dict[str, frozenset[str]] = {}
for _group in _SYNONYMS:
    _stems = frozenset(map(stem, _group.split()))
    for _stem in _stems:
        _GROUPS[_stem] = _GROUPS.get(_stem, frozenset()) | _stems


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offered tool with what could be filled of it.

    Attributes:
        offer: The offer.
        schema: JSON Schema of its arguments, with the tool's title and description.
        filled: Its arguments.
        score: How well it fits the step; higher is better.
        fits: Whether anything but its place in the list speaks for it.
    """

    offer: Offer
    schema: Mapping[str, Any]
    filled: Filled
    score: float
    fits: bool

    @property
    def open(self) -> tuple[str, ...]:
        """Missing parameters that no offered source can give."""
        return tuple(name for name in self.filled.missing if not self.offer.sources.get(name))


def candidates(brief: Brief, tools: Mapping[str, Mapping[str, Any]]) -> list[Candidate]:
    """The offered tools that may be called, best first; destructive ones only if the step says so.

    Args:
        brief: The step.
        tools: Model-facing name -> the tool's function in OpenAI's format.
    """
    offers = [offer for offer in brief.offers if offer.name in tools][:MOST]
    allowed = [offer for offer in offers if not _forbidden(offer, brief.text)]
    best = max((offer.score for offer in allowed), default=0.0)
    found = [
        _weigh(brief, offer, tools, offer.score / best if best > 0 else 1.0 - rank / MOST)
        for rank, offer in enumerate(allowed)
    ]
    return sorted(found, key=lambda candidate: -candidate.score)


def schema_of(function: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's parameters with its name and description beside them."""
    parameters = function.get("parameters")
    return {
        **(parameters if isinstance(parameters, Mapping) else {}),
        "title": str(function.get("name") or ""),
        "description": str(function.get("description") or ""),
    }


def _weigh(brief: Brief, offer: Offer, tools: Mapping[str, Mapping[str, Any]], retrieved: float) -> Candidate:
    schema = schema_of(tools[offer.name])
    filled = fill(schema, brief.text, brief.inputs)
    required = schema.get("required")
    needed = len(required) if isinstance(required, list) else 0
    open_ = [name for name in filled.missing if not offer.sources.get(name)]
    complete = 0.5 if not needed else 1 - len(open_) / needed
    named = _named(brief.text, offer.tool)
    described = _agreement(str(schema.get("description") or "")[:300], brief.text)
    taken = {name: value for name, value in filled.args.items() if value != brief.text.strip()}
    used = _used(brief.text, [taken, *_source_args(brief, offer, filled, tools)])
    score = retrieved + 1.6 * named + 0.5 * described + 0.6 * complete + 0.8 * used
    score += 0.15 * min(len(filled.args), 3)
    score -= 0.4 * bool(open_) + _discord(brief.text, offer.tool)
    speaks = named > 0 or described > 0.2 or (used > 0 and not open_)
    speaks |= len(taken) < len(filled.args) and retrieved >= 1  # takes the whole step, and nothing was found before it
    return Candidate(offer, schema, filled, score, speaks and not _unasked(brief.text, offer.tool))


def _named(text: str, tool: str) -> float:
    """How far a text says a tool's name: its verb counts as much as all its other words."""
    owner, _, name = tool.rpartition("/")
    names = list(words_of(name))
    if len(names) > 1 and names[0] in words_of(owner):
        names = names[1:]
    verbs = [w for w in names if w in _CLASS_OF][:1]
    others = [w for w in names if w not in verbs]
    if not verbs or not others:
        return _agreement(text, " ".join(names))
    return 0.5 * _agreement(text, verbs[0]) + 0.5 * _agreement(text, " ".join(others))


def _discord(text: str, tool: str) -> float:
    """How far what a tool does goes against what the step orders; acting unasked counts most."""
    does = next((w for w in words_of(tool.rsplit("/", 1)[-1]) if w in _CLASS_OF), "")
    ordered = {_CLASS_OF[word] for word in map(str.lower, re.findall(r"[A-Za-z]+", text)[:2]) if word in _CLASS_OF}
    answers = {"read", "convert"} if "read" in ordered else ordered
    clash = 1.0 if does and ordered and _CLASS_OF[does] not in answers else 0.0
    return clash + 0.8 * _unasked(text, tool)


def _unasked(text: str, tool: str) -> bool:
    """Whether a tool changes something in a way that the step does not order."""
    does = next((w for w in words_of(tool.rsplit("/", 1)[-1]) if w in _CLASS_OF), "")
    return bool(does) and _CLASS_OF[does] == "write" and not _agreement(text, does)


def _agreement(text: str, name: str) -> float:
    """The share of a name's words that a text says, the verb first of all."""
    said = {stem(word) for word in re.findall(r"[A-Za-z]+", text)}
    said |= {other for word in said for other in _GROUPS.get(word, ())}
    wanted = [stem(w) for w in words_of(name) if w not in FUNCTION_WORDS and not w.isdigit()]
    return sum(word in said for word in wanted) / len(wanted) if wanted else 0.0


def _source_args(
    brief: Brief, offer: Offer, filled: Filled, tools: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What the sources of a tool's missing parameters would take of the text."""
    named = {source for name in filled.missing for source in offer.sources.get(name, ())}
    return [fill(schema_of(tools[name]), brief.text, brief.inputs).args for name in sorted(named & set(tools))]


def _used(text: str, args: Any) -> float:
    """The share of the text's typed evidence that the arguments hold."""
    found = Pool.of(text).free(*_TYPED)
    held = " ".join(_flat(args))
    return sum(str(item.value) in held for item in found) / len(found) if found else 0.0


def _flat(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [said for inner in value.values() for said in _flat(inner)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [said for inner in value for said in _flat(inner)]
    return [str(value)]


def _forbidden(offer: Offer, text: str) -> bool:
    destructive = set(words_of(offer.tool.rsplit("/", 1)[-1])) & _DESTRUCTIVE
    return bool(destructive) and not {stem(w) for w in re.findall(r"[A-Za-z]+", text)} & _SAYS_DESTRUCTIVE
