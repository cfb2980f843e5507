"""Four steps over three servers, one of which misbehaves, with a SQLite checkpointer; and what must hold then."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Overwrite

from callsheet import AgentGraphRetriever, Settings, create_supervisor
from callsheet.agents import Limits, ToolRegistry
from callsheet.agents.servers.catalogs.catalog_sources import load_servers
from callsheet.graphs import CallLedger, Loaded, ServerConfig, load
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from callsheet.graphs.trust.pins import PinBook
from callsheet.orchestrator.run.threads import take_up
from deciding_model import own_steps
from scripted_model import ScriptedModel, calls, planned
from servers import FIXTURES, HANG, HttpServer, alive, until

PATIENT = Limits(start=HANG, list=HANG, call=HANG, failures=50)
"""Only what hangs meets them, on a slow machine too."""
FIRST, FAULTY, BESIDE = "first", "faulty", "beside"
STEPS = (
    ("1", f"do the work of {FIRST}", []),
    ("2", f"do the work of {FAULTY}", ["1"]),
    ("3", f"do the work of {BESIDE}", ["1"]),
    ("4", f"do the work of {FIRST} again", ["2"]),
)
_OTHER_TOOLS = ("chaos:", "structured")
REQUEST = ", then ".join(text for _, text, _ in STEPS)


async def resume(app: Any, config: Any) -> dict[str, Any]:
    """Continues the last run of a thread, as ``callsheet ask --resume`` does; the final state."""
    if not await take_up(app, config):
        return dict((await app.aget_state(config)).values)
    state: dict[str, Any] = await app.ainvoke(None, config)
    return state


class Scenario:
    """Step 1, then 2 (faulty) beside 3, then 4, which needs 2.

    Args:
        folder: Where logs and the database are.
        minilm: The embedder.
        limits: Of all exchanges.
        trusted: Whether the hints of the faulty server are believed.
        own: Limits of the faulty server alone.
        pinned: Whether a changed definition is left out, or taken over.
        approval: Which calls a person is asked about.
        http: The faulty server, where it is to be this one; its mode ``down`` means that it does not run.
        tag: By which processes are known, where another program made them.
    """

    def __init__(
        self,
        folder: Path,
        minilm: Any,
        *,
        limits: Limits | None = None,
        trusted: bool = False,
        own: Mapping[str, float] | None = None,
        pinned: bool = False,
        approval: Any = "never",
        http: HttpServer | None = None,
        tag: str = "",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.tag = folder, tag or f"callsheet-{uuid.uuid4().hex}"
        self.http = http
        self._pins = PinBook(folder / "pins.json") if pinned else None
        self.config: Any = {"configurable": {"thread_id": "1"}}
        self.settings = Settings(agents=10, tools=20, approval=approval)
        self.limits = limits or PATIENT
        self._minilm, self._terms = minilm, ServerOptions(trusted=trusted, limits=dict(own or {}))
        self._trusted = trusted
        self.args: dict[str, Any] = {"x": 1}  # of the faulty server's call
        for agent in (FIRST, FAULTY, BESIDE):
            self.be(agent, "ok")
        self.loaded: Loaded
        self.read()

    def be(self, agent: str, mode: str) -> None:
        """What a server is from its next start on."""
        if self.http is None or agent != FAULTY:
            (self.folder / f"{agent}.mode").write_text(mode)
        elif mode == "down":
            self.http.kill()
        else:
            self.http.start(mode)

    def servers(self) -> dict[str, ServerConfig]:
        """How they are reached."""
        return {agent: self._server(agent) for agent in (FIRST, FAULTY, BESIDE)}

    def read(self) -> None:
        """Reads the catalog, as a new program would; nobody hurries it."""
        servers = {
            agent: server.model_copy(update={"callsheet": ServerOptions()}) for agent, server in self.servers().items()
        }
        part = load_servers(servers, limits=PATIENT, pins=self._pins, anew=True)
        self.loaded = load(replace(part, connections={agent: self._server(agent) for agent in part.connections}))

    def count(self, agent: str, what: str = "call") -> int:
        """How often something is in the log of a server."""
        log = self.http.log if self.http and agent == FAULTY else self.folder / f"{agent}.log"
        return log.read_text().count(what) if log.exists() else 0

    @asynccontextmanager
    async def app(self) -> AsyncIterator[Any]:
        """The supervisor as a new program would make it, over the same database."""
        registry = ToolRegistry.from_catalog(self.loaded, limits=self.limits)
        retriever = AgentGraphRetriever.from_catalog(self.loaded, embeddings=self._minilm, index=":memory:")
        planner, worker = ScriptedModel(replies=[planned(*STEPS)]), ScriptedModel(replies=[])
        worker.replies.append(lambda messages: self._reply(worker, messages))
        workflow = create_supervisor(
            self.loaded,
            planner_model=planner,
            worker_model=worker,
            retriever=retriever,
            registry=registry,
            settings=self.settings,
        )
        async with AsyncSqliteSaver.from_conn_string(str(self.folder / "threads.sqlite")) as memory:
            yield workflow.compile(checkpointer=memory)
            await asyncio.to_thread(registry.pool.close)

    async def run(self) -> dict[str, Any]:
        """One request, from its start to its end."""
        async with self.app() as app:
            state: dict[str, Any] = await app.ainvoke({"messages": [HumanMessage(REQUEST)]}, self.config)
        return state

    async def resumed(self, *, again: bool = False) -> dict[str, Any]:
        """The same thread taken up by another program; ``again``, after a person has checked unknown outcomes."""
        async with self.app() as app:
            if again:
                ledger = CallLedger("")
                for entry in ledger.unsettled():
                    ledger.settle(entry.id, "not-done")
                results = (await app.aget_state(self.config)).values["results"]
                done = {step: result for step, result in results.items() if result["status"] == "done"}
                await app.aupdate_state(self.config, {"results": Overwrite(done)}, as_node="plan")
            return await resume(app, self.config)

    async def kept(self) -> dict[str, str]:
        """Step -> status, as the database has it."""
        async with AsyncSqliteSaver.from_conn_string(str(self.folder / "threads.sqlite")) as memory:
            found = await memory.aget_tuple(self.config)
        results = found.checkpoint["channel_values"].get("results", {}) if found else {}
        return {step: result["status"] for step, result in results.items()}

    async def written(self) -> set[str]:
        """The steps whose result is in the database: in its checkpoint, or beside it until the next."""
        async with AsyncSqliteSaver.from_conn_string(str(self.folder / "threads.sqlite")) as memory:
            found = await memory.aget_tuple(self.config)
        if found is None:
            return set()
        beside = [value for _, channel, value in found.pending_writes or () if channel == "results"]
        return set().union(found.checkpoint["channel_values"].get("results", {}), *beside)

    async def survives(self, *kinds: str, mode: str, status: str = "failed") -> dict[str, Any]:
        """Runs it with the faulty server in a mode and checks the five things that must hold whatever it does.

        Args:
            kinds: What the failure may be called.
            mode: What the server does.
            status: What becomes of step 2.

        Returns:
            The result of step 2.
        """
        self.be(FAULTY, mode)
        if mode.startswith("chaos:"):
            self.args = {"x": "1"}
        if mode.startswith(_OTHER_TOOLS):
            await asyncio.to_thread(self.read)
        state = await self.run()
        result: dict[str, Any] = state["results"]["2"]
        # Independent branches end, and state before the fault is in the checkpoint.
        assert {i: r["status"] for i, r in state["results"].items()} == {
            "1": "done",
            "2": status,
            "3": "done",
            "4": "done" if status == "done" else "skipped",
        }, (mode, state["results"])
        assert await self.kept() == {i: r["status"] for i, r in state["results"].items()}
        # The error names server, tool and kind.
        if status != "done":
            call = result["calls"][-1]
            assert call["kind"] in kinds, (mode, call)
            assert f"agent {FAULTY!r}, tool 'work'" in result["error"], (mode, result["error"])
            assert "ExceptionGroup" not in result["error"]
            assert "CancelledError" not in result["error"]
        # No process is left.
        assert until(lambda: not alive(self.tag)), (mode, alive(self.tag))
        # Resuming does not repeat what is done, and does what is left.
        before = (self.count(FIRST), self.count(BESIDE))
        self.be(FAULTY, "ok")
        self.limits, self._terms = PATIENT, ServerOptions(trusted=self._trusted)
        self.args = {"x": 1}
        await asyncio.to_thread(self.read)
        if again := status == "outcome_unknown":
            assert (await self.resumed())["results"]["2"]["status"] == status
        state = await self.resumed(again=again)
        assert {i: r["status"] for i, r in state["results"].items()} == dict.fromkeys("1234", "done"), mode
        assert (self.count(FIRST), self.count(BESIDE)) == (before[0] + (status != "done"), before[1])
        assert until(lambda: not alive(self.tag)), (mode, alive(self.tag))
        return result

    def _server(self, agent: str) -> ServerConfig:
        args = ("-S", str(FIXTURES / "fault_server.py"), f"@{self.folder / agent}.mode", "30000000", self.tag)
        env = {"FAULT_LOG": str(self.folder / f"{agent}.log"), "FAULT_TAG": self.tag}
        terms = self._terms if agent == FAULTY else ServerOptions()
        if self.http and agent == FAULTY:
            return self.http.config.model_copy(update={"callsheet": terms})
        return ServerConfig(command=sys.executable, args=args, env=env, callsheet=terms)

    def _reply(self, worker: ScriptedModel, messages: Any) -> AIMessage:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            failed = calls("finish", status="cannot", answer=f"It failed: {last.text}")
            return AIMessage("done") if last.status == "success" else failed
        agent = next(agent for agent in (FIRST, FAULTY, BESIDE) if agent in own_steps(last.text).splitlines()[0])
        offered = worker.shown[-1]["tools"]
        name = f"{agent}_work"
        args = self.args if agent == FAULTY else {"x": 1}
        missing = calls("finish", status="cannot", answer=f"{name} is not there")
        return calls(name, **args) if name in offered else missing
