"""``callsheet documents``: an index, a reader and an MCP server for a folder of documents."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import click

from callsheet.graphs.text.sanitizing import counted, shown
from callsheet.orchestrator.cli.shared_options import check_model, index_options, json_option
from callsheet.orchestrator.run.process.environment import Environment
from callsheet.orchestrator.run.settings import Settings

if TYPE_CHECKING:
    from callsheet.retrievers.documents import DocumentIndex
    from callsheet.retrievers.documents.document_index import Indexed

Command = TypeVar("Command", bound=Callable[..., Any])
INSTRUCTIONS = (
    "{documents} in {folder}. Search by words or by meaning, then read the chunks that look right and answer "
    "from those, with their ids."
)


@click.group(short_help="Index, query or serve a folder of documents.")
def documents() -> None:
    """Index a folder of documents, answer questions from it, or serve it to MCP clients.

    Reads .txt, .md, .rst, .csv and .tsv; after `pip install markdownify pypdf python-docx` also .html, .pdf and .docx.

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
    report = {**asdict(found), "seconds": round(time.monotonic() - began, 3), "path": str(index.place)}
    report["problems"] = [
        {"document": problem.agent, "kind": problem.kind, "message": problem.message} for problem in found.problems
    ]
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        click.echo(
            f"{counted(found.documents, 'document')}, {counted(found.chunks, 'chunk')}, "
            f"{counted(found.sentences, 'different sentence')}: {found.added:,} added, {found.updated:,} updated, "
            f"{found.removed:,} removed in {report['seconds']} s\n{report['path']}"
        )
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
    folder: str,
    question: str,
    model: str | None,
    place: str | None,
    embeddings: str,
    *,
    naive: bool,
    as_json: bool,
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
    state = app.invoke(given)
    report = {
        "answer": state["messages"][-1].text,
        "citations": state["citations"],
        "loops": state["loops"],
        "retrieved_tokens": state["retrieved_tokens"],
        "seconds": round(time.monotonic() - began, 3),
    }
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else shown(str(report["answer"]), most=None))
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
    from callsheet.agents.tools.mcp_serving import listing, mcp_server, serve_stdio
    from callsheet.retrievers.documents import DocumentTools

    index, found = _opened(folder, place, embeddings)
    tools = DocumentTools(index).as_tools()
    said = INSTRUCTIONS.format(documents=counted(found.documents, "document"), folder=index.folder.name)
    if as_json:
        click.echo(json.dumps({"instructions": said, "tools": listing(tools)}, ensure_ascii=False))
        return 0
    click.echo(f"serving {counted(found.documents, 'document')} over standard input and output", err=True)
    asyncio.run(serve_stdio(mcp_server("callsheet-documents", tools, instructions=said)))
    return 0


def _opened(folder: str, place: str | None, embeddings: str) -> tuple[DocumentIndex, Indexed]:
    """Updates and returns the index of a folder; shows progress, and names the files that were left out."""
    from rich.console import Console
    from rich.progress import Progress

    from callsheet.retrievers.documents import DocumentIndex

    index = DocumentIndex(folder, embeddings=embeddings, index=place)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Looking", total=None)
        found = index.sync(
            lambda stage, done, total: bar.update(task, description=stage.capitalize(), completed=done, total=total)
        )
    for problem in found.problems:
        click.echo(f"left out: {shown(str(problem))}", err=True)
    if not found.documents:
        click.echo(f"there is no document in {shown(folder)} that can be read", err=True)
    return index, found
