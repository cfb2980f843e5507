"""What a user says of one MCP server, beside how it is reached."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from callsheet.graphs.catalog.model import Record


class Terms(Record):
    """The object under ``callsheet`` of a server's entry in an ``mcp.json``; other programs pass it over.

    Attributes:
        trusted: Whether the server's hints about its tools (``readOnlyHint``, ``idempotentHint``) are believed.
        limits: Limits of its own, by their names (``call``, ``output`` ...).
        tools: The same for single tools, by the tools' names.
        roots: Folders that its path-like arguments must stay in; anywhere where there are none.
        approval: Whether a person is asked before its tools are called: ``always``, ``never``, or if they are
            ``risky``; as the run says where it is missing.
    """

    trusted: bool = False
    limits: dict[str, float] = Field(default_factory=dict)
    tools: dict[str, dict[str, float]] = Field(default_factory=dict)
    roots: tuple[str, ...] = ()
    approval: Literal["always", "risky", "never"] | None = None
