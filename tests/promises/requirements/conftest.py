"""A fleet of servers whose words a test can change, and a program that is cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from callsheet.orchestrator.step import StepNodes
from fleet import Fleet, empty_fleet


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """An empty fleet, with a home of its own for agreements, pins and indexes; every reading asks its servers."""
    return empty_fleet(tmp_path, monkeypatch)


class PowerCut(BaseException):
    """What no handler may swallow."""


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a request and cuts the program off when tools were picked and their worker is about to start."""

    async def start(workflow: Any, request: str, memory: Any, config: Any) -> None:
        def cut(*_: Any) -> Any:
            raise PowerCut

        with monkeypatch.context() as patch:
            patch.setattr(StepNodes, "_worked", cut)
            with pytest.raises(PowerCut):
                await workflow.compile(checkpointer=memory).ainvoke({"messages": [HumanMessage(request)]}, config)

    return start
