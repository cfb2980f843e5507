"""Clients that answer one question at a time, without its id: Agent Chat UI, the agent inbox, AG-UI.

LangGraph refuses such an answer if several questions wait. If one does, it gives the answer to the first code that
asks. Here an answer is for one of the questions that wait, and only for that one; and a run can ask one question after
the other, so that no client shows one question and answers another.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, Interrupt

from callsheet.agents.calls.review import each_call
from callsheet.graphs import SettingsError

_MOST = 1_000
"""Number of runs that are remembered: many more than run at once in a process."""
_INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")


def is_by_id(answer: object) -> bool:
    """Whether what resumes a thread names the questions that it answers."""
    return isinstance(answer, Mapping) and all(_INTERRUPT_ID.fullmatch(str(name)) for name in answer)


def by_id(answer: Any, waiting: Sequence[Interrupt]) -> Any:
    """An answer by the id of its question: the one with the hash in the answer; without a hash, the first that waits.

    The only question that waits gets every answer: it is asked again if the answer is for another.

    Raises:
        SettingsError: The answer has a hash that none of several questions has.
    """
    if not waiting or is_by_id(answer):
        return answer
    marks = _marks(answer)
    if not marks or len(waiting) == 1:
        return {waiting[0].id: answer}
    for question in waiting:
        if marks <= {str(call.get("hash")) for call in each_call(question.value) if isinstance(call, Mapping)}:
            return {question.id: answer}
    raise SettingsError("the answer has the hash of a question that does not wait: look at the questions again")


def _marks(answer: object) -> set[str]:
    """The hashes in an answer, which bind it to calls."""
    match answer:
        case {"decisions": list() as decisions}:
            pass
        case _:
            decisions = [answer]
    return {one["hash"] for one in decisions if isinstance(one, Mapping) and isinstance(one.get("hash"), str)}


@dataclass(slots=True)
class _Run:
    """A run, by LangGraph's object for it, which is held so that no later run gets its ``id``."""

    control: object
    has_asked: bool = False


_RUNS: OrderedDict[int, _Run] = OrderedDict()
_LOCK = threading.Lock()


@contextmanager
def asked_in_turn(questions: Literal["one", "all"]) -> Iterator[None]:
    """Lets a step ask all its questions, or ``one``, and none if another step of the run has asked.

    A step that may not ask yet is interrupted without a question. It asks when the run is resumed.

    Raises:
        GraphInterrupt: The step asks, or waits for its turn.
    """
    try:
        yield
    except GraphInterrupt as asked:
        if questions == "all" or not asked.args or not asked.args[0]:
            raise
        raise GraphInterrupt(asked.args[0][:1] if _is_first() else ()) from asked


def _is_first() -> bool:
    """Whether no other step of the current run has asked."""
    control = get_runtime().control
    with _LOCK:
        run = _RUNS.setdefault(id(control), _Run(control))
        if len(_RUNS) > _MOST:
            _RUNS.popitem(last=False)
        has_asked, run.has_asked = run.has_asked, True
    return not has_asked


class AnswerableGraph(StateGraph[Any, Any, Any, Any]):
    """A workflow whose app takes answers with and without ids."""

    def compile(self, *args: Any, **more: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """As in LangGraph."""
        app = super().compile(*args, **more)
        fields = {name: value for name, value in vars(app).items() if name != "__orig_class__"}
        return AnswerableApp(**fields)


class AnswerableApp(CompiledStateGraph[Any, Any, Any, Any]):
    """An app that gives an answer without an id to the question that it is for."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Iterator[Any]:  # noqa: A002
        """As in LangGraph."""
        if _lacks_id(input):
            waiting = self.get_state(config or {}).interrupts
            input = replace(input, resume=by_id(input.resume, waiting))  # noqa: A001
        yield from super().stream(input, config, **more)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        """As in LangGraph; several questions are in the order of the state, whichever was asked first."""
        done = super().invoke(input, config, **more)
        return _ordered(done, self.get_state(config or {}).interrupts) if _asks_several(done) else done

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        """As ``invoke``."""
        done = await super().ainvoke(input, config, **more)
        return _ordered(done, (await self.aget_state(config or {})).interrupts) if _asks_several(done) else done

    async def astream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> AsyncIterator[Any]:  # noqa: A002
        """As in LangGraph."""
        if _lacks_id(input):
            waiting = (await self.aget_state(config or {})).interrupts
            input = replace(input, resume=by_id(input.resume, waiting))  # noqa: A001
        parts = cast("AsyncGenerator[Any]", super().astream(input, config, **more))
        async with aclosing(parts):
            async for part in parts:
                yield part


def _lacks_id(given: object) -> bool:
    return isinstance(given, Command) and given.resume is not None and not is_by_id(given.resume)


def _asks_several(done: object) -> bool:
    return isinstance(done, dict) and len(done.get("__interrupt__", ())) > 1


def _ordered(done: dict[str, Any], waiting: Sequence[Interrupt]) -> dict[str, Any]:
    places = {question.id: place for place, question in enumerate(waiting)}
    return {**done, "__interrupt__": sorted(done["__interrupt__"], key=lambda one: places.get(one.id, len(places)))}
