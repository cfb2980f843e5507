"""Phrases of prompt injection in the texts of servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.sanitizing import normalized, shown

_PIECE = 4_096  # characters; the normal form of one character can have eighteen
_TELL = r"(?:tell|inform|mention|reveal|disclos|notify|show|alert|report|explain)\w*"
_USER = r"(?:user|human|customer|person|operator|anyone)"
_GIVE = (
    r"(?:includ(?:e|ing)|send(?:ing)?|pass(?:ing)?|attach(?:ing)?|upload(?:ing)?|append(?:ing)?|forward(?:ing)?|"
    r"transmit|exfiltrate|post|copy|return|add|embed|put|log)"
)
_TAKE = r"(?:read(?:ing)?|open|cat|load|access|get|fetch|retrieve|extract|collect|gather|dump|scan|search|contents? of)"
_VALUABLES = (
    r"(?:(?:^|[^\w.])\.env(?:[^\w.]|$)|environment variables?|mcp\.json|"
    r"(?:user(?:'s)?|your|their|saved|stored|all|any) (?:\w+ ){0,2}(?:credentials|passwords?|api[ _-]keys?|"
    r"access tokens?|private keys?|secrets|cookies))"
)
_WITHIN = r"(?:[^.\n]|\.\S)"  # a character within a sentence
_LINKED = r"\b(?:to|at|via|into) (?:\w+ ){0,3}\[[^\]]{0,60}\]"  # other links lead to documentation
_DIRECTIVE = linear(r"<!-- ?[\w-]{1,40}(?:: ?[\w-]{1,40})? ?-->")
"""A comment for the program that renders Markdown: ``<!-- theme: warning -->``."""
_TALK = r"(?:conversation|chat|messages|prompts?|dialogue)"
_MAIL = r"(?:bcc|forward|redirect|cop(?:y|ied)|sen[dt]|deliver)\w*"
_ADDRESS = r"[\w.+-]+@[\w-]+\.[a-z]{2,}"


@dataclass(frozen=True, slots=True)
class Order:
    """A kind of order, and its pattern in lower case with single spaces."""

    says: str
    pattern: re.Pattern[str]


def _order(says: str, *patterns: str) -> Order:
    return Order(says, linear("|".join(patterns)))


ORDERS = (
    _order(
        "speaks as if it were the system",
        r"< ?/? ?(?:important|system|instructions?|admin|critical|assistant|sys)\b[^>]{0,40}>",
        r"< ?/? ?(?:secret|hidden) ?(?: [^>]{0,40}=[^>]{0,40})?>",  # "<secret id>" is a placeholder
        r"\[/?inst\]|<\|(?:im_start|im_end|system|user|assistant)\|>|<< ?sys ?>>|<!--",
        r"\bsystem[ _-](?:instruction|override|notice|directive|command|prompt)s? ?:",
    ),
    _order(
        "tells a model to hide something from the user",
        r"\b(?:do not|don'?t|never|must not|should not|without|avoid|no need to) "
        rf"(?:\w+ ){{0,3}}{_TELL}\b{_WITHIN}{{0,60}}\b{_USER}",
        rf"\b(?:hide|conceal|(?:keep|kept|must|should|shall)\b.{{0,40}}\b(?:secret|hidden))\b.{{0,30}}"
        rf"\bfrom (?:the |your |any )?{_USER}",
        rf"\bwithout (?:the |your |asking |any )*{_USER}(?:'s)? "
        r"(?:\w+ )?(?:knowledge|noticing|knowing|awareness|consent)",
        rf"\b{_USER}s? (?:must|should|does|do|need|may|can)(?: not|n'?t| never) "
        r"(?:\w+ )?(?:know|see|notice|be told|learn)",
        r"\b(?:silently|secretly|covertly|stealthily) (?:\w+ ){0,2}"
        r"(?:send|copy|read|call|includ|forward|upload|append|collect|bcc|execut|run)",
        r"(?:不要|别|切勿|请勿|禁止|不得)(?:(?:告诉|告知|通知|提醒|透露给)(?:用户|使用者)|"
        r"[向对](?:用户|使用者)(?:提及|透露|说明|告知))",
    ),
    _order(
        "tells a model to drop its instructions",
        r"\b(?:ignore|disregard|forget|override|bypass|supersede) (?:\w+ ){0,4}(?:instructions?|prompts?|guidelines|"
        r"directives|guardrails|safety)\b",
        r"\b(?:ignore|disregard|forget|override|bypass|supersede) (?:all|any|your|these|previous|prior|other|existing|"
        r"system|above) (?:\w+ ){0,2}(?:rules?|restrictions|polic(?:y|ies))\b",
        r"\byou are now (?:in |an? )?(?:\w+ )?(?:developer|debug|admin|root|unrestricted|jailbroken|dan)\b",
        r"(?:忽略|无视|忘记)(?:之前|以前|上面|先前|所有|以上|此前|全部)(?:的)?(?:所有|全部)?(?:的)?"
        r"(?:指令|指示|说明|规则|提示)",
    ),
    _order(
        "asks for files that hold secrets",
        r"(?:^|[^a-z0-9])(?:\.ssh(?:[^a-z0-9]|$)|id_(?:rsa|dsa|ecdsa|ed25519)(?:[^a-z0-9]|$)|\.aws/credentials|"
        r"/etc/(?:passwd|shadow)(?:[^a-z]|$)|\.cursor/|claude_desktop_config|\.git-credentials|\.netrc|\.kube/config|"
        r"\.docker/config|authorized_keys|\.gnupg|\.bash_history)",
        rf"\b{_TAKE}\b.{{0,60}}{_VALUABLES}.{{0,100}}\b{_GIVE}\b",
    ),
    _order(
        "asks for the whole conversation",
        rf"\b{_GIVE}\b.{{0,60}}\b(?:entire|full|complete|whole|all)(?: of)?(?: the| this| your| our)? "
        rf"(?:\w+ ){{0,2}}{_TALK}",
        rf"\b{_GIVE}\b.{{0,60}}\bsystem prompt",
    ),
    _order(
        "sends what it handles to an address of its own",
        rf"\b{_MAIL}\b.{{0,60}}{_ADDRESS}.{{0,40}}\b(?:all|every|any|each|also|instead|always)\b",
        rf"\b(?:all|every|any|each|also|always|must|instead)\b.{{0,60}}\b{_MAIL}\b.{{0,60}}{_ADDRESS}",
        r"\b(?:send|upload|exfiltrate|forward|transmit|post)\w*\b.{0,40}\b(?:contents?|data|results?|output|response|"
        rf"files?|{_TALK}|credentials|keys?)\b.{{0,40}}(?:[^\w(]|[^\]]\(|{_LINKED}\()https?://",
    ),
)


def orders_in(*texts: str) -> Iterator[tuple[str, str]]:
    """The kinds of orders in texts, each with the matching words.

    The search is complete, in linear time. The phrases are English, with some Chinese ones.
    """
    plain = _DIRECTIVE.sub(" ", "\n".join(map(_plain, texts)))
    for order in ORDERS:
        if match := order.pattern.search(plain):
            yield order.says, match.group()


def _plain(text: str) -> str:
    """The text in lower case with single spaces, converted in pieces so that other threads can run in between."""
    plain, open_word = list[str](), False
    for start in range(0, len(text), _PIECE):
        piece = normalized("NFKC", shown(text[start : start + _PIECE], most=None)).casefold()
        if words := piece.split():
            plain += [] if open_word and not piece[0].isspace() else [" "]
            plain.append(" ".join(words))
        open_word = bool(words) and not piece[-1].isspace() if piece else open_word
    return "".join(plain).strip()
