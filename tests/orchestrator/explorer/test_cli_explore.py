"""``callsheet explore`` as a process of its own, and its mistakes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from callsheet.graphs import Catalog, dump
from callsheet.orchestrator.cli.main import main
from forked import Forked

pytestmark = pytest.mark.server


@pytest.fixture
def source(catalog: Catalog, tmp_path: Path) -> Path:
    file = tmp_path / "callsheet.json"
    file.write_text(dump(catalog))
    return file


@pytest.fixture
def started(source: Path, tmp_path: Path) -> Iterator[Forked]:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"default": "deny", "users": {"ann": {"allow": ["units"]}}}))
    words = ["explore", "--catalog", str(source), "--policy", str(policy), "--user", "ann", "--port", "0", "--json"]
    process = Forked(["-m", "callsheet", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    yield process
    process.kill()
    process.wait(60)


def test_explore_prints_its_address_and_serves_the_page_until_it_is_interrupted(started: Forked) -> None:
    assert started.stdout is not None
    told = json.loads(started.stdout.readline() or started.communicate()[1])
    assert (told["agents"], told["tools"]) == (1, 2)
    url, _, key = told["url"].partition("#key=")
    client = httpx.Client(timeout=60, headers={"x-callsheet-key": key})
    for name in ("api/overview", "api/runs", "metrics"):
        assert httpx.get(f"{url}{name}").status_code == 403
    assert "Callsheet" in client.get(url).text
    assert client.get(url.replace("/callsheet/", "/")).headers["location"] == "callsheet/"
    assert client.get(f"{url}api/overview").json()["tools"] == 2
    assert client.get(f"{url}api/overview", headers={"Host": "evil.example"}).status_code == 400
    asked = {"text": "Convert 3 miles to kilometers"}
    assert httpx.post(f"{url}api/start", json=asked).status_code == 403
    assert client.post(f"{url}api/start", json=asked).status_code == 200
    review = client.get(f"{url}api/review?part=dependencies").json()
    assert "reviewers" in review["refusal"]
    os.kill(started.pid, signal.SIGINT)
    assert started.wait(60) == 130


def says(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["explore", *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_taken_port_is_named(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        said = says(capsys, "--catalog", str(source), "--port", port)
    assert said == f"error: port {port} cannot be used: Address already in use: give another one with --port\n"


def test_the_key_of_the_page_is_in_no_command_line(source: Path, tmp_path: Path) -> None:
    """Every user of the machine can read command lines: the browser gets the name of a file of its user alone."""
    told, browser = tmp_path / "told", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}.new && mv {told}.new {told}\n')
    browser.chmod(0o755)
    words = [sys.executable, "-m", "callsheet", "explore", "--catalog", str(source), "--port", "0"]
    environment = {**os.environ, "BROWSER": f"{browser} %s", "CALLSHEET_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next(line for line in process.stderr if "#key=" in line).split()[0]
        key = url.partition("#key=")[2]
        deadline = time.monotonic() + 60
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        (opened,) = told.read_text().split()
        place = Path(opened.removeprefix("file://"))
        assert key not in opened
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700
        assert f'content="0; url={url}"' in place.read_text()
        lines = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
        assert not any(key.encode() in line for line in lines)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert not place.exists()
