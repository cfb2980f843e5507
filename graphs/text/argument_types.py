"""Checks of the arguments of public functions."""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.graphs.catalog.errors import SettingsError


def check_type(value: object, kind: type, name: str) -> None:
    """Refuses an argument that is neither None nor of its type.

    Raises:
        SettingsError: It has another type; the message names the argument and both types.
    """
    if not isinstance(value, kind | None):
        raise SettingsError(f"{name} must be {kind.__name__}(...), not {type(value).__name__}")


def listed(texts: str | Iterable[str]) -> tuple[str, ...]:
    """The texts; a single text counts as one, not as its characters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)
