"""A program in Monty, Pydantic's sandbox: it runs until it calls a tool or ends, and can be stored in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.text.sanitizing import clean

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, AsyncMontySession, AsyncSnapshot, CollectString, ResourceLimits

_FILE = "program.py"
_MOST_PRINTED, _MOST_ERROR = 100_000, 2_000
_MOST_STORED = 4 * 1024 * 1024
"""Bytes of a stored program: it is stored at each of its calls."""
_CRASH = 20.0
"""Seconds after which a sandbox that does not answer is killed."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A program at a call of a function.

    Attributes:
        snapshot: The stored program.
        printed: What it has printed since it was started or continued.
    """

    function: str
    args: Mapping[str, Any]
    snapshot: bytes
    printed: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended.

    Attributes:
        error: Why it ended early, with the line; empty if it did not.
        printed: What it has printed since it was started or continued.
    """

    value: Any
    error: str
    printed: str


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs programs that call these functions, each in a process of its own.

    No program reads a file, the environment or the network. It may compute for five seconds, use 64 MiB and
    nest 200 function calls.

    Attributes:
        stubs: Their signatures, against which a program is checked before it starts.
    """

    functions: Collection[str]
    stubs: str

    async def start(self, code: str, inputs: Mapping[str, Any]) -> Paused | Ended:
        """Starts a program with these variables; what cannot be encoded in their texts is replaced."""
        given = clean(dict(inputs))
        return await self._run(lambda session, out: session.feed_start(code, inputs=given, print_callback=out))

    async def proceed(self, snapshot: bytes, answer: Mapping[str, Any], *, printed: int = 0) -> Paused | Ended:
        """Continues a program: its call returns ``{"return_value": ...}`` or raises ``{"exc_type", "message"}``.

        Args:
            snapshot: The stored program.
            answer: What its call returns or raises.
            printed: How many characters it has printed before.
        """

        async def begin(session: AsyncMontySession, out: CollectString) -> AsyncSnapshot:
            at: Any = await session.load_snapshot(snapshot, print_callback=out)
            resumed: AsyncSnapshot = await at.resume(clean(dict(answer)))
            return resumed

        return await self._run(begin, printed)

    async def _run(self, begin: Any, printed: int = 0) -> Paused | Ended:
        pool = await asyncio.to_thread(_pool)  # an import reads files, and so does the search for the binary
        from pydantic_monty import CollectString, MontyError

        out = CollectString(_MOST_PRINTED - printed)
        async with pool, self._session(pool) as session:
            try:
                return await self._until_call(await begin(session, out), out)
            except MontyError as error:
                display = getattr(error, "display", None)
                shown = display() if display else f"{type(error).__name__}: {error}"
                return Ended(None, _shortened(shown.strip()), out.output)

    def _session(self, pool: Any) -> Any:
        limits: ResourceLimits = {
            "max_feed_duration_secs": 5.0,
            "max_memory": 64 * 1024 * 1024,
            "max_recursion_depth": 200,
        }
        checked = {"type_check": True, "type_check_stubs": self.stubs, "type_check_format": "concise"}
        return pool.checkout(script_name=_FILE, limits=limits, os_policy={"sleep": "zero"}, **checked)

    async def _until_call(self, at: AsyncSnapshot, out: CollectString) -> Paused | Ended:
        from pydantic_monty import AsyncFunctionSnapshot, AsyncNameLookupSnapshot, MontyComplete

        while not isinstance(at, MontyComplete):
            if isinstance(at, AsyncNameLookupSnapshot):
                at = await at.resume()
            elif not isinstance(at, AsyncFunctionSnapshot):
                at = await at.resume_auto()
            elif at.is_os_function:
                at = await at.resume_not_handled()
            elif at.function_name not in self.functions:
                there = ", ".join(self.functions) or "none"
                told = f"{at.function_name} is not among the functions; there are: {there}"
                at = await at.resume({"exc_type": "NameError", "message": told})
            elif at.args:
                told = f"{at.function_name}: name every argument"
                at = await at.resume({"exc_type": "TypeError", "message": told})
            elif isinstance(args := _as_json(at.kwargs), str):
                told = f"{at.function_name}: an argument is no JSON value: {args}"
                at = await at.resume({"exc_type": "TypeError", "message": told})
            elif len(snapshot := at.dump()) > _MOST_STORED:
                told = f"{at.function_name} was not called: the variables take {len(snapshot):,} bytes, and at a call"
                return Ended(None, f"MemoryError: {told} a program may hold {_MOST_STORED:,}", out.output)
            else:
                return Paused(str(at.function_name), args, snapshot, out.output)
        return Ended(at.output, "", out.output)


def _pool() -> AsyncMonty:
    check_installed()
    from pydantic_monty import AsyncMonty

    return AsyncMonty(max_processes=1, request_timeout=_CRASH)


def _shortened(error: str) -> str:
    """An error without its middle: the line stands at the beginning, and the kind often at the end."""
    half = _MOST_ERROR // 2
    return error if len(error) <= _MOST_ERROR else f"{error[:half]}\n...\n{error[-half:]}"


def _as_json(args: Mapping[str, Any]) -> dict[str, Any] | str:
    """The arguments as JSON values, or why they are none."""
    try:
        given: dict[str, Any] = json.loads(json.dumps(args, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        return str(error)
    return given


def check_installed() -> None:
    """Checks that the sandbox is there.

    Raises:
        SettingsError: The extra ``code`` is not installed.
    """
    try:
        import pydantic_monty  # noqa: F401 only whether it is there
    except ImportError as error:
        raise SettingsError("code mode needs an extra: pip install 'callsheet[code]'") from error
