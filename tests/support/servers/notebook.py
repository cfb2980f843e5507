"""An agent whose calls are counted, and which nobody says is harmless."""

from __future__ import annotations

import threading

from langchain_core.tools import StructuredTool

from callsheet.graphs import Loaded
from small import outside


class Notebook:
    """Takes notes.

    Attributes:
        notes: What it was given so far.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._lock = threading.Lock()

    @property
    def agents(self) -> Loaded:
        """What ``create_supervisor`` takes, as if it came from outside."""

        def add_note(text: str) -> str:
            """Adds a note with a text to the notebook."""
            with self._lock:
                self.notes.append(text)
            return f"noted: {text}"

        return outside({"notebook": [StructuredTool.from_function(add_note)]})
