"""What a call of a tool may do, by its hints and by the verbs of its name; whether it needs approval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from callsheet.agents.servers.in_process import InProcess, is_foreign
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.server_config import APPROVAL, ApprovalPolicy, ServerConfig
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.text.sanitizing import split_name
from callsheet.graphs.trust.policy import hints

__all__ = ["ApprovalPolicy", "Assurance", "asks", "assurance_of"]
_MAY_DESTROY = "This tool may delete or overwrite something"
Harm = Literal["none", "change", "destroy"]
"""What a call of a tool may do, as far as known: nothing, change something, destroy something."""

_COMPUTES = frozenset("calculate compute convert count evaluate solve translate".split())
_READS = frozenset("describe display fetch find get list lookup query read retrieve search show tell view".split())
_TELLS = frozenset("answer check give look report return".split())
"""Verbs that only read at the start of a description ("Looks up ..."), but not always in a name."""
_DESTROYS = frozenset(
    "clean clear delete destroy discard drop erase kill overwrite purge remove reset revoke terminate "
    "truncate uninstall wipe".split()
)
_RUNS = frozenset("eval exec execute run".split())
_SHELLS = frozenset("bash cmd powershell shell terminal".split())
_PROGRAMS = _SHELLS | frozenset("code command commands python script".split())
"""Words in the names of tools that run any program: ``execute_command``, ``run_python``."""
_CHANGES = _DESTROYS | frozenset(
    """
    add append book change copy create dump duplicate edit email export mail make message modify move notify put record
    rename reserve save schedule send store update write
    """.split()
)


def harm_of(tool: Tool, *, trusted: bool) -> Harm:
    """What a call of a tool may do: by its hints, else by the verbs of its name, else by its description's first word.

    A tool that runs any program may destroy something.

    A hint that tightens always counts. ``readOnlyHint`` counts from a trusted agent, and from another one only if the
    name does not contradict it.
    """
    words = split_name(tool.name).split()
    if tool.annotations.get("destructiveHint") is True or _DESTROYS & set(words):
        return "destroy"
    only_reads = tool.annotations.get("readOnlyHint")
    if only_reads is True and trusted:
        return "none"
    if (_RUNS & set(words) and _PROGRAMS & set(words)) or tool.name.lower() in _SHELLS:
        return "destroy"
    verb = next((word for word in words if word in _COMPUTES | _READS | _CHANGES), "")
    # After another word, a verb that reads may be a part of an order: ``mark_as_read``.
    if not verb or (verb not in _CHANGES and verb != words[0]):
        opening = next(iter(split_name(tool.description[:80]).split()), "")
        forms = (opening, opening.removesuffix("s"), opening.removesuffix("es"))
        verb = next((form for form in forms if form in _COMPUTES or asks(form)), "")
    known = verb in _COMPUTES or (asks(verb) and only_reads is not False)
    return "none" if known or (only_reads is True and verb not in _CHANGES) else "change"


def asks(verb: str) -> bool:
    """Whether a verb only asks to be told something; lower case, base form."""
    return verb in _READS or verb in _TELLS


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
        own: Whether the tool is an object of the program that runs, which asks by ``interrupt_on`` where it wants to.
    """

    doubt: str = ""
    repeatable: bool = False
    rule: ApprovalPolicy | None = None
    callable: bool = True
    harm: Harm = "change"
    allowed: bool = False
    own: bool = False

    @property
    def unclear(self) -> bool:
        """Whether a call that no model and no person has chosen must be confirmed."""
        return self.harm == "destroy" or (self.harm == "change" and not self.own)

    def why(self, policy: ApprovalPolicy) -> str:
        """Why a call needs approval, as a sentence; empty if it needs none.

        The tool's name in the catalog overrides every ``approval``. Otherwise ``always``, of the run or of the tool,
        overrides ``never``, and one ``never`` is enough; but that of a run does not cover what may destroy something.
        """
        if self.allowed:
            return ""
        if "always" in (policy, self.rule):
            whose = "run" if policy == "always" else "tool"
            return self.doubt or f"This {whose} is set to ask before every call."
        return "" if self.rule == "never" or (policy == "never" and self.harm != "destroy") else self.doubt


def assurance_of(tool: Tool, connection: object, *, trusted: bool) -> Assurance:
    """What is known about a tool, by its connection; only with a ``ServerConfig`` or ``InProcess`` it can be called.

    Hints are claims of their author. The hints of a server count if the user trusts it, also where LangChain adapts its
    tools; those of other tools in this process always. Other hints can only tighten: an untrusted ``readOnlyHint`` has
    no effect. Those of an API are ours, by the method: an operation by GET reads, unless its name says otherwise. The
    program's own tools are called, unless they declare ``destructiveHint``.

    Raises:
        CatalogError: The tool's ``callsheet/approval`` is not a policy.
    """
    allowed = own = False
    match connection:
        case ServerConfig():
            rule, allowed = connection.callsheet.approval, tool.name in connection.callsheet.allow
            reads = bool(connection.openapi) and tool.annotations.get("readOnlyHint") is True
            trusted = trusted or (reads and not _DESTROYS & set(split_name(tool.name).split()))
        case InProcess() if tool.name in connection.tools:
            foreign = is_foreign(made := connection.tools[tool.name])
            rule, trusted = connection.options.approval or _rule(tool, made.metadata), trusted or not foreign
            allowed, own = tool.name in connection.options.allow, connection.own and not foreign
        case _:
            return Assurance(callable=False)
    told = hints(tool, trusted=trusted)
    harm = harm_of(tool, trusted=trusted)
    vouched = told["readOnlyHint"] or (own and tool.annotations.get("destructiveHint") is not True)
    return Assurance(
        doubt=_doubt(tool, harm, only_reads=vouched),
        repeatable=told["idempotentHint"],
        rule=rule,
        harm=harm,
        allowed=allowed,
        own=own,
    )


def _rule(tool: Tool, metadata: dict[str, Any] | None) -> ApprovalPolicy | None:
    rule: ApprovalPolicy | None = (metadata or {}).get(APPROVAL)
    if rule is not None and rule not in (words := get_args(ApprovalPolicy)):
        raise CatalogError(f"tool {tool.id!r}: {APPROVAL} is {rule!r}: write one of {', '.join(words)}")
    return rule


def _doubt(tool: Tool, harm: Harm, *, only_reads: bool) -> str:
    claimed = tool.annotations.get("readOnlyHint") is True
    if tool.annotations.get("destructiveHint") is True:
        return f"{_MAY_DESTROY}{', although it is also marked as read-only' if claimed else ''}."
    if only_reads:
        return ""
    if claimed:
        return "The server marks this tool as read-only, but the server is not trusted."
    if harm == "destroy":
        return f"{_MAY_DESTROY}."
    return "This tool may change something: it is not marked as read-only."
