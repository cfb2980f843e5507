"""What a request costs in each planning mode: model calls and tokens, by a scripted model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from callsheet import Settings, create_supervisor

MODES = ("none", "once", "adaptive", "auto")
COLUMNS = ("request", "planning", "model calls", "input tokens", "output tokens")
_ABOUT = (
    "Mean over 12 requests of one clause and 3 of four clauses. A scripted model plans a step a clause, calls the best "
    "tool once a step, and repeats its result; every plan runs as foreseen. Tokens are LangChain's approximation of "
    "the messages and tool schemas that the model is given, and of what it writes"
)
ONE = (
    "Convert 3 miles to kilometres", "Look up the exchange rate of the dollar", "Read the file notes.txt",
    "Send a message to Ann", "Search flights to the city of Oslo", "Book a table at noon",
    "Translate good morning into Norwegian", "Find the weather of Bergen", "List the files of a folder",
    "Create an invoice for Bob", "Play a song by ABBA", "Resize the picture cat.png",
)  # fmt: skip
FOUR = tuple(", then ".join(ONE[start : start + 4]).lower() for start in (0, 4, 8))
_DOES = (
    "Convert a length between units", "Look up the exchange rate of a currency", "Read a file",
    "Send a message to a person", "Search flights to a city", "Book a table in a restaurant",
    "Translate a text into a language",
    "Find the weather of a city", "List the files of a folder", "Create an invoice for a customer", "Play a song",
    "Resize a picture",
)  # fmt: skip


class FrugalModel(BaseChatModel):
    """Plans a step a clause, calls the first tool once, repeats the result, and reports approximated tokens."""

    @property
    def _llm_type(self) -> str:
        return "frugal"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        """Keeps the tools for the reply."""
        kwargs.pop("ls_structured_output_format", None)
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        tools = kwargs.get("tools", [])
        message = _reply(messages, tools)
        read = count_tokens_approximately(messages, tools=tools)
        written = count_tokens_approximately([message])
        usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        return ChatResult(generations=[ChatGeneration(message=message.model_copy(update={"usage_metadata": usage}))])


def _reply(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> AIMessage:
    text, names = messages[-1].text, [tool["function"]["name"] for tool in tools]
    if names == ["PlanDraft"]:
        clauses = text.partition("\n")[0].split(", then ")
        return _call("PlanDraft", steps=[{"id": str(n), "text": clause} for n, clause in enumerate(clauses, 1)])
    if isinstance(messages[-1], ToolMessage) or not names:
        return AIMessage(f"Done: {text[-60:]}")
    return _call(names[0], what="it")


def _call(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call_{name}", "type": "tool_call"}])


def measure() -> Mapping[str, object]:
    """The body of the results file: a row for each kind of request and mode."""
    agents = {f"agent{number}": [_tool(text)] for number, text in enumerate(_DOES)}
    rows = []
    for kind, requests in (("one clause", ONE), ("four clauses", FOUR)):
        for mode in MODES:
            settings = Settings(planning=mode, approval="never")
            app: Any = create_supervisor(agents, model=FrugalModel(), settings=settings).compile()
            used = [app.invoke({"messages": request})["usage"] for request in requests]
            means = [sum(one[name] for one in used) / len(used) for name in ("calls", "input_tokens", "output_tokens")]
            rows.append([kind, mode, f"{means[0]:.1f}", f"{means[1]:,.0f}", f"{means[2]:,.0f}"])
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def _tool(text: str) -> Callable[[str], str]:
    def run(what: str) -> str:
        return json.dumps({"done": what})

    run.__name__ = "_".join(text.lower().split()[:3])
    run.__doc__ = f"{text}.\n\nArgs:\n    what: What it is about."
    return run
