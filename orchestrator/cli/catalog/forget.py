"""``callsheet forget``."""

from __future__ import annotations

import json

import click

from callsheet.graphs.text.sanitizing import counted


@click.command(short_help="Delete counts of earlier calls.")
@click.argument("patterns", nargs=-1, metavar="[TOOL]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object to standard output.")
def forget(patterns: tuple[str, ...], *, as_json: bool) -> int:
    """Delete counts of earlier calls: how they ended, and which tool used the result of another one.

    TOOL is the id of a tool or a pattern of ids. Without TOOL, all counts are deleted. The exit status is 1 if nothing
    matches.

    \b
    Example:
      callsheet forget "files/*"
    """
    from callsheet.graphs.dependencies import ObservationLog, OutcomeLog

    outcomes, observations = OutcomeLog(), ObservationLog()
    if patterns:
        tools, edges = sum(map(outcomes.forget, patterns)), sum(map(observations.forget, patterns))
    else:
        tools, edges = outcomes.remove(), observations.remove()
    if as_json:
        click.echo(json.dumps({"tools": tools, "dependencies": edges}))
    else:
        learned = counted(edges, "observed dependency", "observed dependencies")
        click.echo(f"forgot {counted(tools, 'tool')} and {learned}")
    return 0 if tools or edges or not patterns else 1
