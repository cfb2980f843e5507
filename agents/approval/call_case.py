"""A call, what supervises it, and the person who is asked about it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command, interrupt

from callsheet.agents.approval.assurance import ApprovalPolicy
from callsheet.agents.approval.decisions import (
    AnswerError,
    Decision,
    Kind,
    Verdict,
    answer_schema,
    fingerprint,
    question,
)
from callsheet.agents.approval.run_claim import Claim
from callsheet.agents.safety.arguments import Fit, fit_of
from callsheet.agents.safety.secrets import LostSecretError, RunSecrets
from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.registry import ToolRegistry
from callsheet.graphs.catalog.errors import CallsheetError, CatalogError

Answer = ToolMessage | Command[Any]
Send = Callable[[ToolCallRequest], Awaitable[Answer]]


class RefusedScopesError(CallsheetError, RuntimeError):
    """A server does not accept a sign-in that has given all scopes that it asked for."""


@dataclass(frozen=True, slots=True)
class Supervision:
    """How the calls of one step are supervised.

    Attributes:
        step_id: The step.
        policy: Which calls need approval.
        registry: The tools and their hints.
        secrets: Holds secret arguments.
        notice: Whether the model is told that a person changed its arguments.
        allow: Ids of tools that need no approval, because a person named them for this run.
        confirms: Whether a person must confirm every call that may change something, whatever the policy.
        run: The run, whose sign-ins are its own; empty: nobody is asked to sign in.
        user: Id of the user; empty for an anonymous one.
        address: Address of the server of Callsheet, for answers to sign-ins; empty: as the process is configured.
    """

    step_id: str
    policy: ApprovalPolicy
    registry: ToolRegistry
    secrets: RunSecrets = field(default_factory=RunSecrets)
    notice: bool = True
    allow: frozenset[str] = frozenset()
    confirms: bool = False
    run: str = ""
    user: str = ""
    address: str = ""


@dataclass(slots=True)
class Case:
    """Objects of a call that no checkpoint can hold.

    Attributes:
        asked: The hash in the pending question; empty without one.
        cut_off: Whether the call was running when the program stopped, or its run was rolled back.
        claim: The claim of the run; None without a checkpointer.
    """

    request: ToolCallRequest
    bound: BoundTool
    supervision: Supervision
    send: Send
    asked: str = ""
    cut_off: bool = False
    claim: Claim | None = None

    @property
    def named(self) -> str:
        """Agent and tool, as at the start of every error of a call."""
        return f"agent {self.bound.agent!r}, tool {self.bound.id.removeprefix(f'{self.bound.agent}/')!r}"

    @property
    def must_confirm(self) -> bool:
        """Whether a person must see each call of the tool, and no policy replaces that."""
        supervision = self.supervision
        assured = supervision.registry.assurance(self.bound.id)
        allowed = assured.allowed or self.bound.id in supervision.allow
        return supervision.confirms and assured.harm != "none" and not allowed

    @property
    def doubt(self) -> str:
        """Why the calls of the tool need approval, as a sentence; empty if they need none."""
        supervision = self.supervision
        assured = supervision.registry.assurance(self.bound.id)
        if self.bound.id in supervision.allow:
            return ""
        if self.must_confirm:
            return assured.doubt or "This tool may change something."
        return assured.why(supervision.policy)

    def why(self, args: Mapping[str, Any]) -> str:
        """Why a call with these arguments needs approval; empty if it needs none."""
        policy = self.supervision.policy
        doubt = self.doubt
        asks = doubt or policy != "never"
        return " ".join(filter(None, (doubt, self.unchecked(args)))) if asks else ""

    def unchecked(self, args: Mapping[str, Any]) -> str:
        """Why these arguments could not be validated, as a sentence; empty if they were."""
        told = str(self.supervision.secrets.hidden(self._fit(args).unchecked))
        return told and f"{told[0].upper()}{told[1:]}."

    def _fit(self, args: Mapping[str, Any]) -> Fit:
        registry = self.supervision.registry
        try:
            return registry.fit(self.bound.id, self.supervision.secrets.opened(registry.schema(self.bound.id), args))
        except LostSecretError:
            return Fit()  # it is refused when it is sent

    def mark(self, args: Mapping[str, Any]) -> str:
        """The fingerprint that an approval is bound to."""
        return fingerprint(self.bound.id, self.supervision.registry.pin(self.bound.id), args)

    def ask(self, kind: Kind, args: Mapping[str, Any], why: str, problem: str) -> tuple[Any, str]:
        """A person's answer, and the fingerprint of the call that it is about."""
        mark = self.mark(args)
        told = {"step_id": self.supervision.step_id, "why": why, "mark": mark, "problem": problem}
        unchecked = self.unchecked(args) if kind == "tool_approval" else ""
        shown = question(kind, self.request.tool_call, self.bound, args, **told, unchecked=unchecked)
        shown |= {"confirm": True} if self.must_confirm else {}
        schema = self.bound.args_schema
        answer = interrupt(shown, response_schema=answer_schema(kind, schema if isinstance(schema, dict) else {}))
        if self.asked not in ("", mark):
            raise AnswerError("the tool's definition has changed since this was asked: look at the call again")
        return answer, mark

    def check(self, answer: Decision | Verdict, mark: str) -> None:
        """Checks that an answer is about this call, and that edited arguments fit.

        Raises:
            AnswerError: It is not, or they do not.
        """
        if answer.hash not in (None, mark):
            raise AnswerError("the answer's hash is that of another call: look at this one again")
        if isinstance(answer, Decision) and answer.args is not None:
            schema, secrets = self.supervision.registry.schema(self.bound.id), self.supervision.secrets
            if trouble := fit_of(schema, secrets.opened(schema, answer.args)).misfit:
                raise AnswerError(secrets.hidden(trouble))

    async def sign_in(self) -> dict[str, Any]:
        """What a person must know to sign in to the server of the tool, and the ``state`` that names the sign-in.

        Raises:
            CallsheetError, OSError: It cannot begin.
        """
        # In a thread: the import takes a second.
        sign_in = await asyncio.to_thread(_sign_in_library)
        supervision = self.supervision
        server = supervision.registry.server(self.bound.id)
        if server is None:
            raise CatalogError("its server is no longer in the catalog")
        who = {"user": supervision.user, "run": supervision.run, "address": supervision.address}
        begun = await sign_in(server, os.environ, **who)
        return {
            "state": begun.state,
            "url": begun.authorization.page,
            "issuer": str(begun.authorization.metadata.issuer),
            "expires": datetime.fromtimestamp(begun.expires, UTC).isoformat(timespec="seconds"),
            "confirm": begun.confirmed,
            **({"scopes": begun.step_up.split()} if begun.step_up else {}),
        }

    async def confirm(self, state: str, code: str) -> None:
        """Takes the code that a page has shown after a sign-in.

        Raises:
            CallsheetError, OSError: It is another, or the tokens cannot be stored.
        """
        from callsheet.agents.servers.oauth.pending_sign_ins import confirm

        supervision = self.supervision
        await asyncio.to_thread(confirm, state, user=supervision.user, run=supervision.run, code=code)

    async def sign_in_problem(self, told: Mapping[str, Any]) -> str:
        """Why a call still needs a sign-in although a person has replied.

        Raises:
            RefusedScopesError: The person has given the scopes that the server asked for, and it asks again.
            CallsheetError, OSError: What waits cannot be read.
        """
        from callsheet.agents.servers.oauth.pending_sign_ins import pending

        waiting = await asyncio.to_thread(pending, told["state"])
        if waiting is None and "scopes" in told and datetime.fromisoformat(told["expires"]) > datetime.now(UTC):
            raise RefusedScopesError(
                f"it got the scopes {' '.join(told['scopes'])!r} in this call, and asks for more: "
                "a person is asked only once per call"
            )
        if waiting is None:
            return "the server does not accept the new sign-in, or it came too late"
        return waiting.problem or "nobody has signed in at that address yet"

    @property
    def signs_in(self) -> bool:
        """Whether a person can sign in to the server of the tool."""
        server = self.supervision.registry.server(self.bound.id)
        return bool(self.supervision.run) and server is not None and server.callsheet.sign_in is None

    def refused(self, args: Mapping[str, Any]) -> ToolMessage | None:
        """The refusal of a call that nobody can approve: its tool is no longer there, or the arguments do not fit."""
        registry = self.supervision.registry
        if self.bound.id in registry.catalog.tools:
            why = str(self.supervision.secrets.hidden(self._fit(args).misfit))
        else:
            why = registry.refused([self.bound.id]).get(self.bound.id, "")
        return self.said(f"{self.named}: {why}", kind="refused", effect="none") if why else None

    def said(self, text: str, *, kind: str, effect: str, error: bool = True) -> ToolMessage:
        """A message for the model that is not the tool's own answer."""
        return ToolMessage(
            text,
            name=self.request.tool_call["name"],
            tool_call_id=self.request.tool_call["id"] or "",
            status="error" if error else "success",
            artifact={"tool": self.bound.id, "kind": kind, "effect": effect, "seconds": 0.0},
        )


def _sign_in_library() -> Any:
    from callsheet.agents.servers.oauth.callback import sign_in_of_run

    return sign_in_of_run
