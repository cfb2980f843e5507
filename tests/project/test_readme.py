"""The picture in the README is the one that the program draws."""

from __future__ import annotations

import re
from pathlib import Path

from callsheet import Catalog, create_supervisor

README = Path(__file__).parents[2] / "README.md"


def test_the_graph_in_the_readme_is_the_programs_own() -> None:
    drawn = create_supervisor(Catalog()).compile().get_graph(xray=True).draw_mermaid()
    shown = re.search(r"```mermaid\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert shown.group(1).strip() == drawn.strip()
