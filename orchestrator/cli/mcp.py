"""``callsheet mcp`` serves the gateway; ``callsheet mcp install`` adds it to an MCP client."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from platformdirs import user_config_path

from callsheet.graphs.errors import CatalogError, SettingsError
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.messages import counted
from callsheet.orchestrator.cli.approval_prompt import has_terminal
from callsheet.orchestrator.cli.shared_options import (
    FILE,
    INTERRUPTED,
    CatalogOptions,
    approval_option,
    catalog_option,
    catalogs_of,
    check_model_name,
    common,
    env,
    json_option,
    left_open,
    model_option,
    open_calls_named,
    refuse_before,
    report,
)
from callsheet.orchestrator.run.process.environment import Environment

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier

    from callsheet.agents import ApprovalPolicy
    from callsheet.graphs import Loaded
    from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer


@click.group(
    "mcp", short_help="Serve a catalog to MCP clients: find, read and call its tools.", invoke_without_command=True
)
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to bind to, with --http.")
@click.option("--port", default=8766, type=click.IntRange(0, 65535), help="Port, with --http; 0 selects a free one.")
@click.option("--url", metavar="URL", help="Public address of the gateway, for --issuer.")
@click.option(
    "--tokens",
    type=FILE,
    help="JSON file with the hashes of tokens, users and groups that may use the gateway over HTTP.",
)
@click.option("--issuer", metavar="URL", help="Authorization server whose tokens are accepted over HTTP.")
@approval_option
@click.option("--ask", is_flag=True, help="Also serve `ask`: a whole request to the supervisor.")
@model_option("Chat model for --ask.", **env("MODEL"))
@common
@click.pass_context
def mcp(
    context: click.Context,
    options: CatalogOptions,
    host: str,
    port: int,
    url: str | None,
    tokens: Path | None,
    issuer: str | None,
    approval: ApprovalPolicy,
    model: str | None,
    *,
    http: bool,
    ask: bool,
) -> int:
    """Let an MCP client find, read and call the tools of a catalog.

    find_tools returns ids with one line per tool, read_tools returns schemas, call_tool calls a tool on its own server.
    Before a call of a tool that is not known to be harmless, the client asks a person. With --json, the command prints
    what it would serve.

    \b
    Example, in a client's mcp.json:
      {"mcpServers": {"callsheet": {"command": "callsheet", "args": ["mcp", "--catalog", "servers.json", "--yes"]}}}
    """
    command = context.invoked_subcommand
    if command:
        refuse_before(context, command)
        return 0
    if not http and (tokens or issuer or url):
        raise click.UsageError("--tokens, --issuer and --url need --http")
    check_model_name(model if ask else None)
    verifier = _verifier(tokens, issuer, url) if http else None
    with redirect_stdout(sys.stderr):  # a module of the catalog may print; standard output is the protocol's
        loaded = _opened(options)
    retriever = options.retriever(loaded)

    from callsheet.agents import ToolRegistry
    from callsheet.graphs.storage import shared_store
    from callsheet.orchestrator.run.process.process_state import ServerUpdates, follow_store
    from callsheet.orchestrator.server.gateway import serving
    from callsheet.orchestrator.server.gateway.catalog_gateway import Gateway
    from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer

    registry = ToolRegistry.from_catalog(loaded)
    gateway = Gateway(retriever, registry, approval=approval)
    store = shared_store()
    if store is not None:
        follow_store(store, registry, options.reader())
    asked = serving.supervisor_tool(loaded, retriever, registry, model, approval) if ask else None
    identify = serving.http_client if http else serving.one_client()
    served = GatewayServer(gateway, identify, ask=asked)
    if not options.as_json:
        # Servers that should be asked are asked now that all follow the registry; no client waits for that.
        gateway.updates = ServerUpdates(registry, options.reader(), due=True)
    try:
        if options.as_json:
            click.echo(_offer(served))
        elif http:
            with open_calls_named(loaded):
                _serve_http(served, verifier, host, port, url, issuer)
        else:
            _serve_stdio(served, loaded, len(retriever.catalog.tools))
    finally:
        if gateway.updates:
            gateway.updates.stop.set()
        registry.close()
    return 0


def _offer(served: GatewayServer) -> str:
    """Returns what the gateway would serve, as JSON: its instructions, and its tools as ``tools/list`` sends them."""
    tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in served.tools]
    return json.dumps({"instructions": served.server.instructions, "tools": tools}, ensure_ascii=False)


def _opened(options: CatalogOptions) -> Loaded:
    """Returns the catalog as far as it is known; where that is not consistent without the servers, they are asked."""
    if options.as_json:
        return options.open()
    try:
        return options.open(known=True)
    except CatalogError:
        return options.open()


def _serve_stdio(served: GatewayServer, loaded: Loaded, tools: int) -> None:
    """Serves one client until it disconnects, or the process is interrupted."""
    from mcp.server.stdio import stdio_server

    from callsheet.agents.calls.call_context import LOOP
    from callsheet.agents.servers.session_pool import close_all

    def interrupted(*_: object) -> None:
        # The library reads standard input in a thread that nothing ends but its end.
        close_all()
        # Not through the stream: the signal may have come while something is being printed.
        os.write(2, "".join(f"{line}\n" for line in [*left_open(loaded), "interrupted"]).encode())
        os._exit(INTERRUPTED)

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await served.server.run(read, write, served.server.create_initialization_options())

    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, interrupted)
    click.echo(f"serving {counted(tools, 'tool')} over standard input and output", err=True)
    # On the loop of all sessions: its calls of tools change no threads.
    LOOP.blocking(serve())


def _verifier(tokens: Path | None, issuer: str | None, url: str | None) -> TokenVerifier | None:
    from callsheet.orchestrator.server.gateway.serving import IssuedTokens, TokenFile

    if tokens and issuer:
        raise click.UsageError("give --tokens or --issuer, not both")
    if issuer:
        if not url:
            raise click.UsageError("--issuer needs --url: tokens must be issued for the address of this gateway")
        return IssuedTokens(issuer, url)
    return TokenFile(tokens) if tokens else None


def _serve_http(
    served: GatewayServer, tokens: TokenVerifier | None, host: str, port: int, url: str | None, issuer: str | None
) -> None:
    from callsheet.orchestrator.server.gateway.serving import PATH, check_reach, http_app
    from callsheet.orchestrator.server.listener import listening, serve_app

    check_reach(host, tokens)
    environment = Environment()
    with listening(port, host) as listener:
        own = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}{PATH}"
        known = {"hosts": environment.hosts, "origins": environment.origins}
        app = http_app(served, url=url or own, tokens=tokens, issuer=issuer, **known)
        click.echo(f"{own}  (Ctrl-C stops it)", err=True)
        serve_app(app, listener)


_FILES = {
    "claude-code": Path(os.environ.get("CLAUDE_CONFIG_DIR", "~"), ".claude.json"),
    "codex": Path(os.environ.get("CODEX_HOME", "~/.codex"), "config.toml"),
    "cursor": Path("~/.cursor/mcp.json"),
    "gemini": Path("~/.gemini/settings.json"),
    "vscode": user_config_path("Code", appauthor=False, roaming=True) / "User" / "mcp.json",
}
"""The user's own configuration of each client."""


