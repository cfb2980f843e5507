"""What is taken for a secret, and how it is taken out."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from callsheet.agents.calls.outcome import Outcome
from callsheet.agents.safety.secrets import (
    LostSecretError,
    Redaction,
    RunSecrets,
    has_secrets,
    is_secret_name,
    of_server,
)
from callsheet.graphs import ServerConfig
from callsheet.graphs.text.credentials import masked, secrets_in
from callsheet.graphs.text.hidden import visible
from callsheet.graphs.text.unicode import clean

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "api_key": {"type": "string"},
        "pin": {"type": "integer", "writeOnly": True},
        "phrase": {"type": "string", "format": "password"},
        "text": {"type": "string"},
        "account": {"type": "object", "properties": {"password": {"type": "string"}, "name": {"type": "string"}}},
        "credentials": {"type": "object"},
        "logins": {"type": "array", "items": {"type": "object", "properties": {"token": {"type": "string"}}}},
    },
}


SECRET = """
    api_key apiKey X-API-Key APIKEY OPENAI_API_KEY password userPassword TOKEN auth_token client_secret Authorization
    private_key access_token_secret passphrase credentials DB_PASSWORD
"""
PLAIN = """
    key text max_tokens next_page_token pageToken token_count keyboard secretary passenger tokenize sort_key
    continuation_token primary_key
"""


@pytest.mark.parametrize(("names", "secret"), [(SECRET, True), (PLAIN, False)])
def test_an_argument_is_secret_by_its_name_or_schema(names: str, secret: bool) -> None:
    assert [name for name in names.split() if is_secret_name(name) is not secret] == []


def test_secret_arguments_become_placeholders_and_are_restored_for_the_call() -> None:
    run = RunSecrets()
    args = {
        "api_key": "sk-1",
        "pin": 4711,
        "phrase": "open sesame",
        "text": "sk-1",
        "account": {"password": "p4ss", "name": "ann"},
        "credentials": {"user": "ann", "code": "x9"},
        "logins": [{"token": "t1"}, {"token": "t2"}],
    }
    masked = run.masked(SCHEMA, args)
    assert masked["text"] == "sk-1"
    assert masked["account"]["name"] == "ann"
    assert "4711" not in str(masked)
    assert not {"open sesame", "p4ss", "x9", "t1", "t2"} & set(str(masked).split("'"))
    assert run.opened(SCHEMA, masked) == args
    assert run.masked(SCHEMA, masked) == masked
    assert run.masked(SCHEMA, args) == masked


def test_an_empty_argument_gets_no_placeholder() -> None:
    given = {"api_key": "", "pin": None, "phrase": True}
    assert RunSecrets().masked(SCHEMA, given) == given


def test_a_placeholder_of_another_run_is_refused() -> None:
    masked = RunSecrets().masked(SCHEMA, {"api_key": "sk-1"})
    with pytest.raises(LostSecretError, match="give it again"):
        RunSecrets().opened(SCHEMA, masked)


def test_the_outcome_of_a_call_has_no_secrets() -> None:
    run = RunSecrets()
    run.masked(SCHEMA, {"api_key": "sk-live-1234", "pin": 471147})
    encoded = base64.b64encode(b"sk-live-1234").decode()
    outcome = Outcome(
        text=f"key sk-live-1234 {encoded}", structured={"k": ["sk-live-1234", 471147]}, error="pin 471147"
    )
    hidden = run.outcome(outcome)
    assert (hidden.text, hidden.error) == ("key *** ***", "pin ***")
    assert hidden.structured == {"k": ["***", 471147]}


def test_secrets_are_removed_in_every_encoding() -> None:
    redaction = Redaction(['a"b/c d+e', "short"])
    assert redaction.text('a"b/c d+e a\\"b/c d+e a%22b%2Fc%20d%2Be a%22b%2Fc+d%2Be short') == "*** *** *** *** short"


def test_ordinary_values_of_an_environment_stay_in_results_and_not_in_errors() -> None:
    env = {
        "LEVEL": "WARNING",
        "DB": "/data/my files/app.db",
        "URL": "https://example.org/api",
        "DSN": "postgres://ann:geheim@db/x",
        "ID": "7f3a91c4d2e84b",
        "API_KEY": "plainword",
    }
    full = ServerConfig(command="x", env=env, args=("--token", "abcdef1", "--level=WARNING"))
    text = " | ".join([*env.values(), "abcdef1"])
    shown = of_server(full, []).text(text)
    assert shown == "WARNING | /data/my files/app.db | https://example.org/api | *** | *** | *** | ***"
    assert set(of_server(full, [], everything=True).text(text).split(" | ")) == {"***"}


def test_secrets_in_headers_and_addresses_are_removed() -> None:
    url = "https://ann:geheim@example.org/mcp?token=querytoken&page=2"
    full = ServerConfig(url=url, headers={"Authorization": "Bearer headertoken"}, transport="http")
    assert of_server(full, []).text("headertoken geheim querytoken page=2") == "*** *** *** page=2"


def test_a_schema_with_secret_arguments_is_recognised() -> None:
    assert has_secrets(SCHEMA)
    assert has_secrets({"properties": {"login": {"properties": {"password": {}}}}})
    assert not has_secrets({"properties": {"text": {}, "odd": True}})
    assert not has_secrets(None)


HIDDEN = [
    "hunter2\u200bsecret",
    "hunter2\ufe0fsecret",
    "h\ufe00unter2\ufe0f\u200csecret",
    "hunter2\x1b[31msecret",
    "\u202ehunter2secret",
    "hun\U000e0041ter2sec\u00adret",
    "hunter2\x07secret",
]


@pytest.mark.parametrize("said", HIDDEN)
def test_hidden_characters_hide_no_secret(said: str) -> None:
    """Wherever a text is shown later, its hidden characters are gone, and the secret would stand there."""
    redaction = Redaction(["hunter2secret"])
    assert visible(redaction.text(f"the key is {said}.")) == "the key is ***."
    value = redaction.value({"a": [said], "b": {said: 1}})
    assert clean(value, text=visible) == {"a": ["***"], "b": {"***": 1}}
    in_json = json.loads(redaction.text(json.dumps({"key": said, "name": "Zoë"})))
    assert {name: visible(text) for name, text in in_json.items()} == {"key": "***", "name": "Zoë"}
    assert redaction.text("no\u200bthing \\u200b") == "no\u200bthing \\u200b"
    assert redaction.text("2\ufe0f\u20e3 of them") == "2\ufe0f\u20e3 of them"
    run = RunSecrets()
    run.masked(SCHEMA, {"api_key": "hunter2secret"})
    outcome = run.outcome(Outcome(text=said, structured={"x": said}, error=said))
    assert [visible(outcome.text), visible(outcome.error), clean(outcome.structured, text=visible)] == [
        "***", "***", {"x": "***"},
    ]  # fmt: skip


def test_hidden_characters_in_a_name_or_an_address_hide_no_secret() -> None:
    assert masked(["--api-\u200bkey", "k1", "pass\u00adword=abc", "https://u:p\u200bw@h/", "plain\u200b"]) == [
        "--api-\u200bkey", "***", "password=***", "https://u:***@h/", "plain\u200b",
    ]  # fmt: skip
    assert is_secret_name("api_\u200bkey")
    assert secrets_in(["--api-\u200bkey", "k1"]) == {"k1"}
    assert "pw" in secrets_in(["https://u:p\u200bw@h/"])
