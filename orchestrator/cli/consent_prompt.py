"""No command of a catalog is started, no folder read, before a person has agreed, or automation has said ``--yes``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from callsheet.graphs.catalog.errors import TrustError
from callsheet.graphs.catalog.loading import starts_in
from callsheet.graphs.storage import yes_from_environment
from callsheet.graphs.trust.consent import Agreements, doing


def ask_consent(sources: Sequence[str], *, yes: bool) -> None:
    """Asks the person at the terminal for what these catalogs would start and was not agreed to; remembers a yes.

    Where nobody can be asked, loading the catalog refuses and says what to do.

    Raises:
        TrustError: The person does not agree.
    """
    if yes or yes_from_environment() or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    agreements = Agreements()
    known = agreements.known()
    starts = {start.digest: start for source in sources for start in starts_in(source)}
    new = [start for digest, start in starts.items() if digest not in known]
    if not new:
        return
    click.echo(f"The catalog wants to {doing(new)}:\n" + "\n".join(f"  {start}" for start in new), err=True)
    if not click.confirm("Agree, now and in future?", err=True):
        raise TrustError("they were not agreed to, so nothing was started or read")
    agreements.add(new)
