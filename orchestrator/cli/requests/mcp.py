"""``callsheet mcp``."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from click.core import ParameterSource

from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.run_options import approve_option
from callsheet.orchestrator.cli.shared_options import (
    INTERRUPTED,
    check_model,
    common,
    follow_shared_store,
    open_catalog,
    open_retriever,
)
from callsheet.orchestrator.run.process.environment import Environment

if TYPE_CHECKING:
    from mcp.server.auth.provider import TokenVerifier

    from callsheet.agents import ApprovalPolicy, ToolRegistry
    from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer


@click.group(
    "mcp", short_help="Serve a catalog to MCP clients: find, read and call its tools.", invoke_without_command=True
)
@click.option("--http", is_flag=True, help="Serve over HTTP instead of standard input and output.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to bind to, with --http."
)
@click.option(
    "--port",
    default=8766,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port, with --http; 0 selects a free one.",
)
@click.option("--url", metavar="URL", help="Public address of the gateway, for --issuer.")
@click.option(
    "--tokens",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Who may use it over HTTP: a JSON file of token hashes with users and groups.",
)
@click.option("--issuer", metavar="URL", help="Authorization server whose tokens are accepted over HTTP.")
@approve_option
@click.option(
    "--direct",
    default=0,
    show_default=True,
    type=click.IntRange(0, 50),
    help="Also show this many tools of the last searches as tools of their own.",
)
@click.option("--ask", is_flag=True, help="Also serve `ask`: a whole request to the supervisor.")
@click.option(
    "--model",
    default=Environment().model,
    metavar="PROVIDER:NAME",
    help="Chat model for --ask.  [default: CALLSHEET_MODEL]",
)
@common
@click.pass_context
def mcp(
    context: click.Context,
    catalogs: tuple[str, ...],
    place: str | None,
    embeddings: str,
    host: str,
    port: int,
    url: str | None,
    tokens: Path | None,
    issuer: str | None,
    approve: str,
    direct: int,
    model: str | None,
    *,
    http: bool,
    ask: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Let an MCP client find, read and call the tools of a catalog.

    find_tools returns ids with one line per tool, read_tools returns schemas, call_tool calls a tool on its own server.
    Before a call of a tool that is not known to be harmless, the client asks a person. With --json, the command prints
    what it would serve.

    \b
    Example, in a client's mcp.json:
      {"mcpServers": {"callsheet": {"command": "callsheet", "args": ["mcp", "--catalog", "servers.json", "--yes"]}}}
    """
    if command := context.invoked_subcommand:
        for option in context.command.params:
            if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"{option.opts[0]} is before {command!r}: put it after, or leave it out")
        return 0
    if not http and (tokens or issuer or url):
        raise click.UsageError("--tokens, --issuer and --url are for --http")
    check_model(model if ask else None)
    verifier = _verifier(tokens, issuer, url) if http else None
    with redirect_stdout(sys.stderr):  # a module of the catalog may print; standard output is the protocol's
        loaded = open_catalog(catalogs, yes=yes)
    retriever = open_retriever(loaded, place, embeddings)

    from callsheet.agents import ToolRegistry
    from callsheet.orchestrator.server.gateway import serving
    from callsheet.orchestrator.server.gateway.catalog_gateway import Gateway
    from callsheet.orchestrator.server.gateway.client_tools.supervisor_tool import supervisor_tool
    from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer

    registry = ToolRegistry.from_catalog(loaded)
    gateway = Gateway(retriever, registry, approval=cast("ApprovalPolicy", approve))
    follow_shared_store(registry, catalogs, yes=yes)
    asked = supervisor_tool(loaded, retriever, registry, model, cast("ApprovalPolicy", approve)) if ask else None
    identify = serving.http_client if http else serving.one_client()
    served = GatewayServer(gateway, identify, direct=direct, ask=asked)
    try:
        if as_json:
            tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in served.tools()]
            click.echo(json.dumps({"instructions": served.server.instructions, "tools": tools}, ensure_ascii=False))
        elif http:
            _serve_http(served, verifier, host, port, url, issuer)
        else:
            many = counted(len(retriever.catalog.tools), "tool")
            click.echo(f"serving {many} over standard input and output", err=True)
            _serve_stdio(served, registry)
    finally:
        registry.close()
    return 0


def _serve_stdio(served: GatewayServer, registry: ToolRegistry) -> None:
    """Serves until the client disconnects, or the process is interrupted."""
    from callsheet.agents.servers.session_pool import beside_sessions
    from callsheet.orchestrator.server.mcp_serving import serve_stdio

    def interrupted(*_: object) -> None:
        # The library reads standard input in a thread that nothing ends but its end.
        registry.close()
        click.echo("interrupted", err=True)
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, interrupted)
    beside_sessions(serve_stdio(served.server))


def _verifier(tokens: Path | None, issuer: str | None, url: str | None) -> TokenVerifier | None:
    from callsheet.orchestrator.server.gateway.bearer_tokens import IssuedTokens, TokenFile

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
    from callsheet.orchestrator.server.listener import listening, serve

    check_reach(host, tokens)
    environment = Environment()
    with listening(port, host) as listener:
        own = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}{PATH}"
        app = http_app(
            served,
            url=url or own,
            tokens=tokens,
            issuer=issuer,
            hosts=environment.hosts,
            origins=environment.origins,
        )
        click.echo(f"{own}  (Ctrl-C stops it)", err=True)
        serve(app, listener)
