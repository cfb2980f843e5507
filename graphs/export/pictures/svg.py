"""The colours of dependencies."""

from __future__ import annotations

from importlib.resources import files


def asset(name: str) -> str:
    """The content of a style sheet."""
    return files("callsheet.graphs.export.pictures").joinpath("files", name).read_text(encoding="utf-8")
