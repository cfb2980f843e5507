"""Sign-ins that wait for the answer of an authorization server, which a browser brings to any process of a deployment.

They are stored encrypted, and dropped after ten minutes. An answer is taken once, and from the browser that began.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx2
from pydantic import BaseModel, ConfigDict, RootModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from callsheet.agents.servers.oauth.stored_tokens import SignInError, decrypted, encrypted
from callsheet.graphs.catalog.errors import CallsheetError
from callsheet.graphs.storage import state_file

LASTS, PAUSE = 600.0, 0.2
"""Seconds for which a person can sign in, and between two looks at what is stored."""
MOST = 20
"""Sign-ins of one user that wait at once."""
_SECONDS = 40.0
HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
_LOG = logging.getLogger("callsheet")
_NOBODY = "no sign-in waits for this answer: it was already given, or it is too late"
_ELSEWHERE = "another browser began this sign-in: begin it in the browser in which you end it"
_ABANDONED = "the process that began this sign-in does not end it: begin again"


class PendingSignIn(BaseModel):
    """A sign-in that waits for a person.

    Attributes:
        expires: When it is dropped, in seconds since 1970.
        browser: The value of the cookie that its browser must send; empty for none.
        answer: The query of the redirect, after it has come.
        problem: Why it has failed; empty if it has not.
    """

    model_config = ConfigDict(frozen=True)

    user: str
    expires: float
    browser: str = ""
    answer: Mapping[str, str] | None = None
    problem: str = ""


class _All(RootModel[dict[str, PendingSignIn]]):
    """By the parameter ``state``, the oldest first."""


def await_answer(state: str, pending: PendingSignIn) -> None:
    """Stores a sign-in; beyond ``MOST`` of one user, the oldest is dropped."""
    with _waiting() as known:
        for old in [name for name, one in known.items() if one.user == pending.user][: -MOST + 1]:
            del known[old]
        known[state] = pending


def pending_sign_in(state: str) -> PendingSignIn | None:
    """The sign-in; None if it has ended, or was dropped."""
    return _read().get(state)


def end_sign_in(state: str, problem: str) -> None:
    """Drops a sign-in; with a problem after its answer, it stays until it expires: its callback tells why."""
    with _waiting() as known:
        ended = known.pop(state, None)
        if ended is not None and ended.answer is not None and problem:
            known[state] = ended.model_copy(update={"problem": problem})


def take_answer(answer: Mapping[str, str], cookies: Mapping[str, str]) -> str:
    """Takes the answer of an authorization server, once; returns its ``state``."""
    state = answer.get("state", "")
    with _waiting() as known:
        if state not in known or known[state].answer is not None:
            raise SignInError(_NOBODY)
        if not secrets.compare_digest(known[state].browser.encode(), cookies.get(_cookie(state), "").encode()):
            raise SignInError(_ELSEWHERE)
        known[state] = known[state].model_copy(update={"answer": dict(answer)})
    return state


async def callback(request: Request) -> PlainTextResponse:
    """The route of the redirect: takes the answer, and tells the person what came of it."""
    try:
        state = await run_in_threadpool(take_answer, dict(request.query_params), request.cookies)
        problem = await _outcome(state)
    except SignInError as error:
        return PlainTextResponse(f"Not signed in: {error}.", 400, HEADERS)
    except (CallsheetError, OSError) as error:
        _LOG.warning("a sign-in was not stored: %s", error)
        return PlainTextResponse("Not signed in: the answer cannot be stored; see the log.", 500, HEADERS)
    told = f"Not signed in: {problem}." if problem else "Signed in: repeat your request."
    return PlainTextResponse(f"{told} You can close this page.", headers=HEADERS)


def cookie_of(page: str) -> str:
    """Name of the cookie by which the browser is known that opens a page of an authorization server."""
    return _cookie(httpx2.URL(page).params["state"])


def _cookie(state: str) -> str:
    return f"callsheet-sign-in-{hashlib.sha256(state.encode()).hexdigest()[:16]}"


async def _outcome(state: str) -> str:
    """Why a sign-in whose answer was taken has failed; empty if it has not."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        known = await run_in_threadpool(pending_sign_in, state)
        if known is None or known.problem:
            return known.problem if known else ""
        await asyncio.sleep(PAUSE)
    return _ABANDONED


@contextmanager
def _waiting() -> Iterator[dict[str, PendingSignIn]]:
    """The sign-ins that wait, to be changed by one process at a time; an error changes nothing."""
    file = state_file("pending-sign-ins")
    with file.locked():
        yield (known := _read())
        if known:
            file.replace(encrypted(_All(known).model_dump_json().encode()))
        else:
            file.remove()


def _read() -> dict[str, PendingSignIn]:
    try:
        known = _All.model_validate_json(decrypted(state_file("pending-sign-ins").read())).root
    except (FileNotFoundError, ValidationError):  # of another version: they are begun again
        return {}
    return {state: one for state, one in known.items() if one.expires > time.time()}
