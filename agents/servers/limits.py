"""How long, how large and how many: the bounds of every exchange with a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from callsheet.graphs.catalog.errors import SettingsError

_PREFIX = "CALLSHEET_LIMIT_"
_SHARED = frozenset(("calls", "starts", "failures", "pause"))


class Limits(BaseSettings):
    """Bounds of exchanges with tools; each is a variable ``CALLSHEET_LIMIT_`` with its name in capitals.

    A server may have its own, ``"callsheet": {"limits": {"call": 120}}`` in its entry of an ``mcp.json``, but for
    those that hold for all together: ``calls``, ``starts``, ``failures`` and ``pause``.

    Attributes:
        start: Seconds for a server to start and greet.
        noise: Seconds for that after it printed something that is not the protocol; a server that speaks it may do so.
        list: Seconds for it to list its tools.
        call: Seconds for one call.
        output: Characters of a result that a model sees; the rest is kept as a file.
        message: Bytes that are read of one message; a longer one ends the session.
        tools: Tools that a server may list; one that lists more is not used.
        calls: Calls under way at once, over all servers; more wait for their turn.
        server_calls: Calls under way at once with one server.
        starts: Servers that are started at once when a fleet is listed.
        idle: Seconds without a call after which a session is closed.
        failures: Failures in a row after which a server is not called for a while.
        pause: Seconds that it is not called then.
        fresh: Seconds for which a server's last answer to ``tools/list`` is good enough to read a catalog by, so that
            it is not started for that, one day by default; 0 asks it every time. It is asked again when a session with
            it opens, before anything is called.

    Raises:
        SettingsError: A value is not a number, or cannot work; the message names it.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True)

    start: float = Field(default=60.0, gt=0)
    noise: float = Field(default=5.0, gt=0)
    list: float = Field(default=15.0, gt=0)
    call: float = Field(default=60.0, gt=0)
    output: int = Field(default=256_000, ge=100)
    message: int = Field(default=5_000_000, ge=10_000)
    tools: int = Field(default=10_000, ge=1)
    calls: int = Field(default=64, ge=1)
    server_calls: int = Field(default=8, ge=1)
    starts: int = Field(default=32, ge=1)
    idle: float = Field(default=300.0, gt=0)
    failures: int = Field(default=3, ge=1)
    pause: float = Field(default=60.0, ge=0)
    fresh: float = Field(default=86_400.0, ge=0)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            raise SettingsError(
                f"limit {name!r} ({_PREFIX}{name.upper()}): {first['msg']}, not {first['input']!r}"
            ) from error

    def own(self, values: Mapping[str, float]) -> Limits:
        """The same with what one server, or one tool, has in their place.

        Raises:
            SettingsError: One of them is unknown, cannot work, or holds for all servers together.
        """
        if shared := sorted(set(values) & _SHARED):
            raise SettingsError(
                f"limit {', '.join(map(repr, shared))} holds for all servers together: "
                f"set {', '.join(_PREFIX + name.upper() for name in shared)}"
            )
        return self.changed(values)

    def changed(self, values: Mapping[str, float]) -> Limits:
        """The same with these.

        Raises:
            SettingsError: One of them is unknown or cannot work.
        """
        return Limits(**{**self.model_dump(), **values}) if values else self
