"""The base class of records from outside, with errors in plain words."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from callsheet.graphs.catalog.errors import CatalogError

Name = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


class Record(BaseModel):
    """Base class of frozen models for data from outside, validated on construction.

    Raises:
        CatalogError: A field is missing, unknown or of the wrong type; the message names each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise CatalogError(f"{type(self).__name__}: {_message_of(error)}") from error


def _message_of(error: ValidationError, most: int = 3) -> str:
    details, messages = error.errors(), []
    for detail in details[:most]:
        cause = detail.get("ctx", {}).get("error")
        where = ".".join(map(str, detail["loc"]))
        message = str(cause) if isinstance(cause, CatalogError) else detail["msg"]
        messages.append(": ".join(filter(None, (where, message))))
    if len(details) > most:
        messages.append(f"and {len(details) - most} more")
    return "; ".join(messages)
