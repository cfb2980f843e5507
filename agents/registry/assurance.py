"""Determines from trusted sources what a call of a tool may do, and whether a person must approve it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.servers.in_process import InProcess, is_foreign
from callsheet.graphs.catalog.formats.server_config import APPROVAL, ApprovalPolicy, ServerConfig
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.trust.harm import Harm, harm_of

_MAY_CHANGE = "This tool may change something"
_MAY_DESTROY = "This tool may delete or overwrite something"


@dataclass(frozen=True, slots=True)
class Assurance:
    """What trusted sources state about one tool.

    Attributes:
        doubt: The reason why a person should check calls of the tool, as a sentence; None if it is known to be
            harmless.
        repeatable: Whether two calls have the same effect as one.
        rule: The policy for this tool in the catalog; None if there is none.
        callable: Whether the tool is connected.
        harm: What harm a call may do, as ``harm_of`` determines; it alone decides whether a tool is harmless.
        allowed: Whether the user named the tool in the catalog as one whose calls need no approval.
        own: Whether the tool is an object of the running program, which sets approval by ``interrupt_on``.
    """

    doubt: Refusal | None = None
    repeatable: bool = False
    rule: ApprovalPolicy | None = None
    callable: bool = True
    harm: Harm = "change"
    allowed: bool = False
    own: bool = False

    @property
    def confirmation(self) -> Refusal | None:
        """Returns why a call that neither a model nor a person chose must be confirmed; None if it need not be."""
        if self.harm == "none" or (self.harm == "change" and self.own):
            return None
        return self.doubt or Refusal(f"{_MAY_DESTROY if self.harm == 'destroy' else _MAY_CHANGE}.")

    def refusal(self, policy: ApprovalPolicy) -> Refusal | None:
        """Returns why a call needs approval, as a sentence; None if it needs none.

        A tool that the catalog allows by name needs none, whatever ``approval`` says. Otherwise, ``always`` counts
        first, whether it is set for the run or for the tool, and then ``never``. But ``never`` for the whole run does
        not cover a call that may destroy something.
        """
        if self.allowed:
            return None
        if "always" in (policy, self.rule):
            whose = "run" if policy == "always" else "tool"
            return self.doubt or Refusal(f"This {whose} is set to ask before every call.")
        if self.rule == "never" or (policy == "never" and self.harm != "destroy"):
            return None
        return self.doubt


def assurance_of(tool: Tool, connection: object, *, trusted: bool, vouched: bool = False) -> Assurance:
    """Returns what is known about a tool; a tool can be called only over a ``ServerConfig`` or ``InProcess``.

    Hints are claims of the tool's author. Those of a server or a specification count if the user trusts it, even if
    LangChain adapts its tools; those of other tools in this process always count. Without trust, hints can only make
    checks stricter: an untrusted ``readOnlyHint`` has no effect. A person may also name tools that only read, in the
    catalog (``vouched``). The program's own tools are called without approval, unless they declare ``destructiveHint``.

    Raises:
        CatalogError: The tool's ``callsheet/approval`` is not a policy.
    """
    own = False
    match connection:
        case ServerConfig():
            options = connection.callsheet
            rule = options.approval
        case InProcess() if tool.name in connection.tools:
            made = connection.tools[tool.name]
            options = connection.options
            foreign = is_foreign(made)
            rule = options.approval or _rule(tool, made.metadata)
            trusted = trusted or not foreign
            own = connection.own and not foreign
        case _:
            return Assurance(callable=False)
    harm = harm_of(tool, trusted=trusted, vouched=vouched or tool.name in options.reads)
    # A hint beside a ``readOnlyHint`` that the name contradicts is as doubtful.
    believed = trusted and tool.annotations.get("readOnlyHint") is not True
    idempotent = believed and tool.annotations.get("idempotentHint") is True
    return Assurance(
        doubt=None if harm == "none" else _doubt(tool, harm, trusted=trusted, own=own),
        repeatable=idempotent or harm == "none",
        rule=rule,
        harm=harm,
        allowed=tool.name in options.allow,
        own=own,
    )


def _rule(tool: Tool, metadata: dict[str, Any] | None) -> ApprovalPolicy | None:
    rule: ApprovalPolicy | None = (metadata or {}).get(APPROVAL)
    words = get_args(ApprovalPolicy)
    if rule is not None and rule not in words:
        raise CatalogError(f"tool {tool.id!r}: {APPROVAL} is {rule!r}: write one of {', '.join(words)}")
    return rule


def _doubt(tool: Tool, harm: Harm, *, trusted: bool, own: bool) -> Refusal | None:
    """Returns why a person should check the calls of a tool that is not known to be harmless."""
    claimed = tool.annotations.get("readOnlyHint") is True
    if own and tool.annotations.get("destructiveHint") is not True:
        return None
    if harm == "destroy":
        return Refusal(f"{_MAY_DESTROY}{', although it is also marked as read-only' if claimed else ''}.")
    if claimed and not trusted:
        return Refusal("The server marks this tool as read-only, but the server is not trusted.")
    return Refusal(f"{_MAY_CHANGE}: it is not marked as read-only.")
