"""Limits on time, size and number for every exchange with a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from callsheet.graphs.catalog.errors import SettingsError

_PREFIX = "CALLSHEET_LIMIT_"
_SHARED = frozenset(("calls", "starts", "failures", "pause", "warm"))


class Limits(BaseSettings):
    """Limits for exchanges with tools; each is a variable ``CALLSHEET_LIMIT_`` with its name in capitals.

    A server may have its own, ``"callsheet": {"limits": {"call": 120}}`` in its entry of an ``mcp.json``, except for
    the common ones: ``calls``, ``starts``, ``failures``, ``pause`` and ``warm``.

    Attributes:
        start: Seconds for a server to start and initialize.
        noise: Seconds for that after it printed something other than the protocol.
        list: Seconds for listing its tools.
        call: Seconds for one call.
        output: Characters of a result for a model; the rest is stored as a file.
        message: Maximum bytes of one message; a longer one ends the session.
        tools: Maximum tools of a server; a server with more is not used.
        calls: Maximum concurrent calls over all servers; further calls wait.
        server_calls: Maximum concurrent calls per server.
        starts: Maximum servers that are started at once.
        idle: Seconds without a call after which a session is closed.
        warm: Maximum servers that keep running after their run, for the next one of the same user; 0: none.
        failures: Consecutive failures after which a server is not called for a while.
        pause: Seconds of that pause.
        fresh: Seconds for which a server's last answer to ``tools/list`` is used to load a catalog, one day by default;
            0 asks it every time. It is asked again when a session with it opens, before any call.

    Raises:
        SettingsError: A value is not a number, or is out of range; the message names it.
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
    warm: int = Field(default=8, ge=0)
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
        """These limits with the values of one server or tool.

        Raises:
            SettingsError: A value is unknown or invalid, or is a common limit of all servers.
        """
        if shared := sorted(set(values) & _SHARED):
            raise SettingsError(
                f"limit {', '.join(map(repr, shared))} holds for all servers together: "
                f"set {', '.join(_PREFIX + name.upper() for name in shared)}"
            )
        return Limits(**{**self.model_dump(), **values}) if values else self
