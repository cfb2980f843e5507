"""The pictures in the README and in docs/concepts/how-it-works.md are those that LangGraph draws of the workflow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from callsheet import Catalog, create_supervisor

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "inside"), [("README.md", False), ("docs/concepts/how-it-works.md", True)])
def test_the_documented_workflow_is_the_one_that_langgraph_draws(page: str, *, inside: bool) -> None:
    drawn = create_supervisor(Catalog()).compile().get_graph(xray=inside).draw_mermaid()
    shown = re.search(r"```mermaid\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert shown.group(1).strip() == drawn.strip()
