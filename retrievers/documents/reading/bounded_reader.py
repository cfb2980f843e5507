"""Reads documents with limits of text length, and of memory and time for formats that a library reads."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from callsheet.retrievers.documents.reading import document_formats
from callsheet.retrievers.documents.reading.chunking import Block
from callsheet.retrievers.documents.reading.document_formats import FormatError, bounded
from callsheet.retrievers.documents.reading.loaders import DocumentError, FormatLoader, Loader, not_installed

_MEMORY, _WAIT = 1_500_000_000, 5
_TEXT, _GROWTH = 4_000_000, 20
_OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)


class Reader:
    """Reads one document at a time; HTML, PDF and Word in a separate process, which starts on first use.

    Args:
        memory: Maximum memory of the process, in bytes.
        seconds: Maximum processor time per file, in seconds; the timeout is five times that.
        rate: Additional seconds per megabyte of the file.
        text: Maximum number of characters of a file's text, plus 20 per byte of the file.
    """

    def __init__(self, *, memory: int = _MEMORY, seconds: float = 60, rate: float = 20, text: int = _TEXT) -> None:
        self._memory, self._seconds, self._rate, self._text = memory, seconds, rate, text
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def blocks(self, loader: Loader, path: Path) -> Iterator[Block]:
        """The text of a file in order.

        Raises:
            DocumentError: The file is broken, or exceeds a limit.
            ImportError: The package for this format is not installed; the message names it.
        """
        size = path.stat().st_size
        most = self._text + _GROWTH * size
        if isinstance(loader, FormatLoader):
            yield from self._apart(loader, path, most, self._seconds + self._rate * size / 1e6)
            return
        try:
            for _, block in bounded(((block.text, block) for block in loader(path)), most):
                yield block
        except FormatError as error:
            raise DocumentError(str(error)) from error

    def _apart(self, loader: FormatLoader, path: Path, most: int, seconds: float) -> Iterator[Block]:
        order = {"format": loader.format, "path": str(path.resolve()), "encoding": loader.check(path)}
        process, ended = self._started(), False
        late = threading.Timer(_WAIT * seconds, process.kill)
        late.start()
        try:
            for answer in _answers(process, {**order, "seconds": seconds, "most": most}):
                if "text" not in answer:
                    ended = True
                    _check(answer, loader)
                    return
                yield Block(answer["text"], answer["page"])
            raise DocumentError(_why_it_died(process.wait(), seconds))
        finally:
            late.cancel()
            if not ended:
                self.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603 (our own script)
                [sys.executable, "-P", str(Path(document_formats.__file__)), str(self._memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
        return self._process


def _answers(process: subprocess.Popen[str], order: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    orders, answers = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
    with suppress(BrokenPipeError):  # the process has ended; so has its output
        orders.write(json.dumps(order) + "\n")
        orders.flush()
    for line in answers:
        yield json.loads(line)


def _check(answer: Mapping[str, Any], loader: FormatLoader) -> None:
    if "missing" in answer:
        raise not_installed(loader.kind, answer["missing"])
    if "wrong" in answer:
        raise DocumentError(answer["wrong"])


def _why_it_died(status: int, seconds: float) -> str:
    if status in (-_OUT_OF_TIME, -signal.SIGKILL):
        return f"to read it takes more than {seconds:.0f} s of computing, or more than this machine has: split it"
    return f"cannot be read: the process that read it ended with status {status}"
