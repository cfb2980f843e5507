"""Runs a stdio server: its process, its messages, and its end with all processes that it started."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sysconfig
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.transport.allowance import allowed_bytes, allowed_messages
from callsheet.agents.servers.transport.messages import LARGE, parse_message
from callsheet.agents.servers.transport.program_files import Stamps, stamps_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.text.hidden import shown

# Paths, not secrets. Behind a company's TLS proxy, uvx and npx cannot download without them.
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_UV = "install it: pip install uv"
_NODE = "install Node.js"
_CURES = {"uv": _UV, "uvx": _UV, "node": _NODE, "npx": _NODE}
_MARK = "CALLSHEET_SESSION"
_PROC = Path("/proc")
_LISTING = ("/bin/ps", "-E", "-A", "-ww", "-o", "pid=,ppid=,pgid=,state=,lstart=,command=")
_TAIL = 8_192
_BUFFER = 65_536  # bytes
_MOST_NOISE = 100
_MOST_QUOTED = 3
_LONGEST_QUOTE = 200
_GRACE = 1.0
_KILL_AFTER = 1.0
_SETTLING = 0.3
_HELD_OPEN = 0.2
_POLL = 0.03


def environment_of(server: ServerConfig) -> dict[str, str]:
    """Returns the variables of a server's process: MCP's safe defaults, paths of certificates, and configured ones."""
    certificates = {name: value for name in _CERTIFICATES if (value := os.environ.get(name))}
    return get_default_environment() | certificates | server.env


def program_of(command: str, environment: Mapping[str, str]) -> str:
    """Returns the path of a command's program, found in ``PATH`` or beside this interpreter, where a venv has uvx."""
    for path in (environment.get("PATH"), sysconfig.get_path("scripts")):
        program = shutil.which(command, path=path)
        if program:
            return program
    first, *rest = command.split()[:4] or [""]
    cure = _CURES.get(command, "install it or correct the path")
    if rest and shutil.which(first):
        cure = f"no shell reads it; write the program alone, {first!r}, and {shlex.join(rest)!r} word by word in 'args'"
    raise Fault("start", f"the command {command!r} was not found: {cure}")


