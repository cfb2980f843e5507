"""A model that calls the tools whose names it is told to choose, as far as it is shown them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

COST: Any = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "input_token_details": {"cache_read": 40}}


class ChoosingModel(BaseChatModel):
    """Calls the first shown tool of ``choices`` whose word is in the request, once; then says that it is done.

    Attributes:
        choices: Word of a request -> tool name, without its agent's, and arguments.
        plan: What it plans where it is asked for a plan: texts of steps; by default the whole request.
        error: Raised in place of an answer to a request with this word.
        asked: Number of model calls.
    """

    choices: Mapping[str, tuple[str, Mapping[str, Any]]]
    plan: Sequence[str] = ()
    error: str = ""
    asked: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "choosing"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool)["function"]["name"] for tool in tools])

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        request, shown = " ".join(m.text for m in messages if m.type == "human"), kwargs.get("tools", [])
        self.asked.append(request)
        if self.error and self.error in request:
            raise RuntimeError("overloaded")
        calls: list[Any] = []
        if "PlanDraft" in shown:
            texts = self.plan or [request.partition("\n")[0]]
            steps = [{"id": str(i), "text": text, "depends_on": []} for i, text in enumerate(texts, 1)]
            calls = [{"name": "PlanDraft", "args": {"steps": steps}, "id": "plan"}]
        elif not any(m.type == "tool" for m in messages):
            wanted = [
                (tool, args)
                for word, (name, args) in self.choices.items()
                for tool in shown
                if word in request and (tool == name or tool.endswith(f"_{name}"))
            ]
            calls = [{"name": name, "args": dict(args), "id": name} for name, args in wanted[:1]]
        said = AIMessage("" if calls else "Done.", tool_calls=calls, usage_metadata=COST)
        return ChatResult(generations=[ChatGeneration(message=said)])
