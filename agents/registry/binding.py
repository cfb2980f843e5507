"""A tool of the catalog as a LangChain tool for a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool, ToolException

from callsheet.agents.calls.call_context import LOOP, within
from callsheet.agents.calls.tool_result import Outcome
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.model_schema import ModelSchema, model_schema

NEED_TOOL = "need_tool"
"""The tool by which a worker asks for more tools; no tool of the catalog gets this name."""
READ_RESULT = "read_result"
"""The tool by which a worker reads a long result; no tool of the catalog gets this name."""
READ_SKILL = "read_skill"
"""The tool by which an agent reads a skill; no tool of the catalog gets this name."""
RUN_PROGRAM = "run_program"
"""The tool by which a worker runs a program; no tool of the catalog gets this name."""
NO_OUTPUT = "(no output)"
"""The text of an empty result, for models that need one."""
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
_FAILURES: ContextVar[list[dict[str, Any]] | None] = ContextVar("callsheet_failures", default=None)
"""Collects what ``ToolException`` cannot carry; the call runs in a copy of this context."""


class BoundTool(StructuredTool):
    """A tool of the catalog as a LangChain tool that calls its own agent.

    A success is content with an artifact; a failure is a ``ToolMessage`` with ``status="error"`` whose text names agent
    and tool. Both have the artifact ``{"tool", "structured", "media", "seconds", "kind", "effect"}``; for the last two
    see ``Outcome``.

    Attributes:
        id: The tool's id in the catalog.
        agent: Id of its agent.
        server: What the calls of its agent reach: several agents may be parts of one API.
        repeatable: Whether two calls have the same effect as one, according to a trusted source.
        form: Its input schema as the model sees it, in ``args_schema``, with the names that are the tool's own.
    """

    id: str
    agent: str
    server: str
    form: ModelSchema
    repeatable: bool = False

    # Positional-only and without named parameters: a tool may have arguments named self or config.
    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs) if self.func else None

    async def _arun(self, /, *args: Any, **kwargs: Any) -> Any:
        return await self.coroutine(*args, **kwargs) if self.coroutine else None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As in LangChain, but a failure keeps its artifact."""
        failures: list[dict[str, Any]] = []
        with within(_FAILURES, failures):
            return _with_artifact(super().run(*args, **kwargs), failures)

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """As in LangChain, but a failure keeps its artifact."""
        failures: list[dict[str, Any]] = []
        with within(_FAILURES, failures):
            return _with_artifact(await super().arun(*args, **kwargs), failures)


def bound_tool(
    name: str,
    tool: Tool,
    call: Callable[[dict[str, Any], bool], Awaitable[Outcome]],
    *,
    repeatable: bool = False,
    server: str = "",
) -> BoundTool:
    """A tool under the name that a model sees; ``call`` takes arguments, and whether to prefer synchronous code.

    ``server`` is by default the id of the agent.
    """
    form = model_schema(tool.input_schema)
    texts = (tool.description, tool.title, f"{tool.name} of {tool.agent}", "a tool")
    about = next(filter(None, (shown(text.strip()).strip() for text in texts)))

    async def send(arguments: dict[str, Any], *, sync: bool) -> tuple[str, dict[str, Any]]:
        arguments = form.own(arguments)
        unsettled = _UNSETTLED.get()
        if unsettled is None or repeatable:
            return _delivered(tool, await call(arguments, sync))
        unsettled.append(tool.id)
        outcome = await call(arguments, sync)
        unsettled.remove(tool.id)
        return _delivered(tool, outcome)

    def run(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return LOOP.blocking(send(arguments, sync=True))

    async def arun(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return await send(arguments, sync=False)

    return BoundTool(
        name=name,
        description="\n".join(filter(None, (about, form.forms))),
        args_schema=form.schema,
        func=run,
        coroutine=arun,
        response_format="content_and_artifact",
        handle_tool_error=True,
        id=tool.id,
        agent=tool.agent,
        server=server or tool.agent,
        form=form,
        repeatable=repeatable,
        metadata={"callsheet_tool": tool.id, "annotations": tool.annotations},
    )


def _delivered(tool: Tool, outcome: Outcome) -> tuple[str, dict[str, Any]]:
    artifact = {
        "tool": tool.id,
        "structured": outcome.structured,
        "media": [asdict(kept) for kept in outcome.media],
        "seconds": outcome.seconds,
        "kind": outcome.kind,
        "effect": outcome.effect,
    }
    if not outcome.error:
        return outcome.text or NO_OUTPUT, artifact
    failures = _FAILURES.get()
    if failures is not None:
        failures.append(artifact)
    raise ToolException(outcome.error)


@contextmanager
def unsettled_calls() -> Iterator[list[str]]:
    """Collects the ids of tools that were called in this block, must not be called twice, and have not answered."""
    calls: list[str] = []
    with within(_UNSETTLED, calls):
        yield calls


def _with_artifact(answer: Any, failures: list[dict[str, Any]]) -> Any:
    if failures and isinstance(answer, ToolMessage) and answer.artifact is None:
        answer.artifact = failures[0]
    return answer
