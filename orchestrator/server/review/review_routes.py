"""Routes that show what there is to review, and write a decision about exactly what was shown."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from callsheet.graphs import CallsheetError, CatalogError, Change, PinBook, User
from callsheet.graphs.dependencies import decide
from callsheet.graphs.text.sanitizing import one_line
from callsheet.orchestrator.server.page_requests import (
    Body,
    Endpoint,
    ForbiddenError,
    PageKey,
    Parameters,
    RefusedError,
)
from callsheet.orchestrator.server.review.review_items import (
    NO_CATALOG_FILE,
    NO_DEPENDENCY_FILE,
    capability_items,
    catalog_files,
    change_item,
    change_of,
    declare,
    dependency_items,
    file_of,
    finding_items,
)
from callsheet.orchestrator.server.visible_catalog import Site, VisibleCatalog

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


class _Asked(Parameters):
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

    async def review(self, visible: VisibleCatalog, request: Request) -> Review:
        """A page of ``part``: the items with all ``words``, from ``start``."""
        asked = _Asked.model_validate(dict(request.query_params))
        refusal = self._refusal(visible, request) or _without_file(visible, asked.part)
        try:
            return await run_in_threadpool(_review, visible, asked, refusal)
        except CatalogError as error:  # a file of dependencies
            raise RefusedError(_why(error, visible)) from error

    def posts(self) -> Mapping[str, Endpoint]:
        """Endpoints with a body, by the last part of their address."""
        return {"decide": self.decide, "list": self.list}

    async def list(self, visible: VisibleCatalog, request: Request) -> dict[str, str]:
        """Lists all servers anew, as ``callsheet approve`` does."""
        await self._may(visible, request, Body)
        return {"note": await run_in_threadpool(self._listed, visible)}

    async def decide(self, visible: VisibleCatalog, request: Request) -> dict[str, str]:
        """Writes the decision ``accept`` about the item of ``part`` with this ``digest``, and uses it."""
        decision = await self._may(visible, request, _Decision)
        return await run_in_threadpool(self._decided, visible.user, decision)

    async def _may(self, visible: VisibleCatalog, request: Request, form: type[_Given]) -> _Given:
        given = await self._key.body(request, form)
        if why := self._refusal(visible, request):
            raise ForbiddenError(why)
        return given

    def _refusal(self, visible: VisibleCatalog, request: Request) -> str:
        """Why this user may not decide; empty if the user may."""
        try:
            self._key.check(request)
        except ForbiddenError as error:
            return str(error)
        if visible.read is None:
            return "this program cannot load its catalog again, so decide on the command line and start it again"
        named = visible.policy is not None and visible.policy.reviews(visible.user)
        return "" if named or (self._anonymous and not visible.user.id) else _NOT_NAMED

    def _decided(self, user: User, decision: _Decision) -> dict[str, str]:
        with self._deciding:
            visible = self._site.visible_to(user)  # the state after the decision before this one
            try:
                told = _DECIDE[decision.part](visible, decision)
            except CallsheetError as error:
                self._renewed(visible)  # so that the page shows what somebody else decided
                raise RefusedError(_why(error, visible)) from error
            return {"told": told, "note": self._renewed(visible)}

    def _listed(self, visible: VisibleCatalog) -> str:
        with self._deciding:
            return self._renewed(visible, anew=True)

    def _renewed(self, visible: VisibleCatalog, *, anew: bool = False) -> str:
        """Loads the catalog again and uses it; why that failed, otherwise empty."""
        try:
            self._site.follow(visible.read(anew) if visible.read else visible.loaded)
        except Exception as error:  # noqa: BLE001 an embedder may raise anything; the decision is stored
            _LOG.warning("the catalog was not reloaded after a decision: %s", error)
            why = _why(error, visible)
            return f"The catalog cannot be loaded again, so decisions are stored, but used only after a restart: {why}"
        return ""


def _why(error: Exception, visible: VisibleCatalog) -> str:
    """The reason of an error; without it, if it could name tools that the user may not see."""
    if visible.whole or isinstance(error, RefusedError):
        return str(error)
    return "the reason may name tools that you may not see: somebody who sees everything has to decide"


def _review(visible: VisibleCatalog, asked: _Asked, refusal: str) -> Review:
    items: Sequence[object]
    taxonomy: Sequence[tuple[str, str]] = ()
    match asked.part:
        case "changes":
            items = visible.reviewable
        case "dependencies":
            items = [item for item, _ in dependency_items(visible)]
        case "findings":
            items = finding_items(
                visible, [one for found in visible.knowledge.findings().result().values() for one in found]
            )
        case "capabilities":
            known = visible.knowledge.capabilities().result()
            items = capability_items(visible, known)
            taxonomy = [(name, known.taxonomy.by_id[name].name) for name in known.taxonomy.leaves]
    words = asked.words.casefold().split()
    found = [item for item in items if all(word in _text(_shown(item)) for word in words)] if words else items
    page = found[asked.start : asked.start + _PER_PAGE]
    return Review(len(found), [_shown(item) for item in page], refusal, taxonomy)


def _shown(item: object) -> object:
    return change_item(item) if isinstance(item, Change) else item


def _text(item: Any) -> str:
    return str(replace(item, digest="") if hasattr(item, "digest") else item).casefold()


def _without_file(visible: VisibleCatalog, part: Part) -> str:
    if part == "dependencies" and not visible.loaded.dependency_files:
        return NO_DEPENDENCY_FILE
    return NO_CATALOG_FILE if part == "capabilities" and not catalog_files(visible) else ""


def _of_change(visible: VisibleCatalog, decision: _Decision) -> str:
    change = change_of(visible, decision.digest)
    if change is None:
        raise RefusedError(_STALE)
    if decision.accept is not True:
        raise RefusedError("a change is accepted, or stays in quarantine")
    PinBook(change.book).accept([change])
    return f"{one_line(change.id)} is accepted"


def _of_dependency(visible: VisibleCatalog, decision: _Decision) -> str:
    edge = next((edge for item, edge in dependency_items(visible) if item.digest == decision.digest), None)
    if edge is None:
        raise RefusedError(_STALE)
    decided = edge.model_copy(update={"accept": decision.accept})
    decide(file_of(visible, edge), decided, before=edge.accept, agents=visible.loaded.catalog.agents)
    words = {True: "accepted", False: "rejected", None: "undecided again"}[decision.accept]
    return f"{one_line(edge.source)} -> {one_line(edge.target)} is {words}"


def _of_capabilities(visible: VisibleCatalog, decision: _Decision) -> str:
    known = visible.knowledge.capabilities().result()
    item = next((item for item in capability_items(visible, known) if item.digest == decision.digest), None)
    if item is None:
        raise RefusedError(_STALE)
    declare(visible, item.tool.id, decision.capabilities, known)
    return f"{item.tool.label} declares {', '.join(decision.capabilities)}"


_DECIDE = {"changes": _of_change, "dependencies": _of_dependency, "capabilities": _of_capabilities}
