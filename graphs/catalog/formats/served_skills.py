"""Reads the skills that a server lists: MCP's Skills extension, which gives an entry and a digest of each file.

Source: the Skills extension of the Model Context Protocol (SEP-2640), ``io.modelcontextprotocol/skills``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Self
from urllib.parse import unquote, urlsplit

from pydantic import ConfigDict, Field, StringConstraints

from callsheet.graphs.catalog.formats.manifests import Entries, Problem, name_of, read_yaml
from callsheet.graphs.catalog.formats.skill_folders import (
    LONGEST_SKILL_NAME,
    MOST_NODES,
    is_for_people_only,
    split_front_matter,
    text_in,
)
from callsheet.graphs.catalog.model import SKILL, Record, Skill
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.hidden import escaped_line, shown
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.messages import counted

SKILL_FILE = "SKILL.md"
MOST_FILES = 512
LARGEST_SKILL = 16 * 1024 * 1024
"""Files and bytes of the largest skill that the extension requires to be accepted; larger ones are left out."""
_DYNAMIC = "dynamic"
_ADDRESS = re.compile(rf"[a-zA-Z][\w+.-]*://([^?#]+)/{re.escape(SKILL_FILE)}")


class SkillFile(Record):
    """A file of a skill, as its server describes it.

    Attributes:
        uri: The address at which the server serves it.
        digest: ``sha256:`` and the SHA-256 of its bytes in hexadecimal digits.
        size: Its length in bytes.
    """

    uri: str
    digest: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, uri: str, content: bytes) -> Self:
        """Describes the file with these bytes."""
        return cls(uri=uri, digest=f"sha256:{hashlib.sha256(content).hexdigest()}", size=len(content))

    def fits(self, content: bytes) -> bool:
        """Returns whether these bytes are the file that the server has listed."""
        return len(content) == self.size and SkillFile.of(self.uri, content) == self


class ServedSkill(Record):
    """The entry of a skill in ``skills/list``: the address of its ``SKILL.md``, its front matter, and all its files."""

    model_config = ConfigDict(extra="ignore")

    uri: str
    frontmatter: JsonObject
    resources: tuple[SkillFile, ...]

    @property
    def main(self) -> SkillFile:
        """Returns its ``SKILL.md``, which every entry has."""
        return next(file for file in self.resources if file.uri == self.uri)

    @property
    def root(self) -> str:
        """Returns the address of its folder, with a slash at the end."""
        return self.uri.removesuffix(SKILL_FILE)

    def file(self, path: str) -> SkillFile:
        """Returns the file at a path that is relative to the folder of the skill.

        Raises:
            CatalogError: The entry has no such file; the message names those that it has.
        """
        wanted = unquote(path).removeprefix("./")
        for file in self.resources:
            if unquote(file.uri.removeprefix(self.root)) == wanted:
                return file
        files = ", ".join(sorted(unquote(file.uri.removeprefix(self.root)) for file in self.resources))
        raise CatalogError(
            f"the skill has no file {shown(path, most=200)!r}; its files are: {shown(files, most=1_000)}"
        )

    def instructions(self, content: bytes) -> str:
        """Returns the instructions in the bytes of its ``SKILL.md``.

        Raises:
            CatalogError: They are no UTF-8, or their front matter is not the one that the server has listed.
        """
        try:
            header, body = split_front_matter(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise CatalogError(f"{self.uri} is not UTF-8: {error}") from error
        listed = _canonical(self.frontmatter)
        if all(_canonical(front) != listed for front in _readings(header)):
            raise CatalogError(f"the front matter of {self.uri} is not the one that its server has listed")
        return body


def skill_entries(listed: Sequence[object]) -> list[JsonObject]:
    """Returns the entries of ``skills/list`` with the names that they have among the tools of the server.

    The name of an entry is ``skill:`` and its path on the server, as ``skill:billing/refunds``. Entries without a valid
    address are left out; ``skills_of`` reports them.
    """
    entries = list[JsonObject]()
    for entry in listed:
        address = entry.get("uri") if isinstance(entry, dict) else None
        match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
        if isinstance(entry, dict) and match:
            entries.append({**entry, "name": f"{SKILL}{match[1]}"})
    return entries


def divided(entries: Sequence[object], listed: Sequence[object]) -> tuple[list[object], list[object]]:
    """Divides the entries of a server into tools and skills; ``listed`` are all skills as the server sent them.

    A tool with the name of a skill is among the skills, where both are reported and neither is used.
    """
    names = {entry["name"] for entry in skill_entries(listed)}
    tools = list[object]()
    skills = list[object]()
    for entry in entries:
        (skills if name_of(entry) in names else tools).append(entry)
    return tools, skills


def skills_of(
    agent_id: str, accepted: Sequence[object], listed: Sequence[object]
) -> tuple[tuple[Skill, ...], dict[str, ServedSkill], tuple[Problem, ...]]:
    """Makes the skills of an agent.

    Args:
        agent_id: The agent.
        accepted: The accepted entries, with names (``skill_entries``).
        listed: All entries as the server sent them.

    Returns:
        The skills, without their texts; id -> entry; and a problem for each entry that is left out.
    """
    skills = list[Skill]()
    served = dict[str, ServedSkill]()
    messages = list[str]()
    nameless = len(listed) - len(skill_entries(listed))
    if nameless:
        messages.append(f"{counted(nameless, 'skill')} without an address that ends with /{SKILL_FILE}")
    entries = Entries.of(accepted)
    for name, count in entries.repeated.items():
        messages.append(f"{count} skills or tools are named {escaped_line(name)!r}: none of them is used")
    for name, entry in entries.tools.items():
        try:
            one = _served(name, entry)
            if is_for_people_only(one.frontmatter):
                continue
            description = text_in(one.frontmatter, "description")
            skill = Skill(name=name.removeprefix(SKILL), description=description, agent=agent_id)
        except CatalogError as error:
            messages.append(f"{escaped_line(name)}: {error}")
            continue
        skills.append(skill)
        served[skill.id] = one
    return tuple(skills), served, tuple(Problem(agent_id, "malformed", message) for message in messages)


def _served(name: str, entry: JsonObject) -> ServedSkill:
    """Returns an entry of a skill, or raises a ``CatalogError`` that says why it is not used."""
    if entry.get("resources") == _DYNAMIC:
        raise CatalogError("its server lists no digests of its files, so nothing could be accepted for good")
    served = ServedSkill(**{key: value for key, value in entry.items() if key != "name"})
    own = text_in(served.frontmatter, "name")
    if not own or len(own) > LONGEST_SKILL_NAME or own != unquote(name.removeprefix(SKILL)).rpartition("/")[2]:
        raise CatalogError(f"its name {shown(own, most=80)!r} is not the last part of its address")
    if not text_in(served.frontmatter, "description"):
        raise CatalogError("it has no description")
    _check_files(served)
    return served


def _check_files(served: ServedSkill) -> None:
    """Raises a ``CatalogError`` if the files of a skill are not those of one folder, or are too many or too large."""
    addresses = [file.uri for file in served.resources]
    if len(set(addresses)) < len(addresses) or served.uri not in addresses:
        raise CatalogError(f"its list of files has a file twice, or not its {SKILL_FILE}")
    for address in addresses:
        if not _is_within(address, served.root):
            raise CatalogError(f"{shown(address, most=200)!r} is not in its folder")
    if len(addresses) > MOST_FILES or sum(file.size for file in served.resources) > LARGEST_SKILL:
        raise CatalogError(f"it has more than {MOST_FILES} files, or more than {LARGEST_SKILL // 1024**2} MiB")


def _is_within(address: str, root: str) -> bool:
    """Returns whether an address is that of a file in a folder, also after ``..`` and percent-encoding are resolved."""
    if not address.startswith(root) or urlsplit(address).query or urlsplit(address).fragment:
        return False
    parts = address.removeprefix(root).split("/")
    return all(unquote(part) not in ("", ".", "..") and not {"/", "\\"} & set(unquote(part)) for part in parts)


def _readings(header: str) -> Iterator[object]:
    """Yields what a front matter says in YAML 1.2, and in YAML 1.1, in which ``yes`` is true: servers use either."""
    import yaml

    yield read_yaml(header, "its front matter", most=MOST_NODES)  # raises if it is too large for any parser
    yield yaml.safe_load(header)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
