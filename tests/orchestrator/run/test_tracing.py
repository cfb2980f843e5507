"""Every selection is a run of its own in whatever traces LangChain, with the trace that says why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tracers import BaseTracer

from callsheet import AgentGraphRetriever, CallsheetTools, create_retriever_app, create_supervisor

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


def test_the_selection_of_a_step(catalog: Any, worker: Any) -> None:
    (run,) = selections(create_supervisor(catalog, worker_model=worker).compile(), {"messages": RATE})
    assert run.inputs["input"] == RATE
    assert run.metadata["step_id"] == "1"
    assert {node["id"] for node in run.outputs["trace"]["nodes"]} >= {"bank", "bank/exchange_rate"}
    assert run.outputs["agents"][0]["id"] == "bank"


def test_the_selection_of_the_retriever_app_and_of_the_middleware(catalog: Any, scripted: Any) -> None:
    app = create_retriever_app(AgentGraphRetriever.from_catalog(catalog)).compile()
    (run,) = selections(app, {"query": RATE})
    assert run.outputs["trace"]["nodes"]
    agent = create_agent(scripted(replies=[AIMessage("Hm.")]), middleware=[CallsheetTools(catalog)])
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

def convert_length(value: float, from_unit: str, to_unit: str) -> str:
    """Converts a length from one unit to another: miles, kilometres."""
    return "4.828 km"

app = create_supervisor({"units": [convert_length]}, settings=Settings(approval="never")).compile(name="supervisor")
app.invoke({"messages": "Convert 3 miles to kilometers"})
wait_for_all_tracers()
get_client().flush()
found = {span.name: dict(span.attributes) for span in spans.get_finished_spans()}
print(json.dumps({"names": sorted(found), "select": found["select"]}))
'''


def test_opentelemetry_spans_carry_it() -> None:
    told = {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_OTEL_ENABLED": "true",
        "LANGSMITH_OTEL_ONLY": "true",
        "LANGSMITH_API_KEY": "none",
        "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **told}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"supervisor", "plan", "retrieve", "select", "worker, step 1", "answer"} <= set(found["names"])
    assert found["select"]["langsmith.metadata.step_id"] == "1"
    assert json.loads(found["select"]["gen_ai.completion"])["trace"]["nodes"]
