"""What became of a tool call: one model from the answer of a server to the message for a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import ToolCall, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypedDict

from callsheet.graphs.text.hidden import visible

Kind = Literal[
    "",
    "start",
    "sign_in",
    "timeout",
    "crash",
    "protocol",
    "busy",
    "refused",
    "rejected",
    "tool",
    "too_large",
    "unheard",
]
Effect = Literal["none", "reported", "unknown"]


class StoredContent(BaseModel):
    """A part of a result that is stored as a file: an image, a sound, or a text that was too long."""

    model_config = ConfigDict(frozen=True)

    path: str
    media: str
    size: int


class ServerQuestion(TypedDict):
    """A question of a server to the person behind a call.

    Attributes:
        message: Its text; that of a question in the form of a page has the address to open.
        form: The JSON Schema of the values that answer it, an object.
        opens: The address of a page that the person is to open; empty for a form.
    """

    message: str
    form: dict[str, object]
    opens: str


class Call(BaseModel):
    """One tool call of a worker.

    Attributes:
        id: Its name for references, unique in its step: ``c1`` for the first call.
        agent: Id of the tool's agent.
        tool: Id of the tool.
        output: The answer as text; empty if the call failed.
        data: The structured result, if it follows a text in ``output``; None otherwise.
        error: What went wrong, with agent and tool, as ``kind`` and ``effect`` of an ``Outcome``; empty if nothing did.
        files: Files with media of the result, and with the full text of what was cut.
        began: Its start, in seconds since 1970; 0 if it is not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    agent: str
    tool: str
    args: Mapping[str, Any] = Field(default_factory=dict)
    output: str = ""
    data: Any = None
    error: str = ""
    kind: Kind = ""
    effect: Effect = "reported"
    files: tuple[str, ...] = ()
    seconds: float = 0.0
    began: float = 0.0


class Outcome(BaseModel):
    """The outcome of one call; a failure is stored as data and is never raised.

    It is the artifact of the message that answers the call (``answer_to``), and is read back with ``outcome_in``. The
    message itself has ``text`` and ``error``. The artifact of each outcome has ``tool``, ``structured``, ``media``,
    ``seconds``, ``kind`` and ``effect``; other fields are in it only if they have a value.

    Attributes:
        text: The answer as text, with a short note for each image or other medium.
        structured: The structured result, as JSON values; None if there is none.
        media: Files with media, and with the full text of what was cut.
        error: What went wrong, with agent and tool; empty if nothing did.
        kind: The kind of error; ``too_large`` without an error if the answer was cut.
        effect: Whether the tool ran: ``none`` if it certainly did not, ``reported`` if it reported the outcome,
            ``unknown`` if the call was sent and no readable answer came.
        seconds: How long the call took.
        began: Its start, in seconds since 1970; 0 if it is not known.
        tool: Id of the tool in the catalog; empty for a tool of the worker itself.
        agent: Id of the tool's agent, where the worker does not have the tool.
        args: The arguments that were sent, if the call in the conversation has others: references are resolved, or a
            person has changed them.
        task: The server's id of the task as which it works on the call, if the caller waits for its end (``TaskCall``).
        interval: Seconds until the server wants to be asked about the task.
        questions: Questions of the server, by their keys, to which it needs answers before it goes on.
        state: The ``requestState`` with which the server has asked them.
        made: The calls that a program made, without the id of the program's own call.
        added: Ids of the tools that the worker asked for, and got.
        late: Ids of the tools that the server has added since the worker was last told of any.
        reminder: Whether the answer only reminds of an earlier one: it is no result, and has no id.
    """

    model_config = ConfigDict(frozen=True)

    text: str = ""
    structured: Any = None
    media: tuple[StoredContent, ...] = ()
    error: str = ""
    kind: Kind = ""
    effect: Effect = "reported"
    seconds: float = 0.0
    began: float = 0.0
    tool: str = ""
    agent: str = ""
    args: Mapping[str, Any] | None = None
    task: str = ""
    interval: float = 0.0
    questions: Mapping[str, ServerQuestion] = Field(default_factory=dict)
    state: str = ""
    made: tuple[Call, ...] = ()
    added: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    reminder: bool = False


_ALWAYS = Outcome().model_dump(include={"tool", "structured", "media", "seconds", "kind", "effect"})
"""The fields that every artifact has, with their defaults."""
_NOT_MADE = Outcome(effect="none")


class Fault(Exception):  # noqa: N818 (it becomes data, not an error)
    """Raised if an exchange with a tool fails; it becomes an ``Outcome`` before it leaves this package.

    ``wait`` is the time in seconds after which a busy server asks for a retry, if it says so.
    """

    def __init__(self, kind: Kind, message: str, *, effect: Effect = "unknown", wait: float | None = None) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.effect: Effect = effect
        self.wait = wait


def failed_outcome(agent_id: str, tool: str, kind: Kind, message: str, effect: Effect = "none") -> Outcome:
    """Makes the outcome of a failed call; its error names agent and tool."""
    return Outcome(error=f"agent {agent_id!r}, tool {tool!r}: {visible(message)}", kind=kind, effect=effect)


def answer_to(call: ToolCall, text: str, outcome: Outcome = _NOT_MADE, *, error: bool = False) -> ToolMessage:
    """Makes the message that answers a model's call; without an outcome, no tool of the catalog was called."""
    status: Literal["error", "success"] = "error" if error else "success"
    artifact = artifact_of(outcome)
    return ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"], status=status, artifact=artifact)


def artifact_of(outcome: Outcome) -> dict[str, Any]:
    """Returns an outcome as the artifact of a message, whose content is its ``text`` or ``error``."""
    return {**_ALWAYS, **outcome.model_dump(exclude={"text", "error"}, exclude_defaults=True)}


def outcome_in(answer: object) -> Outcome:
    """Returns the outcome that the answer to a call holds; ``text`` or ``error`` is the content of the message.

    An answer without an artifact says that no tool was called. Fields that an outcome does not have are ignored: the
    tools of other people have artifacts, too. If an artifact cannot be read at all, it is not known whether the tool of
    a failed call ran.
    """
    if not isinstance(answer, ToolMessage):
        return _NOT_MADE
    failed = answer.status == "error"
    said = {"text": "", "error": "", "error" if failed else "text": str(answer.text)}
    if not isinstance(answer.artifact, dict) or not answer.artifact:
        return _NOT_MADE.model_copy(update=said)
    try:
        return Outcome.model_validate({**answer.artifact, **said})
    except ValidationError:
        return Outcome(effect="unknown" if failed else "reported").model_copy(update=said)


def with_outcome(answer: ToolMessage, outcome: Outcome) -> ToolMessage:
    """Returns the answer to a call with another outcome; other people's fields of its artifact stay."""
    artifact = artifact_of(outcome)
    if isinstance(answer.artifact, dict):
        artifact |= {name: value for name, value in answer.artifact.items() if name not in Outcome.model_fields}
    return answer.model_copy(update={"artifact": artifact})
