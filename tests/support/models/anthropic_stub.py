"""A stub of Anthropic's Messages API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from langchain_anthropic import ChatAnthropic
from pydantic import SecretStr

Body = dict[str, Any]


@contextmanager
def anthropic(*answers: list[Body]) -> Iterator[tuple[str, list[Body], list[str]]]:
    """A stub of the Messages API: answers in this order, and keeps bodies and beta headers."""
    bodies: list[Body] = []
    betas: list[str] = []
    left = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            betas.append(self.headers.get("anthropic-beta", ""))
            content = next(left)
            stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
            usage = {"input_tokens": 1, "output_tokens": 1}
            message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": content}
            answer = json.dumps({**message, "stop_reason": stop, "stop_sequence": None, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 as it is named there
            """Silent."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies, betas
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def use(name: str, **arguments: Any) -> list[Body]:
    return [{"type": "tool_use", "id": f"call_{name}", "name": name, "input": arguments}]


TEXT: list[Body] = [{"type": "text", "text": "done"}]


def claude(url: str, model: str = "claude-opus-4-8") -> ChatAnthropic:
    return ChatAnthropic(model_name=model, base_url=url, api_key=SecretStr("k"), timeout=30, max_retries=0, stop=None)
