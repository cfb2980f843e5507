"""A gateway over a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callsheet.retrievers import MiniLMEmbeddings
from local_gateway import LocalGateway


@pytest.fixture(autouse=True)
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway over HTTP says where its page of sign-ins is, for the process: not for the tests after this one."""
    monkeypatch.setattr("callsheet.agents.servers.oauth.addresses._OWN", [])


@pytest.fixture(scope="session")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory, minilm: MiniLMEmbeddings) -> Iterator[LocalGateway]:
    made = LocalGateway(tmp_path_factory.mktemp("gateway"), minilm)
    yield made
    made.registry.close()


@pytest.fixture
def local(shared_gateway: LocalGateway) -> LocalGateway:
    shared_gateway.clear()
    return shared_gateway
