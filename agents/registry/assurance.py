"""Whether a call needs approval, and who decides that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from callsheet.agents.safety.tool_effects import Harm, harm_of
from callsheet.agents.servers.in_process import InProcess
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.server_config import APPROVAL, ApprovalPolicy, ServerConfig
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.trust.policy import hints

__all__ = ["ApprovalPolicy", "Assurance", "assurance_of"]
_DESTROYS = "This tool may delete or overwrite something"


@dataclass(frozen=True, slots=True)
class Assurance:
    """What trusted sources say about one tool.

    Attributes:
        doubt: Why a person should check its calls, as a sentence; empty if it is known to be harmless.
        repeatable: Whether two calls have the same effect as one.
        rule: The policy for this tool in the catalog; None if there is none.
        callable: Whether the tool is connected.
        harm: What a call may do, according to the tool's hints and name.
        allowed: Whether the user named the tool in the catalog as one whose calls need no approval.
    """

    doubt: str = ""
    repeatable: bool = False
    rule: ApprovalPolicy | None = None
    callable: bool = True
    harm: Harm = "change"
    allowed: bool = False

    def why(self, policy: ApprovalPolicy) -> str:
        """Why a call needs approval, as a sentence; empty if it needs none.

        ``always``, of the run or of the tool, overrides ``never``. Otherwise one ``never``, or the tool's name in
        the catalog, is enough.
        """
        if "always" in (policy, self.rule):
            whose = "run" if policy == "always" else "tool"
            return self.doubt or f"This {whose} is set to ask before every call."
        return "" if self.allowed or "never" in (policy, self.rule) else self.doubt


def assurance_of(tool: Tool, connection: object, *, trusted: bool) -> Assurance:
    """What is known about a tool, by its connection.

    Hints are claims of their author. The hints of a server count if the user trusts it, those of a tool in this process
    always. Other hints can only tighten: an untrusted ``readOnlyHint`` has no effect.

    Args:
        tool: The tool.
        connection: ``ServerConfig`` or ``InProcess``; with anything else the tool cannot be called.
        trusted: Whether the agent's hints are trusted.

    Raises:
        CatalogError: The tool's ``callsheet/approval`` is not a policy.
    """
    allowed = False
    match connection:
        case ServerConfig():
            rule, allowed = connection.callsheet.approval, tool.name in connection.callsheet.allow
        case InProcess() if tool.name in connection.tools:
            rule, trusted = connection.options.approval or _rule(tool, connection.tools[tool.name].metadata), True
            allowed = tool.name in connection.options.allow
        case _:
            return Assurance(callable=False)
    told = hints(tool, trusted=trusted)
    harm = harm_of(tool, trusted=trusted)
    return Assurance(
        doubt=_doubt(tool, harm, only_reads=told["readOnlyHint"]),
        repeatable=told["idempotentHint"],
        rule=rule,
        harm=harm,
        allowed=allowed,
    )


def _rule(tool: Tool, metadata: dict[str, Any] | None) -> ApprovalPolicy | None:
    rule: Any = (metadata or {}).get(APPROVAL)
    if rule is not None and rule not in (words := get_args(ApprovalPolicy)):
        raise CatalogError(f"tool {tool.id!r}: {APPROVAL} is {rule!r}: write one of {', '.join(words)}")
    found: ApprovalPolicy | None = rule
    return found


def _doubt(tool: Tool, harm: Harm, *, only_reads: bool) -> str:
    claimed = tool.annotations.get("readOnlyHint") is True
    if tool.annotations.get("destructiveHint") is True:
        return f"{_DESTROYS}{', although it is also marked as read-only' if claimed else ''}."
    if only_reads:
        return ""
    if claimed:
        return "The server marks this tool as read-only, but the server is not trusted."
    if harm == "destroy":
        return f"{_DESTROYS}."
    return "This tool may change something: it is not marked as read-only."
