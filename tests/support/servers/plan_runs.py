"""Tasks played over the real fleet, in any planning mode, each over data laid out anew."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.fleet import SANDBOX, World, moved, opened
from callsheet import Settings, create_supervisor
from fleet_model import deciding
from fleet_plans import PlanTask

SERVERS = ("filesystem", "memory", "sqlite", "git", "fetch", "texteditor", "units", "gitnode", "shell", "time", "math")
"""Those that the tasks need, and some that offer much the same."""
BOUNDS = {"max_steps": 12, "max_waves": 8, "max_items": 20, "token_budget": 20_000, "run_seconds": 600}


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a task.

    Attributes:
        state: The supervisor's at the end.
        reached: Whether the end state is there, and no step was left undone.
    """

    state: Mapping[str, Any]
    reached: bool


class PlanRuns:
    """The fleet, over a copy of its data.

    Args:
        config: The fleet's ``mcp.json``.
        scratch: Where the copy goes.
    """

    def __init__(self, config: Path, scratch: Path) -> None:
        self.pristine = config.resolve().parent / SANDBOX
        self.box = scratch / SANDBOX
        copy = moved(config, scratch)
        servers = json.loads(copy.read_text(encoding="utf-8"))["mcpServers"]
        copy.write_text(json.dumps({"mcpServers": {name: servers[name] for name in SERVERS}}), encoding="utf-8")
        self.world: World = opened(copy, scratch)

    async def play(self, task: PlanTask, planning: str) -> Played:
        """Plays a task with a model that decides from what it is shown."""
        word = secrets.token_hex(4)
        self.lay(task, word)
        state = await self.run(task.request.format(box=self.box), deciding(task.decide), planning=planning)
        done = all(result["status"] == "done" for result in state["results"].values())
        return Played(state, done and task.reached(self.box, word))

    def lay(self, task: PlanTask, word: str) -> None:
        """Lays out the data of a task."""
        shutil.rmtree(self.box)
        shutil.copytree(self.pristine, self.box)
        task.lay(self.box, word)

    async def run(self, request: str, model: BaseChatModel, **settings: Any) -> Mapping[str, Any]:
        """The state after a request; calls need no approval."""
        world = self.world
        workflow = create_supervisor(
            world.loaded,
            model=model,
            retriever=world.retriever,
            registry=world.registry,
            settings=Settings(**{**BOUNDS, "approval": "never", **settings}),
        )
        app: Any = workflow.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        await app.ainvoke({"messages": [HumanMessage(request)]}, config)
        state: Mapping[str, Any] = (await app.aget_state(config)).values
        return state
