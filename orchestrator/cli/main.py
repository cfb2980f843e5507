"""The group of all commands, and their exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from callsheet.graphs.errors import CallsheetError
from callsheet.graphs.storage import cure_of, is_full
from callsheet.graphs.text.hidden import shown
from callsheet.orchestrator.cli.add import add
from callsheet.orchestrator.cli.ask import ask
from callsheet.orchestrator.cli.call import call
from callsheet.orchestrator.cli.catalog_commands import COMMANDS as OF_CATALOGS
from callsheet.orchestrator.cli.documents import documents
from callsheet.orchestrator.cli.eval import evaluate_command
from callsheet.orchestrator.cli.explore import explore
from callsheet.orchestrator.cli.mcp import mcp
from callsheet.orchestrator.cli.review_commands import COMMANDS as REVIEWS
from callsheet.orchestrator.cli.shared_options import INTERRUPTED
from callsheet.orchestrator.cli.sign_in import sign_in, sign_out

CALLERS_MISTAKE = 2
CRASHED = 70


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True})
@click.version_option(package_name="callsheet")
def callsheet() -> None:
    """Find the agents and tools for each step of a request, and carry out the steps.

    \b
    Example:
      callsheet ask "What time is it in Tokyo when it is 9:30 in Berlin?" --catalog mcp.json
    """


for command in (add, ask, call, documents, evaluate_command, explore, mcp, sign_in, sign_out, *OF_CATALOGS, *REVIEWS):
    callsheet.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process: 0 done, 1 negative result, 2 usage error, 70 bug, 130 interrupted."""
    try:
        status = callsheet.main(arguments and list(arguments), prog_name="callsheet", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        sys.exit(_said("\ninterrupted", INTERRUPTED))
    except click.ClickException as error:
        error.show()
        sys.exit(CALLERS_MISTAKE)
    except (CallsheetError, ImportError) as error:
        sys.exit(_said(f"error: {error}", CALLERS_MISTAKE))
    except Exception as error:  # noqa: BLE001 it is told, with its trace, and ends the process
        if is_full(error):
            sys.exit(_said(f"error: {error}: {cure_of(error)}", CALLERS_MISTAKE))
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(CRASHED)
    sys.exit(status if isinstance(status, int) else 0)


def _said(message: str, status: int) -> int:
    click.echo(shown(message), err=True)
    return status
