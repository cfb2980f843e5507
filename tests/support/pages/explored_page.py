"""The explorer served for a browser."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from chromium import Browser
from page_runs import drawn_runs


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/callsheet/"
        finally:
            server.should_exit = server.force_exit = True  # whatever is still being computed
            thread.join(20)


def heading(browser: Browser, name: str) -> None:
    """Waits until an agent, a tool or a capability is shown."""
    browser.wait(f"document.querySelector('.details h2')?.textContent === {name!r}")


def click(page: Browser, text: str) -> None:
    """Clicks on the button with this text."""
    page.run(f"[...document.querySelectorAll('main button')].find((e) => e.textContent === {text!r}).click()")


def saved(page: Browser, name: str) -> str:
    """What a button saves, byte by byte."""
    page.run(
        "window.blobs = []; window.made ??= URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blobs.push(blob); return made.call(URL, blob); };"
    )
    click(page, name)
    page.wait("document.getElementById('status').textContent.startsWith('Saved as ')")
    page.run("document.getElementById('status').textContent = ''")
    content: str = page.run(
        "blobs.at(-1).arrayBuffer().then((all) => Array.from(new Uint8Array(all), (one) => String.fromCharCode(one)))"
        ".then((all) => all.join(''))"
    )
    return content


def watched(client: httpx.Client, thread: str) -> list[Any]:
    """What the page shows of a run after each of its events, until it ends or waits."""
    answer = client.get("/callsheet/api/watch", params={"id": thread})
    assert answer.status_code == 200, answer.text
    events = [json.loads(part.removeprefix("data: ")) for part in answer.text.split("\n\n") if part]
    return list(drawn_runs([events])[0])


def sent(client: httpx.Client, name: str, status: int = 200, **given: Any) -> str:
    """The thread for which something is done by the page's routes, or why it is not."""
    answer = client.post(f"/callsheet/api/{name}", json=given)
    assert answer.status_code == status, answer.text
    return str(answer.json()["thread" if status == 200 else "error"])


def shown(client: httpx.Client, thread: str) -> list[Any]:
    """What the page shows of the requests of a thread."""
    answer = client.get("/callsheet/api/run", params={"id": thread})
    assert answer.status_code == 200, answer.text
    return [runs[-1] for runs in drawn_runs(answer.json())]
