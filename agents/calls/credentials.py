"""A user's own values for headers, ``${user:NAME}``: where they come from in a run, and for whom they count."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from langgraph.config import get_config

from callsheet.graphs.catalog.formats.server_config import ServerConfig, own_values_in
from callsheet.graphs.errors import SettingsError

AUTH_USER = "langgraph_auth_user"
"""The key of ``configurable`` under which a LangGraph server puts the authenticated user; clients cannot set it."""
KEY = "credentials"
"""The key of ``configurable`` for a caller's own values by name.

Its value is a mapping, because LangGraph copies plain values of ``configurable`` into the metadata of checkpoints.
"""
_SALT = secrets.token_bytes(16)


def configurable_of_run() -> Mapping[str, object]:
    """Returns the ``configurable`` of the current run; empty outside of a run."""
    try:
        return get_config().get("configurable") or {}
    except RuntimeError:
        return {}


def field_of(user: object, name: str) -> object:
    """Returns a field of an authenticated user, which is an object or a mapping; None if there is none."""
    return user.get(name) if isinstance(user, Mapping) else getattr(user, name, None)


def is_authenticated(user: object) -> bool:
    """Returns whether a user of a LangGraph server has an identity; that of Studio with ``langgraph dev`` has none."""
    identity = field_of(user, "identity")
    return isinstance(identity, str) and bool(identity) and field_of(user, "is_authenticated") is not False


@dataclass(frozen=True, slots=True)
class Caller:
    """The user for whom calls of one server are made.

    Attributes:
        user: Id of the user; empty for an anonymous one.
        values: The values for the server's headers, by name.
        personal: Whether one of the values is the user's own, so that the answers of the server are for this user only.
    """

    user: str = ""
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    personal: bool = False

    @property
    def key(self) -> str:
        """Identifies the user in this process: by id, or an anonymous one by the own values; else empty."""
        if self.user or not self.personal:
            return self.user
        text = json.dumps(dict(self.values), sort_keys=True).encode()
        return f"\0{hashlib.sha256(_SALT + text).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The source of a user's own values: an authenticated user, the caller of a run, or the environment.

    Attributes:
        source: The user, or the mapping that a caller gave.
        user: Id of the user; empty for an anonymous one.
        where: The source for people, with ``{name}`` in it.
        environment: Whether values that the source does not have are read from the environment.
    """

    source: object = field(default_factory=dict, repr=False)
    user: str = ""
    where: str = "the environment variable {name}"
    environment: bool = True

    def of(self, server: ServerConfig, *, partial: bool = False) -> Caller:
        """Returns the caller of a server, with the values that its headers need.

        With ``partial``, those that there are: a header without its value is left out of the requests.

        Raises:
            SettingsError: A value is missing, or no header can hold it. The message has its name only.
        """
        values: dict[str, str] = {}
        personal = False
        for name, has_default in own_values_in(server).items():
            value = field_of(self.source, name)
            if value is not None:
                values[name] = _checked(name, value)
                personal = True
            elif self.environment and os.environ.get(name):
                values[name] = _checked(name, os.environ[name])
            elif not (partial or has_default):
                raise SettingsError(f"it needs a value of the user's own, {name!r}: set {self.where.format(name=name)}")
        return Caller(self.user, values, personal)


def credentials_of_run(user: str) -> Credentials:
    """Returns the source of the own values of a user in the current run.

    An authenticated user of a LangGraph server has the values that the server's authentication returned, and no others:
    a client cannot replace them. Any other caller gives them in ``configurable``; a program that serves nobody else
    also has those of its environment.
    """
    configurable = configurable_of_run()
    served = configurable.get(AUTH_USER)
    if is_authenticated(served):
        return Credentials(
            served, user, "the field {name!r} of the user that the server's authentication returns", False
        )
    given = configurable.get(KEY, {})
    if not isinstance(given, Mapping):
        raise SettingsError(f"configurable[{KEY!r}] must be a mapping of values by name")
    where = f"configurable[{KEY!r}][{{name!r}}]"
    alone = AUTH_USER not in configurable and not user
    if alone:
        where += ", or the environment variable {name}"
    return Credentials(configurable.get(KEY), user, where, environment=alone)


def _checked(name: str, value: object) -> str:
    """Returns a value that a header can hold; the error has no part of it."""
    if isinstance(value, str) and value and value.isascii() and value.isprintable():
        return value
    raise SettingsError(f"the user's own value {name!r} is not a text of printable ASCII characters")
