"""Who asks, as the server's authentication says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config

from callsheet.graphs import User

_USER, _PERMISSIONS = "langgraph_auth_user", "langgraph_auth_permissions"


def caller() -> User:
    """The user of the current run; nobody in particular where nobody was authenticated.

    The server puts the user where a client cannot (``configurable["langgraph_auth_user"]``). Groups are what the
    authentication gives as the user's ``groups`` or ``permissions``.
    """
    try:
        configurable: Mapping[str, Any] = get_config().get("configurable") or {}
    except RuntimeError:  # outside of any run
        return User()
    user = configurable.get(_USER)
    groups = {*_names(_field(user, "groups")), *_names(_field(user, "permissions"))}
    identity = _field(user, "identity")
    if not isinstance(identity, str) or not identity:
        return User()
    return User(identity, frozenset(groups | _names(configurable.get(_PERMISSIONS))))


def _field(user: object, name: str) -> object:
    return user.get(name) if isinstance(user, Mapping) else getattr(user, name, None)


def _names(value: object) -> set[str]:
    return (
        {item for item in value if isinstance(item, str)}
        if isinstance(value, list | tuple | set | frozenset)
        else set()
    )
