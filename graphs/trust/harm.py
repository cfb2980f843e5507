"""Determines what harm a call of a tool may do, from declarations of a person or of a trusted server."""

from __future__ import annotations

from typing import Literal

from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.text.words import split_name

Harm = Literal["none", "change", "destroy"]
"""What a call of a tool may do, as far as is known: nothing, change something, or destroy something."""

_DESTROYS = frozenset(
    "clean clear delete destroy discard drop erase kill overwrite purge remove reset revoke terminate "
    "truncate uninstall wipe".split()
)
_RUNS = frozenset("eval exec execute run".split())
_SHELLS = frozenset("bash cmd powershell shell terminal".split())
_PROGRAMS = _SHELLS | frozenset("code command commands python script".split())
"""Words in the names of tools that run any program: ``execute_command``, ``run_python``."""


def harm_of(tool: Tool, *, trusted: bool, vouched: bool = False) -> Harm:
    """Determines what harm a call of a tool may do; it is harmless only if somebody who is trusted declares so.

    Args:
        tool: The tool with the hints of its author. A hint that makes checks stricter always counts.
        trusted: Whether the hints are trusted. Then ``readOnlyHint`` makes the tool harmless, unless its name says that
            it destroys something.
        vouched: Whether a person has declared that the tool only reads; then its name does not matter.

    Returns:
        The harm. Words in a name never make it smaller: without a declaration, a tool may change something, and one
        that runs any program may destroy something.
    """
    words = frozenset(split_name(tool.name).split())
    if tool.annotations.get("destructiveHint") is True:
        return "destroy"
    if vouched:
        return "none"
    if _DESTROYS & words:
        return "destroy"
    if trusted and tool.annotations.get("readOnlyHint") is True:
        return "none"
    runs_programs = bool(_RUNS & words and _PROGRAMS & words)
    return "destroy" if runs_programs or tool.name.lower() in _SHELLS else "change"
