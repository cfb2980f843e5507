"""The rule-based chat model: driven by hand, and by the same agent loop as a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from callsheet.agents.keyless import KeylessModel, compose, split
from callsheet.agents.keyless.language.mood import objection
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.tool_effects import harm_of
from callsheet.agents.work.brief import Brief, Offer
from callsheet.graphs import Tool


def tool(name: str, description: str, required: str, **properties: Any) -> dict[str, Any]:
    specs = {key: {"type": spec} if isinstance(spec, str) else spec for key, spec in properties.items()}
    parameters = {"type": "object", "properties": specs, "required": required.split()}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


LENGTH = {"type": "string", "enum": ["foot", "kilometer", "meter", "mile"]}
CONVERT = tool(
    "convert_length",
    "Convert length between units.",
    "value from_unit to_unit",
    value="number",
    from_unit=LENGTH,
    to_unit=LENGTH,
)
READ = tool("read_file", "Read file from disk", "file_path", file_path="string")
DELETE = tool("file_delete", "Delete a file", "file_path", file_path="string")
WRITE = tool("write_file", "Write file to disk", "file_path text", file_path="string", text="string")
REFUND = tool(
    "refund_order", "Pay back an order", "order_id", order_id={"type": "string", "description": "Id of the order"}
)
LOOKUP = tool("find_order", "Find the order of a customer by e-mail", "email", email="string")
LOGIN = tool("open_session", "Open a session", "")


def offers(*tools: dict[str, Any], **sources: tuple[str, ...]) -> tuple[Offer, ...]:
    known = [Tool(agent="agent", name=each["function"]["name"]) for each in tools]
    return tuple(
        Offer(
            name=one.name,
            tool=one.id,
            score=1 - rank / 50,
            harm=harm_of(one, trusted=False),
            sources=sources if rank == 0 else {},
        )
        for rank, one in enumerate(known)
    )


def ask(said: str, *tools: dict[str, Any], since: tuple[Any, ...] = (), **sources: tuple[str, ...]) -> AIMessage:
    brief = Brief(text=said, offers=offers(*tools, **sources))
    human = HumanMessage(said, additional_kwargs={"brief": brief.model_dump()})
    answer = KeylessModel().bind_tools(list(tools)).invoke([human, *since])
    assert isinstance(answer, AIMessage)
    return answer


def call_of(message: AIMessage) -> tuple[str, dict[str, Any]]:
    (call,) = message.tool_calls
    return call["name"], call["args"]


def test_calls_the_tool_whose_arguments_have_evidence() -> None:
    answer = ask("Convert 3 miles to km", READ, CONVERT)
    assert call_of(answer) == ("convert_length", {"value": 3, "from_unit": "mile", "to_unit": "kilometer"})
    assert answer.tool_calls[0]["id"] == "call_1"


def test_answers_with_the_tools_output() -> None:
    first = ask("Read a.txt", READ)
    final = ask("Read a.txt", READ, since=(first, ToolMessage("hello", tool_call_id="call_1")))
    assert final.content == "hello"
    assert not final.tool_calls
    assert "outcome" not in final.additional_kwargs


def test_an_error_of_the_tool_is_a_failure() -> None:
    first = ask("Read a.txt", READ)
    final = ask("Read a.txt", READ, since=(first, ToolMessage("no such file", tool_call_id="call_1", status="error")))
    assert final.additional_kwargs["outcome"]["status"] == "failed"
    assert "no such file" in str(final.content)


def test_a_missing_value_is_asked_for() -> None:
    answer = ask("Refund my order", REFUND)
    assert answer.additional_kwargs["outcome"] == {
        "status": "needs_input",
        "tool": "agent/refund_order",
        "parameters": ["order_id"],
    }
    assert answer.content == ("agent/refund_order needs order_id (Id of the order): the request gives no value for it")


def test_a_value_that_another_tool_would_give_is_asked_for() -> None:
    answer = ask("Refund the order of ann@example.com", REFUND, LOOKUP, order_id=("find_order",))
    assert answer.additional_kwargs["outcome"]["status"] == "needs_input"


def test_nothing_is_changed_before_what_must_run_first() -> None:
    answer = ask("Refund order ORD-551", REFUND, LOGIN, **{"": ("open_session",)})
    assert answer.additional_kwargs["outcome"]["status"] == "needs_input"
    assert "open_session must run before it" in str(answer.content)


@pytest.mark.parametrize("said", ["Show me a.txt", "Read a.txt", "What is in a.txt?"])
def test_nothing_destructive_unasked(said: str) -> None:
    assert "outcome" in ask(said, DELETE).additional_kwargs


def test_nothing_is_destroyed_by_rules_alone() -> None:
    answer = ask("Remove a.txt", READ, DELETE)
    assert "destroys something" in str(answer.content)
    assert answer.additional_kwargs["outcome"]["status"] == "needs_input"


def test_what_a_person_confirms_is_called() -> None:
    (offer,) = offers(DELETE)
    brief = Brief(text="Remove a.txt", offers=(offer.model_copy(update={"confirmed": True}),))
    human = HumanMessage("Remove a.txt", additional_kwargs={"brief": brief.model_dump()})
    answer = KeylessModel().bind_tools([DELETE]).invoke([human])
    assert isinstance(answer, AIMessage)
    assert call_of(answer) == ("file_delete", {"file_path": "a.txt"})


LIST = tool("list_issues", "List issues", "", limit="number")
WEIGH = tool(
    "convert_mass",
    "Convert mass between units.",
    "value from_unit to_unit",
    value="number",
    from_unit={"type": "string", "enum": ["kilogram", "short ton (US)", "long ton (UK)"]},
    to_unit={"type": "string", "enum": ["kilogram", "short ton (US)", "long ton (UK)"]},
)


@pytest.mark.parametrize(("said", "offered"), [("Find files named a.txt", READ), ("limit 5", LIST)])
def test_a_tool_that_the_step_does_not_name_is_not_called(said: str, offered: dict[str, Any]) -> None:
    assert not ask(said, offered).tool_calls


def test_a_unit_with_several_meanings_is_named_with_those_that_the_tool_knows() -> None:
    assert '"tons" may mean several units' in str(ask("Convert 2 tons to kg", WEIGH).content)
    assert "(short ton (US), long ton (UK))" in str(ask("Convert 2 tons to kg", WEIGH).content)
    assert "may mean" not in str(ask("Convert kg to kg", WEIGH).content)


QUERY = tool("query_database", "Run a SQL query", "query", query={"type": "string", "description": "SQL query"})
FIND = tool("find_file", "Find files by name", "pattern", pattern="string")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 /* ` */; DELETE FROM users /* ` */",
        "DELETE FROM users",
        "WITH x AS (SELECT 1) DELETE FROM users",
        "SELECT 1; DROP TABLE users",
        "SELECT a INTO b",
    ],
)
def test_sql_that_changes_data_is_not_run(sql: str) -> None:
    assert "its SQL changes data" in str(ask(f"Query the database with '{sql}'", QUERY).content)


@pytest.mark.parametrize("sql", ["SELECT * FROM logs WHERE kind = 'delete'", "SELECT replace(a, 'x', 'y') FROM logs"])
def test_sql_that_reads_is_run(sql: str) -> None:
    assert call_of(ask(sql, QUERY, FIND)) == ("query_database", {"query": sql})


def test_a_quotation_alone_is_no_order() -> None:
    assert ask('"Copy a.txt to b.txt"', FIND).additional_kwargs["outcome"]["status"] == "failed"


def test_the_tool_that_lacks_least_is_asked_for() -> None:
    one, two = (
        tool("get_time", "Get time", "zone", zone="string"),
        tool("get_times", "Get time", "a b", a="string", b="string"),
    )
    assert ask("get time", two, one).additional_kwargs["outcome"]["parameters"] == ["zone"]


def test_both_values_of_a_list_are_used() -> None:
    calls = ask("Convert 3 miles to both km and feet", CONVERT).tool_calls
    assert [call["args"]["to_unit"] for call in calls] == ["kilometer", "foot"]


@pytest.mark.parametrize(
    ("request_", "plain"),
    [
        ("When does the shop close? Write 'x' to x.txt", True),
        ("When are the races? Write 'x' to x.txt", True),
        ("Write 'x' to x.txt when it rains", False),
        ("When it rains, write 'x' to x.txt", False),
    ],
)
def test_a_question_for_a_time_is_no_condition(request_: str, plain: bool) -> None:
    assert (objection("Write 'x' to x.txt", request_, {"write"}) == "") is plain


RESTART = tool("restart_server", "Restart a server", "server", server="string")
POST = tool("post_message", "Post a message", "text", text="string")
EVENT = tool("create_event", "Create an event", "title date", title="string", date="string")
SUBTRACT = tool("subtract", "Subtract b from a", "a b", a="number", b="number")


@pytest.mark.parametrize("said", ["Restart of server 'web1'", "Restart server 'web1'?!", "Restart server 'web1' ?"])
def test_a_noun_or_a_question_is_no_order(said: str) -> None:
    assert "outcome" in ask(said, RESTART).additional_kwargs


def test_the_verb_of_a_tools_name_is_an_order_for_it() -> None:
    assert call_of(ask("Restart server 'web1'", RESTART)) == ("restart_server", {"server": "web1"})
    assert call_of(ask("Post the message 'hi'", POST)) == ("post_message", {"text": "hi"})
    assert call_of(ask("Create an event 'Run' on 2026-12-01", EVENT))[1] == {"title": "Run", "date": "2026-12-01"}
    assert '"on"' in str(ask("Create an event 'Run' on the roof on 2026-12-01", EVENT).content)


def test_numbers_in_another_order_are_asked_for() -> None:
    assert "outcome" in ask("Subtract 3 from 10", SUBTRACT).additional_kwargs
    assert call_of(ask("Subtract 10 and 3", SUBTRACT))[1] == {"a": 10, "b": 3}


@pytest.mark.parametrize("said", ["What was in a.txt?", "What will be in a.txt?"])
def test_a_question_for_another_time_is_not_answered_with_now(said: str) -> None:
    assert "outcome" in ask(said, READ).additional_kwargs


def test_a_prohibition_is_no_question() -> None:
    assert '"not"' in str(ask("Do not read a.txt", READ).content)


def test_no_tool_fits() -> None:
    assert ask("Sing me a song", CONVERT).additional_kwargs["outcome"]["status"] == "failed"
    assert ask("Sing me a song").additional_kwargs["outcome"]["status"] == "failed"


def test_nothing_is_written_unasked() -> None:
    answer = ask("Show 'hello' from a.txt", WRITE)
    assert answer.text == "None of the offered tools fits \"Show 'hello' from a.txt\"."
    assert not answer.tool_calls


def test_needs_a_brief() -> None:
    answer = KeylessModel().invoke("hello")
    assert "brief" in str(answer.content)


def test_same_words_same_answer() -> None:
    assert call_of(ask("Convert 3 miles to km", READ, CONVERT)) == call_of(ask("Convert 3 miles to km", READ, CONVERT))


def convert_length(value: float, from_unit: str, to_unit: str) -> str:
    """Convert length between units."""
    return f'{{"converted_value": {value * 1.609344}, "converted_unit": "{to_unit}", "from": "{from_unit}"}}'


def convert_time(source_timezone: str, time: str, target_timezone: str) -> str:
    """Convert time between timezones."""
    return f'{{"target": {{"timezone": "{target_timezone}", "datetime": "17:30 after {time} {source_timezone}"}}}}'


async def test_the_agent_loop_answers_the_whole_request(tmp_path: Path) -> None:
    def write_file(file_path: str, text: str) -> str:
        """Write file to disk."""
        (tmp_path / file_path).write_text(text)
        return f"File written successfully to {file_path}."

    tools = [StructuredTool.from_function(function) for function in (convert_length, convert_time, write_file)]
    agent = create_agent(KeylessModel(), tools)
    known = [Tool(agent="agent", name=each.name) for each in tools]
    given = tuple(Offer(name=one.name, tool=one.id, harm=harm_of(one, trusted=False)) for one in known)
    request = (
        "Convert 26.2 miles to kilometres, find out what time it is in Tokyo when it is 9:30 in Berlin, "
        "and write both results to trip.txt"
    )
    results: dict[str, StepResult] = {}
    for step in split(request).steps:
        brief = Brief(text=step.text, offers=given, inputs=tuple(results[i] for i in step.depends_on))
        human = HumanMessage(step.text, additional_kwargs={"brief": brief.model_dump()})
        final = (await agent.ainvoke({"messages": [human]}))["messages"][-1]
        assert "outcome" not in final.additional_kwargs
        results[step.id] = StepResult(id=step.id, text=step.text, depends_on=step.depends_on, result=str(final.text))
    written = (tmp_path / "trip.txt").read_text().splitlines()
    assert len(written) == 2
    assert "42.16" in written[0]
    assert "17:30" in written[1]
    assert "42.16" in compose(request, list(results.values()))
