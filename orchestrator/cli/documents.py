"""``callsheet documents``: an index, a reader and an MCP server for a folder of documents."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.text.sanitizing import counted, error_lines, shown
from callsheet.orchestrator.cli.mcp import listing_of, serve_stdio
from callsheet.orchestrator.cli.shared_options import (
    Command,
    check_model,
    index_options,
    json_option,
    progress_bar,
    report,
)
from callsheet.orchestrator.run.process.environment import Environment
from callsheet.orchestrator.run.settings import Settings

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from mcp.server import Server

    from callsheet.retrievers.documents import DocumentIndex
    from callsheet.retrievers.documents.document_index import Indexed

_INSTRUCTIONS = (
    "{documents} in {folder}. Search by words or by meaning, then read the chunks that look right and answer "
    "from those, with their ids."
)


@click.group(short_help="Index, query or serve a folder of documents.")
def documents() -> None:
    """Index a folder of documents, answer questions from it, or serve it to MCP clients.

    Reads .txt, .md, .rst, .csv and .tsv; with the extra documents also .html, .pdf, .docx and text that is not UTF-8.

    \b
    Example:
      callsheet documents ask docs/ "How many days of leave are there?"
    """


def _options(command: Command) -> Command:
    """The folder, ``index_options`` and ``--json``."""
    return click.argument("folder")(index_options(json_option(command)))


@documents.command("index", short_help="Update the index.")
@_options
def index_command(folder: str, place: str | None, embeddings: str, *, as_json: bool) -> int:
    """Update the index of FOLDER: read and embed new and changed documents, remove deleted ones.

    \b
    Example:
      callsheet documents index docs/
    """
    began = time.monotonic()
    index, found = _opened(folder, place, embeddings)
    problems = [{"document": one.agent, "kind": one.kind, "message": one.message} for one in found.problems]
    seconds, path = round(time.monotonic() - began, 3), str(index.place)
    text = (
        f"{counted(found.documents, 'document')}, {counted(found.chunks, 'chunk')}, "
        f"{counted(found.sentences, 'different sentence')}: {found.added:,} added, {found.updated:,} updated, "
        f"{found.removed:,} removed in {seconds} s\n{path}"
    )
    report({**asdict(found), "seconds": seconds, "path": path, "problems": problems}, text, as_json=as_json)
    return 0 if found.documents else 1


@documents.command("ask", short_help="Answer a question, with citations.")
@_options
@click.argument("question")
@click.option(
    "--model",
    default=Environment().model,
    metavar="PROVIDER:NAME",
    help="Chat model that searches and reads.  [default: CALLSHEET_MODEL]",
)
@click.option(
    "--naive", is_flag=True, help="Use one tool, which searches by meaning and returns whole chunks, instead of three."
)
def ask_command(
    folder: str, question: str, model: str | None, place: str | None, embeddings: str, *, naive: bool, as_json: bool
) -> int:
    """Answer QUESTION from the documents in FOLDER, with citations.

    \b
    Example:
      callsheet documents ask docs/ "Who signs travel expenses?" --model openai:gpt-5-mini
    """
    if not question.strip():
        raise click.UsageError("the question is empty: say what you want to know")
    began = time.monotonic()
    check_model(model)
    _opened(folder, place, embeddings)

    from callsheet.orchestrator.apps.arag_graph import create_arag

    settings = Settings(model=model, naive=naive)
    app = create_arag(folder, settings=settings, embeddings=embeddings, index=place).compile(name="arag")
    given: Any = {"messages": [{"role": "user", "content": question}]}
    state: dict[str, Any] = app.invoke(given)
    answer = state.pop("messages")[-1].text
    content = {"answer": answer, **state, "seconds": round(time.monotonic() - began, 3)}
    report(content, shown(answer, most=None), as_json=as_json)
    return 0 if state["citations"] else 1


@documents.command("serve", short_help="Serve the documents to MCP clients.")
@_options
def serve_command(folder: str, place: str | None, embeddings: str, *, as_json: bool) -> int:
    """Serve the documents in FOLDER to an MCP client over standard input and output.

    The tools are keyword_search, semantic_search and chunk_read. chunk_read shows each chunk only once to a client.
    With --json, the command prints what it would serve.

    \b
    Example, in a client's mcp.json:
      {"mcpServers": {"handbook": {"command": "callsheet", "args": ["documents", "serve", "docs/"]}}}
    """
    from callsheet.retrievers.documents import DocumentTools

    index, found = _opened(folder, place, embeddings)
    many, tools = counted(found.documents, "document"), DocumentTools(index).as_tools()
    instructions = _INSTRUCTIONS.format(documents=many, folder=index.folder.name)
    if as_json:
        click.echo(listing_of(instructions, listed(tools)))
        return 0
    click.echo(f"serving {many} over standard input and output", err=True)
    asyncio.run(serve_stdio(tool_server("callsheet-documents", tools, instructions)))
    return 0


def listed(tools: Sequence[BaseTool]) -> list[Any]:
    """LangChain tools as the entries of MCP's ``tools/list``."""
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from mcp import types

    entries = []
    for tool in tools:
        function, hints = convert_to_openai_tool(tool)["function"], (tool.metadata or {}).get("annotations", {})
        form = {"name": function["name"], "description": function["description"], "inputSchema": function["parameters"]}
        entries.append(types.Tool.model_validate({**form, "annotations": hints}))
    return entries


def tool_server(name: str, tools: Sequence[BaseTool], instructions: str = "") -> Server[Any]:
    """An MCP server with LangChain tools; wrong arguments and a ``ToolException`` become results for a model."""
    from langchain_core.tools import ToolException
    from mcp import MCPError, types
    from mcp.server import Server
    from pydantic import ValidationError

    by_name = {tool.name: tool for tool in tools}

    async def list_tools(context: Any, request: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed(tools))

    async def call_tool(context: Any, request: types.CallToolRequestParams) -> types.CallToolResult:
        if request.name not in by_name:
            raise MCPError(types.INVALID_PARAMS, f"no tool {request.name!r}; there are {', '.join(by_name)}")
        try:
            text, wrong = str(await by_name[request.name].ainvoke(request.arguments or {})), False
        except ValidationError as error:
            text, wrong = f"the arguments do not fit: {error_lines(error)}", True
        except ToolException as error:
            text, wrong = str(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=wrong)

    return Server(name, instructions=instructions or None, on_list_tools=list_tools, on_call_tool=call_tool)


def _opened(folder: str, place: str | None, embeddings: str) -> tuple[DocumentIndex, Indexed]:
    """Updates and returns the index of a folder; shows progress, and names the files that were left out."""
    from callsheet.retrievers.documents import DocumentIndex

    index = DocumentIndex(folder, embeddings=embeddings, index=place)
    with progress_bar("Indexing the documents") as bar:
        found = index.sync(lambda _, done, total: bar(done, total))
    for problem in found.problems:
        click.echo(f"left out: {shown(str(problem))}", err=True)
    if not found.documents:
        click.echo(f"there is no document in {shown(folder)} that can be read", err=True)
    return index, found
