"""Asks for consent before a catalog starts commands or reads folders; ``--yes`` gives it in automation."""

from __future__ import annotations

from collections.abc import Sequence

import click

from callsheet.graphs.catalog.errors import TrustError
from callsheet.graphs.catalog.loading import starts_in
from callsheet.graphs.storage import yes_from_environment
from callsheet.graphs.trust.consent import Agreements, doing
from callsheet.orchestrator.cli.approval_prompt import has_terminal


def ask_consent(sources: Sequence[str], *, yes: bool) -> None:
    """Asks at the terminal for consent to what these catalogs would start or read, and stores it.

    If nobody can be asked, loading the catalog fails with an error that says what to do.

    Raises:
        TrustError: The person does not agree.
    """
    if yes or yes_from_environment() or not has_terminal():
        return
    agreements = Agreements()
    known = agreements.known()
    starts = {start.digest: start for source in sources for start in starts_in(source)}
    new = [start for digest, start in starts.items() if digest not in known]
    if not new:
        return
    click.echo(f"The catalog wants to {doing(new)}:\n" + "\n".join(f"  {start}" for start in new), err=True)
    if not click.confirm("Agree, now and in future?", err=True):
        raise TrustError("there is no consent, so nothing was started or read")
    agreements.add(new)
