"""Questions, running calls and a server that is gone, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from callsheet.agents.approval.questions import input_question
from callsheet.graphs import Catalog, User
from callsheet.orchestrator.server import Site
from callsheet.orchestrator.server.runs.question_views import question_views
from chromium import Browser
from explored import explorer, served
from kept_runs import ENDED, RESULT, Kept, with_values

pytestmark = pytest.mark.server
Show = Callable[..., Browser]


def test_a_question_of_a_server_says_who_asks_and_chooses_nothing_by_itself(show: Show, catalog: Catalog) -> None:
    size = {"enum": ["S", "M"], "description": "Of the shirt"}
    form = {"type": "object", "properties": {"size": size}, "required": ["size"]}
    tool = next(iter(catalog.tools))
    asked = input_question("1", tool, form, "the server of 'shop' asks: Which size?", server="shop")
    found = served(catalog)
    views = question_views(Site(lambda: found).visible_to(User()), "i1", asked)
    page = show(explorer(catalog, runs=Kept([ENDED])), "#/runs?id=t")
    page.wait("document.querySelector('.run-answer')")
    page.run(f"""(async () => {{
        const {{ questions }} = await import("./runs/questions.js");
        document.body.append(questions({json.dumps(views)}, (answers) => {{ window.answers = answers; }}));
        window.heading = document.querySelector(".card h3").textContent;
        window.chosen = document.querySelector(".card select").value;
        window.buttons = [...document.querySelectorAll(".card button")].map((one) => one.textContent);
        [...document.querySelectorAll(".card button")].find((one) => one.textContent === "Decline").click();
    }})()""")
    page.wait("window.answers")
    assert page.run("window.heading") == "The server of shop asks"
    assert page.run("window.chosen") == ""
    assert page.run("window.buttons") == ["Give", "Decline"]
    assert page.run("window.answers.i1.decisions[0].type") == "reject"
    assert page.complaints == []


def test_a_step_says_how_far_its_running_call_is(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([with_values(ENDED, results={"1": RESULT})])), "#/runs?id=t")
    page.wait("document.querySelector('.run-answer')")
    page.run("""(async () => {
        const { article } = await import("./runs/run.js"), { told } = await import("./runs/events.js");
        const one = article(), tool = { id: "shop/report", label: "shop/report", kind: "tool", about: "" };
        const call = { id: "c", tool, args: "{}", running: true, seconds: 0, error: "", answer: "", pictures: [] };
        const step = { id: "1", text: "report", depends_on: [], status: "running", picked: [], notes: [], added: [],
                       calls: [{ ...call, progress: "page 3 of 20" }], result: "", error: "" };
        document.body.append(one.element);
        one.show({ ...told([]), request: "r", status: "running", steps: [step] });
        window.summary = one.element.querySelector(".step-details summary").textContent;
    })()""")
    page.wait("window.summary !== undefined")
    assert page.run("window.summary").endswith("page 3 of 20")
    assert page.complaints == []


def test_a_server_that_is_gone_is_told_in_words(show: Show, catalog: Catalog) -> None:
    page = show(explorer(catalog))
    page.run("""(async () => {
        const { ask, send, watch } = await import("./server.js");
        window.fetch = () => Promise.reject(new TypeError("Failed to fetch"));
        const said = (error) => error.message;
        const asked = [ask("map"), send("start", {}), watch("t")];
        window.told = await Promise.all(asked.map((one) => one.catch(said)));
    })()""")
    page.wait("window.told")
    told = page.run("window.told")
    assert [one.startswith("The server does not answer: is it still running?") for one in told] == [True] * 3
