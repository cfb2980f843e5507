"""What a call of a tool may do, by its hints and by the verbs of its name."""

from __future__ import annotations

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
_CHANGES = _DESTROYS | frozenset(
    """
    add append book change copy create dump duplicate edit email export mail make message modify move notify put record
    rename reserve save schedule send store update write
    """.split()
)
_ORDERS = frozenset(
    """
    activate approve archive assign attach block cancel charge close commit complete compress crop deactivate decrypt
    deploy detach dim disable download draw enable encrypt execute extract finish flag freeze grade hide insert install
    invite label lend link lock log mark merge mute notify open order pause pay pin play publish pull push rate reboot
    record refund rename renew reopen replace reserve reset resize restart resume return roll rotate run scale set share
    ship sort stage star start stop subscribe sum suspend tag transfer turn unblock unfreeze unlink unlock unmerge
    unmute unsubscribe unzip upload water zip
    """.split()
)
"""Verbs that make an order of a verb that reads after them: ``mark_as_read``."""


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
    verb = next((word for word in words if word in _COMPUTES | _READS | _CHANGES), "")
    before = words[: words.index(verb)] if verb else []
    if not verb or (verb not in _CHANGES and _ORDERS.intersection(before)):
        opening = next(iter(split_name(tool.description[:80]).split()), "")
        forms = (opening, opening.removesuffix("s"), opening.removesuffix("es"))
        verb = next((form for form in forms if form in _COMPUTES or asks(form)), "")
    known = verb in _COMPUTES or (asks(verb) and only_reads is not False)
    return "none" if known or (only_reads is True and verb not in _CHANGES) else "change"


def asks(verb: str) -> bool:
    """Whether a verb only asks to be told something; lower case, base form."""
    return verb in _READS or verb in _TELLS
