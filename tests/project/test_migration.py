"""The code of docs/getting-started/migration.md runs, with a stand-in for the model; what is theirs is only shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from deciding_model import own_steps
from scripted_model import ScriptedModel, calls, planned, unlabelled

PAGE = (Path(__file__).parents[2] / "docs" / "getting-started" / "migration.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"(<!-- theirs -->\n)?```python\n(.*?)```", re.DOTALL)
SUM, BOOK = "What is 6 times 7", "who wrote Faust"


class StandIn(ScriptedModel):
    """Plans the page's requests, hands steps to agents, and lets the agents call their tools."""

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        tools = [tool["function"]["name"] for tool in kwargs.get("tools", [])]
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages, tools))])

    @staticmethod
    def _reply(messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        said = own_steps(unlabelled(messages[-1]))
        if "PlanDraft" in tools:
            wanted = [text for text in (SUM, BOOK) if text.lower() in said.lower()]
            return planned(*((str(n + 1), text, []) for n, text in enumerate(wanted)))
        if messages[-1].type == "tool" or not tools:
            return AIMessage(said)
        if said.startswith(SUM) and (multiply := _named("multiply", tools)):
            return calls(multiply, a=6, b=7)
        if search := _named("web_search", tools):
            return calls(search, query=said)
        ours = [tool for tool in tools if tool.endswith("run")]
        wanted = "math" if said.startswith(SUM) else "research"
        chosen = next((tool for tool in ours if wanted in tool), None) or next(iter(ours), "")
        return calls(chosen, request=said) if chosen else AIMessage(said)


def _named(name: str, tools: Sequence[str]) -> str:
    """The tool of this name, with or without its agent's before it."""
    return next((tool for tool in tools if tool == name or tool.endswith(f"_{name}")), "")


@pytest.fixture(scope="module")
def ran() -> dict[str, Any]:
    """What the page's names stand for once all of its blocks were run, in their order."""
    spoken: dict[str, Any] = {"results": []}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("langchain.chat_models.init_chat_model", lambda name: StandIn())
        for theirs, code in BLOCK.findall(PAGE):
            if not theirs:
                exec(compile(code, "docs/getting-started/migration.md", "exec"), spoken)
                spoken["results"].append(spoken.get("result"))
    return spoken


def test_both_of_theirs_are_shown_and_ours_stand_beside_them() -> None:
    theirs = [code for before, code in BLOCK.findall(PAGE) if before]
    assert [name in code for name, code in zip(("langgraph_supervisor", "langgraph_bigtool"), theirs, strict=True)]
    assert len(BLOCK.findall(PAGE)) == 8


def test_the_supervisor_answers_with_what_its_agents_said(ran: dict[str, Any]) -> None:
    results = ran["results"][0]["results"]
    assert [results[i]["status"] for i in "12"] == ["done", "done"]
    assert results["1"]["calls"][0]["tool"] == "math_expert/run"
    assert results["1"]["result"] == "42.0"
    assert results["2"]["result"] == "Johann Wolfgang von Goethe wrote Faust."


def test_people_are_asked_where_nothing_else_was_said(ran: dict[str, Any]) -> None:
    assert not ran["questions"]
    assert ran["state"]["results"]["1"]["status"] == "done"


def test_a_team_is_an_agent(ran: dict[str, Any]) -> None:
    (done,) = ran["results"][3]["results"].values()
    assert (done["status"], done["calls"][0]["tool"]) == ("done", "sums/run")
    assert "42" in done["result"]


def test_an_agent_is_equipped(ran: dict[str, Any]) -> None:
    assert ran["results"][4]["messages"][-1].text == "Johann Wolfgang von Goethe wrote Faust."
    assert [tool["function"]["name"] for tool in ran["equipped"].kwargs["tools"]] == ["web_search"]
