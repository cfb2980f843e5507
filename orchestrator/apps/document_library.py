"""The document indexes of this process: opened once, and updated from time to time."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.embeddings import Embeddings

from callsheet.graphs import CatalogError, SettingsError
from callsheet.retrievers.documents import DocumentIndex
from callsheet.retrievers.documents.document_index import Indexed, Stage
from callsheet.retrievers.index.embedding import EMBEDDED

FRESH, _PAUSE = 30.0, 20
"""A folder is not checked again for 20 times as long as the last check took, and at most for these seconds."""
NOT_CONFIGURED = (
    "There are no documents to answer from: set CALLSHEET_DOCUMENTS to a folder and start again, "
    "or pass one to create_arag()."
)


@dataclass(slots=True)
class Library:
    """Opens the indexes of the configured folder and folders inside it, and of no other folder.

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
    _indexing: dict[Path, _Indexing] = field(default_factory=dict)
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
        with self._lock:
            if (work := self._indexing.get(folder)) is None:
                work = self._indexing[folder] = _Indexing(self, folder)
        if not work.done.wait(seconds):
            raise SettingsError(
                f"the documents are still being indexed ({work.said}): ask again in a while, "
                f"or run `callsheet documents index {folder}` beforehand"
            )
        with self._lock:
            if self._indexing.get(folder) is work:  # several may have waited for it
                del self._indexing[folder]
        if work.error is not None:
            raise work.error

    def fresh(self, folder: Path, progress: Stage | None = None) -> Indexed:
        """Updates the index of a folder, unless that was done a moment ago; see ``FRESH``."""
        index = self.index(folder)
        due, found = self._looked.get(folder, (float("-inf"), Indexed()))
        if (began := time.monotonic()) > due:
            found = index.sync(progress)
            ended = time.monotonic()
            self._looked[folder] = ended + min(FRESH, _PAUSE * (ended - began)), found
        return found


class _Indexing:
    """An update of an index in its own thread."""

    def __init__(self, library: Library, folder: Path) -> None:
        self.done = threading.Event()
        self.said = "just begun"
        self.error: Exception | None = None
        threading.Thread(target=self._run, args=(library, folder), name="callsheet-indexing", daemon=True).start()

    def _run(self, library: Library, folder: Path) -> None:
        try:
            library.fresh(folder, self._progress)
        except Exception as error:  # noqa: BLE001 (handed to the waiting thread)
            self.error = error
        finally:
            self.done.set()

    def _progress(self, stage: str, done: int, total: int) -> None:
        self.said = f"{stage} {done:,} of {total:,}"
