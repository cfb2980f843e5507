"""The graph ``arag``: answers questions from a folder of documents, one tool call at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph

from callsheet.agents import ModelError, chat_model
from callsheet.agents.models.chat_models import check_model
from callsheet.graphs import CallsheetError
from callsheet.graphs.text.sanitizing import bounded, check_type
from callsheet.orchestrator.apps.document_library import Library
from callsheet.orchestrator.apps.document_reader import NAIVE_READER, READER, asked, checked, ran, spent
from callsheet.orchestrator.run.run_context import context
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.run.sync_bridge import sync_and_async
from callsheet.orchestrator.state import ReaderInput, ReaderOutput, ReaderState
from callsheet.retrievers.documents import (
    NOT_FOUND,
    DocumentTools,
    best_passages,
    semantic_search,
)
from callsheet.retrievers.index.embedding import EMBEDDED

_FIRST = 3  # chunks to read where no model searches by itself


def create_arag(
    documents: str | Path | Library | None = None,
    *,
    model: str | BaseChatModel | None = None,
    settings: Settings | None = None,
    embeddings: str | Embeddings = EMBEDDED,
    index: str | Path | None = None,
    prompt: str | None = None,
) -> StateGraph[ReaderState, Settings, ReaderInput, ReaderOutput]:
    """A workflow that answers questions from a folder of documents, with citations.

    The model searches by words and by meaning and reads chunks, one call at a time, until it answers or its budget of
    loops or tokens is spent; then it must answer. Without a model, the chunks that are nearest in meaning are
    read once, and their sentences that fit best are the answer.

    Args:
        documents: The folder, or a ``Library``; without it, the workflow says what to configure.
        model: Chat model, ``provider:model`` or an object.
        settings: Defaults for the ``context`` of a run.
        embeddings: As in ``DocumentIndex``.
        index: As in ``DocumentIndex``.
        prompt: System prompt that replaces the default.

    Returns:
        An uncompiled ``StateGraph``; with a checkpointer, a thread remembers what was read. It takes ``messages`` and
        returns ``messages``, ``citations``, ``loops`` and ``retrieved_tokens``.

    Raises:
        SettingsError: The model or the settings have another type.

    Source: A-RAG (arXiv 2602.03442), Algorithm 1.
    """
    check_model(model)
    check_type(settings, Settings, "settings")
    nodes = ReaderNodes(
        library=documents if isinstance(documents, Library) else Library(documents, embeddings, index),
        defaults=settings or Settings(model=model if isinstance(model, str) else None),
        object_model=model if isinstance(model, BaseChatModel) else None,
        prompt=prompt,
    )
    arag = StateGraph(ReaderState, context_schema=Settings, input_schema=ReaderInput, output_schema=ReaderOutput)
    arag.add_node("prepare", nodes.prepare)
    arag.add_node("think", sync_and_async(nodes.think, "think"))
    arag.add_node("act", nodes.act)
    arag.add_node("answer", nodes.answer)
    arag.add_edge(START, "prepare")
    arag.add_conditional_edges("prepare", nodes.ready, ["think", "answer"])
    arag.add_conditional_edges("think", nodes.wants, ["act", "answer"])
    arag.add_edge("act", "think")
    arag.add_edge("answer", END)
    return arag


@dataclass(frozen=True, slots=True)
class ReaderNodes:
    """The nodes of ``arag``, with the objects that must stay out of the state."""

    library: Library
    defaults: Settings
    object_model: BaseChatModel | None
    prompt: str | None

    def settings(self) -> Settings:
        """The settings of the current run."""
        given = context()
        return given.over(self.defaults) if given else self.defaults

    def model(self) -> BaseChatModel | None:
        """The chat model of the current run: from its context, else the workflow's own, else none."""
        given = context()
        chosen = given.model if given else None
        if chosen is None and self.object_model is not None:
            return self.object_model
        name = chosen or self.defaults.model
        return chat_model(name) if name else None

    def prepare(self, state: ReaderInput) -> dict[str, Any]:
        """Starts a question: resets the budget and updates the index; chunks read earlier in the thread stay read."""
        fresh: dict[str, Any] = {"citations": [], "loops": 0, "retrieved_tokens": 0, "forced": False, "folder": ""}
        write = get_stream_writer()

        def progress(stage: str, done: int, total: int) -> None:
            write({"event": "indexing", "stage": stage, "done": done, "total": total})

        try:
            if not _question(state["messages"]):
                return {**fresh, "trouble": "There is no question: send one as the last message."}
            bounded(_question(state["messages"]), self.settings().max_request, "max_request")
            self.model()
            folder = self.library.folder(self.settings().documents)
            found = self.library.fresh(folder, progress)
        except (CallsheetError, ImportError) as error:
            return {**fresh, "trouble": str(error)}
        if not found.documents:
            reasons = "; ".join(map(str, found.problems[:3]))
            return {**fresh, "trouble": f"There is no document in {folder.name} that can be read. {reasons}".strip()}
        return {**fresh, "folder": str(folder), "trouble": ""}

    @staticmethod
    def ready(state: ReaderState) -> Literal["think", "answer"]:
        """Starts the work, unless there is an error."""
        return "answer" if state["trouble"] else "think"

    async def think(self, state: ReaderState) -> dict[str, Any]:
        """The next call, or the answer; once the budget is spent, the answer without further calls."""
        settings, model, folder = self.settings(), self.model(), Path(state["folder"])
        messages = state["messages"]
        over = state["loops"] >= settings.max_loops or spent(messages) > settings.max_tokens
        loops = {"loops": state["loops"] + 1, "forced": over}
        if model is None:
            return {
                **loops,
                "messages": [
                    await asyncio.to_thread(self._quoted, messages, folder, naive=settings.naive, forced=over)
                ],
            }
        tools = [] if over else self._tools(folder, settings, dict(state.get("read") or {}))
        prompt = self.prompt or (NAIVE_READER if settings.naive else READER)
        try:
            reply = await asked(model, messages, tools, prompt=prompt)
        except ModelError as error:
            quotes = await asyncio.to_thread(self._quoted, messages, folder, naive=settings.naive, forced=True)
            reply = quotes.model_copy(update={"content": f"{quotes.text}\n({error})"})
        if tools and not reply.tool_calls and not state.get("read"):
            looked = await asyncio.to_thread(self._first_look, messages, folder, naive=settings.naive)
            reply = looked or reply
        return {**loops, "messages": [reply]}

    @staticmethod
    def wants(state: ReaderState) -> Literal["act", "answer"]:
        """Whether the last message has a call."""
        last = state["messages"][-1]
        return "act" if isinstance(last, AIMessage) and last.tool_calls else "answer"

    def act(self, state: ReaderState) -> dict[str, Any]:
        """Makes the call, and records what was read."""
        last = state["messages"][-1]
        call = last.tool_calls[0] if isinstance(last, AIMessage) else ToolCall(name="", args={}, id="")
        settings = self.settings()
        tools = self._tools(Path(state["folder"]), settings, dict(state.get("read") or {}))
        message = ran(call, tools)
        artifact = message.artifact or {}
        spent_now = int(artifact.get("tokens", 0))
        return {
            "messages": [message],
            "read": artifact.get("read", {}),
            "retrieved_tokens": state["retrieved_tokens"] + spent_now,
        }

    def answer(self, state: ReaderState) -> dict[str, Any]:
        """The answer, with citations of chunks that exist and were read only."""
        if state["trouble"]:
            said = {"arag": {"answered": False, "failed": True}}
            return {"messages": [AIMessage(state["trouble"], name="arag", additional_kwargs=said)]}
        last = state["messages"][-1]
        index = self.library.index(Path(state["folder"]))
        read = [chunk for chunk in state.get("read") or {} if index.chunk(chunk) is not None]
        found = checked(last.text, read)
        text, citations = found.text or "The model gave no answer.", list(found.citations)
        nothing_found = last.additional_kwargs.get("arag", {}).get("answered") is False
        if not nothing_found and not citations and self.model() is not None:
            citations = [chunk for chunk in _read_since(state["messages"]) if chunk in read]
            text += f"\n(It cites nothing. Read for it: [{'] ['.join(citations)}])" if citations else ""
        about = {
            "answered": bool(found.text) and not nothing_found,
            "failed": not found.text,
            "citations": list(found.citations),
            "dropped": list(found.dropped),
            "forced": state["forced"],
        }
        final = AIMessage(text, name="arag", id=last.id, additional_kwargs={"arag": about})
        return {"messages": [final], "citations": citations}

    def _tools(self, folder: Path, settings: Settings, read: dict[str, str]) -> list[BaseTool]:
        return DocumentTools(self.library.index(folder), read=read).as_tools(naive=settings.naive)

    def _first_look(self, messages: Sequence[AnyMessage], folder: Path, *, naive: bool) -> AIMessage | None:
        """A search, then reading its results, where no model searches by itself."""
        index, question, since = self.library.index(folder), _question(messages), _since(messages)
        called = {call["name"] for message in since if isinstance(message, AIMessage) for call in message.tool_calls}
        if called & {"chunk_read", "search_and_read"}:
            return None
        if naive:
            return _called("search_and_read", messages, query=question, top_k=_FIRST)
        if not called:
            return _called("semantic_search", messages, query=question)
        found = semantic_search(index, question, top_k=_FIRST).hits
        return _called("chunk_read", messages, chunk_ids=[hit.chunk for hit in found]) if found else None

    def _quoted(self, messages: Sequence[AnyMessage], folder: Path, *, naive: bool, forced: bool) -> AIMessage:
        """The next call of the first look; after it, the passages that fit best of what was read."""
        if not forced and (call := self._first_look(messages, folder, naive=naive)):
            return call
        found = best_passages(_question(messages), self.library.index(folder), _read_since(messages))
        text = "\n".join(map(str, found)) or NOT_FOUND
        return AIMessage(text, additional_kwargs={"arag": {"answered": bool(found)}})


def _called(name: str, messages: Sequence[AnyMessage], **args: Any) -> AIMessage:
    """A call in the form of a model's message."""
    made = ToolCall(name=name, args=args, id=f"call_{len(messages)}", type="tool_call")
    return AIMessage("", tool_calls=[made])


def _question(messages: Sequence[AnyMessage]) -> str:
    asked = messages if len(messages) == 1 else [m for m in messages if isinstance(m, HumanMessage)]
    return asked[-1].text.strip() if asked else ""


def _since(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """The messages after the question."""
    last = max((place for place, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    return messages[last + 1 :]


def _read_since(messages: Sequence[AnyMessage]) -> list[str]:
    """The chunks that were read for the question, for the first time or again."""
    given = [message.artifact or {} for message in _since(messages) if isinstance(message, ToolMessage)]
    return list(dict.fromkeys(chunk for one in given for chunk in one.get("chunks", ())))
