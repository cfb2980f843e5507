"""A program that is cut off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from callsheet.orchestrator.step import StepNodes
from power_cut import PowerCut


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[None]]:
    """Starts a request and cuts the program off when tools were picked and their worker is about to start."""

    async def start(workflow: Any, request: str, memory: Any, config: Any) -> None:
        def cut(*_: Any) -> Any:
            raise PowerCut

        with monkeypatch.context() as patch:
            patch.setattr(StepNodes, "_worked", cut)
            with pytest.raises(PowerCut):
                await workflow.compile(checkpointer=memory).ainvoke({"messages": [HumanMessage(request)]}, config)

    return start
