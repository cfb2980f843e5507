"""LangChain community toolkits as agents that need code: a read-only database, a table of countries.

Load it with ``--catalog examples.demo.toolkits:agents``. No tool here needs a key or the network.
"""

from __future__ import annotations

import sqlite3
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.tools import BaseTool, StructuredTool
from sqlalchemy import create_engine

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="`langchain-community` is being sunset", category=DeprecationWarning)
    from langchain_community.agent_toolkits.json.toolkit import JsonToolkit
    from langchain_community.tools.json.tool import JsonSpec
    from langchain_community.tools.sql_database.tool import (
        InfoSQLDatabaseTool,
        ListSQLDatabaseTool,
        QuerySQLDatabaseTool,
    )
    from langchain_community.utilities.sql_database import SQLDatabase

HERE = Path(__file__).parent


class Described(TypedDict):
    """An agent: what it is for, and its tools (a toolkit has no description of its own)."""

    description: str
    tools: list[BaseTool]


def agents() -> dict[str, Described]:
    """The two agents by name."""
    return {
        "planets": {
            "description": "A read-only SQL database of the planets of the solar system and their large moons: "
            "size, mass, distance, orbit, discoverer.",
            "tools": _read_only(_sql_tools(_database())),
        },
        "countries": {
            "description": "Looks up a country's capital, currency, languages, time zone and calling code.",
            "tools": _read_only(_country_tools(HERE / "countries.json")),
        },
    }


def _country_tools(path: Path) -> list[BaseTool]:
    """JsonToolkit's tools, and one for a single fact, whose values are those of the file."""
    spec = JsonSpec.from_file(path)
    facts = dict.fromkeys(fact for country in spec.dict_.values() for fact in country)

    def country_fact(country: str, fact: str) -> Any:
        return spec.dict_[country][fact]

    schema = {
        "type": "object",
        "properties": {
            "country": {"type": "string", "enum": list(spec.dict_), "description": "The country"},
            "fact": {"type": "string", "enum": list(facts), "description": "What to look up"},
        },
        "required": ["country", "fact"],
    }
    fact = StructuredTool.from_function(
        country_fact, description="Look up one fact of a country.", args_schema=schema, infer_schema=False
    )
    return [fact, *JsonToolkit(spec=spec).get_tools()]


def _read_only(tools: list[BaseTool]) -> list[BaseTool]:
    """The same tools, marked as read-only: a person is not asked before their calls."""
    for tool in tools:
        tool.metadata = {**(tool.metadata or {}), "annotations": {"readOnlyHint": True}}
    return tools


def _sql_tools(path: Path) -> list[BaseTool]:
    """SQLDatabaseToolkit's tools but for its checker, which needs a model."""
    engine = create_engine("sqlite://", creator=lambda: _open_read_only(path))
    db = SQLDatabase(engine)
    return [ListSQLDatabaseTool(db=db), InfoSQLDatabaseTool(db=db), QuerySQLDatabaseTool(db=db)]


def _database() -> Path:
    """The database file, made from ``planets.sql`` when absent; another script gives another file."""
    script = (HERE / "planets.sql").read_text(encoding="utf-8")
    path = Path(f".callsheet/planets-{zlib.crc32(script.encode()):08x}.db").resolve()
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        draft = Path(folder, path.name)
        connection = sqlite3.connect(draft)
        connection.executescript(script)
        connection.close()
        draft.replace(path)  # atomic: another process sees the whole file or none
    return path


def _open_read_only(path: Path) -> sqlite3.Connection:
    """Open for reading; ATTACH is denied too, by which ``mode=ro`` would still write or read other files."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    connection.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK
    )
    return connection
