"""The layout of a picture: one frame per agent, one line per tool, packed like the columns of a newspaper.

A force-directed layout of 500 tools is illegible or, with space for labels, four screens large. Here the names
themselves are the nodes, and dependencies are drawn behind them.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from callsheet.graphs.catalog.model import Agent, Catalog, Tool
from callsheet.graphs.text.sanitizing import shown, split_name

LINE, CELL = 15.0, 6.62  # pixels: the height of a line, the width of a character of an 11 px monospaced font
HEADER, PAD, GAP, MARK = 24.0, 8.0, 10.0, 14.0
_RATIO, _NARROWEST, _WIDEST, _MOST_READ, _TALLEST, _FEWEST = 1.1, 16, 34, 0.9, 0.6, 8


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a frame: a tool, or a heading.

    Attributes:
        text: The text, cut to the width of the line.
        tool: The tool's id; empty for a heading.
        x: Pixels from the left edge of the picture.
        y: Pixels from its upper edge to the middle of the line.
    """

    text: str
    tool: str = ""
    x: float = 0.0
    y: float = 0.0

    @property
    def end(self) -> float:
        """Pixels from the left edge of the picture to the end of the text."""
        return self.x + MARK + CELL * _width(self.text)


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of one agent with its lines."""

    agent: str
    title: str
    columns: int
    lines: tuple[Line, ...]
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    def at(self, x: float, y: float) -> Frame:
        """The frame at another position."""
        lines = tuple(replace(line, x=line.x + x - self.x, y=line.y + y - self.y) for line in self.lines)
        return replace(self, x=x, y=y, lines=lines)


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole picture: its size and the width of its lines in pixels, and one frame for each agent."""

    width: float
    height: float
    line: float
    frames: tuple[Frame, ...]


def lay_out(catalog: Catalog) -> Layout:
    """Places the agents and tools of a catalog, about as wide as high."""
    room = _room(tool.name for tool in catalog.tools.values())
    line = MARK + room * CELL
    pitch = line + 2 * PAD + GAP
    lines = {agent.id: _lines(agent, room) for agent in catalog.agents}
    height = sum(HEADER + PAD + GAP + len(rows) * LINE for rows in lines.values())
    columns = max(1, math.ceil(math.sqrt(height * _RATIO / pitch)))
    tallest = max(_FEWEST, int(_TALLEST * height / columns / LINE))
    frames = [
        _frame(agent, lines[agent.id], min(columns, math.ceil(len(lines[agent.id]) / tallest)), line, pitch)
        for agent in catalog.agents
    ]
    placed = tuple(_packed(frames, columns, pitch))
    return Layout(
        width=max((frame.x + frame.width for frame in placed), default=0.0) + GAP,
        height=max((frame.y + frame.height for frame in placed), default=0.0) + GAP,
        line=line,
        frames=placed,
    )


def cut(text: str, room: int) -> str:
    """The text on one line, cut to this number of cells; an East Asian wide character has two."""
    line = " ".join(shown(text).split())
    if _width(line) <= room:
        return line
    prefix, used = "", 1
    for char in line:
        used += _cells(char)
        if used > room:
            break
        prefix += char
    return f"{prefix}…"


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Cf", "Me", "Mn"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _room(names: Iterable[str]) -> int:
    """Cells of a line: enough for nine names in ten."""
    lengths = sorted(_width(shown(name)) for name in names)
    usual = lengths[int(_MOST_READ * (len(lengths) - 1))] if lengths else 0
    return min(_WIDEST, max(_NARROWEST, usual))


def _lines(agent: Agent, room: int) -> list[Line]:
    lines: list[Line] = []
    for group in groups_of(agent):
        if group.heading or lines:
            lines.append(Line(cut(group.heading, room)))
        lines.extend(Line(cut(tool.name, room), tool.id) for tool in group.tools)
    return lines


def _frame(agent: Agent, lines: Sequence[Line], columns: int, line: float, pitch: float) -> Frame:
    poured = list(_poured(lines, max(1, columns)))
    placed = tuple(
        replace(one, x=PAD + i * pitch, y=HEADER + (row + 0.5) * LINE)
        for i, column in enumerate(poured)
        for row, one in enumerate(column)
    )
    width = max(1, len(poured)) * pitch - GAP
    height = HEADER + PAD + max(map(len, poured), default=0) * LINE
    title = cut(agent.id, int((width - 2 * PAD) / CELL) - 5)
    return Frame(agent.id, title, max(1, len(poured)), placed, width, height)


