"""A folder of documents as an agent of the catalog: ``"handbook": {"documents": "docs/"}`` in an ``mcp.json``."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.tracers.context import register_configure_hook
from pydantic import Field

from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.servers.app_tool import APP
from callsheet.agents.servers.catalogs.python_objects import part_of_tools
from callsheet.agents.servers.in_process import TOOL_MODEL, in_thread
from callsheet.graphs import CallsheetError, CatalogError, SettingsError, SourceCatalog
from callsheet.graphs.catalog.formats.server_config import FolderConfig
from callsheet.graphs.catalog.loaded import joined
from callsheet.graphs.trust.policy import READ_ONLY
from callsheet.retrievers.documents import DocumentIndex
from callsheet.retrievers.documents.document_index import Indexed, Stage
from callsheet.retrievers.documents.document_reading import Overview, overview_of
from callsheet.retrievers.index.embedding import EMBEDDED

TOOL_NAME = "search_documents"
_RECURSION = 1_000
_WAIT = 45.0  # seconds, less than the timeout of a call
FRESH, _PAUSE = 30.0, 20
"""A folder is not checked again for 20 times as long as the last check took, and at most for these seconds."""
NOT_CONFIGURED = (
    "There are no documents to answer from: set CALLSHEET_DOCUMENTS to a folder and start again, "
    "or pass one to create_arag()."
)
Question = Annotated[str, Field(description="The whole question, in plain words.")]


@dataclass(slots=True)
class Library:
    """The document indexes of this process, each opened once: of the configured folder, and of folders inside it.

    Attributes:
        root: The configured folder; None if there are no documents.
        embeddings: As in ``DocumentIndex``.
        place: Its ``index``.
    """

    root: str | Path | None
    embeddings: str | Embeddings = EMBEDDED
    place: str | Path | None = None
    _open: dict[Path, DocumentIndex] = field(default_factory=dict)
    _looked: dict[Path, tuple[float, Indexed]] = field(default_factory=dict)  # with the time of the next check
    _indexing: dict[Path, Future[Indexed]] = field(default_factory=dict)
    _progress: dict[Path, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def folder(self, wanted: str | None = None) -> Path:
        """The folder to answer from: the configured one, or one inside it.

        Raises:
            SettingsError: No folder is configured, or the wanted one is not inside it.
            CatalogError: There is no such folder.
        """
        if not self.root:
            raise SettingsError(NOT_CONFIGURED)
        root = Path(self.root).expanduser().resolve()
        if not wanted:
            return root
        try:
            found = (root / Path(wanted).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise CatalogError(f"no documents at {wanted[:80]!r}: it cannot be a path") from error
        if not found.is_relative_to(root):
            raise SettingsError(f"{wanted!r} is not inside the configured folder of documents, so it is not opened")
        return found

    def index(self, folder: Path) -> DocumentIndex:
        """The index of a folder, as of the last update.

        Raises:
            CatalogError: There is no such folder.
            SettingsError: The index cannot be opened.
        """
        with self._lock:
            if folder not in self._open:
                self._open[folder] = DocumentIndex(folder, embeddings=self.embeddings, index=self.place)
            return self._open[folder]

    def ready(self, folder: Path, seconds: float) -> None:
        """Waits until the index of a folder is up to date; a longer update continues in the background.

        Raises:
            SettingsError: It takes longer than this many seconds; the message gives its progress.
        """

        def progress(stage: str, done: int, total: int) -> None:
            self._progress[folder] = f"{stage} {done:,} of {total:,}"

        with self._lock:
            work = self._indexing.get(folder)
            if work is None or work.done():
                work = self._indexing[folder] = in_thread(lambda: self.fresh(folder, progress))
        try:
            work.result(seconds)
        except TimeoutError:
            raise SettingsError(
                f"the documents are still being indexed ({self._progress.get(folder, 'just begun')}): ask again in a "
                f"while, or run `callsheet documents index {folder}` beforehand"
            ) from None

    def fresh(self, folder: Path, progress: Stage | None = None) -> Indexed:
        """Updates the index of a folder, unless that was done a moment ago; see ``FRESH``."""
        index = self.index(folder)
        due, found = self._looked.get(folder, (float("-inf"), Indexed()))
        if (began := time.monotonic()) > due:
            found = index.sync(progress)
            ended = time.monotonic()
            self._looked[folder] = ended + min(FRESH, _PAUSE * (ended - began)), found
        return found


def load_folders(config: Mapping[str, FolderConfig]) -> SourceCatalog:
    """An agent for each folder, with one tool that answers questions from its documents, with citations.

    The graph ``arag`` finds the answer: with the model of the run, else of ``CALLSHEET_MODEL``. The
    documents are indexed at the first call.

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
    """The tool ``search_documents(question)`` over one folder, also for questions that the documents do not answer.

    In a step, it answers with the model of the step's worker, otherwise with ``model``, if there is one.
    """
    folder = library.folder()
    about_it = f"Answers questions about {about.topics}: searches the documents of {name}, and cites them."

    def search_documents(question: Question) -> tuple[str, dict[str, Any]]:
        _ready(library, folder)
        with _counted():
            return _answer(_app(library, model).invoke(_asked(question)))

    async def asearch_documents(question: Question) -> tuple[str, dict[str, Any]]:
        await asyncio.to_thread(_ready, library, folder)
        with _counted():
            return _answer(await _app(library, model).ainvoke(_asked(question)))

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


class _Messages(BaseCallbackHandler):
    """Collects what models say."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Keeps the messages of one call."""
        generations = (one for several in response.generations for one in several)
        self.messages += [one.message for one in generations if isinstance(one, ChatGeneration)]


_LISTENER: ContextVar[_Messages | None] = ContextVar("callsheet_documents", default=None)
register_configure_hook(_LISTENER, inheritable=True)


@contextmanager
def _counted() -> Iterator[None]:
    """Adds the cost of the models that are called in this block to that of the step."""
    listener = _Messages()
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
        if (given := TOOL_MODEL.get()) is not None:
            given.usage += usage_of(listener.messages)


def _ready(library: Library, folder: Path) -> None:
    try:
        library.ready(folder, _WAIT)
    except CallsheetError as error:
        raise ToolException(str(error)) from error


def _asked(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


def _answer(state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The answer with its artifact; that the documents say nothing is one too, and ``answered`` tells them apart."""
    message = state["messages"][-1]
    about = message.additional_kwargs["arag"]
    if about["failed"]:
        raise ToolException(message.text)
    found = {name: state[name] for name in ("citations", "retrieved_tokens")}
    return message.text, {"answered": about["answered"], **found}