class ChildProcess(asyncio.subprocess.SubprocessStreamProtocol):
    """The process of a stdio server; for a server over HTTP, it holds only the limits and the fault.

    ``limits.message`` is the maximum size of a message; ``on_end`` is called once if the process ends by itself.

    Attributes:
        environment: Its variables, without the mark of its session.
        stamps: The files of its program when it was started.
        ended: Whether it ended by itself.
        responsive: Whether it gets time for a graceful end.
        fault: Its error, if that ended the session.
        received: Bytes of complete lines received.
    """

    def __init__(self, limits: Limits, on_end: Callable[[], None]) -> None:
        super().__init__(limit=_BUFFER, loop=asyncio.get_running_loop())
        self.limits = limits
        self._on_end = on_end
        self._mark = uuid.uuid4().hex
        self.transport: asyncio.SubprocessTransport
        self.environment: Mapping[str, str] = {}
        self.stamps: Stamps = frozenset()
        self.fault: Fault | None = None
        self._incoming: MemoryObjectSendStream[SessionMessage | Exception]
        self.ended = self.responsive = self._stopping = False
        self._greeted = self._reads = False
        # Lines that are not the protocol: their number, and what may still come of them.
        self.received = self._noise = 0
        self._lines = allowed_messages()
        self._bytes = allowed_bytes(limits.message)
        self._quoted = list[bytes]()
        self._partial = bytearray()
        self._said = b""

    @property
    def last_words(self) -> str:
        """Returns the last eight lines of standard error; of consecutive indented lines, such as a stack, only two."""
        lines = [line.rstrip() for line in self._said.decode("utf-8", "replace").split("\n") if line.strip()]
        runs = (list(run) for _, run in groupby(lines, key=lambda line: line[0].isspace()))
        return "\n".join([line[-500:] for run in runs for line in (run[-2:] if run[0][0].isspace() else run)][-8:])

    @property
    def printed(self) -> str:
        """Returns the output that is not part of the protocol: its first lines, and the number of further ones."""
        rest = [] if self._greeted else [bytes(self._partial[:_LONGEST_QUOTE])]
        lines = [shown(line[:_LONGEST_QUOTE].decode("utf-8", "replace").strip()) for line in (*self._quoted, *rest)]
        more = f" (and {self._noise - len(self._quoted):,} more lines)" if self._noise > len(self._quoted) > 0 else ""
        return ", ".join(repr(line) for line in lines if line) + more

    @property
    def status(self) -> int | None:
        """Returns the exit status; None while the process runs."""
        return self.transport.get_returncode()

    @asynccontextmanager
    async def running(self, server: ServerConfig) -> AsyncIterator[Any]:
        """Starts the process and yields its streams of messages.

        When the block ends, the process is ended with all processes that it started.
        """
        self.environment = environment_of(server)
        command = server.command or ""
        environment = {**self.environment, _MARK: self._mark}
        # In a thread: it accesses the disk.
        program = await asyncio.to_thread(program_of, command, environment)
        self.stamps = await asyncio.to_thread(stamps_of, server, program)
        start = asyncio.get_running_loop().subprocess_exec
        terms: Any = {"env": environment, "cwd": server.cwd, "start_new_session": True}
        try:
            self.transport, _ = await start(lambda: self, program, *server.args, **terms)
        except (OSError, ValueError) as error:
            raise Fault("start", f"the command {command!r} cannot be run: {error}") from error
        self._incoming, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        send, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group, self._incoming, messages, send, outgoing:
            group.start_soon(self._read)
            group.start_soon(self._write, outgoing)
            try:
                yield messages, send
            finally:
                messages.close()
                with anyio.CancelScope(shield=True):
                    await self._stop()
                group.cancel_scope.cancel()

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """Keeps the last part of standard error, and passes on other output."""
        if fd == 2 and isinstance(data, bytes):
            self._said = (self._said + data)[-_TAIL:]
        else:
            super().pipe_data_received(fd, data)

    def process_exited(self) -> None:
        """Closes standard output after a short time, because a child of the server may keep it open."""
        super().process_exited()
        asyncio.get_running_loop().call_later(_HELD_OPEN, self._let_go)

    def _let_go(self) -> None:
        if self._reads and (output := self.transport.get_pipe_transport(1)):
            output.close()
        elif not (self.ended or self._stopping):  # there is more to be read
            asyncio.get_running_loop().call_later(_HELD_OPEN, self._let_go)

    async def _read(self) -> None:
        """Splits standard output into lines until it ends; drops what comes after the end of the session."""
        while self.stdout is not None:
            self._reads = True
            data = await self.stdout.read(_BUFFER)
            self._reads = False
            if not data:
                break
            if self.ended or self._stopping:
                continue
            *lines, rest = data.split(b"\n")
            for line in lines:
                whole = bytes(self._partial) + line
                self._partial = bytearray()
                await self._deliver(whole)
                await asyncio.sleep(0)  # other servers have their turn
            self._partial += rest
            if len(self._partial) > self.limits.message:
                self._end(Fault("too_large", f"it sent a message of more than {self.limits.message:,} bytes"))
        self._end()

    async def _deliver(self, line: bytes) -> None:
        if self.ended or self._stopping:
            return
        self.received += len(line)
        text = line.decode("utf-8", "replace")
        message = await asyncio.to_thread(parse_message, text) if len(line) > LARGE else parse_message(text)
        if message is None:
            self._count(line)
            return
        self._greeted = True
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._incoming.send(SessionMessage(message))

    def _count(self, line: bytes) -> None:
        """Counts a line that is not the protocol, and stores the first ones for the error message."""
        self._noise += 1
        if line.strip() and len(self._quoted) < _MOST_QUOTED:
            self._quoted.append(line[:_LONGEST_QUOTE])
        if not self._greeted and self._noise > _MOST_NOISE:
            said = f"it does not speak the protocol, it printed {self.printed}"
            self._end(Fault("protocol", said, effect="none"))
        elif not (self._lines.spend() and self._bytes.spend(len(line))):
            most = f"{self._lines}, or bytes than {self._bytes}"
            said = f"it printed more lines that are not the protocol than {most}, such as {self.printed}"
            self._end(Fault("protocol", said))

    def _end(self, fault: Fault | None = None) -> None:
        if not (self.ended or self._stopping):
            self.ended = True
            self.fault = fault
            self._incoming.close()
            self._on_end()

    async def _write(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async for item in outgoing:
            if self.stdin is not None:
                with suppress(OSError):  # the end of the process is seen by its output
                    self.stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await self.stdin.drain()

    async def _stop(self) -> None:
        """Ends the process and its family: closes its input, then SIGTERM, then SIGKILL."""
        self._stopping = True
        leader = self.transport.get_pid()
        ours = partial(family, leader, f"{_MARK}={self._mark}")
        # Processes that left the group and cleared their environment are found by their parents, while these live.
        members = ours({})
        if self.stdin is not None:
            self.stdin.close()
        if self.responsive:
            await self.settled(_GRACE)
        for number in (signal.SIGTERM, 9):
            members = ours(members)
            if not members:
                break
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, number)
            for pid in (pid for pid, process in members.items() if process.group != leader):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            with anyio.move_on_after(_KILL_AFTER):
                while ours(members):  # noqa: ASYNC110 (there is no event for their end)
                    await anyio.sleep(_POLL)
        await self.settled(_KILL_AFTER)
        self.transport.close()  # this kills it where processes cannot be listed

    def is_as_now(self, server: ServerConfig) -> bool:
        """Returns whether the server would be started in the same way now; reads the environment and the files."""
        environment = environment_of(server)
        try:
            program = program_of(server.command or "", environment)
        except Fault:
            return False
        return self.environment == environment and self.stamps == stamps_of(server, program)

    async def settled(self, seconds: float = _SETTLING) -> None:
        """Waits for the exit status and standard error, which arrive after the end of output."""
        with anyio.move_on_after(seconds):
            while self.status is None:  # noqa: ASYNC110 (asyncio's event waits for the pipes too)
                await anyio.sleep(_POLL)