def _poured(lines: Sequence[Line], columns: int) -> Iterator[list[Line]]:
    """The lines in columns of about equal height; a heading is never the last line of a column."""
    tallest = math.ceil(len(lines) / columns)
    column: list[Line] = []
    for i, line in enumerate(lines):
        ends = len(column) >= tallest or (len(column) >= tallest - 1 and not line.tool)
        if column and ends and len(lines) - i > 1:
            yield column
            column = []
        column.append(line)
    if column:
        yield column


def _packed(frames: Sequence[Frame], columns: int, pitch: float) -> Iterator[Frame]:
    """Places each frame at the highest free position, largest first; returns them in their original order."""
    filled = [GAP] * columns
    where: dict[str, tuple[float, float]] = {}
    for frame in sorted(frames, key=lambda frame: (-frame.columns, -frame.height)):
        places = range(max(1, columns - frame.columns + 1))
        first = min(places, key=lambda i: max(filled[i : i + frame.columns]))
        top = max(filled[first : first + frame.columns])
        filled[first : first + frame.columns] = [top + frame.height + GAP] * frame.columns
        where[frame.agent] = (GAP + first * pitch, top)
    return (frame.at(*where[frame.agent]) for frame in frames)


_FEWEST, _MOST_OF_GROUP, _FEW_OF_AGENT, _WORDS = 12, 0.7, 0.25, 2


@dataclass(frozen=True, slots=True)
class Group:
    """Tools of one agent that are drawn together; the heading may be empty."""

    heading: str
    tools: tuple[Tool, ...]


def groups_of(agent: Agent) -> tuple[Group, ...]:
    """The tools of an agent: core tools first, then communities by dependencies, then the others.

    Dependencies on core tools do not count, because they would join all tools. A small agent is one group, in its
    original order.

    Source: Blondel et al., Fast unfolding of communities in large networks (2008), as networkx has it.
    """
    if len(agent.tools) <= _FEWEST:
        return (Group("", agent.tools),) if agent.tools else ()
    core = tuple(tool for tool in agent.tools if tool.core)
    others = [tool for tool in agent.tools if not tool.core]
    communities = _communities(others)
    members = {tool.id for group in communities for tool in group}
    rest = tuple(tool for tool in others if tool.id not in members)
    common = Counter(word for tool in agent.tools for word in set(split_name(tool.name).split()))
    rare = {word for word, n in common.items() if n <= _FEW_OF_AGENT * len(agent.tools)}
    groups = [
        Group("core tools", core),
        *(Group(_heading(group, rare), tuple(group)) for group in communities),
        Group("other tools" if core or communities else "", rest),
    ]
    return tuple(group for group in groups if group.tools)


def _communities(tools: list[Tool]) -> list[list[Tool]]:
    """Communities by dependencies, in the order of the catalog; in each, the most needed tools first."""
    import networkx as nx

    by_id = {tool.id: tool for tool in tools}
    edges = [(tool.id, edge.tool) for tool in tools for edge in tool.depends_on if edge.tool in by_id]
    if not edges:
        return []
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(tool.id for tool in tools if any(tool.id in pair for pair in edges))
    graph.add_edges_from(edges)
    place = {tool.id: i for i, tool in enumerate(tools)}
    needed = Counter(target for _, target in edges)
    communities = nx.community.louvain_communities(graph, seed=0)
    groups = [sorted(group, key=lambda tool: (-needed[tool], place[tool])) for group in communities]
    return [[by_id[tool] for tool in group] for group in sorted(groups, key=lambda g: min(map(place.__getitem__, g)))]


def _heading(tools: Iterable[Tool], rare: set[str]) -> str:
    """The words that most names of a group share, but few other names of the agent."""
    names = [split_name(tool.name).split() for tool in tools]
    holders: defaultdict[str, int] = defaultdict(int)
    for name in names:
        for word in dict.fromkeys(name):
            holders[word] += 1
    shared = [word for word, n in holders.items() if n >= _MOST_OF_GROUP * len(names) and word in rare]
    return shown(" ".join(shared[:_WORDS]))
