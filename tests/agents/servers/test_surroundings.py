from __future__ import annotations

import logging
import sys
import sysconfig
from pathlib import Path

import pytest

from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.servers import session_pool
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.stdio import environment_of, program_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig

HUNG = "import time; time.sleep(60)"


def test_a_server_finds_the_certificates_of_the_company_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/company.pem")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/etc/company.pem")
    monkeypatch.setenv("OPENAI_API_KEY", "canary-71")
    monkeypatch.setenv("HTTPS_PROXY", "http://ann:canary-72@proxy:3128")
    found = environment_of(ServerConfig(command="x", env={"SSL_CERT_FILE": "/its/own.pem"}))
    assert found["NODE_EXTRA_CA_CERTS"] == "/etc/company.pem"
    assert found["SSL_CERT_FILE"] == "/its/own.pem"
    assert "canary" not in str(found)


@pytest.mark.parametrize(
    ("command", "cure"),
    [
        ("uvx", "pip install uv"),
        ("npx", "install Node.js"),
        ("no-such-program", "install it or correct the path"),
        (f"{sys.executable} -m server", "'-m server' word by word in 'args'"),
        ("no-such-program serve", "install it or correct the path"),
        ("", "install it or correct the path"),
    ],
)
def test_a_program_that_is_not_there(command: str, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    with pytest.raises(Fault, match="was not found") as raised:
        program_of(command, {"PATH": str(tmp_path)})
    assert cure in str(raised.value)


def test_a_program_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program_of(sys.executable, {}) == sys.executable
    (beside := tmp_path / "uvx").touch(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    assert program_of("uvx", {"PATH": "/nowhere"}) == str(beside)


def test_who_is_waited_for_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(session_pool, "LATE", 1)
    hung = ServerConfig.model_validate(
        {"command": sys.executable, "args": ["-c", HUNG], "callsheet": {"limits": {"start": 2}}}
    )
    with caplog.at_level(logging.WARNING):
        SessionPool().list_all({"slow": hung, "gone": ServerConfig(command="no-such-program")})
    assert "no answer for 1 s from slow: waiting" in caplog.text
    assert "gone" not in caplog.text
