"""Every selection is a run of its own in whatever traces LangChain, with the trace that says why."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tracers import BaseTracer, LangChainTracer
from langsmith import Client
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callsheet import AgentGraphRetriever, CallsheetTools, create_retriever_app, create_supervisor
from callsheet.graphs import Loaded, SettingsError
from forked import run_forked
from scripted_model import ScriptedModel

RATE = "look up the rate of USD"


class Kept(BaseTracer):
    """Keeps the runs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Any] = []

    def _persist_run(self, run: Any) -> None:
        todo = [run]
        while todo:
            self.runs.append(one := todo.pop())
            todo.extend(one.child_runs)


def selections(app: Any, given: Any) -> list[Any]:
    kept = Kept()
    app.invoke(given, {"callbacks": [kept]})
    return [run for run in kept.runs if run.name == "select"]


def test_the_trace_of_a_run_has_the_selection_of_each_step(catalog: Loaded, worker: ScriptedModel) -> None:
    (run,) = selections(create_supervisor(catalog, worker_model=worker).compile(), {"messages": RATE})
    assert run.inputs["input"] == [RATE]
    assert run.metadata["step_id"] == "1"
    selection = run.outputs["1"]
    assert {node["id"] for node in selection["trace"]["nodes"]} >= {"bank", "bank/exchange_rate"}
    assert selection["agents"][0]["id"] == "bank"


def test_the_trace_has_the_selections_of_the_retriever_app_and_the_middleware(catalog: Loaded) -> None:
    app = create_retriever_app(AgentGraphRetriever.from_catalog(catalog)).compile()
    (run,) = selections(app, {"query": RATE})
    assert run.outputs["trace"]["nodes"]
    agent = create_agent(ScriptedModel(replies=[AIMessage("Hm.")]), middleware=[CallsheetTools(catalog)])
    (run,) = selections(agent, {"messages": [("user", RATE)]})
    assert run.outputs["trace"]["nodes"]


PROGRAM = '''
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)

from langchain_core.tracers.langchain import get_client, wait_for_all_tracers
from callsheet import create_supervisor, Settings

from typing import Literal

Unit = Literal["mile", "kilometer"]

def convert_length(value: float, from_unit: Unit, to_unit: Unit) -> str:
    """Converts a length from one unit to another: miles, kilometres."""
    return "4.828 km"

app = create_supervisor({"units": [convert_length]}, settings=Settings(approval="never")).compile(name="supervisor")
app.invoke({"messages": "Convert 3 miles to kilometers"})
wait_for_all_tracers()
get_client().flush()
def events(span):
    return [[event.name, dict(event.attributes)] for event in span.events]

print(json.dumps([[span.name, dict(span.attributes), events(span)] for span in spans.get_finished_spans()]))
'''


def test_opentelemetry_spans_have_the_selection(catalog: Loaded) -> None:
    kept = InMemorySpanExporter()
    provider: Any = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    client = Client("http://127.0.0.1:9", tracing_mode="otel", otel_tracer_provider=provider)
    app = create_retriever_app(AgentGraphRetriever.from_catalog(catalog)).compile()
    app.invoke({"query": RATE}, {"callbacks": [LangChainTracer(client=client)]})
    client.flush()
    (select,) = (dict(span.attributes or {}) for span in kept.get_finished_spans() if span.name == "select")
    assert json.loads(str(select["gen_ai.completion"]))["trace"]["nodes"]


def test_spans_have_no_contents_if_langsmith_hides_inputs_and_outputs() -> None:
    """With the settings that the page on traces names; the program has a provider of its own."""
    told = {"LANGSMITH_TRACING": "true", "LANGSMITH_TRACING_MODE": "otel", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9"}
    env = {**os.environ, **told, "LANGSMITH_HIDE_INPUTS": "true", "LANGSMITH_HIDE_OUTPUTS": "true"}
    done = run_forked(["-c", PROGRAM], env=env)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout.splitlines()[-1])
    assert {"supervisor", "plan", "retriever", "worker", "worker, step 1", "answer"} <= {name for name, _, _ in made}
    (call,) = (told for _, told, _ in made if told.get("langsmith.metadata.callsheet_tool") == "units/convert_length")
    assert (call["gen_ai.operation.name"], call["gen_ai.tool.name"]) == ("execute_tool", "units_convert_length")
    told = json.dumps(made)
    assert [content for content in ("3 miles", "kilometers", "4.828") if content in told] == []


@pytest.mark.parametrize("mode", ["otel", "hybrid"])
def test_without_the_packages_nothing_is_traced_elsewhere(
    catalog: Loaded, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING_MODE", mode)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SettingsError, match=r"pip install '\.\[otel\]'"):
        create_supervisor(catalog)
    with pytest.raises(SettingsError, match=r"pip install '\.\[otel\]'"):
        create_retriever_app(AgentGraphRetriever.from_catalog(catalog))
