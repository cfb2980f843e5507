"""Makes a LangChain tool for a model from a tool of the catalog."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Annotated, Any, Protocol

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from callsheet.agents.calls.call_context import LOOP, within
from callsheet.agents.calls.outcome import Call, Outcome, artifact_of, outcome_in
from callsheet.agents.calls.tool_result import data_beside
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.model_schema import ModelSchema, model_schema

NEED_TOOL = "need_tool"
"""The name of the tool by which a worker asks for more tools; no tool of the catalog gets this name."""
READ_RESULT = "read_result"
"""The name of the tool by which a worker reads a long result; no tool of the catalog gets this name."""
READ_SKILL = "read_skill"
"""The name of the tool by which an agent reads a skill; no tool of the catalog gets this name."""
RUN_PROGRAM = "run_program"
"""The name of the tool by which a worker runs a program; no tool of the catalog gets this name."""
NO_OUTPUT = "(no output)"
"""The text in place of an empty result, because some models refuse empty ones."""
_LONGEST_NAME = 64
_DIGEST = 16
_LONGEST_AGENT = 23
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
# Otherwise a server could give a tool the name that another server's tool gets.
_DIGESTED = re.compile(r"_[0-9a-f]{16}$")


def model_names(tools: Sequence[Tool], *, beside: Collection[str] = ()) -> list[str]:
    """Returns a unique name for each tool that every model provider accepts: ``^[a-zA-Z0-9_-]{1,64}$``.

    It is ``agent_tool``, or the tool's own name if that is the agent's name or begins with it and ``_`` or ``-``:
    ``filesystem/read_file`` is ``filesystem_read_file``, ``git/git_log`` is ``git_log``. It depends on the other tools
    and on ``beside`` only if two names are the same: the own name then becomes ``agent_tool`` too. A digest of the id
    is added if the name is still not unique, is too long, or ends like a digest.
    """
    candidates = [names_of_bound(tool.agent, tool.name) for tool in tools]
    taken = (*beside, NEED_TOOL, READ_RESULT, READ_SKILL, RUN_PROGRAM)
    names = [first for first, _, _ in candidates]
    for longer in (1, 2):
        seen = Counter((*names, *taken))
        names = [name if seen[name] == 1 else known[longer] for name, known in zip(names, candidates, strict=True)]
    return names


def names_of_bound(agent: str, name: str) -> tuple[str, str, str]:
    """Returns all names that ``model_names`` may give to a tool, the preferred one first."""
    fit_agent = _UNFIT.sub("_", agent)
    fit = _UNFIT.sub("_", name)
    owned = f"{fit_agent}_{fit}"
    own = fit if fit == fit_agent or fit.startswith((f"{fit_agent}_", f"{fit_agent}-")) else owned
    digest = sha256(f"{agent}/{name}".encode()).hexdigest()[:_DIGEST]
    room = _LONGEST_NAME - _DIGEST - 1
    short = owned if len(owned) <= room else f"{fit_agent[:_LONGEST_AGENT]}_{fit}"[:room]
    digested = f"{short}_{digest}"
    first, second = (
        whole if len(whole) <= _LONGEST_NAME and not _DIGESTED.search(whole) else digested for whole in (own, owned)
    )
    return first, second, digested


_UNSETTLED: ContextVar[list[str] | None] = ContextVar("callsheet_unsettled", default=None)


class Sender(Protocol):
    """The protocol of a function that sends a call to the server or the object behind a tool."""

    def __call__(self, arguments: dict[str, Any], *, sync: bool) -> Coroutine[Any, Any, Outcome]:
        """Sends a call and returns the outcome; ``sync`` prefers the synchronous code of a tool in this process."""
        ...


class BoundTool(BaseTool):
    """A tool of the catalog as a LangChain tool that calls its own agent.

    A success is content with an artifact; a failure is a ``ToolMessage`` with ``status="error"`` whose text names agent
    and tool. Both have the artifact ``{"tool", "structured", "media", "seconds", "kind", "effect"}``: an ``Outcome`` as
    plain values. Within a ``TaskCall``, it also has ``task`` if the call goes on at its server, and ``questions`` and
    ``state`` if the server asks something first.

    Attributes:
        id: The tool's id in the catalog.
        agent: Id of its agent.
        server: The key of what calls of the agent reach; several agents may be parts of one API.
        send: Sends its calls.
        repeatable: Whether two calls have the same effect as one, according to a trusted source.
        harmless: Whether a call is known to change nothing.
        form: The input schema in the form for the model (``args_schema``), and the tool's own names of its properties.
    """

    id: str
    agent: str
    server: str
    form: ModelSchema
    send: Annotated[Any, Field(exclude=True, repr=False)]  # a Sender, which Pydantic cannot validate
    repeatable: bool = False
    harmless: bool = False

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        _, arguments = super()._to_args_and_kwargs(tool_input, tool_call_id)
        return (tool_call_id or "",), arguments

    # Positional-only: a tool may have arguments named self, call_id or config.
    async def _arun(self, call_id: str, /, **arguments: Any) -> tuple[Any, Any]:
        with self._until_answered():
            outcome: Outcome = await self.send(self.form.own(arguments), sync=False)
        return self._answer(call_id, outcome)

    def _run(self, call_id: str, /, **arguments: Any) -> tuple[Any, Any]:
        with self._until_answered():
            outcome: Outcome = LOOP.blocking(self.send(self.form.own(arguments), sync=True))
        return self._answer(call_id, outcome)

    @contextmanager
    def _until_answered(self) -> Iterator[None]:
        """Names the tool in ``unsettled_calls`` until its call is answered: for good if the call is cut off."""
        calls = None if self.repeatable else _UNSETTLED.get()
        if calls is not None:
            calls.append(self.id)
        yield
        if calls is not None:
            calls.remove(self.id)

    def _answer(self, call_id: str, outcome: Outcome) -> tuple[Any, Any]:
        """Returns content and artifact. LangChain drops the artifact of an error, unless it is in a message."""
        artifact = artifact_of(outcome.model_copy(update={"tool": self.id}))
        if not outcome.error:
            return outcome.text or NO_OUTPUT, artifact
        if not call_id:  # it was invoked with arguments alone, and answers with text alone
            raise ToolException(outcome.error)
        message = ToolMessage(outcome.error, tool_call_id=call_id, name=self.name, status="error", artifact=artifact)
        return message, None


def bound_tool(
    name: str, tool: Tool, send: Sender, *, repeatable: bool = False, harmless: bool = False, server: str = ""
) -> BoundTool:
    """Makes a tool with the name that a model sees; ``server`` is by default the id of the agent."""
    form = model_schema(tool.input_schema)
    texts = (tool.description, tool.title, f"{tool.name} of {tool.agent}", "a tool")
    about = next(filter(None, (shown(text.strip()).strip() for text in texts)))
    return BoundTool(
        name=name,
        description="\n".join(filter(None, (about, form.forms))),
        args_schema=form.schema,
        response_format="content_and_artifact",
        handle_tool_error=True,
        id=tool.id,
        agent=tool.agent,
        server=server or tool.agent,
        send=send,
        form=form,
        repeatable=repeatable,
        harmless=harmless,
        metadata={"callsheet_tool": tool.id, "annotations": tool.annotations},
    )


def made_call(call: ToolCall, answer: ToolMessage | None, bound: BoundTool | None, name: str) -> Call:
    """Returns the record of a call of a conversation: the call, and the outcome in its answer.

    Args:
        call: The call, with the arguments as the model wrote them.
        answer: Its answer; None if it has none.
        bound: Its tool; None if the worker has no such tool of the catalog.
        name: The name of the record for references; empty if nothing may refer to it.
    """
    outcome = outcome_in(answer) if answer else Outcome(error="no answer", effect="none")
    failed = answer is None or answer.status == "error"
    args = bound.form.own(call["args"]) if bound else call["args"]
    return Call(
        id=name,
        agent=bound.agent if bound else outcome.agent,
        tool=bound.id if bound else outcome.tool or call["name"],
        args=args if outcome.args is None else outcome.args,
        output="" if outcome.text == NO_OUTPUT else outcome.text,
        data=None if failed else data_beside(outcome.text, outcome.structured),
        error=outcome.error,
        kind=outcome.kind,
        effect=outcome.effect,
        files=tuple(stored.path for stored in outcome.media),
        seconds=round(outcome.seconds, 3),
        began=round(outcome.began, 3),
    )


@contextmanager
def unsettled_calls() -> Iterator[list[str]]:
    """Collects the ids of tools that were called in this block and have not answered.

    Only tools count whose calls must not be repeated.
    """
    calls: list[str] = []
    with within(_UNSETTLED, calls):
        yield calls
