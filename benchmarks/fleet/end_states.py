"""Tasks over installed servers: what is asked, the calls that do it, and how their end state is known.

The tasks are data from outside (``tasks.json``); ``{FLEET}`` in them stands for the folder that the servers work in.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from callsheet.graphs import CatalogError
from callsheet.graphs.catalog.model import Record

FLEET = "{FLEET}"
SANDBOX = "sandbox"
_SECONDS = 30.0


class _Given(Record):
    """The data say more than is used here."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class GoldCall(_Given):
    """One call of the gold path."""

    server: str
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)

    @property
    def id(self) -> str:
        """The tool's id in the catalog."""
        return f"{self.server}/{self.tool}"


class HasEntity(_Given):
    """A knowledge graph, one JSON object a line, holds an entity with an observation that a pattern fits."""

    kind: Literal["jsonl_entity"]
    path: Path
    name: str
    observation_regex: str

    def holds(self) -> bool:
        """Whether that is so now."""
        found = [entity for entity in _entities(self.path) if entity.get("name") == self.name]
        return any(re.search(self.observation_regex, said) for entity in found for said in entity["observations"])


class LacksEntity(_Given):
    """Such a file holds no entity of a name."""

    kind: Literal["jsonl_no_entity"]
    path: Path
    name: str

    def holds(self) -> bool:
        """Whether that is so now."""
        return all(entity.get("name") != self.name for entity in _entities(self.path))


class FileFits(_Given):
    """A file is there, and a pattern fits its text."""

    kind: Literal["file_regex"]
    path: Path
    regex: str

    def holds(self) -> bool:
        """Whether that is so now."""
        return self.path.is_file() and re.search(self.regex, self.path.read_text(encoding="utf-8")) is not None


class OutputFits(_Given):
    """A pattern fits what a command prints."""

    kind: Literal["cmd"]
    argv: tuple[str, ...]
    stdout_regex: str

    def holds(self) -> bool:
        """Whether that is so now."""
        done = subprocess.run(self.argv, capture_output=True, text=True, check=False, timeout=_SECONDS)
        return re.search(self.stdout_regex, done.stdout) is not None


Check = Annotated[HasEntity | LacksEntity | FileFits | OutputFits, Field(discriminator="kind")]


class FleetTask(_Given):
    """One task.

    Attributes:
        id: Its id in the data.
        task: The request.
        gold: The calls that do it, in order.
        check: How it is known that it was done.
        approval: Which of its calls a person must agree to before they are made, in words; none where empty.
    """

    id: str
    task: str
    gold: tuple[GoldCall, ...] = Field(min_length=1)
    check: Check
    approval: tuple[str, ...] = ()


def read_tasks(path: Path, fleet: Path) -> tuple[FleetTask, ...]:
    """The tasks of a file.

    Args:
        path: The ``tasks.json``.
        fleet: What ``{FLEET}`` stands for.

    Raises:
        CatalogError: It cannot be read, or a task lacks something.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8").replace(FLEET, _in_json(str(fleet))))
        entries = document["tasks"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{path} holds no tasks: {type(error).__name__}: {error}") from error
    return tuple(FleetTask(**entry) for entry in entries)


def moved(config: Path, scratch: Path) -> Path:
    """The same servers over a copy of their data, so that nothing of the fleet is changed.

    Args:
        config: The fleet's ``mcp.json``, beside which lies the folder ``sandbox`` with the data that its servers have.
        scratch: Where the copies go; what ``{FLEET}`` of the tasks stands for then.

    Returns:
        The ``mcp.json`` in ``scratch``.

    Raises:
        CatalogError: There is no such folder, or the servers are not told of it.
    """
    here = config.resolve().parent / SANDBOX
    text = config.read_text(encoding="utf-8")
    if not here.is_dir() or _in_json(str(here)) not in text:
        raise CatalogError(f"{config}: its servers do not work in {here}, which the tasks ask for: lay the fleet anew")
    shutil.copytree(here, scratch / SANDBOX)
    copy = scratch / "mcp.json"
    copy.write_text(text.replace(_in_json(str(here)), _in_json(str(scratch / SANDBOX))), encoding="utf-8")
    return copy


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _entities(path: Path) -> Sequence[Mapping[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [entry for line in lines if line.strip() and (entry := json.loads(line)).get("type") == "entity"]
