"""No command of a catalog is started before a person has seen it and agreed, or automation has said ``--yes``."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from platformdirs import user_data_path

from callsheet.graphs.errors import SettingsError
from callsheet.graphs.loading import servers_in
from callsheet.graphs.text import escaped


def agreed(sources: Sequence[str], *, yes: bool) -> None:
    """Returns once every command that these catalogs would start is agreed to; an agreement is remembered.

    Raises:
        SettingsError: It was refused, or there is nobody to ask.
    """
    commands = {
        hashlib.sha256(line.encode()).hexdigest(): line
        for source in sources
        for server in servers_in(source).values()
        if server.command
        for line in [shlex.join((server.command, *server.args))]
    }
    known = _remembered()
    new = {digest: line for digest, line in commands.items() if digest not in known}
    if not new or yes:
        return
    shown = "\n".join(f"  {escaped(line)}" for line in new.values())
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SettingsError(f"the catalog would start these commands:\n{shown}\nagree to them with --yes")
    click.echo(f"The catalog starts these commands:\n{shown}", err=True)
    if not click.confirm("Start them, now and in future?", err=True):
        raise SettingsError("the commands were not agreed to, so nothing was started")
    _remember(known | set(new))


def _file() -> Path:
    return Path(os.environ.get("CALLSHEET_HOME") or user_data_path("callsheet")) / "agreed.json"


def _remembered() -> set[str]:
    try:
        content = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    return set(content) if isinstance(content, list) else set()


def _remember(digests: set[str]) -> None:
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(sorted(digests), indent=1), encoding="utf-8")
    new.replace(file)
