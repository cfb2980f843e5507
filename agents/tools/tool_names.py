"""Names of tools for a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from hashlib import sha256

from callsheet.graphs.catalog.model import Tool

NEED_TOOL = "need_tool"
"""The tool by which a worker asks for more tools; no tool of the catalog gets this name."""
READ_RESULT = "read_result"
"""The tool by which a worker reads a long result; no tool of the catalog gets this name."""
RUN_PROGRAM = "run_program"
"""The tool by which a worker runs a program; no tool of the catalog gets this name."""
_LONGEST_NAME, _DIGEST = 64, 16
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
# Otherwise a server could give a tool the name that another server's tool gets.
_DIGESTED = re.compile(r"_[0-9a-f]{16}$")


def model_names(tools: Sequence[Tool], *, beside: Collection[str] = ()) -> list[str]:
    """A unique name for each tool that every model provider accepts: ``^[a-zA-Z0-9_-]{1,64}$``.

    It is the tool's own name if that is unique among these tools and ``beside``, otherwise ``agent__tool``. A digest of
    the id is added if the name is still not unique, is too long, or ends like a digest.
    """
    bare = [_fit(tool.name, tool.id) for tool in tools]
    taken = (*beside, NEED_TOOL, READ_RESULT, RUN_PROGRAM)
    seen = Counter((*bare, *taken))
    names = [
        name if seen[name] == 1 else _fit(f"{tool.agent}__{tool.name}", tool.id)
        for name, tool in zip(bare, tools, strict=True)
    ]
    seen = Counter((*names, *taken))
    return [name if seen[name] == 1 else _digested(name, tool.id) for name, tool in zip(names, tools, strict=True)]


def names_of(agent: str, name: str) -> tuple[str, ...]:
    """All names that ``model_names`` may give to a tool."""
    tool_id = f"{agent}/{name}"
    bare, owned = _fit(name, tool_id), _fit(f"{agent}__{name}", tool_id)
    return bare, owned, _digested(owned, tool_id)


def _fit(name: str, tool_id: str) -> str:
    fit = _UNFIT.sub("_", name)
    return fit if len(fit) <= _LONGEST_NAME and not _DIGESTED.search(fit) else _digested(fit, tool_id)


def _digested(name: str, tool_id: str) -> str:
    digest = sha256(tool_id.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST_NAME - _DIGEST - 1]}_{digest}"
