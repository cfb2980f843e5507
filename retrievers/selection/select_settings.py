"""The units into which a query is divided, and the settings of a selection."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from callsheet.graphs import SettingsError
from callsheet.graphs.text.words import clause_spans
from callsheet.retrievers.index.node_texts import Span, Texts
from callsheet.retrievers.papers.agent_graph import PUBLISHED_WEIGHTS, AgentRanking
from callsheet.retrievers.papers.first_search import Search
from callsheet.retrievers.papers.rank_fusion import RRF_K

UnitKind = Literal["query", "clause", "implied"]
_BEFORE = 400  # characters before a path that are searched for the beginning of its sentence
_WEIGHT = 0.9
_IMPLIED_WEIGHT = 0.45  # how likely a unit is a step

_URL = re.compile(r"https?://\S+|\bwww\.\S+")
_EXTENSION = "md|txt|csv|tsv|json|pdf|xlsx?|docx?|pptx?|html?|png|jpe?g|gif|svg|xml|ya?ml|zip|wav|mp3|mp4|py|ts|js"
_PATH = re.compile(
    rf"(?<![\w:/.])(?:~|\.{{1,2}})?/[\w.~-]+(?:/[\w.~-]+)*|\b[\w-]{{1,100}}\.(?:{_EXTENSION})\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?]\s")
_MAKING = re.compile(
    r"\b(?:sav(?:e|ed|ing)|writ(?:e|ing|ten)|stor(?:e|ed|ing)|export(?:ed|ing)?|output|put|generat(?:e|ed|ing)"
    r"|creat(?:e|ed|ing)|make|draft|record|download(?:ed)?|produc(?:e|ed|ing)|compile)\b",
    re.IGNORECASE,
)
_COPYING = re.compile(r"\b(?:cop(?:y|ied|ying)|mov(?:e|ed|ing)|append(?:ed|ing)?|add(?:ed|ing)?)\b", re.IGNORECASE)
_RELATIVE_DATE = re.compile(
    r"\b(?:today|tomorrow|tonight|yesterday|now|(?:next|this|last|past|coming)\s+(?:week|month|year|weekend"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d+\s*\w+))\b",
    re.IGNORECASE,
)
IMPLIED: Mapping[str, str] = {
    "write": "write a file: save text content to a file at a path",
    "read": "read the content of a file at a path",
    "fetch": "fetch a web page from a url",
    "time": "get the current date and time",
}
"""The steps that a query can imply, by name, with the texts by which tools for them are searched."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a query, with the probability that it is a step (0 to 1), and its span; an implied step has no span."""

    text: str
    kind: UnitKind
    weight: float = _WEIGHT
    span: Span | None = None


def units_of(query: str, *, clauses: bool = True, implied: bool = True) -> tuple[Unit, ...]:
    """Returns the whole query, then its clauses if there are several, then the implied steps."""
    units = [Unit(query, "query", span=(0, len(query)))]
    if clauses:
        units += [Unit(query[a:b].strip(), "clause", span=(a, b)) for a, b in clause_spans(query)]
    if implied:
        units += [Unit(IMPLIED[name], "implied", _IMPLIED_WEIGHT) for name in implied_steps(query)]
    return tuple(units)


def implied_steps(query: str) -> list[str]:
    """Returns the steps that the query implies, as keys of ``IMPLIED``.

    A file path implies that a file is written if the words before the path say so ("save", "copy ... to"); otherwise,
    that it is read. A URL implies that a page is fetched; a relative date implies that the current date is needed.
    """
    steps: dict[str, None] = {}
    addresses = [match.span() for match in _URL.finditer(query)]
    for path in _PATH.finditer(query):
        if not any(start <= path.start() < end for start, end in addresses):
            sentence = _SENTENCE_END.split(query[max(0, path.start() - _BEFORE) : path.start()])[-1]
            steps["write" if _makes(sentence) else "read"] = None
    if addresses:
        steps["fetch"] = None
    if _RELATIVE_DATE.search(query):
        steps["time"] = None
    return list(steps)


def _makes(before: str) -> bool:
    """Returns whether the words before a path say that it is written."""
    into = before.casefold().rstrip(" \"'“`").endswith((" to", " into"))
    return bool(_MAKING.search(before) or (into and _COPYING.search(before)))


def spans_of(units: Sequence[Unit]) -> list[Span]:
    """Returns the spans of the clauses among the units."""
    return [unit.span for unit in units if unit.kind == "clause" and unit.span]


