"""Whether arguments fit a tool's schema, said so that a model can mend them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MOST_SAID, _LONGEST = 3, 300


def misfit(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What does not fit; empty if all does, or if the schema itself cannot be used.

    Args:
        schema: JSON Schema of an object; what it refers to elsewhere is never fetched.
        arguments: What is to be sent.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator = validator_for(schema, default=Draft202012Validator)
    try:
        validator.check_schema(dict(schema))
        errors = sorted(validator(schema, registry=Registry()).iter_errors(dict(arguments)), key=str)
    # A schema that is broken must not keep its tool from being called.
    except (SchemaError, Unresolvable, RecursionError, re.error, TypeError, ValueError, AttributeError):
        return ""
    if not errors:
        return ""
    said = [_in_words(error) for error in errors[:_MOST_SAID]]
    more = f"; and {len(errors) - _MOST_SAID} more" if len(errors) > _MOST_SAID else ""
    return f"the arguments do not fit: {'; '.join(said)}{more}. Nothing was sent: correct them and call again"


def _in_words(error: Any) -> str:
    where = ".".join(map(str, error.absolute_path))
    text = error.message if len(error.message) <= _LONGEST else f"{error.message[:_LONGEST]}…"
    return f"{where}: {text}" if where else str(text)
