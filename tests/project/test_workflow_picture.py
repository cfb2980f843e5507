"""The picture in docs/concepts/how-it-works.md is the one that LangGraph draws of the workflow."""

from __future__ import annotations

import re
from pathlib import Path

from callsheet import Catalog, create_supervisor

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "how-it-works.md"


def test_the_documented_workflow_is_the_one_that_langgraph_draws() -> None:
    drawn = create_supervisor(Catalog()).compile().get_graph(xray=True).draw_mermaid()
    shown = re.search(r"```mermaid\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert shown.group(1).strip() == drawn.strip()
