"""What the retriever answers: agents, their tools, and the trace that says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from callsheet.retrievers.selection.query_units import Unit

Verdict = Literal["found", "nothing_fits"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the search knew about one node.

    Attributes:
        id: The agent or tool.
        kind: ``agent`` or ``tool``.
        score: What it was ranked by.
        cosine: Its similarity in meaning; None if that search did not find it.
        cosine_rank: Its rank there, from 1.
        words: Its BM25 score; None if it shares no word with the query.
        words_rank: Its rank there, from 1.
        use: For a tool, how often it is expected to be needed, over all that the query asks for.
    """

    id: str
    kind: str
    score: float
    cosine: float | None = None
    cosine_rank: int | None = None
    words: float | None = None
    words_rank: int | None = None
    use: float = 0.0


@dataclass(frozen=True, slots=True)
class PickedTool:
    """A tool that the selection holds.

    Attributes:
        id: Its id.
        score: How well it fits the whole query: its similarity, its words, its agent.
        via: Tool ids along the dependencies that brought it, from the tool that needs it to itself;
            just itself where the search found it.
        required: Whether the tool that it came for cannot do without it.
        use: How often it is expected to be needed, over all that the query asks for; tools are ordered by it.
    """

    id: str
    score: float
    via: tuple[str, ...]
    required: bool = False
    use: float = 0.0


@dataclass(frozen=True, slots=True)
class PickedAgent:
    """An agent that the selection holds, with the tools that a worker gets for its sake.

    Attributes:
        id: Its id.
        score: What it was ranked by.
        tools: Its own tools, and tools of any agent that those depend on, best first.
    """

    id: str
    score: float
    tools: tuple[PickedTool, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """A tool that was in reach and is not in the selection, and why."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Trace:
    """How a selection came about.

    Attributes:
        settings: Every setting that had a part in it.
        units: What the query was taken to ask for: itself, its clauses, steps that it implies.
        strength: The best score of any agent; below ``threshold`` nothing fits.
        coverage: Share of the query's words that the best match by words holds, 0 to 1.
        nodes: The nodes considered, best first.
        cut: What was left out.
        reranked: By what the tools were reordered, or why they were not; empty where no reranker is set.
        policy: What a policy withheld; empty where it withheld nothing.
        capabilities: How likely each capability is needed, the likeliest first, from .1; empty where they have no part.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    units: tuple[Unit, ...] = ()
    strength: float = 0.0
    coverage: float = 0.0
    nodes: tuple[Evidence, ...] = ()
    cut: tuple[Cut, ...] = ()
    reranked: str = ""
    policy: str = ""
    capabilities: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """What the retriever picked for one query.

    Attributes:
        query: The query.
        agents: The agents, best first, each with its tools.
        verdict: ``nothing_fits`` when even the best is too far from the query to be of use.
        trace: Why.
    """

    query: str
    agents: tuple[PickedAgent, ...] = ()
    verdict: Verdict = "nothing_fits"
    trace: Trace = field(default_factory=Trace)

    @property
    def tools_of(self) -> Mapping[str, tuple[str, ...]]:
        """Agent id -> ids of the tools that it was picked with."""
        return {agent.id: tuple(tool.id for tool in agent.tools) for agent in self.agents}

    @property
    def tools(self) -> tuple[PickedTool, ...]:
        """All tools, each once, those first that are expected to be needed most."""
        unique = {tool.id: tool for agent in reversed(self.agents) for tool in reversed(agent.tools)}
        return tuple(sorted(unique.values(), key=lambda tool: -tool.use))

    def to_dict(self, *, trace: bool = False) -> dict[str, Any]:
        """Plain values only, as ``callsheet retrieve --json`` prints them and a graph's state holds them."""
        plain = asdict(self)
        if not trace:
            del plain["trace"]
        return plain


def explain_tool(tool_id: str, selection: Selection) -> str:
    """One line that says why a tool is in a selection."""
    picked = next(tool for tool in selection.tools if tool.id == tool_id)
    if len(picked.via) > 1:
        word = "required" if picked.required else "used"
        return f"{word} by {' > '.join(picked.via[:-1])}"
    evidence = next(node for node in selection.trace.nodes if node.id == tool_id)
    said = [f"score {evidence.score:.2f}"]
    if evidence.cosine is not None:
        said.append(f"meaning {evidence.cosine:.2f} (#{evidence.cosine_rank})")
    if evidence.words is not None:
        said.append(f"words {evidence.words:.1f} (#{evidence.words_rank})")
    return ", ".join(said)
