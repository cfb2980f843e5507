"""Images, sounds and files of results: content blocks for models that take them, otherwise notes; never base64 text."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import CallsheetTools, Settings, create_supervisor
from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.tool_result import KeptResults, outcome_of
from callsheet.agents.work.media import readable, with_media
from scripted_model import ScriptedModel, calls

PNG, PDF, WAV = b"\x89PNG\r\n\x1a\n" + bytes(range(200)), b"%PDF-1.7\n" + b"x" * 200, b"RIFF\xe0\0\0\0WAVE" + b"x" * 200
THREAD: Any = {"configurable": {"thread_id": "1"}}
SEES = {"image_inputs": True, "image_tool_message": True}


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def painter(content: bytes = PNG, media: str = "image/png", kind: str = "image") -> dict[str, list[Any]]:
    @tool
    def paint(what: str) -> list[dict[str, str]]:
        """Paints a picture of something."""
        return [{"type": "text", "text": what}, {"type": kind, "base64": encoded(content), "mime_type": media}]

    paint.metadata = {"callsheet/approval": "never"}
    return {"works": [paint]}


def supervisor(agents: Any, model: ScriptedModel, saver: Any) -> Any:
    settings = Settings(planning="none", tool_floor=0)
    return create_supervisor(agents, worker_model=model, settings=settings).compile(checkpointer=saver)


def middleware(agents: Any, model: ScriptedModel, saver: Any) -> Any:
    return create_agent(model, middleware=[CallsheetTools(agents)], checkpointer=saver)


APPS = pytest.mark.parametrize("made", [supervisor, middleware])
PAINT = calls("works_paint", what="a cat")


def ask(app: Any) -> Any:
    return app.invoke({"messages": [HumanMessage("paint a picture of a cat")]}, THREAD)


def painted(model: ScriptedModel, turn: int = 1) -> ToolMessage:
    """The result of the first call, as the model saw it at a turn."""
    return next(message for message in model.shown[turn]["messages"] if isinstance(message, ToolMessage))


@APPS
def test_a_model_that_takes_images_gets_one_as_a_content_block(made: Any) -> None:
    model, saver = ScriptedModel(replies=[PAINT, AIMessage("A cat.")], profile=SEES), InMemorySaver()
    ask(made(painter(), model, saver))
    text, picture = painted(model).content
    assert text["text"].startswith("a cat\n[image image/png, 208 bytes: ")
    assert picture == {"type": "image", "base64": encoded(PNG), "mime_type": "image/png"}
    assert encoded(PNG) not in str(list(saver.list(THREAD)))  # the file has it


@APPS
@pytest.mark.parametrize("profile", [None, {}, {"image_inputs": False}, {**SEES, "image_tool_message": False}])
def test_another_model_gets_a_note_with_the_path_of_the_file(made: Any, profile: Any) -> None:
    model = ScriptedModel(replies=[PAINT, AIMessage("A cat.")], profile=profile)
    ask(made(painter(), model, InMemorySaver()))
    told = painted(model).content
    assert isinstance(told, str)
    assert encoded(PNG) not in told
    path = Path(told.split("bytes: ")[1].split("]")[0])
    assert path.read_bytes() == PNG


@pytest.mark.parametrize(
    ("content", "media", "profile", "block"),
    [
        (PDF, "application/pdf", {"pdf_inputs": True}, {"type": "file", "mime_type": "application/pdf"}),
        (WAV, "audio/x-wav", {"audio_inputs": True}, {"type": "audio", "mime_type": "audio/wav"}),
        (PNG, "image/jpeg", SEES, {"type": "image", "mime_type": "image/png"}),
        (b"no picture at all", "image/png", SEES, None),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", SEES, None),
        (PDF, "application/pdf", SEES, None),
    ],
)
def test_the_type_of_a_medium_is_read_from_its_bytes(content: bytes, media: str, profile: Any, block: Any) -> None:
    model = ScriptedModel(replies=[PAINT, AIMessage("A cat.")], profile=profile)
    ask(supervisor(painter(content, media, "file"), model, None))
    told = painted(model).content
    shown = None if isinstance(told, str) else {key: told[1][key] for key in ("type", "mime_type")}
    assert shown == block


def test_the_person_gets_the_path_and_the_picture_stays_in_the_prefix() -> None:
    dog = AIMessage("", tool_calls=[{"name": "works_paint", "args": {"what": "a dog"}, "id": "dog"}])
    replies = [PAINT, dog, AIMessage("Both.")]
    model = ScriptedModel(replies=replies, profile=SEES)
    state = ask(supervisor(painter(), model, None))
    assert painted(model, 1) == painted(model, 2)
    (first, _) = state["results"]["1"]["calls"]
    assert [Path(file).read_bytes() for file in first["files"]] == [PNG]


def test_a_picture_whose_file_is_gone_is_a_note() -> None:
    gone = {"tool": "works/paint", "media": [{"path": "/nowhere/cat.png", "media": "image/png", "size": 8}]}
    message = ToolMessage("[image image/png, 8 bytes]", tool_call_id="1", artifact=gone)
    assert with_media([message], ScriptedModel(profile=SEES)) == [message]


class RefusedError(Exception):
    status_code = 400


def test_a_picture_that_the_provider_refuses_does_not_end_the_work() -> None:
    def choosy(messages: list[BaseMessage]) -> Any:
        return RefusedError("image too large") if isinstance(messages[-1].content, list) else AIMessage("A cat.")

    model = ScriptedModel(replies=[PAINT, choosy], profile=SEES)
    state = ask(supervisor(painter(), model, None))
    assert state["results"]["1"]["result"] == "A cat."


def test_an_answer_of_the_agents_own_tool_stays_as_it_is() -> None:
    own = ToolMessage(encoded(PNG), tool_call_id="1", artifact={"media": "a magazine"})
    assert with_media([own], ScriptedModel(profile=SEES)) == [own]


# ------------------------------------------------------------------------------------------------- never base64 text


@pytest.mark.parametrize(
    ("structured", "text"),
    [
        ({"result": encoded(PNG)}, "a cat"),
        ({"picture": {"type": "image", "data": encoded(PNG), "mimeType": "image/png"}}, "a cat"),
        ({"url": f"data:image/png;base64,{encoded(PNG)}"}, "a cat"),
        ({"name": "cat"}, json.dumps({"picture": encoded(PNG)})),
    ],
)
def test_structured_content_that_repeats_a_picture_is_a_note(tmp_path: Path, structured: Any, text: str) -> None:
    picture = {"type": "image", "data": encoded(PNG), "mimeType": "image/png"}
    result = {"content": [{"type": "text", "text": text}, picture], "structuredContent": structured}
    outcome = outcome_of("works", "paint", result, Limits(), KeptResults(tmp_path).of("run", "works", "paint"))
    assert encoded(PNG) not in f"{outcome.text}{outcome.structured}"
    assert [Path(file.path).read_bytes() for file in outcome.media] == [PNG]
    assert outcome.media[0].path in outcome.text


def test_a_picture_in_the_structured_result_alone_is_stored(tmp_path: Path) -> None:
    result = {"content": [], "structuredContent": {"blob": encoded(PDF), "mimeType": "application/pdf"}}
    outcome = outcome_of("works", "print", result, Limits(), KeptResults(tmp_path).of("run", "works", "print"))
    assert [Path(file.path).read_bytes() for file in outcome.media] == [PDF]
    assert "[resource application/pdf, 209 bytes: " in outcome.text


@pytest.mark.parametrize("wrapped", ["{}", "data:image/png;base64,{}", '{{"png": "{}"}}'])
def test_base64_that_a_tool_gives_as_text_is_a_note_for_the_model_and_whole_for_a_reference(wrapped: str) -> None:
    text, sent = wrapped.format(encoded(PNG)), list[str]()

    @tool
    def draw_code(what: str) -> str:
        """Draws a code for something."""
        return text

    @tool
    def send_code(code: str) -> str:
        """Sends a code."""
        sent.append(code)
        return "sent"

    for made in (draw_code, send_code):
        made.metadata = {"callsheet/approval": "never"}
    send = calls("works_send_code", code={"$call": "c1", "path": "png"} if "{{" in wrapped else {"$call": "c1"})
    model = ScriptedModel(replies=[calls("works_draw_code", what="x"), send, AIMessage("Sent.")])
    ask(supervisor({"works": [draw_code, send_code]}, model, None))
    assert encoded(PNG)[:40] not in painted(model).text
    assert "[image/png, 208 bytes as base64" in painted(model).text
    assert [code.rpartition(",")[2] for code in sent] == [encoded(PNG)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\\n", "\\r\\n"])
def test_base64_in_lines_or_in_the_alphabet_of_addresses_is_one_note(line_end: str) -> None:
    lines = line_end.join(re.findall(".{1,76}", encoded(PNG)))
    told = readable(f'{{"png": "{lines}", "next": "page 2"}}')
    assert told == '{"png": "[image/png, 208 bytes as base64, which a reference passes on]", "next": "page 2"}'
    safe = base64.urlsafe_b64encode(b"\xff\xd8\xff\xe0" + b"\xfb\xef\xff" * 100).decode()
    assert readable(f"see {safe} there").startswith("see [image/jpeg, 304 bytes as base64")


@pytest.mark.parametrize(
    "text", ["iVBORw0KGgo", "a" * 500, "https://example.org/" + "path/" * 60, encoded(b"text" * 99)]
)
def test_long_words_that_are_not_base64_stay_text(text: str) -> None:
    assert readable(text) == text
