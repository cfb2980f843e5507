"""What a worker has for one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool

from callsheet.agents.approval.supervised_call import Supervision
from callsheet.agents.calls.plan import Call
from callsheet.agents.models.prompts import WORKER
from callsheet.agents.programs.program_run import definition, functions_of
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.safety.secrets import RunSecrets
from callsheet.agents.work.brief import Brief
from callsheet.agents.work.finish import finish_definition
from callsheet.agents.work.need_tool import DEFINITION, ToolRequests, equipped
from callsheet.agents.work.read_result import READ_DEFINITION, shown_in_part
from callsheet.agents.work.worker_conversation import calls_of


class UnsetModel(BaseChatModel):
    """Stands in the compiled worker, whose model comes with each step."""

    @property
    def _llm_type(self) -> str:
        return "callsheet-unset"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("a model comes with each step, and did not")


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a worker has for one step.

    Attributes:
        brief: The step.
        model: Decides which tool to call.
        tools: The selected tools by the names that the model sees.
        prompt: The system prompt.
        own_tools: Whether the model is offered the worker's own tools: to end its step, and to read long results.
        max_turns: Maximum number of model calls.
        max_calls: Maximum number of tool calls, including requests for tools.
        max_tokens: Maximum number of tokens of its model calls; no limit if None.
        requests: Answers requests for further tools; None if it cannot ask for any.
        supervision: Supervises its calls; None sends them without supervision.
        refused: Ids of selected tools that must not be called any more, with the reason.
        code: Whether its model calls the tools from programs.
        replans: Whether the worker may ask for another plan.
        weak: Whether its model gets the help for weak models.
        replies: The model's replies so far, for their cost if the step is ended from outside.
    """

    tools: Mapping[str, BoundTool]
    brief: Brief = field(default_factory=Brief)
    model: BaseChatModel = field(default_factory=UnsetModel)
    prompt: str = WORKER
    own_tools: bool = True
    max_turns: int = 24
    max_calls: int = 64
    max_tokens: int | None = None
    requests: ToolRequests | None = None
    supervision: Supervision | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    code: bool = False
    replans: bool = False
    weak: bool = False
    replies: list[AIMessage] = field(default_factory=list)

    @property
    def secrets(self) -> RunSecrets | None:
        """Holds the secret arguments of its calls; if None, they stay in its conversation."""
        return self.supervision.secrets if self.supervision else None

    @property
    def step_id(self) -> str:
        """The step, if its calls are supervised."""
        return self.supervision.step_id if self.supervision else ""

    def held(self, messages: Sequence[AnyMessage]) -> dict[str, BoundTool]:
        """The tools with those that were added during this conversation, in the order of their addition."""
        return equipped(self.tools, self.requests, messages)

    def calls(self, messages: Sequence[AnyMessage], held: Mapping[str, BoundTool]) -> tuple[Call, ...]:
        """The calls of its conversation, in order; ``held`` are the tools that it has by now."""
        return calls_of(messages, held, before=self.brief.calls_before)

    def harmless(self, tool_id: str) -> bool:
        """Whether a tool is known to change nothing."""
        return self.supervision is not None and self.supervision.registry.assurance(tool_id).harm == "none"

    def _own_tools(self, calls: Sequence[Call]) -> list[dict[str, Any]]:
        """Tools of the worker itself: to end its step, to ask for tools, and to read what is shown in part."""
        if not self.own_tools:
            return []
        reads = shown_in_part(self.brief.inputs, calls)
        return [
            *([] if self.weak else [finish_definition(replans=self.replans)]),
            *([dict(DEFINITION)] if self.requests else []),
            *([dict(READ_DEFINITION)] if reads else []),
        ]

    def shown(self, held: Mapping[str, BoundTool], calls: Sequence[Call]) -> list[BaseTool | dict[str, Any]]:
        """What the model sees: its own tools, the selected and the added ones; in code mode, one that runs programs."""
        own = self._own_tools(calls)
        if not self.code:
            return [*self.tools.values(), *own, *list(held.values())[len(self.tools) :]]
        functions = functions_of(held)
        inside = {tool.id for tool in functions.values()}
        alone = [tool for tool in held.values() if tool.id not in inside]
        return [*([definition(functions)] if functions else []), *own, *alone]
