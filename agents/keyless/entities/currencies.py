"""Currencies in a text: "$50", "50 euros", "50 CHF"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callsheet.agents.keyless.entities.evidence import Named, Pool
from callsheet.agents.keyless.slots.slot import Slot, words_of

_CODES = {
    "€": "EUR", "euro": "EUR", "euros": "EUR", "$": "USD", "dollar": "USD", "dollars": "USD", "£": "GBP", "¥": "JPY",
    "yen": "JPY", "franc": "CHF", "francs": "CHF", "chf": "CHF", "eur": "EUR", "gbp": "GBP", "jpy": "JPY", "usd": "USD",
}  # fmt: skip
"""Signs and names; "pounds" may be a weight."""
_NAMES = "|".join(name for name in _CODES if name.isalpha())
_BESIDE = re.compile(rf"(?<![A-Za-z])[€$£¥]|(?<=\d )(?:{_NAMES}|[A-Z]{{3}})\b")
_ANYWHERE = re.compile(rf"[€$£¥]|\b(?:{_NAMES}|[A-Z]{{3}})\b")


MONEY = frozenset(
    "amount balance bill budget capital cash charge cost currency deposit donation expense fare fee fund income"
    " interest investment loan money pay payment price principal revenue salary sum tip total wage".split()
)
_COUNTED = frozenset("count discount limit percent percentage quantity rate".split())
"""Words in the names of parameters that take no money."""


def currencies_in(text: str) -> list[Named]:
    """The currencies beside amounts in a text, in text order, by their codes in ISO 4217."""
    found = (Named(_code(match.group()), *match.span()) for match in _BESIDE.finditer(text))
    return [named for named in found if named.value]


def is_currency(slot: Slot) -> bool:
    """Whether a slot takes a currency."""
    return slot.textual and slot.says("currency")


def only_currency(slots: Sequence[Slot], pool: Pool) -> Named | None:
    """The only currency beside an amount, if a tool does not contradict it.

    A tool that takes no currency may name the one of its amounts: "the price per night, in EUR". A number that
    identifies a record is no amount.
    """
    found = currencies_in(pool.bare)
    amounts = any(slot.numeric and not slot.identifies and _is_money(slot) for slot in slots)
    if not amounts or len({named.value for named in found}) != 1:
        return None
    texts = [slots[0].about, *(slot.description for slot in slots)]
    own = {_code(match.group()) for text in texts for match in _ANYWHERE.finditer(text)} - {""}
    takes = any(map(is_currency, slots))
    return found[0] if takes or not own or found[0].value in own else None


def _is_money(slot: Slot) -> bool:
    """Whether a number may be an amount of money, by its name or what its tool is said to do."""
    about = {word.removesuffix("s") for text in (slot.description, slot.about) for word in words_of(text)}
    return bool(MONEY & {*slot.words}) or (bool(MONEY & about) and not _COUNTED & {*slot.words})


def _code(said: str) -> str:
    from babel.numbers import list_currencies

    return _CODES.get(said, said if said in list_currencies() else "")
