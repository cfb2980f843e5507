"""The current user, from the server's authentication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config

from callsheet.graphs import User

_USER, _PERMISSIONS = "langgraph_auth_user", "langgraph_auth_permissions"


def caller() -> User:
    """The user of the current run; an anonymous ``User`` without authentication.

    The server sets ``configurable["langgraph_auth_user"]``, which clients cannot.
    """
    configurable = _configurable()
    return user_of(configurable.get(_USER), configurable.get(_PERMISSIONS))


def anonymous_client() -> bool:
    """Whether an unauthenticated client of a LangGraph server started the current run.

    False in a program that uses the library: only the server sets a user, possibly an anonymous one, and a client
    cannot remove it. With ``langgraph dev`` anybody can pose as Studio, so Studio's user is anonymous.
    """
    configurable = _configurable()
    if _USER not in configurable:
        return False
    user = configurable[_USER]
    return not user_of(user).id or _field(user, "is_authenticated") is False


def _configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable") or {}
    except RuntimeError:  # outside of a run
        return {}


def user_of(user: object, permissions: object = ()) -> User:
    """The user that an authentication returned; an anonymous ``User`` without an identity.

    Args:
        user: An object or a mapping with ``identity``, and optionally ``groups`` and ``permissions``; both are groups.
        permissions: More groups.
    """
    identity = _field(user, "identity")
    if not isinstance(identity, str) or not identity:
        return User()
    groups = {*_names(_field(user, "groups")), *_names(_field(user, "permissions"))}
    return User(identity, frozenset(groups | _names(permissions)))


def _field(user: object, name: str) -> object:
    return user.get(name) if isinstance(user, Mapping) else getattr(user, name, None)


def _names(value: object) -> set[str]:
    return (
        {item for item in value if isinstance(item, str)}
        if isinstance(value, list | tuple | set | frozenset)
        else set()
    )
