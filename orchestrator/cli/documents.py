"""``callsheet documents`` indexes a folder of documents and answers questions from it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.messages import counted
from callsheet.orchestrator.cli.shared_options import (
    Command,
    check_model_name,
    env,
    index_options,
    json_option,
    model_option,
    progress_bar,
    report,
)
from callsheet.retrievers.documents.document_formats import suffixes

if TYPE_CHECKING:
    from callsheet.retrievers.documents import DocumentIndex
    from callsheet.retrievers.documents.document_index import Indexed


@click.group(
    short_help="Index or query a folder of documents.",
    help=f"""Index a folder of documents, or answer questions from it.

    Reads {suffixes(core=True)}; if callsheet[documents] is installed, also {suffixes(core=False)} and text that is not
    UTF-8.

    \b
    Example:
      callsheet documents ask docs/ "How many days of leave are there?"
    """,
)
def documents() -> None:
    """The group of the commands for documents."""


def _options(command: Command) -> Command:
    """Returns the folder, ``index_options`` and ``--json``."""
    return click.argument("folder")(index_options(json_option(command)))


@documents.command("index", short_help="Update the index.")
@_options
@click.option("--exact", is_flag=True, help="Embed every sentence, also of a large folder.")
def index_command(folder: str, place: str | None, embeddings: str, *, exact: bool, as_json: bool) -> int:
    """Update the index of FOLDER: read and embed new and changed documents, remove deleted ones.

    \b
    Example:
      callsheet documents index docs/
    """
    began = time.monotonic()
    index, found = _opened(folder, place, embeddings, exact=exact)
    problems = [{"document": one.agent, "kind": one.kind, "message": one.message} for one in found.problems]
    seconds = round(time.monotonic() - began, 3)
    path = str(index.place)
    text = (
        f"{counted(found.documents, 'document')}, {counted(found.chunks, 'chunk')}, "
        f"{counted(found.sentences, 'different sentence')}: {found.added:,} added, {found.updated:,} updated, "
        f"{found.removed:,} removed in {seconds} s\n{path}"
    ) + ("" if found.exact else "\nA search by meaning preselects chunks; after --exact it compares all sentences.")
    report({**asdict(found), "seconds": seconds, "path": path, "problems": problems}, text, as_json=as_json)
    return 0 if found.documents else 1


@documents.command("ask", short_help="Answer a question, with citations.")
@_options
@click.argument("question")
@model_option("Chat model that searches and reads.", **env("MODEL"))
def ask_command(
    folder: str, question: str, model: str | None, place: str | None, embeddings: str, *, as_json: bool
) -> int:
    """Answer QUESTION from the documents in FOLDER, with citations.

    \b
    Example:
      callsheet documents ask docs/ "Who signs travel expenses?" --model openai:gpt-5-mini
    """
    if not question.strip():
        raise click.UsageError("the question is empty: say what you want to know")
    began = time.monotonic()
    check_model_name(model)
    _opened(folder, place, embeddings)

    from callsheet.orchestrator.apps.arag_graph import create_arag

    app = create_arag(folder, model=model, embeddings=embeddings, index=place).compile(name="arag")
    given: Any = {"messages": [{"role": "user", "content": question}]}
    state: dict[str, Any] = app.invoke(given)
    answer = state.pop("messages")[-1].text
    content = {"answer": answer, **state, "seconds": round(time.monotonic() - began, 3)}
    report(content, shown(answer, most=None), as_json=as_json)
    return 0 if state["citations"] else 1


def _opened(folder: str, place: str | None, embeddings: str, *, exact: bool = False) -> tuple[DocumentIndex, Indexed]:
    """Updates and returns the index of a folder; shows progress, and names the files that were left out."""
    from callsheet.retrievers.documents import DocumentIndex

    index = DocumentIndex(folder, embeddings=embeddings, index=place)
    with progress_bar("Indexing the documents") as bar:
        found = index.sync(lambda _, done, total: bar(done, total), exact=exact)
    for problem in found.problems:
        click.echo(f"left out: {shown(str(problem))}", err=True)
    if not found.documents:
        click.echo(f"there is no document in {shown(folder)} that can be read", err=True)
    return index, found
