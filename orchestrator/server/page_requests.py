"""Checks every request of the page: the key in its address, the form of its body, and its headers."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from callsheet.graphs import CallsheetError

HEADER = "x-callsheet-key"
"""The header that holds the key; no other site can send it or knows its value."""
HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
"""The headers of every response: they forbid inline scripts, content from other sites, and text as markup."""
Endpoint = Callable[[Any, Request], Awaitable[object]]
"""A function that answers a request of a user; it gets the ``VisibleCatalog`` of that user."""
_MOST_BYTES = 1_000_000
_Form = TypeVar("_Form", bound=BaseModel)


class Parameters(BaseModel, extra="ignore"):
    """The query parameters of a request; unknown ones are ignored."""


class Body(BaseModel, extra="forbid"):
    """The body of a request; unknown fields are refused."""


class RefusedError(CallsheetError):
    """Raised if a request of the page cannot be done; ``status`` is that of HTTP."""

    status = 409


class ForbiddenError(RefusedError):
    """Raised if the user may not do what the request asks for."""

    status = 403


def check_key(request: Request, key: str = "") -> None:
    """Refuses a request without the key; without a configured key, a change still needs the header with any value.

    Raises:
        ForbiddenError: The key is missing or wrong.
    """
    given = request.headers.get(HEADER)
    if key and (given is None or not secrets.compare_digest(given.encode(), key.encode())):
        raise ForbiddenError(
            "this request does not have the key: open the whole address that callsheet explore printed"
        )
    if given is None and request.method not in ("GET", "HEAD"):
        raise ForbiddenError(f"this request has no key: send the header {HEADER}")


async def body_of(request: Request, form: type[_Form]) -> _Form:
    """Parses and returns the body of a request.

    Raises:
        RefusedError: It is too long.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:
            raise RefusedError(f"the body is longer than {_MOST_BYTES:,} bytes")
    return form.model_validate_json(body)
