"""``callsheet store``."""

from __future__ import annotations

import json
import time

import click

from callsheet.graphs.text.sanitizing import counted


@click.group(short_help="Copy stored data to another place.")
def store() -> None:
    """Copy stored data: pins, consents, tool lists, observations, outcomes and vectors."""


@store.command(short_help="Copy stored data to another place.")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object to standard output.")
def copy(source: str, target: str, *, as_json: bool) -> int:
    """Copy stored data from one place to another.

    FROM and TO are a folder (a CALLSHEET_HOME), postgresql://user:password@host/database[?schema=name], or `local` for
    your own folders. Nothing is overwritten: the exit status is 1 if TO has a file with different content.
    The texts of document folders are not copied; they are read again from the folders.

    \b
    Example:
      callsheet store copy local "$CALLSHEET_STORE"
    """
    from callsheet.graphs.storage import copy_files
    from callsheet.retrievers.index.rows.rows_copy import copy_rows

    began = time.monotonic()
    files = copy_files(source, target)
    vectors = copy_rows(source, target)
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        rows = len(files.names) + vectors
        report = {"rows": rows, "files": files.names, "vectors": vectors, "kept": files.kept, "seconds": seconds}
        click.echo(json.dumps(report))
    else:
        copied = f"{counted(len(files.names), 'file')} and {counted(vectors, 'vector')}"
        click.echo(f"copied {copied} in {seconds} s")
        for name in files.kept:
            click.echo(f"not copied, because the target has another one: {name}", err=True)
    return 1 if files.kept else 0
