"""Secrets in the words of a command and in addresses: no file and no log holds them; only its owner reads a file."""

from __future__ import annotations

import base64
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from callsheet import AgentGraphRetriever, Settings, create_supervisor
from callsheet.agents.calls.tool_result import KeptResults
from callsheet.agents.safety.secrets import Redaction, of_server
from callsheet.graphs import Loaded, ServerConfig, load
from callsheet.graphs.dependencies import ObservationLog
from callsheet.graphs.text.credentials import masked, secrets_in
from callsheet.orchestrator.run.threads import Threads
from callsheet.retrievers.documents import DocumentIndex
from fleet import SERVER, Fleet, definition
from scripted_model import ScriptedModel, calls, planned

PASSWORD, TOKEN = "CANARY-7f3a", "CANARY-7f3a91c4d2e84b"
ADDRESS = f"postgresql://ann:{PASSWORD}@db.example/books"
HTTP = Path(SERVER).with_name("leaky_server.py")


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS = {
    "plain": PASSWORD,
    "address": ADDRESS,
    "user and password in base64": base64_of(f"ann:{PASSWORD}"),
    "header in base64": base64_of(f"xy{ADDRESS}z"),
    "for addresses": base64.urlsafe_b64encode(f"?>{PASSWORD}?>".encode()).decode(),
    "hexadecimal": PASSWORD.encode().hex(),
}
WORDS = [
    [ADDRESS],
    [f"--database={ADDRESS}"],
    [f"https://ann:{PASSWORD}@db.example:8080/x?y=z#w"],
    [f"postgresql://ann:{PASSWORD.replace('-', '%2D')}@db.example/books"],
    [f"ann:{PASSWORD}@tcp(db.example:3306)/books"],
    [f"host=db.example user=ann password={PASSWORD}"],
    [f"Server=db.example;Password={PASSWORD};"],
    ["--header", f"Authorization: Bearer {PASSWORD}"],
    ["--key", PASSWORD],
    ["--config", json.dumps({"region": "eu", "apiKey": PASSWORD})],
    [f"https://db.example/books?page=2&key={PASSWORD}"],
]


@pytest.fixture
def leaky(fleet: Fleet) -> Loaded:
    """A server with an address among its arguments, which it says in whatever it says."""
    words = [str(SERVER), str(fleet.folder / "db.json"), str(fleet.folder / "db.log"), ADDRESS]
    told = " ".join(FORMS.values())
    structured = {PASSWORD: [{f"in {ADDRESS}": dict.fromkeys(FORMS.values(), 1)}]}
    tool = definition("read", f"Reads a book. It knows {told}.")
    fleet.serve("db", tool, entry={"args": words}, says=told, structured=structured, about={"instructions": told})
    return load(fleet.config, yes=True)


def holding(folder: Path, *secrets: str) -> list[str]:
    """The files that hold one of these."""
    return [
        str(file)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and any(secret.encode() in file.read_bytes() for secret in secrets)
    ]


async def test_a_password_in_the_address_of_a_command_is_kept_nowhere(leaky: Loaded, tmp_path: Path) -> None:
    AgentGraphRetriever.from_catalog(leaky)
    model = ScriptedModel(
        replies=[lambda told: AIMessage("done") if isinstance(told[-1], ToolMessage) else calls("db_read", x="1")]
    )
    home = tmp_path / "home"
    async with AsyncSqliteSaver.from_conn_string(str(home / "runs.sqlite")) as saver:
        app = create_supervisor(
            leaky,
            planner_model=ScriptedModel(replies=[planned(("1", "read a book", []))]),
            worker_model=model,
            settings=Settings(approval="never"),
        ).compile(checkpointer=saver)
        state = await app.ainvoke({"messages": [HumanMessage("read a book")]}, {"configurable": {"thread_id": "1"}})
    (call,) = state["results"]["1"]["calls"]
    assert "***" in call["output"]
    assert not any(form in repr(state) for form in FORMS.values())
    assert {file.parent.name for file in home.rglob("*.json")} >= {"pins", "listings"}
    assert holding(home, *FORMS.values()) == []


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[-1][:24])
def test_a_secret_among_the_words_of_a_command_is_masked_and_taken_out(words: list[str]) -> None:
    assert PASSWORD not in " ".join(masked(words))
    assert PASSWORD.replace("-", "%2D") not in " ".join(masked(words))
    assert "db.example" in " ".join(masked(words)) or "db.example" not in " ".join(words)
    redaction = of_server(ServerConfig(command="x", args=tuple(words)), [])
    assert redaction.text(f"<{PASSWORD}>") == "<***>"


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_taken_out_in_every_form(form: str) -> None:
    redaction = of_server(ServerConfig(command="x", args=(ADDRESS,)), [])
    assert FORMS[form] not in redaction.text(f"a {FORMS[form]} b")


