"""The replies of an A2A agent in one exchange, merged piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from a2a.helpers import get_data_parts
from a2a.types import Artifact, Message, Part, StreamResponse, Task, TaskState, TaskStatus

from callsheet.agents.tools.tool_result import Fault

_WAITING = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
_OVER = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
)


@dataclass(slots=True)
class Exchange:
    """State of an exchange.

    Attributes:
        most: Maximum bytes of artifacts.
        task: Id of the task; empty if the agent answers without a task, or has not answered yet.
        said: Parts of the last message.
        made: Parts of each artifact, by id.
        size: Bytes of artifacts so far.
    """

    most: int
    task: str = ""
    context: str = ""
    state: TaskState = TaskState.TASK_STATE_UNSPECIFIED
    said: Sequence[Part] = ()
    made: dict[str, list[Part]] = field(default_factory=dict)
    size: int = 0

    @property
    def settled(self) -> bool:
        """Whether the task is over, or waits for input."""
        return self.state in (*_WAITING, *_OVER)

    @property
    def begun(self) -> bool:
        """Whether there is a task that can be polled."""
        return bool(self.task) and self.state != TaskState.TASK_STATE_UNSPECIFIED

    @property
    def waits(self) -> bool:
        """Whether the agent waits for input."""
        return self.state in _WAITING

    @property
    def done(self) -> bool:
        """Whether the task is completed."""
        return self.state == TaskState.TASK_STATE_COMPLETED

    @property
    def word(self) -> str:
        """The state as the protocol spells it: ``working``, ``input-required``."""
        return str(TaskState.Name(self.state)).removeprefix("TASK_STATE_").replace("_", "-").lower()

    @property
    def parts(self) -> list[Part]:
        """The answer: all artifacts, or the last message if there are none."""
        return [part for parts in self.made.values() for part in parts] or list(self.said)

    def take(self, piece: StreamResponse) -> str:
        """Adds one piece of the reply, and returns the new text in it.

        Raises:
            Fault: The artifacts are too large.
        """
        match piece.WhichOneof("payload"):
            case "task":
                return self._of_task(piece.task)
            case "message":
                return self._of_message(piece.message)
            case "status_update":
                self._named(piece.status_update.task_id, piece.status_update.context_id)
                return self._of_status(piece.status_update.status)
            case "artifact_update":
                self._named(piece.artifact_update.task_id, piece.artifact_update.context_id)
                return self._of_artifact(piece.artifact_update.artifact, more=piece.artifact_update.append)
        return ""

    def _named(self, task: str, context: str) -> None:
        self.task, self.context = task or self.task, context or self.context

    def _of_message(self, message: Message) -> str:
        self._named("", message.context_id)
        self.state, self.said = TaskState.TASK_STATE_COMPLETED, tuple(message.parts)
        return text_of(self.said)

    def _of_task(self, task: Task) -> str:
        self._named(task.id, task.context_id)
        if task.artifacts:
            self.made, self.size = {}, 0
        for artifact in task.artifacts:
            self._of_artifact(artifact, more=False)
        return self._of_status(task.status)

    def _of_status(self, status: TaskStatus) -> str:
        self.state, self.said = status.state, tuple(status.message.parts)
        return text_of(self.said)

    def _of_artifact(self, artifact: Artifact, *, more: bool) -> str:
        self.size += artifact.ByteSize()
        if self.size > self.most:
            raise Fault("too_large", f"it sent artifacts of more than {self.most:,} bytes")
        parts = self.made.setdefault(artifact.artifact_id, []) if more else []
        self.made[artifact.artifact_id] = parts
        for part in artifact.parts:
            # Chunks of a streamed text are not separate lines.
            if more and parts and parts[-1].HasField("text") and part.HasField("text"):
                parts[-1] = Part(text=parts[-1].text + part.text)
            else:
                parts.append(part)
        return text_of(artifact.parts)


def text_of(parts: Iterable[Part]) -> str:
    """The texts of the parts, with a note for each file; files are not downloaded."""
    return "\n".join(filter(None, map(_text_of_part, parts)))


def data_of(parts: Sequence[Part]) -> list[Any]:
    """The structured parts, as plain values."""
    return [_whole(value) for value in get_data_parts(parts)]


def _text_of_part(part: Part) -> str:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "url":
            return f"[{_file(part)}: {part.url}]"
        case "raw":
            return f"[{_file(part)}, {len(part.raw):,} bytes]"
    return ""


def _file(part: Part) -> str:
    return " ".join(filter(None, ("file", part.filename, part.media_type)))


def _whole(value: Any) -> Any:
    """The protocol's library has floats only: a float without a fraction becomes an integer."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value
