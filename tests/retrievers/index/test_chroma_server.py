from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever, Changes, ChromaIndex, MiniLMEmbeddings, nodes_of
from forked import Forked

pytestmark = pytest.mark.server
ROOT = Path(__file__).parents[3]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ``chroma run`` of our own on loopback."""
    program, port = Path(sys.executable).with_name("chroma"), free_port()
    place = tmp_path_factory.mktemp("chroma-run")
    server = subprocess.Popen(
        [program, "run", "--path", place, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )
    try:
        wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(1_800):
        if server.poll() is not None:
            pytest.fail(f"chroma run ended with status {server.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("chroma run did not open its port")


def test_a_chroma_server_holds_the_vectors(address: str, catalog: Catalog, minilm: MiniLMEmbeddings) -> None:
    nodes = nodes_of(catalog)
    first, second = (ChromaIndex(minilm, catalog="c", recipe="r1", where=address) for _ in range(2))
    assert first.sync(nodes) == Changes(added=len(nodes))
    assert second.sync(nodes) == Changes()
    (scores,) = second.scores("convert 3 miles to km")
    assert scores == pytest.approx(first.scores("convert 3 miles to km")[0], abs=1e-6)
    assert nodes[int(scores.argmax())].id in ("units/convert_length", "units")
    assert first.sync(nodes[:-1]) == Changes(removed=1)


def test_the_retriever_takes_the_servers_address(address: str, catalog: Catalog) -> None:
    retriever = AgentGraphRetriever.from_catalog(catalog, index=address, k=1)
    assert [document.id for document in retriever.invoke("Will it rain in Oslo?")] == ["weather"]
    assert retriever.place == address


def test_replicas_that_index_at_once_end_with_one_index(address: str, tmp_path: Path) -> None:
    words = ["-m", "callsheet", "index", "--json", "--catalog", "examples/eval/catalog"]
    env = {**os.environ, "CALLSHEET_INDEX": address, "CALLSHEET_HOME": str(tmp_path)}

    def index() -> Forked:
        return Forked(words, cwd=ROOT, env=env, stdout=subprocess.PIPE)

    replicas = [index() for _ in range(2)]
    said = [json.loads(replica.communicate()[0]) for replica in replicas]
    assert [replica.returncode for replica in replicas] == [0, 0]
    assert all(one["path"] == address for one in said)
    assert max(one["added"] for one in said) > 10
    after = json.loads(index().communicate()[0])
    assert (after["added"], after["updated"], after["removed"]) == (0, 0, 0)
