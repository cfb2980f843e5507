"""``callsheet add`` writes a published server into the user's own ``mcp.json``, after showing what it would start."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callsheet.graphs.catalog.formats.card_entries import Way, ways_of
from callsheet.graphs.catalog.formats.config_edit import ROOT, with_entry
from callsheet.graphs.catalog.formats.manifests import read_json
from callsheet.graphs.catalog.formats.server_cards import shown_line
from callsheet.graphs.catalog.formats.server_config import ROOTS, ServerConfig, read_configuration
from callsheet.graphs.errors import CatalogError, SettingsError
from callsheet.graphs.sources.cards import check_reach
from callsheet.graphs.storage import cure_of, file_lock, replace_bytes
from callsheet.graphs.text.hidden import escaped_line
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.trust.consent import Agreements, Start, starts_of
from callsheet.orchestrator.cli.approval_prompt import has_terminal
from callsheet.orchestrator.cli.shared_options import catalog_option, env, json_option, report
from callsheet.orchestrator.run.process.environment import Environment

if TYPE_CHECKING:
    from callsheet.agents.servers.catalogs.published import PublishedServer

_OWN = "mcp.json"
_REGISTRY = "https://registry.modelcontextprotocol.io"


@dataclass(frozen=True, slots=True)
class _Addition:
    """A published server as it would stand in a file."""

    published: PublishedServer
    agent: str
    way: Way
    others: tuple[Way, ...]
    refused: tuple[str, ...]
    server: ServerConfig
    starts: tuple[Start, ...]
    file: Path

    @property
    def is_own(self) -> bool:
        """Returns whether the file is the user's own, and none of another program.

        It is an ``mcp.json`` in a plain folder, whose servers do not stand under the key of another program.
        """
        if self.file.name != _OWN or self.file.parent.name.startswith("."):
            return False
        document = read_json(self.file) if self.file.is_file() else {}
        return not isinstance(document, dict) or ROOT in document or document.keys().isdisjoint(ROOTS)


@click.command(short_help="Add a published MCP server to your mcp.json.")
@click.argument("name")
@click.option(
    "--registry", default=_REGISTRY, metavar="URL", **env("REGISTRY"), help="Address of the registry with the name."
)
@click.option("--card", metavar="NAME", help="Which server, if an address has several.")
@click.option("--via", metavar="KIND", help="remote, or the kind of package: npm, pypi, nuget, oci.")
@click.option("--name", "agent", metavar="ID", help="Name of the entry.  [default: the end of its name]")
@click.option("--yes", is_flag=True, help="Write the entry without asking.")
@catalog_option
@json_option
def add(
    name: str,
    registry: str,
    card: str | None,
    via: str | None,
    agent: str | None,
    catalogs: tuple[str, ...],
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """Add the server NAME of a registry, or of the cards at an address, to your own mcp.json.

    It shows what would be started, or connected to, and which variables it needs, and asks. Secrets are never written:
    the entry refers to variables of your environment. Files of other programs are not changed: the entry is printed.

    \b
    Examples:
      callsheet add io.github.example/weather --catalog mcp.json
      callsheet add https://example.com
    """
    from callsheet.agents.servers.catalogs.published import published_server

    published = asyncio.run(published_server(name, registry, card=card or ""))
    if published.status == "deleted":
        raise SettingsError(f"{published.source} has deleted {published.card.name}: it is not added")
    addition = _addition(published, agent or published.card.short_name, via or "", _file(catalogs))
    if not as_json:
        _show(addition)
    text = _entry_text(addition)
    added = False
    if not addition.is_own:
        click.echo(f"{addition.file} belongs to another program: put this entry into it yourself", err=True)
    elif yes or _agrees(addition, text):
        _write(addition)
        added = True
        text = f"{addition.agent} is in {addition.file}"
    report(_content(addition, added=added), text, as_json=as_json)
    return 0 if added else 1


def _file(catalogs: Sequence[str]) -> Path:
    """Returns the file for the entry: the one ``mcp.json`` that was named, or that of the present folder."""
    files = [name for name in catalogs or Environment().catalog if name.endswith(".json")] or [_OWN]
    if len(files) > 1:
        raise click.UsageError(f"name one file with --catalog, not {', '.join(files)}")
    return Path(files[0]).expanduser().absolute()


def _addition(published: PublishedServer, agent: str, via: str, file: Path) -> _Addition:
    card = published.card
    if not agent.isprintable() or "/" in agent or escaped_line(agent) != agent:
        raise click.BadParameter(f"{escaped_line(agent)!r} is no name of an entry", param_hint="--name")
    ways = ways_of(card, agent)
    chosen = [way for way in ways.usable if via in ("", way.kind)]
    if not chosen:
        kinds = ", ".join(dict.fromkeys(way.kind for way in ways.usable))
        reasons = "".join(f"\n  {reason}" for reason in ways.refused)
        raise SettingsError(f"{card.name} has no usable way {via}".rstrip() + f": there is {kinds or 'none'}{reasons}")
    way = chosen[0]
    if way.kind == "remote":
        check_reach(way.entry["url"], published.source)
    read = read_configuration({ROOT: {agent: way.entry}}, file)
    if read.problems:
        raise CatalogError(str(read.problems[0]))
    others = tuple(one for one in ways.usable if one is not way)
    starts = starts_of(read.servers)
    return _Addition(published, agent, way, others, ways.refused, read.servers[agent], starts, file)


def _show(addition: _Addition) -> None:
    """Shows a server on standard error; whatever its publisher has written stands in lines of its own."""
    published = addition.published
    card = published.card
    lines = [f"{shown_line(card.title or card.name)} {shown_line(card.version)} ({card.name}), from {published.source}"]
    if card.description:
        lines.append(f"  {shown_line(card.description)}")
    if published.status not in ("", "active"):
        lines.append(f"The registry says: {published.status}.")
    does = "start" if addition.server.command else "connect to"
    reached = [str(start) for start in addition.starts] or [f"{addition.agent}: {addition.server.url}"]
    lines += [f"It would {does}:", *(f"  {line}" for line in reached)]
    lines += _need_lines(addition.way)
    for other in addition.others:
        lines.append(f"Another way, --via {other.kind}: {escaped_line(json.dumps(other.entry, ensure_ascii=False))}")
    lines += [f"Not usable: {reason}" for reason in addition.refused]
    lines += [f"Not read: {reason}" for reason in published.left_out]
    click.echo("\n".join(lines), err=True)


def _need_lines(way: Way) -> list[str]:
    """Returns what a server needs, and may have, of the environment: names, and whether they are set."""
    lines = ["It needs these variables of your environment:"] if way.needs else []
    for need in way.needs:
        notes = ["secret"] if need.secret else []
        notes.append("set" if need.variable in os.environ else "not set")
        lines.append(f"  {need.variable}: {need.what} ({', '.join(notes)})")
    if way.optional:
        lines.append(f"It may also have: {', '.join(way.optional)}")
    return lines


def _agrees(addition: _Addition, text: str) -> bool:
    """Asks whether the entry is written; who agrees has consented to what it starts, as it was shown."""
    if not has_terminal():
        raise click.UsageError(f"there is no terminal to ask in: --yes writes this into {addition.file}:\n{text}")
    if not click.confirm(f"Write it into {addition.file}?", err=True):
        return False
    Agreements().add(addition.starts)
    return True


def _write(addition: _Addition) -> None:
    """Adds the entry to the file, for one process at a time."""
    file = addition.file
    try:
        with file_lock(file):
            before = file.read_bytes().decode("utf-8") if file.exists() else ""
            after = with_entry(before, addition.agent, addition.way.entry, str(file))
            replace_bytes(file, after.encode(), mode=0o666)
    except UnicodeDecodeError as error:
        raise CatalogError(f"{file}: it is not UTF-8") from error
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror or error}: {cure_of(error)}") from error


def _entry_text(addition: _Addition) -> str:
    return json.dumps({addition.agent: addition.way.entry}, indent=2, ensure_ascii=False)


def _content(addition: _Addition, *, added: bool) -> JsonObject:
    way = addition.way
    needs = [
        {"variable": need.variable, "what": need.what, "secret": need.secret, "set": need.variable in os.environ}
        for need in way.needs
    ]
    return {
        "name": addition.published.card.name,
        "version": addition.published.card.version,
        "source": addition.published.source,
        "status": addition.published.status,
        "agent": addition.agent,
        "via": way.kind,
        "others": [other.kind for other in addition.others],
        "entry": way.entry,
        "needs": needs,
        "optional": list(way.optional),
        "file": str(addition.file),
        "added": added,
    }
