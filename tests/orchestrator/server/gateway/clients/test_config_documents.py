"""Editing in place: whatever the form of a file, only the servers change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from callsheet.orchestrator.server.gateway.clients.jsonc_document import JsoncDocument
from callsheet.orchestrator.server.gateway.clients.toml_document import TomlDocument
from fuzzing import fuzzed

FILE = Path("mcp.json")
SPACE = st.sampled_from(["", " ", "\n", "\n  ", " // a, b }\n", '/* {" */', "\r\n\t", "\n// x\n\n"])
VALUE = st.sampled_from(
    ['{"a": 1}', '{ "u": "http://x" /* c */ }', "{}", '{"s": "// no \\" comment,}"}', '{"l": [1, 2,]}']
)
NAMES = st.lists(st.sampled_from(["a", "b", "c", 'd"', "é"]), unique=True)


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """An object of servers, with comments and commas wherever JSON with comments has them."""
    members = []
    for name in draw(NAMES):
        parts = [draw(SPACE), json.dumps(name), draw(SPACE), ":", draw(SPACE), draw(VALUE), draw(SPACE)]
        members.append("".join(parts))
    comma = "," + draw(SPACE) if members and draw(st.booleans()) else ""
    held = f"{{{','.join(members)}{comma or (draw(SPACE) if not members else '')}}}"
    after = draw(st.sampled_from(["", ",", ', "z": [1],']))
    return f'{draw(SPACE)}{{{draw(SPACE)}"first": "{{",{draw(SPACE)}"servers":{draw(SPACE)}{held}{after}{draw(SPACE)}}}'


@given(configurations(), NAMES)
@fuzzed(13)
def test_only_the_servers_change(text: str, remove: list[str]) -> None:
    document = JsoncDocument(text, "servers", FILE)
    gone = [name for name in remove if name in document.servers]
    after = JsoncDocument(
        document.exchanged(gone, {"new": document.source("new", {"command": "x", "args": ["y"]})}), "servers", FILE
    )
    kept = {name: entry for name, entry in document.servers.items() if name not in gone}
    assert after.servers == {**kept, "new": {"command": "x", "args": ["y"]}}
    assert list(after.value) == list(document.value)
    back = JsoncDocument(after.exchanged({"new"}, {name: document.source_of(name) for name in gone}), "servers", FILE)
    assert back.servers == document.servers
    for comment in ("// a, b }", "// x"):
        assert back.text.count(comment) == text.count(comment)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"servers": {\n\t\t"n": {\n\t\t\t"c": 1\n\t\t}\n\t}\n}\n'),
        ("", '{\n  "servers": {\n    "n": {\n      "c": 1\n    }\n  }\n}\n'),
        ('{\n  "servers": {}\n}', '{\n  "servers": {\n    "n": {\n      "c": 1\n    }\n  }\n}'),
        (
            '{\n "servers": {\n  "a": {} // why\n }\n}',
            '{\n "servers": {\n  "a": {}, // why\n  "n": {\n   "c": 1\n  }\n }\n}',
        ),
    ],
)
def test_a_new_server_looks_like_the_others(text: str, expected: str) -> None:
    document = JsoncDocument(text, "servers", FILE)
    assert document.exchanged((), {"n": document.source("n", {"c": 1})}) == expected


FORMS = (
    '[mcp_servers.{0}]\ncommand = "x" # inside\n',
    '[mcp_servers.{0}]\nnote = """\n[mcp_servers.z]\n# inside\n"""\n',
    '[mcp_servers.{0}]\nargs = [\n  "[a]", # inside\n]\n[mcp_servers.{0}.env]\nA = "1"\n',
    '[mcp_servers."{0} b".env]\nB = 1\n',
    "[[mcp_servers.{0}.tools]]\nn = 1\n\n[[mcp_servers.{0}.tools]]\nn = 2\n",
)
BETWEEN = (
    "",
    "# outside\n",
    "\n\n# outside\n\n",
    '[projects."/{0}"]\nt = "x" # outside\n',
    "[[list]]\na = 1\n# outside\n",
)


@given(
    st.lists(st.tuples(st.sampled_from(FORMS), st.sampled_from(BETWEEN)), max_size=5),
    st.sets(st.integers(0, 4)),
    st.sampled_from(["\n", "\r\n"]),
)
@fuzzed(13)
def test_only_the_tables_of_servers_change(parts: list[tuple[str, str]], remove: set[int], newline: str) -> None:
    text = "".join((form + between).format(f"s{n}") for n, (form, between) in enumerate(parts))
    document = TomlDocument(f"top = 1 # outside\n{text}".replace("\n", newline), "mcp_servers", FILE)
    gone = [name for n, name in enumerate(document.servers) if n in remove]
    entry = {"command": "x", "args": ["y"], "env": {"A": "b"}}
    after = TomlDocument(document.exchanged(gone, {"new": document.source("new", entry)}), "mcp_servers", FILE)
    kept = {name: held for name, held in document.servers.items() if name not in gone}
    assert after.servers == {**kept, "new": entry}
    back = TomlDocument(
        after.exchanged({"new"}, {name: document.source_of(name) for name in gone}), "mcp_servers", FILE
    )
    assert back.servers == document.servers
    assert back.text.count("# outside") == document.text.count("# outside")
    assert back.text.count("\n") == back.text.count(newline)
