"""Who copies other agents' tools gains nothing by it; who was there first does not lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from callsheet.graphs import Agent, Catalog, Grants, Loaded, Policy, Tool
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.dependencies import Outcomes
from callsheet.retrievers import AgentGraphRetriever, SelectSettings, StepNeed
from callsheet.retrievers.selection.copies import find_copies
from callsheet.retrievers.selection.ranking import Ranker

MEANINGS = 40


def catalog(agents: Mapping[str, Sequence[str]], systems: Mapping[str, str] | None = None) -> Catalog:
    return Catalog(
        agents=tuple(
            Agent(id=name, system=(systems or {}).get(name, ""), tools=tuple(Tool(agent=name, name=t) for t in tools))
            for name, tools in agents.items()
        )
    )


def meanings(loaded: Loaded, cosine: float) -> np.ndarray:
    """A vector for each tool: that of its name's first letters, so that namesakes of two agents have this cosine."""
    words = list(dict.fromkeys(tool.name.split("_")[0] for tool in loaded.catalog.tools.values()))
    rows, seen = [], set[str]()
    for number, tool in enumerate(loaded.catalog.tools.values()):
        row = np.zeros(2 * MEANINGS, np.float32)
        word = tool.name.split("_")[0]
        part = cosine if word in seen else 1.0
        row[words.index(word)], row[MEANINGS + number % MEANINGS] = part, np.sqrt(1 - part**2)
        seen.add(word)
        rows.append(3 * row)
    return np.stack(rows)


FIRST: Mapping[str, Sequence[str]] = {"one": ("red_a", "blue_a"), "two": ("red_b", "green_b")}


@pytest.mark.parametrize(
    ("cosine", "more", "expected"),
    [
        (0.95, {}, {"two/red_b": "one/red_a"}),
        (0.85, {}, {}),
        (0.95, {"places": {"one": 2, "two": 1}}, {"one/red_a": "two/red_b"}),
        (0.95, {"places": {"one": 1, "two": 2}}, {"two/red_b": "one/red_a"}),
        (0.95, {"policy": Policy(default="allow", trust=("two",))}, {}),
        (0.95, {"policy": Policy(default="allow", trust=("one",))}, {"two/red_b": "one/red_a"}),
        (0.95, {"connections": {"two": object()}}, {}),
        (0.95, {"connections": {n: ServerConfig(command="npx", args=("-y", "mcp", f"/{n}")) for n in FIRST}}, {}),
        (0.95, {"connections": {n: ServerConfig(url="https://a.test/", headers={"K": n}) for n in FIRST}}, {}),
        (
            0.95,
            {"connections": {n: ServerConfig(command="node", args=(f"/{n}.js",)) for n in FIRST}},
            {"two/red_b": "one/red_a"},
        ),
    ],
)
def test_of_nearly_identical_tools_the_later_one_is_the_copy(
    cosine: float, more: dict[str, Any], expected: dict[str, str]
) -> None:
    loaded = Loaded(catalog(FIRST), **more)
    assert find_copies(loaded, meanings(loaded, cosine)).originals == expected
    one_api = Loaded(catalog(FIRST, dict.fromkeys(FIRST, "shop")), **more)
    assert find_copies(one_api, meanings(one_api, cosine)).originals == {}


def test_without_vectors_the_same_words_make_a_copy() -> None:
    tools = (Tool(agent=name, name="list_files", description="Lists  FILES.") for name in ("one", "two"))
    other = Tool(agent="three", name="list_files", description="Lists the files of a ticket.")
    agents = tuple(Agent(id=tool.agent, tools=(tool,)) for tool in (*tools, other))
    assert find_copies(Loaded(Catalog(agents=agents)), None).originals == {"two/list_files": "one/list_files"}
    assert find_copies(Loaded(Catalog()), None).originals == {}


@pytest.mark.parametrize("vectors", [None, np.ones((2000, 4), np.float32)], ids=["words", "vectors"])
def test_thousands_of_agents_with_the_same_tool_cost_little(vectors: np.ndarray | None) -> None:
    tools = (Tool(agent=f"a{n}", name="search", description="Searches.") for n in range(2000))
    loaded = Loaded(Catalog(agents=tuple(Agent(id=tool.agent, tools=(tool,)) for tool in tools)))
    found = find_copies(loaded, vectors)
    assert found.originals == {f"a{n}/search": "a0/search" for n in range(1, 2000)}
    assert found.imitators == frozenset()


def others(count: int) -> dict[str, Sequence[str]]:
    """Agents of three tools each, none like another's."""
    return {f"a{n}": tuple(f"m{3 * n + k}_a" for k in range(3)) for n in range(count)}


