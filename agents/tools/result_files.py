"""Files for parts of results that are too large for a conversation or a checkpoint."""

from __future__ import annotations

import hashlib
import mimetypes
import os
import shutil
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from callsheet.agents.tools.tool_result import Keep, Kept
from callsheet.graphs.storage import cache_folder, private_folder

_DAY = 86_400.0
_TEXTS = {"text/plain": ".txt", "application/json": ".json"}


def _private(file: str, flags: int) -> int:
    return os.open(file, flags, 0o600)


class KeptResults:
    """One folder per run, with files that only the user can read, removed after a week.

    Args:
        folder: By default ``results`` in ``CALLSHEET_HOME``, otherwise in the user's cache.
        days: Days without a new file after which a run's folder is removed.
    """

    def __init__(self, folder: Path | None = None, *, days: float = 7) -> None:
        self._folder, self._days = folder, days
        self._numbers = count(1)
        self._swept = False

    def of(self, run_id: str, agent_id: str, tool: str) -> Keep:
        """A function that stores the files of one call."""

        def keep(content: bytes, media: str) -> Kept | None:
            # A full disk loses the file, not the result.
            with suppress(OSError):
                return Kept(str(self._write(run_id, f"{agent_id}-{tool}", content, media)), media, len(content))
            return None

        return keep

    def _write(self, run_id: str, name: str, content: bytes, media: str) -> Path:
        base = self._folder or cache_folder() / "results"
        self._sweep(base)
        folder = base / (run_id if run_id.isalnum() else hashlib.sha256(run_id.encode()).hexdigest()[:32])
        private_folder(folder)
        ending = _TEXTS.get(media) or mimetypes.guess_extension(media.partition(";")[0].strip()) or ".bin"
        plain = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)[:80]
        for number in self._numbers:
            file = folder / f"{number:04d}-{plain}{ending}"
            # Another process may have worked on this run before.
            with suppress(FileExistsError), open(file, "xb", opener=_private) as new:
                new.write(content)
                return file
        raise AssertionError("numbers do not end")

    def _sweep(self, base: Path) -> None:
        if self._swept or not base.is_dir():
            return
        self._swept = True
        for folder in base.iterdir():
            with suppress(OSError):
                if folder.stat().st_mtime < time.time() - self._days * _DAY:
                    shutil.rmtree(folder, ignore_errors=True)
