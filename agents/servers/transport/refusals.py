"""Handles answers of a server over HTTP that are not results: it is busy, it failed, or it redirects."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import httpx2
from mcp.shared._httpx_utils import next_request_within_origin

from callsheet.agents.calls.outcome import Fault

BUSY = frozenset((429, 503))
"""The statuses by which a server refuses a request that it may accept later."""
LONGEST_WAIT = 10.0
"""Maximum number of seconds for which a request waits until its server accepts it again."""
_LONGEST_TEXT = 2_000


def status_of(response: httpx2.Response) -> str:
    """Returns the status with its reason, such as ``429 Too Many Requests``."""
    return f"{response.status_code} {response.reason_phrase}".strip()


def retry_after(response: httpx2.Response) -> float | None:
    """Returns the value of the header ``Retry-After`` in seconds; None if it is missing or malformed."""
    said = response.headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def describe_response(response: httpx2.Response) -> str:
    """Describes an answer whose body was read: status, text and ``Retry-After``."""
    said = f"it answers with status {status_of(response)}"
    text = response.text.strip()
    if text:
        said += f": {text[:_LONGEST_TEXT]}"
    if "retry-after" in response.headers:
        wait = retry_after(response)
        written = response.headers["retry-after"][:100] if wait is None else f"{wait:.0f} s"
        said += f"; Retry-After: {written}"
    return said


def busy(response: httpx2.Response) -> Fault:
    """Makes the fault for an answer with a status of ``BUSY``."""
    return Fault("busy", describe_response(response), effect="reported", wait=retry_after(response))


def elsewhere(response: httpx2.Response) -> str:
    """Returns the address of a redirect that a call must not follow; empty for any other answer.

    A call is sent only to the address that was shown: another host, path or query is another operation. A slash at the
    end of the path makes no difference, nor does TLS on the same host.
    """
    there = response.next_request
    here = response.request
    if there is None:
        return ""
    (path, _, query), (own, _, own_query) = (one.url.raw_path.partition(b"?") for one in (there, here))
    same_path = path.rstrip(b"/") == own.rstrip(b"/") and query == own_query and there.method == here.method
    if same_path and next_request_within_origin(response) is not None:
        return ""
    return str(there.url.copy_with(userinfo=b"", query=None, fragment=None))


def redirect_fault(response: httpx2.Response, where: str) -> Fault:
    """Makes the fault for a redirect that a call does not follow."""
    said = f"it answers with status {status_of(response)} and sends the call on to {where}, where nothing was sent"
    cure = "if that is the right address, write it into the catalog"
    return Fault("refused", f"{said}: {cure}", effect="reported")
