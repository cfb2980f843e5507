"""The graphs of the LangGraph server; ``langgraph.json`` names them.

The catalog is loaded once, from ``CALLSHEET_CATALOG``; without it, the server does not start, and the error says so.
The documents of ``arag`` are opened with the first question; without ``CALLSHEET_DOCUMENTS``, its answer says what to
configure.
"""

from __future__ import annotations

import gc

from callsheet.graphs.dependencies import ObservationLog
from callsheet.orchestrator.apps.arag_graph import create_arag
from callsheet.orchestrator.apps.ask_graph import create_ask_app
from callsheet.orchestrator.run.process.environment import Environment
from callsheet.orchestrator.run.process.process_state import served_catalog
from callsheet.orchestrator.run.settings import ReaderSettings, Settings
from callsheet.orchestrator.supervisor import create_retriever_app, create_supervisor
from callsheet.retrievers.index.embedding import EMBEDDED

_environment = Environment()
# Chat pages answer without the id of a question; the page of Callsheet, which names ids, asks for all of them.
_settings = Settings.model_validate(
    {**_environment.model_dump(include={"model", "approval", "allow"}), "questions": "one"}
)
_served = served_catalog()

supervisor = create_supervisor(
    _served.loaded,
    retriever=_served.retriever,
    registry=_served.registry,
    settings=_settings,
    observed=ObservationLog(),
).compile(name="supervisor")
ask = create_ask_app(supervisor).compile(name="ask")
retriever = create_retriever_app(_served.retriever).compile(name="retriever")
arag = create_arag(
    _environment.documents,
    settings=ReaderSettings(model=_environment.model),
    embeddings=_environment.embeddings,
    index=_environment.index,
).compile(name="arag")

if _environment.embeddings == EMBEDDED:
    _served.retriever.select("the first question must not wait for the embedded model")
# Objects that exist now stay. Otherwise every full garbage collection scans them all, and blocks all answers.
gc.freeze()
