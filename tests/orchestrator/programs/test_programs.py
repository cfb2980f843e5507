"""Workers whose model calls tools from programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from callsheet import Settings, create_supervisor
from callsheet.agents import sandbox
from callsheet.agents.sandbox import Pause, Sandbox
from callsheet.graphs import Loaded
from deciding_model import own_steps
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, calls, ended, planned, unlabelled

RATE = "look up the rate of USD"
THREAD: Any = {"configurable": {"thread_id": "1"}}


def settings(**more: Any) -> Settings:
    return Settings(**{"code_mode": True, "agents": 1, "tools": 5, **more})


def last_result(told: Sequence[BaseMessage]) -> BaseMessage:
    """What the program gave, also after a question about words with nothing done."""
    return next(message for message in reversed(told) if isinstance(message, ToolMessage))


@pytest.fixture
def ran(catalog: Loaded) -> Callable[..., tuple[Any, Any]]:
    """The step after a program, and the model with what it was shown."""

    def run(code: str, loaded: Any = catalog, **more: Any) -> tuple[Any, Any]:
        model = ScriptedModel(replies=[calls("run_program", code=code), lambda told: ended(last_result(told))])
        app = create_supervisor(loaded, worker_model=model, settings=settings(**more)).compile()
        return app.invoke({"messages": [HumanMessage(RATE)]})["results"]["1"], model

    return run


def test_a_program_calls_tools_as_functions(ran: Callable[..., tuple[Any, Any]], shop: FakeAgents) -> None:
    code = "rates = [bank_exchange_rate(currency=c) for c in ('USD', 'GBP')]\nprint(len(rates))\n' and '.join(rates)"
    result, model = ran(code)
    assert shop.called == ["exchange_rate"] * 2
    tools = model.shown[0]["tools"]
    assert tools[0] == "bank_exchange_rate"
    assert tools[-4:] == ["run_program", "finish", "need_tool", "read_result"]
    assert result["status"] == "done"
    assert result["result"] == "2\n1 USD = 0.9 EUR and 1 GBP = 0.9 EUR"
    assert [call["tool"] for call in result["calls"]] == ["bank/exchange_rate"] * 2 + ["run_program"]
    assert [call["args"] for call in result["calls"][:2]] == [{"currency": "USD"}, {"currency": "GBP"}]


def test_without_code_mode_there_are_no_programs(
    catalog: Loaded, shop: FakeAgents, ran: Callable[..., tuple[Any, Any]]
) -> None:
    result, model = ran("bank_exchange_rate(currency='USD')", code_mode=False)
    assert "run_program" not in model.shown[0]["tools"]
    assert "run_program is not among the tools" in result["calls"][0]["error"]
    assert shop.called == []


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os\nos.listdir('/')", "PermissionError"),
        ("open('/etc/passwd').read()", "Name `open` used when not defined"),
        ("import pathlib\npathlib.Path('/etc/passwd').read_text()", "PermissionError"),
        ("import os\nos.environ['HOME']", "RuntimeError"),
        ("import socket", "socket"),
        ("import subprocess", "subprocess"),
        ("x = [0] * 10**9", "MemoryError"),
        ("x = 'a'\nwhile True:\n    x += x", "MemoryError"),
        ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError"),
        ("while True:\n    print('x' * 1000)", "MemoryError"),
        ("notebook_delete_note(title='everything')", "notebook_delete_note"),
        ("bank_exchange_rate('USD')", "missing-argument"),
        ("bank_exchange_rate(currency=7)", "Expected `str`"),
        ("bank_exchange_rate(currency={'USD'}.pop() * 10**8)", "MemoryError"),
        ("import json\nbank_exchange_rate(currency=json.loads('NaN'))", "no JSON value"),
        ("import json\nx = json.loads('1')\nbank_exchange_rate(currency={x})", "Expected `str`"),
        ("raise ValueError('x' * 100_000)", "line 1"),
        (
            "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
            "TimeoutError",
        ),
        ("x = 1\ny = (", "program.py:2"),
        ("x = 1\n\n1 / 0", "line 3"),
        ("", "give the program"),
    ],
)
def test_a_program_cannot_reach_the_system_or_exceed_its_limits(
    ran: Callable[..., tuple[Any, Any]], shop: FakeAgents, code: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sandbox._LIMITS, "max_feed_duration_secs", 2.0)
    monkeypatch.setitem(sandbox._LIMITS, "max_memory", 8 * 1024 * 1024)
    result, _ = ran(code)
    assert shop.called == []
    assert result["status"] == "failed"
    assert told in result["calls"][0]["error"]
    assert len(result["calls"][0]["error"]) < 21_000


def test_ten_thousand_calls_end_at_the_limit_of_a_step(ran: Callable[..., tuple[Any, Any]], shop: FakeAgents) -> None:
    result, _ = ran("# über\nfor n in range(10_000):\n    bank_exchange_rate(currency=str(n))", max_calls=5)
    assert len(shop.called) == 4  # the program is a call too
    assert result["calls"][-1]["error"] == "line 3: the program was stopped before it made more than 4 calls"


def test_a_failed_call_can_be_caught(ran: Callable[..., tuple[Any, Any]], shop: FakeAgents) -> None:
    shop.broken = {"exchange_rate"}
    result, _ = ran(
        "try:\n    bank_exchange_rate(currency='USD')\nexcept RuntimeError as error:\n    print('no:', error)"
    )
    assert "out of order" in result["calls"][0]["error"]
    assert result["calls"][1]["output"].startswith("no: ")
    assert result["status"] == "failed"  # no call has succeeded


def test_a_program_that_fails_says_what_was_done_before(ran: Callable[..., tuple[Any, Any]], shop: FakeAgents) -> None:
    result, _ = ran("bank_exchange_rate(currency='USD')\n1 / 0")
    assert shop.called == ["exchange_rate"]
    assert "made 1 call: do not repeat" in result["calls"][-1]["error"]


def test_what_a_program_prints_can_be_stored_in_a_database(ran: Callable[..., tuple[Any, Any]]) -> None:
    result, _ = ran("print('a\\0b')")
    assert result["calls"][-1]["output"] == "a?b"


def test_a_value_that_cannot_be_written_does_not_lose_the_calls(ran: Callable[..., tuple[Any, Any]]) -> None:
    result, _ = ran("bank_exchange_rate(currency='USD')\n10**5000")
    assert [call["tool"] for call in result["calls"]] == ["bank/exchange_rate", "run_program"]
    assert "cannot be shown" in result["result"]


@pytest.mark.parametrize(
    ("code", "made", "told"),
    [
        ("for n in range(20):\n    print('x' * 30_000)\n    bank_exchange_rate(currency=str(n))", 3, "MemoryError"),
        ("x = 'x' * 5_000_000\nbank_exchange_rate(currency='USD')", 0, "line 2: MemoryError"),
    ],
)
def test_what_is_stored_at_each_call_is_bounded(
    ran: Callable[..., tuple[Any, Any]], shop: FakeAgents, code: str, made: int, told: str
) -> None:
    result, _ = ran(code)
    assert len(shop.called) == made
    assert told in result["calls"][-1]["error"]


async def test_each_call_is_streamed(catalog: Loaded) -> None:
    written = calls("run_program", code="bank_exchange_rate(currency='USD')")
    model = ScriptedModel(replies=[written, AIMessage("Done.")])
    app: Any = create_supervisor(catalog, worker_model=model, settings=settings()).compile()
    given = {"messages": [HumanMessage(RATE)]}
    events = [event async for _, event in app.astream(given, stream_mode="custom", subgraphs=True)]
    begun, ended = (event for event in events if event["event"] in ("tool_started", "tool_finished"))
    assert [(event["tool"], event["step_id"]) for event in (begun, ended)] == [("bank/exchange_rate", "1")] * 2
    assert (begun["args"], ended["status"]) == ({"currency": "USD"}, "success")


def test_values_of_earlier_steps_are_variables(catalog: Loaded, shop: FakeAgents) -> None:
    planner = ScriptedModel(replies=[planned(("1", RATE, []), ("2", "write a note with it", ["1"]))])
    programs = {"rate": "bank_exchange_rate(currency='USD')", "note": "notebook_write_note(text=results['1'])"}

    def reply(messages: Any) -> AIMessage:
        if messages[-1].type == "tool":
            return AIMessage(unlabelled(messages[-1]))
        word = "note" if "note" in own_steps(messages[-1].text).splitlines()[0] else "rate"
        return calls("run_program", code=programs[word])  # type: ignore[no-any-return]

    worker = ScriptedModel(replies=[reply])
    app = create_supervisor(catalog, planner_model=planner, worker_model=worker, settings=settings()).compile()
    state = app.invoke({"messages": [HumanMessage(f"{RATE} and write a note with it")]})
    assert state["results"]["2"]["calls"][0]["args"] == {"text": "1 USD = 0.9 EUR"}


def test_a_second_program_of_a_turn_is_refused(catalog: Loaded, shop: FakeAgents) -> None:
    both = calls("run_program", code="bank_exchange_rate(currency='USD')")
    both.tool_calls.append({**both.tool_calls[0], "id": "second"})
    model = ScriptedModel(replies=[both, AIMessage("Done.")])
    app = create_supervisor(catalog, worker_model=model, settings=settings()).compile()
    app.invoke({"messages": [HumanMessage(RATE)]})
    assert shop.called == ["exchange_rate"]
    assert "one program at a time" in model.shown[-1]["messages"][-1].text


def test_code_mode_has_no_effect_without_a_model(catalog: Loaded) -> None:
    said = [
        create_supervisor(catalog, settings=settings(code_mode=on)).compile().invoke({"messages": [HumanMessage(RATE)]})
        for on in (True, False)
    ]
    assert said[0]["results"] == said[1]["results"]
    assert said[0]["messages"][-1].text == said[1]["messages"][-1].text


class Vault:
    """Tools with secrets, one that is optional and one that is required; and one whose data differ from its text."""

    def __init__(self) -> None:
        self.called: list[dict[str, Any]] = []

    def agents(self) -> Any:
        def open_box(**args: Any) -> Any:
            self.called.append(args)
            return "opened"

        def read_box(**args: Any) -> Any:
            return "three coins"

        def schema(required: list[str]) -> dict[str, Any]:
            key = {"type": "string", "format": "password"}
            return {"type": "object", "properties": {"box": {"type": "string"}, "api_key": key}, "required": required}

        tools = [
            StructuredTool(name="open", description="Opens a box.", args_schema=schema(["box"]), func=open_box),
            StructuredTool(
                name="seal", description="Seals a box.", args_schema=schema(["box", "api_key"]), func=open_box
            ),
            StructuredTool(name="read", description="Reads a box.", args_schema=schema([]), func=read_box),
        ]
        for one in tools:
            one.metadata = {"callsheet/approval": "never"}
        return {"vault": tools}


def in_vault(code: str) -> tuple[Vault, Any]:
    vault = Vault()
    model = ScriptedModel(replies=[calls("run_program", code=code), lambda told: ended(told[-1])])
    app = create_supervisor(vault.agents(), worker_model=model, settings=Settings(planning="none", tool_floor=0))
    state = app.compile().invoke({"messages": [HumanMessage("open, seal and read a box in the vault")]})
    return vault, state["results"]["1"]


def test_a_tool_with_an_optional_secret_is_called_without_it() -> None:
    vault, result = in_vault("[vault_open(box=b) for b in ('a', 'b')]")
    assert vault.called == [{"box": "a"}, {"box": "b"}]
    assert result["result"] == '["opened", "opened"]'


def test_a_secret_cannot_be_given_in_a_program() -> None:
    vault, result = in_vault("vault_open(box='a', api_key='k-123')")
    assert vault.called == []
    assert "api_key" in result["calls"][-1]["error"]


def test_a_tool_that_requires_a_secret_says_why_no_program_may_call_it() -> None:
    vault, result = in_vault("vault_seal(box='a')")
    assert vault.called == []
    assert "vault_seal takes a secret, which no program may hold: call the tool itself" in result["calls"][-1]["error"]


@pytest.mark.parametrize(
    ("answer", "value"), [("three coins", "str"), ('{"coins": 3}', "dict"), ("[1, 2]", "list"), ("7", "int")]
)
def test_a_program_gets_values_as_the_model_saw_them(
    shop: FakeAgents,
    catalog: Loaded,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    value: str,
) -> None:
    monkeypatch.setattr(shop, "_done", lambda *_, **__: answer)
    code = "type(bank_exchange_rate(currency='USD')).__name__"
    model = ScriptedModel(replies=[calls("run_program", code=code), lambda told: ended(told[-1])])
    app = create_supervisor(catalog, worker_model=model, settings=settings()).compile()
    assert app.invoke({"messages": [HumanMessage(RATE)]})["results"]["1"]["result"] == value


async def test_the_sandbox_does_not_block_the_event_loop() -> None:
    sandbox = Sandbox(["rate"], "from typing import Any\ndef rate() -> Any: ...\n")
    with blockbuster_ctx():
        at = await sandbox.start("rate() + 1", {})
        assert await sandbox.proceed(at.snapshot, {"return_value": 1}) == Pause("", value=2)


async def test_texts_that_cannot_be_encoded_end_no_program() -> None:
    lone = "a \ud800 b"
    sandbox = Sandbox(("look_up",), "given: str\ndef look_up(*, word: str) -> object: ...")
    code = "try:\n    look_up(word=given)\nexcept RuntimeError as error:\n    print(error)"
    at = await sandbox.start(code, {"given": lone})
    assert at.args == {"word": "a ? b"}
    assert await sandbox.proceed(at.snapshot, {"exc_type": "RuntimeError", "message": lone}) == Pause("a ? b\n")
