"""Who asks, as the server's authentication says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config

from callsheet.graphs import User

_USER, _PERMISSIONS = "langgraph_auth_user", "langgraph_auth_permissions"


def caller() -> User:
    """The user of the current run; nobody in particular where nobody was authenticated.

    The server puts the user where a client cannot (``configurable["langgraph_auth_user"]``).
    """
    try:
        configurable: Mapping[str, Any] = get_config().get("configurable") or {}
    except RuntimeError:  # outside of any run
        return User()
    return user_of(configurable.get(_USER), configurable.get(_PERMISSIONS))


def anonymous_client() -> bool:
    """Whether a client of a LangGraph server asked for the current run without saying who it is.

    False in a program of one's own: the server puts its word on the user there, be it that there is none, and a client
    cannot take it away. On ``langgraph dev`` anybody can pass for Studio, so Studio's user is nobody.
    """
    try:
        configurable: Mapping[str, Any] = get_config().get("configurable") or {}
    except RuntimeError:
        return False
    if _USER not in configurable:
        return False
    user = configurable[_USER]
    return not user_of(user).id or _field(user, "is_authenticated") is False


def user_of(user: object, permissions: object = ()) -> User:
    """A user as an authentication gives one; nobody in particular for one without identity.

    Args:
        user: An object or a mapping with ``identity``, and perhaps ``groups`` and ``permissions``; both are groups.
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
