"""An agent whose calls are counted, and which nobody says is harmless."""

from __future__ import annotations

import threading
from typing import Any

from langchain_core.tools import StructuredTool


class Notebook:
    """Takes notes.

    Attributes:
        notes: What it was given so far.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._lock = threading.Lock()

    @property
    def agents(self) -> dict[str, Any]:
        """What ``create_supervisor`` takes."""

        def add_note(text: str) -> str:
            """Adds a note with a text to the notebook."""
            with self._lock:
                self.notes.append(text)
            return f"noted: {text}"

        return {"notebook": [StructuredTool.from_function(add_note)]}
