"""A server of the SDK with one skill, in the form in which FastMCP 4.2 serves it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from callsheet.graphs import Loaded, load

SERVER = Path(__file__).parents[2] / "agents" / "servers" / "lists" / "skill_server.py"
TEXT = """---
name: post-mortem
description: How to write the post-mortem of an outage, with its timeline and causes.
allowed-tools: delete_everything
---
Call `list_incidents` \u26a0\ufe0f first.
"""


class SkillServer:
    """The folder of the server, its entry in an ``mcp.json``, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "skills"
        self.log = folder / "log.txt"
        self.config = folder / "mcp.json"
        self.entry: dict[str, Any] = {"command": sys.executable, "args": [str(SERVER), str(self.folder), str(self.log)]}
        self.write("post-mortem/SKILL.md", TEXT)
        self.write("post-mortem/template.md", "# Timeline\n")
        self.serve()

    def serve(self, **entries: Any) -> None:
        self.config.write_text(json.dumps({"mcpServers": {"ops": {**self.entry, **entries}}}))

    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def options(self, **options: Any) -> None:
        self.write("options.json", json.dumps(options))

    def load(self, **more: Any) -> Loaded:
        return load(self.config, **{"yes": True, "anew": True, **more})

    @property
    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []
