"""One attempt of a model at a request, and the file that keeps attempts."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from callsheet.agents import Call, Usage
from callsheet.graphs import SettingsError
from callsheet.graphs.storage.local_files import private_file


class Attempt(BaseModel):
    """What a model did with one request in one arm.

    Attributes:
        offered: Ids of the tools that the model was shown.
        answer: Its last text.
        steps: Texts of the planned steps; empty in an arm without a plan.
        stopped: Why it ended before the model was done: a limit, or a question to the user; empty otherwise.
        failure: The error of the model; such an attempt is not kept.
        unmet: The checks of a task that do not hold afterwards.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    offered: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    answer: str = ""
    usage: Usage = Usage()
    steps: tuple[str, ...] = ()
    stopped: str = ""
    failure: str = ""
    unmet: tuple[str, ...] = ()


class AttemptLog:
    """Attempts by content, in a JSON Lines file that only its owner may read.

    An attempt is appended as soon as it is made, so a killed evaluation loses only those under way. A line that was
    cut off is ignored.

    Raises:
        SettingsError: The file cannot be read, or is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Attempt] = {}
        try:
            content = path.read_text(encoding="utf-8") if path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"the attempts in {path} cannot be read: {error}") from error
        for line in content.split("\n"):  # JSON text may contain other ends of lines
            with suppress(ValueError, KeyError, TypeError):  # the line of a killed process
                entry = json.loads(line)
                self._known[entry["key"]] = Attempt(**entry["attempt"])
        if content and not self._known:
            raise SettingsError(f"{path} holds no attempts of `callsheet eval --model`: choose another file")
        self._cut = bool(content) and not content.endswith("\n")

    @staticmethod
    def key(*parts: Any) -> str:
        """SHA-256 of the values that decide what an attempt is."""
        return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()

    def get(self, key: str) -> Attempt | None:
        """The attempt with this key, if there is one."""
        return self._known.get(key)

    def add(self, key: str, attempt: Attempt) -> None:
        """Appends an attempt."""
        line = json.dumps({"key": key, "attempt": attempt.model_dump(mode="json")}, ensure_ascii=False)
        with private_file(self.path).open("a", encoding="utf-8") as file:
            file.write(f"{'' if not self._cut else chr(10)}{line}\n")
        self._known[key], self._cut = attempt, False
