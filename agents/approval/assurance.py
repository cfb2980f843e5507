"""Whether a call needs a person, and by whose word it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from callsheet.agents.safety.tool_effects import Harm, harm_of
from callsheet.agents.tools.in_process import InProcess
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.trust.policy_rules import hints

ApprovalPolicy = Literal["always", "risky", "never"]
"""Which calls a person is asked about: all, those of tools that are not known to be harmless, or none."""
APPROVAL = "callsheet/approval"
"""Where the author of a LangChain tool says so for that tool: ``metadata={"callsheet/approval": "never"}``."""


@dataclass(frozen=True, slots=True)
class Assurance:
    """What words that the user trusts say of one tool.

    Attributes:
        doubt: Why a person should look at its calls; empty if it is known to be harmless.
        repeatable: Whether calling it twice does no more than calling it once.
        rule: What the catalog's owner set for it; None where nothing.
        callable: Whether it is connected at all.
        harm: What a call may do, as far as its hints and its name say.
    """

    doubt: str = ""
    repeatable: bool = False
    rule: ApprovalPolicy | None = None
    callable: bool = True
    harm: Harm = "change"

    def why(self, policy: ApprovalPolicy, *, by_rules: bool = False) -> str:
        """Why a call needs a person; empty if it needs none.

        Neither the run nor the owner can loosen the other's ``always``; either's ``never`` is enough for the rest.

        Args:
            policy: The run's.
            by_rules: Whether rules alone decided on the call: the tool's own ``never`` is then no leave to destroy.
        """
        if by_rules and self.harm == "destroy" and policy != "never":
            return self.doubt or "it may destroy something"
        if "always" in (policy, self.rule):
            whose = "for this run" if policy == "always" else "for this tool"
            return self.doubt or f"every call is to be approved {whose}"
        return "" if "never" in (policy, self.rule) else self.doubt


def assurance_of(tool: Tool, connection: object, *, trusted: bool) -> Assurance:
    """What is known of a tool by its connection.

    Hints are their author's words. A server's count if the user trusts the server; a tool of this process was given
    by the author himself. Without trust they only tighten: a hint that only reading is done is then no such word.

    Args:
        tool: The tool.
        connection: How its agent is reached (``ServerConfig``, ``InProcess``); anything else cannot be called.
        trusted: Whether the agent's hints are believed.

    Raises:
        CatalogError: Its author's ``callsheet/approval`` is none of the three words.
    """
    match connection:
        case ServerConfig():
            rule = connection.callsheet.approval
        case InProcess() if tool.name in connection.tools:
            rule, trusted = _rule(tool, connection.tools[tool.name].metadata), True
        case _:
            return Assurance(callable=False)
    told = hints(tool, trusted=trusted)
    return Assurance(
        doubt=_doubt(tool, trusted, only_reads=told["readOnlyHint"]),
        repeatable=told["idempotentHint"],
        rule=rule,
        harm=harm_of(tool, trusted=trusted),
    )


def _rule(tool: Tool, metadata: dict[str, Any] | None) -> ApprovalPolicy | None:
    rule: Any = (metadata or {}).get(APPROVAL)
    if rule is not None and rule not in (words := get_args(ApprovalPolicy)):
        raise CatalogError(f"tool {tool.id!r}: {APPROVAL} is {rule!r}: write one of {', '.join(words)}")
    found: ApprovalPolicy | None = rule
    return found


def _doubt(tool: Tool, trusted: bool, *, only_reads: bool) -> str:
    claimed = tool.annotations.get("readOnlyHint") is True
    if tool.annotations.get("destructiveHint") is True:
        also = ", though also that it only reads" if claimed else ""
        return f"it may destroy something, as is said of it (destructiveHint){also}"
    if only_reads:
        return ""
    if claimed:
        return "its server says that it only reads (readOnlyHint), but nobody says that the server is to be trusted"
    return "it may change something: nobody who is trusted says that it only reads (readOnlyHint)"
