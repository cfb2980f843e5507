"""What the requests of one step have in common, for a provider's prompt cache: request bodies side by side."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatResult
from pydantic import Field

from conversation import Conversation
from fake_agents import FILES, OFFICE, FakeAgents
from scripted_model import ScriptedModel, calls

REQUEST = "read may.txt and the file of june"


class Recording(ScriptedModel):
    """Keeps the body of each request, as it goes to a provider."""

    bodies: list[dict[str, list[str]]] = Field(default_factory=list)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        parts = {"messages": convert_to_openai_messages(messages), "tools": kwargs.get("tools", [])}
        self.bodies.append({name: list(map(json.dumps, part)) for name, part in parts.items()})
        return super()._generate(messages, stop, run_manager, **kwargs)


def with_own_ids(reply: AIMessage, number: int) -> AIMessage:
    """The reply with ids of calls that no other reply has."""
    calls = [{**call, "id": f"{call['id']}_{number}"} for call in reply.tool_calls]
    return reply.model_copy(update={"tool_calls": calls})


def bodies(*replies: AIMessage, **settings: Any) -> list[dict[str, list[str]]]:
    """The requests of a run whose model gives these replies."""
    model: Any = Recording(replies=[with_own_ids(reply, number) for number, reply in enumerate(replies)])
    state = Conversation(FakeAgents(*OFFICE).agents(), model=model, settings=settings).ask(REQUEST)
    assert [result["status"] for result in state["results"].values()] == ["done"] * len(state["results"])
    return list(model.bodies)


def begins(longer: list[str], shorter: list[str]) -> bool:
    return longer[: len(shorter)] == shorter


def test_each_request_of_a_step_begins_with_the_one_before() -> None:
    sent = bodies(
        calls("files_read_file", path="may.txt"),
        calls("files_read_file", path="june.txt"),
        AIMessage("rent 700, then 720"),
        planning="none",
    )
    assert len(sent) == 3
    for before, after in pairwise(sent):
        assert begins(after["messages"], before["messages"])
        assert len(after["messages"]) > len(before["messages"])
        assert after["tools"] == before["tools"]


def test_workers_of_one_plan_share_their_system_prompt() -> None:
    plan: Any = [
        {"id": str(n), "text": f"read {name}", "apart": True} for n, name in enumerate(("may.txt", "june.txt"), 1)
    ]
    plan[1]["depends_on"] = ["1"]
    sent = bodies(
        calls("PlanDraft", steps=plan),
        calls("files_read_file", path="may.txt"),
        AIMessage("rent 700"),
        calls("files_read_file", path="june.txt"),
        AIMessage("rent 720"),
        AIMessage("rent 700 and 720"),
    )
    workers = sent[1:5]
    assert len({body["messages"][0] for body in workers}) == 1
    assert json.loads(workers[0]["messages"][0])["role"] == "system"
    assert workers[0]["tools"] == workers[1]["tools"]
    assert workers[2]["tools"] == workers[3]["tools"]


def test_of_a_long_answer_the_model_sees_the_beginning_and_reads_more(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = json.dumps({"rows": [{"id": number, "note": "paid " * 20} for number in range(400)]})
    monkeypatch.setitem(FILES, "may.txt", ("2026-05-02", rows))
    sent = bodies(
        calls("files_read_file", path="may.txt"),
        calls("read_result", id="c1", path="rows[399].id"),
        AIMessage("the last row is 399"),
        planning="none",
    )
    answer = json.loads(sent[1]["messages"][-1])["content"]
    assert len(rows) > 40_000
    assert answer.startswith(rows[:8_000])
    assert len(answer) < 8_300
    told = f"{len(rows):,} characters in all, an object of 1 fields (rows); read more with read_result, id 'c1'"
    assert answer.endswith(f"[{told}]")
    assert json.loads(sent[2]["messages"][-1])["content"] == "399"
    assert begins(sent[2]["messages"], sent[1]["messages"])
    assert ["read_result" in tools for tools in map(str, (body["tools"] for body in sent))] == [True, True, True]
