"""Prints the modules that one command passes through, in the order of their first call.

The tables in docs/concepts/architecture.md come from it:
``python tests/support/requests/module_sequence.py ask "Convert 3 miles to kilometres" --catalog mcp.json``
"""

from __future__ import annotations

import inspect
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from callsheet.orchestrator.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("graphs", "retrievers", "agents", "orchestrator")


class Recorder:
    """A profile function that records the modules of this project; the body of a class or a module is not a call."""

    def __init__(self) -> None:
        self.functions: dict[str, list[str]] = {}
        self._files: dict[str, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & inspect.CO_OPTIMIZED or _importing(frame):
            return
        module = self._files.get(code.co_filename)
        if module is None:
            module = self._files[code.co_filename] = _module(code.co_filename)
        if module:
            called = self.functions.setdefault(module, [])
            if code.co_name not in called:
                called.append(code.co_name)


def _module(filename: str) -> str:
    path = Path(filename).resolve()
    within = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path()
    return str(within) if within.parts[:1] and within.parts[0] in ROOMS else ""


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "_call_with_frames_removed":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    recorder = Recorder()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        main(sys.argv[1:])
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        for number, (module, functions) in enumerate(recorder.functions.items(), 1):
            sys.stderr.write(f"{number:3} {module}: {', '.join(functions)}\n")
