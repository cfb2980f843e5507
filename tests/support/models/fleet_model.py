"""A model that plans, revises and works over the real fleet, from nothing but the text that it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from callsheet.agents.registry.binding import NEED_TOOL, names_of
from deciding_model import DecidingModel, called

_STEP = re.compile(r"<step id='(.*?)'>\n(.*?)\n<result>\n(.*?)\n</result>\n</step>", re.DOTALL)
_PLACE = re.compile(r"/\S+/sandbox")
Draft = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What planner or reviser is shown, in parts.

    Attributes:
        request: The request.
        results: Text and result of each step that has run, in order.
    """

    request: str
    results: tuple[tuple[str, str], ...] = ()

    @property
    def box(self) -> str:
        """The folder that the request speaks of."""
        found = _PLACE.search(self.request)
        assert found
        return found[0]

    def of(self, pattern: str) -> list[str]:
        """The results of the steps whose text a pattern fits."""
        return [result for text, result in self.results if re.search(pattern, text)]

    def taken(self, pattern: str) -> list[str]:
        """What a pattern finds in the results, in order."""
        return [found for _, result in self.results for found in re.findall(pattern, result)]

    def next(self, *texts: str, **fields: Any) -> Draft:
        """Further steps."""
        first = len(self.results) + 1
        return {"steps": [{"id": str(first + n), "text": text, **fields} for n, text in enumerate(texts)]}


Decide = Callable[[Told], Draft]
DONE: Draft = {"done": True, "reason": "the results answer the request"}


def deciding(decide: Decide) -> FleetModel:
    """A model with one function for plan and revisions: the next steps, by what is known.

    Args:
        decide: Is shown no results at first, and later all that there are.
    """

    def plan(text: str) -> Draft:
        return {"open": True, **decide(Told(text.partition("\n\n")[0]))}

    def revise(text: str) -> Draft:
        request = text.partition("\n\n")[0].removeprefix("Request: ")
        return decide(Told(request, tuple((one, result) for _, one, result in _STEP.findall(text))))

    return FleetModel(plan=plan, revise=revise)


class FleetModel(DecidingModel):
    """Does a step by its words alone, with one call of the tool that they mean; asks for the tool if it lacks it."""

    def _worked(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        last = messages[-1]
        if isinstance(last, ToolMessage) and last.name != NEED_TOOL:
            return AIMessage(last.text)
        told = next(message.text for message in messages if isinstance(message, HumanMessage))
        meant, args = _meant(told.partition("\n\n")[0])
        agent, _, tool = meant.partition("/")
        if name := next((name for name in names_of(agent, tool) if name in tools), ""):
            return called(name, args)
        if NEED_TOOL in tools and not isinstance(last, ToolMessage):
            return called(NEED_TOOL, {"what": f"{tool.replace('_', ' ')} of {agent}"})
        return AIMessage(f"{meant} is not among the tools of this step")


def _meant(text: str) -> tuple[str, dict[str, Any]]:
    for pattern, tool, args in _CALLS:
        if found := re.fullmatch(pattern, text, re.DOTALL):
            return tool, args(*found.groups())
    raise AssertionError(f"no call is meant by {text!r}")


def _noted(name: str, text: object) -> dict[str, Any]:
    return {"entities": [{"name": name, "entityType": "note", "observations": [text]}]}


def _path(*names: str | None) -> dict[str, Any]:
    return {"path": "/".join(filter(None, names))}


def _inserted(path: str, text: str) -> dict[str, Any]:
    patch = {"start": 1, "contents": f"{text}\n", "range_hash": ""}
    return {"files": [{"path": path, "file_hash": "", "patches": [patch], "encoding": "utf-8"}]}


_CALLS: tuple[tuple[str, str, Callable[..., dict[str, Any]]], ...] = (
    (r"List the directory (\S+?)(?:: \[DIR\] (\S+))?", "filesystem/list_directory", _path),
    (r"Read the text file (\S+?)(?:: \[FILE\] (\S+))?", "filesystem/read_text_file", _path),
    (
        r"Search for files that match (\S+) in the directory (\S+)",
        "filesystem/search_files",
        lambda pattern, path: {"path": path, "pattern": pattern},
    ),
    (
        r"Write the file (\S+) with the content: (.*)",
        "filesystem/write_file",
        lambda path, text: {"path": path, "content": text},
    ),
    (
        r"With the line editor, insert into the text file (\S+) the line: (.*)",
        "texteditor/edit_text_file_contents",
        _inserted,
    ),
    (r"Create the entity (\S+) in the knowledge graph with the observation: (.*)", "memory/create_entities", _noted),
    (
        r"Search for nodes in the knowledge graph by the query: (.*)",
        "memory/search_nodes",
        lambda query: {"query": query},
    ),
    (r"List all tables in the SQLite database", "sqlite/list_tables", dict),
    (
        r"Get the schema of the table (\S+) in the SQLite database",
        "sqlite/describe_table",
        lambda name: {"table_name": name},
    ),
    (r"Execute on the SQLite database the SELECT query: (.*)", "sqlite/read_query", lambda query: {"query": query}),
    (
        r"Execute an INSERT query on the SQLite database, a row into (\w+) with: (?:\[FILE\] )?(.*)",
        "sqlite/write_query",
        lambda table, text: {"query": f"INSERT INTO {table} VALUES ('{text}')"},
    ),
    (r"Show the working tree status of the git repository (\S+)", "git/git_status", lambda path: {"repo_path": path}),
    (
        r"Add the file (\S+) to the staging area of the git repository (\S+)",
        "git/git_add",
        lambda name, path: {"repo_path": path, "files": [name]},
    ),
    (
        r"Record the staged changes to the git repository (\S+) in a commit with the message: (.*)",
        "git/git_commit",
        lambda path, text: {"repo_path": path, "message": text},
    ),
    (r"Show the commit logs of the git repository (\S+)", "git/git_log", lambda path: {"repo_path": path}),
    (
        r"Show the contents of the commit (\w+) of the git repository (\S+)",
        "git/git_show",
        lambda name, path: {"repo_path": path, "revision": name},
    ),
    (
        r"Convert the length ([\d.]+) mile to kilometer",
        "units/convert_length",
        lambda value: {"value": float(value), "from_unit": "mile", "to_unit": "kilometer"},
    ),
    (
        r"Create the entity (\S+) in the knowledge graph with the result of step (\S+) as its observation",
        "memory/create_entities",
        lambda name, step: _noted(name, {"$from": step, "path": "to_string(@)"}),
    ),
    (r"Fetch the URL (\S+)", "fetch/fetch", lambda url: {"url": url}),
)
