"""``callsheet mcp install``: Callsheet in the configuration of an MCP client, by the client's own command."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
from platformdirs import user_config_path

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.text.sanitizing import shown
from callsheet.orchestrator.cli.approval_prompt import has_terminal
from callsheet.orchestrator.cli.shared_options import json_option
from callsheet.orchestrator.run.process.environment import Environment

_FILES = {
    "claude-code": Path(os.environ.get("CLAUDE_CONFIG_DIR", "~"), ".claude.json"),
    "codex": Path(os.environ.get("CODEX_HOME", "~/.codex"), "config.toml"),
    "cursor": Path("~/.cursor/mcp.json"),
    "gemini": Path("~/.gemini/settings.json"),
    "vscode": user_config_path("Code", appauthor=False, roaming=True) / "User" / "mcp.json",
}
"""The user's own configuration of each client."""


@click.command(short_help="Add Callsheet to an MCP client.")
@click.option("--client", required=True, type=click.Choice(list(_FILES)), help="The client.")
@click.option(
    "--catalog",
    "catalogs",
    multiple=True,
    metavar="PATH",
    help="Catalog that Callsheet serves to the client; repeatable.  [default: CALLSHEET_CATALOG]",
)
@click.option("--dry-run", is_flag=True, help="Only print the client's command, or the entry for its file.")
@click.option("--yes", is_flag=True, help="Run the client's command without asking.")
@json_option
def install(client: str, catalogs: tuple[str, ...], *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Add Callsheet to an MCP client with the client's own command.

    If the client has no such command, or is not installed, this prints the entry for the client's file. The entry has
    --yes, so the client starts the commands of the catalog without asking; they are shown before.

    \b
    Example:
      callsheet mcp install --client claude-code --catalog servers.json
    """
    from callsheet.graphs.catalog.loading import starts_in

    named = [_absolute(catalog, _FILES[client].expanduser()) for catalog in catalogs or Environment().catalog]
    if not named:
        raise SettingsError("no catalog: give --catalog PATH, or set CALLSHEET_CATALOG")
    starts = [f"\n  {start}" for catalog in named for start in starts_in(catalog)]
    entry = _entry(named, consent=bool(starts))
    words = _command(client, entry)
    program = shutil.which(words[0]) if words else None
    if starts and not as_json:
        click.echo(f"Callsheet will start:{''.join(starts)}", err=True)
    if program and not dry_run:
        _run([program, *words[1:]], yes=yes)
    if as_json:
        done = bool(program) and not dry_run
        report = {"client": client, "command": words, "file": str(_FILES[client]), "entry": entry, "done": done}
        click.echo(json.dumps(report, ensure_ascii=False))
    elif program:
        click.echo(shlex.join(words) if dry_run else f"{client} has Callsheet: restart it")
    else:
        click.echo(f"{f'no command {words[0]!r} here: ' if words else ''}put this into {_FILES[client]}", err=True)
        click.echo(_snippet(client, entry))
    return 0


def _run(words: list[str], *, yes: bool) -> None:
    line = shlex.join(words)
    if not yes:
        if not has_terminal():
            raise click.UsageError(f"nobody can be asked: --yes runs {line}, --dry-run only shows it")
        click.confirm(f"Run {line}?", abort=True, err=True)
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode:
        said = shown(ended.stderr or ended.stdout).strip()
        raise SettingsError(f"{line} ended with status {ended.returncode}: {said}")


def _absolute(catalog: str, config: Path) -> str:
    """A catalog as a client in any folder can name it."""
    path = Path(catalog).expanduser().resolve()
    if path == config.resolve():
        raise SettingsError(f"{path} gets the entry, so Callsheet would start itself: copy the servers to another file")
    if not path.exists() and ":" not in catalog:  # neither module:object nor an address
        raise SettingsError(f"no catalog at {catalog}: it is not a file, a folder or module:object")
    return str(path) if path.exists() else catalog


def _entry(catalogs: list[str], *, consent: bool) -> dict[str, Any]:
    """How a client starts Callsheet."""
    beside = Path(sys.executable).with_name("callsheet")
    command = str(beside) if beside.exists() else shutil.which("callsheet") or "callsheet"
    args = ["mcp", *(f"--catalog={catalog}" for catalog in catalogs), *(["--yes"] if consent else [])]
    home = os.environ.get("CALLSHEET_HOME")
    env = {"env": {"CALLSHEET_HOME": str(Path(home).expanduser().absolute())}} if home else {}
    return {"command": command, "args": args, **env}


def _command(client: str, entry: dict[str, Any]) -> list[str]:
    """The client's own command that adds a server for the user; empty if it has none."""
    command, args = entry["command"], entry["args"]
    env = [word for name, value in entry.get("env", {}).items() for word in ("--env", f"{name}={value}")]
    match client:
        case "claude-code":
            return ["claude", "mcp", "add", "callsheet", "--scope", "user", *env, "--", command, *args]
        case "codex":
            return ["codex", "mcp", "add", "callsheet", *env, "--", command, *args]
        case "gemini":
            return ["gemini", "mcp", "add", "--scope", "user", *env, "callsheet", command, "--", *args]
        case "vscode":
            return ["code", "--add-mcp", json.dumps({"name": "callsheet", **entry}, ensure_ascii=False)]
    return []


def _snippet(client: str, entry: dict[str, Any]) -> str:
    """The entry in the form of the client's file."""
    if client == "codex":  # strings and lists of strings are the same in TOML as in JSON
        env = {f"env.{name}": value for name, value in entry.get("env", {}).items()}
        fields = {"command": entry["command"], "args": entry["args"], **env}
        lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
        return "\n".join(["[mcp_servers.callsheet]", *lines])
    return json.dumps({"servers" if client == "vscode" else "mcpServers": {"callsheet": entry}}, indent=2)
