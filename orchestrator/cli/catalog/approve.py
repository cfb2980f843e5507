"""``callsheet approve``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.catalog.errors import UnknownNameError, near_names
from callsheet.graphs.trust.changes import diff_of, told
from callsheet.graphs.trust.pin_book import PinBook
from callsheet.graphs.trust.pins import Change
from callsheet.orchestrator.cli.approval_prompt import has_terminal
from callsheet.orchestrator.cli.shared_options import catalog_options, open_catalog

if TYPE_CHECKING:
    from callsheet.graphs import Loaded


@click.command(short_help="Show and accept changes of servers.")
@click.argument("ids", nargs=-1, metavar="[AGENT|AGENT/TOOL]...")
@click.option("--all", "everything", is_flag=True, help="With --yes: accept all changes.")
@catalog_options
def approve(ids: tuple[str, ...], catalogs: tuple[str, ...], *, everything: bool, yes: bool, as_json: bool) -> int:
    """Show what servers changed since you accepted them, and accept the changes.

    A tool that is new, changed or suspect is neither found nor called until you accept it. In a terminal, you are
    asked about each one. With --yes, the named ones are accepted without asking; with --yes --all, everything is.

    \b
    Example:
      callsheet approve files/read_file --catalog mcp.json
    """
    loaded = open_catalog(catalogs, yes=yes, tell=False, anew=True)
    changes = list(_wanted(loaded, ids))
    accepted = [change for change in changes if _accepted(change, yes=yes and (everything or bool(ids)), quiet=as_json)]
    for book in {change.book for change in accepted}:
        PinBook(book).accept([change for change in accepted if change.book == book])
    waiting = [change for change in changes if change not in accepted]
    if as_json:
        click.echo(json.dumps(_report(changes, accepted, waiting), ensure_ascii=False))
    else:
        click.echo(f"{len(accepted)} accepted, {len(waiting)} waiting" if changes else "nothing waits for approval")
        if waiting and not sys.stdin.isatty():
            click.echo("to accept changes without a terminal, use --yes with their names or with --all", err=True)
    return 1 if waiting else 0


def _wanted(loaded: Loaded, ids: Sequence[str]) -> Iterator[Change]:
    known = {*loaded.catalog.by_id, *loaded.catalog.tools}
    known |= {name for change in loaded.changes for name in (change.id, change.agent)}
    for name in ids:
        if name not in known:
            raise UnknownNameError(f"no agent or tool {name!r} in the catalog{near_names(name, known)}")
    for change in loaded.changes:
        if not ids or change.id in ids or change.agent in ids:
            yield change


def _accepted(change: Change, *, yes: bool, quiet: bool) -> bool:
    if not quiet:
        _show(change)
    if yes or quiet or not has_terminal():
        return yes
    return click.confirm("Accept it?", err=True)


def _show(change: Change) -> None:
    click.secho(told(change), bold=True)
    for line in diff_of(change).splitlines():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.secho(f"  {line}", fg=colour)


def _report(changes: Sequence[Change], accepted: Sequence[Change], waiting: Sequence[Change]) -> dict[str, Any]:
    return {
        "changes": [
            {
                **{name: getattr(change, name) for name in ("id", "agent", "tool", "kind", "sha256")},
                "message": told(change),
                "diff": diff_of(change),
            }
            for change in changes
        ],
        "accepted": [change.id for change in accepted],
        "waiting": [change.id for change in waiting],
    }
