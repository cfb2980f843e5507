"""Who asks, and whose threads are whose; what each may see and call is in ``policy.json``.

The tokens come from ``AUTH_TOKENS``, JSON of token -> user. Take what your identity provider gives in their place.
"""

import json
import os
from hmac import compare_digest
from typing import Any

from langgraph_sdk import Auth

auth = Auth()
TOKENS: dict[str, dict[str, Any]] = json.loads(os.environ.get("AUTH_TOKENS") or "{}")


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """The user of a bearer token; ``groups`` are those of the policy."""
    given = (authorization or "").removeprefix("Bearer ").encode()
    for token, user in TOKENS.items():
        if compare_digest(token.encode(), given):
            return {"identity": user["id"], "groups": user.get("groups", [])}  # type: ignore[typeddict-unknown-key]
    raise Auth.exceptions.HTTPException(status_code=401, detail="no user has this token")


@auth.on
async def nothing_else(ctx: Auth.types.AuthContext, value: Any) -> bool:
    """What is not allowed below is not allowed."""
    return False


@auth.on.assistants.read
@auth.on.assistants.search
async def all_assistants(ctx: Auth.types.AuthContext, value: Any) -> bool:
    """Everybody may use the graphs."""
    return True


@auth.on.threads
async def own_threads(ctx: Auth.types.AuthContext, value: Any) -> Auth.types.FilterType:
    """A thread belongs to whoever began it."""
    owner = {"owner": ctx.user.identity}
    value.setdefault("metadata", {}).update(owner)
    return owner


@auth.on.store
async def own_things(ctx: Auth.types.AuthContext, value: Any) -> None:
    """Everybody has a store of their own."""
    value["namespace"] = (ctx.user.identity, *(value.get("namespace") or ()))
