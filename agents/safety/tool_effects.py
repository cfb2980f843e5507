"""The effects of verbs: which only read or compute, which destroy, and which are synonyms."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.text.sanitizing import split_name

Harm = Literal["none", "change", "destroy"]
"""What a call of a tool may do, as far as known: nothing, change something, destroy something."""

_COMPUTES = frozenset("calculate compute convert count evaluate solve translate".split())
_READS = frozenset("describe display fetch find get list lookup query read retrieve search show tell view".split())
_TELLS = frozenset("answer check give look report return".split())
"""Verbs that only read at the start of a description ("Looks up ..."), but not always in a name."""
_DESTROYS = frozenset(
    "clean clear delete destroy discard drop erase kill overwrite purge remove reset revoke terminate "
    "truncate uninstall wipe".split()
)
_RUNS = frozenset("eval exec execute run".split())
_SHELLS = frozenset("bash cmd powershell shell terminal".split())
_PROGRAMS = _SHELLS | frozenset("code command commands python script".split())
"""Words in the names of tools that run any program: ``execute_command``, ``run_python``."""
_CHANGES = (
    "write save store put record create make export dump",
    "add append",
    "copy duplicate",
    "move",
    "rename",
    "delete remove erase",
    "send email mail message notify",
    "update edit modify change",
    "book reserve schedule",
)
"""Verbs that change something; each group has synonyms."""
ORDERS = frozenset(
    """
    activate archive assign attach charge close commit compress crop deactivate decrypt dim disable download draw enable
    encrypt execute extract flag hide insert install invite label lock mark merge mute order pay pin play pull push
    reopen replace rotate run set share sort stage star start sum tag turn unlock unmerge unmute unzip upload zip
    """.split()
)
"""Further verbs that open orders: none limits or takes back another order, as "keep" and "cancel" do."""
RECORD_ORDERS = frozenset(
    """
    approve block cancel complete deploy detach finish freeze grade invite lend link log merge notify open pause publish
    rate reboot record refund rename renew reserve reset resize restart resume return roll scale ship stop subscribe
    suspend transfer unblock unfreeze unlink unsubscribe water
    """.split()
)
"""Verbs that open an order of its own if they name a record; without one, some take back another order."""
_ACTS = (
    *_CHANGES,
    "read show open display print view get give see say contain content",
    "search find look lookup query",
    "get find fetch retrieve look lookup",
    "list show content",
    "convert change turn express",
    "calculate compute evaluate work solve find",
)
_ALIKE = (
    *_ACTS,
    "set update change",
    "run execute",
    "add insert",
    "replace substitute",
    "mean average avg",
    "max maximum",
    "min minimum",
    "folder directory dir",
    "file document",
    "clock time hour timezone",
)
"""Synonyms; a word may be in several groups."""


_VERBS = (
    _COMPUTES
    | _READS
    | _DESTROYS
    | frozenset(word for group in _ACTS for word in group.split())
    | frozenset("add check divide figure look multiply plot round subtract sum summarise summarize take tell".split())
)


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for group in _ALIKE:
        for word in group.split():
            found[word] = found.get(word, frozenset()) | frozenset(group.split())
    return found


def alike(word: str) -> frozenset[str]:
    """The word and its synonyms; lower case, base forms."""
    return _groups().get(word, frozenset()) | {word}


def changes(verb: str) -> bool:
    """Whether a verb changes something, as far as known; lower case, base form."""
    return verb in _DESTROYS or any(verb in group.split() for group in _CHANGES)


def is_act(word: str) -> bool:
    """Whether a word is a known verb in its base form."""
    return word in _VERBS


@lru_cache(maxsize=16_384)
def verb_of(name: str) -> str:
    """The first known verb in the name of a tool, lower case; its first word without one."""
    words = split_name(name).split()
    known = (word for word in words if is_act(word) or word in ORDERS or word in RECORD_ORDERS)
    return next(known, next(iter(words), ""))


def harm_of(tool: Tool, *, trusted: bool) -> Harm:
    """What a call of a tool may do: by its hints, else by the verbs of its name, else by its description's first word.

    A tool that runs any program may destroy something.

    A hint that tightens always counts. ``readOnlyHint`` counts from a trusted agent, and from another one only if the
    name does not contradict it.
    """
    words = split_name(tool.name).split()
    if tool.annotations.get("destructiveHint") is True or _DESTROYS & set(words):
        return "destroy"
    only_reads = tool.annotations.get("readOnlyHint")
    if only_reads is True and trusted:
        return "none"
    if (_RUNS & set(words) and _PROGRAMS & set(words)) or tool.name.lower() in _SHELLS:
        return "destroy"
    verb = next((word for word in words if word in _COMPUTES | _READS or changes(word)), "")
    before = words[: words.index(verb)] if verb else []
    if not verb or (not changes(verb) and (ORDERS | RECORD_ORDERS).intersection(before)):  # ``mark_as_read``
        opening = next(iter(split_name(tool.description[:80]).split()), "")
        verb = next(
            (form for form in (opening, opening.removesuffix("s"), opening.removesuffix("es")) if _reads(form)), ""
        )
    known = verb in _COMPUTES or (_reads(verb) and only_reads is not False)
    return "none" if known or (only_reads is True and not changes(verb)) else "change"


def _reads(verb: str) -> bool:
    return verb in _COMPUTES or verb in _READS or verb in _TELLS


def asks(verb: str) -> bool:
    """Whether a verb only asks to be told something; lower case, base form."""
    return verb in _READS or verb in _TELLS
