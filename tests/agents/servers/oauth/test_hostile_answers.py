"""Answers to sign-ins of runs that are forged, given twice, of another user or issuer, or too late."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from callsheet.agents.servers.oauth.callback import callback_at, loopback_address, redirect_address, sign_in_of_run
from callsheet.agents.servers.oauth.pending_sign_ins import PendingSignIn, begin_sign_in, confirm, pending, take_answer
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens
from callsheet.graphs import SettingsError
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from forked import Forked
from signed_in_server import SignedInServer


async def begun(server: SignedInServer, user: str = "", run: str = "run") -> PendingSignIn:
    return await begin_sign_in(server.url, loopback_address(), user=user, run=run, confirmed=bool(user))


async def answer_to(waiting: PendingSignIn) -> dict[str, str]:
    """What the authorization server sends to the browser, which does not follow it."""
    async with httpx2.AsyncClient() as browser:
        sent = await browser.get(waiting.authorization.page)
    return dict(httpx2.URL(sent.headers["location"]).params)


async def browser_gets(answer: dict[str, str]) -> httpx2.Response:
    async with httpx2.AsyncClient() as browser:
        return await browser.get(loopback_address(), params=answer)


def code_on(page: httpx2.Response) -> str:
    (code,) = (word.strip(".") for word in page.text.split() if word.strip(".").isupper() and len(word) > 5)
    return code


@pytest.mark.parametrize("state", ["", "x", "../../etc/passwd", "é" * 32, "{digest}.guessed", f"{'0' * 32}.guessed"])
async def test_a_forged_state_is_refused_and_the_sign_in_still_waits(server: SignedInServer, state: str) -> None:
    waiting = await begun(server)
    answer = await answer_to(waiting)
    forged = {**answer, "state": state.format(digest=waiting.state.partition(".")[0])}
    refused = await browser_gets(forged)
    assert refused.status_code == 400
    assert server.authorization.issued == []
    assert (await browser_gets(answer)).status_code == 200
    assert StoredTokens(server.url).read() is not None


async def test_an_answer_is_taken_once(server: SignedInServer) -> None:
    answer = await answer_to(await begun(server))
    statuses = [(await browser_gets(answer)).status_code for _ in range(2)]
    assert statuses == [200, 400]
    assert len(server.authorization.issued) == 2  # an access token and a refresh token


async def test_an_answer_that_comes_too_late_is_refused(
    server: SignedInServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await begun(server)
    answer = await answer_to(waiting)
    now = time.time()
    monkeypatch.setattr("callsheet.agents.servers.oauth.pending_sign_ins.time.time", lambda: now + 601)
    with pytest.raises(SignInError, match="too late"):
        take_answer(answer)
    assert pending(waiting.state) is None
    assert server.authorization.issued == []


@pytest.mark.parametrize("change", [{"iss": "https://evil.example/"}, {"error": "access_denied"}, {"code": ""}])
async def test_an_answer_of_another_issuer_and_a_refusal_give_no_tokens(
    server: SignedInServer, change: dict[str, str]
) -> None:
    waiting = await begun(server)
    answer = {**await answer_to(waiting), **change}
    assert "Not signed in" in (await browser_gets(answer)).text
    assert (known := pending(waiting.state)) is not None
    assert known.problem
    assert (await begun(server)).state != waiting.state
    assert server.authorization.issued == []


async def test_an_issuer_that_promises_its_name_must_give_it(server: SignedInServer) -> None:
    server.changes["/.well-known/oauth-authorization-server"] = {"authorization_response_iss_parameter_supported": True}
    waiting = await begun(server)
    assert "missing iss" in (await browser_gets(await answer_to(waiting))).text
    assert server.authorization.issued == []


async def test_a_victim_who_opens_the_page_of_another_user_signs_nobody_in(server: SignedInServer) -> None:
    """Eve begins, and Anna opens the page: Eve must not get to Anna's account."""
    eves = await begun(server, "eve")
    shown = await browser_gets(await answer_to(eves))
    code = code_on(shown)
    assert StoredTokens(server.url, "eve").read() is None
    for user, run, guess in (
        ("eve", "run", ""),
        ("eve", "run", "B" * 8),
        ("anna", "run", code),
        ("eve", "other", code),
    ):
        with pytest.raises(SignInError, match="the code is not the one"):
            confirm(eves.state, user=user, run=run, code=guess)
    assert StoredTokens(server.url, "eve").read() is None
    confirm(eves.state, user="eve", run="run", code=f"{code[:4]}-{code[4:]}".lower())
    assert StoredTokens(server.url, "eve").read() is not None
    with pytest.raises(SignInError):
        confirm(eves.state, user="eve", run="run", code=code)


