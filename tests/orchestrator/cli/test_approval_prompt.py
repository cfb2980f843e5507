"""Several approvals at the terminal: those of one tool are one question, and nothing that is agreed to is hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import click
import pytest

from callsheet.agents.calls.review import TOOK_EFFECT, review_request, review_several
from callsheet.orchestrator.cli.approval_prompt import ask_person

Say = Callable[..., Iterator[str]]
WHY = "This tool may delete or overwrite something."


def waits(number: int, args: Mapping[str, Any], *, tool: str = "files/delete_file", **more: Any) -> Any:
    """A call that waits for approval in the step of this number."""
    kind, allowed = more.pop("type", "tool_approval"), more.pop("allowed", ("approve", "edit", "reject", "respond"))
    told = {"step_id": str(number), "tool": tool, "why": WHY, "hash": f"h{number}", **more}
    value = review_request(kind, tool.replace("/", "_"), args, "", allowed, **told)
    return SimpleNamespace(id=f"i{number}", value=value)


def files(*names: str) -> list[Any]:
    return [waits(number, {"path": name}, always=True) for number, name in enumerate(names, 1)]


def answered(kind: str, number: int, **more: Any) -> dict[str, Any]:
    return {"decisions": [{"type": kind, "hash": f"h{number}", **more}]}


def yes(number: int, **more: Any) -> dict[str, Any]:
    return answered("approve", number, **more)


def no(number: int, why: str = "") -> dict[str, Any]:
    return answered("reject", number, message=why)


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    """Answers the prompts with these lines, and gives those that nobody asked for."""

    def answer(*lines: str) -> Iterator[str]:
        left = iter(lines)
        monkeypatch.setattr(click, "prompt", lambda *_, **__: next(left))
        return left

    return answer


@pytest.mark.parametrize(
    ("lines", "answers"),
    [
        (["a"], {"i1": yes(1), "i2": yes(2), "i3": yes(3)}),
        (["t"], {f"i{n}": yes(n, always=True) for n in (1, 2, 3)}),
        (["n", ""], {f"i{n}": no(n) for n in (1, 2, 3)}),
        (["n", "not now"], {f"i{n}": no(n, "not now") for n in (1, 2, 3)}),
        (["e", "y", "n", "", "r", "gone"], {"i1": yes(1), "i2": no(2), "i3": answered("respond", 3, message="gone")}),
        (["e", "t", "q"], {"i1": yes(1, always=True)}),
        (["q"], {}),
    ],
)
def test_calls_of_one_tool_are_one_question(
    say: Say, capsys: pytest.CaptureFixture[str], lines: list[str], answers: Any
) -> None:
    left = say(*lines)
    assert ask_person(files("a.tmp", "b.tmp", "c.tmp")) == answers
    assert list(left) == []
    calls = "".join(f'  step {n}: {{"path": "{name}.tmp"}}\n' for n, name in enumerate("abc", 1))
    assert capsys.readouterr().err.startswith(f"\n3 calls of files/delete_file:\n{calls}{WHY}\n")


def test_calls_of_other_tools_and_other_questions_stay_separate(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = waits(5, {"path": "e"}, type="unknown_outcome")
    again = waits(6, {"path": "f"}, problem="the approval is too old")
    left = say("y", "a", "d", "", "q")
    mixed = [
        waits(1, {"path": "a"}),
        waits(2, {"to": "ann"}, tool="mail/send"),
        waits(3, {"to": "bob"}, tool="mail/send"),
    ]
    answers = ask_person([*mixed, unknown, again, waits(7, {}, tool="mail/read")])
    done = answered("respond", 5, message=TOOK_EFFECT)
    assert answers == {"i1": yes(1), "i2": yes(2), "i3": yes(3), "i5": done}
    assert list(left) == []
    said = capsys.readouterr().err
    assert "Step 1 wants to call files/delete_file" in said
    assert '2 calls of mail/send:\n  step 2: {"to": "ann"}\n  step 3: {"to": "bob"}\n' in said
    assert said.endswith("the approval is too old\n")


def test_only_what_is_offered_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def prompt(text: str, **_: Any) -> str:
        shown.append(text)
        return "q"

    monkeypatch.setattr(click, "prompt", prompt)
    few = {"allowed": ("approve", "reject")}
    ask_person([waits(1, {}), waits(2, {}, tool="a/b", **few)])
    ask_person([waits(3, {}, tool="a/b", **few)])
    ask_person([waits(4, {}, tool="a/b", always=True, **few)])
    ask_person([waits(5, {}, **few), waits(6, {"x": 1}, **few)])
    assert shown == [
        "y=yes, n=no, e=edit, r=respond, q=later",
        "y=yes, n=no, q=later",
        "y=yes, t=always for this tool, n=no, q=later",
        "a=all, e=each, n=none, q=later",
    ]


def test_no_call_of_many_and_no_argument_is_hidden(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    say("q")
    odd = [{}, {"to": "bob\u202e", "text": "one\ntwo"}, {"path": 'a", "b'}]
    names = [f"/data/{n}.tmp" for n in range(700)]
    ask_person([waits(n, args) for n, args in enumerate([*odd, *({"path": name} for name in names)], 1)])
    first, *lines = capsys.readouterr().err.splitlines()[1:]
    assert first == "703 calls of files/delete_file:"
    assert lines[:3] == [
        "  step 1: {}",
        '  step 2: {"to": "bob\\u202e", "text": "one\\ntwo"}',
        '  step 3: {"path": "a\\", \\"b"}',
    ]
    assert lines[3:703] == [f'  step {n}: {{"path": "{name}"}}' for n, name in enumerate(names, 4)]


def test_what_is_left_out_of_a_long_text_is_said(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    say("q")
    ask_person([waits(n, {"text": str(n) * 5_000, "bcc": f"eve{n}@evil.example"}) for n in (1, 2)])
    said = capsys.readouterr().err
    assert all(f"eve{n}@evil.example" in said for n in (1, 2))
    assert said.count("… 4,400 characters …") == 2
    assert said.count("characters in all: each text is shortened, every key is shown") == 2


def program(*names: str) -> Any:
    """One interrupt with the calls of a program."""
    alone = [one.value for one in files(*names)]
    return SimpleNamespace(id="p", value=review_several(alone, step_id="1", why="a program makes these calls"))


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        (["a"], ["approve", "approve"]),
        (["n", ""], ["reject", "reject"]),
        (["e", "y", "n", ""], ["approve", "reject"]),
        (["e", "y", "q"], None),
        (["q"], None),
    ],
)
def test_calls_of_one_program_are_one_answer_with_a_decision_on_each(say: Say, lines: list[str], kinds: Any) -> None:
    left = say(*lines)
    answers = ask_person([program("a.tmp", "b.tmp")])
    given = [(one["type"], one["hash"]) for one in answers.get("p", {}).get("decisions", [])]
    assert given == [(kind, f"h{number}") for number, kind in enumerate(kinds or (), 1)]
    assert list(left) == []


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["a"], yes(1, always=True)),
        (["always"], yes(1, always=True)),
        (["YES"], yes(1)),
        (["e x", "what?", "", "no", ""], no(1)),
        (["la"], None),
    ],
)
def test_a_choice_is_a_letter_a_word_or_the_beginning_of_one_word(say: Say, typed: list[str], answer: Any) -> None:
    left = say(*typed)
    assert ask_person(files("a.txt")) == ({} if answer is None else {"i1": answer})
    assert list(left) == []


def test_a_word_that_may_mean_two_choices_is_asked_again(say: Say, capsys: pytest.CaptureFixture[str]) -> None:
    say("it", "q")
    ask_person([waits(1, {}, type="unknown_outcome")])
    assert "'it' is none of: d=it was done, n=it was not, send it again, g=give up" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "answers"),
    [
        (["y", "y"], {"i1": yes(1), "i2": yes(2)}),
        (["n", "not today", "y"], {"i1": no(1, "not today"), "i2": yes(2)}),
        (["q"], {}),
        (["w", "y", "n", ""], {"i1": yes(1), "i2": no(2)}),
    ],
)
def test_each_tool_that_a_server_adds_is_a_question_of_its_own(
    say: Say, capsys: pytest.CaptureFixture[str], lines: list[str], answers: dict[str, Any]
) -> None:
    left = say(*lines)
    more: dict[str, Any] = {"type": "new_tool", "allowed": ("approve", "reject"), "shown": "the definition"}
    tools = [waits(number, {}, tool=f"ide/{name}", **more) for number, name in enumerate(("build", "deploy"), 1)]
    assert ask_person(tools) == answers
    assert not list(left)
    told = capsys.readouterr().err
    assert "Step 1 wants to use ide/build\nthe definition\n" in told


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("XL", {"i1": "XL"}),
        ("5", {"i1": "5"}),
        ('{"responses": {"size": {"action": "accept"}}}', {"i1": {"responses": {"size": {"action": "accept"}}}}),
        ("{", {"i1": "{"}),
        ("", {}),
    ],
)
def test_a_question_in_a_form_of_its_own_is_answered_with_a_text_or_a_json_object(
    say: Say, capsys: pytest.CaptureFixture[str], line: str, answers: Any
) -> None:
    say(line)
    asked = {"type": "mcp_elicitation", "requests": [{"key": "size", "message": "Which size?"}]}
    assert ask_person([SimpleNamespace(id="i1", value=asked)]) == answers
    assert "Which size?" in capsys.readouterr().err
