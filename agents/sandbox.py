"""Runs programs that models write in Monty, Pydantic's sandbox, and continues them after each call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from callsheet.graphs.text.unicode import clean

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, AsyncMontySession, CollectString, ResourceLimits


_MOST_PRINTED = 100_000
_MOST_ERROR = 2_000
_MOST_STORED = 4 * 1024 * 1024
"""Bytes of a stored program: it is stored at each of its calls."""
_CRASH = 20.0
"""Seconds after which a sandbox that does not answer is killed."""
_CHECKS: Any = {"type_check": True, "type_check_format": "concise", "os_policy": {"sleep": "zero"}}
_LIMITS: ResourceLimits = {
    "max_feed_duration_secs": 5.0,
    "max_memory": 64 * 1024 * 1024,
    "max_recursion_depth": 200,
}


@dataclass(frozen=True, slots=True)
class Pause:
    """A program that has ended or waits for the result of a call, with its output since it was last continued.

    Attributes:
        function: The function that the program calls, with ``args``; empty if the program has ended.
        snapshot: The stored program.
        value: The value of its last line.
        error: The error that ended the program early; with the line, unless ``position`` has the place.
        position: The position of the call, in bytes from the beginning of the code; None if the program is not at a
            call.
    """

    printed: str
    function: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    snapshot: bytes = b""
    value: Any = None
    error: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs programs that call these functions, each in a separate process.

    No program reads a file, the environment or the network. It may compute for five seconds, use 64 MiB and nest 200
    function calls. It is checked against the ``stubs`` before it starts. ``barred`` maps other names to why they cannot
    be called.
    """

    functions: Collection[str]
    stubs: str
    barred: Mapping[str, str] = field(default_factory=dict)

    async def start(self, code: str, inputs: Mapping[str, Any]) -> Pause:
        """Starts a program with these variables; characters that cannot be encoded are replaced."""
        given = clean(dict(inputs))
        return await self._run(lambda session, out: session.feed_start(code, inputs=given, print_callback=out))

    async def proceed(self, snapshot: bytes, answer: Mapping[str, Any], *, printed: int = 0) -> Pause:
        """Continues a stored program: its call returns ``{"return_value": ...}`` or raises ``{"exc_type", "message"}``.

        ``printed`` is the number of characters that it has printed before.
        """

        async def begin(session: AsyncMontySession, out: CollectString) -> Any:
            at: Any = await session.load_snapshot(snapshot, print_callback=out)
            return await at.resume(clean(dict(answer)))

        return await self._run(begin, printed)

    async def proceed_each(self, runs: Sequence[Pause], answers: Sequence[Mapping[str, Any]]) -> Sequence[Pause]:
        """Continues several stored programs in parallel, each with its answer, as ``proceed`` does."""
        proceeding = [self.proceed(run.snapshot, answer) for run, answer in zip(runs, answers, strict=True)]
        return await asyncio.gather(*proceeding)

    async def _run(self, begin: Callable[[Any, Any], Awaitable[Any]], printed: int = 0) -> Pause:
        pool = await asyncio.to_thread(_pool)  # an import reads files, and so does the search for the binary
        from pydantic_monty import CollectString, MontyError

        out = CollectString(_MOST_PRINTED - printed)
        options = {**_CHECKS, "type_check_stubs": self.stubs, "limits": _LIMITS}
        async with pool, pool.checkout(script_name="program.py", **options) as session:
            try:
                return await self._until_call(await begin(session, out), out)
            except MontyError as error:
                display = getattr(error, "display", None)
                shown = (display() if display else f"{type(error).__name__}: {error}").strip()
                if len(shown) > _MOST_ERROR:  # the line stands at the beginning, and the kind often at the end
                    shown = f"{shown[: _MOST_ERROR // 2]}\n...\n{shown[-_MOST_ERROR // 2 :]}"
                return Pause(out.output, error=shown)

    async def _until_call(self, at: Any, out: CollectString) -> Pause:
        from pydantic_monty import AsyncFunctionSnapshot, AsyncNameLookupSnapshot, MontyComplete

        while not isinstance(at, MontyComplete):
            if isinstance(at, AsyncNameLookupSnapshot):
                at = await at.resume()
            elif not isinstance(at, AsyncFunctionSnapshot):
                at = await at.resume_auto()
            elif at.is_os_function:
                at = await at.resume_not_handled()
            elif at.function_name not in self.functions:
                told = (
                    f"{at.function_name} is not among the functions; there are: {', '.join(self.functions) or 'none'}"
                )
                at = await at.resume({"exc_type": "NameError", "message": self.barred.get(at.function_name, told)})
            elif isinstance(args := "name every argument" if at.args else _as_json(at.kwargs), str):
                at = await at.resume({"exc_type": "TypeError", "message": f"{at.function_name}: {args}"})
            elif len(snapshot := at.dump()) > _MOST_STORED:
                told = f"{at.function_name} was not called: the variables take {len(snapshot):,} bytes, and at a call"
                told = f"MemoryError: {told} a program may hold {_MOST_STORED:,}"
                return Pause(out.output, error=told, position=at.position.start)
            else:
                return Pause(out.output, str(at.function_name), args, snapshot, position=at.position.start)
        return Pause(out.output, value=at.output)


def _pool() -> AsyncMonty:
    from pydantic_monty import AsyncMonty

    return AsyncMonty(max_processes=1, request_timeout=_CRASH)


def _as_json(args: Mapping[str, Any]) -> dict[str, Any] | str:
    """Returns the arguments as JSON values, or why they are none."""
    try:
        given: dict[str, Any] = json.loads(json.dumps(args, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        return f"an argument is no JSON value: {error}"
    return given
