"""A stand-in for a chat model that knows the right tool of each step, and can call it only if it was given it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

from benchmarks.fleet.end_states import GoldCall
from callsheet.agents import BoundTool
from callsheet.agents.tools.binding import NEED_TOOL

_RESULT = re.compile(r"<result>\n(.*?)\n</result>", re.DOTALL)


class NotInResultsError(ValueError):
    """No earlier result holds what an argument is to be taken from."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A part of a gold argument that is not known beforehand: it is taken from an earlier step's result.

    Attributes:
        written: How the data write it.
        pattern: What finds it in the results; its first group, or all of it.
        form: A format for it as a number; it is taken as it is where empty.
    """

    written: str
    pattern: str
    form: str = ""

    def found(self, results: Sequence[str]) -> str:
        """What stands in the place of ``written``.

        Raises:
            NotInResultsError: It is in none of the results.
        """
        for text in reversed(results):
            if match := re.search(self.pattern, text):
                value = match[match.lastindex or 0]
                return format(float(value), self.form) if self.form else value
        raise NotInResultsError(f"no earlier result holds what {self.pattern!r} finds, for {self.written!r}")


def filled(args: Mapping[str, Any], taken: Sequence[Taken], results: Sequence[str]) -> dict[str, Any]:
    """Gold arguments with what the earlier steps really gave.

    Args:
        args: As the data write them.
        taken: What may be in them that is to be taken from results.
        results: What the earlier steps gave, in order.

    Raises:
        NotInResultsError: Something to be taken is in none of the results.
    """
    text = json.dumps(args)
    for part in taken:
        if (written := json.dumps(part.written)[1:-1]) in text:
            text = text.replace(written, json.dumps(part.found(results))[1:-1])
    made: dict[str, Any] = json.loads(text)
    return made


class GoldPath(BaseChatModel):
    """Calls the gold tool of its step and then repeats what that said.

    A tool that it was not given it asks for with ``need_tool``, once in the step's own words and once in those of the
    tool's description; after that it gives up. What it says comes from the conversation alone.

    Attributes:
        calls: Text of a step -> the call that does it.
        words: Id of a tool -> what it says of itself.
        taken: What is to be taken from results of earlier steps.
    """

    calls: Mapping[str, GoldCall]
    words: Mapping[str, str]
    taken: Sequence[Taken] = Field(default_factory=tuple)

    @property
    def _llm_type(self) -> str:
        return "gold-path"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        """Keeps what it is given: nothing else can be called."""
        names = {tool.id: tool.name for tool in tools if isinstance(tool, BoundTool)}
        return self.bind(names=names, can_ask=len(names) < len(tools))

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        said = self._said(messages, kwargs.get("names", {}), can_ask=kwargs.get("can_ask", False))
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _said(self, messages: Sequence[BaseMessage], names: Mapping[str, str], *, can_ask: bool) -> AIMessage:
        step, _, told = next(m.text for m in messages if isinstance(m, HumanMessage)).partition("\n\n")
        call = self.calls[step]
        answers = [message for message in messages if isinstance(message, ToolMessage)]
        requests = [answer for answer in answers if answer.name == NEED_TOOL]
        if len(answers) > len(requests):
            return AIMessage(answers[-1].text)
        if name := names.get(call.id):
            try:
                return _calling(name, filled(call.args, self.taken, _RESULT.findall(told)))
            except NotInResultsError as error:
                return AIMessage(str(error))
        wordings = (step, self.words[call.id])
        if can_ask and len(requests) < len(wordings):
            return _calling(NEED_TOOL, {"what": wordings[len(requests)]}, turn=len(requests))
        return AIMessage(f"{call.id} is not among the tools of this step")


def _calling(name: str, args: Mapping[str, Any], turn: int = 0) -> AIMessage:
    call = {"name": name, "args": dict(args), "id": f"call_{name}_{turn}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])
