"""An MCP server over stdio that counts, and writes lines to a file; it starts without a library, as many attempts do.

Usage: task_server.py FILE
"""

from __future__ import annotations

import json
import sys
from typing import Any

READS = {"annotations": {"readOnlyHint": True, "idempotentHint": True}}


def tool(name: str, description: str, parameter: str, kind: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": kind}}, "required": [parameter]}
    return {"name": name, "description": description, "inputSchema": schema, **more}


TOOLS = [
    tool("count", "Counts up to a number, and reports its progress.", "steps", "integer", **READS),
    tool("write", "Writes a line to a file, which cannot be undone.", "text", "string"),
]


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "count":
        said = f"counted to {arguments['steps']}"
    else:
        said = f"wrote {arguments['text']}"
        with open(sys.argv[1], "a") as log:  # noqa: PTH123
            log.write(f"{said}\n")
    return {"content": [{"type": "text", "text": said}]}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            about = {"serverInfo": {"name": "works", "version": "1"}, "capabilities": {"tools": {}}}
            return {"protocolVersion": params["protocolVersion"], **about}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return called(params["name"], params["arguments"])
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        found = result(message["method"], message.get("params", {}))
        said = {"error": {"code": -32601, "message": "unknown"}} if found is None else {"result": found}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}) + "\n")
        sys.stdout.flush()