async def test_after_five_wrong_codes_the_tokens_are_dropped(server: SignedInServer) -> None:
    waiting = await begun(server, "eve")
    shown = await browser_gets(await answer_to(waiting))
    code = code_on(shown)
    for _ in range(5):
        with pytest.raises(SignInError):
            confirm(waiting.state, user="eve", run="run", code="WRONG")
    with pytest.raises(SignInError):
        confirm(waiting.state, user="eve", run="run", code=code)
    assert StoredTokens(server.url, "eve").read() is None


async def test_one_run_gets_one_address_and_another_run_another(server: SignedInServer) -> None:
    first, again, other = await begun(server), await begun(server), await begun(server, run="other")
    assert first.state == again.state
    assert other.state != first.state
    assert pending(first.state) is not None


async def test_what_waits_is_bounded(server: SignedInServer) -> None:
    first = await begun(server, run="first")
    for number in range(20):
        await begun(server, run=f"{number}")
    assert pending(first.state) is None


async def test_nothing_of_it_can_be_read_from_the_disk(server: SignedInServer, tmp_path: Path) -> None:
    waiting = await begun(server, "eve")
    shown = await browser_gets(await answer_to(waiting))
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for secret in (waiting.state, waiting.authorization.verifier, *server.authorization.issued):
        assert secret.encode() not in on_disk
        assert secret not in shown.text
    assert len(server.authorization.issued) == 2


@pytest.mark.parametrize(
    "address", ["http://calls.example.com", "ftp://127.0.0.1", "calls.example.com", "https://", "x y"]
)
def test_answers_come_to_https_or_to_this_machine_only(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_URL", address)
    with pytest.raises(SettingsError, match="https://"):
        redirect_address()


def test_answers_come_to_the_configured_address_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert callback_at("https://calls.example.com/x/") == "https://calls.example.com/x/callsheet/sign-in/callback"
    assert redirect_address() == loopback_address()
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
    monkeypatch.setenv("LANGGRAPH_API_URL", "http://0.0.0.0:2024")
    with pytest.raises(SettingsError, match="set CALLSHEET_URL"):
        redirect_address()
    monkeypatch.setenv("LANGGRAPH_API_URL", "http://127.0.0.1:2024")
    assert redirect_address() == "http://127.0.0.1:2024/callsheet/sign-in/callback"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://anna:hidden-word@example.com/mcp", "a user and a password"),
        ("https://example.com/mcp", "does not know its users"),
    ],
)
async def test_a_sign_in_that_would_give_something_away_does_not_begin(
    url: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known: dict[str, Any] = {"user": "" if "users" in why else "anna", "run": "run"}
    with pytest.raises(SignInError, match=why) as refused:
        await sign_in_of_run(ServerConfig(url=url, transport="http"), {}, address="https://calls.example.com", **known)
    assert "hidden-word" not in str(refused.value)


async def test_an_address_with_a_secret_is_not_shown(server: SignedInServer) -> None:
    server.changes["/.well-known/oauth-protected-resource/mcp"] = {"resource": f"{server.url}?key=canary-4711-key"}
    config = ServerConfig(url=f"{server.url}?key=${{TICKETS_KEY}}", transport="http")
    with pytest.raises(SignInError, match="contains a secret"):
        await sign_in_of_run(config, {"TICKETS_KEY": "canary-4711-key"}, user="", run="run")


async def test_another_process_takes_the_answer(server: SignedInServer) -> None:
    waiting = await begun(server)
    answer = await answer_to(waiting)
    code = "import json, sys; from callsheet.agents.servers.oauth.pending_sign_ins import take_answer as take\n"
    code += "assert not take(json.loads(sys.argv[1])).problem"
    assert await asyncio.to_thread(Forked(["-c", code, json.dumps(answer)]).wait) == 0
    assert pending(waiting.state) is None
    assert StoredTokens(server.url).read() is not None
