"""Several approvals at the terminal: those of one tool are one question, and nothing that is agreed to is hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import click
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import create_supervisor
from callsheet.agents.calls.review import TOOK_EFFECT, flat, review_request
from callsheet.orchestrator.cli.approval_prompt import ask_person, described
from scripted_model import ScriptedModel
from small import outside

Say = Callable[..., Iterator[str]]
WHY = "This tool may delete or overwrite something."
THREAD: Any = {"configurable": {"thread_id": "1"}}


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
        (
            ["e", "y", "n", "", "r", "gone"],
            {"i1": yes(1), "i2": no(2), "i3": answered("respond", 3, message="gone")},
        ),
        (["e", "t", "q"], {"i1": yes(1, always=True)}),
        (["q"], {}),
    ],
)
def test_calls_of_one_tool_are_one_question(say: Say, capsys: Any, lines: list[str], answers: Any) -> None:
    left = say(*lines)
    assert ask_person(files("a.tmp", "b.tmp", "c.tmp")) == answers
    assert list(left) == []
    together = '\n3 calls of files/delete_file, path: "a.tmp", "b.tmp", "c.tmp"\nSteps: 1, 2, 3\n' + WHY + "\n"
    assert capsys.readouterr().err.startswith(together)


def test_calls_of_other_tools_and_other_questions_stay_separate(say: Say, capsys: Any) -> None:
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
    assert '2 calls of mail/send, to: "ann", "bob"' in said
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
        "y=yes, n=no, e=edit, r=respond, q=ask later",
        "y=yes, n=no, q=ask later",
        "y=yes, t=always for this tool, n=no, q=ask later",
        "a=all, e=each, n=none, q=ask later",
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            [{"path": "a", "all": False}, {"path": "b", "all": False}],
            ', path: "a", "b"\nIn all of them: {\n  "all": false\n}\n',
        ),
        ([{"n": 1}, {"n": True}], ", n: 1, true\n"),
        ([{"x": 1}, {"x": 1}], '\nIn all of them: {\n  "x": 1\n}\n'),
        ([{}, {}], "\nIn all of them: {}\n"),
        ([{}, {"x": 1}], ":\n  1  (no other arguments)\n  2  x: 1\n"),
        (
            [{"to": "ann", "text": "one\ntwo"}, {"to": "bob\u202e", "text": ""}],
            ':\n  1  to: "ann", text: "one\\ntwo"\n  2  to: "bob\\u202e", text: ""\n',
        ),
        ([{"path": 'a", "b'}, {"path": "c"}], ', path: "a\\", \\"b", "c"\n'),
    ],
)
def test_every_argument_that_differs_is_shown(say: Say, capsys: Any, args: list[Any], said: str) -> None:
    say("q")
    assert ask_person([waits(number, one) for number, one in enumerate(args, 1)]) == {}
    assert f"{len(args)} calls of files/delete_file{said}Steps: 1, 2\n" in capsys.readouterr().err


def test_of_many_calls_none_is_hidden(say: Say, capsys: Any) -> None:
    say("q")
    names = [f"/data/{n}.tmp" for n in range(700)]
    ask_person(files(*names))
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if '  path: "' in line] == [
        f'  {n}  path: "{name}"' for n, name in enumerate(names, 1)
    ]


def test_what_is_left_out_of_a_long_text_is_said(say: Say, capsys: Any) -> None:
    say("q", "q")
    ask_person([waits(n, {"text": "a" * 5_000, "to": [str(n)], "bcc": f"eve{n}@evil.example"}) for n in (1, 2)])
    ask_person([waits(n, {"text": str(n) * 5_000, "bcc": f"eve{n}@evil.example"}) for n in (3, 4)])
    said = capsys.readouterr().err
    assert all(f"eve{n}@evil.example" in said for n in (1, 2, 3, 4))
    assert said.count("… 4,400 characters …") == 3
    assert said.count("characters in all: each text is shortened, every key is shown") == 3


def test_each_call_of_a_group_is_an_interrupt_and_takes_effect_once(say: Say) -> None:
    deleted: list[str] = []

    def delete_file(path: str) -> str:
        """Deletes a file."""
        deleted.append(path)
        return f"deleted {path}"

    asked = [{"name": "files_delete_file", "args": {"path": f"{name}.tmp"}, "id": name} for name in "abc"]
    model = ScriptedModel(replies=[AIMessage("", tool_calls=asked), AIMessage("Done.")])
    app = create_supervisor(outside({"files": [delete_file]}), worker_model=model).compile(checkpointer=InMemorySaver())
    state = app.invoke({"messages": [HumanMessage("delete the file a.tmp")]}, THREAD)
    waiting = state["__interrupt__"]
    assert sorted((one["tool"], flat(one)["args"]["path"], one["why"]) for one in described(waiting)) == [
        ("files/delete_file", name, WHY) for name in ("a.tmp", "b.tmp", "c.tmp")
    ]
    say("a")
    state = app.invoke(Command(resume=ask_person(waiting)), THREAD)
    assert "__interrupt__" not in state
    assert sorted(deleted) == ["a.tmp", "b.tmp", "c.tmp"]
    assert len(state["results"]["1"]["calls"]) == 3
