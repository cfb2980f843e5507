"""``callsheet mcp install`` and ``callsheet mcp uninstall``."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from callsheet.graphs.text.sanitizing import counted, escaped, shown
from callsheet.orchestrator.cli.approval_prompt import has_terminal
from callsheet.orchestrator.cli.shared_options import json_option

if TYPE_CHECKING:
    from callsheet.graphs.trust.consent import Start
    from callsheet.orchestrator.server.gateway.clients import ConfigChange, FileChange, Installation

_Command = TypeVar("_Command", bound=Callable[..., Any])
_CLIENTS = ("claude-code", "cursor", "vscode", "codex")
_LONGEST_LINE = 300


def _target(command: _Command) -> _Command:
    """Which configuration, and whether to ask."""
    for option in (
        json_option,
        click.option("--yes", is_flag=True, help="Agree to the change without a question."),
        click.option("--dry-run", is_flag=True, help="Show the change, but write nothing."),
        click.option(
            "--file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="PATH",
            help="The configuration file, if it is elsewhere.",
        ),
        click.option(
            "--project",
            is_flag=False,
            flag_value=".",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            metavar="[FOLDER]",
            help="A project's configuration instead of the user's; without FOLDER, that of the current folder.",
        ),
        click.option("--client", required=True, type=click.Choice(_CLIENTS), help="The client."),
    ):
        command = option(command)
    return command


@click.command(short_help="Put the servers of an MCP client behind Callsheet.")
@_target
@click.option(
    "--catalog",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The mcp.json that the servers go into.  [default: a file in the user's data folder]",
)
@click.option("--keep", multiple=True, metavar="NAME", help="Leave this server in the client; repeatable.")
def install(
    client: str,
    project: Path | None,
    file: Path | None,
    catalog: Path | None,
    keep: tuple[str, ...],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Put the servers of an MCP client behind Callsheet.

    The servers of the configuration move into a catalog, and one entry, callsheet, replaces them. The command shows
    the change first. A server with a field or a variable that only the client understands stays.

    \b
    Example:
      callsheet mcp install --client cursor --dry-run
    """
    installation = _installation(client, project, file)
    behind = Path(os.path.realpath((catalog or installation.default_catalog).expanduser()))
    shared = project is not None and behind.is_relative_to(project.resolve())
    change = installation.install(_entry(behind, ask=shared), behind, keep)
    if not as_json:
        for name, reason in change.stays.items():
            click.echo(f"stays in the client: {shown(name)}: {shown(reason)}", err=True)
        if project:
            click.echo(
                "note: the new entry names files of this machine; others who share the project have none", err=True
            )
    starts = _starts(change, project if shared else None)
    done = _carried_out(change, dry_run=dry_run, yes=yes, quiet=as_json, starts=starts)
    if done and shared:
        from callsheet.graphs.trust.consent import Agreements

        Agreements().add(starts)
    if as_json:
        click.echo(json.dumps(_report(client, change, done=done)))
    elif done:
        click.echo(f"{counted(len(change.moved), 'server')} behind Callsheet, in {change.catalog}: restart the client")
        click.echo(f"undo: callsheet mcp uninstall {_same(client, project, file)}", err=True)
    return 0


