"""Programs in processes of their own that need not import Callsheet again: each is forked from one that has.

A fresh start takes a second and a half of processor time, nearly all of it for imports. What a start or an end itself
promises is tested with ``subprocess``: here nothing runs that a program leaves to ``atexit``.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing import reduction
from pathlib import Path
from typing import Any

from remembered_passes import REMEMBERED, remembered

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([
    "callsheet.orchestrator.cli.main",
    "callsheet.orchestrator.run.process.process_state",
    "callsheet.orchestrator.supervisor",
    "callsheet.agents.servers.session_pool",
    "langgraph.checkpoint.sqlite.aio",
    "mcp",
    "langgraph.store.postgres",
    "remembered_passes",
])  # fmt: skip


class Forked:
    """What ``subprocess.Popen`` is, as far as tests need it; pipes are of text.

    Args:
        words: ``-c`` and a program, or ``-m`` and a module, and then its arguments.
        cwd: Where it works.
        env: Its environment; without one, that of the tests.
        streams: ``stdin``, ``stdout`` and ``stderr``: ``subprocess.PIPE``, ``subprocess.DEVNULL`` or a descriptor.
    """

    def __init__(
        self, words: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, **streams: int
    ) -> None:
        self.stdin, self.stdout, self.stderr = None, None, None
        theirs, close = [], list[int]()
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            match streams.get(name):
                case None:
                    theirs.append(number)
                    continue
                case subprocess.DEVNULL:
                    theirs.append(os.open(os.devnull, os.O_RDWR))
                case subprocess.PIPE:
                    ends = os.pipe()
                    theirs.append(ends[bool(number)])
                    setattr(self, name, open(ends[not number], "r" if number else "w", encoding="utf-8"))  # noqa: PTH123, SIM115
                case descriptor:
                    theirs.append(descriptor)
                    continue
            close.append(theirs[-1])
        environment = dict(os.environ if env is None else env)
        given = (list(words), str(cwd or Path.cwd()), environment, list(map(_Stream, theirs)), REMEMBERED[-1:])
        self._process = _CONTEXT.Process(target=_run, args=given, daemon=True)
        self._process.start()
        for descriptor in close:
            os.close(descriptor)
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status, or the number of the signal that ended it, below zero; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """As ``returncode``."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a forked program", timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal to it, if it runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self) -> tuple[str, str]:
        """What it says until it has ended, on standard output and on standard error."""
        if self.stdin is not None:
            self.stdin.close()
        with ThreadPoolExecutor(2) as threads:
            out, err = threads.map(_rest, (self.stdout, self.stderr))
        self.wait()
        return out, err


def run_forked(
    words: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; what ``subprocess.run`` gives."""
    pipe = subprocess.PIPE
    process = Forked(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    out, err = process.communicate()
    return subprocess.CompletedProcess(words, process.wait(), out, err)


class _Stream:
    """A descriptor, which goes along to the process."""

    def __init__(self, number: Any) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _Stream, (reduction.DupFd(self.number),)


def _rest(stream: io.TextIOWrapper | None) -> str:
    if stream is None:
        return ""
    with stream:
        return stream.read()


def _run(words: list[str], cwd: str, env: dict[str, str], streams: list[_Stream], passes: list[Path]) -> None:
    """In the new process."""
    for number, stream in enumerate(streams):
        os.dup2(stream.number.detach(), number)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    how, what, *arguments = words
    sys.path.insert(0, cwd)
    sys.argv = [how, *arguments]
    with ExitStack() as stack:
        for folder in passes:
            stack.enter_context(remembered(folder))
        if how == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<program>", "exec"), {"__name__": "__main__"})
