"""The roles of words in names of tools and fields, by English conventions of programmers.

The vocabulary is that of interfaces, not of a subject. For other languages, only exact names and meaning count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from callsheet.graphs import split_name
from callsheet.graphs.text.words import tokens

Act = Literal["read", "compute", "store", "change", "use", "check", "enter", ""]
"""What a tool does with its object: reads, computes, makes, changes, uses or checks it; or opens a session."""


@lru_cache(maxsize=65_536)
def stems(name: str) -> frozenset[str]:
    """The stems of a name, without stop words, cached."""
    return stems_in(name)


def stems_in(text: str) -> frozenset[str]:
    """The stems of a text, without stop words."""
    return frozenset(tokens(split_name(text)))


_ACTS: Mapping[Act, str] = {
    "read": "get list search find fetch retrieve read view lookup look query browse discover describe inspect "
    "enumerate load locate scan detect identify download select pick peek dump show",
    "compute": "calculate compute convert generate estimate predict extract translate transcribe summarize hash encode "
    "decode parse transform determine evaluate resolve analyze recommend suggest derive combine render",
    "store": "create add make new insert register book place schedule open start upload save build draft submit "
    "post write put init initialize launch reserve order clone copy",
    "change": "set update patch modify edit change delete remove clear reset cancel move rename replace enable disable "
    "toggle pause resume stop close mute lock unlock adjust archive restore assign unassign merge format "
    "deactivate activate uninstall",
    "use": "send play push apply log track rate review share print pay buy sell transfer checkout connect disconnect "
    "run execute control flash manage follow unfollow skip subscribe unsubscribe invite install confirm limit commit",
    "check": "validate verify",
    "enter": "login signin logon authenticate authorize authorise auth",
}
_ACT_OF: Mapping[str, Act] = {word: act for act, words in _ACTS.items() for word in words.split()}
_ALWAYS_VERBS = frozenset(
    "get list search find fetch retrieve create add make delete remove update set generate calculate compute convert "
    "validate verify login signin logon authenticate authorize modify edit send upload download".split()
)
"""Words that are verbs at any place in a name; others can be nouns and count only at its beginning."""
_METHODS = frozenset("get post put patch delete".split())
"""Words that are verbs at the end of a name too: the methods of HTTP."""
_LOG_IN = re.compile(r"\b(?:log|sign) (?:in|on)(?: to)?\b")
_COLLECTIONS = frozenset("a an the list set collection page all".split())
"""What is before "of" in names such as "get a list of playlists"."""
_PREPOSITIONS = frozenset("by for in from with near of to at on using via per into after before and or as".split())
_PLACING = frozenset("for from in of on to".split())

IDENTIFIER = stems(
    "id ids identifier uuid guid gid sid uid oid key token code uri url href path handle hash sku symbol ticker slug "
    "ref"
)
"""Words of identifiers, which people rarely know."""
ID = stems("id ids identifier uuid guid gid sid uid oid")
"""Words of identifiers that are nothing else."""
RECORD_ID = ID | stems("key code slug ref handle sku number")
"""Words of identifiers of records."""
LOCATOR = stems("path uri url href handle")
"""Words of identifiers of places."""
GENERIC = IDENTIFIER | stems(
    "name number no num value type status state link title data result results item items list object info information "
    "details response output input content text field index count total label record row entry element set array "
    "string amount arg args argument param parameter expr expression variable function start end first last new old "
    "current other source target left right kind property option setting config"
)
"""Generic words, which need the name of their parent."""
KINDS = stems("config key kind label option property setting status token type")
"""Generic words that name records of their own after another noun: ``list_deploy_keys`` lists keys."""
VAGUE = GENERIC - KINDS
"""Those that are no records themselves: the types of servers are no servers."""
FREE = stems(
    "query text content message description title comment body prompt keyword q note summary reason instruction type "
    "kind category status mode color style"
)
"""Words of values that the caller writes or selects."""
TIMES = stems("date time datetime timestamp day month year hour since until")
"""Words of dates and times."""
FINDING = stems("query keyword keywords q search term name title phrase")
"""Words of inputs by which people find a record."""
SEARCHING = stems("search find lookup query resolve")
"""Words in names of tools that find records by what people know."""
REMOVING = stems("delete remove clear uninstall")
"""Words in names of tools that remove records."""
OWN = stems("my mine own saved followed starred bookmarked favorite favourite")
"""Words in names of tools that list records of the caller."""
CALLER = stems("current user")
"""Words that say the same together."""
PAGING = stems(
    "limit offset page size per count max min maximum minimum sort order cursor verbose timeout format mode include "
    "exclude filter dry fields"
)
"""Words of values that control an answer and never come from a tool."""
PAGE_ENDS = stems("first last next previous prev before after")
"""Words of the ends of a page of results."""
CREDENTIAL = stems("session token auth authorization credential cookie jwt bearer")
SECRET = stems("password passwd passcode passphrase secret username credential otp")
SESSION = CREDENTIAL | stems("login user account app sign log service api client")
"""Generic words in names of tools that open a session."""
_WHOLES: Mapping[str, str] = {
    "date": "year month day week weekday",
    "time": "hour minute second",
    "timestamp": "date time datetime year month day hour minute second",
    "datetime": "date time timestamp year month day hour minute second",
    "location": "latitude longitude lat lon coordinate",
    "coordinates": "latitude longitude lat lon",
}
_PARTS: Mapping[str, frozenset[str]] = {stem: stems(parts) for whole, parts in _WHOLES.items() for stem in stems(whole)}


@dataclass(frozen=True, slots=True)
class Name:
    """The parts of a tool's name.

    Attributes:
        words: The stems of all words.
        act: What the tool does; empty without a known verb.
        object: The object: the stems from the verb to the first preposition.
        phrase: The object in plain words.
        place: What follows a preposition such as "on" or "for", in plain words: ``repo`` of ``issues_list_for_repo``.
    """

    words: frozenset[str]
    act: Act
    object: frozenset[str]
    phrase: str
    place: str = ""

    def container(self, named: frozenset[str], records: Collection[frozenset[str]] = ()) -> str:
        """The words of the record that a bare ``id`` identifies, in plain words.

        Without the nouns of other identifiers of the call: ``id`` beside ``note_id`` is not that of the note. A tool
        that lists or makes parts of a record takes the identifier of the record: ``id`` of ``list_incident_notes`` is
        that of the incident.

        Args:
            named: The stems that the call's other identifiers name.
            records: The specific stems of what the catalog's tools read. Of several nouns, the longest beginning that
                is such a record counts: the user of ``list_user_notification_rules``.
        """
        whole = self.phrase.split()
        nouns = [word for word in whole if not stems(word) & named]
        if len(nouns) == len(whole) and (self.act == "store" or self._lists):
            nouns = self.place.split() or nouns[:-1] or nouns
        if nouns == whole or not nouns:
            return self.phrase
        beginnings = (nouns[:end] for end in range(len(nouns), 0, -1))
        known = (words for words in beginnings if stems(" ".join(words)) - GENERIC in records)
        return " ".join(next(known, nouns))

    @property
    def _lists(self) -> bool:
        return self.phrase.endswith("s") and not self.phrase.endswith(("ss", "us", "is"))


@lru_cache(maxsize=65_536)
def name_of(name: str) -> Name:
    """Parses a tool's name: ``get_city_code_by_name`` reads a city code, ``issues_list_for_repo`` issues."""
    words = _LOG_IN.sub("login", split_name(name)).split()
    verb = next((i for i, word in enumerate(words) if _is_verb(word, i, len(words))), None)
    nouns: list[str] = []
    place = ""
    for at, word in enumerate(words[0 if verb is None else verb + 1 :], 0 if verb is None else verb + 1):
        if word == "of" and nouns and {*nouns} <= _COLLECTIONS:
            nouns.clear()
        elif word in _PREPOSITIONS and (nouns or verb):
            place = " ".join(words[at + 1 :]) if word in _PLACING else ""
            break
        if word not in _PREPOSITIONS:
            nouns.append(word)
    phrase = " ".join(nouns or words[:verb] or words[1:])
    return Name(stems(" ".join(words)), "" if verb is None else _ACT_OF[words[verb]], stems(phrase), phrase, place)


def _is_verb(word: str, place: int, words: int) -> bool:
    if word not in _ACT_OF:
        return False
    return place == 0 or word in _ALWAYS_VERBS or (place == words - 1 and word in _METHODS)


@lru_cache(maxsize=65_536)
def head_of(name: str) -> frozenset[str]:
    """The last specific noun of what a tool's name says, as its stem: ``credit`` of ``get_movie_credits``."""
    nouns = [noun for noun in map(stems, reversed(name_of(name).phrase.split())) if noun]
    if len(nouns) > 1 and nouns[0] <= KINDS:
        return nouns[0]
    return next((noun - GENERIC for noun in nouns if noun - GENERIC), frozenset())


def parts_of(words: Iterable[str]) -> frozenset[str]:
    """The parts of values with these names: a year of a date, a latitude of a location."""
    return frozenset(part for word in words for part in _PARTS.get(word, ()))