PublishedSearch = Literal["mcp_zero", Search]
Scoring = Literal["scores", PublishedSearch]
"""The ways of scoring nodes: our own, MCP-Zero, or one of the searches of the literature."""
Ranking = Literal["scores", AgentRanking]
Expansion = Literal["expected_use", "graph_rag_tool_fusion", "none"]


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """Settings of a selection; the defaults are the same for every catalog.

    Attributes:
        agents, tools, schema_tokens, skills: Maximum number of each; None: no maximum. ``agents`` is K: without it, the
            agents are those of the selected tools and those that the query names.
        without: Ids of agents to leave out.
        max_query: Maximum number of characters of a query.
        lexical_weight: Value of a perfect match by words, in cosine; 0 ignores words.
        context: Weight of an agent's score for its tools.
        temperature: T of the softmax over scores: the lower it is, the more the best candidate of each unit counts.
        candidates: Maximum number of candidates per unit.
        clauses: Whether each clause of the query counts beside the whole.
        implied: Whether paths, URLs and relative dates count as implied steps.
        tool_dependency: Share of its expected use that a tool passes on to a tool on which it depends.
        parameter_dependency: Share that it passes on to a tool that returns the value of one of its parameters.
        listing: Factor for each dependency that the tool lists before this one.
        proposed: Factor for dependencies that are only inferred or observed, 0 to 1, times how likely they are used
            (``graphs.strongest``). They never make a tool required, and those that are only inferred come behind all
            tools that the search finds (``scoring.found_first``).
        learned: Whether a tool whose calls failed more often is ranked behind others that fit about equally.
        capability_weight: Value of a sure match of capabilities, in cosine; 0 ignores capabilities.
        capability_sure: Minimum confidence that a request asks for a capability, 0 to 1.
        general: Score of the best tool at which it fits a unit of the query with probability .5. If the best tool
            scores less, general tools, such as a search of the web, get a share. 0 gives them none.
        cut: A tool is left out if its expected use, times its link to the likely capabilities if these are used, is
            below ``cut / tools ** 2``: the smaller the budget, the higher the minimum. 0 fills the budget.
        floor: A tool is left out if its expected use is below this share of the best tool's; 0 fills the budget.
        shortlist: Whether the tools are for one model, which reads every schema. Then tools of the best tool's agent
            come before others of about equal expected use (``scoring.siblings_raised``), and agents without a taken
            tool are left out.
        equip: Whether each agent (without a maximum, each agent that the query names) gets at least its best tool, in
            place of the weakest tool of another agent. It has no effect if there are fewer than two places per agent.
        fits: Minimum probability that a selected item does what the request asks; below it, the verdict is that nothing
            fits, unless a general tool is selected and no decision model was asked.
        threshold: Minimum score of a skill that fits, and of an agent in an outline of the catalog.
        judged, decision_seconds: Maximum number of tools that a decision model judges (0: it is not asked), and its
            timeout.
        texts: The texts of agents and tools in the index: ``full``; ``plain``, name and description, as in the papers;
            or ``concatenated``, as in ScaleMCP.
        search: How nodes are scored: ``scores`` is ours; the others are searches of the literature by the query alone
            (``papers.first_search`` and ``papers.mcp_zero`` describe them).
        ranking: How agents are ranked: ``scores``; by Agent-as-a-Graph over the first N nodes (``agent_as_a_graph``),
            or over N agents and N tools (``agents_and_tools``); by Eq. 2 of its paper over two lists of N
            (``weighted_rrf``); or by their own nodes alone (``agents``). With another ``search`` or ``expansion`` than
            ours, ``scores`` puts agents in the order of their best tools.
        agent_weight, tool_weight, rrf_k: alpha of agents and of tools, and k, of Eq. 2 and 3.
        pool: N, number of nodes of these rankings; also the maximum length of the list of tools.
        expansion: ``expected_use``, ``graph_rag_tool_fusion`` (Algorithm 1 exactly: the first tools, after
            a decision model if there is one, each followed by its walk, cut to ``tools``), or ``none``.
        expand, d_limit: Number of tools where that walk starts, and maximum number of dependencies per tool.
        direct_first: Whether that walk follows direct dependencies first; in the paper, it follows them as listed.
    """

    agents: int | None = None
    tools: int = 10
    schema_tokens: int | None = None
    skills: int = 2
    without: tuple[str, ...] = ()
    max_query: int = 100_000
    lexical_weight: float = 0.3
    context: float = 0.2
    temperature: float = 0.04
    candidates: int = 30
    clauses: bool = True
    implied: bool = True
    tool_dependency: float = 0.8
    parameter_dependency: float = 0.95
    listing: float = 0.97
    proposed: float = 0.75
    learned: bool = True
    capability_weight: float = 0.0
    capability_sure: float = 0.9
    general: float = 0.45
    cut: float = 0.0
    floor: float = 0.0
    shortlist: bool = False
    equip: bool = False
    fits: float = 0.25
    threshold: float = 0.3
    judged: int = 20
    decision_seconds: float = 60.0
    texts: Texts = "full"
    search: Scoring = "scores"
    ranking: Ranking = "scores"
    agent_weight: float = PUBLISHED_WEIGHTS["agent"]
    tool_weight: float = PUBLISHED_WEIGHTS["tool"]
    rrf_k: int = RRF_K
    pool: int = 200
    expansion: Expansion = "expected_use"
    expand: int = 3
    d_limit: int | None = None
    direct_first: bool = False

    def __post_init__(self) -> None:
        for what, names, holds in _CHECKS:
            for name in names:
                if not holds(value := getattr(self, name)):
                    raise SettingsError(f"{name} must be {what}, not {value!r}")

    @property
    def in_order(self) -> bool:
        """Returns whether tools keep the order of a published method, instead of that of their expected use."""
        return self.search != "scores" or self.expansion != "expected_use"

    def changed(self, changes: Mapping[str, object]) -> SelectSettings:
        """Returns the settings with these changes.

        Raises:
            SettingsError: A field is unknown or has an invalid value.
        """
        unknown = sorted(set(changes) - set(_NAMES))
        if unknown:
            raise SettingsError(f"unknown setting {', '.join(unknown)}: there are {', '.join(_NAMES)}")
        return replace(self, **changes) if changes else self  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """Returns all settings by name."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(field.name for field in fields(SelectSettings))
_COUNTS = ("tools", "max_query", "candidates", "pool", "rrf_k", "expand")
_SHARES = "tool_dependency parameter_dependency listing proposed capability_weight capability_sure floor fits".split()
_WORDS = {"texts": get_args(Texts), "search": get_args(Scoring)}
_WORDS |= {"ranking": get_args(Ranking), "expansion": get_args(Expansion)}


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and value >= least


_CHECKS: Sequence[tuple[str, Sequence[str], Callable[[Any], bool]]] = (
    ("a whole number of at least 1", _COUNTS, lambda value: _whole(value, 1)),
    ("a whole number of at least 0", ["skills", "judged"], lambda value: _whole(value, 0)),
    ("a whole number of at least 1", ["agents", "schema_tokens"], lambda value: value is None or _whole(value, 1)),
    ("a whole number of at least 0", ["d_limit"], lambda value: value is None or _whole(value, 0)),
    ("between 0 and 1", _SHARES, lambda value: 0 <= value <= 1),
    ("0 or more", ["cut", "general"], lambda value: value >= 0),
    ("above 0", ["temperature", "decision_seconds"], lambda value: value > 0),
    ("a sequence of ids", ["without"], lambda value: not isinstance(value, str)),
    *((" or ".join(map(repr, words)), [name], words.__contains__) for name, words in _WORDS.items()),
)

_PLAIN: Mapping[str, Any] = {"texts": "plain", "proposed": 0.0, "learned": False, "skills": 0}
OURS = "callsheet"
_DENSE = {**_PLAIN, "search": "dense"}
_AGENTS: Mapping[str, Any] = {**_DENSE, "pool": 50, "expansion": "none"}
METHODS: Mapping[str, SelectSettings] = {
    OURS: SelectSettings(),
    "agent-as-a-graph": SelectSettings(**_AGENTS, ranking="agent_as_a_graph"),
    "agents-and-tools": SelectSettings(**_AGENTS, ranking="agents_and_tools"),
    "weighted-rrf": SelectSettings(**_AGENTS, ranking="weighted_rrf"),
    "agent-only": SelectSettings(**_AGENTS, ranking="agents"),
    "mcp-zero": SelectSettings(**{**_PLAIN, "search": "mcp_zero"}, expansion="none"),
    "scalemcp": SelectSettings(**{**_AGENTS, "texts": "concatenated"}, ranking="agents"),
    "graph-rag-tool-fusion": SelectSettings(**_DENSE, expansion="graph_rag_tool_fusion"),
    **{name.replace("_", "-"): SelectSettings(**_PLAIN, search=name, expansion="none") for name in get_args(Search)},
}
"""Our method and those of the literature by name; each method is a set of settings."""
