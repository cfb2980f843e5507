"""The process of a stdio server: its messages, standard error, and end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import anyio
from mcp.shared.message import SessionMessage

from callsheet.agents.servers.limits import Limits
from callsheet.agents.servers.transport.json_rpc import parsed
from callsheet.agents.servers.transport.loop_share import Share
from callsheet.agents.servers.transport.reaper import REAPER
from callsheet.agents.servers.transport.reaper_process import end_family, end_groups, end_marked, grown
from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.text.sanitizing import shown

_TAIL_BYTES, _MOST_HELD = 8_192, 262_144
_LARGE = 65_536  # bytes; longer lines are parsed in a thread
_MOST_NOISE_LATER = 1_000
_MOST_NOISE, _MOST_QUOTED, _LONGEST_QUOTE = 100, 3, 200
_GRACE, _KILL_AFTER, _POLL = 1.0, 1.0, 0.02


class ChildProcess(asyncio.SubprocessProtocol):
    """A stdio server: its messages, the tail of its standard error, and its end.

    Args:
        limits: Maximum size of a message, and of other output between two messages.
        on_end: Called once if it ends by itself.

    Attributes:
        mark: Mark in the environment of the process and its children (``reaper_process``).
        ended: Whether it ended by itself.
        responsive: Whether it gets time for a graceful end.
        fault: Its error, if that ended the session.
        writable: Set while it reads its input.
        received: Bytes of complete lines received.
    """

    def __init__(self, limits: Limits, on_end: Callable[[], None]) -> None:
        self.limits, self._on_end = limits, on_end
        self._partial: list[bytes] = []
        self._size = self.received = 0
        self._said, self._greeted = b"", False
        self._noise, self._noise_since, self._quoted = 0, (0, 0), list[bytes]()
        self._waiting, self._held, self._over, self._paused = deque[bytes](), 0, False, False
        self._arrived, self.writable = asyncio.Event(), asyncio.Event()
        self.writable.set()
        self._share = Share()
        self._patience: asyncio.TimerHandle | None = None
        self.transport: asyncio.SubprocessTransport
        self.mark = ""
        self._family: dict[int, str] = {}
        self.fault: Fault | None = None
        self.ended = self._stopping = False
        self.responsive = False
        self._send, self.messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    @property
    def last_words(self) -> str:
        """The last lines of standard error, at most five."""
        lines = self._said.decode("utf-8", "replace").split("\n")
        return "\n".join([line.rstrip()[-500:] for line in lines if line.strip()][-5:])

    @property
    def printed(self) -> str:
        """Its output that is not the protocol: the first lines, and the number of further ones."""
        rest = [] if self._greeted else [b"".join(self._partial)]
        lines = [shown(line[:_LONGEST_QUOTE].decode("utf-8", "replace").strip()) for line in (*self._quoted, *rest)]
        more = f" (and {self._noise - len(self._quoted):,} more lines)" if self._noise > len(self._quoted) else ""
        return ", ".join(repr(line) for line in lines if line) + more

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self.transport.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Stores the transport; from now on the reaper ends the process with this one."""
        self.transport = cast("asyncio.SubprocessTransport", transport)
        stdin = self.transport.get_pipe_transport(0)
        # uvloop does not show the pipe.
        pipe = stdin.get_extra_info("pipe") if stdin is not None else None
        # The pipe is closed if the start was cancelled.
        number = None if pipe is None or pipe.closed else pipe.fileno()
        REAPER.watch(self.transport.get_pid(), number)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Stores the tail of standard error, and as much of standard output as ``read`` can process."""
        if fd != 1:
            self._said = (self._said + data)[-_TAIL_BYTES:]
        elif not (self.ended or self._stopping):
            self._waiting.append(data)
            self._held += len(data)
            self._arrived.set()
            if self._held > _MOST_HELD and not self._paused:
                self._paused = True
                self._stdout.pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """The end of standard output ends the session."""
        if fd == 1:
            self._close()

    def process_exited(self) -> None:
        """Closes soon: a child of the server may hold its pipes open."""
        asyncio.get_running_loop().call_later(0.2, self._close)

    def pause_writing(self) -> None:
        """Its input buffer is full."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Its input buffer has room again."""
        self.writable.set()

    async def read(self) -> None:
        """Splits standard output into messages and forwards them, in its share of the loop's time, until it ends."""
        while not (self.ended or self._stopping):
            if self._waiting:
                await self._cut(self._taken())
            elif self._over:
                self._end()
            else:
                self._arrived.clear()
                await self._arrived.wait()

    @property
    def _stdout(self) -> asyncio.ReadTransport:
        return cast("asyncio.ReadTransport", self.transport.get_pipe_transport(1))

    def _close(self) -> None:
        self._over = True
        self._arrived.set()

    def _taken(self) -> bytes:
        data = self._waiting.popleft()
        self._held -= len(data)
        if self._paused and self._held <= _MOST_HELD:
            self._paused = False
            self._stdout.resume_reading()
        return data

    async def _cut(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole, self._partial, self._size = b"".join((*self._partial, line)), [], 0
            await self._deliver(whole)
            if self.ended or self._stopping:
                return
        self._partial.append(rest)
        self._size += len(rest)
        if not self._greeted and self.printed:
            self._wait_on()
        if self._size > self.limits.message:
            self._end(Fault("too_large", f"it sent a message of more than {self.limits.message:,} bytes"))

    async def _deliver(self, line: bytes) -> None:
        self.received += len(line)
        message = await asyncio.to_thread(self._read, line) if len(line) > _LARGE else self._read(line)
        if message is None:
            self._ignored(line)
        else:
            self._greeted, self._noise_since = True, (0, 0)
            self._hurry_no_more()
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._send.send(SessionMessage(message))
        await self._share.turn()

    def _read(self, line: bytes) -> Any | None:
        with self._share.used():
            return parsed(line.decode("utf-8", "replace"))

    def _ignored(self, line: bytes) -> None:
        """Counts a line that is not the protocol, and stores the first ones for the error message."""
        lines, size = self._noise_since
        self._noise_since = lines + 1, size + len(line)
        if line.strip():
            self._noise += 1
            if len(self._quoted) < _MOST_QUOTED:
                self._quoted.append(line)
        if not self._greeted and self._noise > _MOST_NOISE:
            self._give_up()
        elif lines >= _MOST_NOISE_LATER or size > self.limits.message:
            said = f"it printed {lines + 1:,} consecutive lines that are not the protocol, such as {self.printed}"
            self._end(Fault("protocol", said))

    def _wait_on(self) -> None:
        """Limits the time of a server that prints something before its first message."""
        if self._patience is None and not self.ended:
            self._patience = asyncio.get_running_loop().call_later(self.limits.noise, self._give_up)

    def _hurry_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _give_up(self) -> None:
        said = (
            f"it does not speak the protocol, it printed {self.printed}. If the server starts slowly, "
            f"raise its limit 'noise' ({self.limits.noise:g} s now)"
        )
        self._end(Fault("protocol", said, effect="none"))

    def _end(self, fault: Fault | None = None) -> None:
        if self.ended or self._stopping:
            return
        self.ended, self.fault = True, fault
        self._hurry_no_more()
        if self._greeted:
            self._partial = []
        self._waiting.clear()
        self._send.close()
        self._on_end()

    async def settled(self) -> None:
        """Waits briefly for exit status and standard error, which arrive after the end of output."""
        await self._exited(0.3)

    async def stop(self) -> None:
        """Ends the process, its group and its descendants: closes stdin, then SIGTERM, then SIGKILL."""
        self._stopping = True
        self._hurry_no_more()
        if sys.platform != "win32":
            # Processes that left the group and cleared their environment are found by their parents, while these live.
            self._family = grown({self.transport.get_pid(): ""})
        if (stdin := self.transport.get_pipe_transport(0)) is not None:
            stdin.close()
            REAPER.release(self.transport.get_pid())
        if self.responsive:
            await self._exited(_GRACE)
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            if not self._signal(number):
                break
            await self._gone(_KILL_AFTER)
        await self._exited(_KILL_AFTER)
        REAPER.forget(self.transport.get_pid())
        self.transport.close()
        self._send.close()
        self.messages.close()

    def _signal(self, number: int) -> bool:
        """Signals the group, and the processes that left it; returns whether any was left."""
        if sys.platform == "win32":
            with suppress(ProcessLookupError):
                self.transport.kill()
            return self.status is None
        self._family = grown(self._family)
        found = [end_groups({self.transport.get_pid()}, number), end_family(self._family, number)]
        return end_marked(self.mark, number) or any(found)

    async def _exited(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while self.status is None:  # noqa: ASYNC110 (there is no event for the end of a process)
                await anyio.sleep(_POLL)

    async def _gone(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while self._signal(0):  # noqa: ASYNC110 (nor for the end of a group)
                await anyio.sleep(_POLL)
