"""Messages that a server may send unasked, and bytes that are none."""

from __future__ import annotations

from typing import Any

from stage import CAP

TEXT = {"content": [{"type": "text", "text": "done"}]}
ID = "the id of the call"
FORMS: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x", "logger": "l"}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": ID, "progress": 1, "total": 2}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ID, "reason": "x"}},
    {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "file:///x"}},
    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": ID, "method": "roots/list"},
    {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
    {"jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": {"message": "?", "requestedSchema": {}}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "work", "arguments": {}}},
    {"jsonrpc": "2.0", "id": ID, "result": TEXT},
    {"jsonrpc": "2.0", "id": ID, "result": {"resultType": "input_required", "inputRequests": {}}},
    {"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "no", "data": {}}},
)
RAW = (
    b"", b"{}", b"[]", b"null", b"INFO started", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{\"id\":\"\\ud800\"}", b"\0", b"\r",
    b'{"jsonrpc":"2.0","id":1,"id":2,"result":{}}', b'{"jsonrpc":"2.0","method":"ping","id":' + b"9" * 5_000 + b"}",
    b'{"jsonrpc":"2.0","id":' + b"[" * 5_000,
    b'{"jsonrpc":"2.0","id":1,"result":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001,
    b'{"jsonrpc":"2.0","method":"x","params":' + b"[" * 90_000 + b"]" * 90_000 + b"}",
    b'{"jsonrpc":"2.0","method":"x","params":{"a":' + b"9" * 90_000 + b"}}", b"x" * (CAP + 1),
)  # fmt: skip