@click.command(short_help="Undo `callsheet mcp install`.")
@_target
def uninstall(client: str, project: Path | None, file: Path | None, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Restore the configuration of an MCP client as it was before `callsheet mcp install`.

    If it has changed since, only Callsheet's entry is removed and the servers are put back. The exit
    status is 1 if there is nothing to undo.

    \b
    Example:
      callsheet mcp uninstall --client cursor --dry-run
    """
    installation = _installation(client, project, file)
    change = installation.uninstall()
    if change is None:
        if as_json:
            click.echo(json.dumps({"client": client, "file": str(installation.file), "done": False, "moved": []}))
        else:
            click.echo(f"nothing to undo: Callsheet was not installed in {installation.file}", err=True)
        return 1
    done = _carried_out(change, dry_run=dry_run, yes=yes, quiet=as_json)
    if as_json:
        click.echo(json.dumps(_report(client, change, done=done)))
    elif done:
        click.echo(f"{counted(len(change.moved), 'server')} back in {change.config.file}: restart the client")
    return 0


def _installation(client: str, project: Path | None, file: Path | None) -> Installation:
    from callsheet.orchestrator.server.gateway.clients import Installation, McpClient, config_file

    if file and project:
        raise click.UsageError("give --file or --project, not both")
    known = McpClient(client)
    return Installation(known, file or config_file(known, project and project.absolute(), os.environ))


def _entry(catalog: Path, *, ask: bool) -> dict[str, Any]:
    """How a client starts Callsheet.

    Args:
        catalog: The catalog.
        ask: Whether commands of the catalog need consent: it lies in a project, where others change it.
    """
    beside = Path(sys.executable).with_name("callsheet")
    command = str(beside) if beside.exists() else shutil.which("callsheet") or "callsheet"
    args = ["mcp", "--catalog", str(catalog), *([] if ask else ["--yes"])]
    home = os.environ.get("CALLSHEET_HOME")
    env = {"env": {"CALLSHEET_HOME": str(Path(home).expanduser().absolute())}} if home else {}
    return {"command": command, "args": args, **env}


def _starts(change: ConfigChange, folder: Path | None) -> tuple[Start, ...]:
    """What Callsheet will start; in a folder, as a client does that is opened there."""
    from callsheet.graphs.catalog.formats.server_config import read_servers
    from callsheet.graphs.trust.consent import starts_of

    servers = read_servers(json.loads((change.catalogs[0].after or b"{}").decode("utf-8-sig")), str(change.catalog))
    with chdir(folder or Path()):
        return starts_of(servers)


def _carried_out(
    change: ConfigChange, *, dry_run: bool, yes: bool, quiet: bool, starts: tuple[Start, ...] = ()
) -> bool:
    """Shows a change, asks, and writes it; returns whether it was written.

    Raises:
        click.UsageError: Nobody can be asked.
        SettingsError: It cannot be written.
        click.Abort: The person does not agree.
    """
    change.check()
    if not quiet:
        _show(change, starts)
    if dry_run or (change.same and change.receipt):
        if not quiet and change.same:
            click.echo("nothing to change")
        return False
    if not yes:
        if not has_terminal():
            raise click.UsageError("nobody can be asked: --yes agrees to the change, --dry-run only shows it")
        click.confirm("Write this?", abort=True, err=True)
    change.write()
    return True


def _show(change: ConfigChange, starts: tuple[Start, ...]) -> None:
    from callsheet.agents.safety.secrets import Redaction

    hidden = Redaction(change.secrets)
    for file in (change.config, *change.catalogs):
        for line in _diff(file):
            text = escaped(hidden.text(line))
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            click.secho(text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…", fg=colour)
    if starts and not change.same:
        click.echo("Callsheet will start:\n" + "\n".join(f"  {start}" for start in starts), err=True)
    for note in change.notes:
        click.echo(f"note: {shown(note)}", err=True)


def _diff(change: FileChange) -> Iterator[str]:
    before, after = ((content or b"").decode("utf-8-sig").splitlines() for content in (change.before, change.after))
    names = [str(change.file) if content is not None else os.devnull for content in (change.before, change.after)]
    return unified_diff(before, after, names[0], names[1], lineterm="", n=1)


def _report(client: str, change: ConfigChange, *, done: bool) -> Mapping[str, Any]:
    return {
        "client": client,
        "file": str(change.config.file),
        "catalog": str(change.catalog),
        "done": done,
        "changed": not change.same,
        "moved": list(change.moved),
        "stays": change.stays,
        "notes": list(change.notes),
    }


def _same(client: str, project: Path | None, file: Path | None) -> str:
    """The options that name the same configuration again."""
    where = f" --project {project}" if project else f" --file {file}" if file else ""
    return f"--client {client}{where}"
