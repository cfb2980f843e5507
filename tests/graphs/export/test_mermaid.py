"""A Mermaid chart of a neighbourhood: what is drawn, and that no name can break out of its label."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, SettingsError, Tool
from callsheet.graphs.export import to_mermaid
from fuzzing import fuzzed

LABEL = r'"(?:[^"#`<>&|\\\n]|#\d+;)+"'
ARROWS = r"(?:-->|-\.->|==>|--o)"
LINES = re.compile(
    rf"flowchart LR|  n\d+(?:\[{LABEL}\]|\[\[{LABEL}\]\]):::(?:tool|core|start|agent)|  n\d+ {ARROWS}\|{LABEL}\| n\d+"
    rf'|  more\["and \d+ more tools"\]|  classDef [a-z]+ [a-z0-9:#,-]+'
)


def chain(count: int, *, back: bool = False) -> Catalog:
    """One agent a tool; each tool needs the next one, and the last the first if ``back``."""

    def needs(number: int) -> tuple[Dependency, ...]:
        after = (number + 1) % count if back else number + 1
        return (Dependency(tool=f"a{after}/t", kind=DependencyKind.TOOL_DIRECTLY),) if after < count else ()

    tools = [Tool(agent=f"a{number}", name="t", depends_on=needs(number)) for number in range(count)]
    return Catalog(agents=tuple(Agent(id=tool.agent, tools=(tool,)) for tool in tools))


def owners(chart: str) -> list[str]:
    return sorted(re.findall(r'\[\["(.*)"\]\]', chart))


def test_the_whole_of_a_small_catalog(catalog: Catalog) -> None:
    lines = [line.strip() for line in to_mermaid(catalog).splitlines() if "classDef" not in line]
    assert lines[:3] == ["flowchart LR", 'n0["weather/forecast"]:::tool', 'n1[["weather"]]:::agent']
    assert {'n0 -->|"owned by"| n1', 'n0 -->|"tool directly"| n2'} <= set(lines)
    assert sum("owned by" in line for line in lines) == len(catalog.tools)
    assert sum("-.->" in line for line in lines) == 1


def test_a_cycle_is_drawn_once() -> None:
    chart = to_mermaid(chain(5, back=True))
    assert len(owners(chart)) == chart.count("tool directly") == 5


def test_styles_of_line_tell_the_kind() -> None:
    edges = tuple(
        Dependency(tool="a/b", kind=kind, parameter=f"p_{number}") for number, kind in enumerate(DependencyKind)
    )
    tools = (Tool(agent="a", name="t", depends_on=edges), Tool(agent="a", name="b"))
    chart = to_mermaid(Catalog(agents=(Agent(id="a", tools=tools),)))
    drawn = [line.split("|")[:2] for line in chart.splitlines() if "p_" in line]
    kinds = ("tool directly", "tool indirectly", "parameter directly", "parameter indirectly")
    arrows = zip(("-->", "-.->", "==>", "--o"), kinds, strict=True)
    assert sorted(drawn) == sorted([f"  n0 {arrow}", f'"{kind}, p_{i}"'] for i, (arrow, kind) in enumerate(arrows))


@fuzzed(8)
@given(data=st.data())
def test_no_name_breaks_out_of_its_label(data: st.DataObject, strategies: Any) -> None:
    catalog = data.draw(strategies.catalogs())
    chart = to_mermaid(catalog)
    assert [line for line in chart.removesuffix("\n").split("\n") if not LINES.fullmatch(line)] == []
    assert len(owners(chart)) == sum(bool(agent.tools) for agent in catalog.agents)


def test_long_names_are_cut_and_hidden_characters_shown() -> None:
    tools = (Tool(agent="a", name="x" * 5_000_000), Tool(agent="a", name="a\u202eb\x00"))
    chart = to_mermaid(Catalog(agents=(Agent(id="a", tools=tools),)))
    assert f'"a/{"x" * 57}…"' in chart
    assert '"a/a#92;u202eb#92;x00"' in chart


def test_a_large_catalog_is_refused() -> None:
    with pytest.raises(SettingsError, match="61 tools are more than a Mermaid chart can show"):
        to_mermaid(chain(61))
