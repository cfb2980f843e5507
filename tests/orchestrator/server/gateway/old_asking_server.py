"""An MCP server that asks questions in the middle of its calls, in the older protocol; it starts without a library.

Usage: old_asking_server.py LOG
"""

from __future__ import annotations

import json
import sys
from typing import Any

QUESTION = "Which\nsize?\u202e"
FORM = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}
ASKS: dict[str, tuple[str, dict[str, Any], int]] = {
    "order": ("elicitation/create", {"message": QUESTION, "requestedSchema": FORM}, 1),
    "many": ("elicitation/create", {"message": QUESTION, "requestedSchema": FORM}, 7),
    "open": (
        "elicitation/create",
        {"mode": "url", "message": "Pay", "url": "https://x.example/", "elicitationId": "1"},
        1,
    ),
    "think": ("sampling/createMessage", {"messages": [], "maxTokens": 5}, 1),
}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def asked(tool: str) -> str:
    method, params, times = ASKS[tool]
    answers = []
    for number in range(times):
        send({"id": f"ask-{number}", "method": method, "params": params})
        while (message := json.loads(sys.stdin.readline())).get("id") != f"ask-{number}":
            pass
        answers.append(json.dumps(message.get("result") or message["error"]["message"]))
    return "\n".join(answers)


def serve() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                about = {"serverInfo": {"name": "asks", "version": "1"}, "capabilities": {"tools": {}}}
                with open(sys.argv[1], "a") as log:  # noqa: PTH123
                    log.write(f"{sorted(message['params']['capabilities'])}\n")
                send({"id": message["id"], "result": {"protocolVersion": "2025-06-18", **about}})
            case "tools/list":
                hints = {"annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}}
                send({"id": message["id"], "result": {"tools": [{"name": name, **hints} for name in ASKS]}})
            case "tools/call":
                said = [{"type": "text", "text": asked(message["params"]["name"])}]
                send({"id": message["id"], "result": {"content": said}})
            case _ if "id" in message and "method" in message:
                send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})


if __name__ == "__main__":
    serve()
