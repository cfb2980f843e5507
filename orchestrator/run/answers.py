"""Accepts answers of clients that answer one question at a time without its id, such as Agent Chat UI.

LangGraph refuses such an answer if several questions wait; if one waits, it passes the answer to whichever code asks
first. Here, an answer goes only to the question that it belongs to. A run can also ask one question after the other, so
that no client shows one question and answers another.
"""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt

from callsheet.agents.calls.review import each_call
from callsheet.graphs import SettingsError

_TURN = "__callsheet_turn"
"""Where the configuration has the ``_Turn``; LangGraph stores no key with this beginning."""
_INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")


def is_by_id(answer: object) -> bool:
    """Returns whether the value that resumes a thread has answers by the ids of their questions."""
    return isinstance(answer, Mapping) and all(_INTERRUPT_ID.fullmatch(str(name)) for name in answer)


def by_id(answer: Any, waiting: Sequence[Interrupt]) -> Any:
    """Returns an answer by the id of its question: the one with the hash in the answer, otherwise the first.

    If a single question waits, it gets every answer; it is asked again if the answer belongs to another question.

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
    """Returns the hashes in an answer, which bind it to calls."""
    match answer:
        case {"decisions": list() as decisions}:
            pass
        case _:
            decisions = [answer]
    return {one["hash"] for one in decisions if isinstance(one, Mapping) and isinstance(one.get("hash"), str)}


class _Turn:
    """Whether a step has asked, in one call of the app: in the configuration, for no checkpoint holds it."""

    def __init__(self) -> None:
        self._free = threading.Lock()

    def take(self) -> bool:
        """Returns whether no other step has asked; from then on, this one has."""
        return self._free.acquire(blocking=False)


@contextmanager
def asked_in_turn(questions: Literal["one", "all"]) -> Iterator[None]:
    """Limits the questions that a step may ask: ``all``, or only ``one``, and none if another step has asked.

    A step that may not ask yet is interrupted without a question. It asks when the run is resumed.

    Raises:
        GraphInterrupt: The step asks, or waits for its turn.
    """
    try:
        yield
    except GraphInterrupt as asked:
        turn = (get_config().get("configurable") or {}).get(_TURN)
        if questions == "all" or turn is None or not asked.args or not asked.args[0]:
            raise
        raise GraphInterrupt(asked.args[0][:1] if turn.take() else ()) from asked


def _with_turn(config: RunnableConfig | None) -> RunnableConfig:
    """Returns the configuration of one call of the app."""
    given: RunnableConfig = {**config} if config else {}
    given["configurable"] = {**(given.get("configurable") or {}), _TURN: _Turn()}
    return given


class AnswerableGraph(StateGraph[Any, Any, Any, Any]):
    """A workflow whose compiled app accepts answers with and without ids."""

    def compile(self, *args: Any, **more: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compiles the workflow as LangGraph does."""
        app = super().compile(*args, **more)
        fields = {name: value for name, value in vars(app).items() if name != "__orig_class__"}
        return AnswerableApp(**fields)


class AnswerableApp(CompiledStateGraph[Any, Any, Any, Any]):
    """An app that passes an answer without an id to the question that it belongs to."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Iterator[Any]:  # noqa: A002
        """Streams as LangGraph does."""
        if _lacks_id(input):
            waiting = self.get_state(config or {}).interrupts
            input = replace(input, resume=by_id(input.resume, waiting))  # noqa: A001
        yield from super().stream(input, _with_turn(config), **more)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        """Runs as LangGraph does; several questions are returned in the order of the steps in the state."""
        done = super().invoke(input, config, **more)
        return _ordered(done, self.get_state(config or {}).interrupts) if _asks_several(done) else done

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> Any:  # noqa: A002
        """Runs as ``invoke`` does."""
        done = await super().ainvoke(input, config, **more)
        return _ordered(done, (await self.aget_state(config or {})).interrupts) if _asks_several(done) else done

    async def astream(self, input: Any, config: RunnableConfig | None = None, **more: Any) -> AsyncIterator[Any]:  # noqa: A002
        """Streams as LangGraph does."""
        if _lacks_id(input):
            waiting = (await self.aget_state(config or {})).interrupts
            input = replace(input, resume=by_id(input.resume, waiting))  # noqa: A001
        parts = cast("AsyncGenerator[Any]", super().astream(input, _with_turn(config), **more))
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
