"""What every request of the page is subject to: the key of the page's address, the form of a body, the headers."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from callsheet.graphs import CallsheetError

HEADER = "x-callsheet-key"
"""The header of every request that changes something: no other site can send it, or knows its value."""
HEADERS: Mapping[str, str] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
"""Headers of every response: no inline scripts, nothing from other sites, no text as markup."""
Endpoint = Callable[[Any, Request], Awaitable[object]]
"""Answers a request of a user, of whom it gets the ``VisibleCatalog``."""
_MOST_BYTES = 1_000_000
_Form = TypeVar("_Form", bound=BaseModel)


class Parameters(BaseModel, extra="ignore"):
    """Query parameters; unknown ones are ignored."""


class Body(BaseModel, extra="forbid"):
    """The body of a request; unknown fields are refused."""


class RefusedError(CallsheetError):
    """What the page asks for cannot be done; ``status`` is that of HTTP."""

    status = 409


class ForbiddenError(RefusedError):
    """Whoever asks may not have it done."""

    status = 403


class PageKey:
    """The secret of the page's address; without one, the header needs no particular value."""

    def __init__(self, key: str = "") -> None:
        self._key = key

    def allows(self, request: Request) -> bool:
        """Whether a request comes from the page, with its key."""
        given = request.headers.get(HEADER)
        return given is not None and (not self._key or secrets.compare_digest(given.encode(), self._key.encode()))

    def check(self, request: Request) -> None:
        """Refuses other requests.

        Raises:
            ForbiddenError: The key is missing or wrong.
        """
        if not self.allows(request):
            cure = "open the whole address that callsheet explore printed" if self._key else f"send the header {HEADER}"
            raise ForbiddenError(f"this page has no key, so it cannot change or run anything: {cure}")

    async def body(self, request: Request, form: type[_Form]) -> _Form:
        """The body of a request with the key.

        Raises:
            RefusedError: The key is missing or wrong, or the body is too long.
        """
        self.check(request)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                raise RefusedError(f"the body is longer than {_MOST_BYTES:,} bytes")
        return form.model_validate_json(body)
