"""Lists changes of servers, inferred dependencies and allowed tools for review, and stores decisions on them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from callsheet.graphs import (
    CallsheetError,
    CatalogError,
    Change,
    PinBook,
    User,
    dependency_edges,
    describe_change,
    digest,
)
from callsheet.graphs.dependencies import Proposal, decide, read_dependencies, write_dependencies
from callsheet.graphs.storage import private_folder
from callsheet.graphs.text.hidden import escaped_line
from callsheet.graphs.trust.changes import sides_of
from callsheet.graphs.trust.consent import StandingApproval, StandingApprovals
from callsheet.orchestrator.server.page_requests import (
    Body,
    ForbiddenError,
    Parameters,
    RefusedError,
    body_of,
)
from callsheet.orchestrator.server.visible_catalog import Json, Site, VisibleCatalog, page_text, shown_line

Part = Literal["changes", "dependencies", "allowed"]
_Reviewed = Change | Proposal | StandingApproval
_PER_PAGE = 50
_MOST_SHOWN = 500_000
_LINE = 50  # characters of a definition; a line of the page costs as much as so many
_LOG = logging.getLogger("callsheet")
_NO_FILE = (
    "this catalog was made in memory, so there is no file for decisions about dependencies: name one among its sources"
)
_STALE = (
    "this is not what waits now: it was decided by somebody else, or has changed since it was shown. "
    "Nothing was accepted; look again"
)
_NOT_NAMED = (
    'only users whom the policy names as "reviewers" decide here: ask one of them, or decide on the command line'
)


class AskedPart(Parameters):
    """A request for the items of ``part`` that have all ``words``, from ``start``."""

    part: Part = "changes"
    words: Annotated[str, Field(max_length=1_000)] = ""
    start: Annotated[int, Field(ge=0)] = 0


class _Decision(Body):
    part: Part
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    accept: bool | None = True


class ReviewRoutes:
    """The endpoints of the review page."""

    def __init__(self, site: Site, *, anonymous: bool) -> None:
        self._site = site
        self._anonymous = anonymous
        self._deciding = threading.Lock()

    def items(self, visible: VisibleCatalog, asked: AskedPart) -> Json:
        """Returns a page of items, with the reason if nothing can be decided; slow, so not for an event loop."""
        refusal = self._refusal(visible, asked.part)
        if asked.part == "dependencies" and not visible.loaded.dependency_files:
            refusal = refusal or _NO_FILE
        try:
            waiting = self._waiting(visible, asked.part)
        except CatalogError as error:  # a file of dependencies
            raise RefusedError(_why(error, visible)) from error
        words = asked.words.casefold().split()
        if words:
            texts = (str({**_item(visible, one), "digest": ""}).casefold() for one in waiting)
            waiting = [one for one, text in zip(waiting, texts, strict=True) if all(word in text for word in words)]
        shown = [_item(visible, one) for one in waiting[asked.start : asked.start + _PER_PAGE]]
        return {"total": len(waiting), "items": shown, "refusal": refusal}

    async def decide(self, visible: VisibleCatalog, request: Request) -> dict[str, str]:
        """Stores the decision ``accept`` on the item of ``part`` with this ``digest``, and applies it."""
        decision = await body_of(request, _Decision)
        why = self._refusal(visible, decision.part)
        if why:
            raise ForbiddenError(why)
        return await run_in_threadpool(self._decided, visible.user, decision)

    def _waiting(self, visible: VisibleCatalog, part: Part) -> Sequence[_Reviewed]:
        match part:
            case "changes":
                return visible.reviewable
            case "dependencies":
                return _dependencies(visible)
        standing = self._standing(visible)
        return [one for one in (standing.own() if standing else ()) if visible.may_see(one.id)]

    def _standing(self, visible: VisibleCatalog) -> StandingApprovals | None:
        return StandingApprovals.of(visible.loaded.label, visible.user.id or ("" if self._anonymous else None))

    def _refusal(self, visible: VisibleCatalog, part: Part) -> str:
        """Returns why this user may not decide; empty if the user may. What one has allowed, one may revoke."""
        if part == "allowed":
            return ""
        if visible.read is None:
            return "this program cannot load its catalog again, so decide on the command line and start it again"
        named = visible.policy is not None and visible.policy.reviews(visible.user)
        return "" if named or (self._anonymous and not visible.user.id) else _NOT_NAMED

    def _decided(self, user: User, decision: _Decision) -> dict[str, str]:
        with self._deciding:
            visible = self._site.visible_to(user)  # the state after the decision before this one
            try:
                one = next(
                    (one for one in self._waiting(visible, decision.part) if _digest(one) == decision.digest), None
                )
                if one is None or not _item(visible, one)["digest"]:
                    raise RefusedError(_STALE)
                done = self._write(visible, one, decision.accept)
            except CallsheetError as error:
                self._renewed(visible)  # so that the page shows what somebody else decided
                raise RefusedError(_why(error, visible)) from error
            return {"told": done, "note": "" if decision.part == "allowed" else self._renewed(visible)}

    def _write(self, visible: VisibleCatalog, one: _Reviewed, accept: bool | None) -> str:
        """Writes a decision; returns it in words."""
        match one:
            case Proposal():
                decided = one.model_copy(update={"accept": accept})
                decide(_file_of(visible, one), decided, before=one.accept, agents=visible.loaded.catalog.agents)
                words = {True: "accepted", False: "rejected", None: "undecided again"}[accept]
                return f"{escaped_line(one.source)} -> {escaped_line(one.target)} is {words}"
            case Change() if accept:
                PinBook(one.book).accept([one])
                return f"{escaped_line(one.id)} is accepted"
            case StandingApproval() if accept is False and (standing := self._standing(visible)):
                standing.revoke([one.id])
                return f"{escaped_line(one.id)} asks again"
        raise RefusedError("a change is accepted or stays in quarantine; what is allowed can only be revoked")

    def _renewed(self, visible: VisibleCatalog) -> str:
        """Loads the catalog again and uses it; why that failed, otherwise empty."""
        try:
            self._site.follow(visible.read() if visible.read else visible.loaded)
        except Exception as error:  # noqa: BLE001 an embedder may raise anything; the decision is stored
            _LOG.warning("the catalog was not reloaded after a decision: %s", error)
            why = _why(error, visible)
            return f"The catalog cannot be loaded again, so decisions are stored, but used only after a restart: {why}"
        return ""


def _why(error: Exception, visible: VisibleCatalog) -> str:
    """Returns the reason of an error; without it, if it could name tools that the user may not see."""
    if visible.whole or isinstance(error, RefusedError):
        return str(error)
    return "the reason may name tools that you may not see: somebody who sees everything has to decide"


def _dependencies(visible: VisibleCatalog) -> list[Proposal]:
    """Undecided dependencies by confidence, highest first, then decided ones; both of their tools are visible.

    Raises:
        CatalogError: A file of dependencies cannot be read.
    """
    tools = visible.catalog.tools
    files = filter(os.path.exists, visible.loaded.dependency_files)
    edges = [edge for file in files for edge in read_dependencies(file)]
    decided = [edge for edge in edges if edge.accept is not None and edge.source in tools and edge.target in tools]
    keys = {edge.key for edge in decided}
    inferred = (
        Proposal(
            source=source,
            target=edge.tool,
            kind=edge.kind,
            parameter=edge.parameter,
            confidence=edge.confidence,
            evidence=edge.reason,
            count=edge.count,
        )
        for source, edge in dependency_edges(visible.knowledge.graph)
        if not edge.holds
    )
    waiting = [edge for edge in inferred if edge.key not in keys]
    return [*sorted(waiting, key=lambda edge: (-edge.confidence, edge.source, edge.target)), *decided]


def _item(visible: VisibleCatalog, one: _Reviewed) -> Json:
    """Returns what the page shows; slow for a long definition.

    ``digest`` is the SHA-256 of exactly what is shown; empty for a change that is too long to be shown, so that it
    cannot be accepted here. ``lines`` are the accepted and the present line side by side, as of ``sides_of``.
    """
    match one:
        case StandingApproval():
            tool = visible.loaded.catalog.tools.get(one.id)
            holds = tool is not None and visible.loaded.pin(tool) == one.digest
            return {"digest": _digest(one), "tool": visible.link(one.id), "since": one.since, "holds": holds}
        case Change():
            lines = sides_of(one)
            shown = sum(_LINE + len(line) for pair in lines for line in pair if line) <= _MOST_SHOWN
            return {
                "digest": _digest(one) if shown else "",
                "label": shown_line(one.id),
                "kind": one.kind,
                "told": describe_change(one),
                "quarantines": one.quarantines,
                "lines": lines if shown else (),
            }
    return {
        "digest": _digest(one),
        "source": visible.link(one.source),
        "target": visible.link(one.target),
        "required": one.kind.direct,
        "parameter": shown_line(one.parameter or ""),
        "confidence": one.confidence,
        "evidence": page_text(one.evidence),
        "count": one.count,
        "accept": one.accept,
    }


def _digest(one: _Reviewed) -> str:
    if isinstance(one, Change):
        return digest({name: getattr(one, name) for name in ("before", "after", "kind", "id", "sha256", "pinned")})
    return digest(one.model_dump(mode="json"))


def _file_of(visible: VisibleCatalog, edge: Proposal) -> str:
    """Returns the file of dependencies for a decision: the one with the edge and its decision, or the last one.

    Raises:
        CatalogError: There is none, or it cannot be read.
    """
    files = visible.loaded.dependency_files
    if not files:
        raise CatalogError(_NO_FILE)
    if not Path(files[-1]).exists():  # that of ``decisions_file``: the first decision makes it
        private_folder(Path(files[-1]).parent)
        write_dependencies((), files[-1])
    known = [(file, one.accept) for file in files for one in read_dependencies(file) if one.key == edge.key]
    return next((file for file, accept in known if accept is edge.accept), known[-1][0] if known else files[-1])
