"""``callsheet infer`` and ``forget`` as a person or a script uses them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Tool, load
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Outcomes, Proposal, decide, read_dependencies
from commands import Cli
from scripted_decisions import YesOrNo

RECORDS = {"items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}}
CRM: dict[str, Any] = {
    "name": "crm",
    "tools": [
        {
            "name": "search_contacts",
            "description": "Searches contacts.",
            "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
            "outputSchema": {"type": "object", "properties": RECORDS},
        },
        {
            "name": "delete_contact",
            "description": "Deletes a contact.",
            "inputSchema": {
                "type": "object",
                "properties": {"contact_id": {"type": "string"}},
                "required": ["contact_id"],
            },
        },
        {"name": "ping", "description": "Says whether it is there.", "inputSchema": {"type": "object"}},
    ],
}
EDGE = ("crm/delete_contact", "crm/search_contacts", "parameter_directly", "contact_id")


@pytest.fixture
def infer(tmp_path: Path, cli: Cli) -> Callable[..., Any]:
    (tmp_path / "crm.json").write_text(json.dumps(CRM), encoding="utf-8")
    return lambda *words, command="infer": cli(command, *words, "--catalog", tmp_path / "crm.json")


def test_json_is_one_object_with_the_edges(infer: Callable[..., Any]) -> None:
    status, out, err = infer("--json")
    (edge,) = json.loads(out)["edges"]
    assert (status, err) == (0, "")
    assert (edge["source"], edge["target"], edge["kind"], edge["parameter"]) == EDGE
    assert 0.5 <= edge["confidence"] <= 1
    assert "items.id" in edge["evidence"]
    assert edge["accept"] is None


def test_infer_prints_tool_dependency_and_reason(infer: Callable[..., Any]) -> None:
    status, out, _ = infer()
    assert status == 0
    assert "crm/delete_contact\n" in out
    assert "contact_id <-" in out
    assert "items.id" in out
    assert "1 proposal, 0 accepted, 0 refused; -o FILE" in out


def test_a_review_is_kept_and_counts_beside_the_catalog(infer: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "dependencies.json"
    status, out, _ = infer("-o", str(file))
    assert status == 0
    assert f"add --catalog {file}" in out
    document = json.loads(file.read_text(encoding="utf-8"))
    document["edges"][0] |= {"accept": True, "evidence": "I know."}
    more = {"source": "crm/delete_contact", "target": "crm/ping", "kind": "tool_directly", "accept": True}
    document["edges"].append(more)
    file.write_text(json.dumps(document), encoding="utf-8")

    status, out, _ = infer("-o", str(file), "--json")
    edge, own = json.loads(out)["edges"]
    assert (edge["accept"], edge["evidence"]) == (True, "I know.")
    assert own.items() >= more.items()

    status, out, _ = infer("--catalog", str(file), "--format", "json", command="export")
    (tool,) = [
        tool for agent in json.loads(out)["agents"] for tool in agent["tools"] if tool["name"] == "delete_contact"
    ]
    assert [(one["tool"], one.get("provenance", "declared")) for one in tool["depends_on"]] == [
        ("crm/search_contacts", "reviewed"),
        ("crm/ping", "reviewed"),
    ]
    status, out, _ = infer("--catalog", str(file))
    assert (status, out) == (1, "No dependency is proposed.\n")


def test_a_decision_in_the_meantime_is_kept(
    infer: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dependencies.json"
    infer("-o", str(file))

    def decided(*_: Any, **__: Any) -> list[Proposal]:
        (edge,) = read_dependencies(file)
        decide(
            file,
            edge.model_copy(update={"accept": False}),
            before=None,
            agents=load(tmp_path / "crm.json").catalog.agents,
        )
        return [edge]

    monkeypatch.setattr("callsheet.retrievers.inference.infer_dependencies", decided)
    infer("-o", str(file))
    assert [edge.accept for edge in read_dependencies(file)] == [False]


def test_edges_are_inferred_without_being_asked_for_and_a_rejection_wins(
    infer: Callable[..., Any], tmp_path: Path
) -> None:
    def found(*arguments: str) -> list[dict[str, Any]]:
        _, out, _ = infer("delete_contact", "--tools", "2", "--json", *arguments, command="retrieve")
        tools = [tool for agent in json.loads(out)["agents"] for tool in agent["tools"]]
        return [tool for tool in tools if len(tool["via"]) > 1]

    (tool,) = found()
    assert tool["via"] == ["crm/delete_contact", "crm/search_contacts"]
    assert "items.id" in tool["inferred"]
    assert not tool["required"]
    _, out, _ = infer("delete_contact", "--tools", "2", command="retrieve")
    assert "used by crm/delete_contact; inferred: its result holds items.id" in " ".join(out.split())
    assert found("--proposed", "0") == []
    assert json.loads(infer("--json", command="index")[1])["inferred"] == 1

    file = tmp_path / "dependencies.json"
    infer("-o", str(file))
    document = json.loads(file.read_text(encoding="utf-8"))
    for accept, inferred in ((True, ""), (False, None)):
        document["edges"][0]["accept"] = accept
        file.write_text(json.dumps(document), encoding="utf-8")
        assert [tool["inferred"] for tool in found("--catalog", str(file))] == ([] if inferred is None else [inferred])
    report = json.loads(infer("--catalog", str(file), "--json", command="index")[1])
    assert (report["dependencies"], report["inferred"]) == (0, 0)


def test_observed_dependencies_are_proposed_beside_inferred_ones(infer: Callable[..., Any]) -> None:
    ObservationLog().add({("crm/delete_contact", "crm/ping", "contact_id"): 2, ("gone/x", "gone/y", "z"): 9})
    found = {edge["target"]: edge for edge in json.loads(infer("--json")[1])["edges"]}
    assert (found["crm/ping"]["count"], found["crm/ping"]["confidence"]) == (2, 0.667)
    assert len(found) == 2
    assert "0 dependencies, 1 inferred, 1 observed: " in infer(command="index")[1]


def judged_by(monkeypatch: pytest.MonkeyPatch, answer: float | Exception | None) -> YesOrNo:
    def yes(_: object) -> float | None:
        if isinstance(answer, Exception):
            raise answer
        return answer

    model = YesOrNo(yes=yes)
    monkeypatch.setattr("callsheet.agents.chat_model", lambda name: model)
    return model


@pytest.mark.parametrize(
    ("answer", "accept", "line"),
    [
        (0.9, True, "judged 1: 1 accepted, 0 dropped, 0 left to you; 0 not answered."),
        (0.1, False, "judged 1: 0 accepted, 1 dropped, 0 left to you; 0 not answered."),
    ],
)
def test_a_model_decides_and_its_decision_stays_in_the_file(
    infer: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: float,
    accept: bool,
    line: str,
) -> None:
    model = judged_by(monkeypatch, answer)
    file = tmp_path / "dependencies.json"
    status, out, _ = infer("-o", str(file), "--model", "scripted:model")
    assert (status, [edge.accept for edge in read_dependencies(file)]) == (0, [accept])
    assert line in out
    again = json.loads(infer("-o", str(file), "--model", "scripted:model", "--json")[1])
    assert again["judged"]["judged"] == 0
    assert [edge["accept"] for edge in again["edges"]] == [accept]
    assert len(model.asked) == 1


@pytest.mark.parametrize("answer", [None, ConnectionError("refused")])
def test_a_model_that_does_not_answer_leaves_proposals_and_the_status_says_so(
    infer: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Exception | None
) -> None:
    judged_by(monkeypatch, answer)
    file = tmp_path / "dependencies.json"
    status, out, err = infer("-o", str(file), "--model", "scripted:model", "--json")
    assert status == 1
    assert json.loads(out)["judged"]["unanswered"] == 1
    assert [edge.accept for edge in read_dependencies(file)] == [None]
    assert ("the model failed: ConnectionError: refused; run the command again for the rest" in err) is bool(answer)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "bogus:x"], "the model 'bogus:x' cannot be used"),
        (["--least", "2"], "2.0 is not in the range"),
        (["-o", "/nowhere/at/all.json"], "no folder /nowhere/at"),
        (["-o", "{crm}"], "not a file of dependencies"),
        (["--catalog", "{none}"], "no catalog at"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    infer: Callable[..., Any], tmp_path: Path, arguments: list[str], said: str
) -> None:
    filled = [one.format(crm=tmp_path / "crm.json", none=tmp_path / "none") for one in arguments]
    status, out, err = infer(*filled)
    assert (status, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


TWO_TOOLS = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="t"), Tool(agent="a", name="u"))),))
NOTHING = "forgot 0 tools and 0 observed dependencies\n"


@pytest.fixture
def learned(own_home: Path) -> None:
    OutcomeLog().add({"a/t": Outcomes(done=1), "a/u": Outcomes(failed=1)}, TWO_TOOLS)
    ObservationLog().add({("a/t", "a/u", "x"): 1, ("a/t", "b/v", "x"): 1})


@pytest.mark.usefixtures("learned")
def test_forget_removes_all_observations_or_those_that_match(cli: Cli) -> None:
    assert cli("forget", "a/u")[1] == "forgot 1 tool and 1 observed dependency\n"
    assert list(OutcomeLog().of(TWO_TOOLS)) == ["a/t"]
    assert json.loads(cli("forget", "--json")[1]) == {"tools": 1, "dependencies": 1}
    assert (OutcomeLog().read(), ObservationLog().read()) == ({}, {})
    assert cli("forget")[0] == 0


@pytest.mark.usefixtures("learned")
def test_a_pattern_without_a_match_is_a_negative_result(cli: Cli) -> None:
    assert cli("forget", "none/*")[:2] == (1, NOTHING)
