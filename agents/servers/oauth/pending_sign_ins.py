"""Sign-ins that wait for a person, where all processes of a deployment find them: encrypted, and for ten minutes.

The parameter ``state`` names the file, which is one per server and user, and then one sign-in in it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping

from mcp.shared.auth import OAuthClientInformationFull
from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from callsheet.agents.servers.oauth.authorization import Authorization, begin, redeem
from callsheet.agents.servers.oauth.encryption import decrypted, encrypted
from callsheet.agents.servers.oauth.stored_tokens import SignInError, StoredTokens, Tokens, file_digest
from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.storage import StoredFile, state_file

LASTS = 600.0
"""Seconds for which a person can sign in."""
_AGAIN = 120.0
"""Seconds that an address must still be good for to be given once more."""
_MOST, _GUESSES, _CODE, _LETTERS = 20, 5, 8, "BCDFGHJKLMNPQRSTVWXZ"
_DIGEST = re.compile(r"[0-9a-f]{32}")


class PendingSignIn(BaseModel):
    """A sign-in that waits for a person.

    Attributes:
        run: The run that waits for it; empty for none.
        expires: When it is dropped, in seconds since 1970.
        confirmed: Whether the user must repeat a code, which the page shows after the sign-in.
        used: Whether the answer of the authorization server has come.
        problem: Why it has failed; empty if it has not.
        step_up: The scopes of a sign-in that asks for more than the one before; empty for others.
        code: The code to repeat; empty before there are tokens.
        guesses: Wrong codes so far.
    """

    model_config = ConfigDict(frozen=True)

    authorization: Authorization
    run: str
    expires: float
    confirmed: bool
    step_up: str = ""
    used: bool = False
    problem: str = ""
    tokens: Tokens | None = None
    code: str = ""
    guesses: int = 0

    @property
    def state(self) -> str:
        """Names it."""
        return self.authorization.state


class _Pending(RootModel[list[PendingSignIn]]):
    """Those of one server and user."""


async def begin_sign_in(
    server: str,
    redirect: str,
    *,
    user: str = "",
    run: str = "",
    confirmed: bool = False,
    client: OAuthClientInformationFull | None = None,
    scope: str | None = None,
    seconds: float = LASTS,
) -> PendingSignIn:
    """Begins a sign-in, or finds the one of this run that waits already.

    Args:
        server: Address of the server.
        redirect: Where the answer of the authorization server is to come.
        user: Who is to sign in.
        run: The run that waits for it.
        confirmed: Whether the user must repeat the code that the page shows.
        client: As in ``begin``.
        scope: As in ``begin``, but None adds what the server has found missing since the sign-in before.
        seconds: How long it waits.

    Raises:
        SignInError: As in ``begin``.
        SettingsError: There is no key to encrypt it.
        OSError: It cannot be stored.
    """
    encrypted(b"")  # without a key, nobody need sign in
    step_up = await asyncio.to_thread(_step_up, server, user)
    waiting = await asyncio.to_thread(_waiting, server, redirect, user, run) if run else None
    if waiting is not None and waiting.step_up == step_up:
        return waiting
    state = f"{file_digest(server, user)}.{secrets.token_urlsafe(32)}"
    begun = await begin(server, redirect, state, user=user, client=client, scope=scope or step_up or None)
    new = PendingSignIn(
        authorization=begun, run=run, expires=time.time() + seconds, confirmed=confirmed, step_up=step_up
    )
    await asyncio.to_thread(_changed, new.state, lambda known: new)
    return new


def pending(state: str) -> PendingSignIn | None:
    """The sign-in of this name; None if it is done, or was dropped.

    Raises:
        SettingsError: It cannot be decrypted.
        OSError: It cannot be read.
    """
    return next((one for one in _read(_file(state)) if secrets.compare_digest(one.state, state)), None)


def take_answer(answer: Mapping[str, str]) -> PendingSignIn:
    """Takes the answer of the authorization server, once.

    Returns:
        The sign-in: with a ``problem``; with the ``code`` that the user must repeat; or else done, its tokens stored.

    Raises:
        SignInError: Nobody waits for this answer (any more).
        SettingsError: There is no key, or another one.
        OSError: It cannot be stored.
    """
    state = answer.get("state", "")
    before = _changed(state, lambda known: known and known.model_copy(update={"used": True}))
    if before is None or before.used:
        raise SignInError("no sign-in waits for this answer: it was already given, or it is too late")
    try:
        tokens = redeem(before.authorization, answer)
    except SignInError as error:
        after = before.model_copy(update={"used": True, "problem": str(error)})
    else:
        if before.confirmed:
            code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE))
            after = before.model_copy(update={"used": True, "tokens": tokens, "code": code})
        else:
            StoredTokens(tokens.server, tokens.user).write(tokens)
            _changed(state, lambda known: None)
            return before
    _changed(state, lambda known: known and after)
    return after


def confirm(state: str, *, user: str, run: str, code: str) -> None:
    """Stores the tokens of a sign-in whose user has repeated its code.

    Raises:
        SignInError: The user, the run or the code is another; after five wrong codes, the tokens are dropped.
        SettingsError: There is no key, or another one.
        OSError: They cannot be stored.
    """
    given = re.sub(r"[^A-Z]", "", code.upper())

    def checked(known: PendingSignIn | None) -> PendingSignIn | None:
        if known is None or _fits(known, user, run, given):
            return None
        return known.model_copy(update={"guesses": known.guesses + 1}) if known.guesses + 1 < _GUESSES else None

    before = _changed(state, checked)
    if before is None or not _fits(before, user, run, given) or before.tokens is None:
        raise SignInError("the code is not the one that the page shows after the sign-in")
    StoredTokens(before.authorization.server, user).write(before.tokens)


def _fits(known: PendingSignIn, user: str, run: str, code: str) -> bool:
    right = bool(known.code) and secrets.compare_digest(known.code, code)
    return right and (known.authorization.user, known.run) == (user, run)


def _step_up(server: str, user: str) -> str:
    try:
        before = StoredTokens(server, user).read()
    except SettingsError:  # the sign-in replaces what cannot be read
        before = None
    return (before and before.step_up) or ""


def _waiting(server: str, redirect: str, user: str, run: str) -> PendingSignIn | None:
    """The sign-in of a run that has waited for a short time only, or whose code is to be repeated."""
    until = time.time() + _AGAIN
    waiting = (
        one for one in _read(_file(file_digest(server, user))) if (one.code or not one.used) and one.expires > until
    )
    return next((one for one in waiting if (one.run, one.authorization.redirect) == (run, redirect)), None)


def _changed(state: str, change: Callable[[PendingSignIn | None], PendingSignIn | None]) -> PendingSignIn | None:
    """Replaces a sign-in, or drops it where ``change`` gives None; those that have expired are dropped.

    Returns:
        The sign-in as it was before.
    """
    file = _file(state)
    with file.locked():
        known = _read(file)
        before = next((one for one in known if secrets.compare_digest(one.state, state)), None)
        after, others = change(before), [one for one in known if one is not before]
        left = [*others, after][-_MOST:] if after else others
        if left:
            file.replace(encrypted(_Pending(left).model_dump_json().encode()))
        else:
            file.remove()
        return before


def _read(file: StoredFile) -> list[PendingSignIn]:
    try:
        known = _Pending.model_validate_json(decrypted(file.read())).root
    except FileNotFoundError:
        return []
    except ValidationError:
        return []  # of another version: they are begun again
    return [one for one in known if one.expires > time.time()]


def _file(state: str) -> StoredFile:
    """The file that a state names.

    Raises:
        SignInError: It names none.
    """
    digest = state.partition(".")[0]
    if not _DIGEST.fullmatch(digest) or not state.isascii():
        raise SignInError("no sign-in waits for this answer")
    return state_file(f"pending-sign-ins/{digest}")