def test_keys_are_taken_out_and_stay_apart() -> None:
    redaction = Redaction([PASSWORD])
    assert redaction.value({PASSWORD: 1, PASSWORD.encode().hex(): {PASSWORD: 2}, "***": 3}) == {
        "****": 1,
        "*****": {"***": 2},
        "***": 3,
    }


@pytest.mark.parametrize("value", [f"Basic {base64_of(f'ann:{PASSWORD}')}", f"Bearer {PASSWORD}", PASSWORD])
def test_what_a_header_holds_is_taken_out_alone_too(value: str) -> None:
    server = ServerConfig(url="https://db.example/", transport="http", headers={"X-Key": value})
    assert PASSWORD not in of_server(server, []).text(f"it is {PASSWORD}, in full {value}")


def test_the_password_in_an_address_of_the_environment_is_taken_out_alone_too() -> None:
    server = ServerConfig(command="x", env={"DATABASE": ADDRESS})
    assert of_server(server, []).text(f"no entry for ann, {PASSWORD}") == "no entry for ann, ***"


@pytest.mark.parametrize(
    "words",
    [
        ["@scope/server-filesystem@2026.7.1", "/data/my files", "--level=WARNING"],
        ["https://registry.example/npm/@scope/server?version=2026.7.1&model=gpt-4o-mini-2024-07-18"],
        ["http://localhost:8080/v1/projects/summer-2026/mcp"],
        ["git+https://example.org/ann/server@7f3a91c4d2e84b7f3a91c4d2e84b"],
        ["--page-token", "abcdefgh", "--max-tokens=4000", "--sort-key", "name"],
        ["claude-3-5-sonnet-20241022", "ann@example.org"],
    ],
)
def test_ordinary_words_of_a_command_stay(words: list[str]) -> None:
    assert masked(words) == words
    assert secrets_in(words) == set()


def test_a_password_that_is_its_user_is_masked_and_an_answer_about_it_stays() -> None:
    word = "postgresql://postgres:postgres@localhost/db"
    assert masked([word]) == ["postgresql://postgres:***@localhost/db"]
    assert of_server(ServerConfig(command="x", args=(word,)), []).text("postgres 17") == "postgres 17"


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    """Address of a server over HTTP that has a token in its path."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path / "log"
    process = subprocess.Popen([sys.executable, str(HTTP), str(log), str(port)])
    while socket.socket().connect_ex(("127.0.0.1", port)) and process.poll() is None:
        pass
    yield f"http://127.0.0.1:{port}/s/{TOKEN}/mcp"
    process.kill()
    process.wait()


def test_a_token_in_the_path_of_an_address_is_in_no_file_and_no_log(
    fleet: Fleet, remote: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    fleet.config.write_text(json.dumps({"mcpServers": {"far": {"url": remote}}}))
    assert load(fleet.config, yes=True).catalog.tools
    assert TOKEN not in caplog.text
    assert "127.0.0.1" in caplog.text
    home = fleet.folder.parent / "home"
    assert "/s/***/mcp" in "".join(file.read_text() for file in (home / "pins").iterdir())
    assert holding(home, TOKEN) == []


def open_to_others(folder: Path) -> list[str]:
    """The files that another user could read."""

    def closed(path: Path) -> bool:
        return any(not part.stat().st_mode & 0o077 for part in (path, *path.parents) if part.is_relative_to(folder))

    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not closed(path)]


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
async def test_no_other_user_reads_what_is_kept(leaky: Loaded, tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = os.umask(0o022)
    try:
        load(tmp_path / "fleet" / "mcp.json", yes=True)
        AgentGraphRetriever.from_catalog(leaky)
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a.md").write_text("The race begins at nine.")
        DocumentIndex(tmp_path / "docs").sync()
        ObservationLog().add({("db/read", "db/list", "x"): 1})
        KeptResults().of("run", "db", "read")(b"text", "text/plain")
        threads = Threads.of(leaky)
        with threads.locked("t"):
            async with threads.saver("t"):
                pass
    finally:
        os.umask(before)
    assert {path.name for path in home.iterdir()} >= {"pins", "listings", "index", "results", "threads"}
    assert open_to_others(home) == []


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_the_files_themselves_are_closed_in_a_folder_that_is_open(leaky: Loaded, tmp_path: Path) -> None:
    place = tmp_path / "index"
    place.mkdir(mode=0o755)
    before = os.umask(0o022)
    try:
        AgentGraphRetriever.from_catalog(leaky, index=place)
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a.md").write_text("The race begins at nine.")
        DocumentIndex(tmp_path / "docs", index=place).sync()
    finally:
        os.umask(before)
    assert [path for path in place.rglob("*.sqlite*") if path.stat().st_mode & 0o077] == []