def test_an_agent_that_is_largely_like_five_others_imitates_wherever_it_stands() -> None:
    suite = {"suite": [f"m{3 * n}_s" for n in range(5)]}
    for agents in ({**others(6), **suite}, {**suite, **others(6)}):
        loaded = Loaded(catalog(agents))
        found = find_copies(loaded, meanings(loaded, 0.8))
        assert found.originals == {f"suite/m{3 * n}_s": f"a{n}/m{3 * n}_a" for n in range(5)}
        assert found.imitators == {"suite"}


@pytest.mark.parametrize(
    "suite",
    [
        [f"m{3 * n}_s" for n in range(4)],  # like four others
        [f"m{n}_s" for n in range(12)],  # as many tools of four others
        [f"m{3 * n}_s" for n in range(5)] + [f"own{n}_s" for n in range(8)],  # not largely
    ],
)
def test_an_agent_that_is_like_fewer_or_largely_itself_is_no_imitation(suite: list[str]) -> None:
    loaded = Loaded(catalog({**others(6), "suite": suite}))
    found = find_copies(loaded, meanings(loaded, 0.8))
    assert (found.originals, found.imitators) == ({}, frozenset())


def test_all_tools_of_an_agent_that_imitates_stand_behind_also_those_that_are_its_own() -> None:
    suite = [f"m{3 * n}_s" for n in range(5)] + [f"own{n}_s" for n in range(7)]
    loaded = Loaded(catalog({**others(6), "suite": suite}))
    found = find_copies(loaded, meanings(loaded, 0.8))
    assert found.originals.keys() == {f"suite/{name}" for name in suite}
    assert not any(original.startswith("suite/") for original in found.originals.values())


def test_tools_named_after_the_arguments_of_five_others_imitate() -> None:
    nouns = ("customer", "invoice", "ticket", "project", "folder", "channel")

    def needing(noun: str) -> Agent:
        schema = {"properties": {f"{noun}_id": {}, "note": {}}, "required": [f"{noun}_id"]}
        return Agent(id=noun, tools=(Tool(agent=noun, name="close", description=noun, input_schema=schema),))

    for name in ("get_{}_id", "{}Id", "{}-id-source"):
        tools = tuple(Tool(agent="evil", name=name.format(noun)) for noun in nouns)
        agents = tuple(map(needing, nouns))
        vectors = np.eye(2 * len(nouns), dtype=np.float32)
        found = find_copies(Loaded(Catalog(agents=(Agent(id="evil", tools=tools), *agents))), vectors)
        assert (len(found.originals), found.imitators) == (len(nouns), {"evil"})
        few = find_copies(Loaded(Catalog(agents=(Agent(id="evil", tools=tools), *agents[:4]))), vectors[:-2])
        assert few.imitators == frozenset()


def test_twenty_servers_for_one_thing_do_not_imitate_each_other() -> None:
    loaded = Loaded(catalog({f"files{n}": ("read_f", "write_f", "move_f") for n in range(20)}))
    assert find_copies(loaded, meanings(loaded, 0.8)).imitators == frozenset()


def test_what_comes_later_makes_nobody_an_imitator() -> None:
    victim = {"victim": [f"m{3 * n}_s" for n in range(5)]}
    places = {"victim": 1, **{f"a{n}": 2 for n in range(6)}}
    loaded = Loaded(catalog({**others(6), **victim}), places=places)
    found = find_copies(loaded, meanings(loaded, 0.95))
    assert found.imitators == frozenset()
    assert set(found.originals) == {f"a{n}/m{3 * n}_a" for n in range(5)}


WORK = {
    "weather": ("get_forecast", "Gets the weather forecast of a city."),
    "mail": ("send_mail", "Sends an e-mail to a person."),
    "files": ("read_file", "Reads a text file from the disk."),
    "bank": ("exchange_rate", "Looks up the exchange rate of a currency."),
    "maps": ("find_route", "Finds the way between two places on a map."),
    "music": ("play_song", "Plays a song by its title."),
}
QUERIES = {"weather": "What will the weather be in Oslo?", "mail": "Send an e-mail to Ann", "maps": "the way to Rome"}


def owned(agent: str, name: str, told: str) -> Tool:
    return Tool(agent=agent, name=name, description=told)


HONEST = tuple(Agent(id=agent, tools=(owned(agent, *tool),)) for agent, tool in WORK.items())
SUITE = Agent(id="super-suite", tools=tuple(owned("super-suite", *tool) for tool in WORK.values()))
PRAISE = Agent(
    id="super-suite",
    tools=tuple(owned("super-suite", f"{name}_pro", f"{told} Fast and safe.") for name, told in WORK.values()),
)
CLONE = Agent(id="other-weather", tools=(owned("other-weather", *WORK["weather"]),))


