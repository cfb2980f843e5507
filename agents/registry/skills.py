"""Reads the instructions of skills, and the files of those that servers serve, which are checked on every reading."""

from __future__ import annotations

import asyncio
import base64
import binascii
from functools import partial
from urllib.parse import unquote

from callsheet.agents.calls.call_context import CALLER, LOOP, Limits, within
from callsheet.agents.calls.credentials import credentials_of_run
from callsheet.agents.calls.outcome import Outcome, failed_outcome
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.tool_result import Keep
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.servers.catalogs.listings import RESOURCE
from callsheet.graphs.catalog.formats.served_skills import ServedSkill, SkillFile
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Skill
from callsheet.graphs.catalog.names import skill_named
from callsheet.graphs.errors import CallsheetError, TrustError, UnknownNameError
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.trust.policy import User, as_tool

_OTHER = "it is not the file that its server has listed: `callsheet sync` lists the skills of the server again"
_MOST_NAMED = 20
"""Files of a skill that are named to a model."""
_NO_SERVER = "the server of agent {!r} is not connected, so its skills cannot be read"


async def read_skill(registry: ToolRegistry, skill_id: str, run_id: str, user: User | None = None) -> str:
    """Returns the instructions of a skill, in the session of a run with its server if it is served.

    Raises:
        UnknownNameError: The user sees no such skill.
        TrustError: What the server sends is not what was accepted.
        CallsheetError: The server does not send it.
    """
    skill = _visible_skill(registry, skill_id, user)
    if not skill.agent:
        return skill.text
    entry = _entry(registry, skill)
    content = await _content(registry, skill, entry.main, run_id, user)
    try:
        return await asyncio.to_thread(entry.instructions, content)
    except CallsheetError as error:
        raise TrustError(f"skill {skill_id!r}: {error}") from error


def read_skill_blocking(registry: ToolRegistry, name: str, run_id: str, user: User | None = None) -> str:
    """Returns a text for a model, for callers in a thread of their own: a skill, or a file of one (``skill_named``).

    After the instructions of a skill of a server, the names of its other files follow.

    Raises:
        CallsheetError: As for ``read_skill`` and ``read_skill_file``, or a file is no text.
    """
    found = skill_named(registry.catalog, name)
    if found is None or not found[1]:
        text = LOOP.blocking(read_skill(registry, name, run_id, user))
        return f"{text}{_file_names(registry, found[0]) if found else ''}"
    skill, path = found
    content = LOOP.blocking(read_skill_file(registry, skill.id, path, run_id, user))
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CallsheetError(f"{name} is no text: {error.reason}") from error


def _file_names(registry: ToolRegistry, skill: Skill) -> str:
    """Returns a line with the names of the files of a served skill besides its ``SKILL.md``; empty without any."""
    entry = registry.loaded.served.get(skill.agent, {}).get(skill.id)
    if entry is None or len(entry.resources) == 1:
        return ""
    paths = [file.uri.removeprefix(entry.root) for file in entry.resources if file != entry.main]
    named = ", ".join(f"{skill.id}/{unquote(path)}" for path in paths[:_MOST_NAMED])
    more = ", ..." if len(paths) > _MOST_NAMED else ""
    return f"\n[Its other files, to be read by these names as the skill itself: {shown(named, most=None)}{more}]"


async def read_skill_file(
    registry: ToolRegistry, skill_id: str, path: str, run_id: str, user: User | None = None
) -> bytes:
    """Returns the content of a file of a served skill; the path is relative to the folder of the skill.

    Raises:
        CatalogError: The skill has no such file; the message names those that it has.
        UnknownNameError, TrustError, CallsheetError: As for ``read_skill``.
    """
    skill = _visible_skill(registry, skill_id, user)
    return await _content(registry, skill, _entry(registry, skill).file(path), run_id, user)


def _visible_skill(registry: ToolRegistry, skill_id: str, user: User | None) -> Skill:
    loaded = registry.loaded
    skill = loaded.catalog.skills_by_id.get(skill_id)
    if skill is None or not (loaded.policy is None or loaded.policy.allows(as_tool(skill), user)):
        # Of a skill that is hidden from the user, nothing is said that would not be said of one that does not exist.
        why = registry.refused([skill_id], user)[skill_id] if skill is None else "there is none"
        raise UnknownNameError(f"skill {shown(skill_id, most=200)!r}: {why}")
    return skill


def _entry(registry: ToolRegistry, skill: Skill) -> ServedSkill:
    """Returns the accepted entry of a served skill, or raises a ``CallsheetError``."""
    entry = registry.loaded.served.get(skill.agent, {}).get(skill.id)
    if entry is None:
        raise CallsheetError(_NO_SERVER.format(skill.agent))
    return entry


async def _content(registry: ToolRegistry, skill: Skill, file: SkillFile, run_id: str, user: User | None) -> bytes:
    """Returns the bytes of a file of a skill as its server sends them now, if they are those that were accepted."""
    server = registry.loaded.connections.get(skill.agent)
    if not isinstance(server, ServerConfig):
        raise CallsheetError(_NO_SERVER.format(skill.agent))

    def permit() -> Refusal | None:
        """Looks again after the server has listed its skills, which it does when a session begins."""
        now = registry.loaded.served.get(skill.agent, {}).get(skill.id)
        if now is not None and file in now.resources:
            return None
        return Refusal(registry.refused([skill.id], user)[skill.id] if now is None else _OTHER)

    caller = credentials_of_run(user.id if user else "").of(server)
    with within(CALLER, caller):
        name = f"{RESOURCE}{file.uri}"
        reads = partial(_checked, file)
        outcome = await registry.pool.call(
            run_id, skill.agent, server, name, {}, repeatable=True, harmless=True, permit=permit, reads=reads
        )
    if outcome.error:
        raise (TrustError if outcome.kind == "refused" else CallsheetError)(outcome.error)
    return bytes(outcome.structured or b"")


def _checked(
    file: SkillFile, agent_id: str, name: str, result: JsonObject, limits: Limits, keep: Keep | None = None
) -> Outcome:
    """Makes an outcome from the answer to ``resources/read``: the bytes, if they are those of the file."""
    for item in result.get("contents") or ():
        content = _bytes_of(item) if isinstance(item, dict) else None
        if content is not None and file.fits(content):
            return Outcome(structured=content)
    return failed_outcome(agent_id, name, "refused", _OTHER, "reported")


def _bytes_of(item: JsonObject) -> bytes | None:
    """Returns the bytes of one content of a resource; None if it has none."""
    match item:
        case {"text": str(text)}:
            return text.encode("utf-8", "surrogatepass")
        case {"blob": str(blob)}:
            try:
                return base64.b64decode(blob, validate=True)
            except binascii.Error:
                return None
    return None
