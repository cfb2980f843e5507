"""A sign-in that one process begins and another one answers, over one Postgres: taken once, encrypted, and dropped."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from callsheet.agents.servers.oauth.sign_in import PendingSignIn, SignIn, await_answer, pending_sign_in, take_answer
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens
from forked import run_forked
from signed_in_server import SignedInServer, signed_in_server

pytestmark = [pytest.mark.server, pytest.mark.slow]
REDIRECT = "http://127.0.0.1:9/callback"
TAKE = """
import json, sys
from callsheet.agents.servers.oauth.sign_in import take_answer

take_answer(json.loads(sys.argv[1]), {})
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)


def taken(answer: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Another process, with a home of its own, takes an answer."""
    environ = {**os.environ, "CALLSHEET_HOME": str(folder / "elsewhere")}
    return run_forked(["-c", TAKE, json.dumps(answer)], env=environ)


@pytest.fixture
def server() -> Iterator[SignedInServer]:
    with signed_in_server() as started:
        yield started


def in_database(store: str) -> bytes:
    """All that the tables of the store hold."""
    address, _, schema = store.partition("&schema=")
    held = b""
    with psycopg.connect(address) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [schema]).fetchall()
        for (name,) in names:
            query = f'SELECT * FROM {schema}."{name}"'.encode()
            for row in connection.execute(query):
                held += b"".join(value if isinstance(value, bytes) else f"{value}".encode() for value in row)
    return held


async def test_another_process_answers_once_and_this_one_has_the_tokens(
    server: SignedInServer, store: str, tmp_path: Path
) -> None:
    opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open_page(page: str) -> None:
        opened.set_result(page)

    signing_in = asyncio.create_task(SignIn(server.url, REDIRECT, open_page, user="anna").tokens())
    async with httpx2.AsyncClient() as browser:
        answer = dict(httpx2.URL((await browser.get(await opened)).headers["location"]).params)
    waits = in_database(store)
    done = await asyncio.gather(*(asyncio.to_thread(taken, answer, tmp_path) for _ in range(2)))
    assert sorted(each.returncode for each in done) == [0, 1]
    assert ["already given" in each.stderr for each in done if each.returncode] == [True]
    tokens = await signing_in
    assert tokens == StoredTokens(server.url, "anna").read()
    assert StoredTokens(server.url).read() is None
    assert tokens.tokens.access_token in server.authorization.access
    assert len(server.authorization.issued) == 2  # an access token and a refresh token
    assert pending_sign_in(answer["state"]) is None
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert waits
    for secret in (answer["state"], answer["code"], *server.authorization.issued):
        assert secret.encode() not in waits + in_database(store) + on_disk


def test_a_sign_in_that_nobody_answers_expires(store: str) -> None:
    for state, seconds in (("short", 0.2), ("long", 60.0)):
        await_answer(state, PendingSignIn(user="", expires=time.time() + seconds))
    while pending_sign_in("short") is not None:
        time.sleep(0.05)
    with pytest.raises(SignInError, match="too late"):
        take_answer({"state": "short", "code": "x"}, {})
    assert pending_sign_in("long") is not None
