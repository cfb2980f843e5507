"""Options of the commands that carry out requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from callsheet.orchestrator.run.process.environment import Environment

Command = TypeVar("Command", bound=Callable[..., Any])


def run_options(command: Command) -> Command:
    """``--model``, ``--prices`` and ``--approve``."""
    environment = Environment()
    model = click.option(
        "--model",
        default=environment.model,
        metavar="PROVIDER:NAME",
        help="Chat model for planner, workers and answer.  [default: CALLSHEET_MODEL]",
    )
    prices = click.option(
        "--prices",
        default=environment.prices,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="JSON file of model prices, for the cost of runs.  [default: CALLSHEET_PRICES]",
    )
    return model(prices(approve_option(command)))


def approve_option(command: Command) -> Command:
    """``--approve``."""
    return click.option(
        "--approve",
        default="risky",
        envvar="CALLSHEET_APPROVAL",
        show_default=True,
        show_envvar=True,
        type=click.Choice(["always", "risky", "never"]),
        help="Which calls need approval: all, those of tools that are not known to be harmless, or none.",
    )(command)
