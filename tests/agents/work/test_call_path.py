"""The way of a call from the model's reply to the server: few frames, one check of the arguments, two digests."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp.client.session import ClientSession

import callsheet
from callsheet import Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.agents.calls.call_context import LOOP
from callsheet.agents.safety import arguments
from callsheet.agents.servers.catalogs.catalog_sources import load_servers
from callsheet.graphs import load
from callsheet.graphs.trust import pins
from scripted_model import ScriptedModel, calls, ended, planned
from servers import HANG, Servers

STEP = "do the work of the office"
THREAD: Any = {"configurable": {"thread_id": "1"}}
SENT = [
    "StepToolsMiddleware.awrap_tool_call",
    "_answer_of_call",
    "make_call",
    "_sent",
    "BoundTool._arun",
    "ToolRegistry._sender.<locals>.send",
    "BackgroundLoop.awaited",
    "SessionPool._call",
    "Session.ask",
    "ServerQuestions.answered",
    "Session._exchange",
]
"""The frames of a call that nobody has to be asked about, outermost first."""
APPROVED = [*SENT[:3], "_send", *SENT[3:]]
"""Those of a call that a person has approved: it is sent by a node of its own, after a checkpoint."""


class CallTrace:
    """What happens from a reply of the model, or from a person's answer, until a call is sent.

    Attributes:
        frames: The names of our functions that are active when the call is sent, and were not before.
        counts: How often arguments were validated, digests made, and assurances looked up since then.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.frames: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._loop, self._before = loop, set[str]()

    def begin(self) -> None:
        """Begins at this point."""
        self.counts.clear()
        self._before = self._active()

    def sent(self) -> None:
        """Ends at this point."""
        self.frames = self._active() - self._before

    def counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function, whose calls are counted under a name."""

        def function(*args: Any, **more: Any) -> Any:
            self.counts[name] += 1
            return real(*args, **more)

        return function

    def _active(self) -> set[str]:
        """Returns the names of our functions that are running or wait, on the run's loop and on that of the servers."""
        frames = list(_running())
        for loop in (self._loop, LOOP._loop):
            if loop is not None:
                frames += _waiting_on(loop)
        return {frame.f_code.co_qualname for frame in frames if _is_ours(frame)}


def _waiting_on(loop: asyncio.AbstractEventLoop) -> list[FrameType]:
    """The frames of all tasks of a loop, when none of them runs but the present one."""

    async def look() -> list[FrameType]:
        return [frame for task in asyncio.all_tasks() for frame in _waiting(task)]

    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is loop:
        return [frame for task in asyncio.all_tasks() for frame in _waiting(task)]
    return asyncio.run_coroutine_threadsafe(look(), loop).result(HANG)


def _running() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _waiting(task: asyncio.Task[Any]) -> Iterator[FrameType]:
    """The frames of a task's coroutine, and of those that it awaits."""
    awaitable: Any = task.get_coro()
    while awaitable is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(awaitable, f"{kind}_frame")), None)
        frame = getattr(awaitable, f"{kind}_frame", None)
        if frame is not None:
            yield frame
        awaitable = getattr(awaitable, "gi_yieldfrom" if kind == "gi" else f"{kind}_await", None)


def _is_ours(frame: FrameType) -> bool:
    folder = Path(callsheet.__file__).resolve().parents[1]
    file = Path(frame.f_code.co_filename).resolve()
    return file.is_relative_to(folder / "agents") or file.is_relative_to(folder / "orchestrator")


@pytest.fixture
async def trace(monkeypatch: pytest.MonkeyPatch) -> CallTrace:
    trace = CallTrace(asyncio.get_running_loop())
    for name, real in (("digests", pins.digest), ("validations", arguments.fit_of)):
        counted = trace.counted(name, real)
        for module in list(sys.modules.values()):
            # Not in ``pins`` itself: a server's listing, which a resumed run asks for again, is no part of the call.
            if vars(module).get(real.__name__) is real and module is not pins:
                monkeypatch.setattr(module, real.__name__, counted)
    monkeypatch.setattr(ToolRegistry, "assurance", trace.counted("assurances", ToolRegistry.assurance))
    send = ClientSession.send_request

    def traced(session: Any, request: Any, *args: Any, **more: Any) -> Any:
        if request.method == "tools/call":
            trace.sent()
        return send(session, request, *args, **more)

    monkeypatch.setattr(ClientSession, "send_request", traced)
    return trace


@pytest.fixture
async def app(trace: CallTrace, tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """A supervisor whose worker calls one tool twice; the second call finds the server running, as most calls do."""
    registries: list[ToolRegistry] = []

    def reply(messages: Any) -> AIMessage:
        made = sum(isinstance(message, ToolMessage) for message in messages)
        if made == 2:
            return ended(messages[-1])
        trace.begin()
        return calls("office_work", x=made)

    def make(**server: Any) -> Any:
        loaded = load(load_servers({"office": Servers(tmp_path).stdio("ok", **server)}, anew=True))
        registry = ToolRegistry.from_catalog(loaded)
        registries.append(registry)
        planner = ScriptedModel(replies=[planned(("1", STEP, []))])
        workflow = create_supervisor(
            loaded,
            planner_model=planner,
            worker_model=ScriptedModel(replies=[reply]),
            registry=registry,
            settings=Settings(),
        )
        return workflow.compile(checkpointer=InMemorySaver())

    yield make
    for registry in registries:
        await asyncio.to_thread(registry.pool.close)


async def test_a_harmless_call_passes_eleven_frames(trace: CallTrace, app: Callable[..., Any]) -> None:
    state = await app(reads=("work",)).ainvoke({"messages": [HumanMessage(STEP)]}, THREAD)
    assert state["results"]["1"]["status"] == "done"
    assert trace.frames == set(SENT)
    assert trace.counts == {"validations": 1, "digests": 1, "assurances": 1}


async def test_an_approved_call_passes_twelve_frames(trace: CallTrace, app: Callable[..., Any]) -> None:
    supervisor = app()
    state = await supervisor.ainvoke({"messages": [HumanMessage(STEP)]}, THREAD)
    state = await supervisor.ainvoke(Command(resume={"type": "approve"}), THREAD)
    asked = Counter(trace.counts)
    (question,) = state["__interrupt__"]
    trace.counts.clear()
    state = await supervisor.ainvoke(Command(resume={question.id: {"type": "approve"}}), THREAD)
    assert state["results"]["1"]["status"] == "done"
    assert trace.frames == set(APPROVED)
    assert len(APPROVED) == 12
    assert asked == {"validations": 1, "digests": 2, "assurances": 1}
    # The run begins anew with the answer: its tools are bound again, and the call is checked once more.
    assert trace.counts == {"validations": 1, "digests": 2, "assurances": 2}
