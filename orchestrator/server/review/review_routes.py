"""Routes that show what there is to review, and write a decision about exactly what was shown."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from callsheet.graphs import CallsheetError, CatalogError, Change, PinBook, User
from callsheet.graphs.dependencies import decide
from callsheet.graphs.text.sanitizing import one_line
from callsheet.orchestrator.server.explorer.site import Seen, Site
from callsheet.orchestrator.server.page_key import Body, ForbiddenError, PageKey, RefusedError
from callsheet.orchestrator.server.review import capability_review
from callsheet.orchestrator.server.review.capability_review import capability_items, declare
from callsheet.orchestrator.server.review.review_items import (
    NO_FILE,
    change_item,
    change_of,
    dependency_items,
    file_of,
    finding_items,
)

Part = Literal["changes", "dependencies", "findings", "capabilities"]
_Given = TypeVar("_Given", bound=Body)
_PER_PAGE = 50
_LOG = logging.getLogger("callsheet")
_STALE = (
    "this is not what waits now: it was decided by somebody else, or has changed since it was shown. "
    "Nothing was accepted; look again"
)
_NOT_NAMED = (
    'only users whom the policy names as "reviewers" decide here: ask one of them, or decide on the command line'
)


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    part: Part = "changes"
    words: Annotated[str, Field(max_length=1_000)] = ""
    start: Annotated[int, Field(ge=0)] = 0


class _Decision(Body):
    part: Literal["changes", "dependencies", "capabilities"]
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    accept: bool | None = True
    capabilities: Annotated[tuple[str, ...], Field(max_length=100)] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """A page of one part of the review.

    Attributes:
        total: Number of items with these words.
        items: Those of this page.
        refusal: Why nothing can be decided here; empty if it can.
        taxonomy: Id and name of the capabilities to choose from, for that part.
    """

    total: int
    items: Sequence[object]
    refusal: str
    taxonomy: Sequence[tuple[str, str]] = ()


class ReviewRoutes:
    """The endpoints of the review."""

    def __init__(self, site: Site, key: PageKey, *, anonymous: bool) -> None:
        self._site, self._key, self._anonymous = site, key, anonymous
        self._deciding = threading.Lock()

    async def review(self, seen: Seen, request: Request) -> Review:
        """A page of ``part``: the items with all ``words``, from ``start``."""
        asked = _Asked.model_validate(dict(request.query_params))
        refusal = self._refusal(seen, request) or _without_file(seen, asked.part)
        try:
            return await run_in_threadpool(_review, seen, asked, refusal)
        except CatalogError as error:  # a file of dependencies
            raise RefusedError(_why(error, seen)) from error

    def posts(self) -> Mapping[str, Callable[[Seen, Request], Awaitable[object]]]:
        """Endpoints with a body, by the last part of their address."""
        return {"decide": self.decide, "list": self.list}

    async def list(self, seen: Seen, request: Request) -> dict[str, str]:
        """Lists all servers anew, as ``callsheet approve`` does."""
        await self._may(seen, request, Body)
        return {"note": await run_in_threadpool(self._listed, seen)}

    async def decide(self, seen: Seen, request: Request) -> dict[str, str]:
        """Writes the decision ``accept`` about the item of ``part`` with this ``digest``, and uses it."""
        decision = await self._may(seen, request, _Decision)
        return await run_in_threadpool(self._decided, seen.user, decision)

    async def _may(self, seen: Seen, request: Request, form: type[_Given]) -> _Given:
        given = await self._key.body(request, form)
        if why := self._refusal(seen, request):
            raise ForbiddenError(why)
        return given

    def _refusal(self, seen: Seen, request: Request) -> str:
        """Why this user may not decide; empty if the user may."""
        try:
            self._key.check(request)
        except ForbiddenError as error:
            return str(error)
        if seen.read is None:
            return "this program cannot load its catalog again, so decide on the command line and start it again"
        named = seen.policy is not None and seen.policy.reviews(seen.user)
        return "" if named or (self._anonymous and not seen.user.id) else _NOT_NAMED

    def _decided(self, user: User, decision: _Decision) -> dict[str, str]:
        with self._deciding:
            seen = self._site.seen(user)  # the state after the decision before this one
            try:
                told = _DECIDE[decision.part](seen, decision)
            except CallsheetError as error:
                self._renewed(seen)  # so that the page shows what somebody else decided
                raise RefusedError(_why(error, seen)) from error
            return {"told": told, "note": self._renewed(seen)}

    def _listed(self, seen: Seen) -> str:
        with self._deciding:
            return self._renewed(seen, anew=True)

    def _renewed(self, seen: Seen, *, anew: bool = False) -> str:
        """Loads the catalog again and uses it; why that failed, otherwise empty."""
        try:
            self._site.follow(seen.read(anew) if seen.read else seen.loaded)
        except Exception as error:  # noqa: BLE001 an embedder may raise anything; the decision is stored
            _LOG.warning("the catalog was not reloaded after a decision: %s", error)
            why = _why(error, seen)
            return f"The catalog cannot be loaded again, so decisions are stored, but used only after a restart: {why}"
        return ""


def _why(error: Exception, seen: Seen) -> str:
    """The reason of an error; without it, if it could name tools that the user may not see."""
    if seen.whole or isinstance(error, RefusedError):
        return str(error)
    return "the reason may name tools that you may not see: somebody who sees everything has to decide"


def _review(seen: Seen, asked: _Asked, refusal: str) -> Review:
    items: Sequence[object]
    taxonomy: Sequence[tuple[str, str]] = ()
    match asked.part:
        case "changes":
            items = seen.reviewable
        case "dependencies":
            items = [item for item, _ in dependency_items(seen)]
        case "findings":
            items = finding_items(seen, [one for found in seen.knowledge.findings().result().values() for one in found])
        case "capabilities":
            known = seen.knowledge.capabilities().result()
            items = capability_items(seen, known)
            taxonomy = [(name, known.taxonomy.by_id[name].name) for name in known.taxonomy.leaves]
    words = asked.words.casefold().split()
    found = [item for item in items if all(word in _text(_shown(item)) for word in words)] if words else items
    page = found[asked.start : asked.start + _PER_PAGE]
    return Review(len(found), [_shown(item) for item in page], refusal, taxonomy)


def _shown(item: object) -> object:
    return change_item(item) if isinstance(item, Change) else item


def _text(item: Any) -> str:
    return str(replace(item, digest="") if hasattr(item, "digest") else item).casefold()


def _without_file(seen: Seen, part: Part) -> str:
    if part == "dependencies" and not seen.loaded.dependency_files:
        return NO_FILE
    return capability_review.no_file(seen) if part == "capabilities" else ""


def _of_change(seen: Seen, decision: _Decision) -> str:
    change = change_of(seen, decision.digest)
    if change is None:
        raise RefusedError(_STALE)
    if decision.accept is not True:
        raise RefusedError("a change is accepted, or stays in quarantine")
    PinBook(change.book).accept([change])
    return f"{one_line(change.id)} is accepted"


def _of_dependency(seen: Seen, decision: _Decision) -> str:
    edge = next((edge for item, edge in dependency_items(seen) if item.digest == decision.digest), None)
    if edge is None:
        raise RefusedError(_STALE)
    decided = edge.model_copy(update={"accept": decision.accept})
    decide(file_of(seen, edge), decided, before=edge.accept, agents=seen.loaded.catalog.agents)
    words = {True: "accepted", False: "rejected", None: "undecided again"}[decision.accept]
    return f"{one_line(edge.source)} -> {one_line(edge.target)} is {words}"


def _of_capabilities(seen: Seen, decision: _Decision) -> str:
    known = seen.knowledge.capabilities().result()
    item = next((item for item in capability_items(seen, known) if item.digest == decision.digest), None)
    if item is None:
        raise RefusedError(_STALE)
    declare(seen, item.tool.id, decision.capabilities, known)
    return f"{item.tool.label} declares {', '.join(decision.capabilities)}"


_DECIDE = {"changes": _of_change, "dependencies": _of_dependency, "capabilities": _of_capabilities}
