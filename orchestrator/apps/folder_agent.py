"""A folder of documents as an agent of the catalog: ``"handbook": {"documents": "docs/"}`` in an ``mcp.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from callsheet.agents.servers.catalogs.python_objects import part_of_tools
from callsheet.graphs import CallsheetError, Part
from callsheet.graphs.catalog.formats.server_config import FolderConfig
from callsheet.graphs.catalog.loaded import joined
from callsheet.graphs.trust.policy_rules import READ_ONLY
from callsheet.orchestrator.apps.document_library import Library
from callsheet.retrievers.documents.document_overview import Overview, overview_of

TOOL_NAME = "search_documents"
_RECURSION = 1_000
_WAIT = 45.0  # seconds, less than the timeout of a call
Question = Annotated[str, Field(description="The whole question, in plain words.")]


def load_folders(config: Mapping[str, FolderConfig]) -> Part:
    """An agent for each folder, with one tool that answers questions from its documents, with citations.

    The graph ``arag`` finds the answer: with the model of ``CALLSHEET_MODEL``, or by rules without one. The documents
    are indexed at the first call.

    Raises:
        CatalogError: There is no such folder.
    """
    from callsheet.orchestrator.run.process.environment import Environment

    environment = Environment()
    parts = []
    for name, folder in config.items():
        library = Library(folder.documents, environment.embeddings, environment.index)
        seen = overview_of(library.folder())
        about = Overview(folder.description.rstrip(".") or seen.topics, seen.terms)
        tool = document_tool(name, about, library, environment.model)
        parts.append(part_of_tools(name, [tool], str(folder.documents), f"Documents: {about.topics}."))
    return joined(parts)


def document_tool(name: str, about: Overview, library: Library, model: str | None = None) -> BaseTool:
    """The tool ``search_documents(question)`` over one folder. A question without an answer there is a failed call."""
    folder = library.folder()
    said = f"Answers questions about {about.topics}: searches the documents of {name}, and cites them."

    def search_documents(question: Question) -> tuple[str, dict[str, Any]]:
        _ready(library, folder)
        return _answer(_app(library, model).invoke(_asked(question)))

    async def asearch_documents(question: Question) -> tuple[str, dict[str, Any]]:
        import asyncio

        await asyncio.to_thread(_ready, library, folder)
        return _answer(await _app(library, model).ainvoke(_asked(question)))

    return StructuredTool.from_function(
        func=search_documents,
        coroutine=asearch_documents,
        name=TOOL_NAME,
        description=f"{said} They speak of: {about.terms}." if about.terms else said,
        response_format="content_and_artifact",
        metadata={"annotations": dict(READ_ONLY)},
    )


def _app(library: Library, model: str | None) -> Any:
    from callsheet.orchestrator.apps.arag_graph import create_arag

    # In a tool, LangChain's limit of 25 would hold; the graph ends by its own number of loops.
    return create_arag(library, model=model).compile(name="arag").with_config(recursion_limit=_RECURSION)


def _ready(library: Library, folder: Path) -> None:
    try:
        library.ready(folder, _WAIT)
    except CallsheetError as error:
        raise ToolException(str(error)) from error


def _asked(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


def _answer(state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The answer with its artifact; a missing answer is a failed call, so that no step takes it for a result."""
    message = state["messages"][-1]
    if not message.additional_kwargs["arag"]["answered"]:
        raise ToolException(message.text)
    return message.text, {"citations": state["citations"], "retrieved_tokens": state["retrieved_tokens"]}
