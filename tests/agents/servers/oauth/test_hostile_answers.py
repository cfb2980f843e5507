"""Answers to sign-ins that are forged, given twice, of another browser or issuer, or too late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from callsheet.agents.servers.oauth.addresses import page_hint, serve_at, server_address
from callsheet.agents.servers.oauth.sign_in import (
    MOST,
    PendingSignIn,
    SignIn,
    await_answer,
    callback,
    cookie_of,
    pending_sign_in,
    take_answer,
)
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens, Tokens
from callsheet.graphs import SettingsError
from signed_in_server import SignedInServer, served


@pytest.fixture
def redirect() -> Iterator[str]:
    """Where answers come."""
    with served(Starlette(routes=[Route("/callback", callback)])) as origin:
        yield f"{origin}/callback"


@dataclass
class Begun:
    """A sign-in whose page is open, and the answer that the authorization server sends to the browser."""

    page: str
    answer: dict[str, str]
    end: asyncio.Task[Tokens]
    redirect: str

    async def bring(self, cookie: str = "", **change: str) -> httpx2.Response:
        """The browser follows, with an answer that may be changed."""
        cookies = {cookie_of(self.page): cookie} if cookie else {}
        async with httpx2.AsyncClient(cookies=cookies) as browser:
            return await browser.get(self.redirect, params={**self.answer, **change})


@asynccontextmanager
async def begun(server: SignedInServer, redirect: str, user: str = "", browser: str = "") -> AsyncIterator[Begun]:
    opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open_page(page: str) -> None:
        opened.set_result(page)

    end = asyncio.create_task(SignIn(server.url, redirect, open_page, user=user, browser=browser).tokens())
    async with httpx2.AsyncClient() as http:
        sent = await http.get(page := await opened)
    answer = dict(httpx2.URL(sent.headers["location"]).params)
    yield Begun(page, answer, end, redirect)
    end.cancel()
    with suppress(asyncio.CancelledError, SignInError):
        await end


@pytest.mark.parametrize("state", ["", "x", "../../etc/passwd", "é" * 32, "0" * 43])
async def test_a_forged_state_is_refused_and_the_sign_in_still_waits(
    server: SignedInServer, redirect: str, state: str
) -> None:
    async with begun(server, redirect) as waiting:
        assert (await waiting.bring(state=state)).status_code == 400
        assert server.authorization.issued == []
        assert (await waiting.bring()).status_code == 200
        assert (await waiting.end) == StoredTokens(server.url).read()


async def test_an_answer_is_accepted_once(server: SignedInServer, redirect: str) -> None:
    async with begun(server, redirect) as waiting:
        both = await asyncio.gather(waiting.bring(), waiting.bring())
        after = await waiting.bring()
        assert sorted(answer.status_code for answer in (*both, after)) == [200, 400, 400]
    assert len(server.authorization.issued) == 2  # an access token and a refresh token


async def test_an_answer_that_comes_too_late_is_refused(
    server: SignedInServer, redirect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with begun(server, redirect) as waiting:
        now = time.time()
        monkeypatch.setattr("callsheet.agents.servers.oauth.sign_in.time.time", lambda: now + 601)
        with pytest.raises(SignInError, match="too late"):
            take_answer(waiting.answer, {})
        assert pending_sign_in(waiting.answer["state"]) is None
        with pytest.raises(SignInError, match="nobody signed in"):
            await waiting.end
    assert server.authorization.issued == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"iss": "https://evil.example/"}, "iss mismatch"),
        ({"error": "access_denied", "error_description": "<b>\u202eno"}, "refused: access_denied <b>"),
        ({"code": ""}, "No authorization code"),
    ],
    ids=["issuer", "refusal", "no code"],
)
async def test_an_answer_of_another_issuer_and_a_refusal_give_no_tokens(
    server: SignedInServer, redirect: str, change: dict[str, str], why: str
) -> None:
    async with begun(server, redirect) as waiting:
        told = await waiting.bring(**change)
        with pytest.raises(SignInError, match=why):
            await waiting.end
        assert "Not signed in" in told.text
        assert why in told.text
        assert "\u202e" not in told.text
        assert (await waiting.bring()).status_code == 400
    assert server.authorization.issued == []


async def test_an_issuer_that_promises_its_name_must_give_it(server: SignedInServer, redirect: str) -> None:
    server.changes["/.well-known/oauth-authorization-server"] = {"authorization_response_iss_parameter_supported": True}
    async with begun(server, redirect) as waiting:
        assert "missing iss" in (await waiting.bring()).text
    assert server.authorization.issued == []


async def test_a_victim_who_opens_the_page_of_another_user_signs_nobody_in(
    server: SignedInServer, redirect: str
) -> None:
    """Eve begins, and Anna opens the page: Eve must not get to Anna's account."""
    async with begun(server, redirect, "eve", browser="of Eve") as waiting:
        for cookie in ("", "of Anna"):
            told = await waiting.bring(cookie)
            assert told.status_code == 400
            assert "another browser" in told.text
        assert server.authorization.issued == []
        assert StoredTokens(server.url, "eve").read() is None
        assert (await waiting.bring("of Eve")).status_code == 200
    assert StoredTokens(server.url, "eve").read() is not None
    assert StoredTokens(server.url).read() is None


def test_pending_sign_ins_are_bounded_for_each_user(server: SignedInServer) -> None:
    soon = time.time() + 60
    for user, number in (("anna", 0), *(("eve", number) for number in range(MOST + 1))):
        await_answer(f"{user} {number}", PendingSignIn(user=user, expires=soon))
    await_answer("late", PendingSignIn(user="anna", expires=time.time() - 1))
    known = {state: pending_sign_in(state) is not None for state in ("anna 0", "eve 0", "eve 1", "late")}
    assert known == {"anna 0": True, "eve 0": False, "eve 1": True, "late": False}


async def test_pending_sign_ins_are_encrypted_on_disk(server: SignedInServer, redirect: str, tmp_path: Path) -> None:
    def on_disk() -> bytes:
        return b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())

    async with begun(server, redirect, "eve") as waiting:
        before = on_disk()
        told = await waiting.bring()
    assert len(server.authorization.issued) == 2
    for secret in (waiting.answer["state"], waiting.answer["code"], *server.authorization.issued):
        assert secret.encode() not in before + on_disk()
        assert secret not in told.text


@pytest.mark.parametrize(
    "address", ["http://calls.example.com", "ftp://127.0.0.1", "calls.example.com", "https://", "x y"]
)
def test_answers_come_to_https_or_to_this_machine_only(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_URL", address)
    with pytest.raises(SettingsError, match="https://"):
        server_address()
    assert "set CALLSHEET_URL" in page_hint("tickets")


def test_answers_come_to_the_configured_address_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callsheet.agents.servers.oauth.addresses._OWN", [])
    assert (server_address(), page_hint("tickets")) == ("", "")
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
    monkeypatch.setenv("LANGGRAPH_API_URL", "http://0.0.0.0:2024")
    with pytest.raises(SettingsError, match="set CALLSHEET_URL"):
        server_address()
    monkeypatch.setenv("LANGGRAPH_API_URL", "http://127.0.0.1:2024")
    assert server_address() == "http://127.0.0.1:2024"
    serve_at("http://127.0.0.1:8000/")
    assert server_address() == "http://127.0.0.1:8000"
    monkeypatch.setenv("CALLSHEET_URL", "https://calls.example.com/x/")
    assert "https://calls.example.com/x/callsheet/sign-in?agent=a%2Fb%20c" in page_hint("a/b c")
