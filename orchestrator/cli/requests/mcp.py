"""``callsheet mcp``."""

from __future__ import annotations

import asyncio
import json

import click

from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.shared_options import common, open_catalog, open_retriever

INSTRUCTIONS = (
    "A catalog of {tools} of {agents}. Search by meaning or by exact words, then read the few that may "
    "serve: descriptions and schemas come only with read_tools. This server finds and describes tools, it does not "
    "call them: a tool is called on the MCP server of its agent."
)


@click.command("mcp", short_help="Serve search over a catalog to MCP clients.")
@common
def mcp(catalogs: tuple[str, ...], place: str | None, embeddings: str, *, yes: bool, as_json: bool) -> int:
    """Let an MCP client find and read the tools of a catalog, over standard input and output.

    keyword_search_tools and semantic_search_tools return ids with one line per tool, read_tools returns schemas.
    The client cannot call what it finds through this server: it must be connected to the server of the tool. With
    --json, the command prints what it would serve.

    \b
    Example, in a client's mcp.json:
      {"mcpServers": {"catalog": {"command": "callsheet", "args": ["mcp", "--catalog", "manifests/", "--yes"]}}}
    """
    from callsheet.agents.tools.mcp_serving import listing, mcp_server, serve_stdio
    from callsheet.retrievers import CatalogTools

    retriever = open_retriever(open_catalog(catalogs, yes=yes), place, embeddings)
    tools = CatalogTools(retriever).as_tools()
    catalog = retriever.catalog
    said = INSTRUCTIONS.format(tools=counted(len(catalog.tools), "tool"), agents=counted(len(catalog.agents), "agent"))
    if as_json:
        click.echo(json.dumps({"instructions": said, "tools": listing(tools)}, ensure_ascii=False))
        return 0
    click.echo(f"serving {counted(len(catalog.tools), 'tool')} over standard input and output", err=True)
    asyncio.run(serve_stdio(mcp_server("callsheet", tools, instructions=said)))
    return 0
