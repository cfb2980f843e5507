"""Pictures as files: well formed, complete, and deaf to what servers write."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from typing import Any

from hypothesis import given, strategies as st

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Provenance, Tool, hidden_in, shown, strings_in
from callsheet.graphs.export.pictures import to_html, to_svg
from callsheet.graphs.export.pictures.drawing import KINDS
from fuzzing import fuzzed

SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """What an HTML parser sees: elements, attributes, and what stands in script and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.policy = ""
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self._open = tag
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._open in self.inside:
            self.inside[self._open].append(data)
            self._open = ""

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.inside["script"][0])
        return found


def test_every_agent_tool_and_dependency_is_drawn(catalog: Catalog) -> None:
    root = ET.fromstring(to_svg(catalog))
    drawn = [element.get("class", "").split() for element in root.iter(f"{SVG}g")]
    assert sum("agent" in names for names in drawn) == 4
    assert sum("tool" in names for names in drawn) >= 6
    edges = [path for path in root.iter(f"{SVG}path") if path.get("data-a")]
    assert len(edges) == sum(len(tool.depends_on) for tool in catalog.tools.values())
    titles = {element.text for element in root.iter(f"{SVG}title")}
    assert "weather/forecast: Weather forecast for a place." in titles
    assert "4 agents, 6 tools, 3 dependencies" in titles


def test_kinds_and_provenance_have_their_own_lines_and_the_legend_names_what_occurs() -> None:
    edges = tuple(Dependency(tool="a/y", kind=kind) for kind in DependencyKind)
    guess = Dependency(tool="a/y", kind=DependencyKind.TOOL_DIRECTLY, provenance=Provenance.PROPOSED)
    tools = (Tool(agent="a", name="x", depends_on=(*edges, guess)), Tool(agent="a", name="y", core=True))
    svg = to_svg(Catalog(agents=(Agent(id="a", tools=tools),)))
    for name, meaning in KINDS.values():
        assert f'class="edge {name}"' in svg
        assert f">{meaning}<" in svg
    assert 'class="edge td unreviewed"' in svg
    assert "core tool" in svg
    bare = to_svg(Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="x"),)),)))
    assert ">may need the tool<" not in bare
    assert ">core tool<" not in bare


def test_the_page_knows_what_there_is_to_know(catalog: Catalog) -> None:
    nodes = Page(to_html(catalog)).data["nodes"]
    assert [node["id"] for node in nodes] == [*(agent.id for agent in catalog.agents), *catalog.tools]
    forecast = nodes[4]
    assert forecast["agent"] == 0
    assert forecast["parameters"] == [{"name": "place", "type": "string", "required": True}]
    assert [nodes[edge["to"]]["id"] for edge in forecast["needs"]] == ["maps/find_place"]


def test_the_page_fetches_nothing_and_lets_nothing_else_run(catalog: Catalog) -> None:
    page = to_html(catalog)
    parsed = Page(page)
    _, script = parsed.inside["script"]
    (style,) = parsed.inside["style"]
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in parsed.policy
    assert parsed.policy.startswith("default-src 'none'; ")
    assert not parsed.attributes & {"src", "href", "style", "onclick", "onload", "srcset", "action"}
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}


def test_what_a_server_writes_stays_text(hostile: Catalog, catalog: Catalog) -> None:
    parsed, plain = Page(to_html(hostile)), Page(to_html(catalog))
    assert set(parsed.tags) <= set(plain.tags)
    assert parsed.tags["script"] == 2
    assert parsed.attributes <= plain.attributes
    assert "<img" in json.dumps(parsed.data)
    assert not any(hidden_in(text) for text in strings_in(parsed.data))
    root = ET.fromstring(to_svg(hostile))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "title", "style", "rect", "g", "text", "path", "circle", "defs", "marker")
    }
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]


@fuzzed(6)
@given(st.text(min_size=1).filter(lambda text: not text.isspace()), st.text())
def test_any_text_can_be_drawn(name: str, description: str) -> None:
    tool = Tool(agent="a", name=name, description=description)
    made = Catalog(agents=(Agent(id="a", name=name, description=description, tools=(tool,)),))
    ET.fromstring(to_svg(made))
    assert Page(to_html(made)).data["nodes"][1]["id"] == shown(tool.id)


def test_nothing_and_five_megabytes_can_be_drawn() -> None:
    assert "0 agents, 0 tools, 0 dependencies" in to_svg(Catalog())
    assert Page(to_html(Catalog())).data["nodes"] == []
    big = Tool(agent="a", name="x", description="Adds 数字. " * 600_000)
    made = Catalog(agents=(Agent(id="a", tools=(big,)),))
    assert len(to_svg(made)) < 20_000
    assert len(to_html(made)) < 100_000


def test_the_same_catalog_gives_the_same_picture(large: Catalog) -> None:
    assert to_svg(large) == to_svg(Catalog(agents=large.agents))
    assert to_html(large) == to_html(Catalog(agents=large.agents))
