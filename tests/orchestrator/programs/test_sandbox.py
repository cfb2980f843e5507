"""The sandbox alone: a program that calls, is stored, and goes on."""

from __future__ import annotations

from callsheet.agents.programs import Pause, Sandbox

SANDBOX = Sandbox(("look_up",), "given: str\ndef look_up(*, word: str) -> object: ...")
LONE = "a \ud800 b"
"""A text that no encoding takes."""


async def test_texts_that_cannot_be_encoded_end_no_program() -> None:
    at = await SANDBOX.start(
        "try:\n    look_up(word=given)\nexcept RuntimeError as error:\n    print(error)", {"given": LONE}
    )
    assert at.args == {"word": "a ? b"}
    done = await SANDBOX.proceed(at.snapshot, {"exc_type": "RuntimeError", "message": LONE})
    assert done == Pause("a ? b\n")
