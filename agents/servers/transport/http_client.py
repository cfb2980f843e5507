"""An HTTP client that reads no more of an answer than a message may have, and follows nobody elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import httpx2

from callsheet.agents.servers.transport.bounded_body import BoundedBody
from callsheet.agents.servers.transport.stdio_process import ChildProcess


def bounded_client(headers: Mapping[str, str], child: ChildProcess) -> httpx2.AsyncClient:
    """A client of one server; whoever uses it bounds the time of an exchange.

    Args:
        headers: Headers of each request.
        child: Knows the limits, and notes what went beyond them.
    """

    async def bounded(response: httpx2.Response) -> None:
        response.stream = BoundedBody(response, child)

    return httpx2.AsyncClient(
        # A compressed body could grow without bound after it was counted.
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(None, connect=child.limits.start),
        follow_redirects=False,
        event_hooks={"response": [bounded]},
    )