class Process(NamedTuple):
    """A process of the system: its parent, its group, its start, and whether its environment has a mark."""

    parent: int
    group: int
    began: str
    marked: bool


def family(leader: int, mark: str, known: Mapping[int, Process]) -> dict[int, Process]:
    """Returns the living processes of a server by id; empty where processes cannot be listed.

    These are the group of the ``leader``, all processes with ``mark`` in their environment, those in ``known`` whose id
    was not reused, and all descendants.
    """
    running = _running(mark)
    members = {
        pid
        for pid, process in running.items()
        if leader in (pid, process.group) or process.marked or (pid in known and known[pid].began == process.began)
    }
    while more := {pid for pid, process in running.items() if process.parent in members} - members:
        members |= more
    return {pid: running[pid] for pid in members}


def _running(mark: str) -> dict[int, Process]:
    """Returns every process of this machine that has not ended."""
    running = {}
    for folder in _PROC.iterdir() if _PROC.is_dir() else ():
        with suppress(OSError, ValueError):
            pid = int(folder.name)
            state, parent, group, *rest = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if state not in "ZX":
                environment = ""
                with suppress(OSError):  # of another user
                    environment = (folder / "environ").read_text("utf-8", "replace")
                running[pid] = Process(int(parent), int(group), rest[16], mark in environment)
    return running or _listed(mark)


def _listed(mark: str) -> dict[int, Process]:
    running = {}
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(_LISTING, capture_output=True, timeout=5, check=False).stdout  # noqa: S603
        for line in listed.decode("utf-8", "replace").splitlines():
            pid, parent, group, state, *rest = line.split()
            if state[0] != "Z":
                running[int(pid)] = Process(int(parent), int(group), " ".join(rest[:5]), mark in rest)
    return running
