"""Asks a person at the terminal for the value of a parameter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from callsheet.orchestrator.cli.output.value_output import shown_text


def asked_value(name: str, schema: Mapping[str, Any]) -> tuple[str, Any]:
    """What a person types for a parameter, and its value; asks again if it does not fit."""
    from callsheet.agents.approval.questions import wanted_schema, wrong_values
    from callsheet.agents.safety.secrets import is_secret

    one = wanted_schema(schema, [name])
    spec = one["properties"][name]
    hidden = isinstance(spec, Mapping) and is_secret(name, spec)
    while said := _typed(f"{shown_text(name)} (empty leaves the step as it is)", hidden=hidden):
        problem = ""
        for value in _readings(said):
            if not (problem := wrong_values(one, {name: value})):
                return said, value
        click.echo("the value does not fit" if hidden else shown_text(problem), err=True)
    return "", None


def _readings(said: str) -> list[Any]:
    """The input as a text, and as JSON if it is valid."""
    try:
        return [said, json.loads(said)]
    except ValueError:
        return [said]


def _typed(what: str, *, hidden: bool) -> str:
    """The input of a person; empty at the end of input."""
    try:
        said: str = click.prompt(what, default="", show_default=False, hide_input=hidden, err=True)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        click.echo(err=True)
        return ""
    return said
