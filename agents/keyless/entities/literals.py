"""Formulas, SQL and search phrases in the words of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callsheet.agents.keyless.entities.evidence import Kind, Pool

_FUNCTION = (
    r"(?:sin|cos|tan|asin|acos|atan|sinh|cosh|tanh|log10|log2|log|ln"
    r"|exp|sqrt|cbrt|abs|pow|factorial|floor|ceil|round|gcd|lcm)"
)
_TOKEN = (
    rf"(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\d)|\b{_FUNCTION}\b(?=\s*\()|\bpi\b"
    r"|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|\*\*|[-+*/^%=(),!×÷−·])"
)
_RUN = re.compile(rf"{_TOKEN}(?:\s*{_TOKEN})*")
_OPERATED = re.compile(rf"[\w)!]\s*(?:\*\*|[-+*/^%=×÷−·])\s*[-+]?\s*[\w(]|{_FUNCTION}\s*\(|\d!")
_NUM = r"((?<!\d)-?\d+(?:\.\d+)?)"
_WORDED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern.replace("NUM", _NUM), re.IGNORECASE), into)
    for pattern, into in (
        (r"NUM\s*(?:%|percent)\s+of\s+NUM", r"\1/100*\2"),
        (r"square\s+root\s+of\s+NUM", r"sqrt(\1)"),
        (r"NUM\s+(?:raised\s+)?to\s+the\s+power\s+of\s+NUM", r"\1**\2"),
        (r"NUM\s+squared", r"\1**2"),
        (r"NUM\s+cubed", r"\1**3"),
        (r"(?:subtract|take)\s+NUM\s+from\s+NUM", r"\2 - \1"),
        (r"divide\s+NUM\s+by\s+NUM", r"\1 / \2"),
        (r"multiply\s+NUM\s+(?:by|with|and)\s+NUM", r"\1 * \2"),
        (r"add\s+NUM\s+(?:to|and)\s+NUM", r"\1 + \2"),
        (r"sum\s+of\s+NUM\s+and\s+NUM", r"\1 + \2"),
        (r"product\s+of\s+NUM\s+and\s+NUM", r"\1 * \2"),
        (r"difference\s+(?:of|between)\s+NUM\s+and\s+NUM", r"\1 - \2"),
        (r"NUM\s+plus\s+NUM", r"\1 + \2"),
        (r"NUM\s+minus\s+NUM", r"\1 - \2"),
        (r"NUM\s+(?:times|multiplied\s+by|x)\s+NUM", r"\1 * \2"),
        (r"NUM\s+(?:divided\s+by|over)\s+NUM", r"\1 / \2"),
    )
)
_OVER = {"average": "({sum}) / {n}", "mean": "({sum}) / {n}", "sum": "{sum}", "total": "{sum}", "product": "{product}"}
_SEARCH = re.compile(
    r"\b(?:search(?:ing)?|look(?:ing)?|quer(?:y|ying)|hunt|google|find)\b[^.;:]*?\b(?:for|about|on|regarding)\s+(?P<a>[^.;?!]+)"
    r"|\b(?:look\s+up|google|research)\s+(?P<b>[^.;?!]+)|\b(?:about|regarding|concerning)\s+(?P<c>[^.;?!]+)"
    r"|^search\s+for\s+(?P<d>[^.;?!]+)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"^(?:it|that|this|them|those|these|me|us|the\s+(?:result|answer|output)s?)$", re.IGNORECASE)


def find_expression(pool: Pool, given: Sequence[float | int] = ()) -> str | None:
    """The formula that a text writes out, in signs or in words.

    Args:
        pool: The text's evidence; what is taken is used up.
        given: Numbers of earlier results, for "the average of that and 10".
    """
    quoted = [q for q in pool.free(Kind.QUOTED) if _OPERATED.search(str(q.value))]
    if quoted:
        return str(pool.take(quoted[0]))
    text = _dates_blanked(pool)
    runs = [m for m in _RUN.finditer(text) if _OPERATED.search(m.group())]
    if runs:
        run = max(runs, key=lambda m: len(m.group()))
        pool.used.append(run.span())
        return _trimmed(run.group())
    for pattern, into in _WORDED:
        if match := pattern.search(text):
            pool.used.append(match.span())
            return match.expand(into)
    return _over_given(pool, given)


def _over_given(pool: Pool, given: Sequence[float | int]) -> str | None:
    match = next((m for m in re.finditer(r"[a-z]+", pool.bare.lower()) if m.group() in _OVER), None)
    items = pool.free(Kind.NUMBER)
    if match is None or len(given) + len(items) < 2:
        return None
    word, numbers = match.group(), [*given, *map(pool.take, items)]
    pool.used.append(match.span())
    return _OVER[word].format(sum=" + ".join(map(str, numbers)), product=" * ".join(map(str, numbers)), n=len(numbers))


def _dates_blanked(pool: Pool) -> str:
    text = pool.rest
    for item in pool.items:
        if item.kind in {Kind.DATE, Kind.DATETIME, Kind.CLOCK, Kind.PHONE, Kind.IDENTIFIER}:
            text = text[: item.start] + "¤" * (item.end - item.start) + text[item.end :]
    return text


def _trimmed(run: str) -> str:
    run = re.sub(r"^(?:[aAI]\s+)+|[\s,=(]+$|^[\s,)*/=^%]+|\s+[aAI]$", "", run.strip())
    surplus = run.count(")") - run.count("(")
    return run[:-surplus].strip() if surplus > 0 and run.endswith(")" * surplus) else run


def find_sql(pool: Pool) -> str | None:
    """The SQL that a text quotes or writes out."""
    for item in pool.free(Kind.SQL, Kind.QUOTED):
        if item.kind is Kind.SQL or re.match(
            r"\s*(?:select|insert|update|delete|create|drop|alter|with|pragma|show|describe|explain)\b",
            str(item.value),
            re.IGNORECASE,
        ):
            return str(pool.take(item)).strip().rstrip(";").strip() or None
    return None


def find_search(pool: Pool) -> str | None:
    """The phrase to search for: quoted, or the words after "for" or "about"."""
    quoted = pool.free(Kind.QUOTED)
    if len(quoted) == 1:
        return str(pool.take(quoted[0]))
    match = _SEARCH.search(pool.text)
    phrase = next((g for g in match.groups() if g), "").strip(" ,") if match else ""
    if match is None or not phrase or _REFERENCE.match(phrase):
        return None
    start = pool.text.index(phrase, match.start())
    pool.used.append((start, start + len(phrase)))
    return phrase
