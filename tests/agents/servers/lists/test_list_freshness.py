"""How long a stored list of a server is used, and for whom: what the server says (``ttlMs``, ``cacheScope``)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from callsheet.agents.servers.catalogs.last_listings import LastListings, lifetime
from callsheet.agents.servers.catalogs.listings import CacheHints, Listing
from callsheet.graphs import ServerConfig
from callsheet.graphs.storage import cache_folder
from callsheet.graphs.text.json_schema import JsonObject
from skill_server_folder import SkillServer

PROGRAM = ServerConfig(command="x")
ADDRESS = ServerConfig(url="http://localhost/mcp", transport="http", headers={"Authorization": "Bearer ${TOKEN}"})
DAY = 86_400.0


@pytest.mark.parametrize(
    ("server", "said", "seconds"),
    [
        (PROGRAM, None, DAY),
        (ADDRESS, None, DAY),
        (PROGRAM, 60.0, 60.0),
        (ADDRESS, 60.0, 60.0),
        (ADDRESS, 10 * DAY, DAY),
        (ADDRESS, 0.0, 0.0),
        (PROGRAM, 0.0, DAY),
    ],
)
def test_a_list_holds_as_long_as_its_server_says(server: ServerConfig, said: float | None, seconds: float) -> None:
    assert lifetime(server, said, DAY) == seconds


def test_a_limit_of_zero_asks_every_time() -> None:
    assert lifetime(PROGRAM, 60.0, 0.0) == 0.0


async def test_of_several_pages_the_shortest_time_and_the_narrowest_scope_count() -> None:
    pages: list[JsonObject] = [
        {"ttlMs": 60_000, "cacheScope": "public"},
        {"ttlMs": 5_000, "cacheScope": "public"},
        {"ttlMs": -1, "cacheScope": "private"},
        {"ttlMs": "soon"},
    ]
    hints = CacheHints()

    async def ask(method: str, params: object, seconds: float) -> JsonObject:
        return pages.pop(0)

    heard = hints.heard_by(ask)
    met = []
    while pages:
        await heard("tools/list", {}, 1.0)
        met.append((hints.seconds, hints.public))
    assert met == [(60.0, True), (5.0, True), (0.0, False), (0.0, False)]


@pytest.mark.parametrize(("public", "tools"), [(True, 1), (False, 0)])
def test_a_private_list_is_used_for_the_same_token_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: bool, tools: int
) -> None:
    store = LastListings(tmp_path)
    monkeypatch.setenv("TOKEN", "of-ann")
    store.keep("a", ADDRESS, Listing(tools=({"name": "t"},), public=public))
    for within in (DAY, None):
        kept = store.last("a", ADDRESS, within=within)
        assert kept is not None
        assert len(kept.tools) == 1
    monkeypatch.setenv("TOKEN", "of-bob")
    for within in (DAY, None):
        other = store.last("a", ADDRESS, within=within)
        assert len(other.tools if other else ()) == tools
    assert "of-ann" not in "".join(file.read_text() for file in tmp_path.rglob("*.json"))


def test_a_server_is_asked_again_when_its_own_time_is_over(skills: SkillServer) -> None:
    skills.options(ttlMs=600_000)
    assert not skills.load().remembered
    assert set(skills.load(anew=False).remembered) == {"ops"}
    (kept,) = (cache_folder() / "listings").iterdir()
    asked = len(skills.asked)
    os.utime(kept, (0, time.time() - 601))
    assert not skills.load(anew=False).remembered
    assert len(skills.asked) > asked