def retriever(*agents: Agent, **more: Any) -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(Catalog(agents=agents), index=":memory:", **more)


@pytest.mark.parametrize("agents", [(*HONEST, SUITE), (SUITE, *HONEST), (*HONEST, PRAISE)])
def test_who_copies_stands_behind(agents: tuple[Agent, ...]) -> None:
    alone, made = retriever(*HONEST), retriever(*agents)
    for wanted, query in QUERIES.items():
        assert alone.select(query).tools[0].id.startswith(f"{wanted}/")
        picked = made.select(query, tools=3)
        assert [tool.id.partition("/")[0] for tool in picked.tools[:1]] == [wanted]
        assert not {tool.id.partition("/")[0] for tool in picked.tools} & {"super-suite"}


def test_a_clone_of_one_server_stands_behind_it() -> None:
    alone, made = (retriever(*agents).select(QUERIES["weather"]) for agents in (HONEST, (*HONEST, CLONE)))
    assert [tool.id for tool in made.tools[:2]] == ["weather/get_forecast", "other-weather/get_forecast"]
    assert made.tools[0].use > 0.9 * alone.tools[0].use > 10 * made.tools[1].use


def test_a_copy_serves_where_the_original_may_not_or_the_request_names_its_agent() -> None:
    made = retriever(*HONEST, CLONE)
    query = QUERIES["weather"]
    assert made.select(query, without=["weather"]).tools[0].id == "other-weather/get_forecast"
    assert made.select(f"{query} Use other-weather/get_forecast.").tools[0].id == "other-weather/get_forecast"
    said = retriever(*HONEST, Agent(id="nordic", tools=(owned("nordic", *WORK["weather"]),)))
    assert said.select("the weather forecast of Oslo").tools[0].id == "weather/get_forecast"
    assert said.select("the weather forecast of Oslo by Nordic").tools[0].id == "nordic/get_forecast"
    (step,) = made.select_steps([StepNeed(query, ("other-weather/get_forecast",))])
    assert step.tools[0].id == "other-weather/get_forecast"
    policy = Policy(default="allow", users={"ann": Grants(deny=("weather",))})
    hidden = retriever(*HONEST, CLONE, policy=policy)
    assert hidden.within("ann").select(query).tools[0].id == "other-weather/get_forecast"
    assert hidden.within("bob").select(query).tools[0].id == "weather/get_forecast"
    trusted = retriever(*HONEST, CLONE, policy=Policy(default="allow", trust=("other-*",)))
    first, second = trusted.select(query).tools[:2]
    assert first.use < 5 * second.use, "a trusted one stands beside it"
    alone = Policy(default="deny", users={"ann": Grants(allow=("super-suite",))})
    for wanted, asked in QUERIES.items():
        picked = retriever(*HONEST, SUITE, policy=alone).within("ann").select(asked)
        assert (picked.verdict, picked.tools[0].id) == ("unsure", f"super-suite/{WORK[wanted][0]}")


def test_a_copy_does_not_stand_behind_an_original_that_fails() -> None:
    settings = SelectSettings(capability_weight=0, learned=True)

    def use_of_copy(ranker: Ranker, failed: int) -> float:
        ranker._outcomes = lambda: {"weather/get_forecast": Outcomes(failed=failed)}
        return ranker.rank(QUERIES["weather"], settings).use[ranker.row["other-weather/get_forecast"]]

    both = retriever(*HONEST, CLONE).selector.ranker
    assert use_of_copy(both, failed=4) > 3 * use_of_copy(both, failed=1)
    hidden = retriever(*HONEST[1:], CLONE).selector.ranker
    assert use_of_copy(hidden, failed=4) == use_of_copy(hidden, failed=1), "what failed is not there"


def test_own_tools_of_who_imitates_come_last_unless_the_request_names_it() -> None:
    own = tuple(owned("super-suite", f"tidy_{n}", f"Tidies up the attic, room {n}.") for n in range(5))
    suite = SUITE.model_copy(update={"tools": (*SUITE.tools, *own)})
    made = retriever(*HONEST, suite)

    def first(query: str) -> str:
        return made.select(query).tools[0].id.partition("/")[0]

    assert first("Tidy up the attic") != "super-suite"
    assert first("Tidy up the attic with super-suite/tidy_0") == "super-suite"
    assert first("Tidy up the attic with super-suite") == "super-suite"
    alone = retriever(*HONEST, Agent(id="super-suite", tools=own))
    assert sum(tool.id.startswith("super-suite/") for tool in alone.select("Tidy up the attic").tools) == 5
