"""Stubs of Anthropic's Messages API and of OpenAI's Responses API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

if TYPE_CHECKING:  # every process that collects tests would spend seconds on them
    from langchain_anthropic import ChatAnthropic
    from langchain_openai import ChatOpenAI

Body = dict[str, Any]


@contextmanager
def _serving(answer: Callable[[], Body]) -> Iterator[tuple[str, list[Body], list[str]]]:
    """A server with these answers: its address, the bodies that it was sent, and their beta headers."""
    bodies: list[Body] = []
    betas: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            betas.append(self.headers.get("anthropic-beta", ""))
            content = json.dumps(answer()).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

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


@contextmanager
def anthropic(*answers: list[Body]) -> Iterator[tuple[str, list[Body], list[str]]]:
    """A stub of the Messages API: answers in this order, and keeps bodies and beta headers."""
    left = iter(answers)

    def answer() -> Body:
        content = next(left)
        stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": content}
        return {**message, "stop_reason": stop, "stop_sequence": None, "usage": usage}

    with _serving(answer) as served:
        yield served


@contextmanager
def openai(*answers: list[Body]) -> Iterator[tuple[str, list[Body]]]:
    """A stub of the Responses API: answers in this order, and keeps bodies."""
    left = enumerate(answers)

    def answer() -> Body:
        number, output = next(left)
        about = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "x", "status": "completed"}
        items = [{**item, "id": f"{item['id']}_{number}"} for item in output]
        return {**about, "output": items, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}

    with _serving(answer) as (url, bodies, _):
        yield url, bodies


def use(name: str, **arguments: Any) -> list[Body]:
    return [{"type": "tool_use", "id": f"call_{name}", "name": name, "input": arguments}]


def function_call(name: str, **arguments: Any) -> list[Body]:
    call = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": name, "status": "completed"}
    return [{**call, "arguments": json.dumps(arguments)}]


TEXT: list[Body] = [{"type": "text", "text": "done"}]
MESSAGE: list[Body] = [
    {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "done", "annotations": []}],
    }
]


def claude(url: str, model: str = "claude-opus-4-5") -> ChatAnthropic:
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(model_name=model, base_url=url, api_key=SecretStr("k"), timeout=30, max_retries=0, stop=None)


def gpt(url: str, model: str = "gpt-5.5", *, responses: bool = True) -> ChatOpenAI:
    from langchain_openai import ChatOpenAI

    key = SecretStr("k")
    return ChatOpenAI(model=model, base_url=url, api_key=key, timeout=30, max_retries=0, use_responses_api=responses)
