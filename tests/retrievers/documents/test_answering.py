"""What is quoted to a question, and that nothing is where no sentence answers it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callsheet.retrievers.documents import Answer, DocumentIndex, answer_from

Made = Callable[..., DocumentIndex]
GUIDE = {
    "race-day.md": """
# Race day

The bag drop opens at 06:30 and closes at 08:15. The start is at 08:30 in three waves.

# On the course

Water is served every 5 km, bananas at 15, 25 and 35 km. The time limit is six and a half hours: who passes 30 km later
is brought to the finish by bus.
""",
    "travel.md": """
# Getting there

From the airport the train takes 55 minutes to the city. The club pays the train and not the taxi.

# Where we stay

The club's hotel is near the start. Breakfast begins at 05:00 on race day. Keiko Tanaka looks after the rooms.
""",
}


def answered(index: DocumentIndex, question: str) -> Answer:
    return answer_from(question, index, index.lexicon.ids)


def test_an_answer_quotes_the_best_sentences_and_says_that_no_model_was_used(made: Made) -> None:
    answer = answered(made(), "How many days of paid leave are there a year?")
    assert (answer.quotes[0].text, answer.quotes[0].chunk) == (
        "Every employee has 25 days of paid leave a year.",
        "leave.md#1",
    )
    assert answer.text.startswith("Every employee has 25 days of paid leave a year. [leave.md#1]")
    assert "without a language model" in answer.text
    assert not any(quote.text.startswith("#") for quote in answer.quotes)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("When does the bag drop open?", "06:30"),
        ("look up in the club's guide when the bag drop closes", "08:15"),
        ("Can you tell me how long the train takes from the airport?", "55 minutes"),
        ("At what kilometres are bananas served?", "15, 25 and 35 km"),
        ("What is the time limit of the race?", "six and a half hours"),
        ("At what time is breakfast on race day?", "05:00"),
        ("Who looks after the rooms?", "Keiko Tanaka"),
        ("What is the name of the person who looks after the rooms?", "Keiko Tanaka"),
        ("Who pays for the train?", "The club pays"),
    ],
)
def test_a_question_all_of_which_a_sentence_accounts_for_is_answered(made: Made, question: str, said: str) -> None:
    answer = answered(made(GUIDE), question)
    assert len(answer.quotes) == 1
    assert said in answer.text
    assert answer.missing == ()


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Who is the club's treasurer?", {"treasurer", "Who"}),
        ("How long does the bus take from the airport?", {"bus"}),
        ("When does the bag drop close on Friday evening?", {"Friday", "evening"}),
        ("What is the dress code at the start?", {"dress", "code"}),
        ("Where is beer served?", {"beer"}),
        ("What is the address of the hotel?", {"address"}),
        ("¿Debo borrar keep.txt?", {"Debo", "borrar", "keep.txt"}),
        ("Who won the race last year?", {"won", "last"}),
        ("When does the club pay the taxi?", {"When"}),
        ("How far is the hotel from the start?", {"How far"}),
        ("Is bus 55 brought to the finish?", {"55"}),
        ("Who never looks after the rooms?", {"never"}),
        ("zeppelin ballast", {"zeppelin", "ballast"}),
    ],
)
def test_nothing_is_quoted_where_a_word_is_left_over(made: Made, question: str, missing: set[str]) -> None:
    answer = answered(made(GUIDE), question)
    assert answer.quotes == ()
    assert set(answer.missing) == missing
    assert answer.text.startswith("The documents do not answer this: what fits best says nothing of ")
    assert all(f'"{word}"' in answer.text for word in missing)
    assert "[" not in answer.text


def test_words_of_headings_alone_are_no_answer(made: Made) -> None:
    answer = answered(made(GUIDE), "How long is the race?")
    assert answer.quotes == ()
    assert "only headings hold its words" in answer.text


def test_two_sentences_are_joined_by_a_name_only(made: Made) -> None:
    joined = {
        "leave.md": "# Leave\n\nAnna Berg signs requests for leave.\n",
        "people.md": "# Staff\n\nSince spring Anna Berg works in the city of Oslo.\n",
    }
    question = "In which city does the person work who signs requests for leave?"
    assert [quote.chunk for quote in answered(made(joined), question).quotes] == ["leave.md#1", "people.md#1"]


def test_sentences_that_share_no_name_are_not_joined(made: Made) -> None:
    apart = {
        "leave.md": "# Leave\n\nAnna Berg signs requests for leave.\n",
        "people.md": "# Staff\n\nSince spring Piet Mulder works in the city of Oslo.\n",
    }
    question = "In which city does the person work who signs requests for leave?"
    assert answered(made(apart), question).quotes == ()


def test_sentences_about_names_that_the_question_joins_are_joined(made: Made) -> None:
    files = {"a.md": "In Oslo lives Anna Berg.\n", "p.md": "In Bergen lives Piet Mulder.\n"}
    assert len(answered(made(files), "Where do Anna Berg and Piet Mulder live?").quotes) == 2
    assert not answered(made(files), "Does Anna Berg live in Bergen?").quotes


def test_of_a_long_question_one_word_in_nine_may_be_left_over_but_not_one_that_no_document_holds(made: Made) -> None:
    question = "How many days of paid leave has every new employee of the Oslo office of the company {} 2020?"
    text = "# Leave\n\nEvery new employee of the Oslo office of the company has 25 days of paid leave after 2020.\n"
    files = {"leave.md": text, "other.md": "# Other\n\nRules are valid in spring.\n"}
    assert answered(made(files), question.format("valid since")).quotes
    assert not answered(made(files), question.format("audited since")).quotes


def test_what_was_not_read_is_not_quoted(made: Made) -> None:
    index = made()
    assert answer_from("Who signs requests for leave?", index, []).quotes == ()
    assert answer_from("Who signs requests for leave?", index, ["people.md#1"]).quotes == ()
    assert answer_from("", index, list(index.lexicon.ids)).quotes == ()
