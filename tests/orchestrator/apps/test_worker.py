"""What a worker may and may not do, with models that follow a script."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents.calls.review import flat
from callsheet.agents.work.equipment import Equipment
from callsheet.graphs import Catalog, Loaded, Skill, SourceCatalog, load
from deciding_model import own_steps
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, calls, planned
from small import outside

ALONE: dict[str, Any] = {"agents": 1, "tools": 1}
USD = calls("bank_exchange_rate", currency="USD")
WEATHER, RATE = "tell the weather of Oslo", "look up the rate of USD"


def ask(app: Any, text: str) -> Any:
    return app.invoke({"messages": [HumanMessage(text)]})


@pytest.fixture
def worked(catalog: Loaded) -> Callable[..., tuple[Any, Any]]:
    """The state after a request whose worker gives these replies, and its model."""

    def run(*replies: Any, request: str = RATE, **settings: Any) -> tuple[Any, Any]:
        model = ScriptedModel(replies=list(replies))
        return ask(
            create_supervisor(catalog, worker_model=model, settings=Settings(**settings)).compile(), request
        ), model

    return run


@pytest.mark.parametrize(
    ("replies", "note"),
    [([calls("finish", status="done", answer="9.5")], "no tool was called"), ([USD, AIMessage("9.5")], "")],
)
def test_a_step_without_a_call_has_a_note(
    worked: Callable[..., tuple[Any, Any]], replies: list[Any], note: str
) -> None:
    state, _ = worked(*replies, **ALONE)
    assert [(one["status"], one["note"]) for one in state["results"].values()] == [("done", note)]


def test_names_that_a_provider_refuses_are_mapped_there_and_back() -> None:
    sent: list[dict[str, Any]] = []
    schema = {"type": "object", "properties": {"filter[title]": {"type": "string"}, "api.key": {"type": "string"}}}
    find = StructuredTool(name="find", description="Find books by title.", args_schema=schema, func=sent_to(sent))
    model = ScriptedModel(replies=[calls("shop_find", filter_title="Emma", api_key="k-1234567"), AIMessage("Done.")])
    app = create_supervisor(outside({"shop": [find]}), worker_model=model).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    (question,) = app.invoke({"messages": [HumanMessage("find books by the title Emma")]}, config)["__interrupt__"]
    assert set(flat(question.value)["args"]) == {"filter[title]", "api.key"}
    assert flat(question.value)["args"]["filter[title]"] == "Emma"
    edit = question.response_schema["properties"]["decisions"]["items"]["oneOf"][1]
    assert set(edit["properties"]["edited_action"]["properties"]["args"]["properties"]) == {"filter[title]", "api.key"}
    state = app.invoke(Command(resume={question.id: {"type": "approve"}}), config)
    assert sent == [{"filter[title]": "Emma", "api.key": "k-1234567"}]
    (call,) = state["results"]["1"]["calls"]
    assert call["args"]["filter[title]"] == "Emma"
    assert "k-1234567" not in str(state)


def sent_to(sent: list[dict[str, Any]]) -> Any:
    return lambda **given: sent.append(given) or "one book"


def test_a_worker_that_never_ends_is_stopped(shop: FakeAgents, worked: Callable[..., tuple[Any, Any]]) -> None:
    state, _ = worked(lambda told: calls("bank_exchange_rate", currency=f"USD{len(told)}"), max_turns=3, **ALONE)
    assert shop.called == ["exchange_rate"] * 3
    assert state["results"]["1"]["status"] == "failed"
    assert "3 turns" in state["results"]["1"]["error"]


def test_a_worker_that_hangs_is_stopped_and_the_others_go_on(catalog: Loaded) -> None:
    stopped = threading.Event()

    def reply(messages: Any) -> AIMessage:
        last = messages[-1]
        if isinstance(last, ToolMessage) and "sunny" in last.text:
            stopped.wait(60)
        if "weather" in own_steps(last.text).partition("\n")[0]:
            return calls("meteo_weather_report", city="Oslo")
        return AIMessage(last.text) if isinstance(last, ToolMessage) else usd

    usd = calls("bank_exchange_rate", currency="USD")
    planner = ScriptedModel(replies=[planned(("1", WEATHER, []), ("2", RATE, []))])
    settings = Settings(step_seconds=3)
    app = create_supervisor(
        catalog, planner_model=planner, worker_model=ScriptedModel(replies=[reply]), settings=settings
    )
    state = ask(app.compile(), f"{WEATHER} and {RATE}")
    stopped.set()
    assert [state["results"][i]["status"] for i in "12"] == ["failed", "done"]
    assert "not done after 3 s" in state["results"]["1"]["error"]
    assert [(call["tool"], call["args"]) for call in state["results"]["1"]["calls"]] == [
        ("meteo/weather_report", {"city": "Oslo"})
    ]
    assert state["results"]["1"]["usage"]["calls"] == 1


@pytest.mark.parametrize("answered", [[], ["1"], ["2"], ["1", "2"]])
def test_of_the_calls_of_a_turn_that_was_stopped_those_with_an_answer_are_told(answered: list[str]) -> None:
    asked = AIMessage("", tool_calls=[{"name": "bank_exchange_rate", "args": {"of": one}, "id": one} for one in "12"])
    seen = [HumanMessage("go on"), asked, *(ToolMessage("0.9", tool_call_id=one) for one in answered)]
    told = Equipment(tools={}, seen=seen).answered_calls()
    assert [(call.args, call.output) for call in told] == [({"of": one}, "0.9") for one in answered]


@pytest.mark.parametrize(
    "said", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"finish_reason": "MAX_TOKENS"}]
)
def test_a_cut_answer_is_not_the_result_of_a_step(worked: Callable[..., tuple[Any, Any]], said: dict[str, str]) -> None:
    result = worked(USD, AIMessage("The rate is", response_metadata=said))[0]["results"]["1"]
    assert result["status"] == "failed"
    assert "was cut at its token limit" in result["error"]
    assert result["error"].endswith("it began: The rate is")


def test_arguments_that_are_never_json_end_at_the_limit_of_turns(worked: Callable[..., tuple[Any, Any]]) -> None:
    call = InvalidToolCall(
        name="bank_exchange_rate", args='{"currency": ', id="1", error="no JSON", type="invalid_tool_call"
    )
    state, model = worked(AIMessage("", invalid_tool_calls=[call]), max_turns=3)
    assert state["results"]["1"]["error"] == "stopped after 3 turns without a result"
    assert """are no JSON object: {"currency": """ in model.shown[1]["messages"][-1].text


def test_a_model_that_stays_silent_after_a_change_says_what_it_has_called(
    shop: FakeAgents, worked: Callable[..., tuple[Any, Any]]
) -> None:
    mute = [calls("notebook_write_note", text="milk"), AIMessage(""), AIMessage("")]
    state, _ = worked(*mute, request="write a note about milk", approval="never")
    assert shop.called == ["write_note"]
    assert "notebook/write_note" in state["messages"][-1].text


SKILL_TEXT = "One. Two.\n" * 50
SKILL = Skill(name="rates", description="Look up the rate of a currency.", text=SKILL_TEXT)


def with_skill(catalog: Any, skill: Skill = SKILL) -> Any:
    return load(catalog, SourceCatalog(skills=(skill,)))


def test_the_worker_gets_the_text_of_a_skill(catalog: Loaded, shop: FakeAgents, worker: ScriptedModel) -> None:
    skill = SKILL.model_copy(update={"tools": ("notebook/write_note",), "text": "Use\u200b it."})
    app = create_supervisor(with_skill(load(catalog), skill), worker_model=worker, settings=Settings(agents=1, tools=2))
    state = ask(app.compile(), RATE)
    opening = worker.shown[0]["messages"][-1].text
    assert opening.startswith(RATE)
    assert "from the skill 'rates'" in opening
    assert "\nUse it.\n\nNow: " in opening
    assert set(worker.shown[0]["tools"]) == {
        "bank_exchange_rate", "notebook_write_note", "run_program", "finish", "need_tool", "read_result"
    }  # fmt: skip
    assert state["selections"]["1"]["skills"][0]["id"] == "skills/rates"
    assert shop.called == ["exchange_rate"]


@pytest.mark.parametrize(
    ("tokens", "text", "shown"),
    [
        (5_000, SKILL_TEXT, SKILL_TEXT),
        (20, SKILL_TEXT, f"{SKILL_TEXT[:49]}\n[cut: 49 of 500 characters are shown]"),
        (50, "A" * 100_000, f"{'A' * 400}\n[cut: 400 of 100,000 characters are shown]"),
    ],
)
def test_the_text_of_a_skill_is_cut_to_its_budget(
    catalog: Loaded, worker: ScriptedModel, tokens: int, text: str, shown: str
) -> None:
    settings, skill = Settings(agents=1, tools=1, skill_tokens=tokens), SKILL.model_copy(update={"text": text})
    ask(create_supervisor(with_skill(catalog, skill), worker_model=worker, settings=settings).compile(), RATE)
    assert worker.shown[0]["messages"][-1].text.partition("not there.\n")[2].partition("\n\nNow: ")[0] == shown


def test_without_a_model_a_skill_is_not_used(catalog: Loaded, shop: FakeAgents) -> None:
    state = ask(create_supervisor(with_skill(catalog)).compile(), RATE)
    assert list(state["selections"]["1"]["skills"]) == []


def test_a_step_may_need_a_skill_and_no_tool() -> None:
    model = ScriptedModel(replies=[calls("finish", status="done", answer="Done as the skill says.")])
    state = ask(create_supervisor(Catalog(skills=(SKILL,)), worker_model=model).compile(), RATE)
    assert (state["results"]["1"]["status"], state["results"]["1"]["result"]) == ("done", "Done as the skill says.")
