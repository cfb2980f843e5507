from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from callsheet.graphs.text.words import MOST_CLAUSES, clause_spans
from callsheet.retrievers import units_of
from callsheet.retrievers.selection.select_settings import IMPLIED, implied_steps, spans_of

FLIGHTS, ROOMS = "find cheap flights", "book hotel rooms"


def clauses(query: str) -> list[str]:
    return [unit.text for unit in units_of(query) if unit.kind == "clause"]


def test_clauses_end_at_sentences_semicolons_lines_numbers_and_connectives() -> None:
    cases = [
        (
            "Find flights to Oslo. Book a hotel! Is it raining in Oslo? Pay bills",
            ["Find flights to Oslo", "Book a hotel", "Is it raining in Oslo", "Pay bills"],
        ),
        (f"{FLIGHTS}; {ROOMS}", [FLIGHTS, ROOMS]),
        (f"{FLIGHTS}\n\n{ROOMS}", [FLIGHTS, ROOMS]),
        (f"1. {FLIGHTS} 2. {ROOMS}", [FLIGHTS, ROOMS]),
        (f"1) {FLIGHTS} 2) {ROOMS}", [FLIGHTS, ROOMS]),
        (f"1. {FLIGHTS}\n2. {ROOMS}", [FLIGHTS, ROOMS]),
        (f"- {FLIGHTS}\n- {ROOMS}", [FLIGHTS, ROOMS]),
        (f"{FLIGHTS} and then {ROOMS}, finally mail the invoice", [FLIGHTS, ROOMS, "mail the invoice"]),
        (f"{FLIGHTS}, after that {ROOMS}", [FLIGHTS, ROOMS]),
        (f"{FLIGHTS} as well as hotel rooms", [FLIGHTS, "hotel rooms"]),
        (
            "查询天气预报。发送电子邮件！翻译文档内容；你好世界",
            ["查询天气预报", "发送电子邮件", "翻译文档内容", "你好世界"],
        ),
        # a piece that is too short joins the one before, and the first the one after
        (f"Find the flights now. Thanks. {ROOMS}", ["Find the flights now. Thanks", ROOMS]),
        (f"Please go. {FLIGHTS}. {ROOMS}", [f"Please go. {FLIGHTS}", ROOMS]),
        ("Hello. Flights. Please.", []),
        *((query, []) for query in ("", "  ", FLIGHTS, f"{FLIGHTS}.", "flights to Oslo and Bergen", "1.5 of node.js")),
    ]
    for query, found in cases:
        assert clauses(query) == found


def test_nothing_is_cut_inside_quotation_marks() -> None:
    for left, right in ('""', "“”", "''", "``"):
        said = f"search for {left}big red. small blue; then green{right} quickly"
        assert clauses(said) == []
        assert clauses(f"{said}; {ROOMS}") == [said, ROOMS]


def test_there_are_at_most_8_clauses_the_shortest_are_joined_and_the_last_has_the_rest() -> None:
    long = [f"find the long and winding road number {n}" for n in range(7)]
    joined = [*long[:3], "buy bread; sell milk", *long[3:]]
    assert clauses("; ".join([*long[:3], "buy bread", "sell milk", *long[3:]])) == joined
    assert len(clauses("; ".join(long * 5))) == MOST_CLAUSES == 8
    query = f"{FLIGHTS}\n" * 20_000
    spans = clause_spans(query)
    assert (len(spans), spans[-1][1]) == (MOST_CLAUSES, len(query))
    assert spans[-1][0] < 4000


def test_paths_addresses_and_relative_dates_imply_a_step() -> None:
    cases = [
        ("Save the report to /tmp/out.md", ["write"]),
        ("Generate a chart as chart.png", ["write"]),
        ("Summarise notes.txt", ["read"]),
        ("What is in ~/papers and ./more?", ["read"]),
        ("Write a poem. Look at /etc/hosts", ["read"]),
        ("Read in.csv. Export it to out.json", ["read", "write"]),
        ('Find the note about Anna and copy it to "/tmp/a.md"', ["write"]),
        ("Append the total INTO sums.csv", ["write"]),
        ("Copy in.csv to out.csv", ["read", "write"]),
        ("Listen to a.mp3", ["read"]),
        ("www.example.org/save/a.pdf is down", ["fetch"]),
        ("Save https://example.com/z.pdf as out.pdf", ["write", "fetch"]),
        ("What happened in the last 3 days", ["time"]),
        ("Meet me next Friday", ["time"]),
        ("Save today's news from https://a.b/c to n.md", ["write", "fetch", "time"]),
        *(
            (query, [])
            for query in ("", "save the whales", "and/or 1/2 km/h", "in 1999 on 3 May", "nowhere, e.g. this")
        ),
    ]
    for query, steps in cases:
        assert implied_steps(query) == steps
        implied = [unit for unit in units_of(query) if unit.kind == "implied"]
        assert [(unit.text, unit.weight, unit.span) for unit in implied] == [
            (IMPLIED[step], 0.45, None) for step in steps
        ]
        assert all(unit.kind != "implied" for unit in units_of(query, implied=False))


def test_the_query_comes_first_then_its_clauses_then_what_is_implied() -> None:
    query = f"{FLIGHTS}; save them to /tmp/x.md"
    units = units_of(query)
    kinds = [("query", 0.9), ("clause", 0.9), ("clause", 0.9), ("implied", 0.45)]
    assert [(unit.kind, unit.weight) for unit in units] == kinds
    assert (units[0].text, units[0].span) == (query, (0, len(query)))
    assert spans_of(units) == [(0, 18), (20, 42)] == clause_spans(query)


MARKS = ("; ", ". ", "\n", " then ", '"', "'", "`", "“", "”", "。", " 1. ")
PIECES = ("find flights", "a", "/a/b.txt", "https://x.y/z ", *MARKS)


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_the_spans_of_any_text_are_ordered_and_disjoint(query: str) -> None:
    units = units_of(query)
    spans = spans_of(units)
    assert len(spans) != 1
    assert len(spans) <= MOST_CLAUSES
    for (_, end), (start, _) in pairwise(spans):
        assert end <= start
    for unit in units[1:]:
        if unit.kind == "clause":
            assert unit.span is not None
            start, end = unit.span
            assert 0 <= start < end <= len(query)
            assert unit.text == query[start:end].strip() != ""
    assert set(implied_steps(query)) <= set(IMPLIED)
