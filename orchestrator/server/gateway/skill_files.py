"""Offers the skills of a catalog to clients of the gateway, as MCP's Skills extension does (SEP-2640).

Each skill that a caller may see is at ``skill://``, and the path is its id: ``skill://skills/minutes/SKILL.md`` for a
skill of a folder, ``skill://ops/post-mortem/SKILL.md`` for one of the server ``ops``, whose files are passed on byte
for byte after they were compared with what was accepted.
"""

from __future__ import annotations

import base64
import json
import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

from mcp import types

from callsheet.agents.registry.skills import read_skill_file
from callsheet.graphs import CallsheetError, Skill, UnknownNameError, shown
from callsheet.graphs.catalog.formats.served_skills import SKILL_FILE, ServedSkill, SkillFile
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.trust.pins import hides_text
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, Gateway

_NAME = re.compile(r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_ABOUT = 1_024
"""Characters of a name, and of a description, that the format of skills allows."""
_MOST_LISTED = 100
"""Skills of one page of ``skills/list``."""
_MARKDOWN = "text/markdown"


class SkillRequest(types.RequestParams):
    """The parameters of ``skills/get``."""

    METHOD: ClassVar[str] = "skills/get"

    uri: str


@dataclass(frozen=True, slots=True)
class _Offered:
    """A skill as the gateway offers it.

    Attributes:
        entry: Its entry, with the addresses at the gateway.
        content: The content of its ``SKILL.md``, for a skill of a folder; None for a skill of a server.
        served: The entry of its server, for a skill of a server.
    """

    skill: Skill
    entry: ServedSkill
    content: bytes | None
    served: ServedSkill | None

    def path(self, file: SkillFile) -> str:
        """Returns the path of a file in the folder of the skill, as it is written in its address."""
        return file.uri.removeprefix(self.entry.root)


class SkillFiles:
    """The skills of a gateway, for each caller those that the policy shows."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def page(self, caller: Caller, cursor: str | None) -> JsonObject:
        """Returns the result of ``skills/list``.

        Raises:
            UnknownNameError: The cursor is none of this list.
        """
        offered = list(self._offered(caller))
        if cursor is not None and not (cursor.isdecimal() and int(cursor) < len(offered)):
            raise UnknownNameError(f"there is no page {shown(cursor, most=80)!r} of this list: begin without a cursor")
        start = int(cursor or 0)
        end = start + _MOST_LISTED
        more = {"nextCursor": str(end)} if end < len(offered) else {}
        return _result(skills=[_plain(one) for one in offered[start:end]], **more)

    def one(self, caller: Caller, uri: str) -> JsonObject:
        """Returns the result of ``skills/get``.

        Raises:
            UnknownNameError: The caller sees no skill at this address.
        """
        for one in self._offered(caller):
            if one.entry.uri == uri:
                return _result(skill=_plain(one))
        raise UnknownNameError(f"no skill at {shown(uri, most=200)!r}: `skills/list` has the addresses")

    def resources(self, caller: Caller) -> list[types.Resource]:
        """Returns the files of all skills as resources."""
        listed: list[types.Resource] = []
        for one in self._offered(caller):
            for file in one.entry.resources:
                path = one.path(file)
                is_main = path == SKILL_FILE
                about = shown(one.skill.description, most=_LONGEST_ABOUT) if is_main else None
                name = _own_name(one.skill) if is_main else path
                kind = _kind_of(path)
                listed.append(
                    types.Resource(uri=file.uri, name=name, description=about, mime_type=kind, size=file.size)
                )
        return listed

    async def read(self, caller: Caller, uri: str) -> types.ReadResourceResult:
        """Returns the content of a file of a skill.

        Raises:
            UnknownNameError: The caller sees no file at this address.
            TrustError: Its server sends something else than what was accepted, or there are hidden characters in it.
            CallsheetError: Its server does not send it.
        """
        for one in self._offered(caller):
            for file in one.entry.resources:
                if file.uri == uri:
                    return _contents(file, one.path(file), await self._content(one, file, caller))
        raise UnknownNameError(f"no file of a skill at {shown(uri, most=200)!r}")

    async def _content(self, one: _Offered, file: SkillFile, caller: Caller) -> bytes:
        if one.content is not None:
            return one.content
        return await read_skill_file(self._gateway.registry, one.skill.id, one.path(file), caller.session, caller.user)

    def _offered(self, caller: Caller) -> Iterator[_Offered]:
        """Yields the skills that the caller may see, without those whose names the format does not allow."""
        entries = self._gateway.registry.loaded.served
        for skill in self._gateway.catalog(caller).skills:
            if not _NAME.fullmatch(_own_name(skill)):
                continue
            served = entries.get(skill.agent, {}).get(skill.id)
            if not skill.agent:
                yield _of_folder(skill)
            elif served is not None:
                yield _of_server(skill, served)


def _own_name(skill: Skill) -> str:
    return skill.name.rpartition("/")[2]


def _of_folder(skill: Skill) -> _Offered:
    """Writes a skill of a folder as one file, whose front matter is JSON, which is YAML too."""
    front = {"name": skill.name, "description": shown(skill.description, most=_LONGEST_ABOUT)}
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in front.items())
    text = shown(skill.text, most=None)
    content = "\n".join(("---", *lines, "---", text, "")).encode()
    uri = f"skill://{quote(skill.id)}/{SKILL_FILE}"
    main = SkillFile.of(uri, content)
    return _Offered(skill, ServedSkill(uri=uri, frontmatter=front, resources=(main,)), content, None)


def _of_server(skill: Skill, served: ServedSkill) -> _Offered:
    """Moves the addresses of a skill of a server to those at the gateway."""
    root = f"skill://{quote(skill.agent, safe='')}/{skill.name}/"
    files = tuple(file.model_copy(update={"uri": file.uri.replace(served.root, root, 1)}) for file in served.resources)
    entry = served.model_copy(update={"uri": f"{root}{SKILL_FILE}", "resources": files})
    return _Offered(skill, entry, None, served)


def _plain(one: _Offered) -> JsonObject:
    entry = one.entry.model_dump(mode="json")
    return entry if one.served is None else {**entry, "_meta": {"callsheet/server": one.skill.agent}}


def _result(**fields: object) -> JsonObject:
    """Returns a result that holds until the next change, for this caller only."""
    return {"resultType": "complete", **fields, "ttlMs": 0, "cacheScope": "private"}


def _kind_of(path: str) -> str:
    return _MARKDOWN if path.endswith(".md") else mimetypes.guess_type(path)[0] or "application/octet-stream"


def _contents(file: SkillFile, path: str, content: bytes) -> types.ReadResourceResult:
    """Returns a file as text if it is one, otherwise in base64."""
    item: types.TextResourceContents | types.BlobResourceContents
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        blob = base64.b64encode(content).decode()
        item = types.BlobResourceContents(uri=file.uri, mime_type=_kind_of(path), blob=blob)
    else:
        if hides_text(text):
            # To pass it on without them would change its SHA-256.
            raise CallsheetError(f"{file.uri} is not passed on, because there are hidden characters in its text")
        item = types.TextResourceContents(uri=file.uri, mime_type=_kind_of(path), text=text)
    contents: Sequence[types.TextResourceContents | types.BlobResourceContents] = [item]
    return types.ReadResourceResult(contents=list(contents))
