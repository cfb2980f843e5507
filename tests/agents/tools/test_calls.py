"""What becomes of calls that fail: whether the tool ran, what is sent again, and when a server is left alone."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_community.agent_toolkits import FileManagementToolkit
from langchain_core.tools import tool
from mcp import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Outcome, failed_outcome
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.tool_result import KeptResults, outcome_of
from callsheet.agents.safety.secrets import Redaction
from callsheet.agents.servers import in_process
from callsheet.agents.servers.circuits import Circuits
from callsheet.agents.servers.faults import Faults
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs import SettingsError
from servers import Servers

LIMITS = Limits(start=30, list=20, call=20, failures=50)


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    return Servers(tmp_path)


@pytest.fixture
async def pool() -> AsyncIterator[SessionPool]:
    pool = SessionPool(limits=LIMITS)
    yield pool
    await asyncio.to_thread(pool.close)


async def work(pool: SessionPool, servers: Servers, mode: str, *, repeatable: bool = False) -> Outcome:
    return await pool.call("run", mode, servers.stdio(mode), "work", {"x": 1}, repeatable=repeatable)


async def test_a_crash_is_repeated_once_in_a_new_session_where_that_does_no_harm(
    pool: SessionPool, servers: Servers
) -> None:
    outcome = await work(pool, servers, "crash_once", repeatable=True)
    assert outcome.error == ""
    assert (servers.count("crash_once", "call"), servers.count("crash_once", "start")) == (2, 2)
    outcome = await work(pool, servers, "crash", repeatable=True)
    assert (outcome.kind, servers.count("crash", "call")) == ("crash", 2)


async def test_an_effect_happens_once(pool: SessionPool, servers: Servers) -> None:
    outcome = await work(pool, servers, "crash_after_effect")
    assert (outcome.kind, outcome.effect) == ("crash", "unknown")
    assert servers.count("crash_after_effect", "EFFECT") == 1
    assert "whether the call took effect is unknown" in outcome.error


@pytest.mark.parametrize(
    ("mode", "effect"),
    [
        ("is_error", "reported"),
        ("rpc_error", "reported"),
        ("no_object", "unknown"),
        ("exit", "none"),
        ("ok", "reported"),
    ],
)
async def test_an_outcome_says_whether_the_tool_ran(
    pool: SessionPool, servers: Servers, mode: str, effect: str
) -> None:
    assert (await work(pool, servers, mode)).effect == effect


async def test_who_has_the_last_word_may_refuse_when_the_server_was_listed(pool: SessionPool, servers: Servers) -> None:
    heard: list[str] = []
    pool.watch(lambda agent_id, server, listing, user: heard.extend(entry["name"] for entry in listing.tools))

    def permit() -> Refusal | None:
        return Refusal("it is not what it was") if heard == ["work"] else None

    outcome = await pool.call("run", "a", servers.stdio("ok"), "work", {}, permit=permit)
    assert (outcome.kind, outcome.effect) == ("refused", "none")
    assert "it is not what it was" in outcome.error
    assert servers.count("ok", "call") == 0


@pytest.mark.parametrize(("code", "kind"), [(INVALID_PARAMS, "tool"), (INTERNAL_ERROR, "protocol")])
async def test_arguments_that_a_tool_refuses_are_no_failure_of_its_server(code: int, kind: str) -> None:
    fault = await Faults(Redaction([])).of(MCPError(code, "x must be positive"), "tools/call")
    assert (fault.kind, fault.effect) == (kind, "reported")
    circuits = Circuits(Limits(failures=1, pause=10))
    circuits.told("a", failed_outcome("a", "t", fault.kind, str(fault), fault.effect))
    assert bool(circuits.refusal("a")) is (kind == "protocol")


def test_a_circuit_opens_for_a_pause_and_closes_with_an_answer() -> None:
    now = 0.0
    circuits = Circuits(Limits(failures=2, pause=10), clock=lambda: now)
    bad, good = failed_outcome("a", "t", "crash", "gone", "unknown"), Outcome(text="fine")
    circuits.told("a", bad)
    assert circuits.refusal("a") is None
    circuits.told("a", failed_outcome("a", "t", "refused", "no"))
    circuits.told("a", bad)
    assert "not called for another 10 s after 2 failures in a row" in str(circuits.refusal("a"))
    assert "gone" in circuits.open()["a"]
    now = 11.0
    assert circuits.refusal("a") is None
    circuits.told("a", bad)
    assert circuits.refusal("a") is not None
    now = 22.0
    assert circuits.refusal("a") is None
    circuits.told("a", good)
    circuits.told("a", bad)
    assert circuits.refusal("a") is None
    assert not circuits.open()


async def test_no_more_calls_at_once_than_allowed(servers: Servers, tmp_path: Path) -> None:
    pool = SessionPool(limits=Limits(server_calls=1, calls=2))
    config = servers.stdio("slow")
    calls = [pool.call("run", agent, config, "work", {"x": x}) for agent in "abc" for x in range(2)]
    assert [outcome.error for outcome in await asyncio.gather(*calls)] == [""] * 6
    await asyncio.to_thread(pool.close)
    under_way, most = 0, 0
    for line in (tmp_path / "slow.log").read_text().split():
        under_way += {"in": 1, "out": -1}.get(line, 0)
        most = max(most, under_way)
    assert most == 2


def test_text_structure_and_media_are_kept_apart(tmp_path: Path) -> None:
    picture, sound = b"\x89PNG\r\n", b"RIFF"
    result = {
        "content": [
            {"type": "text", "text": "two things"},
            {"type": "image", "data": base64.b64encode(picture).decode(), "mimeType": "image/png"},
            {"type": "resource", "resource": {"blob": base64.b64encode(sound).decode(), "mimeType": "audio/x-wav"}},
        ],
        "structuredContent": {"n": 2},
    }
    keep = KeptResults(tmp_path).of("run", "a/b", "../../draw")
    outcome = outcome_of("a", "draw", result, Limits(), keep)
    assert outcome.structured == {"n": 2}
    assert [Path(kept.path).read_bytes() for kept in outcome.media] == [picture, sound]
    assert [kept.media for kept in outcome.media] == ["image/png", "audio/x-wav"]
    assert all(Path(kept.path).is_relative_to(tmp_path / "run") for kept in outcome.media)
    assert outcome.text.startswith("two things\n[image image/png, 6 bytes: ")
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0


def test_a_structured_result_that_is_too_long_is_kept_as_a_file(tmp_path: Path) -> None:
    result = {"content": [], "structuredContent": {"rows": ["x" * 50] * 50}}
    outcome = outcome_of("a", "t", result, Limits(output=200), KeptResults(tmp_path).of("r", "a", "t"))
    assert outcome.structured is None
    assert outcome.kind == "too_large"
    assert len(outcome.text) < 600
    assert {Path(kept.path).suffix for kept in outcome.media} == {".json", ".txt"}


async def test_files_are_not_written_on_an_event_loop(pool: SessionPool, servers: Servers) -> None:
    """The development server of LangGraph raises where they are."""
    loops = list[bool]()
    write = pool.results._write

    def noted(run_id: str, name: str, content: bytes, media: str) -> str:
        with suppress(RuntimeError):
            loops.append(bool(asyncio.get_running_loop()))
        return write(run_id, name, content, media)

    pool.results._write = noted  # type: ignore[method-assign]
    assert "*.bin" not in (await work(pool, servers, "odd")).text

    @tool(response_format="content_and_artifact")
    async def draw() -> tuple[list[dict[str, str]], None]:
        """Draw."""
        return [{"type": "image", "base64": base64.b64encode(b"x").decode(), "mime_type": "image/png"}], None

    keep = pool.results.of("run", "a", "draw")
    assert len((await in_process.call("a", draw, {}, LIMITS, keep)).media) == 1
    assert loops == []


async def test_a_result_that_cannot_be_read_is_of_a_call_that_was_made(pool: SessionPool, servers: Servers) -> None:
    def broken(run_id: str, name: str, content: bytes, media: str) -> str:
        raise ValueError("no such medium")

    pool.results._write = broken  # type: ignore[method-assign]
    outcome = await work(pool, servers, "odd")
    assert outcome.error.endswith("it ran, and its result could not be read: ValueError: no such medium")
    assert (outcome.kind, outcome.effect) == ("protocol", "reported")


def test_a_full_disk_costs_the_file_and_not_the_result(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("no folder")
    keep = KeptResults(tmp_path / "taken").of("run", "a", "t")
    outcome = outcome_of("a", "t", {"content": [{"type": "text", "text": "x" * 500}]}, Limits(output=100), keep)
    assert outcome.text.endswith("[cut: the first 100 of 500 characters]")


def test_results_of_a_run_that_goes_on_in_another_process_are_not_overwritten(tmp_path: Path) -> None:
    first = KeptResults(tmp_path).of("run", "a", "t")(b"one", "text/plain")
    second = KeptResults(tmp_path).of("run", "a", "t")(b"two", "text/plain")
    assert first is not None
    assert second is not None
    assert [Path(kept.path).read_bytes() for kept in (first, second)] == [b"one", b"two"]


def test_limits_come_from_the_environment_and_from_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_LIMIT_CALL", "7.5")
    assert Limits().call == 7.5
    assert Limits(call=2).call == 2
    assert Limits().own({"call": 3}).call == 3
    monkeypatch.setenv("CALLSHEET_LIMIT_CALLS", "many")
    with pytest.raises(SettingsError, match="CALLSHEET_LIMIT_CALLS"):
        Limits()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": ""}], ""),
        ([], '{"content": ""}'),
        ([{"type": "text", "text": "a"}], 'a\n{"content": ""}'),
    ],
)
def test_the_text_of_an_empty_file_is_empty(content: list[dict[str, str]], text: str) -> None:
    answer = {"content": content, "structuredContent": {"content": ""}}
    assert outcome_of("files", "read_file", answer, Limits()).text == text


DATA = {"projects": [{"id": "p1", "name": "Apollo", "open": True}, {"id": "p2", "name": "Zeus", "open": None}]}
IN_WORDS = "p1 (Apollo, open: true), p2 (Zeus)"


@pytest.mark.parametrize(
    ("said", "data", "follows"),
    [
        (["list_projects returned 2 item(s)."], DATA, True),
        (["Done."], {"id": 17}, True),
        (["Done in 170 ms."], {"id": 17}, True),
        (["Saved."], {"saved": False}, True),
        ([""], {"rows": [1, 2]}, True),
        (["Wind: 3.5 m/s"], {"wind": 3.5, "gusts": 7.25}, True),
        (["Wind: 3.5 m/s, gusts of 7.25."], {"wind": 3.5, "gusts": 7.25}, True),
        (["Lookup finished; nothing known otherwise."], {"allowed": "no"}, True),
        (["Looked up the ticket."], {"owner": None}, True),
        (["12 rows of 40 were read."], {"deleted": 40, "kept": 12}, True),
        (["true"], {"n": 1}, True),
        (["1"], {"n": 1.0}, False),
        (["hello"], {"result": "hello"}, False),
        (["a", "b"], {"result": ["a", "b"]}, False),
        (["a", "b"], {"result": ["b", "a"]}, True),
        (['{"n": 1}', "and more"], {"n": 1}, False),
        ([json.dumps(DATA)], DATA, False),
        ([json.dumps(DATA, indent=2)], DATA, False),
        ([json.dumps(project) for project in DATA["projects"]], {"result": DATA["projects"]}, False),
        ([IN_WORDS], DATA, True),
        (['{"a": "\\u00e9 \\"x\\""}'], {"a": 'é "x"'}, False),
        (["Nothing."], {"items": []}, True),
    ],
)
@pytest.mark.parametrize("failed", [False, True])
def test_data_follow_a_text_that_is_not_these_data(said: list[str], data: Any, *, follows: bool, failed: bool) -> None:
    content = [{"type": "text", "text": text} for text in said]
    outcome = outcome_of("a", "t", {"content": content, "structuredContent": data, "isError": failed}, Limits())
    text = outcome.error if failed else outcome.text
    assert ("\n".join(said) in text) if any(said) else follows
    assert text.endswith(json.dumps(data)) == (follows or said == [json.dumps(data)])
    assert failed or outcome.structured == data


def test_data_that_an_embedded_resource_contains_do_not_follow_it() -> None:
    resource = {"type": "resource", "resource": {"uri": "x:1", "text": json.dumps(DATA)}}
    outcome = outcome_of("a", "t", {"content": [resource], "structuredContent": DATA}, Limits())
    assert outcome.text == f"[resource x:1]\n{json.dumps(DATA)}"


def test_data_beside_a_text_keep_the_limit(tmp_path: Path) -> None:
    keep = KeptResults(tmp_path).of("run", "a", "t")
    content = [{"type": "text", "text": "x" * 90}]
    outcome = outcome_of("a", "t", {"content": content, "structuredContent": {"n": "y" * 60}}, Limits(output=100), keep)
    assert outcome.structured == {"n": "y" * 60}
    assert "[cut: the first 100 of 160 characters" in outcome.text
    assert Path(outcome.media[0].path).read_text().endswith("}")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (
            {"type": "resource_link", "uri": "x:1", "name": "a.csv", "description": "Rows\nof May", "size": 5_000}
            | {"mimeType": "text/csv"},
            "[resource x:1: a.csv; Rows of May; text/csv; 5,000 bytes]",
        ),
        ({"type": "resource_link", "uri": "x:1", "title": "All rows", "name": None}, "[resource x:1: All rows]"),
        ({"type": "resource_link", "uri": "x:1"}, "[resource x:1]"),
        ({"type": "resource", "resource": {"uri": "x:2", "text": "a"}}, "[resource x:2]\na"),
        (
            {"type": "resource", "resource": {"uri": "x:3", "blob": "AAAA", "mimeType": "image/x"}},
            "[resource x:3 image/x, 3 bytes]",
        ),
    ],
)
def test_a_resource_keeps_its_address_and_what_is_said_of_it(block: dict[str, Any], text: str) -> None:
    assert outcome_of("a", "t", {"content": [block]}, Limits()).text == text


HIDDEN, SEEN = "A\u200bB\U000e0041C\x1b[31mD\x00E", "ABCDE"


async def test_hidden_characters_do_not_leave_a_tool() -> None:
    texts = [{"type": "text", "text": HIDDEN}, {"type": "resource_link", "uri": "x:1", "name": HIDDEN}]
    outcome = outcome_of("a", "t", {"content": texts, "structuredContent": {HIDDEN: [HIDDEN]}}, Limits())
    assert outcome.text == f"{SEEN}\n[resource x:1: {SEEN}]"
    assert outcome.structured == {SEEN: [SEEN]}
    assert outcome_of("a", "t", {"content": texts, "isError": True}, Limits()).error.count(SEEN) == 2
    assert failed_outcome("a", "t", "protocol", HIDDEN).error.endswith(SEEN)

    @tool(response_format="content_and_artifact")
    def tell(fail: bool) -> tuple[str, Any]:
        """Tells."""
        if fail:
            raise ValueError(HIDDEN)
        return HIDDEN, {"a": HIDDEN}

    outcome = await in_process.call("a", tell, {"fail": False}, LIMITS)
    assert (outcome.text, outcome.structured) == (SEEN, {"a": SEEN})
    assert (await in_process.call("a", tell, {"fail": True}, LIMITS)).error.endswith(SEEN)


@pytest.mark.parametrize(
    ("name", "args", "error"),
    [
        ("read_file", {"file_path": "missing.txt"}, "Error: no such file or directory: missing.txt"),
        ("read_file", {"file_path": "../x"}, "Error: Access denied to file_path: ../x."),
        ("read_file", {"file_path": "folder"}, "Is a directory"),
        ("move_file", {"source_path": "missing.txt", "destination_path": "b"}, "no such file or directory missing.txt"),
        ("list_directory", {"dir_path": "missing"}, "No such file or directory"),
        ("read_file", {"file_path": "errors.log"}, ""),
        ("read_file", {"file_path": "budget"}, ""),
    ],
)
async def test_the_error_form_of_langchains_file_tools(
    tmp_path: Path, name: str, args: dict[str, str], error: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "errors.log").write_text("Error: disk full\nerrors.log")
    (tmp_path / "budget").write_text("Error: 2 % left")
    (kit,) = FileManagementToolkit(root_dir=str(tmp_path), selected_tools=[name]).get_tools()
    outcome = await in_process.call("a", kit, args, LIMITS)
    assert (outcome.kind, outcome.effect) == ("tool" if error else "", "reported")
    assert error in outcome.error
    assert bool(outcome.error) == bool(error)
