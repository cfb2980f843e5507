"""A sign-in that one process begins and another one answers, over one Postgres: taken once, encrypted, and dropped."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import psycopg
import pytest

from callsheet.agents.servers.oauth.pending_sign_ins import PendingSignIn, begin_sign_in, confirm, pending, take_answer
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens
from forked import run_forked
from signed_in_server import SignedInServer, signed_in_server

pytestmark = [pytest.mark.server, pytest.mark.slow]
TAKE = """
import json, sys
from callsheet.agents.servers.oauth.pending_sign_ins import take_answer

print(take_answer(json.loads(sys.argv[1])).code)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)


def taken(answer: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Another process, with a home of its own, takes an answer."""
    environ = {**os.environ, "CALLSHEET_HOME": str(folder / "elsewhere")}
    return run_forked(["-c", TAKE, json.dumps(answer)], env=environ)


async def begun(server: SignedInServer, user: str = "", seconds: float = 600.0) -> PendingSignIn:
    redirect = "http://127.0.0.1:9/callback"
    return await begin_sign_in(server.url, redirect, user=user, run="run", confirmed=bool(user), seconds=seconds)


@pytest.fixture
def server() -> Iterator[SignedInServer]:
    with signed_in_server() as started:
        yield started


def answer_to(waiting: PendingSignIn) -> dict[str, str]:
    """What the authorization server sends to the browser, which does not follow it."""
    return dict(httpx2.URL(httpx2.get(waiting.authorization.page).headers["location"]).params)


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


async def test_another_process_answers_and_this_one_has_the_tokens(
    server: SignedInServer, store: str, tmp_path: Path
) -> None:
    waiting = await begun(server)
    waits = in_database(store)
    digest, _, guess = waiting.state.partition(".")
    assert digest.encode() in waits
    answer = answer_to(waiting)
    done = taken(answer, tmp_path)
    assert (done.stdout, done.stderr) == ("\n", "")
    tokens = StoredTokens(server.url).read()
    assert tokens is not None
    assert tokens.tokens.access_token in server.authorization.access
    assert pending(waiting.state) is None
    on_disk = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    held = waits + in_database(store) + on_disk
    for secret in (guess, waiting.authorization.verifier, answer["code"], *server.authorization.issued):
        assert secret.encode() not in held


async def test_of_processes_that_get_one_answer_at_once_one_takes_it(server: SignedInServer, tmp_path: Path) -> None:
    answer = answer_to(await begun(server))
    with ThreadPoolExecutor(2) as threads:
        done = [*threads.map(lambda _: taken(answer, tmp_path), range(2))]
    assert sorted(each.returncode for each in done) == [0, 1]
    assert ["already given" in each.stderr for each in done if each.returncode] == [True]
    assert len(server.authorization.issued) == 2  # an access token and a refresh token


async def test_a_run_takes_the_tokens_of_its_user_once(server: SignedInServer, store: str, tmp_path: Path) -> None:
    waiting = await begun(server, "anna")
    code = taken(answer_to(waiting), tmp_path).stdout.strip()
    assert code.encode() not in in_database(store)
    assert StoredTokens(server.url, "anna").read() is None
    confirm(waiting.state, user="anna", run="run", code=code)
    assert StoredTokens(server.url, "anna").read() is not None
    with pytest.raises(SignInError):
        confirm(waiting.state, user="anna", run="run", code=code)


async def test_what_nobody_answers_is_dropped(server: SignedInServer, store: str) -> None:
    waiting = await begun(server, seconds=0.5)
    answer = answer_to(waiting)
    time.sleep(0.5)
    with pytest.raises(SignInError, match="too late"):
        take_answer(answer)
    assert server.authorization.issued == []
    assert waiting.state.partition(".")[0].encode() not in in_database(store)
