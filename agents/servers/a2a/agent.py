"""Makes an agent of the catalog from an A2A endpoint, which is called by one tool and can ask questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.calls.tool_result import readings, with_data
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.in_process import CALL_LIMITS, TOOL_NAME, InProcess, summary_line, tool_of_remote_agent
from callsheet.graphs.catalog.formats.server_config import ApprovalPolicy, ServerConfig, ServerOptions
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.trust.pins import digests

if TYPE_CHECKING:
    from a2a.types import AgentCard, Message

    from callsheet.agents.servers.a2a.wire import Exchange, Wire
    from callsheet.agents.servers.in_process import RemoteConversation

_MOST_SKILLS = 30
_NO_ID = re.compile(r"[^\w.-]+")
_REQUEST = {"request": {"type": "string", "description": "The whole request, in plain words."}}


@dataclass(frozen=True, slots=True)
class A2AAgent:
    """An A2A agent as a Python object; needs ``a2a-sdk``. The agent card is read when the catalog is loaded.

    Attributes:
        url: Address of the agent. The card is at ``/.well-known/agent-card.json`` below it, or at the address itself
            if that ends in ``.json``.
        name: Id in the catalog; by default the name in the card.
        headers: HTTP headers, sent to this host only; ``${VAR}`` is expanded from the environment.
        limits: Limits of this agent by name (``call``, ``start`` ...).
        approval: When a call needs approval: ``always``, ``never`` or ``ask``; None for the setting of the run.
    """

    url: str
    name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    approval: ApprovalPolicy | None = None

    def server(self) -> ServerConfig:
        """Returns the configuration of the endpoint in the form of a server."""
        terms = ServerOptions(limits=dict(self.limits), approval=self.approval)
        return ServerConfig(url=self.url, headers=dict(self.headers), transport="a2a", callsheet=terms)


async def read_card(server: ServerConfig, limits: Limits) -> Listing:
    """Reads the agent card of an endpoint."""
    from callsheet.agents.servers.a2a.wire import open_wire

    async with open_wire(server, limits) as wire:
        return _listing(wire)


def agent_id_of(listing: Listing) -> str:
    """Makes an id from the name in an agent card; empty if the card has no name."""
    return _NO_ID.sub("-", shown(listing.name, most=64)).strip("-")


def connection(agent_id: str, server: ServerConfig, accepted: str | None) -> InProcess:
    """Connects to an endpoint whose card has the accepted SHA-256; with None, to an endpoint with any card.

    The endpoint does not store the conversation: its questions are kept in our checkpoints.
    """

    async def send(talk: RemoteConversation) -> dict[str, Any]:
        from callsheet.agents.servers.a2a.wire import WAITING, data_of, open_wire, parts_text

        limits = CALL_LIMITS.get() or Limits()
        async with open_wire(server, limits) as wire:
            if accepted not in (None, digests(_listing(wire).tools).get(TOOL_NAME)):
                changed = "its card has changed since the catalog was read: look at it with `callsheet approve`"
                raise Fault("refused", changed, effect="none")
            exchange = await wire.exchange(_message(talk), _teller(agent_id, wire))
            hidden = wire.redaction.value
        task = exchange.task
        made = exchange.made
        said = exchange.said
        if exchange.word in WAITING:
            found = data_of([*made, *said])
            text = parts_text([*made, *said])
            question = shown(with_data(text, found or None, limits, told=readings([text] if text else [])))
            about = {"type": exchange.word.replace("-", "_"), "agent": agent_id}
            asked = {"id": task.id or "task", "value": {**about, "question": question, "data": found}}
            return {"asked": [hidden(asked)], "thread": {"context": task.context_id, "task": task.id}}
        found = data_of(made or said)
        text = parts_text(made or said)
        data = found[0] if len(found) == 1 else found or None
        text = with_data(text, data, limits, told=readings([text] if text else []))
        if exchange.word != "completed":
            told = f"it reports that the task is {exchange.word}{text and f': {text}'}"
            raise Fault("tool", hidden(told), effect="reported")
        return {"answer": hidden([text, data])}

    tool = tool_of_remote_agent(send, f"Hands a request to {agent_id}.", {})
    return InProcess({TOOL_NAME: tool}, server.callsheet)


def _listing(wire: Wire) -> Listing:
    """Makes a listing of a card, so that cards and MCP servers share one parser and one pin book."""
    said = wire.redaction.text
    card = wire.card
    schema = {"type": "object", "properties": _REQUEST, "required": ["request"]}
    entry = {"name": TOOL_NAME, "description": said(_described(card)), "inputSchema": schema}
    return Listing(tools=(entry,), name=said(card.name), description=said(card.description))


def _described(card: AgentCard) -> str:
    skills = " ".join(summary_line(skill.name or skill.id, skill.description) for skill in card.skills[:_MOST_SKILLS])
    about = card.description.strip() or f"Hands a request to {card.name.strip() or 'an agent'}."
    return f"{about} It has these skills. {skills}" if skills else about


def _teller(agent_id: str, wire: Wire) -> Callable[[str, Exchange], None]:
    """Writes the progress of an agent to the streams of the run."""
    from langgraph.config import get_config, get_stream_writer

    about = {"event": "progress", "step_id": get_config().get("metadata", {}).get("step_id", ""), "agent": agent_id}
    write = get_stream_writer()
    last = ""

    def tell(text: str, exchange: Exchange) -> None:
        nonlocal last
        if text or exchange.word != last:
            last = exchange.word
            write({**about, "state": last, "text": shown(wire.redaction.text(text))})

    return tell


def _message(talk: RemoteConversation) -> Message:
    from a2a.helpers import new_data_part, new_message, new_text_part
    from a2a.types import Role

    said = list(talk["answers"].values()) if "answers" in talk else [talk["given"]]
    thread = talk["thread"]
    return new_message(
        [new_text_part(one) if isinstance(one, str) else new_data_part(one) for one in said],
        context_id=thread.get("context") or None,
        task_id=thread.get("task") or None,
        role=Role.ROLE_USER,
    )
