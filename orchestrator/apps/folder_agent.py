"""A folder of documents as an agent of the catalog: ``"handbook": {"documents": "docs/"}`` in an ``mcp.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.servers.catalogs.python_objects import part_of_tools
from callsheet.agents.servers.in_process import APP, TOOL_MODEL
from callsheet.graphs import SourceCatalog
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import joined
from callsheet.graphs.trust.policy import READ_ONLY
from callsheet.retrievers.documents.document_index import Library
from callsheet.retrievers.documents.document_reading import Overview, overview_of

TOOL_NAME = "search_documents"
_RECURSION = 1_000
Question = Annotated[str, Field(description="The whole question, in plain words.")]


def load_folders(config: Mapping[str, ServerConfig]) -> SourceCatalog:
    """An agent for each folder, with one tool that answers questions from its documents, with citations.

    The graph ``arag`` finds the answer: with the model of the run, else of ``CALLSHEET_MODEL``. It first indexes what
    is not indexed yet.

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
        parts.append(part_of_tools(name, [tool], folder.documents, f"Documents: {about.topics}."))
    return joined(parts)


def document_tool(name: str, about: Overview, library: Library, model: str | None = None) -> BaseTool:
    """The tool ``search_documents(question)`` over one folder, also for questions that the documents do not answer.

    In a step, it answers with the model of the step's worker, otherwise with ``model``, if there is one.
    """
    about_it = f"Answers questions about {about.topics}: searches the documents of {name}, and cites them."

    def search_documents(question: Question) -> tuple[str, dict[str, Any]]:
        return _answer(_app(library, model).invoke({"messages": [("user", question)]}), model)

    async def asearch_documents(question: Question) -> tuple[str, dict[str, Any]]:
        return _answer(await _app(library, model).ainvoke({"messages": [("user", question)]}), model)

    return StructuredTool.from_function(
        func=search_documents,
        coroutine=asearch_documents,
        name=TOOL_NAME,
        description=f"{about_it} They speak of: {about.terms}." if about.terms else about_it,
        response_format="content_and_artifact",
        metadata={"annotations": dict(READ_ONLY), APP: True},
    )


def _app(library: Library, model: str | None) -> Any:
    from callsheet.orchestrator.apps.arag_graph import create_arag

    given = TOOL_MODEL.get()
    chosen = (given.model if given else None) or model
    # In a tool, LangChain's limit of 25 would hold; the graph ends by its own number of loops.
    return create_arag(library, model=chosen).compile(name="arag").with_config(recursion_limit=_RECURSION)


def _answer(state: Mapping[str, Any], model: str | None) -> tuple[str, dict[str, Any]]:
    """The answer with its artifact; that the documents say nothing is one too, and ``answered`` tells them apart.

    The cost of the models that found it is added to that of the step.
    """
    message = state["messages"][-1]
    if (given := TOOL_MODEL.get()) is not None and (given.model or model):
        given.usage += usage_of(state["messages"])
    about = message.additional_kwargs["arag"]
    if about["failed"]:
        raise ToolException(message.text)
    found = {name: state[name] for name in ("citations", "retrieved_tokens")}
    return message.text, {"answered": about["answered"], **found}
