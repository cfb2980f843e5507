"""An API over HTTP on the loopback interface, and its specification."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a2a_server import free_port, serving
from callsheet import ToolRegistry

METHODS = ["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS"]
Answer = Callable[[str], Response]


@dataclass
class Sent:
    """What the API was sent.

    Attributes:
        method: Method.
        target: Path and query as they were on the wire.
        headers: Headers, names in lower case.
        body: Body.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class ShopApi:
    """An API that answers as told, and remembers what it was sent.

    Attributes:
        url: Its address.
        sent: All that it was sent.
        answers: Answers by path; any other path is answered with what was sent.
    """

    url: str
    sent: list[Sent] = field(default_factory=list)
    answers: dict[str, Response] = field(default_factory=dict)

    async def answer(self, request: Request) -> Response:
        """Answers one request."""
        query = request.scope["query_string"].decode()
        target = request.scope["raw_path"].decode() + (f"?{query}" if query else "")
        body = await request.body()
        self.sent.append(Sent(request.method, target, dict(request.headers), body))
        if (answer := self.answers.get(request.url.path)) is not None:
            return answer
        return JSONResponse({"id": "7", "state": "shipped", "target": target})


@contextmanager
def shop() -> Iterator[ShopApi]:
    """Serves an API."""
    port = free_port()
    served = ShopApi(f"http://127.0.0.1:{port}")
    with serving(Starlette(routes=[Route("/{path:path}", served.answer, methods=METHODS)]), port):
        yield served


def shop_spec(url: str = "", **more: Any) -> dict[str, Any]:
    """The specification of a shop: orders that are told and placed, and one operation without a tag."""
    order = {"type": "object", "properties": {"id": {"type": "string"}, "state": {"type": "string"}}}
    answer = {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}}
    number = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    fields = {
        "item": {"type": "string", "description": "What is ordered."},
        "pieces": {"type": "integer", "minimum": 1},
        "id": {"type": "string", "readOnly": True},
    }
    body = {"type": "object", "properties": fields, "required": ["item", "id"], "additionalProperties": False}
    paths: dict[str, Any] = {
        "/orders/{id}": {
            "parameters": [number],
            "get": {
                "operationId": "tellOrder",
                "tags": ["orders"],
                "summary": "Tell the state of an order.",
                "responses": answer,
            },
            "delete": {"operationId": "deleteOrder", "tags": ["orders"], "summary": "Delete an order."},
        },
        "/orders": {
            "post": {
                "operationId": "placeOrder",
                "tags": ["orders"],
                "summary": "Place an order for an item.",
                "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
                "responses": answer,
            }
        },
        "/health": {"get": {"summary": "Whether the shop is open."}},
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": "Shop", "version": "2", "description": "Sells things."},
        "tags": [{"name": "orders", "description": "Orders of customers."}],
        "servers": [{"url": url}] if url else [],
        "paths": paths,
        "components": {"schemas": {"Order": order}},
        **more,
    }


async def called(loaded: Any, tool: str = "shop-orders/tellOrder", **arguments: Any) -> Any:
    """The answer of a tool of a loaded catalog, by default to the number of an order."""
    (bound,) = ToolRegistry.from_catalog(loaded).bind([tool], "run").values()
    args = arguments or ({"id": "7"} if tool == "shop-orders/tellOrder" else {})
    return await bound.ainvoke({"type": "tool_call", "name": bound.name, "args": args, "id": "1"})
