"""A stand-in for a chat model, so that the examples run without a key: it calls the tool that the request names."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool


class StandIn(BaseChatModel):
    """Gives every parameter of the tool the last word of the request, and then repeats what the tool said."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Keeps the tools for the call."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        last, tools = messages[-1], kwargs.get("tools", [])
        said = AIMessage(last.text)
        if last.type == "human" and tools:
            words = set(last.text.lower().rstrip("?.").split())
            function = max((tool["function"] for tool in tools), key=lambda f: len(words & set(f["name"].split("_"))))
            args = dict.fromkeys(function["parameters"]["properties"], last.text.rstrip("?.").split()[-1])
            said = AIMessage("", tool_calls=[{"name": function["name"], "args": args, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=said)])