@mcp.command(short_help="Add Callsheet to an MCP client.")
@click.option("--client", required=True, type=click.Choice(list(_FILES)), help="The client.")
@catalog_option
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
    from callsheet.graphs.sources.loading import starts_in

    named = list(map(_absolute, catalogs_of(catalogs)))
    starts = [f"\n  {start}" for catalog in named for start in starts_in(catalog)]
    entry = _entry(named, consent=bool(starts))
    words = _command(client, entry)
    program = shutil.which(words[0]) if words else None
    if starts and not as_json:
        click.echo(f"Callsheet will start:{''.join(starts)}", err=True)
    if program and not dry_run:
        _run([program, *words[1:]], yes=yes)
    if program:
        text = shlex.join(words) if dry_run else f"{client} has Callsheet: restart it"
    else:
        text = _snippet(client, entry)
        click.echo(f"{f'no command {words[0]!r} here: ' if words else ''}put this into {_FILES[client]}", err=True)
    done = bool(program) and not dry_run
    content = {"client": client, "command": words, "file": str(_FILES[client]), "entry": entry, "done": done}
    report(content, text, as_json=as_json)
    return 0


def _run(words: list[str], *, yes: bool) -> None:
    line = shlex.join(words)
    if not yes:
        if not has_terminal():
            raise click.UsageError(f"there is no terminal to ask in: --yes runs {line}, --dry-run only shows it")
        click.confirm(f"Run {line}?", abort=True, err=True)
    ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode:
        said = shown(ended.stderr or ended.stdout).strip()
        raise SettingsError(f"{line} ended with status {ended.returncode}: {said}")


def _absolute(catalog: str) -> str:
    """Returns a catalog as a client in any folder can name it."""
    path = Path(catalog).expanduser().resolve()
    if not path.exists() and ":" not in catalog:  # neither module:object nor an address
        raise SettingsError(f"no catalog at {catalog}: it is not a file, a folder or module:object")
    return str(path) if path.exists() else catalog


def _entry(catalogs: list[str], *, consent: bool) -> dict[str, Any]:
    """Returns how a client starts Callsheet."""
    beside = Path(sys.executable).with_name("callsheet")
    command = str(beside) if beside.exists() else shutil.which("callsheet") or "callsheet"
    args = ["mcp", *(f"--catalog={catalog}" for catalog in catalogs), *(["--yes"] if consent else [])]
    home = os.environ.get("CALLSHEET_HOME")
    env = {"env": {"CALLSHEET_HOME": str(Path(home).expanduser().absolute())}} if home else {}
    return {"command": command, "args": args, **env}


def _command(client: str, entry: dict[str, Any]) -> list[str]:
    """Returns the client's own command that adds a server for the user; empty if it has none."""
    started = [entry["command"], *entry["args"]]
    env = [word for name, value in entry.get("env", {}).items() for word in ("--env", f"{name}={value}")]
    commands = {
        "claude-code": ["claude", "mcp", "add", "callsheet", "--scope", "user", *env, "--", *started],
        "codex": ["codex", "mcp", "add", "callsheet", *env, "--", *started],
        "gemini": ["gemini", "mcp", "add", "--scope", "user", *env, "callsheet", started[0], "--", *started[1:]],
        "vscode": ["code", "--add-mcp", json.dumps({"name": "callsheet", **entry}, ensure_ascii=False)],
    }
    return commands.get(client, [])


def _snippet(client: str, entry: dict[str, Any]) -> str:
    """Returns the entry in the form of the client's file."""
    if client == "codex":  # strings and lists of strings are the same in TOML as in JSON
        env = {f"env.{name}": value for name, value in entry.get("env", {}).items()}
        fields = {"command": entry["command"], "args": entry["args"], **env}
        lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
        return "\n".join(["[mcp_servers.callsheet]", *lines])
    return json.dumps({"servers" if client == "vscode" else "mcpServers": {"callsheet": entry}}, indent=2)
